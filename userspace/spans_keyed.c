/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans with a key: begun by one hit, ended by whatever hit of the process says the same key.
 *
 * The idea. A server has a thousand requests open at once and works on them by turns. On the stack of a thread each
 * end would cut all that began later; and the end may come from another thread. So these spans are on no stack:
 * a table of the process has them by their id (which the kernel side makes of callsite and key), and the sink is
 * told of each as one whole slice.
 *
 * Invariants.
 *  K1  What the table has is what the sink was told of and not of its end; in the list in the order of their begins.
 *  K2  At most max_keyed of a process. One more ends the oldest (MT_END_FORGOTTEN): a program whose ends are never
 *      seen must not blind the trace for good.
 *  K3  A begin of a key that is open ends that span at this time (MT_END_AGAIN): the key has a new meaning now. An
 *      end of a key that is not open is stray. Each is counted.
 *  K4  An end is never before its begin.
 *  K5  They end with their process (exit, exec, end of tracing), not with a thread. A gap in a thread's
 *      sequence numbers changes nothing: an end that was lost shows by K3 or at the end.
 *
 * Example. Thread 1: begin 7@10, begin 8@20; thread 2: end 7@30, begin 8@40, end 9@50; the process exits @60. Slices:
 * 7 from 10 to 30 (begin_thread 1, end_thread 2), 8 from 20 to 40 (again), 8 from 40 to 60 (process). One stray end.
 *
 * Not here: parents. Who waits for whom is not known of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "spans_int.h"

#define POOL_MAX 1024u /* kept for later */
#define POOL_ROOM 512u /* bytes of the values of one that is kept */

struct sp_keyed {
	struct sp_span sp; /* of it: id, num, flow, proc, cs, name, values, cut; in no table of spans */
	struct sp_keyed *prev, *next;
	uint64_t key;   /* of the slice */
	uint64_t since; /* of the span, whatever file the slice is in */
	uint64_t last;  /* of the slice */
	uint64_t lost;  /* hits of its process, when it began */
	uint32_t tid;   /* that began it */
};

/* Hits that may be ends of what p has open: those without a thread are anybody's. */
static uint64_t lost_of(const struct mt_spans *s, const struct sp_process *p)
{
	return p->lost + s->loose_lost;
}

static void tell_begin(struct mt_spans *s, struct sp_keyed *k, uint64_t time, uint32_t flags)
{
	struct mt_slice out = {.process = &k->sp.proc->pub,
			       .time = time,
			       .cs = k->sp.cs,
			       .name = k->sp.name,
			       .span = k->sp.num,
			       .flow = flags & MT_SLICE_CONTINUED ? k->sp.flow : 0,
			       .flags = flags | (k->sp.cut ? MT_SLICE_CUT : 0),
			       .nvalues = k->sp.nvalues,
			       .values = k->sp.values};

	out.key = k->key = ++s->last_key;
	k->last = time;
	s->stats.slices++;
	sp_tell_process(s, k->sp.proc, time);
	if (s->sink->ops->keyed_begin)
		sp_err(s, s->sink->ops->keyed_begin(s->sink, &out));
}

/* tid: of the thread that ended it, 0 = none did. */
static void tell_end(struct mt_spans *s, struct sp_keyed *k, uint64_t time, enum mt_end_reason reason,
		     uint32_t status, uint32_t tid)
{
	struct mt_field extra[MONTRACE_MAX_FIELDS + 2];
	struct mt_slice_end out = {.process = &k->sp.proc->pub,
				   .time = time < k->last ? k->last : time, /* K4 */
				   .cs = k->sp.cs,
				   .name = k->sp.name,
				   .key = k->key,
				   .span = k->sp.num,
				   .reason = reason,
				   .exit_status = status,
				   .in_doubt = mt_end_of_surroundings(reason) &&
					       k->lost != lost_of(s, k->sp.proc),
				   .extra = extra};
	uint32_t i;

	if (tid && tid != k->tid) {
		extra[out.nextra++] = sp_field_u64("begin_thread", k->tid);
		extra[out.nextra++] = sp_field_u64("end_thread", tid);
	}
	for (i = 0; reason == MT_END_NORMAL && i < s->nending; i++)
		extra[out.nextra++] = s->ending[i];
	if (s->sink->ops->keyed_end)
		sp_err(s, s->sink->ops->keyed_end(s->sink, &out));
}

/* They come and go fast: some are kept for the next ones, with the memory of their values. */
static void give_back(struct mt_spans *s, struct sp_keyed *k)
{
	if (s->nkeyed_pool == POOL_MAX || k->sp.room > POOL_ROOM) {
		sp_span_drop_content(&k->sp);
		free(k);
		return;
	}
	k->next = s->keyed_pool;
	s->keyed_pool = k;
	s->nkeyed_pool++;
}

