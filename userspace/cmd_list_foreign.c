/* SPDX-License-Identifier: BSD-3-Clause */
/* Foreign probes: types of the arguments, the other half of a span, the profile that has it. */
#include <stdio.h>
#include <string.h>

#include "cmd_list_int.h"

static struct mt_str str(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

/* Joins a type to those of the sites before. */
static void add_type(struct mt_list_arg *a, const char *type)
{
	size_t len = strlen(a->type), n = strlen(type);

	for (const char *p = a->type; *p; p += strcspn(p, "|"), p += *p == '|')
		if (strcspn(p, "|") == n && !strncmp(p, type, n))
			return;
	snprintf(a->type + len, sizeof(a->type) - len, "%s%s", len ? "|" : "", type);
}

static void arguments(const struct mt_list *l, const struct mt_list_group *g, struct mt_list_foreign *ret)
{
	struct mt_operand ops[MT_MAX_ARGS];

	ret->nargs = 0;
	memset(ret->args, 0, sizeof(ret->args));
	for (uint32_t k = 0; k < g->n; k++) {
		unsigned n = mt_operands_parse(g->sites[k]->args, l->n->machine, ops, NULL);

		ret->nargs = n > ret->nargs ? n : ret->nargs;
		for (unsigned i = 0; i < n; i++) {
			if (l->more.symbol)
				mt_operand_resolve(&ops[i], g->sites[k]->addr, l->more.symbol,
						   l->more.symbol_ctx);
			add_type(&ret->args[i], mt_operand_type(&ops[i]));
			if (!ops[i].op.missing)
				continue;
			ret->args[i].missing = mt_missing_text(ops[i].op.missing);
			ret->args[i].missing_at++;
		}
	}
}

static void types(const struct mt_list_group *g, struct mt_list_foreign *ret)
{
	size_t at = 0, cap = sizeof(ret->types);

	snprintf(ret->types, cap, "-");
	for (unsigned i = 0; i < ret->nargs && at < cap; i++) {
		const struct mt_list_arg *a = &ret->args[i];

		at += (size_t)snprintf(ret->types + at, cap - at, "%sarg%u:%s", i ? " " : "", i, a->type);
		if (a->missing && at < cap)
			at += (size_t)snprintf(ret->types + at, cap - at, "(%s", a->missing);
		if (a->missing && a->missing_at < g->n && at < cap)
			at += (size_t)snprintf(ret->types + at, cap - at, " at %u of %u", a->missing_at,
					       g->n);
		if (a->missing && at < cap)
			at += (size_t)snprintf(ret->types + at, cap - at, ")");
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
	for (uint32_t i = 0; i < l->more.nprofiles; i++) {
		const struct mt_usdt_set *set = &l->more.profiles[i]->specs;

		for (uint32_t k = 0; k < set->n; k++)
			if (mt_usdt_spec_wants(set->v[k], str(p->provider), str(p->name)) &&
			    (!set->v[k]->whens || mt_usdt_when(l->n, set->v[k]->whens)))
				return l->more.profiles[i]->name;
	}
	return "";
}

void mt_list_foreign(const struct mt_list *l, const struct mt_list_group *g, struct mt_list_foreign *ret)
{
	arguments(l, g, ret);
	types(g, ret);
	ret->begin = false;
	ret->pair = "";
	pair(l, g, ret);
	ret->profile = profile(l, g->sites[0]);
}
