/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "log.h"
#include "strings.h"

#define PREFIX "montrace-bpf: "
#define CLEAR "\r\033[K" /* to the line's start, erase it */

void mt_log_init(struct mt_log *l, int fd, enum mt_log_level level)
{
	int saved = errno;

	*l = (struct mt_log){.level = level, .fd = fd, .tty = isatty(fd) == 1};
	errno = saved;
}

static void write_all(int fd, const char *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return; /* stderr is gone or full: nobody to tell */
		p += n;
		len -= (size_t)n;
	}
}

/* Formats to safe text of at most max bytes, at least 3. Returns its length. */
static size_t safe_text(char *dst, size_t max, const char *fmt, va_list ap)
{
	char raw[MT_LOG_LINE + 1], text[3 * MT_LOG_LINE + 1];
	int n = vsnprintf(raw, sizeof(raw), fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	bool cut = len > MT_LOG_LINE;

	if (cut)
		len = MT_LOG_LINE;
	else if (len > 0 && raw[len - 1] == '\n')
		len--;
	len = mt_text_safe(text, sizeof(text), raw, len);
	if (!cut && len <= max) {
		memcpy(dst, text, len);
		return len;
	}
	len = mt_utf8_prefix(text, len, max - 3);
	memcpy(dst, text, len);
	memcpy(dst + len, "...", 3);
	return len + 3;
}

static void say(struct mt_log *l, const char *kind, const char *fmt, va_list ap)
{
	char line[sizeof(CLEAR) + sizeof(PREFIX) + 16 + MT_LOG_LINE + 1];
	size_t head;
	int saved = errno;

	head = (size_t)snprintf(line, sizeof(line) - MT_LOG_LINE - 1, "%s" PREFIX "%s",
				l->progress ? CLEAR : "", kind);
	l->progress = false;
	head += safe_text(line + head, MT_LOG_LINE, fmt, ap);
	line[head++] = '\n';
	write_all(l->fd, line, head);
	errno = saved;
}

void mt_log_error(struct mt_log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, "error: ", fmt, ap);
	va_end(ap);
}

void mt_log_warn(struct mt_log *l, const char *fmt, ...)
{
	va_list ap;

	if (l->level < MT_LOG_NORMAL)
		return;
	va_start(ap, fmt);
	say(l, "warning: ", fmt, ap);
	va_end(ap);
}

void mt_log_info(struct mt_log *l, const char *fmt, ...)
{
	va_list ap;

	if (l->level < MT_LOG_NORMAL)
		return;
	va_start(ap, fmt);
	say(l, "", fmt, ap);
	va_end(ap);
}

void mt_log_debug(struct mt_log *l, const char *fmt, ...)
{
	va_list ap;

	if (l->level < MT_LOG_VERBOSE)
		return;
	va_start(ap, fmt);
	say(l, "", fmt, ap);
	va_end(ap);
}

/* Columns of the terminal; a byte never takes more than one. */
static size_t width(const struct mt_log *l)
{
	struct winsize ws;

	if (ioctl(l->fd, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		return 80;
	if (ws.ws_col < 8)
		return 8;
	return ws.ws_col < MT_LOG_LINE ? ws.ws_col : MT_LOG_LINE;
}

void mt_log_progress(struct mt_log *l, const char *fmt, ...)
{
	char line[sizeof(CLEAR) + MT_LOG_LINE];
	size_t len = strlen(CLEAR);
	int saved = errno;
	va_list ap;

	if (!l->tty || l->level < MT_LOG_NORMAL)
		return;
	memcpy(line, CLEAR, len);
	va_start(ap, fmt);
	len += safe_text(line + len, width(l) - 1, fmt, ap); /* the last column would wrap */
	va_end(ap);
	write_all(l->fd, line, len);
	l->progress = true;
	errno = saved;
}

void mt_log_progress_end(struct mt_log *l)
{
	int saved = errno;

	if (l->progress)
		write_all(l->fd, CLEAR, strlen(CLEAR));
	l->progress = false;
	errno = saved;
}
