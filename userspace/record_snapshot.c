/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Snapshots: the window goes to a file, and recording goes on meanwhile.
 *
 * The idea. Writing a window takes long (a second for 10 million events), and nobody may wait for it: the ring would
 * run full. So a child is made that has the window as it is now (the kernel copies only what changes meanwhile). It
 * writes a hidden file and ends; then the file gets its name. At the end of tracing, when nothing is left to record,
 * or if no child can be made, the tracer writes it itself.
 *
 * Invariants
 *  N1  A snapshot has its name only when it is complete.
 *  N2  One is written at a time. Who wants one meanwhile waits (record_flight.c).
 *  N3  One that was asked for (request, SIGUSR2) is never removed. Of the automatic ones the last
 *      --max-snapshots are kept.
 *  N4  A snapshot that fails is told, and ends nothing.
 *  N5  The child has given back what it has of the tracing (links, rings) before mt_recorder_write returns, and ends
 *      with the tracer: no probe stays for its sake.
 */
#include "record_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procinfo.h"

/* Like any program: those that are traced need the processors, too. But the last moments of one are wanted at once. */
#define NICE_ASKED 0

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
int mt_recorder_open_directory(struct mt_recorder *m)
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

static int write_window(struct mt_recorder *m, int fd, const struct mt_job *job)
{
	struct mt_pftrace_opts po = {
		.clocks = mt_record_clocks,
		.tool_version = MT_VERSION,
		.boot_id = m->r->boot_id,
		.compress = m->r->o->compress,
	};
	struct mt_flight_mark mark = {.text = job->why, .time = job->time};
	struct mt_sink *sink;
	struct mt_out *out;
	char text[120];
	int err, closed;

	err = mt_out_fd(fd, 0, &out);
	if (err)
		return err;
	err = mt_pftrace_new(&po, out, &sink);
	if (err) {
		mt_out_close(out);
		return err;
	}
	err = mt_flight_dump(m->flight, sink, &mark, job->now);
	snprintf(text, sizeof(text), "%llu hits were lost that no gap has shown: their place is not known",
		 (unsigned long long)job->unplaced);
	if (!err && job->unplaced && sink->ops->mark)
		err = sink->ops->mark(sink, job->now, (struct mt_str){text, (uint32_t)strlen(text)});
	closed = sink->ops->free(sink);
	return err ? err : closed;
}

/* In the child. The status is 0 or errno. */
static void child(struct mt_recorder *m, const struct mt_job *job, pid_t tracer)
{
	int fd = fcntl(job->fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0 || dup3(fd, 3, O_CLOEXEC) < 0) {
		if (fd != 3)
			_exit(errno);
	}
	syscall(SYS_close_range, 4, ~0U, 0); /* N5; the pipe tells the tracer */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != tracer)
		_exit(EPIPE);
	if (!job->deaths.first)
		setpriority(PRIO_PROCESS, 0, NICE_ASKED);
	_exit(-write_window(m, 3, job));
}

/* False: there is no child. */
static bool fork_writer(struct mt_recorder *m, struct mt_job *job)
{
	pid_t tracer = getpid();
	int given_back[2];
	char c;

	if (pipe2(given_back, O_CLOEXEC))
		return false;
	job->pid = fork();
	if (!job->pid)
		child(m, job, tracer);
	close(given_back[1]);
	while (job->pid > 0 && read(given_back[0], &c, 1) < 0 && errno == EINTR)
		;
	close(given_back[0]);
	if (job->pid < 0) {
		job->pid = 0;
		return false;
	}
	job->pidfd = (int)syscall(SYS_pidfd_open, job->pid, 0);
	if (job->pidfd >= 0)
		mt_recorder_watch_fd(m, job->pidfd); /* else the tick finds out */
	return true;
}

