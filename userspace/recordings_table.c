/* SPDX-License-Identifier: BSD-3-Clause */
/* Recordings, their events, and which span belongs to which. All bounds are enforced here. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recordings_int.h"
#include "strings.h"

#define HAND_STEPS 8

/* ---- spans ---- */

static struct rc_span **bucket(struct recordings *r, uint64_t span)
{
	return &r->buckets[(span * 0x9e3779b97f4a7c15ULL) >> 48];
}

struct rc_span *rc_span_find(struct recordings *r, uint64_t span)
{
	struct rc_span *e = span && r->stats.spans ? *bucket(r, span) : NULL;

	while (e && e->span != span)
		e = e->hash_next;
	return e;
}

static bool is_root(const struct rc_span *e)
{
	return e->rec->root == e;
}

static void lru_del(struct recordings *r, struct rc_span *e)
{
	*(e->lru_prev ? &e->lru_prev->lru_next : &r->lru_first) = e->lru_next;
	*(e->lru_next ? &e->lru_next->lru_prev : &r->lru_last) = e->lru_prev;
}

static void lru_add(struct recordings *r, struct rc_span *e)
{
	e->lru_prev = r->lru_last;
	e->lru_next = NULL;
	*(r->lru_last ? &r->lru_last->lru_next : &r->lru_first) = e;
	r->lru_last = e;
}

void rc_span_touch(struct recordings *r, struct rc_span *e)
{
	if (is_root(e) || r->lru_last == e)
		return;
	lru_del(r, e);
	lru_add(r, e);
}

void rc_span_drop(struct recordings *r, struct rc_span *e)
{
	struct rc_span **at = bucket(r, e->span);

	while (*at != e)
		at = &(*at)->hash_next;
	*at = e->hash_next;
	*(e->rec_prev ? &e->rec_prev->rec_next : &e->rec->spans) = e->rec_next;
	if (e->rec_next)
		e->rec_next->rec_prev = e->rec_prev;
	if (is_root(e))
		e->rec->root = NULL;
	else
		lru_del(r, e);
	if (--r->stats.spans == 0)
		r->sink.ignores = MT_IGNORES_EVENTS;
	free(e);
}

