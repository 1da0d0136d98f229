/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "timeline_int.h"

/* Texts of a trace: what does not fit any more is shown as missing. */
#define MAX_TEXTS 50000000u
#define MAX_TEXT_BYTES ((size_t)4 << 30)
#define MAX_LOSSES 1000000u
#define MAX_ATTRIBUTES 10000u

static const char lost_name[] = "events lost";

static int grow(void **v, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap + *cap / 2 : 1024;
	void *p;

	if (n < *cap)
		return 0;
	if (want <= *cap)
		return -EFBIG;
	p = realloc(*v, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

/* The number in the annotation `count`; a loss without one counts as 1. */
static uint64_t lost_count(const struct mt_pt_event *ev)
{
	for (uint32_t i = 0; i < ev->nargs; i++) {
		const struct mt_pt_arg *a = &ev->args[i];

		if (a->name.len == 5 && !memcmp(a->name.p, "count", 5) &&
		    (a->type == MT_PT_ARG_UINT || a->type == MT_PT_ARG_INT))
			return a->u;
	}
	return 1;
}

static int add_event(struct mt_timeline *tl, const struct mt_pt_event *ev)
{
	struct mt_tl_event *e;
	int r;

	if (tl->n == MT_TL_NONE - 1)
		return -EFBIG;
	r = grow((void **)&tl->events, tl->n, &tl->cap, sizeof(*tl->events));
	if (r < 0)
		return r;
	e = &tl->events[tl->n];
	*e = (struct mt_tl_event){
		.ts = ev->ts,
		.name = tl_intern(tl, ev->name),
		.cat = tl_intern(tl, ev->cat),
		.file = tl_intern(tl, ev->file),
		.line = ev->line,
		.track = ev->track->index,
		.end = MT_TL_NONE,
		.kind = (uint8_t)ev->kind,
	};
	r = tl_args_pack(tl, ev, &e->args);
	if (r < 0)
		return r;
	if (ev->kind == MT_PT_COUNTER) {
		e->i = ev->i;
		if (ev->is_double) {
			e->d = ev->d;
			e->flags = MT_TL_DOUBLE;
		}
	}
	if (ev->kind == MT_PT_INSTANT && ev->name.len == sizeof(lost_name) - 1 &&
	    !memcmp(ev->name.p, lost_name, sizeof(lost_name) - 1)) {
		e->flags = MT_TL_LOSS;
		e->u = lost_count(ev);
		tl->lost += e->u;
	}
	tl->n++;
	return 0;
}

static int add_loss(struct mt_timeline *tl, const struct mt_pt_event *ev)
{
	int r;

	switch (ev->loss.source) {
	case MT_PT_LOSS_KERNEL:
		tl->kernel_lost += ev->loss.count;
		break;
	case MT_PT_LOSS_PACKETS:
		tl->packet_gaps++;
		break;
	case MT_PT_LOSS_STATS:
		tl->writer_lost = ev->loss.count;
		return 0;
	}
	if (tl->nlosses >= MAX_LOSSES)
		return 0;
	r = grow((void **)&tl->losses, tl->nlosses, &tl->cap_losses, sizeof(*tl->losses));
	if (r < 0)
		return r;
	tl->losses[tl->nlosses++] = (struct mt_tl_loss){ev->loss, ev->has_ts, ev->ts};
	return 0;
}

static int add_attribute(struct mt_timeline *tl, const struct mt_pt_event *ev)
{
	const struct mt_pt_arg *a = &ev->args[0];
	struct mt_tl_attribute *at;
	int r;

	if (tl->nattributes >= MAX_ATTRIBUTES)
		return 0;
	r = grow((void **)&tl->attributes, tl->nattributes, &tl->cap_attributes, sizeof(*tl->attributes));
	if (r < 0)
		return r;
	at = &tl->attributes[tl->nattributes++];
	*at = (struct mt_tl_attribute){.key = tl_intern(tl, ev->name)};
	if (a->type == MT_PT_ARG_STR)
		at->text = mt_intern_get(tl->texts, a->s.p, a->s.len, NULL);
	else if (a->type == MT_PT_ARG_INT)
		at->i = a->i;
	return 0;
}

static int take(void *ctx, const struct mt_pt_event *ev)
{
	struct mt_timeline *tl = ctx;

	switch (ev->kind) {
	case MT_PT_BEGIN:
	case MT_PT_END:
	case MT_PT_INSTANT:
	case MT_PT_COUNTER:
		return add_event(tl, ev);
	case MT_PT_LOSS:
		return add_loss(tl, ev);
	case MT_PT_ATTRIBUTE:
		return add_attribute(tl, ev);
	case MT_PT_TRACK:
		break;
	}
	return 0;
}

static int new_timeline(struct mt_timeline **ret_timeline)
{
	struct mt_timeline *tl = calloc(1, sizeof(*tl));
	int r;

	if (!tl)
		return -ENOMEM;
	r = mt_ptread_new(&tl->reader);
	if (!r)
		r = mt_intern_new(MAX_TEXTS, MAX_TEXT_BYTES, &tl->texts);
	if (r < 0) {
		mt_timeline_free(tl);
		return r;
	}
	*ret_timeline = tl;
	return 0;
}

/* read_result: what the reader returned. */
static int finish(struct mt_timeline *tl, int read_result, struct mt_timeline **ret_timeline)
{
	int r = read_result == -EBADMSG ? 0 : read_result;

	tl->error = read_result;
	if (!r)
		r = tl_build(tl);
	if (r < 0)
		mt_timeline_free(tl);
	else
		*ret_timeline = tl;
	return r;
}

int mt_timeline_read(int fd, struct mt_timeline **ret_timeline)
{
	struct mt_timeline *tl;
	int r = new_timeline(&tl);

	return r < 0 ? r : finish(tl, mt_ptread_fd(tl->reader, fd, take, tl), ret_timeline);
}

int mt_timeline_read_mem(const void *data, size_t len, struct mt_timeline **ret_timeline)
{
	struct mt_timeline *tl;
	int r = new_timeline(&tl);

	return r < 0 ? r : finish(tl, mt_ptread_mem(tl->reader, data, len, take, tl), ret_timeline);
}

void mt_timeline_free(struct mt_timeline *tl)
{
	if (!tl)
		return;
	mt_ptread_free(tl->reader);
	mt_intern_free(tl->texts);
	while (tl->chunks) {
		struct mt_tl_chunk *next = tl->chunks->next;

		free(tl->chunks);
		tl->chunks = next;
	}
	free(tl->events);
	free(tl->order);
	free(tl->tracks);
	free(tl->groups);
	free(tl->by_group);
	free(tl->losses);
	free(tl->attributes);
	free(tl);
}

struct mt_str mt_tl_text(const struct mt_timeline *tl, uint32_t text)
{
	size_t len = 0;
	const char *s = mt_intern_text(tl->texts, text, &len);

	return s ? (struct mt_str){s, (uint32_t)len} : (struct mt_str){"", 0};
}

bool mt_tl_duration(const struct mt_timeline *tl, const struct mt_tl_event *e, uint64_t *ret_ns)
{
	if (e->end == MT_TL_NONE)
		return false;
	*ret_ns = tl->events[e->end].ts - e->ts;
	return true;
}
