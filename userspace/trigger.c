/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditions for snapshots: matching, the sink that watches, and the rules for how often.
 *
 * A slice that a `span` condition wants is noted by its key when it begins and timed when it ends; all others
 * cost a comparison of names. A span that is entered many times is many slices.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "strings.h"
#include "trigger_int.h"

const char *mt_trigger_text(const struct mt_trigger *t)
{
	return t->text;
}

static struct mt_str text_of(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

static bool name_matches(const struct mt_trigger *t, const struct mt_callsite *cs, struct mt_str name)
{
	return (cs && mt_glob(t->name, text_of(cs->name))) || mt_glob(t->name, name);
}

/* order: -1, 0, 1 as the left side is less, equal, more. */
static bool holds(enum tr_op op, int order)
{
	switch (op) {
	case TR_EQ:
		return order == 0;
	case TR_NE:
		return order != 0;
	case TR_GT:
		return order > 0;
	case TR_GE:
		return order >= 0;
	case TR_LT:
		return order < 0;
	case TR_LE:
		return order <= 0;
	default:
		return false;
	}
}

static int order_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

bool mt_trigger_wants_span(const struct mt_trigger *t, const struct mt_callsite *cs, struct mt_str name)
{
	return t->what == TR_SPAN && name_matches(t, cs, name);
}

bool mt_trigger_duration(const struct mt_trigger *t, uint64_t ns)
{
	return t->what == TR_SPAN && holds(t->op, order_u64(ns, t->u));
}

bool mt_trigger_lost(struct mt_trigger *t, uint64_t count)
{
	if (t->what != TR_LOST)
		return false;
	t->lost = t->lost + count < count ? UINT64_MAX : t->lost + count;
	if (!holds(t->op, order_u64(t->lost, t->u)))
		return false;
	t->lost = 0;
	return true;
}

/* ---- fields ---- */

static bool compare_real(const struct mt_trigger *t, double a, double b)
{
	if (isnan(a) || isnan(b))
		return t->op == TR_NE;
	return holds(t->op, a < b ? -1 : a > b);
}

/* A signed or unsigned field against the number, exactly. */
static bool compare_int(const struct mt_trigger *t, bool negative, int64_t i, uint64_t u)
{
	if (t->num == TR_REAL)
		return compare_real(t, negative ? (double)i : (double)u, t->f);
	if (t->num == TR_INT)
		return holds(t->op, !negative ? 1 : i < t->i ? -1 : i > t->i);
	return holds(t->op, negative ? -1 : order_u64(u, t->u));
}

static bool compare_text(const struct mt_trigger *t, const struct mt_value *v)
{
	bool begins = v->s.len <= t->value.len && (!v->s.len || memcmp(v->s.p, t->value.p, v->s.len) == 0);
	bool same = begins && v->s.len == t->value.len;

	if (t->op == TR_LIKE)
		return mt_glob(t->value, v->s);
	/* Of a text that was cut only the beginning is known. */
	if (v->cut)
		return t->op == TR_NE && !begins;
	return t->op == TR_EQ ? same : t->op == TR_NE && !same;
}

static bool compare_number(const struct mt_trigger *t, const struct mt_value *v)
{
	char buf[40];
	int n;

	if (t->op == TR_LIKE) {
		n = v->type == MONTRACE_TYPE_I64   ? snprintf(buf, sizeof(buf), "%" PRId64, v->i)
		    : v->type == MONTRACE_TYPE_F64 ? snprintf(buf, sizeof(buf), "%.17g", v->f)
		    : v->type == MONTRACE_TYPE_BOOL
			    ? snprintf(buf, sizeof(buf), "%s", v->u ? "true" : "false")
			    : snprintf(buf, sizeof(buf), "%" PRIu64, v->u);
		return mt_glob(t->value, (struct mt_str){buf, (uint32_t)n});
	}
	if (t->num == TR_TEXT)
		return t->op == TR_NE; /* a number is no text */
	if (v->type == MONTRACE_TYPE_F64)
		return compare_real(t, v->f,
				    t->num == TR_REAL  ? t->f
				    : t->num == TR_INT ? (double)t->i
						       : (double)t->u);
	if (v->type == MONTRACE_TYPE_I64)
		return compare_int(t, v->i < 0, v->i, (uint64_t)v->i);
	return compare_int(t, false, 0, v->u);
}

static bool value_matches(const struct mt_trigger *t, const struct mt_value *v)
{
	if (v->missing)
		return false;
	if (v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG)
		return compare_text(t, v);
	return compare_number(t, v);
}

static bool field_matches(const struct mt_trigger *t, const struct mt_instant *i)
{
	uint32_t k;

	for (k = 0; k < i->nvalues && i->cs && k < i->cs->nfields; k++) {
		struct mt_str name = text_of(i->cs->fields[k].name);

		if (name.len == t->field.len && memcmp(name.p, t->field.p, name.len) == 0 &&
		    value_matches(t, &i->values[k]))
			return true;
	}
	for (k = 0; k < i->nextra; k++)
		if (t->field.len && i->extra[k].name.len == t->field.len &&
		    memcmp(i->extra[k].name.p, t->field.p, t->field.len) == 0 &&
		    value_matches(t, &i->extra[k].value))
			return true;
	return false;
}

bool mt_trigger_instant(const struct mt_trigger *t, const struct mt_instant *i)
{
	if (t->what == TR_LEVEL)
		return i->cs && holds(t->op, order_u64(i->cs->level, t->u));
	if (t->what != TR_EVENT || !name_matches(t, i->cs, i->name))
		return false;
	return t->op == TR_NONE || field_matches(t, i);
}

/* ---- the sink ---- */

/* A slice that is being timed. key 0: free. */
struct timed {
	uint64_t key, begin;
};

struct watcher {
	struct mt_sink sink;
	struct mt_trigger_stats stats;
	mt_trigger_cb cb;
	void *ctx;
	struct timed *open; /* 1 << bits slots, linear probing, deletion by shifting back */
	unsigned bits;
	uint32_t n, max_open;
	unsigned ntriggers;
	struct mt_trigger *triggers[];
};

static struct watcher *watcher_of(struct mt_sink *s)
{
	return (struct watcher *)s;
}

static uint64_t slot_of(const struct watcher *w, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ULL) >> (64 - w->bits);
}

