/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary of montrace-bpf's userspace: callsites, values, events.
 *
 * Everything from `decode` to the sinks speaks in these structs. They are plain
 * memory: no pointer in them leads to libbpf, and nothing here needs root.
 *
 * Ownership: a struct mt_callsite lives as long as the struct mt_elfnotes (or the
 * test) that made it; everything a struct mt_event points to is valid only during
 * the call it is passed to. Who wants to keep text copies it (strings.h).
 */
#ifndef MT_MODEL_H
#define MT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "montrace.h" /* enum montrace_level, _type, _kind, _class; limits */

/* Text with a length; not NUL-terminated; may hold any byte until a module says otherwise. */
struct mt_str {
	const char *p;
	uint32_t len;
};

/*
 * One typed value.
 *
 * type      enum montrace_type (MONTRACE_TYPE_I64, ...).
 * cut       the text was longer than it is here (full_len says how long, if known, else 0).
 * missing   the value could not be had; s then holds the reason ("unreadable", ...).
 */
struct mt_value {
	uint8_t type;
	bool cut;
	bool missing;
	uint32_t full_len;
	union {
		int64_t i;
		uint64_t u; /* also bool: 0 or 1 */
		double f;
		struct mt_str s; /* MONTRACE_TYPE_STR, MONTRACE_TYPE_DEBUG */
	};
};

/* A value with its name. */
struct mt_field {
	struct mt_str name;
	struct mt_value value;
};

/*
 * What `decode` makes of a value's 8 bytes before anybody sees it. Only foreign probes, whose operands are
 * read as they are, have others than MT_RAW_AS_IS; `type` is that of the result.
 */
enum mt_raw {
	MT_RAW_AS_IS = 0,
	MT_RAW_I8, /* lower bits, extended: I64 */
	MT_RAW_I16,
	MT_RAW_I32,
	MT_RAW_U8, /* U64 */
	MT_RAW_U16,
	MT_RAW_U32,
	MT_RAW_F32, /* F64 */
	MT_RAW_HEX, /* DEBUG: "0x..." */
};

/* Name and type of a callsite's field, as its note tells them. */
struct mt_field_desc {
	const char *name; /* NUL-terminated, valid UTF-8, no control characters */
	uint8_t type;     /* enum montrace_type */
	uint8_t raw;      /* enum mt_raw */
	uint8_t pair; /* not 0: a field of the begin of a scope and one of its end that must agree have this in common */
};

/* What `spans` does with a callsite beyond the ordinary. */
enum mt_how {
	MT_HOW_NESTED = 1, /* a scope that is over when one around it ends: it was left by a jump */
	MT_HOW_WHILE = 2,  /* a scope whose begin is also the end of the one before on the thread */
	MT_HOW_SUM = 4,    /* a counter that shows the sum of its values in the process */
	MT_HOW_COUNT = 8,  /* with MT_HOW_SUM: it has no value, each hit is 1 */
};

/*
 * One use of a probe macro (or one foreign USDT probe), as known from the ELF file.
 *
 * All strings are NUL-terminated, never NULL, valid UTF-8 without control characters:
 * elfnotes sanitises them once, here, for everybody.
 */
struct mt_callsite {
	uint32_t id;    /* unique in a tracer's life, from 1; sinks cache by it */
	uint8_t class_; /* enum montrace_class */
	uint8_t level;  /* enum montrace_level */
	uint16_t flags; /* MONTRACE_CSF_* */
	uint32_t line;
	bool keyed;      /* its spans are told apart by a key and are open on no thread (foreign probes) */
	uint8_t nfields; /* at most MONTRACE_MAX_FIELDS */
	uint8_t how;     /* MT_HOW_*: of foreign probes whose spec asks for it */
	uint8_t end_at; /* not 0: fields from there on come with the end of a span (foreign probes), see decode.h */
	const char *name;   /* span name, event message, counter name */
	const char *target; /* "myapp::db"; the file's stem where the macro gave none */
	const char *file;
	const char *function; /* "" if unknown */
	const char *label;    /* template of the display name, names of fields in braces; NULL = none */
	struct mt_field_desc fields[MONTRACE_MAX_FIELDS];
};

