/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket: questions to a running tracer.
 *
 * The idea. A unix stream socket that only root and the calling user may use. One connection is one request:
 *
 *     > mt1 tail n=2 subject=job*\n
 *     < ok\n
 *     < <space>a line of the answer\n        as many as there are
 *     < end\n                                 or: error <why>\n
 *
 * So an answer that stops early is told from one that is complete, and a person with any socket tool can
 * read it. A request that makes no sense gets one error line. With a snapshot request the client may pass a
 * file that he opened himself: the tracer, which may be root, never opens a path on somebody's behalf.
 *
 * Everything is non-blocking. The server has an epoll set of its own, which the caller puts into his.
 *
 * Invariants
 *  C1  No call waits, whatever a client does (mt_control_linger excepted: a given time at most).
 *  C2  Memory is bounded: MT_CONTROL_CONNS connections, a request of MT_CONTROL_LINE_MAX bytes, an answer
 *      of max_buffer bytes that wait, max_total for all. Who does not read in time, or lets more than that pile
 *      up, is dropped; who takes up a place and asks nothing gives it to the next one.
 *  C3  Only root and the owner are heard: the directory, the mode of the socket, and the peer's uid as the
 *      kernel tells it, each on its own.
 *  C4  A connection's memory goes in the loop only, after the events of this round; the handler is told
 *      gone() once for each request that it was given and did not finish.
 *  C5  Only our own socket is ever removed from the directory, or one of a tracer's name that nobody
 *      answers on: of our name, or older than some seconds.
 *
 * Not done here: what the requests mean (the handler does that), requests over a network.
 */
#include "control_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 100000000u /* for a request, when others wait for the place */

static int server_new(const struct mt_control_opts *opts, struct mt_control **ret_control)
{
	struct mt_control *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->opts = *opts;
	if (!c->opts.max_buffer)
		c->opts.max_buffer = 4u << 20;
	if (!c->opts.max_total)
		c->opts.max_total = 16u << 20;
	if (!c->opts.idle_ms)
		c->opts.idle_ms = 10000;
	c->listener = -1;
	c->dirfd = -1;
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll < 0) {
		free(c);
		return -errno;
	}
	*ret_control = c;
	return 0;
}

int mt_control_new_bare(const struct mt_control_opts *opts, struct mt_control **ret_control)
{
	return server_new(opts, ret_control);
}

/*
 * Binds by way of the open directory, so that nobody can put another one in between, and the length of the
 * directory's name does not matter. The mode is set before the name exists.
 */
static int bind_at(struct mt_control *c)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", c->dirfd, c->name);
	if (fchmod(c->listener, 0600) < 0 || bind(c->listener, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return 0;
}

static int listen_at(struct mt_control *c, struct mt_control_err *err)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int rc, fd;

	c->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->listener < 0)
		return -errno;
	rc = bind_at(c);
	if (rc == -EADDRINUSE && ct_connect_at(c->dirfd, c->name, &fd) == -ECONNREFUSED) {
		/* Left over from a tracer that was killed. */
		unlinkat(c->dirfd, c->name, 0);
		rc = bind_at(c);
	} else if (rc == -EADDRINUSE) {
		ct_err(err, "%s: somebody listens there", c->path);
		return rc;
	}
	if (rc < 0) {
		ct_err(err, "%s: %s", c->path, strerror(-rc));
		return rc;
	}
	/* Ours from here on: it may be removed. */
	ev.data.ptr = c;
	if ((geteuid() == 0 &&
	     fchownat(c->dirfd, c->name, c->opts.owner, c->opts.owner_gid, AT_SYMLINK_NOFOLLOW) < 0) ||
	    listen(c->listener, MT_CONTROL_CONNS) < 0 ||
	    epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->listener, &ev) < 0) {
		rc = -errno;
		ct_err(err, "%s: %s", c->path, strerror(-rc));
		unlinkat(c->dirfd, c->name, 0);
	}
	return rc;
}

int mt_control_new(const struct mt_control_opts *opts, const char *dir, uint32_t pid,
		   struct mt_control_err *err, struct mt_control **ret_control)
{
	char def[256];
	struct mt_control *c = NULL;
	int rc;

	if (!dir) {
		rc = mt_control_dir(geteuid(), NULL, def, sizeof(def));
		if (rc < 0)
			return rc;
		dir = def;
	}
	rc = server_new(opts, &c);
	if (rc < 0)
		return rc;
	snprintf(c->name, sizeof(c->name), "%u.sock", pid);
	rc = asprintf(&c->path, "%s/%s", dir, c->name) < 0 ? -ENOMEM : 0;
	if (rc < 0)
		c->path = NULL;
	if (rc == 0)
		rc = ct_dir_open(dir, geteuid(), true, err, &c->dirfd);
	if (rc == 0)
		ct_dir_sweep(c->dirfd, time(NULL));
	if (rc == 0)
		rc = listen_at(c, err);
	if (rc < 0) {
		if (c->listener >= 0)
			close(c->listener);
		c->listener = -1; /* nothing to remove */
		mt_control_free(c);
		return rc;
	}
	*ret_control = c;
	return 0;
}

