/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idea: a spec asks for probes by name; the file has sites. All sites of one begin name (and of its ends) are
 * one callsite, which is what the rest of the tracer knows. Each site has a plan of its own, for each keeps its
 * arguments elsewhere.
 *
 * Invariants
 *  U1  A field has one type in all sites of its callsite. A site whose operand does not fit leaves it missing.
 *  U2  A span's callsite has a begin site and an end site at least, or there is no callsite.
 *  U3  An operand is in the plan once, however often it is used.
 *  U4  Work is n log n in the probes of the file for each spec without stars, linear for one with.
 *
 * Example: spec `c:req__start..req__done key=arg0 url=arg1:str`, file with c:req__start at two sites ("8@%rdi 8@%rsi",
 * "8@%rbx 8@8(%rsp)") and c:req__done at one ("8@%rdi"): one callsite "req" of class SPAN with the field url; three
 * plans: two SPAN_NEW with ops {key, address of the text}, one SPAN_CLOSE with op {key}.
 */
#include "usdt_plan_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "room.h"
#include "strings.h"

/* Probes of one provider and name. */
struct group {
	struct mt_str provider, name;
	const struct mt_probe **v;
	uint32_t n;
};

struct find {
	const struct mt_elfnotes *notes;
	const struct mt_usdt_set *set;
	uint32_t first_id;
	mt_symbol_fn symbol;
	void *symbol_ctx;
	const struct mt_probe **probes;
	struct group *groups;
	uint32_t ngroups;
	struct mt_usdt_found *found;
	uint32_t spec; /* index of the one in work */
};

static struct mt_str str(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

static int cmp_probe(const void *a, const void *b)
{
	const struct mt_probe *x = *(const struct mt_probe *const *)a,
			      *y = *(const struct mt_probe *const *)b;
	int r = strcmp(x->provider, y->provider);

	if (!r)
		r = strcmp(x->name, y->name);
	return r ? r : (x->addr > y->addr) - (x->addr < y->addr);
}

static int make_groups(struct find *f)
{
	uint32_t n = f->notes->nprobes - f->notes->nnative, i;
	struct group *g = NULL;

	f->probes = malloc((n + 1ul) * sizeof(*f->probes));
	f->groups = malloc((n + 1ul) * sizeof(*f->groups));
	if (!f->probes || !f->groups)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		f->probes[i] = &f->notes->probes[f->notes->nnative + i];
	qsort(f->probes, n, sizeof(*f->probes), cmp_probe);
	for (i = 0; i < n; i++) {
		const struct mt_probe *p = f->probes[i];

		if (!g || strcmp(g->v[0]->provider, p->provider) || strcmp(g->v[0]->name, p->name)) {
			g = &f->groups[f->ngroups++];
			*g = (struct group){str(p->provider), str(p->name), &f->probes[i], 0};
		}
		g->n++;
	}
	return 0;
}

static int cmp_str(struct mt_str a, struct mt_str b)
{
	uint32_t n = a.len < b.len ? a.len : b.len;
	int r = memcmp(a.p, b.p, n);

	return r ? r : (a.len > b.len) - (a.len < b.len);
}

static const struct group *group_get(const struct find *f, struct mt_str provider, struct mt_str name)
{
	uint32_t lo = 0, hi = f->ngroups;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int r = cmp_str(f->groups[mid].provider, provider);

		if (!r)
			r = cmp_str(f->groups[mid].name, name);
		if (!r)
			return &f->groups[mid];
		if (r < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static bool is_glob(struct mt_str s)
{
	return memchr(s.p, '*', s.len) || memchr(s.p, '?', s.len);
}

/* ---- Memory --------------------------------------------------------------------------------------- */

/* A copy of text that lives with what was found; safe to show. NULL: no memory. */
static const char *keep(struct mt_usdt_found *f, struct mt_str s)
{
	size_t cap = s.len * 3ul + 1;
	char *c;

	if (mt_room(&f->owned, f->nowned, &f->cap_owned, sizeof(*f->owned)))
		return NULL;
	c = malloc(cap);
	if (!c)
		return NULL;
	mt_text_safe(c, cap, s.p, s.len);
	f->owned[f->nowned++] = c;
	return c;
}

void mt_usdt_found_free(struct mt_usdt_found *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->nowned; i++)
		free(f->owned[i]);
	free(f->owned);
	free(f->callsites);
	free(f->callsite_spec);
	free(f->sites);
	free(f);
}

static unsigned operands(const struct find *f, const struct mt_probe *p, struct mt_operand ops[MT_MAX_ARGS])
{
	unsigned n = mt_operands_parse(p->args, f->notes->machine, ops, NULL);

	for (unsigned i = 0; i < n; i++)
		mt_operand_resolve(&ops[i], p->addr, f->symbol, f->symbol_ctx);
	return n;
}

static int add_site(struct find *f, const struct mt_probe *p, uint32_t callsite,
		    const struct mt_usdt_fields *fields)
{
	struct mt_operand ops[MT_MAX_ARGS];
	struct mt_usdt_site *site;

	if (mt_room(&f->found->sites, f->found->nsites, &f->found->cap_sites, sizeof(*f->found->sites)))
		return -ENOMEM;
	site = &f->found->sites[f->found->nsites++];
	memset(site, 0, sizeof(*site));
	site->probe = p;
	site->callsite = callsite;
	site->spec = f->spec;
	mt_usdt_site_plan(f->set->v[f->spec], f->spec, f->first_id + callsite, ops, operands(f, p, ops),
			  fields, site);
	return 0;
}

/* ---- A callsite ----------------------------------------------------------------------------------- */

static void add_types(struct mt_usdt_fields *f, const struct mt_operand *ops, unsigned n)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->args[i].type == MT_UT_NATURAL && f->args[i].arg < n)
			f->types[i] = mt_usdt_common(f->types[i], mt_usdt_natural(&ops[f->args[i].arg]));
}

