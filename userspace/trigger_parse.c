/* SPDX-License-Identifier: BSD-3-Clause */
/* Text -> condition. Words are split first; an operator is a word of its own, with or without spaces around.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trigger_int.h"

#define MAX_WORDS 8

struct word {
	struct mt_str s;
	size_t pos;
	bool quoted;
	enum tr_op op; /* TR_NONE: no operator */
};

struct parse {
	struct word w[MAX_WORDS];
	unsigned n;
	size_t len; /* of the text: the place of what is missing */
	size_t pos;
	const char *why;
};

static int fail(struct parse *p, size_t pos, const char *why)
{
	p->pos = pos;
	p->why = why;
	return -EINVAL;
}

static enum tr_op operator_at(const char *s, size_t *ret_len)
{
	*ret_len = 1;
	switch (s[0]) {
	case '=':
		*ret_len = s[1] == '=' ? 2 : 1;
		return TR_EQ;
	case '!':
		*ret_len = 2;
		return s[1] == '=' ? TR_NE : TR_NONE;
	case '>':
		*ret_len = s[1] == '=' ? 2 : 1;
		return s[1] == '=' ? TR_GE : TR_GT;
	case '<':
		*ret_len = s[1] == '=' ? 2 : 1;
		return s[1] == '=' ? TR_LE : TR_LT;
	case '~':
		return TR_LIKE;
	default:
		return TR_NONE;
	}
}

