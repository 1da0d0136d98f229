/* SPDX-License-Identifier: BSD-3-Clause */
/* A sink begins a new file: what is open ends in the old one and goes on in the new one. */
#include "spans_int.h"

static void restart_end(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	uint32_t i;

	if (!t->told)
		return;
	for (i = t->depth; i-- > 0;)
		sp_emit_end(s, t, &t->stack[i], time < t->last_time ? t->last_time : time, MT_END_PART, 0);
	if (s->sink->ops->gone)
		sp_err(s, s->sink->ops->gone(s->sink, NULL, &t->pub, time));
	t->told = false;
	t->parted = true;
	t->pub.sink_data = NULL;
}

static void restart_begin(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	uint32_t depth = t->depth;

	if (!depth || t->told)
		return;
	if (time < t->last_time)
		time = t->last_time;
	t->last_time = time;
	t->depth = 0;
	sp_tell_thread(s, t, time);
	sp_continue_slices(s, t, depth, time);
}

static void restart_end_process(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	struct sp_thread *t;

	if (!p->told)
		return;
	for (t = p->first; t; t = t->next)
		restart_end(s, t, time);
	sp_keyed_part(s, p, time);
	p->pub.end_reason = MT_END_PART;
	if (s->sink->ops->gone)
		sp_err(s, s->sink->ops->gone(s->sink, &p->pub, NULL, time));
	p->told = false;
	p->parted = true;
	p->pub.sink_data = NULL;
	p->pub.unpaired = (struct mt_unpaired){0};
}

int mt_spans_restart(struct mt_spans *s, struct mt_process *pub, uint64_t time)
{
	struct sp_process *p;
	struct sp_thread *t;

	s->err = 0;
	for (p = s->first; p; p = p->next)
		if (!pub || pub == &p->pub)
			restart_end_process(s, p, time);
	/* All ends before all begins: the sink may have one file for all. */
	for (p = s->first; p; p = p->next) {
		if (pub && pub != &p->pub)
			continue;
		for (t = p->first; t; t = t->next)
			restart_begin(s, t, time);
		sp_keyed_continue(s, p, time);
	}
	return s->err;
}
