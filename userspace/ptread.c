/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace file is packets one after the other, each framed as 0x0A, length, bytes. This reader takes
 * one packet at a time: it finds the parts of the packet that it knows (pt_packet), brings the state
 * of the packet's sequence up to date (interned texts, defaults, clocks), resolves everything that
 * the packet refers to by number, and tells the caller what it says in plain words.
 *
 *  R1  Nothing is told before it has been decoded completely. An error in a packet therefore never
 *      leaves half an event behind; what came before it is good.
 *  R2  Memory follows the bytes that are really there, not the length that a packet claims: the
 *      buffer doubles while a large packet arrives, up to MT_PTREAD_MAX_PACKET.
 *  R3  A packet of MT_PTREAD_MAX_PACKET bytes or less that the file cuts off is a torn packet, the
 *      normal end of a file whose writer was killed: no error. Anything else that is no packet is one.
 *  R4  Order inside a packet: cleared, dropped, defaults, interned data, clock snapshot, then the rest,
 *      as the importer does it. A packet that needs state which is not there is skipped and counted.
 *
 * Worked example: 0A 0A 40 64 50 07 5A 04 48 01 50 03. The frame says ten bytes; in them: 40 64 is the
 * time 100, 50 07 sequence 7, 5A 04 a track event of four bytes: 48 01 it is a begin, 50 03 its name is
 * number 3 of sequence 7's event names. If an earlier packet of sequence 7 had given number 3 and the
 * default track 9, a begin at 100 on track 9 is told; else a begin without name on track 0, and
 * unknown_iids goes up.
 *
 * Not done: legacy events, extra counters of slices, call stacks, log messages, zstd.
 */
#include <sys/random.h>
#include <unistd.h>
#include <zlib.h>

#include "ptread_int.h"

#define READ_SIZE (256u << 10)

int pt_bad(struct mt_ptread *r, const char *why)
{
	r->info.why = why;
	r->info.bad_offset = r->offset;
	return -EBADMSG;
}

/*
 * Looks at the frame of the packet at p. 1: *ret_head and *ret_body are its parts' lengths (the body
 * need not be there yet); 0: more bytes are needed, or (r->zeros) a zero byte is there; -EBADMSG.
 */
static int frame(struct mt_ptread *r, const unsigned char *p, size_t len, size_t *ret_head, size_t *ret_body)
{
	struct pt_wire w = {p, p + len};
	uint64_t body;

	if (!len)
		return 0;
	r->zeros = *p == 0;
	if (r->zeros)
		return 0;
	if (*w.p++ != 0x0a)
		return pt_bad(r, "no packet begins here");
	if (pt_varint(&w, &body) < 0)
		return len > 10 ? pt_bad(r, "a packet without proper length") : 0;
	if (body > MT_PTREAD_MAX_PACKET)
		return pt_bad(r, "a packet larger than the limit of 64 MiB");
	*ret_head = (size_t)(w.p - p);
	*ret_body = (size_t)body;
	return 1;
}

/* Uses the whole packets at p. *ret_used says how many bytes they were, also after an error. */
static int chunk(struct mt_ptread *r, const unsigned char *p, size_t len, size_t *ret_used)
{
	size_t head, body;
	struct pt_packet pkt;
	int e;

	*ret_used = 0;
	while ((e = frame(r, p, len, &head, &body)) > 0) {
		if (len < head + body)
			return 0;
		e = pt_packet_parse((struct pt_wire){p + head, p + head + body}, &pkt);
		if (!e)
			e = pt_packet_use(r, &pkt);
		if (e == -EBADMSG && !*r->info.why)
			pt_bad(r, "a packet that cannot be decoded");
		if (e)
			return e;
		r->info.packets++;
		p += head + body;
		len -= head + body;
		*ret_used += head + body;
		if (!r->nested)
			r->info.bytes = r->offset += head + body;
	}
	return e;
}

/* zlib -> r->inflated, at most MT_PTREAD_MAX_PACKET bytes. */
static int inflate_all(struct mt_ptread *r, z_stream *z)
{
	for (;;) {
		int e;

		if (z->total_out == r->inflated_cap) {
			size_t cap = r->inflated_cap ? r->inflated_cap * 2 : READ_SIZE;
			unsigned char *p;

			if (cap > MT_PTREAD_MAX_PACKET)
				return pt_bad(r, "compressed packets larger than the limit of 64 MiB");
			p = realloc(r->inflated, cap);
			if (!p)
				return -ENOMEM;
			r->inflated = p;
			r->inflated_cap = cap;
		}
		z->next_out = r->inflated + z->total_out;
		z->avail_out = (uInt)(r->inflated_cap - z->total_out);
		e = inflate(z, Z_NO_FLUSH);
		if (e == Z_STREAM_END)
			return 0;
		if (e == Z_MEM_ERROR)
			return -ENOMEM;
		if (e != Z_OK || (!z->avail_in && z->avail_out))
			return pt_bad(r, "compressed packets that cannot be inflated");
	}
}

