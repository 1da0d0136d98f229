/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out.h"

struct dir {
	char path[64];
	int fd;
};

static int setup(void **state)
{
	struct dir *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	strcpy(d->path, "/tmp/mt-out-XXXXXX");
	assert_non_null(mkdtemp(d->path));
	d->fd = open(d->path, O_DIRECTORY | O_RDONLY);
	assert_true(d->fd >= 0);
	*state = d;
	return 0;
}

static int teardown(void **state)
{
	struct dir *d = *state;

	unlinkat(d->fd, "t", 0);
	unlinkat(d->fd, "l", 0);
	close(d->fd);
	rmdir(d->path);
	free(d);
	return 0;
}

/* One framed packet of len bytes in all (len >= 2, content < 128 or >= 129). */
static void frame(unsigned char *p, size_t len, unsigned char fill)
{
	size_t head = len - 2 < 128 ? 2 : 3;

	memset(p, fill, len);
	p[0] = 0x0a;
	if (head == 2) {
		p[1] = (unsigned char)(len - 2);
	} else {
		p[1] = (unsigned char)((len - 3) | 0x80);
		p[2] = (unsigned char)((len - 3) >> 7);
	}
}

static size_t content(const struct dir *d, unsigned char *buf, size_t cap)
{
	int fd = openat(d->fd, "t", O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, buf, cap);
	assert_true(n >= 0);
	close(fd);
	return (size_t)n;
}

static struct mt_out *make(const struct dir *d, size_t cap)
{
	struct mt_out *o = NULL;
	int fd = -1;

	assert_int_equal(mt_out_create(d->fd, "t", &fd), 0);
	assert_int_equal(mt_out_fd(fd, cap, &o), 0);
	return o;
}

static void test_create(void **state)
{
	struct dir *d = *state;
	mode_t mask = umask(022);
	struct stat st;
	int fd = -7, other = -7;

	assert_int_equal(mt_out_create(d->fd, "t", &fd), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(mt_out_create(d->fd, "t", &other), -EEXIST);
	assert_int_equal(other, -7);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 1);
	close(fd);
	umask(mask);
}

/* Neither a dangling link nor one to a file is followed. */
static void test_create_symlink(void **state)
{
	struct dir *d = *state;
	int fd = -7;

	assert_int_equal(symlinkat("t", d->fd, "l"), 0);
	assert_int_equal(mt_out_create(d->fd, "l", &fd), -EEXIST);
	assert_int_equal(faccessat(d->fd, "t", F_OK, 0), -1);
	assert_int_equal(mt_out_create(d->fd, "no/such", &fd), -ENOENT);
	assert_int_equal(fd, -7);
}

static void test_buffering(void **state)
{
	struct dir *d = *state;
	struct mt_out *o = make(d, 100);
	unsigned char p[300], got[400];

	frame(p, 60, 'a');
	frame(p + 60, 60, 'b');
	frame(p + 120, 150, 'c');
	assert_int_equal(mt_out_put(o, p, 60), 0);
	assert_int_equal(content(d, got, sizeof(got)), 0);
	assert_int_equal(mt_out_put(o, p + 60, 60), 0); /* does not fit behind the first */
	assert_int_equal(content(d, got, sizeof(got)), 60);
	assert_int_equal(mt_out_put(o, p + 120, 150), 0); /* larger than the buffer: keeps the order */
	assert_int_equal(content(d, got, sizeof(got)), 270);
	assert_memory_equal(got, p, 270);
	assert_int_equal(o->bytes, 270);
	assert_int_equal(mt_out_put(o, p, 60), 0);
	assert_int_equal(mt_out_put(o, p, 0), 0);
	assert_int_equal(mt_out_flush(o), 0);
	assert_int_equal(content(d, got, sizeof(got)), 330);
	assert_int_equal(mt_out_put(o, p, 60), 0);
	assert_int_equal(mt_out_close(o), 0);
	assert_int_equal(content(d, got, sizeof(got)), 390);
	assert_memory_equal(got + 330, p, 60);
}

static void test_appends(void **state)
{
	struct dir *d = *state;
	struct mt_out *o = make(d, 0);
	unsigned char p[40], got[100];
	int fd;

	frame(p, 40, 'a');
	assert_int_equal(mt_out_put(o, p, 40), 0);
	assert_int_equal(mt_out_close(o), 0);
	fd = openat(d->fd, "t", O_WRONLY);
	assert_int_equal(mt_out_fd(fd, 0, &o), 0);
	assert_int_equal(mt_out_put(o, p, 40), 0);
	assert_int_equal(mt_out_close(o), 0);
	assert_int_equal(content(d, got, sizeof(got)), 80);
	assert_memory_equal(got + 40, p, 40);
}

static void limit(rlim_t size)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
	r.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

