/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of one process in /proc, except maps. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procinfo_int.h"
#include "strings.h"

#define ENVIRON_MAX ((size_t)8 * 1024 * 1024) /* execve allows 6 MiB of arguments and environment */

bool mt_proc_number(const char **p, const char *end, unsigned int base, uint64_t max, uint64_t *ret_value)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end; s++) {
		unsigned int c = (unsigned char)*s, digit;

		if (c >= '0' && c <= '9')
			digit = c - '0';
		else if (c >= 'a' && c <= 'f')
			digit = c - 'a' + 10;
		else
			break;
		if (digit >= base)
			break;
		if (v > (max - digit) / base)
			return false;
		v = v * base + digit;
	}
	if (s == *p)
		return false;
	*p = s;
	*ret_value = v;
	return true;
}

int mt_proc_openat(int dir, const char *name, int flags, int *ret_fd)
{
	struct stat st;
	int fd = openat(dir, name, flags | O_CLOEXEC);

	if (fd < 0) {
		/* ENOENT: the file is not there, or the process is not. */
		if (errno == ENOENT && (fstatat(dir, "stat", &st, 0) < 0))
			return -ESRCH;
		return -errno;
	}
	*ret_fd = fd;
	return 0;
}

int mt_proc_read(int dir, const char *name, char *buf, size_t cap, size_t *ret_len)
{
	size_t len = 0;
	int fd = -1, r = mt_proc_openat(dir, name, O_RDONLY, &fd);

	if (r < 0)
		return r;
	while (len < cap) {
		ssize_t n = read(fd, buf + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = -errno;
			break;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	if (r == 0)
		*ret_len = len;
	return r;
}

int mt_proc_stat(int dir, struct mt_proc_stat *ret_stat)
{
	char buf[2048];
	size_t len = 0;
	int r = mt_proc_read(dir, "stat", buf, sizeof(buf), &len);

	return r < 0 ? r : mt_proc_stat_parse(buf, len, ret_stat);
}

int mt_proc_stat_parse(const char *buf, size_t len, struct mt_proc_stat *ret_stat)
{
	/* Fields are counted from 1, as in proc(5). The name is the second, and may hold anything. */
	enum { PPID = 4, NTHREADS = 20, START = 22 };
	const char *open = memchr(buf, '(', len), *close = memrchr(buf, ')', len), *end = buf + len, *p = buf;
	struct mt_proc_stat s = {0};
	uint64_t v[START + 1] = {0}, pid;
	unsigned int i;

	if (!open || !close || close < open || !mt_proc_number(&p, end, 10, UINT32_MAX, &pid) ||
	    p + 1 != open)
		return -EBADMSG;
	p = close + 1;
	if (end - p < 3 || p[0] != ' ')
		return -EBADMSG;
	s.state = p[1];
	p += 2;
	for (i = PPID; i <= START; i++) {
		if (end - p < 2 || *p++ != ' ')
			return -EBADMSG;
		if (*p == '-')
			p++; /* only the fields that we skip can be negative */
		if (!mt_proc_number(&p, end, 10, UINT64_MAX, &v[i]))
			return -EBADMSG;
	}
	if (v[PPID] > UINT32_MAX || v[NTHREADS] > UINT32_MAX)
		return -EBADMSG;
	s.pid = (uint32_t)pid;
	s.ppid = (uint32_t)v[PPID];
	s.nthreads = (uint32_t)v[NTHREADS];
	s.start_ticks = v[START];
	mt_text_safe(s.comm, sizeof(s.comm), open + 1, (size_t)(close - open - 1));
	*ret_stat = s;
	return 0;
}

int mt_proc_status(int dir, struct mt_proc_status *ret_status)
{
	char buf[8192];
	size_t len = 0;
	int r = mt_proc_read(dir, "status", buf, sizeof(buf), &len);

	return r < 0 ? r : mt_proc_status_parse(buf, len, ret_status);
}

/* The numbers after the key of a line, at most max. */
static size_t line_numbers(const char *p, const char *end, uint32_t *v, size_t max)
{
	uint64_t number;
	size_t n;

	for (n = 0; n < max; n++) {
		while (p < end && (*p == '\t' || *p == ' '))
			p++;
		if (!mt_proc_number(&p, end, 10, UINT32_MAX, &number))
			break;
		v[n] = (uint32_t)number;
	}
	return n;
}

static bool has_key(const char *line, const char *eol, const char *key, const char **ret_rest)
{
	size_t len = strlen(key);

	if ((size_t)(eol - line) < len || memcmp(line, key, len) != 0)
		return false;
	*ret_rest = line + len;
	return true;
}

int mt_proc_status_parse(const char *buf, size_t len, struct mt_proc_status *ret_status)
{
	enum { PID_NS_MAX = 33 }; /* the kernel allows 32 nested ones */
	const char *p = buf, *end = buf + len, *eol, *rest;
	bool has_tgid = false, has_uid = false;
	struct mt_proc_status s = {0};
	uint32_t v[PID_NS_MAX];
	size_t n;

	/* The kernel escapes a newline in the name, so a line is what it seems. */
	for (; p < end && (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1) {
		if (has_key(p, eol, "Tgid:", &rest) && line_numbers(rest, eol, v, 1) == 1) {
			s.tgid = v[0];
			has_tgid = true;
		} else if (has_key(p, eol, "Uid:", &rest) && line_numbers(rest, eol, v, 2) == 2) {
			s.uid = v[0];
			s.euid = v[1];
			has_uid = true;
		} else if (has_key(p, eol, "NSpid:", &rest)) {
			n = line_numbers(rest, eol, v, PID_NS_MAX);
			s.ns_pid = n ? v[n - 1] : 0;
			s.ns_depth = n ? (uint32_t)(n - 1) : 0;
		}
	}
	if (!has_tgid || !has_uid)
		return -EBADMSG;
	*ret_status = s;
	return 0;
}

uint64_t mt_proc_tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return 1000000000u / (uint64_t)(hz > 0 ? hz : 100);
}

uint64_t mt_proc_start_ns(uint64_t ticks, uint64_t tick_ns)
{
	uint64_t ns;

	return __builtin_mul_overflow(ticks, tick_ns, &ns) ? UINT64_MAX : ns;
}

bool mt_proc_start_same(uint64_t exact, uint64_t rounded, uint64_t tick_ns)
{
	return exact >= rounded && exact - rounded < tick_ns;
}

int mt_proc_exe(int dir, char ret_path[PATH_MAX], bool *ret_deleted)
{
	static const char gone[] = " (deleted)";
	const size_t gone_len = sizeof(gone) - 1;
	ssize_t n = readlinkat(dir, "exe", ret_path, PATH_MAX - 1);
	int other, r = n < 0 ? -errno : 0;
	struct stat st;
	size_t len;

	if (r == -ENOENT && !mt_proc_other_thread(dir, &other)) {
		n = readlinkat(other, "exe", ret_path, PATH_MAX - 1);
		r = n < 0 ? -errno : 0;
		close(other);
	}
	if (r < 0)
		return r == -ENOENT && fstatat(dir, "stat", &st, 0) < 0 ? -ESRCH : r;
	len = (size_t)n;
	*ret_deleted = len > gone_len && !memcmp(ret_path + len - gone_len, gone, gone_len);
	ret_path[*ret_deleted ? len - gone_len : len] = '\0';
	return 0;
}

int mt_proc_exe_stat(int dir, struct stat *ret_stat)
{
	int other, r = fstatat(dir, "exe", ret_stat, 0) < 0 ? -errno : 0;

	if (r != -ENOENT || mt_proc_other_thread(dir, &other))
		return r;
	r = fstatat(other, "exe", ret_stat, 0) < 0 ? -errno : 0;
	close(other);
	return r;
}

/* A file that is empty for a thread that has ended. */
static int read_of_memory(int dir, const char *name, char *buf, size_t cap, size_t *ret_len)
{
	int other, r = mt_proc_read(dir, name, buf, cap, ret_len);

	if (r || *ret_len || mt_proc_other_thread(dir, &other))
		return r;
	r = mt_proc_read(other, name, buf, cap, ret_len);
	close(other);
	return r;
}

int mt_proc_cmdline(int dir, char *ret_text, size_t cap)
{
	char *raw = malloc(cap);
	size_t len, i;
	int r;

	if (!raw)
		return -ENOMEM;
	r = read_of_memory(dir, "cmdline", raw, cap, &len);
	if (r == 0) {
		while (len > 0 && (raw[len - 1] == '\0' || raw[len - 1] == ' '))
			len--;
		for (i = 0; i < len; i++)
			raw[i] = raw[i] ? raw[i] : ' ';
		mt_text_safe(ret_text, cap, raw, len);
	}
	free(raw);
	return r;
}

int mt_proc_environ_find(const char *buf, size_t len, const char *name, char *ret_value, size_t cap)
{
	size_t name_len = strlen(name), entry, value;
	const char *nul;

	while (len > 0) {
		nul = memchr(buf, '\0', len);
		entry = nul ? (size_t)(nul - buf) : len;
		if (entry > name_len && buf[name_len] == '=' && !memcmp(buf, name, name_len)) {
			value = entry - name_len - 1;
			if (value > cap - 1)
				value = cap - 1;
			memcpy(ret_value, buf + name_len + 1, value);
			ret_value[value] = '\0';
			return 0;
		}
		if (!nul)
			break;
		buf += entry + 1;
		len -= entry + 1;
	}
	return -ENODATA;
}

int mt_proc_environ(int dir, const char *name, char *ret_value, size_t cap)
{
	size_t size = 64 * 1024, len = 0;
	char *buf = NULL;
	int r;

	do {
		free(buf);
		buf = malloc(size);
		if (!buf)
			return -ENOMEM;
		r = read_of_memory(dir, "environ", buf, size, &len);
		if (r < 0 || len < size)
			break;
		size *= 2;
	} while (size <= ENVIRON_MAX);
	if (r == 0)
		r = mt_proc_environ_find(buf, len, name, ret_value, cap);
	free(buf);
	return r;
}

int mt_proc_info(int dir, struct mt_proc_info *ret_info)
{
	struct mt_proc_info info = {0};
	struct mt_proc_status status;
	struct mt_proc_stat st;
	char path[PATH_MAX];
	const char *base;
	bool deleted;
	int r = mt_proc_stat(dir, &st);

	if (r == 0 && (st.state == 'Z' || st.state == 'X') && !mt_proc_headless(dir))
		r = -ESRCH;
	if (r == 0)
		r = mt_proc_status(dir, &status);
	if (r == 0)
		r = mt_proc_cmdline(dir, info.cmdline, sizeof(info.cmdline));
	if (r < 0)
		return r;
	info.pid = st.pid;
	info.ppid = st.ppid;
	info.uid = status.uid;
	info.ns_pid = status.ns_pid;
	info.start = mt_proc_start_ns(st.start_ticks, mt_proc_tick_ns());
	memcpy(info.comm, st.comm, sizeof(info.comm));
	memcpy(info.name, st.comm, sizeof(info.name));
	if (mt_proc_exe(dir, path, &deleted) == 0) {
		base = strrchr(path, '/');
		base = base ? base + 1 : path;
		if (*base)
			mt_text_safe(info.name, sizeof(info.name), base, strlen(base));
	}
	*ret_info = info;
	return 0;
}
