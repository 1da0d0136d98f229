/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers are base-128, low groups first; signed ones zigzag. A value is one byte {type, cut, missing}, the
 * full length if cut, then its content: text if missing or text, else a number.
 */
#include "flight_codec.h"

#include <string.h>

#define V_TYPE 0x07
#define V_CUT 0x08
#define V_MISSING 0x10

static bool room(struct mt_pack *w, size_t len)
{
	if (w->full || len > w->cap - w->len) {
		w->full = true;
		return false;
	}
	return true;
}

void mt_pack_long(struct mt_pack *w, uint64_t v)
{
	uint8_t b[10], *p;
	size_t n = 0;

	/* Straight into place if even the longest fits. */
	if (!w->full && w->cap - w->len >= sizeof(b)) {
		p = w->p + w->len;
		for (; v >= 0x80; v >>= 7)
			*p++ = (uint8_t)(v | 0x80);
		*p++ = (uint8_t)v;
		w->len = (size_t)(p - w->p);
		return;
	}
	for (; v >= 0x80; v >>= 7)
		b[n++] = (uint8_t)(v | 0x80);
	b[n++] = (uint8_t)v;
	mt_pack_raw(w, b, n);
}

void mt_pack_raw(struct mt_pack *w, const void *p, size_t len)
{
	if (!room(w, len))
		return;
	if (len)
		memcpy(w->p + w->len, p, len);
	w->len += len;
}

void mt_pack_text(struct mt_pack *w, struct mt_str s)
{
	mt_pack_u64(w, s.len);
	mt_pack_raw(w, s.p, s.len);
}

uint64_t mt_unpack_long(struct mt_unpack *r)
{
	uint64_t v = 0;
	unsigned shift;
	uint8_t b;

	for (shift = 0; shift < 64; shift += 7) {
		b = mt_unpack_u8(r);
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	r->bad = true;
	return 0;
}

void mt_unpack_raw(struct mt_unpack *r, void *dst, size_t len)
{
	if (r->bad || len > (size_t)(r->end - r->p)) {
		r->bad = true;
		memset(dst, 0, len);
		return;
	}
	memcpy(dst, r->p, len);
	r->p += len;
}

struct mt_str mt_unpack_text(struct mt_unpack *r)
{
	uint64_t len = mt_unpack_u64(r);
	struct mt_str s = {"", 0};

	if (r->bad || len > (size_t)(r->end - r->p)) {
		r->bad = true;
		return s;
	}
	s.p = (const char *)r->p;
	s.len = (uint32_t)len;
	r->p += len;
	return s;
}

static bool is_text(const struct mt_value *v)
{
	return v->missing || v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG;
}

static void pack_value(struct mt_pack *w, const struct mt_value *v)
{
	mt_pack_u8(w, (v->type & V_TYPE) | (v->cut ? V_CUT : 0) | (v->missing ? V_MISSING : 0));
	if (v->cut)
		mt_pack_u64(w, v->full_len);
	if (is_text(v))
		mt_pack_text(w, v->s);
	else if (v->type == MONTRACE_TYPE_F64)
		mt_pack_raw(w, &v->f, sizeof(v->f));
	else if (v->type == MONTRACE_TYPE_I64)
		mt_pack_i64(w, v->i);
	else
		mt_pack_u64(w, v->u);
}

static void unpack_value(struct mt_unpack *r, struct mt_value *v)
{
	uint8_t b = mt_unpack_u8(r);

	*v = (struct mt_value){.type = b & V_TYPE, .cut = b & V_CUT, .missing = b & V_MISSING};
	if (v->cut)
		v->full_len = (uint32_t)mt_unpack_u64(r);
	if (is_text(v))
		v->s = mt_unpack_text(r);
	else if (v->type == MONTRACE_TYPE_F64)
		mt_unpack_raw(r, &v->f, sizeof(v->f));
	else if (v->type == MONTRACE_TYPE_I64)
		v->i = mt_unpack_i64(r);
	else
		v->u = mt_unpack_u64(r);
}

/* Place of the count, which is known only afterwards. */
static size_t begin_list(struct mt_pack *w)
{
	size_t at = w->len;

	mt_pack_u8(w, 0);
	return at;
}

bool mt_pack_values(struct mt_pack *w, const struct mt_value *v, uint32_t n)
{
	size_t at = begin_list(w), good;
	uint32_t i, take = n < MONTRACE_MAX_FIELDS ? n : MONTRACE_MAX_FIELDS;

	if (w->full)
		return false;
	for (i = 0; i < take; i++) {
		good = w->len;
		pack_value(w, &v[i]);
		if (w->full) {
			w->len = good;
			break;
		}
	}
	w->p[at] = (uint8_t)i;
	w->full = false;
	return i == n;
}

bool mt_pack_some_fields(struct mt_pack *w, const struct mt_field *f, uint32_t n)
{
	size_t at = begin_list(w), good;
	uint32_t i, take = n < MT_PACK_MAX_FIELDS ? n : MT_PACK_MAX_FIELDS;

	if (w->full)
		return false;
	for (i = 0; i < take; i++) {
		good = w->len;
		mt_pack_text(w, f[i].name);
		pack_value(w, &f[i].value);
		if (w->full) {
			w->len = good;
			break;
		}
	}
	w->p[at] = (uint8_t)i;
	w->full = false;
	return i == n;
}

uint32_t mt_unpack_values(struct mt_unpack *r, struct mt_value *v)
{
	uint32_t n = mt_unpack_u8(r), i;

	for (i = 0; i < n && i < MONTRACE_MAX_FIELDS && !r->bad; i++)
		unpack_value(r, &v[i]);
	return r->bad ? 0 : i;
}

uint32_t mt_unpack_fields(struct mt_unpack *r, struct mt_field *f)
{
	uint32_t n = mt_unpack_u8(r), i;

	for (i = 0; i < n && i < MT_PACK_MAX_FIELDS && !r->bad; i++) {
		f[i].name = mt_unpack_text(r);
		unpack_value(r, &f[i].value);
	}
	return r->bad ? 0 : i;
}
