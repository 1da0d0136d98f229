/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans with a key, told to another sink. How many there can be is known before: those in the table and the begins in
 * the log. An end whose begin was not kept is not told; what is open at the end is ended there.
 */
#include "flight_replay.h"

#include <errno.h>
#include <stdlib.h>

int fl_replay_keyed_new(struct dump *d)
{
	uint64_t n = d->f->nkeyed + d->f->keyed_begins;

	if (!n)
		return 0;
	if (n > UINT32_MAX - 1)
		return -ENOMEM;
	d->keyed = calloc(n, sizeof(*d->keyed));
	d->buckets = calloc(n, sizeof(*d->buckets));
	d->nbuckets = (uint32_t)n;
	return d->keyed && d->buckets ? 0 : -ENOMEM;
}

static uint32_t *bucket(struct dump *d, uint64_t key)
{
	uint64_t h = (key * 0x9e3779b97f4a7c15ull) >> 32;

	return &d->buckets[h * d->nbuckets >> 32];
}

static void begin(struct dump *d, struct fl_process *p, const struct fl_head *h, uint64_t time,
		  struct mt_unpack *r, bool bare, bool own)
{
	struct mt_slice sl = {.process = &d->processes[p->copy - 1], .time = time};
	struct dkeyed *k = &d->keyed[d->nkeyed];
	int rc;

	fl_replay_begin(d, h, r, bare, &sl);
	rc = fl_replay_slice(d, &sl, own, &k->sl);
	if (rc < 0) {
		note(d, rc);
		return;
	}
	k->process = p;
	k->sl.losses = p->replayed + d->loose;
	k->begin = time;
	k->chain = *bucket(d, h->key);
	*bucket(d, h->key) = ++d->nkeyed;
	TELL(d, keyed_begin, &sl);
}

static void end(struct dump *d, struct dkeyed *k, uint64_t time, const struct fl_tail *tail, uint32_t nextra)
{
	const bool lost = k->sl.losses != k->process->replayed + d->loose;
	struct mt_slice_end e = {.process = &d->processes[k->process->copy - 1],
				 .time = time,
				 .cs = k->sl.cs,
				 .name = k->sl.name,
				 .key = k->sl.key,
				 .span = k->sl.span,
				 .reason = tail->reason,
				 .exit_status = tail->exit_status,
				 .in_doubt = lost && mt_end_of_surroundings(tail->reason),
				 .nextra = nextra,
				 .extra = d->extra};

	TELL(d, keyed_end, &e);
	free(k->sl.owned);
	k->sl.key = 0;
}

void fl_replay_keyed_open(struct dump *d)
{
	struct flight *f = d->f;
	uint32_t i, n;

	for (i = 0; i < f->max_processes; i++) {
		struct fl_process *p = &f->processes[i];

		for (n = p->used && p->copy ? p->keyed_first : 0; n; n = f->open[n - 1].below) {
			const struct fl_open *o = &f->open[n - 1];
			struct fl_head h = fl_open_head(o);
			struct mt_unpack r = {.p = d->data, .end = d->data + o->len};

			fl_open_data(f, o, d->data);
			begin(d, p, &h, o->time, &r, o->bare, true);
			if (d->nkeyed)
				d->keyed[d->nkeyed - 1].sl.losses = o->losses;
		}
	}
}

void fl_replay_keyed(struct dump *d, struct fl_delta *delta, struct fl_rec *rec)
{
	struct fl_process *p = fl_keyed_process(d->f, rec);
	struct fl_head h;
	struct fl_tail e;
	uint32_t n;

	if (rec->kind == FL_KEYED_BEGIN) {
		fl_read_begin(rec, delta, &h);
		if (p && p->copy)
			begin(d, p, &h, rec->time, &rec->body, false, false);
		return;
	}
	fl_read_end(rec, delta, &e);
	if (!p || !d->nbuckets)
		return;
	for (n = *bucket(d, e.key); n && d->keyed[n - 1].sl.key != e.key; n = d->keyed[n - 1].chain)
		;
	if (n)
		end(d, &d->keyed[n - 1], rec->time, &e, mt_unpack_fields(&rec->body, d->extra));
}

void fl_replay_keyed_finish(struct dump *d)
{
	const struct fl_tail detach = {.reason = MT_END_DETACH};
	uint32_t i;

	for (i = 0; i < d->nkeyed; i++) {
		struct dkeyed *k = &d->keyed[i];

		if (k->sl.key)
			end(d, k, k->begin > d->now ? k->begin : d->now, &detach, 0);
	}
	free(d->keyed);
	free(d->buckets);
}
