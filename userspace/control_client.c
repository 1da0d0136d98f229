/* SPDX-License-Identifier: BSD-3-Clause */
/* The asking side. Blocking: it has nothing else to do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_int.h"

#define CT_SILENT "the tracer does not answer; is it stopped?"

/* A socket's address holds 107 bytes of a path; a longer one goes by way of its directory, as bind does. */
static int address(const char *path, struct sockaddr_un *ret_a, int *ret_dir)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	*ret_dir = -1;
	*ret_a = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) < sizeof(ret_a->sun_path)) {
		memcpy(ret_a->sun_path, path, strlen(path) + 1);
		return 0;
	}
	if (snprintf(dir, sizeof(dir), "%.*s", (int)(slash + 1 - path), path) >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	*ret_dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dir < 0)
		return -errno;
	if (snprintf(ret_a->sun_path, sizeof(ret_a->sun_path), "/proc/self/fd/%d/%s", *ret_dir, slash + 1) <
	    (int)sizeof(ret_a->sun_path))
		return 0;
	close(*ret_dir);
	return -ENAMETOOLONG;
}

/* path has a '/'. connect() waits as long as a send may: unix(7). */
static int connect_path(const char *path, struct mt_control_err *err, int *ret_fd)
{
	const struct timeval patience = {.tv_sec = MT_CONTROL_PATIENCE_S};
	struct sockaddr_un a;
	int fd, dir, rc;

	rc = address(path, &a, &dir);
	if (rc < 0) {
		ct_err(err, "%s: %s", path, strerror(-rc));
		return rc;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		rc = errno == EAGAIN ? -ETIMEDOUT : -errno;
		ct_err(err, "%s: %s", path, rc == -ETIMEDOUT ? CT_SILENT : strerror(-rc));
		if (fd >= 0)
			close(fd);
	} else {
		*ret_fd = fd;
	}
	if (dir >= 0)
		close(dir);
	return rc;
}

static void list_pids(struct mt_control_err *err, const struct mt_control_found *v, unsigned n)
{
	char text[256];
	size_t at = 0;
	unsigned i;

	text[0] = '\0';
	for (i = 0; i < n && at + 16 < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", i ? ", " : "", v[i].pid);
	ct_err(err, "there are several tracers, say which: %s%s", text, i < n ? ", ..." : "");
}

/* Which of those found is meant. pid 0: the only one. */
static int choose(const struct mt_control_found *v, unsigned n, uint32_t pid, struct mt_control_err *err,
		  const char **ret_path)
{
	unsigned i, ours = 0;

	for (i = 0; i < n; i++) {
		if (pid && v[i].pid == pid) {
			*ret_path = v[i].path;
			return 0;
		}
		ours += !v[i].denied;
	}
	if (pid) {
		ct_err(err, "no tracer with pid %u is running", pid);
		return -ENOENT;
	}
	if (!n) {
		ct_err(err, "no tracer is running");
		return -ENOENT;
	}
	if (!ours) {
		ct_err(err, "the running tracer is somebody else's (pid %u)", v[0].pid);
		return -EACCES;
	}
	if (ours > 1) {
		list_pids(err, v, ours);
		return -EMLINK;
	}
	*ret_path = v[0].path;
	return 0;
}

static int number(const char *s, uint32_t *ret_n)
{
	uint64_t n = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9' && n <= UINT32_MAX; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (p == s || *p || n == 0 || n > UINT32_MAX)
		return -EINVAL;
	*ret_n = (uint32_t)n;
	return 0;
}

int mt_control_connect(const char *what, uid_t uid, const char *runtime_dir, struct mt_control_err *err,
		       int *ret_fd)
{
	char run[64], user[192], tmp[64];
	const char *dirs[] = {run, user, tmp}, *path = NULL;
	struct mt_control_found *v = NULL;
	unsigned n = 0, ndirs;
	uint32_t pid = 0;
	int rc;

	if (what && strchr(what, '/'))
		return connect_path(what, err, ret_fd);
	if (what && number(what, &pid) < 0) {
		ct_err(err, "%s is neither a pid nor a path", what);
		return -EINVAL;
	}
	mt_control_dir(0, NULL, run, sizeof(run));
	ndirs = uid == 0 ? 1 : 3;
	if (mt_control_dir(uid, runtime_dir, user, sizeof(user)) < 0)
		ndirs = 1;
	mt_control_dir(uid, NULL, tmp, sizeof(tmp));
	/* Without a runtime directory both are the same. */
	if (ndirs == 3 && strcmp(user, tmp) == 0)
		ndirs = 2;
	rc = mt_control_list(dirs, ndirs, &v, &n);
	rc = rc < 0 ? rc : choose(v, n, pid, err, &path);
	rc = rc < 0 ? rc : connect_path(path, err, ret_fd);
	free(v);
	return rc;
}

int mt_control_send(int fd, const struct mt_control_req *req, int file)
{
	const struct timeval patience = {
		.tv_sec = req->follow || req->verb == MT_CONTROL_SNAPSHOT ? 0 : MT_CONTROL_PATIENCE_S};
	char line[MT_CONTROL_LINE_MAX + 1],
		control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {.iov_base = line};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int rc = mt_control_format(req, line);

	if (rc < 0)
		return rc;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	iov.iov_len = strlen(line);
	if (file >= 0) {
		struct cmsghdr *m;

		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		m = CMSG_FIRSTHDR(&msg);
		m->cmsg_level = SOL_SOCKET;
		m->cmsg_type = SCM_RIGHTS;
		m->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(m), &file, sizeof(int));
	}
	while (iov.iov_len) {
		ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		msg.msg_control = NULL;
		msg.msg_controllen = 0;
	}
	return 0;
}

