/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * montrace.h: probes for spans, events and counters. Header only, C11 and C++14, gcc and clang,
 * Linux on x86-64 and arm64; elsewhere, and with -DMONTRACE_DISABLE, every macro is nothing.
 *
 * The idea. A callsite (one use of a macro) costs one compare and one never-taken branch. It describes
 * itself in two ELF notes that are not loaded; a tracer reads them from the file and decides there which
 * callsites it wants. It raises their semaphore, and only then values are evaluated, laid out as one record
 * and handed to the probe: a thunk of nops that a kernel can put a breakpoint (or a call) on.
 *
 *     void serve(struct request *r)
 *     {
 *             MONTRACE_SCOPE("serve", MT_STR("path", r->path), MT(r->size));
 *             ...
 *             if (bad)
 *                     MONTRACE_EVENT(MONTRACE_WARN, "bad request", MT_I64("code", code));
 *     }
 *
 * Invariants
 *  H1  Nothing is evaluated, called or stored unless the callsite is armed.
 *  H2  A probe is called by address, by the ordinary calling convention: all caller-saved registers are
 *      dead, nothing below the stack pointer is alive. So the kernel may replace the 5-byte nop by a call.
 *  H3  Each instance that the compiler makes of a callsite (inlined twice, unrolled, a template) has a
 *      semaphore, thunks and notes of its own, all in the section group of its function: what the linker
 *      drops, it drops whole. No names, so nothing can collide over files, templates or LTO.
 *  H4  The record is complete in the caller's stack before the probe is called: reading it cannot fault.
 *  H5  No locks, no allocation, errno is kept: good in signal handlers, given 6 KiB of stack (MONTRACE_LOG
 *      formats with vsnprintf, which is not; nor is a first hit in a library that was dlopened and uses
 *      montrace_thread_name: libc may allocate its thread-local storage then).
 *  H6  Strings are copied up to MONTRACE_MAX_TEXT bytes; what is cut is flagged.
 *
 * Names and formats must be plain string literals (adjacent ones are joined), for they go through the
 * assembler: of the escapes it knows \n \t \r \b \f \\ \" \ooo \xhh, no more; no L"", u8"", R"()".
 * gcc takes % and [ in them, with or without one letter between, for an operand: write "%s" "[%d]".
 *
 * Not done here: other byte orders and 32-bit; reading the values of a callsite that was not armed.
 * All of it is described in docs/probes.md.
 */
#ifndef MONTRACE_H
#define MONTRACE_H
#include <stddef.h>
#include <stdint.h>

#define MONTRACE_ABI_VERSION 1

/* Limits of a record; what goes beyond is cut, with a flag. */
#define MONTRACE_MAX_FIELDS 16
#define MONTRACE_MAX_TEXT 1024   /* bytes of one string */
#define MONTRACE_MAX_RECORD 4096 /* bytes of a record */

enum montrace_level {
	MONTRACE_TRACE = 1,
	MONTRACE_DEBUG = 2,
	MONTRACE_INFO = 3,
	MONTRACE_WARN = 4,
	MONTRACE_ERROR = 5
};

/* Types of field values. */
enum montrace_type {
	MONTRACE_TYPE_I64 = 1,
	MONTRACE_TYPE_U64 = 2,
	MONTRACE_TYPE_F64 = 3,
	MONTRACE_TYPE_BOOL = 4,
	MONTRACE_TYPE_STR = 5,
	MONTRACE_TYPE_DEBUG = 6 /* text that a formatter made; stored like STR */
};

/* What a callsite is (one macro use). */
enum montrace_class {
	MONTRACE_CLASS_SCOPE = 1,   /* probes: scope_begin, scope_end */
	MONTRACE_CLASS_SPAN = 2,    /* probes: span_new, span_enter, span_exit, span_close */
	MONTRACE_CLASS_EVENT = 3,   /* probe: event */
	MONTRACE_CLASS_COUNTER = 4, /* probe: counter; one field `value` */
	MONTRACE_CLASS_RECORD = 5,  /* probe: span_record; fields for a span made elsewhere */
	MONTRACE_CLASS_RECORDING =
		6, /* a span of its own flight recording: probes as SPAN; fields subject, capacity */
	MONTRACE_CLASS_THREAD_NAME = 7,
	MONTRACE_CLASS_PROCESS_NAME = 8,
	MONTRACE_CLASS_EXECUTION_ID = 9
};

/* Kind of a record = kind of a probe. Append-only; unknown kinds are skipped. Below 64. */
enum montrace_kind {
	MONTRACE_KIND_SCOPE_BEGIN = 1,
	MONTRACE_KIND_SCOPE_END = 2,
	MONTRACE_KIND_SPAN_NEW = 3,
	MONTRACE_KIND_SPAN_ENTER = 4,
	MONTRACE_KIND_SPAN_EXIT = 5,
	MONTRACE_KIND_SPAN_CLOSE = 6,
	MONTRACE_KIND_SPAN_RECORD = 7,
	MONTRACE_KIND_EVENT = 8,
	MONTRACE_KIND_COUNTER = 9,
	MONTRACE_KIND_THREAD_NAME = 10,
	MONTRACE_KIND_PROCESS_NAME = 11,
	MONTRACE_KIND_EXECUTION_ID = 12,
	MONTRACE_KIND_CALLSITE = 13 /* kept free: callsites made at run time */
};

/* Flags of a callsite (note). */
enum {
	MONTRACE_CSF_USER = 1,          /* user-facing: shown in mode user */
	MONTRACE_CSF_FILE_TARGET = 2,   /* no target given: it is the stem of the file's name */
	MONTRACE_CSF_DEFAULT_LEVEL = 4, /* no level given */
	MONTRACE_CSF_MESSAGE = 8        /* field 0 is the formatted message; the name is the format */
};

/* Flags of a record. */
enum {
	MONTRACE_RF_ROOT = 1,       /* explicitly without parent */
	MONTRACE_RF_PARENT = 2,     /* explicit parent: parent_id counts */
	MONTRACE_RF_CUT_FIELDS = 4, /* more fields than a record takes */
	MONTRACE_RF_CUT_TEXT = 8,   /* a text was cut */
	MONTRACE_RF_LATE = 16,      /* the span was made while nobody looked; it got its id now */
	MONTRACE_RF_NO_IDS = 32,    /* span and parent are 0: left out of what is passed in registers */
	MONTRACE_RF_LEFT = 64 /* SPAN_CLOSE is the exit, too, on whatever thread (foreign probes only) */
	/* bits 16..31, foreign probes only: field 0..15 is missing, its value is the number of the reason */
};

/*
 * A record as the target lays it out and the probe hands over (pointer, length). Little endian, host
 * layout, position-independent, self-delimiting:
 *   head, nfields values of 8 bytes, bytes of the texts, zero to 7 bytes of padding.
 * A text's value is: bits 0..15 its offset from the record's start, bits 16..31 the bytes stored there,
 * bits 32..63 its full length (saturated; more than stored = cut).
 */
struct montrace_record {
	uint16_t size; /* of all of it, a multiple of 8 */
	uint8_t kind;
	uint8_t nfields;
	uint32_t flags;
	uint64_t span;
	uint64_t parent;
};

/*
 * Notes, owner name "montrace". Two notes a callsite, the text note directly before the callsite note:
 *  type MONTRACE_NT_TEXT: u32 abi, u32 key, then NUL-terminated: name, target, file, name of each field
 *  type MONTRACE_NT_CALLSITE: struct montrace_note, then one byte (enum montrace_type) per field
 * key joins them; it is unique in a source file only.
 */
#define MONTRACE_NT_CALLSITE 1
#define MONTRACE_NT_TEXT 2

struct montrace_note {
	uint32_t abi;
	uint32_t key;
	uint64_t code;  /* an address in the function that has the callsite; not in code = function was
			   discarded */
	uint64_t base;  /* _.stapsdt.base, as in stapsdt notes */
	uint64_t sem;   /* the callsite's semaphore (uint16_t) */
	uint64_t thunk; /* first of nprobes thunks, MONTRACE_THUNK_SIZE apart, in the order of the class's
			   kinds */
	uint8_t class_;
	uint8_t level;
	uint16_t flags;
	uint32_t line;
	uint8_t nfields;
	uint8_t nprobes;
	uint8_t nop_at;  /* offset of the nop in a thunk */
	uint8_t nop5_at; /* offset of the 5-byte nop in a thunk; 0 = none */
	uint32_t reserved;
};
#define MONTRACE_THUNK_SIZE 16

/*
 * A span that is entered and left explicitly, from any thread, any number of times.
 * Zero-initialise it or make it with MONTRACE_SPAN. Plain memory; the program owns it; it may be moved
 * while nobody uses it. After montrace_close() it is as new.
 */
struct montrace__cs;
struct montrace_span {
	uint64_t id; /* 0 until somebody looked */
	const struct montrace__cs *cs;
};

#if defined(__linux__) && defined(__ELF__) && defined(__GNUC__) && !defined(MONTRACE_DISABLE) && \
	((defined(__x86_64__) && !defined(__ILP32__)) ||                                         \
	 (defined(__aarch64__) && defined(__LP64__) && !defined(__AARCH64EB__)))
#define MONTRACE_ENABLED 1
#else
#define MONTRACE_ENABLED 0
#endif

/* ---- Fields --------------------------------------------------------------------------------------- */

/*
 * A field is its name (a string literal) and a value. Text is copied when the probe fires; NULL shows as
 * "(null)". MT_DEBUG is text that some formatter made (shown alike, told apart in the trace).
 */
#define MT_I64(k, ...) (montrace__i64, k, (__VA_ARGS__))
#define MT_U64(k, ...) (montrace__u64, k, (__VA_ARGS__))
#define MT_F64(k, ...) (montrace__f64, k, (__VA_ARGS__))
#define MT_BOOL(k, ...) (montrace__bool, k, (__VA_ARGS__))
#define MT_STR(k, ...) (montrace__str, k, (__VA_ARGS__))
#define MT_STRN(k, p, n) (montrace__strn, k, (p, n)) /* n bytes at p, no NUL needed */
#define MT_DEBUG(k, ...) (montrace__debug, k, (__VA_ARGS__))
#define MT_DEBUGN(k, p, n) (montrace__debugn, k, (p, n))
/* The type is the expression's: bool, signed, unsigned, floating, text; the name is its source text. */
#define MT(...) (montrace__auto, #__VA_ARGS__, (__VA_ARGS__))
#define MT_AS(k, ...) (montrace__auto, k, (__VA_ARGS__)) /* the same with a name */

/* ---- Spans, events, counters ---------------------------------------------------------------------- */

#ifndef MONTRACE_TARGET
/* What a callsite belongs to, as "app::db"; the filters work on it. Without it: the stem of the file's name.
   Set per build (-DMONTRACE_TARGET='"app"') or per file, also between two uses. */
#define MONTRACE_TARGET ""
#endif

/*
 * Span from here to the end of the block, however it is left. Level info unless given; a name literal, then
 * up to 16 fields. A declaration, so it cannot be the body of an `if` without braces.
 */
#define MONTRACE_SCOPE(...) MT__SCOPE(MONTRACE_CSF_DEFAULT_LEVEL, MONTRACE_INFO, __COUNTER__, __VA_ARGS__)
#define MONTRACE_SCOPE_AT(level, ...) MT__SCOPE(0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_USER_SCOPE(...) \
	MT__SCOPE(MONTRACE_CSF_USER | MONTRACE_CSF_DEFAULT_LEVEL, MONTRACE_INFO, __COUNTER__, __VA_ARGS__)

/*
 * Makes span *s (struct montrace_span): (s, level, "name", fields...). _IN: (s, parent, level, ...) below
 * another span; _ROOT: explicitly without parent. Otherwise its parent is what the thread is in.
 */
#define MONTRACE_SPAN(s, level, ...) MT__SPAN(s, 0, MT__NULL, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_SPAN_IN(s, parent, level, ...) \
	MT__SPAN(s, MONTRACE_RF_PARENT, parent, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_SPAN_ROOT(s, level, ...) \
	MT__SPAN(s, MONTRACE_RF_ROOT, MT__NULL, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_USER_SPAN(s, level, ...) \
	MT__SPAN(s, 0, MT__NULL, MONTRACE_CSF_USER, level, __COUNTER__, __VA_ARGS__)

/* Fields that are known only later: (s, fields...). */
#define MONTRACE_SPAN_RECORD(s, ...) MT__SPAN_RECORD(s, __COUNTER__, "record", __VA_ARGS__)

/* A root span whose events also go to a flight recording of their own: (s, "subject", capacity in events). */
#define MONTRACE_RECORDING(s, subject, capacity)                                                          \
	MT__SPAN_(s, MONTRACE_RF_ROOT, MT__NULL, MONTRACE_CLASS_RECORDING, 0, MONTRACE_INFO, __COUNTER__, \
		  "recording", MT_STR("subject", subject), MT_U64("capacity", capacity))

/* Something that happened: (level, "message", fields...); in the thread's current span, or _IN, or in none.
 */
#define MONTRACE_EVENT(level, ...) MT__EVENT(0, MT__NULL, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_EVENT_IN(parent, level, ...) \
	MT__EVENT(MONTRACE_RF_PARENT, parent, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_EVENT_ROOT(level, ...) \
	MT__EVENT(MONTRACE_RF_ROOT, MT__NULL, 0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_USER_EVENT(level, ...) \
	MT__EVENT(0, MT__NULL, MONTRACE_CSF_USER, level, __COUNTER__, __VA_ARGS__)

/* printf-like event; formats only when armed. The format must be a literal. */
#define MONTRACE_LOG(level, ...) MT__LOG(0, level, __COUNTER__, __VA_ARGS__)
#define MONTRACE_USER_LOG(level, ...) MT__LOG(MONTRACE_CSF_USER, level, __COUNTER__, __VA_ARGS__)

/* A value over time: ("name", number). */
#define MONTRACE_COUNTER(name, ...) MT__COUNTER(__COUNTER__, name, MT_AS("value", __VA_ARGS__))

/* ---- Preprocessor: over the fields ---------------------------------------------------------------- */

#define MT__S_(...) #__VA_ARGS__
#define MT__S(...) MT__S_(__VA_ARGS__)
#define MT__CAT_(a, b) a##b
#define MT__CAT(a, b) MT__CAT_(a, b)
#define MT__UNWRAP(...) __VA_ARGS__

/* Number of arguments after the first; a name says what is wrong with more than 16. */
#define MT__N(...)                                                                         \
	MT__N_(__VA_ARGS__, more_than_16_fields, more_than_16_fields, more_than_16_fields, \
	       more_than_16_fields, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define MT__N_(n, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, u, x, ...) x
#define MT__HEAD(...) MT__HEAD_(__VA_ARGS__, 0)
#define MT__HEAD_(x, ...) x

/* M(i, field) for each field; i is an expression. */
#define MT__EACH_0(M, i, n)
#define MT__EACH_1(M, i, n, f) M(i, f)
#define MT__EACH_2(M, i, n, f, ...) M(i, f) MT__EACH_1(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_3(M, i, n, f, ...) M(i, f) MT__EACH_2(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_4(M, i, n, f, ...) M(i, f) MT__EACH_3(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_5(M, i, n, f, ...) M(i, f) MT__EACH_4(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_6(M, i, n, f, ...) M(i, f) MT__EACH_5(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_7(M, i, n, f, ...) M(i, f) MT__EACH_6(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_8(M, i, n, f, ...) M(i, f) MT__EACH_7(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_9(M, i, n, f, ...) M(i, f) MT__EACH_8(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_10(M, i, n, f, ...) M(i, f) MT__EACH_9(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_11(M, i, n, f, ...) M(i, f) MT__EACH_10(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_12(M, i, n, f, ...) M(i, f) MT__EACH_11(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_13(M, i, n, f, ...) M(i, f) MT__EACH_12(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_14(M, i, n, f, ...) M(i, f) MT__EACH_13(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_15(M, i, n, f, ...) M(i, f) MT__EACH_14(M, i + 1, n, __VA_ARGS__)
#define MT__EACH_16(M, i, n, f, ...) M(i, f) MT__EACH_15(M, i + 1, n, __VA_ARGS__)
#define MT__EACH(M, ...) MT__CAT(MT__EACH_, MT__N(__VA_ARGS__))(M, 0, __VA_ARGS__)

#ifdef __cplusplus
#define MT__CAST(type, ...) static_cast<type>(__VA_ARGS__)
#define MT__NULL nullptr
#define MT__ASSERT(what, text) static_assert(what, text)
#else
#define MT__CAST(type, ...) ((type)(__VA_ARGS__))
#define MT__NULL NULL
#define MT__ASSERT(what, text) _Static_assert(what, text)
#endif

#if MONTRACE_ENABLED

#include <errno.h>
#include <sys/auxv.h>

#if defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#endif

/* ---- What a callsite is made of ------------------------------------------------------------------- */

/* A callsite in memory, in section .probes. The kernel counts tracers in sem. */
struct montrace__cs {
	uint16_t sem;
	uint16_t zero;
	int32_t thunk; /* first thunk, relative to this struct */
};

/* A value on its way: the number or pointer; for text its length, MONTRACE__CSTR = up to the NUL. */
struct montrace__val {
	uint64_t v;
	uint64_t n;
};
#define MONTRACE__CSTR UINT64_MAX

/* kind, number of fields, number of the thunk, which fields are text: one constant. */
#define MT__DESC(kind, nfields, slot, texts)                                                            \
	(MT__CAST(uint32_t, kind) | MT__CAST(uint32_t, nfields) << 8 | MT__CAST(uint32_t, slot) << 13 | \
	 MT__CAST(uint32_t, texts) << 16)

#define MT__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MT__ARMED(cs) MT__UNLIKELY(__atomic_load_n(&(cs)->sem, __ATOMIC_RELAXED))

#if defined(__clang__)
#define MT__NOSAN __attribute__((no_sanitize("function", "cfi-icall")))
#else
#define MT__NOSAN
#endif
#define MT__SHARED __attribute__((weak, visibility("hidden")))
#define MT__COLD __attribute__((noinline, cold)) MT__SHARED

#ifdef __cplusplus
extern "C" {
#endif

/* The functions of a module, one copy each (weak, hidden); described where they are defined. */
MT__COLD MT__NOSAN void montrace__emit_v1(const struct montrace__cs *cs, uint32_t desc, uint32_t flags,
					  uint64_t span, uint64_t parent, const struct montrace__val *vals);
MT__COLD void montrace__announce_v1(uint64_t now);
MT__COLD void montrace__fire_v1(const struct montrace__cs *cs, uint32_t desc, uint32_t flags, uint64_t span,
				uint64_t parent, const struct montrace__val *vals);
MT__COLD uint64_t montrace__id_v1(void);
MT__COLD uint64_t montrace__span_id_v1(struct montrace_span *s, uint32_t *late);
MT__COLD void montrace__span_fire_v1(struct montrace_span *s, uint32_t kind);
__attribute__((format(printf, 5, 6))) MT__COLD void montrace__log_v1(const struct montrace__cs *cs,
								     uint32_t desc, uint32_t flags,
								     uint64_t parent, const char *fmt, ...);

/* Next span id of this module, 0 = not seeded yet. */
MT__SHARED uint64_t montrace__ids_v1 = 0;

/*
 * Names are told again about once a second while somebody looks, by whoever fires next: a tracer that comes
 * late, or lost the first telling, learns them. `last` is in ticks of montrace__ticks.
 */
struct montrace__name {
	const struct montrace__cs *cs;
	uint64_t last;
	uint32_t current; /* which of the texts */
	char text[2][MONTRACE_MAX_TEXT];
};
struct montrace__thread {
	const struct montrace__cs *cs;
	uint64_t last;
	char text[112];
};
MT__SHARED struct montrace__name montrace__process_v1 = {0, 0, 0, {{0}, {0}}};
MT__SHARED struct montrace__name montrace__execution_v1 = {0, 0, 0, {{0}, {0}}};
MT__SHARED __thread struct montrace__thread montrace__thread_v1 = {0, 0, {0}};
/* 1 = this module named something, 2 = a thread: who names nothing looks at nothing. */
MT__SHARED uint32_t montrace__named_v1 = 0;

/* A clock that costs little, the cycle counter, in steps of about a second. */
static inline uint64_t montrace__ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc() >> 31;
#else
	uint64_t t, hz;
	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(t));
	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return t >> (hz > 200000000 ? 30 : 25);         /* 1 GHz; 24 to 100 MHz */
#endif
}

/*
 * Calls a thunk with a record of `size` bytes at w (8 words at least). The contract of a probe is pointer and
 * length (rdi, rsi; x0, x1). So that a tracer need not read memory for a short record, six words of it come
 * along in registers: the first, then those from the second on, or, with MONTRACE_RF_NO_IDS, from the fourth
 * on: rdx rcx r8 r9 rax r10; x2 to x7. Records of up to 48 bytes, or 64 without ids, are complete there.
 */
static inline MT__NOSAN void montrace__probe(uintptr_t thunk, const uint64_t *w, uint64_t size)
{
	const uint64_t *rest = w[0] >> 32 & MONTRACE_RF_NO_IDS ? w + 3 : w + 1;
#if defined(__x86_64__)
	uint64_t di = (uintptr_t)w, si = size, dx = w[0], cx = rest[0], ax = rest[3];
	register uint64_t r8 __asm__("r8") = rest[1];
	register uint64_t r9 __asm__("r9") = rest[2];
	register uint64_t r10 __asm__("r10") = rest[4];

	/*
	 * The compiler does not know of the call: step over what it may keep below the stack pointer. Who unwinds
	 * the stack must not need that pointer then: asking for the frame's address makes the compiler keep a frame
	 * pointer in this function. (.cfi directives for the step would be wrong where it does so anyway.)
	 */
	__asm__ __volatile__("{addq $-128, %%rsp|add rsp, -128}\n"
			     "{call *%[thunk]|call %[thunk]}\n"
			     "{subq $-128, %%rsp|sub rsp, -128}"
			     : "+D"(di), "+S"(si), "+d"(dx), "+c"(cx), "+a"(ax), "+r"(r8), "+r"(r9), "+r"(r10)
			     : [thunk] "r"(thunk), "r"(__builtin_frame_address(0))
			     : "memory", "cc", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			       "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
#else
	__asm__ __volatile__("" : : "r"(w) : "memory"); /* the compiler cannot see who reads it */
	((void (*)(const void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))thunk)(
		w, size, w[0], rest[0], rest[1], rest[2], rest[3], rest[4]);
#endif
}

/* Lays out the record in its own frame and calls the probe. vals: one per field. */
MT__COLD MT__NOSAN void montrace__emit_v1(const struct montrace__cs *cs, uint32_t desc, uint32_t flags,
					  uint64_t span, uint64_t parent, const struct montrace__val *vals)
{
	union {
		struct montrace_record head;
		uint64_t w[MONTRACE_MAX_RECORD / 8];
		char b[MONTRACE_MAX_RECORD];
	} r;
	uint32_t nfields = desc >> 8 & 31, texts = desc >> 16, i;
	uint32_t end = (uint32_t)sizeof(r.head) + 8 * nfields;

	for (i = 3; i < 8; i++)
		r.w[i] = 0; /* what is passed in registers is never old memory */
	for (i = 0; i < nfields; i++) {
		const char *p;
		const void *nul;
		uint64_t full;
		uint32_t n;

		if (!(texts >> i & 1)) {
			r.w[sizeof(r.head) / 8 + i] = vals[i].v;
			continue;
		}
		p = (const char *)(uintptr_t)vals[i].v;
		full = vals[i].n;
		if (!p) {
			p = "(null)";
			full = 6;
		} else if (full == MONTRACE__CSTR) {
			nul = __builtin_memchr(p, 0, MONTRACE_MAX_TEXT + 1);
			full = nul ? (uint64_t)((const char *)nul - p) : MONTRACE_MAX_TEXT + 1;
		}
		n = full > MONTRACE_MAX_TEXT ? MONTRACE_MAX_TEXT : (uint32_t)full;
		if (n > MONTRACE_MAX_RECORD - end)
			n = MONTRACE_MAX_RECORD - end;
		if (n < full)
			flags |= MONTRACE_RF_CUT_TEXT;
		if (full > UINT32_MAX)
			full = UINT32_MAX;
		__builtin_memcpy(r.b + end, p, n);
		r.w[sizeof(r.head) / 8 + i] = end | (uint64_t)n << 16 | full << 32;
		end += n;
	}
	while (end & 7)
		r.b[end++] = 0;
	if (!(span | parent))
		flags |= MONTRACE_RF_NO_IDS;
	r.head.size = (uint16_t)end;
	r.head.kind = (uint8_t)desc;
	r.head.nfields = (uint8_t)nfields;
	r.head.flags = flags;
	r.head.span = span;
	r.head.parent = parent;
	montrace__probe((uintptr_t)cs + (uintptr_t)(intptr_t)cs->thunk +
				(desc >> 13 & 7) * MONTRACE_THUNK_SIZE,
			r.w, end);
}

/* Tells the names that are due. */
MT__COLD void montrace__announce_v1(uint64_t now)
{
	struct montrace__name *names[2];
	int i;

	if (__atomic_load_n(&montrace__named_v1, __ATOMIC_RELAXED) & 2) {
		struct montrace__thread *t = &montrace__thread_v1;
		struct montrace__val v;

		if (t->cs && t->last != now && MT__ARMED(t->cs)) {
			t->last = now;
			v.v = (uintptr_t)t->text;
			v.n = MONTRACE__CSTR;
			montrace__emit_v1(t->cs, MT__DESC(MONTRACE_KIND_THREAD_NAME, 1, 0, 1), 0, 0, 0, &v);
		}
	}
	names[0] = &montrace__process_v1;
	names[1] = &montrace__execution_v1;
	for (i = 0; i < 2; i++) {
		const struct montrace__cs *cs = __atomic_load_n(&names[i]->cs, __ATOMIC_ACQUIRE);
		uint64_t last = __atomic_load_n(&names[i]->last, __ATOMIC_RELAXED);
		struct montrace__val v;

		if (!cs || last == now || !MT__ARMED(cs) ||
		    !__atomic_compare_exchange_n(&names[i]->last, &last, now, 0, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			continue;
		v.v = (uintptr_t)names[i]->text[__atomic_load_n(&names[i]->current, __ATOMIC_ACQUIRE) & 1];
		v.n = MONTRACE__CSTR;
		montrace__emit_v1(
			cs, MT__DESC(i ? MONTRACE_KIND_EXECUTION_ID : MONTRACE_KIND_PROCESS_NAME, 1, 0, 1), 0,
			0, 0, &v);
	}
}

/* An armed callsite: names that are due, then the record. */
MT__COLD void montrace__fire_v1(const struct montrace__cs *cs, uint32_t desc, uint32_t flags, uint64_t span,
				uint64_t parent, const struct montrace__val *vals)
{
	uint32_t named = __atomic_load_n(&montrace__named_v1, __ATOMIC_RELAXED);

	if (named) {
		uint64_t now = montrace__ticks();

		if ((named & 2 && montrace__thread_v1.cs && montrace__thread_v1.last != now) ||
		    (__atomic_load_n(&montrace__process_v1.cs, __ATOMIC_RELAXED) &&
		     __atomic_load_n(&montrace__process_v1.last, __ATOMIC_RELAXED) != now) ||
		    (__atomic_load_n(&montrace__execution_v1.cs, __ATOMIC_RELAXED) &&
		     __atomic_load_n(&montrace__execution_v1.last, __ATOMIC_RELAXED) != now))
			montrace__announce_v1(now);
	}
	montrace__emit_v1(cs, desc, flags, span, parent, vals);
}

/*
 * A new span id: one counter per module. Each module (executable, library, a library loaded again) starts
 * at a place of 2^64 that a keyed hash of its address and the time chooses; the key is the kernel's random
 * bytes of the process. Two modules meet with probability spans / 2^63: never, in practice. No address and
 * nothing secret can be read from an id.
 */
MT__COLD uint64_t montrace__id_v1(void)
{
	uint64_t id = __atomic_load_n(&montrace__ids_v1, __ATOMIC_RELAXED);

	if (!id) {
		const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
		uint64_t key[2] = {0, 0}, x, zero = 0;
		int i;

		if (random)
			__builtin_memcpy(key, random, 16);
#if defined(__x86_64__)
		x = __builtin_ia32_rdtsc();
#else
		__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(x));
#endif
		x = (x ^ key[0]) * UINT64_C(0x9E3779B97F4A7C15) + (uintptr_t)&montrace__ids_v1;
		for (i = 0; i < 3; i++) {
			x = (x ^ x >> 32 ^ key[1]) * UINT64_C(0xD6E8FEB86659FD93);
			x ^= x >> 29;
		}
		if (!x)
			x = 1;
		__atomic_compare_exchange_n(&montrace__ids_v1, &zero, x, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
	}
	do
		id = __atomic_fetch_add(&montrace__ids_v1, 1, __ATOMIC_RELAXED);
	while (!id);
	return id;
}

/* The id of a span, given now if it was made while nobody looked; *late says so. 0 for NULL. */
MT__COLD uint64_t montrace__span_id_v1(struct montrace_span *s, uint32_t *late)
{
	uint64_t id, fresh, none = 0;

	if (!s)
		return 0;
	id = __atomic_load_n(&s->id, __ATOMIC_RELAXED);
	if (id)
		return id;
	fresh = montrace__id_v1();
	if (!__atomic_compare_exchange_n(&s->id, &none, fresh, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return none;
	if (late)
		*late = MONTRACE_RF_LATE;
	return fresh;
}

/* enter, exit, close of an armed span */
MT__COLD void montrace__span_fire_v1(struct montrace_span *s, uint32_t kind)
{
	uint32_t flags = 0;
	uint64_t id;

	if (kind != MONTRACE_KIND_SPAN_ENTER && !__atomic_load_n(&s->id, __ATOMIC_RELAXED))
		return; /* nobody saw it come, nobody needs to see it go */
	id = montrace__span_id_v1(s, &flags);
	montrace__fire_v1(s->cs, MT__DESC(kind, 0, kind - MONTRACE_KIND_SPAN_NEW, 0), flags, id, 0, NULL);
}

/* A formatted event. */
MT__COLD void montrace__log_v1(const struct montrace__cs *cs, uint32_t desc, uint32_t flags, uint64_t parent,
			       const char *fmt, ...)
{
	char text[MONTRACE_MAX_TEXT + 1];
	struct montrace__val v;
	__builtin_va_list ap;
	int n, error = errno;

	__builtin_va_start(ap, fmt);
	n = __builtin_vsnprintf(text, sizeof(text), fmt, ap);
	__builtin_va_end(ap);
	errno = error;
	v.v = (uintptr_t)text;
	v.n = n < 0 ? 0 : (uint64_t)n;
	montrace__fire_v1(cs, desc, flags, 0, parent, &v);
}

#ifdef __cplusplus
}
#endif

/* ---- Values and types ----------------------------------------------------------------------------- */

static inline struct montrace__val montrace__num(uint64_t v)
{
	struct montrace__val r = {v, 0};
	return r;
}
static inline struct montrace__val montrace__v_i64(int64_t v)
{
	return montrace__num((uint64_t)v);
}
static inline struct montrace__val montrace__v_u64(uint64_t v)
{
	return montrace__num(v);
}
static inline struct montrace__val montrace__v_f64(double v)
{
	uint64_t u;
	__builtin_memcpy(&u, &v, sizeof(u));
	return montrace__num(u);
}
static inline struct montrace__val montrace__v_strn(const void *p, uint64_t n)
{
	struct montrace__val r = {(uint64_t)(uintptr_t)p, n};
	return r;
}
static inline struct montrace__val montrace__v_str(const char *p)
{
	return montrace__v_strn(p, MONTRACE__CSTR);
}

#define MT__VAL_montrace__i64(...) montrace__v_i64(MT__CAST(int64_t, __VA_ARGS__))
#define MT__VAL_montrace__u64(...) montrace__v_u64(MT__CAST(uint64_t, __VA_ARGS__))
#define MT__VAL_montrace__f64(...) montrace__v_f64(MT__CAST(double, __VA_ARGS__))
#define MT__VAL_montrace__bool(...) montrace__num((__VA_ARGS__) ? 1 : 0)
#define MT__VAL_montrace__str(...) montrace__v_str(__VA_ARGS__)
#define MT__VAL_montrace__strn(p, n) montrace__v_strn(p, n)
#define MT__VAL_montrace__debug(...) montrace__v_str(__VA_ARGS__)
#define MT__VAL_montrace__debugn(p, n) montrace__v_strn(p, n)
#define MT__VAL_montrace__auto(...) montrace__auto_val(__VA_ARGS__)

#define MT__TYPE_montrace__i64(...) MONTRACE_TYPE_I64
#define MT__TYPE_montrace__u64(...) MONTRACE_TYPE_U64
#define MT__TYPE_montrace__f64(...) MONTRACE_TYPE_F64
#define MT__TYPE_montrace__bool(...) MONTRACE_TYPE_BOOL
#define MT__TYPE_montrace__str(...) MONTRACE_TYPE_STR
#define MT__TYPE_montrace__strn(...) MONTRACE_TYPE_STR
#define MT__TYPE_montrace__debug(...) MONTRACE_TYPE_DEBUG
#define MT__TYPE_montrace__debugn(...) MONTRACE_TYPE_DEBUG
#define MT__TYPE_montrace__auto(...) montrace__auto_type(__VA_ARGS__)

#ifdef __cplusplus
/* Text with a length of its own: std::string, string_view and their like. */
template <class S>
inline auto montrace__v_str(const S &s)
	-> decltype((void)s.size(), (void)static_cast<const char *>(s.data()), montrace__val())
{
	return montrace__v_strn(s.data(), s.size());
}
/* Values on their way: a temporary, so that temporaries in a field's expression live until they were read. */
template <unsigned N> struct montrace__vals {
	montrace__val v[N];
	const montrace__val *at() const
	{
		return v;
	}
};

/* clang-format off */
/* Overloads choose; the type is the size of what an overload that is never called returns. */
inline montrace__val montrace__auto_val(bool v) { return montrace__num(v); }
inline montrace__val montrace__auto_val(char v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(signed char v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(short v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(int v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(long v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(long long v) { return montrace__v_i64(v); }
inline montrace__val montrace__auto_val(unsigned char v) { return montrace__v_u64(v); }
inline montrace__val montrace__auto_val(unsigned short v) { return montrace__v_u64(v); }
inline montrace__val montrace__auto_val(unsigned v) { return montrace__v_u64(v); }
inline montrace__val montrace__auto_val(unsigned long v) { return montrace__v_u64(v); }
inline montrace__val montrace__auto_val(unsigned long long v) { return montrace__v_u64(v); }
inline montrace__val montrace__auto_val(float v) { return montrace__v_f64(v); }
inline montrace__val montrace__auto_val(double v) { return montrace__v_f64(v); }
inline montrace__val montrace__auto_val(long double v) { return montrace__v_f64((double)v); }
inline montrace__val montrace__auto_val(const char *v) { return montrace__v_str(v); }
inline montrace__val montrace__auto_val(char *v) { return montrace__v_str(v); }
template <class T> montrace__val montrace__auto_val(T *) = delete; /* not bool: say what you mean */
template <class S> inline auto montrace__auto_val(const S &s) -> decltype(montrace__v_str<S>(s))
{
	return montrace__v_str<S>(s);
}
typedef char montrace__t_i64[MONTRACE_TYPE_I64];
typedef char montrace__t_u64[MONTRACE_TYPE_U64];
typedef char montrace__t_f64[MONTRACE_TYPE_F64];
typedef char montrace__t_bool[MONTRACE_TYPE_BOOL];
typedef char montrace__t_str[MONTRACE_TYPE_STR];
montrace__t_bool &montrace__auto_t(bool);
montrace__t_i64 &montrace__auto_t(char);
montrace__t_i64 &montrace__auto_t(signed char);
montrace__t_i64 &montrace__auto_t(short);
montrace__t_i64 &montrace__auto_t(int);
montrace__t_i64 &montrace__auto_t(long);
montrace__t_i64 &montrace__auto_t(long long);
montrace__t_u64 &montrace__auto_t(unsigned char);
montrace__t_u64 &montrace__auto_t(unsigned short);
montrace__t_u64 &montrace__auto_t(unsigned);
montrace__t_u64 &montrace__auto_t(unsigned long);
montrace__t_u64 &montrace__auto_t(unsigned long long);
montrace__t_f64 &montrace__auto_t(float);
montrace__t_f64 &montrace__auto_t(double);
montrace__t_f64 &montrace__auto_t(long double);
montrace__t_str &montrace__auto_t(const char *);
montrace__t_str &montrace__auto_t(char *);
template <class T> montrace__t_str &montrace__auto_t(T *) = delete;
template <class S>
auto montrace__auto_t(const S &s) -> decltype(montrace__v_str<S>(s), (*(montrace__t_str *)0));
#define montrace__auto_type(...) static_cast<int>(sizeof(montrace__auto_t(__VA_ARGS__)))
/* clang-format on */
#else
static inline struct montrace__val montrace__v_bool(_Bool v)
{
	return montrace__num(v);
}
#define MT__GENERIC(x, b, i, u, f, s) \
	_Generic((x), _Bool: b, char: i, signed char: i, short: i, int: i, long: i, long long: i,        \
		 unsigned char: u, unsigned short: u, unsigned: u, unsigned long: u,                     \
		 unsigned long long: u, float: f, double: f, long double: f, char *: s, const char *: s)
#define montrace__auto_val(...)                                                                       \
	MT__GENERIC(__VA_ARGS__, montrace__v_bool, montrace__v_i64, montrace__v_u64, montrace__v_f64, \
		    montrace__v_str)                                                                  \
	(__VA_ARGS__)
#define montrace__auto_type(...)                                                           \
	MT__GENERIC(__VA_ARGS__, MONTRACE_TYPE_BOOL, MONTRACE_TYPE_I64, MONTRACE_TYPE_U64, \
		    MONTRACE_TYPE_F64, MONTRACE_TYPE_STR)
#endif

/* ---- Fields into assembly and values ---------------------------------------------------------------- */

/* Assembly of a text. Not .asciz: assemblers differ on whether "a" "b" is one text then. */
#define MT__TEXT(x) ".ascii " MT__S(x) "\n.byte 0\n"

#define MT__F_NAME(i, f) MT__F_NAME_ f
#define MT__F_NAME_(t, k, a) MT__TEXT(k)
#define MT__F_LITERAL(i, f) MT__F_LITERAL_ f
#define MT__F_LITERAL_(t, k, a) +sizeof("" k "")
#define MT__F_TYPE(i, f) | MT__CAST(uint64_t, MT__F_TYPE_ f) << (4 * (i))
#define MT__F_TYPE_(t, k, a) MT__TYPE_##t a
#define MT__F_TEXT(i, f) | MT__CAST(uint32_t, (MT__F_TYPE_ f) >= MONTRACE_TYPE_STR) << (i)
#define MT__F_VAL(i, f) MT__F_VAL_ f,
#define MT__F_VAL_(t, k, a) MT__VAL_##t a

#define MT__TYPES(...) (UINT64_C(0) MT__EACH(MT__F_TYPE, __VA_ARGS__))
#define MT__TEXTS(...) (UINT32_C(0) MT__EACH(MT__F_TEXT, __VA_ARGS__))
#ifdef __cplusplus
#define MT__VALS(...) \
	(montrace__vals<MT__N(__VA_ARGS__) + 1>{{MT__EACH(MT__F_VAL, __VA_ARGS__) montrace__num(0)}}.at())
#else
#define MT__VALS(...) ((const struct montrace__val[]){MT__EACH(MT__F_VAL, __VA_ARGS__) montrace__num(0)})
#endif
/* What must hold for a callsite: says so in words where the assembler would not. */
#define MT__CHECK(level, ...)                                                                           \
	MT__ASSERT((level) >= MONTRACE_TRACE && (level) <= MONTRACE_ERROR,                              \
		   "the level must be a constant, MONTRACE_TRACE to MONTRACE_ERROR");                   \
	MT__ASSERT(sizeof("" MT__HEAD(__VA_ARGS__) "") + sizeof("" MONTRACE_TARGET "")                  \
								 MT__EACH(MT__F_LITERAL, __VA_ARGS__) < \
			   8192,                                                                        \
		   "texts of the callsite are too long")

/* ---- Assembly of a callsite ----------------------------------------------------------------------- */

#if defined(__clang__) || __GNUC__ >= 9
#define MT__ASM __asm__ __volatile__ __inline__ /* do not count its lines as code when inlining */
#else
#define MT__ASM __asm__ __volatile__
#endif

/* clang-format off */
#if defined(__x86_64__)
#ifdef __CET__
#define MT__THUNK "endbr64\nnop\n.byte 0x0f,0x1f,0x44,0x00,0x00\nret\n.balign 16,0xcc\n"
#define MT__NOP_AT "4"
#define MT__NOP5_AT "5"
#else
#define MT__THUNK "nop\n.byte 0x0f,0x1f,0x44,0x00,0x00\nret\n.balign 16,0xcc\n"
#define MT__NOP_AT "0"
#define MT__NOP5_AT "1"
#endif
#define MT__LEA "{leaq 992b(%%rip), %0|lea %0, 992b[rip]}\n"
#define MT__ARGS "8@%%rdi 8@%%rsi"
#define MT__RELOC_NONE "R_X86_64_NONE" /* keeps _.stapsdt.base where sections are collected */
#else
#ifdef __ARM_FEATURE_BTI_DEFAULT
#define MT__THUNK "hint #34\nnop\nret\n.balign 16\n"
#define MT__NOP_AT "4"
#else
#define MT__THUNK "nop\nret\n.balign 16\n"
#define MT__NOP_AT "0"
#endif
#define MT__NOP5_AT "0"
#define MT__LEA "adrp %0, 992b\nadd %0, %0, :lo12:992b\n"
#define MT__ARGS "8@x0 8@x1"
#define MT__RELOC_NONE "R_AARCH64_NONE"
#endif

/* One stapsdt note (provider montrace) for the thunk at `off` from the first. Format: systemtap's wiki page
   "UserSpaceProbeImplementation". */
#define MT__STAPSDT(off, kind)                                    \
	".pushsection .note.stapsdt,\"?\",@note\n.balign 4\n"     \
	".4byte 8,995f-994f,3\n.asciz \"stapsdt\"\n"              \
	"994: .8byte 991b+" off "+" MT__NOP_AT "\n"               \
	".8byte _.stapsdt.base\n.8byte 992b\n"                    \
	".asciz \"montrace\"\n.asciz \"" kind "\"\n"              \
	".asciz \"" MT__ARGS "\"\n995: .balign 4\n.popsection\n"

#define MT__PROBES_SCOPE "2", MT__THUNK MT__THUNK, MT__STAPSDT("0", "scope_begin") MT__STAPSDT("16", "scope_end")
#define MT__PROBES_SPAN                                                                                   \
	"4", MT__THUNK MT__THUNK MT__THUNK MT__THUNK,                                                     \
		MT__STAPSDT("0", "span_new") MT__STAPSDT("16", "span_enter") MT__STAPSDT("32", "span_exit") \
			MT__STAPSDT("48", "span_close")
#define MT__PROBES_ONE(kind) "1", MT__THUNK, MT__STAPSDT("0", kind)

/*
 * Two statements. The first is basic assembly, where %, { and | in the user's text mean nothing; it has the
 * text note. The second has thunks, semaphore, callsite note and stapsdt notes and gives the callsite's address.
 * Volatile statements keep their order; key joins the two notes, should something ever come between.
 */
#define MT__TEXT_NOTE(key, ...)                                                                            \
	MT__ASM(".pushsection .note.montrace,\"?\",@note\n.balign 4\n.4byte 9,995f-994f,2\n"               \
		".asciz \"montrace\"\n.balign 4\n994: .4byte 1," MT__S(key) "\n"                           \
		MT__TEXT(MT__HEAD(__VA_ARGS__)) MT__TEXT(MONTRACE_TARGET) MT__TEXT(__FILE__)               \
		MT__EACH(MT__F_NAME, __VA_ARGS__) "995: .balign 4\n.popsection\n")

#define MT__SITE_NOTE(out, class_, level, flags, key, types, nfields, nprobes, thunks, stapsdt)             \
	MT__ASM("990:\n.pushsection .text.montrace,\"ax?\",@progbits\n.balign 16\n991:\n" thunks            \
		".popsection\n.pushsection .probes,\"aw?\",@progbits\n.balign 8\n"                          \
		"992: .2byte 0,0\n.4byte 991b-992b\n.popsection\n"                                          \
		".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",@progbits,.stapsdt.base,comdat\n" \
		".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"                  \
		".size _.stapsdt.base,1\n.popsection\n.endif\n.reloc 992b," MT__RELOC_NONE ",_.stapsdt.base\n" \
		".pushsection .note.montrace,\"?\",@note\n.balign 4\n.4byte 9,995f-994f,1\n"                \
		".asciz \"montrace\"\n.balign 4\n994: .4byte 1," MT__S(key) "\n"                            \
		".8byte 990b,_.stapsdt.base,992b,991b\n"                                                    \
		".byte %c[montrace_class],%c[montrace_level]\n.2byte %c[montrace_flags]\n"                  \
		".4byte " MT__S(__LINE__) "\n.byte " nfields "," nprobes "," MT__NOP_AT "," MT__NOP5_AT     \
		"\n.4byte 0\n.byte " MT__TYPE_BYTES "\n995: .balign 4\n.popsection\n" stapsdt MT__LEA       \
		: "=r"(out)                                                                                 \
		: [montrace_class] "i"(class_), [montrace_level] "i"(level), [montrace_flags] "i"(flags),   \
		  [montrace_types0] "i"(MT__CAST(int, (types) & 0xffffffff)),                                           \
		  [montrace_types1] "i"(MT__CAST(int, (types) >> 32)))

#define MT__TB(half, i) "(%c[montrace_types" #half "]>>" #i ")&15"
#define MT__TYPE_HALF(half)                                                                              \
	MT__TB(half, 0) "," MT__TB(half, 4) "," MT__TB(half, 8) "," MT__TB(half, 12) "," MT__TB(half, 16) \
	"," MT__TB(half, 20) "," MT__TB(half, 24) "," MT__TB(half, 28)
#define MT__TYPE_BYTES MT__TYPE_HALF(0) "," MT__TYPE_HALF(1)

/* Both notes; out = address of the callsite. probes: MT__PROBES_*; the rest: name and fields. */
#define MT__SITE(out, class_, level, flags, key, probes, ...)                                      \
	MT__CHECK(level, __VA_ARGS__);                                                             \
	MT__TEXT_NOTE(key, __VA_ARGS__);                                                           \
	MT__SITE_(out, class_, level, flags, key, MT__TYPES(__VA_ARGS__), MT__S(MT__N(__VA_ARGS__)), probes)
#define MT__SITE_(out, class_, level, flags, key, types, nfields, probes) \
	MT__SITE__(out, class_, level, flags, key, types, nfields, MT__UNWRAP probes)
#define MT__SITE__(...) MT__SITE_NOTE(__VA_ARGS__)

/* clang-format on */
/* Adds "target is the file's stem" when MONTRACE_TARGET is empty. */
#define MT__FLAGS(flags) ((flags) | (sizeof(MONTRACE_TARGET) == 1 ? MONTRACE_CSF_FILE_TARGET : 0))

/* Fires if armed; nothing is evaluated otherwise. */
#define MT__FIRE(cs, kind, slot, rflags, span, parent, ...)                                             \
	do {                                                                                            \
		montrace__fire_v1(cs, MT__DESC(kind, MT__N(__VA_ARGS__), slot, MT__TEXTS(__VA_ARGS__)), \
				  rflags, span, parent, MT__VALS(__VA_ARGS__));                         \
	} while (0)

/* ---- Scopes --------------------------------------------------------------------------------------- */

static inline void montrace__scope_left(const struct montrace__cs *cs)
{
	if (MT__UNLIKELY(cs != NULL) && MT__ARMED(cs))
		montrace__fire_v1(cs, MT__DESC(MONTRACE_KIND_SCOPE_END, 0, 1, 0), 0, 0, 0, NULL);
}

/* The callsite if it fired, else NULL: an end is told only if its begin was. */
#define MT__SCOPE_ENTER(flags, level, key, ...)                                                    \
	__extension__({                                                                            \
		const struct montrace__cs *montrace__c, *montrace__fired = MT__NULL;               \
		MT__SITE(montrace__c, MONTRACE_CLASS_SCOPE, level, MT__FLAGS(flags), key,          \
			 (MT__PROBES_SCOPE), __VA_ARGS__);                                         \
		if (MT__ARMED(montrace__c)) {                                                      \
			MT__FIRE(montrace__c, MONTRACE_KIND_SCOPE_BEGIN, 0, 0, 0, 0, __VA_ARGS__); \
			montrace__fired = montrace__c;                                             \
		}                                                                                  \
		montrace__fired;                                                                   \
	})

#ifdef __cplusplus
struct montrace__scope {
	const montrace__cs *cs;
	explicit montrace__scope(const montrace__cs *c) : cs(c)
	{
	}
	~montrace__scope()
	{
		montrace__scope_left(cs);
	}
	montrace__scope(const montrace__scope &) = delete;
	montrace__scope &operator=(const montrace__scope &) = delete;
};
#define MT__SCOPE(flags, level, key, ...) \
	montrace__scope MT__CAT(montrace__scope_, key)(MT__SCOPE_ENTER(flags, level, key, __VA_ARGS__))
#else
static inline void montrace__scope_end(const struct montrace__cs **cs)
{
	montrace__scope_left(*cs);
}
#define MT__SCOPE(flags, level, key, ...)                               \
	const struct montrace__cs *MT__CAT(montrace__scope_, key)       \
		__attribute__((cleanup(montrace__scope_end), unused)) = \
			MT__SCOPE_ENTER(flags, level, key, __VA_ARGS__)
#endif

/* ---- Spans ---------------------------------------------------------------------------------------- */

#define MT__SPAN(s, rflags, parent, flags, level, key, ...) \
	MT__SPAN_(s, rflags, parent, MONTRACE_CLASS_SPAN, flags, level, key, __VA_ARGS__)
#define MT__SPAN_(s, rflags, parent, class_, flags, level, key, ...)                                         \
	do {                                                                                                 \
		struct montrace_span *montrace__s = (s);                                                     \
		const struct montrace__cs *montrace__c;                                                      \
		MT__SITE(montrace__c, class_, level, MT__FLAGS(flags), key, (MT__PROBES_SPAN), __VA_ARGS__); \
		montrace__s->id = 0;                                                                         \
		montrace__s->cs = montrace__c;                                                               \
		if (MT__ARMED(montrace__c)) {                                                                \
			montrace__s->id = montrace__id_v1();                                                 \
			MT__FIRE(montrace__c, MONTRACE_KIND_SPAN_NEW, 0, rflags, montrace__s->id,            \
				 montrace__span_id_v1(parent, MT__NULL), __VA_ARGS__);                       \
		}                                                                                            \
	} while (0)

#define MT__SPAN_RECORD(s, key, ...)                                                               \
	do {                                                                                       \
		struct montrace_span *montrace__s = (s);                                           \
		const struct montrace__cs *montrace__c;                                            \
		MT__SITE(montrace__c, MONTRACE_CLASS_RECORD, MONTRACE_ERROR, MT__FLAGS(0), key,    \
			 (MT__PROBES_ONE("span_record")), __VA_ARGS__);                            \
		if (MT__ARMED(montrace__c) && montrace__s->id)                                     \
			MT__FIRE(montrace__c, MONTRACE_KIND_SPAN_RECORD, 0, 0, montrace__s->id, 0, \
				 __VA_ARGS__);                                                     \
	} while (0)

/* The thread goes into *s, leaves it; *s is over. Any thread, any order; s may be zeroed memory. */
static inline void montrace_enter(struct montrace_span *s)
{
	if (s->cs && MT__ARMED(s->cs))
		montrace__span_fire_v1(s, MONTRACE_KIND_SPAN_ENTER);
}
static inline void montrace_exit(struct montrace_span *s)
{
	if (s->cs && MT__ARMED(s->cs))
		montrace__span_fire_v1(s, MONTRACE_KIND_SPAN_EXIT);
}
static inline void montrace_close(struct montrace_span *s)
{
	if (s->cs && MT__ARMED(s->cs))
		montrace__span_fire_v1(s, MONTRACE_KIND_SPAN_CLOSE);
	s->cs = NULL;
	s->id = 0;
}

/* ---- Events, counters ----------------------------------------------------------------------------- */

#define MT__EVENT(rflags, parent, flags, level, key, ...)                                 \
	do {                                                                              \
		const struct montrace__cs *montrace__c;                                   \
		MT__SITE(montrace__c, MONTRACE_CLASS_EVENT, level, MT__FLAGS(flags), key, \
			 (MT__PROBES_ONE("event")), __VA_ARGS__);                         \
		if (MT__ARMED(montrace__c))                                               \
			MT__FIRE(montrace__c, MONTRACE_KIND_EVENT, 0, rflags, 0,          \
				 montrace__span_id_v1(parent, MT__NULL), __VA_ARGS__);    \
	} while (0)

#define MT__LOG(flags, level, key, ...)                                                             \
	do {                                                                                        \
		const struct montrace__cs *montrace__c;                                             \
		MT__SITE(montrace__c, MONTRACE_CLASS_EVENT, level,                                  \
			 MT__FLAGS((flags) | MONTRACE_CSF_MESSAGE), key, (MT__PROBES_ONE("event")), \
			 MT__HEAD(__VA_ARGS__), MT_STR("message", ""));                             \
		if (MT__ARMED(montrace__c))                                                         \
			montrace__log_v1(montrace__c, MT__DESC(MONTRACE_KIND_EVENT, 1, 0, 1), 0, 0, \
					 __VA_ARGS__);                                              \
	} while (0)

#define MT__COUNTER(key, ...)                                                                     \
	do {                                                                                      \
		const struct montrace__cs *montrace__c;                                           \
		MT__ASSERT(MT__TYPES(__VA_ARGS__) <= MONTRACE_TYPE_F64, "a counter is a number"); \
		MT__SITE(montrace__c, MONTRACE_CLASS_COUNTER, MONTRACE_INFO,                      \
			 MT__FLAGS(MONTRACE_CSF_DEFAULT_LEVEL), key, (MT__PROBES_ONE("counter")), \
			 __VA_ARGS__);                                                            \
		if (MT__ARMED(montrace__c))                                                       \
			MT__FIRE(montrace__c, MONTRACE_KIND_COUNTER, 0, 0, 0, 0, __VA_ARGS__);    \
	} while (0)

/* ---- Names ---------------------------------------------------------------------------------------- */

static inline void montrace__copy(char *dst, size_t cap, const char *src)
{
	size_t n = 0;

	if (!src)
		src = "";
	while (n + 1 < cap && src[n]) {
		dst[n] = src[n];
		n++;
	}
	dst[n] = 0;
}

static inline void montrace__set_name(struct montrace__name *n, const struct montrace__cs *cs,
				      const char *text)
{
	uint32_t next = (__atomic_load_n(&n->current, __ATOMIC_RELAXED) + 1) & 1;

	montrace__copy(n->text[next], sizeof(n->text[next]), text);
	__atomic_store_n(&n->current, next, __ATOMIC_RELEASE);
	__atomic_store_n(&n->last, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&n->cs, cs, __ATOMIC_RELEASE);
	__atomic_fetch_or(&montrace__named_v1, 1, __ATOMIC_RELAXED);
	if (MT__ARMED(cs))
		montrace__announce_v1(montrace__ticks());
}

/* The calling thread's name, up to 111 bytes (the kernel's own is cut at 15). Copied. */
static inline __attribute__((unused)) void montrace_thread_name(const char *name)
{
	const struct montrace__cs *cs;

	MT__SITE(cs, MONTRACE_CLASS_THREAD_NAME, MONTRACE_ERROR, MT__FLAGS(0), 1000001,
		 (MT__PROBES_ONE("thread_name")), "thread_name", MT_STR("name", ""));
	montrace__copy(montrace__thread_v1.text, sizeof(montrace__thread_v1.text), name);
	montrace__thread_v1.last = 0;
	montrace__thread_v1.cs = cs;
	__atomic_fetch_or(&montrace__named_v1, 3, __ATOMIC_RELAXED);
	if (MT__ARMED(cs))
		montrace__announce_v1(montrace__ticks());
}

/* The process's name in traces and file names, up to 1023 bytes. Copied. Set it from one thread at a time. */
static inline __attribute__((unused)) void montrace_process_name(const char *name)
{
	const struct montrace__cs *cs;

	MT__SITE(cs, MONTRACE_CLASS_PROCESS_NAME, MONTRACE_ERROR, MT__FLAGS(0), 1000002,
		 (MT__PROBES_ONE("process_name")), "process_name", MT_STR("name", ""));
	montrace__set_name(&montrace__process_v1, cs, name);
}

/* Joins the traces of processes that work together. As montrace_process_name. */
static inline __attribute__((unused)) void montrace_execution_id(const char *id)
{
	const struct montrace__cs *cs;

	MT__SITE(cs, MONTRACE_CLASS_EXECUTION_ID, MONTRACE_ERROR, MT__FLAGS(0), 1000003,
		 (MT__PROBES_ONE("execution_id")), "execution_id", MT_STR("id", ""));
	montrace__set_name(&montrace__execution_v1, cs, id);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#else /* !MONTRACE_ENABLED: nothing; but what was written is still compiled, so it stays correct and used */

#define MT__USE_montrace__i64(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__u64(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__f64(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__bool(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__str(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__strn(p, n) (void)(p), (void)(n);
#define MT__USE_montrace__debug(...) (void)(__VA_ARGS__);
#define MT__USE_montrace__debugn(p, n) (void)(p), (void)(n);
#define MT__USE_montrace__auto(...) (void)(__VA_ARGS__);
#define MT__F_USE(i, f) MT__F_USE_ f
#define MT__F_USE_(t, k, a) MT__USE_##t a

#define MT__NOTHING(...)                                 \
	do {                                             \
		if (0) {                                 \
			MT__EACH(MT__F_USE, __VA_ARGS__) \
		}                                        \
	} while (0)
#define MT__SCOPE(flags, level, key, ...) MT__NOTHING(__VA_ARGS__)
#define MT__SPAN(s, rflags, parent, flags, level, key, ...) \
	MT__SPAN_(s, rflags, parent, 0, flags, level, key, __VA_ARGS__)
#define MT__SPAN_(s, rflags, parent, class_, flags, level, key, ...) \
	do {                                                         \
		struct montrace_span *montrace__s = (s);             \
		montrace__s->id = 0;                                 \
		montrace__s->cs = MT__NULL;                          \
		if (0) {                                             \
			(void)(parent);                              \
			MT__EACH(MT__F_USE, __VA_ARGS__)             \
		}                                                    \
	} while (0)
#define MT__SPAN_RECORD(s, key, ...)                     \
	do {                                             \
		if (0) {                                 \
			(void)(s);                       \
			MT__EACH(MT__F_USE, __VA_ARGS__) \
		}                                        \
	} while (0)
#define MT__EVENT(rflags, parent, flags, level, key, ...) \
	do {                                              \
		if (0) {                                  \
			(void)(parent);                   \
			MT__EACH(MT__F_USE, __VA_ARGS__)  \
		}                                         \
	} while (0)
#ifdef __cplusplus
extern "C"
#endif
#ifdef __GNUC__
	__attribute__((format(printf, 1, 2)))
#endif
	void
	montrace__unused_log(const char *fmt, ...); /* is nowhere: never called */
#define MT__LOG(flags, level, key, ...)                    \
	do {                                               \
		if (0)                                     \
			montrace__unused_log(__VA_ARGS__); \
	} while (0)
#define MT__COUNTER(key, ...) MT__NOTHING(__VA_ARGS__)
static inline void montrace_enter(struct montrace_span *s)
{
	(void)s;
}
static inline void montrace_exit(struct montrace_span *s)
{
	(void)s;
}
static inline void montrace_close(struct montrace_span *s)
{
	(void)s;
}
static inline void montrace_thread_name(const char *name)
{
	(void)name;
}
static inline void montrace_process_name(const char *name)
{
	(void)name;
}
static inline void montrace_execution_id(const char *id)
{
	(void)id;
}
#endif

#endif
