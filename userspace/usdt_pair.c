/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins and ends by the names of probes; globs that tell what the star stood for. */
#include <string.h>

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

bool mt_usdt_pair(struct mt_str begin, struct mt_str end)
{
	for (unsigned i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		uint32_t stem;

		if (!ends_with(begin, pairs[i].begin))
			continue;
		stem = begin.len - (uint32_t)strlen(pairs[i].begin);
		for (unsigned k = 0; k < 4 && pairs[i].ends[k]; k++)
			if (ends_with(end, pairs[i].ends[k]) && end.len == stem + strlen(pairs[i].ends[k]) &&
			    !memcmp(begin.p, end.p, stem))
				return true;
		return false;
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
