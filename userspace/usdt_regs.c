/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of registers, and operands of arm64. */
#include "usdt_int.h"

#include <string.h>

static bool is(struct mt_str s, const char *t)
{
	return s.len == strlen(t) && !memcmp(s.p, t, s.len);
}

/* The decimal number that is all of p[0..n), at most max. */
static bool small(const char *p, uint32_t n, unsigned max, unsigned *ret)
{
	unsigned v = 0;

	if (!n || n > 2 || (n == 2 && p[0] == '0'))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		v = v * 10 + (unsigned)(p[i] - '0');
	}
	*ret = v;
	return v <= max;
}

static bool starts(struct mt_str s, const char *t)
{
	uint32_t n = (uint32_t)strlen(t);

	return s.len >= n && !memcmp(s.p, t, n);
}

/* Registers that no tracer can read: the kernel does not save them for it. */
static bool x86_vector(struct mt_str n, struct mt_reg *ret)
{
	unsigned v;

	ret->size = 8;
	ret->missing = MT_MISSING_XMM;
	if ((starts(n, "xmm") || starts(n, "ymm") || starts(n, "zmm")) && small(n.p + 3, n.len - 3, 31, &v))
		return true;
	if (n.len == 2 && n.p[0] == 'k' && n.p[1] >= '0' && n.p[1] <= '7')
		return true;
	ret->missing = MT_MISSING_X87;
	return is(n, "st") || (starts(n, "mm") && small(n.p + 2, n.len - 2, 7, &v)) ||
	       (starts(n, "st") && small(n.p + 2, n.len - 2, 7, &v));
}

/* r8 .. r15 with d, w, b. */
static bool x86_numbered(struct mt_str n, struct mt_reg *ret)
{
	static const uint8_t at[] = {9, 8, 7, 6, 3, 2, 1, 0};
	uint8_t size = 8;
	unsigned v;

	if (n.len < 2 || n.p[0] != 'r')
		return false;
	switch (n.p[n.len - 1]) {
	case 'd':
		size = 4;
		break;
	case 'w':
		size = 2;
		break;
	case 'b':
	case 'l':
		size = 1;
		break;
	}
	if (!small(n.p + 1, n.len - 1 - (size != 8), 15, &v) || v < 8)
		return false;
	ret->number = at[v - 8];
	ret->size = size;
	return true;
}

bool mt_reg_x86(struct mt_str n, bool is64, struct mt_reg *ret)
{
	static const struct {
		char q[4], d[4], w[4], b[4], h[4];
		uint8_t number;
	} regs[] = {
		{"rax", "eax", "ax", "al", "ah", 10}, {"rbx", "ebx", "bx", "bl", "bh", 5},
		{"rcx", "ecx", "cx", "cl", "ch", 11}, {"rdx", "edx", "dx", "dl", "dh", 12},
		{"rsi", "esi", "si", "sil", "", 13},  {"rdi", "edi", "di", "dil", "", 14},
		{"rbp", "ebp", "bp", "bpl", "", 4},   {"rsp", "esp", "sp", "spl", "", 19},
		{"rip", "eip", "ip", "", "", 16},
	};

	*ret = (struct mt_reg){0};
	for (unsigned i = 0; n.len && i < sizeof(regs) / sizeof(*regs); i++) {
		uint8_t size = is64 && is(n, regs[i].q)                   ? 8
			       : is(n, regs[i].d)                         ? 4
			       : is(n, regs[i].w)                         ? 2
			       : is(n, regs[i].b) && (is64 || n.len == 2) ? 1
			       : is(n, regs[i].h)                         ? 1
									  : 0;

		if (!size)
			continue;
		ret->number = regs[i].number;
		ret->size = size;
		ret->shift = size == 1 && n.p[n.len - 1] == 'h' ? 8 : 0;
		ret->stack = ret->number == 4 || ret->number == 19;
		ret->ip = ret->number == 16;
		return true;
	}
	return (is64 && x86_numbered(n, ret)) || x86_vector(n, ret);
}

/* ---- arm64 ---------------------------------------------------------------------------------------- */

