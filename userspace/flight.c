/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flight recorder: a sink that keeps a window of the trace and can replay it.
 *
 * The idea. Events go, packed, into a ring of bytes of fixed size; the oldest leave when the window (time,
 * events, bytes) is full. A trace that starts in the middle would lack the begins of slices that are open
 * there, and nothing could nest. So a begin that leaves the ring moves to a table of open slices, one stack
 * for each thread, and goes from there when its end leaves the ring as well. Replay: for each thread the
 * stack, outermost first, then the ring in order. In the same way the last value of a counter that leaves is kept. That is a valid stream of sink calls, whatever the cut.
 *
 * Invariants
 *  F1  Memory is taken at the start and never grows; no call allocates but mt_flight_dump.
 *  F2  The stack of a thread in the table is what was open on it just before the oldest record of the log.
 *      A begin that found no room there is skipped, and so is its end: in the log ends are matched by key.
 *  F3  Records name a thread by slot and generation. A slot is used again only if the thread is gone and has
 *      no records, or if it is the one gone longest and a new one needs the slot; then the generation changes
 *      and its records count for nothing.
 *  F4  A live process or thread keeps its slot. One that finds no slot (all are of live ones) is not kept,
 *      is counted, and a dump says so as a loss.
 *  F5  A dump changes nothing but what the passing of time changes anyway.
 *  F6  Spans with a key are of no thread. Their records name the process; those that are open when the window
 *      begins are in a list of it, found by their key. Else F2 to F4 hold for them with the process.
 *
 * Example. Limit: 3 events. On one thread: begin A@1, begin B@2, instant@3, end B@4, begin C@5.
 *  log: instant@3, end B@4, begin C@5; table: A@1, B@2. A dump at 6 gives: begin A@1, begin B@2, instant@3,
 *  end B@4, begin C@5, and then end C@6, end A@6 with MT_END_DETACH.
 *
 * Not done here: names that processes and threads had earlier than now; writing to disk.
 */
#include "flight_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

static struct flight *flight_of(struct mt_sink *s)
{
	return (struct flight *)s;
}

void fl_skip(struct flight *f, uint64_t time)
{
	if (!f->skipped_at || time - f->skipped_at > f->spec.time_ns)
		f->skipped_now = 0;
	f->skipped_at = time;
	f->skipped_now++;
	f->stats.skipped++;
}

/* The thread's slot; a thread that had to do without may find one now. NULL: the event is counted as skipped.
 */
static struct fl_thread *thread_for(struct flight *f, struct mt_thread *pub, uint64_t time)
{
	struct fl_thread *t = fl_thread_of(f, pub);

	if (!t)
		t = fl_thread_get(f, pub);
	if (!t)
		fl_skip(f, time);
	return t;
}

static struct mt_str cut_text(struct mt_str s, uint32_t max)
{
	if (s.len > max)
		s.len = (uint32_t)mt_utf8_prefix(s.p, s.len, max);
	return s;
}

static enum fl_name name_mode(const struct mt_callsite *cs, struct mt_str name)
{
	size_t t, n;

	if (!cs)
		return FL_NAME_TEXT;
	if (name.p == cs->name)
		return FL_NAME_CS;
	n = strlen(cs->name);
	if (name.len == n)
		return memcmp(name.p, cs->name, n) ? FL_NAME_TEXT : FL_NAME_CS;
	t = strlen(cs->target);
	if (name.len == t + 2 + n && !memcmp(name.p, cs->target, t) && !memcmp(name.p + t, "::", 2) &&
	    !memcmp(name.p + t + 2, cs->name, n))
		return FL_NAME_TARGET;
	return FL_NAME_TEXT;
}

static int flight_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	(void)time;
	fl_process_get(flight_of(s), p);
	return 0;
}

static int flight_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	(void)time;
	/* Slots are for threads that have something to show; names of those are kept up to date. */
	if (t->sink_data)
		fl_thread_get(flight_of(s), t);
	return 0;
}

/* What did not fit is marked in the flags byte. */
static void mark_cut(struct flight *f, struct mt_pack *w, size_t flags_at)
{
	w->p[flags_at] |= MT_SLICE_CUT;
	f->stats.cut++;
}

