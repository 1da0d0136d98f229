/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of `flight`, shared by flight*.c and nobody else. The essay is in flight.c.
 *
 *   flight.c         sink calls -> records
 *   flight_log.c     the byte ring: append, evict, walk
 *   flight_table.c   processes, threads, open slices, blocks for their data
 *   flight_counter.c values of counters when the window began
 *   flight_keyed.c   spans with a key: their records, and those open when the window began
 *   flight_dump.c    replay (flight_replay.h, flight_replay.c: spans with a key)
 *   flight_spec.c    limits as text
 */
#ifndef MT_FLIGHT_INT_H
#define MT_FLIGHT_INT_H

#include <string.h>

#include "flight.h"
#include "flight_codec.h"

#define FL_SCRATCH 65535u /* bytes of the largest record */
#define FL_SLACK 8u       /* numbers are stored and read 8 bytes at a time */
#define FL_BLOCK 60u      /* bytes of data in a block */
#define FL_NAME 128u      /* bytes kept of a thread's name, with NUL; names of the program are 111 at most */
#define FL_PNAME 256u     /* process name, execution id */
#define FL_CMDLINE 512u
#define FL_CAUSE 64u
#define FL_COUNTER_NAME \
	104u /* ... of a counter's name; one with a longer name is not kept from before the window */
#define FL_DISPLAY 4096u /* bytes of a displayed name, of a mark */

enum fl_kind { FL_BEGIN = 1, FL_END, FL_INSTANT, FL_COUNTER, FL_LOST, FL_MARK, FL_KEYED_BEGIN, FL_KEYED_END };

/* How the displayed name is kept. */
enum fl_name { FL_NAME_CS, FL_NAME_TARGET, FL_NAME_TEXT };

/* Flags byte of BEGIN and INSTANT, the first of their data: the low bits are MT_SLICE_*. */
#define FL_F_SLICE 0x0f
#define FL_F_NAME 4 /* shift of enum fl_name */

/* Times and numbers are kept as differences to the record before. */
struct fl_delta {
	uint64_t time, key, span;
};

/* A row of a list of gone threads or processes, oldest first; numbers are index + 1, 0 = none. */
struct fl_link {
	uint32_t prev, next;
};

struct fl_thread {
	uint32_t gen;  /* of the slot: records of an older one are nobody's */
	uint32_t proc; /* index */
	uint32_t refs; /* records in the log */
	uint32_t tid;
	uint64_t start;
	struct fl_link gone;
	uint32_t base;    /* innermost slice that was open when the window began: index + 1 in open[] */
	uint32_t missing; /* of those: that found no room */
	uint64_t losses;  /* records of losses that have left the log */
	bool used, live;
	uint32_t copy; /* dump: number of its copy + 1 */
	char name[FL_NAME];
};

struct fl_process {
	uint32_t gen;
	uint32_t refs; /* threads in the table, records of spans with a key in the log, open ones of these */
	uint32_t keyed_first, keyed_last; /* these, in order: index + 1 in open[] */
	uint32_t missing;                 /* of them: that found no room */
	uint64_t losses;                  /* of it and its threads: records of these that have left the log */
	uint32_t pid, ppid, uid;
	uint32_t exit_status;
	uint64_t start;
	struct fl_link gone;
	uint8_t end_reason;
	bool used, live;
	bool name_given;
	uint32_t copy;
	uint32_t counters; /* index + 1, chained by sibling */
	uint32_t thread;   /* dump: one of its threads, index + 1 */
	uint64_t replayed; /* dump: losses, and those in the log up to where it is */
	char name[FL_PNAME], cmdline[FL_CMDLINE], execution_id[FL_PNAME];
};

/* A slice whose begin has left the window and whose end has not. data: name if FL_NAME_TEXT, values, extra.
 */
