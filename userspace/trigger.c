/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions for snapshots: matching, and the rules for how often. The sink that watches is in trigger_watch.c. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "glob.h"
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
