/* SPDX-License-Identifier: BSD-3-Clause */
/* "arg0 > 1000 && arg1 == \"x\" || ..." */
#include "usdt_spec_int.h"

#include <errno.h>
#include <string.h>

#include "shared.h"

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

static int number_value(struct mt_usdt_parse *p, struct mt_usdt_test *t)
{
	const char *at = p->s.p;
	int err;

	t->negative = mt_scan_eat(&p->s, '-');
	err = mt_scan_number(&p->s, &t->value);
	if (err == -ERANGE || (t->negative && t->value > 1ull << 63))
		return mt_usdt_bad(p, at, "the number is too big");
	if (err || mt_usdt_ident(mt_scan_peek(&p->s)) || mt_scan_peek(&p->s) == '.')
		return mt_usdt_bad(p, at, "a whole number or a text in quotes is expected");
	t->negative = t->negative && t->value;
	return 0;
}

int mt_usdt_predicate(struct mt_usdt_parse *p)
{
	struct mt_usdt_spec *s = p->spec;
	bool alt = false;

	for (;;) {
		struct mt_usdt_test *t = &s->tests[s->ntests];

		mt_usdt_skip(p);
		if (s->ntests == sizeof(s->tests) / sizeof(*s->tests))
			return mt_usdt_bad(p, p->s.p, "more than 8 comparisons");
		t->alt = alt;
		if (mt_usdt_arg_number(p, &t->arg))
			return -EINVAL;
		mt_usdt_skip(p);
		if (comparison(p, t))
			return -EINVAL;
		mt_usdt_skip(p);
		if (mt_scan_peek(&p->s) == '"' ? text_value(p, t) : number_value(p, t))
			return -EINVAL;
		s->ntests++;
		mt_usdt_skip(p);
		if (p->s.p == p->s.end)
			return 0;
		alt = mt_usdt_keyword(p, "||");
		if (!alt && !mt_usdt_keyword(p, "&&"))
			return mt_usdt_bad(p, p->s.p, "&& or || is expected");
	}
}
