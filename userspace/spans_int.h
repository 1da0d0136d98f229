/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of `spans`, shared by spans*.c and nobody else. The essay is in spans.c.
 *
 *   spans.c        entry points; losses; finish
 *   spans_hit.c    an event of a thread -> what happens
 *   spans_table.c  hash map, processes, threads
 *   spans_span.c   span ids: what is remembered of a span
 *   spans_keyed.c  spans with a key, open on no thread
 *   spans_part.c   a sink begins a new file
 *   spans_stack.c  slices of a thread: begin, end, repair
 *   spans_life.c   names, forks, execs, exits
 */
#ifndef MT_SPANS_INT_H
#define MT_SPANS_INT_H

#include "names.h"
#include "spans.h"

#define SP_MAX_SUMS 1000            /* counters that add up, per process */
#define SP_MAX_RECORDED 32          /* fields recorded later, per span */
#define SP_MAX_HIDDEN 16384         /* begins beyond max_depth that a thread remembers one by one */
#define SP_MAX_HIDDEN_ALL (1 << 20) /* the same, all threads together */
#define SP_MAX_SITES (1u << 22)     /* callsite ids with a name plan of their own */
#define SP_MAX_NAME 1024            /* bytes of a name kept for a thread or process */
#define SP_MAX_CMDLINE 8192
#define SP_NAME_BLOCK 56             /* names of slices up to this length come from a pool */
#define SP_DYING_NS 200000000ULL     /* how long an exited thread's slices wait for its process's exit */
#define SP_START_TICK_NS 10000000ULL /* /proc tells start times in ticks of this length */

/* u64 -> pointer; open addressing, linear probing, deletion by shifting back. NULL pointer = free slot. */
struct sp_slot {
	uint64_t key;
	void *p;
};
struct sp_map {
	struct sp_slot *v;
	uint32_t n;
	uint32_t bits; /* 1 << bits slots, 0 = none yet */
};

struct sp_thread;
struct sp_process;
struct sp_keyed;

struct sp_recorded {
	struct mt_field field; /* name: the callsite's; text: own memory */
	char *owned;
	uint32_t gen; /* the span's generation that brought it */
};

/*
 * A span id of a process. cs == NULL: only named as a parent so far.
 * free_prev/free_next: list of spans that nobody has entered now, oldest first.
 */
struct sp_span {
	uint64_t id;
	uint64_t num; /* trace-wide */
	uint64_t parent;
	uint64_t flow;
	struct sp_process *proc;
	struct sp_span *free_prev, *free_next;
	const struct mt_callsite *cs;
	struct mt_str name;
	uint32_t open; /* stack entries of all threads, hidden ones included */
	bool seen;     /* its creation was seen */
	bool entered;  /* ever */
	bool cut;
	uint32_t nvalues;
	uint32_t room;           /* bytes of the block */
	struct mt_value *values; /* one block with the texts and the name */
	uint32_t nrecorded;
	uint32_t gen; /* counts what was recorded */
	struct sp_recorded *recorded;
};

enum sp_name_kind { SP_NAME_BORROWED, SP_NAME_POOL, SP_NAME_HEAP };

/* A stack entry: a slice that the sink has open. */
struct sp_slice {
	uint64_t key;
	uint64_t since; /* first begin of this stack entry; a continued slice keeps it */
	uint64_t num, parent;
	const struct mt_callsite *cs;
	struct sp_span *span; /* NULL: a scope */
	struct mt_str name;
	uint64_t match; /* of a scope: what its end must agree with (sp_match) */
	uint32_t gen;   /* of the span when the slice began */
	uint8_t name_kind;
	bool cut;
};

/* A begin that was too deep to show. */
struct sp_hidden {
	const struct mt_callsite *cs;
	struct sp_span *span;
	uint64_t match;
};

/*
 * Positions on a stack count shown slices, then hidden ones. Those below `suspect` were open when records
 * of the thread were lost: their ends may be among these.
 */
struct sp_thread {
	struct mt_thread pub;
	struct sp_process *proc;
	struct sp_thread *prev, *next;             /* of its process, in order of appearance */
	struct sp_thread *dying_prev, *dying_next; /* by exit time */
	char *name;
	uint64_t start; /* as known; pub.start never changes once told */
	uint64_t last_time;
	uint64_t next_seq;
	uint64_t exit_time;
	bool told;
	bool parted;    /* told before, in a file that has ended */
	bool long_name; /* the name came from the program */
	bool counted;   /* had an event */
	bool any_seq;   /* the next sequence number, whatever it is, is no loss */
	bool dying;     /* exited; its slices wait for the word on its process */
	uint32_t depth, cap;
	struct sp_slice *stack;
	uint32_t nhidden, hidden_cap;
	struct sp_hidden *hidden;
	uint64_t deeper; /* begins beyond those in hidden */
	uint64_t suspect;
};

enum sp_name_rank { SP_RANK_NONE, SP_RANK_COMM, SP_RANK_KERNEL, SP_RANK_PROGRAM };

