/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: both sides, over real sockets in a directory of the test's own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "control_tail.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define SEC 1000000000ull

/* ---- requests ---- */

static void requests_table(void **state)
{
	static const struct {
		const char *line;
		struct mt_control_req want;
	} good[] = {
		{"mt1 status", {.verb = MT_CONTROL_STATUS, .n = 64}},
		{"mt1 status json\r", {.verb = MT_CONTROL_STATUS, .n = 64, .json = true}},
		{"mt1 snapshot", {.verb = MT_CONTROL_SNAPSHOT, .n = 64}},
		{"mt1 stacks subject=a*", {.verb = MT_CONTROL_STACKS, .n = 64, .subject = "a*"}},
		{"mt1 tail follow json n=0 subject=%3Cjob%207%25%3E",
		 {.verb = MT_CONTROL_TAIL, .n = 0, .json = true, .follow = true, .subject = "<job 7%>"}},
		{"mt1 tail n=65536", {.verb = MT_CONTROL_TAIL, .n = 65536}},
		{"mt1 tail subject=", {.verb = MT_CONTROL_TAIL, .n = 64}},
	};
	static const struct {
		const char *line, *why;
	} bad[] = {
		{"", "not a request of this protocol"},
		{"GET / HTTP/1.1", "not a request of this protocol"},
		{"mt2 status", "not a request of this protocol"},
		{" mt1 status", "not a request of this protocol"},
		{"mt1", "unknown request"},
		{"mt1 ", "unknown request"},
		{"mt1  status", "unknown request"},
		{"mt1 reboot", "unknown request"},
		{"mt1 status x", "unknown option"},
		{"mt1 status  json", "unknown option"},
		{"mt1 status follow", "unknown option"},
		{"mt1 stacks n=4", "unknown option"},
		{"mt1 snapshot subject=a", "unknown option"},
		{"mt1 tail n=", "bad number"},
		{"mt1 tail n=-1", "bad number"},
		{"mt1 tail n=65537", "number too large"},
		{"mt1 tail n=99999999999999999999", "number too large"},
		{"mt1 tail subject=%", "bad escape"},
		{"mt1 tail subject=%4", "bad escape"},
		{"mt1 tail subject=%4g", "bad escape"},
		{"mt1 tail subject=%3c", "bad escape"},
		{"mt1 tail subject=%00", "not text"},
		{"mt1 tail subject=a\tb", "not text"},
		{"mt1 tail subject=\xc3\xa9", "not text"},
	};
	struct mt_control_req req;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(good); i++) {
		assert_int_equal(mt_control_parse(good[i].line, strlen(good[i].line), &req, &why), 0);
		assert_memory_equal(&req, &good[i].want, sizeof(req));
	}
	for (i = 0; i < N_OF(bad); i++) {
		assert_int_equal(mt_control_parse(bad[i].line, strlen(bad[i].line), &req, &why), -EINVAL);
		assert_string_equal(why, bad[i].why);
	}
	assert_int_equal(mt_control_parse("mt1 status\0", 11, &req, &why), -EINVAL);
}

static void requests_round_trip(void **state)
{
	static const struct mt_control_req reqs[] = {
		{.verb = MT_CONTROL_TAIL,
		 .n = 7,
		 .json = true,
		 .follow = true,
		 .subject = "\x01 %\xff\xc3\xa9~*"},
		{.verb = MT_CONTROL_STACKS, .n = 64, .subject = "x"},
		{.verb = MT_CONTROL_SNAPSHOT, .n = 64, .json = true},
		{.verb = MT_CONTROL_STATUS, .n = 64},
	};
	char line[MT_CONTROL_LINE_MAX + 1] = "untouched";
	struct mt_control_req req;
	const char *why;
	size_t i;

	(void)state;
	req = reqs[0];
	memset(req.subject, 'x', MT_CONTROL_TEXT_MAX);
	assert_int_equal(mt_control_format(&req, line), 0);
	memset(req.subject, 'x', MT_CONTROL_TEXT_MAX + 1);
	assert_int_equal(mt_control_parse(line, strlen(line) - 1, &req, &why), 0);
	assert_int_equal(strlen(req.subject), MT_CONTROL_TEXT_MAX);
	memset(req.subject, '%', MT_CONTROL_TEXT_MAX);
	assert_int_equal(mt_control_format(&req, line), 0); /* three bytes each still fit */
	assert_true(strlen(line) <= MT_CONTROL_LINE_MAX);
	memmove(strchr(line, '\n'), "%25\n", 5);
	assert_int_equal(mt_control_parse(line, strlen(line) - 1, &req, &why), -EINVAL);
	assert_string_equal(why, "subject too long");
	for (i = 0; i < N_OF(reqs); i++) {
		assert_int_equal(mt_control_format(&reqs[i], line), 0);
		assert_int_equal(line[strlen(line) - 1], '\n');
		assert_int_equal(mt_control_parse(line, strlen(line) - 1, &req, &why), 0);
		assert_memory_equal(&req, &reqs[i], sizeof(req));
	}
}

/* ---- a server ---- */

struct rig {
	struct mt_control *c;
	char base[64], dir[128];
	struct mt_control_conn *last; /* of the last request that was not finished */
	unsigned requests, gone;
	uint64_t now;
	int file;
	struct mt_control_tail *tail;
};

/* status: two lines. snapshot: takes the file. stacks: refused. tail: nothing yet, c stays. */
static int on_request(void *ctx, struct mt_control_conn *c, const struct mt_control_req *req)
{
	struct rig *r = ctx;

	r->requests++;
	switch (req->verb) {
	case MT_CONTROL_STATUS:
		mt_control_line(c, "one\ntwo", 7);
		mt_control_line(c, "", 0);
		mt_control_done(c);
		return 0;
	case MT_CONTROL_SNAPSHOT:
		r->file = mt_control_take_fd(c);
		mt_control_done(c);
		return 0;
	case MT_CONTROL_STACKS:
		return -EBUSY;
	default:
		if (r->tail)
			return mt_control_tail_request(r->tail, c, req);
		r->last = c;
		return 0;
	}
}

