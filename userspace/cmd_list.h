/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `montrace-bpf list`: the probes of a file, and which of them a filter would arm.
 *
 * For people: a table of callsites, a table of foreign probes, a line with sums. Terminal-safe.
 * JSON: one object a line, "type" says which: "callsite", "probe" (foreign), "file" (the sums; last).
 * Addresses are hexadecimal strings, file offsets are numbers.
 */
#ifndef MT_CMD_LIST_H
#define MT_CMD_LIST_H

#include <stdio.h>

#include "elfnotes.h"
#include "filter.h"
#include "usdt_operand.h"

enum {
	MT_LIST_JSON = 1,
};

/*
 * Prints n, the probes of the file `path` (any bytes), to f. filter NULL: everything counts as armed.
 * 0, -ENOMEM, or -EIO if f took not all of it.
 */
int mt_list_print(FILE *f, const struct mt_elfnotes *n, const char *path, const struct mt_filter *filter,
		  unsigned flags);

/*
 * The same with more about foreign probes: the first of these profiles that has them, and whether the symbols of
 * their operands are known (symbol NULL: not looked up).
 */
struct mt_usdt_profile;
struct mt_list_more {
	struct mt_usdt_profile *const *profiles;
	uint32_t nprofiles;
	mt_symbol_fn symbol;
	void *symbol_ctx;
};
int mt_list_print_with(FILE *f, const struct mt_elfnotes *n, const char *path, const struct mt_filter *filter,
		       const struct mt_list_more *more, unsigned flags);

#endif
