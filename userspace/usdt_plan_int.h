/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of usdt_plan: usdt_plan.c (specs on a file), usdt_site.c (one site). */
#ifndef MT_USDT_PLAN_INT_H
#define MT_USDT_PLAN_INT_H

#include "usdt_plan.h"

/* Fields of a callsite, or of its end: what to read, and as what. */
struct mt_usdt_fields {
	bool end;
	unsigned n;
	struct mt_usdt_arg args[MONTRACE_MAX_FIELDS];
	enum mt_usdt_type types[MONTRACE_MAX_FIELDS];
};

/* What a field is, by the note of one site; by those of two. */
enum mt_usdt_type mt_usdt_natural(const struct mt_operand *o);
enum mt_usdt_type mt_usdt_common(enum mt_usdt_type a, enum mt_usdt_type b);
/* How values of that type are recorded and decoded. */
void mt_usdt_describe(enum mt_usdt_type t, struct mt_field_desc *d);

/* The field of the begin that one of the end with this name must agree with; NULL: none (spans with a key have one). */
const struct mt_usdt_field *mt_usdt_begin_field(const struct mt_usdt_spec *s, struct mt_str name);
/* Does the end say, by such fields, which span it ends? */
bool mt_usdt_end_agrees(const struct mt_usdt_spec *s);

/* Fills site->plan (zeroed) and site->faults. spec: index of s; id: of the callsite. */
void mt_usdt_site_plan(const struct mt_usdt_spec *s, uint32_t spec, uint32_t id, const struct mt_operand *ops,
		       unsigned nops, const struct mt_usdt_fields *fields, struct mt_usdt_site *site);

#endif
