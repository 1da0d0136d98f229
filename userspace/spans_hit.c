/* SPDX-License-Identifier: BSD-3-Clause */
/* What a hit of a thread means. Invariants 3, 4 and 7 of spans.c. */
#include <stdlib.h>
#include <string.h>

#include "spans_int.h"
#include "strings.h"

void sp_stray(struct mt_spans *s, struct sp_process *p)
{
	s->stats.stray_exits++;
	p->pub.unpaired.stray_ends++;
}

static void sequence(struct mt_spans *s, struct sp_thread *t, uint64_t seq, uint64_t time)
{
	s->stats.delivered++;
	if (seq == t->next_seq) {
		t->next_seq++;
	} else if (t->any_seq) {
		t->next_seq = seq + 1;
	} else if (seq > t->next_seq) {
		sp_lost(s, t, seq - t->next_seq, time);
		sp_gap(t);
		t->next_seq = seq + 1;
	}
	t->any_seq = false;
}

/* A text that was cut may end in the middle of a character, which is no reason for a replacement. */
static uint32_t whole_characters(const char *p, uint32_t len)
{
	uint32_t back;

	for (back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)p[len - back];
		uint32_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) == 0x80)
			continue;
		return need > back ? len - back : len;
	}
	return len;
}

/* The event's values with valid texts: its own, or copies where one had to be changed. */
static const struct mt_value *valid_values(struct mt_spans *s, const struct mt_event *ev, uint32_t n,
					   bool *cut)
{
	const struct mt_value *v = ev->values;
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct mt_str *text;
		uint32_t len;

		if (!sp_has_text(&v[i]))
			continue;
		*cut |= v[i].cut;
		if (mt_utf8_valid(v[i].s.p, v[i].s.len))
			continue;
		if (v != s->values) {
			memcpy(s->values, v, n * sizeof(*v));
			v = s->values;
		}
		text = &s->values[i].s;
		len = v[i].cut ? whole_characters(text->p, text->len) : text->len;
		if (len > MONTRACE_MAX_TEXT) {
			len = MONTRACE_MAX_TEXT;
			s->values[i].cut = *cut = true;
			if (s->values[i].full_len < text->len)
				s->values[i].full_len = text->len;
		}
		text->len = (uint32_t)mt_utf8_fix(s->text_buf + at, SP_TEXT_BUF - at, text->p, len);
		text->p = s->text_buf + at;
		at += text->len + 1;
	}
	return v;
}

/* Number of the span that the event names or implies as parent. One never heard of gets an entry now. */
static uint64_t parent_of(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	struct sp_span *sp;

	if (ev->flags & MONTRACE_RF_PARENT) {
		sp = sp_span_find(s, t->proc, ev->parent);
		if (!sp)
			sp = sp_span_add(s, t->proc, ev->parent);
		return sp ? sp->num : 0;
	}
	return ev->flags & MONTRACE_RF_ROOT ? 0 : sp_top(t);
}

static void span_new(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		     const struct mt_value *v, uint32_t n, bool cut)
{
	struct sp_span *sp = sp_span_find(s, t->proc, ev->span);
	uint64_t parent;

	if (sp && sp->open) /* ids are never used twice: not a program that plays by the rules */
		return;
	if (sp && sp->cs)
		sp_span_forget(s, sp, true);
	parent = ev->cs->class_ == MONTRACE_CLASS_RECORDING ? 0 : parent_of(s, t, ev);
	sp = sp_span_find(s, t->proc, ev->span);
	if (!sp)
		sp = sp_span_add(s, t->proc, ev->span);
	if (!sp || sp_span_fill(s, sp, ev->cs, v, n) < 0)
		return;
	sp->parent = parent == sp->num ? 0 : parent;
	sp->seen = !(ev->flags & MONTRACE_RF_LATE);
	sp->cut = cut;
	sp_span_tell(s, sp);
}

static void span_enter(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	struct sp_span *sp = sp_span_find(s, t->proc, ev->span);
	struct sp_begin b = {.time = s->now};

	if (!sp || !sp->cs) {
		s->stats.unseen_enters += !(ev->flags & MONTRACE_RF_LATE);
		if (!ev->cs)
			return;
		if (!sp)
			sp = sp_span_add(s, t->proc, ev->span);
		if (!sp || sp_span_fill(s, sp, ev->cs, NULL, 0) < 0)
			return;
	}
	b.cs = sp->cs;
	b.span = sp;
	b.parent = sp->parent;
	b.cut = sp->cut;
	b.nvalues = sp->nvalues;
	b.values = sp->values;
	sp_make_room(s, t, s->now);
	sp_begin(s, t, &b);
}

static void span_exit(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	struct sp_span *sp = sp_span_find(s, t->proc, ev->span);

	if (!sp || !sp_end(s, t, NULL, sp, s->now, MT_END_NORMAL))
		sp_stray(s, t->proc);
}

