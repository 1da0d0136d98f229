/* SPDX-License-Identifier: BSD-3-Clause */
/* What is open now, thread by thread (then spans with a key, which are on none) or subject by subject, as text or JSON. All texts are the target's. */
#include "record_flight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "timeline_text.h"

/* Behind what was open when hits were lost. */
#define TEXT_DOUBT "  (hits were lost since: it may be over)"
#define JSON_DOUBT ",\"in_doubt\":true"

struct stacks {
	const struct mt_stacks_opts *o;
	mt_line_cb line;
	void *ctx;
	const struct mt_thread *thread; /* whose stack is being told */
	FILE *f;                        /* the line of it, JSON */
	char *text;
	size_t len;
	uint32_t n, frames;
	int err;
	/* subjects only */
	const struct mt_sink *recordings;
	const struct mt_recording_info *info;
	struct age {
		uint64_t span, since;
		uint32_t tid;
		bool in_doubt;
	} * ages;
	uint32_t nages, cap_ages;
};

static int begin_line(struct stacks *s)
{
	s->text = NULL;
	s->f = open_memstream(&s->text, &s->len);
	if (!s->f)
		s->err = -ENOMEM;
	return s->err;
}

static int end_line(struct stacks *s)
{
	if (fclose(s->f))
		s->err = -ENOMEM;
	s->f = NULL;
	if (!s->err)
		s->err = s->line(s->ctx, s->text, s->len);
	free(s->text);
	return s->err;
}

static void put_age(FILE *f, uint64_t ns)
{
	if (ns >= 3600000000000u)
		fprintf(f, "%" PRIu64 "h%02um", ns / 3600000000000u, (unsigned)(ns / 60000000000u % 60));
	else if (ns >= 60000000000u)
		fprintf(f, "%" PRIu64 "m%02us", ns / 60000000000u, (unsigned)(ns / 1000000000u % 60));
	else
		fprintf(f, "%" PRIu64 ".%03us", ns / 1000000000u, (unsigned)(ns / 1000000u % 1000));
}

static uint64_t age(const struct stacks *s, uint64_t since)
{
	return s->o->now > since ? s->o->now - since : 0;
}

static void put_source(FILE *f, const struct mt_callsite *cs)
{
	if (!cs || !cs->file[0])
		return;
	fprintf(f, "  ");
	tl_safe(f, tl_cstr(cs->file));
	fprintf(f, ":%u", cs->line);
}

static void json_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, "\"%s\":", key);
	tl_json_string(f, tl_cstr(text));
}

static void json_callsite(FILE *f, const struct mt_callsite *cs)
{
	if (!cs)
		return;
	fprintf(f, ",");
	json_text(f, "target", cs->target);
	if (!cs->file[0])
		return;
	fprintf(f, ",");
	json_text(f, "file", cs->file);
	fprintf(f, ",\"line\":%u", cs->line);
}

/* ---- Threads -------------------------------------------------------------------------------------- */

static int end_thread(struct stacks *s)
{
	if (!s->thread || !s->o->json)
		return s->err;
	s->thread = NULL;
	fprintf(s->f, "]}");
	return end_line(s);
}

static int begin_thread(struct stacks *s, const struct mt_thread *t)
{
	if (end_thread(s) || begin_line(s))
		return s->err;
	s->thread = t;
	s->frames = 0;
	s->n++;
	if (s->o->json) {
		fprintf(s->f, "{\"pid\":%u,", t->process->pid);
		json_text(s->f, "process", t->process->name);
		fprintf(s->f, ",\"tid\":%u,", t->tid);
		json_text(s->f, "thread", t->name);
		fprintf(s->f, ",\"stack\":[");
		return 0;
	}
	tl_safe(s->f, tl_cstr(t->process->name));
	fprintf(s->f, " (%u), thread ", t->process->pid);
	tl_safe(s->f, tl_cstr(t->name));
	fprintf(s->f, " (%u):", t->tid);
	return end_line(s);
}

