/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_summary.h"
#include "cmd_summary_int.h"
#include "ptread_map.h"

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int compare_text(const struct mt_timeline *tl, uint32_t a, uint32_t b)
{
	struct mt_str x = mt_tl_text(tl, a), y = mt_tl_text(tl, b);
	int c = memcmp(x.p, y.p, x.len < y.len ? x.len : y.len);

	return c ? c : x.len < y.len ? -1 : x.len > y.len;
}

static int compare_spans(const void *a, const void *b, void *ctx)
{
	const struct summary_span *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return compare_text(ctx, x->name, y->name);
}

static int compare_instants(const void *a, const void *b, void *ctx)
{
	const struct summary_instant *x = a, *y = b;
	int c;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	c = compare_text(ctx, x->texts ? x->file : x->name, y->texts ? y->file : y->name);
	return c ? c : x->line < y->line ? -1 : x->line > y->line;
}

/* The smallest value that at least pct percent of v[0..n) do not exceed. */
static uint64_t percentile(const uint64_t *v, uint64_t n, unsigned pct)
{
	uint64_t rank = n / 100 * pct + (n % 100 * pct + 99) / 100;

	return v[rank ? rank - 1 : 0];
}

static void finish_span(struct summary_span *sp, uint64_t *v)
{
	if (!sp->count)
		return;
	qsort(v, sp->count, sizeof(*v), compare_u64);
	sp->min = v[0];
	sp->max = v[sp->count - 1];
	sp->p50 = percentile(v, sp->count, 50);
	sp->p99 = percentile(v, sp->count, 99);
}

static bool is_slice(const struct mt_tl_event *e)
{
	return e->kind == MT_PT_BEGIN && !(e->flags & MT_TL_DEEP);
}

static bool is_instant(const struct mt_tl_event *e)
{
	return e->kind == MT_PT_INSTANT && !(e->flags & MT_TL_LOSS);
}

/* row[name]: index of the name's row + 1. Counts rows for slices or instants. */
static uint32_t number_names(const struct mt_timeline *tl, bool (*want)(const struct mt_tl_event *),
			     uint32_t *row)
{
	uint32_t n = 0;

	memset(row, 0, ((size_t)mt_intern_count(tl->texts) + 1) * sizeof(*row));
	for (uint32_t i = 0; i < tl->n; i++) {
		const struct mt_tl_event *e = &tl->events[i];

		if (want(e) && !row[e->name])
			row[e->name] = ++n;
	}
	return n;
}

static int count_spans(struct summary *s, uint32_t *row)
{
	const struct mt_timeline *tl = s->tl;
	uint64_t *durations, at = 0, ns;

	s->nspans = number_names(tl, is_slice, row);
	s->spans = calloc((size_t)s->nspans + 1, sizeof(*s->spans));
	durations = malloc(((size_t)tl->slices + 1) * sizeof(*durations));
	if (!s->spans || !durations) {
		free(durations);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tl->n; i++) {
		if (is_slice(&tl->events[i]) && tl->events[i].end != MT_TL_NONE)
			s->spans[row[tl->events[i].name] - 1].count++;
	}
	for (uint32_t i = 0; i < s->nspans; i++) {
		s->spans[i].first = at;
		at += s->spans[i].count;
		s->spans[i].count = 0;
	}
	for (uint32_t i = 0; i < tl->n; i++) {
		const struct mt_tl_event *e = &tl->events[i];
		struct summary_span *sp;

		if (!is_slice(e))
			continue;
		sp = &s->spans[row[e->name] - 1];
		sp->name = e->name;
		if (!mt_tl_duration(tl, e, &ns)) {
			sp->open++;
			continue;
		}
		durations[sp->first + sp->count++] = ns;
		sp->total += ns;
		sp->self += ns - e->children;
	}
	for (uint32_t i = 0; i < s->nspans; i++)
		finish_span(&s->spans[i], durations + s->spans[i].first);
	free(durations);
	qsort_r(s->spans, s->nspans, sizeof(*s->spans), compare_spans, (void *)tl);
	return 0;
}

/* Source locations of instants, while rows are made. */
struct locations {
	struct pt_map by_place; /* file, line -> index + 1 */
	struct pt_map seen;     /* index, name: had that name */
	struct location {
		uint32_t names, cat, row;
	} * v;
	uint32_t n, cap;
};

/* Texts are the file's: an address makes the maps hard to fill with collisions. */
static uint64_t seed(const struct summary *s)
{
	return (uint64_t)(uintptr_t)s->tl;
}

/* The event's location, NULL if it has none. */
static struct location *location(const struct summary *s, const struct locations *l,
				 const struct mt_tl_event *e)
{
	uint32_t at = pt_map_get(&l->by_place, seed(s), (uint64_t)e->file << 32 | e->line);

	return at ? &l->v[at - 1] : NULL;
}

static int note_location(const struct summary *s, struct locations *l, const struct mt_tl_event *e)
{
	uint64_t place = (uint64_t)e->file << 32 | e->line, key;
	uint32_t at;
	int r = 0;

	if (!place)
		return 0;
	at = pt_map_get(&l->by_place, seed(s), place);
	if (!at) {
		if (l->n == l->cap) {
			uint32_t cap = l->cap ? l->cap * 2 : 64;
			struct location *v = realloc(l->v, cap * sizeof(*v));

			if (!v)
				return -ENOMEM;
			l->v = v;
			l->cap = cap;
		}
		l->v[l->n++] = (struct location){.cat = e->cat};
		at = l->n;
		r = pt_map_add(&l->by_place, seed(s), place, at);
	}
	key = (uint64_t)at << 32 | e->name;
	if (!r && !pt_map_get(&l->seen, seed(s), key)) {
		r = pt_map_add(&l->seen, seed(s), key, 1);
		l->v[at - 1].names++;
	}
	return r;
}

