/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `spans` says to whoever keeps or writes a trace.
 *
 * A sink sees threads whose slices always nest, times that do not run back on a
 * thread, and every loss with its number. It never sees raw records.
 *
 * Invariants that every caller of these functions keeps (tests/check_sink.[ch] checks them):
 *  S1  process() comes before thread() of that process, thread() before anything on that thread.
 *  S2  on one thread begin() and end() match like brackets: end() names the innermost open slice.
 *  S3  on one thread time never decreases, over begin, end, instant and lost (a counter's value may be older: what it
 *      was when a window began).
 *  S4  every slice begun is ended before free(), with a reason.
 *  S5  what the structs point to is valid during the call only, except struct mt_process and
 *      struct mt_thread themselves: these stay valid, at the same address, until gone() was called
 *      for them; a sink may keep state in .sink_data (and frees it in gone()).
 *
 *  S6  keyed_begin() and keyed_end() match by key, in any order, and overlap as they like: such a span is on no
 *      thread. Its process was told before and is gone() only after its end, which is not before its begin.
 *
 * A NULL slot means: not interested. Functions return 0 or -errno; after an error the caller
 * may go on calling, a sink must stand it (errors are sticky in `out`).
 */
#ifndef MT_SINK_H
#define MT_SINK_H

#include "model.h"

/* Begins and ends without the other one. */
struct mt_unpaired {
	uint64_t stray_ends; /* ends, closes, fields recorded later: of nothing that is known or open there */
	uint64_t lost_ends;  /* slices closed because their end was lost */
	uint64_t again;      /* spans with a key ended because the key began again */
	uint64_t forgotten;  /* spans with a key ended because too many were open */
	uint64_t too_deep;   /* spans not shown: too many were open on their thread */
};

struct mt_process {
	uint32_t pid; /* initial namespace */
	uint32_t ppid;
	uint32_t uid;
	uint64_t start;           /* boot-time ns */
	const char *name;         /* never NULL; valid UTF-8; changes are told by process() again */
	const char *cmdline;      /* never NULL */
	const char *execution_id; /* "" unless the program gave one */
	bool name_given;          /* the program itself said its name */
	void *sink_data;
	void *file_data;      /* tracefiles only: the file it goes to, */
	uint32_t parts;       /* ... and how many were completed before (rotation) */
	uint8_t end_reason;   /* enum mt_end_reason; set before gone(): MT_END_PROCESS, _EXEC, _DETACH */
	uint32_t exit_status; /* wait(2) status, with MT_END_PROCESS */
	struct mt_unpaired unpaired; /* since process() was first called for it; looked at in gone() */
};

struct mt_thread {
	struct mt_process *process;
	uint32_t tid;     /* initial namespace */
	uint64_t start;   /* boot-time ns */
	const char *name; /* never NULL, may be ""; the program's own long name, else comm */
	void *sink_data;
};

enum mt_slice_flags {
	MT_SLICE_REENTERED = 1, /* second or later slice of one span */
	MT_SLICE_CONTINUED = 2, /* begun again after an outer slice ended over it */
	MT_SLICE_UNSEEN = 4,    /* the span's creation was not seen: no fields */
	MT_SLICE_CUT = 8,       /* field list or a text was cut by the target's limits */
};

/*
 * A piece of a span on a thread.
 * cs may be NULL only in tests. values[i] belongs to cs->fields[i]; extra are named fields that the
 * note does not know (recorded later, parent, anomalies).
 */
struct mt_slice {
	struct mt_thread *thread;   /* NULL: keyed_begin() */
	struct mt_process *process; /* of keyed_begin() only */
	uint64_t time;
	const struct mt_callsite *cs;
	struct mt_str name; /* as displayed */
	uint64_t key;       /* number of this slice, unique in the trace, from 1; end() repeats it */
	uint64_t span;      /* trace-wide number of the span, from 1 (not the target's id) */
	uint64_t parent;    /* the same of its parent, 0 = none */
	uint64_t flow;      /* not 0: links the pieces of one span across slices and threads */
	uint32_t flags;     /* enum mt_slice_flags */
	uint32_t nvalues;
	const struct mt_value *values;
	uint32_t nextra;
	const struct mt_field *extra;
};

enum mt_end_reason {
	MT_END_NORMAL = 0,
	MT_END_OUTER,     /* an outer slice ended first; the span goes on in a continued slice */
	MT_END_CLOSED,    /* the span was closed while entered */
	MT_END_LOST,      /* its end was lost; closed by the end of an outer slice */
	MT_END_THREAD,    /* the thread ended */
	MT_END_PROCESS,   /* the process ended: exit_status says how */
	MT_END_EXEC,      /* the process replaced its image */
	MT_END_DETACH,    /* tracing stopped first; the span goes on unseen */
	MT_END_PART,      /* this file ends first; the span goes on in a continued slice in the next one */
	MT_END_LEFT,      /* left by a jump: it ended with an outer slice (MT_HOW_NESTED) */
	MT_END_AGAIN,     /* of a span with a key: one of the same key began */
	MT_END_FORGOTTEN, /* of a span with a key: too many were open, it was the oldest */
};

