/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read at one site, and as what. Invariants U1 and U3 of usdt_plan.c. */
#include "usdt_plan_int.h"

#include <string.h>

/* ---- Types ---------------------------------------------------------------------------------------- */

/* What a field is, by the note of one site. */
enum mt_usdt_type mt_usdt_natural(const struct mt_operand *o)
{
	if (o->op.missing == MT_MISSING_SIZE)
		return MT_UT_NATURAL;
	if (o->is_float)
		return o->bytes == 4 ? MT_UT_F32 : MT_UT_F64;
	return o->op.flags & MT_OP_SIGNED ? MT_UT_I64 : MT_UT_U64;
}

/* U1: of all sites. Signed if one is: constants are typed as the compiler likes. */
enum mt_usdt_type mt_usdt_common(enum mt_usdt_type a, enum mt_usdt_type b)
{
	if (a == MT_UT_NATURAL || a == b)
		return b;
	if (b == MT_UT_NATURAL)
		return a;
	return (a == MT_UT_I64 && b == MT_UT_U64) || (a == MT_UT_U64 && b == MT_UT_I64) ? MT_UT_I64 : a;
}

void mt_usdt_describe(enum mt_usdt_type t, struct mt_field_desc *d)
{
	static const struct {
		uint8_t type, raw;
	} table[] = {
		[MT_UT_NATURAL] = {MONTRACE_TYPE_U64, MT_RAW_AS_IS},
		[MT_UT_I8] = {MONTRACE_TYPE_I64, MT_RAW_I8},
		[MT_UT_I16] = {MONTRACE_TYPE_I64, MT_RAW_I16},
		[MT_UT_I32] = {MONTRACE_TYPE_I64, MT_RAW_I32},
		[MT_UT_I64] = {MONTRACE_TYPE_I64, MT_RAW_AS_IS},
		[MT_UT_U8] = {MONTRACE_TYPE_U64, MT_RAW_U8},
		[MT_UT_U16] = {MONTRACE_TYPE_U64, MT_RAW_U16},
		[MT_UT_U32] = {MONTRACE_TYPE_U64, MT_RAW_U32},
		[MT_UT_U64] = {MONTRACE_TYPE_U64, MT_RAW_AS_IS},
		[MT_UT_F32] = {MONTRACE_TYPE_F64, MT_RAW_F32},
		[MT_UT_F64] = {MONTRACE_TYPE_F64, MT_RAW_AS_IS},
		[MT_UT_BOOL] = {MONTRACE_TYPE_BOOL, MT_RAW_AS_IS},
		[MT_UT_HEX] = {MONTRACE_TYPE_DEBUG, MT_RAW_HEX},
		[MT_UT_STR] = {MONTRACE_TYPE_STR, MT_RAW_AS_IS},
	};

	d->type = table[t].type;
	d->raw = table[t].raw;
}

/* Would a site's operand be a wrong value for this type? */
static bool misfit(enum mt_usdt_type t, bool asked, const struct mt_operand *o)
{
	if (t == MT_UT_F32)
		return o->op.size != 4 || (!asked && !o->is_float);
	if (t == MT_UT_F64)
		return o->op.size != 8 || (!asked && !o->is_float);
	return o->is_float && t != MT_UT_HEX;
}

/* ---- A site's plan -------------------------------------------------------------------------------- */

struct building {
	struct mt_plan *plan;
	const struct mt_operand *ops;
	unsigned nops;
	uint8_t at[MT_MAX_ARGS]; /* argument -> op, MT_NO_OP = not yet */
	bool faults;
};

/*
 * U3. missing: not 0 = it does not fit where it is wanted. What is missing for one reason is one op, whatever it is of:
 * then 12 arguments, a wrong type and an argument that is not there are the most.
 */
static uint8_t use(struct building *b, uint8_t arg, uint8_t missing)
{
	const struct mt_operand *o = arg < b->nops ? &b->ops[arg] : NULL;
	struct mt_plan_op *op;

	missing = !o ? MT_MISSING_ARG : o->op.missing ? o->op.missing : missing;
	if (!missing && b->at[arg] != MT_NO_OP)
		return b->at[arg];
	for (uint8_t i = 0; missing && i < b->plan->nops; i++)
		if (b->plan->ops[i].missing == missing)
			return i;
	op = &b->plan->ops[b->plan->nops];
	if (missing) {
		*op = (struct mt_plan_op){
			.base = MT_REG_NONE, .index = MT_REG_NONE, .size = 8, .missing = missing};
		return b->plan->nops++;
	}
	*op = o->op;
	if (op->flags & (MT_OP_FS | MT_OP_GS32))
		b->plan->flags |= MT_PLAN_THREAD_BASE;
	if ((op->flags & MT_OP_DEREF) && !o->stack)
		b->faults = true;
	b->at[arg] = b->plan->nops;
	return b->plan->nops++;
}

