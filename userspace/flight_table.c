/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables beside the log: processes, threads, slices open when the window began. All of fixed size.
 *
 * A slot of a thread is given back when the thread is gone and the log has no record of it; of a process,
 * when it is gone and has no thread in the table. If a new one finds no slot, the one gone longest makes
 * room: its slot gets a new generation, and its records in the log are nobody's from then on.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "flight_int.h"
#include "strings.h"

static uint32_t clamp(uint64_t v, uint32_t lo, uint32_t hi)
{
	return v < lo ? lo : v > hi ? hi : (uint32_t)v;
}

static bool free_init(struct fl_free *s, uint32_t n)
{
	s->v = calloc(n, sizeof(*s->v));
	if (!s->v)
		return false;
	for (s->n = 0; s->n < n; s->n++)
		s->v[s->n] = n - 1 - s->n;
	return true;
}

/* Beyond 64 MiB they do not grow with the window: what is stated for it is to be nearly all. */
int fl_tables_new(struct flight *f)
{
	uint32_t i;

	f->max_threads = clamp(f->cap / 8192, 256, 8192);
	f->max_processes = clamp(f->cap / 65536, 64, 1024);
	f->max_open = clamp(f->cap / 1024, 1024, 65536);
	f->max_blocks = clamp(f->cap / 16 / sizeof(struct fl_block), 1024, 65536);
	f->threads = calloc(f->max_threads, sizeof(*f->threads));
	f->processes = calloc(f->max_processes, sizeof(*f->processes));
	f->open = calloc(f->max_open, sizeof(*f->open));
	f->keyed = calloc(f->max_open, sizeof(*f->keyed));
	f->blocks = calloc(f->max_blocks, sizeof(*f->blocks));
	if (!f->threads || !f->processes || !f->open || !f->keyed || !f->blocks ||
	    !free_init(&f->free_threads, f->max_threads) ||
	    !free_init(&f->free_processes, f->max_processes) || fl_counters_new(f) < 0)
		return -ENOMEM;
	for (i = 0; i < f->max_open; i++)
		f->open[i].below = i + 1 < f->max_open ? i + 2 : 0;
	for (i = 0; i < f->max_blocks; i++)
		f->blocks[i].next = i + 1 < f->max_blocks ? i + 2 : 0;
	f->free_open = 1;
	f->free_block = 1;
	f->blocks_left = f->max_blocks;
	f->stats.memory += (uint64_t)f->max_threads * (sizeof(*f->threads) + 4) +
			   (uint64_t)f->max_processes * (sizeof(*f->processes) + 4) +
			   (uint64_t)f->max_open * (sizeof(*f->open) + sizeof(*f->keyed)) +
			   (uint64_t)f->max_blocks * sizeof(*f->blocks);
	return 0;
}

void fl_tables_free(struct flight *f)
{
	free(f->threads);
	free(f->processes);
	free(f->open);
	free(f->keyed);
	free(f->blocks);
	free(f->free_threads.v);
	free(f->free_processes.v);
	fl_counters_free(f);
}

static void keep_text(char *dst, size_t cap, const char *src)
{
	size_t len = strlen(src);

	if (len >= cap)
		len = mt_utf8_prefix(src, len, cap - 1);
	memcpy(dst, src, len);
	dst[len] = '\0';
}

/* ---- lists of gone ones; LINK is the table's row of a number ---- */

#define THREAD_LINK(n) (&f->threads[(n)-1].gone)
#define PROCESS_LINK(n) (&f->processes[(n)-1].gone)

#define LIST_ADD(list, LINK, n)                        \
	do {                                           \
		LINK(n)->prev = (list).prev;           \
		LINK(n)->next = 0;                     \
		if ((list).prev)                       \
			LINK((list).prev)->next = (n); \
		else                                   \
			(list).next = (n);             \
		(list).prev = (n);                     \
	} while (0)

#define LIST_DEL(list, LINK, n)                                             \
	do {                                                                \
		struct fl_link l_ = *LINK(n);                               \
		*(l_.prev ? &LINK(l_.prev)->next : &(list).next) = l_.next; \
		*(l_.next ? &LINK(l_.next)->prev : &(list).prev) = l_.prev; \
	} while (0)

/* ---- open slices ---- */

