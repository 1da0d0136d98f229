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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procinfo.h"
#include "session_foreign.h"

#define TICK_MS 50
#define PROGRESS_TICKS 10

uint64_t mt_session_boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- Opening -------------------------------------------------------------------------------------- */

static int quiet_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0; /* what failed is told once, by the caller, in the user's words */
}

static uint32_t ring_size(uint64_t want)
{
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);

	if (!want)
		want = MT_RING_DEFAULT;
	while (size < want && size < MT_RING_MAX)
		size *= 2;
	return (uint32_t)size;
}

int mt_session_say(struct mt_session_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return code;
}

static int explain_load(int code, struct mt_session_err *err)
{
	char caps[128];

	if (mt_features_missing_caps(caps, sizeof(caps)))
		return mt_session_say(
			err, -EPERM,
			"not permitted: tracing needs %s: run as root (sudo) or give these capabilities",
			caps);
	if (!mt_features_btf())
		return mt_session_say(err, -EOPNOTSUPP,
				      "kernel has no BTF (/sys/kernel/btf/vmlinux): needs 5.15 or newer with "
				      "CONFIG_DEBUG_INFO_BTF");
	if (mt_features_lockdown())
		return mt_session_say(err, -EPERM,
				      "kernel lockdown (confidentiality) forbids tracing: see "
				      "/sys/kernel/security/lockdown");
	if (code == -EPERM)
		return mt_session_say(err, -EPERM,
				      "the kernel refused the BPF program (%s): a security module may forbid "
				      "tracing",
				      strerror(-code));
	if (code == -ENOMEM)
		return mt_session_say(err, code,
				      "no memory for the BPF program and its ring: try a smaller --ring");
	return mt_session_say(err, code,
			      "the kernel refused the BPF program (%s): needs 5.15 or newer with task "
			      "storage and ring buffers",
			      strerror(-code));
}

static int load(struct mt_session *s, bool with_multi, struct mt_session_err *err)
{
	uint32_t size = ring_size(s->opts.ring_bytes);
	int code;

	s->skel = montrace_bpf__open();
	if (!s->skel)
		return explain_load(-errno, err);
	bpf_map__set_max_entries(s->skel->maps.ring, size);
	s->skel->rodata->fill_mark = size / 4;
	s->opts.ring_bytes = size;
	bpf_program__set_autoload(s->skel->progs.mt_native_multi, with_multi);
	bpf_program__set_autoload(s->skel->progs.mt_trial, with_multi);
	mt_session_foreign_load(s->skel, with_multi);
	code = montrace_bpf__load(s->skel);
	if (code) {
		montrace_bpf__destroy(s->skel);
		s->skel = NULL;
		return code;
	}
	return 0;
}

static int attach_life(struct mt_session *s)
{
	struct bpf_program *progs[] = {s->skel->progs.mt_fork, s->skel->progs.mt_exec,
				       s->skel->progs.mt_rename, s->skel->progs.mt_exit};
	unsigned i;

	for (i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		s->life_links[i] = bpf_program__attach(progs[i]);
		if (!s->life_links[i])
			return -errno;
	}
	return 0;
}

int mt_session_watch_fd(struct mt_session *s, int fd, uint32_t what, uint32_t data)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)data << 32 | what};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_loop(struct mt_session *s)
{
	struct itimerspec tick = {{0, TICK_MS * 1000000}, {0, TICK_MS * 1000000}};
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR2);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->signals < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &tick, NULL))
		return -errno;
	err = mt_session_watch_fd(s, s->signals, W_SIGNAL, 0);
	if (!err)
		err = mt_session_watch_fd(s, s->timer, W_TIMER, 0);
	if (!err)
		err = mt_session_watch_fd(s, ring_buffer__epoll_fd(s->main_rb), W_RING, 0);
	if (!err)
		err = mt_session_watch_fd(s, ring_buffer__epoll_fd(s->life_rb), W_RING, 0);
	return err;
}

/* Tells when targets load libraries. Without it they are looked at from time to time. */
static void open_watch(struct mt_session *s)
{
	int i;

	if (mt_watch_open(&s->watch))
		return;
	for (i = 0; i < mt_watch_nfds(s->watch); i++) {
		if (mt_session_watch_fd(s, mt_watch_fd(s->watch, i), W_MAPS, 0)) {
			mt_watch_close(s->watch);
			s->watch = NULL;
			return;
		}
	}
}

