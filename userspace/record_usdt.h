/* SPDX-License-Identifier: BSD-3-Clause */
/* Which foreign probes are wanted: --usdt, --profile, or nobody asked and profiles that know the program are used. */
#ifndef MT_RECORD_USDT_H
#define MT_RECORD_USDT_H

#include "attach.h"
#include "log.h"
#include "options.h"
#include "usdt_profile.h"

/* Start with {0}; mt_record_usdt_free() in any case. */
struct mt_record_usdt {
	const struct mt_options *o; /* borrowed, as is log */
	struct mt_log *log;
	struct mt_usdt_set own; /* of --usdt */
	struct mt_usdt_profile **profiles;
	uint32_t nprofiles;
	struct mt_usdt_set all; /* own ones and those of the profiles; borrowed */
	bool automatic;         /* nobody asked: profiles that know the program */
};

/*
 * Reads specs and profiles and hands them to a, which must not be used after u is freed. 0 or -errno; what is wrong was
 * said then.
 */
int mt_record_usdt_open(struct mt_record_usdt *u, const struct mt_options *o, struct mt_log *log,
			struct mt_attach *a);
/* When files were added: a program with montrace callsites is not traced by profiles that nobody asked for. */
void mt_record_usdt_decide(const struct mt_record_usdt *u, struct mt_attach *a);
/* When armed: what was found and what cannot be used. */
void mt_record_usdt_tell(const struct mt_record_usdt *u, const struct mt_attach *a);
void mt_record_usdt_free(struct mt_record_usdt *u);

#endif
