/* SPDX-License-Identifier: BSD-3-Clause */
/* Protobuf wire format, read only: one field at a time, nothing allocated, every length checked. */
#ifndef MT_PTREAD_WIRE_H
#define MT_PTREAD_WIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct pt_wire {
	const unsigned char *p, *end;
};

/*
 * tag is number << 3 | wire type, so that a switch on it tells fields of an unexpected wire type from
 * the known ones: they fall to the default and are skipped, as protobuf does.
 */
struct pt_field {
	uint32_t tag;
	uint64_t u;          /* varint, fixed64, fixed32 */
	struct pt_wire data; /* length-delimited */
};

#define PT_VARINT(n) ((uint32_t)(n) << 3 | 0)
#define PT_FIXED64(n) ((uint32_t)(n) << 3 | 1)
#define PT_BYTES(n) ((uint32_t)(n) << 3 | 2)

static inline size_t pt_wire_len(const struct pt_wire *w)
{
	return (size_t)(w->end - w->p);
}

/* 0, or -EBADMSG: too long or cut off. */
static inline int pt_varint(struct pt_wire *w, uint64_t *ret)
{
	const unsigned char *p = w->p;
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && p < w->end; shift += 7) {
		unsigned char b = *p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			w->p = p;
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static inline int pt_fixed(struct pt_wire *w, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (pt_wire_len(w) < n)
		return -EBADMSG;
	for (size_t i = n; i-- > 0;)
		v = v << 8 | w->p[i];
	w->p += n;
	*ret = v;
	return 0;
}

/* 1: *f is the next field; 0: end; -EBADMSG. Groups are refused: no trace has them. */
static inline int pt_next(struct pt_wire *w, struct pt_field *f)
{
	uint64_t tag, len;
	int r;

	if (w->p == w->end)
		return 0;
	r = pt_varint(w, &tag);
	if (r < 0)
		return r;
	if (tag < 8 || tag > UINT32_MAX)
		return -EBADMSG;
	f->tag = (uint32_t)tag;
	f->u = 0;
	f->data = (struct pt_wire){w->p, w->p};
	switch (tag & 7) {
	case 0:
		r = pt_varint(w, &f->u);
		return r < 0 ? r : 1;
	case 1:
		r = pt_fixed(w, 8, &f->u);
		return r < 0 ? r : 1;
	case 5:
		r = pt_fixed(w, 4, &f->u);
		return r < 0 ? r : 1;
	case 2:
		r = pt_varint(w, &len);
		if (r < 0 || len > pt_wire_len(w))
			return -EBADMSG;
		f->data = (struct pt_wire){w->p, w->p + len};
		w->p += len;
		return 1;
	default:
		return -EBADMSG;
	}
}

static inline double pt_double(uint64_t bits)
{
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

#endif