static int each_open(void *ctx, const struct mt_spans_open *o)
{
	struct stacks *s = ctx;

	if (s->o->pid && o->thread->process->pid != s->o->pid)
		return 0;
	if (o->thread != s->thread && begin_thread(s, o->thread))
		return s->err;
	if (s->o->json) {
		fprintf(s->f, "%s{\"name\":", s->frames++ ? "," : "");
		tl_json_string(s->f, o->name);
		fprintf(s->f, ",\"span\":%" PRIu64 ",\"open_ns\":%" PRIu64, o->span, age(s, o->since));
		json_callsite(s->f, o->cs);
		fprintf(s->f, "%s}", o->in_doubt ? JSON_DOUBT : "");
		return 0;
	}
	if (begin_line(s))
		return s->err;
	fprintf(s->f, "  ");
	tl_safe(s->f, o->name);
	fprintf(s->f, "  ");
	put_age(s->f, age(s, o->since));
	put_source(s->f, o->cs);
	fprintf(s->f, "%s", o->in_doubt ? TEXT_DOUBT : "");
	return end_line(s);
}

/* ---- Spans with a key --------------------------------------------------------------------------- */

#define KEYED_SHOWN 100 /* of a process: the oldest */

static int begin_keyed(struct stacks *s, const struct mt_spans_open *o)
{
	if (begin_line(s))
		return s->err;
	s->n++;
	if (s->o->json) {
		fprintf(s->f, "{\"pid\":%u,", o->process->pid);
		json_text(s->f, "process", o->process->name);
		fprintf(s->f, ",\"open\":%u,\"keyed\":[", o->of);
		return 0;
	}
	tl_safe(s->f, tl_cstr(o->process->name));
	fprintf(s->f, " (%u), spans with a key, %u open", o->process->pid, o->of);
	if (o->of > KEYED_SHOWN)
		fprintf(s->f, ", the oldest %u", KEYED_SHOWN);
	fprintf(s->f, ":");
	return end_line(s);
}

static int each_keyed(void *ctx, const struct mt_spans_open *o)
{
	struct stacks *s = ctx;

	if ((s->o->pid && o->process->pid != s->o->pid) || o->depth >= KEYED_SHOWN)
		return 0;
	if (!o->depth && begin_keyed(s, o))
		return s->err;
	if (!s->o->json && begin_line(s))
		return s->err;
	if (!s->o->json) {
		fprintf(s->f, "  ");
		tl_safe(s->f, o->name);
		fprintf(s->f, "  ");
		put_age(s->f, age(s, o->since));
		fprintf(s->f, "  begun by thread %u%s", o->tid, o->in_doubt ? TEXT_DOUBT : "");
		return end_line(s);
	}
	fprintf(s->f, "%s{\"name\":", o->depth ? "," : "");
	tl_json_string(s->f, o->name);
	fprintf(s->f, ",\"span\":%" PRIu64 ",\"open_ns\":%" PRIu64 ",\"tid\":%u", o->span, age(s, o->since),
		o->tid);
	json_callsite(s->f, o->cs);
	fprintf(s->f, "%s}", o->in_doubt ? JSON_DOUBT : "");
	if (o->depth + 1 < o->of && o->depth + 1 < KEYED_SHOWN)
		return 0;
	fprintf(s->f, "]}");
	return end_line(s);
}

int mt_record_stacks(const struct mt_spans *spans, const struct mt_stacks_opts *o, mt_line_cb line, void *ctx,
		     uint32_t *ret_stacks)
{
	struct stacks s = {.o = o, .line = line, .ctx = ctx};
	int err = mt_spans_each_open(spans, each_open, &s);

	if (!err)
		err = end_thread(&s);
	if (!err)
		err = mt_spans_each_keyed(spans, each_keyed, &s);
	if (s.f) {
		fclose(s.f);
		free(s.text);
	}
	*ret_stacks = s.n;
	return err;
}

/* ---- Subjects ------------------------------------------------------------------------------------- */

