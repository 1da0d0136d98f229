/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sink that watches for conditions.
 *
 * A slice that a `span` condition wants is noted when it begins, once for each such condition, and timed when it
 * ends; all others cost a comparison of names. Those noted also stand in a queue of their condition, in the order in
 * which they began. As all of a queue have the same limit, the first is the first to exceed it: a look at the first
 * ones, some times a second, finds all that are open for too long already. These meet the condition at once and are
 * forgotten, so their end does not meet it again.
 *
 * Invariants
 *  T1  A slice meets a condition once at most.
 *  T2  What is found open at a time that all was told of lasts longer than that: whatever flush() finds, the end
 *      would have found.
 *  T3  Each slice is looked at once when it begins, once when it ends or is found; a look at the queues costs no more
 *      than what it finds.
 *
 * Example: `span s > 50ms`, s begins at 0. flush(40 ms): nothing. flush(90 ms): met, "open for 90 ms". Its end at
 * 7 s: nothing. If it ends at 60 ms, before the flush at 90 ms, it is met by its end: "took 60 ms".
 *
 * A span that is entered many times, or interrupted by the end of an outer one, is many slices. Not done here:
 * slices that began before the watch did.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"
#include "trigger_int.h"

/* A slice that is being timed for a condition. Numbers are index + 1, 0 = none. */
struct timed {
	uint64_t key, begin;
	const struct mt_callsite *cs;
	const struct mt_thread *thread; /* NULL: a span with a key */
	uint32_t trigger;               /* index */
	uint32_t prev, next;            /* in the queue; next: of free ones, too */
};

struct queue {
	uint32_t first, last;
};

struct watcher {
	struct mt_sink sink;
	struct mt_trigger_stats stats;
	mt_trigger_cb cb;
	void *ctx;
	struct timed *timed; /* max_open */
	uint32_t *slots;     /* 1 << bits: numbers in timed; linear probing, deletion by shifting back */
	unsigned bits;
	uint32_t n, max_open, fresh, free; /* fresh: how many were ever used */
	struct queue *queues;              /* one for each trigger */
	unsigned ntriggers;
	struct mt_trigger *triggers[];
};

static struct watcher *watcher_of(struct mt_sink *s)
{
	return (struct watcher *)s;
}

static uint64_t slot_of(const struct watcher *w, uint64_t key, uint32_t trigger)
{
	return ((key + trigger) * 0x9e3779b97f4a7c15ULL) >> (64 - w->bits);
}

static void add(struct watcher *w, const struct mt_slice *sl, uint32_t trigger)
{
	uint64_t mask = (1ull << w->bits) - 1, i;
	struct queue *q = &w->queues[trigger];
	struct timed *t;
	uint32_t no;

	if (!sl->key || w->n == w->max_open) {
		w->stats.forgotten++;
		return;
	}
	no = w->free ? w->free : ++w->fresh;
	t = &w->timed[no - 1];
	if (w->free)
		w->free = t->next;
	*t = (struct timed){.key = sl->key,
			    .begin = sl->time,
			    .cs = sl->cs,
			    .thread = sl->thread,
			    .trigger = trigger,
			    .prev = q->last};
	*(q->last ? &w->timed[q->last - 1].next : &q->first) = no;
	q->last = no;
	for (i = slot_of(w, sl->key, trigger); w->slots[i]; i = (i + 1) & mask)
		;
	w->slots[i] = no;
	w->n++;
}

/* Place of its number in slots; false: it is not there. */
static bool find(const struct watcher *w, uint64_t key, uint32_t trigger, uint64_t *ret_at)
{
	uint64_t mask = (1ull << w->bits) - 1, i;
	const struct timed *t;

	for (i = slot_of(w, key, trigger); w->slots[i]; i = (i + 1) & mask) {
		t = &w->timed[w->slots[i] - 1];
		if (t->key == key && t->trigger == trigger) {
			*ret_at = i;
			return true;
		}
	}
	return false;
}

static void del(struct watcher *w, uint64_t at)
{
	uint64_t mask = (1ull << w->bits) - 1, i, hole;
	uint32_t no = w->slots[at];
	struct timed *t = &w->timed[no - 1];
	struct queue *q = &w->queues[t->trigger];

	*(t->prev ? &w->timed[t->prev - 1].next : &q->first) = t->next;
	*(t->next ? &w->timed[t->next - 1].prev : &q->last) = t->prev;
	t->next = w->free;
	w->free = no;
	w->n--;
	for (hole = at, i = (at + 1) & mask; w->slots[i]; i = (i + 1) & mask) {
		const struct timed *other = &w->timed[w->slots[i] - 1];

		/* Moves back unless its own place lies behind the hole. */
		if (((i - slot_of(w, other->key, other->trigger)) & mask) < ((i - hole) & mask))
			continue;
		w->slots[hole] = w->slots[i];
		hole = i;
	}
	w->slots[hole] = 0;
}

static void fire(struct watcher *w, const struct mt_trigger *t, struct mt_str name, const char *what,
		 uint64_t time)
{
	char safe[512], text[MT_TRIGGER_MAX + 1024];

	mt_text_safe(safe, sizeof(safe), name.p, name.len);
	snprintf(text, sizeof(text), "%s (%s%s%s)", t->text, safe, what[0] && safe[0] ? " " : "", what);
	w->stats.fired++;
	w->cb(w->ctx, t, text, time);
}

