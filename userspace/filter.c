/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directives are few and verdicts are made once a callsite, so a plain list is enough: the verdict walks
 * it and keeps the longest target that matches. What a user says about a target replaces what was said
 * before, the built-in directives included.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "filter.h"

#define LEVEL_OFF (MONTRACE_ERROR + 1) /* above everything */
#define MAX_DIRECTIVES 1024u

struct directive {
	char *text;   /* as the user wrote it, trimmed */
	char *target; /* NULL: the bare level */
	size_t target_len;
	unsigned level; /* callsites of this level and above pass */
};

struct mt_filter {
	enum mt_mode mode;
	bool compat_prefix;
	char **prefixes;
	uint32_t n_prefixes;
	struct directive *v;
	uint32_t n;
};

/* Part of the directives' text. */
struct span {
	size_t at, len;
};

static bool is_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && !strncasecmp(s, word, len);
}

int mt_mode_parse(const char *text, enum mt_mode *ret_mode)
{
	static const struct {
		const char *word;
		enum mt_mode mode;
	} words[] = {
		{"off", MT_MODE_OFF},   {"false", MT_MODE_OFF}, {"0", MT_MODE_OFF},  {"none", MT_MODE_OFF},
		{"user", MT_MODE_USER}, {"true", MT_MODE_USER}, {"1", MT_MODE_USER}, {"dev", MT_MODE_DEV},
		{"all", MT_MODE_DEV},   {"debug", MT_MODE_DEV},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!strcasecmp(text, words[i].word)) {
			*ret_mode = words[i].mode;
			return 0;
		}
	}
	return -EINVAL;
}

/* off, a level's name, or 1 (error) to 5 (trace). False if s is none of them. */
static bool parse_level(const char *s, size_t len, unsigned *ret_level)
{
	static const char *const words[] = {"", "trace", "debug", "info", "warn", "error", "off"};

	if (len == 1 && *s >= '1' && *s <= '5') {
		*ret_level = MONTRACE_ERROR - (unsigned)(*s - '1');
		return true;
	}
	for (unsigned i = MONTRACE_TRACE; i <= LEVEL_OFF; i++) {
		if (is_word(s, len, words[i])) {
			*ret_level = i;
			return true;
		}
	}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(const char *s, struct span p)
{
	while (p.len && is_blank(s[p.at]))
		p.at++, p.len--;
	while (p.len && is_blank(s[p.at + p.len - 1]))
		p.len--;
	return p;
}

/* Where and why parsing failed. */
struct fault {
	size_t at;
	const char *why;
};

static int fail(struct fault *f, size_t at, const char *why)
{
	f->at = at;
	f->why = why;
	return -EINVAL;
}

static int check_target(const char *s, struct span t, struct fault *f)
{
	for (size_t i = t.at; i < t.at + t.len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (is_blank(s[i]))
			return fail(f, i, "space inside of a target");
		if (c < ' ' || c == 0x7f)
			return fail(f, i, "control character");
		if (strchr("[]{}", c))
			return fail(f, i, "filters on spans and fields are not supported");
	}
	return 0;
}

/* Adds or replaces. target NULL: the bare level. */
static int set(struct mt_filter *f, const char *target, size_t len, unsigned level, const char *text,
	       size_t text_len)
{
	struct directive *d = NULL;
	char *copy = strndup(text, text_len);

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->n && !d; i++)
		if (!f->v[i].target == !target &&
		    (!target || (f->v[i].target_len == len && !memcmp(f->v[i].target, target, len))))
			d = &f->v[i];
	if (!d) { /* the caller has checked that there is room */
		d = &f->v[f->n];
		*d = (struct directive){.target_len = len};
		d->target = target ? strndup(target, len) : NULL;
		if (target && !d->target) {
			free(copy);
			return -ENOMEM;
		}
		f->n++;
	}
	free(d->text);
	d->text = copy;
	d->level = level;
	return 0;
}

static int parse_pair(const char *s, struct span p, const char *eq, struct mt_filter *f, struct fault *fault)
{
	size_t end = p.at + p.len, at = (size_t)(eq - s);
	struct span target = trim(s, (struct span){p.at, at - p.at});
	struct span value = trim(s, (struct span){at + 1, end - at - 1});
	const char *again = memchr(eq + 1, '=', end - at - 1);
	unsigned level;
	int r;

	if (!target.len)
		return fail(fault, at, "no target before '='");
	r = check_target(s, target, fault);
	if (r)
		return r;
	if (again)
		return fail(fault, (size_t)(again - s), "more than one '='");
	if (!value.len)
		return fail(fault, at + 1, "no level after '='");
	if (!parse_level(s + value.at, value.len, &level))
		return fail(fault, value.at, "unknown level (off, error, warn, info, debug, trace, 1 to 5)");
	return set(f, s + target.at, target.len, level, s + p.at, p.len);
}