void fl_finish_begin(struct flight *f, struct fl_put *put, enum fl_kind kind, const struct fl_thread *t,
		     const struct mt_slice *sl)
{
	enum fl_name mode = name_mode(sl->cs, sl->name);
	struct mt_pack w;
	size_t flags_at;
	bool whole;

	fl_put_diff(put, sl->key, f->at_tail.key);
	fl_put_diff(put, sl->span, f->at_tail.span);
	fl_put_parent(put, sl->span, sl->parent);
	fl_put(put, (uintptr_t)sl->cs);
	fl_put(put, sl->flow);
	fl_data(f, put, kind, 0, &w);
	flags_at = w.len;
	mt_pack_u8(&w, (uint8_t)((sl->flags & FL_F_SLICE) | mode << FL_F_NAME));
	if (mode == FL_NAME_TEXT)
		mt_pack_text(&w, cut_text(sl->name, FL_DISPLAY));
	whole = mt_pack_values(&w, sl->values, sl->nvalues);
	whole &= mt_pack_fields(&w, sl->extra, sl->nextra);
	if (!whole)
		mark_cut(f, &w, flags_at);
	fl_log_append(f, &w, t, sl->time);
	f->at_tail.key = sl->key;
	f->at_tail.span = sl->span;
}

void fl_finish_end(struct flight *f, struct fl_put *put, enum fl_kind kind, const struct fl_thread *t,
		   const struct mt_slice_end *e)
{
	struct mt_pack w;

	fl_put_diff(put, e->key, f->at_tail.key);
	fl_put(put, e->reason == MT_END_PROCESS ? e->exit_status : 0);
	fl_data(f, put, kind, (uint8_t)e->reason, &w);
	if (!mt_pack_fields(&w, e->extra, e->nextra))
		f->stats.cut++;
	fl_log_append(f, &w, t, e->time);
}

static int flight_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct flight *f = flight_of(s);
	struct fl_thread *t = thread_for(f, sl->thread, sl->time);
	struct fl_put put;

	if (!t)
		return 0;
	fl_start(f, &put, FL_BEGIN, t, sl->time);
	fl_finish_begin(f, &put, FL_BEGIN, t, sl);
	return 0;
}

static int flight_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct flight *f = flight_of(s);
	struct fl_thread *t = fl_thread_of(f, e->thread);
	struct fl_put put;

	if (!t)
		return 0; /* so was its begin, and counted */
	fl_start(f, &put, FL_END, t, e->time);
	fl_finish_end(f, &put, FL_END, t, e);
	return 0;
}

static int flight_instant(struct mt_sink *s, const struct mt_instant *i)
{
	struct flight *f = flight_of(s);
	struct fl_thread *t = thread_for(f, i->thread, i->time);
	enum fl_name mode = name_mode(i->cs, i->name);
	struct fl_put put;
	struct mt_pack w;
	size_t flags_at;
	bool whole;

	if (!t)
		return 0;
	fl_start(f, &put, FL_INSTANT, t, i->time);
	fl_put_parent(&put, f->at_tail.span, i->parent);
	fl_put(&put, (uintptr_t)i->cs);
	fl_data(f, &put, FL_INSTANT, 0, &w);
	flags_at = w.len;
	mt_pack_u8(&w, (uint8_t)((i->flags & FL_F_SLICE) | mode << FL_F_NAME));
	if (mode == FL_NAME_TEXT)
		mt_pack_text(&w, cut_text(i->name, FL_DISPLAY));
	whole = mt_pack_values(&w, i->values, i->nvalues);
	whole &= mt_pack_fields(&w, i->extra, i->nextra);
	if (!whole)
		mark_cut(f, &w, flags_at);
	fl_log_append(f, &w, t, i->time);
	return 0;
}

static int flight_counter(struct mt_sink *s, const struct mt_count *c)
{
	struct flight *f = flight_of(s);
	struct fl_thread *t = thread_for(f, c->thread, c->time);
	struct fl_put put;
	struct mt_pack w;

	if (!t)
		return 0;
	fl_start(f, &put, FL_COUNTER, t, c->time);
	fl_put(&put, (uintptr_t)c->cs);
	fl_data(f, &put, FL_COUNTER, 0, &w);
	mt_pack_u8(&w, c->name.p != NULL);
	if (c->name.p)
		mt_pack_text(&w, cut_text(c->name, FL_DISPLAY));
	mt_pack_values(&w, &c->value, 1);
	fl_log_append(f, &w, t, c->time);
	return 0;
}

