/* SPDX-License-Identifier: BSD-3-Clause */
/* tracedir: names, layout, owners, and attempts to lead a root process elsewhere. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "strings.h"
#include "tracedir.h"

#define STRANGER 54321u
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
	char top[64]; /* ours, 0700 */
	struct mt_user user;
	struct mt_tracedir_err err;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	strcpy(f->top, "/tmp/mt-tracedir-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	f->user = (struct mt_user){.uid = geteuid(), .gid = getegid(), .name = "alice"};
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
	struct fixture *f = *state;

	nftw(f->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

/* A path below the fixture's directory; good until the fourth next call. */
static const char *at(const struct fixture *f, const char *rest)
{
	static char paths[4][PATH_MAX];
	static unsigned int next;
	char *p = paths[next++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", f->top, rest);
	return p;
}

static void make_dir(const struct fixture *f, const char *rest, mode_t mode)
{
	assert_int_equal(mkdir(at(f, rest), 0700), 0);
	assert_int_equal(chmod(at(f, rest), mode), 0);
}

static void make_file(const struct fixture *f, const char *rest, const char *text)
{
	FILE *out = fopen(at(f, rest), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void assert_text(const struct fixture *f, const char *rest, const char *text)
{
	char buf[64] = "";
	FILE *in = fopen(at(f, rest), "r");

	assert_non_null(in);
	buf[fread(buf, 1, sizeof(buf) - 1, in)] = '\0';
	fclose(in);
	assert_string_equal(buf, text);
}

static unsigned int count_entries(const char *path, bool hidden_only)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n += !hidden_only || e->d_name[0] == '.';
	}
	closedir(d);
	return n;
}

static int open_dir(struct fixture *f, const char *base, const char *id, struct mt_tracedir **d)
{
	struct mt_tracedir_opts opts = {.user = &f->user, .base = base, .execution_id = id};

	memset(&f->err, 0, sizeof(f->err));
	*d = NULL;
	return mt_tracedir_open(&opts, &f->err, d);
}

/* Opening must fail with this code and message ("%s" = the fixture's directory). */
static void assert_refused(struct fixture *f, const char *base, const char *id, int code, const char *message)
{
	struct mt_tracedir *d;
	char text[700];

	assert_int_equal(open_dir(f, base, id, &d), code);
	assert_null(d);
	snprintf(text, sizeof(text), "%s/%s", f->top, message);
	assert_string_equal(f->err.text, text);
}

static void assert_mode(const char *path, mode_t mode, uint32_t uid, uint32_t gid)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	if (mode)
		assert_int_equal(st.st_mode & 07777, mode);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
}

/* ---- names ---- */

#define FFFD "\xef\xbf\xbd"

static void test_sanitise(void **state)
{
	static const struct {
		const char *in;
		size_t len; /* 0 = strlen */
		const char *out;
	} t[] = {
		{"client", 0, "client"},
		{"proc <x>[3] @ host:8080", 0, "proc <x>[3] @ host:8080"},
		{"", 0, "process"},
		{".", 0, "_"},
		{"..", 0, "__"},
		{"../../etc/x", 0, "___.._etc_x"},
		{"/etc/passwd", 0, "_etc_passwd"},
		{".hidden.", 0, "_hidden."},
		{"-rf", 0, "_rf"},
		{"a-b.c", 0, "a-b.c"},
		{"a\nb\tc\x1b[2Jd\x7f", 0, "a_b_c_[2Jd_"},
		{"a\0b", 3, "a_b"},
		{"\0", 1, "_"},
		{"caf\xc3\xa9", 0, "caf\xc3\xa9"},
		{"bad\xff\xc3", 0, "bad" FFFD FFFD},
		{"c1\xc2\x9b"
		 "x",
		 0, "c1" FFFD "x"}, /* CSI as one character */
		{"rtl\xe2\x80\xae"
		 "x",
		 0, "rtl" FFFD "x"}, /* right-to-left override */
	};
	char out[MT_TRACEDIR_NAME_MAX + 1];
	size_t i;

	(void)state;
	for (i = 0; i < LEN(t); i++) {
		mt_tracedir_sanitise(t[i].in, t[i].len ? t[i].len : strlen(t[i].in), out);
		assert_string_equal(out, t[i].out);
	}
}

static void test_sanitise_long(void **state)
{
	char in[4096], out[MT_TRACEDIR_NAME_MAX + 1], other[MT_TRACEDIR_NAME_MAX + 1];
	size_t i;

	(void)state;
	memset(in, 'a', sizeof(in));
	mt_tracedir_sanitise(in, 200, out);
	assert_int_equal(strlen(out), 200);
	assert_int_equal(strspn(out, "a"), 200);
	mt_tracedir_sanitise(in, 201, out);
	assert_int_equal(strlen(out), 200);
	assert_int_equal(strspn(out, "a"), 191);
	assert_int_equal(out[191], '~');
	assert_int_equal(strspn(out + 192, "0123456789abcdef"), 8);
	mt_tracedir_sanitise(in, sizeof(in), out);
	assert_int_equal(strlen(out), 200);
	in[4095] = 'b'; /* the hash is of all of it */
	mt_tracedir_sanitise(in, sizeof(in), other);
	assert_memory_equal(out, other, 192);
	assert_string_not_equal(out + 192, other + 192);

	/* 'x' and then three-byte characters: 191 is not a boundary, 190 bytes of characters and x are. */
	in[0] = 'x';
	for (i = 1; i + 3 <= sizeof(in); i += 3)
		memcpy(in + i, "\xe2\x82\xac", 3);
	mt_tracedir_sanitise(in, i, out);
	assert_int_equal(strcspn(out, "~"), 190);
	assert_true(mt_utf8_valid(out, strlen(out)));
	assert_int_equal(strlen(out), 199);

	/* Each byte becomes three. */
	memset(in, 0xff, sizeof(in));
	mt_tracedir_sanitise(in, sizeof(in), out);
	assert_int_equal(strcspn(out, "~"), 189);
	assert_true(mt_utf8_valid(out, strlen(out)));
	mt_tracedir_sanitise(in, 66, out);
	assert_int_equal(strlen(out), 198);
	assert_null(strchr(out, '~'));
}

static void test_expand(void **state)
{
	static const struct {
		const char *pattern;
		int r;
		size_t pos;
		const char *out;
	} t[] = {
		{"", 0, 0, ""},
		{"plain", 0, 0, "plain"},
		{"%n-%p@%h", 0, 0, "my%pprog-4294967295@box"}, /* values are not expanded */
		{"100%%", 0, 0, "100%"},
		{"%%p", 0, 0, "%p"},
		{"a%", -EINVAL, 1, NULL},
		{"%x", -EINVAL, 0, NULL},
		{"%p %", -EINVAL, 3, NULL},
		{"%n%%%P", -EINVAL, 4, NULL},
		{"%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%", 0, 0, "%%%%%%%%%%%%%%%%%%%%%%%"},
		{"0123456789012345678901234567890", 0, 0, "0123456789012345678901234567890"},
		{"01234567890123456789012345678901", -ENAMETOOLONG, 0, NULL},
		{"%n%n%n%n", -ENAMETOOLONG, 0, NULL},
	};
	struct mt_name_vars vars = {.pid = UINT32_MAX, .name = "my%pprog", .hostname = "box"};
	struct mt_name_vars none = {.pid = 1};
	char out[32];
	size_t i, pos;

	(void)state;
	for (i = 0; i < LEN(t); i++) {
		strcpy(out, "untouched");
		pos = 99;
		assert_int_equal(mt_tracedir_expand(t[i].pattern, &vars, out, sizeof(out), &pos), t[i].r);
		assert_string_equal(out, t[i].r == 0 ? t[i].out : "untouched");
		assert_int_equal(pos, t[i].r == -EINVAL ? t[i].pos : 99);
	}
	assert_int_equal(mt_tracedir_expand("%n|%h|%p", &none, out, sizeof(out), NULL), 0);
	assert_string_equal(out, "||1");
}

static void test_base(void **state)
{
	static const struct {
		const char *option, *montrace, *monarch, *out;
	} t[] = {
		{"/o", "/m", "/n", "/o"},
		{NULL, "/m", "/n", "/m"},
		{"", "/m", "/n", "/m"},
		{NULL, NULL, "/n", "/n"},
		{NULL, "", "/n", "/n"},
		{NULL, NULL, NULL, "/tmp/alice/monarch_traces"},
		{"", "", "", "/tmp/alice/monarch_traces"},
		{"rel/x", NULL, NULL, "rel/x"},
	};
	struct fixture *f = *state;
	char out[64];
	size_t i;

	for (i = 0; i < LEN(t); i++) {
		struct mt_tracedir_env env = {.montrace_trace_dir = t[i].montrace,
					      .monarch_trace_dir = t[i].monarch};

		assert_int_equal(mt_tracedir_base(t[i].option, &env, &f->user, out, sizeof(out)), 0);
		assert_string_equal(out, t[i].out);
	}
	assert_int_equal(mt_tracedir_base("/12", &(struct mt_tracedir_env){0}, &f->user, out, 4), 0);
	assert_int_equal(mt_tracedir_base("/123", &(struct mt_tracedir_env){0}, &f->user, out, 4),
			 -ENAMETOOLONG);
}

static void test_user(void **state)
{
	/* 3999999999 is in no data base; 65534 is nobody, its group is in the data base. */
	static const struct {
		uint32_t uid, gid;
		const char *sudo_uid, *sudo_gid;
		uint32_t want_uid, want_gid;
	} t[] = {
		{0, 0, NULL, NULL, 0, 0},
		{0, 7, "65534", "12", 65534, 12},
		{0, 7, "65534", NULL, 65534, UINT32_MAX /* data base */},
		{0, 7, "65534", "x", 65534, UINT32_MAX},
		{0, 7, "3999999999", "12", 3999999999u, 12},
		{0, 7, "3999999999", NULL, 0, 7},
		{0, 7, "4294967295", "12", 0, 7}, /* chown's "leave it" */
		{0, 7, "4294967296", "12", 0, 7},
		{0, 7, "18446744073709551616", "12", 0, 7},
		{0, 7, "", "12", 0, 7},
		{0, 7, " 12", "12", 0, 7},
		{0, 7, "-1", "12", 0, 7},
		{0, 7, "12x", "12", 0, 7},
		{0, 7, "0", "0", 0, 0},
		{3999999999u, 8, "65534", "12", 3999999999u, 8}, /* only root has a caller */
	};
	struct mt_user u;
	char number[32];
	size_t i;

	(void)state;
	if (!getpwuid(65534))
		skip();
	for (i = 0; i < LEN(t); i++) {
		struct mt_tracedir_env env = {.sudo_uid = t[i].sudo_uid, .sudo_gid = t[i].sudo_gid};
		struct passwd *pw = getpwuid(t[i].want_uid);

		mt_user_resolve(t[i].uid, t[i].gid, &env, &u);
		assert_int_equal(u.uid, t[i].want_uid);
		assert_int_equal(u.gid, t[i].want_gid == UINT32_MAX ? pw->pw_gid : t[i].want_gid);
		snprintf(number, sizeof(number), "uid%u", t[i].want_uid);
		assert_string_equal(u.name, pw ? pw->pw_name : number);
	}
}

static void test_execution_id(void **state)
{
	struct fixture *f = *state;
	struct tm tm = {.tm_year = 126, .tm_mon = 2, .tm_mday = 7, .tm_hour = 9, .tm_min = 5, .tm_isdst = -1};
	char id[MT_TRACEDIR_NAME_MAX + 1] = "untouched";
	time_t now = mktime(&tm);

	assert_int_equal(mt_execution_id_make(&f->user, now, 1000, id), -EINVAL);
	assert_string_equal(id, "untouched");
	assert_int_equal(mt_execution_id_make(&f->user, now, 7, id), 0);
	assert_string_equal(id, "alice_Mar-07_09:05_7");
	memset(f->user.name, 'n', MT_TRACEDIR_NAME_MAX);
	assert_int_equal(mt_execution_id_make(&f->user, now, 999, id), 0);
	assert_int_equal(strlen(id), MT_TRACEDIR_NAME_MAX);
}

/* ---- layout ---- */

static void test_layout(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	uint32_t uid = f->user.uid, gid = f->user.gid;
	mode_t mask = umask(077);
	char *path = NULL;
	int fd = -1;

	assert_int_equal(open_dir(f, at(f, "a/b/"), "id 1", &d), 0);
	assert_string_equal(mt_tracedir_path(d), at(f, "a/b/executions/id 1"));
	assert_string_equal(mt_tracedir_id(d), "id 1");
	assert_int_equal(mt_tracedir_create_for(d, "host rank:0 @box/x", 0, &f->err, &fd, &path), 0);
	umask(mask);
	assert_string_equal(path, at(f, "a/b/executions/id 1/host rank:0 @box_x.pftrace"));
	assert_int_equal(write(fd, "data", 4), 4);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_mode(path, 0640, uid, gid);
	assert_mode(at(f, "a"), 0750, uid, gid);
	assert_mode(at(f, "a/b"), 0750, uid, gid);
	assert_mode(at(f, "a/b/executions"), 0750, uid, gid);
	assert_mode(at(f, "a/b/executions/id 1"), 0750, uid, gid);
	assert_int_equal(faccessat(mt_tracedir_fd(d), "host rank:0 @box_x.pftrace", R_OK, 0), 0);
	assert_int_equal(count_entries(at(f, "a/b/executions"), false), 1);
	free(path);
	close(fd);
	mt_tracedir_close(d);
}

static void test_given_to_caller(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	struct mt_tracedir_tmp tmp;
	int fd, tmp_fd;

	if (geteuid() != 0)
		skip();
	f->user = (struct mt_user){.uid = STRANGER, .gid = STRANGER + 1, .name = "alice"};
	assert_int_equal(open_dir(f, at(f, "a"), "id", &d), 0);
	assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, NULL), 0);
	assert_int_equal(mt_tracedir_create_tmp(d, &f->err, &tmp, &tmp_fd), 0);
	assert_int_equal(mt_tracedir_publish(d, &tmp, "p", &f->err, NULL), 0);
	assert_int_equal(mt_tracedir_latest(d, &f->err), 0);
	assert_mode(at(f, "a"), 0750, STRANGER, STRANGER + 1);
	assert_mode(at(f, "a/executions"), 0750, STRANGER, STRANGER + 1);
	assert_mode(at(f, "a/executions/id"), 0750, STRANGER, STRANGER + 1);
	assert_mode(at(f, "a/executions/id/p.pftrace"), 0640, STRANGER, STRANGER + 1);
	assert_mode(at(f, "a/executions/id/p-2.pftrace"), 0640, STRANGER, STRANGER + 1);
	assert_mode(at(f, "a/executions/latest"), 0, STRANGER, STRANGER + 1);
	assert_mode(f->top, 0700, 0, getegid()); /* what was there keeps its owner */
	close(fd);
	close(tmp_fd);
	mt_tracedir_close(d);
	/* Again: directories of the caller's are fine now. */
	assert_int_equal(open_dir(f, at(f, "a"), "id", &d), 0);
	mt_tracedir_close(d);
}

