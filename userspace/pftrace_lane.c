/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: tracks under a process that hold one span at a time, for spans that belong to no thread.
 *
 * A pool is a set of lanes of one name. A span takes the lowest free lane of its pool, and gives it back when it
 * ends: so a pool has as many lanes as its spans were open at once, and a viewer that lays tracks of one name
 * together shows a compact band. Who has which lane is in a map, free lanes are bits: taking, finding and giving
 * back do not depend on how many there are.
 *
 * A lane's events go on with the time of its last one where they would be older (they come from several threads).
 *
 * Example: span 1 new@10, span 2 new@20, span 1 close@30, span 3 new@40: lane 0 holds 1 and then 3, lane 1 holds 2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pftrace_cold.h"
#include "room.h"

/* ---- Map: open addressing, deletion by shifting back; key 0 is free ------------------------------- */

static uint64_t home(const struct pf_map *m, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> (64 - m->bits);
}

static uint64_t place(const struct pf_map *m, uint64_t key)
{
	uint64_t mask = (1ull << m->bits) - 1, i = home(m, key);

	while (m->v[i].key && m->v[i].key != key)
		i = (i + 1) & mask;
	return i;
}

static bool map_get(const struct pf_map *m, uint64_t key, uint64_t *ret_value)
{
	const struct pf_map_slot *s = m->n ? &m->v[place(m, key)] : NULL;

	if (!s || !s->key)
		return false;
	*ret_value = s->value;
	return true;
}

/* key must be new. */
static int map_put(struct pf_map *m, uint64_t key, uint64_t value)
{
	if (m->bits == 0 || m->n >= (1u << m->bits) / 2) {
		struct pf_map more = {.bits = m->bits ? m->bits + 1 : 4, .n = m->n};
		uint64_t i;

		more.v = calloc(1ull << more.bits, sizeof(*more.v));
		if (!more.v)
			return -ENOMEM;
		for (i = 0; m->bits && i < 1ull << m->bits; i++)
			if (m->v[i].key)
				more.v[place(&more, m->v[i].key)] = m->v[i];
		free(m->v);
		*m = more;
	}
	m->v[place(m, key)] = (struct pf_map_slot){key, value};
	m->n++;
	return 0;
}

static void map_del(struct pf_map *m, uint64_t key)
{
	uint64_t mask = (1ull << m->bits) - 1, hole = place(m, key), i;

	for (i = (hole + 1) & mask; m->v[i].key; i = (i + 1) & mask) {
		if (((i - home(m, m->v[i].key)) & mask) < ((i - hole) & mask))
			continue;
		m->v[hole] = m->v[i];
		hole = i;
	}
	m->v[hole].key = 0;
	m->n--;
}

/* ---- Pools ---------------------------------------------------------------------------------------- */

static struct pf_pool *pool_get(struct pf_process *pp, uint64_t id)
{
	struct pf_pool *pool;
	uint64_t at;

	if (map_get(&pp->pool_of, id, &at))
		return &pp->pools[at];
	if (mt_room(&pp->pools, pp->npools, &pp->pool_cap, sizeof(*pp->pools)) < 0 ||
	    map_put(&pp->pool_of, id, pp->npools) < 0)
		return NULL;
	pool = &pp->pools[pp->npools++];
	*pool = (struct pf_pool){.id = id};
	return pool;
}

/* One lane more, free. */
static int pool_grow(struct pf_process *pp, struct pf_pool *pool)
{
	uint32_t words = (pool->cap + 63) / 64;

	if (mt_room(&pool->lanes, pool->n, &pool->cap, sizeof(*pool->lanes)) < 0)
		return -ENOMEM;
	if ((pool->cap + 63) / 64 > words || !pool->free) {
		uint64_t *v = realloc(pool->free, (pool->cap + 63) / 64 * sizeof(*v));

		if (!v) {
			pool->cap = words * 64 < pool->cap ? words * 64
							   : pool->cap; /* as far as there are bits */
			return -ENOMEM;
		}
		memset(v + words, 0, ((pool->cap + 63) / 64 - words) * sizeof(*v));
		if (!pool->free)
			v[0] = 0;
		pool->free = v;
	}
	pool->lanes[pool->n] = (struct pf_lane){0};
	pool->free[pool->n / 64] |= 1ull << pool->n % 64;
	if (pool->n / 64 < pool->hint)
		pool->hint = pool->n / 64;
	pool->n++;
	pp->nlanes++;
	return 0;
}

/* The lowest free one; false: none. */
static bool pool_lowest(struct pf_pool *pool, uint32_t *ret_lane)
{
	uint32_t words = (pool->n + 63) / 64;

	while (pool->hint < words && !pool->free[pool->hint])
		pool->hint++;
	if (pool->hint == words)
		return false;
	*ret_lane = pool->hint * 64 + (uint32_t)__builtin_ctzll(pool->free[pool->hint]);
	return true;
}

static int describe(struct pf *pf, const struct pf_process *pp, uint64_t pool, uint32_t number,
		    struct pf_lane *lane, const char *name, uint64_t time)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	struct cold_text text;

	lane->uuid = mt_pf_uuid_of(pool, "lane", number);
	track.has_uuid = 1;
	track.uuid = lane->uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = pp->uuid;
	track.name = cold(&text, name);
	return mt_pf_track_put(pf, &track, time);
}

int mt_pf_lane_take(struct pf *pf, struct pf_process *pp, uint64_t pool_id, uint32_t max, const char *name,
		    uint64_t key, uint64_t time, struct pf_lane **ret_lane)
{
	struct pf_pool *pool = pool_get(pp, pool_id);
	struct pf_lane *lane;
	uint32_t number;

	*ret_lane = NULL;
	if (!pool)
		return -ENOMEM;
	if (!pool_lowest(pool, &number)) {
		if (pool->n >= max)
			return 0;
		if (pool_grow(pp, pool) < 0)
			return -ENOMEM;
		number = pool->n - 1;
	}
	if (map_put(&pp->lane_of, key, (uint64_t)(pool - pp->pools) << 32 | number) < 0)
		return -ENOMEM;
	pool->free[number / 64] &= ~(1ull << number % 64);
	lane = &pool->lanes[number];
	if (time > lane->last)
		lane->last = time;
	*ret_lane = lane;
	return lane->uuid ? 0 : describe(pf, pp, pool->id, number, lane, name, time);
}

struct pf_lane *mt_pf_lane_give(struct pf_process *pp, uint64_t key, uint64_t time)
{
	struct pf_pool *pool;
	struct pf_lane *lane;
	uint32_t number;
	uint64_t at;

	if (!map_get(&pp->lane_of, key, &at))
		return NULL;
	map_del(&pp->lane_of, key);
	pool = &pp->pools[at >> 32];
	number = (uint32_t)at;
	pool->free[number / 64] |= 1ull << number % 64;
	if (number / 64 < pool->hint)
		pool->hint = number / 64;
	lane = &pool->lanes[number];
	if (time > lane->last)
		lane->last = time;
	return lane;
}

void mt_pf_lanes_free(struct pf_process *pp)
{
	for (uint32_t i = 0; i < pp->npools; i++) {
		for (uint32_t k = 0; k < pp->pools[i].n; k++)
			free(pp->pools[i].lanes[k].name);
		free(pp->pools[i].lanes);
		free(pp->pools[i].free);
	}
	free(pp->pools);
	free(pp->pool_of.v);
	free(pp->lane_of.v);
}
