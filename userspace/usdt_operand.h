/* SPDX-License-Identifier: BSD-3-Clause */
/* The operands of a stapsdt note ("8@%rdi -4@16(%rsp)") -> what a program must read to have their values. */
#ifndef MT_USDT_OPERAND_H
#define MT_USDT_OPERAND_H

#include "model.h"
#include "shared.h"

#define MT_MAX_ARGS 12

/* What the address of a symbol has to do with the operand. */
enum mt_operand_sym {
	MT_SYM_NONE,
	MT_SYM_ADDR,  /* its address is added */
	MT_SYM_TPOFF, /* its offset from the thread pointer */
	MT_SYM_LO12,  /* the low 12 bits of its address */
};

struct mt_operand {
	struct mt_plan_op op; /* op.missing: why the value cannot be had */
	bool is_float;
	bool stack;         /* in memory at the stack or frame pointer: surely mapped */
	uint16_t bytes;     /* size as written */
	struct mt_str text; /* the operand as in the note */
	enum mt_operand_sym sym_kind;
	struct mt_str sym; /* points into the note's text */
};

/*
 * Splits and parses args. machine: EM_X86_64, EM_386, EM_AARCH64. At most MT_MAX_ARGS; *ret_more says how many
 * there were beyond. An operand that is not understood is in the list all the same, as missing: it costs
 * itself. Returns how many.
 */
unsigned mt_operands_parse(const char *args, uint16_t machine, struct mt_operand ops[MT_MAX_ARGS],
			   unsigned *ret_more);

/* Finds a symbol: 0 and its value (address, or offset from the thread pointer), -ENOENT, or -ENOTSUP (thread-local, elsewhere in each process). */
typedef int (*mt_symbol_fn)(void *ctx, struct mt_str name, enum mt_operand_sym kind, uint64_t *ret_value);

/* Puts the symbol's value in. site: link-time address of the probe. fn NULL: there are no symbols. */
void mt_operand_resolve(struct mt_operand *o, uint64_t site, mt_symbol_fn fn, void *ctx);

/* "i32", "u64", "f64", ... as the note tells the type; "?" for a size that is no number's. */
const char *mt_operand_type(const struct mt_operand *o);

/* Why a value is missing, as shown to people: "unreadable", ... */
const char *mt_missing_text(unsigned reason);

#endif
