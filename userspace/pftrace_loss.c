/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Losses, and remarks of the tool, in the Perfetto sink. Each is told three times, for three readers: an instant where it
 * happened (who looks at the timeline), a record that the importer's statistics add up (who checks
 * whether a trace is complete), and totals at the end (mt_pf_tail).
 */
#include <errno.h>

#include "pftrace_cold.h"

static void count_loss(struct pf *pf, const struct mt_loss *l)
{
	const char *cause = l->cause[0] ? l->cause : "unknown";
	char text[sizeof(pf->causes[0].cause)];
	uint32_t i;

	mt_utf8_fix(text, sizeof(text), cause, strlen(cause));
	pf->lost += l->count;
	for (i = 0; i < pf->ncauses; i++)
		if (strcmp(pf->causes[i].cause, text) == 0)
			break;
	if (i == pf->ncauses) {
		if (i == PF_CAUSES)
			return; /* in the total only */
		memcpy(pf->causes[pf->ncauses++].cause, text, sizeof(text));
	}
	pf->causes[i].count += l->count;
}

/* What makes the importer count the loss: the one packet of its kind that adds up. */
static int put_lost_records(struct pf *pf, uint64_t count)
{
	Perfetto__Protos__PerfSample sample = PERFETTO__PROTOS__PERF_SAMPLE__INIT;
	packet_t p;

	perfetto__protos__trace_packet__init(&p); /* no sequence, no stamp */
	sample.has_cpu = 1;
	sample.has_kernel_records_lost = 1;
	sample.kernel_records_lost = count;
	p.data_case = DATA(PERF_SAMPLE);
	p.perf_sample = &sample;
	return mt_pf_cold_put(pf, &p);
}

/*
 * The track of what belongs to no process: described when first needed. What is told of it may come out of
 * order: *time is moved forward to what is on it already.
 */
static int tracer_track(struct pf *pf, uint64_t *ptime)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	uint64_t time;
	int r;

	if (*ptime < pf->tracer_last)
		*ptime = pf->tracer_last;
	pf->tracer_last = time = *ptime;
	if (pf->tracer_uuid)
		return 0;
	track.has_uuid = 1;
	track.uuid = mt_pf_uuid(pf, 'm', 0, 0, 0);
	track.name = (char *)"montrace-bpf";
	r = mt_pf_track_put(pf, &track, time);
	if (r == 0)
		pf->tracer_uuid = track.uuid;
	return r;
}

/* An instant on a track that is no thread's, on sequence 1. */
static int put_lost_instant(struct pf *pf, uint64_t track, const struct mt_loss *l, uint64_t time)
{
	Perfetto__Protos__DebugAnnotation count = PERFETTO__PROTOS__DEBUG_ANNOTATION__INIT;
	Perfetto__Protos__DebugAnnotation cause = PERFETTO__PROTOS__DEBUG_ANNOTATION__INIT;
	Perfetto__Protos__DebugAnnotation *ann[] = {&count, &cause};
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	char category[] = "montrace-bpf", *categories[] = {category};
	struct cold_text text;
	packet_t p;

	count.name = (char *)"count";
	count.has_uint_value = 1;
	count.uint_value = l->count;
	cause.name = (char *)"cause";
	cause.string_value = cold(&text, l->cause);
	event.has_type = 1;
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT;
	event.has_track_uuid = 1;
	event.track_uuid = track;
	event.name = (char *)"events lost";
	event.n_categories = 1;
	event.categories = categories;
	event.n_debug_annotations = l->cause[0] ? 2 : 1;
	event.debug_annotations = ann;
	packet_init(&p);
	packet_stamp(&p, time);
	p.data_case = DATA(TRACK_EVENT);
	p.track_event = &event;
	return mt_pf_cold_put(pf, &p);
}

int mt_pf_op_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	Perfetto__Protos__TrackEvent event = PERFETTO__PROTOS__TRACK_EVENT__INIT;
	char category[] = "montrace-bpf", *categories[] = {category}, name[PF_MAX_NAME + 1];
	struct pf *pf = pf_of(s);
	packet_t p;
	int r;

	r = tracer_track(pf, &time);
	if (r < 0)
		return r;
	mt_utf8_fix(name, sizeof(name), text.p ? text.p : "", text.len);
	event.has_type = 1;
	event.type = PERFETTO__PROTOS__TRACK_EVENT__TYPE__TYPE_INSTANT;
	event.has_track_uuid = 1;
	event.track_uuid = pf->tracer_uuid;
	event.name = name;
	event.n_categories = 1;
	event.categories = categories;
	packet_init(&p);
	packet_stamp(&p, time);
	p.data_case = DATA(TRACK_EVENT);
	p.track_event = &event;
	return mt_pf_cold_put(pf, &p);
}

/* On the thread's own sequence, which also says that packets are missing before this. */
static int thread_lost_instant(struct pf *pf, const struct mt_loss *l)
{
	struct mt_field extra[2] = {
		{.name = {"count", 5}, .value = {.type = MONTRACE_TYPE_U64, .u = l->count}},
		{.name = {"cause", 5},
		 .value = {.type = MONTRACE_TYPE_STR, .s = {l->cause, (uint32_t)strlen(l->cause)}}},
	};
	struct mt_instant i = {
		.thread = l->thread,
		.time = l->time,
		.name = {"events lost", 11},
		.nextra = l->cause[0] ? 2 : 1,
		.extra = extra,
	};
	struct pf_thread *th = mt_pf_thread(pf, l->thread);

	if (!th)
		return -ENOMEM;
	th->dropped = true;
	return mt_pf_op_instant(&pf->sink, &i);
}

int mt_pf_op_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct pf *pf = pf_of(s);
	uint64_t time = l->time;
	struct pf_process *pp;
	int r;

	if (l->count == 0)
		return pf->error;
	count_loss(pf, l);
	if (l->thread) {
		r = thread_lost_instant(pf, l);
	} else if (l->process) {
		pp = mt_pf_process(pf, l->process);
		r = pp ? put_lost_instant(pf, pp->uuid, l, time) : -ENOMEM;
	} else {
		r = tracer_track(pf, &time);
		if (r == 0)
			r = put_lost_instant(pf, pf->tracer_uuid, l, time);
	}
	if (r < 0)
		return r;
	return put_lost_records(pf, l->count);
}