int pt_inflate(struct mt_ptread *r, struct pt_wire w)
{
	z_stream z = {.next_in = (unsigned char *)w.p, .avail_in = (uInt)pt_wire_len(&w)};
	size_t used;
	int e;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	e = inflate_all(r, &z);
	inflateEnd(&z);
	if (e < 0)
		return e;
	r->nested = true;
	e = chunk(r, r->inflated, z.total_out, &used);
	r->nested = r->zeros = false;
	if (!e && used != z.total_out)
		e = pt_bad(r, "compressed packets that end in a torn one");
	return e;
}

/* ---- files ---- */

/* Where the bytes come from. */
struct input {
	int fd;
	unsigned char *buf; /* NULL: all of it is at p */
	size_t cap;
	const unsigned char *p; /* bytes not used yet */
	size_t len;
	bool eof; /* there are no more than these */
};

/* Gets more bytes behind those that are there. 0 (eof may be set now) or -errno. */
static int fill(struct input *in)
{
	ssize_t n;

	if (in->len)
		memmove(in->buf, in->p, in->len);
	if (in->cap - in->len < READ_SIZE / 2) {
		size_t cap = in->cap ? in->cap * 2 : READ_SIZE;
		unsigned char *p = realloc(in->buf, cap);

		if (!p)
			return -ENOMEM;
		in->buf = p;
		in->cap = cap;
	}
	in->p = in->buf;
	do {
		n = read(in->fd, in->buf + in->len, in->cap - in->len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	in->eof = n == 0;
	in->len += (size_t)n;
	return 0;
}

/* Zero bytes are allowed at the end of a file (space that was reserved and not used), nowhere else. */
static int padding(struct mt_ptread *r, struct input *in)
{
	for (;;) {
		int e;

		for (size_t i = 0; i < in->len; i++) {
			if (in->p[i])
				return pt_bad(r, "zero bytes that are not the end of the file");
		}
		r->info.padding += in->len;
		in->len = 0;
		if (in->eof)
			return 0;
		e = fill(in);
		if (e < 0)
			return e;
	}
}

static int run(struct mt_ptread *r, struct input *in)
{
	for (;;) {
		size_t used;
		int e;

		e = chunk(r, in->p, in->len, &used);
		if (e)
			return e;
		in->p += used;
		in->len -= used;
		if (r->zeros)
			return padding(r, in);
		if (in->eof)
			break;
		e = fill(in);
		if (e < 0)
			return e;
	}
	r->info.truncated = in->len;
	return 0;
}

int mt_ptread_fd(struct mt_ptread *r, int fd, mt_ptread_cb cb, void *ctx)
{
	struct input in = {.fd = fd};
	int e;

	r->cb = cb;
	r->ctx = ctx;
	e = fill(&in);
	if (!e)
		e = run(r, &in);
	free(in.buf);
	return e;
}

int mt_ptread_mem(struct mt_ptread *r, const void *data, size_t len, mt_ptread_cb cb, void *ctx)
{
	struct input in = {.fd = -1, .p = data, .len = len, .eof = true};

	r->cb = cb;
	r->ctx = ctx;
	return run(r, &in);
}

int mt_ptread_new(struct mt_ptread **ret_reader)
{
	struct mt_ptread *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->info.why = "";
	/* Without randomness a file could be made slow to read, no more. */
	if (getrandom(&r->seed, sizeof(r->seed), GRND_NONBLOCK) < 0)
		r->seed = (uint64_t)(uintptr_t)r;
	*ret_reader = r;
	return 0;
}

const struct mt_ptread_info *mt_ptread_info(const struct mt_ptread *r)
{
	return &r->info;
}

void mt_ptread_free(struct mt_ptread *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->nseqs; i++)
		pt_seq_free(r->seqs[i]);
	for (uint32_t i = 0; i < r->ntracks; i++)
		pt_track_free(r->tracks[i]);
	free(r->seqs);
	free(r->tracks);
	pt_map_free(&r->seq_map);
	pt_map_free(&r->track_map);
	free(r->snaps);
	free(r->clocks.v);
	free(r->inflated);
	free(r);
}
