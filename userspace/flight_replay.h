/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a dump of the flight recorder: flight_dump.c, flight_replay.c (spans with a key). */
#ifndef MT_FLIGHT_REPLAY_H
#define MT_FLIGHT_REPLAY_H

#include <string.h>

#include "flight_int.h"

/* A slice that `into` has open. name: what it points to lives as long as the dump, or is owned. */
struct dslice {
	uint64_t key, span;
	const struct mt_callsite *cs;
	struct mt_str name;
	char *owned;
	uint64_t losses; /* of its thread, or of its process and nobody, when it began */
};

struct dthread {
	struct mt_thread pub;
	uint64_t last; /* time */
	uint64_t losses;
	struct dslice *stack;
	uint32_t depth, cap;
};

/* A span with a key: open in `into` as long as its key is not 0. */
struct dkeyed {
	struct dslice sl;
	struct fl_process *process;
	uint64_t begin;
	uint32_t chain; /* next one of its bucket + 1 */
};

struct dump {
	struct flight *f;
	struct mt_sink *into;
	int err;
	uint64_t from, now;
	uint64_t loose; /* losses of nobody */
	struct mt_process *processes;
	struct dthread *threads;
	uint32_t nprocesses, nthreads;
	struct dkeyed *keyed; /* room for all that are open or begin in the window */
	uint32_t *buckets;    /* nbuckets: index + 1 */
	uint32_t nkeyed, nbuckets;
	uint8_t *data;  /* FL_SCRATCH: data of an open slice */
	char *composed; /* a name made of target and name */
	struct mt_value values[MONTRACE_MAX_FIELDS];
	struct mt_field extra[MT_PACK_MAX_FIELDS];
};

#define COMPOSED_MAX (2 * FL_DISPLAY)

static inline void note(struct dump *d, int rc)
{
	if (rc < 0 && d->err == 0)
		d->err = rc;
}

#define TELL(d, op, ...)                                                     \
	do {                                                                 \
		if ((d)->into->ops->op)                                      \
			note(d, (d)->into->ops->op((d)->into, __VA_ARGS__)); \
	} while (0)

static inline struct mt_str text_of(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

/* ---- flight_dump.c ---- */

/* The displayed name; from r if it is kept there. Points to the log, the callsite or d->composed. */
struct mt_str fl_replay_name(struct dump *d, uint8_t flags, const struct mt_callsite *cs,
			     struct mt_unpack *r);
/* What is kept of a slice for its end; own: the name does not live as long as the dump. */
int fl_replay_slice(struct dump *d, const struct mt_slice *sl, bool own, struct dslice *ret_slice);
/* Fills values, extra fields and name of sl, which has the rest. */
void fl_replay_begin(struct dump *d, const struct fl_head *h, struct mt_unpack *r, bool bare,
		     struct mt_slice *sl);

/* ---- flight_replay.c ---- */

int fl_replay_keyed_new(struct dump *d);
void fl_replay_keyed_open(struct dump *d); /* those open when the window began */
void fl_replay_keyed(struct dump *d, struct fl_delta *delta, struct fl_rec *rec);
void fl_replay_keyed_finish(struct dump *d);

#endif
