/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that counters had when the window began: of each counter of a process the last one that has left the log.
 *
 * A table of fixed size, found by process and callsite. An entry goes with the slot of its process. A counter for which
 * there is no room is counted and has no value before its first one in the window.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flight_int.h"

int fl_counters_new(struct flight *f)
{
	uint32_t i;

	f->max_counters = 256;
	while (f->max_counters < 65536 && f->max_counters < f->cap / 16384)
		f->max_counters *= 2;
	f->counters = calloc(f->max_counters, sizeof(*f->counters));
	f->counter_buckets = calloc(f->max_counters, sizeof(*f->counter_buckets));
	if (!f->counters || !f->counter_buckets)
		return -ENOMEM;
	for (i = 0; i < f->max_counters; i++)
		f->counters[i].hash_next = i + 1 < f->max_counters ? i + 2 : 0;
	f->free_counter = 1;
	f->stats.memory += (uint64_t)f->max_counters * (sizeof(*f->counters) + sizeof(*f->counter_buckets));
	return 0;
}

void fl_counters_free(struct flight *f)
{
	free(f->counters);
	free(f->counter_buckets);
}

/* max_counters is a power of two. */
static uint32_t *bucket(struct flight *f, uint32_t proc, const struct mt_callsite *cs)
{
	uint64_t h = ((uint64_t)(uintptr_t)cs + proc) * 0x9e3779b97f4a7c15ull;

	return &f->counter_buckets[(h >> 32) & (f->max_counters - 1)];
}

static struct fl_counter *counter_new(struct flight *f, uint32_t proc, const struct mt_callsite *cs)
{
	uint32_t n = f->free_counter, *at = bucket(f, proc, cs);
	struct fl_counter *c;

	if (!n)
		return NULL;
	c = &f->counters[n - 1];
	f->free_counter = c->hash_next;
	*c = (struct fl_counter){
		.proc = proc, .cs = cs, .hash_next = *at, .sibling = f->processes[proc].counters};
	*at = n;
	f->processes[proc].counters = n;
	f->stats.counters++;
	return c;
}

void fl_counter_keep(struct flight *f, const struct fl_thread *t, struct fl_rec *rec)
{
	const struct mt_callsite *cs;
	struct mt_value values[MONTRACE_MAX_FIELDS];
	struct fl_counter *c = NULL;
	uint32_t n;

	mt_unpack_raw(&rec->body, &cs, sizeof(cs));
	if (mt_unpack_values(&rec->body, values) != 1 || values[0].missing)
		return;
	for (n = *bucket(f, t->proc, cs); n; n = c->hash_next) {
		c = &f->counters[n - 1];
		if (c->proc == t->proc && c->cs == cs)
			break;
	}
	if (!n)
		c = counter_new(f, t->proc, cs);
	if (!c) {
		f->stats.counters_lost++;
		return;
	}
	c->time = rec->time;
	c->type = values[0].type;
	c->bits = values[0].u;
}

void fl_counters_drop(struct flight *f, uint32_t proc)
{
	uint32_t n = f->processes[proc].counters, next, *at;

	for (; n; n = next) {
		struct fl_counter *c = &f->counters[n - 1];

		next = c->sibling;
		for (at = bucket(f, proc, c->cs); *at != n; at = &f->counters[*at - 1].hash_next)
			;
		*at = c->hash_next;
		c->hash_next = f->free_counter;
		f->free_counter = n;
		f->stats.counters--;
	}
	f->processes[proc].counters = 0;
}