static void end_everywhere(struct mt_spans *s, struct sp_thread *t, struct sp_span *sp,
			   enum mt_end_reason reason)
{
	while (sp->open && sp_end(s, t, NULL, sp, s->now, reason))
		;
	for (t = t->proc->first; t && sp->open; t = t->next) {
		uint64_t at = s->now < t->last_time ? t->last_time : s->now;

		while (sp->open && sp_end(s, t, NULL, sp, at, reason))
			t->last_time = at;
	}
}

static void span_close(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	struct sp_span *sp = sp_span_find(s, t->proc, ev->span);

	if (!sp || !sp->cs)
		sp_stray(s, t->proc);
	if (!sp)
		return;
	if (sp->open && (ev->flags & MONTRACE_RF_LEFT)) {
		end_everywhere(s, t, sp, MT_END_NORMAL);
	} else if (sp->open) {
		s->stats.closed_entered++;
		end_everywhere(s, t, sp, MT_END_CLOSED);
	}
	if (!sp->open)
		sp_span_forget(s, sp, true);
}

static void instant(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		    const struct mt_value *v, uint32_t n, bool cut)
{
	uint64_t parent = parent_of(s, t, ev);
	struct mt_field extra;
	struct mt_instant i = {.thread = &t->pub,
			       .time = s->now,
			       .cs = ev->cs,
			       .name = mt_name_get(sp_plan(s, ev->cs), v, n, s->name_buf),
			       .parent = parent,
			       .flags = cut ? MT_SLICE_CUT : 0,
			       .nvalues = n,
			       .values = v,
			       .extra = &extra};

	if (parent != sp_top(t)) {
		extra = sp_field_u64("parent", parent);
		i.nextra = 1;
	}
	s->stats.instants++;
	sp_tell_thread(s, t, s->now);
	if (s->sink->ops->instant)
		sp_err(s, s->sink->ops->instant(s->sink, &i));
}

static uint64_t hash_value(uint64_t h, const struct mt_value *v)
{
	bool text = sp_has_text(v);
	const char *p = text ? v->s.p : (const char *)&v->u;
	uint32_t len = text ? v->s.len : (uint32_t)sizeof(v->u), n;
	uint64_t word = len;

	for (;; p += n, len -= n) {
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
		if (!len)
			return h;
		n = len < sizeof(word) ? len : (uint32_t)sizeof(word);
		word = 0;
		memcpy(&word, p, n);
	}
}

/*
 * The sum of a counter in its process, by its name where a template gives it one. The last used is first: counters
 * are few. False: no memory, or too many names.
 */
static bool sum_up(struct mt_spans *s, struct sp_process *p, const struct mt_callsite *cs, struct mt_str name,
		   struct mt_value *v)
{
	const struct mt_value text = {.type = MONTRACE_TYPE_STR, .s = name};
	uint64_t hash = name.len ? hash_value(s->seed[0], &text) : 0;
	struct sp_sum **at = &p->sums, *sum;

	while (*at && ((*at)->callsite != cs->id || (*at)->name != hash))
		at = &(*at)->next;
	sum = *at;
	if (sum) {
		*at = sum->next;
	} else {
		sum = p->nsums < SP_MAX_SUMS ? calloc(1, sizeof(*sum)) : NULL;
		if (!sum) {
			sp_err(s, p->nsums < SP_MAX_SUMS ? -ENOMEM : 0);
			return false;
		}
		p->nsums++;
		sum->callsite = cs->id;
		sum->name = hash;
	}
	sum->next = p->sums;
	p->sums = sum;
	if (v->type == MONTRACE_TYPE_F64)
		v->f = sum->f += v->f;
	else
		v->u = sum->u += v->u;
	return true;
}

/* value: of v[n], or a constant. */
static void counter(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		    const struct mt_value *value, const struct mt_value *v, uint32_t n)
{
	struct mt_count c = {.thread = &t->pub, .time = s->now, .cs = ev->cs, .value = *value};

	if (value->missing)
		return;
	if (value->type == MONTRACE_TYPE_BOOL)
		c.value.type = MONTRACE_TYPE_U64;
	else if (value->type != MONTRACE_TYPE_I64 && value->type != MONTRACE_TYPE_U64 &&
		 value->type != MONTRACE_TYPE_F64)
		return;
	if (ev->cs->label)
		c.name = mt_name_get(sp_plan(s, ev->cs), v, n, s->name_buf);
	if ((ev->cs->how & MT_HOW_SUM) && !sum_up(s, t->proc, ev->cs, c.name, &c.value))
		return;
	s->stats.counters++;
	sp_tell_thread(s, t, s->now);
	if (s->sink->ops->counter)
		sp_err(s, s->sink->ops->counter(s->sink, &c));
}

/*
 * One number for the values by which an end finds its begin: of fields at.. of cs, those with a pair. 0: there are
 * none, or one is missing. Texts are compared by their hash, which is seeded: nobody makes two that collide.
 */
