/* SPDX-License-Identifier: BSD-3-Clause */
/* Protobuf into a buffer that grows; packets gathered, framed, compressed, handed to out. */
#include "merge_int.h"

#define BUF_MAX ((size_t)MT_PTREAD_MAX_PACKET + (1u << 20))
#define PACKET_MAX (MT_PTREAD_MAX_PACKET) /* what readers take */
#define ZLIB_LEVEL 1
#define ZLIB_PACKET_MAX (512u << 10) /* larger packets are written as they are; not below MG_GATHER */
#define FRAME_MAX 64u

bool mg_room(struct mg_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 4096;
	unsigned char *p;

	if (b->error)
		return false;
	if (n <= b->cap - b->len)
		return true;
	if (b->fixed || n > BUF_MAX - b->len) {
		b->error = -EFBIG;
		return false;
	}
	while (cap < b->len + n)
		cap *= 2;
	p = realloc(b->p, cap);
	if (!p) {
		b->error = -ENOMEM;
		return false;
	}
	b->p = p;
	b->cap = cap;
	return true;
}

void mg_free(struct mg_buf *b)
{
	free(b->p);
	*b = (struct mg_buf){0};
}

void mg_raw(struct mg_buf *b, const void *data, size_t len)
{
	if (len && mg_room(b, len)) {
		memcpy(b->p + b->len, data, len);
		b->len += len;
	}
}

void mg_varint(struct mg_buf *b, uint64_t v)
{
	if (!mg_room(b, 10))
		return;
	while (v >= 0x80) {
		b->p[b->len++] = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	b->p[b->len++] = (unsigned char)v;
}

void mg_u64(struct mg_buf *b, uint32_t field, uint64_t v)
{
	mg_varint(b, PT_VARINT(field));
	mg_varint(b, v);
}

void mg_fixed64(struct mg_buf *b, uint32_t field, uint64_t v)
{
	unsigned char raw[8];

	for (unsigned i = 0; i < 8; i++)
		raw[i] = (unsigned char)(v >> (8 * i));
	mg_varint(b, PT_FIXED64(field));
	mg_raw(b, raw, sizeof(raw));
}

void mg_bytes(struct mg_buf *b, uint32_t field, const void *data, size_t len)
{
	mg_varint(b, PT_BYTES(field));
	mg_varint(b, len);
	mg_raw(b, data, len);
}

void mg_text(struct mg_buf *b, uint32_t field, const char *s)
{
	mg_bytes(b, field, s, strlen(s));
}

/* One byte is left for the length; mg_close() makes more room if that is not enough. */
size_t mg_open(struct mg_buf *b, uint32_t field)
{
	mg_varint(b, PT_BYTES(field));
	mg_raw(b, "", 1);
	return b->len;
}

void mg_close(struct mg_buf *b, size_t at)
{
	size_t len = b->len - at, more = 0;

	if (b->error)
		return;
	for (size_t n = len >> 7; n; n >>= 7)
		more++;
	if (!mg_room(b, more + 10))
		return;
	memmove(b->p + at + more, b->p + at, len);
	b->len = at - 1;
	mg_varint(b, len);
	b->len += len;
}

/* The bytes of b as one packet {field = bytes}, straight to out. */
static int put_framed(struct merge *m, uint32_t field, struct mg_buf *b)
{
	unsigned char head_bytes[FRAME_MAX];
	struct mg_buf head = {.p = head_bytes, .cap = sizeof(head_bytes), .fixed = true};
	size_t inner = b->len;
	int r;

	if (field) {
		mg_varint(&head, PT_BYTES(field));
		mg_varint(&head, b->len);
		inner += head.len;
		head.len = 0;
	}
	mg_varint(&head, PT_BYTES(1));
	mg_varint(&head, inner);
	if (field) {
		mg_varint(&head, PT_BYTES(field));
		mg_varint(&head, b->len);
	}
	/* out wants whole packets in one piece: the head goes in front. */
	if (!mg_room(b, head.len))
		return b->error;
	memmove(b->p + head.len, b->p, b->len);
	memcpy(b->p, head.p, head.len);
	r = mt_out_put(m->opts->out, b->p, b->len + head.len);
	b->len = 0;
	return r;
}

static int deflate_pend(struct merge *m)
{
	m->zbuf.len = 0;
	if (deflateReset(&m->z) != Z_OK)
		return -EIO;
	if (!mg_room(&m->zbuf, deflateBound(&m->z, (uLong)m->pend.len) + FRAME_MAX))
		return m->zbuf.error;
	m->z.next_in = m->pend.p;
	m->z.avail_in = (uInt)m->pend.len;
	m->z.next_out = m->zbuf.p;
	m->z.avail_out = (uInt)m->zbuf.cap;
	if (deflate(&m->z, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	m->zbuf.len = m->z.total_out;
	return put_framed(m, 50, &m->zbuf);
}

int mg_flush(struct merge *m)
{
	int r;

	if (!m->pend.len)
		return 0;
	r = m->compressing ? deflate_pend(m) : mt_out_put(m->opts->out, m->pend.p, m->pend.len);
	m->pend.len = 0;
	return r < 0 ? mg_fail(m, r, "output: %s", strerror(-r)) : 0;
}

int mg_compress_start(struct merge *m)
{
	if (deflateInit(&m->z, ZLIB_LEVEL) != Z_OK)
		return mg_fail(m, -ENOMEM, "out of memory");
	m->z_ready = m->compressing = true;
	return 0;
}

/* 1: the packet has grown beyond what readers take and is not written. */
int mg_put(struct merge *m)
{
	struct mg_buf *b = &m->pkt;
	bool large = b->error == -EFBIG || b->len > PACKET_MAX;
	int r = large ? 1 : b->error;

	if (!r && m->pend.len + b->len > MG_GATHER)
		r = mg_flush(m);
	if (!r) {
		m->rep.packets++;
		m->rep.bytes += b->len;
		if (b->len > ZLIB_PACKET_MAX) {
			r = put_framed(m, 0, b);
			if (r < 0)
				mg_fail(m, r, "output: %s", strerror(-r));
		} else {
			mg_bytes(&m->pend, 1, b->p, b->len);
			r = m->pend.error;
		}
	}
	b->len = 0;
	b->error = 0;
	return r;
}
