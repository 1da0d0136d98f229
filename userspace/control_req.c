/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request as a line: `mt1 tail json follow n=20 subject=%3Cjob%20*%3E`. Words are apart by one space; in a
 * subject what is not printable ASCII, a space and % are written as %XX.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control.h"

#define PREFIX "mt1"

static const char *const verbs[] = {
	[MT_CONTROL_TAIL] = "tail",
	[MT_CONTROL_STACKS] = "stacks",
	[MT_CONTROL_SNAPSHOT] = "snapshot",
	[MT_CONTROL_STATUS] = "status",
};

struct word {
	const char *p;
	size_t len;
};

/* The next word; empty at the end of the line and where two spaces meet. */
static struct word next_word(const char **p, const char *end)
{
	struct word w = {*p, 0};

	while (w.p + w.len < end && w.p[w.len] != ' ')
		w.len++;
	*p = w.p + w.len + (w.p + w.len < end);
	return w;
}

static bool is(struct word w, const char *text)
{
	return w.len == strlen(text) && memcmp(w.p, text, w.len) == 0;
}

static bool begins(struct word *w, const char *text)
{
	size_t n = strlen(text);

	if (w->len < n || memcmp(w->p, text, n) != 0)
		return false;
	w->p += n;
	w->len -= n;
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static const char *get_subject(struct word w, struct mt_control_req *req)
{
	size_t i, n = 0;

	for (i = 0; i < w.len; i++) {
		int c = (unsigned char)w.p[i];

		if (c == '%') {
			int hi = i + 2 < w.len ? hex(w.p[i + 1]) : -1, lo = hi < 0 ? -1 : hex(w.p[i + 2]);

			if (lo < 0)
				return "bad escape";
			c = hi << 4 | lo;
			i += 2;
		} else if (c <= ' ' || c >= 0x7f) {
			return "not text";
		}
		if (c == 0)
			return "not text";
		if (n == MT_CONTROL_TEXT_MAX)
			return "subject too long";
		req->subject[n++] = (char)c;
	}
	req->subject[n] = '\0';
	return NULL;
}

static const char *get_number(struct word w, uint32_t max, uint32_t *ret)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < w.len; i++) {
		if (w.p[i] < '0' || w.p[i] > '9')
			return "bad number";
		n = n * 10 + (uint64_t)(w.p[i] - '0');
		if (n > max)
			return "number too large";
	}
	if (!w.len)
		return "bad number";
	*ret = (uint32_t)n;
	return NULL;
}

static const char *get_option(struct word w, struct mt_control_req *req)
{
	bool tail = req->verb == MT_CONTROL_TAIL;

	if (is(w, "json")) {
		req->json = true;
		return NULL;
	}
	if (tail && is(w, "follow")) {
		req->follow = true;
		return NULL;
	}
	if (tail && begins(&w, "n="))
		return get_number(w, MT_CONTROL_TAIL_MAX, &req->n);
	if (req->verb == MT_CONTROL_STACKS && begins(&w, "pid="))
		return get_number(w, INT32_MAX, &req->pid);
	if ((tail || req->verb == MT_CONTROL_STACKS) && begins(&w, "subject="))
		return get_subject(w, req);
	return "unknown option";
}

int mt_control_parse(const char *line, size_t len, struct mt_control_req *ret_req, const char **ret_why)
{
	struct mt_control_req req = {.n = MT_CONTROL_TAIL_DEFAULT};
	const char *p = line, *end = line + len, *why = NULL;
	struct word w;
	unsigned i;

	if (len && end[-1] == '\r')
		end--;
	w = next_word(&p, end);
	if (!is(w, PREFIX)) {
		*ret_why = "not a request of this protocol";
		return -EINVAL;
	}
	w = next_word(&p, end);
	for (i = MT_CONTROL_TAIL; i <= MT_CONTROL_STATUS; i++)
		if (is(w, verbs[i]))
			req.verb = i;
	if (!req.verb)
		why = "unknown request";
	while (!why && p < end)
		why = get_option(next_word(&p, end), &req);
	if (why) {
		*ret_why = why;
		return -EINVAL;
	}
	*ret_req = req;
	return 0;
}

int mt_control_format(const struct mt_control_req *req, char line[MT_CONTROL_LINE_MAX + 1])
{
	const char *s = req->subject;
	char tmp[MT_CONTROL_LINE_MAX + 1];
	size_t n;

	n = (size_t)snprintf(tmp, sizeof(tmp), PREFIX " %s%s%s", verbs[req->verb], req->json ? " json" : "",
			     req->follow ? " follow" : "");
	if (req->verb == MT_CONTROL_TAIL)
		n += (size_t)snprintf(tmp + n, sizeof(tmp) - n, " n=%" PRIu32, req->n);
	if (req->verb == MT_CONTROL_STACKS && req->pid)
		n += (size_t)snprintf(tmp + n, sizeof(tmp) - n, " pid=%" PRIu32, req->pid);
	if (*s)
		n += (size_t)snprintf(tmp + n, sizeof(tmp) - n, " subject=");
	for (; *s; s++) {
		if (n + 5 > MT_CONTROL_LINE_MAX)
			return -ENAMETOOLONG;
		if (*s > ' ' && *s < 0x7f && *s != '%')
			tmp[n++] = *s;
		else
			n += (size_t)snprintf(tmp + n, sizeof(tmp) - n, "%%%02X", (unsigned char)*s);
	}
	tmp[n++] = '\n';
	tmp[n] = '\0';
	memcpy(line, tmp, n + 1);
	return 0;
}