static void open_add(struct watcher *w, uint64_t key, uint64_t begin)
{
	uint64_t mask = (1ull << w->bits) - 1, i;

	if (!key || w->n == w->max_open) {
		w->stats.forgotten++;
		return;
	}
	for (i = slot_of(w, key); w->open[i].key && w->open[i].key != key; i = (i + 1) & mask)
		;
	w->n += !w->open[i].key;
	w->open[i] = (struct timed){key, begin};
}

/* Takes it out. False: it is not there. */
static bool open_del(struct watcher *w, uint64_t key, uint64_t *ret_begin)
{
	uint64_t mask = (1ull << w->bits) - 1, i, hole;

	if (!w->n || !key)
		return false;
	for (i = slot_of(w, key); w->open[i].key != key; i = (i + 1) & mask)
		if (!w->open[i].key)
			return false;
	*ret_begin = w->open[i].begin;
	w->n--;
	for (hole = i, i = (i + 1) & mask; w->open[i].key; i = (i + 1) & mask) {
		/* Moves back unless its own place lies behind the hole. */
		if (((i - slot_of(w, w->open[i].key)) & mask) < ((i - hole) & mask))
			continue;
		w->open[hole] = w->open[i];
		hole = i;
	}
	w->open[hole].key = 0;
	return true;
}

static void fire(struct watcher *w, const struct mt_trigger *t, struct mt_str name, const char *what,
		 uint64_t time)
{
	char safe[512], text[MT_TRIGGER_MAX + 1024];

	mt_text_safe(safe, sizeof(safe), name.p, name.len);
	snprintf(text, sizeof(text), "%s (%s%s%s)", t->text, safe, what[0] && safe[0] ? " " : "", what);
	w->stats.fired++;
	w->cb(w->ctx, t, text, time);
}

static int watch_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct watcher *w = watcher_of(s);
	unsigned i;

	for (i = 0; i < w->ntriggers; i++) {
		if (!mt_trigger_wants_span(w->triggers[i], sl->cs, sl->name))
			continue;
		open_add(w, sl->key, sl->time);
		break;
	}
	return 0;
}

