/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The window, told to another sink.
 *
 * Processes and threads are copies with a sink_data of their own. Each copy of a thread has a stack of what
 * is open on it in the dump: its ends are told with the name and numbers of their begins, and those left at
 * the end are ended there. An end whose begin was not kept is not told.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flight_replay.h"
#include "room.h"

struct mt_str fl_replay_name(struct dump *d, uint8_t flags, const struct mt_callsite *cs, struct mt_unpack *r)
{
	int n;

	switch (flags >> FL_F_NAME) {
	case FL_NAME_TEXT:
		return mt_unpack_text(r);
	case FL_NAME_TARGET:
		n = snprintf(d->composed, COMPOSED_MAX, "%s::%s", cs->target, cs->name);
		return (struct mt_str){d->composed, n < (int)COMPOSED_MAX ? (uint32_t)n : COMPOSED_MAX - 1};
	default:
		return text_of(cs ? cs->name : "?");
	}
}

/* ---- copies ---- */

static struct mt_process *copy_process(struct dump *d, struct fl_process *p)
{
	struct mt_process *c;

	if (p->copy)
		return &d->processes[p->copy - 1];
	c = &d->processes[d->nprocesses++];
	p->copy = d->nprocesses;
	*c = (struct mt_process){.pid = p->pid,
				 .ppid = p->ppid,
				 .uid = p->uid,
				 .start = p->start,
				 .name = p->name,
				 .name_given = p->name_given,
				 .cmdline = p->cmdline,
				 .execution_id = p->execution_id,
				 .end_reason = p->live ? MT_END_DETACH : p->end_reason,
				 .exit_status = p->exit_status};
	TELL(d, process, c, d->from);
	return c;
}

static void copy_thread(struct dump *d, struct fl_thread *t)
{
	struct dthread *c = &d->threads[d->nthreads++];

	t->copy = d->nthreads;
	d->f->processes[t->proc].thread = t->copy;
	c->pub = (struct mt_thread){.process = copy_process(d, &d->f->processes[t->proc]),
				    .tid = t->tid,
				    .start = t->start,
				    .name = t->name};
	c->losses = t->losses;
	TELL(d, thread, &c->pub, d->from);
}

/*
 * A counter needs a thread that tells of it. Any will do; of a process that has none in the table it is the first one,
 * without name.
 */
static void thread_for_counters(struct dump *d, struct fl_process *p)
{
	struct dthread *c;

	if (!p->used || !p->copy || !p->counters || p->thread)
		return;
	c = &d->threads[d->nthreads++];
	p->thread = d->nthreads;
	c->pub = (struct mt_thread){
		.process = &d->processes[p->copy - 1], .tid = p->pid, .start = p->start, .name = ""};
	TELL(d, thread, &c->pub, d->from);
}

/* Live processes and those that have something in the window; threads that have. */
static int make_copies(struct dump *d)
{
	struct flight *f = d->f;
	uint32_t i;

	d->processes = calloc(f->stats.processes + 1, sizeof(*d->processes));
	d->threads = calloc(f->stats.threads + f->stats.processes + 1, sizeof(*d->threads));
	d->data = malloc(FL_SCRATCH);
	d->composed = malloc(COMPOSED_MAX);
	if (!d->processes || !d->threads || !d->data || !d->composed || fl_replay_keyed_new(d) < 0)
		return -ENOMEM;
	for (i = 0; i < f->max_processes; i++) {
		f->processes[i].copy = f->processes[i].thread = 0;
		f->processes[i].replayed = f->processes[i].losses;
		if (f->processes[i].used && (f->processes[i].live || f->processes[i].refs))
			copy_process(d, &f->processes[i]);
	}
	for (i = 0; i < f->max_threads; i++) {
		f->threads[i].copy = 0;
		if (f->threads[i].used && (f->threads[i].refs || f->threads[i].base))
			copy_thread(d, &f->threads[i]);
	}
	for (i = 0; i < f->max_threads && f->stats.counters; i++) {
		const struct fl_process *p = &f->processes[f->threads[i].proc];

		if (f->threads[i].used && p->copy && p->counters && !p->thread)
			copy_thread(d, &f->threads[i]);
	}
	for (i = 0; i < f->max_processes; i++)
		thread_for_counters(d, &f->processes[i]);
	return 0;
}