static int watch_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct watcher *w = watcher_of(s);
	uint32_t i;

	for (i = 0; i < w->ntriggers; i++)
		if (mt_trigger_wants_span(w->triggers[i], sl->cs, sl->name))
			add(w, sl, i);
	return 0;
}

static int watch_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct watcher *w = watcher_of(s);
	char what[40];
	uint64_t at, ns;
	uint32_t i;

	for (i = 0; w->n && i < w->ntriggers; i++) {
		const struct timed *t;

		if (w->triggers[i]->what != TR_SPAN || !find(w, e->key, i, &at))
			continue;
		t = &w->timed[w->slots[at] - 1];
		ns = e->time > t->begin ? e->time - t->begin : 0;
		del(w, at);
		if (!mt_trigger_duration(w->triggers[i], ns))
			continue;
		snprintf(what, sizeof(what), "took %.3f ms", (double)ns / 1e6);
		fire(w, w->triggers[i], e->name, what, e->time);
	}
	return 0;
}

static void fire_open(struct watcher *w, const struct timed *t, uint64_t now)
{
	struct mt_str name = {"", 0};
	char safe[160], where[200] = "", what[260];

	if (t->cs)
		name = (struct mt_str){t->cs->name, (uint32_t)strlen(t->cs->name)};
	if (t->thread) { /* else it has a key */
		mt_text_safe(safe, sizeof(safe), t->thread->name, strlen(t->thread->name));
		snprintf(where, sizeof(where), " on thread %u %s", t->thread->tid, safe);
	}
	snprintf(what, sizeof(what), "is open for %.3f ms%s", (double)(now - t->begin) / 1e6, where);
	fire(w, w->triggers[t->trigger], name, what, now);
}

/* Whatever ended up to now has been told: T2. */
static int watch_flush(struct mt_sink *s, uint64_t now)
{
	struct watcher *w = watcher_of(s);
	uint64_t at;
	uint32_t i, no;

	for (i = 0; w->n && i < w->ntriggers; i++) {
		while ((no = w->queues[i].first)) {
			const struct timed *t = &w->timed[no - 1];

			if (now <= t->begin || !mt_trigger_duration(w->triggers[i], now - t->begin))
				break;
			fire_open(w, t, now);
			if (!find(w, t->key, i, &at))
				break;
			del(w, at);
		}
	}
	return 0;
}

static int watch_instant(struct mt_sink *s, const struct mt_instant *in)
{
	struct watcher *w = watcher_of(s);
	unsigned i;

	for (i = 0; i < w->ntriggers; i++)
		if (mt_trigger_instant(w->triggers[i], in))
			fire(w, w->triggers[i], in->name, "", in->time);
	return 0;
}

static int watch_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct watcher *w = watcher_of(s);
	char what[40];
	unsigned i;

	for (i = 0; i < w->ntriggers; i++) {
		uint64_t sum = w->triggers[i]->lost + l->count;

		if (!mt_trigger_lost(w->triggers[i], l->count))
			continue;
		snprintf(what, sizeof(what), "%" PRIu64 " lost", sum);
		fire(w, w->triggers[i], (struct mt_str){"", 0}, what, l->time);
	}
	return 0;
}

static int watch_free(struct mt_sink *s)
{
	struct watcher *w = watcher_of(s);
	unsigned i;

	if (!w)
		return 0;
	for (i = 0; i < w->ntriggers; i++)
		mt_trigger_free(w->triggers[i]);
	free(w->timed);
	free(w->slots);
	free(w->queues);
	free(w);
	return 0;
}

static const struct mt_sink_ops watch_ops = {
	.begin = watch_begin,
	.end = watch_end,
	.instant = watch_instant,
	.lost = watch_lost,
	.flush = watch_flush,
	.keyed_begin = watch_begin,
	.keyed_end = watch_end,
	.free = watch_free,
};

int mt_trigger_sink_new(struct mt_trigger *const *triggers, unsigned n, uint32_t max_open, mt_trigger_cb cb,
			void *ctx, struct mt_sink **ret_sink)
{
	struct watcher *w = calloc(1, sizeof(*w) + n * sizeof(w->triggers[0]));

	if (!w)
		return -ENOMEM;
	w->max_open = max_open ? max_open : 65536;
	for (w->bits = 1; 1ull << w->bits < 2ull * w->max_open; w->bits++)
		;
	w->timed = calloc(w->max_open, sizeof(*w->timed));
	w->slots = calloc(1ull << w->bits, sizeof(*w->slots));
	w->queues = calloc(n + 1, sizeof(*w->queues));
	if (!w->timed || !w->slots || !w->queues) {
		watch_free(&w->sink);
		return -ENOMEM;
	}
	w->sink.ops = &watch_ops;
	w->cb = cb;
	w->ctx = ctx;
	w->ntriggers = n;
	memcpy(w->triggers, triggers, n * sizeof(*triggers));
	*ret_sink = &w->sink;
	return 0;
}

void mt_trigger_sink_stats(const struct mt_sink *s, struct mt_trigger_stats *ret_stats)
{
	*ret_stats = ((const struct watcher *)s)->stats;
}
