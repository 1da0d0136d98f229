/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings: the last events of each subject.
 *
 * The idea. A program that has many of something (actors, sessions, connections) makes one span for each with
 * MONTRACE_RECORDING. Events that happen in that span, or in spans below it, on whatever thread, are kept
 * apart: the last N of each subject, however noisy the others are. What an event belongs to is a matter of
 * parentage, fixed when a span is made, not of what happens to be entered around it. So there is a table of
 * span numbers that belong to a recording: a new span whose parent is in it is put in, an event whose span is
 * in it is kept. Spans outside of recordings are never stored.
 *
 * Invariants
 *  R1  A span belongs to one recording at most: nested ones are roots of their own, and isolated.
 *  R2  seq counts from 0 without a hole in each recording; the events kept are the newest, in that order. Where
 *      hits were lost before an event came, it says how many: it is not known whose they were.
 *  R3  Ids of recordings are never used again, and neither are numbers of spans: when a recording ends all
 *      its spans leave the table, so what is left of them feeds nobody.
 *  R4  Bounds: events of a recording, live recordings, kept ones, spans, bytes of all events. For bytes first
 *      the kept ones go, then the oldest events of the largest.
 *
 * Example. MONTRACE_RECORDING(&s, "job 7", 2): span_new 5. Thread A enters 5, makes span 6 below it; thread B
 * enters 6: three events there have seq 0, 1, 2, and 1 and 2 are kept. Close of 5: the recording is closed
 * and kept for reading, events in 6 are no longer anybody's.
 *
 * A process that ends leaves its recordings to be read. When there are too many of these, those that ended
 * well go first, the oldest of them; then the newest failures, because the first one is nearest to the cause.
 *
 * A process that is gone only to be told again in another file (MT_END_PART) keeps its recordings: it is
 * known again by pid and start time. If it ends before that, only gone() comes.
 *
 * Not done here: spans and counters are not recorded; levels are not filtered (the probes are).
 */
#include "recordings_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

static struct recordings *recordings_of(struct mt_sink *s)
{
	return (struct recordings *)s;
}

static struct mt_str cut_text(struct mt_str s, uint32_t max)
{
	if (s.len > max)
		s.len = (uint32_t)mt_utf8_prefix(s.p, s.len, max);
	return s;
}

static struct mt_str text_of(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

/* The span's entry, made if it belongs somewhere. */
static int span_seen(struct recordings *r, const struct rc_new *n, uint64_t parent,
		     struct rc_span **ret_entry)
{
	struct rc_span *e = rc_span_find(r, n->span), *up;
	struct rc_rec *rec;
	int rc = 0;

	if (!e && n->span && n->cs && n->cs->class_ == MONTRACE_CLASS_RECORDING) {
		rc = rc_rec_new(r, n, &rec);
		e = rec ? rec->root : NULL;
	} else if (!e && n->span && (up = rc_span_find(r, parent))) {
		rc_span_touch(r, up);
		e = rc_span_add(r, up->rec, n->span, parent, n->cs, false);
		rc = e ? 0 : -ENOMEM;
	}
	*ret_entry = e;
	return rc;
}

static int rc_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	struct rc_new new = {.process = n->process,
			     .time = n->time,
			     .span = n->span,
			     .cs = n->cs,
			     .nvalues = n->nvalues,
			     .values = n->values};
	struct rc_span *e;

	return span_seen(recordings_of(s), &new, n->parent, &e);
}

static int rc_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct rc_new new = {.process = sl->thread->process,
			     .time = sl->time,
			     .span = sl->span,
			     .cs = sl->cs,
			     .nvalues = sl->nvalues,
			     .values = sl->values};
	struct rc_span *e;
	int rc = span_seen(recordings_of(s), &new, sl->parent, &e);

	if (e) {
		e->entered++;
		rc_span_touch(recordings_of(s), e);
	}
	return rc;
}

static int rc_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct recordings *r = recordings_of(s);
	struct rc_span *span = rc_span_find(r, e->span);
	struct rc_process *p;

	if (e->reason == MT_END_PROCESS && (p = rc_process_of(r, e->thread->process))) {
		p->has_status = true;
		p->exit_status = e->exit_status;
	}
	if (!span)
		return 0;
	if (span->entered)
		span->entered--;
	/* Nobody says that a scope is closed; its last slice ends for another reason than these. */
	if (e->cs && e->cs->class_ == MONTRACE_CLASS_SCOPE && e->reason != MT_END_OUTER &&
	    e->reason != MT_END_PART && !span->entered)
		rc_span_drop(r, span);
	return 0;
}

/* Which span it happened in is told anyway: a field for that is no field of the program's. */
static bool names_parent(const struct mt_field *f, uint64_t parent)
{
	return f->name.len == 6 && memcmp(f->name.p, "parent", 6) == 0 && !f->value.missing &&
	       f->value.type == MONTRACE_TYPE_U64 && f->value.u == parent;
}

static bool pack(struct mt_pack *w, const struct mt_instant *i)
{
	uint32_t skip = i->nextra && names_parent(&i->extra[0], i->parent);
	bool whole;

	mt_pack_text(w, cut_text(i->name, RC_NAME));
	mt_pack_text(w, cut_text(text_of(i->thread->name), RC_THREAD));
	whole = mt_pack_values(w, i->values, i->nvalues);
	return mt_pack_fields(w, i->extra + skip, i->nextra - skip) && whole;
}

