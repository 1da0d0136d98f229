/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "arg0 > 1000 && (arg1 == \"x\" || arg2 < 1.5)"
 *
 * Comparisons are put down from left to right; each says which one is next if it is true, and if it is not. So the
 * kernel side needs no stack, makes none twice, and knows no brackets. While a part is read the branches that leave it
 * are open: a set of bits, one for each comparison's `yes` and one for its `no`.
 *
 * Example: a && (b || c) is a{yes: b, no: NO} b{yes: YES, no: c} c{yes: YES, no: NO}.
 */
#include "usdt_spec_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared.h"

#define MAX_BRACKETS 16 /* in one another */

/* Open branches of a part: bit i: `yes` of test i, bit 8 + i: its `no`. */
struct part {
	uint16_t yes, no;
};

static int any_of(struct mt_usdt_parse *p, unsigned depth, struct part *ret);

static int comparison(struct mt_usdt_parse *p, struct mt_usdt_test *t)
{
	static const struct {
		const char *text;
		uint8_t cmp;
	} ops[] = {{"==", MT_CMP_EQ}, {"!=", MT_CMP_NE}, {"<=", MT_CMP_LE},
		   {">=", MT_CMP_GE}, {"<", MT_CMP_LT},  {">", MT_CMP_GT}};

	for (unsigned i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		if (mt_usdt_keyword(p, ops[i].text)) {
			t->cmp = ops[i].cmp;
			return 0;
		}
	}
	return mt_usdt_bad(p, p->s.p, "a comparison is expected: == != < <= > >=");
}

static int text_value(struct mt_usdt_parse *p, struct mt_usdt_test *t)
{
	const char *at = p->s.p;

	if (t->cmp != MT_CMP_EQ && t->cmp != MT_CMP_NE)
		return mt_usdt_bad(p, at, "texts compare with == and != only");
	if (t->type != MT_UT_NATURAL)
		return mt_usdt_bad(p, at, "a number is expected");
	if (p->spec->ntexts == 2)
		return mt_usdt_bad(p, at, "more than 2 texts in a predicate");
	if (mt_usdt_quoted(p, &t->text))
		return -EINVAL;
	if (t->text.len >= MT_PLAN_TEXT)
		return mt_usdt_bad(p, at, "a text to compare with has 63 bytes at most");
	t->is_text = true;
	p->spec->ntexts++;
	return 0;
}

static const char *digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* Digits with a fraction, an exponent or both; where they end. NULL: it is no such number. */
static const char *real_end(const char *at, const char *end)
{
	const char *to = digits(at, end), *e;
	bool real = false;

	if (to == at)
		return NULL;
	if (to < end && *to == '.' && digits(to + 1, end) > to + 1) {
		to = digits(to + 1, end);
		real = true;
	}
	if (to < end && (*to == 'e' || *to == 'E')) {
		e = to + 1;
		e += e < end && (*e == '+' || *e == '-');
		if (digits(e, end) == e)
			return NULL;
		to = digits(e, end);
		real = true;
	}
	return real ? to : NULL;
}

static int number_value(struct mt_usdt_parse *p, struct mt_usdt_test *t)
{
	const char *at = p->s.p, *to;
	int err = 0;

	t->negative = mt_scan_eat(&p->s, '-');
	to = real_end(p->s.p, p->s.end);
	if (to) {
		t->is_real = true;
		t->real = strtod(p->s.p, NULL); /* the source ends with NUL; real_end saw what it takes */
		t->real = t->negative ? -t->real : t->real;
		p->s.p = to;
		if (t->real - t->real != 0)
			return mt_usdt_bad(p, at, "the number is too big");
	} else {
		err = mt_scan_number(&p->s, &t->value);
	}
	if (err == -ERANGE || (t->negative && t->value > 1ull << 63))
		return mt_usdt_bad(p, at, "the number is too big");
	if (err || mt_usdt_ident(mt_scan_peek(&p->s)) || mt_scan_peek(&p->s) == '.')
		return mt_usdt_bad(p, at, "a number (7, 0x7, -7, 0.7, 7e3) or a text in quotes is expected");
	t->negative = t->negative && t->value;
	return 0;
}

