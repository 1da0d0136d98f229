/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lifetimes of spans: one slice per span from its creation to its close, on lanes under its process.
 *
 * At most PF_MAX_LIVES a process; spans beyond that have no lifetime slice (their slices on threads are there all
 * the same). The flow that links a span's slices on threads begins here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_cold.h"

#define MAX_LIFE_NAME 127 /* bytes */

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
	if (!pp)
		return -ENOMEM;
	r = mt_pf_lane_take(pf, pp, pp->uuid, PF_MAX_LIVES, "span lifetimes", PF_LIFE_KEY(n->span), n->time,
			    &lane);
	if (r < 0 || !lane)
		return r;
	mt_utf8_fix(name.s, sizeof(name.s), n->name.p ? n->name.p : n->cs->name,
		    n->name.p ? n->name.len : strlen(n->cs->name));
	name.s[mt_utf8_prefix(name.s, strlen(name.s), MAX_LIFE_NAME)] = 0;
	free(lane->name);
	lane->name = strdup(name.s);
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_BEGIN;
	event.name = name.s;
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

static int life_end(struct pf *pf, struct pf_lane *lane)
{
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;

	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_SLICE_END;
	event.name = lane->name;
	return lane_event(pf, &event, lane, lane->last);
}

int mt_pf_op_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	struct pf *pf = pf_of(s);
	struct pf_process *pp = p->sink_data;
	struct pf_lane *lane = pf->opts.lifetimes && pp ? mt_pf_lane_give(pp, PF_LIFE_KEY(span), time) : NULL;

	return lane ? life_end(pf, lane) : 0;
}

/* In the order of the lanes: what a map holds has none. */
int mt_pf_lives_end(struct pf *pf, struct pf_process *pp, uint64_t time)
{
	int r = 0;

	for (uint32_t i = 0; i < pp->npools && !r; i++) {
		struct pf_pool *pool = &pp->pools[i];

		for (uint32_t k = 0; pool->id == pp->uuid && k < pool->n && !r; k++) {
			struct pf_lane *lane = &pool->lanes[k];

			if (pool->free[k / 64] >> k % 64 & 1)
				continue;
			lane->last = time > lane->last ? time : lane->last;
			r = life_end(pf, lane);
		}
	}
	return r;
}