/* One directive, trimmed and not empty. */
static int parse_one(const char *s, struct span p, struct mt_filter *f, struct fault *fault)
{
	const char *eq = memchr(s + p.at, '=', p.len);
	unsigned level;
	int r;

	if (f->n == MAX_DIRECTIVES)
		return fail(fault, p.at, "too many directives");
	if (eq)
		return parse_pair(s, p, eq, f, fault);
	if (parse_level(s + p.at, p.len, &level))
		return set(f, NULL, 0, level, s + p.at, p.len);
	if (strspn(s + p.at, "0123456789") >= p.len)
		return fail(fault, p.at, "unknown level (off, error, warn, info, debug, trace, 1 to 5)");
	r = check_target(s, p, fault);
	return r ? r : set(f, s + p.at, p.len, MONTRACE_TRACE, s + p.at, p.len);
}

static int parse_all(const char *s, struct mt_filter *f, struct fault *fault)
{
	for (size_t at = 0;; at++) {
		size_t len = strcspn(s + at, ",");
		struct span p = trim(s, (struct span){at, len});
		int r = p.len ? parse_one(s, p, f, fault) : 0;

		if (r)
			return r;
		at += len;
		if (!s[at])
			return 0;
	}
}

static int add_prefix(struct mt_filter *f, const char *prefix)
{
	f->prefixes[f->n_prefixes] = strdup(prefix);
	return f->prefixes[f->n_prefixes++] ? 0 : -ENOMEM;
}

int mt_filter_new(const struct mt_filter_opts *opts, struct mt_filter **ret_filter, size_t *ret_pos,
		  const char **ret_why)
{
	struct mt_filter *f = calloc(1, sizeof(*f));
	struct fault fault = {0};
	int r = -ENOMEM;

	if (!f)
		return r;
	f->mode = opts->mode;
	f->compat_prefix = opts->compat_prefix;
	f->v = calloc(MAX_DIRECTIVES, sizeof(*f->v));
	f->prefixes = calloc(opts->n_user_prefixes + 1ul, sizeof(*f->prefixes));
	if (!f->v || !f->prefixes)
		goto out;
	r = add_prefix(f, MT_USER_PREFIX_DEFAULT);
	for (uint32_t i = 0; !r && i < opts->n_user_prefixes; i++)
		r = add_prefix(f, opts->user_prefixes[i]);
	if (!r)
		r = set(f, "tokio", 5, LEVEL_OFF, "tokio=off", 9);
	if (!r)
		r = set(f, "runtime", 7, LEVEL_OFF, "runtime=off", 11);
	if (!r && opts->directives)
		r = parse_all(opts->directives, f, &fault);
	if (r)
		goto out;
	*ret_filter = f;
	f = NULL;
out:
	if (r == -EINVAL && ret_pos)
		*ret_pos = fault.at;
	if (r == -EINVAL && ret_why)
		*ret_why = fault.why;
	mt_filter_free(f);
	return r;
}

void mt_filter_free(struct mt_filter *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		free(f->v[i].text);
		free(f->v[i].target);
	}
	for (uint32_t i = 0; i < f->n_prefixes; i++)
		free(f->prefixes[i]);
	free(f->v);
	free(f->prefixes);
	free(f);
}

static bool matches(const struct mt_filter *f, const struct directive *d, const char *target)
{
	const char *rest;

	if (!d->target)
		return true;
	if (strncmp(target, d->target, d->target_len))
		return false;
	rest = target + d->target_len;
	return f->compat_prefix || !*rest || (rest[0] == ':' && rest[1] == ':');
}

/* The directive that decides, NULL if none. The bare level has length 0: anything else is longer. */
static const struct directive *decide(const struct mt_filter *f, const char *target)
{
	const struct directive *best = NULL;

	for (uint32_t i = 0; i < f->n; i++)
		if (matches(f, &f->v[i], target) && (!best || f->v[i].target_len > best->target_len))
			best = &f->v[i];
	return best;
}

bool mt_filter_user_facing(const struct mt_filter *f, const struct mt_callsite *cs)
{
	if (cs->flags & MONTRACE_CSF_USER)
		return true;
	for (uint32_t i = 0; i < f->n_prefixes; i++)
		if (!strncmp(cs->target, f->prefixes[i], strlen(f->prefixes[i])))
			return true;
	return false;
}

/* Names and late fields say nothing by themselves: they belong to what is traced anyway. */
static bool always_passes(const struct mt_callsite *cs)
{
	return cs->class_ == MONTRACE_CLASS_RECORD || cs->class_ == MONTRACE_CLASS_THREAD_NAME ||
	       cs->class_ == MONTRACE_CLASS_PROCESS_NAME || cs->class_ == MONTRACE_CLASS_EXECUTION_ID;
}

bool mt_filter_verdict(const struct mt_filter *f, const struct mt_callsite *cs,
		       enum mt_verdict_rule *ret_rule, const char **ret_text)
{
	enum mt_verdict_rule rule = MT_RULE_PASS;
	const struct directive *d = NULL;

	if (f->mode == MT_MODE_OFF) {
		rule = MT_RULE_MODE_OFF;
	} else if (!always_passes(cs)) {
		if (f->mode == MT_MODE_USER && !mt_filter_user_facing(f, cs))
			rule = MT_RULE_MODE_USER;
		else
			d = decide(f, cs->target);
		if (d && cs->level < d->level)
			rule = MT_RULE_DIRECTIVE;
	}
	if (ret_rule)
		*ret_rule = rule;
	if (ret_text)
		*ret_text = d ? d->text : "";
	return rule == MT_RULE_PASS;
}