/* What a struct mt_event says. Values below 64 are the target's record kinds (enum montrace_kind). */
enum mt_event_kind {
	MT_EV_SCOPE_BEGIN = MONTRACE_KIND_SCOPE_BEGIN,
	MT_EV_SCOPE_END = MONTRACE_KIND_SCOPE_END,
	MT_EV_SPAN_NEW = MONTRACE_KIND_SPAN_NEW,
	MT_EV_SPAN_ENTER = MONTRACE_KIND_SPAN_ENTER,
	MT_EV_SPAN_EXIT = MONTRACE_KIND_SPAN_EXIT,
	MT_EV_SPAN_CLOSE = MONTRACE_KIND_SPAN_CLOSE,
	MT_EV_SPAN_RECORD = MONTRACE_KIND_SPAN_RECORD,
	MT_EV_EVENT = MONTRACE_KIND_EVENT,
	MT_EV_COUNTER = MONTRACE_KIND_COUNTER,
	MT_EV_THREAD_NAME = MONTRACE_KIND_THREAD_NAME,   /* values[0]: long name given by the program */
	MT_EV_PROCESS_NAME = MONTRACE_KIND_PROCESS_NAME, /* values[0] */
	MT_EV_EXECUTION_ID = MONTRACE_KIND_EXECUTION_ID, /* values[0] */
	MT_EV_CALLSITE = MONTRACE_KIND_CALLSITE,         /* free for callsites made at run time */
	MT_EV_PROCESS = 64,                              /* a process is (now) being traced: .process */
	MT_EV_PROCESS_FORK = 65,                         /* .tgid/.tid forked .fork */
	MT_EV_PROCESS_EXEC = 66, /* .tgid replaced its image: .process has the new names */
	MT_EV_PROCESS_EXIT = 67, /* the last thread of .tgid is gone: .exit */
	MT_EV_THREAD_COMM = 68,  /* .comm: kernel's 15-byte name, at start or renamed */
	MT_EV_THREAD_EXIT = 69,  /* .seq = number of hits the thread ever had */
	MT_EV_DETACH = 70,       /* tracing of .tgid ends now, the process lives on */
};

/*
 * One event, in the order the thread made it.
 *
 * time          CLOCK_BOOTTIME, ns.
 * seq, has_seq  number of this hit on its thread, from 0, without gaps unless something was lost.
 *               Several events may come from one hit (batched delivery): then only the first has_seq.
 * tgid, tid     initial pid namespace.
 * thread_start  the kernel's start time of the thread, boot-time ns: with tgid and tid it names the
 *               incarnation. 0 = unknown (lifecycle events of a process as a whole).
 * cs            NULL for lifecycle events.
 * flags         MONTRACE_RF_* of the record.
 */
struct mt_event {
	enum mt_event_kind kind;
	bool has_seq;
	uint64_t time;
	uint64_t seq;
	uint32_t tgid;
	uint32_t tid;
	uint64_t thread_start;
	const struct mt_callsite *cs;
	uint64_t span;   /* id of the span, 0 = none (scopes, events) */
	uint64_t parent; /* explicit parent's id if MONTRACE_RF_PARENT */
	uint32_t flags;
	uint32_t nvalues;
	struct mt_value values[MONTRACE_MAX_FIELDS];
	union {
		struct {
			uint64_t start; /* start time of the process (its leader), boot-time ns */
			uint32_t ppid;
			uint32_t uid;
			struct mt_str name;    /* comm or executable's name */
			struct mt_str cmdline; /* arguments joined by spaces; may be empty */
			bool traced;      /* EXEC: the kernel side traces it; else it was only heard of */
			uint32_t flags;   /* EXEC: MT_TARGET_* of shared.h */
			uint32_t exe_dev; /* EXEC: the executable, device (major << 20 | minor) and inode */
			uint64_t exe_inode;
		} process;
		struct {
			uint32_t child;       /* tgid of the new process */
			uint64_t child_start; /* its start time */
		} fork;
		struct {
			uint32_t status; /* wait(2) status: signal in bits 0..6, core flag 7, code in 8..15 */
		} exit;
		struct mt_str comm;
	};
};

/* Kinds of a class's probes, in the order of its thunks. NULL and 0 for a class not known. */
const uint8_t *mt_class_kinds(unsigned class_, unsigned *ret_n);

/* Names as the tool shows them: "scope_begin", "scope", "info", "i64"; "?" if not known. */
const char *mt_kind_name(unsigned kind); /* the name of the probe in .note.stapsdt, too */
const char *mt_class_name(unsigned class_);
const char *mt_level_name(unsigned level);
const char *mt_type_name(unsigned type);

#endif