static void on_gone(void *ctx, struct mt_control_conn *c)
{
	struct rig *r = ctx;

	r->gone++;
	if (r->tail)
		mt_control_tail_gone(r->tail, c);
	if (r->last == c)
		r->last = NULL;
}

static const struct mt_control_ops ops = {on_request, on_gone};

static struct mt_control_opts options(struct rig *r)
{
	return (struct mt_control_opts){.ops = &ops,
					.ctx = r,
					.owner = geteuid(),
					.owner_gid = getegid(),
					.max_buffer = 65536,
					.idle_ms = 1000};
}

static void rig_open(struct rig *r)
{
	struct mt_control_opts o = options(r);
	mode_t mask;

	memset(r, 0, sizeof(*r));
	r->file = -1;
	r->now = SEC;
	strcpy(r->base, "/tmp/mt-test-XXXXXX");
	assert_non_null(mkdtemp(r->base));
	snprintf(r->dir, sizeof(r->dir), "%s/montrace-bpf", r->base);
	mask = umask(0177);
	assert_int_equal(mt_control_new(&o, r->dir, 4711, NULL, &r->c), 0);
	umask(mask);
}

static void rig_close(struct rig *r)
{
	mt_control_free(r->c);
	assert_int_equal(rmdir(r->dir), 0); /* the socket is gone */
	assert_int_equal(rmdir(r->base), 0);
}

static int client(const struct rig *r)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", mt_control_path(r->c));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void run(struct rig *r)
{
	unsigned i;

	for (i = 0; i < 4; i++)
		assert_int_equal(mt_control_dispatch(r->c, r->now), 0);
}

/* All that came; "(end)" if the connection is over. */
static const char *hear(int fd)
{
	static char buf[8192];
	size_t at = 0;
	ssize_t n = 1;

	while (at + 16 < sizeof(buf) && (n = read(fd, buf + at, sizeof(buf) - 16 - at)) > 0)
		at += (size_t)n;
	strcpy(buf + at, n == 0 || errno == ECONNRESET ? "(end)" : "");
	return buf;
}

static struct mt_control_stats stats(const struct rig *r)
{
	struct mt_control_stats st;

	mt_control_stats(r->c, &st);
	return st;
}

static void expect(struct rig *r, int fd, const char *want)
{
	run(r);
	assert_string_equal(hear(fd), want);
}

static void one_request_one_answer(void **state)
{
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	fd = client(&r);
	expect(&r, fd, "");
	say(fd, "mt1 st");
	expect(&r, fd, "");
	say(fd, "atus\n");
	expect(&r, fd, "ok\n one two\n \nend\n(end)");
	close(fd);
	/* A refusal of the handler. */
	fd = client(&r);
	say(fd, "mt1 stacks\nmt1 status\n");
	expect(&r, fd, "ok\nerror Device or resource busy\n(end)");
	close(fd);
	/* Shut down for writing after the request, as `printf | nc` does. */
	fd = client(&r);
	say(fd, "mt1 status\n");
	shutdown(fd, SHUT_WR);
	expect(&r, fd, "ok\n one two\n \nend\n(end)");
	close(fd);
	assert_int_equal(r.requests, 3);
	assert_int_equal(r.gone, 0);
	assert_int_equal(stats(&r).conns, 0);
	assert_int_equal(stats(&r).accepted, 3);
	rig_close(&r);
}

static void garbage_gets_one_line(void **state)
{
	static char big[MT_CONTROL_LINE_MAX + 1];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	fd = client(&r);
	say(fd, "\x16\x03\x01\n\n\n");
	expect(&r, fd, "error not a request of this protocol\n(end)");
	close(fd);
	memset(big, 'x', MT_CONTROL_LINE_MAX);
	fd = client(&r);
	big[MT_CONTROL_LINE_MAX - 1] = '\0';
	say(fd, big);
	expect(&r, fd, "");
	say(fd, "x");
	expect(&r, fd, "error request too long\n(end)");
	close(fd);
	/* Leaves without a request, or in the middle of one. */
	fd = client(&r);
	run(&r);
	close(fd);
	fd = client(&r);
	say(fd, "mt1");
	shutdown(fd, SHUT_WR);
	expect(&r, fd, "(end)");
	close(fd);
	run(&r);
	assert_int_equal(stats(&r).bad, 2);
	assert_int_equal(stats(&r).conns, 0);
	assert_int_equal(r.requests, 0);
	assert_int_equal(r.gone, 0);
	rig_close(&r);
}

static void no_more_than_32(void **state)
{
	int fd[MT_CONTROL_CONNS + 1];
	struct rig r;
	unsigned i;

	(void)state;
	rig_open(&r);
	for (i = 0; i < MT_CONTROL_CONNS; i++) {
		fd[i] = client(&r);
		expect(&r, fd[i], "");
	}
	fd[i] = client(&r);
	expect(&r, fd[i], "error too many connections\n(end)");
	close(fd[i]);
	assert_int_equal(stats(&r).refused, 1);
	/* One leaves, one may come. */
	close(fd[0]);
	run(&r);
	fd[0] = client(&r);
	say(fd[0], "mt1 status\n");
	expect(&r, fd[0], "ok\n one two\n \nend\n(end)");
	for (i = 0; i < MT_CONTROL_CONNS; i++)
		close(fd[i]);
	rig_close(&r);
}

