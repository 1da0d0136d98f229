/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lifetimes of spans: one slice per span from its creation to its close, on lanes under its process.
 *
 * A lane is a track that holds one span at a time; a closed span's lane is used again, so there are as many lanes
 * as spans were alive at once, at most PF_MAX_LANES a process. Spans beyond that have no lifetime slice (their
 * slices on threads are there all the same). The flow that links a span's slices on threads begins here.
 *
 * Example: span 1 new@10, span 2 new@20, span 1 close@30, span 3 new@40: lane 0 holds 1 and then 3, lane 1 holds 2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_cold.h"

/* A free lane (made if there is none), or NULL: no lane for this one. */
static struct pf_lane *lane_take(struct pf_process *pp)
{
	struct pf_lane *v;
	uint32_t i, cap;

	for (i = 0; i < pp->nlanes; i++)
		if (!pp->lanes[i].span)
			return &pp->lanes[i];
	if (pp->nlanes == PF_MAX_LANES)
		return NULL;
	if (pp->nlanes == pp->lane_cap) {
		cap = pp->lane_cap ? pp->lane_cap * 2 : 8;
		v = realloc(pp->lanes, cap * sizeof(*v));
		if (!v)
			return NULL;
		pp->lanes = v;
		pp->lane_cap = cap;
	}
	v = &pp->lanes[pp->nlanes++];
	memset(v, 0, sizeof(*v));
	return v;
}

static int lane_describe(struct pf *pf, struct pf_process *pp, struct pf_lane *lane, uint64_t time)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	char name[] = "span lifetimes";

	lane->uuid = mt_pf_uuid_of(pp->uuid, "lane", (uint32_t)(lane - pp->lanes));
	track.has_uuid = 1;
	track.uuid = lane->uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = pp->uuid;
	track.name = name;
	return mt_pf_track_put(pf, &track, time);
}

static void number(Perfetto__Protos__DebugAnnotation *a, char *name, uint64_t v)
{
	perfetto__protos__debug_annotation__init(a);
	a->name = name;
	a->has_uint_value = 1;
	a->uint_value = v;
}

static int lane_event(struct pf *pf, Perfetto__Protos__TrackEvent *event, const struct pf_lane *lane,
		      uint64_t time)
{
	packet_t p;

	event->has_type = 1;
	event->has_track_uuid = 1;
	event->track_uuid = lane->uuid;
	packet_init(&p);
	packet_stamp(&p, time);
	p.data_case = DATA(TRACK_EVENT);
	p.track_event = event;
	return mt_pf_cold_put(pf, &p);
}

int mt_pf_op_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	Perfetto__Protos__DebugAnnotation notes[2], *list[2] = {&notes[0], &notes[1]};
	char span[] = "span", parent[] = "parent", *categories[1];
	struct cold_text name, category;
	struct pf *pf = pf_of(s);
	struct pf_process *pp;
	struct pf_lane *lane;
	uint64_t flow;
	int r;

	if (!pf->opts.lifetimes)
		return 0;
	pp = mt_pf_process(pf, n->process);
	lane = pp ? lane_take(pp) : NULL;
	if (!lane)
		return 0;
	r = lane->uuid ? 0 : lane_describe(pf, pp, lane, n->time);
	if (r < 0)
		return r;
	lane->span = n->span;
	lane->last = n->time > lane->last ? n->time : lane->last;
	mt_utf8_fix(name.s, sizeof(name.s), n->name.p ? n->name.p : n->cs->name,
		    n->name.p ? n->name.len : strlen(n->cs->name));
	memcpy(lane->name, name.s, sizeof(lane->name) - 1);
	lane->name[mt_utf8_prefix(name.s, strlen(name.s), sizeof(lane->name) - 1)] = 0;
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	event.name = lane->name;
	categories[0] = cold(&category, n->cs->target);
	event.n_categories = 1;
	event.categories = categories;
	number(&notes[0], span, n->span);
	number(&notes[1], parent, n->parent);
	event.n_debug_annotations = n->parent ? 2 : 1;
	event.debug_annotations = list;
	flow = mt_pf_flow(pf, n->flow);
	event.n_flow_ids = n->flow ? 1 : 0;
	event.flow_ids = &flow;
	return lane_event(pf, &event, lane, lane->last);
}

static int lane_end(struct pf *pf, struct pf_lane *lane, uint64_t time)
{
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	lane->span = 0;
	lane->last = time > lane->last ? time : lane->last;
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	event.name = lane->name;
	return lane_event(pf, &event, lane, lane->last);
}

int mt_pf_op_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	struct pf *pf = pf_of(s);
	struct pf_process *pp = p->sink_data;
	uint32_t i;

	for (i = 0; pf->opts.lifetimes && pp && i < pp->nlanes; i++)
		if (pp->lanes[i].span == span)
			return lane_end(pf, &pp->lanes[i], time);
	return 0;
}

int mt_pf_lives_end(struct pf *pf, struct pf_process *pp, uint64_t time)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < pp->nlanes && !r; i++)
		if (pp->lanes[i].span)
			r = lane_end(pf, &pp->lanes[i], time);
	return r;
}