static struct sp_keyed *take(struct mt_spans *s)
{
	struct sp_keyed *k = s->keyed_pool;

	if (!k)
		return calloc(1, sizeof(*k));
	s->keyed_pool = k->next;
	s->nkeyed_pool--;
	*k = (struct sp_keyed){.sp = {.values = k->sp.values, .room = k->sp.room}};
	return k;
}

void sp_keyed_pool_free(struct mt_spans *s)
{
	while (s->keyed_pool) {
		struct sp_keyed *k = take(s);

		sp_span_drop_content(&k->sp);
		free(k);
	}
}

static void end(struct mt_spans *s, struct sp_keyed *k, uint64_t time, enum mt_end_reason reason,
		uint32_t status, uint32_t tid)
{
	struct sp_process *p = k->sp.proc;

	tell_end(s, k, time, reason, status, tid);
	if (k->prev)
		k->prev->next = k->next;
	else
		p->keyed_first = k->next;
	if (k->next)
		k->next->prev = k->prev;
	else
		p->keyed_last = k->prev;
	sp_map_del(s, &p->keyed, k->sp.id);
	give_back(s, k);
}

static struct sp_keyed *add(struct mt_spans *s, struct sp_process *p, uint64_t id)
{
	struct sp_keyed *k = take(s);

	if (!k || sp_map_put(s, &p->keyed, id, k) < 0) {
		if (k)
			give_back(s, k);
		sp_err(s, -ENOMEM);
		return NULL;
	}
	k->sp.id = id;
	k->sp.num = ++s->last_num;
	k->sp.flow = sp_flow(p, k->sp.num);
	k->sp.proc = p;
	k->prev = p->keyed_last;
	if (p->keyed_last)
		p->keyed_last->next = k;
	else
		p->keyed_first = k;
	p->keyed_last = k;
	return k;
}

void sp_keyed_begin(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		    const struct mt_value *v, uint32_t n, bool cut)
{
	struct sp_process *p = t->proc;
	struct sp_keyed *k = sp_map_get(s, &p->keyed, ev->span);

	if (k) { /* K3 */
		s->stats.keyed_again++;
		p->pub.unpaired.again++;
		end(s, k, s->now, MT_END_AGAIN, 0, t->pub.tid);
	} else if (p->keyed.n >= s->opts.max_keyed) { /* K2 */
		s->stats.keyed_forgotten++;
		p->pub.unpaired.forgotten++;
		end(s, p->keyed_first, s->now, MT_END_FORGOTTEN, 0, 0);
	}
	k = add(s, p, ev->span);
	if (!k)
		return;
	k->sp.cut = cut;
	k->since = s->now;
	k->lost = lost_of(s, p);
	k->tid = t->pub.tid;
	s->stats.spans++;
	if (sp_span_fill(s, &k->sp, ev->cs, v, n) < 0) { /* no memory for its values: then without */
		k->sp.cs = ev->cs;
		k->sp.name = sp_plan(s, ev->cs)->fixed;
		k->sp.cut = true;
	}
	tell_begin(s, k, s->now, 0);
}

void sp_keyed_end(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	struct sp_keyed *k = sp_map_get(s, &t->proc->keyed, ev->span);

	if (k)
		end(s, k, s->now, MT_END_NORMAL, 0, t->pub.tid);
	else
		sp_stray(s, t->proc);
}

void sp_keyed_end_all(struct mt_spans *s, struct sp_process *p, uint64_t time, enum mt_end_reason reason,
		      uint32_t status)
{
	while (p->keyed_first)
		end(s, p->keyed_first, time, reason, status, 0);
}

void sp_keyed_part(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	struct sp_keyed *k;

	for (k = p->keyed_first; k; k = k->next)
		tell_end(s, k, time, MT_END_PART, 0, 0);
}

void sp_keyed_continue(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	struct sp_keyed *k;

	for (k = p->keyed_first; k; k = k->next)
		tell_begin(s, k, time < k->last ? k->last : time, MT_SLICE_CONTINUED);
}

int mt_spans_each_keyed(const struct mt_spans *s, int (*cb)(void *ctx, const struct mt_spans_open *o),
			void *ctx)
{
	const struct sp_process *p;
	const struct sp_keyed *k;
	int rc = 0;

	for (p = s->first; p && !rc; p = p->next) {
		uint32_t i = 0;

		for (k = p->keyed_first; k && !rc; k = k->next) {
			struct mt_spans_open o = {.process = &p->pub,
						  .tid = k->tid,
						  .cs = k->sp.cs,
						  .name = k->sp.name,
						  .span = k->sp.num,
						  .since = k->since,
						  .depth = i++,
						  .of = p->keyed.n,
						  .in_doubt = k->lost != lost_of(s, p)};

			rc = cb(ctx, &o);
		}
	}
	return rc;
}
