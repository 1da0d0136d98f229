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

bool mt_usdt_is(struct mt_str s, const char *t)
{
	return s.len == strlen(t) && !memcmp(s.p, t, s.len);
}

static const char *const type_names[] = {
	[MT_UT_NATURAL] = "", [MT_UT_I8] = "i8",   [MT_UT_I16] = "i16", [MT_UT_I32] = "i32",
	[MT_UT_I64] = "i64",  [MT_UT_U8] = "u8",   [MT_UT_U16] = "u16", [MT_UT_U32] = "u32",
	[MT_UT_U64] = "u64",  [MT_UT_F32] = "f32", [MT_UT_F64] = "f64", [MT_UT_BOOL] = "bool",
	[MT_UT_HEX] = "hex",  [MT_UT_STR] = "str",
};

bool mt_usdt_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool mt_usdt_ident(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void mt_usdt_skip(struct mt_usdt_parse *p)
{
	while (p->s.p < p->s.end && mt_usdt_blank(*p->s.p))
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

struct mt_str mt_usdt_identifier(struct mt_usdt_parse *p)
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
bool mt_usdt_arg_word(struct mt_usdt_parse *p, uint8_t *ret)
{
	const char *at = p->s.p;
	struct mt_str w = mt_usdt_identifier(p);
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

	if (!mt_usdt_arg_word(p, ret))
		return mt_usdt_bad(p, at, "an argument is expected: arg0 .. arg11");
	return *ret < MT_MAX_ARGS ? 0 : mt_usdt_bad(p, at, "a probe has 12 arguments at most: arg0 .. arg11");
}

static int arg_type(struct mt_usdt_parse *p, struct mt_usdt_arg *a)
{
	const char *at = p->s.p;
	struct mt_str w = mt_usdt_identifier(p);

	for (unsigned i = 1; i < sizeof(type_names) / sizeof(*type_names); i++) {
		if (!mt_usdt_is(w, type_names[i]))
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

int mt_usdt_argument(struct mt_usdt_parse *p, struct mt_usdt_arg *a)
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

/* ---- All ------------------------------------------------------------------------------------------ */

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
	s->key = s->end_key = s->while_ = MT_USDT_NO_ARG;
	p.start = s->source;
	p.s = (struct mt_scan){s->source, s->source + strlen(s->source)};
	mt_usdt_skip(&p);
	r = probes(&p);
	if (!r)
		r = mt_usdt_words(&p);
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
