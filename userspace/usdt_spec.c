/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --usdt SPEC -> struct mt_usdt_spec. Words from left to right; each word is one thing, so an error names the place
 * where its word begins, or the character in it. Nothing is looked up here: whether a probe has the argument
 * is known only when there is a file.
 *
 * Example: postgresql:query__start..query__done name="{query}" query=arg0:str if arg0 != ""
 * kind SPAN, provider "postgresql", names {query__start}, ends {query__done}, label "{query}", one field, one test.
 */
#include "usdt_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shared.h"
#include "usdt_spec_int.h"

int mt_usdt_bad(struct mt_usdt_parse *p, const char *at, const char *why)
{
	p->err->pos = (size_t)(at - p->start);
	p->err->why = why;
	return -EINVAL;
}

static bool is(struct mt_str s, const char *t)
{
	return s.len == strlen(t) && !memcmp(s.p, t, s.len);
}

static const char *const type_names[] = {
	[MT_UT_NATURAL] = "", [MT_UT_I8] = "i8",   [MT_UT_I16] = "i16", [MT_UT_I32] = "i32",
	[MT_UT_I64] = "i64",  [MT_UT_U8] = "u8",   [MT_UT_U16] = "u16", [MT_UT_U32] = "u32",
	[MT_UT_U64] = "u64",  [MT_UT_F32] = "f32", [MT_UT_F64] = "f64", [MT_UT_BOOL] = "bool",
	[MT_UT_HEX] = "hex",  [MT_UT_STR] = "str",
};