/* Who only takes up a place gives it to the next one; who was given an answer to make, or is new, does not. */
static void places_are_for_those_who_ask(void **state)
{
	int fd[MT_CONTROL_CONNS], more[3];
	struct rig r;
	unsigned i;

	(void)state;
	rig_open(&r);
	fd[0] = client(&r);
	say(fd[0], "mt1 tail follow\n");
	expect(&r, fd[0], "ok\n");
	for (i = 1; i < MT_CONTROL_CONNS; i++) {
		r.now += 1000;
		fd[i] = client(&r);
		say(fd[i], "mt1 sta");
		expect(&r, fd[i], "");
	}
	r.now = SEC + 1000 + SEC / 10; /* fd[1] had its 100 ms, fd[2] not quite */
	for (i = 0; i < 2; i++)
		more[i] = client(&r);
	expect(&r, more[0], "");
	expect(&r, more[1], "error too many connections\n(end)");
	expect(&r, fd[1], "error too many connections\n(end)");
	expect(&r, fd[2], "");
	say(more[0], "mt1 status\n");
	expect(&r, more[0], "ok\n one two\n \nend\n(end)");
	assert_int_equal(stats(&r).refused, 2);
	assert_int_equal(stats(&r).conns, MT_CONTROL_CONNS - 1);
	/* Many come at once. */
	r.now += SEC / 10;
	for (i = 0; i < 3; i++) {
		if (i)
			close(more[i - 1]);
		more[i] = client(&r);
	}
	run(&r);
	say(more[2], "mt1 status\n");
	expect(&r, more[2], "ok\n one two\n \nend\n(end)");
	assert_int_equal(r.gone, 0);
	assert_non_null(r.last); /* who follows is still there */
	close(more[2]);
	for (i = 0; i < MT_CONTROL_CONNS; i++)
		close(fd[i]);
	run(&r);
	assert_int_equal(stats(&r).conns, 0);
	rig_close(&r);
}

/* More lines than the buffer holds before the loop comes by: who reads gets them all. */
static void lines_go_out_before_the_loop_comes(void **state)
{
	static char text[1000], buf[300000];
	struct mt_control_opts o;
	struct rig r;
	size_t all = 0;
	unsigned i;
	ssize_t n;
	int fd;

	(void)state;
	memset(text, 'y', sizeof(text));
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.max_buffer = 200000;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	fd = client(&r);
	say(fd, "mt1 tail follow\n");
	expect(&r, fd, "ok\n");
	for (i = 0; i < 2000; i++) {
		assert_int_equal(mt_control_line(r.last, text, sizeof(text)), 0);
		if (i % 40 == 0)
			while ((n = read(fd, buf, sizeof(buf))) > 0)
				all += (size_t)n;
	}
	run(&r);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		all += (size_t)n, run(&r);
	assert_int_equal(all, 2000 * 1002);
	assert_int_equal(mt_control_waiting(r.last), 0);
	close(fd);
	rig_close(&r);
}

