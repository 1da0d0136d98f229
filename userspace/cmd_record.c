/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of things: decide what to trace, open the trace, only then touch the target. */
#include "record_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "features.h"
#include "pftrace.h"
#include "record_flight.h"
#include "tracedir.h"
#include "tracefiles.h"

/* Ring of a flight recorder without --ring: its memory is promised to be little more than its window. */
#define FLIGHT_RING (4u << 20)

uint64_t mt_record_clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void mt_record_clocks(void *ctx, struct mt_clocks *c)
{
	(void)ctx;
	c->boot = mt_record_clock_ns(CLOCK_BOOTTIME);
	c->mono = mt_record_clock_ns(CLOCK_MONOTONIC);
	c->real = mt_record_clock_ns(CLOCK_REALTIME);
}

/* Hex digits of /proc/sys/kernel/random/boot_id; zeros if unreadable: then uuids are less unique, no more. */
static void read_boot_id(unsigned char id[16])
{
	char text[64] = "";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	unsigned n = 0, i, digit;

	memset(id, 0, 16);
	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	for (i = 0; text[i] && n < 32; i++) {
		if (sscanf((char[]){text[i], 0}, "%1x", &digit) != 1)
			continue;
		id[n / 2] |= (unsigned char)(digit << (n % 2 ? 0 : 4));
		n++;
	}
}

/* ---- Which callsites ------------------------------------------------------------------------------ */

static void decide_mode(struct record *r)
{
	r->mode = MT_MODE_USER;
	if (r->o->mode_given) {
		r->mode = r->o->mode;
		r->mode_asked = true;
	} else if (r->env->trace_mode) {
		if (mt_mode_parse(r->env->trace_mode, &r->mode))
			mt_log_warn(r->log, "PERFETTO_TRACE_MODE: unknown trace mode: %s: using user",
				    r->env->trace_mode);
		else
			r->mode_asked = true;
	}
}

static int make_filter(struct record *r, enum mt_mode mode)
{
	struct mt_filter_opts fo = {
		.mode = mode,
		.user_prefixes = r->o->user_prefixes,
		.n_user_prefixes = r->o->n_user_prefixes,
		.directives = r->o->filter ? r->o->filter : r->env->filter,
		.compat_prefix = r->o->compat_prefix,
	};
	const char *why = "";
	size_t pos = 0;
	int err;

	mt_filter_free(r->filter);
	r->filter = NULL;
	err = mt_filter_new(&fo, &r->filter, &pos, &why);
	if (err == -EINVAL)
		mt_log_error(r->log, "%s: %s at `%s`", r->o->filter ? "--filter" : "MONTRACE_FILTER", why,
			     fo.directives + pos);
	else if (err)
		mt_log_error(r->log, "filter: %s", strerror(-err));
	return err;
}

static int failed(struct record *r, const struct mt_session_err *se, int err)
{
	if (err)
		mt_log_error(r->log, "%s", se->text);
	return err;
}

/* A file that is not loaded yet, for all whom we know. */
static int add_library(struct record *r, const char *path)
{
	struct mt_attach *a = mt_session_attach(r->session);
	int err = 0;
	uint32_t i;

	for (i = 0; i < r->o->npids && !err; i++)
		err = mt_attach_scan_library(a, path, r->o->pids[i]);
	if (!err && (r->child || !r->o->npids))
		err = mt_attach_scan_library(a, path, r->child);
	if (err)
		mt_log_error(r->log, "--library %s: %s", path,
			     err == -ENOEXEC ? "not an executable ELF file" : strerror(-err));
	return err;
}

static int add_targets(struct record *r)
{
	const struct mt_options *o = r->o;
	struct mt_session_err se = {""};
	uint32_t i;
	int err = 0;

	for (i = 0; i < o->npids && !err; i++)
		err = mt_session_add(r->session, o->pids[i], &se);
	for (i = 0; i < o->nbinaries && !err; i++)
		err = mt_session_add_file(r->session, o->binaries[i], &se);
	for (i = 0; i < o->ncomms && !err; i++)
		err = mt_session_add_comm(r->session, o->comms[i], &se);
	if (o->argv && !err)
		err = mt_session_spawn(r->session, o->argv, &r->child, &se);
	if (!err && o->hold) {
		err = mt_features_may_kill() ? mt_session_hold(r->session) : -EPERM;
		if (err)
			snprintf(se.text, sizeof(se.text), "--hold: %s",
				 err == -EPERM ? "needs CAP_KILL, to let go whom it stops" : strerror(-err));
	}
	if (err)
		return failed(r, &se, err);
	for (i = 0; i < o->nlibraries && !err; i++)
		err = add_library(r, o->libraries[i]);
	return err;
}

