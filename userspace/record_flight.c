/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots: the window goes to a file and recording goes on.
 *
 * Invariants
 *  N1  A snapshot has its name only when it is complete: it is written to a hidden file and renamed.
 *  N2  Triggers and deaths are noted inside of sink calls and served on the next tick (50 ms), when all hits up
 *      to then were fed.
 *  N3  One that was asked for (request, SIGUSR2) is never removed. Of the automatic ones the last
 *      --max-snapshots are kept.
 *  N4  A snapshot that fails is told, and ends nothing.
 *
 * Deaths are not held up by --after and --cooldown. But many processes may die at once, so after a snapshot
 * for a death the next one comes a second later, or ten times what this one took; those who died meanwhile
 * are in it.
 *
 * Example: process 7 is killed with two spans open. `spans` ends them with the reason, the window keeps that,
 * gone() of the watching sink notes the death. The tick dumps to .tmp-..., renames it to
 * app.snapshot-001.pftrace, and writes app.snapshot-001.crash.txt.
 */
#include "record_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procinfo.h"
#include "tee.h"

#define SECOND 1000000000ull

static uint64_t boot_ns(void)
{
	return mt_record_clock_ns(CLOCK_BOOTTIME);
}

static void set_clock(struct mt_recorder *m)
{
	uint64_t boot = boot_ns(), real = mt_record_clock_ns(CLOCK_REALTIME);

	m->real_minus_boot = (int64_t)(real - boot);
}

/* ---- Where to ------------------------------------------------------------------------------------- */

static int directory(struct mt_recorder *m, const char *id, struct mt_tracedir **ret_dir,
		     struct mt_tracedir_err *err)
{
	struct mt_tracedir_opts to = {.user = &m->r->user, .base = m->r->base, .execution_id = id};
	char clean[MT_TRACEDIR_NAME_MAX + 1];
	uint32_t i;
	int code;

	err->text[0] = 0;
	mt_tracedir_sanitise(id, strlen(id), clean);
	for (i = 0; i < m->ndirs; i++) {
		if (id[0] ? !strcmp(mt_tracedir_id(m->dirs[i]), clean) : i == 0) {
			*ret_dir = m->dirs[i];
			return 0;
		}
	}
	if (m->ndirs == MT_RECORDER_DIRS) {
		*ret_dir = m->dirs[0];
		return 0;
	}
	code = mt_tracedir_open(&to, err, &m->dirs[m->ndirs]);
	if (!code)
		*ret_dir = m->dirs[m->ndirs++];
	return code;
}

/* A variable of a process's environment at its exec; "" if there is none. */
static void variable(uint32_t pid, const char *name, char *value, size_t cap)
{
	int proc, dir;

	value[0] = 0;
	if (!pid || mt_proc_open(NULL, &proc))
		return;
	if (!mt_proc_pid(proc, pid, &dir)) {
		if (mt_proc_environ(dir, name, value, cap))
			value[0] = 0;
		close(dir);
	}
	close(proc);
}

/* The first directory is there from the start, so that it can be refused before anything is traced. */
static int open_directory(struct mt_recorder *m)
{
	const struct mt_options *o = m->r->o;
	struct mt_tracedir_opts to = {
		.user = &m->r->user, .base = m->r->base, .execution_id = o->execution_id};
	struct mt_tracedir_err err = {""};
	int code;

	if (!o->execution_id) {
		variable(o->npids ? o->pids[0] : m->r->child, "HYPERACTOR_EXECUTION_ID", m->env_id,
			 sizeof(m->env_id));
		to.execution_id = m->env_id;
	}
	code = mt_tracedir_open(&to, &err, &m->dirs[0]);
	if (code)
		mt_log_error(m->r->log, "cannot write snapshots: %s", err.text);
	else
		m->ndirs = 1;
	return code;
}

/* --name, the program's own name, its environment's, its file's. */
static void base_name(struct mt_recorder *m, const struct mt_death *death, char *name, size_t cap)
{
	const char *file_name = "process", *own = "process";
	char host[256] = "";
	struct mt_name_vars vars = {.hostname = host};
	const struct mt_process *p = mt_recorder_first_process(m, &file_name);

	if (p) {
		own = p->name;
		vars.pid = p->pid;
	}
	if (death) {
		file_name = death->file_name;
		own = death->name;
		vars.pid = death->pid;
	}
	vars.name = own;
	snprintf(name, cap, "%s", file_name);
	if (!m->r->o->process_name)
		return;
	gethostname(host, sizeof(host) - 1);
	if (mt_tracedir_expand(m->r->o->process_name, &vars, name, cap, NULL))
		snprintf(name, cap, "%s", file_name);
}

