/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sinks keep state in .sink_data, and there is one per process and thread. The tee keeps a row of them
 * instead: before a sink is called its own pointers are put in, afterwards taken back.
 *
 * While no sink is being called, .sink_data of a process or thread that the tee was told of is its row.
 */
#include "tee.h"

#include <errno.h>
#include <stdlib.h>

struct row {
	void *data[MT_TEE_MAX];
};

struct tee {
	struct mt_sink sink;
	unsigned n;
	struct mt_sink *to[MT_TEE_MAX];
	struct row none; /* lent to a process that has none, for the time of one call */
};

/* What one call is about, and the rows of that. */
struct swap {
	struct mt_process *p;
	struct mt_thread *t;
	struct row *prow, *trow;
};

static bool row_make(void **data)
{
	if (!*data)
		*data = calloc(1, sizeof(struct row));
	return *data;
}

/* False: there are no rows, so the sinks know nothing of it. */
static bool swap_init(struct swap *w, struct mt_process *p, struct mt_thread *t)
{
	*w = (struct swap){.p = t ? t->process : p, .t = t};
	if (w->p) {
		w->prow = w->p->sink_data;
		if (!w->prow)
			return false;
	}
	if (t) {
		w->trow = t->sink_data;
		if (!w->trow)
			return false;
	}
	return true;
}

static void swap_in(struct swap *w, unsigned i)
{
	if (w->p)
		w->p->sink_data = w->prow->data[i];
	if (w->t)
		w->t->sink_data = w->trow->data[i];
}

static void swap_out(struct swap *w, unsigned i)
{
	if (w->p) {
		w->prow->data[i] = w->p->sink_data;
		w->p->sink_data = w->prow;
	}
	if (w->t) {
		w->trow->data[i] = w->t->sink_data;
		w->t->sink_data = w->trow;
	}
}

/* Calls slot `op` of every sink that has it and does not ignore it; proc and thr: what the call is about. */
#define TEE_CALL(s, ignored, proc, thr, op, ...)                                           \
	do {                                                                               \
		struct tee *tee_ = (struct tee *)(s);                                      \
		struct swap w_;                                                            \
		unsigned i_;                                                               \
		int err_ = 0, rc_;                                                         \
		if (!swap_init(&w_, proc, thr))                                            \
			return -ENOMEM;                                                    \
		for (i_ = 0; i_ < tee_->n; i_++) {                                         \
			if (!tee_->to[i_]->ops->op || (tee_->to[i_]->ignores & (ignored))) \
				continue;                                                  \
			swap_in(&w_, i_);                                                  \
			rc_ = tee_->to[i_]->ops->op(tee_->to[i_], __VA_ARGS__);            \
			swap_out(&w_, i_);                                                 \
			if (rc_ < 0 && err_ == 0)                                          \
				err_ = rc_;                                                \
		}                                                                          \
		return err_;                                                               \
	} while (0)

static int tee_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	if (!row_make(&p->sink_data))
		return -ENOMEM;
	TEE_CALL(s, 0, p, NULL, process, p, time);
}

static int tee_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	if (!t->process->sink_data || !row_make(&t->sink_data))
		return -ENOMEM;
	TEE_CALL(s, 0, NULL, t, thread, t, time);
}

static uint32_t ignores(const struct mt_callsite *cs)
{
	return cs && cs->class_ == MONTRACE_CLASS_RECORDING ? 0 : MT_IGNORES_EVENTS;
}

static int tee_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	TEE_CALL(s, ignores(sl->cs), NULL, sl->thread, begin, sl);
}

static int tee_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	TEE_CALL(s, ignores(e->cs) | (e->reason == MT_END_PROCESS ? 0 : MT_IGNORES_ENDS), NULL, e->thread,
		 end, e);
}

static int tee_instant(struct mt_sink *s, const struct mt_instant *i)
{
	TEE_CALL(s, ignores(i->cs), NULL, i->thread, instant, i);
}

static int tee_counter(struct mt_sink *s, const struct mt_count *c)
{
	TEE_CALL(s, 0, NULL, c->thread, counter, c);
}

/* A loss may name a process without thread, or nothing. */
static int tee_lost(struct mt_sink *s, const struct mt_loss *l)
{
	TEE_CALL(s, 0, l->process, l->thread, lost, l);
}

/* One that is between two files has no row, but its end and the ends of its spans are told (sink.h). */
static bool parted_in(struct mt_sink *s, struct mt_process *p)
{
	struct tee *tee = (struct tee *)s;

	if (!p || p->sink_data)
		return false;
	tee->none = (struct row){{NULL}};
	p->sink_data = &tee->none;
	return true;
}

static int tee_gone_all(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	TEE_CALL(s, 0, p, t, gone, p, t, time);
}

static int tee_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	bool parted = parted_in(s, p);
	int rc = tee_gone_all(s, p, t, time);

	if (t) {
		free(t->sink_data);
		t->sink_data = NULL;
	} else if (p) {
		free(parted ? NULL : p->sink_data);
		p->sink_data = NULL;
	}
	return rc;
}

static int tee_flush(struct mt_sink *s, uint64_t now)
{
	TEE_CALL(s, 0, NULL, NULL, flush, now);
}

static int tee_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	TEE_CALL(s, 0, n->process, NULL, span_new, n);
}

static int tee_span_close_all(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	TEE_CALL(s, 0, p, NULL, span_close, p, span, time);
}

static int tee_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	bool parted = parted_in(s, p);
	int rc = tee_span_close_all(s, p, span, time);

	if (parted)
		p->sink_data = NULL;
	return rc;
}

static int tee_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	TEE_CALL(s, 0, NULL, NULL, mark, time, text);
}

static int tee_keyed_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	TEE_CALL(s, ignores(sl->cs), sl->process, NULL, keyed_begin, sl);
}

static int tee_keyed_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	TEE_CALL(s, ignores(e->cs) | (e->reason == MT_END_PROCESS ? 0 : MT_IGNORES_ENDS), e->process, NULL,
		 keyed_end, e);
}

static int tee_free(struct mt_sink *s)
{
	struct tee *tee = (struct tee *)s;
	unsigned i;
	int err = 0, rc;

	if (!s)
		return 0;
	for (i = 0; i < tee->n; i++) {
		rc = tee->to[i]->ops->free(tee->to[i]);
		if (rc < 0 && err == 0)
			err = rc;
	}
	free(tee);
	return err;
}

static const struct mt_sink_ops tee_ops = {
	.process = tee_process,
	.thread = tee_thread,
	.begin = tee_begin,
	.end = tee_end,
	.instant = tee_instant,
	.counter = tee_counter,
	.lost = tee_lost,
	.gone = tee_gone,
	.flush = tee_flush,
	.free = tee_free,
	.span_new = tee_span_new,
	.span_close = tee_span_close,
	.mark = tee_mark,
	.keyed_begin = tee_keyed_begin,
	.keyed_end = tee_keyed_end,
};

int mt_tee_new(struct mt_sink *const *sinks, unsigned n, struct mt_sink **ret_tee)
{
	struct tee *tee;
	unsigned i;

	if (n == 0 || n > MT_TEE_MAX)
		return -EINVAL;
	tee = calloc(1, sizeof(*tee));
	if (!tee)
		return -ENOMEM;
	tee->sink.ops = &tee_ops;
	tee->n = n;
	for (i = 0; i < n; i++)
		tee->to[i] = sinks[i];
	*ret_tee = &tee->sink;
	return 0;
}
