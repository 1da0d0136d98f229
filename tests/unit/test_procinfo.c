/* SPDX-License-Identifier: BSD-3-Clause */
/* procinfo: the parsers on odd texts, a made-up /proc, and the real one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procinfo.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))
#define FFFD "\xef\xbf\xbd"

/* ---- parsers ---- */

static void test_stat_parse(void **state)
{
	/* Fields 3 to 23; ppid 77, 5 threads, start 123456, and a negative priority. */
#define REST " S 77 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -2 0 5 0 123456 99 1\n"
	static const struct {
		const char *text;
		int r;
		uint32_t pid;
		const char *comm;
	} t[] = {
		{"42 (cat)" REST, 0, 42, "cat"},
		{"42 ()" REST, 0, 42, ""},
		{"42 (a) R 1 (b)" REST, 0, 42, "a) R 1 (b"},
		{"42 ()))((()" REST, 0, 42, ")))((("},
		{"42 (x\ny\x1b[m)" REST, 0, 42, "x" FFFD "y" FFFD "[m"},
		{"42 (\xff)" REST, 0, 42, FFFD},
		{"4294967295 (x)" REST, 0, UINT32_MAX, "x"},
		{"4294967296 (x)" REST, -EBADMSG, 0, NULL},
		{"", -EBADMSG, 0, NULL},
		{"42", -EBADMSG, 0, NULL},
		{"42 (x", -EBADMSG, 0, NULL},
		{"42 )x(" REST, -EBADMSG, 0, NULL},
		{"(x)" REST, -EBADMSG, 0, NULL},
		{"42  (x)" REST, -EBADMSG, 0, NULL},
		{"42 (x) S", -EBADMSG, 0, NULL},
		{"42 (x) S 77 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -2 0 5 0", -EBADMSG, 0, NULL},
		{"42 (x) S 77 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -2 0 5 0 ", -EBADMSG, 0, NULL},
		{"42 (x) S 77 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -2 0 5 0 99999999999999999999", -EBADMSG, 0,
		 NULL},
		{"42 (x) S 4294967296 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -2 0 5 0 1 1", -EBADMSG, 0, NULL},
	};
	struct mt_proc_stat st;
	char *exact;
	size_t i, len;

	(void)state;
	for (i = 0; i < LEN(t); i++) {
		/* A copy of exactly this length: reading beyond it is seen by the sanitizer. */
		len = strlen(t[i].text);
		exact = malloc(len ? len : 1);
		assert_non_null(exact);
		memcpy(exact, t[i].text, len);
		memset(&st, 0, sizeof(st));
		assert_int_equal(mt_proc_stat_parse(exact, len, &st), t[i].r);
		free(exact);
		if (t[i].r < 0) {
			assert_int_equal(st.state, 0);
			continue;
		}
		assert_int_equal(st.pid, t[i].pid);
		assert_string_equal(st.comm, t[i].comm);
		assert_int_equal(st.state, 'S');
		assert_int_equal(st.ppid, 77);
		assert_int_equal(st.nthreads, 5);
		assert_int_equal(st.start_ticks, 123456);
	}
}

static void test_status_parse(void **state)
{
	static const struct {
		const char *text;
		int r;
		struct mt_proc_status want;
	} t[] = {
		{"Name:\tcat\nTgid:\t42\nUid:\t1\t2\t3\t4\nNSpid:\t42\n", 0, {42, 1, 2, 42, 0}},
		{"Tgid:\t42\nUid:\t1\t2\t3\t4\nNSpid:\t42\t7\t1\n", 0, {42, 1, 2, 1, 2}},
		{"Tgid:\t42\nUid:\t1\t2\t3\t4\n", 0, {42, 1, 2, 0, 0}},
		{"Name:\tTgid:\t9\nTgid:\t42\nUid:\t0\t0\t0\t0\nUidX:\t5\t5\n", 0, {42, 0, 0, 0, 0}},
		{"Tgid:\t42\nUid:\t1\t2\t3\t4\nNSpid:\t42\t7", 0, {42, 1, 2, 0, 0}}, /* line cut off */
		{"Tgid:\t42\nUid:\t1\n", -EBADMSG, {0}},
		{"Tgid:\t42\nUid:\t1\t4294967296\n", -EBADMSG, {0}},
		{"Uid:\t1\t2\t3\t4\n", -EBADMSG, {0}},
		{"Tgid:\t\nUid:\t1\t2\t3\t4\n", -EBADMSG, {0}},
		{"Tgid:", -EBADMSG, {0}},
		{"\n\n\n", -EBADMSG, {0}},
		{"", -EBADMSG, {0}},
	};
	struct mt_proc_status s;
	size_t i;

	(void)state;
	for (i = 0; i < LEN(t); i++) {
		memset(&s, 0, sizeof(s));
		assert_int_equal(mt_proc_status_parse(t[i].text, strlen(t[i].text), &s), t[i].r);
		assert_memory_equal(&s, &t[i].want, sizeof(s));
	}
}