/* Nobody ended the slice: what it was in did. */
static inline bool mt_end_of_surroundings(enum mt_end_reason reason)
{
	return reason == MT_END_THREAD || reason == MT_END_PROCESS || reason == MT_END_EXEC ||
	       reason == MT_END_DETACH;
}

struct mt_slice_end {
	struct mt_thread *thread;   /* NULL: keyed_end() */
	struct mt_process *process; /* of keyed_end() only */
	uint64_t time;
	const struct mt_callsite *cs;
	struct mt_str name;
	uint64_t key;
	uint64_t span;
	enum mt_end_reason reason;
	uint32_t exit_status; /* wait(2) status, for MT_END_PROCESS */
	bool in_doubt; /* with such a reason: hits were lost while it was open, its own end may be among these */
	uint32_t nextra; /* fields recorded while the slice was open, and the like */
	const struct mt_field *extra;
};

struct mt_instant {
	struct mt_thread *thread;
	uint64_t time;
	const struct mt_callsite *cs;
	struct mt_str name;
	uint64_t parent; /* number of the span it belongs to, 0 = none */
	uint32_t flags;  /* MT_SLICE_CUT */
	uint32_t nvalues;
	const struct mt_value *values;
	uint32_t nextra;
	const struct mt_field *extra;
};

struct mt_count {
	struct mt_thread *thread; /* who set it; the counter belongs to the process */
	uint64_t time;
	const struct mt_callsite *cs; /* flags: MONTRACE_CSF_* */
	struct mt_str name;           /* as displayed; p NULL: the callsite's */
	struct mt_value value;        /* I64, U64 or F64 */
};

/* events lost between the thread's previous record and `time`. */
struct mt_loss {
	struct mt_thread *thread; /* NULL: not known which; then process may be NULL too */
	struct mt_process *process;
	uint64_t time;
	uint64_t count;    /* hits */
	const char *cause; /* "ring full", ... or "" if not known for these */
};

/*
 * A span was made (scopes are not told: begin() says all). Comes before its first slice, and also if it is
 * never entered: as a parent it counts all the same. No thread: who made it may not be known to the sink.
 */
struct mt_span_new {
	struct mt_process *process;
	uint64_t time;
	uint64_t span;   /* as in struct mt_slice */
	uint64_t parent; /* the same of its parent, 0 = none */
	const struct mt_callsite *cs;
	uint32_t nvalues;
	const struct mt_value *values;
	struct mt_str name; /* as displayed; p NULL: the callsite's */
	uint64_t flow;      /* as in struct mt_slice */
};

struct mt_sink;

struct mt_sink_ops {
	/* A process or thread appears, or one of its names changed. */
	int (*process)(struct mt_sink *s, struct mt_process *p, uint64_t time);
	int (*thread)(struct mt_sink *s, struct mt_thread *t, uint64_t time);
	int (*begin)(struct mt_sink *s, const struct mt_slice *sl);
	int (*end)(struct mt_sink *s, const struct mt_slice_end *e);
	int (*instant)(struct mt_sink *s, const struct mt_instant *i);
	int (*counter)(struct mt_sink *s, const struct mt_count *c);
	int (*lost)(struct mt_sink *s, const struct mt_loss *l);
	/*
	 * The memory of t or p (the other is NULL) is about to go: drop sink_data. With MT_END_PART only a file
	 * ends. Until process() comes again the process has no sink_data, but its spans may be closed, and it may
	 * end: span_close() and another gone() come then, for those who remember it by pid and start.
	 */
	int (*gone)(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time);
	/*
	 * Called some times a second: hand on what is buffered. now: boot time, not beyond what was told: whatever
	 * happened up to it has been told already.
	 */
	int (*flush)(struct mt_sink *s, uint64_t now);
	/* Ends the trace and frees s. NULL is fine. Returns the first error there ever was. */
	int (*free)(struct mt_sink *s);
	/* The span was made; nothing more will be heard of it (closed or forgotten; its slices have ended).
	 */
	int (*span_new)(struct mt_sink *s, const struct mt_span_new *n);
	int (*span_close)(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time);
	/* A remark of the tool on the trace as a whole: why it was written, where its window starts. */
	int (*mark)(struct mt_sink *s, uint64_t time, struct mt_str text);
	/* S6. A span with a key is one slice, but for files that end before it does (MT_END_PART). */
	int (*keyed_begin)(struct mt_sink *s, const struct mt_slice *sl);
	int (*keyed_end)(struct mt_sink *s, const struct mt_slice_end *e);
};

/* What need not be told to a sink for now. It changes that itself, and stands it if it is told all the same. */
enum mt_sink_ignores {
	MT_IGNORES_EVENTS =
		1, /* begin, end (those of keys, too), instant; but not those of MONTRACE_CLASS_RECORDING */
	MT_IGNORES_ENDS = 2, /* end, keyed_end; but for MT_END_PROCESS */
};

struct mt_sink {
	const struct mt_sink_ops *ops;
	uint32_t ignores;
};

#endif
