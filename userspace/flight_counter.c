/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that counters had when the window began: of each counter of a process the last one that has left the log.
 *
 * A table of fixed size, found by process, callsite and name. An entry goes with the slot of its process. A counter for which
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
	while (f->max_counters < 4096 && f->max_counters < f->cap / 16384)
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

/* What makes it that counter. */
struct who {
	uint32_t proc;
	const struct mt_callsite *cs;
	struct mt_str name; /* p NULL: the callsite's */
};

/* max_counters is a power of two. */
static uint32_t *bucket(struct flight *f, const struct who *w)
{
	uint64_t h = ((uint64_t)(uintptr_t)w->cs + w->proc) * 0x9e3779b97f4a7c15ull;
	uint32_t i;

	for (i = 0; i < w->name.len; i++)
		h = (h ^ (uint8_t)w->name.p[i]) * 0x100000001b3ull;
	return &f->counter_buckets[(h >> 32) & (f->max_counters - 1)];
}

static struct who who_is(const struct fl_counter *c)
{
	return (struct who){c->proc, c->cs, {c->named ? c->name : NULL, c->name_len}};
}

static bool same(const struct fl_counter *c, const struct who *w)
{
	return c->proc == w->proc && c->cs == w->cs && c->named == (w->name.p != NULL) &&
	       c->name_len == w->name.len && (!c->name_len || !memcmp(c->name, w->name.p, c->name_len));
}

static struct fl_counter *counter_new(struct flight *f, const struct who *w, uint32_t *at)
{
	uint32_t n = f->free_counter;
	struct fl_counter *c;

	if (!n || w->name.len > sizeof(c->name))
		return NULL;
	c = &f->counters[n - 1];
	f->free_counter = c->hash_next;
	*c = (struct fl_counter){.proc = w->proc,
				 .cs = w->cs,
				 .named = w->name.p,
				 .name_len = (uint16_t)w->name.len,
				 .hash_next = *at,
				 .sibling = f->processes[w->proc].counters};
	if (w->name.len)
		memcpy(c->name, w->name.p, w->name.len);
	*at = n;
	f->processes[w->proc].counters = n;
	f->stats.counters++;
	return c;
}

void fl_counter_keep(struct flight *f, const struct fl_thread *t, struct fl_rec *rec)
{
	struct mt_value values[MONTRACE_MAX_FIELDS];
	struct fl_counter *c = NULL;
	struct who w = {.proc = t->proc};
	uint32_t n, *at;

	w.cs = (const struct mt_callsite *)(uintptr_t)fl_get(rec);
	if (mt_unpack_u8(&rec->body))
		w.name = mt_unpack_text(&rec->body);
	if (mt_unpack_values(&rec->body, values) != 1 || values[0].missing)
		return;
	at = bucket(f, &w);
	for (n = *at; n; n = c->hash_next) {
		c = &f->counters[n - 1];
		if (same(c, &w))
			break;
	}
	if (!n)
		c = counter_new(f, &w, at);
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

		struct who w = who_is(c);

		next = c->sibling;
		for (at = bucket(f, &w); *at != n; at = &f->counters[*at - 1].hash_next)
			;
		*at = c->hash_next;
		c->hash_next = f->free_counter;
		f->free_counter = n;
		f->stats.counters--;
	}
	f->processes[proc].counters = 0;
}