static void test_status_deep(void **state)
{
	char text[512] = "Tgid:\t1\nUid:\t1\t2\nNSpid:";
	struct mt_proc_status s;
	int i;

	(void)state;
	for (i = 0; i < 40; i++) /* more than the kernel allows: the 33rd is the last that counts */
		snprintf(text + strlen(text), 16, "\t%d", 100 + i);
	strcat(text, "\n");
	assert_int_equal(mt_proc_status_parse(text, strlen(text), &s), 0);
	assert_int_equal(s.ns_pid, 132);
	assert_int_equal(s.ns_depth, 32);
}

static void test_start(void **state)
{
	const uint64_t tick = 10000000;

	(void)state;
	assert_int_equal(mt_proc_start_ns(0, tick), 0);
	assert_int_equal(mt_proc_start_ns(123456, tick), 1234560000000);
	assert_true(mt_proc_start_ns(UINT64_MAX / tick, tick) == UINT64_MAX / tick * tick);
	assert_true(mt_proc_start_ns(UINT64_MAX / tick + 1, tick) == UINT64_MAX);
	assert_true(mt_proc_start_same(50000000, 50000000, tick));
	assert_true(mt_proc_start_same(59999999, 50000000, tick));
	assert_false(mt_proc_start_same(60000000, 50000000, tick));
	assert_false(mt_proc_start_same(49999999, 50000000, tick));
	assert_false(mt_proc_start_same(0, UINT64_MAX, tick));
	assert_true(mt_proc_start_same(UINT64_MAX, UINT64_MAX, tick));
}

static void test_environ_find(void **state)
{
#define ENV "A=1\0BB=two\0EMPTY=\0=x\0\0BB=second\0NOVALUE\0LAST=no nul"
	static const struct {
		const char *name;
		int r;
		const char *value;
	} t[] = {
		{"A", 0, "1"},
		{"BB", 0, "two"},
		{"EMPTY", 0, ""},
		{"B", -ENODATA, NULL},
		{"NOVALUE", -ENODATA, NULL},
		{"LAST", 0, "no nul"},
		{"x", -ENODATA, NULL},
		{"BB=two", -ENODATA, NULL},
		{"LAST=no nul", -ENODATA, NULL},
	};
	char value[32], *exact = malloc(sizeof(ENV) - 1);
	size_t i;

	(void)state;
	assert_non_null(exact);
	memcpy(exact, ENV, sizeof(ENV) - 1);
	for (i = 0; i < LEN(t); i++) {
		strcpy(value, "untouched");
		assert_int_equal(
			mt_proc_environ_find(exact, sizeof(ENV) - 1, t[i].name, value, sizeof(value)),
			t[i].r);
		assert_string_equal(value, t[i].r == 0 ? t[i].value : "untouched");
	}
	assert_int_equal(mt_proc_environ_find(exact, sizeof(ENV) - 1, "LAST", value, 4), 0);
	assert_string_equal(value, "no ");
	assert_int_equal(mt_proc_environ_find(exact, 0, "A", value, 4), -ENODATA);
	assert_int_equal(mt_proc_environ_find(exact, 2, "A", value, 4), 0); /* cut at the '=' */
	assert_string_equal(value, "");
	free(exact);
}