/* Together they may not make more wait than max_total: who stands still the longest goes. */
static void all_buffers_together_are_bounded(void **state)
{
	static char text[1000];
	struct mt_control_conn *c[3];
	struct mt_control_opts o;
	struct rig r;
	unsigned i, k;
	int fd[3], rc = 0;

	(void)state;
	memset(text, 'y', sizeof(text));
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.max_buffer = 1 << 20;
	o.max_total = (1 << 20) + 8192;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	for (i = 0; i < 3; i++) {
		r.now += 1000;
		fd[i] = client(&r);
		say(fd[i], "mt1 tail follow\n");
		expect(&r, fd[i], "ok\n");
		c[i] = r.last;
	}
	for (i = 0; i < 2; i++) { /* two buffers of half of it each */
		r.now += 1000;
		for (k = 0; k < 1000 && mt_control_waiting(c[i]) < 300000; k++)
			assert_int_equal(mt_control_line(c[i], text, sizeof(text)), 0);
		run(&r);
	}
	assert_int_equal(stats(&r).slow, 0);
	for (k = 0; k < 300 && !rc; k++) {
		rc = mt_control_line(c[2], text, sizeof(text));
		hear(fd[2]);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(stats(&r).slow, 1);
	assert_int_equal(mt_control_line(c[0], "x", 1), -EPIPE);
	assert_int_equal(mt_control_line(c[1], "x", 1), 0);
	run(&r);
	assert_int_equal(stats(&r).conns, 2);
	assert_int_equal(r.gone, 1);
	for (i = 0; i < 3; i++)
		close(fd[i]);
	rig_close(&r);
}

static void slow_readers_are_dropped(void **state)
{
	static char text[1000];
	struct rig r;
	unsigned i;
	int fd, rc = 0;

	(void)state;
	memset(text, 'y', sizeof(text));
	rig_open(&r);
	fd = client(&r);
	say(fd, "mt1 tail follow\n");
	expect(&r, fd, "ok\n");
	/* Who reads gets all of it, also more than the buffer holds. */
	for (i = 0; i < 400; i++) {
		assert_int_equal(mt_control_line(r.last, text, sizeof(text)), 0);
		run(&r);
		assert_int_equal(strlen(hear(fd)), 1002);
	}
	for (i = 0; i < 2000 && !rc; i++) {
		rc = mt_control_line(r.last, text, sizeof(text));
		if (i % 50 == 0)
			run(&r);
	}
	assert_int_equal(rc, -EPIPE);
	assert_in_range(i, 65, 600); /* its buffer and the socket's */
	assert_int_equal(mt_control_line(r.last, text, 1), -EPIPE);
	assert_int_equal(r.gone, 0);
	run(&r);
	assert_int_equal(r.gone, 1);
	assert_int_equal(stats(&r).slow, 1);
	assert_int_equal(stats(&r).conns, 0);
	close(fd);
	rig_close(&r);
}

static int queued(int fd)
{
	int n = -1;

	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

static void time_limits(void **state)
{
	static char text[1000];
	struct rig r;
	int a, b, before;

	(void)state;
	memset(text, 'y', sizeof(text));
	rig_open(&r);
	a = client(&r); /* never says anything */
	b = client(&r); /* follows, nothing to tell */
	say(b, "mt1 tail follow\n");
	run(&r);
	assert_string_equal(hear(b), "ok\n");
	r.now += SEC;
	expect(&r, a, "");
	say(a, "mt1"); /* the limit is for the whole line */
	run(&r);
	r.now += 1;
	expect(&r, a, "(end)");
	assert_int_equal(stats(&r).slow, 1);
	r.now += 100 * SEC;
	expect(&r, b, "");
	/* An answer that does not move: the socket is full, the buffer is not. */
	for (before = -1; before < queued(b);) {
		before = queued(b);
		assert_int_equal(mt_control_line(r.last, text, sizeof(text)), 0);
		run(&r);
	}
	assert_int_equal(stats(&r).conns, 1);
	r.now += SEC;
	run(&r);
	assert_int_equal(stats(&r).conns, 1);
	r.now += 1;
	run(&r);
	assert_int_equal(r.gone, 1);
	assert_int_equal(stats(&r).conns, 0);
	close(a);
	close(b);
	rig_close(&r);
}

static void followers_leave(void **state)
{
	struct rig r;
	int fd, k;

	(void)state;
	rig_open(&r);
	for (k = 0; k < 2; k++) {
		fd = client(&r);
		say(fd, "mt1 tail follow\n");
		if (k)
			shutdown(fd, SHUT_WR); /* half closed: still listens */
		expect(&r, fd, "ok\n");
		assert_non_null(r.last);
		mt_control_line(r.last, "x", 1);
		expect(&r, fd, " x\n");
		if (!k)
			say(fd, "more\n"); /* what comes after the request is nothing */
		expect(&r, fd, "");
		close(fd);
		run(&r);
		assert_null(r.last);
		assert_int_equal(r.gone, k + 1);
	}
	/* The end of the server is told, too. */
	fd = client(&r);
	say(fd, "mt1 tail follow\n");
	run(&r);
	rig_close(&r);
	assert_int_equal(r.gone, 3);
	close(fd);
}

/* Later than the request, out of the handler. */
static void answers_may_come_later(void **state)
{
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	fd = client(&r);
	say(fd, "mt1 tail\n");
	run(&r);
	mt_control_fail(r.last, "no\nsuch");
	expect(&r, fd, "ok\nerror no such\n(end)");
	assert_int_equal(r.gone, 0);
	close(fd);
	rig_close(&r);
}

/* ---- who may ask ---- */

static int as_user(const char *path, uid_t uid)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct sockaddr_un a = {.sun_family = AF_UNIX};
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (setuid(uid) < 0)
			_exit(9);
		snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
		_exit(connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void only_root_and_the_owner(void **state)
{
	struct mt_control_opts o;
	struct rig r;
	struct stat st;

	(void)state;
	if (geteuid() != 0)
		skip();
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.owner = 12345;
	o.owner_gid = 54321;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	assert_int_equal(chmod(r.base, 0755), 0);
	assert_int_equal(stat(r.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(stat(mt_control_path(r.c), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 54321);
	assert_int_equal(as_user(mt_control_path(r.c), 23456), 1);
	assert_int_equal(as_user(mt_control_path(r.c), 12345), 0);
	run(&r);
	assert_int_equal(stats(&r).accepted, 1);
	/* Should the mode of the socket ever let somebody in, his uid does not. */
	assert_int_equal(chmod(mt_control_path(r.c), 0666), 0);
	assert_int_equal(as_user(mt_control_path(r.c), 23456), 0);
	run(&r);
	assert_int_equal(stats(&r).denied, 1);
	assert_int_equal(stats(&r).accepted, 1);
	assert_int_equal(as_user(mt_control_path(r.c), 0), 0);
	run(&r);
	assert_int_equal(stats(&r).accepted, 2);
	rig_close(&r);
}

static void directories_are_checked(void **state)
{
	struct mt_control_opts o;
	struct mt_control_err err = {""};
	struct mt_control *other = NULL;
	char link[128], path[256];
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	o = options(&r);
	/* Somebody listens under the name; then nobody does any more. */
	assert_int_equal(mt_control_new(&o, r.dir, 4711, &err, &other), -EADDRINUSE);
	assert_non_null(strstr(err.text, "somebody listens there"));
	snprintf(link, sizeof(link), "%s/left", r.base);
	assert_int_equal(rename(mt_control_path(r.c), link), 0);
	mt_control_free(r.c);
	snprintf(path, sizeof(path), "%s/4711.sock", r.dir);
	assert_int_equal(rename(link, path), 0);
	assert_int_equal(mt_control_new(&o, r.dir, 4711, &err, &r.c), 0);
	fd = client(&r);
	close(fd);
	/* A link, a writable one, a file, somebody else's. */
	assert_int_equal(symlink(r.dir, link), 0);
	assert_int_equal(mt_control_new(&o, link, 1, &err, &other), -ENOTDIR);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(chmod(r.dir, 0770), 0);
	assert_int_equal(mt_control_new(&o, r.dir, 1, &err, &other), -EPERM);
	assert_non_null(strstr(err.text, "others may write"));
	assert_int_equal(chmod(r.dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(r.dir, 12345, 0), 0);
		assert_int_equal(mt_control_new(&o, r.dir, 1, &err, &other), -EPERM);
		assert_int_equal(chown(r.dir, 0, 0), 0);
	}
	assert_int_equal(mt_control_new(&o, "/dev/null", 1, &err, &other), -ENOTDIR);
	assert_int_equal(mt_control_new(&o, "/nonexistent/x", 1, &err, &other), -ENOENT);
	assert_null(other);
	rig_close(&r);
}

static void directory_names(void **state)
{
	char dir[64];

	(void)state;
	assert_int_equal(mt_control_dir(0, "/run/user/0", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/run/montrace-bpf");
	assert_int_equal(mt_control_dir(1000, "/run/user/1000", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/run/user/1000/montrace-bpf");
	assert_int_equal(mt_control_dir(1000, "relative", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/tmp/montrace-bpf-1000");
	assert_int_equal(mt_control_dir(1000, NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/tmp/montrace-bpf-1000");
	assert_int_equal(mt_control_dir(1000, NULL, dir, 22), -ENAMETOOLONG);
}

/* ---- finding a tracer ---- */

static void tracers_are_found(void **state)
{
	struct mt_control_found *v = NULL;
	struct mt_control_opts o;
	struct mt_control_err err = {""};
	struct mt_control *second;
	const char *dirs[] = {"/nonexistent", NULL};
	char path[256];
	struct rig r;
	unsigned n = 9, running = 0;
	int fd;

	(void)state;
	rig_open(&r);
	dirs[1] = r.dir;
	snprintf(path, sizeof(path), "%s/99.sock", r.dir);
	close(open(path, O_CREAT | O_WRONLY, 0600)); /* no socket */
	snprintf(path, sizeof(path), "%s/4711.sock.old", r.dir);
	assert_int_equal(symlink("4711.sock", path), 0); /* somebody listens, but the name is not ours */
	assert_int_equal(mt_control_list(dirs, 2, &v, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].pid, 4711);
	assert_false(v[0].denied);
	assert_string_equal(v[0].path, mt_control_path(r.c));
	free(v);
	run(&r);
	assert_int_equal(stats(&r).conns, 0); /* the look leaves nothing behind */

	dirs[0] = "/run/montrace-bpf"; /* somebody may really be there */
	assert_int_equal(mt_control_list(dirs, 1, &v, &running), 0);
	free(v);
	if (!running) {
		assert_int_equal(mt_control_connect(NULL, 12345, r.base, &err, &fd), 0);
		close(fd);
	}
	assert_int_equal(mt_control_connect("4711", 12345, r.base, &err, &fd), 0);
	close(fd);
	assert_int_equal(mt_control_connect(mt_control_path(r.c), 12345, NULL, &err, &fd), 0);
	close(fd);
	assert_int_equal(mt_control_connect("99", 12345, r.base, &err, &fd), -ENOENT);
	assert_string_equal(err.text, "no tracer with pid 99 is running");
	assert_int_equal(mt_control_connect("47x", 12345, r.base, &err, &fd), -EINVAL);
	assert_int_equal(mt_control_connect("0", 12345, r.base, &err, &fd), -EINVAL);
	assert_int_equal(mt_control_connect("4294967296", 12345, r.base, &err, &fd), -EINVAL);
	assert_int_equal(mt_control_connect("./none", 12345, r.base, &err, &fd), -ENOENT);

	o = options(&r);
	assert_int_equal(mt_control_new(&o, r.dir, 123, &err, &second), 0);
	assert_int_equal(mt_control_connect(NULL, 12345, r.base, &err, &fd), -EMLINK);
	if (!running)
		assert_string_equal(err.text, "there are several tracers, say which: 123, 4711");
	mt_control_free(second);
	/* A directory that others may write to: nobody is there. */
	assert_int_equal(chmod(r.dir, 0777), 0);
	assert_int_equal(mt_control_list(dirs + 1, 1, &v, &n), 0);
	assert_int_equal(n, 0);
	free(v);
	assert_int_equal(chmod(r.dir, 0700), 0);
	unlink(path);
	snprintf(path, sizeof(path), "%s/99.sock", r.dir);
	unlink(path);
	rig_close(&r);
}

/* Binds name in dir, as a tracer does; age: s. Returns the socket. */
static int bind_in(const struct rig *r, const char *name, bool listens, int age)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - age}};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%.90s/%.15s", r->dir, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(utimensat(AT_FDCWD, a.sun_path, times, 0), 0);
	if (listens)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* What a killed tracer left goes with the next start; a living one, one just starting and what is not ours stay. */
static void sockets_of_the_dead_go(void **state)
{
	const struct {
		const char *name;
		bool listens, open, stays;
		int age;
	} cases[] = {
		{"11.sock", false, false, false, 20}, {"12.sock", false, true, false, 20},
		{"13.sock", true, true, true, 20},    {"14.sock", false, true, true, 2},
		{"15.sock", false, false, true, 2},   {"16.sock.old", false, false, true, 20},
		{"017.sock", false, false, true, 20}, {"some.sock", false, false, true, 20},
	};
	struct mt_control_opts o;
	struct mt_control_err err = {""};
	struct mt_control *c;
	struct rig r;
	char path[256], file[256];
	int fds[8];
	unsigned i;

	(void)state;
	rig_open(&r);
	for (i = 0; i < 8; i++) {
		fds[i] = bind_in(&r, cases[i].name, cases[i].listens, cases[i].age);
		if (!cases[i].open)
			close(fds[i]);
	}
	snprintf(file, sizeof(file), "%s/18.sock", r.dir);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	snprintf(path, sizeof(path), "%s/19.sock", r.dir);
	assert_int_equal(symlink("11.sock", path), 0);
	o = options(&r);
	assert_int_equal(mt_control_new(&o, r.dir, 123, &err, &c), 0);
	mt_control_free(c);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(file), 0);
	for (i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "%s/%s", r.dir, cases[i].name);
		if (cases[i].stays != (access(path, F_OK) == 0))
			fail_msg("%s %s", cases[i].name, cases[i].stays ? "is gone" : "is there");
		if (cases[i].open)
			close(fds[i]);
		unlink(path);
	}
	assert_int_equal(access(mt_control_path(r.c), F_OK), 0);
	rig_close(&r);
}

/* Longer than a socket's address holds: the server binds there, and the client finds it. */
static void long_directories(void **state)
{
	char runtime[192], dir[256], name[120];
	struct mt_control_opts o;
	struct mt_control_err err = {""};
	struct mt_control *c;
	struct rig r;
	int fd;

	(void)state;
	rig_open(&r);
	memset(name, 'd', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	snprintf(runtime, sizeof(runtime), "%s/%s", r.base, name);
	assert_int_equal(mkdir(runtime, 0700), 0);
	assert_int_equal(mt_control_dir(12345, runtime, dir, sizeof(dir)), 0);
	o = options(&r);
	assert_int_equal(mt_control_new(&o, dir, 7, &err, &c), 0);
	assert_int_equal(mt_control_connect("7", 12345, runtime, &err, &fd), 0);
	close(fd);
	assert_int_equal(mt_control_connect(mt_control_path(c), 12345, NULL, &err, &fd), 0);
	close(fd);
	snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "/8.sock");
	assert_int_equal(mt_control_connect(dir, 12345, NULL, &err, &fd), -ENOENT);
	assert_non_null(strstr(err.text, "/8.sock: No such file"));
	mt_control_free(c);
	*strrchr(dir, '/') = '\0';
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mt_control_connect(mt_control_path(r.c), 12345, NULL, &err, &fd), 0);
	close(fd);
	assert_int_equal(rmdir(runtime), 0);
	rig_close(&r);
}

/* ---- files ---- */

static unsigned open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* `text` with three files. */
static void say_with_files(int fd, const char *text, int file)
{
	int files[3] = {file, file, file};
	char control[CMSG_SPACE(sizeof(files))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *m = CMSG_FIRSTHDR(&msg);

	m->cmsg_level = SOL_SOCKET;
	m->cmsg_type = SCM_RIGHTS;
	m->cmsg_len = CMSG_LEN(sizeof(files));
	memcpy(CMSG_DATA(m), files, sizeof(files));
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), strlen(text));
}

static void files_come_along(void **state)
{
	static const struct mt_control_req snapshot = {.verb = MT_CONTROL_SNAPSHOT},
					   status = {.verb = MT_CONTROL_STATUS};
	char path[128];
	struct rig r;
	int fd, file, ro, pipes[2];
	unsigned before;

	(void)state;
	rig_open(&r);
	snprintf(path, sizeof(path), "%s/file", r.base);
	file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pipe(pipes), 0);
	before = open_files();

	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &snapshot, file), 0);
	expect(&r, fd, "ok\nend\n(end)");
	close(fd);
	assert_true(r.file >= 0);
	assert_int_equal(write(r.file, "abc", 3), 3);
	assert_int_equal(fcntl(r.file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(lseek(file, 0, SEEK_END), 3);
	close(r.file);

	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &snapshot, -1), 0);
	expect(&r, fd, "ok\nend\n(end)");
	assert_int_equal(r.file, -1);
	close(fd);

	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &snapshot, ro), 0);
	expect(&r, fd, "error this file cannot be written to\n(end)");
	close(fd);
	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &snapshot, pipes[1]), 0);
	expect(&r, fd, "error this file cannot be written to\n(end)");
	close(fd);
	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &status, file), 0);
	expect(&r, fd, "error this file cannot be written to\n(end)");
	close(fd);
	/* Many at once: the first is taken. Then one that comes after the request, to one who follows. */
	fd = client(&r);
	say_with_files(fd, "mt1 snap", file);
	run(&r);
	say_with_files(fd, "shot\n", file);
	expect(&r, fd, "ok\nend\n(end)");
	close(fd);
	assert_true(r.file >= 0);
	close(r.file);
	fd = client(&r);
	say(fd, "mt1 tail\n");
	run(&r);
	before++; /* the connection's */
	before++; /* and ours */
	say_with_files(fd, "x", file);
	run(&r);
	assert_in_range(open_files(), before, before + 1); /* one may wait for the end of the connection */
	close(fd);
	run(&r);
	before -= 2;
	/* Two requests, each with a file: one request is a connection. */
	fd = client(&r);
	assert_int_equal(mt_control_send(fd, &snapshot, file), 0);
	assert_int_equal(mt_control_send(fd, &snapshot, file), 0);
	run(&r);
	close(fd);
	assert_true(r.file >= 0);
	close(r.file);
	run(&r);
	assert_int_equal(open_files(), before);
	close(file);
	close(ro);
	close(pipes[0]);
	close(pipes[1]);
	unlink(path);
	rig_close(&r);
}

