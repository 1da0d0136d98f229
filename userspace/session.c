/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idea: hits wait in the ring; every 50 ms (or when the ring passes its fill mark) the loop takes them
 * all, in order, through decode and spans into the sink.
 *
 * Invariants
 *  L1  Life records (fork, exec, exit, names) come through a ring of their own (B5). Before a hit of time t is
 *      fed, all life records up to t are: the thread that made both made the life record first, so it is
 *      there when its hit is seen.
 *  L2  A life record is fed without a later hit only when the main ring was seen empty after that time (B2).
 *  L3  Probes go away first, then the ring is drained: what was counted as delivered is in the trace.
 *  L4  The loop never stays in the ring for more than a batch, so signals and timers come through under load.
 *
 * Example: thread 7 exits at t=90 after a hit at t=80; the loop wakes at 100: life {exit 90}; ring {80}. It
 * feeds 80, finds the ring empty, knows that nothing at or before 100 is missing, feeds the exit.
 *
 * Not here: which callsites are armed (attach), what spans mean (spans), what is written (sinks).
 */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "montrace.skel.h"
#include "procinfo.h"
#include "shared.h"

#define TICK_MS 50
#define PROGRESS_TICKS 10
#define BATCH 20000   /* records taken before signals and timers are looked at */
#define LIFE_BYTES 96 /* room for a life record */

struct target {
	uint32_t pid;
	int pidfd;
	bool exited; /* its end was fed */
	uint64_t start;
};

struct life {
	uint64_t time;
	uint32_t len;
	unsigned char data[LIFE_BYTES];
};

struct mt_session {
	struct mt_session_opts opts;
	struct montrace_bpf *skel;
	struct bpf_link *life_links[4];
	struct ring_buffer *main_rb, *life_rb;
	struct mt_features features;
	struct mt_attach *attach;
	struct mt_sites sites;
	struct mt_decode_stats decode;
	struct mt_spans *spans;
	struct mt_sink *sink;
	struct target *targets;
	uint32_t ntargets;
	int proc, epoll, signals, timer;
	struct life *pending; /* by time */
	uint32_t npending, cap_pending;
	uint32_t batch;
	uint64_t wakeups;
	int error; /* of feeding: sticks and ends the loop */
};

static uint64_t boot_ns(void)
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

static int say(struct mt_session_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int say(struct mt_session_err *err, int code, const char *fmt, ...)
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
		return say(err, -EPERM, "not permitted: tracing needs %s: run as root (sudo) or give these capabilities",
			   caps);
	if (!mt_features_btf())
		return say(err, -EOPNOTSUPP,
			   "kernel has no BTF (/sys/kernel/btf/vmlinux): needs 5.11 or newer with CONFIG_DEBUG_INFO_BTF");
	if (code == -EPERM || code == -EACCES)
		return say(err, -EPERM,
			   "the kernel refused the BPF program (%s): lockdown or a security module may forbid tracing",
			   strerror(-code));
	if (code == -ENOMEM)
		return say(err, code, "no memory for the BPF program and its ring: try a smaller --ring");
	return say(err, code,
		   "the kernel refused the BPF program (%s): needs 5.11 or newer with task storage and ring buffers",
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
	struct bpf_program *progs[] = {s->skel->progs.mt_fork, s->skel->progs.mt_exec, s->skel->progs.mt_rename,
				       s->skel->progs.mt_exit};
	unsigned i;

	for (i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		s->life_links[i] = bpf_program__attach(progs[i]);
		if (!s->life_links[i])
			return -errno;
	}
	return 0;
}

static int on_hit(void *ctx, void *data, size_t len);
static int on_life(void *ctx, void *data, size_t len);

static int open_rings(struct mt_session *s)
{
	s->main_rb = ring_buffer__new(bpf_map__fd(s->skel->maps.ring), on_hit, s, NULL);
	if (!s->main_rb)
		return -errno;
	s->life_rb = ring_buffer__new(bpf_map__fd(s->skel->maps.life), on_life, s, NULL);
	if (!s->life_rb)
		return -errno;
	return 0;
}

static int watch(struct mt_session *s, int fd, uint32_t what)
{
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = (uint64_t)(uint32_t)fd << 32 | what};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

enum { W_SIGNAL, W_TIMER, W_RING, W_PID };

static int open_loop(struct mt_session *s)
{
	struct itimerspec tick = {{0, TICK_MS * 1000000}, {0, TICK_MS * 1000000}};
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->signals < 0 || s->timer < 0 || timerfd_settime(s->timer, 0, &tick, NULL))
		return -errno;
	err = watch(s, s->signals, W_SIGNAL);
	if (!err)
		err = watch(s, s->timer, W_TIMER);
	if (!err)
		err = watch(s, ring_buffer__epoll_fd(s->main_rb), W_RING);
	if (!err)
		err = watch(s, ring_buffer__epoll_fd(s->life_rb), W_RING);
	return err;
}