static const char *death_id(const struct mt_recorder *m, const struct mt_death *death)
{
	const char *own = "";
	const struct mt_process *p;

	if (m->r->o->execution_id)
		return "";
	p = mt_recorder_first_process(m, NULL);
	if (p)
		own = p->execution_id;
	return death ? death->execution_id : own;
}

/* N3: the new one is there already when the oldest goes. */
static void keep_automatic(struct mt_recorder *m, struct mt_tracedir *dir, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct mt_automatic *v;
	uint32_t max = m->r->o->max_snapshots;
	char report[300];

	if (!max)
		return;
	if (m->nautomatic == m->cap_automatic) {
		uint32_t cap = m->cap_automatic ? m->cap_automatic * 2 : 32;

		v = realloc(m->automatic, cap * sizeof(*v));
		if (!v)
			return; /* one more is kept than was wanted */
		m->automatic = v;
		m->cap_automatic = cap;
	}
	v = &m->automatic[m->nautomatic++];
	v->dir = dir;
	snprintf(v->name, sizeof(v->name), "%.255s", slash ? slash + 1 : path);
	while (m->nautomatic > max) {
		v = m->automatic;
		unlinkat(mt_tracedir_fd(v->dir), v->name, 0);
		mt_recorder_report_name(v->name, report, sizeof(report));
		unlinkat(mt_tracedir_fd(v->dir), report, 0);
		memmove(v, v + 1, --m->nautomatic * sizeof(*v));
	}
}

/* ---- Writing -------------------------------------------------------------------------------------- */

uint64_t mt_recorder_unplaced(struct mt_recorder *m)
{
	struct mt_session_stats st;

	mt_session_stats(m->r->session, &st);
	return st.spans && st.lost_total > st.spans->lost ? st.lost_total - st.spans->lost : 0;
}

static int write_window(struct mt_recorder *m, int fd, const struct mt_snapshot_ask *ask, uint64_t now,
			struct mt_snapshot *ret)
{
	struct mt_pftrace_opts po = {
		.clocks = mt_record_clocks,
		.tool_version = MT_VERSION,
		.boot_id = m->r->boot_id,
		.compress = m->r->o->compress,
	};
	struct mt_flight_mark mark = {.text = ask->why, .time = ask->time};
	uint64_t unplaced = mt_recorder_unplaced(m);
	struct mt_sink *sink;
	struct mt_out *out;
	struct stat st;
	char text[120];
	int err, closed;

	err = mt_out_fd(fd, 0, &out);
	if (err) {
		close(fd);
		return err;
	}
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* to ask for the size when it is closed */
	err = mt_pftrace_new(&po, out, &sink);
	if (err) {
		mt_out_close(out);
	} else {
		err = mt_flight_dump(m->flight, sink, &mark, now);
		snprintf(text, sizeof(text),
			 "%llu hits were lost that no gap has shown: their place is not known",
			 (unsigned long long)unplaced);
		if (!err && unplaced && sink->ops->mark)
			err = sink->ops->mark(sink, now, (struct mt_str){text, (uint32_t)strlen(text)});
		closed = sink->ops->free(sink);
		if (!err)
			err = closed;
	}
	ret->bytes = !err && fd >= 0 && !fstat(fd, &st) ? (uint64_t)st.st_size : 0;
	if (fd >= 0)
		close(fd);
	return err;
}

static int to_directory(struct mt_recorder *m, const struct mt_snapshot_ask *ask, uint64_t now,
			struct mt_snapshot *ret, struct mt_tracedir_err *why)
{
	char base[4096], name[4200], *path;
	struct mt_tracedir_tmp tmp;
	struct mt_tracedir *dir;
	int err, fd;

	err = directory(m, death_id(m, ask->death), &dir, why);
	if (!err)
		err = mt_tracedir_create_tmp(dir, why, &tmp, &fd);
	if (err)
		return err;
	base_name(m, ask->death, base, sizeof(base));
	snprintf(name, sizeof(name), "%.150s.snapshot-%03u", base, ++m->number);
	err = write_window(m, fd, ask, now, ret);
	if (!err)
		err = mt_tracedir_publish(dir, &tmp, name, why, &path);
	if (err) {
		mt_tracedir_discard(dir, &tmp);
		return err;
	}
	mt_tracedir_latest(dir, NULL);
	snprintf(ret->path, sizeof(ret->path), "%s", path);
	snprintf(m->last_path, sizeof(m->last_path), "%s", path);
	free(path);
	if (ask->death)
		mt_recorder_report(m, dir, ret->path);
	if (ask->automatic)
		keep_automatic(m, dir, ret->path);
	return 0;
}