static uint64_t match_of(const struct mt_spans *s, const struct mt_callsite *cs, uint32_t at,
			 const struct mt_value *v, uint32_t n)
{
	uint64_t sum = 0;
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		if (!cs->fields[at + i].pair)
			continue;
		if (v[i].missing)
			return 0;
		any = true;
		sum += hash_value(s->seed[0] + cs->fields[at + i].pair * s->seed[1], &v[i]);
	}
	return any && !sum ? 1 : sum;
}

static void scope_begin(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
			const struct mt_value *v, uint32_t n, bool cut)
{
	struct sp_begin b = {.cs = ev->cs, .time = s->now, .cut = cut, .nvalues = n, .values = v};

	b.match = match_of(s, ev->cs, 0, v, n);
	if (ev->cs->how & MT_HOW_WHILE)
		sp_end(s, t, ev->cs, NULL, s->now, MT_END_NORMAL);
	sp_make_room(s, t, s->now);
	b.parent = parent_of(s, t, ev);
	sp_begin(s, t, &b);
}

/* What the program says with values; cs is there. */
static void with_values(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev)
{
	bool cut = ev->flags & (MONTRACE_RF_CUT_FIELDS | MONTRACE_RF_CUT_TEXT);
	uint32_t n = ev->nvalues < ev->cs->nfields ? ev->nvalues : ev->cs->nfields;
	static const struct mt_value one = {.type = MONTRACE_TYPE_U64, .u = 1};
	const struct mt_value *v;
	struct sp_span *sp;

	if (n > MONTRACE_MAX_FIELDS)
		n = MONTRACE_MAX_FIELDS;
	v = valid_values(s, ev, n, &cut);
	switch (ev->kind) {
	case MT_EV_SCOPE_BEGIN:
		scope_begin(s, t, ev, v, n, cut);
		break;
	case MT_EV_SPAN_NEW:
		(ev->cs->keyed ? sp_keyed_begin : span_new)(s, t, ev, v, n, cut);
		break;
	case MT_EV_SPAN_RECORD:
		sp = sp_span_find(s, t->proc, ev->span);
		if (sp) {
			sp_span_record(s, sp, ev->cs, v, n);
			sp->cut |= cut;
		} else {
			sp_stray(s, t->proc);
		}
		break;
	case MT_EV_EVENT:
		instant(s, t, ev, v, n, cut);
		break;
	case MT_EV_COUNTER:
		if (ev->cs->how & MT_HOW_COUNT)
			counter(s, t, ev, &one, v, n);
		else if (n)
			counter(s, t, ev, v, v, n);
		break;
	default: /* names */
		if (n)
			sp_given_name(s, t, ev, v);
		break;
	}
}

/* Values that come with an end go to the slice that it ends. */
static void ending(struct mt_spans *s, const struct mt_event *ev)
{
	uint32_t at = ev->cs ? ev->cs->end_at : 0, n = ev->nvalues;
	const struct mt_value *v;
	bool cut = false;

	if (!at || !n)
		return;
	if (n > ev->cs->nfields - at)
		n = ev->cs->nfields - at;
	v = valid_values(s, ev, n, &cut);
	s->match = match_of(s, ev->cs, at, v, n);
	for (uint32_t i = 0; i < n; i++) {
		const char *name = ev->cs->fields[at + i].name;

		if (!ev->cs->fields[at + i].pair) /* else the begin has said it */
			s->ending[s->nending++] =
				(struct mt_field){.name = sp_str(name, strlen(name)), .value = v[i]};
	}
}

void sp_hit(struct mt_spans *s, const struct mt_event *ev, struct sp_thread *t)
{
	s->now = ev->time;
	if (s->now < t->last_time) {
		s->stats.time_back++;
		s->now = t->last_time;
	}
	if (ev->has_seq)
		sequence(s, t, ev->seq, s->now);
	t->last_time = s->now;
	if (!t->counted) {
		t->counted = true;
		s->stats.threads++;
		s->stats.processes += !t->proc->counted;
		t->proc->counted = true;
	}
	switch (ev->kind) {
	case MT_EV_SCOPE_END:
		ending(s, ev);
		if (!sp_end(s, t, ev->cs, NULL, s->now, MT_END_NORMAL) &&
		    !(ev->cs && (ev->cs->how & MT_HOW_WHILE)))
			sp_stray(s, t->proc);
		s->nending = 0;
		s->match = 0;
		break;
	case MT_EV_SPAN_ENTER:
		span_enter(s, t, ev);
		break;
	case MT_EV_SPAN_EXIT:
		span_exit(s, t, ev);
		break;
	case MT_EV_SPAN_CLOSE:
		ending(s, ev);
		(ev->cs && ev->cs->keyed ? sp_keyed_end : span_close)(s, t, ev);
		s->nending = 0;
		s->match = 0;
		break;
	default:
		if (ev->cs && ev->kind <= MT_EV_EXECUTION_ID)
			with_values(s, t, ev);
		break;
	}
}