struct fl_open {
	uint64_t time, key, span, parent, flow;
	uint64_t losses; /* of its thread or process (and loose ones), when its begin left the log */
	const struct mt_callsite *cs;
	uint32_t
		below; /* next outer one: index + 1; of a free slot: next free one; with a key: next newer one */
	uint32_t prev;  /* with a key: next older one + 1 */
	uint32_t chain; /* with a key: next one of its bucket + 1 */
	uint32_t block; /* first block + 1 */
	uint32_t len;
	uint8_t flags; /* as in the record */
	bool bare;     /* data did not fit */
};

/* The last value that has left the log. Numbers are index + 1. */
struct fl_counter {
	const struct mt_callsite *cs;
	uint64_t time, bits;
	uint32_t proc; /* index */
	uint32_t hash_next, sibling;
	uint8_t type;
	bool named; /* by its own name, not by the callsite's */
	uint16_t name_len;
	char name[FL_COUNTER_NAME];
};

struct fl_block {
	uint32_t next; /* + 1 */
	uint8_t bytes[FL_BLOCK];
};

/* Free slots of a table, as a stack of numbers. */
struct fl_free {
	uint32_t *v;
	uint32_t n;
};

enum fl_limit { FL_BY_NOTHING, FL_BY_TIME, FL_BY_EVENTS, FL_BY_BYTES };

/* A record as found: who, when, and the rest still packed. */
struct fl_rec {
	enum fl_kind kind;
	uint8_t reason; /* END, KEYED_END */
	bool has_thread;
	uint32_t thread, gen; /* if has_thread; of spans with a key: the process's */
	uint64_t time;
	uint32_t lengths;      /* of the numbers that come next */
	struct mt_unpack body; /* these, then the data */
};

/* The record at head, if it was looked at. */
struct fl_first {
	bool known;
	struct fl_rec rec;
	uint64_t end; /* offset behind it */
};

struct flight {
	struct mt_sink sink;
	struct mt_flight_spec spec;
	struct mt_flight_stats stats;
	/* the log: offsets only grow */
	uint8_t *log;
	uint64_t cap, head, tail;
	uint64_t lap; /* offset of the start of the memory, for the tail: a multiple of cap */
	struct fl_first first;
	uint32_t max_record;
	uint64_t count;
	struct fl_delta at_head, at_tail; /* what the first record, and the next one, differ from */
	uint64_t latest;                  /* newest time of all */
	enum fl_limit cut_by;             /* why the last one left that did */
	uint64_t skipped_at;              /* when something was last skipped */
	uint64_t skipped_now;
	/* tables */
	uint32_t max_threads, max_processes, max_open, max_blocks, max_counters;
	struct fl_thread *threads;
	struct fl_process *processes;
	struct fl_open *open;
	struct fl_block *blocks;
	uint32_t *keyed;       /* max_open buckets: index + 1 in open[] */
	uint32_t nkeyed;       /* open ones with a key */
	uint64_t keyed_begins; /* in the log */
	struct fl_counter *counters;
	uint32_t *counter_buckets;
	uint32_t free_counter; /* chained by hash_next */
	uint64_t loose;        /* records of losses of nobody in the tables that have left the log */
	uint64_t missing;      /* slices open when the window began that found no room */
	struct fl_free free_threads, free_processes;
	uint32_t free_open, free_block; /* chains, + 1 */
	uint32_t blocks_left;
	struct fl_link gone_threads, gone_processes; /* prev = last, next = first */
	uint8_t *scratch;                            /* FL_SCRATCH, for the record being made */
};

/* ---- flight_log.c ---- */

/* A record in the making, in scratch. */
struct fl_put {
	uint8_t *p;
	uint32_t lengths;
	unsigned shift;
};

/* A number of the record, with as many bytes as it needs. */
static inline void fl_put(struct fl_put *w, uint64_t v)
{
	unsigned len = v ? (71 - (unsigned)__builtin_clzll(v)) / 8 : 0;

	memcpy(w->p, &v, sizeof(v));
	w->p += len;
	w->lengths |= len << w->shift;
	w->shift += 4;
}