static bool may_ask(const struct mt_control *c, int fd, uid_t *ret_uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return false;
	*ret_uid = peer.uid;
	return peer.uid == 0 || peer.uid == c->opts.owner;
}

static void turn_away(int fd, const char *line)
{
	if (send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		/* Then without a word. */
	}
	close(fd);
}

/* All places are taken: who has not said for a while what he wants makes room for one who may. */
static bool make_place(struct mt_control *c)
{
	struct mt_control_conn *conn, *oldest = NULL;

	for (conn = c->first; conn; conn = conn->next)
		if (conn->state == CT_REQUEST && (!oldest || conn->moved < oldest->moved))
			oldest = conn;
	if (!oldest || c->now < oldest->moved || c->now - oldest->moved < PATIENCE_NS)
		return false;
	ct_conn_turn_away(oldest, CT_REFUSED);
	c->stats.refused++;
	return true; /* two for one place until the end of this round (C4) */
}

static void take_in(struct mt_control *c, int fd)
{
	if (c->stats.conns >= MT_CONTROL_CONNS && !make_place(c)) {
		c->stats.refused++;
		turn_away(fd, CT_REFUSED);
	} else if (ct_conn_new(c, fd) < 0) {
		c->stats.refused++;
		close(fd);
	} else {
		c->stats.accepted++;
	}
}

int mt_control_adopt(struct mt_control *c, int fd)
{
	int rc = c->stats.conns < MT_CONTROL_CONNS ? ct_conn_new(c, fd) : -EUSERS;

	if (rc < 0)
		close(fd);
	return rc;
}

static void accept_all(struct mt_control *c)
{
	uid_t uid = (uid_t)-1;
	unsigned i;

	for (i = 0; i < 2 * MT_CONTROL_CONNS; i++) {
		int fd = accept4(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			/* Without descriptors it would stay readable, and the loop would spin. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
				epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->listener, NULL);
				c->deaf = true;
			}
			return;
		}
		if (may_ask(c, fd, &uid)) {
			take_in(c, fd);
		} else {
			c->stats.denied++;
			close(fd);
		}
	}
}

static void sweep(struct mt_control *c)
{
	struct mt_control_conn *conn, *next;

	for (conn = c->first; conn; conn = next) {
		next = conn->next;
		ct_conn_timeout(conn, (uint64_t)c->opts.idle_ms * 1000000);
		if (conn->state == CT_DEAD)
			ct_conn_free(conn);
	}
	if (c->deaf) {
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

		c->deaf = epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->listener, &ev) < 0;
	}
}

int mt_control_dispatch(struct mt_control *c, uint64_t now)
{
	struct epoll_event ev[MT_CONTROL_CONNS + 1];
	int n, i;

	c->now = now;
	n = epoll_wait(c->epoll, ev, MT_CONTROL_CONNS + 1, 0);
	if (n < 0 && errno != EINTR)
		return -errno;
	for (i = 0; i < n; i++) {
		if (ev[i].data.ptr == c)
			accept_all(c);
		else
			ct_conn_ready(ev[i].data.ptr, ev[i].events);
	}
	sweep(c);
	return 0;
}

static bool answers_wait(const struct mt_control *c)
{
	const struct mt_control_conn *conn = c->first;

	while (conn && conn->state != CT_LAST)
		conn = conn->next;
	return conn;
}

void mt_control_linger(struct mt_control *c, unsigned ms)
{
	struct pollfd p = {.fd = c->epoll, .events = POLLIN};
	struct timespec ts;
	uint64_t start, now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	start = now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	while (now - start < ms && mt_control_dispatch(c, c->now) == 0 && answers_wait(c)) {
		if (poll(&p, 1, (int)(ms + 9) / 10) <= 0)
			break;
		clock_gettime(CLOCK_MONOTONIC, &ts);
		now = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
	}
}

int mt_control_fd(const struct mt_control *c)
{
	return c->epoll;
}

const char *mt_control_path(const struct mt_control *c)
{
	return c->path ? c->path : "";
}

void mt_control_stats(const struct mt_control *c, struct mt_control_stats *ret_stats)
{
	*ret_stats = c->stats;
}

void mt_control_free(struct mt_control *c)
{
	if (!c)
		return;
	while (c->first)
		ct_conn_free(c->first);
	if (c->listener >= 0) {
		unlinkat(c->dirfd, c->name, 0);
		close(c->listener);
	}
	if (c->dirfd >= 0)
		close(c->dirfd);
	close(c->epoll);
	free(c->path);
	free(c);
}
