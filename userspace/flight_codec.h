/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values and fields as few bytes: what the flight recorder and the recordings keep of an event.
 * Only for memory of this process: written and read by the same code, never stored.
 */
#ifndef MT_FLIGHT_CODEC_H
#define MT_FLIGHT_CODEC_H

#include "model.h"

#define MT_PACK_MAX_FIELDS 64 /* extra fields kept of one event */

/* full: something did not fit; what fitted before is whole. */
struct mt_pack {
	uint8_t *p;
	size_t len, cap;
	bool full;
};

/* bad: ran over the end. Reads 0 and empty texts from then on. */
struct mt_unpack {
	const uint8_t *p, *end;
	bool bad;
};

static inline void mt_pack_u8(struct mt_pack *w, uint8_t v)
{
	if (w->full || w->len == w->cap)
		w->full = true;
	else
		w->p[w->len++] = v;
}

void mt_pack_long(struct mt_pack *w, uint64_t v); /* mt_pack_u64 of 128 and more */

/* Small numbers are short. */
static inline void mt_pack_u64(struct mt_pack *w, uint64_t v)
{
	if (v < 0x80)
		mt_pack_u8(w, (uint8_t)v);
	else
		mt_pack_long(w, v);
}

/* Numbers near 0 are short. */
static inline void mt_pack_i64(struct mt_pack *w, int64_t v)
{
	mt_pack_u64(w, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void mt_pack_raw(struct mt_pack *w, const void *p, size_t len);
void mt_pack_text(struct mt_pack *w, struct mt_str s);

static inline uint8_t mt_unpack_u8(struct mt_unpack *r)
{
	if (r->bad || r->p == r->end) {
		r->bad = true;
		return 0;
	}
	return *r->p++;
}

uint64_t mt_unpack_long(struct mt_unpack *r);

static inline uint64_t mt_unpack_u64(struct mt_unpack *r)
{
	if (!r->bad && r->p < r->end && *r->p < 0x80)
		return *r->p++;
	return mt_unpack_long(r);
}

static inline int64_t mt_unpack_i64(struct mt_unpack *r)
{
	uint64_t v = mt_unpack_u64(r);

	return (int64_t)(v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

void mt_unpack_raw(struct mt_unpack *r, void *dst, size_t len);
struct mt_str mt_unpack_text(struct mt_unpack *r); /* points into the bytes */

/* The values and fields that fit, the first ones first. False if some did not. */
bool mt_pack_values(struct mt_pack *w, const struct mt_value *v, uint32_t n);
bool mt_pack_some_fields(struct mt_pack *w, const struct mt_field *f, uint32_t n);

/* Mostly there are none. */
static inline bool mt_pack_fields(struct mt_pack *w, const struct mt_field *f, uint32_t n)
{
	if (n || w->full)
		return mt_pack_some_fields(w, f, n);
	mt_pack_u8(w, 0);
	return !w->full;
}

/* v takes MONTRACE_MAX_FIELDS, f MT_PACK_MAX_FIELDS; texts point into the bytes. Returns how many. */
uint32_t mt_unpack_values(struct mt_unpack *r, struct mt_value *v);
uint32_t mt_unpack_fields(struct mt_unpack *r, struct mt_field *f);

#endif