/* Of a counter that adds up (MT_HOW_SUM). */
struct sp_sum {
	struct sp_sum *next;
	uint32_t callsite; /* its id */
	uint64_t name;     /* hash; 0: the callsite's own */
	union {
		uint64_t u; /* signed ones too: two's complement */
		double f;
	};
};

struct sp_process {
	struct mt_process pub;
	struct sp_process *prev, *next;
	struct sp_thread *first, *last; /* living and dying threads */
	char *name, *cmdline, *execution_id;
	enum sp_name_rank rank;
	uint64_t start; /* 0: not known */
	bool told;
	bool parted; /* told before, in a file that has ended; who remembers it is told its end */
	bool counted;
	struct sp_map spans;
	struct sp_span *free_first, *free_last;
	struct sp_sum *sums;
	uint32_t nsums;
	uint64_t lost;                             /* hits of its threads */
	struct sp_map keyed;                       /* struct sp_keyed by id */
	struct sp_keyed *keyed_first, *keyed_last; /* by begin */
};

struct name_block {
	struct name_block *next;
	char text[SP_NAME_BLOCK];
};

struct mt_spans {
	struct mt_spans_opts opts;
	struct mt_sink *sink;
	struct mt_spans_stats stats;
	int err;      /* first error of the running call */
	uint64_t now; /* time of the running event, of a hit not before its thread's last */
	uint64_t seed[2];
	uint64_t last_key, last_num;
	uint64_t loose_lost;      /* told without thread */
	struct sp_thread *recent; /* of the last hit */
	struct sp_map threads;    /* tgid << 32 | tid; living ones */
	struct sp_map procs;      /* tgid */
	struct sp_process *first, *last;
	struct sp_thread *dying_first, *dying_last;
	uint32_t nthreads, nprocs, nhidden;
	struct mt_name_plan *plans; /* by callsite id */
	uint32_t nplans;
	struct mt_name_plan odd_plan; /* for callsites without a place in plans */
	struct name_block *name_pool;
	struct sp_keyed *keyed_pool; /* used before, with their blocks */
	uint32_t nkeyed_pool;
	char *name_buf; /* MT_NAME_MAX */
	char *text_buf; /* texts of one event, made valid */
	struct mt_value values[MONTRACE_MAX_FIELDS];
	struct mt_field ending[MONTRACE_MAX_FIELDS]; /* fields that come with the running event, an end */
	uint32_t nending;
	uint64_t match; /* of the running event, an end: that of the scope that it means; 0 = the innermost */
};

#define SP_TEXT_BUF (MONTRACE_MAX_FIELDS * (3 * MONTRACE_MAX_TEXT + 1))

static inline void sp_err(struct mt_spans *s, int rc)
{
	if (rc < 0 && s->err == 0)
		s->err = rc;
}

/* The same start time, told exactly or in ticks? 0 is not known and fits all. */
static inline bool sp_same_start(uint64_t a, uint64_t b)
{
	return a == b || a == 0 || b == 0 || a == b - b % SP_START_TICK_NS || b == a - a % SP_START_TICK_NS;
}

static inline struct mt_str sp_str(const char *s, size_t len)
{
	return (struct mt_str){s, (uint32_t)len};
}

/* A missing value has its reason as text, whatever its type. */
static inline bool sp_has_text(const struct mt_value *v)
{
	return v->missing || v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG;
}

/* spans_table.c */
static inline uint64_t sp_hash(const uint64_t seed[2], uint64_t key)
{
	uint64_t h = (key ^ seed[0]) * 0x9e3779b97f4a7c15ULL;

	h = ((h ^ h >> 32) + seed[1]) * 0xd6e8feb86659fd93ULL;
	return h ^ h >> 32;
}
static inline void *sp_map_get(const struct mt_spans *s, const struct sp_map *m, uint64_t key)
{
	uint64_t mask = (1ULL << m->bits) - 1, i;

	if (m->n == 0)
		return NULL;
	for (i = sp_hash(s->seed, key) & mask; m->v[i].p; i = (i + 1) & mask)
		if (m->v[i].key == key)
			return m->v[i].p;
	return NULL;
}
int sp_map_put(const struct mt_spans *s, struct sp_map *m, uint64_t key, void *p); /* key must be new */
void sp_map_del(const struct mt_spans *s, struct sp_map *m, uint64_t key);
/* Finds or makes; NULL if the table is full or memory out. start 0 = not known. */
struct sp_process *sp_process_get(struct mt_spans *s, uint32_t tgid, uint64_t start, uint64_t time);
struct sp_thread *sp_thread_get(struct mt_spans *s, const struct mt_event *ev);
struct sp_thread *sp_thread_find(struct mt_spans *s, uint32_t tgid, uint32_t tid);
/* Out of the tables, gone() if told, freed. No slice may be open any more. */
void sp_thread_drop(struct mt_spans *s, struct sp_thread *t, uint64_t time);
void sp_process_drop(struct mt_spans *s, struct sp_process *p, uint64_t time);