static void default_types(struct mt_usdt_fields *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->types[i] == MT_UT_NATURAL)
			f->types[i] = MT_UT_U64;
}

/* Which arguments, and of which types: as asked for, or all there are. */
static void fields_of(const struct find *f, const struct group *g, struct mt_usdt_fields *ret)
{
	const struct mt_usdt_spec *s = f->set->v[f->spec];
	bool all = !s->nfields && !s->no_args;
	struct mt_operand ops[MT_MAX_ARGS];

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < s->nfields; i++) {
		ret->args[i] = s->fields[i].arg;
		ret->types[i] = (enum mt_usdt_type)s->fields[i].arg.type;
	}
	ret->n = s->nfields;
	if (!all && !s->nfields)
		return;
	for (uint32_t k = 0; k < g->n; k++) {
		unsigned n = operands(f, g->v[k], ops), i;

		for (i = ret->n; all && i < n && i + s->nend_fields < MONTRACE_MAX_FIELDS; i++, ret->n++)
			ret->args[i] = (struct mt_usdt_arg){(uint8_t)i, MT_UT_NATURAL, MT_USDT_NO_ARG};
		add_types(ret, ops, n);
	}
	default_types(ret);
}

/* The same for the ends, all of them together. */
static void end_fields_of(const struct find *f, const struct group *const *ends, unsigned nends,
			  struct mt_usdt_fields *ret)
{
	const struct mt_usdt_spec *s = f->set->v[f->spec];
	struct mt_operand ops[MT_MAX_ARGS];

	memset(ret, 0, sizeof(*ret));
	ret->end = true;
	ret->n = s->nend_fields;
	for (unsigned i = 0; i < ret->n; i++) {
		ret->args[i] = s->end_fields[i].arg;
		ret->types[i] = (enum mt_usdt_type)s->end_fields[i].arg.type;
	}
	for (unsigned k = 0; ret->n && k < nends; k++)
		for (uint32_t v = 0; v < ends[k]->n; v++)
			add_types(ret, ops, operands(f, ends[k]->v[v], ops));
	default_types(ret);
}

static int end_texts(struct find *f, const struct mt_usdt_fields *end, struct mt_callsite *cs)
{
	const struct mt_usdt_spec *s = f->set->v[f->spec];

	if (!end->n)
		return 0;
	if (!cs->nfields) /* end_at 0 says that there are none */
		cs->fields[cs->nfields++] = (struct mt_field_desc){.name = "-", .type = MONTRACE_TYPE_U64};
	cs->end_at = cs->nfields;
	for (unsigned i = 0; i < end->n && cs->nfields < MONTRACE_MAX_FIELDS; i++) {
		const struct mt_usdt_field *begin = mt_usdt_begin_field(s, s->end_fields[i].name);
		struct mt_field_desc *d = &cs->fields[cs->nfields++];

		mt_usdt_describe(end->types[i], d);
		if (begin)
			d->pair = cs->fields[begin - s->fields].pair = (uint8_t)(i + 1);
		d->name = keep(f->found, s->end_fields[i].name);
		if (!d->name)
			return -ENOMEM;
	}
	return 0;
}

