/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way down to the directory, one component at a time.
 *
 * The idea. A root process that creates files below /tmp can be led astray: by a link planted
 * where it will write, by a directory that somebody else made first and may change at will, by a
 * component exchanged between check and use. So no path is ever handed to the kernel as a whole.
 * Each component is opened relative to the one before it, looked at through the descriptor, and
 * only then used: what was checked is what is used, whatever happens to the names meanwhile.
 * (openat2 could refuse links for a whole path, but says nothing about owners, and every component
 * must be opened to be looked at anyway. One way for all kernels is one way to test.)
 *
 * Rules. "Trusted" owners are root and the user for whom we write.
 *  T1  Every directory on the way has a trusted owner. "/" is taken as it is.
 *  T2  No directory on the way is writable for everybody, unless it is sticky (as /tmp). Writable
 *      for its group is fine: its owner chose the group.
 *  T3  A link is followed only within the base, and only if root made it in a directory where root
 *      alone can make one (owner root, no write permission for group or others, sticky or not: a
 *      hard link to a link of root's is easily made in /tmp). Its text is then walked like any
 *      path, under the same rules; so /proc's magic links do not jump either.
 *  T4  Below the base no link is followed.
 *  T5  A directory is made under a hidden name, given its owner and mode through its descriptor,
 *      and then renamed to its place. Nobody sees it half made, and two tracers that start at once
 *      get along.
 *  T6  Owner and mode are changed only of a directory that is surely the new one: ours, closed to
 *      others and empty. Whoever may rename in its parent could otherwise put another one in its
 *      place in that moment and be given that.
 *
 * Example: user alice, base /tmp/alice/monarch_traces, nothing there.
 *   Open "/"; open "tmp": root's and sticky, fine; "alice" is missing, so mkdir ".montrace-5d1f..",
 *   open it, chown, chmod 0750, rename to "alice"; "monarch_traces" likewise, and so on.
 *   If mallory has made /tmp/alice first: T1, refused. If /tmp/alice is a link: T3, refused.
 *
 * What it does not do. It does not ask whether alice herself might write there: with root's rights
 * it creates directories below any directory of root's that it is told to. It knows modes, not
 * ACLs. It does not check the ancestors of the working directory when the base is relative.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracedir_int.h"

#define MAX_LINKS 40

/* Appends a component to the path for messages. */
static int path_add(struct mt_walk *w, const char *name)
{
	size_t len = strlen(w->path), n = strlen(name);
	bool sep = len > 0 && w->path[len - 1] != '/';

	if (len + sep + n >= sizeof(w->path))
		return mt_tracedir_fail(w->err, -ENAMETOOLONG, w->path, name, "is too long a path");
	if (sep)
		w->path[len++] = '/';
	memcpy(w->path + len, name, n + 1);
	return 0;
}

/* fd becomes the directory reached; taken over also on error. */
static int arrive(struct mt_walk *w, const char *name, int fd, const struct stat *st)
{
	int r = path_add(w, name);

	if (r < 0) {
		close(fd);
		return r;
	}
	if (w->fd >= 0)
		close(w->fd);
	w->fd = fd;
	w->st = *st;
	return 0;
}

/* T1, T2 */
static int check_dir(struct mt_walk *w, const char *name, const struct stat *st)
{
	if (st->st_uid != 0 && st->st_uid != w->user->uid)
		return mt_tracedir_fail(w->err, -EPERM, w->path, name,
					"belongs to another user (uid %u); refusing to write there: "
					"remove it or choose another directory",
					(unsigned int)st->st_uid);
	if ((st->st_mode & S_IWOTH) && !(st->st_mode & S_ISVTX))
		return mt_tracedir_fail(w->err, -EPERM, w->path, name,
					"is writable for everybody; refusing to write there: "
					"make it sticky (chmod +t) or choose another directory");
	return 0;
}

static bool dir_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	bool empty = true;

	if (!d) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while (empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	closedir(d);
	return empty;
}

/* T6: opens the directory just made as `tmp` and gives it to the user. */
static int own_dir(struct mt_walk *w, const char *tmp, int *ret_fd)
{
	int r, fd = openat(w->fd, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		goto fail;
	errno = EBUSY;
	if (st.st_uid != geteuid() || (st.st_mode & 0077) || !dir_empty(fd))
		goto fail;
	if ((st.st_uid != w->user->uid || st.st_gid != w->user->gid) &&
	    fchown(fd, w->user->uid, w->user->gid) < 0)
		goto fail;
	if (fchmod(fd, 0750) < 0)
		goto fail;
	*ret_fd = fd;
	return 0;
fail:
	r = -errno;
	close(fd);
	return r;
}

/* T5. -EEXIST, without a message, if the name is in use. */
static int make_dir(struct mt_walk *w, const char *name)
{
	char tmp[MT_TMP_NAME_LEN];
	struct stat st;
	int fd = -1, r;

	mt_tracedir_tmp_name(tmp);
	if (mkdirat(w->fd, tmp, 0700) < 0)
		return mt_tracedir_fail(w->err, -errno, w->path, name, "cannot be created: %s",
					strerror(errno));
	r = own_dir(w, tmp, &fd);
	if (r < 0) {
		unlinkat(w->fd, tmp, AT_REMOVEDIR);
		return mt_tracedir_fail(w->err, r, w->path, name, "cannot be given to %s: %s", w->user->name,
					strerror(-r));
	}
	r = renameat2(w->fd, tmp, w->fd, name, RENAME_NOREPLACE) < 0 ? -errno : 0;
	if (r == -EINVAL || r == -ENOSYS) {
		/* A file system without it. The plain one replaces an empty directory at most. */
		r = renameat(w->fd, tmp, w->fd, name) < 0 ? -errno : 0;
	}
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0)
		return arrive(w, name, fd, &st);
	close(fd);
	unlinkat(w->fd, tmp, AT_REMOVEDIR);
	if (r == -ENOTEMPTY || r == -ENOTDIR)
		r = -EEXIST;
	if (r == -EEXIST)
		return r;
	return mt_tracedir_fail(w->err, r, w->path, name, "cannot be created: %s", strerror(-r));
}

/*
 * Opens a component that exists. 0: arrived; 1: it is a link, *ret_link its descriptor and st its attributes;
 * -ENOENT, without a message: it does not exist.
 */
static int open_one(struct mt_walk *w, const char *name, struct stat *st, int *ret_link)
{
	int r, fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, st) < 0) {
		r = mt_tracedir_fail(w->err, -errno, w->path, name, "cannot be opened: %s", strerror(errno));
		goto out;
	}
	if (S_ISLNK(st->st_mode)) {
		*ret_link = fd;
		return 1;
	}
	if (!S_ISDIR(st->st_mode)) {
		r = mt_tracedir_fail(w->err, -ENOTDIR, w->path, name,
				     "is not a directory: remove it or choose another directory");
		goto out;
	}
	r = check_dir(w, name, st);
	if (r == 0)
		return arrive(w, name, fd, st);