static int write_all(int fd, const char *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* 1: it was the last line. */
static int take_line(char *line, size_t len, int out, struct mt_control_err *err)
{
	if (line[0] == ' ') {
		line[len] = '\n';
		return write_all(out, line + 1, len);
	}
	line[len] = '\0';
	if (strcmp(line, "ok") == 0)
		return 0;
	if (strcmp(line, "end") == 0)
		return 1;
	if (strncmp(line, "error ", 6) != 0) {
		ct_err(err, "the answer is not understood");
		return -EPROTO;
	}
	ct_err(err, "%s", line + 6);
	return strcmp(line, CT_BUSY) == 0 ? -EUSERS : -EREMOTEIO;
}

#define ANSWER_LINE_MAX (4u << 20)

/* All whole lines in buf[0..*len); the rest moves to the front. */
static int take_lines(char *buf, size_t *len, int out, struct mt_control_err *err)
{
	size_t at = 0;
	int rc = 0;

	while (rc == 0) {
		char *nl = memchr(buf + at, '\n', *len - at);

		if (!nl)
			break;
		rc = take_line(buf + at, (size_t)(nl - (buf + at)), out, err);
		at = (size_t)(nl - buf) + 1;
	}
	memmove(buf, buf + at, *len - at);
	*len -= at;
	return rc;
}

int mt_control_stream(int fd, int out, struct mt_control_err *err)
{
	size_t len = 0, cap = 65536;
	char *buf = malloc(cap), *more;
	int rc = buf ? 0 : -ENOMEM;

	while (rc == 0) {
		ssize_t n;

		if (len == cap) {
			more = cap < ANSWER_LINE_MAX ? realloc(buf, cap * 2) : NULL;
			rc = more ? 0 : -ENOMEM;
			buf = more ? more : buf;
			cap = more ? cap * 2 : cap;
			continue;
		}
		n = read(fd, buf + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			ct_err(err, "the tracer ended, or this side was too slow");
			rc = -EPIPE;
		} else if (n < 0 && errno == EAGAIN) {
			ct_err(err, CT_SILENT);
			rc = -ETIMEDOUT;
		} else if (n < 0) {
			rc = -errno;
		} else {
			len += (size_t)n;
			rc = take_lines(buf, &len, out, err);
		}
	}
	free(buf);
	return rc < 0 ? rc : 0;
}
