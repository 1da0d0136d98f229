/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where sockets are, and who is there.
 *
 * In /tmp others can make a directory of our name first. It is used only if it is a directory (no link),
 * ours, and nobody else may write to it; below /run it may be readable by all, so that the user finds his
 * tracer.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control_int.h"

#define MAX_FOUND 1024
#define SWEEP_AGE_S 10 /* a socket that is bound is listened on within that */

void ct_err(struct mt_control_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}

int mt_control_dir(uid_t uid, const char *runtime_dir, char *ret_dir, size_t cap)
{
	int n;

	if (uid == 0)
		n = snprintf(ret_dir, cap, "/run/montrace-bpf");
	else if (runtime_dir && runtime_dir[0] == '/')
		n = snprintf(ret_dir, cap, "%s/montrace-bpf", runtime_dir);
	else
		n = snprintf(ret_dir, cap, "/tmp/montrace-bpf-%u", uid);
	return n < 0 || (size_t)n >= cap ? -ENAMETOOLONG : 0;
}

int ct_dir_open(const char *dir, uid_t uid, bool make, struct mt_control_err *err, int *ret_fd)
{
	mode_t mode = uid == 0 ? 0755 : 0700;
	bool made = make && mkdir(dir, mode) == 0;
	struct stat st;
	int fd, rc = 0;

	if (make && !made && errno != EEXIST) {
		rc = -errno;
		ct_err(err, "%s: %s", dir, strerror(-rc));
		return rc;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		ct_err(err, "%s: %s", dir, strerror(-rc));
		return rc;
	}
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (st.st_uid != uid || st.st_mode & 022)
		rc = -EPERM;
	/* A umask must not keep the user from his tracer. */
	if (rc == 0 && made && fchmod(fd, mode) < 0)
		rc = -errno;
	if (rc < 0) {
		ct_err(err, "%s: it belongs to somebody else, or others may write to it", dir);
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int ct_connect_at(int dirfd, const char *name, int *ret_fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, rc;

	if (snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dirfd, name) >=
	    (int)sizeof(a.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* "<pid>.sock", as we write it. */
static bool socket_name(const char *name, uint32_t *ret_pid)
{
	uint64_t n = 0;
	const char *p = name;

	for (; *p >= '0' && *p <= '9' && n <= UINT32_MAX; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (p == name || name[0] == '0' || n > UINT32_MAX || strcmp(p, ".sock") != 0)
		return false;
	*ret_pid = (uint32_t)n;
	return true;
}

struct found {
	struct mt_control_found *v;
	unsigned n;
};

static int add(struct found *f, const char *dir, const char *name, uint32_t pid, bool denied)
{
	struct mt_control_found *v, e = {.pid = pid, .denied = denied};

	if (f->n == MAX_FOUND || snprintf(e.path, sizeof(e.path), "%s/%s", dir, name) >= (int)sizeof(e.path))
		return 0;
	v = realloc(f->v, (f->n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	f->v = v;
	v[f->n++] = e;
	return 0;
}

static int scan(struct found *f, const char *dir)
{
	struct dirent *e;
	struct stat st;
	uint32_t pid;
	DIR *d;
	int fd, conn, rc = 0;

	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	/* Sockets that anybody could have put there are nobody's tracer. */
	if (fstat(fd, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & 022)
		goto out;
	while (rc == 0 && (e = readdir(d))) {
		if (!socket_name(e->d_name, &pid))
			continue;
		rc = ct_connect_at(fd, e->d_name, &conn);
		if (rc == 0)
			close(conn);
		/* A full queue (EAGAIN) is a tracer too. */
		if (rc == 0 || rc == -EACCES || rc == -EAGAIN)
			rc = add(f, dir, e->d_name, pid, rc == -EACCES);
		else
			rc = 0;
	}
out:
	closedir(d);
	return rc;
}

void ct_dir_sweep(int dirfd, time_t now)
{
	struct dirent *e;
	struct stat st;
	uint32_t pid;
	DIR *d;
	int fd, conn, rc;

	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	while (d && (e = readdir(d))) {
		if (!socket_name(e->d_name, &pid) ||
		    fstatat(dirfd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISSOCK(st.st_mode) ||
		    st.st_mtime > now - SWEEP_AGE_S)
			continue;
		rc = ct_connect_at(dirfd, e->d_name, &conn);
		if (rc == 0)
			close(conn);
		else if (rc == -ECONNREFUSED)
			unlinkat(dirfd, e->d_name, 0);
	}
	if (d)
		closedir(d);
}

static int order(const void *a, const void *b)
{
	const struct mt_control_found *x = a, *y = b;

	if (x->denied != y->denied)
		return x->denied ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

int mt_control_list(const char *const *dirs, unsigned ndirs, struct mt_control_found **ret_v, unsigned *ret_n)
{
	struct found f = {0};
	unsigned i;
	int rc = 0;

	for (i = 0; i < ndirs && rc == 0; i++)
		rc = scan(&f, dirs[i]);
	if (rc < 0) {
		free(f.v);
		return rc;
	}
	if (f.n)
		qsort(f.v, f.n, sizeof(*f.v), order);
	*ret_v = f.v;
	*ret_n = f.n;
	return 0;
}
