/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading of recordings. Nothing here changes anything. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "recordings_int.h"

const char *mt_recording_state_name(enum mt_recording_state state)
{
	static const char *const names[] = {
		[MT_RECORDING_LIVE] = "live",
		[MT_RECORDING_CLOSED] = "closed",
		[MT_RECORDING_ENDED] = "ended",
		[MT_RECORDING_FAILED] = "failed",
	};

	return names[state];
}

static bool matches(const struct rc_rec *rec, const char *subject)
{
	return !subject || mt_glob((struct mt_str){subject, (uint32_t)strlen(subject)},
				   (struct mt_str){rec->subject, (uint32_t)strlen(rec->subject)});
}

/* All recordings, live ones first: start with NULL. */
static struct rc_rec *next_rec(const struct recordings *r, const struct rc_rec *rec)
{
	if (!rec)
		return r->live.first ? r->live.first : r->kept.first;
	if (rec->next)
		return rec->next;
	return rec->info.state == MT_RECORDING_LIVE ? r->kept.first : NULL;
}

int mt_recordings_each(const struct mt_sink *s, const char *subject,
		       int (*cb)(void *ctx, const struct mt_recording_info *i), void *ctx)
{
	const struct recordings *r = (const struct recordings *)s;
	struct rc_rec *rec;
	int rc = 0;

	for (rec = next_rec(r, NULL); rec && !rc; rec = next_rec(r, rec))
		if (matches(rec, subject))
			rc = cb(ctx, &rec->info);
	return rc;
}

void rc_event_view(const struct rc_rec *rec, const struct rc_event *e, struct mt_value *values,
		   struct mt_field *extra, struct mt_recorded *ret_view)
{
	struct mt_unpack u = {.p = e->packed, .end = e->packed + e->len};

	*ret_view = (struct mt_recorded){.recording = &rec->info,
					 .seq = e->seq,
					 .time = e->time,
					 .cs = e->cs,
					 .tid = e->tid,
					 .span = e->span,
					 .span_name = e->span_cs ? e->span_cs->name : "",
					 .lost = e->lost,
					 .cut = e->cut,
					 .values = values,
					 .extra = extra};
	ret_view->name = mt_unpack_text(&u);
	ret_view->thread = mt_unpack_text(&u);
	ret_view->nvalues = mt_unpack_values(&u, values);
	ret_view->nextra = mt_unpack_fields(&u, extra);
}

static int call(const struct rc_rec *rec, const struct rc_event *e, mt_recorded_cb cb, void *ctx)
{
	struct mt_value values[MONTRACE_MAX_FIELDS];
	struct mt_field extra[MT_PACK_MAX_FIELDS];
	struct mt_recorded view;

	rc_event_view(rec, e, values, extra, &view);
	return cb(ctx, &view);
}

int mt_recordings_events(const struct mt_sink *s, uint64_t id, uint32_t n, mt_recorded_cb cb, void *ctx)
{
	const struct rc_rec *rec = rc_rec_find((const struct recordings *)s, id);
	const struct rc_event *e;
	uint32_t skip;
	int rc = 0;

	if (!rec)
		return -ENOENT;
	skip = rec->info.events > n ? rec->info.events - n : 0;
	for (e = rec->first; e && !rc; e = e->next) {
		if (skip) {
			skip--;
			continue;
		}
		rc = call(rec, e, cb, ctx);
	}
	return rc;
}

/* ---- stacks ---- */

static struct rc_span *find(const struct recordings *r, uint64_t span)
{
	return rc_span_find((struct recordings *)r, span); /* looks only */
}

/* Next frame outwards; NULL if the stack ends with e. */
static struct rc_span *outer(const struct recordings *r, const struct rc_span *e)
{
	struct rc_span *up = find(r, e->parent);

	return up && up->rec == e->rec && up->entered ? up : NULL;
}

#define MAX_FRAMES 512

