/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operands of stapsdt notes, as compilers print them into inline assembly:
 *
 *     args     = operand { ' ' operand }
 *     operand  = [ ['-'] size ['f'] '@' ] body          '-': signed, 'f': floating
 *     body     = '$' expr | '%' reg | [ '%' seg ':' ] [ expr ] [ '(' base [ ',' index [ ',' scale ] ] ')' ]   x86
 *     body     = reg | ['#'] expr | '[' reg [ ',' expr | ',' reg [ ',' extend ] ] ']'                         arm64
 *     expr     = term { ('+' | '-') term }, term = number | symbol [ '@' way ] | '(' expr ')'
 *
 *  1. A value is read at exactly the size that is written, from the very place.
 *  2. What is not understood, or cannot be read from outside, is marked with the reason; the others count on.
 *  3. Texts are from a file and hostile: nothing here recurses without bound or reads past the end.
 *
 * Example: "-4@flag+4(%rip) 1@%ah" -> {memory at the address of `flag` + 4, 4 bytes, signed}, {ax >> 8, 1 byte}.
 *
 * What it does not do: it does not look up symbols (mt_operand_resolve asks for them) and knows no process.
 */
#include "usdt_int.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define MAX_NEST 8
#define MAX_TERMS 32

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_symbol_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

static bool is_symbol(char c)
{
	return is_symbol_start(c) || is_digit(c) || c == '$';
}

static int digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

