/* SPDX-License-Identifier: BSD-3-Clause */
/* Foreign probes: types of the arguments, the other half of a span, the profile that has it. */
#include <stdio.h>
#include <string.h>

#include "cmd_list_int.h"
#include "usdt_operand.h"

static struct mt_str str(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

/* Types as the first site has them; a reason if the value cannot be read there. */
static void types(const struct mt_list *l, const struct mt_list_group *g, char *buf, size_t cap)
{
	struct mt_operand ops[MT_MAX_ARGS];
	unsigned n = mt_operands_parse(g->sites[0]->args, l->n->machine, ops, NULL);
	size_t at = 0;

	snprintf(buf, cap, "-");
	for (unsigned i = 0; i < n && at < cap; i++) {
		unsigned missing = ops[i].op.missing;

		at += (size_t)snprintf(buf + at, cap - at, "%sarg%u:%s%s%s%s", i ? " " : "", i,
				       mt_operand_type(&ops[i]), missing ? "(" : "",
				       missing ? mt_missing_text(missing) : "", missing ? ")" : "");
	}
}

static const struct mt_list_group *find(const struct mt_list *l, const char *provider, struct mt_str name)
{
	uint32_t lo = 0, hi = l->ngroups;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct mt_probe *p = l->groups[mid].sites[0];
		int r = strcmp(p->provider, provider);

		if (!r) {
			r = strncmp(p->name, name.p, name.len);
			r = r ? r : p->name[name.len] != 0;
		}
		if (!r)
			return &l->groups[mid];
		if (r < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static void pair(const struct mt_list *l, const struct mt_list_group *g, struct mt_list_foreign *ret)
{
	const struct mt_probe *p = g->sites[0], *other;
	const struct mt_list_group *end;
	struct mt_str want;
	char name[1100];

	for (unsigned k = 0; mt_usdt_end_name(str(p->name), k, name, sizeof(name), &want); k++) {
		end = find(l, p->provider, want);
		if (end) {
			ret->begin = true;
			ret->pair = end->sites[0]->name;
			return;
		}
	}
	/* A begin of it: names near it in the order of names, for they share all but the ending. */
	for (const struct mt_list_group *b = g; b > l->groups;) {
		other = (--b)->sites[0];
		if (strcmp(other->provider, p->provider) || g - b > 64)
			break;
		if (mt_usdt_pair(str(other->name), str(p->name)))
			ret->pair = other->name;
	}
	for (const struct mt_list_group *b = g + 1; b < l->groups + l->ngroups && !*ret->pair; b++) {
		other = b->sites[0];
		if (strcmp(other->provider, p->provider) || b - g > 64)
			break;
		if (mt_usdt_pair(str(other->name), str(p->name)))
			ret->pair = other->name;
	}
}

static const char *profile(const struct mt_list *l, const struct mt_probe *p)
{
	for (uint32_t i = 0; i < l->nprofiles; i++) {
		const struct mt_usdt_set *set = &l->profiles[i]->specs;

		for (uint32_t k = 0; k < set->n; k++)
			if (mt_usdt_spec_wants(set->v[k], str(p->provider), str(p->name)) &&
			    (!set->v[k]->whens || mt_usdt_when(l->n, set->v[k]->whens)))
				return l->profiles[i]->name;
	}
	return "";
}

void mt_list_foreign(const struct mt_list *l, const struct mt_list_group *g, struct mt_list_foreign *ret)
{
	types(l, g, ret->types, sizeof(ret->types));
	ret->begin = false;
	ret->pair = "";
	pair(l, g, ret);
	ret->profile = profile(l, g->sites[0]);
}