/* The file may have `size` bytes; packets of 40, 50, 60, 200 in one batch behind 30 that are there. */
static void test_cut(void **state)
{
	static const struct {
		rlim_t size;
		size_t left;
	} rows[] = {{30, 30},   {31, 30},   {69, 30},   {70, 70},   {71, 70},   {119, 70}, {120, 120},
		    {179, 120}, {180, 180}, {182, 180}, {183, 180}, {379, 180}, {380, 380}};
	struct dir *d = *state;
	unsigned char p[350], got[500];

	frame(p, 40, 'a');
	frame(p + 40, 50, 'b');
	frame(p + 90, 60, 'c');
	frame(p + 150, 200, 'd');
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mt_out *o = make(d, 0);
		unsigned char first[30];
		int want = rows[i].left == 380 ? 0 : -EFBIG;

		frame(first, 30, 'z');
		assert_int_equal(mt_out_put(o, first, 30), 0);
		assert_int_equal(mt_out_flush(o), 0);
		assert_int_equal(mt_out_put(o, p, 350), 0);
		limit(rows[i].size);
		assert_int_equal(mt_out_flush(o), want);
		limit(RLIM_INFINITY);
		assert_int_equal(content(d, got, sizeof(got)), rows[i].left);
		assert_memory_equal(got, first, 30);
		assert_memory_equal(got + 30, p, rows[i].left - 30);
		/* Sticky: there would be room now. */
		assert_int_equal(mt_out_put(o, p, 40), want);
		assert_int_equal(mt_out_flush(o), want);
		assert_int_equal(mt_out_close(o), want);
		assert_int_equal(content(d, got, sizeof(got)), rows[i].left + (want ? 0 : 40));
		unlinkat(d->fd, "t", 0);
	}
	signal(SIGXFSZ, SIG_DFL);
}

struct slow_reader {
	int fd;
	size_t len;
	unsigned char *data;
};

static void *read_slowly(void *arg)
{
	struct slow_reader *r = arg;
	ssize_t n;

	while ((n = read(r->fd, r->data + r->len, 777)) > 0)
		r->len += (size_t)n;
	return NULL;
}

/* More than a pipe takes, non-blocking: short writes and EAGAIN on the way. */
static void test_pipe(void **state)
{
	enum { N = 300, SIZE = 1000 };
	struct slow_reader r = {.data = malloc(N * SIZE)};
	unsigned char *p = malloc(N * SIZE);
	struct mt_out *o;
	pthread_t t;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	r.fd = fds[0];
	assert_int_equal(pthread_create(&t, NULL, read_slowly, &r), 0);
	assert_int_equal(mt_out_fd(fds[1], 100 * 1000, &o), 0);
	for (size_t i = 0; i < N; i++) {
		frame(p + i * SIZE, SIZE, (unsigned char)i);
		assert_int_equal(mt_out_put(o, p + i * SIZE, SIZE), 0);
	}
	assert_int_equal(mt_out_close(o), 0);
	pthread_join(t, NULL);
	assert_int_equal(r.len, N * SIZE);
	assert_memory_equal(r.data, p, N * SIZE);
	close(fds[0]);
	free(r.data);
	free(p);
}

static void test_broken_pipe(void **state)
{
	unsigned char p[40];
	struct mt_out *o;
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	frame(p, 40, 'a');
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(mt_out_fd(fds[1], 0, &o), 0);
	close(fds[0]);
	assert_int_equal(mt_out_put(o, p, 40), 0);
	assert_int_equal(mt_out_flush(o), -EPIPE);
	assert_int_equal(mt_out_put(o, p, 40), -EPIPE);
	assert_int_equal(o->bytes, 40);
	assert_int_equal(mt_out_close(o), -EPIPE);
	signal(SIGPIPE, SIG_DFL);
}

static void test_full_disk(void **state)
{
	unsigned char p[40];
	struct mt_out *o;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	frame(p, 40, 'a');
	assert_int_equal(mt_out_fd(fd, 0, &o), 0);
	assert_int_equal(mt_out_put(o, p, 40), 0);
	assert_int_equal(mt_out_close(o), -ENOSPC); /* seen first at the end */
}

static void test_bad_fd(void **state)
{
	struct mt_out *o = NULL;

	(void)state;
	assert_int_equal(mt_out_fd(-1, 0, &o), -EBADF);
	assert_null(o);
	assert_int_equal(mt_out_close(NULL), 0);
}

static void test_mem(void **state)
{
	enum { N = 5000, SIZE = 97 };
	unsigned char p[SIZE];
	struct mt_out *o;
	const void *data;
	size_t len;

	(void)state;
	assert_int_equal(mt_out_mem(&o), 0);
	mt_out_mem_data(o, &data, &len);
	assert_int_equal(len, 0);
	for (size_t i = 0; i < N; i++) {
		frame(p, SIZE, (unsigned char)i);
		assert_int_equal(mt_out_put(o, p, SIZE), 0);
	}
	assert_int_equal(mt_out_flush(o), 0);
	mt_out_mem_data(o, &data, &len);
	assert_int_equal(len, N * SIZE);
	assert_int_equal(o->bytes, N * SIZE);
	for (size_t i = 0; i < N; i++) {
		frame(p, SIZE, (unsigned char)i);
		assert_memory_equal((const char *)data + i * SIZE, p, SIZE);
	}
	assert_int_equal(mt_out_close(o), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_create, setup, teardown),
		cmocka_unit_test_setup_teardown(test_create_symlink, setup, teardown),
		cmocka_unit_test_setup_teardown(test_buffering, setup, teardown),
		cmocka_unit_test_setup_teardown(test_appends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_broken_pipe),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_bad_fd),
		cmocka_unit_test(test_mem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