int mt_scan_number(struct mt_scan *s, uint64_t *ret)
{
	uint64_t v = 0;
	int base = 10, d, n = 0;

	if (!is_digit(mt_scan_peek(s)))
		return -EINVAL;
	if (mt_scan_eat(s, '0')) {
		base = 8;
		n = 1;
		if (mt_scan_eat(s, 'x') || mt_scan_eat(s, 'X')) {
			base = 16;
			n = 0;
		}
	}
	for (; s->p < s->end && (d = digit(*s->p)) < (base == 8 ? 10 : base); s->p++, n++) {
		if (d >= base)
			return -EINVAL;
		if (v > (UINT64_MAX - (unsigned)d) / (unsigned)base)
			return -ERANGE;
		v = v * (unsigned)base + (unsigned)d;
	}
	if (!n)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* ---- Expressions ---------------------------------------------------------------------------------- */

static bool same(struct mt_str s, const char *t)
{
	return s.len == strlen(t) && !strncasecmp(s.p, t, s.len);
}

static struct mt_str word(struct mt_scan *s)
{
	struct mt_str w = {s->p, 0};

	while (s->p < s->end && is_symbol(*s->p))
		s->p++;
	w.len = (uint32_t)(s->p - w.p);
	return w;
}

/* What stands behind the symbol: sym@tpoff. */
static void symbol_way(struct mt_scan *s, struct mt_expr *e)
{
	static const char *const got[] = {"gotpcrel", "gotpcrelx", "got",       "gotoff",
					  "gottpoff", "gotntpoff", "indntpoff", "plt"};
	struct mt_str way;

	if (!mt_scan_eat(s, '@'))
		return;
	way = word(s);
	if (same(way, "tpoff") || same(way, "ntpoff")) {
		e->kind = MT_SYM_TPOFF;
		return;
	}
	e->missing = MT_MISSING_TLS;
	for (unsigned i = 0; i < sizeof(got) / sizeof(*got); i++)
		if (same(way, got[i]))
			e->missing = MT_MISSING_GOT;
}

static bool term(struct mt_scan *s, struct mt_expr *e, bool minus)
{
	uint64_t v;

	if (is_digit(mt_scan_peek(s))) {
		if (mt_scan_number(s, &v))
			return false;
		e->value += minus ? -v : v;
		return true;
	}
	if (!is_symbol_start(mt_scan_peek(s)) || minus || e->sym.len)
		return false;
	e->sym = word(s);
	e->kind = MT_SYM_ADDR;
	symbol_way(s, e);
	return true;
}

/* A bracket opens that holds an expression, not registers. */
static bool opens(const struct mt_scan *s)
{
	return mt_scan_peek(s) == '(' && s->p + 1 < s->end && s->p[1] != '%' && s->p[1] != ',';
}

bool mt_expr_parse(struct mt_scan *s, struct mt_expr *e)
{
	bool minus[MAX_NEST + 1] = {false}, sign;
	unsigned depth = 0, terms = 0;

	*e = (struct mt_expr){0};
	for (;;) {
		sign = minus[depth];
		while (mt_scan_peek(s) == '-' || mt_scan_peek(s) == '+')
			sign ^= *s->p++ == '-';
		if (opens(s)) {
			s->p++;
			if (++depth > MAX_NEST)
				return false;
			minus[depth] = sign;
			continue;
		}
		if (++terms > MAX_TERMS || !term(s, e, sign))
			return false;
		while (depth && mt_scan_eat(s, ')'))
			depth--;
		if (mt_scan_peek(s) != '-' && mt_scan_peek(s) != '+')
			return !depth;
	}
}

/* ---- x86 ------------------------------------------------------------------------------------------ */

static bool reg_name(struct mt_scan *s, struct mt_str *ret)
{
	if (!mt_scan_eat(s, '%'))
		return false;
	*ret = word(s);
	return ret->len != 0;
}

static void add_expr(struct mt_operand *o, const struct mt_expr *e)
{
	o->op.disp = (long long)e->value;
	o->sym = e->sym;
	o->sym_kind = e->sym.len ? e->kind : MT_SYM_NONE;
	if (e->missing)
		o->op.missing = e->missing;
}

/* An address register: of the machine's word, or a half that makes addresses wrap. */
static bool address_reg(struct mt_scan *s, bool is64, struct mt_operand *o, struct mt_reg *r)
{
	struct mt_str name;

	if (!reg_name(s, &name) || !mt_reg_x86(name, is64, r) || r->missing || r->size < 4)
		return false;
	if (r->size == 4)
		o->op.flags |= MT_OP_ADDR32;
	return true;
}

/* "(base,index,scale)", each part may be missing. */
static bool x86_regs(struct mt_scan *s, bool is64, struct mt_operand *o)
{
	uint64_t scale = 1;
	struct mt_reg r;

	if (mt_scan_peek(s) == '%') {
		if (!address_reg(s, is64, o, &r))
			return false;
		o->stack = r.stack;
		if (r.ip) /* a symbol's address is known without; a number counts from the probe */
			o->op.flags |= MT_OP_SITE;
		else
			o->op.base = r.number;
	}
	if (mt_scan_eat(s, ',')) {
		mt_scan_blanks(s);
		if (mt_scan_peek(s) == '%') {
			if (!address_reg(s, is64, o, &r) || r.ip)
				return false;
			o->op.index = r.number;
			o->stack = false;
		}
		if (mt_scan_eat(s, ',')) {
			mt_scan_blanks(s);
			if (mt_scan_number(s, &scale))
				return false;
		}
	}
	if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
		return false;
	o->op.scale = (uint8_t)__builtin_ctzll(scale);
	return mt_scan_eat(s, ')');
}

static bool x86_segment(struct mt_str name, bool is64, struct mt_operand *o)
{
	if (name.len != 2 || name.p[1] != 's' || !strchr("cdefgs", name.p[0]))
		return false;
	if (name.p[0] == 'f' && is64)
		o->op.flags |= MT_OP_FS;
	else if (name.p[0] == 'g' && !is64)
		o->op.flags |= MT_OP_GS32;
	else if (name.p[0] == 'f' || name.p[0] == 'g')
		o->op.missing = MT_MISSING_TLS;
	return true; /* the others have base 0 */
}

static bool x86_reg(struct mt_str name, bool is64, struct mt_scan *s, struct mt_operand *o)
{
	struct mt_reg r;

	if (!mt_reg_x86(name, is64, &r))
		return false;
	if (r.missing == MT_MISSING_X87 && mt_scan_peek(s) == '(') { /* %st(1) */
		while (s->p < s->end && *s->p != ')')
			s->p++;
		mt_scan_eat(s, ')');
	}
	o->op.base = r.number;
	o->op.shift = r.shift;
	if (r.missing)
		o->op.missing = r.missing;
	else if (o->op.size > r.size)
		o->op.size = r.size;
	return true;
}

static bool operand_x86(struct mt_scan *s, bool is64, struct mt_operand *o)
{
	struct mt_str name;
	struct mt_expr e;

	if (!is64)
		o->op.flags |= MT_OP_ADDR32;
	if (mt_scan_eat(s, '$')) {
		if (!mt_expr_parse(s, &e))
			return false;
		add_expr(o, &e);
		if (!e.sym.len)
			o->op.flags &= (uint8_t)~MT_OP_ADDR32;
		return true;
	}
	if (mt_scan_peek(s) == '%') {
		if (!reg_name(s, &name))
			return false;
		if (!mt_scan_eat(s, ':'))
			return x86_reg(name, is64, s, o);
		if (!x86_segment(name, is64, o))
			return false;
	}
	o->op.flags |= MT_OP_DEREF;
	if (s->p == s->end)
		return false;
	if (mt_scan_peek(s) != '(' || opens(s)) {
		if (!mt_expr_parse(s, &e))
			return false;
		add_expr(o, &e);
	}
	return s->p == s->end || (mt_scan_eat(s, '(') && x86_regs(s, is64, o));
}

/* ---- All ------------------------------------------------------------------------------------------ */

/* "-4@", "8f@"; without it: an unsigned word. */
static bool operand_type(struct mt_scan *s, bool is64, struct mt_operand *o)
{
	struct mt_scan t = *s;
	bool minus = mt_scan_eat(&t, '-');
	uint64_t n;

	o->op.size = is64 ? 8 : 4;
	o->bytes = o->op.size;
	if (!is_digit(mt_scan_peek(&t)))
		return true;
	while (t.p < t.end && is_digit(*t.p))
		t.p++;
	if (mt_scan_eat(&t, 'f'))
		o->is_float = true;
	if (!mt_scan_eat(&t, '@')) {
		o->is_float = false;
		return true; /* a number, not a type */
	}
	s->p += minus;
	n = 0;
	while (is_digit(*s->p) && n < 100000)
		n = n * 10 + (uint64_t)(*s->p++ - '0');
	s->p = t.p;
	if (minus)
		o->op.flags |= MT_OP_SIGNED;
	o->bytes = n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
	if (n == 1 || n == 2 || n == 4 || n == 8)
		o->op.size = (uint8_t)n;
	else
		o->op.missing = MT_MISSING_SIZE;
	if (o->is_float && n < 4)
		o->op.missing = MT_MISSING_SIZE;
	return s->p < s->end;
}

static void operand(struct mt_str text, uint16_t machine, struct mt_operand *o)
{
	struct mt_scan s = {text.p, text.p + text.len};
	bool ok;

	*o = (struct mt_operand){.op = {.base = MT_REG_NONE, .index = MT_REG_NONE}, .text = text};
	ok = operand_type(&s, machine != EM_386, o);
	if (ok)
		ok = machine == EM_AARCH64 ? mt_operand_arm64(&s, o) : operand_x86(&s, machine != EM_386, o);
	if (!ok || s.p != s.end)
		o->op.missing = MT_MISSING_OPERAND;
	if (!o->op.missing)
		return;
	o->op = (struct mt_plan_op){.base = MT_REG_NONE,
				    .index = MT_REG_NONE,
				    .size = o->op.size,
				    .flags = o->op.flags & MT_OP_SIGNED,
				    .missing = o->op.missing};
	o->sym_kind = MT_SYM_NONE;
}

/* Operands are separated by blanks, but blanks inside brackets and behind a comma are part of one. */
static bool next(const char **p, struct mt_str *ret)
{
	const char *s = *p;
	int depth = 0;

	while (*s == ' ' || *s == '\t')
		s++;
	ret->p = s;
	for (; *s && (depth > 0 || (*s != ' ' && *s != '\t') || (s > ret->p && s[-1] == ',')); s++) {
		if (*s == '(' || *s == '[')
			depth++;
		else if (*s == ')' || *s == ']')
			depth--;
	}
	ret->len = (uint32_t)(s - ret->p);
	*p = s;
	return ret->len != 0;
}

unsigned mt_operands_parse(const char *args, uint16_t machine, struct mt_operand ops[MT_MAX_ARGS],
			   unsigned *ret_more)
{
	unsigned n = 0, more = 0;
	struct mt_str text;

	while (next(&args, &text)) {
		if (n < MT_MAX_ARGS)
			operand(text, machine, &ops[n++]);
		else
			more++;
	}
	if (ret_more)
		*ret_more = more;
	return n;
}

void mt_operand_resolve(struct mt_operand *o, uint64_t site, mt_symbol_fn fn, void *ctx)
{
	uint64_t v;
	int err;

	if (o->op.missing || o->sym_kind == MT_SYM_NONE)
		return;
	err = fn ? fn(ctx, o->sym, o->sym_kind, &v) : -ENOENT;
	if (err) {
		o->op.missing = err == -ENOTSUP ? MT_MISSING_TLS : MT_MISSING_SYMBOL;
		return;
	}
	if (o->sym_kind == MT_SYM_ADDR) {
		o->op.flags |= MT_OP_SITE;
		v -= site;
	} else if (o->sym_kind == MT_SYM_LO12) {
		v = (v + (uint64_t)o->op.disp) & 0xfff;
		o->op.disp = 0;
	}
	o->op.disp = (long long)((uint64_t)o->op.disp + v);
	o->sym_kind = MT_SYM_NONE;
}

const char *mt_operand_type(const struct mt_operand *o)
{
	static const char *const u[] = {"u8", "u16", "u32", "u64"}, *const i[] = {"i8", "i16", "i32", "i64"};

	if (o->bytes != 1 && o->bytes != 2 && o->bytes != 4 && o->bytes != 8)
		return "?";
	if (o->is_float)
		return o->bytes == 8 ? "f64" : o->bytes == 4 ? "f32" : "?";
	return (o->op.flags & MT_OP_SIGNED ? i : u)[__builtin_ctz(o->bytes)];
}

const char *mt_missing_text(unsigned reason)
{
	static const char *const texts[] = {
		[MT_MISSING_NOT] = "missing",
		[MT_MISSING_UNREADABLE] = "unreadable",
		[MT_MISSING_XMM] = "in a vector register (not readable from outside)",
		[MT_MISSING_X87] = "in an x87 or MMX register (not readable from outside)",
		[MT_MISSING_SIZE] = "a struct by value (not a number)",
		[MT_MISSING_SYMBOL] = "symbol unknown or ambiguous",
		[MT_MISSING_OPERAND] = "operand not understood",
		[MT_MISSING_LENGTH] = "negative length",
		[MT_MISSING_GOT] = "address made at run time (GOT)",
		[MT_MISSING_TLS] = "thread-local, place not known",
		[MT_MISSING_ARG] = "no such argument",
		[MT_MISSING_TYPE] = "of another type",
	};

	return reason < sizeof(texts) / sizeof(*texts) ? texts[reason] : "missing";
}