static void test_maps_lines(void **state)
{
	static const struct {
		const char *line;
		bool ok;
		uint64_t start, end, offset;
		uint32_t major, minor;
		uint64_t inode;
		bool exec, deleted;
		const char *path;
	} t[] = {
		{"55d0c0a00000-55d0c0a2f000 r-xp 00002000 fe:01 131 /usr/bin/cat\n", true, 0x55d0c0a00000,
		 0x55d0c0a2f000, 0x2000, 0xfe, 1, 131, true, false, "/usr/bin/cat"},
		{"1000-2000 rw-p 00000000 00:00 0 \n", true, 0x1000, 0x2000, 0, 0, 0, 0, false, false, ""},
		{"1000-2000 rw-p 00000000 00:00 0\n", true, 0x1000, 0x2000, 0, 0, 0, 0, false, false, ""},
		{"1000-2000 rw-p 00000000 00:00 0            [heap]\n", true, 0x1000, 0x2000, 0, 0, 0, 0,
		 false, false, "[heap]"},
		{"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n", true,
		 0xffffffffff600000, 0xffffffffff601000, 0, 0, 0, 0, true, false, "[vsyscall]"},
		{"1000-2000 r-xs 0 8:1 9 /a (deleted)\n", true, 0x1000, 0x2000, 0, 8, 1, 9, true, true, "/a"},
		{"1000-2000 r-xs 0 8:1 9 /a (deleted) (deleted)\n", true, 0x1000, 0x2000, 0, 8, 1, 9, true,
		 true, "/a (deleted)"},
		{"1000-2000 r-xs 0 8:1 9  (deleted)\n", true, 0x1000, 0x2000, 0, 8, 1, 9, true, false,
		 "(deleted)"},
		{"1000-2000 r-xp 0 8:1 9 /a b\\012c\\012\n", true, 0x1000, 0x2000, 0, 8, 1, 9, true, false,
		 "/a b\nc\n"},
		{"1000-2000 r-xp 0 8:1 9 /back\\slash\\134\\01\n", true, 0x1000, 0x2000, 0, 8, 1, 9, true,
		 false, "/back\\slash\\134\\01"},
		{"1000-2000 r-xp 0 8:1 18446744073709551615 /a\n", true, 0x1000, 0x2000, 0, 8, 1, UINT64_MAX,
		 true, false, "/a"},
		{"1000-2000 r-xp 0 8:1 18446744073709551616 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"10000000000000000-2 r-xp 0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"2000-1000 r-xp 0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-1000 r-xp 0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000 2000 r-xp 0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-x\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp-0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xpp 0 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp g 8:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp 0 8-1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp 0 100000000:1 9 /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp 0 8:1 9a /a\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp 0 8:1 \n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"\n", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
		{"1000-2000 r-xp 0 8:1 9 /no newline", false, 0, 0, 0, 0, 0, 0, 0, 0, NULL},
	};
	struct mt_proc_map m;
	char *exact;
	const char *p;
	size_t i, len;

	(void)state;
	for (i = 0; i < LEN(t); i++) {
		len = strlen(t[i].line);
		exact = malloc(len);
		assert_non_null(exact);
		memcpy(exact, t[i].line, len);
		p = exact;
		memset(&m, 0xaa, sizeof(m));
		assert_int_equal(mt_proc_maps_next(&p, &len, &m), t[i].ok);
		if (t[i].ok) {
			assert_true(m.start == t[i].start && m.end == t[i].end);
			assert_int_equal(m.offset, t[i].offset);
			assert_int_equal(m.dev_major, t[i].major);
			assert_int_equal(m.dev_minor, t[i].minor);
			assert_true(m.inode == t[i].inode);
			assert_int_equal(m.exec, t[i].exec);
			assert_int_equal(m.deleted, t[i].deleted);
			assert_string_equal(m.path, t[i].path);
		}
		/* What is left: nothing, or the line without its end. */
		assert_int_equal(len, t[i].line[strlen(t[i].line) - 1] == '\n' ? 0 : strlen(t[i].line));
		free(exact);
	}
}

static void test_maps_long_path(void **state)
{
	static const char head[] = "1000-2000 r-xp 0 8:1 9 ";
	char text[sizeof(head) + PATH_MAX + 1];
	size_t len, path;
	struct mt_proc_map m;
	const char *p;

	(void)state;
	for (path = PATH_MAX - 2; path <= PATH_MAX; path++) {
		strcpy(text, head);
		memset(text + sizeof(head) - 1, '/', path);
		len = sizeof(head) - 1 + path;
		text[len++] = '\n';
		p = text;
		assert_int_equal(mt_proc_maps_next(&p, &len, &m), 1);
		assert_int_equal(strlen(m.path), path < PATH_MAX ? path : 0);
	}
}

/* ---- a made-up /proc ---- */

struct fake {
	char top[64]; /* the /proc; process 7 in it */
	int proc, dir;
};

static const char *at(const struct fake *f, const char *rest)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *p = paths[next++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", f->top, rest);
	return p;
}

static void put(const struct fake *f, const char *rest, const char *data, size_t len)
{
	FILE *out = fopen(at(f, rest), "w");

	assert_non_null(out);
	assert_int_equal(fwrite(data, 1, len, out), len);
	fclose(out);
}

static void put_text(const struct fake *f, const char *rest, const char *text)
{
	put(f, rest, text, strlen(text));
}

static int setup(void **state)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->top, "/tmp/mt-procinfo-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	assert_int_equal(mkdir(at(f, "7"), 0700), 0);
	assert_int_equal(mkdir(at(f, "7/root"), 0700), 0);
	put_text(f, "7/stat", "7 (x)" REST);
	put_text(f, "7/status", "Tgid:\t7\nUid:\t5\t6\t5\t5\nNSpid:\t7\t2\n");
	put_text(f, "7/cmdline", "");
	assert_int_equal(mt_proc_open(f->top, &f->proc), 0);
	assert_int_equal(mt_proc_pid(f->proc, 7, &f->dir), 0);
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct fake *f = *state;

	close(f->dir);
	close(f->proc);
	nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static void test_lists(void **state)
{
	static const char *const dirs[] = {"10",     "9",         "self",     "1x",      "4294967296",
					   "7/task", "7/task/12", "7/task/7", "7/task/8"};
	struct fake *f = *state;
	uint32_t *pids, tgid;
	bool initial = true;
	size_t i, n;
	int dir;

	for (i = 0; i < LEN(dirs); i++)
		assert_int_equal(mkdir(at(f, dirs[i]), 0700), 0);
	put_text(f, "10/stat", "10 (x) S 7 1 1 0 -1 1 1 2 3 4 5 6 7 8 0 0 5 0 1 9\n");
	put_text(f, "9/stat", "hostile");

	assert_int_equal(mt_proc_pids(f->proc, &pids, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(pids[0], 7);
	assert_int_equal(pids[1], 9);
	assert_int_equal(pids[2], 10);
	free(pids);

	assert_int_equal(rmdir(at(f, "self")), 0);
	assert_int_equal(mt_proc_is_initial(f->proc, &initial), 0);
	assert_false(initial);
	assert_int_equal(mt_proc_tgid(f->proc, 7, &tgid), 0);
	assert_int_equal(tgid, 7);
	assert_int_equal(mt_proc_tgid(f->proc, 11, &tgid), -ESRCH);
	assert_int_equal(mt_proc_pid(f->proc, 11, &dir), -ESRCH);
}

static void test_info(void **state)
{
	static const char args[] = "/bin/x\0--opt\0\0a\nb\xff\0\0";
	struct fake *f = *state;
	struct mt_proc_info info;
	char big[8000], path[PATH_MAX];
	bool deleted = true;

	put(f, "7/cmdline", args, sizeof(args) - 1);
	assert_int_equal(symlink("/opt/some\x1b"
				 "thing (deleted)",
				 at(f, "7/exe")),
			 0);
	assert_int_equal(mt_proc_info(f->dir, &info), 0);
	assert_int_equal(info.pid, 7);
	assert_int_equal(info.ppid, 77);
	assert_int_equal(info.uid, 5);
	assert_int_equal(info.ns_pid, 2);
	assert_int_equal(info.start, 123456 * mt_proc_tick_ns());
	assert_string_equal(info.comm, "x");
	assert_string_equal(info.name, "some" FFFD "thing");
	assert_string_equal(info.cmdline, "/bin/x --opt  a" FFFD "b" FFFD);
	assert_int_equal(mt_proc_exe(f->dir, path, &deleted), 0);
	assert_true(deleted);
	assert_string_equal(path, "/opt/some\x1b"
				  "thing");

	/* No executable (a kernel thread): comm is the name. A huge command line is cut. */
	assert_int_equal(unlink(at(f, "7/exe")), 0);
	memset(big, 'c', sizeof(big));
	put(f, "7/cmdline", big, sizeof(big));
	assert_int_equal(mt_proc_exe(f->dir, path, &deleted), -ENOENT);
	assert_int_equal(mt_proc_info(f->dir, &info), 0);
	assert_string_equal(info.name, "x");
	assert_int_equal(strlen(info.cmdline), sizeof(info.cmdline) - 1);

	/* A zombie is as good as gone, and what is gone says so. */
	put_text(f, "7/stat", "7 (x) Z 7 1 1 0 -1 1 1 2 3 4 5 6 7 8 0 0 5 0 1 9\n");
	assert_int_equal(mt_proc_info(f->dir, &info), -ESRCH);
	assert_int_equal(unlink(at(f, "7/stat")), 0);
	assert_int_equal(mt_proc_info(f->dir, &info), -ESRCH);
	assert_int_equal(mt_proc_exe(f->dir, path, &deleted), -ESRCH);
}

static void test_environ_sizes(void **state)
{
	const size_t sizes[] = {65536 - 20, 65536, 65536 + 1, 3000000};
	struct fake *f = *state;
	char value[16], *env = calloc(1, 3000100);
	size_t i;

	assert_non_null(env);
	for (i = 0; i < LEN(sizes); i++) {
		memset(env, 'e', sizes[i]);
		strcpy(env + sizes[i] - 10, "");
		strcpy(env + sizes[i] - 9, "KEY=value");
		put(f, "7/environ", env, sizes[i] + 1);
		assert_int_equal(mt_proc_environ(f->dir, "KEY", value, sizeof(value)), 0);
		assert_string_equal(value, "value");
	}
	free(env);
	assert_int_equal(unlink(at(f, "7/environ")), 0);
	assert_int_equal(mt_proc_environ(f->dir, "KEY", value, sizeof(value)), -ENOENT);
}

static void test_files_distinct(void **state)
{
	static const char maps[] = "1000-2000 r--p 0 8:1 1 /a\n"
				   "2000-3000 r-xp 1000 8:1 1 /a\n"
				   "3000-4000 r-xp 2000 8:1 1 /a\n"
				   "4000-5000 r-xp 0 8:2 1 /b (deleted)\n"
				   "5000-6000 r-xs 0 9:1 1 /c\n"
				   "6000-7000 r-xp 0 8:1 2 /d\n"
				   "7000-8000 r-xp 5000 8:1 1 /again\n"
				   "7800-8000 rwxp 1000 8:1 1 /again\n"
				   "8000-9000 r-xp 0 0:0 0 [vdso]\n"
				   "junk\n"
				   "9000-a000 rw-p 0 8:1 3 /data\n"
				   "a000-b000 r-xp 0 8:1 4 /cut off";
	static const struct mt_proc_file want[] = {
		{0x2000, 0x3000, 0x1000, 8, 1, 1, false, (char *)"/a", true, 2},
		{0x4000, 0x5000, 0, 8, 2, 1, true, (char *)"/b", false, 1},
		{0x5000, 0x6000, 0, 9, 1, 1, false, (char *)"/c", true, 1},
		{0x6000, 0x7000, 0, 8, 1, 2, false, (char *)"/d", false, 1},
	};
	struct fake *f = *state;
	struct mt_proc_files files;
	size_t i;

	put(f, "7/maps", maps, sizeof(maps) - 1);
	assert_int_equal(mt_proc_files(f->dir, &files), 0);
	assert_int_equal(files.n, LEN(want));
	assert_false(files.more);
	for (i = 0; i < LEN(want); i++) {
		assert_int_equal(files.v[i].start, want[i].start);
		assert_int_equal(files.v[i].end, want[i].end);
		assert_int_equal(files.v[i].offset, want[i].offset);
		assert_int_equal(files.v[i].dev_major, want[i].dev_major);
		assert_int_equal(files.v[i].dev_minor, want[i].dev_minor);
		assert_int_equal(files.v[i].inode, want[i].inode);
		assert_int_equal(files.v[i].deleted, want[i].deleted);
		assert_int_equal(files.v[i].writable, want[i].writable);
		assert_int_equal(files.v[i].copies, want[i].copies);
		assert_string_equal(files.v[i].path, want[i].path);
	}
	mt_proc_files_free(&files);
	assert_null(files.v);
	assert_int_equal(unlink(at(f, "7/maps")), 0);
	assert_int_equal(mt_proc_files(f->dir, &files), -ENOENT);
}

/* Many reads' worth of lines, more files than are kept, and a line that is longer than any. */
static void test_files_many(void **state)
{
	struct fake *f = *state;
	FILE *out = fopen(at(f, "7/maps"), "w");
	struct mt_proc_files files;
	unsigned int i;

	assert_non_null(out);
	for (i = 1; i <= MT_PROC_FILES_MAX; i++)
		fprintf(out, "%x000-%x800 r-xp 0 8:1 %u /lib/number-%u\n", i, i, i, i);
	for (i = 0; i < 200000; i++)
		fputc('x', out);
	fprintf(out, "\n1000-2000 r-xp 0 8:1 1 /lib/number-1\n"); /* known: no more */
	fclose(out);
	assert_int_equal(mt_proc_files(f->dir, &files), 0);
	assert_int_equal(files.n, MT_PROC_FILES_MAX);
	assert_false(files.more);
	for (i = 1; i <= MT_PROC_FILES_MAX; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/lib/number-%u", i);
		assert_string_equal(files.v[i - 1].path, path);
	}
	mt_proc_files_free(&files);
	out = fopen(at(f, "7/maps"), "a");
	assert_non_null(out);
	fprintf(out, "1000-2000 r-xp 0 8:2 1 /one/more\n");
	fclose(out);
	assert_int_equal(mt_proc_files(f->dir, &files), 0);
	assert_int_equal(files.n, MT_PROC_FILES_MAX);
	assert_true(files.more);
	mt_proc_files_free(&files);
}

static struct mt_proc_file file_of(const struct stat *st, const char *path)
{
	return (struct mt_proc_file){.start = 0x1000,
				     .end = 0x2000,
				     .dev_major = major(st->st_dev),
				     .dev_minor = minor(st->st_dev),
				     .inode = st->st_ino,
				     .path = (char *)path};
}

static void assert_opens(const struct fake *f, const struct mt_proc_file *file, const struct stat *want)
{
	struct stat st;
	char c;
	int fd;

	assert_int_equal(mt_proc_open_file(f->dir, file, &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_dev == want->st_dev && st.st_ino == want->st_ino);
	assert_int_equal(read(fd, &c, 1), 1);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
}

static void test_open_by_path(void **state)
{
	struct fake *f = *state;
	struct mt_proc_file file;
	struct stat inside, outside;
	char path[PATH_MAX];
	int fd = -7;

	assert_int_equal(mkdir(at(f, "7/root/lib"), 0700), 0);
	put_text(f, "7/root/lib/x.so", "inside");
	put_text(f, "x.so", "outside");
	assert_int_equal(stat(at(f, "7/root/lib/x.so"), &inside), 0);
	assert_int_equal(stat(at(f, "x.so"), &outside), 0);

	file = file_of(&inside, "/lib/x.so");
	assert_opens(f, &file, &inside);
	/* A link to an absolute path stays in the process's root. */
	assert_int_equal(symlink("/lib", at(f, "7/root/usr")), 0);
	file = file_of(&inside, "/usr/x.so");
	assert_opens(f, &file, &inside);
	/* Not there in the process's root, but in ours. */
	strcpy(path, at(f, "x.so"));
	file = file_of(&outside, path);
	assert_opens(f, &file, &outside);

	/* Other inode, other device, deleted, no path, not there: nothing is opened. */
	file = file_of(&outside, "/lib/x.so");
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file = file_of(&inside, "/lib/x.so");
	file.dev_minor++;
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file = file_of(&inside, "/lib/x.so");
	file.deleted = true;
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file = file_of(&inside, "");
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file = file_of(&inside, "lib/x.so");
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file = file_of(&inside, "/lib/y.so");
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	assert_int_equal(unlink(at(f, "7/stat")), 0);
	file = file_of(&inside, "/lib/x.so");
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESRCH);
	assert_int_equal(fd, -7);
}

static void test_open_mapped(void **state)
{
	static const char maps[] = "1000-2000 r-xp 0 ffff:1 99 /x\n3000-4000 r-xp 0 8:1 5 /fifo\n";
	struct fake *f = *state;
	struct mt_proc_file file;
	struct stat st;
	int fd = -7;

	assert_int_equal(mkdir(at(f, "7/map_files"), 0700), 0);
	put_text(f, "x.so", "x");
	assert_int_equal(stat(at(f, "x.so"), &st), 0);
	assert_int_equal(symlink("../../x.so", at(f, "7/map_files/1000-2000")), 0);
	put(f, "7/maps", maps, sizeof(maps) - 1);
	/* Deleted or not, whatever the path says. */
	file = file_of(&st, "/nowhere");
	file.deleted = true;
	assert_opens(f, &file, &st);
	/* stat tells another device than maps: it counts that the mapping is still there. */
	file = file_of(&st, "/x");
	file.dev_major = 0xffff;
	file.dev_minor = 1;
	file.inode = 99;
	assert_opens(f, &file, &st);
	file.inode = 98;
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);
	file.inode = 99;
	file.dev_minor = 2;
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -ESTALE);

	/* A FIFO: opening it would hang. */
	assert_int_equal(mkfifo(at(f, "7/map_files/3000-4000"), 0600), 0);
	assert_int_equal(stat(at(f, "7/map_files/3000-4000"), &st), 0);
	file = file_of(&st, "/fifo");
	file.start = 0x3000;
	file.end = 0x4000;
	assert_int_equal(mt_proc_open_file(f->dir, &file, &fd), -EINVAL);
	assert_int_equal(fd, -7);
}

/* ---- the real /proc ---- */

static uint64_t boot_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static bool contains(const uint32_t *v, size_t n, uint32_t x)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (v[i] == x)
			return true;
	}
	return false;
}

