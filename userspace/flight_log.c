/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte ring. A record is its length, then its bytes, never split at the end of the memory: a length of
 * 0 says that the next one is at the start. head and tail only grow.
 *
 * A record leaves at the head. A begin that leaves goes to the open slices, an end that leaves takes it
 * away from there: so the open slices are always exactly those that were open when the window begins. A
 * counter's value that leaves is kept until the next one of that counter leaves.
 */
#include <string.h>

#include "flight_int.h"

#define HEAD_MAX 5 /* bytes of the length */

static int64_t diff(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

void fl_log_start(struct flight *f, struct mt_pack *w, enum fl_kind kind, const struct fl_thread *t,
		  uint64_t time)
{
	*w = (struct mt_pack){.p = f->scratch, .cap = f->max_record};
	mt_pack_u8(w, kind);
	mt_pack_u64(w, t ? (uint64_t)(t - f->threads) + 1 : 0);
	if (t)
		mt_pack_u64(w, t->gen);
	mt_pack_i64(w, diff(time, f->at_tail.time));
}

/* Place of an offset in the memory: all from head to tail are in the lap of the tail, or the one before. */
static inline uint64_t place(const struct flight *f, uint64_t pos)
{
	return pos >= f->lap ? pos - f->lap : pos + f->cap - f->lap;
}

/* Length at a place and how many bytes it takes; 0: go on at the start of the memory. */
static inline uint32_t length_at(const struct flight *f, uint64_t at, uint32_t *ret_head)
{
	struct mt_unpack r = {.p = f->log + at, .end = f->log + f->cap};
	uint64_t len = mt_unpack_u64(&r);

	*ret_head = (uint32_t)(r.p - (f->log + at));
	return r.bad ? 0 : (uint32_t)len;
}

bool fl_log_next(const struct flight *f, uint64_t *pos, struct fl_delta *d, struct fl_rec *ret_rec)
{
	uint32_t len, head;
	uint64_t n, at;

	if (*pos == f->tail)
		return false;
	at = place(f, *pos);
	len = length_at(f, at, &head);
	if (!len) {
		*pos += f->cap - at;
		at = 0;
		len = length_at(f, at, &head);
	}
	ret_rec->body.p = f->log + at + head;
	ret_rec->body.end = ret_rec->body.p + len;
	ret_rec->body.bad = false;
	*pos += head + len;
	ret_rec->kind = mt_unpack_u8(&ret_rec->body);
	n = mt_unpack_u64(&ret_rec->body);
	ret_rec->has_thread = n;
	if (n) {
		ret_rec->thread = (uint32_t)n - 1;
		ret_rec->gen = (uint32_t)mt_unpack_u64(&ret_rec->body);
	}
	d->time += (uint64_t)mt_unpack_i64(&ret_rec->body);
	ret_rec->time = d->time;
	return true;
}

static const struct mt_callsite *read_cs(struct mt_unpack *r)
{
	const struct mt_callsite *cs;

	mt_unpack_raw(r, &cs, sizeof(cs));
	return cs;
}

void fl_read_begin(struct mt_unpack *r, struct fl_delta *d, struct fl_head *ret_head)
{
	ret_head->flags = mt_unpack_u8(r);
	ret_head->cs = read_cs(r);
	ret_head->key = d->key += (uint64_t)mt_unpack_i64(r);
	ret_head->span = d->span += (uint64_t)mt_unpack_i64(r);
	ret_head->parent = mt_unpack_u64(r);
	if (ret_head->parent)
		ret_head->parent = ret_head->span - (uint64_t)mt_unpack_i64(r);
	ret_head->flow = 0;
	if (ret_head->flags & FL_F_FLOW)
		mt_unpack_raw(r, &ret_head->flow, sizeof(ret_head->flow));
}

void fl_read_instant(struct mt_unpack *r, struct fl_delta *d, struct fl_head *ret_head)
{
	*ret_head = (struct fl_head){.flags = mt_unpack_u8(r)};
	ret_head->cs = read_cs(r);
	ret_head->parent = mt_unpack_u64(r);
	if (ret_head->parent)
		ret_head->parent = d->span - (uint64_t)mt_unpack_i64(r);
}

void fl_read_end(struct mt_unpack *r, struct fl_delta *d, struct fl_tail *ret_tail)
{
	ret_tail->reason = mt_unpack_u8(r);
	ret_tail->key = d->key + (uint64_t)mt_unpack_i64(r);
	ret_tail->exit_status = ret_tail->reason == MT_END_PROCESS ? (uint32_t)mt_unpack_u64(r) : 0;
}

/* Looks at the oldest record, once for each. Only if there is one. */
static inline void look(struct flight *f)
{
	struct fl_first *o = &f->first;

	if (o->known)
		return;
	o->known = true;
	o->end = f->head;
	o->after = f->at_head;
	fl_log_next(f, &o->end, &o->after, &o->rec);
}

static void evict(struct flight *f, enum fl_limit why)
{
	struct fl_first *o = &f->first;
	struct fl_thread *t;
	struct fl_head h;
	struct fl_tail e;

	look(f);
	f->head = o->end;
	f->at_head = o->after;
	o->known = false;
	t = fl_thread_at(f, &o->rec);
	if (o->rec.kind == FL_BEGIN) {
		fl_read_begin(&o->rec.body, &f->at_head, &h);
		if (t)
			fl_open_push(f, t, &h, o->rec.time, o->rec.body.p,
				     (size_t)(o->rec.body.end - o->rec.body.p));
	} else if (o->rec.kind == FL_END && t) {
		fl_read_end(&o->rec.body, &f->at_head, &e);
		fl_open_pop(f, t, e.key);
	} else if (o->rec.kind == FL_COUNTER && t) {
		fl_counter_keep(f, t, &o->rec);
	}
	if (t)
		fl_thread_unref(f, t);
	f->count--;
	f->stats.evicted++;
	f->cut_by = why;
}

void fl_log_expire(struct flight *f, uint64_t now)
{
	if (now > f->latest)
		f->latest = now;
	for (; f->count; evict(f, FL_BY_TIME)) {
		look(f);
		if (f->first.rec.time > f->latest || f->latest - f->first.rec.time <= f->spec.time_ns)
			break;
	}
}

void fl_log_append(struct flight *f, struct mt_pack *w, const struct fl_thread *t, const struct fl_delta *d)
{
	uint8_t head[HEAD_MAX];
	struct mt_pack h = {.p = head, .cap = sizeof(head)};
	uint64_t need, skip, at = f->tail - f->lap;

	mt_pack_u64(&h, w->len);
	need = h.len + w->len;
	fl_log_expire(f, d->time);
	while (f->count >= f->spec.events)
		evict(f, FL_BY_EVENTS);
	skip = f->cap - at < need ? f->cap - at : 0;
	while (f->tail + skip + need - f->head > f->cap)
		evict(f, FL_BY_BYTES);
	if (skip) {
		f->log[at] = 0;
		at = 0;
		f->lap += f->cap;
		f->tail = f->lap;
	}
	memcpy(f->log + at, head, h.len);
	memcpy(f->log + at + h.len, w->p, w->len);
	f->tail += need;
	if (f->tail == f->lap + f->cap)
		f->lap = f->tail;
	f->at_tail = *d;
	f->count++;
	if (t)
		f->threads[t - f->threads].refs++;
}
