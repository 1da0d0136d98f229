/* SPDX-License-Identifier: BSD-3-Clause */
/* What the usdt_*.c files share. */
#ifndef MT_USDT_INT_H
#define MT_USDT_INT_H

#include "usdt_operand.h"

/* Text that is being parsed. */
struct mt_scan {
	const char *p, *end;
};

static inline bool mt_scan_eat(struct mt_scan *s, char c)
{
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

static inline void mt_scan_blanks(struct mt_scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\t'))
		s->p++;
}

static inline char mt_scan_peek(const struct mt_scan *s)
{
	return s->p < s->end ? *s->p : '\0';
}

/* Digits as the assembler has them: decimal, 0x hexadecimal, 0 octal. No sign. -EINVAL, -ERANGE. */
int mt_scan_number(struct mt_scan *s, uint64_t *ret);

/* A register of x86 or arm64, by name without %. */
struct mt_reg {
	uint8_t number; /* in struct pt_regs; MT_REG_NONE: reads as zero */
	uint8_t size;   /* bytes */
	uint8_t shift;
	uint8_t missing; /* not readable, why */
	bool stack;      /* stack or frame pointer */
	bool ip;
};
bool mt_reg_x86(struct mt_str name, bool is64, struct mt_reg *ret);
bool mt_reg_arm64(struct mt_str name, struct mt_reg *ret);

/* Sum of numbers and at most one symbol. */
struct mt_expr {
	uint64_t value;
	struct mt_str sym;
	enum mt_operand_sym kind;
	uint8_t missing;
};
bool mt_expr_parse(struct mt_scan *s, struct mt_expr *e);

bool mt_operand_arm64(struct mt_scan *s, struct mt_operand *o);

#endif
