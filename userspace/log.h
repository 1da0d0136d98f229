/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user is told while the tool runs: lines on stderr, each begun with `montrace-bpf: `.
 *
 * Every message is one line, written in one write, and safe for a terminal: control characters and
 * bytes that are not text become U+FFFD. A newline at the end of a message is dropped, one within
 * it is a control character. Longer than MT_LOG_LINE bytes: cut, with "...".
 * All functions keep errno.
 */
#ifndef MT_LOG_H
#define MT_LOG_H

#include <stdbool.h>

#define MT_LOG_LINE 2048

enum mt_log_level {
	MT_LOG_QUIET,   /* errors only */
	MT_LOG_NORMAL,  /* and warnings, information, progress */
	MT_LOG_VERBOSE, /* and details */
};

/* Make it with mt_log_init; tty may be set to false afterwards (TERM=dumb). */
struct mt_log {
	enum mt_log_level level;
	int fd;
	bool tty;
	bool progress; /* a progress line is on the screen */
};

void mt_log_init(struct mt_log *l, int fd, enum mt_log_level level);

void mt_log_error(struct mt_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mt_log_warn(struct mt_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mt_log_info(struct mt_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mt_log_debug(struct mt_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * One line that is written over again and again, on a terminal only; cut to its width. Any other
 * message removes it first; so does mt_log_progress_end, to be called before leaving.
 */
void mt_log_progress(struct mt_log *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void mt_log_progress_end(struct mt_log *l);

#endif
