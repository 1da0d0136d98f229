/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recorder beside the files: when a snapshot is taken, and what is made for that at the start.
 *
 * Invariants
 *  W1  Triggers, deaths and requests are noted where they happen (sink calls, the socket, a signal) and served
 *      when all hits up to then were fed: on the next tick (50 ms), or at once if nothing is being written.
 *  W2  Deaths go first, then what was asked for, then conditions. All wait while a snapshot is written.
 *  W3  The end of tracing waits for nothing: what is noted then is written, by the tracer itself.
 *
 * Deaths are not held up by --after and --cooldown. But many processes may die at once, so after a snapshot
 * for a death the next one comes a second later, or ten times what this one took; those who died meanwhile
 * are in it.
 *
 * Example: process 7 is killed with two spans open. `spans` ends them with the reason, the window keeps that,
 * gone() of the watching sink notes the death. The tick has it written (record_snapshot.c) to .tmp-..., which
 * becomes app.snapshot-001.pftrace, and writes app.snapshot-001.crash.txt.
 */
#include "record_flight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tee.h"

#define SECOND 1000000000ull
#define CLOCK_SLACK 1000000 /* ns */

static uint64_t boot_ns(void)
{
	return mt_record_clock_ns(CLOCK_BOOTTIME);
}

/* Reading two clocks is never exact: only when one was set, times of the past change. */
static void set_clock(struct mt_recorder *m)
{
	uint64_t boot = boot_ns(), real = mt_record_clock_ns(CLOCK_REALTIME);
	int64_t now = (int64_t)(real - boot), off = now - m->real_minus_boot;

	if (off > CLOCK_SLACK || off < -CLOCK_SLACK)
		m->real_minus_boot = now;
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

/* The next one to be written; false: there is none. */
static bool next_job(struct mt_recorder *m, uint64_t now, bool last)
{
	struct mt_job *job = &m->job;
	char how[80];

	*job = (struct mt_job){.fd = -1, .pidfd = -1, .time = now};
	if (m->deaths.first && (last || now >= m->crash_ready)) {
		mt_recorder_take_deaths(&m->deaths, &job->deaths);
		mt_recorder_how(job->deaths.first->status, how, sizeof(how));
		snprintf(job->why, sizeof(job->why), "process %u %s", job->deaths.first->pid, how);
		job->time = job->deaths.first->time;
		job->automatic = true;
	} else if (m->usr2) {
		snprintf(job->why, sizeof(job->why), "SIGUSR2");
		job->time = m->usr2;
		m->usr2 = 0;
	} else if (m->nasked) {
		snprintf(job->why, sizeof(job->why), "snapshot");
		job->asked = m->asked[0];
		job->fd = job->asked.fd;
		job->time = job->asked.time;
		memmove(m->asked, m->asked + 1, --m->nasked * sizeof(m->asked[0]));
	} else if (last ? mt_policy_flush(&m->policy, now) : mt_policy_take(&m->policy, now)) {
		snprintf(job->why, sizeof(job->why), "%s", m->why);
		job->time = m->why_time;
		job->automatic = true;
	} else {
		return false;
	}
	return true;
}

static void serve(struct mt_recorder *m, uint64_t now, bool last)
{
	mt_recorder_reap(m, last);
	while (m->flight && !m->job.busy && next_job(m, now, last))
		mt_recorder_write(m, last);
}

void mt_recorder_written(struct mt_recorder *m, int err, const char *why)
{
	const struct mt_job *job = &m->job;
	uint64_t now = boot_ns(), took = now - job->now;

	if (job->deaths.first)
		m->crash_ready = now + (10 * took > SECOND ? 10 * took : SECOND);
	if (job->asked.conn)
		mt_recorder_answer_snapshot(&job->asked, &job->snap, err, why);
	else if (job->asked.time)
		return; /* who asked is gone */
	else if (err)
		mt_log_error(m->r->log, "no snapshot (%s): %s", job->why, why);
	else
		mt_log_info(m->r->log, "snapshot (%s): %s, %llu events of %.1f s", job->why, job->snap.path,
			    (unsigned long long)job->snap.events, (double)job->snap.span_ns / 1e9);
}

int mt_recorder_ask(struct mt_recorder *m, const struct mt_asked *asked)
{
	if (m->nasked == MT_CONTROL_CONNS)
		return -EBUSY;
	m->asked[m->nasked++] = *asked;
	return 0;
}

void mt_recorder_asker_gone(struct mt_recorder *m, const struct mt_control_conn *c)
{
	uint32_t i;

	if (m->job.busy && m->job.asked.conn == c)
		m->job.asked.conn = NULL;
	for (i = 0; i < m->nasked; i++) {
		if (m->asked[i].conn != c)
			continue;
		if (m->asked[i].fd >= 0)
			close(m->asked[i].fd);
		memmove(m->asked + i, m->asked + i + 1, (--m->nasked - i) * sizeof(m->asked[0]));
		return;
	}
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
	serve(m, now, false);
	return 0;
}

/* The socket has something, or a snapshot is written. */
int mt_recorder_asked(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;
	struct mt_recorder *m = r->recorder;
	int err = 0;

	m->spans = spans;
	if (m->control)
		err = mt_control_dispatch(m->control, now);
	serve(m, now, false);
	return err;
}

int mt_recorder_usr2(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct record *r = ctx;
	struct mt_recorder *m = r->recorder;

	m->spans = spans;
	if (!m->flight)
		mt_log_warn(r->log, "SIGUSR2: no snapshot without the flight recorder (-F)");
	else if (!m->usr2)
		m->usr2 = now;
	serve(m, now, false);
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
	if (!code)
		code = mt_recorder_watch_fd(m, mt_control_fd(m->control));
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
		m->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (m->epoll < 0)
			err = -errno;
		m->deaths.end = &m->deaths.first;
		m->job.pidfd = -1;
		set_clock(m);
		if (!err && r->o->flight) {
			err = mt_recorder_open_directory(m);
			if (err)
				return err;
		}
		if (!err)
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
	return m->epoll;
}

int mt_recorder_watch_fd(struct mt_recorder *m, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	return epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

void mt_recorder_end(struct mt_recorder *m)
{
	uint64_t now = boot_ns();

	serve(m, now, true);
	mt_control_tail_free(m->tail);
	m->tail = NULL;
	if (m->control)
		mt_control_dispatch(m->control, now);
	serve(m, now, true);
	if (m->control)
		mt_control_linger(m->control, 500);
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
	mt_recorder_forget_deaths(&m->deaths);
	if (m->epoll >= 0)
		close(m->epoll);
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