/* A quoted word at s; its text goes to *out. Returns the length with quotes, 0 if it does not end. */
static size_t quoted(const char *s, char **out, struct mt_str *ret)
{
	size_t i = 1;

	ret->p = *out;
	while (s[i] && s[i] != '"') {
		if (s[i] == '\\' && (s[i + 1] == '"' || s[i + 1] == '\\'))
			i++;
		*(*out)++ = s[i++];
	}
	ret->len = (uint32_t)(*out - ret->p);
	*(*out)++ = '\0';
	return s[i] ? i + 1 : 0;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

/* out takes strlen(s) * 2 + 2 bytes. */
static int split(struct parse *p, const char *s, char *out)
{
	size_t i = 0, len;

	p->len = strlen(s);
	while (true) {
		struct word *w;

		while (blank(s[i]))
			i++;
		if (!s[i])
			return 0;
		if (p->n == MAX_WORDS)
			return fail(p, i, "too many words");
		w = &p->w[p->n++];
		w->pos = i;
		if (s[i] == '"') {
			w->quoted = true;
			len = quoted(s + i, &out, &w->s);
			if (!len)
				return fail(p, i, "the quote has no end");
			i += len;
			continue;
		}
		w->op = operator_at(s + i, &len);
		if (w->op != TR_NONE) {
			i += len;
			continue;
		}
		w->s.p = out;
		for (; s[i] && !blank(s[i]) && s[i] != '"' && operator_at(s + i, &len) == TR_NONE; i++)
			*out++ = s[i];
		w->s.len = (uint32_t)(out - w->s.p);
		*out++ = '\0';
	}
}

static bool is(const struct parse *p, unsigned i, const char *text)
{
	const struct word *w = &p->w[i];

	return i < p->n && !w->quoted && w->op == TR_NONE && w->s.len == strlen(text) &&
	       memcmp(w->s.p, text, w->s.len) == 0;
}

static size_t place(const struct parse *p, unsigned i)
{
	return i < p->n ? p->w[i].pos : p->len;
}

static int want_word(struct parse *p, unsigned i, const char *why)
{
	return i < p->n && p->w[i].op == TR_NONE ? 0 : fail(p, place(p, i), why);
}

static int want_end(struct parse *p, unsigned i)
{
	return p->n <= i ? 0 : fail(p, place(p, i), "nothing may follow here");
}

/* > or >=. */
static int want_more(struct parse *p, unsigned i, enum tr_op *ret_op)
{
	if (i >= p->n || (p->w[i].op != TR_GT && p->w[i].op != TR_GE))
		return fail(p, place(p, i), "> or >= is missing");
	*ret_op = p->w[i].op;
	return 0;
}

/* Digits at the start of s. False: none, or too large. */
static bool digits(struct mt_str s, uint64_t *ret_n, uint32_t *ret_len)
{
	uint64_t n = 0;
	uint32_t i;

	for (i = 0; i < s.len && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
		unsigned d = (unsigned)(s.p[i] - '0');

		if (n > (UINT64_MAX - d) / 10)
			return false;
		n = n * 10 + d;
	}
	*ret_n = n;
	*ret_len = i;
	return i > 0;
}

static int duration(struct parse *p, unsigned i, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	struct mt_str s;
	uint32_t len, u;
	uint64_t n;

	if (want_word(p, i, "a duration is missing") < 0)
		return -EINVAL;
	s = p->w[i].s;
	if (!digits(s, &n, &len))
		return fail(p, p->w[i].pos, "this is no duration");
	for (u = 0; u < sizeof(units) / sizeof(units[0]); u++)
		if (strcmp(units[u].name, s.p + len) == 0)
			break;
	if (u == sizeof(units) / sizeof(units[0]))
		return fail(p, p->w[i].pos + len, "the unit must be ns, us, ms or s");
	if (n > UINT64_MAX / units[u].ns)
		return fail(p, p->w[i].pos, "the duration is too long");
	*ret_ns = n * units[u].ns;
	return 0;
}

static int parse_span(struct parse *p, struct mt_trigger *t)
{
	int rc = want_word(p, 1, "the name of a span is missing");

	t->what = TR_SPAN;
	rc = rc < 0 ? rc : want_more(p, 2, &t->op);
	rc = rc < 0 ? rc : duration(p, 3, &t->u);
	rc = rc < 0 ? rc : want_end(p, 4);
	t->name = p->w[1].s;
	return rc;
}

static int parse_lost(struct parse *p, struct mt_trigger *t)
{
	uint32_t len;
	int rc = want_more(p, 1, &t->op);

	t->what = TR_LOST;
	rc = rc < 0 ? rc : want_word(p, 2, "a number is missing");
	if (rc < 0)
		return rc;
	if (!digits(p->w[2].s, &t->u, &len) || len != p->w[2].s.len)
		return fail(p, p->w[2].pos, "this is no number");
	return want_end(p, 3);
}

static int parse_level(struct parse *p, struct mt_trigger *t)
{
	unsigned level;

	t->what = TR_LEVEL;
	t->op = p->w[2].op;
	if (t->op == TR_LIKE)
		return fail(p, p->w[2].pos, "a level is not compared with ~");
	if (want_word(p, 3, "a level is missing") < 0)
		return -EINVAL;
	for (level = MONTRACE_TRACE; level <= MONTRACE_ERROR; level++)
		if (strcmp(mt_level_name(level), p->w[3].s.p) == 0)
			break;
	if (level > MONTRACE_ERROR)
		return fail(p, p->w[3].pos, "the level must be trace, debug, info, warn or error");
	t->u = level;
	return want_end(p, 4);
}

/* What an unquoted value is as a number. */
static void number(struct mt_trigger *t)
{
	struct mt_str s = t->value, abs = s;
	uint32_t len;
	char *end;

	if (s.len && s.p[0] == '-')
		abs = (struct mt_str){s.p + 1, s.len - 1};
	if (strcmp(s.p, "true") == 0 || strcmp(s.p, "false") == 0) {
		t->num = TR_UINT;
		t->u = s.p[0] == 't';
	} else if (digits(abs, &t->u, &len) && len == abs.len) {
		t->num = TR_UINT;
		if (abs.p != s.p && t->u && t->u <= 1ull << 63) {
			t->num = TR_INT;
			t->i = (int64_t)(0 - t->u);
		} else if (abs.p != s.p && t->u) {
			t->num = TR_REAL;
			t->f = -(double)t->u;
		}
	} else if (abs.len && ((abs.p[0] >= '0' && abs.p[0] <= '9') || abs.p[0] == '.')) {
		t->f = strtod(s.p, &end);
		if (!*end && isfinite(t->f))
			t->num = TR_REAL;
	}
}

static int parse_event(struct parse *p, struct mt_trigger *t)
{
	int rc = want_word(p, 1, "the name of an event, or `level`, is missing");

	if (rc < 0)
		return rc;
	if (is(p, 1, "level") && p->n > 2 && p->w[2].op != TR_NONE)
		return parse_level(p, t);
	t->what = TR_EVENT;
	t->name = p->w[1].s;
	if (p->n == 2)
		return 0;
	rc = want_word(p, 2, "the name of a field is missing");
	if (rc < 0)
		return rc;
	t->field = p->w[2].s;
	if (p->n < 4 || p->w[3].op == TR_NONE)
		return fail(p, place(p, 3), "an operator is missing: = != > >= < <= ~");
	t->op = p->w[3].op;
	rc = want_word(p, 4, "a value is missing");
	if (rc < 0)
		return rc;
	t->value = p->w[4].s;
	if (!p->w[4].quoted)
		number(t);
	if (t->num == TR_TEXT && t->op != TR_EQ && t->op != TR_NE && t->op != TR_LIKE)
		return fail(p, p->w[4].pos, "a text is compared with = != or ~");
	return want_end(p, 5);
}

static int parse(struct parse *p, const char *text, struct mt_trigger *t)
{
	int rc = split(p, text, t->owned);

	if (rc < 0)
		return rc;
	if (is(p, 0, "span"))
		return parse_span(p, t);
	if (is(p, 0, "event"))
		return parse_event(p, t);
	if (is(p, 0, "lost"))
		return parse_lost(p, t);
	return fail(p, place(p, 0), "must begin with span, event or lost");
}

int mt_trigger_parse(const char *text, struct mt_trigger **ret_trigger, size_t *ret_pos, const char **ret_why)
{
	size_t len = strlen(text);
	struct parse p = {0};
	struct mt_trigger *t;
	int rc = -ENOMEM;

	if (len > MT_TRIGGER_MAX) {
		p.pos = MT_TRIGGER_MAX;
		p.why = "the text is too long";
		rc = -E2BIG;
	}
	t = rc == -E2BIG ? NULL : calloc(1, sizeof(*t));
	if (t) {
		t->text = strdup(text);
		t->owned = malloc(len * 2 + 2);
		if (t->text && t->owned)
			rc = parse(&p, text, t);
	}
	if (rc == 0) {
		*ret_trigger = t;
		return 0;
	}
	if (p.why && ret_pos)
		*ret_pos = p.pos;
	if (p.why && ret_why)
		*ret_why = p.why;
	mt_trigger_free(t);
	return rc;
}

void mt_trigger_free(struct mt_trigger *t)
{
	if (!t)
		return;
	free(t->text);
	free(t->owned);
	free(t);
}