static int watch_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct watcher *w = watcher_of(s);
	char what[40];
	uint64_t begin, ns;
	unsigned i;

	if (!open_del(w, e->key, &begin) || e->time < begin)
		return 0;
	ns = e->time - begin;
	for (i = 0; i < w->ntriggers; i++) {
		if (!mt_trigger_wants_span(w->triggers[i], e->cs, e->name) ||
		    !mt_trigger_duration(w->triggers[i], ns))
			continue;
		snprintf(what, sizeof(what), "took %.3f ms", (double)ns / 1e6);
		fire(w, w->triggers[i], e->name, what, e->time);
	}
	return 0;
}

static int watch_instant(struct mt_sink *s, const struct mt_instant *in)
{
	struct watcher *w = watcher_of(s);
	unsigned i;

	for (i = 0; i < w->ntriggers; i++)
		if (mt_trigger_instant(w->triggers[i], in))
			fire(w, w->triggers[i], in->name, "", in->time);
	return 0;
}

static int watch_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct watcher *w = watcher_of(s);
	char what[40];
	unsigned i;

	for (i = 0; i < w->ntriggers; i++) {
		uint64_t sum = w->triggers[i]->lost + l->count;

		if (!mt_trigger_lost(w->triggers[i], l->count))
			continue;
		snprintf(what, sizeof(what), "%" PRIu64 " lost", sum);
		fire(w, w->triggers[i], (struct mt_str){"", 0}, what, l->time);
	}
	return 0;
}

static int watch_free(struct mt_sink *s)
{
	struct watcher *w = watcher_of(s);
	unsigned i;

	if (!w)
		return 0;
	for (i = 0; i < w->ntriggers; i++)
		mt_trigger_free(w->triggers[i]);
	free(w->open);
	free(w);
	return 0;
}

static const struct mt_sink_ops watch_ops = {
	.begin = watch_begin,
	.end = watch_end,
	.instant = watch_instant,
	.lost = watch_lost,
	.free = watch_free,
};

int mt_trigger_sink_new(struct mt_trigger *const *triggers, unsigned n, uint32_t max_open, mt_trigger_cb cb,
			void *ctx, struct mt_sink **ret_sink)
{
	struct watcher *w = calloc(1, sizeof(*w) + n * sizeof(w->triggers[0]));

	if (!w)
		return -ENOMEM;
	w->max_open = max_open ? max_open : 65536;
	for (w->bits = 1; 1ull << w->bits < 2ull * w->max_open; w->bits++)
		;
	w->open = calloc(1ull << w->bits, sizeof(*w->open));
	if (!w->open) {
		free(w);
		return -ENOMEM;
	}
	w->sink.ops = &watch_ops;
	w->cb = cb;
	w->ctx = ctx;
	w->ntriggers = n;
	memcpy(w->triggers, triggers, n * sizeof(*triggers));
	*ret_sink = &w->sink;
	return 0;
}

void mt_trigger_sink_stats(const struct mt_sink *s, struct mt_trigger_stats *ret_stats)
{
	*ret_stats = ((const struct watcher *)s)->stats;
}

/* ---- how often ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

bool mt_policy_fire(struct mt_policy *p, uint64_t now)
{
	if (p->pending || now < p->ready_at || (p->max && p->taken >= p->max)) {
		p->suppressed++;
		return false;
	}
	p->pending = true;
	p->due = add(now, p->after_ns);
	return true;
}

bool mt_policy_flush(struct mt_policy *p, uint64_t now)
{
	if (!p->pending)
		return false;
	p->pending = false;
	p->taken++;
	p->ready_at = add(now, p->cooldown_ns);
	return true;
}

bool mt_policy_take(struct mt_policy *p, uint64_t now)
{
	return p->pending && now >= p->due && mt_policy_flush(p, now);
}

uint64_t mt_policy_wait(const struct mt_policy *p, uint64_t now)
{
	if (!p->pending)
		return UINT64_MAX;
	return p->due > now ? p->due - now : 0;
}
