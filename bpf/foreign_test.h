/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Predicates on the operands of foreign sites. Part of foreign.h. */
#ifndef MT_FOREIGN_TEST_H
#define MT_FOREIGN_TEST_H

static __always_inline bool compare(__u8 cmp, __u8 is_signed, __u64 a, __u64 b)
{
	if (is_signed) { /* order-preserving: then all are unsigned */
		a ^= 1ull << 63;
		b ^= 1ull << 63;
	}
	switch (cmp) {
	case MT_CMP_ALWAYS:
		return true;
	case MT_CMP_EQ:
		return a == b;
	case MT_CMP_NE:
		return a != b;
	case MT_CMP_LT:
		return a < b;
	case MT_CMP_LE:
		return a <= b;
	case MT_CMP_GT:
		return a > b;
	case MT_CMP_GE:
		return a >= b;
	}
	return false;
}

static __always_inline bool compare_text(struct scratch *s, const struct mt_plan *p,
					 const struct mt_plan_test *t, __u64 ptr, bool may_fault)
{
	const __u64 *want = (const __u64 *)p->texts[t->text & 1];
	__u64 diff = 0;
	int i;

	for (i = 0; i < MT_PLAN_TEXT / 8 + 1; i++)
		s->cmp[i] = 0;
	if (read_text(s->cmp, MT_PLAN_TEXT + 1, ptr, may_fault) < 0)
		return false;
	for (i = 0; i < MT_PLAN_TEXT / 8; i++)
		diff |= s->cmp[i] ^ want[i];
	return (diff == 0) == (t->cmp == MT_CMP_TEXT_EQ);
}

static __always_inline int test(struct scratch *s, const struct mt_plan *p, __u32 i, bool may_fault)
{
	const struct mt_plan_test *t = &p->tests[i & (MT_PLAN_TESTS - 1)];

	if (t->cmp != MT_CMP_ALWAYS && s->missing[t->op & 15])
		return 0;
	if (t->cmp == MT_CMP_TEXT_EQ || t->cmp == MT_CMP_TEXT_NE)
		return compare_text(s, p, t, s->vals[t->op & 15], may_fault);
	return compare(t->cmp, t->signed_, s->vals[t->op & 15], t->value);
}

__noinline int mt_test_n(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? test(s, p, i, false) : 0;
}

__noinline int mt_test_s(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? test(s, p, i, true) : 0;
}

/* Begin of a span with a predicate: its end will be asked for what was said here. */
__noinline int mt_nest_push(struct scratch *s, __u32 spec, __u32 yes)
{
	int i;

	if (!s)
		return 0;
	for (i = 0; i < MT_PLAN_NEST; i++) {
		if (s->nest[i].depth && s->nest[i].spec != spec)
			continue;
		if (!s->nest[i].depth)
			s->nest[i].bits = 0;
		s->nest[i].spec = spec;
		s->nest[i].bits = s->nest[i].bits << 1 | (yes & 1);
		s->nest[i].depth++;
		return 0;
	}
	return 0;
}

/* What the predicate said at the begin; yes if that was not seen. */
__noinline int mt_nest_pop(struct scratch *s, __u32 spec)
{
	int i, yes;

	if (!s)
		return 1;
	for (i = 0; i < MT_PLAN_NEST; i++) {
		if (!s->nest[i].depth || s->nest[i].spec != spec)
			continue;
		yes = s->nest[i].bits & 1;
		s->nest[i].bits = s->nest[i].bits >> 1 | 1ull << 63; /* deeper than 64: yes */
		s->nest[i].depth--;
		return yes;
	}
	return 1;
}

#endif
