/* SPDX-License-Identifier: BSD-3-Clause */
/* First byte: the machine. The rest is the operands of a note. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "usdt_operand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static int symbol(void *ctx, struct mt_str name, enum mt_operand_sym kind, uint64_t *ret)
{
	const char *args = ctx;

	MUST(name.len && name.p >= args && name.p + name.len <= args + strlen(args));
	MUST(kind != MT_SYM_NONE);
	*ret = name.len;
	return name.p[0] == 'x' ? -1 : 0;
}

static void check(const struct mt_operand *o)
{
	const struct mt_plan_op *p = &o->op;

	MUST(p->size == 1 || p->size == 2 || p->size == 4 || p->size == 8);
	MUST(p->base == MT_REG_NONE || p->base < 33);
	MUST(p->index == MT_REG_NONE || p->index < 33);
	MUST(p->scale <= 4 && (p->shift == 0 || p->shift == 8));
	MUST(!(p->flags & MT_OP_FS) || !(p->flags & MT_OP_GS32));
	MUST(*mt_operand_type(o) && *mt_missing_text(p->missing));
	/* a value is read, or there is a reason why not; nothing stays to be looked up */
	MUST(o->sym_kind == MT_SYM_NONE || p->missing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64};
	struct mt_operand ops[MT_MAX_ARGS];
	unsigned n, more;
	char *args;

	if (!size)
		return 0;
	args = malloc(size);
	MUST(args);
	memcpy(args, data + 1, size - 1);
	args[size - 1] = 0;
	n = mt_operands_parse(args, machines[data[0] % 3], ops, &more);
	MUST(n <= MT_MAX_ARGS && (!more || n == MT_MAX_ARGS));
	for (unsigned i = 0; i < n; i++) {
		MUST(ops[i].text.len && ops[i].text.p >= args);
		mt_operand_resolve(&ops[i], 0x1000, data[0] & 0x80 ? NULL : symbol, args);
		check(&ops[i]);
	}
	free(args);
	return 0;
}
