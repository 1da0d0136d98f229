/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The byte ring. A record is
 *
 *     2 bytes   length of what follows; 0, or no room for them: the next one is at the start of the memory
 *     1         kind, and (END) reason
 *     4, END 2  how many bytes each of its numbers takes, 4 bits a number
 *     ...       the numbers: thread, time, and what the kind has; lowest bytes first
 *     ...       data: flags, name, values, fields
 *
 * never split at the end of the memory. head and tail only grow. Numbers are differences where that makes them short.
 * So all of a record but its values is made and read without a branch for each byte.
 *
 * A record leaves at the head. A begin that leaves goes to the open slices, an end that leaves takes it
 * away from there: so the open slices are always exactly those that were open when the window begins. A
 * counter's value that leaves is kept until the next one of that counter leaves.
 */
#include "flight_int.h"

/* Place of an offset in the memory: all from head to tail are in the lap of the tail, or the one before. */
static inline uint64_t place(const struct flight *f, uint64_t pos)
{
	return pos >= f->lap ? pos - f->lap : pos + f->cap - f->lap;
}

static inline uint32_t length_at(const struct flight *f, uint64_t at)
{
	uint16_t len;

	if (f->cap - at < FL_LEN)
		return 0;
	memcpy(&len, f->log + at, FL_LEN);
	return len;
}

static inline bool next(const struct flight *f, uint64_t *pos, struct fl_delta *d, struct fl_rec *ret_rec)
{
	const uint8_t *p;
	uint64_t who, at;
	uint32_t len;
	bool end;

	if (*pos == f->tail)
		return false;
	at = place(f, *pos);
	__builtin_prefetch(f->log + at + 256);
	len = length_at(f, at);
	if (!len) {
		*pos += f->cap - at;
		at = 0;
		len = length_at(f, at);
	}
	*pos += FL_LEN + len;
	p = f->log + at + FL_LEN;
	ret_rec->kind = *p & 15;
	ret_rec->reason = *p >> 4;
	memcpy(&ret_rec->lengths, p + 1, sizeof(ret_rec->lengths));
	end = fl_lengths_size(ret_rec->kind) == 2;
	ret_rec->lengths &= end ? 0xffff : UINT32_MAX;
	ret_rec->body = (struct mt_unpack){.p = p + (end ? 3 : 5), .end = p + len};
	who = fl_get(ret_rec);
	ret_rec->has_thread = who && !fl_is_keyed(ret_rec->kind);
	ret_rec->thread = (uint32_t)(who & ((1u << FL_SLOT_BITS) - 1)) - 1;
	ret_rec->gen = (uint32_t)(who >> FL_SLOT_BITS);
	d->time += fl_unzigzag(fl_get(ret_rec));
	ret_rec->time = d->time;
	return true;
}

bool fl_log_next(const struct flight *f, uint64_t *pos, struct fl_delta *d, struct fl_rec *ret_rec)
{
	return next(f, pos, d, ret_rec);
}

static inline uint64_t get_parent(struct fl_rec *r, uint64_t span)
{
	uint64_t v = fl_get(r);

	return v ? span - fl_unzigzag(v - 1) : 0;
}

void fl_read_begin(struct fl_rec *r, struct fl_delta *d, struct fl_head *ret_head)
{
	ret_head->key = d->key += fl_unzigzag(fl_get(r));
	ret_head->span = d->span += fl_unzigzag(fl_get(r));
	ret_head->parent = get_parent(r, d->span);
	ret_head->cs = (const struct mt_callsite *)(uintptr_t)fl_get(r);
	ret_head->flow = fl_get(r);
	ret_head->flags = mt_unpack_u8(&r->body);
}

void fl_read_instant(struct fl_rec *r, struct fl_delta *d, struct fl_head *ret_head)
{
	*ret_head = (struct fl_head){.parent = get_parent(r, d->span)};
	ret_head->cs = (const struct mt_callsite *)(uintptr_t)fl_get(r);
	ret_head->flags = mt_unpack_u8(&r->body);
}

