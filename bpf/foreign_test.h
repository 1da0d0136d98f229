/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Predicates on the operands of foreign sites. Part of foreign.h. */
#ifndef MT_FOREIGN_TEST_H
#define MT_FOREIGN_TEST_H

static __always_inline bool compare(__u8 cmp, __u8 num, unsigned long long a, unsigned long long b)
{
	if (!mt_num_order(num, &a) || !mt_num_order(num, &b))
		return false;
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

/* The beginning of a text into s->cmp, zeros behind it. */
static __always_inline bool short_text(struct scratch *s, __u64 ptr, bool may_fault)
{
	int i;

	for (i = 0; i < MT_PLAN_TEXT / 8 + 1; i++)
		s->cmp[i] = 0;
	return read_text(s->cmp, MT_PLAN_TEXT + 1, ptr, may_fault) >= 0;
}

static __always_inline bool compare_text(struct scratch *s, const struct mt_plan *p,
					 const struct mt_plan_test *t, __u64 ptr, bool may_fault)
{
	const __u64 *want = (const __u64 *)p->texts[t->text & 1];
	__u64 diff = 0;
	int i;

	if (!short_text(s, ptr, may_fault))
		return false;
	for (i = 0; i < MT_PLAN_TEXT / 8; i++)
		diff |= s->cmp[i] ^ want[i];
	return (diff == 0) == (t->cmp == MT_CMP_TEXT_EQ);
}

static __always_inline int test(struct scratch *s, const struct mt_plan *p, __u32 i, bool may_fault)
{
	const struct mt_plan_test *t = &p->tests[i & (MT_PLAN_TESTS - 1)];

	if (s->missing[t->op & 15])
		return 0;
	if (t->cmp == MT_CMP_TEXT_EQ || t->cmp == MT_CMP_TEXT_NE)
		return compare_text(s, p, t, s->vals[t->op & 15], may_fault);
	return compare(t->cmp, t->num, s->vals[t->op & 15], t->value);
}

__noinline int mt_test_n(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? test(s, p, i, false) : 0;
}

__noinline int mt_test_s(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? test(s, p, i, true) : 0;
}

/* The key of a span that is a text, as a number. 0: it could not be read. */
static __always_inline int text_key(struct scratch *s, __u32 op, bool may_fault)
{
	__u64 h = 0x9e3779b97f4a7c15ull;
	int i;

	if (!short_text(s, s->vals[op & 15], may_fault))
		return 0;
	for (i = 0; i < MT_PLAN_TEXT / 8; i++) {
		h = (h ^ s->cmp[i]) * 0xd6e8feb86659fd93ull;
		h ^= h >> 32;
	}
	s->key = h;
	return 1;
}

__noinline int mt_text_key_n(struct scratch *s, __u32 op)
{
	return s ? text_key(s, op, false) : 0;
}

__noinline int mt_text_key_s(struct scratch *s, __u32 op)
{
	return s ? text_key(s, op, true) : 0;
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