static inline uint64_t fl_get(struct fl_rec *r)
{
	static const uint64_t mask[] = {0,          0xff,         0xffff,         0xffffff,
					0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
					UINT64_MAX};
	unsigned len = r->lengths & 15;
	uint64_t v;

	memcpy(&v, r->body.p, sizeof(v));
	r->body.p += len;
	r->lengths >>= 4;
	return v & mask[len];
}

/* Differences, which are near 0 on both sides. */
static inline uint64_t fl_zigzag(uint64_t a, uint64_t b)
{
	int64_t d = (int64_t)(a - b);

	return (uint64_t)d << 1 ^ (d < 0 ? UINT64_MAX : 0);
}

static inline uint64_t fl_unzigzag(uint64_t v)
{
	return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}

static inline void fl_put_diff(struct fl_put *w, uint64_t a, uint64_t b)
{
	fl_put(w, fl_zigzag(a, b));
}

/* A parent: 0 = none. */
static inline void fl_put_parent(struct fl_put *w, uint64_t span, uint64_t parent)
{
	fl_put(w, parent ? fl_zigzag(span, parent) + 1 : 0);
}

#define FL_LEN 2u       /* bytes of a record's length */
#define FL_SLOT_BITS 17 /* of a thread's or process's number: slot + 1; the rest is its generation */

static inline bool fl_is_keyed(enum fl_kind kind)
{
	return kind >= FL_KEYED_BEGIN;
}

static inline unsigned fl_lengths_size(enum fl_kind kind)
{
	return kind == FL_END || kind == FL_KEYED_END ? 2 : 4;
}

/* Begins a record: at_tail is not changed before fl_log_append. ENDs have room for 2 numbers, the others for 6. */
static inline void fl_start_of(const struct flight *f, struct fl_put *w, enum fl_kind kind, uint64_t who,
			       uint64_t time)
{
	w->p = f->scratch + FL_LEN + 1 + fl_lengths_size(kind);
	w->lengths = w->shift = 0;
	fl_put(w, who);
	fl_put_diff(w, time, f->at_tail.time);
}

static inline void fl_start(const struct flight *f, struct fl_put *w, enum fl_kind kind,
			    const struct fl_thread *t, uint64_t time)
{
	fl_start_of(f, w, kind, t ? (uint64_t)t->gen << FL_SLOT_BITS | (uint64_t)(t - f->threads + 1) : 0,
		    time);
}

/* The numbers are complete: data comes next. reason: of an END, below 16. */
static inline void fl_data(const struct flight *f, const struct fl_put *w, enum fl_kind kind, uint8_t reason,
			   struct mt_pack *ret_data)
{
	f->scratch[FL_LEN] = (uint8_t)(kind | reason << 4);
	memcpy(f->scratch + FL_LEN + 1, &w->lengths, fl_lengths_size(kind));
	ret_data->p = f->scratch;
	ret_data->len = (size_t)(w->p - f->scratch);
	ret_data->cap = f->max_record;
	ret_data->full = false;
}

/* Puts it into the log; at_tail has its time then. Evicts what must go. */
void fl_log_append(struct flight *f, const struct mt_pack *data, const struct fl_thread *t, uint64_t time);
/* Removes what is older than the window at time now. */
void fl_log_expire(struct flight *f, uint64_t now);
/* The record at *pos (head <= *pos < tail); *pos moves behind it, d->time is its time. False at the end. */
bool fl_log_next(const struct flight *f, uint64_t *pos, struct fl_delta *d, struct fl_rec *ret_rec);

/* What BEGIN and INSTANT say before their name and values; d moves on. */
struct fl_head {
	uint8_t flags;
	const struct mt_callsite *cs;
	uint64_t key, span, parent, flow;
};
void fl_read_begin(struct fl_rec *r, struct fl_delta *d, struct fl_head *ret_head);
void fl_read_instant(struct fl_rec *r, struct fl_delta *d, struct fl_head *ret_head);
/* What END says before its extra fields. */
struct fl_tail {
	uint8_t reason;
	uint64_t key;
	uint32_t exit_status;
};
/* What LOST says before its cause. */
struct fl_loss {
	uint64_t count;
	struct fl_process *process; /* its thread's, or its own; NULL: of nobody in the tables */
};
/* t: its thread, NULL: it has none, or that is forgotten. */
void fl_read_lost(struct flight *f, const struct fl_thread *t, struct fl_rec *r, struct fl_loss *ret_loss);
void fl_read_end(struct fl_rec *r, struct fl_delta *d, struct fl_tail *ret_tail);