static void plan_field(struct building *b, const struct mt_usdt_arg *a, enum mt_usdt_type type)
{
	struct mt_plan_field *f = &b->plan->fields[b->plan->nfields++];
	const struct mt_operand *o = a->arg < b->nops ? &b->ops[a->arg] : NULL;

	f->len_op = MT_NO_OP;
	f->op = use(b, a->arg, o && misfit(type, a->type != MT_UT_NATURAL, o) ? MT_MISSING_TYPE : 0);
	if (type != MT_UT_STR)
		return;
	f->kind = MT_FIELD_TEXT;
	b->faults = true;
	if (a->len != MT_USDT_NO_ARG)
		f->len_op = use(b, a->len, 0);
}

/* A number to compare with, for a value of this signedness; what no value can be decides at once. */
static void plan_number(struct mt_plan_test *t, const struct mt_usdt_test *from, bool is_signed)
{
	bool below = from->negative && !is_signed, above = is_signed && !from->negative && from->value >> 63;

	t->cmp = from->cmp;
	t->num = is_signed ? MT_NUM_SIGNED : MT_NUM_UNSIGNED;
	t->value = from->negative ? -from->value : from->value;
	if (!below && !above)
		return;
	switch (from->cmp) {
	case MT_CMP_EQ:
		t->cmp = MT_CMP_NEVER;
		break;
	case MT_CMP_NE:
		t->cmp = MT_CMP_ALWAYS;
		break;
	case MT_CMP_LT:
	case MT_CMP_LE:
		t->cmp = above ? MT_CMP_ALWAYS : MT_CMP_NEVER;
		break;
	default:
		t->cmp = below ? MT_CMP_ALWAYS : MT_CMP_NEVER;
		break;
	}
}

/* A number with a fraction, for a whole value: the whole number next to it decides. */
static void plan_real(struct mt_plan_test *t, const struct mt_usdt_test *from, bool is_signed)
{
	bool below = from->real < 0, up = from->cmp == MT_CMP_GT || from->cmp == MT_CMP_GE;
	double size = below ? -from->real : from->real;
	struct mt_usdt_test whole = {.cmp = from->cmp, .negative = below};

	if (size >= 0x1p64 || (below && size > 0x1p63)) { /* beyond all values */
		t->cmp = from->cmp == MT_CMP_NE || (from->cmp != MT_CMP_EQ && up == below) ? MT_CMP_ALWAYS
											   : MT_CMP_NEVER;
		return;
	}
	whole.value = (uint64_t)size;
	if ((double)whole.value != size) {
		if (from->cmp == MT_CMP_EQ || from->cmp == MT_CMP_NE) {
			t->cmp = from->cmp == MT_CMP_EQ ? MT_CMP_NEVER : MT_CMP_ALWAYS;
			return;
		}
		whole.cmp = up ? MT_CMP_GE : MT_CMP_LE;
		whole.value += up != below; /* away from 0; no such one is near 2^63 */
	}
	whole.negative = below && whole.value;
	plan_number(t, &whole, is_signed);
}

/* A number for a floating value: as one of its type. */
static void plan_float(struct mt_plan_test *t, const struct mt_usdt_test *from, enum mt_usdt_type type)
{
	double size = (double)from->value, d = from->is_real ? from->real : from->negative ? -size : size;
	uint32_t bits;
	float f;

	t->cmp = from->cmp;
	t->num = type == MT_UT_F32 ? MT_NUM_F32 : MT_NUM_F64;
	if (type == MT_UT_F32) {
		f = (float)d;
		memcpy(&bits, &f, sizeof(bits));
		t->value = bits;
	} else {
		memcpy(&t->value, &d, sizeof(t->value));
	}
}

/* As what a test's argument is compared; MT_UT_NATURAL: as a whole number. */
static enum mt_usdt_type test_type(const struct mt_usdt_test *from, const struct mt_operand *o)
{
	if (from->type != MT_UT_NATURAL)
		return (enum mt_usdt_type)from->type;
	return o && o->is_float && !from->is_text ? mt_usdt_natural(o) : MT_UT_NATURAL;
}