static void test_real_child(void **state)
{
	char *const argv[] = {(char *)"sleep", (char *)"100", NULL};
	char *const envp[] = {(char *)"HYPERACTOR_PROCESS_NAME=proc x @ box", (char *)"E=", NULL};
	uint64_t before = boot_ns(), tick = mt_proc_tick_ns();
	struct mt_proc_info info;
	char value[64];
	uint32_t *pids;
	size_t n;
	pid_t pid;
	int proc, dir, other, i, r = -1;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execve("/bin/sleep", argv, envp);
		_exit(127);
	}
	assert_int_equal(mt_proc_open(NULL, &proc), 0);
	assert_int_equal(mt_proc_pid(proc, (uint32_t)pid, &dir), 0);
	for (i = 0; i < 5000; i++) { /* until it has executed */
		r = mt_proc_info(dir, &info);
		if (r == 0 && !strcmp(info.comm, "sleep") && info.cmdline[0]) /* set one after the other */
			break;
		usleep(1000);
	}
	assert_int_equal(r, 0);
	assert_int_equal(info.pid, pid);
	assert_int_equal(info.ppid, getpid());
	assert_int_equal(info.uid, getuid());
	assert_string_equal(info.comm, "sleep");
	assert_string_equal(info.cmdline, "sleep 100");
	assert_true(info.start + tick > before && info.start <= boot_ns());
	assert_int_equal(mt_proc_environ(dir, "HYPERACTOR_PROCESS_NAME", value, sizeof(value)), 0);
	assert_string_equal(value, "proc x @ box");
	assert_int_equal(mt_proc_environ(dir, "PATH", value, sizeof(value)), -ENODATA);
	assert_int_equal(mt_proc_pids(proc, &pids, &n), 0);
	assert_true(contains(pids, n, (uint32_t)pid) && contains(pids, n, (uint32_t)getpid()));
	free(pids);

	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(mt_proc_info(dir, &info), -ESRCH); /* zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(mt_proc_info(dir, &info), -ESRCH);
	assert_int_equal(mt_proc_environ(dir, "E", value, sizeof(value)), -ESRCH);
	assert_int_equal(mt_proc_pid(proc, (uint32_t)pid, &other), -ESRCH);
	close(dir);
	close(proc);
}

static void *thread_main(void *arg)
{
	uint32_t tgid = 0;
	int proc;

	(void)arg;
	assert_int_equal(mt_proc_open(NULL, &proc), 0);
	assert_int_equal(mt_proc_tgid(proc, (uint32_t)gettid(), &tgid), 0);
	assert_int_equal(tgid, getpid());
	assert_int_not_equal(tgid, gettid());
	close(proc);
	return NULL;
}

static void test_real_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
}

/* Our own executable is mapped, once; so is a file with an odd name that is deleted while mapped. */
static void test_real_files(void **state)
{
	char path[] = "/tmp/mt-procinfo-\n\\012-XXXXXX";
	struct mt_proc_files files;
	struct stat exe, st, odd;
	unsigned int seen_exe = 0, seen_odd = 0;
	int proc, dir, fd, r;
	void *map;
	size_t i;

	(void)state;
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "mapped", 6), 6);
	assert_int_equal(fstat(fd, &odd), 0);
	map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_int_equal(unlink(path), 0);
	close(fd);
	if (map == MAP_FAILED)
		skip(); /* /tmp is mounted noexec */
	assert_int_equal(stat("/proc/self/exe", &exe), 0);
	assert_int_equal(mt_proc_open(NULL, &proc), 0);
	assert_int_equal(mt_proc_pid(proc, (uint32_t)getpid(), &dir), 0);
	assert_int_equal(mt_proc_files(dir, &files), 0);
	for (i = 0; i < files.n; i++) {
		if (files.v[i].inode == exe.st_ino) {
			seen_exe++;
			assert_int_equal(mt_proc_open_file(dir, &files.v[i], &fd), 0);
			assert_int_equal(fstat(fd, &st), 0);
			assert_true(st.st_ino == exe.st_ino && st.st_dev == exe.st_dev);
			close(fd);
		}
		if (files.v[i].inode == odd.st_ino && files.v[i].deleted) {
			seen_odd++;
			assert_int_equal(strncmp(files.v[i].path, "/tmp/mt-procinfo-\n", 18), 0);
			r = mt_proc_open_file(dir, &files.v[i], &fd);
			if (r == -EPERM || r == -EACCES)
				continue; /* map_files is for the privileged */
			assert_int_equal(r, 0);
			assert_int_equal(fstat(fd, &st), 0);
			assert_true(st.st_ino == odd.st_ino);
			close(fd);
		}
	}
	assert_int_equal(seen_exe, 1);
	assert_int_equal(seen_odd, 1);
	mt_proc_files_free(&files);
	munmap(map, 4096);
	close(dir);
	close(proc);
}