static void test_ids(void **state)
{
	static const struct {
		const char *given, *used;
	} t[] = {
		{"run:7 @x", "run:7 @x"}, {"latest", "latest_"}, {"../../etc/x", "___.._etc_x"}, {"..", "__"},
		{"a/b", "a_b"},           {"a\nb", "a_b"},
	};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	size_t i;

	for (i = 0; i < LEN(t); i++) {
		assert_int_equal(open_dir(f, at(f, "b"), t[i].given, &d), 0);
		assert_string_equal(mt_tracedir_id(d), t[i].used);
		mt_tracedir_close(d);
	}
	assert_int_equal(count_entries(at(f, "b/executions"), false), 5); /* a_b twice */
	assert_int_equal(count_entries(f->top, false), 1);
}

static void test_made_ids(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d[3];
	char id[MT_TRACEDIR_NAME_MAX + 1], path[PATH_MAX];
	time_t now;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(open_dir(f, at(f, "b"), i ? NULL : "", &d[i]), 0);
		assert_memory_equal(mt_tracedir_id(d[i]), "alice_", 6);
	}
	assert_int_equal(count_entries(at(f, "b/executions"), false), 3);
	for (i = 0; i < 3; i++)
		mt_tracedir_close(d[i]);

	/* All of this minute and the next in use, but one: that one is found; then none. */
	make_file(f, "some", "");
	now = time(NULL);
	for (i = 0; i < 2000; i++) {
		assert_int_equal(mt_execution_id_make(&f->user, now + (i / 1000) * 60, i % 1000, id), 0);
		snprintf(path, sizeof(path), "%s/b/executions/%s", f->top, id);
		if (i % 1000 == 437)
			rmdir(path);
		else
			assert_true(link(at(f, "some"), path) == 0 || errno == EEXIST);
	}
	assert_int_equal(open_dir(f, at(f, "b"), NULL, &d[0]), 0);
	assert_string_equal(strrchr(mt_tracedir_id(d[0]), '_'), "_437");
	mt_tracedir_close(d[0]);
	for (i = 0; i < 2; i++) {
		assert_int_equal(mt_execution_id_make(&f->user, now + i * 60, 437, id), 0);
		snprintf(path, sizeof(path), "%s/b/executions/%s", f->top, id);
		assert_true(link(at(f, "some"), path) == 0 || errno == EEXIST);
	}
	assert_refused(f, at(f, "b"), NULL, -EEXIST,
		       "b/executions has no execution id left for this minute: try again in the next one");
}