/* ---- flight_keyed.c ---- */

int fl_keyed_begin(struct mt_sink *s, const struct mt_slice *sl);
int fl_keyed_end(struct mt_sink *s, const struct mt_slice_end *e);
/* Their record leaves the window. */
void fl_keyed_evict(struct flight *f, struct fl_rec *rec);
void fl_keyed_forget(struct flight *f, struct fl_process *p); /* all open ones of it */
/* The process that a record means; NULL if its slot is another's by now. */
struct fl_process *fl_keyed_process(struct flight *f, const struct fl_rec *rec);

/* ---- flight.c ---- */

/* What is not kept, for want of a slot. */
void fl_skip(struct flight *f, uint64_t time);
/* The numbers and the data of a BEGIN or END that was started, and into the log with it. t: of it, if it is a thread's. */
void fl_finish_begin(struct flight *f, struct fl_put *put, enum fl_kind kind, const struct fl_thread *t,
		     const struct mt_slice *sl);
void fl_finish_end(struct flight *f, struct fl_put *put, enum fl_kind kind, const struct fl_thread *t,
		   const struct mt_slice_end *e);

/* ---- flight_table.c ---- */

int fl_tables_new(struct flight *f);
void fl_tables_free(struct flight *f);
/* The slot of a live process or thread that flight was told of, NULL if it has none. */
struct fl_process *fl_process_of(struct flight *f, const struct mt_process *p);
struct fl_thread *fl_thread_of(struct flight *f, const struct mt_thread *t);
/* Finds or makes; takes over the names. NULL: all slots are of live ones. */
struct fl_process *fl_process_get(struct flight *f, struct mt_process *p);
struct fl_thread *fl_thread_get(struct flight *f, struct mt_thread *t);
void fl_process_gone(struct flight *f, struct mt_process *p);
void fl_thread_gone(struct flight *f, struct mt_thread *t);
/* One record of it less in the log. */
void fl_thread_unref(struct flight *f, struct fl_thread *t);
/* The thread that a record means; NULL if its slot is another's by now. */
struct fl_thread *fl_thread_at(struct flight *f, const struct fl_rec *rec);
/* A begin leaves the window; data as in struct fl_open. */
void fl_open_push(struct flight *f, struct fl_thread *t, const struct fl_head *h, uint64_t time,
		  const uint8_t *data, size_t len);
/* A slot with its data, index + 1; 0: none is left (counted). Back again. */
uint32_t fl_open_take(struct flight *f, const struct fl_head *h, uint64_t time, const uint8_t *data,
		      size_t len);
void fl_open_free(struct flight *f, uint32_t n);
/* One reason less to keep it. */
void fl_process_unref(struct flight *f, struct fl_process *p);
/* Its end leaves too. */
void fl_open_pop(struct flight *f, struct fl_thread *t, uint64_t key);
/* Puts data of o together; dst takes FL_SCRATCH. */
void fl_open_data(const struct flight *f, const struct fl_open *o, uint8_t *dst);
/* What the record of its begin said. */
struct fl_head fl_open_head(const struct fl_open *o);

/* ---- flight_counter.c ---- */

int fl_counters_new(struct flight *f);
void fl_counters_free(struct flight *f);
/* A record of a counter leaves the log. */
void fl_counter_keep(struct flight *f, const struct fl_thread *t, struct fl_rec *rec);
/* Those of a process, whose slot is given back. */
void fl_counters_drop(struct flight *f, uint32_t proc);

#endif
