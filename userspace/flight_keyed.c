/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans with a key in the flight recorder (F6). Their begins and ends match by key, in any order, so what was open
 * when the window began is found by a hash; a list of the process has it in the order of the begins.
 *
 * A process stays in its table as long as the log has such a record of it, or it has such a span open.
 */
#include "flight_int.h"

static uint32_t *bucket(struct flight *f, uint64_t key)
{
	uint64_t h = (key * 0x9e3779b97f4a7c15ull) >> 32;

	return &f->keyed[h * f->max_open >> 32];
}

static uint64_t who(const struct flight *f, const struct fl_process *p)
{
	return (uint64_t)p->gen << FL_SLOT_BITS | (uint64_t)(p - f->processes + 1);
}

int fl_keyed_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct flight *f = (struct flight *)s;
	struct fl_process *p = fl_process_of(f, sl->process);
	struct fl_put put;

	if (!p)
		p = fl_process_get(f, sl->process);
	if (!p) {
		fl_skip(f, sl->time);
		return 0;
	}
	fl_start_of(f, &put, FL_KEYED_BEGIN, who(f, p), sl->time);
	p->refs++;
	f->keyed_begins++;
	fl_finish_begin(f, &put, FL_KEYED_BEGIN, NULL, sl);
	return 0;
}

int fl_keyed_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	struct flight *f = (struct flight *)s;
	struct fl_process *p = fl_process_of(f, e->process);
	struct fl_put put;

	if (!p)
		return 0; /* so was its begin, and counted */
	fl_start_of(f, &put, FL_KEYED_END, who(f, p), e->time);
	p->refs++;
	fl_finish_end(f, &put, FL_KEYED_END, NULL, e);
	return 0;
}

struct fl_process *fl_keyed_process(struct flight *f, const struct fl_rec *rec)
{
	struct fl_process *p = &f->processes[rec->thread];

	return p->used && p->gen == rec->gen ? p : NULL;
}

static void opened(struct flight *f, struct fl_process *p, const struct fl_head *h, struct fl_rec *rec)
{
	uint32_t n = fl_open_take(f, h, rec->time, rec->body.p, (size_t)(rec->body.end - rec->body.p));
	struct fl_open *o;

	if (!n) {
		p->missing++;
		return;
	}
	o = &f->open[n - 1];
	o->chain = *bucket(f, h->key);
	*bucket(f, h->key) = n;
	o->below = 0;
	o->losses = p->losses + f->loose;
	o->prev = p->keyed_last;
	*(o->prev ? &f->open[o->prev - 1].below : &p->keyed_first) = n;
	p->keyed_last = n;
	p->refs++;
	f->nkeyed++;
}

/* Takes it out of list and bucket; link: where the bucket's chain names it. */
static void closed(struct flight *f, struct fl_process *p, uint32_t *link)
{
	uint32_t n = *link;
	struct fl_open *o = &f->open[n - 1];

	*link = o->chain;
	*(o->prev ? &f->open[o->prev - 1].below : &p->keyed_first) = o->below;
	*(o->below ? &f->open[o->below - 1].prev : &p->keyed_last) = o->prev;
	fl_open_free(f, n);
	f->nkeyed--;
}

static uint32_t *find(struct flight *f, uint64_t key)
{
	uint32_t *link = bucket(f, key);

	while (*link && f->open[*link - 1].key != key)
		link = &f->open[*link - 1].chain;
	return link;
}

void fl_keyed_evict(struct flight *f, struct fl_rec *rec)
{
	struct fl_process *p = fl_keyed_process(f, rec);
	struct fl_head h;
	struct fl_tail e;
	uint32_t *link;

	if (rec->kind == FL_KEYED_BEGIN) {
		fl_read_begin(rec, &f->at_head, &h);
		f->keyed_begins--;
		if (p)
			opened(f, p, &h, rec);
	} else if (p) {
		fl_read_end(rec, &f->at_head, &e);
		link = find(f, e.key);
		if (*link) {
			closed(f, p, link);
			p->refs--;       /* there is one more, of this record */
		} else if (p->missing) { /* its begin found no room */
			p->missing--;
			f->missing--;
		}
	}
	if (p)
		fl_process_unref(f, p);
}

void fl_keyed_forget(struct flight *f, struct fl_process *p)
{
	while (p->keyed_first)
		closed(f, p, find(f, f->open[p->keyed_first - 1].key));
	f->missing -= p->missing;
	p->missing = 0;
}