static int flight_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct flight *f = flight_of(s);
	struct fl_thread *t = l->thread ? fl_thread_of(f, l->thread) : NULL;
	struct mt_process *pub = l->thread ? l->thread->process : l->process;
	struct fl_process *p = NULL;
	struct mt_str cause = {l->cause, (uint32_t)strlen(l->cause)};
	struct fl_put put;
	struct mt_pack w;

	if (l->thread && !t)
		t = fl_thread_get(f, l->thread);
	if (!t && pub)
		p = fl_process_of(f, pub);
	fl_start(f, &put, FL_LOST, t, l->time);
	fl_put(&put, p ? (uint64_t)(p - f->processes) + 1 : 0);
	fl_put(&put, p ? p->gen : 0);
	fl_put(&put, l->count);
	fl_data(f, &put, FL_LOST, 0, &w);
	mt_pack_text(&w, cut_text(cause, FL_CAUSE));
	fl_log_append(f, &w, t, l->time);
	return 0;
}

static int flight_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	struct flight *f = flight_of(s);
	struct fl_put put;
	struct mt_pack w;

	fl_start(f, &put, FL_MARK, NULL, time);
	fl_data(f, &put, FL_MARK, 0, &w);
	mt_pack_text(&w, cut_text(text, FL_DISPLAY));
	fl_log_append(f, &w, NULL, time);
	return 0;
}

static int flight_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	(void)time;
	if (t)
		fl_thread_gone(flight_of(s), t);
	else if (p)
		fl_process_gone(flight_of(s), p);
	return 0;
}

static int flight_flush(struct mt_sink *s, uint64_t now)
{
	fl_log_expire(flight_of(s), now);
	return 0;
}

static int flight_free(struct mt_sink *s)
{
	struct flight *f = flight_of(s);

	if (!f)
		return 0;
	fl_tables_free(f);
	free(f->log);
	free(f->scratch);
	free(f);
	return 0;
}

static const struct mt_sink_ops flight_ops = {
	.process = flight_process,
	.thread = flight_thread,
	.begin = flight_begin,
	.end = flight_end,
	.instant = flight_instant,
	.counter = flight_counter,
	.lost = flight_lost,
	.gone = flight_gone,
	.flush = flight_flush,
	.free = flight_free,
	.mark = flight_mark,
	.keyed_begin = fl_keyed_begin,
	.keyed_end = fl_keyed_end,
};

int mt_flight_new(const struct mt_flight_spec *spec, struct mt_sink **ret_sink)
{
	struct flight *f;

	if (spec->bytes < MT_FLIGHT_BYTES_MIN || spec->bytes > MT_FLIGHT_BYTES_MAX || spec->events == 0 ||
	    spec->time_ns == 0)
		return -EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->sink.ops = &flight_ops;
	f->spec = *spec;
	f->cap = spec->bytes;
	f->max_record = f->cap / 4 - 8 < FL_SCRATCH ? (uint32_t)(f->cap / 4 - 8) : FL_SCRATCH;
	f->log = malloc(f->cap + FL_SLACK);
	f->scratch = malloc(FL_SCRATCH + FL_SLACK);
	f->stats.memory = sizeof(*f) + f->cap + FL_SCRATCH + 2 * FL_SLACK;
	if (!f->log || !f->scratch || fl_tables_new(f) < 0) {
		flight_free(&f->sink);
		return -ENOMEM;
	}
	*ret_sink = &f->sink;
	return 0;
}

void mt_flight_stats(const struct mt_sink *flight, struct mt_flight_stats *ret_stats)
{
	const struct flight *f = (const struct flight *)flight;
	struct fl_delta d = f->at_head;
	uint64_t pos = f->head;
	struct fl_rec rec;

	*ret_stats = f->stats;
	ret_stats->events = f->count;
	ret_stats->bytes = f->tail - f->head;
	if (fl_log_next(f, &pos, &d, &rec)) {
		ret_stats->from = rec.time;
		ret_stats->to = f->at_tail.time;
	}
}