/* spans_span.c */
struct sp_span *sp_span_find(struct mt_spans *s, struct sp_process *p, uint64_t id);
/* Makes an entry without content (not seen); NULL if there is no room. */
struct sp_span *sp_span_add(struct mt_spans *s, struct sp_process *p, uint64_t id);
int sp_span_fill(struct mt_spans *s, struct sp_span *sp, const struct mt_callsite *cs,
		 const struct mt_value *v, uint32_t n);
void sp_span_record(struct mt_spans *s, struct sp_span *sp, const struct mt_callsite *cs,
		    const struct mt_value *v, uint32_t n);
void sp_span_hold(struct sp_span *sp);    /* one more entry */
void sp_span_release(struct sp_span *sp); /* one entry less */
/* tell: the sink hears of it. When a process ends it does not, gone() of the process says it all. */
void sp_span_forget(struct mt_spans *s, struct sp_span *sp, bool tell);
void sp_spans_forget_all(struct mt_spans *s, struct sp_process *p, bool tell);
void sp_span_tell(struct mt_spans *s, struct sp_span *sp); /* span_new() */
/* What sp_span_fill took, and what was recorded later. */
void sp_span_drop_content(struct sp_span *sp);
uint64_t sp_flow(const struct sp_process *p, uint64_t num);

/* spans_stack.c */
struct sp_begin {
	const struct mt_callsite *cs;
	struct sp_span *span; /* NULL: a scope */
	uint64_t parent;
	uint64_t time;
	uint64_t match;
	bool cut;
	uint32_t nvalues;
	const struct mt_value *values;
};
/*
 * Before sp_begin, and before its parent is looked up: if the stack of t is full, slices that may have been
 * over for long, their ends lost, go. Else a thread that loses an end now and then would be hidden for good.
 */
void sp_make_room(struct mt_spans *s, struct sp_thread *t, uint64_t time);
void sp_begin(struct mt_spans *s, struct sp_thread *t, const struct sp_begin *b);
/* Ends the innermost entry of span, or of a scope of cs (span NULL) that s->match means. False: there is none. */
bool sp_end(struct mt_spans *s, struct sp_thread *t, const struct mt_callsite *cs, const struct sp_span *span,
	    uint64_t time, enum mt_end_reason reason);
void sp_end_all(struct mt_spans *s, struct sp_thread *t, uint64_t time, enum mt_end_reason reason,
		uint32_t status);
/* Tells the sink only. */
void sp_emit_end(struct mt_spans *s, struct sp_thread *t, const struct sp_slice *sl, uint64_t time,
		 enum mt_end_reason reason, uint32_t status);
/* Begins again what the sink was told the end of; it is at stack[depth .. upto). */
void sp_continue_slices(struct mt_spans *s, struct sp_thread *t, uint32_t upto, uint64_t time);
void sp_gap(struct sp_thread *t);
/* Process and thread are told before the first thing on them. */
void sp_tell_process(struct mt_spans *s, struct sp_process *p, uint64_t time);
void sp_tell_thread(struct mt_spans *s, struct sp_thread *t, uint64_t time);
const struct mt_name_plan *sp_plan(struct mt_spans *s, const struct mt_callsite *cs);
struct mt_field sp_field_u64(const char *name, uint64_t u);
static inline uint64_t sp_top(const struct sp_thread *t)
{
	return t->depth ? t->stack[t->depth - 1].num : 0;
}

/* spans_keyed.c */
void sp_keyed_begin(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		    const struct mt_value *v, uint32_t n, bool cut);
void sp_keyed_end(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev);
void sp_keyed_end_all(struct mt_spans *s, struct sp_process *p, uint64_t time, enum mt_end_reason reason,
		      uint32_t status);
/* For mt_spans_restart: ends them in one file, begins them again in the next. */
void sp_keyed_part(struct mt_spans *s, struct sp_process *p, uint64_t time);
void sp_keyed_continue(struct mt_spans *s, struct sp_process *p, uint64_t time);
void sp_keyed_pool_free(struct mt_spans *s);

/* spans_life.c */
void sp_life(struct mt_spans *s, const struct mt_event *ev);
void sp_given_name(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		   const struct mt_value *v);
void sp_process_end(struct mt_spans *s, struct sp_process *p, uint64_t time, enum mt_end_reason reason,
		    uint32_t status);
void sp_thread_end(struct mt_spans *s, struct sp_thread *t, uint64_t time, enum mt_end_reason reason);
void sp_reap(struct mt_spans *s, uint64_t now);
/* 1: changed, 0: it was the same, or -ENOMEM */
int sp_set_text(char **text, const char **pub, struct mt_str v, size_t max);
/* spans_hit.c */
void sp_hit(struct mt_spans *s, const struct mt_event *ev, struct sp_thread *t);
/* An end of nothing that is known, or open there. */
void sp_stray(struct mt_spans *s, struct sp_process *p);
/* spans.c */
void sp_lost(struct mt_spans *s, struct sp_thread *t, uint64_t count, uint64_t time);

#endif
