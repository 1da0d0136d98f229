/* SPDX-License-Identifier: BSD-3-Clause */
/* log: what arrives at a pipe and at a terminal, byte for byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "log.h"

#define FFFD "\xef\xbf\xbd"

struct fixture {
	struct mt_log log;
	int reader, writer;
};

static int setup_pipe(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fds[2];

	assert_non_null(f);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	f->reader = fds[0];
	f->writer = fds[1];
	mt_log_init(&f->log, f->writer, MT_LOG_NORMAL);
	*state = f;
	return 0;
}

static int setup_tty(void **state)
{
	struct winsize ws = {.ws_row = 24, .ws_col = 40};
	struct fixture *f = calloc(1, sizeof(*f));
	struct termios raw;

	assert_non_null(f);
	f->reader = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	assert_true(f->reader >= 0);
	assert_int_equal(grantpt(f->reader), 0);
	assert_int_equal(unlockpt(f->reader), 0);
	f->writer = open(ptsname(f->reader), O_RDWR | O_NOCTTY);
	assert_true(f->writer >= 0);
	assert_int_equal(tcgetattr(f->writer, &raw), 0);
	cfmakeraw(&raw);
	assert_int_equal(tcsetattr(f->writer, TCSANOW, &raw), 0);
	assert_int_equal(ioctl(f->writer, TIOCSWINSZ, &ws), 0);
	mt_log_init(&f->log, f->writer, MT_LOG_NORMAL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->reader);
	close(f->writer);
	free(f);
	return 0;
}

static void assert_said(struct fixture *f, const char *want)
{
	static char got[3 * MT_LOG_LINE];
	size_t len = 0;
	ssize_t n;

	while ((n = read(f->reader, got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = '\0';
	assert_string_equal(got, want);
}

static void test_levels(void **state)
{
#define E "montrace-bpf: error: e 1\n"
#define W "montrace-bpf: warning: w 2\n"
#define I "montrace-bpf: i 3\n"
#define D "montrace-bpf: d 4\n"
	static const char *const want[] = {E, E W I, E W I D};
	struct fixture *f = *state;
	unsigned int level;

	for (level = 0; level < 3; level++) {
		mt_log_init(&f->log, f->writer, (enum mt_log_level)level);
		mt_log_error(&f->log, "e %d", 1);
		mt_log_warn(&f->log, "w %d", 2);
		mt_log_info(&f->log, "i %d", 3);
		mt_log_debug(&f->log, "d %d", 4);
		mt_log_progress(&f->log, "p"); /* a pipe: nothing */
		mt_log_progress_end(&f->log);
		assert_said(f, want[level]);
	}
}

static void test_safe(void **state)
{
	struct fixture *f = *state;

	mt_log_info(&f->log, "a\nb\x1b[2J\tc\xff%s\n", "\xe2\x80\xae");
	assert_said(f, "montrace-bpf: a" FFFD "b" FFFD "[2J" FFFD "c" FFFD FFFD "\n");
	mt_log_info(&f->log, "\n");
	assert_said(f, "montrace-bpf: \n");
	mt_log_info(&f->log, "%s", "");
	assert_said(f, "montrace-bpf: \n");
}

static void assert_long(struct fixture *f, char c, size_t n, size_t kept, bool cut)
{
	char text[MT_LOG_LINE + 16], want[MT_LOG_LINE + 64] = "montrace-bpf: ";

	memset(text, c, n);
	text[n] = '\0';
	memset(want + strlen(want), c, kept);
	strcat(want, cut ? "...\n" : "\n");
	mt_log_info(&f->log, "%s", text);
	assert_said(f, want);
}

static void test_long(void **state)
{
	struct fixture *f = *state;

	assert_long(f, 'x', MT_LOG_LINE - 1, MT_LOG_LINE - 1, false);
	assert_long(f, 'x', MT_LOG_LINE, MT_LOG_LINE, false);
	assert_long(f, 'x', MT_LOG_LINE + 1, MT_LOG_LINE - 3, true);
	assert_long(f, 'x', MT_LOG_LINE + 9, MT_LOG_LINE - 3, true);
}

static void test_errno_kept(void **state)
{
	struct fixture *f = *state;

	close(f->reader);
	f->reader = open("/dev/null", O_RDONLY);
	mt_log_init(&f->log, f->reader, MT_LOG_VERBOSE); /* not open for writing */
	errno = EXDEV;
	mt_log_error(&f->log, "x");
	assert_int_equal(errno, EXDEV);
	f->log.tty = true;
	mt_log_progress(&f->log, "x");
	assert_int_equal(errno, EXDEV);
	mt_log_progress_end(&f->log);
	assert_int_equal(errno, EXDEV);
}

static void test_progress(void **state)
{
	struct fixture *f = *state;

	assert_true(f->log.tty);
	mt_log_progress(&f->log, "%d events", 1);
	assert_said(f, "\r\033[K1 events");
	mt_log_progress(&f->log, "%d events\x1b[m", 2);
	assert_said(f, "\r\033[K2 events" FFFD "[m");
	mt_log_info(&f->log, "hello");
	assert_said(f, "\r\033[Kmontrace-bpf: hello\n");
	mt_log_info(&f->log, "again");
	assert_said(f, "montrace-bpf: again\n");
	mt_log_progress(&f->log, "p");
	mt_log_progress_end(&f->log);
	mt_log_progress_end(&f->log);
	assert_said(f, "\r\033[Kp\r\033[K");
	f->log.level = MT_LOG_QUIET;
	mt_log_progress(&f->log, "p");
	assert_said(f, "");
	f->log.level = MT_LOG_NORMAL;
	f->log.tty = false;
	mt_log_progress(&f->log, "p");
	assert_said(f, "");
}

static void test_progress_width(void **state)
{
	struct winsize ws = {.ws_row = 24, .ws_col = 1};
	struct fixture *f = *state;

	mt_log_progress(&f->log, "%s", "123456789012345678901234567890123456789"); /* 39: fits */
	assert_said(f, "\r\033[K123456789012345678901234567890123456789");
	mt_log_progress(&f->log, "%s", "1234567890123456789012345678901234567890");
	assert_said(f, "\r\033[K123456789012345678901234567890123456...");
	mt_log_progress(&f->log, "%s", "12345678901234567890123456789012345\xc3\xa9 and more");
	assert_said(f, "\r\033[K12345678901234567890123456789012345...");
	assert_int_equal(ioctl(f->writer, TIOCSWINSZ, &ws), 0);
	mt_log_progress(&f->log, "%s", "1234567890");
	assert_said(f, "\r\033[K1234...");
}

#define WITH_PIPE(fn) cmocka_unit_test_setup_teardown(fn, setup_pipe, teardown)
#define WITH_TTY(fn) cmocka_unit_test_setup_teardown(fn, setup_tty, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PIPE(test_levels),     WITH_PIPE(test_safe),    WITH_PIPE(test_long),
		WITH_PIPE(test_errno_kept), WITH_TTY(test_progress), WITH_TTY(test_progress_width),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