out:
	if (fd >= 0)
		close(fd);
	return r;
}

/* As open_one, creating the component if it is missing. */
static int open_or_make(struct mt_walk *w, const char *name, struct stat *st, int *ret_link)
{
	int r, tries = 0;

	do {
		r = open_one(w, name, st, ret_link);
		if (r != -ENOENT)
			return r;
		r = make_dir(w, name);
	} while (r == -EEXIST && ++tries < 8); /* somebody else was faster */
	if (r == -EEXIST)
		return mt_tracedir_fail(w->err, -EBUSY, w->path, name, "keeps changing");
	return r;
}

static int refuse_link(struct mt_walk *w, const char *name)
{
	return mt_tracedir_fail(
		w->err, -ELOOP, w->path, name,
		"is a symbolic link; refusing to write there: remove it or choose another directory");
}

int mt_walk_step(struct mt_walk *w, const char *name, enum mt_walk_how how)
{
	struct stat st;
	int r, link = -1;

	if (how == MT_WALK_CREATE) {
		/* A look first: cheaper than to make a directory for nothing. */
		if (fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return -EEXIST;
		return make_dir(w, name);
	}
	r = open_or_make(w, name, &st, &link);
	if (r == 1) {
		close(link);
		r = refuse_link(w, name);
	}
	return r;
}

/* Starts at "/" or at the working directory, depending on path. */
static int start(struct mt_walk *w, const char *path)
{
	const char *from = path[0] == '/' ? "/" : ".";
	struct stat st;
	int r, fd = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return mt_tracedir_fail(w->err, -errno, from, NULL, "cannot be opened: %s", strerror(errno));
	w->path[0] = '\0';
	r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && from[0] == '.')
		r = check_dir(w, from, &st);
	if (r < 0) {
		close(fd);
		return r;
	}
	return arrive(w, from, fd, &st);
}

