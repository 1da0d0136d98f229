/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events in the order of the file -> slices in trees.
 *
 * The events of each track are put in order of time; equal times keep the order of the file. Then one
 * walk with a stack per track, by the importer's rules:
 *
 *  T1  An end without name or category ends the innermost open slice. With them it ends the innermost
 *      open slice that matches, and the slices inside that one end with it (marked as cut).
 *  T2  An end that matches nothing does nothing (counted as stray).
 *  T3  At most MT_TL_MAX_DEPTH slices are open on a track; deeper ones are left out, counted.
 *  T4  Slices still open when the track's events are over stay open.
 *
 * Worked example, one track: begin A 0, begin B 10, end A 30, end B 40. The end of A closes A at 30 and
 * cuts B at 30; the end of B is stray.
 */
#include <stdlib.h>

#include "ptread_map.h"
#include "timeline_int.h"

static bool before(const struct mt_tl_event *ev, uint32_t a, uint32_t b)
{
	return ev[a].ts != ev[b].ts ? ev[a].ts < ev[b].ts : a < b;
}

/* v[0..mid) and v[mid..n) are in order; makes all of it so. */
static void merge(const struct mt_tl_event *ev, uint32_t *v, uint32_t *tmp, uint32_t mid, uint32_t n)
{
	uint32_t i = 0, j = mid, k = 0;

	if (!before(ev, v[mid], v[mid - 1]))
		return;
	memcpy(tmp, v, mid * sizeof(*v));
	while (i < mid && j < n)
		v[k++] = before(ev, v[j], tmp[i]) ? v[j++] : tmp[i++];
	memcpy(v + k, tmp + i, (mid - i) * sizeof(*v));
}

/* Merge sort from the bottom up: what is in order already costs one look. */
void tl_sort(const struct mt_tl_event *events, uint32_t *v, uint32_t *tmp, uint32_t n)
{
	for (uint64_t width = 1; width < n; width *= 2) {
		for (uint64_t at = 0; at + width < n; at += 2 * width) {
			uint64_t len = n - at < 2 * width ? n - at : 2 * width;

			merge(events, v + at, tmp, (uint32_t)width, (uint32_t)len);
		}
	}
}

int mt_tl_by_time(const struct mt_timeline *tl, uint32_t **ret_order, uint32_t *ret_n)
{
	uint32_t *v = malloc(((size_t)tl->n + 1) * sizeof(*v)), *tmp, n = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < tl->n; i++) {
		if (tl->events[i].kind != MT_PT_END && !(tl->events[i].flags & MT_TL_DEEP))
			v[n++] = i;
	}
	tmp = malloc(((size_t)n + 1) * sizeof(*tmp));
	if (!tmp) {
		free(v);
		return -ENOMEM;
	}
	tl_sort(tl->events, v, tmp, n);
	free(tmp);
	*ret_order = v;
	*ret_n = n;
	return 0;
}

/* order: track by track, within a track by time. */
static int sort_events(struct mt_timeline *tl)
{
	uint32_t at = 0, *tmp;

	tl->order = malloc(((size_t)tl->n + 1) * sizeof(*tl->order));
	tmp = malloc(((size_t)tl->n + 1) * sizeof(*tmp));
	if (!tl->order || !tmp) {
		free(tmp);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tl->n; i++)
		tl->tracks[tl->events[i].track].n++;
	for (uint32_t i = 0; i < tl->ntracks; i++) {
		tl->tracks[i].first = at;
		at += tl->tracks[i].n;
		tl->tracks[i].n = 0;
	}
	for (uint32_t i = 0; i < tl->n; i++) {
		struct mt_tl_track *t = &tl->tracks[tl->events[i].track];

		tl->order[t->first + t->n++] = i;
	}
	for (uint32_t i = 0; i < tl->ntracks; i++)
		tl_sort(tl->events, tl->order + tl->tracks[i].first, tmp, tl->tracks[i].n);
	free(tmp);
	return 0;
}

struct stack {
	uint32_t v[MT_TL_MAX_DEPTH];
	uint32_t n;
};

static void end_slice(struct mt_timeline *tl, struct stack *st, uint32_t end)
{
	struct mt_tl_event *e = &tl->events[end];
	uint32_t at = st->n;

	while (at > 0) {
		const struct mt_tl_event *s = &tl->events[st->v[at - 1]];

		if ((!e->name || e->name == s->name) && (!e->cat || e->cat == s->cat))
			break;
		at--;
	}
	if (!at) {
		e->flags |= MT_TL_STRAY;
		tl->stray_ends++;
		return;
	}
	while (st->n >= at) {
		struct mt_tl_event *s = &tl->events[st->v[--st->n]];

		s->end = end;
		if (st->n >= at) {
			s->flags |= MT_TL_CUT;
			tl->cut++;
		}
		if (st->n)
			tl->events[st->v[st->n - 1]].children += e->ts - s->ts;
	}
}

static void match(struct mt_timeline *tl, const struct mt_tl_track *t)
{
	struct stack st = {.n = 0};

	for (uint32_t k = 0; k < t->n; k++) {
		uint32_t i = tl->order[t->first + k];
		struct mt_tl_event *e = &tl->events[i];

		e->depth = (uint16_t)st.n;
		switch (e->kind) {
		case MT_PT_BEGIN:
			if (st.n == MT_TL_MAX_DEPTH) {
				e->flags |= MT_TL_DEEP;
				tl->too_deep++;
				break;
			}
			st.v[st.n++] = i;
			tl->slices++;
			break;
		case MT_PT_END:
			end_slice(tl, &st, i);
			break;
		case MT_PT_INSTANT:
			tl->instants += !(e->flags & MT_TL_LOSS);
			break;
		case MT_PT_COUNTER:
			tl->counters++;
			break;
		}
	}
	tl->open += st.n;
}

