/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside cmd_list: what both forms print (cmd_list.c), the JSON form (cmd_list_json.c). */
#ifndef MT_CMD_LIST_INT_H
#define MT_CMD_LIST_INT_H

#include "cmd_list.h"
#include "usdt_profile.h"

/* Foreign probes of one provider and name. */
struct mt_list_group {
	const struct mt_probe *const *sites;
	uint32_t n;
};

struct mt_list {
	FILE *f;
	const struct mt_elfnotes *n;
	const char *path;
	const struct mt_filter *filter;
	const struct mt_probe **foreign; /* by provider, name, address */
	struct mt_list_group *groups;
	uint32_t ngroups;
	uint32_t armed;
	struct mt_list_more more;
};

/* cmd_list_foreign.c: what is known of a foreign probe beyond its note. */
struct mt_list_arg {
	char type[48];       /* "u64"; "i32|u64" if sites differ */
	const char *missing; /* why its value cannot be had; NULL if it can */
	uint32_t missing_at; /* ... at so many sites */
};

#define MT_LIST_TYPES_MAX 2048
struct mt_list_foreign {
	struct mt_list_arg args[MT_MAX_ARGS];
	unsigned nargs;
	char types[MT_LIST_TYPES_MAX]; /* "arg0:u64 arg1:f64(in a vector register ...)"; "-" = no arguments */
	const char *pair;              /* name of the other half of a span; "" */
	bool begin;                    /* it is the begin of the two */
	const char *profile;           /* "" */
};
void mt_list_foreign(const struct mt_list *l, const struct mt_list_group *g, struct mt_list_foreign *ret);

#define MT_LIST_VERDICT_MAX 512

/* "armed", or why not; into buf. */
const char *mt_list_verdict(const struct mt_list *l, const struct mt_callsite *cs, char *buf);
const char *mt_list_machine(const struct mt_elfnotes *n);
void mt_list_json(const struct mt_list *l);

#endif
