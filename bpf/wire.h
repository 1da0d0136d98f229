/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Records between the BPF program and `decode`. Included by exactly two .c files:
 * bpf/montrace.bpf.c and userspace/decode.c; the includer provides __u8 .. __u64.
 *
 * A ring record is struct mt_wire, then a payload that its kind names. `size` covers both and is
 * what counts: the ring slot may be longer (size classes), what lies behind is old memory.
 */
#ifndef MT_WIRE_H
#define MT_WIRE_H

/* Append-only. Unknown kinds are skipped. 6 was never sent. */
enum mt_wire_kind {
	MT_WIRE_NATIVE = 1,      /* payload: one or more struct montrace_record of one hit */
	MT_WIRE_THREAD_EXIT = 2, /* payload: struct mt_wire_life; seq = hits the thread had */
	MT_WIRE_FORK = 3,        /* payload: struct mt_wire_life; a new process (not a thread) */
	MT_WIRE_EXEC = 4,        /* payload: struct mt_wire_life */
	MT_WIRE_COMM = 5,        /* payload: struct mt_wire_life; comm is the new name */
	MT_WIRE_FOREIGN =
		16, /* as NATIVE, made here of a foreign USDT site's operands; values may be missing */
};

struct mt_wire {
	__u16 size; /* head and payload, bytes */
	__u8 kind;  /* enum mt_wire_kind */
	__u8 flags; /* MT_WIRE_F_* */
	__u32 site; /* site number (BPF cookie); 0 for lifecycle kinds */
	__u64 time; /* CLOCK_BOOTTIME ns, taken after the slot was reserved */
	__u32 tgid; /* initial pid namespace */
	__u32 tid;
	__u64 seq;   /* number of this hit on its thread, from 0, lost ones included */
	__u64 start; /* the thread's start, boot-time ns */
};

#define MT_WIRE_F_GROUP_DEAD 1 /* THREAD_EXIT: it was the last thread, status counts */
#define MT_WIRE_F_SEQ 2        /* seq counts (always for hits; for THREAD_EXIT if the thread had any) */

struct mt_wire_life {
	__u32 child; /* FORK: tgid of the child; EXEC: device of the executable (major << 20 | minor) */
	__u32 status; /* THREAD_EXIT with GROUP_DEAD: wait(2) status; EXEC: MT_TARGET_* flags, 0 = not traced */
	__u64 child_start; /* FORK: start of the child, boot-time ns; EXEC: inode of the executable */
	char comm[16];     /* current name of the thread (FORK: of the child), NUL-terminated */
};

_Static_assert(sizeof(struct mt_wire) == 40, "wire head");
_Static_assert(__builtin_offsetof(struct mt_wire, site) == 4, "site");
_Static_assert(__builtin_offsetof(struct mt_wire, time) == 8, "time");
_Static_assert(__builtin_offsetof(struct mt_wire, tgid) == 16, "tgid");
_Static_assert(__builtin_offsetof(struct mt_wire, tid) == 20, "tid");
_Static_assert(__builtin_offsetof(struct mt_wire, seq) == 24, "seq");
_Static_assert(__builtin_offsetof(struct mt_wire, start) == 32, "start");
_Static_assert(sizeof(struct mt_wire_life) == 32, "life");
_Static_assert(__builtin_offsetof(struct mt_wire_life, child_start) == 8, "child_start");
_Static_assert(__builtin_offsetof(struct mt_wire_life, comm) == 16, "comm");

#endif
