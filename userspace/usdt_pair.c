/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins and ends by the names of probes; globs that tell what the star stood for. */
#include <string.h>

#include "elfnotes.h"
#include "glob.h"
#include "usdt_spec.h"

/* Longer endings first: "__start" before "_start". */
static const struct {
	const char *begin, *ends[4];
} pairs[] = {
	{"__start", {"__done", "__end", "__stop", "__finish"}},
	{"__begin", {"__end", "__done"}},
	{"__entry", {"__return", "__exit"}},
	{"__enter", {"__exit", "__return", "__leave"}},
	{"-start", {"-end", "-done", "-stop"}},
	{"-begin", {"-end", "-done"}},
	{"-entry", {"-return", "-exit"}},
	{"-enter", {"-exit", "-return"}},
	{"_start", {"_done", "_end", "_stop", "_finish"}},
	{"_begin", {"_end", "_done"}},
	{"_entry", {"_return", "_exit"}},
	{"_enter", {"_exit", "_return", "_leave"}},
};

static bool ends_with(struct mt_str s, const char *t)
{
	uint32_t n = (uint32_t)strlen(t);

	return s.len > n && !memcmp(s.p + s.len - n, t, n);
}

bool mt_usdt_begin(struct mt_str name, uint32_t *ret_stem)
{
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		if (ends_with(name, pairs[i].begin)) {
			*ret_stem = name.len - (uint32_t)strlen(pairs[i].begin);
			return true;
		}
	}
	return false;
}

bool mt_usdt_end_name(struct mt_str begin, unsigned k, char *buf, size_t cap, struct mt_str *ret_end)
{
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		size_t stem, end;

		if (!ends_with(begin, pairs[i].begin))
			continue;
		if (k >= 4 || !pairs[i].ends[k])
			return false;
		stem = begin.len - strlen(pairs[i].begin);
		end = strlen(pairs[i].ends[k]);
		if (stem + end > cap)
			return false;
		memcpy(buf, begin.p, stem);
		memcpy(buf + stem, pairs[i].ends[k], end);
		*ret_end = (struct mt_str){buf, (uint32_t)(stem + end)};
		return true;
	}
	return false;
}

bool mt_usdt_pair(struct mt_str begin, struct mt_str end)
{
	struct mt_str want;
	char name[1100];

	for (unsigned k = 0; mt_usdt_end_name(begin, k, name, sizeof(name), &want); k++)
		if (want.len == end.len && !memcmp(want.p, end.p, end.len))
			return true;
	return false;
}

bool mt_usdt_spec_wants(const struct mt_usdt_spec *s, struct mt_str provider, struct mt_str name)
{
	uint32_t stem;

	if (s->kind == MT_USDT_AUTO)
		return mt_glob(s->provider, provider) && mt_usdt_begin(name, &stem);
	for (unsigned i = 0; i < s->nnames; i++)
		if (mt_glob(s->provider, provider) && mt_glob(s->names[i], name))
			return true;
	for (unsigned i = 0; i < s->nends; i++)
		if (mt_glob(s->end_provider, provider) && mt_glob(s->ends[i], name))
			return true;
	return false;
}

bool mt_usdt_when(const struct mt_elfnotes *n, const struct mt_usdt_whens *w)
{
	for (unsigned k = 0; k < w->n; k++) {
		struct mt_str provider = {w->v[k].provider, (uint32_t)strlen(w->v[k].provider)};
		struct mt_str name = {w->v[k].name, (uint32_t)strlen(w->v[k].name)};

		for (uint32_t i = n->nnative; i < n->nprobes; i++) {
			const struct mt_probe *p = &n->probes[i];

			if (mt_glob(provider, (struct mt_str){p->provider, (uint32_t)strlen(p->provider)}) &&
			    mt_glob(name, (struct mt_str){p->name, (uint32_t)strlen(p->name)}))
				return true;
		}
	}
	return false;
}

bool mt_usdt_match(struct mt_str glob, struct mt_str text, struct mt_str *ret_star)
{
	const char *star = memchr(glob.p, '*', glob.len);
	uint32_t before, after;

	if (!mt_glob(glob, text))
		return false;
	*ret_star = (struct mt_str){"", 0};
	if (!star)
		return true;
	before = (uint32_t)(star - glob.p);
	after = glob.len - before - 1;
	if (!memchr(star + 1, '*', after) && before + after <= text.len)
		*ret_star = (struct mt_str){text.p + before, text.len - before - after};
	return true;
}