int mt_recorder_snapshot(struct mt_recorder *m, const struct mt_snapshot_ask *ask, struct mt_snapshot *ret,
			 char *why, size_t cap)
{
	struct mt_tracedir_err te = {""};
	struct mt_flight_stats fs;
	uint64_t now = boot_ns();
	int err;

	ret->path[0] = 0;
	mt_flight_stats(m->flight, &fs);
	ret->events = fs.events;
	ret->span_ns = fs.to - fs.from;
	if (ask->fd >= 0)
		err = write_window(m, ask->fd, ask, now, ret);
	else
		err = to_directory(m, ask, now, ret, &te);
	if (err) {
		m->failed++;
		snprintf(why, cap, "%s", te.text[0] ? te.text : strerror(-err));
	} else {
		m->written++;
	}
	return err;
}

/* One that nobody waits for an answer to. */
static int snapshot_by_itself(struct mt_recorder *m, const char *what, const struct mt_snapshot_ask *ask)
{
	struct mt_snapshot snap;
	char why[600];
	int err = mt_recorder_snapshot(m, ask, &snap, why, sizeof(why));

	if (err)
		mt_log_error(m->r->log, "no snapshot (%s): %s", what, why);
	else
		mt_log_info(m->r->log, "snapshot (%s): %s, %llu events of %.1f s", what, snap.path,
			    (unsigned long long)snap.events, (double)snap.span_ns / 1e9);
	return err;
}

/* ---- When ----------------------------------------------------------------------------------------- */

static void fired(void *ctx, const struct mt_trigger *t, const char *text, uint64_t time)
{
	struct mt_recorder *m = ctx;

	(void)t;
	if (!mt_policy_fire(&m->policy, boot_ns()))
		return;
	snprintf(m->why, sizeof(m->why), "trigger: %s", text);
	m->why_time = time;
}

static void serve_trigger(struct mt_recorder *m)
{
	struct mt_snapshot_ask ask = {.why = m->why, .time = m->why_time, .fd = -1, .automatic = true};

	snapshot_by_itself(m, m->why, &ask);
}

static void serve_deaths(struct mt_recorder *m)
{
	uint64_t start = boot_ns(), took;
	char how[80], why[500];
	struct mt_snapshot_ask ask = {
		.why = why, .time = m->deaths->time, .fd = -1, .automatic = true, .death = m->deaths};

	mt_recorder_how(m->deaths->status, how, sizeof(how));
	snprintf(why, sizeof(why), "process %u %s", m->deaths->pid, how);
	if (snapshot_by_itself(m, why, &ask))
		mt_recorder_report(m, NULL, NULL);
	mt_recorder_forget_deaths(m);
	took = boot_ns() - start;
	m->crash_ready = boot_ns() + (10 * took > SECOND ? 10 * took : SECOND);
}

static void each_second(struct mt_recorder *m, uint64_t now)
{
	struct mt_recorded_clock clock;
	uint64_t events = mt_spans_stats(m->spans)->events;

	set_clock(m);
	clock.real_minus_boot = m->real_minus_boot;
	if (m->tail)
		mt_control_tail_clock(m->tail, &clock);
	if (m->rate_time)
		m->rate = (double)(events - m->rate_events) * 1e9 / (double)(now - m->rate_time);
	m->rate_events = events;
	m->rate_time = now;
	m->next_second = now + SECOND;
	if (m->control)
		mt_control_dispatch(m->control, now);
}

int mt_recorder_tick(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;
	struct mt_recorder *m = r->recorder;

	m->spans = spans;
	if (now >= m->next_second)
		each_second(m, now);
	if (!m->flight)
		return 0;
	if (m->deaths && now >= m->crash_ready)
		serve_deaths(m);
	if (mt_policy_take(&m->policy, now))
		serve_trigger(m);
	return 0;
}

int mt_recorder_asked(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;

	r->recorder->spans = spans;
	return mt_control_dispatch(r->recorder->control, now);
}

int mt_recorder_usr2(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;
	struct mt_snapshot_ask ask = {.why = "SIGUSR2", .time = now, .fd = -1};

	r->recorder->spans = spans;
	if (r->recorder->flight)
		snapshot_by_itself(r->recorder, "SIGUSR2", &ask);
	else
		mt_log_warn(r->log, "SIGUSR2: no snapshot without the flight recorder (-F)");
	return 0;
}