const char *mt_record_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* What is asked for is there already, or never. */
static bool only_pids(const struct record *r)
{
	return !r->o->argv && !r->o->nbinaries && !r->o->ncomms;
}

/* The default mode shows all of programs that have no user-facing callsite. */
static void widen(void *ctx, struct mt_attach *a)
{
	struct record *r = ctx;
	struct mt_attach_file t;

	mt_record_usdt_decide(&r->usdt, a);
	mt_attach_total(a, &t);
	if (t.callsites == t.foreign) { /* those are always shown: whether to widen is for others to say */
		mt_attach_on_first(a, widen, r);
		return;
	}
	if (t.user_facing || make_filter(r, MT_MODE_DEV))
		return;
	r->widened = true;
	mt_attach_set_filter(a, r->filter);
	if (r->attached)
		mt_record_tell_widened(r);
}

/* Says no if nothing would be armed, and why; widens the default mode where it would show nothing. */
static int decide_callsites(struct record *r)
{
	struct mt_attach *a = mt_session_attach(r->session);
	struct mt_attach_file t;
	int err;

	err = make_filter(r, r->mode);
	if (err)
		return err;
	mt_attach_set_filter(a, r->filter);
	mt_record_usdt_decide(&r->usdt, a);
	mt_attach_total(a, &t);
	if (!t.callsites && only_pids(r) && r->usdt.automatic) {
		mt_log_error(
			r->log,
			"process %u%s no montrace probes, and no others that a profile knows: nothing to "
			"trace; `montrace-bpf list -p %u` shows what there is for --usdt, docs/probes.md "
			"tells how to add probes",
			r->o->pids[0], r->o->npids > 1 ? " and the others have" : " has", r->o->pids[0]);
		return -ENOENT;
	}
	if (t.callsites == t.foreign) {
		/* They are to come: who they are decides then. */
		if (!r->mode_asked)
			mt_attach_on_first(a, widen, r);
		return 0;
	}
	if (r->mode != MT_MODE_USER || t.user_facing)
		return 0;
	if (r->mode_asked && t.foreign)
		return 0;
	if (r->mode_asked) {
		mt_log_error(
			r->log,
			"mode user hides all %u callsite%s: none is user-facing; use -m dev to see them or "
			"--user-prefix to name user-facing targets",
			t.callsites, mt_record_plural(t.callsites));
		return -ENOENT;
	}
	widen(r, a);
	return 0;
}

/* ---- Where to ------------------------------------------------------------------------------------- */

static int open_trace(struct record *r)
{
	const struct mt_options *o = r->o;
	struct mt_tracedir_env te = {
		.sudo_uid = r->env->sudo_uid,
		.sudo_gid = r->env->sudo_gid,
		.montrace_trace_dir = r->env->montrace_dir,
		.monarch_trace_dir = r->env->monarch_dir,
	};
	struct mt_pftrace_opts po = {
		.clocks = mt_record_clocks,
		.tool_version = MT_VERSION,
		.boot_id = r->boot_id,
		.host = r->host,
		.compress = o->compress,
		.lifetimes = o->lifetimes,
	};
	struct mt_tracefiles_opts to = {
		.pftrace = &po,
		.user = &r->user,
		.output = o->output,
		.single = o->single,
		.base = r->base,
		.execution_id = o->execution_id,
		.name = o->process_name,
		.rotate_bytes = o->rotate_bytes,
		.rotate_ns = o->rotate_ms * 1000000,
	};
	uint32_t i;
	int err;

	read_boot_id(r->boot_id);
	gethostname(r->host, sizeof(r->host) - 1);
	mt_user_resolve(geteuid(), getegid(), &te, &r->user);
	err = mt_tracedir_base(o->directory, &te, &r->user, r->base, sizeof(r->base));
	if (!err && !o->flight)
		err = mt_tracefiles_new(&to, &r->files_err, &r->sink);
	for (i = 0; i < o->npids && !err && !o->flight; i++)
		err = mt_tracefiles_expect(r->sink, o->pids[i]);
	if (err)
		mt_log_error(r->log, "%s", r->files_err.text[0] ? r->files_err.text : strerror(-err));
	return err ? err : mt_recorder_open(r);
}

/* ---- The recording -------------------------------------------------------------------------------- */

static int on_tick(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;
	struct mt_process *p;
	int err;

	while (r->sink && mt_tracefiles_rotate_due(r->sink, now, &p)) {
		err = mt_spans_restart(spans, p, now);
		if (err)
			return err;
	}
	return mt_recorder_tick(r, spans, now);
}

