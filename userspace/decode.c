/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes from the ring -> struct mt_event.
 *
 * The head of a ring record is ours (the BPF program wrote it), the records behind it are the target's
 * and hostile. The rules for both are the same here: every length is checked against what is there
 * before it is used, and nothing is read through a pointer cast.
 *
 * 1. A ring record is taken up to its `size`; the slot may be longer, what lies behind is old memory.
 * 2. A record of the target must fill its `size`, its kind must be one that its callsite's class has,
 *    it has no more values than the callsite has fields, and texts lie behind the values, inside it.
 * 3. A hit may bring several records. They are handed on up to the first one that breaks a rule; the
 *    rest of the hit is dropped and counted once. Records of unknown kinds are stepped over.
 * 4. The hit's sequence number goes to the first event that comes out of it. A hit of which nothing
 *    came out leaves a gap, so that `spans` reports it as lost.
 * 5. Texts point into the record and may hold any byte; `spans` makes them valid UTF-8.
 * 6. A foreign site's record may say that a value is missing, and why; its values may need converting.
 *
 * Example: head {size 72, NATIVE, site 3, seq 7} and a record {size 32, SCOPE_BEGIN, 1 value}
 * give one MT_EV_SCOPE_BEGIN, has_seq, seq 7, values[0] of the type that the note of site 3 names.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "decode.h"
#include "usdt_operand.h"
#include "wire.h"

int mt_sites_add(struct mt_sites *s, const struct mt_callsite *cs, uint32_t *ret_number)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 64;
		struct mt_site *v;

		if (cap <= s->cap)
			return -EOVERFLOW;
		v = realloc(s->v, cap * sizeof(*v));
		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n].cs = cs;
	*ret_number = ++s->n;
	return 0;
}

void mt_sites_free(struct mt_sites *s)
{
	free(s->v);
	*s = (struct mt_sites){0};
}

static const struct mt_callsite *site_get(const struct mt_sites *s, uint32_t number)
{
	return number == 0 || number > s->n ? NULL : s->v[number - 1].cs;
}

static bool class_has_kind(uint8_t class_, uint8_t kind)
{
	switch (kind) {
	case MONTRACE_KIND_SCOPE_BEGIN:
	case MONTRACE_KIND_SCOPE_END:
		return class_ == MONTRACE_CLASS_SCOPE;
	case MONTRACE_KIND_SPAN_NEW:
	case MONTRACE_KIND_SPAN_ENTER:
	case MONTRACE_KIND_SPAN_EXIT:
	case MONTRACE_KIND_SPAN_CLOSE:
		return class_ == MONTRACE_CLASS_SPAN || class_ == MONTRACE_CLASS_RECORDING;
	case MONTRACE_KIND_SPAN_RECORD:
		return class_ == MONTRACE_CLASS_RECORD;
	case MONTRACE_KIND_EVENT:
		return class_ == MONTRACE_CLASS_EVENT;
	case MONTRACE_KIND_COUNTER:
		return class_ == MONTRACE_CLASS_COUNTER;
	case MONTRACE_KIND_THREAD_NAME:
		return class_ == MONTRACE_CLASS_THREAD_NAME;
	case MONTRACE_KIND_PROCESS_NAME:
		return class_ == MONTRACE_CLASS_PROCESS_NAME;
	case MONTRACE_KIND_EXECUTION_ID:
		return class_ == MONTRACE_CLASS_EXECUTION_ID;
	}
	return false;
}

/* A kind that this version has no event for: newer, or kept free. */
static bool kind_unknown(uint8_t kind)
{
	return kind == 0 || kind >= MONTRACE_KIND_CALLSITE;
}

static bool decode_text(const uint8_t *rec, uint32_t size, uint32_t texts_at, uint64_t raw,
			struct mt_value *v)
{
	uint32_t off = raw & 0xffff, len = raw >> 16 & 0xffff, full = (uint32_t)(raw >> 32);

	if (len == 0)
		off = texts_at;
	else if (off < texts_at || off + len > size)
		return false;
	if (full < len)
		full = len;
	if (len > MONTRACE_MAX_TEXT)
		len = MONTRACE_MAX_TEXT;
	v->s.p = (const char *)rec + off;
	v->s.len = len;
	v->cut = full > len;
	v->full_len = v->cut ? full : 0;
	return true;
}

/* Texts that are made here; they live as long as the call of decode. */
struct made {
	char hex[MONTRACE_MAX_FIELDS][20];
};

static void missing(struct mt_value *v, uint64_t reason)
{
	v->missing = true;
	v->s.p = mt_missing_text(reason > UINT8_MAX ? UINT8_MAX : (unsigned)reason);
	v->s.len = (uint32_t)strlen(v->s.p);
}

