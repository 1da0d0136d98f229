/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of things: decide what to trace, open the trace, only then touch the target. */
#include "cmd_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"
#include "out.h"
#include "pftrace.h"
#include "procinfo.h"
#include "session.h"
#include "shared.h"
#include "tracedir.h"

struct record {
	const struct mt_options *o;
	const struct mt_environment *env;
	struct mt_log *log;
	enum mt_mode mode;
	bool mode_asked; /* by option or variable, not by default */
	bool widened;	 /* default mode, and no callsite is user-facing: all are traced */
	struct mt_filter *filter;
	struct mt_session *session;
	struct mt_out *out;
	struct mt_sink *sink;
	char *path;
	unsigned char boot_id[16];
	/* for the progress line */
	uint64_t last_events, last_time;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void read_clocks(void *ctx, struct mt_clocks *c)
{
	(void)ctx;
	c->boot = clock_ns(CLOCK_BOOTTIME);
	c->mono = clock_ns(CLOCK_MONOTONIC);
	c->real = clock_ns(CLOCK_REALTIME);
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

static int add_targets(struct record *r)
{
	struct mt_session_err se;
	uint32_t i;

	for (i = 0; i < r->o->npids; i++) {
		if (mt_session_add(r->session, r->o->pids[i], &se)) {
			mt_log_error(r->log, "%s", se.text);
			return -EINVAL;
		}
	}
	return 0;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
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
	mt_attach_total(a, &t);
	if (!t.callsites) {
		mt_log_error(r->log,
			     "process %u has no montrace probes: nothing to trace; docs/probes.md tells how to add them",
			     r->o->pids[0]);
		return -ENOENT;
	}
	if (r->mode != MT_MODE_USER || t.user_facing)
		return 0;
	if (r->mode_asked) {
		mt_log_error(r->log,
			     "mode user hides all %u callsite%s: none is user-facing; use -m dev to see them or "
			     "--user-prefix to name user-facing targets",
			     t.callsites, plural(t.callsites));
		return -ENOENT;
	}
	r->widened = true;
	err = make_filter(r, MT_MODE_DEV);
	if (!err)
		mt_attach_set_filter(a, r->filter);
	return err;
}

/* ---- Where to ------------------------------------------------------------------------------------- */

static int process_file_name(struct record *r, char *name, size_t cap)
{
	struct mt_proc_info *info = calloc(1, sizeof(*info));
	char host[256] = "";
	struct mt_name_vars vars = {.pid = r->o->pids[0], .hostname = host};
	int proc = -1, dir = -1, err = info ? 0 : -ENOMEM;
	size_t pos = 0;

	name[0] = 0;
	if (!err)
		err = mt_proc_open(NULL, &proc);
	if (!err)
		err = mt_proc_pid(proc, r->o->pids[0], &dir);
	if (!err)
		err = mt_proc_info(dir, info);
	if (err)
		goto out;
	gethostname(host, sizeof(host) - 1);
	vars.name = info->name;
	if (r->o->process_name) {
		err = mt_tracedir_expand(r->o->process_name, &vars, name, cap, &pos);
		if (err == -EINVAL)
			mt_log_error(r->log, "--name: unknown sequence at `%s`: %%p, %%n, %%h and %%%% are known",
				     r->o->process_name + pos);
	} else if (mt_proc_environ(dir, "HYPERACTOR_PROCESS_NAME", name, cap) || !name[0]) {
		snprintf(name, cap, "%s", info->name);
	}
out:
	if (dir >= 0)
		close(dir);
	if (proc >= 0)
		close(proc);
	free(info);
	return err;
}

static void execution_id(struct record *r, char *id, size_t cap)
{
	int proc, dir;

	id[0] = 0;
	if (r->o->execution_id) {
		snprintf(id, cap, "%s", r->o->execution_id);
		return;
	}
	if (mt_proc_open(NULL, &proc))
		return;
	if (!mt_proc_pid(proc, r->o->pids[0], &dir)) {
		if (mt_proc_environ(dir, "HYPERACTOR_EXECUTION_ID", id, cap))
			id[0] = 0;
		close(dir);
	}
	close(proc);
}

static int create_in_tracedir(struct record *r, const struct mt_user *user, const struct mt_tracedir_env *te,
			      int *ret_fd)
{
	char base[4096], name[4096], id[MT_TRACEDIR_NAME_MAX + 1];
	struct mt_tracedir_opts to = {.user = user, .base = base, .execution_id = id};
	struct mt_tracedir_err why = {""};
	struct mt_tracedir *dir = NULL;
	int err;

	err = process_file_name(r, name, sizeof(name));
	if (err)
		return err;
	execution_id(r, id, sizeof(id));
	err = mt_tracedir_base(r->o->directory, te, user, base, sizeof(base));
	if (!err)
		err = mt_tracedir_open(&to, &why, &dir);
	if (!err)
		err = mt_tracedir_create(dir, name, &why, ret_fd, &r->path);
	if (err)
		mt_log_error(r->log, "cannot create a trace: %s", why.text[0] ? why.text : strerror(-err));
	else if (mt_tracedir_latest(dir, &why))
		mt_log_warn(r->log, "%s", why.text);
	mt_tracedir_close(dir);
	return err;
}

static int create_named(struct record *r, const struct mt_user *user, int *ret_fd)
{
	int err = mt_out_create(AT_FDCWD, r->o->output, ret_fd);

	if (err == -EEXIST)
		mt_log_error(r->log, "%s exists: traces are never overwritten; remove it or choose another name",
			     r->o->output);
	else if (err)
		mt_log_error(r->log, "cannot create %s: %s", r->o->output, strerror(-err));
	if (err)
		return err;
	if (geteuid() == 0 && fchown(*ret_fd, user->uid, user->gid))
		mt_log_debug(r->log, "%s stays root's: %s", r->o->output, strerror(errno));
	r->path = strdup(r->o->output);
	return r->path ? 0 : -ENOMEM;
}

static int open_trace(struct record *r)
{
	struct mt_tracedir_env te = {
		.sudo_uid = r->env->sudo_uid,
		.sudo_gid = r->env->sudo_gid,
		.montrace_trace_dir = r->env->montrace_dir,
		.monarch_trace_dir = r->env->monarch_dir,
	};
	struct mt_pftrace_opts po = {
		.clocks = read_clocks,
		.tool_version = MT_VERSION,
		.boot_id = r->boot_id,
		.compress = r->o->compress,
	};
	struct mt_user user;
	int fd = -1, err;

	read_boot_id(r->boot_id);
	mt_user_resolve(geteuid(), getegid(), &te, &user);
	err = r->o->output ? create_named(r, &user, &fd) : create_in_tracedir(r, &user, &te, &fd);
	if (err)
		return err;
	err = mt_out_fd(fd, 0, &r->out);
	if (err) {
		close(fd);
	} else {
		err = mt_pftrace_new(&po, r->out, &r->sink);
		if (err)
			mt_out_close(r->out);
	}
	if (err)
		mt_log_error(r->log, "cannot write %s: %s", r->path, strerror(-err));
	return err;
}

/* ---- What the user is told ------------------------------------------------------------------------ */

static int tell_file(void *ctx, const struct mt_attach_file *f)
{
	struct record *r = ctx;

	mt_log_debug(r->log, "%s: %u of %u callsites armed%s, %u filtered by mode, %u by directives, %u failed%s%s",
		     f->path, f->armed, f->callsites, f->nop5 ? " (5-byte nops)" : "", f->by_mode, f->by_directive,
		     f->failed, f->failed ? ": " : "", f->failed ? strerror(-f->error) : "");
	return 0;
}

static void tell_attached(struct record *r)
{
	struct mt_attach *a = mt_session_attach(r->session);
	struct mt_attach_file t;

	mt_attach_total(a, &t);
	if (r->widened)
		mt_log_info(r->log, "no callsite is user-facing: tracing all of them (-m dev, -m user to choose)");
	mt_log_info(r->log, "process %u%s: %u of %u callsite%s armed%s; writing %s", r->o->pids[0],
		    r->o->npids > 1 ? " and others" : "", t.armed, t.callsites, plural(t.callsites),
		    r->o->duration_ms ? "" : "; Ctrl-C ends", r->path);
	if (t.failed)
		mt_log_warn(r->log, "%u callsite%s could not be armed (%s); -v lists them", t.failed,
			    plural(t.failed), strerror(-t.error));
	mt_attach_each(a, tell_file, r);
}

static void human_size(uint64_t n, char *text, size_t cap)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	snprintf(text, cap, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

static void progress(void *ctx, const struct mt_session_stats *st)
{
	struct record *r = ctx;
	uint64_t now = clock_ns(CLOCK_MONOTONIC), events = st->spans->events;
	double seconds = (double)(now - r->last_time) / 1e9;
	char size[32];

	human_size(r->out->bytes, size, sizeof(size));
	mt_log_progress(r->log, "%.0f events/s, %llu spans, %llu lost, %s",
			r->last_time && seconds > 0 ? (double)(events - r->last_events) / seconds : 0.0,
			(unsigned long long)st->spans->spans, (unsigned long long)st->lost_total, size);
	r->last_events = events;
	r->last_time = now;
}

static void tell_losses(struct record *r, const struct mt_session_stats *st)
{
	static const struct {
		int cause;
		const char *what;
	} causes[] = {
		{MT_LOST_RING, "the ring was full: a larger --ring or a narrower --filter helps"},
		{MT_LOST_READ, "records that could not be read"},
		{MT_LOST_SIZE, "records of impossible size"},
		{MT_LOST_STATE, "no kernel memory for a thread's state"},
		{MT_LOST_LIFE, "life records (fork, exec, exit, names), not events"},
	};
	unsigned i;

	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (st->lost[causes[i].cause])
			mt_log_warn(r->log, "lost %llu: %s", (unsigned long long)st->lost[causes[i].cause],
				    causes[i].what);
	if (st->decode->malformed)
		mt_log_warn(r->log, "%llu malformed records dropped", (unsigned long long)st->decode->malformed);
}

static void tell_end(struct record *r, const struct mt_session_stats *st, uint64_t bytes)
{
	char size[32];

	human_size(bytes, size, sizeof(size));
	tell_losses(r, st);
	mt_log_info(r->log, "%llu span%s, %llu event%s, %llu thread%s, %llu lost, %s in %s",
		    (unsigned long long)st->spans->spans, plural(st->spans->spans),
		    (unsigned long long)st->spans->instants, plural(st->spans->instants),
		    (unsigned long long)st->spans->threads, plural(st->spans->threads),
		    (unsigned long long)(st->lost_total + st->decode->malformed), size, r->path);
	mt_log_debug(r->log,
		     "%llu hits delivered, %llu slices, %llu counter values, %llu loop wake-ups, %llu enters of unseen "
		     "spans, %llu stray exits, %llu reordered exits, %llu lost ends",
		     (unsigned long long)st->spans->delivered, (unsigned long long)st->spans->slices,
		     (unsigned long long)st->spans->counters, (unsigned long long)st->wakeups,
		     (unsigned long long)st->spans->unseen_enters, (unsigned long long)st->spans->stray_exits,
		     (unsigned long long)st->spans->reordered, (unsigned long long)st->spans->lost_ends);
}

/* ---- The recording -------------------------------------------------------------------------------- */

static int run(struct record *r)
{
	struct mt_spans_opts so = {
		.naming = r->o->naming_given ? r->o->naming : r->mode == MT_MODE_DEV ? MT_NAMING_DEV : MT_NAMING_USER,
	};
	struct mt_run_opts ro = {
		.sink = r->sink,
		.spans = &so,
		.duration_ms = r->o->duration_ms,
		.progress = r->log->tty ? progress : NULL,
		.progress_ctx = r,
	};
	struct mt_session_stats st;
	enum mt_stop stop = MT_STOP_NONE;
	uint64_t bytes;
	int err, closed;

	err = mt_session_run(r->session, &ro, &stop);
	mt_log_progress_end(r->log);
	mt_session_stats(r->session, &st);
	if (!err && r->sink->ops->flush)
		err = r->sink->ops->flush(r->sink, clock_ns(CLOCK_BOOTTIME));
	bytes = r->out->bytes;
	closed = r->sink->ops->free(r->sink);
	r->sink = NULL;
	if (!err)
		err = closed;
	if (err) {
		mt_log_error(r->log, "writing %s failed: %s; what is in it up to here is good", r->path,
			     strerror(-err));
		return err;
	}
	tell_end(r, &st, bytes);
	return 0;
}

static int record(struct record *r)
{
	struct mt_session_opts so = {
		.ring_bytes = r->o->ring_bytes,
		.no_nop5 = r->o->no_nop5,
		.per_site = r->o->per_site,
	};
	struct mt_session_err se;
	int err;

	decide_mode(r);
	if (r->mode == MT_MODE_OFF) {
		mt_log_info(r->log, "mode off: nothing is traced, no file is written");
		return 0;
	}
	err = mt_session_open(&so, &r->session, &se);
	if (err) {
		mt_log_error(r->log, "%s", se.text);
		return err;
	}
	err = add_targets(r);
	if (!err)
		err = decide_callsites(r);
	if (!err)
		err = open_trace(r);
	if (err)
		return err;
	err = mt_session_arm(r->session, r->filter, &se);
	if (err) {
		mt_log_error(r->log, "%s", se.text);
		return err;
	}
	tell_attached(r);
	return run(r);
}

int mt_cmd_record(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct record r = {.o = o, .env = env, .log = log};
	int err = record(&r);

	if (r.sink)
		r.sink->ops->free(r.sink);
	mt_session_close(r.session);
	mt_filter_free(r.filter);
	free(r.path);
	return err ? 1 : 0;
}
