/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idea: hits wait in the ring; every 50 ms (or when the ring passes its fill mark) the loop takes them
 * all, in order, through decode and spans into the sink.
 *
 * Invariants
 *  L1  Life records (fork, exec, exit, names) come through a ring of their own (B5). Before a hit is fed, what
 *      its own thread did before (exec, rename) and the birth of its process are: the same thread made both, so
 *      the life record is there when the hit is seen.
 *  L2  All other life records up to a time are fed when the main ring was read up to where it ended at that
 *      time (B2). Not earlier: two hits can lie in the ring in one order and have their times in the other, and
 *      a thread must not be buried while a hit of it is still to come.
 *  L3  Probes go away first, then the ring is drained: what was counted as delivered is in the trace.
 *  L4  The loop never stays in the ring for more than a batch, so signals and timers come through under load.
 *
 * Example: thread 7 exits at t=90 after a hit at t=80; the loop wakes at 100 and notes the end of the ring. It
 * feeds 80, is at that end, knows that nothing at or before 100 is missing, feeds the exit.
 *
 * Not here: which callsites are armed (attach), what spans mean (spans), what is written (sinks).
 */
#include "session_int.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_TICKS 10

uint64_t mt_session_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct mt_attach *mt_session_attach(struct mt_session *s)
{
	return s->attach;
}

uint32_t mt_session_ntargets(const struct mt_session *s)
{
	return s->ntargets;
}

uint32_t mt_session_targets(const struct mt_session *s, uint32_t *ret_pids, uint32_t cap)
{
	const struct target *t;
	uint32_t i, n = 0;

	for (i = 0; i < TARGET_SLOTS; i++)
		for (t = s->targets[i]; t && n < cap; t = t->next)
			ret_pids[n++] = t->pid;
	return n;
}

bool mt_session_is_target(const struct mt_session *s, uint32_t pid)
{
	const struct target *t;

	for (t = s->targets[pid % TARGET_SLOTS]; t; t = t->next)
		if (t->pid == pid)
			return true;
	return false;
}

int mt_session_arm(struct mt_session *s, const struct mt_filter *filter, struct mt_session_err *err)
{
	struct target *t;
	uint32_t i;
	int code;

	mt_attach_set_filter(s->attach, filter);
	code = mt_attach_arm(s->attach, 0); /* files that are to be armed for everybody */
	for (i = 0; i < TARGET_SLOTS && !code; i++) {
		for (t = s->targets[i]; t && !code; t = t->next) {
			code = mt_attach_arm(s->attach, t->pid);
			if (code == -ESRCH)
				code = 0; /* it has just ended; the loop will hear of it */
		}
	}
	return code ? mt_session_say(err, code, "cannot arm: %s", strerror(-code)) : 0;
}

/* ---- The loop ------------------------------------------------------------------------------------- */

static uint64_t lost_hits(const struct mt_session *s)
{
	const volatile __u64 *l = s->skel->bss->lost;

	return l[MT_LOST_RING] + l[MT_LOST_READ] + l[MT_LOST_SIZE] + l[MT_LOST_STATE];
}

void mt_session_stats(struct mt_session *s, struct mt_session_stats *st)
{
	unsigned i;

	memset(st, 0, sizeof(*st));
	st->spans = s->spans ? mt_spans_stats(s->spans) : NULL;
	st->decode = &s->decode;
	for (i = 0; i < MT_LOST_CAUSES; i++)
		st->lost[i] = *(volatile __u64 *)&s->skel->bss->lost[i];
	st->lost_total = lost_hits(s);
	st->wakeups = s->wakeups;
	st->detach_ns = s->detach_ns;
	st->ring_bytes = s->opts.ring_bytes;
	st->targets = s->ntargets;
	st->targets_ever = s->ever;
}

static void call(struct mt_session *s, const struct mt_run_opts *o,
		 int (*fn)(void *ctx, struct mt_spans *spans, uint64_t now))
{
	int err = fn ? fn(o->ctx, s->spans, mt_session_boot_ns()) : 0;

	if (err && !s->error)
		s->error = err;
}

/* A target's descriptor says that it is gone. If its exit record was lost, one is made up. */
static void pid_gone(struct mt_session *s, uint32_t pid)
{
	/* Up to now: an earlier mark, still waited for, may be from before its end. */
	s->mark_time = 0;
	do
		mt_session_drain(s);
	while (s->mark_time && !s->error);
	if (!mt_session_target(s, pid))
		return;
	mt_session_feed_exit(s, pid);
	mt_session_target_gone(s, pid);
}

/* Life records were lost: targets without a descriptor may be gone unheard. */
static void look_for_gone(struct mt_session *s)
{
	struct target *t, *next;
	uint32_t i;

	for (i = 0; i < TARGET_SLOTS; i++) {
		for (t = s->targets[i]; t; t = next) {
			next = t->next;
			if (t->pidfd < 0 && kill((pid_t)t->pid, 0) && errno == ESRCH)
				pid_gone(s, t->pid);
		}
	}
}