static void test_bases(void **state)
{
	struct fixture *f = *state;
	char cwd[PATH_MAX], name[NAME_MAX + 2], base[PATH_MAX + 1];
	struct mt_tracedir *d;

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(f->top), 0);
	assert_int_equal(open_dir(f, "rel//./x/../y", "id", &d), 0);
	assert_string_equal(mt_tracedir_path(d), "./rel/x/../y/executions/id");
	mt_tracedir_close(d);
	/* The working directory is a component like the others. */
	make_dir(f, "open", 0777);
	assert_int_equal(chdir(at(f, "open")), 0);
	assert_int_equal(open_dir(f, "rel", "id", &d), -EPERM);
	assert_int_equal(chdir(cwd), 0);
	assert_int_equal(access(at(f, "rel/y/executions/id"), F_OK), 0);

	assert_int_equal(open_dir(f, "", "id", &d), -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	name[NAME_MAX + 1] = '\0';
	assert_int_equal(open_dir(f, at(f, name), "id", &d), -ENAMETOOLONG);
	memset(base, '/', sizeof(base) - 1);
	base[PATH_MAX] = '\0';
	assert_int_equal(open_dir(f, base, "id", &d), -ENAMETOOLONG);
	assert_true(strlen(f->err.text) < sizeof(f->err.text) - 1);
	assert_string_equal(f->err.text + strlen(f->err.text) - 18, "is too long a path");
	make_file(f, "plain", "");
	assert_refused(f, at(f, "plain/x"), "id", -ENOTDIR,
		       "plain is not a directory: remove it or choose another directory");
	/* No err given: no message, no crash. */
	assert_int_equal(
		mt_tracedir_open(&(struct mt_tracedir_opts){.user = &f->user, .base = at(f, "plain")}, NULL,
				 &d),
		-ENOTDIR);
}