int mt_recordings_stacks(const struct mt_sink *s, uint64_t id,
			 int (*cb)(void *ctx, const struct mt_recording_frame *frames, uint32_t n), void *ctx)
{
	const struct recordings *r = (const struct recordings *)s;
	struct mt_recording_frame frames[MAX_FRAMES];
	const struct rc_rec *rec = rc_rec_find(r, id);
	struct rc_span *e, *up;
	uint32_t n;
	int rc = 0;

	if (!rec)
		return -ENOENT;
	for (e = rec->spans; e; e = e->rec_next)
		e->has_inner = false;
	for (e = rec->spans; e; e = e->rec_next)
		if (e->entered && (up = outer(r, e)))
			up->has_inner = true;
	for (e = rec->spans; e && !rc; e = e->rec_next) {
		if (!e->entered || e->has_inner)
			continue;
		for (n = 0, up = e; up && n < MAX_FRAMES; up = outer(r, up))
			frames[n++] = (struct mt_recording_frame){up->span, up->cs, up->entered};
		rc = cb(ctx, frames, n);
	}
	return rc;
}

/* ---- tail ---- */

struct pick {
	const struct rc_rec *rec;
	const struct rc_event *e;
};

static int by_time(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	if (x->e->time != y->e->time)
		return x->e->time < y->e->time ? -1 : 1;
	if (x->rec->info.id != y->rec->info.id)
		return x->rec->info.id < y->rec->info.id ? -1 : 1;
	return x->e->seq < y->e->seq ? -1 : x->e->seq > y->e->seq;
}

/* The last n of each recording that matches, sorted; the last n of these are the answer. */
static int collect(const struct recordings *r, const struct mt_recordings_tail_opts *opts,
		   struct pick **ret_v, size_t *ret_n)
{
	const struct rc_event *e;
	const struct rc_rec *rec;
	struct pick *v;
	size_t n = 0, at = 0;
	uint32_t skip;

	for (rec = next_rec(r, NULL); rec; rec = next_rec(r, rec))
		if (matches(rec, opts->subject))
			n += rec->info.events < opts->n ? rec->info.events : opts->n;
	v = malloc((n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (rec = next_rec(r, NULL); rec; rec = next_rec(r, rec)) {
		if (!matches(rec, opts->subject))
			continue;
		skip = rec->info.events > opts->n ? rec->info.events - opts->n : 0;
		for (e = rec->first; e; e = e->next) {
			if (skip)
				skip--;
			else
				v[at++] = (struct pick){rec, e};
		}
	}
	qsort(v, at, sizeof(*v), by_time);
	*ret_v = v;
	*ret_n = at;
	return 0;
}

struct line {
	char *text;
	size_t len;
};

struct render {
	const struct mt_recordings_tail_opts *opts;
	struct line *line;
};

static int render(void *ctx, const struct mt_recorded *e)
{
	struct render *r = ctx;

	return r->opts->json ? mt_recorded_json(e, &r->opts->clock, &r->line->text, &r->line->len)
			     : mt_recorded_text(e, &r->opts->clock, &r->line->text, &r->line->len);
}

/* From the newest backwards, so that the newest have room. */
static int render_all(const struct mt_recordings_tail_opts *opts, const struct pick *v, uint32_t n,
		      struct line *lines, uint32_t *ret_first)
{
	size_t bytes = 0;
	uint32_t i;

	for (i = n; i > 0; i--) {
		struct render r = {opts, &lines[i - 1]};
		int rc = call(v[i - 1].rec, v[i - 1].e, render, &r);

		if (rc < 0)
			return rc;
		bytes += lines[i - 1].len + 1;
		if (opts->max_bytes && bytes > opts->max_bytes)
			break;
	}
	*ret_first = i;
	return 0;
}

int mt_recordings_tail(const struct mt_sink *s, const struct mt_recordings_tail_opts *opts,
		       int (*line)(void *ctx, const char *text, size_t len), void *ctx,
		       uint32_t *ret_left_out)
{
	struct line *lines = NULL;
	struct pick *v = NULL;
	uint32_t n = 0, i, first = 0;
	size_t all;
	int rc;

	rc = collect((const struct recordings *)s, opts, &v, &all);
	if (rc < 0)
		return rc;
	n = all < opts->n ? (uint32_t)all : opts->n;
	lines = calloc(n + 1, sizeof(*lines));
	rc = lines ? render_all(opts, v + (all - n), n, lines, &first) : -ENOMEM;
	for (i = first; i < n && !rc; i++)
		rc = line(ctx, lines[i].text, lines[i].len);
	if (rc >= 0 && ret_left_out)
		*ret_left_out = first;
	for (i = 0; lines && i < n; i++)
		free(lines[i].text);
	free(lines);
	free(v);
	return rc;
}
