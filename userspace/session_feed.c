/* SPDX-License-Identifier: BSD-3-Clause */
/* From the rings through decode into spans, in the right order (L1, L2, L4 of session.c). */
#include "session_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procinfo.h"

#define BATCH 20000 /* records taken before signals and timers are looked at */

static void feed(struct mt_session *s, const struct mt_event *ev)
{
	int err = mt_spans_feed(s->spans, ev);

	if (err && !s->error)
		s->error = err;
}

void mt_session_feed_process(struct mt_session *s, uint32_t pid, uint64_t time)
{
	struct mt_event ev = {.kind = MT_EV_PROCESS, .time = time, .tgid = pid, .tid = pid};
	struct mt_proc_info *info = malloc(sizeof(*info));
	int dir;

	if (info && !mt_proc_pid(s->proc, pid, &dir)) {
		if (!mt_proc_info(dir, info)) {
			ev.process.start = info->start;
			ev.process.ppid = info->ppid;
			ev.process.uid = info->uid;
			ev.process.name = (struct mt_str){info->name, (uint32_t)strlen(info->name)};
			ev.process.cmdline = (struct mt_str){info->cmdline, (uint32_t)strlen(info->cmdline)};
			feed(s, &ev);
		}
		close(dir);
	}
	free(info);
}

void mt_session_feed_exit(struct mt_session *s, uint32_t pid)
{
	struct mt_event ev = {
		.kind = MT_EV_PROCESS_EXIT, .time = mt_session_boot_ns(), .tgid = pid, .tid = pid};

	feed(s, &ev);
}

void mt_session_feed_detach(struct mt_session *s, uint32_t pid, uint64_t time)
{
	struct mt_event ev = {.kind = MT_EV_DETACH, .time = time, .tgid = pid, .tid = pid};

	feed(s, &ev);
}

/* Life of processes changes the targets; everything goes to spans, but for those who are none. */
static int on_event(void *ctx, const struct mt_event *ev)
{
	struct mt_session *s = ctx;
	struct target *t;

	switch (ev->kind) {
	case MT_EV_PROCESS_FORK:
		t = mt_session_target(s, ev->tgid);
		if (!t || !t->follow)
			return 0;
		mt_session_target_found(s, ev->fork.child, true);
		feed(s, ev);
		return 0;
	case MT_EV_THREAD_COMM:
		if (!mt_session_target(s, ev->tgid))
			return 0;
		break;
	case MT_EV_PROCESS_EXEC:
		if (ev->process.traced)
			feed(s, ev);
		mt_session_target_exec(s, ev);
		return 0;
	case MT_EV_PROCESS_EXIT:
		feed(s, ev);
		mt_session_target_gone(s, ev->tgid);
		return 0;
	default:
		break;
	}
	feed(s, ev);
	return 0;
}

/* ---- Life records in waiting ---------------------------------------------------------------------- */

static void pending_mark(struct mt_session *s, uint32_t id)
{
	s->pending_bits[id % PENDING_BITS / 64] |= 1ull << id % 64;
}

static bool pending_marked(const struct mt_session *s, uint32_t id)
{
	return s->pending_bits[id % PENDING_BITS / 64] >> id % 64 & 1;
}

static int on_life(void *ctx, void *data, size_t len)
{
	struct mt_session *s = ctx;
	struct life l, *p;
	uint32_t i;

	if (len > LIFE_BYTES || mt_decode_life(data, len, &l.h))
		return 0;
	if (s->npending == s->cap_pending) {
		uint32_t want = s->cap_pending ? s->cap_pending * 2 : 256;

		p = reallocarray(s->pending, want, sizeof(*p));
		if (!p) {
			s->error = s->error ? s->error : -ENOMEM;
			return 0;
		}
		s->pending = p;
		s->cap_pending = want;
	}
	l.len = (uint32_t)len;
	memcpy(l.data, data, len);
	for (i = s->npending; i && s->pending[i - 1].h.time > l.h.time; i--)
		s->pending[i] = s->pending[i - 1];
	s->pending[i] = l;
	s->npending++;
	pending_mark(s, l.h.tid);
	pending_mark(s, l.h.child);
	return 0;
}

/*
 * Feeds what is pending up to a time: all, or (tid not 0) what the thread tid itself did, and the birth of
 * process tgid. If it did an exec, the ends of the process's other threads come first: the kernel waited for them,
 * so their hits are read already.
 */
static void feed_life(struct mt_session *s, uint64_t until, uint32_t tid, uint32_t tgid)
{
	uint64_t exec = 0;
	uint32_t i, keep = 0;

	for (i = 0; tid && i < s->npending; i++)
		if (s->pending[i].h.exec && s->pending[i].h.tid == tid && s->pending[i].h.time <= until)
			exec = s->pending[i].h.time;
	for (i = 0; i < s->npending; i++) {
		struct life *l = &s->pending[i];

		if (l->h.time <= until && (!tid || l->h.tid == tid || l->h.child == tgid ||
					   (l->h.tgid == tgid && l->h.time <= exec)))
			mt_decode_record(&s->sites, &s->decode, l->data, l->len, on_event, s);
		else
			s->pending[keep++] = *l;
	}
	s->npending = keep;
	memset(s->pending_bits, 0, sizeof(s->pending_bits));
	for (i = 0; i < keep; i++) {
		pending_mark(s, s->pending[i].h.tid);
		pending_mark(s, s->pending[i].h.child);
	}
}

static int on_hit(void *ctx, void *data, size_t len)
{
	struct mt_session *s = ctx;
	uint32_t tid, tgid;
	uint64_t time;

	if (ring__avail_data_size(ring_buffer__ring(s->life_rb, 0)))
		ring_buffer__consume(s->life_rb);
	if (s->npending && !mt_decode_who(data, len, &time, &tgid, &tid) &&
	    (pending_marked(s, tid) || pending_marked(s, tgid)))
		feed_life(s, time, tid, tgid); /* L1 */
	mt_decode_record(&s->sites, &s->decode, data, len, on_event, s);
	return ++s->batch >= BATCH || s->error ? -EAGAIN : 0; /* L4 */
}

int mt_session_open_rings(struct mt_session *s)
{
	s->main_rb = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), on_hit, s, NULL);
	if (!s->main_rb)
		return -errno;
	s->life_rb = ring_buffer__new(bpf_map__fd(s->skel->maps.life), on_life, s, NULL);
	return s->life_rb ? 0 : -errno;
}

bool mt_session_drain(struct mt_session *s)
{
	struct ring *main_ring = ring_buffer__ring(s->main_rb, 0);

	if (!s->mark_time) {
		s->mark_time = mt_session_boot_ns();
		s->mark_pos = ring__producer_pos(main_ring);
	}
	s->batch = 0;
	ring_buffer__consume(s->main_rb);
	if (ring__consumer_pos(main_ring) >= s->mark_pos) {
		ring_buffer__consume(s->life_rb);
		feed_life(s, s->mark_time, 0, 0); /* L2 */
		s->fed_time = s->mark_time;
		s->mark_time = 0;
	}
	if (ring__avail_data_size(main_ring))
		return s->batch >= BATCH;
	s->skel->bss->woken = 0;
	return false;
}

void mt_session_drain_all(struct mt_session *s)
{
	while (mt_session_drain(s) && !s->error)
		;
	ring_buffer__consume(s->life_rb);
	feed_life(s, UINT64_MAX, 0, 0);
}