static void test_no_room(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;

	if (geteuid() == 0)
		skip(); /* nothing is forbidden to root */
	make_dir(f, "ro", 0500);
	assert_refused(f, at(f, "ro/x"), "id", -EACCES, "ro/x cannot be created: Permission denied");
	make_dir(f, "search", 0711); /* passing through needs no right to read */
	make_dir(f, "search/x", 0700);
	assert_int_equal(chmod(at(f, "search"), 0111), 0);
	assert_int_equal(open_dir(f, at(f, "search/x"), "id", &d), 0);
	mt_tracedir_close(d);
	assert_int_equal(chmod(at(f, "search"), 0700), 0);
}

/* ---- files ---- */

static void test_suffixes(void **state)
{
	static const char *const names[] = {"p.pftrace", "p-2.pftrace", "p-3.pftrace"};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char path[PATH_MAX], *got;
	unsigned int i;
	int fd;

	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	for (i = 0; i < LEN(names); i++) {
		assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, &got), 0);
		snprintf(path, sizeof(path), "%s/%s", mt_tracedir_path(d), names[i]);
		assert_string_equal(got, path);
		assert_int_equal(write(fd, names[i], strlen(names[i])), strlen(names[i]));
		close(fd);
		free(got);
	}
	assert_text(f, "b/executions/id/p.pftrace", names[0]);
	assert_text(f, "b/executions/id/p-2.pftrace", names[1]);
	for (i = 4; i < MT_TRACEDIR_TRIES; i++) {
		snprintf(path, sizeof(path), "%s/p-%u.pftrace", mt_tracedir_path(d), i);
		assert_int_equal(link(at(f, "b/executions/id/p.pftrace"), path), 0);
	}
	assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, NULL), 0);
	close(fd);
	assert_int_equal(access(at(f, "b/executions/id/p-1000.pftrace"), F_OK), 0);
	fd = -7;
	got = (char *)"untouched";
	assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, &got), -EEXIST);
	assert_int_equal(fd, -7);
	assert_string_equal(got, "untouched");
	snprintf(path, sizeof(path), "%s/p-1000.pftrace cannot be created: File exists", mt_tracedir_path(d));
	assert_string_equal(f->err.text, path);
	assert_int_equal(count_entries(mt_tracedir_path(d), false), 1000);
	mt_tracedir_close(d);
}

static void test_suffixes_pid(void **state)
{
	static const struct {
		const char *name;
		uint32_t pid;
		const char *file;
	} t[] = {
		{"p", 7, "p.pftrace"},       {"p", 7, "p-7.pftrace"},   {"p", 7, "p-7-2.pftrace"},
		{"p", 8, "p-8.pftrace"},     {"p", 8, "p-8-2.pftrace"}, {"p", 0, "p-2.pftrace"},
		{"../p", 9, "___p.pftrace"},
	};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char *path;
	size_t i;
	int fd;

	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	for (i = 0; i < LEN(t); i++) {
		assert_int_equal(mt_tracedir_create_for(d, t[i].name, t[i].pid, &f->err, &fd, &path), 0);
		assert_string_equal(strrchr(path, '/') + 1, t[i].file);
		assert_int_equal(access(path, F_OK), 0);
		free(path);
		close(fd);
	}
	mt_tracedir_close(d);
}

