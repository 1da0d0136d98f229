/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the control socket: any bytes to the parser, what it accepts is written and read again; then
 * the same bytes over a connection, in pieces.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int request(void *ctx, struct mt_control_conn *c, const struct mt_control_req *req)
{
	unsigned *open = ctx;

	close(mt_control_take_fd(c));
	mt_control_line(c, req->subject, strlen(req->subject));
	if (req->json)
		return -1;
	if (req->follow)
		++*open;
	else
		mt_control_done(c);
	return 0;
}

static void gone(void *ctx, struct mt_control_conn *c)
{
	(void)c;
	--*(unsigned *)ctx;
}

static void parse(const char *data, size_t size)
{
	struct mt_control_req req = {0}, again = {0};
	char line[MT_CONTROL_LINE_MAX + 1];
	const char *why = NULL;

	if (mt_control_parse(data, size, &req, &why) < 0) {
		if (!why)
			abort();
		return;
	}
	if (mt_control_format(&req, line) < 0 || mt_control_parse(line, strlen(line) - 1, &again, &why) < 0)
		abort();
	/* n counts for tail only, and is not written for others. */
	if (again.verb != req.verb || again.json != req.json || again.follow != req.follow ||
	    (req.verb == MT_CONTROL_TAIL && again.n != req.n) || strcmp(again.subject, req.subject))
		abort();
}

/* The answer: nothing yet, or "ok", lines with a space, "end" or "error ...". */
static void check_answer(const char *p, size_t len)
{
	const char *end = p + len, *nl;
	bool last = false;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl || last)
			abort();
		if (*p == ' ' || (nl - p == 2 && !memcmp(p, "ok", 2)))
			continue;
		if ((nl - p != 3 || memcmp(p, "end", 3)) && (nl - p < 6 || memcmp(p, "error ", 6)))
			abort();
		last = true;
	}
}

static void connection(const uint8_t *data, size_t size)
{
	static const struct mt_control_ops ops = {request, gone};
	unsigned open = 0;
	struct mt_control_opts opts = {.ops = &ops, .ctx = &open};
	struct mt_control *c;
	static char answer[65536];
	size_t at = 0, piece, len = 0;
	ssize_t n;
	int s[2];

	if (mt_control_new_bare(&opts, &c) < 0)
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s) < 0)
		abort();
	mt_control_adopt(c, s[0]);
	while (at < size) {
		piece = 1 + data[at] * 8u;
		piece = piece < size - at ? piece : size - at;
		if (send(s[1], data + at, piece, MSG_NOSIGNAL) < 0)
			break;
		at += piece;
		mt_control_dispatch(c, at);
	}
	mt_control_dispatch(c, at);
	while ((n = read(s[1], answer + len, sizeof(answer) - len)) > 0)
		len += (size_t)n;
	check_answer(answer, len);
	mt_control_free(c);
	if (open)
		abort(); /* gone() was not told */
	close(s[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 8192)
		return 0;
	parse((const char *)data, size);
	connection(data, size);
	return 0;
}
