/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of timeline: timeline.c collects, _args.c packs arguments, _tree.c sorts and matches. */
#ifndef MT_TIMELINE_INT_H
#define MT_TIMELINE_INT_H

#include "timeline.h"

/* Memory for packed arguments: never moves, never freed singly. */
struct mt_tl_chunk {
	struct mt_tl_chunk *next;
	size_t used, cap;
	unsigned char bytes[];
};

uint32_t tl_intern(struct mt_timeline *tl, struct mt_str s);
/* Packs arguments and flows of ev. *ret_args is NULL if it has none. */
int tl_args_pack(struct mt_timeline *tl, const struct mt_pt_event *ev, const unsigned char **ret_args);
/* Sorts v[0..n) by time, then by index. tmp has room for n. */
void tl_sort(const struct mt_tl_event *events, uint32_t *v, uint32_t *tmp, uint32_t n);
int tl_build(struct mt_timeline *tl);

#endif