static void test_move(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *a, *b;
	char *path, *moved = NULL, *again;
	int fd;

	assert_int_equal(open_dir(f, at(f, "b"), "one", &a), 0);
	assert_int_equal(open_dir(f, at(f, "b"), "two", &b), 0);
	assert_int_equal(mt_tracedir_create_for(a, "p", 7, &f->err, &fd, &path), 0);
	assert_int_equal(write(fd, "data", 4), 4);
	make_file(f, "b/executions/two/p.pftrace", "theirs");
	/* To another execution, where the name is in use. */
	assert_int_equal(mt_tracedir_move(a, path, b, "p", 7, &f->err, &moved), 0);
	assert_string_equal(moved, at(f, "b/executions/two/p-7.pftrace"));
	assert_text(f, "b/executions/two/p-7.pftrace", "data");
	assert_text(f, "b/executions/two/p.pftrace", "theirs");
	assert_int_equal(count_entries(mt_tracedir_path(a), false), 0);
	/* The name it has: it keeps it. Another name; and what is gone cannot be moved. */
	assert_int_equal(mt_tracedir_move(b, moved, b, "p", 7, &f->err, &again), 0);
	assert_string_equal(again, moved);
	free(again);
	assert_int_equal(mt_tracedir_move(b, moved, b, "x/y", 7, &f->err, &again), 0);
	assert_string_equal(again, at(f, "b/executions/two/x_y.pftrace"));
	assert_text(f, "b/executions/two/x_y.pftrace", "data");
	free(again);
	again = NULL;
	assert_int_equal(mt_tracedir_move(b, moved, b, "z", 7, &f->err, &again), -ENOENT);
	assert_null(again);
	assert_int_equal(count_entries(mt_tracedir_path(b), false), 2);
	free(path);
	free(moved);
	close(fd);
	mt_tracedir_close(a);
	mt_tracedir_close(b);
}

static void test_file_in_the_way(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char *path;
	int fd;

	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	make_file(f, "victim", "keep");
	assert_int_equal(symlink(at(f, "victim"), at(f, "b/executions/id/p.pftrace")), 0);
	assert_int_equal(symlink(at(f, "made"), at(f, "b/executions/id/p-2.pftrace")), 0); /* dangling */
	make_dir(f, "b/executions/id/p-3.pftrace", 0700);
	assert_int_equal(mkfifo(at(f, "b/executions/id/p-4.pftrace"), 0600), 0); /* opening it would hang */
	assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, &path), 0);
	assert_string_equal(path, at(f, "b/executions/id/p-5.pftrace"));
	assert_int_equal(write(fd, "new", 3), 3);
	assert_text(f, "victim", "keep");
	assert_int_equal(access(at(f, "made"), F_OK), -1);
	free(path);
	close(fd);
	mt_tracedir_close(d);
}

static void test_long_names(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char name[4097], *a, *b;
	int fd;

	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	memset(name, 'n', 4096);
	name[4096] = '\0';
	assert_int_equal(mt_tracedir_create_for(d, name, 0, &f->err, &fd, &a), 0);
	close(fd);
	assert_int_equal(mt_tracedir_create_for(d, name, 0, &f->err, &fd, &b), 0);
	close(fd);
	assert_int_equal(strlen(strrchr(a, '/') + 1), 200 + strlen(".pftrace"));
	assert_int_equal(strlen(strrchr(b, '/') + 1), 200 + strlen("-2.pftrace"));
	free(a);
	free(b);
	mt_tracedir_close(d);
}

static void test_publish(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir_tmp tmp[3];
	struct mt_tracedir *d;
	char *path;
	int fd[3], i;

	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	make_file(f, "b/executions/id/s.pftrace", "old");
	for (i = 0; i < 3; i++) {
		assert_int_equal(mt_tracedir_create_tmp(d, &f->err, &tmp[i], &fd[i]), 0);
		assert_int_equal(tmp[i].name[0], '.');
		assert_int_equal(write(fd[i], "snap", 4), 4);
	}
	assert_int_equal(count_entries(mt_tracedir_path(d), true), 3);
	assert_int_equal(mt_tracedir_publish(d, &tmp[0], "s", &f->err, &path), 0);
	assert_string_equal(path, at(f, "b/executions/id/s-2.pftrace"));
	free(path);
	assert_int_equal(mt_tracedir_publish(d, &tmp[1], "../s", &f->err, NULL), 0);
	assert_text(f, "b/executions/id/___s.pftrace", "snap");
	assert_text(f, "b/executions/id/s-2.pftrace", "snap");
	assert_text(f, "b/executions/id/s.pftrace", "old");
	mt_tracedir_discard(d, &tmp[2]);
	assert_int_equal(count_entries(mt_tracedir_path(d), true), 0);
	assert_int_equal(count_entries(mt_tracedir_path(d), false), 3);
	assert_int_equal(mt_tracedir_publish(d, &tmp[2], "s", &f->err, &path), -ENOENT);
	for (i = 0; i < 3; i++)
		close(fd[i]);
	mt_tracedir_close(d);
}

/* ---- attacks ---- */

