/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte ring. A record is its length, then its bytes, never split at the end of the memory: a length of
 * 0 says that the next one is at the start. head and tail only grow.
 *
 * A record leaves at the head. A begin that leaves goes to the open slices, an end that leaves takes it
 * away from there: so the open slices are always exactly those that were open when the window begins.
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

/* Length at the place of offset pos and how many bytes it takes; 0: go on at the start of the memory. */
static uint32_t length_at(const struct flight *f, uint64_t pos, uint32_t *ret_head)
{
	uint64_t at = pos % f->cap;
	struct mt_unpack r = {.p = f->log + at, .end = f->log + f->cap};
	uint64_t len = mt_unpack_u64(&r);

	*ret_head = (uint32_t)(r.p - (f->log + at));
	return r.bad ? 0 : (uint32_t)len;
}

bool fl_log_next(const struct flight *f, uint64_t *pos, struct fl_delta *d, struct fl_rec *ret_rec)
{
	uint32_t len, head;
	uint64_t n;

	if (*pos == f->tail)
		return false;
	len = length_at(f, *pos, &head);
	if (!len) {
		*pos += f->cap - *pos % f->cap;
		len = length_at(f, *pos, &head);
	}
	ret_rec->body.p = f->log + *pos % f->cap + head;
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

static void evict(struct flight *f, enum fl_limit why)
{
	struct fl_rec rec;
	struct fl_thread *t;
	struct fl_head h;
	struct fl_tail e;

	if (!fl_log_next(f, &f->head, &f->at_head, &rec))
		return;
	t = fl_thread_at(f, &rec);
	if (rec.kind == FL_BEGIN) {
		fl_read_begin(&rec.body, &f->at_head, &h);
		if (t)
			fl_open_push(f, t, &h, rec.time, rec.body.p, (size_t)(rec.body.end - rec.body.p));
	} else if (rec.kind == FL_END && t) {
		fl_read_end(&rec.body, &f->at_head, &e);
		fl_open_pop(f, t, e.key);
	}
	if (t)
		fl_thread_unref(f, t);
	f->count--;
	f->stats.evicted++;
	f->cut_by = why;
}

/* Time of the oldest record, looked up once for each. Only if there is one. */
static uint64_t oldest(struct flight *f)
{
	struct fl_delta d = f->at_head;
	uint64_t pos = f->head;
	struct fl_rec rec;

	if (f->oldest_at != f->head) {
		fl_log_next(f, &pos, &d, &rec);
		f->oldest = rec.time;
		f->oldest_at = f->head;
	}
	return f->oldest;
}

void fl_log_expire(struct flight *f, uint64_t now)
{
	if (now > f->latest)
		f->latest = now;
	while (f->count) {
		uint64_t time = oldest(f);

		if (time > f->latest || f->latest - time <= f->spec.time_ns)
			break;
		evict(f, FL_BY_TIME);
	}
}

void fl_log_append(struct flight *f, struct mt_pack *w, const struct fl_thread *t, const struct fl_delta *d)
{
	uint8_t head[HEAD_MAX];
	struct mt_pack h = {.p = head, .cap = sizeof(head)};
	uint64_t need, skip;

	mt_pack_u64(&h, w->len);
	need = h.len + w->len;
	fl_log_expire(f, d->time);
	while (f->count >= f->spec.events)
		evict(f, FL_BY_EVENTS);
	skip = f->cap - f->tail % f->cap;
	skip = skip < need ? skip : 0;
	while (f->tail + skip + need - f->head > f->cap)
		evict(f, FL_BY_BYTES);
	if (skip)
		f->log[f->tail % f->cap] = 0;
	f->tail += skip;
	memcpy(f->log + f->tail % f->cap, head, h.len);
	memcpy(f->log + f->tail % f->cap + h.len, w->p, w->len);
	f->tail += need;
	f->at_tail = *d;
	f->count++;
	if (t)
		f->threads[t - f->threads].refs++;
}