static void tick(struct mt_session *s, const struct mt_run_opts *o, uint64_t count)
{
	struct mt_session_stats st;
	uint64_t now = mt_session_boot_ns();
	int err = 0;

	if (s->watch) /* it wakes the loop only when it fills up */
		mt_session_maps_changed(s);
	mt_session_rescan(s, count);
	if (count % 20 == 0 && s->skel->bss->lost[MT_LOST_LIFE])
		look_for_gone(s);
	if (o->on_tick)
		err = o->on_tick(o->ctx, s->spans, now);
	if (!err && o->sink->ops->flush)
		err = o->sink->ops->flush(o->sink, s->fed_time);
	if (err && !s->error)
		s->error = err;
	if (o->progress && count % PROGRESS_TICKS == 0) {
		mt_session_stats(s, &st);
		o->progress(o->ctx, &st);
	}
}

static enum mt_stop one_round(struct mt_session *s, const struct mt_run_opts *o, uint64_t *ticks, bool more)
{
	struct epoll_event ev[16];
	enum mt_stop stop = MT_STOP_NONE;
	struct signalfd_siginfo si;
	uint64_t expired;
	bool due = false, asked = false, usr2 = false;
	int n, i;

	n = epoll_wait(s->epoll, ev, 16, more ? 0 : -1);
	s->wakeups++;
	for (i = 0; i < n; i++) {
		switch ((uint32_t)ev[i].data.u64) {
		case W_SIGNAL:
			if (read(s->signals, &si, sizeof(si)) != sizeof(si))
				break;
			if (si.ssi_signo == SIGUSR2)
				usr2 = true;
			else
				stop = MT_STOP_SIGNAL;
			break;
		case W_TIMER:
			due = read(s->timer, &expired, sizeof(expired)) == sizeof(expired);
			break;
		case W_PID:
			pid_gone(s, (uint32_t)(ev[i].data.u64 >> 32));
			break;
		case W_MAPS:
			mt_session_maps_changed(s);
			mt_session_rescan(s, 1);
			break;
		case W_FD:
			asked = true;
			break;
		}
	}
	if (due || asked || usr2) /* what came before goes out with it */
		mt_session_drain(s);
	if (usr2)
		call(s, o, o->on_usr2);
	if (asked)
		call(s, o, o->on_fd);
	if (due)
		tick(s, o, ++*ticks);
	if (!stop && !s->ntargets && !s->open_ended)
		stop = MT_STOP_GONE;
	return stop;
}

/* L3: probes away, everything out of the rings, losses told, slices ended. */
static void finish(struct mt_session *s, const struct mt_run_opts *o)
{
	const volatile __u64 *lost = s->skel->bss->lost;
	uint64_t now = mt_session_boot_ns();
	int err;

	mt_attach_detach(s->attach);
	s->detach_ns = mt_session_boot_ns() - now;
	mt_session_drain_all(s);
	now = mt_session_boot_ns();
	err = mt_spans_lost_total(s->spans, lost_hits(s), now,
				  lost[MT_LOST_RING] ? "ring full" : "unreadable record");
	if (err && !s->error)
		s->error = err;
	call(s, o, o->on_end);
	err = mt_spans_finish(s->spans, now);
	if (err && !s->error)
		s->error = err;
}

static void begin(struct mt_session *s)
{
	uint64_t now = mt_session_boot_ns();
	struct target *t;
	uint32_t i;

	for (i = 0; i < TARGET_SLOTS; i++)
		for (t = s->targets[i]; t; t = t->next)
			mt_session_feed_process(s, t->pid, now);
	if (s->release >= 0) {
		if (write(s->release, "g", 1) != 1)
			s->error = -errno;
		close(s->release);
		s->release = -1;
	}
}

int mt_session_run(struct mt_session *s, const struct mt_run_opts *o, enum mt_stop *ret_stop)
{
	uint64_t start = mt_session_boot_ns(), ticks = 0;
	enum mt_stop stop = MT_STOP_NONE;
	bool more = false;
	int err;

	err = mt_spans_new(o->spans, o->sink, &s->spans);
	if (err)
		return err;
	if (o->on_fd)
		err = mt_session_watch_fd(s, o->fd, W_FD, 0);
	if (err)
		return err;
	begin(s);
	s->fed_time = start;
	while (!stop) {
		stop = one_round(s, o, &ticks, more);
		if (s->error)
			stop = MT_STOP_SINK;
		else
			more = mt_session_drain(s);
		if (!stop && o->duration_ms && mt_session_boot_ns() - start >= o->duration_ms * 1000000u)
			stop = MT_STOP_DURATION;
	}
	finish(s, o);
	*ret_stop = stop;
	return s->error;
}