static int test_type(struct mt_usdt_parse *p, struct mt_usdt_test *t)
{
	const char *at = p->s.p;
	struct mt_str w;

	if (!mt_scan_eat(&p->s, ':'))
		return 0;
	w = mt_usdt_identifier(p);
	t->type = mt_usdt_is(w, "f32") ? MT_UT_F32 : mt_usdt_is(w, "f64") ? MT_UT_F64 : MT_UT_NATURAL;
	return t->type ? 0 : mt_usdt_bad(p, at + 1, "f32 or f64 is expected; all else is by the note");
}

static int test(struct mt_usdt_parse *p, struct part *ret)
{
	struct mt_usdt_spec *s = p->spec;
	struct mt_usdt_test *t = &s->tests[s->ntests];

	if (s->ntests == sizeof(s->tests) / sizeof(*s->tests))
		return mt_usdt_bad(p, p->s.p, "more than 8 comparisons");
	if (mt_usdt_arg_number(p, &t->arg) || test_type(p, t))
		return -EINVAL;
	mt_usdt_skip(p);
	if (comparison(p, t))
		return -EINVAL;
	mt_usdt_skip(p);
	if (mt_scan_peek(&p->s) == '"' ? text_value(p, t) : number_value(p, t))
		return -EINVAL;
	*ret = (struct part){(uint16_t)(1u << s->ntests), (uint16_t)(256u << s->ntests)};
	s->ntests++;
	return 0;
}

static int term(struct mt_usdt_parse *p, unsigned depth, struct part *ret)
{
	const char *at;

	mt_usdt_skip(p);
	at = p->s.p;
	if (!mt_scan_eat(&p->s, '('))
		return test(p, ret);
	if (depth == MAX_BRACKETS)
		return mt_usdt_bad(p, at, "more than 16 brackets in one another");
	if (any_of(p, depth + 1, ret))
		return -EINVAL;
	if (mt_scan_eat(&p->s, ')'))
		return 0;
	return p->s.p == p->s.end ? mt_usdt_bad(p, at, "`(` without `)`")
				  : mt_usdt_bad(p, p->s.p, "&&, || or `)` is expected");
}

/* Branches lead to: a test, or an end. */
static void lead(struct mt_usdt_spec *s, uint16_t branches, uint8_t to)
{
	for (unsigned i = 0; i < 8; i++) {
		if (branches >> i & 1)
			s->tests[i].yes = to;
		if (branches >> i & 256)
			s->tests[i].no = to;
	}
}

static int all_of(struct mt_usdt_parse *p, unsigned depth, struct part *ret)
{
	struct part next;

	if (term(p, depth, ret))
		return -EINVAL;
	for (;;) {
		mt_usdt_skip(p);
		if (!mt_usdt_keyword(p, "&&"))
			return 0;
		lead(p->spec, ret->yes, p->spec->ntests);
		if (term(p, depth, &next))
			return -EINVAL;
		ret->yes = next.yes;
		ret->no |= next.no;
	}
}

static int any_of(struct mt_usdt_parse *p, unsigned depth, struct part *ret)
{
	struct part next;

	if (all_of(p, depth, ret))
		return -EINVAL;
	while (mt_usdt_keyword(p, "||")) { /* all_of took the blanks */
		lead(p->spec, ret->no, p->spec->ntests);
		if (all_of(p, depth, &next))
			return -EINVAL;
		ret->no = next.no;
		ret->yes |= next.yes;
	}
	return 0;
}

int mt_usdt_predicate(struct mt_usdt_parse *p)
{
	struct part all;

	if (any_of(p, 0, &all))
		return -EINVAL;
	if (p->s.p != p->s.end)
		return mt_usdt_bad(p, p->s.p, *p->s.p == ')' ? "`)` without `(`" : "&& or || is expected");
	lead(p->spec, all.yes, MT_TEST_YES);
	lead(p->spec, all.no, MT_TEST_NO);
	return 0;
}
