/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd_control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "control.h"
#include "tracedir.h"

struct question {
	const struct mt_options *o;
	const struct mt_environment *env;
	struct mt_log *log;
	struct mt_control_req req;
};

static int complain(struct mt_log *log, const struct mt_control_err *err, int code)
{
	if (code == -EPIPE && !err->text[0])
		return 1; /* who reads our output has had enough */
	mt_log_error(log, "%s", err->text[0] ? err->text : strerror(-code));
	return 1;
}

/* Sends the request, copies the answer to out. tracer NULL: the only one. */
static int ask_once(const struct question *q, const char *tracer, int file, int out,
		    struct mt_control_err *err)
{
	int fd, code;

	err->text[0] = 0;
	code = mt_control_connect(tracer, getuid(), q->env->runtime_dir, err, &fd);
	if (code)
		return code;
	code = mt_control_send(fd, &q->req, file);
	if (!code || code == -EPIPE)
		code = mt_control_stream(fd, out, err);
	close(fd);
	return code;
}

/* Others may be asking, too: for a second it is tried again. */
static int ask(const struct question *q, const char *tracer, int file, int out, struct mt_control_err *err)
{
	unsigned i;
	int code;

	for (i = 0; (code = ask_once(q, tracer, file, out, err)) == -EUSERS && i < 10; i++)
		usleep(100000);
	return code;
}

static int ask_and_print(const struct question *q)
{
	struct mt_control_err err;
	int code = ask(q, q->o->tracer, -1, STDOUT_FILENO, &err);

	return code ? complain(q->log, &err, code) : 0;
}

static struct question question(const struct mt_options *o, const struct mt_environment *env,
				struct mt_log *log, enum mt_control_verb verb)
{
	struct question q = {.o = o, .env = env, .log = log};

	signal(SIGPIPE, SIG_IGN);
	q.req.verb = verb;
	q.req.json = o->json;
	if (o->subject)
		snprintf(q.req.subject, sizeof(q.req.subject), "%s", o->subject);
	return q;
}

int mt_cmd_tail(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct question q = question(o, env, log, MT_CONTROL_TAIL);

	q.req.n = o->lines;
	q.req.follow = o->follow_tail;
	return ask_and_print(&q);
}

int mt_cmd_status(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct question q = question(o, env, log, MT_CONTROL_STATUS);

	return ask_and_print(&q);
}

/* ---- stacks --------------------------------------------------------------------------------------- */

/* Asks all tracers there are for one process. -ESRCH: none of them traces it. */
static int ask_all(const struct question *q)
{
	char run[64], own[192], tmp[64], pid[16];
	const char *dirs[] = {run, own, tmp};
	struct mt_control_found *v = NULL;
	struct mt_control_err err;
	int code = -ESRCH, out;
	unsigned i, n = 0;

	mt_control_dir(0, NULL, run, sizeof(run));
	if (mt_control_dir(getuid(), q->env->runtime_dir, own, sizeof(own)))
		snprintf(own, sizeof(own), "%s", run);
	mt_control_dir(getuid(), NULL, tmp, sizeof(tmp));
	if (mt_control_list(dirs, 3, &v, &n))
		return -ESRCH;
	for (i = 0; i < n && code == -ESRCH; i++) {
		if (v[i].denied)
			continue;
		snprintf(pid, sizeof(pid), "%u", v[i].pid);
		out = STDOUT_FILENO;
		if (!ask(q, pid, -1, out, &err))
			code = 0;
	}
	free(v);
	return code;
}

int mt_cmd_stacks(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct question q = question(o, env, log, MT_CONTROL_STACKS);

	if (!o->npids)
		return ask_and_print(&q);
	q.req.pid = o->pids[0];
	if (o->tracer)
		return ask_and_print(&q);
	return ask_all(&q) ? mt_stacks_attach(o, log) : 0;
}

/* ---- snapshot ------------------------------------------------------------------------------------- */

/* A hidden name beside path. */
static int beside(const char *path, char *tmp, size_t cap)
{
	const char *slash = strrchr(path, '/');
	unsigned long long random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (snprintf(tmp, cap, "%.*s.snapshot-%016llx", slash ? (int)(slash + 1 - path) : 0, path, random) >=
	    (int)cap)
		return -ENAMETOOLONG;
	return 0;
}

static int publish(const char *tmp, const char *path)
{
	if (!renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(tmp, path))
		return -errno;
	unlink(tmp);
	return 0;
}

/* The answer is told only when the file is in its place. */
static int tell(int answer, const char *path, bool json)
{
	char buf[4096];
	ssize_t n;

	if (!json)
		printf("%s: ", path);
	if (lseek(answer, 0, SEEK_SET))
		return -errno;
	while ((n = read(answer, buf, sizeof(buf))) > 0)
		fwrite(buf, 1, (size_t)n, stdout);
	return n < 0 || fflush(stdout) ? -EIO : 0;
}

/* The file is opened here, with the rights of who asks: complete under its name, or not there. */
static int snapshot_to(const struct question *q, const char *path)
{
	struct mt_tracedir_env te = {.sudo_uid = q->env->sudo_uid, .sudo_gid = q->env->sudo_gid};
	struct mt_control_err err = {""};
	struct mt_user user;
	char tmp[PATH_MAX];
	int file = -1, answer = -1, code;

	if (!access(path, F_OK)) {
		mt_log_error(q->log, "%s exists: traces are never overwritten; choose another name", path);
		return 1;
	}
	code = beside(path, tmp, sizeof(tmp));
	if (!code) {
		mt_user_resolve(geteuid(), getegid(), &te, &user);
		code = mt_tracedir_file(&user, tmp, &file);
	}
	if (code) {
		mt_log_error(q->log, "%s: %s", path, strerror(-code));
		return 1;
	}
	answer = memfd_create("answer", MFD_CLOEXEC);
	code = answer < 0 ? -errno : ask(q, q->o->tracer, file, answer, &err);
	if (!code) {
		code = publish(tmp, path);
		if (code)
			snprintf(err.text, sizeof(err.text), "%.400s: %s", path, strerror(-code));
	}
	if (code)
		unlink(tmp);
	else
		code = tell(answer, path, q->o->json);
	close(file);
	if (answer >= 0)
		close(answer);
	return code ? complain(q->log, &err, code) : 0;
}

int mt_cmd_snapshot(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log)
{
	struct question q = question(o, env, log, MT_CONTROL_SNAPSHOT);

	return o->output ? snapshot_to(&q, o->output) : ask_and_print(&q);
}