static int run(struct record *r)
{
	struct mt_spans_opts so = {
		.naming = r->o->naming_given       ? r->o->naming
			  : r->mode == MT_MODE_DEV ? MT_NAMING_DEV
						   : MT_NAMING_USER,
	};
	struct mt_run_opts ro = {
		.sink = r->all,
		.spans = &so,
		.duration_ms = r->o->duration_ms,
		.on_tick = on_tick,
		.fd = mt_recorder_fd(r->recorder),
		.on_fd = mt_recorder_asked,
		.on_usr2 = mt_recorder_usr2,
		.progress = r->log->tty ? mt_record_progress : NULL,
		.ctx = r,
	};
	struct mt_tracefiles_stats fs = {.path = "", .where = ""};
	struct mt_session_stats st;
	char path[4200];
	int err, closed;

	err = mt_session_run(r->session, &ro, &r->stop);
	mt_log_progress_end(r->log);
	mt_session_stats(r->session, &st);
	closed = r->all->ops->flush(r->all, mt_record_clock_ns(CLOCK_BOOTTIME));
	if (r->sink)
		mt_tracefiles_stats(r->sink, &fs);
	mt_recorder_end(r->recorder);
	snprintf(path, sizeof(path), "%s", fs.files > 1 && fs.where[0] ? fs.where : fs.path);
	fs.path = path;
	if (!err)
		err = closed;
	closed = r->all->ops->free(r->all);
	r->sink = r->all = NULL;
	if (!err)
		err = closed;
	if (err) {
		mt_log_error(r->log, "%s%s%s: %s; what is in it up to here is good",
			     r->files_err.text[0] ? r->files_err.text : "writing ",
			     r->files_err.text[0] ? "" : path, r->files_err.text[0] ? "" : " failed",
			     strerror(-err));
		return err;
	}
	mt_record_tell_end(r, &st, &fs);
	return 0;
}

static int record(struct record *r)
{
	struct mt_session_opts so = {
		.ring_bytes = r->o->ring_bytes || !r->o->flight ? r->o->ring_bytes : FLIGHT_RING,
		.nop5 = r->o->nop5,
		.per_site = r->o->per_site,
		.follow = r->o->follow,
		.everybody = r->o->follow || !only_pids(r),
	};
	struct mt_session_err se;
	uint64_t start;
	int err;

	decide_mode(r);
	if (r->mode == MT_MODE_OFF && !r->o->argv) {
		mt_log_info(r->log, "mode off: nothing is traced, no file is written");
		return 0;
	}
	err = failed(r, &se, mt_session_open(&so, &r->session, &se));
	if (!err)
		err = mt_record_usdt_open(&r->usdt, r->o, r->log, mt_session_attach(r->session));
	start = mt_record_clock_ns(CLOCK_MONOTONIC);
	if (!err)
		err = add_targets(r);
	if (!err)
		err = decide_callsites(r);
	r->attach_ns = mt_record_clock_ns(CLOCK_MONOTONIC) - start;
	if (!err)
		err = open_trace(r);
	start = mt_record_clock_ns(CLOCK_MONOTONIC);
	if (!err)
		err = failed(r, &se, mt_session_arm(r->session, r->filter, &se));
	if (err)
		return err;
	r->attach_ns += mt_record_clock_ns(CLOCK_MONOTONIC) - start;
	/* Who empties the ring must not wait behind those who fill it. After spawn: the command keeps its own. */
	setpriority(PRIO_PROCESS, 0, -10);
	mt_record_tell_attached(r);
	return run(r);
}

/* The command's own exit status. If a signal ended us before it, it gets the same. */
static int reap(struct record *r, int err)
{
	int status;

	if (!r->child)
		return err ? 1 : 0;
	if (r->stop == MT_STOP_SIGNAL) /* a trace that failed is no reason to end a program */
		kill((pid_t)r->child, SIGTERM);
	while (waitpid((pid_t)r->child, &status, 0) < 0)
		if (errno != EINTR)
			return 1;
	if (err)
		return 1;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int mt_cmd_record(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct record r = {.o = o, .env = env, .log = log};
	struct rlimit files;
	int err;

	/* Broken pipes and file size limits come back as errors of write. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max; /* a file for each process */
		setrlimit(RLIMIT_NOFILE, &files);
	}
	err = record(&r);
	if (r.recorder)
		mt_recorder_end(r.recorder);
	if (r.all)
		r.all->ops->free(r.all);
	else if (r.sink)
		r.sink->ops->free(r.sink);
	mt_recorder_free(r.recorder);
	mt_session_close(r.session);
	mt_record_usdt_free(&r.usdt);
	mt_filter_free(r.filter);
	return reap(&r, err);
}
