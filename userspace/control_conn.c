/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection of the server. Its memory is freed only by the loop (ct_conn_free), so the handler may
 * call anything at any time: what ends a connection makes it CT_DEAD or CT_LAST.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control_int.h"

#define KEEP_BUFFER 65536u /* of one that has sent all; a larger one is given back */
#define SEND_AT 65536u     /* so much waits: it is worth a call */

static void set_events(struct mt_control_conn *c)
{
	struct epoll_event ev = {.data.ptr = c};

	if (c->state != CT_DEAD && !c->half_closed)
		ev.events |= EPOLLIN;
	if (c->out_at < c->out_len)
		ev.events |= EPOLLOUT;
	/* A dead one needs a reason to be looked at. */
	if (c->state == CT_DEAD)
		ev.events |= EPOLLOUT;
	if (ev.events == c->events)
		return;
	if (epoll_ctl(c->control->epoll, EPOLL_CTL_MOD, c->fd, &ev) == 0)
		c->events = ev.events;
}

static void drop_buffer(struct mt_control_conn *c)
{
	free(c->out);
	c->control->held -= c->out_cap;
	c->out = NULL;
	c->out_at = c->out_len = c->out_cap = 0;
}

static void die(struct mt_control_conn *c)
{
	c->state = CT_DEAD;
	drop_buffer(c);
	/* Closed for the peer at once, whenever the loop comes by; shut down, it is always ready for that. */
	shutdown(c->fd, SHUT_RDWR);
	set_events(c);
}

int ct_conn_new(struct mt_control *control, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct mt_control_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	ev.data.ptr = c;
	if (epoll_ctl(control->epoll, EPOLL_CTL_ADD, fd, &ev) < 0) {
		free(c);
		return -errno;
	}
	c->control = control;
	c->fd = fd;
	c->file = -1;
	c->state = CT_REQUEST;
	c->events = ev.events;
	c->moved = control->now;
	c->next = control->first;
	if (control->first)
		control->first->prev = c;
	control->first = c;
	control->stats.conns++;
	return 0;
}

void ct_conn_free(struct mt_control_conn *c)
{
	struct mt_control *control = c->control;

	if (c->asked && control->opts.ops->gone)
		control->opts.ops->gone(control->opts.ctx, c);
	*(c->prev ? &c->prev->next : &control->first) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	control->stats.conns--;
	if (c->file >= 0)
		close(c->file);
	close(c->fd);
	drop_buffer(c);
	free(c);
}

void ct_conn_turn_away(struct mt_control_conn *c, const char *line)
{
	if (send(c->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		/* Then without a word. */
	}
	die(c);
}

/* ---- out ---- */

static void send_some(struct mt_control_conn *c)
{
	while (c->out_at < c->out_len) {
		ssize_t n =
			send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n <= 0) {
			die(c);
			return;
		}
		c->out_at += (size_t)n;
		c->tried = 0;
		c->moved = c->control->now;
	}
	if (c->out_at == c->out_len) {
		c->out_at = c->out_len = 0;
		if (c->out_cap > KEEP_BUFFER)
			drop_buffer(c);
		if (c->state == CT_LAST) {
			die(c);
			return;
		}
	}
	set_events(c);
}

static bool is_slower(const struct mt_control_conn *a, const struct mt_control_conn *b)
{
	if (a->moved != b->moved)
		return a->moved < b->moved;
	return mt_control_waiting(a) > mt_control_waiting(b);
}

/* Who stands still the longest, of those whose answers wait; of several the one with the most. */
static bool drop_slowest(struct mt_control_conn *but)
{
	struct mt_control_conn *c, *slowest = NULL;

	for (c = but->control->first; c; c = c->next)
		if (c != but && c->out_at < c->out_len && (!slowest || is_slower(c, slowest)))
			slowest = c;
	if (!slowest)
		return false;
	but->control->stats.slow++;
	die(slowest);
	return true;
}

static bool grow(struct mt_control_conn *c, size_t more)
{
	struct mt_control *control = c->control;
	size_t cap = c->out_cap ? c->out_cap : 4096;
	char *out;

	if (c->out_at) {
		memmove(c->out, c->out + c->out_at, c->out_len - c->out_at);
		c->out_len -= c->out_at;
		c->out_at = 0;
	}
	if (c->out_len + more > control->opts.max_buffer) {
		control->stats.slow++;
		return false;
	}
	while (cap < c->out_len + more)
		cap *= 2;
	while (control->held - c->out_cap + cap > control->opts.max_total)
		if (!drop_slowest(c))
			return false;
	if (cap != c->out_cap) {
		out = realloc(c->out, cap);
		if (!out)
			return false;
		control->held += cap - c->out_cap;
		c->out = out;
		c->out_cap = cap;
	}
	return true;
}

/* head, text with newlines made spaces, newline. */
static int put(struct mt_control_conn *c, const char *head, const char *text, size_t len)
{
	size_t nhead = strlen(head), i;

	if (c->state == CT_DEAD)
		return -EPIPE;
	if (c->out_len + nhead + len + 1 > c->out_cap && !grow(c, nhead + len + 1)) {
		die(c);
		return -EPIPE;
	}
	if (c->out_at == c->out_len)
		c->moved = c->control->now;
	memcpy(c->out + c->out_len, head, nhead);
	c->out_len += nhead;
	for (i = 0; i < len; i++)
		c->out[c->out_len++] = text[i] == '\n' || text[i] == '\0' ? ' ' : text[i];
	c->out[c->out_len++] = '\n';
	return 0;
}