void fl_read_end(struct fl_rec *r, struct fl_delta *d, struct fl_tail *ret_tail)
{
	ret_tail->reason = r->reason;
	ret_tail->key = d->key + fl_unzigzag(fl_get(r));
	ret_tail->exit_status = (uint32_t)fl_get(r);
}

void fl_read_lost(struct flight *f, const struct fl_thread *t, struct fl_rec *r, struct fl_loss *ret_loss)
{
	uint64_t n = fl_get(r), gen = fl_get(r);
	struct fl_process *p = t ? &f->processes[t->proc] : n ? &f->processes[n - 1] : NULL;

	*ret_loss = (struct fl_loss){.process = p && (t || (p->used && p->gen == gen)) ? p : NULL,
				     .count = fl_get(r)};
}

/* Looks at the oldest record, once for each. Only if there is one. */
static inline void look(struct flight *f)
{
	struct fl_first *o = &f->first;
	struct fl_delta d;

	if (o->known)
		return;
	o->known = true;
	o->end = f->head;
	d.time = f->at_head.time;
	next(f, &o->end, &d, &o->rec);
}

static void forget_loss(struct flight *f, struct fl_thread *t, struct fl_rec *rec)
{
	struct fl_loss l;

	fl_read_lost(f, t, rec, &l);
	if (t)
		t->losses++;
	++*(l.process ? &l.process->losses : &f->loose);
}

static void evict(struct flight *f, enum fl_limit why)
{
	struct fl_first *o = &f->first;
	struct fl_thread *t;
	struct fl_head h;
	struct fl_tail e;

	look(f);
	f->head = o->end;
	f->at_head.time = o->rec.time;
	o->known = false;
	t = fl_thread_at(f, &o->rec);
	if (o->rec.kind == FL_BEGIN) {
		fl_read_begin(&o->rec, &f->at_head, &h);
		if (t)
			fl_open_push(f, t, &h, o->rec.time, o->rec.body.p,
				     (size_t)(o->rec.body.end - o->rec.body.p));
	} else if (fl_is_keyed(o->rec.kind)) {
		fl_keyed_evict(f, &o->rec);
	} else if (o->rec.kind == FL_END && t) {
		fl_read_end(&o->rec, &f->at_head, &e);
		fl_open_pop(f, t, e.key);
	} else if (o->rec.kind == FL_LOST) {
		forget_loss(f, t, &o->rec);
	} else if (o->rec.kind == FL_COUNTER && t) {
		fl_counter_keep(f, t, &o->rec);
	}
	if (t)
		fl_thread_unref(f, t);
	f->count--;
	f->stats.evicted++;
	f->cut_by = why;
}

/* The oldest is too old. */
static inline bool expired(struct flight *f)
{
	look(f);
	return f->first.rec.time < f->latest && f->latest - f->first.rec.time > f->spec.time_ns;
}

static inline void expire(struct flight *f, uint64_t now)
{
	if (now > f->latest)
		f->latest = now;
	while (f->count && expired(f))
		evict(f, FL_BY_TIME);
}

void fl_log_expire(struct flight *f, uint64_t now)
{
	expire(f, now);
}

void fl_log_append(struct flight *f, const struct mt_pack *data, const struct fl_thread *t, uint64_t time)
{
	uint64_t need = data->len, skip, at = f->tail - f->lap;
	uint16_t len = (uint16_t)(need - FL_LEN);

	memcpy(f->scratch, &len, FL_LEN);
	expire(f, time);
	while (f->count >= f->spec.events)
		evict(f, FL_BY_EVENTS);
	skip = f->cap - at < need ? f->cap - at : 0;
	while (f->tail + skip + need - f->head > f->cap)
		evict(f, FL_BY_BYTES);
	if (skip) {
		if (skip >= FL_LEN)
			memset(f->log + at, 0, FL_LEN);
		at = 0;
		f->lap += f->cap;
		f->tail = f->lap;
	}
	memcpy(f->log + at, f->scratch, need);
	f->tail += need;
	if (f->tail == f->lap + f->cap)
		f->lap = f->tail;
	f->at_tail.time = time;
	f->count++;
	if (t)
		f->threads[t - f->threads].refs++;
}