/* T3: puts the text of the link before the rest of the way. Closes link. */
static int follow(struct mt_walk *w, const char *name, int link, const struct stat *st, char rest[PATH_MAX])
{
	char text[PATH_MAX], joined[PATH_MAX];
	ssize_t n;
	int r = 0;

	if (st->st_uid != 0 || w->st.st_uid != 0 || (w->st.st_mode & (S_IWGRP | S_IWOTH))) {
		r = refuse_link(w, name);
		goto out;
	}
	n = readlinkat(link, "", text, sizeof(text) - 1);
	if (n < 0) {
		r = mt_tracedir_fail(w->err, -errno, w->path, name, "cannot be read: %s", strerror(errno));
		goto out;
	}
	text[n] = '\0';
	if (++w->links > MAX_LINKS) {
		r = mt_tracedir_fail(w->err, -ELOOP, w->path, name, "is one symbolic link too many");
		goto out;
	}
	if (snprintf(joined, sizeof(joined), "%s/%s", text, rest) >= (int)sizeof(joined)) {
		r = mt_tracedir_fail(w->err, -ENAMETOOLONG, w->path, name, "is too long a path");
		goto out;
	}
	strcpy(rest, joined);
	if (text[0] == '/')
		r = start(w, text);
out:
	close(link);
	return r;
}

/* Cuts the first component off rest. False at the end; -ENAMETOOLONG in *ret_err for one too long. */
static bool next_component(char rest[PATH_MAX], char ret_name[NAME_MAX + 1], int *ret_err)
{
	size_t skip = strspn(rest, "/"), len = strcspn(rest + skip, "/");

	if (len == 0)
		return false;
	if (len > NAME_MAX) {
		*ret_err = -ENAMETOOLONG;
		return false;
	}
	memcpy(ret_name, rest + skip, len);
	ret_name[len] = '\0';
	memmove(rest, rest + skip + len, strlen(rest + skip + len) + 1);
	return true;
}

int mt_walk_base(struct mt_walk *w, const char *base)
{
	char rest[PATH_MAX], name[NAME_MAX + 1];
	struct stat st;
	int r, link = -1, bad = 0;

	w->fd = -1;
	w->links = 0;
	if (strlen(base) >= sizeof(rest))
		return mt_tracedir_fail(w->err, -ENAMETOOLONG, base, NULL, "is too long a path");
	if (!*base)
		return mt_tracedir_fail(w->err, -EINVAL, "\"\"", NULL, "is no directory");
	strcpy(rest, base);
	r = start(w, base);
	while (r == 0 && next_component(rest, name, &bad)) {
		if (!strcmp(name, "."))
			continue;
		r = open_or_make(w, name, &st, &link);
		if (r == 1)
			r = follow(w, name, link, &st, rest);
	}
	if (r == 0 && bad < 0)
		r = mt_tracedir_fail(w->err, bad, w->path, NULL, "... has a component that is too long");
	if (r < 0)
		mt_walk_end(w);
	return r;
}

void mt_walk_end(struct mt_walk *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}