int mt_control_line(struct mt_control_conn *c, const char *text, size_t len)
{
	int rc = put(c, " ", text, len);

	if (rc)
		return rc;
	/* Lines may come faster than the loop comes by: who reads shall not be dropped for that. */
	if (c->out_len - c->out_at >= SEND_AT && c->out_len - c->out_at >= c->tried + SEND_AT / 2) {
		send_some(c);
		c->tried = c->out_len - c->out_at;
	} else {
		set_events(c);
	}
	return 0;
}

size_t mt_control_waiting(const struct mt_control_conn *c)
{
	return c->out_len - c->out_at;
}

static void finish(struct mt_control_conn *c, const char *head, const char *text)
{
	c->asked = false;
	if (put(c, head, text, strlen(text)) < 0)
		return;
	c->state = CT_LAST;
	set_events(c);
}

void mt_control_done(struct mt_control_conn *c)
{
	finish(c, "end", "");
}

void mt_control_fail(struct mt_control_conn *c, const char *why)
{
	finish(c, "error ", why);
}

int mt_control_take_fd(struct mt_control_conn *c)
{
	int fd = c->file;

	c->file = -1;
	return fd;
}

/* ---- in ---- */

static void refuse(struct mt_control_conn *c, const char *why)
{
	c->control->stats.bad++;
	mt_control_fail(c, why);
}

/* A file that the client may write and that cannot make us wait. */
static bool good_file(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH) && fstat(fd, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

static void take_line(struct mt_control_conn *c, size_t len)
{
	struct mt_control_req req;
	const char *why = "";
	int rc = mt_control_parse(c->in, len, &req, &why);

	if (rc < 0) {
		refuse(c, why);
		return;
	}
	if (c->file >= 0 && (req.verb != MT_CONTROL_SNAPSHOT || !good_file(c->file))) {
		refuse(c, "this file cannot be written to");
		return;
	}
	c->state = CT_ANSWER;
	c->asked = true;
	rc = put(c, "ok", "", 0);
	rc = rc < 0 ? rc : c->control->opts.ops->request(c->control->opts.ctx, c, &req);
	if (rc < 0 && c->asked)
		mt_control_fail(c, strerror(-rc));
}

/* The first file that came along is kept, others are closed. */
static void take_files(struct mt_control_conn *c, struct msghdr *msg)
{
	struct cmsghdr *m;

	for (m = CMSG_FIRSTHDR(msg); m; m = CMSG_NXTHDR(msg, m)) {
		size_t n, i;

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		n = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(m) + i * sizeof(int), sizeof(fd));
			if (c->file < 0 && c->state == CT_REQUEST)
				c->file = fd;
			else
				close(fd);
		}
	}
}

static ssize_t receive(struct mt_control_conn *c, void *buf, size_t cap)
{
	char control[CMSG_SPACE(4 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {.iov_base = buf, .iov_len = cap};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t n;

	do
		n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		take_files(c, &msg);
	return n;
}

static void read_request(struct mt_control_conn *c)
{
	char *nl = NULL;
	ssize_t n;

	n = receive(c, c->in + c->in_len, sizeof(c->in) - c->in_len);
	if (n < 0) {
		if (errno != EAGAIN)
			die(c);
		return;
	}
	if (n == 0) {
		die(c); /* without a whole request */
		return;
	}
	/* moved stays: the time limit is for the whole line. */
	c->in_len += (size_t)n;
	nl = memchr(c->in, '\n', c->in_len);
	if (nl)
		take_line(c, (size_t)(nl - c->in));
	else if (c->in_len == sizeof(c->in))
		refuse(c, "request too long");
}

/* After the request nothing is expected; what comes is thrown away so that the end is seen. */
static void read_rest(struct mt_control_conn *c)
{
	char buf[512];
	ssize_t n = receive(c, buf, sizeof(buf));

	if (n == 0)
		c->half_closed = true;
	else if (n < 0 && errno != EAGAIN)
		die(c);
}

void ct_conn_ready(struct mt_control_conn *c, uint32_t events)
{
	if (events & (EPOLLHUP | EPOLLERR) && c->state != CT_REQUEST && c->state != CT_DEAD) {
		die(c);
		return;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		if (c->state == CT_REQUEST)
			read_request(c);
		else if (c->state != CT_DEAD)
			read_rest(c);
	}
	if (c->state != CT_DEAD)
		send_some(c);
}

void ct_conn_timeout(struct mt_control_conn *c, uint64_t idle_ns)
{
	uint64_t now = c->control->now;
	bool waits = c->state == CT_REQUEST || c->out_at < c->out_len;

	if (c->state == CT_DEAD || now < c->moved || now - c->moved <= idle_ns)
		return;
	if (!waits) {
		c->moved = now;
		return;
	}
	c->control->stats.slow++;
	die(c);
}