struct rc_span *rc_span_add(struct recordings *r, struct rc_rec *rec, uint64_t span, uint64_t parent,
			    const struct mt_callsite *cs, bool root)
{
	struct rc_span *e, **at = bucket(r, span);

	if (!root && r->stats.spans >= r->opts.max_spans) {
		if (!r->lru_first)
			return NULL;
		r->stats.forgotten++;
		rc_span_drop(r, r->lru_first);
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->span = span;
	e->parent = parent;
	e->rec = rec;
	e->cs = cs;
	e->hash_next = *at;
	*at = e;
	e->rec_next = rec->spans;
	if (rec->spans)
		rec->spans->rec_prev = e;
	rec->spans = e;
	if (root)
		rec->root = e;
	else
		lru_add(r, e);
	r->stats.spans++;
	r->sink.ignores = 0;
	return e;
}

/* ---- recordings ---- */

static void list_add(struct rc_list *l, struct rc_rec *rec)
{
	rec->next = NULL;
	rec->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = rec;
	l->last = rec;
}

static void list_del(struct rc_list *l, struct rc_rec *rec)
{
	*(rec->prev ? &rec->prev->next : &l->first) = rec->next;
	*(rec->next ? &rec->next->prev : &l->last) = rec->prev;
}

static void keep_text(char *dst, size_t cap, struct mt_str s)
{
	size_t len = s.len < cap ? s.len : mt_utf8_prefix(s.p, s.len, cap - 1);

	if (len)
		memcpy(dst, s.p, len);
	dst[len] = '\0';
}

static const struct mt_value *field(const struct rc_new *n, const char *name)
{
	uint32_t i;

	for (i = 0; n->cs && i < n->nvalues && i < n->cs->nfields; i++)
		if (strcmp(n->cs->fields[i].name, name) == 0 && !n->values[i].missing)
			return &n->values[i];
	return NULL;
}

static uint32_t capacity(const struct recordings *r, const struct rc_new *n)
{
	const struct mt_value *v = field(n, "capacity");
	uint64_t c = r->opts.default_capacity;

	if (v && v->type == MONTRACE_TYPE_U64)
		c = v->u;
	else if (v && v->type == MONTRACE_TYPE_I64)
		c = v->i < 0 ? 0 : (uint64_t)v->i;
	if (c < 2)
		c = 2;
	return c < r->opts.max_capacity ? (uint32_t)c : r->opts.max_capacity;
}

struct rc_process *rc_process_of(struct recordings *r, struct mt_process *p)
{
	struct rc_process *proc = p->sink_data, **at;

	for (at = &r->parted; !proc && *at; at = &(*at)->parted_next) {
		if ((*at)->pid != p->pid || (*at)->start != p->start)
			continue;
		proc = *at;
		*at = proc->parted_next;
		p->sink_data = proc;
		break;
	}
	return proc;
}

static struct rc_process *process_new(const struct mt_process *p)
{
	struct rc_process *proc = calloc(1, sizeof(*proc));

	if (proc) {
		proc->pid = p->pid;
		proc->start = p->start;
	}
	return proc;
}

int rc_rec_new(struct recordings *r, const struct rc_new *n, struct rc_rec **ret_rec)
{
	const struct mt_value *v = field(n, "subject");
	struct mt_process *p = n->process;
	struct rc_process *proc = rc_process_of(r, p);
	struct rc_rec *rec;

	*ret_rec = NULL;
	if (r->stats.live >= r->opts.max_live) {
		r->stats.refused++;
		return 0;
	}
	if (!proc)
		p->sink_data = proc = process_new(p);
	rec = proc ? calloc(1, sizeof(*rec)) : NULL;
	if (!rec || !rc_span_add(r, rec, n->span, 0, n->cs, true)) {
		free(rec);
		return -ENOMEM;
	}
	if (v && (v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG))
		keep_text(rec->subject, sizeof(rec->subject), v->s);
	keep_text(rec->process_name, sizeof(rec->process_name),
		  (struct mt_str){p->name, (uint32_t)strlen(p->name)});
	rec->info = (struct mt_recording_info){.id = ++r->last_id,
					       .span = n->span,
					       .subject = rec->subject,
					       .pid = p->pid,
					       .process = rec->process_name,
					       .capacity = capacity(r, n),
					       .since = n->time};
	if (!rec->subject[0])
		snprintf(rec->subject, sizeof(rec->subject), "recording #%" PRIu64, rec->info.id);
	rec->process = proc;
	rec->lost_seen = r->lost + proc->lost;
	rec->sibling_next = proc->recs;
	if (proc->recs)
		proc->recs->sibling_prev = rec;
	proc->recs = rec;
	list_add(&r->live, rec);
	r->stats.live++;
	*ret_rec = rec;
	return 0;
}

static void event_pop(struct recordings *r, struct rc_rec *rec)
{
	struct rc_event *e = rec->first;
	uint64_t size = sizeof(*e) + e->len;

	rec->first = e->next;
	if (!rec->first)
		rec->last = NULL;
	rec->info.events--;
	rec->bytes -= size;
	r->stats.bytes -= size;
	free(e);
}

/* It leaves the live ones. */
static void forget(struct recordings *r, const struct rc_rec *rec)
{
	if (r->hand == rec)
		r->hand = NULL;
	if (r->probe == rec)
		r->probe = NULL;
}

void rc_rec_free(struct recordings *r, struct rc_rec *rec, struct rc_list *list)
{
	while (rec->spans)
		rc_span_drop(r, rec->spans);
	while (rec->first)
		event_pop(r, rec);
	list_del(list, rec);
	if (list == &r->kept)
		r->stats.kept--;
	else
		r->stats.live--;
	forget(r, rec);
	free(rec);
}

/* The next kept one to go: the oldest that ended well, else the newest failure (the first is near the cause).
 */
static struct rc_rec *worst_kept(struct recordings *r)
{
	struct rc_rec *rec;

	for (rec = r->kept.first; rec; rec = rec->next)
		if (rec->info.state != MT_RECORDING_FAILED)
			return rec;
	return r->kept.last;
}

static void evict_kept(struct recordings *r)
{
	r->stats.evicted++;
	rc_rec_free(r, worst_kept(r), &r->kept);
}

void rc_rec_end(struct recordings *r, struct rc_rec *rec, enum mt_recording_state state, uint32_t status,
		uint64_t time)
{
	rec->info.state = state;
	rec->info.exit_status = status;
	rec->info.until = time;
	*(rec->sibling_prev ? &rec->sibling_prev->sibling_next : &rec->process->recs) = rec->sibling_next;
	if (rec->sibling_next)
		rec->sibling_next->sibling_prev = rec->sibling_prev;
	rec->process = NULL;
	if (!rec->first) {
		rc_rec_free(r, rec, &r->live);
		return;
	}
	while (rec->spans)
		rc_span_drop(r, rec->spans);
	list_del(&r->live, rec);
	r->stats.live--;
	forget(r, rec);
	list_add(&r->kept, rec);
	r->stats.kept++;
	while (r->stats.kept > r->opts.max_kept)
		evict_kept(r);
}

struct rc_rec *rc_rec_find(const struct recordings *r, uint64_t id)
{
	struct rc_rec *rec;

	for (rec = r->live.first; rec; rec = rec->next)
		if (rec->info.id == id)
			return rec;
	for (rec = r->kept.first; rec; rec = rec->next)
		if (rec->info.id == id)
			return rec;
	return NULL;
}

/*
 * The live recording with the most bytes, nearly: `hand` is the largest seen so far, and each call looks at
 * some more. So a busy subject pays, and a quiet one keeps what it has.
 */
static struct rc_rec *large_one(struct recordings *r, struct rc_rec *rec)
{
	uint32_t n = r->hand ? HAND_STEPS : r->stats.live;

	if (!r->hand)
		r->hand = rec;
	while (n--) {
		r->probe = r->probe && r->probe->next ? r->probe->next : r->live.first;
		if (r->probe->bytes > r->hand->bytes)
			r->hand = r->probe;
	}
	if (rec->bytes > r->hand->bytes)
		r->hand = rec;
	return r->hand->first ? r->hand : NULL;
}

static void make_room(struct recordings *r, struct rc_rec *rec, uint64_t size)
{
	while (r->stats.bytes + size > r->opts.max_bytes) {
		struct rc_rec *from;

		if (r->kept.first) {
			evict_kept(r);
			continue;
		}
		from = large_one(r, rec);
		if (!from)
			return;
		event_pop(r, from);
		r->stats.short_++;
	}
}

void rc_event_add(struct recordings *r, struct rc_rec *rec, struct rc_event *e)
{
	uint64_t size = sizeof(*e) + e->len;

	e->seq = rec->info.next_seq++;
	e->lost = r->lost + rec->process->lost - rec->lost_seen;
	rec->lost_seen += e->lost;
	e->next = NULL;
	r->stats.events++;
	if (rec->info.events == rec->info.capacity)
		event_pop(r, rec);
	make_room(r, rec, size);
	*(rec->last ? &rec->last->next : &rec->first) = e;
	rec->last = e;
	rec->info.events++;
	rec->bytes += size;
	r->stats.bytes += size;
}
