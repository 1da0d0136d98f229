/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was recorded goes out at once, as far as it fits into the buffer of a connection; who follows then
 * gets each event as it is recorded. One who reads more slowly than events come is told how many he missed; one
 * who does not read is dropped by the server.
 */
#include "control_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"

#define BEHIND_MAX (1u << 18) /* so much waits: events are left out until it is less than half */
#define BEHIND_TEXT "events left out: they came faster than this side reads"
#define ANSWER_MAX (3u << 20) /* less than a connection's buffer */

struct follower {
	struct mt_control_conn *c; /* NULL: free */
	bool json;
	uint64_t left_out; /* events since the last line */
	size_t room;       /* more may wait, as long as it is the answer's beginning */
	char subject[MT_CONTROL_TEXT_MAX + 1];
};

struct mt_control_tail {
	struct mt_sink *recordings;
	struct mt_recorded_clock clock;
	unsigned n; /* in use, of all */
	struct follower v[MT_CONTROL_FOLLOWERS];
};

static int send_line(void *ctx, const char *text, size_t len)
{
	return mt_control_line(ctx, text, len);
}

static struct mt_str text_of(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

static int tell_left_out(struct mt_control_conn *c, bool json, uint64_t n, const char *what)
{
	char text[80];

	snprintf(text, sizeof(text), json ? "{\"left_out\":%" PRIu64 "}" : "(%" PRIu64 " %s)", n, what);
	return mt_control_line(c, text, strlen(text));
}

/* True if this event is not for him now. */
static bool behind(struct follower *f)
{
	size_t waiting = mt_control_waiting(f->c);

	if (waiting <= BEHIND_MAX)
		f->room = 0;
	if (waiting > f->room + (f->left_out ? BEHIND_MAX / 2 : BEHIND_MAX)) {
		f->left_out++;
		return true;
	}
	if (f->left_out)
		tell_left_out(f->c, f->json, f->left_out, BEHIND_TEXT);
	f->left_out = 0;
	return false;
}

static int recorded(void *ctx, const struct mt_recorded *e)
{
	struct mt_control_tail *t = ctx;
	struct mt_str subject = text_of(e->recording->subject);
	char *line[2] = {NULL, NULL};
	size_t len[2];
	unsigned i;

	for (i = 0; t->n && i < MT_CONTROL_FOLLOWERS; i++) {
		struct follower *f = &t->v[i];
		int rc = 0;

		if (!f->c || (f->subject[0] && !mt_glob(text_of(f->subject), subject)) || behind(f))
			continue;
		if (!line[f->json])
			rc = f->json ? mt_recorded_json(e, &t->clock, &line[1], &len[1])
				     : mt_recorded_text(e, &t->clock, &line[0], &len[0]);
		if (rc == 0)
			mt_control_line(f->c, line[f->json], len[f->json]);
	}
	free(line[0]);
	free(line[1]);
	return 0;
}

int mt_control_tail_new(struct mt_sink *recordings, const struct mt_recorded_clock *clock,
			struct mt_control_tail **ret_tail)
{
	struct mt_control_tail *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->recordings = recordings;
	t->clock = *clock;
	mt_recordings_watch(recordings, recorded, t);
	*ret_tail = t;
	return 0;
}

void mt_control_tail_clock(struct mt_control_tail *t, const struct mt_recorded_clock *clock)
{
	t->clock = *clock;
}

static void follow(struct mt_control_tail *t, struct mt_control_conn *c, const struct mt_control_req *req)
{
	unsigned i;

	for (i = 0; i < MT_CONTROL_FOLLOWERS && t->v[i].c; i++)
		;
	if (i == MT_CONTROL_FOLLOWERS) {
		mt_control_fail(c, "too many are following already");
		return;
	}
	t->v[i] = (struct follower){.c = c, .json = req->json, .room = mt_control_waiting(c)};
	memcpy(t->v[i].subject, req->subject, sizeof(req->subject));
	t->n++;
}

int mt_control_tail_request(struct mt_control_tail *t, struct mt_control_conn *c,
			    const struct mt_control_req *req)
{
	struct mt_recordings_tail_opts o = {.subject = req->subject[0] ? req->subject : NULL,
					    .n = req->n,
					    .max_bytes = ANSWER_MAX,
					    .json = req->json,
					    .clock = t->clock};
	uint32_t left_out = 0;
	int rc;

	rc = mt_recordings_tail(t->recordings, &o, send_line, c, &left_out);
	if (rc < 0)
		return rc;
	if (left_out)
		rc = tell_left_out(c, req->json, left_out, "older events had no room");
	if (rc < 0)
		return rc;
	if (req->follow)
		follow(t, c, req);
	else
		mt_control_done(c);
	return 0;
}

void mt_control_tail_gone(struct mt_control_tail *t, struct mt_control_conn *c)
{
	unsigned i;

	for (i = 0; i < MT_CONTROL_FOLLOWERS; i++) {
		if (t->v[i].c != c)
			continue;
		t->v[i].c = NULL;
		t->n--;
	}
}

void mt_control_tail_free(struct mt_control_tail *t)
{
	unsigned i;

	if (!t)
		return;
	mt_recordings_watch(t->recordings, NULL, NULL);
	for (i = 0; i < MT_CONTROL_FOLLOWERS; i++) {
		struct follower *f = &t->v[i];

		if (f->c && f->left_out)
			tell_left_out(f->c, f->json, f->left_out, BEHIND_TEXT);
		if (f->c)
			mt_control_done(f->c);
	}
	free(t);
}