static void plan_tests(struct building *b, const struct mt_usdt_spec *s)
{
	unsigned texts = 0;

	for (unsigned i = 0; i < s->ntests; i++) {
		const struct mt_usdt_test *from = &s->tests[i];
		struct mt_plan_test *t = &b->plan->tests[b->plan->ntests++];
		const struct mt_operand *o = from->arg < b->nops ? &b->ops[from->arg] : NULL;
		enum mt_usdt_type type = test_type(from, o);

		t->op = use(b, from->arg,
			    o && misfit(type, from->type != MT_UT_NATURAL, o) ? MT_MISSING_TYPE : 0);
		t->yes = from->yes;
		t->no = from->no;
		if (type != MT_UT_NATURAL) {
			plan_float(t, from, type);
			continue;
		}
		if (!from->is_text) {
			(from->is_real ? plan_real : plan_number)(t, from, o && (o->op.flags & MT_OP_SIGNED));
			continue;
		}
		t->cmp = from->cmp == MT_CMP_EQ ? MT_CMP_TEXT_EQ : MT_CMP_TEXT_NE;
		t->text = texts;
		memcpy(b->plan->texts[texts++], from->text.p, from->text.len);
		b->faults = true;
	}
}

static uint64_t salt(uint64_t n)
{
	n = (n + 1) * 0x9e3779b97f4a7c15ULL;
	n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9ULL;
	n = (n ^ n >> 27) * 0x94d049bb133111ebULL;
	return n ^ n >> 31;
}

static uint8_t kind_of(const struct mt_usdt_spec *s, bool end)
{
	if (s->kind == MT_USDT_COUNTER)
		return MONTRACE_KIND_COUNTER;
	if (s->kind == MT_USDT_INSTANT)
		return MONTRACE_KIND_EVENT;
	if (s->key != MT_USDT_NO_ARG)
		return end ? MONTRACE_KIND_SPAN_CLOSE : MONTRACE_KIND_SPAN_NEW;
	return end ? MONTRACE_KIND_SCOPE_END : MONTRACE_KIND_SCOPE_BEGIN;
}

const struct mt_usdt_field *mt_usdt_begin_field(const struct mt_usdt_spec *s, struct mt_str name)
{
	for (unsigned i = 0; i < s->nfields && s->key == MT_USDT_NO_ARG; i++)
		if (s->fields[i].name.len == name.len && !memcmp(s->fields[i].name.p, name.p, name.len))
			return &s->fields[i];
	return NULL;
}

bool mt_usdt_end_agrees(const struct mt_usdt_spec *s)
{
	for (unsigned i = 0; i < s->nend_fields; i++)
		if (mt_usdt_begin_field(s, s->end_fields[i].name))
			return true;
	return false;
}

void mt_usdt_site_plan(const struct mt_usdt_spec *s, uint32_t spec, uint32_t id, const struct mt_operand *ops,
		       unsigned nops, const struct mt_usdt_fields *fields, struct mt_usdt_site *site)
{
	bool keyed = s->key != MT_USDT_NO_ARG, span = s->kind == MT_USDT_SPAN || s->kind == MT_USDT_AUTO;
	struct building b = {.plan = &site->plan, .ops = ops, .nops = nops};

	memset(b.at, MT_NO_OP, sizeof(b.at));
	b.plan->key = MT_NO_OP;
	b.plan->spec = spec + 1;
	b.plan->kind = kind_of(s, fields->end);
	if (keyed) {
		b.plan->flags |= MT_PLAN_SPAN;
		b.plan->salt = salt(id);
		b.plan->key = use(&b, fields->end ? s->end_key : s->key, 0);
		if (s->key_text) {
			b.plan->flags |= MT_PLAN_KEY_TEXT;
			b.faults = true;
		}
	}
	if (s->kind == MT_USDT_WHILE) {
		b.plan->flags |= MT_PLAN_WHILE;
		b.plan->key = use(&b, s->while_, 0);
	}
	/* Where ends say what they end, those whose begin was turned away find nothing: no need to count along. */
	if (s->ntests && span && !keyed && !mt_usdt_end_agrees(s))
		b.plan->flags |= fields->end ? MT_PLAN_NEST_POP : MT_PLAN_NEST_PUSH;
	for (unsigned i = 0; i < fields->n; i++)
		plan_field(&b, &fields->args[i], fields->types[i]);
	if (!fields->end)
		plan_tests(&b, s);
	site->faults = b.faults;
}