bool mt_reg_arm64(struct mt_str n, struct mt_reg *ret)
{
	unsigned v;

	*ret = (struct mt_reg){.size = 8};
	if (is(n, "sp") || is(n, "wsp")) {
		ret->number = 31;
		ret->size = n.p[0] == 'w' ? 4 : 8;
		ret->stack = true;
		return true;
	}
	if (is(n, "xzr") || is(n, "wzr")) {
		ret->number = MT_REG_NONE;
		return true;
	}
	if (is(n, "fp") || is(n, "lr")) {
		ret->number = n.p[0] == 'f' ? 29 : 30;
		ret->stack = ret->number == 29;
		return true;
	}
	if (n.len < 2 || !small(n.p + 1, n.len - 1, 31, &v))
		return false;
	if (n.p[0] == 'x' || n.p[0] == 'w') {
		ret->number = (uint8_t)v;
		ret->size = n.p[0] == 'w' ? 4 : 8;
		ret->stack = v == 29;
		return v <= 30;
	}
	ret->missing = MT_MISSING_XMM;
	return strchr("bhsdqvz", n.p[0]) != NULL;
}

static struct mt_str letters(struct mt_scan *s)
{
	struct mt_str w = {s->p, 0};

	while (s->p < s->end && ((*s->p >= 'a' && *s->p <= 'z') || (*s->p >= '0' && *s->p <= '9')))
		s->p++;
	w.len = (uint32_t)(s->p - w.p);
	return w;
}

/* "lsl 3", "sxtw #2", "uxtw" */
static bool extend(struct mt_scan *s, struct mt_operand *o)
{
	struct mt_str way = letters(s);
	uint64_t n = 0;

	if (is(way, "sxtw"))
		o->op.flags |= MT_OP_INDEX_S32;
	else if (is(way, "uxtw"))
		o->op.flags |= MT_OP_INDEX_U32;
	else if (!is(way, "lsl") && !is(way, "sxtx") && !is(way, "uxtx"))
		return false;
	mt_scan_blanks(s);
	if (mt_scan_eat(s, '#') || mt_scan_peek(s) != ']')
		if (mt_scan_number(s, &n))
			return false;
	o->op.scale = (uint8_t)n;
	return n <= 4;
}

/* What follows the base: a number, a symbol's low bits, or a register. */
static bool arm64_offset(struct mt_scan *s, struct mt_operand *o)
{
	struct mt_scan t = *s;
	struct mt_expr e;
	struct mt_reg r;

	if (mt_reg_arm64(letters(&t), &r)) {
		if (r.missing)
			return false;
		*s = t;
		o->op.index = r.number;
		o->stack = false;
		mt_scan_blanks(s);
		if (!mt_scan_eat(s, ','))
			return r.size == 8;
		mt_scan_blanks(s);
		return extend(s, o);
	}
	mt_scan_eat(s, '#');
	if (s->end - s->p > 6 && !memcmp(s->p, ":lo12:", 6)) {
		s->p += 6;
		if (!mt_expr_parse(s, &e) || !e.sym.len || e.missing)
			return false;
		e.kind = MT_SYM_LO12;
		o->stack = false;
	} else if (!mt_expr_parse(s, &e) || e.sym.len) {
		return false;
	}
	o->op.disp = (long long)e.value;
	o->sym = e.sym;
	o->sym_kind = e.sym.len ? e.kind : MT_SYM_NONE;
	return true;
}

static bool arm64_memory(struct mt_scan *s, struct mt_operand *o)
{
	struct mt_reg r;

	o->op.flags |= MT_OP_DEREF;
	mt_scan_blanks(s);
	if (!mt_reg_arm64(letters(s), &r) || r.missing || r.size != 8)
		return false;
	o->op.base = r.number;
	o->stack = r.stack;
	mt_scan_blanks(s);
	if (mt_scan_eat(s, ',')) {
		mt_scan_blanks(s);
		if (!arm64_offset(s, o))
			return false;
	}
	mt_scan_blanks(s);
	return mt_scan_eat(s, ']');
}

bool mt_operand_arm64(struct mt_scan *s, struct mt_operand *o)
{
	struct mt_scan t = *s;
	struct mt_expr e;
	struct mt_reg r;

	if (mt_scan_eat(s, '['))
		return arm64_memory(s, o);
	if (mt_reg_arm64(letters(&t), &r) && t.p == t.end) {
		*s = t;
		o->op.base = r.number;
		o->op.missing = r.missing ? r.missing : o->op.missing;
		if (o->op.size > r.size && !r.missing)
			o->op.size = r.size;
		return true;
	}
	mt_scan_eat(s, '#');
	if (!mt_expr_parse(s, &e) || e.sym.len) /* an address, or what is there? No compiler prints it */
		return false;
	o->op.disp = (long long)e.value;
	return true;
}