static int note_age(void *ctx, const struct mt_spans_open *o)
{
	struct stacks *s = ctx;
	struct age *v;

	if (s->nages == s->cap_ages) {
		uint32_t cap = s->cap_ages ? s->cap_ages * 2 : 64;

		v = realloc(s->ages, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->ages = v;
		s->cap_ages = cap;
	}
	s->ages[s->nages++] = (struct age){o->span, o->since, o->thread->tid, o->in_doubt};
	return 0;
}

static int by_span(const void *a, const void *b)
{
	const struct age *x = a, *y = b;

	if (x->span != y->span)
		return x->span < y->span ? -1 : 1;
	return x->since < y->since ? -1 : x->since > y->since;
}

/* Its first enter, on whatever thread. */
static const struct age *find_age(const struct stacks *s, uint64_t span)
{
	uint32_t lo = 0, hi = s->nages;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->ages[mid].span < span)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < s->nages && s->ages[lo].span == span ? &s->ages[lo] : NULL;
}

static void json_frame(struct stacks *s, const struct mt_recording_frame *fr, const struct age *a)
{
	json_text(s->f, "name", fr->cs ? fr->cs->name : "?");
	fprintf(s->f, ",\"span\":%" PRIu64 ",\"entered\":%u", fr->span, fr->entered);
	if (a)
		fprintf(s->f, ",\"open_ns\":%" PRIu64 ",\"tid\":%u", age(s, a->since), a->tid);
	json_callsite(s->f, fr->cs);
	if (a && a->in_doubt)
		fprintf(s->f, JSON_DOUBT);
}

static int json_stack(struct stacks *s, const struct mt_recording_frame *frames, uint32_t n)
{
	uint32_t i;

	if (begin_line(s))
		return s->err;
	fprintf(s->f, "{");
	json_text(s->f, "subject", s->info->subject);
	fprintf(s->f, ",\"recording\":%" PRIu64 ",\"pid\":%u,\"stack\":[", s->info->id, s->info->pid);
	for (i = 0; i < n; i++) {
		fprintf(s->f, "%s{", i ? "," : "");
		json_frame(s, &frames[i], find_age(s, frames[i].span));
		fprintf(s->f, "}");
	}
	fprintf(s->f, "]}");
	return end_line(s);
}

static int text_frame(struct stacks *s, const struct mt_recording_frame *fr)
{
	const struct age *a = find_age(s, fr->span);

	if (begin_line(s))
		return s->err;
	fprintf(s->f, "  ");
	tl_safe(s->f, tl_cstr(fr->cs ? fr->cs->name : "?"));
	if (a) {
		fprintf(s->f, "  ");
		put_age(s->f, age(s, a->since));
	}
	if (fr->entered > 1)
		fprintf(s->f, "  entered %u times", fr->entered);
	if (a)
		fprintf(s->f, "  thread %u", a->tid);
	put_source(s->f, fr->cs);
	fprintf(s->f, "%s", a && a->in_doubt ? TEXT_DOUBT : "");
	return end_line(s);
}

static int each_stack(void *ctx, const struct mt_recording_frame *frames, uint32_t n)
{
	struct stacks *s = ctx;
	uint32_t i;

	s->n++;
	if (s->o->json)
		return json_stack(s, frames, n);
	if (begin_line(s))
		return s->err;
	tl_safe(s->f, tl_cstr(s->info->subject));
	fprintf(s->f, " (process %u):", s->info->pid);
	end_line(s);
	for (i = 0; i < n && !s->err; i++)
		text_frame(s, &frames[i]);
	return s->err;
}

static int each_recording(void *ctx, const struct mt_recording_info *i)
{
	struct stacks *s = ctx;

	if (i->state != MT_RECORDING_LIVE || (s->o->pid && i->pid != s->o->pid))
		return 0;
	s->info = i;
	return mt_recordings_stacks(s->recordings, i->id, each_stack, s);
}

int mt_record_subject_stacks(const struct mt_spans *spans, const struct mt_sink *recordings,
			     const char *subject, const struct mt_stacks_opts *o, mt_line_cb line, void *ctx,
			     uint32_t *ret_stacks)
{
	struct stacks s = {.o = o, .line = line, .ctx = ctx, .recordings = recordings};
	int err = mt_spans_each_open(spans, note_age, &s);

	if (!err) {
		if (s.nages)
			qsort(s.ages, s.nages, sizeof(*s.ages), by_span);
		err = mt_recordings_each(recordings, subject, each_recording, &s);
	}
	free(s.ages);
	*ret_stacks = s.n;
	return err;
}