static int open_attach(struct mt_session *s)
{
	struct mt_attach_opts o = {.single = s->skel->progs.mt_native_single, .sites = &s->sites};

	if (s->features.multi && !s->opts.per_site)
		o.multi = s->skel->progs.mt_native_multi;
	o.pid_filter = o.multi && s->features.multi_pid;
	o.nop5 = o.multi && s->features.nop5 && !s->opts.no_nop5;
	return mt_attach_new(&o, &s->attach);
}

/* Loads with uprobe_multi if the kernel has it, else without. */
static int load_any(struct mt_session *s, struct mt_session_err *err)
{
	int code = load(s, true, err);

	if (!code) {
		mt_features_probe(s->skel->progs.mt_trial,
				  (const volatile unsigned long long *)&s->skel->bss->trial_hits, &s->features);
		return 0;
	}
	if (code != -EINVAL && code != -EOPNOTSUPP)
		return explain_load(code, err);
	code = load(s, false, err);
	return code ? explain_load(code, err) : 0;
}

int mt_session_open(const struct mt_session_opts *opts, struct mt_session **ret_session, struct mt_session_err *err)
{
	struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
	struct mt_session *s;
	int code;

	err->text[0] = 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return say(err, -ENOMEM, "out of memory");
	s->opts = *opts;
	s->proc = s->epoll = s->signals = s->timer = -1;
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
	if (!code)
		code = open_rings(s);
	if (!code)
		code = open_loop(s);
	if (!code)
		code = open_attach(s);
	if (code) {
		say(err, code, "cannot set up tracing: %s", strerror(-code));
		goto fail;
	}
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
	for (i = 0; i < s->ntargets; i++)
		close(s->targets[i].pidfd);
	free(s->targets);
	free(s->pending);
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

/* ---- Targets -------------------------------------------------------------------------------------- */

struct mt_attach *mt_session_attach(struct mt_session *s)
{
	return s->attach;
}

const struct mt_features *mt_session_features(const struct mt_session *s)
{
	return &s->features;
}

static int explain_pid(int code, uint32_t pid, struct mt_session_err *err)
{
	if (code == -ESRCH)
		return say(err, code, "no process %u: it does not exist or has just ended", pid);
	if (code == -EACCES || code == -EPERM)
		return say(err, code, "not permitted to look at process %u: run as root (sudo)", pid);
	return say(err, code, "process %u: %s", pid, strerror(-code));
}

int mt_session_add(struct mt_session *s, uint32_t pid, struct mt_session_err *err)
{
	uint32_t flags = MT_TARGET_ON, tgid, i;
	struct target *t;
	int code, fd;

	code = mt_proc_tgid(s->proc, pid, &tgid);
	if (code)
		return explain_pid(code, pid, err);
	if (tgid != pid)
		return say(err, -EINVAL, "%u is a thread of process %u: use -p %u", pid, tgid, tgid);
	if (tgid == (uint32_t)getpid())
		return say(err, -EINVAL, "%u is montrace-bpf itself", pid);
	for (i = 0; i < s->ntargets; i++)
		if (s->targets[i].pid == pid)
			return 0;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return explain_pid(-errno, pid, err);
	code = mt_attach_scan(s->attach, pid, NULL);
	if (!code && bpf_map_update_elem(bpf_map__fd(s->skel->maps.targets), &pid, &flags, BPF_ANY))
		code = -errno;
	if (!code)
		code = watch(s, fd, W_PID);
	t = code ? NULL : reallocarray(s->targets, s->ntargets + 1, sizeof(*t));
	if (!t) {
		close(fd);
		return explain_pid(code ? code : -ENOMEM, pid, err);
	}
	s->targets = t;
	t[s->ntargets++] = (struct target){.pid = pid, .pidfd = fd};
	s->skel->data->epoch++;
	return 0;
}

int mt_session_arm(struct mt_session *s, const struct mt_filter *filter, struct mt_session_err *err)
{
	uint32_t i;
	int code;

	mt_attach_set_filter(s->attach, filter);
	for (i = 0; i < s->ntargets; i++) {
		code = mt_attach_arm(s->attach, s->targets[i].pid);
		if (code)
			return explain_pid(code, s->targets[i].pid, err);
	}
	return 0;
}

/* ---- Feeding -------------------------------------------------------------------------------------- */

static struct target *target_of(struct mt_session *s, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < s->ntargets; i++)
		if (s->targets[i].pid == pid)
			return &s->targets[i];
	return NULL;
}