static void test_links_below_base(void **state)
{
	static const char *const where[] = {"b/executions", "b/executions/id"};
	static const char *const what[] = {
		"b/executions is a symbolic link; refusing to write there: remove it or choose another "
		"directory",
		"b/executions/id is a symbolic link; refusing to write there: remove it or choose another "
		"directory",
	};
	struct fixture *f = *state;
	unsigned int i;

	make_dir(f, "elsewhere", 0700);
	make_dir(f, "b", 0755);
	for (i = 0; i < LEN(where); i++) {
		if (i == 1)
			make_dir(f, "b/executions", 0755);
		/* Also one of root's in a directory of root's is not followed here. */
		assert_int_equal(symlink(at(f, "elsewhere"), at(f, where[i])), 0);
		assert_refused(f, at(f, "b"), "id", -ELOOP, what[i]);
		assert_int_equal(unlink(at(f, where[i])), 0);
		/* Dangling: mkdir through it would create the target. */
		assert_int_equal(symlink(at(f, "nothing"), at(f, where[i])), 0);
		assert_refused(f, at(f, "b"), "id", -ELOOP, what[i]);
		assert_int_equal(unlink(at(f, where[i])), 0);
	}
	assert_int_equal(count_entries(at(f, "elsewhere"), false), 0);
	assert_int_equal(access(at(f, "nothing"), F_OK), -1);
}

static void test_links_in_base(void **state)
{
	/* owner and mode of the directory, owner of the link -> followed? */
	static const struct {
		uint32_t dir_uid, link_uid;
		mode_t mode;
		bool ok;
	} t[] = {
		{0, 0, 0755, true},         {0, 0, 0700, true},         {0, 0, 0775, false},
		{0, 0, 01757, false},       {0, 0, 01777, false}, /* a hard link to a link of root's could
								     have been put there */
		{0, STRANGER, 0755, false}, {STRANGER, 0, 0755, false}, {STRANGER, STRANGER, 0755, false},
	};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	unsigned int i, j;

	if (geteuid() != 0)
		skip();
	f->user.uid = STRANGER; /* so that the directories themselves are fine */
	make_dir(f, "real", 0755);
	for (i = 0; i < LEN(t); i++) {
		make_dir(f, "d", t[i].mode);
		assert_int_equal(symlink("../real", at(f, "d/relative")), 0);
		assert_int_equal(symlink(at(f, "real"), at(f, "d/absolute")), 0);
		assert_int_equal(lchown(at(f, "d/relative"), t[i].link_uid, 0), 0);
		assert_int_equal(lchown(at(f, "d/absolute"), t[i].link_uid, 0), 0);
		assert_int_equal(chown(at(f, "d"), t[i].dir_uid, 0), 0);
		assert_int_equal(chmod(at(f, "d"), t[i].mode), 0);
		for (j = 0; j < 4; j++) {
			static const char *const bases[] = {"d/relative", "d/absolute", "d/relative/x",
							    "d/absolute/x"};

			assert_int_equal(open_dir(f, at(f, bases[j]), "id", &d), t[i].ok ? 0 : -ELOOP);
			mt_tracedir_close(d);
		}
		unlink(at(f, "d/relative"));
		unlink(at(f, "d/absolute"));
		rmdir(at(f, "d"));
		if (i == 1) {
			assert_int_equal(access(at(f, "real/executions/id"), F_OK), 0);
			assert_int_equal(access(at(f, "real/x/executions/id"), F_OK), 0);
		}
	}
}

static void test_links_of_users(void **state)
{
	struct fixture *f = *state;

	if (geteuid() == 0)
		skip();
	make_dir(f, "real", 0755);
	assert_int_equal(symlink("real", at(f, "link")), 0);
	assert_refused(
		f, at(f, "link/x"), "id", -ELOOP,
		"link is a symbolic link; refusing to write there: remove it or choose another directory");
	assert_int_equal(count_entries(at(f, "real"), false), 0);
}

static void test_link_loop(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(symlink("b", at(f, "a")), 0);
	assert_int_equal(symlink("a/x", at(f, "b")), 0);
	assert_refused(f, at(f, "a"), "id", -ELOOP, "a is one symbolic link too many");
	/* A link to somebody else's directory: the rules go on behind it. */
	make_dir(f, "theirs", 0755);
	assert_int_equal(chown(at(f, "theirs"), STRANGER, STRANGER), 0);
	assert_int_equal(symlink("theirs", at(f, "good")), 0);
	assert_refused(f, at(f, "good/x"), "id", -EPERM,
		       "theirs belongs to another user (uid 54321); refusing to write there: "
		       "remove it or choose another directory");
}

static void test_foreign_owner(void **state)
{
	static const char *const where[] = {"t", "t/b", "t/b/executions", "t/b/executions/id"};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char text[600];
	unsigned int i;

	if (geteuid() != 0)
		skip();
	assert_int_equal(open_dir(f, at(f, "t/b"), "id", &d), 0);
	mt_tracedir_close(d);
	for (i = 0; i < LEN(where); i++) {
		assert_int_equal(chown(at(f, where[i]), STRANGER, 0), 0);
		snprintf(text, sizeof(text),
			 "%s belongs to another user (uid 54321); refusing to write there: "
			 "remove it or choose another directory",
			 where[i]);
		assert_refused(f, at(f, "t/b"), "id", -EPERM, text);
		/* The same for him himself is fine. */
		f->user.uid = STRANGER;
		assert_int_equal(open_dir(f, at(f, "t/b"), "id", &d), 0);
		mt_tracedir_close(d);
		f->user.uid = 0;
		assert_int_equal(chown(at(f, where[i]), 0, 0), 0);
	}
}

static void test_writable_for_all(void **state)
{
	static const char *const where[] = {"t", "t/b", "t/b/executions", "t/b/executions/id"};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	char text[600];
	unsigned int i;

	assert_int_equal(open_dir(f, at(f, "t/b"), "id", &d), 0);
	mt_tracedir_close(d);
	for (i = 0; i < LEN(where); i++) {
		assert_int_equal(chmod(at(f, where[i]), 0777), 0);
		snprintf(text, sizeof(text),
			 "%s is writable for everybody; refusing to write there: "
			 "make it sticky (chmod +t) or choose another directory",
			 where[i]);
		assert_refused(f, at(f, "t/b"), "id", -EPERM, text);
		assert_int_equal(chmod(at(f, where[i]), 01777), 0);
		assert_int_equal(open_dir(f, at(f, "t/b"), "id", &d), 0);
		mt_tracedir_close(d);
		assert_int_equal(chmod(at(f, where[i]), 0770), 0);
		assert_int_equal(open_dir(f, at(f, "t/b"), "id", &d), 0);
		mt_tracedir_close(d);
	}
}