void fl_open_free(struct flight *f, uint32_t n)
{
	struct fl_open *o = &f->open[n - 1];
	uint32_t b = o->block, next;

	for (; b; b = next) {
		next = f->blocks[b - 1].next;
		f->blocks[b - 1].next = f->free_block;
		f->free_block = b;
		f->blocks_left++;
	}
	o->below = f->free_open;
	f->free_open = n;
	f->stats.open--;
}

static void open_store(struct flight *f, struct fl_open *o, const uint8_t *data, size_t len)
{
	uint32_t *link = &o->block, b;
	size_t part;

	if ((len + FL_BLOCK - 1) / FL_BLOCK > f->blocks_left) {
		o->bare = true;
		f->stats.open_bare++;
		return;
	}
	o->len = (uint32_t)len;
	for (; len; len -= part, data += part) {
		part = len < FL_BLOCK ? len : FL_BLOCK;
		b = f->free_block;
		f->free_block = f->blocks[b - 1].next;
		f->blocks_left--;
		memcpy(f->blocks[b - 1].bytes, data, part);
		f->blocks[b - 1].next = 0;
		*link = b;
		link = &f->blocks[b - 1].next;
	}
}

uint32_t fl_open_take(struct flight *f, const struct fl_head *h, uint64_t time, const uint8_t *data,
		      size_t len)
{
	uint32_t n = f->free_open;
	struct fl_open *o;

	if (!n) {
		f->stats.open_lost++;
		f->missing++;
		return 0;
	}
	o = &f->open[n - 1];
	f->free_open = o->below;
	o->time = time;
	o->key = h->key;
	o->span = h->span;
	o->parent = h->parent;
	o->flow = h->flow;
	o->cs = h->cs;
	o->flags = h->flags;
	o->block = o->len = 0;
	o->bare = false;
	open_store(f, o, data, len);
	f->stats.open++;
	return n;
}

void fl_open_push(struct flight *f, struct fl_thread *t, const struct fl_head *h, uint64_t time,
		  const uint8_t *data, size_t len)
{
	uint32_t n = fl_open_take(f, h, time, data, len);

	if (!n) {
		t->missing++;
		return;
	}
	f->open[n - 1].below = t->base;
	f->open[n - 1].losses = t->losses;
	t->base = n;
}

void fl_open_pop(struct flight *f, struct fl_thread *t, uint64_t key)
{
	uint32_t n = t->base;

	/* Another key: the begin found no slot. */
	if (!n || f->open[n - 1].key != key) {
		f->missing -= t->missing > 0;
		t->missing -= t->missing > 0;
		return;
	}
	t->base = f->open[n - 1].below;
	fl_open_free(f, n);
}

void fl_open_data(const struct flight *f, const struct fl_open *o, uint8_t *dst)
{
	uint32_t b = o->block, left = o->len;

	for (; b && left; b = f->blocks[b - 1].next) {
		uint32_t part = left < FL_BLOCK ? left : FL_BLOCK;

		memcpy(dst, f->blocks[b - 1].bytes, part);
		dst += part;
		left -= part;
	}
}

struct fl_head fl_open_head(const struct fl_open *o)
{
	return (struct fl_head){.flags = o->flags,
				.cs = o->cs,
				.key = o->key,
				.span = o->span,
				.parent = o->parent,
				.flow = o->flow};
}

/* ---- threads and processes ---- */

static void process_free(struct flight *f, uint32_t i)
{
	struct fl_process *p = &f->processes[i];

	if (!p->live)
		LIST_DEL(f->gone_processes, PROCESS_LINK, i + 1);
	fl_counters_drop(f, i);
	fl_keyed_forget(f, p);
	p->used = false;
	p->gen++;
	f->free_processes.v[f->free_processes.n++] = i;
	f->stats.processes--;
}

void fl_process_unref(struct flight *f, struct fl_process *p)
{
	if (--p->refs == 0 && !p->live)
		process_free(f, (uint32_t)(p - f->processes));
}

/* Its records in the log, if any, are nobody's from now on. */
static void thread_free(struct flight *f, uint32_t i)
{
	struct fl_thread *t = &f->threads[i];
	struct fl_process *p = &f->processes[t->proc];

	if (!t->live)
		LIST_DEL(f->gone_threads, THREAD_LINK, i + 1);
	while (t->base) {
		uint32_t n = t->base;

		t->base = f->open[n - 1].below;
		fl_open_free(f, n);
	}
	f->missing -= t->missing;
	t->used = false;
	t->gen++;
	f->free_threads.v[f->free_threads.n++] = i;
	f->stats.threads--;
	fl_process_unref(f, p);
}

