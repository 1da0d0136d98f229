/* SPDX-License-Identifier: BSD-3-Clause */
/* What follows the probes in a spec: fields, key, counter, name, level, and whether there is a predicate. */
#include "usdt_spec_int.h"

#include <errno.h>
#include <string.h>

static int add_field(struct mt_usdt_parse *p, const char *at, struct mt_str name, const struct mt_usdt_arg *a)
{
	struct mt_usdt_spec *s = p->spec;

	if (s->nfields == MONTRACE_MAX_FIELDS)
		return mt_usdt_bad(p, at, "more than 16 fields");
	for (unsigned i = 0; i < s->nfields; i++)
		if (s->fields[i].name.len == name.len && !memcmp(s->fields[i].name.p, name.p, name.len))
			return mt_usdt_bad(p, at, "two fields of one name");
	s->fields[s->nfields++] = (struct mt_usdt_field){name, *a};
	return 0;
}

/* "argN[:type]" or "FIELD=argN[:type]" */
static int field(struct mt_usdt_parse *p)
{
	const char *at = p->s.p;
	struct mt_usdt_arg a;
	struct mt_str name;
	uint8_t n;

	if (mt_usdt_arg_word(p, &n)) {
		name = (struct mt_str){at, (uint32_t)(p->s.p - at)};
		if (mt_scan_peek(&p->s) != '=') {
			p->s.p = at;
			return mt_usdt_argument(p, &a) ? -EINVAL : add_field(p, at, name, &a);
		}
	} else {
		name = mt_usdt_identifier(p);
	}
	if (!name.len || !mt_scan_eat(&p->s, '='))
		return mt_usdt_bad(p, at,
				   "unknown word: FIELD=argN, key=, counter=, name=, level=, while=, nested "
				   "or `if` are known");
	if (name.len > 64)
		return mt_usdt_bad(p, at, "a field's name has 64 characters at most");
	return mt_usdt_argument(p, &a) ? -EINVAL : add_field(p, at, name, &a);
}

/* "end.FIELD=argN[:type]" */
static int end_field(struct mt_usdt_parse *p, const char *at)
{
	struct mt_usdt_spec *s = p->spec;
	struct mt_str name = mt_usdt_identifier(p);
	struct mt_usdt_arg a;

	if (s->kind != MT_USDT_SPAN)
		return mt_usdt_bad(p, at, "end.FIELD= is for spans (BEGIN..END)");
	if (!name.len || name.len > 64 || !mt_scan_eat(&p->s, '='))
		return mt_usdt_bad(p, at, "end.FIELD=argN is expected");
	if (s->nend_fields == MONTRACE_MAX_FIELDS)
		return mt_usdt_bad(p, at, "more than 16 fields");
	for (unsigned i = 0; i < s->nend_fields; i++)
		if (s->end_fields[i].name.len == name.len &&
		    !memcmp(s->end_fields[i].name.p, name.p, name.len))
			return mt_usdt_bad(p, at, "two fields of one name");
	if (mt_usdt_argument(p, &a))
		return -EINVAL;
	s->end_fields[s->nend_fields++] = (struct mt_usdt_field){name, a};
	return 0;
}

static int key_arg(struct mt_usdt_parse *p, uint8_t *ret_arg, bool *ret_text)
{
	const char *at;

	if (mt_usdt_arg_number(p, ret_arg))
		return -EINVAL;
	at = p->s.p;
	*ret_text = mt_scan_eat(&p->s, ':');
	if (*ret_text && !mt_usdt_is(mt_usdt_identifier(p), "str"))
		return mt_usdt_bad(p, at, "a key is a number (argN) or a text that ends with NUL (argN:str)");
	return 0;
}

static int key(struct mt_usdt_parse *p, const char *at)
{
	struct mt_usdt_spec *s = p->spec;
	bool end_text;

	if (s->kind != MT_USDT_SPAN)
		return mt_usdt_bad(p, at, "key= is for spans (BEGIN..END)");
	if (s->key != MT_USDT_NO_ARG)
		return mt_usdt_bad(p, at, "key= twice");
	if (key_arg(p, &s->key, &s->key_text))
		return -EINVAL;
	s->end_key = s->key;
	end_text = s->key_text;
	at = p->s.p + 1;
	if (mt_scan_eat(&p->s, '/') && key_arg(p, &s->end_key, &end_text))
		return -EINVAL;
	return s->key_text == end_text ? 0 : mt_usdt_bad(p, at, "both keys are texts (argN:str), or none is");
}

static int counter(struct mt_usdt_parse *p, const char *at)
{
	static const struct mt_str value = {"value", 5};
	struct mt_usdt_arg a;

	if (p->spec->kind != MT_USDT_INSTANT)
		return mt_usdt_bad(
			p, at, p->spec->kind == MT_USDT_COUNTER ? "counter= twice" : "a span is no counter");
	if (p->spec->nfields)
		return mt_usdt_bad(p, at, "a counter has no other fields");
	p->spec->kind = MT_USDT_COUNTER;
	if (mt_scan_eat(&p->s, '+'))
		p->spec->how |= MT_HOW_SUM;
	if ((p->spec->how & MT_HOW_SUM) && mt_usdt_keyword(p, "1")) {
		p->spec->how |= MT_HOW_COUNT;
		p->spec->no_args = true;
		return 0;
	}
	if (mt_usdt_argument(p, &a))
		return -EINVAL;
	if (a.type == MT_UT_STR || a.type == MT_UT_HEX)
		return mt_usdt_bad(p, at, "a counter is a number");
	return add_field(p, at, value, &a);
}

