/* SPDX-License-Identifier: BSD-3-Clause */
/* The directory of an execution and the files in it. The rules of the way there: tracedir_walk.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"
#include "tracedir_int.h"

#define SUFFIX ".pftrace"

struct mt_tracedir {
	struct mt_user user;
	int executions; /* O_PATH: where `latest` is */
	int fd;         /* O_PATH: where the files go */
	char id[MT_TRACEDIR_NAME_MAX + 1];
	char path[PATH_MAX];
};

/* A new id, and its directory created by us: the numbers from a random one on, each once. */
static int make_execution(struct mt_walk *w, char ret_id[MT_TRACEDIR_NAME_MAX + 1])
{
	unsigned int first = (unsigned int)(mt_tracedir_random() % 1000), i;
	char id[MT_TRACEDIR_NAME_MAX + 1];
	time_t now = time(NULL);
	int r;

	for (i = 0; i < 1000; i++) {
		r = mt_execution_id_make(w->user, now, (first + i) % 1000, id);
		if (r < 0)
			return mt_tracedir_fail(w->err, r, w->path, NULL, "cannot get an execution id");
		r = mt_walk_step(w, id, MT_WALK_CREATE);
		if (r == 0)
			strcpy(ret_id, id);
		if (r != -EEXIST)
			return r;
	}
	return mt_tracedir_fail(w->err, -EEXIST, w->path, NULL,
				"has no execution id left for this minute: try again in the next one");
}

static int given_execution(struct mt_walk *w, const char *given, char ret_id[MT_TRACEDIR_NAME_MAX + 1])
{
	char id[MT_TRACEDIR_NAME_MAX + 1];
	int r;

	mt_tracedir_sanitise(given, strlen(given), id);
	if (!strcmp(id, "latest"))
		strcpy(id, "latest_"); /* the link's name */
	r = mt_walk_step(w, id, MT_WALK_OPEN);
	if (r == 0)
		strcpy(ret_id, id);
	return r;
}

int mt_tracedir_open(const struct mt_tracedir_opts *opts, struct mt_tracedir_err *err,
		     struct mt_tracedir **ret_dir)
{
	struct mt_walk w = {.user = opts->user, .err = err, .fd = -1};
	struct mt_tracedir *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (!d)
		return mt_tracedir_fail(err, r, opts->base, NULL, "cannot be opened: out of memory");
	d->user = *opts->user;
	d->executions = d->fd = -1;
	r = mt_walk_base(&w, opts->base);
	if (r == 0)
		r = mt_walk_step(&w, "executions", MT_WALK_OPEN);
	if (r < 0)
		goto out;
	d->executions = fcntl(w.fd, F_DUPFD_CLOEXEC, 3);
	if (d->executions < 0) {
		r = mt_tracedir_fail(err, -errno, w.path, NULL, "cannot be opened: %s", strerror(errno));
		goto out;
	}
	if (opts->execution_id && *opts->execution_id)
		r = given_execution(&w, opts->execution_id, d->id);
	else
		r = make_execution(&w, d->id);
	if (r < 0)
		goto out;
	strcpy(d->path, w.path);
	d->fd = w.fd;
	w.fd = -1;
	*ret_dir = d;
	d = NULL;
out:
	mt_walk_end(&w);
	mt_tracedir_close(d);
	return r;
}