static void test_real_namespace(void **state)
{
	bool initial, inner = true;
	int proc, status;
	pid_t pid;

	(void)state;
	assert_int_equal(mt_proc_open(NULL, &proc), 0);
	assert_int_equal(mt_proc_is_initial(proc, &initial), 0);
	if (geteuid() != 0 || !initial)
		skip();
	/* In a pid namespace of its own, with the /proc of this one, the answer is no. */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (syscall(SYS_unshare, 0x20000000 /* CLONE_NEWPID */) < 0)
			_exit(77);
		pid = fork();
		if (pid == 0)
			_exit(mt_proc_is_initial(proc, &inner) == 0 && !inner ? 0 : 1);
		_exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(proc);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

#define WITH_FAKE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_parse),
		cmocka_unit_test(test_status_parse),
		cmocka_unit_test(test_status_deep),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_environ_find),
		cmocka_unit_test(test_maps_lines),
		cmocka_unit_test(test_maps_long_path),
		WITH_FAKE(test_lists),
		WITH_FAKE(test_info),
		WITH_FAKE(test_environ_sizes),
		WITH_FAKE(test_files_distinct),
		WITH_FAKE(test_files_many),
		WITH_FAKE(test_open_by_path),
		WITH_FAKE(test_open_mapped),
		cmocka_unit_test(test_real_child),
		cmocka_unit_test(test_real_thread),
		cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_real_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
