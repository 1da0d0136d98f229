/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is remembered of a span id: number, parent, values for each time it is entered, fields recorded later.
 *
 * A span that nobody has entered is in its process's list of free spans. When the table is full the oldest
 * of these goes; entered ones stay, because the slices point to them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spans_int.h"

static void list_add(struct sp_process *p, struct sp_span *sp)
{
	sp->free_next = NULL;
	sp->free_prev = p->free_last;
	if (p->free_last)
		p->free_last->free_next = sp;
	else
		p->free_first = sp;
	p->free_last = sp;
}

static void list_del(struct sp_process *p, struct sp_span *sp)
{
	if (sp->free_prev)
		sp->free_prev->free_next = sp->free_next;
	else
		p->free_first = sp->free_next;
	if (sp->free_next)
		sp->free_next->free_prev = sp->free_prev;
	else
		p->free_last = sp->free_prev;
}

void sp_span_hold(struct sp_span *sp)
{
	if (sp->open++ == 0)
		list_del(sp->proc, sp);
}

void sp_span_release(struct sp_span *sp)
{
	if (--sp->open == 0)
		list_add(sp->proc, sp);
}

struct sp_span *sp_span_find(struct mt_spans *s, struct sp_process *p, uint64_t id)
{
	return id ? sp_map_get(s, &p->spans, id) : NULL;
}

/* Links the pieces of a span in all traces: no two spans of a machine should share it. */
uint64_t sp_flow(const struct sp_process *p, uint64_t num)
{
	uint64_t h = p->start ^ (uint64_t)p->pub.pid << 40;

	h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9ULL;
	h = (h + num) * 0x94d049bb133111ebULL;
	h ^= h >> 29;
	return h ? h : 1;
}

void sp_span_drop_content(struct sp_span *sp)
{
	uint32_t i;

	for (i = 0; i < sp->nrecorded; i++)
		free(sp->recorded[i].owned);
	free(sp->recorded);
	free(sp->values);
	sp->recorded = NULL;
	sp->values = NULL;
	sp->nrecorded = 0;
	sp->nvalues = 0;
	sp->room = 0;
}

void sp_span_tell(struct mt_spans *s, struct sp_span *sp)
{
	struct mt_span_new n = {.process = &sp->proc->pub,
				.time = s->now,
				.span = sp->num,
				.parent = sp->parent,
				.cs = sp->cs,
				.nvalues = sp->nvalues,
				.values = sp->values,
				.name = sp->name,
				.flow = sp->flow};

	if (!s->sink->ops->span_new)
		return;
	sp_tell_process(s, sp->proc, s->now);
	sp_err(s, s->sink->ops->span_new(s->sink, &n));
}

void sp_span_forget(struct mt_spans *s, struct sp_span *sp, bool tell)
{
	struct sp_process *p = sp->proc;

	/* One that was only named as a parent, or of which nothing was said, is no news. */
	if (tell && sp->cs && (p->told || p->parted) && s->sink->ops->span_close)
		sp_err(s, s->sink->ops->span_close(s->sink, &p->pub, sp->num, s->now));
	list_del(sp->proc, sp);
	sp_map_del(s, &sp->proc->spans, sp->id);
	sp_span_drop_content(sp);
	free(sp);
}

void sp_spans_forget_all(struct mt_spans *s, struct sp_process *p, bool tell)
{
	while (p->free_first)
		sp_span_forget(s, p->free_first, tell);
}

struct sp_span *sp_span_add(struct mt_spans *s, struct sp_process *p, uint64_t id)
{
	struct sp_span *sp;

	if (id == 0)
		return NULL;
	if (p->spans.n >= s->opts.max_spans) {
		s->stats.forgotten++;
		if (!p->free_first)
			return NULL;
		sp_span_forget(s, p->free_first, true);
	}
	sp = calloc(1, sizeof(*sp));
	if (!sp || sp_map_put(s, &p->spans, id, sp) < 0) {
		free(sp);
		sp_err(s, -ENOMEM);
		return NULL;
	}
	sp->id = id;
	sp->num = ++s->last_num;
	sp->flow = sp_flow(p, sp->num);
	sp->proc = p;
	list_add(p, sp);
	return sp;
}

/* One block: values, their texts, the name where it is nobody else's. The span must not be entered. */
int sp_span_fill(struct mt_spans *s, struct sp_span *sp, const struct mt_callsite *cs,
		 const struct mt_value *v, uint32_t n)
{
	const struct mt_name_plan *plan = sp_plan(s, cs);
	struct mt_str name = mt_name_get(plan, v, n, s->name_buf);
	size_t size = n * sizeof(*v);
	bool own_name = name.p != plan->fixed.p;
	struct mt_value *copy = sp->values;
	char *text;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sp_has_text(&v[i]))
			size += v[i].s.len;
	size += own_name ? name.len : 0;
	if (size > sp->room || sp->nrecorded) {
		copy = malloc(size);
		if (!copy && size) {
			sp_err(s, -ENOMEM);
			return -ENOMEM;
		}
		sp_span_drop_content(sp);
		sp->room = (uint32_t)size;
	}
	text = copy ? (char *)(copy + n) : NULL;
	for (i = 0; i < n; i++) {
		copy[i] = v[i];
		if (!sp_has_text(&v[i]))
			continue;
		if (v[i].s.len)
			memcpy(text, v[i].s.p, v[i].s.len);
		copy[i].s.p = text;
		text += v[i].s.len;
	}
	if (own_name)
		name.p = memcpy(text, name.p, name.len);
	sp->cs = cs;
	sp->name = name;
	sp->values = copy;
	sp->nvalues = n;
	return 0;
}

static struct sp_recorded *recorded_slot(struct sp_span *sp, const char *name)
{
	uint32_t i;

	for (i = 0; i < sp->nrecorded; i++)
		if (strcmp(sp->recorded[i].field.name.p, name) == 0)
			return &sp->recorded[i];
	if (sp->nrecorded == SP_MAX_RECORDED) {
		sp->cut = true;
		return NULL;
	}
	if (!sp->recorded)
		sp->recorded = malloc(SP_MAX_RECORDED * sizeof(*sp->recorded));
	if (!sp->recorded)
		return NULL;
	sp->recorded[i] = (struct sp_recorded){.field.name = sp_str(name, strlen(name))};
	sp->nrecorded++;
	return &sp->recorded[i];
}

void sp_span_record(struct mt_spans *s, struct sp_span *sp, const struct mt_callsite *cs,
		    const struct mt_value *v, uint32_t n)
{
	uint32_t i;

	sp->gen++;
	for (i = 0; i < n; i++) {
		char *text = NULL;
		struct sp_recorded *r;

		if (sp_has_text(&v[i])) {
			text = malloc(v[i].s.len + 1u);
			if (!text) {
				sp_err(s, -ENOMEM);
				return;
			}
			if (v[i].s.len)
				memcpy(text, v[i].s.p, v[i].s.len);
		}
		r = recorded_slot(sp, cs->fields[i].name);
		if (!r) {
			free(text);
			continue;
		}
		free(r->owned);
		r->owned = text;
		r->field.value = v[i];
		if (text)
			r->field.value.s.p = text;
		r->gen = sp->gen;
	}
}
