/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes from the ring -> struct mt_event. Trusts nothing. */
#ifndef MT_DECODE_H
#define MT_DECODE_H

#include "model.h"

/* What a site number (BPF cookie) stands for. */
struct mt_site {
	const struct mt_callsite *cs; /* NULL: number not in use */
};

/* Site numbers -> callsites. Numbers are dense from 1 (v[0] is number 1); a number is never used twice. */
struct mt_sites {
	struct mt_site *v;
	uint32_t n, cap;
};

int mt_sites_add(struct mt_sites *s, const struct mt_callsite *cs, uint32_t *ret_number);
void mt_sites_free(struct mt_sites *s);

struct mt_decode_stats {
	uint64_t records;   /* ring records taken */
	uint64_t malformed; /* dropped whole: bad size, unknown site, kind not of that callsite */
	uint64_t unknown;   /* well formed, of a kind this version does not know: skipped */
};

/*
 * Decodes one ring record and calls cb for each event in it, in order.
 * cb's non-zero return stops and is returned. A malformed record is counted and is no error
 * (returns 0): its hit still shows as a gap if nothing of it could be used.
 */
/*
 * Values of an end (SCOPE_END, SPAN_CLOSE of a foreign probe) are those of the callsite's fields from end_at on.
 */
typedef int (*mt_decode_cb)(void *ctx, const struct mt_event *ev);
int mt_decode_record(const struct mt_sites *sites, struct mt_decode_stats *stats, const void *data,
		     size_t len, mt_decode_cb cb, void *ctx);

/* When and on which thread a record was made. -EINVAL if it is none. */
int mt_decode_who(const void *data, size_t len, uint64_t *ret_time, uint32_t *ret_tgid, uint32_t *ret_tid);

/* Head of a life record, for who must bring them in order with hits. */
struct mt_life_head {
	uint64_t time;
	uint32_t tgid;
	uint32_t tid;
	uint32_t child; /* process that was born; 0 = none */
	bool exec;      /* the thread replaced the process's image: its other threads are gone */
};

/* -EINVAL if it is no life record. */
int mt_decode_life(const void *data, size_t len, struct mt_life_head *ret_head);

#endif