const char *mt_usdt_type_name(unsigned type)
{
	return type < sizeof(type_names) / sizeof(*type_names) ? type_names[type] : "?";
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool mt_usdt_ident(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void mt_usdt_skip(struct mt_usdt_parse *p)
{
	while (p->s.p < p->s.end && blank(*p->s.p))
		p->s.p++;
}

/* The text that follows is t, and then no letter. */
bool mt_usdt_keyword(struct mt_usdt_parse *p, const char *t)
{
	size_t n = strlen(t);

	if ((size_t)(p->s.end - p->s.p) < n || memcmp(p->s.p, t, n))
		return false;
	if (mt_usdt_ident(t[n - 1]) && p->s.p + n < p->s.end && mt_usdt_ident(p->s.p[n]))
		return false;
	p->s.p += n;
	return true;
}

static struct mt_str identifier(struct mt_usdt_parse *p)
{
	struct mt_str w = {p->s.p, 0};

	while (p->s.p < p->s.end && mt_usdt_ident(*p->s.p))
		p->s.p++;
	w.len = (uint32_t)(p->s.p - w.p);
	return w;
}

/* A text in quotes; \" \\ \n \t are undone in place. */
int mt_usdt_quoted(struct mt_usdt_parse *p, struct mt_str *ret)
{
	const char *at = p->s.p;
	char *to = (char *)(uintptr_t)++p->s.p; /* the spec's own copy */

	ret->p = to;
	for (; p->s.p < p->s.end && *p->s.p != '"'; p->s.p++) {
		char c = *p->s.p;

		if (c == '\\') {
			if (++p->s.p == p->s.end)
				break;
			c = *p->s.p;
			if (c != '"' && c != '\\' && c != 'n' && c != 't')
				return mt_usdt_bad(p, p->s.p - 1,
						   "unknown escape: \\\" \\\\ \\n \\t are known");
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		*to++ = c;
	}
	if (p->s.p == p->s.end)
		return mt_usdt_bad(p, at, "text without closing quote");
	p->s.p++;
	ret->len = (uint32_t)(to - ret->p);
	return 0;
}

/* ---- Arguments ------------------------------------------------------------------------------------ */

/* "argN"; false and nothing taken if it is none. */
static bool arg_word(struct mt_usdt_parse *p, uint8_t *ret)
{
	const char *at = p->s.p;
	struct mt_str w = identifier(p);
	unsigned v = 0;

	if (w.len >= 4 && w.len <= 5 && !memcmp(w.p, "arg", 3)) {
		for (uint32_t i = 3; i < w.len; i++)
			v = w.p[i] >= '0' && w.p[i] <= '9' ? v * 10 + (unsigned)(w.p[i] - '0') : 1000;
		if (v < 100 && (w.len == 4 || w.p[3] != '0')) {
			*ret = (uint8_t)v;
			return true;
		}
	}
	p->s.p = at;
	return false;
}

int mt_usdt_arg_number(struct mt_usdt_parse *p, uint8_t *ret)
{
	const char *at = p->s.p;

	if (!arg_word(p, ret))
		return mt_usdt_bad(p, at, "an argument is expected: arg0 .. arg11");
	return *ret < MT_MAX_ARGS ? 0 : mt_usdt_bad(p, at, "a probe has 12 arguments at most: arg0 .. arg11");
}

static int arg_type(struct mt_usdt_parse *p, struct mt_usdt_arg *a)
{
	const char *at = p->s.p;
	struct mt_str w = identifier(p);

	for (unsigned i = 1; i < sizeof(type_names) / sizeof(*type_names); i++) {
		if (!is(w, type_names[i]))
			continue;
		a->type = (uint8_t)i;
		if (i != MT_UT_STR || !mt_scan_eat(&p->s, '('))
			return 0;
		if (mt_usdt_arg_number(p, &a->len))
			return -EINVAL;
		return mt_scan_eat(&p->s, ')') ? 0 : mt_usdt_bad(p, p->s.p, "`)` is missing");
	}
	return mt_usdt_bad(p, at,
			   "unknown type: i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 bool hex str str(argN)");
}

static int argument(struct mt_usdt_parse *p, struct mt_usdt_arg *a)
{
	*a = (struct mt_usdt_arg){.len = MT_USDT_NO_ARG};
	if (mt_usdt_arg_number(p, &a->arg))
		return -EINVAL;
	return mt_scan_eat(&p->s, ':') ? arg_type(p, a) : 0;
}

/* ---- Probes --------------------------------------------------------------------------------------- */

static bool name_char(char c)
{
	return mt_usdt_ident(c) || c == '*' || c == '?' || c == '-' || c == '$' || c == '@' || c == '.';
}

/* A glob; two dots end it. */
static struct mt_str name_glob(struct mt_usdt_parse *p)
{
	struct mt_str w = {p->s.p, 0};

	while (p->s.p < p->s.end && name_char(*p->s.p) &&
	       !(p->s.end - p->s.p > 1 && p->s.p[0] == '.' && p->s.p[1] == '.'))
		p->s.p++;
	w.len = (uint32_t)(p->s.p - w.p);
	return w;
}

static unsigned stars(struct mt_str s)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < s.len; i++)
		n += s.p[i] == '*';
	return n;
}

static int names(struct mt_usdt_parse *p, struct mt_str *v, uint8_t *n)
{
	const char *at;

	do {
		at = p->s.p;
		if (*n == MT_USDT_NAMES)
			return mt_usdt_bad(p, at, "more than 16 names");
		v[*n] = name_glob(p);
		if (!v[*n].len)
			return mt_usdt_bad(p, at, "the name of a probe is expected");
		++*n;
	} while (mt_scan_eat(&p->s, '|'));
	return 0;
}

static int check_pairs(struct mt_usdt_parse *p, const char *at)
{
	struct mt_usdt_spec *s = p->spec;
	unsigned i, with = 0;

	for (i = 0; i < s->nends; i++)
		with += stars(s->ends[i]) > 0;
	for (i = 0; with && i < s->nends; i++)
		if (stars(s->ends[i]) > 1)
			return mt_usdt_bad(p, s->ends[i].p,
					   "one `*` at most in an end: it is what the begin's stood for");
	for (i = 0; with && i < s->nnames; i++)
		if (stars(s->names[i]) != 1)
			return mt_usdt_bad(p, s->names[i].p,
					   "one `*` is needed in a begin whose end has one");
	for (i = 0; i < s->nends; i++)
		if (memchr(s->ends[i].p, '?', s->ends[i].len))
			return mt_usdt_bad(p, s->ends[i].p, "no `?` in an end");
	(void)at;
	return 0;
}

static int probes(struct mt_usdt_parse *p)
{
	struct mt_usdt_spec *s = p->spec;
	const char *at = p->s.p;

	if (mt_usdt_keyword(p, "auto:")) {
		s->kind = MT_USDT_AUTO;
		s->provider = name_glob(p);
		return s->provider.len ? 0 : mt_usdt_bad(p, p->s.p, "the name of a provider is expected");
	}
	s->provider = name_glob(p);
	if (!s->provider.len || !mt_scan_eat(&p->s, ':'))
		return mt_usdt_bad(p, s->provider.len ? p->s.p : at, "PROVIDER:NAME is expected");
	if (names(p, s->names, &s->nnames))
		return -EINVAL;
	if (!mt_usdt_keyword(p, ".."))
		return 0;
	s->kind = MT_USDT_SPAN;
	s->end_provider = s->provider;
	at = p->s.p;
	if (names(p, s->ends, &s->nends))
		return -EINVAL;
	if (mt_scan_eat(&p->s, ':')) {
		if (s->nends != 1)
			return mt_usdt_bad(p, at, "the provider stands before the first name");
		s->end_provider = s->ends[0];
		s->nends = 0;
		if (names(p, s->ends, &s->nends))
			return -EINVAL;
	}
	return check_pairs(p, at);
}

/* ---- Words ---------------------------------------------------------------------------------------- */

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

	if (arg_word(p, &n)) {
		name = (struct mt_str){at, (uint32_t)(p->s.p - at)};
		if (mt_scan_peek(&p->s) != '=') {
			p->s.p = at;
			return argument(p, &a) ? -EINVAL : add_field(p, at, name, &a);
		}
	} else {
		name = identifier(p);
	}
	if (!name.len || !mt_scan_eat(&p->s, '='))
		return mt_usdt_bad(
			p, at, "unknown word: FIELD=argN, key=, counter=, name=, level= or `if` are known");
	if (name.len > 64)
		return mt_usdt_bad(p, at, "a field's name has 64 characters at most");
	return argument(p, &a) ? -EINVAL : add_field(p, at, name, &a);
}