static void *number(uint32_t i)
{
	return (void *)((uintptr_t)i + 1);
}

struct fl_process *fl_process_of(struct flight *f, const struct mt_process *p)
{
	return p->sink_data ? &f->processes[(uintptr_t)p->sink_data - 1] : NULL;
}

struct fl_thread *fl_thread_of(struct flight *f, const struct mt_thread *t)
{
	return t->sink_data ? &f->threads[(uintptr_t)t->sink_data - 1] : NULL;
}

/* The process gone longest goes with all its threads. */
static bool process_room(struct flight *f)
{
	uint32_t i, oldest = f->gone_processes.next;

	if (f->free_processes.n)
		return true;
	if (!oldest)
		return false;
	for (i = 0; i < f->max_threads; i++)
		if (f->threads[i].used && f->threads[i].proc == oldest - 1 && !f->threads[i].live)
			thread_free(f, i);
	if (f->processes[oldest - 1].used && f->gone_processes.next == oldest) /* kept for spans with a key */
		process_free(f, oldest - 1);
	return f->free_processes.n;
}

struct fl_process *fl_process_get(struct flight *f, struct mt_process *pub)
{
	struct fl_process *p = fl_process_of(f, pub);

	if (!p) {
		uint32_t i, gen;

		if (!process_room(f))
			return NULL;
		i = f->free_processes.v[--f->free_processes.n];
		p = &f->processes[i];
		gen = p->gen;
		*p = (struct fl_process){.gen = gen, .used = true, .live = true};
		pub->sink_data = number(i);
		f->stats.processes++;
	}
	p->pid = pub->pid;
	p->ppid = pub->ppid;
	p->uid = pub->uid;
	p->start = pub->start;
	p->name_given = pub->name_given;
	keep_text(p->name, sizeof(p->name), pub->name);
	keep_text(p->cmdline, sizeof(p->cmdline), pub->cmdline);
	keep_text(p->execution_id, sizeof(p->execution_id), pub->execution_id);
	return p;
}

struct fl_thread *fl_thread_get(struct flight *f, struct mt_thread *pub)
{
	struct fl_thread *t = fl_thread_of(f, pub);

	if (!t) {
		struct fl_process *p = fl_process_get(f, pub->process);
		uint32_t i, gen;

		if (!p)
			return NULL;
		if (!f->free_threads.n && f->gone_threads.next)
			thread_free(f, f->gone_threads.next - 1);
		if (!f->free_threads.n)
			return NULL;
		i = f->free_threads.v[--f->free_threads.n];
		t = &f->threads[i];
		gen = t->gen;
		*t = (struct fl_thread){.gen = gen, .used = true, .live = true};
		t->proc = (uint32_t)(p - f->processes);
		p->refs++;
		pub->sink_data = number(i);
		f->stats.threads++;
	}
	t->tid = pub->tid;
	t->start = pub->start;
	keep_text(t->name, sizeof(t->name), pub->name);
	return t;
}

void fl_process_gone(struct flight *f, struct mt_process *pub)
{
	struct fl_process *p = fl_process_of(f, pub);
	uint32_t n = (uint32_t)(uintptr_t)pub->sink_data;

	if (!p)
		return;
	pub->sink_data = NULL;
	p->end_reason = pub->end_reason;
	p->exit_status = pub->exit_status;
	p->live = false;
	LIST_ADD(f->gone_processes, PROCESS_LINK, n);
	if (!p->refs)
		process_free(f, n - 1);
}

void fl_thread_gone(struct flight *f, struct mt_thread *pub)
{
	struct fl_thread *t = fl_thread_of(f, pub);
	uint32_t n = (uint32_t)(uintptr_t)pub->sink_data;

	if (!t)
		return;
	pub->sink_data = NULL;
	t->live = false;
	LIST_ADD(f->gone_threads, THREAD_LINK, n);
	if (!t->refs)
		thread_free(f, n - 1);
}

void fl_thread_unref(struct flight *f, struct fl_thread *t)
{
	if (--t->refs == 0 && !t->live)
		thread_free(f, (uint32_t)(t - f->threads));
}

struct fl_thread *fl_thread_at(struct flight *f, const struct fl_rec *rec)
{
	struct fl_thread *t;

	if (!rec->has_thread)
		return NULL;
	t = &f->threads[rec->thread];
	return t->used && t->gen == rec->gen ? t : NULL;
}