static int callsite_texts(struct find *f, const struct group *g, const struct mt_usdt_fields *fields,
			  const struct mt_usdt_fields *end, struct mt_callsite *cs)
{
	static const char *const args[MT_MAX_ARGS] = {"arg0", "arg1", "arg2", "arg3", "arg4",  "arg5",
						      "arg6", "arg7", "arg8", "arg9", "arg10", "arg11"};
	const struct mt_usdt_spec *s = f->set->v[f->spec];
	bool span = s->kind == MT_USDT_SPAN || s->kind == MT_USDT_AUTO;
	struct mt_str name = g->name;

	if (span)
		mt_usdt_begin(g->name, &name.len);
	if (s->label && !strchr(s->label, '{'))
		name = str(s->label);
	cs->name = keep(f->found, name);
	cs->target = keep(f->found, g->provider);
	cs->file = cs->function = "";
	if (s->label) {
		cs->label = keep(f->found, str(s->label));
		if (!cs->label)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < fields->n; i++) {
		mt_usdt_describe(fields->types[i], &cs->fields[i]);
		cs->fields[i].name = s->nfields ? keep(f->found, s->fields[i].name) : args[i];
		if (!cs->fields[i].name)
			return -ENOMEM;
	}
	cs->nfields = (uint8_t)fields->n;
	return cs->name && cs->target ? end_texts(f, end, cs) : -ENOMEM;
}

static int add_callsite(struct find *f, const struct group *g, const struct mt_usdt_fields *fields,
			const struct mt_usdt_fields *end, uint32_t *ret)
{
	static const uint8_t classes[] = {
		[MT_USDT_INSTANT] = MONTRACE_CLASS_EVENT, [MT_USDT_COUNTER] = MONTRACE_CLASS_COUNTER,
		[MT_USDT_SPAN] = MONTRACE_CLASS_SCOPE,    [MT_USDT_AUTO] = MONTRACE_CLASS_SCOPE,
		[MT_USDT_WHILE] = MONTRACE_CLASS_SCOPE,
	};
	const struct mt_usdt_spec *s = f->set->v[f->spec];
	struct mt_usdt_found *d = f->found;
	uint32_t cap = d->cap_callsites;
	struct mt_callsite *cs;

	if (mt_room(&d->callsite_spec, d->ncallsites, &cap, sizeof(*d->callsite_spec)) ||
	    mt_room(&d->callsites, d->ncallsites, &d->cap_callsites, sizeof(*d->callsites)))
		return -ENOMEM;
	d->callsite_spec[d->ncallsites] = f->spec;
	cs = &d->callsites[d->ncallsites];
	memset(cs, 0, sizeof(*cs));
	cs->id = f->first_id + d->ncallsites;
	cs->keyed = s->key != MT_USDT_NO_ARG;
	cs->class_ = s->key != MT_USDT_NO_ARG ? MONTRACE_CLASS_SPAN : classes[s->kind];
	cs->level = s->level;
	cs->how = s->how;
	cs->flags = MONTRACE_CSF_USER; /* asked for by the user: no mode hides it */
	*ret = d->ncallsites++;
	return callsite_texts(f, g, fields, end, cs);
}

static int add_group(struct find *f, const struct group *begin, const struct group *const *ends,
		     unsigned nends)
{
	struct mt_usdt_fields fields, end;
	uint32_t cs = 0, i;
	int err;

	fields_of(f, begin, &fields);
	end_fields_of(f, ends, nends, &end);
	err = add_callsite(f, begin, &fields, &end, &cs);
	for (i = 0; i < begin->n && !err; i++)
		err = add_site(f, begin->v[i], cs, &fields);
	for (unsigned k = 0; k < nends && !err; k++)
		for (i = 0; i < ends[k]->n && !err; i++)
			err = add_site(f, ends[k]->v[i], cs, &end);
	return err;
}