static int open_attach(struct mt_session *s)
{
	struct mt_attach_opts o = {.single = s->skel->progs.mt_native_single, .sites = &s->sites};

	if (s->features.multi && !s->opts.per_site)
		o.multi = s->skel->progs.mt_native_multi;
	o.pid_filter = o.multi && s->features.multi_pid;
	o.everybody = s->opts.everybody;
	o.nop5_call = s->features.nop5_call;
	o.nop5 = o.multi && (s->opts.nop5 == MT_NOP5_AUTO     ? s->features.nop5
			     : s->opts.nop5 == MT_NOP5_ALWAYS ? s->features.nop5_call
							      : false);
	mt_session_foreign_attach(s->skel, &o);
	return mt_attach_new(&o, &s->attach);
}

/* Loads with uprobe_multi if the kernel has it, else without. */
static int load_any(struct mt_session *s, struct mt_session_err *err)
{
	int code = load(s, true, err);

	if (!code) {
		mt_features_probe(s->skel->progs.mt_trial,
				  (const volatile unsigned long long *)&s->skel->bss->trial_hits,
				  &s->features);
		return 0;
	}
	if (code != -EINVAL && code != -EOPNOTSUPP)
		return explain_load(code, err);
	code = load(s, false, err);
	return code ? explain_load(code, err) : 0;
}

int mt_session_open(const struct mt_session_opts *opts, struct mt_session **ret_session,
		    struct mt_session_err *err)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct mt_session *s;
	bool initial;
	int code;

	err->text[0] = 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return mt_session_say(err, -ENOMEM, "out of memory");
	s->opts = *opts;
	s->proc = s->epoll = s->signals = s->timer = s->release = s->alive = -1;
	libbpf_set_print(quiet_print);
	setrlimit(RLIMIT_MEMLOCK, &all); /* 5.10 and older charge maps to it; no harm if refused */
	code = mt_features_missing_caps(err->text, sizeof(err->text)) ? explain_load(-EPERM, err) : 0;
	if (code)
		goto fail;
	err->text[0] = 0;
	code = load_any(s, err);
	if (code)
		goto fail;
	code = attach_life(s);
	if (!code)
		code = mt_proc_open(NULL, &s->proc);
	if (!code && !mt_proc_is_initial(s->proc, &initial) && !initial) {
		code = mt_session_say(
			err, -EXDEV,
			"in a pid namespace of its own, where processes have other numbers than "
			"the kernel's: run it in the host's (--pid=host, hostPID)");
		goto fail;
	}
	if (!code)
		code = mt_session_open_rings(s);
	if (!code)
		code = open_loop(s);
	if (!code)
		code = open_attach(s);
	if (code) {
		mt_session_say(err, code, "cannot set up tracing: %s", strerror(-code));
		goto fail;
	}
	open_watch(s);
	*ret_session = s;
	return 0;
fail:
	mt_session_close(s);
	return code;
}

void mt_session_close(struct mt_session *s)
{
	uint32_t i;

	if (!s)
		return;
	mt_attach_detach(s->attach);
	for (i = 0; i < sizeof(s->life_links) / sizeof(s->life_links[0]); i++)
		bpf_link__destroy(s->life_links[i]);
	mt_spans_free(s->spans);
	ring_buffer__free(s->main_rb);
	ring_buffer__free(s->life_rb);
	mt_attach_free(s->attach);
	mt_sites_free(&s->sites);
	montrace_bpf__destroy(s->skel);
	mt_session_free_targets(s);
	mt_watch_close(s->watch);
	free(s->pending);
	if (s->release >= 0)
		close(s->release);
	if (s->alive >= 0) {
		close(s->alive);
		waitpid(s->guard, NULL, 0);
	}
	if (s->proc >= 0)
		close(s->proc);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->signals >= 0)
		close(s->signals);
	if (s->timer >= 0)
		close(s->timer);
	free(s);
}

struct mt_attach *mt_session_attach(struct mt_session *s)
{
	return s->attach;
}

const struct mt_features *mt_session_features(const struct mt_session *s)
{
	return &s->features;
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
		err = o->sink->ops->flush(o->sink, now);
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
