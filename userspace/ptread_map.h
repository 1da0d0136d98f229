/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * u64 -> u32 (not 0), open addressing. The seed is secret, so that a file cannot be made to collide.
 * For ptread and timeline.
 */
#ifndef MT_PTREAD_MAP_H
#define MT_PTREAD_MAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pt_map_slot {
	uint64_t key;
	uint32_t val; /* 0 = empty */
};

struct pt_map {
	struct pt_map_slot *v;
	uint32_t cap, n; /* cap: 0 or a power of two */
};

static inline uint64_t pt_map_hash(uint64_t key, uint64_t seed)
{
	uint64_t x = key ^ seed;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static inline uint32_t pt_map_get(const struct pt_map *m, uint64_t seed, uint64_t key)
{
	if (!m->cap)
		return 0;
	for (uint32_t i = (uint32_t)pt_map_hash(key, seed) & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		if (!m->v[i].val || m->v[i].key == key)
			return m->v[i].val;
	}
}

static inline void pt_map_place(struct pt_map *m, uint64_t seed, uint64_t key, uint32_t val)
{
	uint32_t i = (uint32_t)pt_map_hash(key, seed) & (m->cap - 1);

	while (m->v[i].val)
		i = (i + 1) & (m->cap - 1);
	m->v[i] = (struct pt_map_slot){key, val};
	m->n++;
}

/* The key must not be there yet. 0 or -ENOMEM. */
static inline int pt_map_add(struct pt_map *m, uint64_t seed, uint64_t key, uint32_t val)
{
	if ((uint64_t)(m->n + 1) * 3 > (uint64_t)m->cap * 2) {
		struct pt_map bigger = {.cap = m->cap ? m->cap * 2 : 16};

		if (!bigger.cap)
			return -ENOMEM;
		bigger.v = calloc(bigger.cap, sizeof(*bigger.v));
		if (!bigger.v)
			return -ENOMEM;
		for (uint32_t i = 0; i < m->cap; i++) {
			if (m->v[i].val)
				pt_map_place(&bigger, seed, m->v[i].key, m->v[i].val);
		}
		free(m->v);
		*m = bigger;
	}
	pt_map_place(m, seed, key, val);
	return 0;
}

static inline void pt_map_free(struct pt_map *m)
{
	free(m->v);
	*m = (struct pt_map){0};
}

/* Empties it. A table much larger than what was in it is given back, so that emptying stays cheap. */
static inline void pt_map_reset(struct pt_map *m)
{
	if (m->cap > 64 && m->n < m->cap / 16)
		pt_map_free(m);
	if (m->n)
		memset(m->v, 0, m->cap * sizeof(*m->v));
	m->n = 0;
}

#endif