/* In a sticky directory as /tmp: what others made there first is refused, ours is made. */
static void test_sticky_tmp(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;

	make_dir(f, "tmp", 01777);
	assert_int_equal(open_dir(f, at(f, "tmp/alice/monarch_traces"), "id", &d), 0);
	mt_tracedir_close(d);
	if (geteuid() != 0)
		return;
	make_dir(f, "tmp/bob", 0777);
	assert_int_equal(chown(at(f, "tmp/bob"), STRANGER, STRANGER), 0);
	assert_refused(f, at(f, "tmp/bob/monarch_traces"), "id", -EPERM,
		       "tmp/bob belongs to another user (uid 54321); refusing to write there: "
		       "remove it or choose another directory");
	assert_int_equal(count_entries(at(f, "tmp/bob"), false), 0);
}

/*
 * What others do in the moment after a directory was made. This mkdirat takes the place of the C library's.
 */
static void (*after_mkdir)(int dir, const char *name);

int mkdirat(int dir, const char *name, mode_t mode)
{
	int r = (int)syscall(SYS_mkdirat, dir, name, mode);

	if (r == 0 && after_mkdir)
		after_mkdir(dir, name);
	return r;
}

static void be_faster(int dir, const char *name)
{
	(void)name;
	after_mkdir = NULL;
	assert_int_equal(mkdirat(dir, "b", 0700), 0);
}

static void test_somebody_faster(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	int r;

	/* Their directory is taken as it is, not replaced, and ours goes away. */
	after_mkdir = be_faster;
	r = open_dir(f, at(f, "b"), "id", &d);
	assert_null(after_mkdir);
	assert_int_equal(r, 0);
	assert_mode(at(f, "b"), 0700, f->user.uid, f->user.gid);
	assert_int_equal(count_entries(f->top, false), 1);
	mt_tracedir_close(d);
}

static void put_victim(int dir, const char *name)
{
	after_mkdir = NULL;
	assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
	assert_int_equal(renameat(dir, "victim", dir, name), 0);
}

/* The new directory is exchanged for another one before we can give it away: that one is not given away. */
static void test_new_dir_exchanged(void **state)
{
	/* The victim: not empty; open to others; not ours. */
	static const struct {
		bool full, foreign;
		mode_t mode;
	} t[] = {{true, false, 0700}, {false, false, 0755}, {false, true, 0700}};
	struct fixture *f = *state;
	struct mt_tracedir *d;
	struct stat st;
	unsigned int i;
	int victim, r;

	for (i = 0; i < LEN(t); i++) {
		if (t[i].foreign && geteuid() != 0)
			continue;
		make_dir(f, "victim", t[i].mode);
		if (t[i].full)
			make_file(f, "victim/file", "");
		if (t[i].foreign)
			assert_int_equal(chown(at(f, "victim"), STRANGER, STRANGER), 0);
		victim = open(at(f, "victim"), O_RDONLY | O_DIRECTORY);
		assert_true(victim >= 0);
		after_mkdir = put_victim;
		r = open_dir(f, at(f, "b"), "id", &d);
		assert_null(after_mkdir);
		assert_int_equal(r, -EBUSY);
		assert_int_equal(fstat(victim, &st), 0);
		assert_int_equal(st.st_uid, t[i].foreign ? STRANGER : geteuid());
		assert_int_equal(st.st_mode & 07777, t[i].mode);
		close(victim);
		assert_int_equal(access(at(f, "b"), F_OK), -1);
	}
}

/* The directory is exchanged for a link after it was opened: files go where they were to go. */
static void test_exchange_after_open(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;
	int fd;

	make_dir(f, "elsewhere", 0700);
	assert_int_equal(open_dir(f, at(f, "b"), "id", &d), 0);
	assert_int_equal(rename(at(f, "b/executions"), at(f, "moved")), 0);
	assert_int_equal(symlink(at(f, "elsewhere"), at(f, "b/executions")), 0);
	assert_int_equal(mt_tracedir_create_for(d, "p", 0, &f->err, &fd, NULL), 0);
	assert_int_equal(mt_tracedir_latest(d, &f->err), 0);
	assert_int_equal(access(at(f, "moved/id/p.pftrace"), F_OK), 0);
	assert_int_equal(access(at(f, "moved/latest"), F_OK), 0);
	assert_int_equal(count_entries(at(f, "elsewhere"), false), 0);
	close(fd);
	mt_tracedir_close(d);
}

/* ---- latest ---- */