static bool is_message(const struct location *at)
{
	return at && at->names > SUMMARY_NAMES;
}

/* Rows for names and for locations of messages. row: as number_names() fills it. */
static int number_instants(struct summary *s, struct locations *l, uint32_t *row)
{
	const struct mt_timeline *tl = s->tl;

	memset(row, 0, ((size_t)mt_intern_count(tl->texts) + 1) * sizeof(*row));
	for (uint32_t i = 0; i < tl->n; i++) {
		int r = is_instant(&tl->events[i]) ? note_location(s, l, &tl->events[i]) : 0;

		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < tl->n; i++) {
		const struct mt_tl_event *e = &tl->events[i];
		struct location *at;
		uint32_t *number;

		if (!is_instant(e))
			continue;
		at = location(s, l, e);
		number = is_message(at) ? &at->row : &row[e->name];
		if (!*number)
			*number = ++s->ninstants;
	}
	return 0;
}

static int count_instants(struct summary *s, uint32_t *row)
{
	const struct mt_timeline *tl = s->tl;
	struct locations l = {0};
	int r;

	r = number_instants(s, &l, row);
	s->instants = calloc((size_t)s->ninstants + 1, sizeof(*s->instants));
	if (!r && !s->instants)
		r = -ENOMEM;
	for (uint32_t i = 0; !r && i < tl->n; i++) {
		const struct mt_tl_event *e = &tl->events[i];
		const struct location *at;
		struct summary_instant *in;

		if (!is_instant(e))
			continue;
		at = location(s, &l, e);
		in = &s->instants[(is_message(at) ? at->row : row[e->name]) - 1];
		if (is_message(at))
			*in = (struct summary_instant){.file = e->file,
						       .line = e->line,
						       .cat = at->cat,
						       .texts = at->names,
						       .count = in->count};
		else
			in->name = e->name;
		in->count++;
	}
	if (!r)
		qsort_r(s->instants, s->ninstants, sizeof(*s->instants), compare_instants, (void *)tl);
	pt_map_free(&l.by_place);
	pt_map_free(&l.seen);
	free(l.v);
	return r;
}

static void count_value(struct summary_counter *c, const struct mt_tl_event *e)
{
	bool dbl = e->flags & MT_TL_DOUBLE;
	int64_t i = dbl ? 0 : e->i;
	double d = dbl ? e->d : (double)e->i;

	if (!c->count++) {
		c->min_i = c->max_i = i;
		c->min_d = c->max_d = d;
	}
	c->is_double |= dbl;
	c->min_i = i < c->min_i ? i : c->min_i;
	c->max_i = i > c->max_i ? i : c->max_i;
	c->min_d = d < c->min_d ? d : c->min_d;
	c->max_d = d > c->max_d ? d : c->max_d;
	c->last_i = i;
	c->last_d = d;
}

/* Counters and threads, in the order of the dump. */
static int count_tracks(struct summary *s)
{
	const struct mt_timeline *tl = s->tl;

	s->counters = calloc((size_t)tl->ntracks + 1, sizeof(*s->counters));
	s->threads = calloc((size_t)tl->ntracks + 1, sizeof(*s->threads));
	if (!s->counters || !s->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < tl->ntracks; i++) {
		const struct mt_tl_track *t = &tl->tracks[tl->by_group[i]];
		struct summary_counter *c = &s->counters[s->ncounters];
		struct summary_thread *th = &s->threads[s->nthreads];

		s->described_threads += t->t->is_thread;
		for (uint32_t k = 0; k < t->n; k++) {
			const struct mt_tl_event *e = &tl->events[tl->order[t->first + k]];

			if (e->kind == MT_PT_COUNTER)
				count_value(c, e);
			th->slices += is_slice(e);
			th->instants += is_instant(e);
		}
		c->track = th->track = tl->by_group[i];
		s->ncounters += c->count != 0;
		if (t->t->is_thread && t->n)
			s->nthreads++;
		else
			*th = (struct summary_thread){0};
	}
	for (uint32_t g = 0; g < tl->ngroups; g++)
		s->processes += tl->groups[g].has_pid;
	return 0;
}

static int count(struct summary *s)
{
	uint32_t *row = malloc(((size_t)mt_intern_count(s->tl->texts) + 1) * sizeof(*row));
	int r;

	if (!row)
		return -ENOMEM;
	r = count_spans(s, row);
	if (!r)
		r = count_instants(s, row);
	if (!r)
		r = count_tracks(s);
	free(row);
	return r;
}

int mt_summary(FILE *out, int fd, const char *name, unsigned flags)
{
	struct summary s = {0};
	struct mt_timeline *tl;
	int r;

	r = mt_timeline_read(fd, &tl);
	if (r < 0)
		return r;
	s.tl = tl;
	s.rows = flags & MT_SUMMARY_ALL ? UINT32_MAX : SUMMARY_ROWS;
	r = count(&s);
	if (!r) {
		int locking = __fsetlocking(out, FSETLOCKING_BYCALLER);

		if (flags & MT_SUMMARY_JSON)
			summary_json(out, &s);
		else
			summary_text(out, &s, name);
		__fsetlocking(out, locking);
		r = tl_result(out, tl);
	}
	free(s.spans);
	free(s.instants);
	free(s.counters);
	free(s.threads);
	mt_timeline_free(tl);
	return r;
}