static struct dthread *copy_of(struct dump *d, const struct fl_rec *rec)
{
	struct fl_thread *t = fl_thread_at(d->f, rec);

	return t && t->copy ? &d->threads[t->copy - 1] : NULL;
}

/* ---- slices ---- */

int fl_replay_slice(struct dump *d, const struct mt_slice *sl, bool own, struct dslice *ret_slice)
{
	struct dslice o = {.key = sl->key, .span = sl->span, .cs = sl->cs, .name = sl->name};

	if (own || sl->name.p == d->composed) {
		o.owned = malloc(sl->name.len + 1);
		if (!o.owned)
			return -ENOMEM;
		memcpy(o.owned, sl->name.p, sl->name.len);
		o.name.p = o.owned;
	}
	*ret_slice = o;
	return 0;
}

static int push(struct dump *d, struct dthread *c, const struct mt_slice *sl, bool own)
{
	int rc = mt_room(&c->stack, c->depth, &c->cap, sizeof(*c->stack));

	if (!rc)
		rc = fl_replay_slice(d, sl, own, &c->stack[c->depth]);
	if (!rc)
		c->stack[c->depth++].losses = c->losses;
	return rc;
}

void fl_replay_begin(struct dump *d, const struct fl_head *h, struct mt_unpack *r, bool bare,
		     struct mt_slice *sl)
{
	sl->cs = h->cs;
	sl->key = h->key;
	sl->span = h->span;
	sl->parent = h->parent;
	sl->flow = h->flow;
	sl->flags = h->flags & FL_F_SLICE;
	sl->values = d->values;
	sl->extra = d->extra;
	if (bare) {
		sl->flags |= MT_SLICE_CUT;
		sl->name = text_of(h->cs ? h->cs->name : "?");
		return;
	}
	sl->name = fl_replay_name(d, h->flags, h->cs, r);
	sl->nvalues = mt_unpack_values(r, d->values);
	sl->nextra = mt_unpack_fields(r, d->extra);
}

static void tell_begin(struct dump *d, struct dthread *c, const struct fl_head *h, uint64_t time,
		       struct mt_unpack *r, bool bare, bool own)
{
	struct mt_slice sl = {.thread = &c->pub, .time = time};
	int rc;

	fl_replay_begin(d, h, r, bare, &sl);
	rc = push(d, c, &sl, own);
	if (rc < 0) {
		note(d, rc);
		return;
	}
	c->last = time;
	TELL(d, begin, &sl);
}

/* Ends the innermost slice. */
static void tell_end(struct dump *d, struct dthread *c, uint64_t time, const struct fl_tail *tail,
		     uint32_t nextra)
{
	struct dslice *o = &c->stack[--c->depth];
	struct mt_slice_end e = {.thread = &c->pub,
				 .time = time,
				 .cs = o->cs,
				 .name = o->name,
				 .key = o->key,
				 .span = o->span,
				 .reason = tail->reason,
				 .exit_status = tail->exit_status,
				 .in_doubt = mt_end_of_surroundings(tail->reason) && o->losses != c->losses,
				 .nextra = nextra,
				 .extra = d->extra};

	c->last = time;
	TELL(d, end, &e);
	free(o->owned);
}

