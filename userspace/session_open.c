/* SPDX-License-Identifier: BSD-3-Clause */
/* A session from nothing to a loaded program with rings, clocks and signals, and its end. What runs is in session.c. */
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
#include <unistd.h>

#include "procinfo.h"
#include "session_foreign.h"

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
	struct itimerspec tick = {{0, MT_TICK_MS * 1000000}, {0, MT_TICK_MS * 1000000}};
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
