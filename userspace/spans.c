/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of threads -> slices that nest.
 *
 * The idea. Each thread has a stack of what the sink shows as open on it. A scope, and each enter of a span,
 * is an entry of its own: a span may be open several times on a thread and on several threads. Programs end
 * things in any order, lose records, and die; the stack is where that is put right, so that a sink can write
 * down what it is told. docs/design.md, section 5, has the model.
 *
 * Invariants.
 *  1. What a thread's stack holds is what the sink has open on that thread, in that order.
 *  2. sp_span.open is the number of stack entries (hidden ones included) that point to it; a span with
 *     entries is never freed. Entries of a span are on threads of its own process only.
 *  3. Time on a thread does not decrease: an earlier one is moved up to the last one (time_back).
 *  4. Every hit is accounted for: delivered + lost = what the threads' sequence numbers say.
 *  5. Numbers of spans, scopes and slices are ours, dense from 1; ids of the target are keys of its process.
 *  6. All memory is bounded: by max_threads, max_spans, max_depth and the constants in spans_int.h.
 *  7. Texts that reach the sink are valid UTF-8. Here is the one place that sees to it.
 *  8. A slice has an extra field `parent` exactly where it is not the span of the slice it lies in.
 *
 * Example. One thread, async spans A and B:
 *     new A  enter A   new B  enter B   exit A          exit B
 *            begin A          begin B   end B (outer)   end B
 *                                       end A
 *                                       begin B (continued)
 * B's parent is A (A was innermost when B was made). The first begin of B has no `parent` field, it lies in
 * A; the continued one has, for nothing is around it any more.
 *
 * Spans with a key (foreign probes) are not on these stacks: spans_keyed.c.
 *
 * What it does not do: it does not sort (each thread's events come in order, threads do not wait for each
 * other), knows no file format, and keeps no history: a span that is closed is forgotten.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "spans_int.h"
#include "strings.h"

#define DEFAULT_SPANS 1000000u
#define DEFAULT_DEPTH 500u
#define DEFAULT_THREADS 100000u
#define DEFAULT_KEYED 10000u

int mt_spans_new(const struct mt_spans_opts *opts, struct mt_sink *sink, struct mt_spans **ret_spans)
{
	struct mt_spans *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (opts)
		s->opts = *opts;
	if (s->opts.max_spans == 0)
		s->opts.max_spans = DEFAULT_SPANS;
	if (s->opts.max_depth == 0)
		s->opts.max_depth = DEFAULT_DEPTH;
	if (s->opts.max_threads == 0)
		s->opts.max_threads = DEFAULT_THREADS;
	if (s->opts.max_keyed == 0)
		s->opts.max_keyed = DEFAULT_KEYED;
	s->sink = sink;
	/* Without random bytes the hash is still right, only guessable. */
	if (getrandom(s->seed, sizeof(s->seed), GRND_NONBLOCK) != sizeof(s->seed))
		s->seed[0] = s->seed[1] = (uintptr_t)s;
	s->name_buf = malloc(MT_NAME_MAX);
	s->text_buf = malloc(SP_TEXT_BUF);
	if (!s->name_buf || !s->text_buf) {
		mt_spans_free(s);
		return -ENOMEM;
	}
	*ret_spans = s;
	return 0;
}

void sp_lost(struct mt_spans *s, struct sp_thread *t, uint64_t count, uint64_t time)
{
	struct mt_loss l = {
		.thread = &t->pub, .process = t->pub.process, .time = time, .count = count, .cause = ""};

	s->stats.lost += count;
	t->proc->lost += count;
	sp_tell_thread(s, t, time);
	t->last_time = time;
	if (s->sink->ops->lost)
		sp_err(s, s->sink->ops->lost(s->sink, &l));
}

/* A hit of a thread that there is no room for. */
static void refused(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_process *p = sp_map_get(s, &s->procs, ev->tgid);
	struct mt_loss l = {
		.process = p ? &p->pub : NULL, .time = ev->time, .count = 1, .cause = "too many threads"};

	if (!ev->has_seq)
		return;
	s->stats.lost++;
	if (p)
		sp_tell_process(s, p, ev->time);
	if (s->sink->ops->lost)
		sp_err(s, s->sink->ops->lost(s->sink, &l));
}

int mt_spans_feed(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_thread *t;

	s->err = 0;
	s->now = ev->time;
	s->stats.events++;
	if (s->dying_first)
		sp_reap(s, ev->time);
	if (ev->kind >= MT_EV_PROCESS) {
		sp_life(s, ev);
		return s->err;
	}
	t = sp_thread_get(s, ev);
	if (t)
		sp_hit(s, ev, t);
	else
		refused(s, ev);
	return s->err;
}

int mt_spans_lost_total(struct mt_spans *s, uint64_t total, uint64_t time, const char *cause)
{
	uint64_t known = s->stats.lost + s->loose_lost;
	struct mt_loss l = {.time = time, .count = total - known, .cause = cause ? cause : ""};

	if (total <= known)
		return 0;
	s->err = 0;
	s->loose_lost += l.count;
	if (s->sink->ops->lost)
		sp_err(s, s->sink->ops->lost(s->sink, &l));
	return s->err;
}

int mt_spans_finish(struct mt_spans *s, uint64_t time)
{
	s->err = 0;
	while (s->first)
		sp_process_end(s, s->first, time, MT_END_DETACH, 0);
	return s->err;
}

const struct mt_spans_stats *mt_spans_stats(const struct mt_spans *s)
{
	return &s->stats;
}

static int each_of_thread(const struct sp_thread *t, int (*cb)(void *ctx, const struct mt_spans_open *o),
			  void *ctx)
{
	uint32_t i;
	int rc;

	for (i = t->depth; i-- > 0;) {
		const struct sp_slice *sl = &t->stack[i];
		struct mt_spans_open o = {.thread = &t->pub,
					  .process = t->pub.process,
					  .tid = t->pub.tid,
					  .cs = sl->cs,
					  .name = sl->name,
					  .span = sl->num,
					  .parent = sl->parent,
					  .since = sl->since,
					  .depth = i,
					  .in_doubt = i < t->suspect};

		rc = cb(ctx, &o);
		if (rc)
			return rc;
	}
	return 0;
}

int mt_spans_each_open(const struct mt_spans *s, int (*cb)(void *ctx, const struct mt_spans_open *o),
		       void *ctx)
{
	const struct sp_process *p;
	const struct sp_thread *t;
	int rc;

	for (p = s->first; p; p = p->next) {
		for (t = p->first; t; t = t->next) {
			rc = t->dying ? 0 : each_of_thread(t, cb, ctx);
			if (rc)
				return rc;
		}
	}
	return 0;
}

void mt_spans_free(struct mt_spans *s)
{
	struct name_block *b;
	uint32_t i;

	if (!s)
		return;
	mt_spans_finish(s, 0);
	sp_keyed_pool_free(s);
	while ((b = s->name_pool)) {
		s->name_pool = b->next;
		free(b);
	}
	for (i = 0; i < s->nplans; i++)
		mt_name_plan_drop(&s->plans[i]);
	free(s->plans);
	free(s->threads.v);
	free(s->procs.v);
	free(s->name_buf);
	free(s->text_buf);
	free(s);
}
