/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protobuf by hand, for the packets that come with every event.
 *
 * The caller makes sure of the room before it writes: nothing here checks for the end, except
 * mt_enc_room(). Fields are written in the order of their numbers and lengths as short as they go,
 * which is what protobuf-c does: tests compare the two byte for byte.
 *
 * A message of unknown length: mt_enc_open() leaves one byte for the length, mt_enc_close() fills it
 * in, and moves the content up where one byte is not enough (at most MT_ENC_LEN_SLACK bytes more).
 */
#ifndef MT_PFTRACE_ENC_H
#define MT_PFTRACE_ENC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model.h"
#include "strings.h"

struct mt_enc {
	unsigned char *p;         /* where the next byte goes */
	const unsigned char *end; /* what mt_enc_room() counts against */
};

#define MT_ENC_LEN_SLACK 4 /* most bytes that mt_enc_close() adds to a message (length up to 2^35) */

enum {
	MT_WT_VARINT = 0,
	MT_WT_FIXED64 = 1,
	MT_WT_BYTES = 2,
};

static inline bool mt_enc_room(const struct mt_enc *e, size_t n)
{
	return e->p <= e->end && (size_t)(e->end - e->p) >= n;
}

static inline void mt_enc_varint(struct mt_enc *e, uint64_t v)
{
	unsigned char *p = e->p;

	while (v >= 0x80) {
		*p++ = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	*p++ = (unsigned char)v;
	e->p = p;
}

/* field and type are constants in every call: the loop folds away. */
static inline void mt_enc_tag(struct mt_enc *e, uint32_t field, uint32_t type)
{
	mt_enc_varint(e, field << 3 | type);
}

static inline void mt_enc_u64(struct mt_enc *e, uint32_t field, uint64_t v)
{
	mt_enc_tag(e, field, MT_WT_VARINT);
	mt_enc_varint(e, v);
}

static inline void mt_enc_fixed64(struct mt_enc *e, uint32_t field, uint64_t v)
{
	mt_enc_tag(e, field, MT_WT_FIXED64);
	for (unsigned i = 0; i < 8; i++)
		*e->p++ = (unsigned char)(v >> (8 * i));
}

static inline void mt_enc_double(struct mt_enc *e, uint32_t field, double f)
{
	uint64_t v;

	memcpy(&v, &f, sizeof(v));
	mt_enc_fixed64(e, field, v);
}

static inline void mt_enc_raw(struct mt_enc *e, const void *data, size_t len)
{
	if (len) {
		memcpy(e->p, data, len);
		e->p += len;
	}
}

static inline void mt_enc_bytes(struct mt_enc *e, uint32_t field, const void *data, size_t len)
{
	mt_enc_tag(e, field, MT_WT_BYTES);
	mt_enc_varint(e, len);
	mt_enc_raw(e, data, len);
}

/* Returns the start of the content, for mt_enc_close(). */
static inline unsigned char *mt_enc_open(struct mt_enc *e, uint32_t field)
{
	mt_enc_tag(e, field, MT_WT_BYTES);
	return ++e->p;
}

static inline void mt_enc_close(struct mt_enc *e, unsigned char *start)
{
	size_t len = (size_t)(e->p - start);
	struct mt_enc at = {.p = start - 1};
	size_t more = 0;

	if (len < 0x80) {
		start[-1] = (unsigned char)len;
		return;
	}
	for (size_t n = len >> 7; n; n >>= 7)
		more++;
	memmove(start + more, start, len);
	mt_enc_varint(&at, len);
	e->p += more;
}

/* The content of a text field: at most max bytes, always valid UTF-8. Room: max + 1 bytes. */
static inline void mt_enc_text_raw(struct mt_enc *e, const char *s, size_t len, size_t max)
{
	if (len == 0)
		return;
	if (mt_utf8_valid(s, len))
		mt_enc_raw(e, s, len <= max ? len : mt_utf8_prefix(s, len, max));
	else
		e->p += mt_utf8_fix((char *)e->p, max + 1, s, len);
}

/* Room: max + 16 bytes. */
static inline void mt_enc_text(struct mt_enc *e, uint32_t field, const char *s, size_t len, size_t max)
{
	unsigned char *start = mt_enc_open(e, field);

	mt_enc_text_raw(e, s, len, max);
	mt_enc_close(e, start);
}

#endif