/* ---- the client ---- */

static void stream_table(void **state)
{
	static const struct {
		const char *answer, *out, *why;
		int rc;
	} cases[] = {
		{"ok\n a\n \n end\nend\n", "a\n\nend\n", "", 0},
		{"ok\nend\n x\n", "", "", 0},
		{"error no\n", "", "no", -EREMOTEIO},
		{"ok\n a\nerror later\n", "a\n", "later", -EREMOTEIO},
		{"ok\n a\n b", "a\n", "the tracer ended, or this side was too slow", -EPIPE},
		{"", "", "the tracer ended, or this side was too slow", -EPIPE},
		{"error too many connections\n", "", "too many connections", -EUSERS},
		{"hello\n", "", "the answer is not understood", -EPROTO},
		{"\n", "", "the answer is not understood", -EPROTO},
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct mt_control_err err = {""};
		char out[256] = "";
		int s[2], p[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
		assert_int_equal(pipe(p), 0);
		say(s[0], cases[i].answer);
		close(s[0]);
		assert_int_equal(mt_control_stream(s[1], p[1], &err), cases[i].rc);
		assert_string_equal(err.text, cases[i].why);
		close(p[1]);
		assert_true(read(p[0], out, sizeof(out) - 1) >= 0);
		assert_string_equal(out, cases[i].out);
		close(p[0]);
		close(s[1]);
	}
}

struct job {
	char path[256];
	struct mt_control_req req;
	int out, rc;
	volatile bool done;
};

static void *client_thread(void *arg)
{
	struct job *j = arg;
	struct mt_control_err err;
	int fd;

	j->rc = mt_control_connect(j->path, 0, NULL, &err, &fd);
	if (j->rc == 0) {
		j->rc = mt_control_send(fd, &j->req, -1);
		if (j->rc == 0)
			j->rc = mt_control_stream(fd, j->out, &err);
		close(fd);
	}
	__atomic_store_n(&j->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ---- tail, from the recordings to the client ---- */

static const struct mt_callsite recording = {.class_ = MONTRACE_CLASS_RECORDING,
					     .name = "recording",
					     .target = "t",
					     .file = "f.c",
					     .nfields = 2,
					     .fields = {{.name = "subject", .type = MONTRACE_TYPE_STR},
							{.name = "capacity", .type = MONTRACE_TYPE_U64}}};
static const struct mt_callsite event = {.class_ = MONTRACE_CLASS_EVENT,
					 .level = MONTRACE_INFO,
					 .name = "hello",
					 .target = "t",
					 .file = "f.c"};

struct subjects {
	struct mt_sink *s;
	struct mt_process p;
	struct mt_thread t;
};

static void subjects_open(struct subjects *w)
{
	static const char *const names[] = {"job 1", "other"};
	struct mt_recordings_opts o = {0};
	unsigned i;

	memset(w, 0, sizeof(*w));
	assert_int_equal(mt_recordings_new(&o, &w->s), 0);
	w->p = (struct mt_process){.pid = 1, .name = "p", .cmdline = "", .execution_id = ""};
	w->t = (struct mt_thread){.process = &w->p, .tid = 1, .name = "main"};
	for (i = 0; i < 2; i++) {
		struct mt_value v[2] = {{.type = MONTRACE_TYPE_STR, .s = {names[i], 5}},
					{.type = MONTRACE_TYPE_U64, .u = 4096}};
		struct mt_span_new n = {
			.process = &w->p, .span = i + 1, .cs = &recording, .nvalues = 2, .values = v};

		assert_int_equal(w->s->ops->span_new(w->s, &n), 0);
	}
}

static void subjects_close(struct subjects *w)
{
	w->s->ops->gone(w->s, &w->p, NULL, 0);
	assert_int_equal(w->s->ops->free(w->s), 0);
}

static void happen(struct subjects *w, uint64_t span, uint64_t time)
{
	struct mt_instant i = {
		.thread = &w->t, .time = time, .cs = &event, .name = {"hello", 5}, .parent = span};

	assert_int_equal(w->s->ops->instant(w->s, &i), 0);
}

static void tail_and_follow(void **state)
{
	static const struct mt_recorded_clock clock = {0};
	struct mt_recorded_clock set = {1000000000};
	const char *got;
	struct subjects w;
	struct rig r;
	int a, b, c;

	(void)state;
	setenv("TZ", "UTC", 1);
	rig_open(&r);
	subjects_open(&w);
	assert_int_equal(mt_control_tail_new(w.s, &clock, &r.tail), 0);
	happen(&w, 1, 1000);
	happen(&w, 2, 2000);
	happen(&w, 1, 3000);
	a = client(&r);
	say(a, "mt1 tail n=1\n");
	expect(&r, a, "ok\n I 00:00:00.000003 <job 1> hello (main)\nend\n(end)");
	b = client(&r);
	say(b, "mt1 tail follow n=2 subject=job*\n");
	expect(&r, b,
	       "ok\n I 00:00:00.000001 <job 1> hello (main)\n I 00:00:00.000003 <job 1> hello (main)\n");
	c = client(&r);
	say(c, "mt1 tail follow n=0 json\n");
	expect(&r, c, "ok\n");
	happen(&w, 1, 4000);
	happen(&w, 2, 5000);
	happen(&w, 0, 6000);
	expect(&r, b, " I 00:00:00.000004 <job 1> hello (main)\n");
	got = hear(c);
	assert_non_null(strstr(got, "\"timestamp\":\"1970-01-01T00:00:00.000004000Z\""));
	assert_non_null(strstr(got, "\"subject\":\"other\""));
	assert_null(strstr(got, "000006"));
	mt_control_tail_clock(r.tail, &set);
	happen(&w, 1, 7000);
	expect(&r, b, " I 00:00:01.000007 <job 1> hello (main)\n");
	close(c);
	run(&r);
	assert_int_equal(r.gone, 1);
	happen(&w, 1, 8000);
	expect(&r, b, " I 00:00:01.000008 <job 1> hello (main)\n");
	/* The end of tracing ends the answers as they should. */
	mt_control_tail_free(r.tail);
	r.tail = NULL;
	expect(&r, b, "end\n(end)");
	happen(&w, 1, 9000);
	close(a);
	close(b);
	subjects_close(&w);
	rig_close(&r);
}

/* One who reads more slowly than events come: some are left out, he is told how many, and stays. */
static void followers_fall_behind(void **state)
{
	static const struct mt_recorded_clock clock = {0};
	static char text[4 << 20];
	struct mt_control_opts o;
	struct subjects w;
	unsigned long left = 0;
	unsigned lines = 0, i, told = 0;
	struct rig r;
	size_t len = 0;
	char *p;
	ssize_t n;
	int fd;

	(void)state;
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.max_buffer = 0;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	subjects_open(&w);
	assert_int_equal(mt_control_tail_new(w.s, &clock, &r.tail), 0);
	fd = client(&r);
	say(fd, "mt1 tail follow n=0\n");
	expect(&r, fd, "ok\n");
	for (i = 0; i < 60000; i++) {
		if (i == 30000) /* reads it all */
			for (run(&r); (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0; run(&r))
				len += (size_t)n;
		happen(&w, 1, i * 1000);
	}
	mt_control_tail_free(r.tail);
	r.tail = NULL;
	for (run(&r); (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0; run(&r))
		len += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(stats(&r).slow, 0);
	for (p = text; p; p = strchr(p, '\n'), p += p != NULL) {
		lines += strncmp(p, " I ", 3) == 0;
		if (strncmp(p, " (", 2) == 0) {
			assert_non_null(
				strstr(p, " events left out: they came faster than this side reads)\n"));
			left += strtoul(p + 2, NULL, 10);
			told++;
		}
	}
	assert_int_equal(told, 2);
	assert_int_equal(lines + left, 60000);
	assert_true(lines > 10000 && left > 10000);
	close(fd);
	subjects_close(&w);
	rig_close(&r);
}

/* The end of tracing: who reads gets the rest of his answer, who does not holds up nobody for long. */
static void rests_go_out_at_the_end(void **state)
{
	static const struct mt_recorded_clock clock = {0};
	struct job j = {.req = {.verb = MT_CONTROL_TAIL, .n = 0, .follow = true}};
	struct mt_control_opts o;
	struct timespec a, b;
	struct subjects w;
	pthread_t thread;
	struct rig r;
	FILE *out = tmpfile();
	unsigned i;
	int fd;

	(void)state;
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.max_buffer = 0;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	subjects_open(&w);
	assert_int_equal(mt_control_tail_new(w.s, &clock, &r.tail), 0);
	j.out = fileno(out);
	snprintf(j.path, sizeof(j.path), "%s", mt_control_path(r.c));
	assert_int_equal(pthread_create(&thread, NULL, client_thread, &j), 0);
	while (r.requests < 1) {
		run(&r);
		usleep(1000);
	}
	fd = client(&r);
	say(fd, "mt1 tail follow n=0\n");
	run(&r);
	assert_int_equal(r.requests, 2);
	for (i = 0; i < 10000; i++) /* much more than a socket holds */
		happen(&w, 1, i * 1000);
	mt_control_tail_free(r.tail);
	r.tail = NULL;
	clock_gettime(CLOCK_MONOTONIC, &a);
	mt_control_linger(r.c, 2000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec < 4);
	assert_int_equal(stats(&r).conns, 1);
	pthread_join(thread, NULL);
	assert_int_equal(j.rc, 0);
	assert_true(lseek(j.out, 0, SEEK_END) > 250000);
	fclose(out);
	close(fd);
	subjects_close(&w);
	rig_close(&r);
}

static void not_all_places_follow(void **state)
{
	static const struct mt_recorded_clock clock = {0};
	int fd[MT_CONTROL_FOLLOWERS + 2];
	struct subjects w;
	struct rig r;
	unsigned i;

	(void)state;
	rig_open(&r);
	subjects_open(&w);
	assert_int_equal(mt_control_tail_new(w.s, &clock, &r.tail), 0);
	for (i = 0; i < MT_CONTROL_FOLLOWERS; i++) {
		fd[i] = client(&r);
		say(fd[i], "mt1 tail follow\n");
		expect(&r, fd[i], "ok\n");
	}
	fd[i] = client(&r);
	say(fd[i], "mt1 tail follow\n");
	expect(&r, fd[i], "ok\nerror too many are following already\n(end)");
	fd[++i] = client(&r);
	say(fd[i], "mt1 status\n");
	expect(&r, fd[i], "ok\n one two\n \nend\n(end)");
	for (i = 0; i < MT_CONTROL_FOLLOWERS + 2; i++)
		close(fd[i]);
	run(&r);
	mt_control_tail_free(r.tail);
	r.tail = NULL;
	subjects_close(&w);
	rig_close(&r);
}

static void a_whole_tail_over_both_sides(void **state)
{
	static const struct mt_recorded_clock clock = {0};
	struct subjects w;
	struct job j = {.req = {.verb = MT_CONTROL_TAIL, .n = 4000}};
	struct mt_control_opts o;
	pthread_t thread;
	struct rig r;
	char *text;
	FILE *out = tmpfile();
	unsigned i, lines = 0;
	off_t len;

	(void)state;
	rig_open(&r);
	mt_control_free(r.c);
	o = options(&r);
	o.max_buffer = 0;
	assert_int_equal(mt_control_new(&o, r.dir, 4711, NULL, &r.c), 0);
	subjects_open(&w);
	assert_int_equal(mt_control_tail_new(w.s, &clock, &r.tail), 0);
	for (i = 0; i < 4096; i++)
		happen(&w, 1, i * 1000);
	j.out = fileno(out);
	snprintf(j.path, sizeof(j.path), "%s", mt_control_path(r.c));
	assert_int_equal(pthread_create(&thread, NULL, client_thread, &j), 0);
	while (!__atomic_load_n(&j.done, __ATOMIC_ACQUIRE)) {
		run(&r);
		usleep(100);
	}
	pthread_join(thread, NULL);
	assert_int_equal(j.rc, 0);
	len = lseek(j.out, 0, SEEK_END);
	text = calloc(1, (size_t)len + 1);
	assert_int_equal(pread(j.out, text, (size_t)len, 0), len);
	for (i = 0; i < (unsigned)len; i++)
		lines += text[i] == '\n';
	assert_int_equal(lines, 4000);
	assert_non_null(strstr(text, "00:00:00.000096 "));
	assert_null(strstr(text, "00:00:00.000095 "));
	free(text);
	fclose(out);
	mt_control_tail_free(r.tail);
	r.tail = NULL;
	subjects_close(&w);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_table),
		cmocka_unit_test(requests_round_trip),
		cmocka_unit_test(one_request_one_answer),
		cmocka_unit_test(garbage_gets_one_line),
		cmocka_unit_test(no_more_than_32),
		cmocka_unit_test(places_are_for_those_who_ask),
		cmocka_unit_test(lines_go_out_before_the_loop_comes),
		cmocka_unit_test(all_buffers_together_are_bounded),
		cmocka_unit_test(slow_readers_are_dropped),
		cmocka_unit_test(time_limits),
		cmocka_unit_test(followers_leave),
		cmocka_unit_test(answers_may_come_later),
		cmocka_unit_test(only_root_and_the_owner),
		cmocka_unit_test(directories_are_checked),
		cmocka_unit_test(directory_names),
		cmocka_unit_test(tracers_are_found),
		cmocka_unit_test(sockets_of_the_dead_go),
		cmocka_unit_test(long_directories),
		cmocka_unit_test(files_come_along),
		cmocka_unit_test(stream_table),
		cmocka_unit_test(tail_and_follow),
		cmocka_unit_test(followers_fall_behind),
		cmocka_unit_test(rests_go_out_at_the_end),
		cmocka_unit_test(not_all_places_follow),
		cmocka_unit_test(a_whole_tail_over_both_sides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