/* ---- Specs ---------------------------------------------------------------------------------------- */

/* The ends of a begin, by the spec's patterns, the star as it was in the begin. */
static unsigned ends_of(const struct find *f, const struct mt_usdt_spec *s, const struct group *begin,
			struct mt_str star, const struct group **ends)
{
	struct mt_str provider = is_glob(s->end_provider) ? begin->provider : s->end_provider;
	unsigned n = 0;
	char name[1100];

	for (unsigned i = 0; i < s->nends; i++) {
		const char *at = memchr(s->ends[i].p, '*', s->ends[i].len);
		uint32_t before = at ? (uint32_t)(at - s->ends[i].p) : s->ends[i].len;
		uint32_t after = at ? s->ends[i].len - before - 1 : 0;
		struct mt_str want = {name, before + (at ? star.len : 0) + after};

		if (want.len > sizeof(name))
			continue;
		memcpy(name, s->ends[i].p, before);
		if (at) {
			memcpy(name + before, star.p, star.len);
			memcpy(name + before + star.len, at + 1, after);
		}
		ends[n] = group_get(f, provider, want);
		n += ends[n] != NULL;
	}
	return n;
}

static int take(struct find *f, const struct group *g, struct mt_str star)
{
	const struct mt_usdt_spec *s = f->set->v[f->spec];
	const struct group *ends[MT_USDT_NAMES];
	unsigned n = 0;

	if (s->kind == MT_USDT_SPAN) {
		n = ends_of(f, s, g, star, ends);
		if (!n) { /* U2 */
			f->found->endless++;
			return 0;
		}
	}
	return add_group(f, g, ends, n);
}

static int take_names(struct find *f, const struct mt_usdt_spec *s)
{
	struct mt_str star = {"", 0};
	int err = 0;

	for (unsigned i = 0; i < s->nnames && !err; i++) {
		if (!is_glob(s->provider) && !is_glob(s->names[i])) {
			const struct group *g = group_get(f, s->provider, s->names[i]);

			err = g ? take(f, g, star) : 0;
			continue;
		}
		for (uint32_t k = 0; k < f->ngroups && !err; k++) {
			const struct group *g = &f->groups[k];
			bool before = false;

			if (!mt_usdt_match(s->provider, g->provider, &star) ||
			    !mt_usdt_match(s->names[i], g->name, &star))
				continue;
			for (unsigned j = 0; j < i && !before; j++) { /* named twice is once */
				struct mt_str other;

				before = mt_usdt_match(s->names[j], g->name, &other);
			}
			err = before ? 0 : take(f, g, star);
		}
	}
	return err;
}

static int take_auto(struct find *f, const struct mt_usdt_spec *s)
{
	struct mt_str star;
	int err = 0;

	for (uint32_t i = 0; i < f->ngroups && !err; i++) {
		const struct group *g = &f->groups[i], *end;
		char name[1100];
		struct mt_str want;

		if (!mt_usdt_match(s->provider, g->provider, &star))
			continue;
		for (unsigned k = 0; mt_usdt_end_name(g->name, k, name, sizeof(name), &want); k++) {
			end = group_get(f, g->provider, want);
			if (!end)
				continue;
			err = add_group(f, g, &end, 1);
			break;
		}
	}
	return err;
}

int mt_usdt_find(const struct mt_elfnotes *n, const struct mt_usdt_set *set, uint32_t first_id,
		 mt_symbol_fn fn, void *ctx, struct mt_usdt_found **ret_found)
{
	struct find f = {.notes = n, .set = set, .first_id = first_id, .symbol = fn, .symbol_ctx = ctx};
	int err = -ENOMEM;

	f.found = calloc(1, sizeof(*f.found));
	if (!f.found)
		return err;
	err = make_groups(&f);
	for (f.spec = 0; f.spec < set->n && !err; f.spec++) {
		const struct mt_usdt_spec *s = set->v[f.spec];

		if (s->whens && !mt_usdt_when(n, s->whens))
			continue;
		err = s->kind == MT_USDT_AUTO ? take_auto(&f, s) : take_names(&f, s);
	}
	free(f.probes);
	free(f.groups);
	if (err)
		mt_usdt_found_free(f.found);
	else
		*ret_found = f.found;
	return err;
}