/* "end.FIELD=argN[:type]" */
static int end_field(struct mt_usdt_parse *p, const char *at)
{
	struct mt_usdt_spec *s = p->spec;
	struct mt_str name = identifier(p);
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
	if (argument(p, &a))
		return -EINVAL;
	s->end_fields[s->nend_fields++] = (struct mt_usdt_field){name, a};
	return 0;
}

static int key(struct mt_usdt_parse *p, const char *at)
{
	struct mt_usdt_spec *s = p->spec;

	if (s->kind != MT_USDT_SPAN)
		return mt_usdt_bad(p, at, "key= is for spans (BEGIN..END)");
	if (s->key != MT_USDT_NO_ARG)
		return mt_usdt_bad(p, at, "key= twice");
	if (mt_usdt_arg_number(p, &s->key))
		return -EINVAL;
	s->end_key = s->key;
	return mt_scan_eat(&p->s, '/') ? mt_usdt_arg_number(p, &s->end_key) : 0;
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
	if (argument(p, &a))
		return -EINVAL;
	if (a.type == MT_UT_STR || a.type == MT_UT_HEX)
		return mt_usdt_bad(p, at, "a counter is a number");
	p->spec->kind = MT_USDT_COUNTER;
	return add_field(p, at, value, &a);
}

static int level(struct mt_usdt_parse *p)
{
	const char *at = p->s.p;
	struct mt_str w = identifier(p);

	for (unsigned l = MONTRACE_TRACE; l <= MONTRACE_ERROR; l++) {
		if (is(w, mt_level_name(l))) {
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
			if (argument(&sub, &a) || sub.s.p != sub.s.end || add_field(p, at, name, &a))
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
};

static int name(struct mt_usdt_parse *p, const char *at, struct later *l)
{
	static const struct mt_str self = {"name", 4};
	struct mt_usdt_arg a;

	if (l->at)
		return mt_usdt_bad(p, at, "name= twice");
	l->at = p->s.p;
	if (mt_scan_peek(&p->s) == '"')
		return mt_usdt_quoted(p, &l->label);
	if (argument(p, &a))
		return -EINVAL;
	if (a.type == MT_UT_NATURAL)
		a.type = MT_UT_STR;
	l->label = (struct mt_str){"{name}", 6};
	return add_field(p, at, self, &a);
}

/* ---- All ------------------------------------------------------------------------------------------ */

static int word(struct mt_usdt_parse *p, struct later *l)
{
	const char *at = p->s.p;

	if (mt_usdt_keyword(p, "key="))
		return key(p, at);
	if (mt_usdt_keyword(p, "counter="))
		return counter(p, at);
	if (mt_usdt_keyword(p, "name="))
		return name(p, at, l);
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

static int words(struct mt_usdt_parse *p)
{
	struct later l = {{NULL, 0}, NULL};
	int err = probes(p);

	while (!err) {
		if (p->s.p < p->s.end && !blank(*p->s.p) && *p->s.p != ',')
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
	return err;
}

int mt_usdt_spec_parse(const char *text, const char *where, struct mt_usdt_spec **ret_spec,
		       struct mt_usdt_err *err)
{
	struct mt_usdt_spec *s = calloc(1, sizeof(*s));
	struct mt_usdt_parse p = {.spec = s, .err = err};
	int r = -ENOMEM;

	if (!s)
		return r;
	s->source = strdup(text);
	s->where = strdup(where ? where : "--usdt");
	if (!s->source || !s->where)
		goto fail;
	s->level = MONTRACE_INFO;
	s->key = s->end_key = MT_USDT_NO_ARG;
	p.start = s->source;
	p.s = (struct mt_scan){s->source, s->source + strlen(s->source)};
	mt_usdt_skip(&p);
	r = words(&p);
	if (r)
		goto fail;
	*ret_spec = s;
	return 0;
fail:
	mt_usdt_spec_free(s);
	return r;
}

void mt_usdt_spec_free(struct mt_usdt_spec *s)
{
	if (!s)
		return;
	free(s->source);
	free(s->where);
	free(s->label);
	free(s);
}

int mt_usdt_set_add(struct mt_usdt_set *set, struct mt_usdt_spec *spec)
{
	struct mt_usdt_spec **v;

	if (set->n == set->cap) {
		v = realloc(set->v, (set->cap * 2ul + 16) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		set->v = v;
		set->cap = set->cap * 2 + 16;
	}
	set->v[set->n++] = spec;
	return 0;
}

void mt_usdt_set_free(struct mt_usdt_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		mt_usdt_spec_free(set->v[i]);
	free(set->v);
	*set = (struct mt_usdt_set){0};
}
