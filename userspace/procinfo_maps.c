/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that a process has mapped. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "procinfo_int.h"

/* More than the longest line: 4 KiB of path, each byte escaped to four, and the numbers. */
#define MAPS_BUF ((size_t)64 * 1024)

static bool skip_char(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	(*p)++;
	return true;
}

/*
 * The path of a line. The kernel escapes newlines (\012) and nothing else, not even the backslash,
 * so a file named with these four characters reads the same; who opens by path checks the inode.
 */
static void parse_path(const char *p, const char *end, struct mt_proc_map *m)
{
	static const char gone[] = " (deleted)";
	const ptrdiff_t gone_len = sizeof(gone) - 1;
	size_t n = 0;

	while (p < end && *p == ' ')
		p++;
	m->deleted = end - p > gone_len && !memcmp(end - gone_len, gone, (size_t)gone_len);
	if (m->deleted)
		end -= gone_len;
	while (p < end && n < sizeof(m->path) - 1) {
		if (end - p >= 4 && !memcmp(p, "\\012", 4)) {
			m->path[n++] = '\n';
			p += 4;
		} else {
			m->path[n++] = *p++;
		}
	}
	m->path[p < end ? 0 : n] = '\0';
}

/* start-end perms offset major:minor inode path */
static bool parse_line(const char *p, const char *end, struct mt_proc_map *m)
{
	uint64_t major, minor;
	const char *perms;

	if (!mt_proc_number(&p, end, 16, UINT64_MAX, &m->start) || !skip_char(&p, end, '-') ||
	    !mt_proc_number(&p, end, 16, UINT64_MAX, &m->end) || !skip_char(&p, end, ' ') ||
	    m->end <= m->start)
		return false;
	perms = p;
	if (end - p < 5 || p[4] != ' ')
		return false;
	p += 5;
	m->exec = perms[2] == 'x';
	m->writable = perms[1] == 'w' || perms[3] == 's';
	if (!mt_proc_number(&p, end, 16, UINT64_MAX, &m->offset) || !skip_char(&p, end, ' ') ||
	    !mt_proc_number(&p, end, 16, UINT32_MAX, &major) || !skip_char(&p, end, ':') ||
	    !mt_proc_number(&p, end, 16, UINT32_MAX, &minor) || !skip_char(&p, end, ' ') ||
	    !mt_proc_number(&p, end, 10, UINT64_MAX, &m->inode))
		return false;
	m->dev_major = (uint32_t)major;
	m->dev_minor = (uint32_t)minor;
	if (p < end && *p != ' ')
		return false;
	parse_path(p, end, m);
	return true;
}

int mt_proc_maps_next(const char **buf, size_t *len, struct mt_proc_map *ret_map)
{
	const char *line, *eol;

	while ((eol = memchr(*buf, '\n', *len))) {
		line = *buf;
		*len -= (size_t)(eol + 1 - line);
		*buf = eol + 1;
		if (parse_line(line, eol, ret_map))
			return 1;
	}
	return 0;
}