/* Slices that were open when the window began, the outermost first. */
static void tell_open(struct dump *d, struct dthread *c, uint32_t base)
{
	struct flight *f = d->f;
	uint32_t n, depth = 0, i, *order;

	for (n = base; n; n = f->open[n - 1].below)
		depth++;
	if (!depth)
		return;
	order = malloc(depth * sizeof(*order));
	if (!order) {
		note(d, -ENOMEM);
		return;
	}
	for (n = base, i = depth; n; n = f->open[n - 1].below)
		order[--i] = n - 1;
	for (i = 0; i < depth; i++) {
		const struct fl_open *o = &f->open[order[i]];
		struct fl_head h = fl_open_head(o);
		struct mt_unpack r = {.p = d->data, .end = d->data + o->len};

		fl_open_data(f, o, d->data);
		tell_begin(d, c, &h, o->time, &r, o->bare, true);
		if (c->depth)
			c->stack[c->depth - 1].losses = o->losses;
	}
	free(order);
}

/* Values from before the window. */
static void tell_counters(struct dump *d)
{
	struct flight *f = d->f;
	uint32_t i, n;

	for (i = 0; i < f->max_processes; i++) {
		const struct fl_process *p = &f->processes[i];

		if (!p->used || !p->copy)
			continue;
		for (n = p->counters; n; n = f->counters[n - 1].sibling) {
			const struct fl_counter *c = &f->counters[n - 1];
			const struct mt_count m = {.thread = &d->threads[p->thread - 1].pub,
						   .time = c->time,
						   .cs = c->cs,
						   .name = {c->named ? c->name : NULL, c->name_len},
						   .value = {.type = c->type, .u = c->bits}};

			TELL(d, counter, &m);
		}
	}
}

/* ---- records ---- */

static void tell_instant(struct dump *d, struct dthread *c, const struct fl_head *h, uint64_t time,
			 struct mt_unpack *r)
{
	struct mt_instant i = {.thread = &c->pub,
			       .time = time,
			       .cs = h->cs,
			       .parent = h->parent,
			       .flags = h->flags & FL_F_SLICE,
			       .values = d->values,
			       .extra = d->extra};

	i.name = fl_replay_name(d, h->flags, h->cs, r);
	i.nvalues = mt_unpack_values(r, d->values);
	i.nextra = mt_unpack_fields(r, d->extra);
	c->last = time;
	TELL(d, instant, &i);
}

static void tell_counter(struct dump *d, struct dthread *c, struct fl_rec *rec)
{
	struct mt_count m = {.thread = &c->pub, .time = rec->time};

	m.cs = (const struct mt_callsite *)(uintptr_t)fl_get(rec);
	if (mt_unpack_u8(&rec->body))
		m.name = mt_unpack_text(&rec->body);
	if (mt_unpack_values(&rec->body, d->values) != 1)
		return;
	m.value = d->values[0];
	TELL(d, counter, &m);
}

static void tell_lost(struct dump *d, struct dthread *c, struct fl_rec *rec)
{
	char cause[FL_CAUSE + 1];
	struct mt_loss l = {.thread = c ? &c->pub : NULL, .time = rec->time, .cause = cause};
	struct fl_loss kept;
	struct mt_str text;

	fl_read_lost(d->f, fl_thread_at(d->f, rec), rec, &kept);
	++*(kept.process ? &kept.process->replayed : &d->loose);
	if (kept.process && kept.process->copy)
		l.process = &d->processes[kept.process->copy - 1];
	if (c) {
		c->last = rec->time;
		c->losses++;
	}
	l.count = kept.count;
	text = mt_unpack_text(&rec->body);
	memcpy(cause, text.p, text.len);
	cause[text.len] = '\0';
	TELL(d, lost, &l);
}

