/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who is who: processes, threads, and the hash map under them.
 *
 * The keys of the span map are chosen by the target, so the hash is keyed with bits that it does not know.
 * Nothing iterates over a map: order comes from the lists, and a run repeats exactly.
 */
#include <errno.h>
#include <stdlib.h>

#include "spans_int.h"

static void map_insert(const struct mt_spans *s, struct sp_slot *v, uint32_t bits, uint64_t key, void *p)
{
	uint64_t mask = (1ULL << bits) - 1, i = sp_hash(s->seed, key) & mask;

	while (v[i].p)
		i = (i + 1) & mask;
	v[i] = (struct sp_slot){key, p};
}

int sp_map_put(const struct mt_spans *s, struct sp_map *m, uint64_t key, void *p)
{
	if (m->bits == 0 || m->n >= (1u << m->bits) / 2) {
		uint32_t bits = m->bits ? m->bits + 1 : 4;
		struct sp_slot *v;
		uint64_t i;

		if (bits > 30)
			return -ENOMEM;
		v = calloc(1ULL << bits, sizeof(*v));
		if (!v)
			return -ENOMEM;
		for (i = 0; m->bits && i < 1ULL << m->bits; i++)
			if (m->v[i].p)
				map_insert(s, v, bits, m->v[i].key, m->v[i].p);
		free(m->v);
		m->v = v;
		m->bits = bits;
	}
	map_insert(s, m->v, m->bits, key, p);
	m->n++;
	return 0;
}

void sp_map_del(const struct mt_spans *s, struct sp_map *m, uint64_t key)
{
	uint64_t mask = (1ULL << m->bits) - 1, hole, i;

	if (m->n == 0)
		return;
	for (hole = sp_hash(s->seed, key) & mask; m->v[hole].key != key || !m->v[hole].p;
	     hole = (hole + 1) & mask)
		if (!m->v[hole].p)
			return;
	/* Whatever behind the hole would not be found any more moves into it. */
	for (i = (hole + 1) & mask; m->v[i].p; i = (i + 1) & mask) {
		uint64_t home = sp_hash(s->seed, m->v[i].key) & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->v[hole] = m->v[i];
		hole = i;
	}
	m->v[hole].p = NULL;
	m->n--;
}

static struct sp_process *process_new(struct mt_spans *s, uint32_t tgid, uint64_t start)
{
	struct sp_process *p;

	if (s->nprocs >= s->opts.max_threads)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p || sp_map_put(s, &s->procs, tgid, p) < 0) {
		free(p);
		sp_err(s, -ENOMEM);
		return NULL;
	}
	p->pub.pid = tgid;
	p->pub.start = p->start = start;
	p->pub.name = p->pub.cmdline = p->pub.execution_id = "";
	p->prev = s->last;
	if (s->last)
		s->last->next = p;
	else
		s->first = p;
	s->last = p;
	s->nprocs++;
	return p;
}

struct sp_process *sp_process_get(struct mt_spans *s, uint32_t tgid, uint64_t start, uint64_t time)
{
	struct sp_process *p = sp_map_get(s, &s->procs, tgid);

	if (p && !sp_same_start(p->start, start)) {
		sp_process_end(s, p, time, MT_END_THREAD, 0);
		p = NULL;
	}
	if (!p)
		return process_new(s, tgid, start);
	/* The exact time is better than the one in ticks; a sink may have used the old one already. */
	if (p->start == 0 || (start > p->start && p->start % SP_START_TICK_NS == 0)) {
		p->start = start;
		if (!p->told && !p->parted)
			p->pub.start = start;
	}
	return p;
}

void sp_process_drop(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	while (p->first)
		sp_thread_drop(s, p->first, time);
	sp_spans_forget_all(s, p, false);
	sp_map_del(s, &s->procs, p->pub.pid);
	if (p->prev)
		p->prev->next = p->next;
	else
		s->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		s->last = p->prev;
	s->nprocs--;
	if ((p->told || p->parted) && s->sink->ops->gone)
		sp_err(s, s->sink->ops->gone(s->sink, &p->pub, NULL, time));
	while (p->sums) {
		struct sp_sum *next = p->sums->next;

		free(p->sums);
		p->sums = next;
	}
	free(p->spans.v);
	free(p->keyed.v);
	free(p->name);
	free(p->cmdline);
	free(p->execution_id);
	free(p);
}

static uint64_t thread_key(uint32_t tgid, uint32_t tid)
{
	return (uint64_t)tgid << 32 | tid;
}

struct sp_thread *sp_thread_find(struct mt_spans *s, uint32_t tgid, uint32_t tid)
{
	return sp_map_get(s, &s->threads, thread_key(tgid, tid));
}

static struct sp_thread *thread_new(struct mt_spans *s, struct sp_process *p, uint32_t tid, uint64_t start)
{
	struct sp_thread *t;

	if (s->nthreads >= s->opts.max_threads)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t || sp_map_put(s, &s->threads, thread_key(p->pub.pid, tid), t) < 0) {
		free(t);
		sp_err(s, -ENOMEM);
		return NULL;
	}
	t->pub.process = &p->pub;
	t->pub.tid = tid;
	t->pub.start = t->start = start;
	t->pub.name = "";
	t->proc = p;
	t->prev = p->last;
	if (p->last)
		p->last->next = t;
	else
		p->first = t;
	p->last = t;
	s->nthreads++;
	return t;
}

/* The first thread of a process starts with it: its start time is the process's. */
struct sp_thread *sp_thread_get(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_thread *t = s->recent;
	struct sp_process *p = NULL;

	if (t && t->pub.tid == ev->tid && t->pub.process->pid == ev->tgid && t->start == ev->thread_start)
		return t;
	if (ev->tid == ev->tgid && ev->thread_start)
		p = sp_process_get(s, ev->tgid, ev->thread_start, ev->time);
	t = sp_thread_find(s, ev->tgid, ev->tid);
	if (t && !sp_same_start(t->start, ev->thread_start)) {
		sp_thread_end(s, t, ev->time, MT_END_THREAD);
		t = NULL;
	}
	if (!t) {
		if (!p)
			p = sp_process_get(s, ev->tgid, 0, ev->time);
		t = p ? thread_new(s, p, ev->tid, ev->thread_start) : NULL;
		if (!t)
			return NULL;
	} else if (ev->thread_start > t->start) { /* known now, or known better */
		t->start = ev->thread_start;
		if (!t->told && !t->parted)
			t->pub.start = t->start;
	}
	s->recent = t;
	return t;
}

/* A dying thread left the map when it exited; its number may have a new owner there. */
void sp_thread_drop(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	struct sp_process *p = t->proc;

	if (!t->dying) {
		sp_map_del(s, &s->threads, thread_key(p->pub.pid, t->pub.tid));
	} else {
		if (t->dying_prev)
			t->dying_prev->dying_next = t->dying_next;
		else
			s->dying_first = t->dying_next;
		if (t->dying_next)
			t->dying_next->dying_prev = t->dying_prev;
		else
			s->dying_last = t->dying_prev;
	}
	if (s->recent == t)
		s->recent = NULL;
	if (t->prev)
		t->prev->next = t->next;
	else
		p->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		p->last = t->prev;
	s->nthreads--;
	if (t->told && s->sink->ops->gone)
		sp_err(s, s->sink->ops->gone(s->sink, NULL, &t->pub, time));
	free(t->stack);
	free(t->hidden);
	free(t->name);
	free(t);
}