static int rc_instant(struct mt_sink *s, const struct mt_instant *i)
{
	struct recordings *r = recordings_of(s);
	struct rc_span *span = rc_span_find(r, i->parent);
	struct mt_pack w = {.p = r->scratch, .cap = RC_PACKED};
	struct rc_event *e;
	bool whole;

	if (!span)
		return 0;
	rc_span_touch(r, span);
	whole = pack(&w, i);
	e = malloc(sizeof(*e) + w.len);
	if (!e)
		return -ENOMEM;
	*e = (struct rc_event){.time = i->time,
			       .span = i->parent,
			       .cs = i->cs,
			       .span_cs = span->cs,
			       .tid = i->thread->tid,
			       .len = (uint32_t)w.len,
			       .cut = !whole || (i->flags & MT_SLICE_CUT)};
	memcpy(e->packed, w.p, w.len);
	rc_event_add(r, span->rec, e);
	if (r->watch) {
		struct mt_value values[MONTRACE_MAX_FIELDS];
		struct mt_field extra[MT_PACK_MAX_FIELDS];
		struct mt_recorded view;

		rc_event_view(span->rec, e, values, extra, &view);
		r->watch(r->watch_ctx, &view);
	}
	return 0;
}

/*
 * What is lost has no number: nobody knows whether it was an event, and whose. So the next event of each
 * recording that it may have been for tells how many there were.
 */
static int rc_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct recordings *r = recordings_of(s);
	struct mt_process *p = l->thread ? l->thread->process : l->process;
	struct rc_process *proc = p ? rc_process_of(r, p) : NULL;

	if (proc)
		proc->lost += l->count;
	else if (!p)
		r->lost += l->count;
	return 0;
}

static int process_told(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct rc_process *proc = rc_process_of(recordings_of(s), p);
	struct rc_rec *rec;
	struct mt_str name = cut_text(text_of(p->name), RC_PROCESS - 1);

	(void)s;
	(void)time;
	for (rec = proc ? proc->recs : NULL; rec; rec = rec->sibling_next) {
		memcpy(rec->process_name, name.p, name.len);
		rec->process_name[name.len] = '\0';
	}
	return 0;
}

static int rc_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	struct recordings *r = recordings_of(s);
	struct rc_span *e = rc_span_find(r, span);

	(void)p;
	if (e && e->rec->root == e)
		rc_rec_end(r, e->rec, MT_RECORDING_CLOSED, 0, time);
	else if (e)
		rc_span_drop(r, e);
	return 0;
}

static int rc_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	struct recordings *r = recordings_of(s);
	struct rc_process *proc = p ? rc_process_of(r, p) : NULL;
	enum mt_recording_state state = MT_RECORDING_ENDED;
	uint32_t status = 0;

	if (t || !proc)
		return 0;
	p->sink_data = NULL;
	if (p->end_reason == MT_END_PART) {
		proc->parted_next = r->parted;
		r->parted = proc;
		return 0;
	}
	if (p->end_reason == MT_END_PROCESS)
		status = p->exit_status;
	else if (proc->has_status)
		status = proc->exit_status;
	if (status)
		state = MT_RECORDING_FAILED;
	while (proc->recs)
		rc_rec_end(r, proc->recs, state, status, time);
	free(proc);
	return 0;
}

/* Processes that were not told gone() are the caller's breach of S5; only what is ours is freed. */
static int rc_free(struct mt_sink *s)
{
	struct recordings *r = recordings_of(s);
	struct rc_process *proc;

	if (!r)
		return 0;
	while ((proc = r->parted)) {
		r->parted = proc->parted_next;
		free(proc);
	}
	while (r->live.first)
		rc_rec_free(r, r->live.first, &r->live);
	while (r->kept.first)
		rc_rec_free(r, r->kept.first, &r->kept);
	free(r->buckets);
	free(r->scratch);
	free(r);
	return 0;
}

static const struct mt_sink_ops recordings_ops = {
	.process = process_told,
	.begin = rc_begin,
	.end = rc_end,
	.instant = rc_instant,
	.lost = rc_lost,
	.gone = rc_gone,
	.free = rc_free,
	.span_new = rc_span_new,
	.span_close = rc_span_close,
};

static uint32_t or_default(uint32_t v, uint32_t def)
{
	return v ? v : def;
}

int mt_recordings_new(const struct mt_recordings_opts *opts, struct mt_sink **ret_sink)
{
	struct recordings *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->sink.ops = &recordings_ops;
	r->sink.ignores = MT_IGNORES_EVENTS; /* while no span belongs to a recording */
	r->opts = (struct mt_recordings_opts){
		.max_capacity = or_default(opts->max_capacity, 4096),
		.default_capacity = or_default(opts->default_capacity, 64),
		.max_live = or_default(opts->max_live, 10000),
		.max_kept = or_default(opts->max_kept, 100),
		.max_spans = or_default(opts->max_spans, 262144),
		.max_bytes = opts->max_bytes ? opts->max_bytes : 64ull << 20,
	};
	if (r->opts.max_bytes < RC_BYTES_MIN)
		r->opts.max_bytes = RC_BYTES_MIN;
	if (r->opts.max_capacity < 2)
		r->opts.max_capacity = 2;
	r->buckets = calloc(RC_BUCKETS, sizeof(*r->buckets));
	r->scratch = malloc(RC_PACKED);
	if (!r->buckets || !r->scratch) {
		rc_free(&r->sink);
		return -ENOMEM;
	}
	*ret_sink = &r->sink;
	return 0;
}

void mt_recordings_watch(struct mt_sink *s, mt_recorded_cb cb, void *ctx)
{
	recordings_of(s)->watch = cb;
	recordings_of(s)->watch_ctx = ctx;
}

void mt_recordings_stats(const struct mt_sink *s, struct mt_recordings_stats *ret_stats)
{
	*ret_stats = ((const struct recordings *)s)->stats;
}