void mt_tracedir_close(struct mt_tracedir *d)
{
	if (!d)
		return;
	if (d->executions >= 0)
		close(d->executions);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

const char *mt_tracedir_path(const struct mt_tracedir *d)
{
	return d->path;
}

const char *mt_tracedir_id(const struct mt_tracedir *d)
{
	return d->id;
}

int mt_tracedir_fd(const struct mt_tracedir *d)
{
	return d->fd;
}

/* The file name of try number n, from 1. */
static void file_name(const char *sane, unsigned int n, uint32_t pid, char ret_name[NAME_MAX + 1])
{
	if (n == 1)
		snprintf(ret_name, NAME_MAX + 1, "%s" SUFFIX, sane);
	else if (!pid)
		snprintf(ret_name, NAME_MAX + 1, "%s-%u" SUFFIX, sane, n);
	else if (n == 2)
		snprintf(ret_name, NAME_MAX + 1, "%s-%u" SUFFIX, sane, pid);
	else
		snprintf(ret_name, NAME_MAX + 1, "%s-%u-%u" SUFFIX, sane, pid, n - 1);
}

static char *full_path(const struct mt_tracedir *d, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", d->path, name) < 0 ? NULL : path;
}

/* A new file, the user's; the descriptor is of the very file made, so no name can be exchanged. */
static int new_file(struct mt_tracedir *d, const char *name, int *ret_fd)
{
	int r, fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		goto fail;
	if ((st.st_uid != d->user.uid || st.st_gid != d->user.gid) &&
	    fchown(fd, d->user.uid, d->user.gid) < 0)
		goto fail;
	if (fchmod(fd, 0640) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;
fail:
	r = -errno;
	unlinkat(d->fd, name, 0);
	close(fd);
	return r == -EEXIST ? -EIO : r;
}

int mt_tracedir_create_for(struct mt_tracedir *d, const char *process_name, uint32_t pid,
			   struct mt_tracedir_err *err, int *ret_fd, char **ret_path)
{
	char sane[MT_TRACEDIR_NAME_MAX + 1], name[NAME_MAX + 1];
	int fd = -1, r = -EEXIST;
	unsigned int n;
	char *path;

	mt_tracedir_sanitise(process_name, strlen(process_name), sane);
	for (n = 1; n <= MT_TRACEDIR_TRIES && r == -EEXIST; n++) {
		file_name(sane, n, pid, name);
		r = new_file(d, name, &fd);
	}
	if (r < 0)
		return mt_tracedir_fail(err, r, d->path, name, "cannot be created: %s", strerror(-r));
	if (ret_path) {
		path = full_path(d, name);
		if (!path) {
			unlinkat(d->fd, name, 0);
			close(fd);
			return mt_tracedir_fail(err, -ENOMEM, d->path, name,
						"cannot be created: out of memory");
		}
		*ret_path = path;
	}
	*ret_fd = fd;
	return 0;
}

int mt_tracedir_create_tmp(struct mt_tracedir *d, struct mt_tracedir_err *err,
			   struct mt_tracedir_tmp *ret_tmp, int *ret_fd)
{
	struct mt_tracedir_tmp tmp;
	int r;

	_Static_assert(sizeof(tmp.name) == MT_TMP_NAME_LEN, "room for the name");
	mt_tracedir_tmp_name(tmp.name);
	r = new_file(d, tmp.name, ret_fd);
	if (r < 0)
		return mt_tracedir_fail(err, r, d->path, tmp.name, "cannot be created: %s", strerror(-r));
	*ret_tmp = tmp;
	return 0;
}

int mt_tracedir_file(const struct mt_user *user, const char *path, int *ret_fd)
{
	struct stat made, st;
	int r, fd;

	r = mt_out_create(AT_FDCWD, path, &fd);
	if (r < 0)
		return r;
	if (geteuid() == 0 && fchown(fd, user->uid, user->gid) && errno != EPERM) {
		r = -errno;
		/* Not what somebody has put in its place meanwhile. */
		if (!fstat(fd, &made) && !lstat(path, &st) && st.st_dev == made.st_dev &&
		    st.st_ino == made.st_ino)
			unlink(path);
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

/* Renames, never over anything. */
static int rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
	if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system without it: a second name is never put over anything either. */
	if (linkat(from_dir, from, to_dir, to, 0) < 0)
		return -errno;
	unlinkat(from_dir, from, 0);
	return 0;
}

int mt_tracedir_move(struct mt_tracedir *from, const char *path, struct mt_tracedir *to,
		     const char *process_name, uint32_t pid, struct mt_tracedir_err *err, char **ret_path)
{
	char sane[MT_TRACEDIR_NAME_MAX + 1], name[NAME_MAX + 1];
	const char *slash = strrchr(path, '/'), *old = slash ? slash + 1 : path;
	char *new_path = NULL;
	int r = -EEXIST;
	unsigned int n;

	mt_tracedir_sanitise(process_name, strlen(process_name), sane);
	for (n = 1; n <= MT_TRACEDIR_TRIES && r == -EEXIST; n++) {
		file_name(sane, n, pid, name);
		free(new_path);
		new_path = full_path(to, name); /* before the rename: nothing can fail after it */
		if (!new_path)
			return mt_tracedir_fail(err, -ENOMEM, to->path, name, "out of memory");
		if (from == to && !strcmp(name, old))
			r = 0; /* it has that name already */
		else
			r = rename_new(from->fd, old, to->fd, name);
	}
	if (r < 0) {
		free(new_path);
		return mt_tracedir_fail(err, r, to->path, name, "cannot be renamed to: %s", strerror(-r));
	}
	*ret_path = new_path;
	return 0;
}

int mt_tracedir_publish(struct mt_tracedir *d, const struct mt_tracedir_tmp *tmp, const char *process_name,
			struct mt_tracedir_err *err, char **ret_path)
{
	char sane[MT_TRACEDIR_NAME_MAX + 1], name[NAME_MAX + 1];
	char *path = NULL;
	int r = -EEXIST;
	unsigned int n;

	mt_tracedir_sanitise(process_name, strlen(process_name), sane);
	for (n = 1; n <= MT_TRACEDIR_TRIES && r == -EEXIST; n++) {
		file_name(sane, n, 0, name);
		if (ret_path) {
			free(path);
			path = full_path(d, name);
			if (!path)
				return mt_tracedir_fail(err, -ENOMEM, d->path, name, "out of memory");
		}
		r = rename_new(d->fd, tmp->name, d->fd, name);
	}
	if (r < 0) {
		free(path);
		return mt_tracedir_fail(err, r, d->path, name, "cannot be created: %s", strerror(-r));
	}
	if (ret_path)
		*ret_path = path;
	return 0;
}

void mt_tracedir_discard(struct mt_tracedir *d, const struct mt_tracedir_tmp *tmp)
{
	unlinkat(d->fd, tmp->name, 0);
}

/*
 * The new link gets the user as its owner, if it is still the new link: by its name alone we could
 * be made to give away another file. An owner that cannot be set does not matter to a link.
 */
static void own_link(struct mt_tracedir *d, const char *name)
{
	int fd = openat(d->executions, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
	    fchownat(fd, "", d->user.uid, d->user.gid, AT_EMPTY_PATH) < 0)
		errno = 0;
	close(fd);
}

int mt_tracedir_latest(struct mt_tracedir *d, struct mt_tracedir_err *err)
{
	char tmp[MT_TMP_NAME_LEN], dir[PATH_MAX];
	struct stat st;
	int r;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strlen(d->path) - strlen(d->id) - 1), d->path);
	if (fstatat(d->executions, "latest", &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode))
		return mt_tracedir_fail(err, -EEXIST, dir, "latest",
					"is not a symbolic link and stays as it is");
	mt_tracedir_tmp_name(tmp);
	if (symlinkat(d->id, d->executions, tmp) < 0)
		return mt_tracedir_fail(err, -errno, dir, "latest", "cannot be created: %s", strerror(errno));
	own_link(d, tmp);
	/* The directory's owner alone could put a file of his own there between the check and this. */
	if (renameat(d->executions, tmp, d->executions, "latest") < 0) {
		r = errno == EISDIR || errno == ENOTEMPTY ? -EEXIST : -errno;
		unlinkat(d->executions, tmp, 0);
		return mt_tracedir_fail(err, r, dir, "latest", "cannot be replaced: %s", strerror(-r));
	}
	return 0;
}
