/* SPDX-License-Identifier: BSD-3-Clause */
/* Specs and the foreign probes of a file -> callsites, and a plan for each site. */
#ifndef MT_USDT_PLAN_H
#define MT_USDT_PLAN_H

#include "elfnotes.h"
#include "shared.h"
#include "usdt_operand.h"
#include "usdt_spec.h"

struct mt_usdt_site {
	const struct mt_probe *probe;
	uint32_t callsite; /* index */
	uint32_t spec;     /* index */
	bool faults;       /* it reads memory that may not be there yet: wants a program that may sleep */
	struct mt_plan plan;
};

/* All that a file has for these specs. */
struct mt_usdt_found {
	struct mt_callsite *callsites;
	uint32_t *callsite_spec; /* index of its spec */
	uint32_t ncallsites, cap_callsites;
	struct mt_usdt_site *sites;
	uint32_t nsites, cap_sites;
	uint32_t endless; /* begins that had no end, of specs with globs and auto */
	char **owned;     /* texts of the callsites */
	uint32_t nowned, cap_owned;
};

/*
 * n must outlive what is returned (sites point to its probes). first_id: as for mt_elfnotes_read. fn finds symbols
 * (may be NULL). Nothing found is no error. 0, -ENOMEM.
 */
int mt_usdt_find(const struct mt_elfnotes *n, const struct mt_usdt_set *set, uint32_t first_id,
		 mt_symbol_fn fn, void *ctx, struct mt_usdt_found **ret_found);
void mt_usdt_found_free(struct mt_usdt_found *f);

#endif