static int while_(struct mt_usdt_parse *p, const char *at)
{
	if (p->spec->kind != MT_USDT_INSTANT)
		return mt_usdt_bad(p, at, "while= is for a single probe");
	p->spec->kind = MT_USDT_WHILE;
	p->spec->how |= MT_HOW_WHILE;
	return mt_usdt_arg_number(p, &p->spec->while_);
}

/* A word that is no field's name. */
static bool bare(struct mt_usdt_parse *p, const char *t)
{
	size_t n = strlen(t);

	return ((size_t)(p->s.end - p->s.p) <= n || p->s.p[n] != '=') && mt_usdt_keyword(p, t);
}

static int level(struct mt_usdt_parse *p)
{
	const char *at = p->s.p;
	struct mt_str w = mt_usdt_identifier(p);

	for (unsigned l = MONTRACE_TRACE; l <= MONTRACE_ERROR; l++) {
		if (mt_usdt_is(w, mt_level_name(l))) {
			p->spec->level = (uint8_t)l;
			return 0;
		}
	}
	return mt_usdt_bad(p, at, "a level is trace, debug, info, warn or error");
}

static int set_label(struct mt_usdt_parse *p, struct mt_str text)
{
	p->spec->label = strndup(text.p, text.len);
	return p->spec->label ? 0 : -ENOMEM;
}

/* {argN} in a template needs no field of its own: one is made. */
static int label_args(struct mt_usdt_parse *p, struct mt_str text, const char *at)
{
	struct mt_usdt_spec *s = p->spec;

	for (uint32_t i = 0, end; i < text.len; i++) {
		struct mt_str name;
		bool known = false;

		if (text.p[i] != '{')
			continue;
		for (end = i + 1; end < text.len && text.p[end] != '}'; end++)
			;
		if (end == text.len)
			return mt_usdt_bad(p, at, "`{` without `}` in the name");
		name = (struct mt_str){text.p + i + 1, end - i - 1};
		for (unsigned k = 0; k < s->nfields; k++)
			known |= s->fields[k].name.len == name.len &&
				 !memcmp(s->fields[k].name.p, name.p, name.len);
		if (!known) {
			struct mt_usdt_parse sub = *p;
			struct mt_usdt_arg a;
			const char *colon = memchr(name.p, ':', name.len);

			sub.s = (struct mt_scan){name.p, name.p + name.len};
			if (colon)
				name.len = (uint32_t)(colon - name.p);
			if (mt_usdt_argument(&sub, &a) || sub.s.p != sub.s.end || add_field(p, at, name, &a))
				return mt_usdt_bad(
					p, at,
					"{...} in a name is a field of this spec, or argN, or argN:type");
		}
		i = end;
	}
	return 0;
}

/* The name's fields are looked up at the end, when all fields are known. */
struct later {
	struct mt_str label;
	const char *at;
	const char *nested;
};

static int set_nested(struct mt_usdt_parse *p, const char *at)
{
	enum mt_usdt_kind kind = p->spec->kind;

	if (p->spec->key != MT_USDT_NO_ARG ||
	    (kind != MT_USDT_SPAN && kind != MT_USDT_AUTO && kind != MT_USDT_WHILE))
		return mt_usdt_bad(p, at, "nested is for spans without a key");
	p->spec->how |= MT_HOW_NESTED;
	return 0;
}

static int name(struct mt_usdt_parse *p, const char *at, struct later *l)
{
	static const struct mt_str self = {"name", 4};
	struct mt_usdt_arg a;

	if (l->at)
		return mt_usdt_bad(p, at, "name= twice");
	l->at = p->s.p;
	if (mt_scan_peek(&p->s) == '"')
		return mt_usdt_quoted(p, &l->label);
	if (mt_usdt_argument(p, &a))
		return -EINVAL;
	if (a.type == MT_UT_NATURAL)
		a.type = MT_UT_STR;
	l->label = (struct mt_str){"{name}", 6};
	return add_field(p, at, self, &a);
}

static int word(struct mt_usdt_parse *p, struct later *l)
{
	const char *at = p->s.p;

	if (mt_usdt_keyword(p, "key="))
		return key(p, at);
	if (mt_usdt_keyword(p, "counter="))
		return counter(p, at);
	if (mt_usdt_keyword(p, "name="))
		return name(p, at, l);
	if (mt_usdt_keyword(p, "while="))
		return while_(p, at);
	if (bare(p, "nested")) {
		l->nested = at;
		return 0;
	}
	if (mt_usdt_keyword(p, "level="))
		return level(p);
	if (mt_usdt_keyword(p, "end."))
		return end_field(p, at);
	if (mt_usdt_keyword(p, "-")) {
		p->spec->no_args = true;
		return 0;
	}
	if (p->spec->kind == MT_USDT_COUNTER)
		return mt_usdt_bad(p, at, "a counter has no other fields");
	return field(p);
}

int mt_usdt_words(struct mt_usdt_parse *p)
{
	struct later l = {{NULL, 0}, NULL, NULL};
	int err = 0;

	while (!err) {
		if (p->s.p < p->s.end && !mt_usdt_blank(*p->s.p) && *p->s.p != ',')
			return mt_usdt_bad(p, p->s.p, "unexpected character");
		mt_usdt_skip(p);
		if (mt_scan_eat(&p->s, ','))
			mt_usdt_skip(p);
		if (p->s.p == p->s.end)
			break;
		if (mt_usdt_keyword(p, "if")) {
			err = mt_usdt_predicate(p);
			break;
		}
		err = word(p, &l);
	}
	if (!err && l.at)
		err = label_args(p, l.label, l.at);
	if (!err && p->spec->nfields + p->spec->nend_fields > MONTRACE_MAX_FIELDS)
		return mt_usdt_bad(p, p->start, "more than 16 fields");
	if (!err && l.at)
		err = set_label(p, l.label);
	if (!err && l.nested)
		err = set_nested(p, l.nested);
	return err;
}