/* ---- Beginning and end ---------------------------------------------------------------------------- */

static int make_triggers(struct mt_recorder *m)
{
	const struct mt_options *o = m->r->o;
	struct mt_trigger *v[MT_MAX_LIST];
	uint32_t n = 0;
	int err = 0;

	if (!o->ntriggers)
		return 0;
	while (n < o->ntriggers && !err) {
		err = mt_trigger_parse(o->triggers[n], &v[n], NULL, NULL);
		n += !err;
	}
	if (!err)
		err = mt_trigger_sink_new(v, n, 0, fired, m, &m->triggers);
	while (err && n)
		mt_trigger_free(v[--n]);
	m->policy.after_ns = o->after_ms * 1000000;
	m->policy.cooldown_ns = o->cooldown_ms * 1000000;
	return err;
}

static int make_sinks(struct mt_recorder *m)
{
	struct record *r = m->r;
	struct mt_sink *v[5];
	unsigned n = 0;
	int err;

	err = mt_recordings_new(&(struct mt_recordings_opts){0}, &m->recordings);
	if (!err && r->o->flight) {
		err = mt_flight_new(&r->o->flight_spec, &m->flight);
		if (!err)
			err = make_triggers(m);
		if (!err)
			err = mt_recorder_watch_new(m, &m->watch);
	}
	if (r->sink)
		v[n++] = r->sink;
	if (m->flight)
		v[n++] = m->flight;
	v[n++] = m->recordings;
	if (m->triggers)
		v[n++] = m->triggers;
	if (m->watch)
		v[n++] = m->watch;
	if (!err)
		err = mt_tee_new(v, n, &r->all);
	m->handed_over = !err;
	return err;
}

static void open_control(struct mt_recorder *m)
{
	const struct mt_control_opts co = {
		.ops = &mt_recorder_control_ops,
		.ctx = m,
		.owner = m->r->user.uid,
		.owner_gid = m->r->user.gid,
	};
	struct mt_recorded_clock clock = {m->real_minus_boot};
	struct mt_control_err err = {""};
	char dir[192];
	int code;

	code = mt_control_dir(geteuid(), m->r->env->runtime_dir, dir, sizeof(dir));
	if (!code)
		code = mt_control_tail_new(m->recordings, &clock, &m->tail);
	if (!code)
		code = mt_control_new(&co, dir, (uint32_t)getpid(), &err, &m->control);
	if (code)
		mt_log_warn(m->r->log, "no socket for tail, stacks, snapshot and status: %s",
			    err.text[0] ? err.text : strerror(-code));
}

int mt_recorder_open(struct record *r)
{
	struct mt_recorder *m = calloc(1, sizeof(*m));
	int err = m ? 0 : -ENOMEM;

	r->recorder = m;
	if (m) {
		m->r = r;
		m->deaths_end = &m->deaths;
		set_clock(m);
		if (r->o->flight)
			err = open_directory(m);
		if (err)
			return err;
		err = make_sinks(m);
	}
	if (err)
		mt_log_error(r->log, "flight recorder: %s", strerror(-err));
	else
		open_control(m);
	return err;
}

int mt_recorder_fd(const struct mt_recorder *m)
{
	return m->control ? mt_control_fd(m->control) : -1;
}

void mt_recorder_end(struct mt_recorder *m)
{
	uint64_t now = boot_ns();

	if (m->deaths)
		serve_deaths(m);
	if (m->flight && mt_policy_flush(&m->policy, now))
		serve_trigger(m);
	mt_control_tail_free(m->tail);
	m->tail = NULL;
	if (m->control)
		mt_control_dispatch(m->control, now);
	mt_control_free(m->control);
	m->control = NULL;
}

void mt_recorder_free(struct mt_recorder *m)
{
	uint32_t i;

	if (!m)
		return;
	mt_control_tail_free(m->tail);
	mt_control_free(m->control);
	mt_recorder_forget_deaths(m);
	if (!m->handed_over) {
		if (m->recordings)
			m->recordings->ops->free(m->recordings);
		if (m->flight)
			m->flight->ops->free(m->flight);
		if (m->triggers)
			m->triggers->ops->free(m->triggers);
		if (m->watch)
			m->watch->ops->free(m->watch);
	}
	for (i = 0; i < m->ndirs; i++)
		mt_tracedir_close(m->dirs[i]);
	free(m->automatic);
	free(m);
}