/* A foreign operand's 8 bytes -> the value of its field. */
static void convert(enum mt_raw how, uint64_t raw, struct mt_value *v, char hex[20])
{
	float f;

	switch (how) {
	case MT_RAW_AS_IS:
		v->u = raw;
		break;
	case MT_RAW_I8:
		v->i = (int8_t)raw;
		break;
	case MT_RAW_I16:
		v->i = (int16_t)raw;
		break;
	case MT_RAW_I32:
		v->i = (int32_t)raw;
		break;
	case MT_RAW_U8:
		v->u = (uint8_t)raw;
		break;
	case MT_RAW_U16:
		v->u = (uint16_t)raw;
		break;
	case MT_RAW_U32:
		v->u = (uint32_t)raw;
		break;
	case MT_RAW_F32:
		memcpy(&f, &raw, sizeof(f));
		v->f = (double)f;
		break;
	case MT_RAW_HEX:
		v->s.len = (uint32_t)snprintf(hex, 20, "0x%llx", (unsigned long long)raw);
		v->s.p = hex;
		break;
	}
}

/* Which of the callsite's fields the values begin with. */
static uint8_t first_field(const struct mt_callsite *cs, uint8_t kind)
{
	return kind == MONTRACE_KIND_SCOPE_END || kind == MONTRACE_KIND_SPAN_CLOSE ? cs->end_at : 0;
}

static bool decode_values(const uint8_t *rec, const struct montrace_record *r, bool foreign,
			  struct mt_event *ev, struct made *made)
{
	const struct mt_field_desc *fields = ev->cs->fields + first_field(ev->cs, r->kind);
	uint32_t texts_at = sizeof(*r) + r->nfields * 8u, i;

	for (i = 0; i < r->nfields; i++) {
		struct mt_value *v = &ev->values[i];
		uint64_t raw;

		memcpy(&raw, rec + sizeof(*r) + i * 8, sizeof(raw));
		v->type = fields[i].type;
		v->cut = false;
		v->missing = false;
		v->full_len = 0;
		if (foreign && r->flags >> 16 >> i & 1) {
			missing(v, raw);
			continue;
		}
		if (fields[i].raw) {
			convert((enum mt_raw)fields[i].raw, raw, v, made->hex[i]);
			continue;
		}
		switch (v->type) {
		case MONTRACE_TYPE_STR:
		case MONTRACE_TYPE_DEBUG:
			if (!decode_text(rec, r->size, texts_at, raw, v))
				return false;
			break;
		case MONTRACE_TYPE_BOOL:
			v->u = raw != 0;
			break;
		default:
			v->u = raw;
			break;
		}
	}
	ev->nvalues = r->nfields;
	return true;
}

static void event_head(struct mt_event *ev, const struct mt_wire *w)
{
	ev->has_seq = true;
	ev->time = w->time;
	ev->seq = w->seq;
	ev->tgid = w->tgid;
	ev->tid = w->tid;
	ev->thread_start = w->start;
	ev->cs = NULL;
	ev->span = 0;
	ev->parent = 0;
	ev->flags = 0;
	ev->nvalues = 0;
}

/* Only the size counts before the kind is known: a newer kind may use the rest in another way. */
static bool record_head(const uint8_t *p, size_t left, struct montrace_record *r)
{
	if (left < sizeof(*r))
		return false;
	memcpy(r, p, sizeof(*r));
	return r->size >= sizeof(*r) && r->size % 8 == 0 && r->size <= left && r->size <= MONTRACE_MAX_RECORD;
}

static bool record_fits(const struct montrace_record *r, const struct mt_callsite *cs)
{
	return class_has_kind(cs->class_, r->kind) && first_field(cs, r->kind) + r->nfields <= cs->nfields &&
	       r->nfields <= MONTRACE_MAX_FIELDS && sizeof(*r) + r->nfields * 8u <= r->size;
}

static int decode_native(const struct mt_sites *sites, struct mt_decode_stats *stats, const struct mt_wire *w,
			 const uint8_t *p, size_t left, mt_decode_cb cb, void *ctx)
{
	const struct mt_callsite *cs = site_get(sites, w->site);
	bool foreign = w->kind == MT_WIRE_FOREIGN;
	struct montrace_record r;
	struct made made;
	struct mt_event ev;
	int rc;

	if (!cs || left == 0)
		goto malformed;
	event_head(&ev, w);
	ev.cs = cs;
	for (; left > 0; p += r.size, left -= r.size) {
		if (!record_head(p, left, &r))
			goto malformed;
		if (kind_unknown(r.kind)) {
			stats->unknown++;
			continue;
		}
		if (!record_fits(&r, cs) || !decode_values(p, &r, foreign, &ev, &made))
			goto malformed;
		ev.kind = (enum mt_event_kind)r.kind;
		ev.flags = r.flags & 0xffff;
		ev.span = r.span;
		ev.parent = r.parent;
		rc = cb(ctx, &ev);
		if (rc)
			return rc;
		ev.has_seq = false;
	}
	return 0;

malformed:
	stats->malformed++;
	return 0;
}

