/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of symbols, for operands that name one. Read from the file when the first one is asked for. */
#ifndef MT_ELFSYMS_H
#define MT_ELFSYMS_H

#include "usdt_operand.h"

struct mt_elfsyms;

/* fd stays the caller's and must stay open. -ENOMEM. */
int mt_elfsyms_new(int fd, struct mt_elfsyms **ret_syms);
void mt_elfsyms_free(struct mt_elfsyms *s);

/*
 * An mt_symbol_fn; ctx is the struct mt_elfsyms. -ENOENT: not there, or there with different values. -ENOTSUP: an offset
 * from the thread pointer in a library, which is another one in each process.
 */
int mt_elfsyms_find(void *ctx, struct mt_str name, enum mt_operand_sym kind, uint64_t *ret_value);

#endif