/* ---- processes ---- */

static int add_group(struct mt_timeline *tl, bool has_pid, int32_t pid, const char *name)
{
	if ((tl->ngroups & (tl->ngroups - 1)) == 0) {
		uint32_t cap = tl->ngroups ? tl->ngroups * 2 : 1;
		struct mt_tl_group *v = realloc(tl->groups, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		tl->groups = v;
	}
	tl->groups[tl->ngroups++] = (struct mt_tl_group){.has_pid = has_pid, .pid = pid, .name = name};
	return 0;
}

/* Maps while groups are made: a process track's index -> group + 1, and pid -> group + 1. */
struct grouping {
	struct pt_map by_track, by_pid;
};

/* Pids are the file's: an address makes the maps hard to fill with collisions. */
static uint64_t seed(const struct mt_timeline *tl)
{
	return (uint64_t)(uintptr_t)tl;
}

static int add_process(struct mt_timeline *tl, struct grouping *g, const struct mt_pt_track *p)
{
	int r = add_group(tl, true, p->pid, p->pname);

	if (!r)
		r = pt_map_add(&g->by_track, seed(tl), p->index, tl->ngroups);
	if (!r && !pt_map_get(&g->by_pid, seed(tl), (uint32_t)p->pid))
		r = pt_map_add(&g->by_pid, seed(tl), (uint32_t)p->pid, tl->ngroups);
	return r;
}

/* The group of a track; one without process but with a thread goes by the thread's pid. */
static int group_of(struct mt_timeline *tl, struct grouping *g, struct mt_tl_track *t,
		    const struct mt_pt_track *process)
{
	uint32_t at;
	int r;

	if (process) {
		t->group = pt_map_get(&g->by_track, seed(tl), process->index) - 1;
		return 0;
	}
	if (!t->thread) {
		t->group = 0;
		return 0;
	}
	at = pt_map_get(&g->by_pid, seed(tl), (uint32_t)t->thread->pid);
	if (!at) {
		r = add_group(tl, true, t->thread->pid, "");
		if (!r)
			r = pt_map_add(&g->by_pid, seed(tl), (uint32_t)t->thread->pid, tl->ngroups);
		if (r < 0)
			return r;
		at = tl->ngroups;
	}
	t->group = at - 1;
	return 0;
}

/* Group 0 is what belongs to no process. */
static int make_groups(struct mt_timeline *tl)
{
	struct grouping g = {0};
	int r = add_group(tl, false, 0, "");

	for (uint32_t i = 0; !r && i < tl->ntracks; i++) {
		if (mt_ptread_track(tl->reader, i)->is_process)
			r = add_process(tl, &g, mt_ptread_track(tl->reader, i));
	}
	for (uint32_t i = 0; !r && i < tl->ntracks; i++) {
		struct mt_tl_track *t = &tl->tracks[i];
		const struct mt_pt_track *process;

		t->t = mt_ptread_track(tl->reader, i);
		mt_ptread_owner(tl->reader, t->t, &t->thread, &process);
		r = group_of(tl, &g, t, process);
		if (!r && t->t->is_thread)
			tl->groups[t->group].threads++;
	}
	pt_map_free(&g.by_track);
	pt_map_free(&g.by_pid);
	return r;
}

static int compare_tracks(const void *a, const void *b, void *ctx)
{
	const struct mt_tl_track *tracks = ctx, *x = &tracks[*(const uint32_t *)a],
				 *y = &tracks[*(const uint32_t *)b];
	int sx = !x->t->is_thread && !x->t->is_process, sy = !y->t->is_thread && !y->t->is_process;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (sx != sy)
		return sx - sy;
	return x < y ? -1 : x > y;
}

static int order_tracks(struct mt_timeline *tl)
{
	tl->by_group = malloc(((size_t)tl->ntracks + 1) * sizeof(*tl->by_group));
	if (!tl->by_group)
		return -ENOMEM;
	for (uint32_t i = 0; i < tl->ntracks; i++)
		tl->by_group[i] = i;
	qsort_r(tl->by_group, tl->ntracks, sizeof(*tl->by_group), compare_tracks, tl->tracks);
	return 0;
}

int tl_build(struct mt_timeline *tl)
{
	int r;

	tl->ntracks = mt_ptread_ntracks(tl->reader);
	tl->tracks = calloc((size_t)tl->ntracks + 1, sizeof(*tl->tracks));
	if (!tl->tracks)
		return -ENOMEM;
	r = make_groups(tl);
	if (!r)
		r = order_tracks(tl);
	if (!r)
		r = sort_events(tl);
	if (r < 0)
		return r;
	tl->start = tl->n ? UINT64_MAX : 0;
	for (uint32_t i = 0; i < tl->n; i++) {
		tl->start = tl->events[i].ts < tl->start ? tl->events[i].ts : tl->start;
		tl->stop = tl->events[i].ts > tl->stop ? tl->events[i].ts : tl->stop;
	}
	for (uint32_t i = 0; i < tl->ntracks; i++)
		match(tl, &tl->tracks[i]);
	return 0;
}