static struct mt_str comm_of(const struct mt_wire_life *life)
{
	return (struct mt_str){life->comm, (uint32_t)strnlen(life->comm, sizeof(life->comm))};
}

static int thread_exit(const struct mt_wire *w, const struct mt_wire_life *life, struct mt_event *ev,
		       mt_decode_cb cb, void *ctx)
{
	int rc;

	ev->kind = MT_EV_THREAD_EXIT;
	ev->has_seq = w->flags & MT_WIRE_F_SEQ;
	rc = cb(ctx, ev);
	if (rc || !(w->flags & MT_WIRE_F_GROUP_DEAD))
		return rc;
	ev->kind = MT_EV_PROCESS_EXIT;
	ev->has_seq = false;
	ev->thread_start = 0;
	ev->exit.status = life->status;
	return cb(ctx, ev);
}

/* The child's first thread starts with its parent's name; no rename will tell it. */
static int forked(const struct mt_wire_life *life, struct mt_event *ev, mt_decode_cb cb, void *ctx)
{
	int rc;

	ev->kind = MT_EV_PROCESS_FORK;
	ev->fork.child = life->child;
	ev->fork.child_start = life->child_start;
	rc = cb(ctx, ev);
	if (rc || life->comm[0] == '\0')
		return rc;
	ev->kind = MT_EV_THREAD_COMM;
	ev->tgid = ev->tid = life->child;
	ev->thread_start = life->child_start;
	ev->comm = comm_of(life);
	return cb(ctx, ev);
}

static int decode_life(struct mt_decode_stats *stats, const struct mt_wire *w, const uint8_t *p, size_t left,
		       mt_decode_cb cb, void *ctx)
{
	struct mt_wire_life life;
	struct mt_event ev;

	if (left < sizeof(life)) {
		stats->malformed++;
		return 0;
	}
	memcpy(&life, p, sizeof(life));
	event_head(&ev, w);
	ev.has_seq = false;
	switch (w->kind) {
	case MT_WIRE_THREAD_EXIT:
		return thread_exit(w, &life, &ev, cb, ctx);
	case MT_WIRE_FORK:
		return forked(&life, &ev, cb, ctx);
	case MT_WIRE_EXEC:
		ev.kind = MT_EV_PROCESS_EXEC;
		ev.process.start = w->start;
		ev.process.ppid = 0;
		ev.process.uid = 0;
		ev.process.name = comm_of(&life);
		ev.process.cmdline = (struct mt_str){"", 0};
		ev.process.traced = life.status != 0;
		ev.process.flags = life.status;
		ev.process.exe_dev = life.child;
		ev.process.exe_inode = life.child_start;
		return cb(ctx, &ev);
	default:
		ev.kind = MT_EV_THREAD_COMM;
		ev.comm = comm_of(&life);
		return cb(ctx, &ev);
	}
}

static bool wire_head(const void *data, size_t len, struct mt_wire *w)
{
	if (len < sizeof(*w))
		return false;
	memcpy(w, data, sizeof(*w));
	return w->size >= sizeof(*w) && w->size <= len;
}

int mt_decode_who(const void *data, size_t len, uint64_t *ret_time, uint32_t *ret_tgid, uint32_t *ret_tid)
{
	struct mt_wire w;

	if (!wire_head(data, len, &w))
		return -EINVAL;
	*ret_time = w.time;
	*ret_tgid = w.tgid;
	*ret_tid = w.tid;
	return 0;
}

int mt_decode_life(const void *data, size_t len, struct mt_life_head *ret_head)
{
	struct mt_wire_life life;
	struct mt_wire w;

	if (!wire_head(data, len, &w) || w.size < sizeof(w) + sizeof(life))
		return -EINVAL;
	memcpy(&life, (const uint8_t *)data + sizeof(w), sizeof(life));
	*ret_head = (struct mt_life_head){
		.time = w.time,
		.tgid = w.tgid,
		.tid = w.tid,
		.child = w.kind == MT_WIRE_FORK ? life.child : 0,
		.exec = w.kind == MT_WIRE_EXEC,
	};
	return 0;
}

int mt_decode_record(const struct mt_sites *sites, struct mt_decode_stats *stats, const void *data,
		     size_t len, mt_decode_cb cb, void *ctx)
{
	struct mt_wire w;
	const uint8_t *payload = (const uint8_t *)data + sizeof(w);

	stats->records++;
	if (!wire_head(data, len, &w)) {
		stats->malformed++;
		return 0;
	}
	switch (w.kind) {
	case MT_WIRE_NATIVE:
	case MT_WIRE_FOREIGN:
		return decode_native(sites, stats, &w, payload, w.size - sizeof(w), cb, ctx);
	case MT_WIRE_THREAD_EXIT:
	case MT_WIRE_FORK:
	case MT_WIRE_EXEC:
	case MT_WIRE_COMM:
		return decode_life(stats, &w, payload, w.size - sizeof(w), cb, ctx);
	}
	stats->unknown++;
	return 0;
}