/* Makes the hidden file, unless the file came with the request. */
static int open_file(struct mt_recorder *m, struct mt_job *job, struct mt_tracedir_err *why)
{
	char base[4096];
	int err;

	if (job->fd >= 0)
		return 0;
	err = directory(m, death_id(m, job->deaths.first), &job->dir, why);
	if (!err)
		err = mt_tracedir_create_tmp(job->dir, why, &job->tmp, &job->fd);
	if (err) {
		job->dir = NULL;
		return err;
	}
	base_name(m, job->deaths.first, base, sizeof(base));
	snprintf(job->name, sizeof(job->name), "%.150s.snapshot-%03u", base, ++m->number);
	return 0;
}

static int publish(struct mt_recorder *m, struct mt_job *job, struct mt_tracedir_err *why)
{
	char *path;
	int err = mt_tracedir_publish(job->dir, &job->tmp, job->name, why, &path);

	if (err)
		return err;
	mt_tracedir_latest(job->dir, NULL);
	snprintf(job->snap.path, sizeof(job->snap.path), "%s", path);
	snprintf(m->last_path, sizeof(m->last_path), "%s", path);
	free(path);
	return 0;
}

/* The window is written, or could not be: the file gets its name, and everybody is told. */
static void complete(struct mt_recorder *m, int err, struct mt_tracedir_err *why)
{
	struct mt_job *job = &m->job;
	struct stat st;

	if (err && job->dir && !why->text[0])
		snprintf(why->text, sizeof(why->text), "cannot write %.280s/%.160s.pftrace: %.40s",
			 mt_tracedir_path(job->dir), job->name, strerror(-err));
	if (!err && !fstat(job->fd, &st))
		job->snap.bytes = (uint64_t)st.st_size;
	if (job->fd >= 0)
		close(job->fd);
	if (!err && job->dir)
		err = publish(m, job, why);
	if (err && job->dir)
		mt_tracedir_discard(job->dir, &job->tmp);
	if (err)
		m->failed++;
	else
		m->written++;
	if (job->deaths.first)
		mt_recorder_report(m, &job->deaths, err ? NULL : job->dir, job->snap.path);
	if (!err && job->automatic)
		keep_automatic(m, job->dir, job->snap.path);
	mt_recorder_written(m, err, why->text[0] ? why->text : strerror(-err));
	mt_recorder_forget_deaths(&job->deaths);
	*job = (struct mt_job){.pidfd = -1};
}

void mt_recorder_write(struct mt_recorder *m, bool here)
{
	struct mt_tracedir_err why = {""};
	struct mt_job *job = &m->job;
	struct mt_flight_stats fs;
	int err;

	job->busy = true;
	job->pidfd = -1;
	job->now = mt_record_clock_ns(CLOCK_BOOTTIME);
	job->unplaced = mt_recorder_unplaced(m);
	mt_flight_stats(m->flight, &fs);
	job->snap.events = fs.events;
	job->snap.span_ns = fs.to - fs.from;
	err = open_file(m, job, &why);
	if (!err && !here && fork_writer(m, job))
		return;
	if (!err) {
		int fd = fcntl(job->fd, F_DUPFD_CLOEXEC, 3);

		err = fd < 0 ? -errno : write_window(m, fd, job);
	}
	complete(m, err, &why);
}

void mt_recorder_reap(struct mt_recorder *m, bool wait)
{
	struct mt_tracedir_err why = {""};
	struct mt_job *job = &m->job;
	int status, err = 0;
	pid_t got;

	if (!job->busy)
		return;
	do
		got = waitpid(job->pid, &status, wait ? 0 : WNOHANG);
	while (got < 0 && errno == EINTR);
	if (!got)
		return;
	if (got < 0)
		err = -errno;
	else if (WIFSIGNALED(status))
		err = -EINTR;
	else
		err = -WEXITSTATUS(status);
	if (got > 0 && WIFSIGNALED(status))
		snprintf(why.text, sizeof(why.text), "the process that wrote it was killed by signal %d",
			 WTERMSIG(status));
	if (job->pidfd >= 0)
		close(job->pidfd); /* which takes it out of the epoll set */
	complete(m, err, &why);
}