static int add_file(struct mt_proc_files *f, const struct mt_proc_map *m)
{
	struct mt_proc_file *v;
	size_t i;

	/* From the end: the mappings of one file are neighbours. */
	for (i = f->n; i-- > 0;) {
		v = &f->v[i];
		if (v->inode == m->inode && v->dev_major == m->dev_major && v->dev_minor == m->dev_minor) {
			v->writable |= m->writable;
			v->copies += v->offset == m->offset;
			return 0;
		}
	}
	if (f->n == MT_PROC_FILES_MAX) {
		f->more = true;
		return 0;
	}
	if ((f->n & (f->n - 1)) == 0) { /* full: the capacity is the next power of two */
		v = realloc(f->v, (f->n ? 2 * f->n : 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		f->v = v;
	}
	v = &f->v[f->n];
	*v = (struct mt_proc_file){
		.start = m->start,
		.end = m->end,
		.offset = m->offset,
		.dev_major = m->dev_major,
		.dev_minor = m->dev_minor,
		.inode = m->inode,
		.writable = m->writable,
		.copies = 1,
		.deleted = m->deleted,
		.path = strdup(m->path),
	};
	if (!v->path)
		return -ENOMEM;
	f->n++;
	return 0;
}

/*
 * Calls fn for the mappings in a process, until it returns not 0. A line that does not fit into the
 * buffer is none of the kernel's: it is thrown away.
 */
static int each_map(int dir, int (*fn)(void *arg, const struct mt_proc_map *m), void *arg)
{
	char *buf = malloc(MAPS_BUF);
	size_t have = 0, left;
	struct mt_proc_map m;
	const char *p;
	ssize_t n;
	int fd = -1, r;

	if (!buf)
		return -ENOMEM;
	r = mt_proc_openat(dir, "maps", O_RDONLY, &fd);
	while (r == 0) {
		n = read(fd, buf + have, MAPS_BUF - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		p = buf;
		left = have + (size_t)n;
		while (r == 0 && mt_proc_maps_next(&p, &left, &m) == 1)
			r = fn(arg, &m);
		have = left < MAPS_BUF ? left : 0;
		memmove(buf, p, have);
	}
	if (fd >= 0)
		close(fd);
	free(buf);
	return r;
}

static int collect(void *arg, const struct mt_proc_map *m)
{
	return m->exec && m->inode ? add_file(arg, m) : 0;
}

int mt_proc_files(int dir, struct mt_proc_files *ret_files)
{
	struct mt_proc_files f = {0};
	int other, r = each_map(dir, collect, &f);

	if (r == 0 && f.n == 0 && !mt_proc_other_thread(dir, &other)) {
		r = each_map(other, collect, &f);
		close(other);
	}
	if (r < 0)
		mt_proc_files_free(&f);
	else
		*ret_files = f;
	return r;
}

void mt_proc_files_free(struct mt_proc_files *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		free(f->v[i].path);
	free(f->v);
	*f = (struct mt_proc_files){0};
}

/* 1 if the mapping is still where it was. */
static int is_mapping(void *arg, const struct mt_proc_map *m)
{
	const struct mt_proc_file *f = arg;

	return m->start == f->start && m->end == f->end && m->inode == f->inode &&
	       m->dev_major == f->dev_major && m->dev_minor == f->dev_minor;
}

static bool same_inode(const struct mt_proc_file *f, const struct stat *st)
{
	return st->st_ino == f->inode && major(st->st_dev) == f->dev_major &&
	       minor(st->st_dev) == f->dev_minor;
}

/* Opens for reading what the O_PATH descriptor is of. */
static int reopen(int path_fd, int *ret_fd)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", path_fd);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/*
 * If the O_PATH descriptor is of the file, opens it. mapped: it came from map_files, so it is what is
 * mapped there; some file systems (btrfs, overlayfs) tell stat another device than maps, then it is
 * enough that the mapping has not changed. Closes path_fd.
 */
static int accept_file(int dir, const struct mt_proc_file *f, bool mapped, int path_fd, int *ret_fd)
{
	struct stat st;
	int r;

	if (fstat(path_fd, &st) < 0)
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = -EINVAL;
	else if (same_inode(f, &st))
		r = 0;
	else if (mapped)
		r = each_map(dir, is_mapping, (void *)f) == 1 ? 0 : -ESTALE;
	else
		r = -ESTALE;
	if (r == 0)
		r = reopen(path_fd, ret_fd);
	close(path_fd);
	return r;
}

/* The path as the process sees it: links in it end in the process's root, not in ours. */
static int open_in_root(int dir, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(root, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(root);
	return fd;
}

static int open_file(int dir, const struct mt_proc_file *f, int *ret_fd)
{
	char name[64];
	int fd, r, first;

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, f->start, f->end);
	first = mt_proc_openat(dir, name, O_PATH, &fd);
	if (first == 0)
		return accept_file(dir, f, true, fd, ret_fd);
	if (first == -ESRCH || f->path[0] != '/' || f->deleted)
		return first == -ENOENT ? -ESTALE : first;
	fd = open_in_root(dir, f->path);
	r = fd < 0 ? fd : accept_file(dir, f, false, fd, ret_fd);
	if (r == 0)
		return 0;
	fd = open(f->path, O_PATH | O_CLOEXEC);
	r = fd < 0 ? -errno : accept_file(dir, f, false, fd, ret_fd);
	if (r == -ENOENT)
		r = -ESTALE;
	return r;
}

int mt_proc_open_file(int dir, const struct mt_proc_file *f, int *ret_fd)
{
	int other, r;

	if (mt_proc_other_thread(dir, &other))
		return open_file(dir, f, ret_fd);
	r = open_file(other, f, ret_fd);
	close(other);
	return r;
}