static void tell_record(struct dump *d, struct fl_delta *delta, struct fl_rec *rec)
{
	struct dthread *c = copy_of(d, rec);
	struct fl_head h;
	struct fl_tail e;

	switch (rec->kind) {
	case FL_BEGIN:
		fl_read_begin(rec, delta, &h);
		if (c)
			tell_begin(d, c, &h, rec->time, &rec->body, false, false);
		break;
	case FL_END:
		fl_read_end(rec, delta, &e);
		if (c && c->depth && c->stack[c->depth - 1].key == e.key)
			tell_end(d, c, rec->time, &e, mt_unpack_fields(&rec->body, d->extra));
		break;
	case FL_INSTANT:
		fl_read_instant(rec, delta, &h);
		if (c)
			tell_instant(d, c, &h, rec->time, &rec->body);
		break;
	case FL_COUNTER:
		if (c)
			tell_counter(d, c, rec);
		break;
	case FL_LOST:
		/* Of a thread that is forgotten: still a loss. */
		tell_lost(d, c, rec);
		break;
	case FL_KEYED_BEGIN:
	case FL_KEYED_END:
		fl_replay_keyed(d, delta, rec);
		break;
	case FL_MARK:
		TELL(d, mark, rec->time, mt_unpack_text(&rec->body));
		break;
	}
}

/* ---- marks ---- */

static void tell_window(struct dump *d)
{
	static const char *const limits[] = {[FL_BY_NOTHING] = "",
					     [FL_BY_TIME] = "time",
					     [FL_BY_EVENTS] = "events",
					     [FL_BY_BYTES] = "memory"};
	char text[256], spec[MT_FLIGHT_SPEC_TEXT];
	const struct flight *f = d->f;

	if (f->cut_by == FL_BY_NOTHING)
		return;
	snprintf(text, sizeof(text), "window starts here: older events have left (limit: %s of %s)",
		 limits[f->cut_by], mt_flight_spec_text(&f->spec, spec));
	TELL(d, mark, d->from, text_of(text));
	if (!f->missing)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 " slices that were open here are not shown: no room for more",
		 f->missing);
	TELL(d, mark, d->from, text_of(text));
}

static void tell_skipped(struct dump *d)
{
	const struct flight *f = d->f;
	struct mt_loss l = {
		.time = d->now, .count = f->skipped_now, .cause = "flight recorder: too many threads"};

	if (f->skipped_now && f->latest - f->skipped_at <= f->spec.time_ns)
		TELL(d, lost, &l);
}

static void finish(struct dump *d)
{
	const struct fl_tail detach = {.reason = MT_END_DETACH};
	uint32_t i;

	for (i = 0; i < d->nthreads; i++) {
		struct dthread *c = &d->threads[i];

		while (c->depth)
			tell_end(d, c, c->last > d->now ? c->last : d->now, &detach, 0);
		free(c->stack);
	}
	fl_replay_keyed_finish(d);
	for (i = 0; i < d->nthreads; i++)
		TELL(d, gone, NULL, &d->threads[i].pub, d->now);
	for (i = 0; i < d->nprocesses; i++)
		TELL(d, gone, &d->processes[i], NULL, d->now);
	free(d->threads);
	free(d->processes);
	free(d->data);
	free(d->composed);
}

int mt_flight_dump(struct mt_sink *flight, struct mt_sink *into, const struct mt_flight_mark *mark,
		   uint64_t now)
{
	struct flight *f = (struct flight *)flight;
	struct fl_delta delta;
	struct fl_rec rec;
	struct dump *d;
	uint64_t pos;
	uint32_t i;
	int err;

	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	fl_log_expire(f, now);
	d->f = f;
	d->loose = f->loose;
	d->into = into;
	d->now = now;
	d->from = now;
	pos = f->head;
	delta = f->at_head;
	if (fl_log_next(f, &pos, &delta, &rec) && rec.time < now)
		d->from = rec.time;
	note(d, make_copies(d));
	if (!d->err) {
		tell_window(d);
		tell_counters(d);
		for (i = 0; i < f->max_threads; i++)
			if (f->threads[i].used && f->threads[i].copy)
				tell_open(d, &d->threads[f->threads[i].copy - 1], f->threads[i].base);
		fl_replay_keyed_open(d);
		pos = f->head;
		delta = f->at_head;
		while (fl_log_next(f, &pos, &delta, &rec))
			tell_record(d, &delta, &rec);
		tell_skipped(d);
		if (mark)
			TELL(d, mark, mark->time, text_of(mark->text));
	}
	finish(d);
	err = d->err;
	free(d);
	return err;
}
