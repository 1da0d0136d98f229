/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes and threads there are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procinfo_int.h"
#include "strings.h"

#define INIT_PID_NS_INODE 0xEFFFFFFCu /* fixed in the kernel's interface since 3.8 */

int mt_proc_open(const char *root, int *ret_proc)
{
	int fd = open(root ? root : "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	*ret_proc = fd;
	return 0;
}

int mt_proc_is_initial(int proc, bool *ret_initial)
{
	struct stat st;

	if (fstatat(proc, "self/ns/pid", &st, 0) == 0)
		*ret_initial = st.st_ino == INIT_PID_NS_INODE;
	else if (errno == ENOENT)
		*ret_initial = false; /* no "self": this /proc is of a namespace below ours */
	else
		return -errno;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * The entries of dir/name that are numbers, ascending. The kernel bounds them (at most 2^22
 * processes and threads).
 */
static int list_numbers(int dir, const char *name, uint32_t **ret_numbers, size_t *ret_n)
{
	uint32_t *v = NULL, *more;
	size_t n = 0, cap = 0;
	struct dirent *e;
	int fd, r = mt_proc_openat(dir, name, O_RDONLY | O_DIRECTORY, &fd);
	DIR *d;

	if (r < 0)
		return r;
	d = fdopendir(fd);
	if (!d) {
		r = -errno;
		close(fd);
		return r;
	}
	while (errno = 0, (e = readdir(d))) {
		const char *p = e->d_name, *end = p + strlen(p);
		uint64_t number;

		if (!mt_proc_number(&p, end, 10, UINT32_MAX, &number) || p != end)
			continue;
		if (n == cap) {
			cap = cap ? 2 * cap : 256;
			more = realloc(v, cap * sizeof(*v));
			if (!more) {
				errno = ENOMEM;
				break;
			}
			v = more;
		}
		v[n++] = (uint32_t)number;
	}
	r = -errno;
	closedir(d);
	if (r < 0 || n == 0) {
		free(v);
		return r == -ENOENT || r == 0 ? -ESRCH : r;
	}
	qsort(v, n, sizeof(*v), by_number);
	*ret_numbers = v;
	*ret_n = n;
	return 0;
}

int mt_proc_pids(int proc, uint32_t **ret_pids, size_t *ret_n)
{
	return list_numbers(proc, ".", ret_pids, ret_n);
}

int mt_proc_pid(int proc, uint32_t pid, int *ret_dir)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "%" PRIu32, pid);
	fd = openat(proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*ret_dir = fd;
	return 0;
}

int mt_proc_tgid(int proc, uint32_t tid, uint32_t *ret_tgid)
{
	struct mt_proc_status st;
	int dir = -1, r = mt_proc_pid(proc, tid, &dir);

	if (r < 0)
		return r;
	r = mt_proc_status(dir, &st);
	if (r == 0)
		*ret_tgid = st.tgid;
	close(dir);
	return r;
}

/* Has a thread memory still, and is it one of that process? */
static bool runs(int dir, uint32_t pid)
{
	struct mt_proc_status status;
	struct mt_proc_stat st;

	return !mt_proc_stat(dir, &st) && st.state != 'Z' && st.state != 'X' &&
	       !mt_proc_status(dir, &status) && status.tgid == pid;
}

/* By the thread's own directory beside the process's: that has everything, PID/task/TID has no map_files. */
static int open_thread(int dir, uint32_t pid, uint32_t tid, int *ret_dir)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "../%" PRIu32, tid);
	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!runs(fd, pid)) {
		close(fd);
		return -ESRCH;
	}
	*ret_dir = fd;
	return 0;
}

int mt_proc_other_thread(int dir, int *ret_dir)
{
	struct mt_proc_stat st;
	uint32_t *tids;
	size_t n, i;
	int r;

	if (mt_proc_stat(dir, &st) || st.state != 'Z' || list_numbers(dir, "task", &tids, &n))
		return -ESRCH;
	for (i = 0, r = -ESRCH; i < n && r; i++)
		r = tids[i] == st.pid ? -ESRCH : open_thread(dir, st.pid, tids[i], ret_dir);
	free(tids);
	return r ? -ESRCH : 0;
}

bool mt_proc_headless(int dir)
{
	int other;

	if (mt_proc_other_thread(dir, &other))
		return false;
	close(other);
	return true;
}

bool mt_proc_ended(int dir)
{
	struct mt_proc_stat st;

	return mt_proc_stat(dir, &st) || ((st.state == 'Z' || st.state == 'X') && !mt_proc_headless(dir));
}