static void assert_latest(const struct fixture *f, const char *id)
{
	char text[256];
	ssize_t n = readlink(at(f, "b/executions/latest"), text, sizeof(text) - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	assert_string_equal(text, id);
}

static void test_latest(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *a, *b;
	char text[600];

	assert_int_equal(open_dir(f, at(f, "b"), "one", &a), 0);
	assert_int_equal(open_dir(f, at(f, "b"), "two", &b), 0);
	assert_int_equal(access(at(f, "b/executions/latest"), F_OK), -1);
	assert_int_equal(mt_tracedir_latest(a, &f->err), 0);
	assert_latest(f, "one");
	assert_int_equal(mt_tracedir_latest(b, &f->err), 0);
	assert_latest(f, "two");

	/* Somebody's link to elsewhere is replaced, not followed. */
	assert_int_equal(unlink(at(f, "b/executions/latest")), 0);
	make_file(f, "victim", "keep");
	assert_int_equal(symlink(at(f, "victim"), at(f, "b/executions/latest")), 0);
	assert_int_equal(mt_tracedir_latest(a, &f->err), 0);
	assert_latest(f, "one");
	assert_text(f, "victim", "keep");

	snprintf(text, sizeof(text), "%s/b/executions/latest is not a symbolic link and stays as it is",
		 f->top);
	assert_int_equal(unlink(at(f, "b/executions/latest")), 0);
	make_dir(f, "b/executions/latest", 0700);
	assert_int_equal(mt_tracedir_latest(a, &f->err), -EEXIST);
	assert_string_equal(f->err.text, text);
	assert_int_equal(rmdir(at(f, "b/executions/latest")), 0);
	make_file(f, "b/executions/latest", "mine");
	assert_int_equal(mt_tracedir_latest(a, NULL), -EEXIST);
	assert_text(f, "b/executions/latest", "mine");
	assert_int_equal(count_entries(at(f, "b/executions"), true), 0);
	mt_tracedir_close(a);
	mt_tracedir_close(b);
}

/* Runs fn in n processes at once; all must say true. */
static void in_processes(unsigned int n, bool (*fn)(struct fixture *f, unsigned int i), struct fixture *f)
{
	pid_t pids[16];
	unsigned int i;
	int status, go[2];
	char c;

	assert_true(n <= 16);
	assert_int_equal(pipe(go), 0);
	for (i = 0; i < n; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			close(go[1]);
			if (read(go[0], &c, 1) != 0) /* all start when the pipe closes */
				_exit(2);
			_exit(fn(f, i) ? 0 : 1);
		}
	}
	close(go[0]);
	close(go[1]);
	for (i = 0; i < n; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

static bool replace_latest(struct fixture *f, unsigned int i)
{
	struct mt_tracedir *d;
	char id[16], text[256];
	int k;

	if (i == 0) { /* the reader: it is always there and always one of ours */
		for (k = 0; k < 20000; k++) {
			ssize_t n = readlink(at(f, "b/executions/latest"), text, sizeof(text));

			if (n != 3 || memcmp(text, "id", 2) != 0)
				return false;
		}
		return true;
	}
	snprintf(id, sizeof(id), "id%u", i);
	if (open_dir(f, at(f, "b"), id, &d) < 0)
		return false;
	for (k = 0; k < 200; k++) {
		if (mt_tracedir_latest(d, &f->err) < 0)
			return false;
	}
	mt_tracedir_close(d);
	return true;
}

static void test_latest_race(void **state)
{
	struct fixture *f = *state;
	struct mt_tracedir *d;

	assert_int_equal(open_dir(f, at(f, "b"), "id0", &d), 0);
	assert_int_equal(mt_tracedir_latest(d, &f->err), 0);
	mt_tracedir_close(d);
	in_processes(5, replace_latest, f);
	assert_int_equal(count_entries(at(f, "b/executions"), true), 0);
	assert_int_equal(count_entries(at(f, "b/executions"), false), 6); /* latest, id0 to id4 */
}

static bool open_deep(struct fixture *f, unsigned int i)
{
	struct mt_tracedir *d;
	char base[PATH_MAX];
	int k, fd;

	(void)i;
	for (k = 0; k < 20; k++) {
		snprintf(base, sizeof(base), "%s/%d/x/y", f->top, k);
		if (open_dir(f, base, "id", &d) < 0 ||
		    mt_tracedir_create_for(d, "p", 0, &f->err, &fd, NULL) < 0)
			return false;
		close(fd);
		mt_tracedir_close(d);
	}
	return true;
}

static int count_hidden(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	return path[ftw->base] == '.'; /* not 0 ends the walk */
}

/* Tracers that start at once make the same directories and each a file of its own. */
static void test_open_race(void **state)
{
	struct fixture *f = *state;
	unsigned int k;
	char dir[32];

	in_processes(8, open_deep, f);
	for (k = 0; k < 20; k++) {
		snprintf(dir, sizeof(dir), "%u/x/y/executions/id", k);
		assert_int_equal(count_entries(at(f, dir), false), 8);
		assert_mode(at(f, dir), 0750, f->user.uid, f->user.gid);
	}
	assert_int_equal(nftw(f->top, count_hidden, 16, FTW_PHYS), 0);
}

#define WITH_DIR(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sanitise),
		cmocka_unit_test(test_sanitise_long),
		cmocka_unit_test(test_expand),
		WITH_DIR(test_base),
		cmocka_unit_test(test_user),
		WITH_DIR(test_execution_id),
		WITH_DIR(test_layout),
		WITH_DIR(test_given_to_caller),
		WITH_DIR(test_ids),
		WITH_DIR(test_made_ids),
		WITH_DIR(test_bases),
		WITH_DIR(test_no_room),
		WITH_DIR(test_suffixes),
		WITH_DIR(test_suffixes_pid),
		WITH_DIR(test_move),
		WITH_DIR(test_file_in_the_way),
		WITH_DIR(test_long_names),
		WITH_DIR(test_publish),
		WITH_DIR(test_links_below_base),
		WITH_DIR(test_links_in_base),
		WITH_DIR(test_links_of_users),
		WITH_DIR(test_link_loop),
		WITH_DIR(test_foreign_owner),
		WITH_DIR(test_writable_for_all),
		WITH_DIR(test_sticky_tmp),
		WITH_DIR(test_somebody_faster),
		WITH_DIR(test_new_dir_exchanged),
		WITH_DIR(test_exchange_after_open),
		WITH_DIR(test_latest),
		WITH_DIR(test_latest_race),
		WITH_DIR(test_open_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