static void feed(struct mt_session *s, const struct mt_event *ev)
{
	int err = mt_spans_feed(s->spans, ev);

	if (err && !s->error)
		s->error = err;
}

/* Tells spans who a process is: at the start and after an exec. */
static void feed_process(struct mt_session *s, uint32_t pid, enum mt_event_kind kind, uint64_t time)
{
	struct mt_event ev = {.kind = kind, .time = time, .tgid = pid, .tid = pid};
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

static int on_event(void *ctx, const struct mt_event *ev)
{
	struct mt_session *s = ctx;
	struct target *t;

	if (ev->kind == MT_EV_PROCESS_EXIT) {
		t = target_of(s, ev->tgid);
		if (t)
			t->exited = true;
	}
	feed(s, ev);
	if (ev->kind == MT_EV_PROCESS_EXEC && target_of(s, ev->tgid)) {
		/* Another image: its files are new, the old ones' probes are gone with the old memory. */
		feed_process(s, ev->tgid, MT_EV_PROCESS, ev->time);
		if (!mt_attach_scan(s->attach, ev->tgid, NULL))
			mt_attach_arm(s->attach, ev->tgid);
	}
	return 0;
}

static int on_life(void *ctx, void *data, size_t len)
{
	struct mt_session *s = ctx;
	struct life *p;
	uint64_t time;
	uint32_t tgid, i;
	uint8_t kind;

	if (len > LIFE_BYTES || mt_decode_peek(data, len, &kind, &tgid, &time))
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
	for (i = s->npending; i && s->pending[i - 1].time > time; i--)
		s->pending[i] = s->pending[i - 1];
	s->pending[i].time = time;
	s->pending[i].len = (uint32_t)len;
	memcpy(s->pending[i].data, data, len);
	s->npending++;
	return 0;
}

static void feed_life(struct mt_session *s, uint64_t until)
{
	uint32_t i;

	for (i = 0; i < s->npending && s->pending[i].time <= until; i++)
		mt_decode_record(&s->sites, &s->decode, s->pending[i].data, s->pending[i].len, on_event, s);
	if (!i)
		return;
	s->npending -= i;
	memmove(s->pending, s->pending + i, s->npending * sizeof(*s->pending));
}

static int on_hit(void *ctx, void *data, size_t len)
{
	struct mt_session *s = ctx;
	uint64_t time;
	uint32_t tgid;
	uint8_t kind;

	if (ring__avail_data_size(ring_buffer__ring(s->life_rb, 0)))
		ring_buffer__consume(s->life_rb);
	if (s->npending && !mt_decode_peek(data, len, &kind, &tgid, &time))
		feed_life(s, time); /* L1 */
	mt_decode_record(&s->sites, &s->decode, data, len, on_event, s);
	return ++s->batch >= BATCH || s->error ? -EAGAIN : 0; /* L4 */
}

/* Takes a batch. True if there was more than that. */
static bool drain(struct mt_session *s)
{
	uint64_t now = boot_ns();

	s->batch = 0;
	ring_buffer__consume(s->main_rb);
	if (ring__avail_data_size(ring_buffer__ring(s->main_rb, 0)))
		return s->batch >= BATCH;
	s->skel->bss->woken = 0;
	ring_buffer__consume(s->life_rb);
	feed_life(s, now); /* L2 */
	return false;
}

/* ---- The loop ------------------------------------------------------------------------------------- */

static uint64_t lost_hits(const struct mt_session *s)
{
	const volatile __u64 *l = s->skel->bss->lost;

	return l[MT_LOST_RING] + l[MT_LOST_READ] + l[MT_LOST_SIZE];
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
	st->ring_bytes = s->opts.ring_bytes;
}

/* A target's descriptor says that it is gone. If its exit record was lost, one is made up. */
static void target_gone(struct mt_session *s, struct target *t)
{
	struct mt_event ev = {.kind = MT_EV_PROCESS_EXIT, .time = boot_ns(), .tgid = t->pid, .tid = t->pid};

	epoll_ctl(s->epoll, EPOLL_CTL_DEL, t->pidfd, NULL);
	while (drain(s) && !s->error)
		;
	if (!t->exited)
		feed(s, &ev);
	t->exited = true;
	mt_attach_drop(s->attach, t->pid);
}

static bool all_gone(const struct mt_session *s)
{
	uint32_t i;

	for (i = 0; i < s->ntargets; i++)
		if (!s->targets[i].exited)
			return false;
	return true;
}

static void tick(struct mt_session *s, const struct mt_run_opts *o, uint64_t count)
{
	struct mt_session_stats st;
	int err = o->sink->ops->flush ? o->sink->ops->flush(o->sink, boot_ns()) : 0;

	if (err && !s->error)
		s->error = err;
	if (o->progress && count % PROGRESS_TICKS == 0) {
		mt_session_stats(s, &st);
		o->progress(o->progress_ctx, &st);
	}
}

static enum mt_stop one_round(struct mt_session *s, const struct mt_run_opts *o, uint64_t *ticks, bool more)
{
	struct epoll_event ev[16];
	enum mt_stop stop = MT_STOP_NONE;
	struct signalfd_siginfo si;
	uint64_t expired;
	int n, i;

	n = epoll_wait(s->epoll, ev, 16, more ? 0 : -1);
	s->wakeups++;
	for (i = 0; i < n; i++) {
		int fd = (int)(ev[i].data.u64 >> 32);
		uint32_t k;

		switch ((uint32_t)ev[i].data.u64) {
		case W_SIGNAL:
			if (read(fd, &si, sizeof(si)) == sizeof(si))
				stop = MT_STOP_SIGNAL;
			break;
		case W_TIMER:
			if (read(fd, &expired, sizeof(expired)) == sizeof(expired))
				tick(s, o, ++*ticks);
			break;
		case W_PID:
			for (k = 0; k < s->ntargets; k++)
				if (s->targets[k].pidfd == fd)
					target_gone(s, &s->targets[k]);
			break;
		}
	}
	if (!stop && all_gone(s))
		stop = MT_STOP_GONE;
	return stop;
}

/* L3: probes away, everything out of the rings, losses told, slices ended. */
static void finish(struct mt_session *s)
{
	int err;

	mt_attach_detach(s->attach);
	while (drain(s) && !s->error)
		;
	ring_buffer__consume(s->life_rb);
	feed_life(s, UINT64_MAX);
	err = mt_spans_lost_total(s->spans, lost_hits(s), boot_ns(),
				  s->skel->bss->lost[MT_LOST_RING] ? "ring full" : "unreadable record");
	if (!err)
		err = mt_spans_finish(s->spans, boot_ns());
	if (err && !s->error)
		s->error = err;
}

int mt_session_run(struct mt_session *s, const struct mt_run_opts *o, enum mt_stop *ret_stop)
{
	uint64_t start = boot_ns(), ticks = 0;
	enum mt_stop stop = MT_STOP_NONE;
	bool more = false;
	uint32_t i;
	int err;

	err = mt_spans_new(o->spans, o->sink, &s->spans);
	if (err)
		return err;
	s->sink = o->sink;
	for (i = 0; i < s->ntargets; i++)
		feed_process(s, s->targets[i].pid, MT_EV_PROCESS, start);
	while (!stop) {
		stop = one_round(s, o, &ticks, more);
		if (s->error)
			stop = MT_STOP_SINK;
		else
			more = drain(s);
		if (!stop && o->duration_ms && boot_ns() - start >= o->duration_ms * 1000000u)
			stop = MT_STOP_DURATION;
	}
	finish(s);
	*ret_stop = stop;
	return s->error;
}
