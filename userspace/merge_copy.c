/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second reading: the packets of a file's good part, one after the other, compressed ones taken out of
 * their bundles. Which packets go where is decided here, what becomes of their content in merge_packet.c.
 */
#include <unistd.h>

#include "merge_int.h"

#define READ_SIZE (256u << 10)

struct source {
	int fd;
	uint64_t at, end; /* of the file */
	struct mg_buf buf;
	size_t used;
};

/* Makes n bytes ready at buf.p + used. 1, or 0: there are not that many. */
static int need(struct source *s, size_t n)
{
	uint64_t rest = s->end - s->at;
	ssize_t got;

	if (s->buf.len - s->used >= n)
		return 1;
	if (s->used)
		memmove(s->buf.p, s->buf.p + s->used, s->buf.len - s->used);
	s->buf.len -= s->used;
	s->used = 0;
	while (s->buf.len < n && s->at < s->end) {
		size_t want = n - s->buf.len > READ_SIZE ? n - s->buf.len : READ_SIZE;

		rest = s->end - s->at;
		want = want > rest ? (size_t)rest : want;
		if (!mg_room(&s->buf, want))
			return s->buf.error;
		got = pread(s->fd, s->buf.p + s->buf.len, want, (off_t)s->at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0; /* the file has shrunk */
		s->buf.len += (size_t)got;
		s->at += (uint64_t)got;
	}
	return s->buf.len >= n;
}

/* 1: *ret_body is the next packet, good until the next call; 0: end; -EBADMSG: the file has changed. */
static int next_packet(struct source *s, struct pt_wire *ret_body)
{
	struct pt_wire w;
	size_t have, head;
	uint64_t len;
	int r;

	r = need(s, 11);
	if (r < 0)
		return r;
	have = s->buf.len - s->used;
	if (!have)
		return 0;
	w = (struct pt_wire){s->buf.p + s->used, s->buf.p + s->buf.len};
	if (*w.p++ != 0x0a || pt_varint(&w, &len) < 0 || len > MT_PTREAD_MAX_PACKET)
		return -EBADMSG;
	head = (size_t)(w.p - (s->buf.p + s->used));
	r = need(s, head + (size_t)len);
	if (r <= 0)
		return r < 0 ? r : -EBADMSG;
	ret_body->p = s->buf.p + s->used + head;
	ret_body->end = ret_body->p + len;
	s->used += head + (size_t)len;
	return 1;
}

int mg_seq(struct mg_copy *c, uint32_t id, uint32_t *ret_id)
{
	struct merge *m = c->m;
	uint32_t to = id ? pt_map_get(&c->seqs, m->seed, id) : 0;
	int r = 0;

	if (id && !to) {
		if (m->next_seq == UINT32_MAX)
			return mg_fail(m, -EFBIG, "more sequences than there are numbers for");
		to = m->next_seq++;
		r = pt_map_add(&c->seqs, m->seed, id, to);
	}
	*ret_id = to;
	return r;
}

/* TraceStats: the last of a file counts. Buffers are numbered through over all files. */
static int take_stats(struct mg_copy *c, struct pt_wire w)
{
	const unsigned char *from;
	struct pt_field f, g;
	int r;

	c->stats.len = 0;
	c->nbuffers = 0;
	c->outcome = 0;
	while ((r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_VARINT(15)) {
			c->outcome = f.u;
		} else if (f.tag == PT_BYTES(1)) {
			mg_raw(&c->stats, from, (size_t)(w.p - from));
			c->nbuffers++;
		} else if (f.tag == PT_BYTES(18)) {
			size_t at = mg_open(&c->stats, 18);
			uint32_t seq = 0, buffer = 0;

			while ((r = pt_next(&f.data, &g)) > 0) {
				if (g.tag == PT_VARINT(1))
					r = mg_seq(c, (uint32_t)g.u, &seq);
				else if (g.tag == PT_VARINT(4))
					buffer = (uint32_t)g.u;
				if (r < 0)
					return r;
			}
			mg_u64(&c->stats, 1, seq);
			mg_u64(&c->stats, 4, (uint64_t)c->m->nbuffers + buffer);
			mg_close(&c->stats, at);
		}
		if (r < 0)
			return r;
	}
	return r;
}

/* As ptread does it: what a packet needs to be understood. 1: go on; 0: it cannot be used; or an error. */
static int update_state(struct mg_copy *c, const struct pt_packet *p, struct pt_seq **ret_seq)
{
	struct pt_seq *s;
	int r = pt_seq_get(c->state, p->seq, &s);

	if (r < 0 || !s)
		return r;
	if (p->cleared)
		pt_seq_clear(c->state, s);
	else if (p->dropped)
		s->valid = false;
	if (p->defaults.p)
		r = pt_seq_defaults(s, p->defaults);
	if (!r && p->needs && !s->valid)
		return 0;
	if (!r && p->snapshot.p)
		r = pt_clock_snapshot(c->state, s, p->snapshot);
	*ret_seq = s;
	return r < 0 ? r : 1;
}

static int packet(struct mg_copy *c, struct pt_wire w, bool nested);

static int inflate_some(struct mg_copy *c, z_stream *z)
{
	struct mg_buf *b = &c->inflated;
	int r;

	do {
		if (!mg_room(b, READ_SIZE))
			return b->error == -EFBIG ? -EBADMSG : b->error;
		z->next_out = b->p + b->len;
		z->avail_out = (uInt)(b->cap - b->len);
		r = inflate(z, Z_NO_FLUSH);
		b->len = b->cap - z->avail_out;
	} while (r == Z_OK && (z->avail_in || !z->avail_out));
	return r == Z_STREAM_END ? 0 : r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* A bundle of packets. Errors in it were found by the first reading, or the file has changed since. */
static int bundle(struct mg_copy *c, struct pt_wire w)
{
	z_stream z = {.next_in = (unsigned char *)w.p, .avail_in = (uInt)pt_wire_len(&w)};
	struct pt_field f;
	int r;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	c->inflated.len = 0;
	r = inflate_some(c, &z);
	inflateEnd(&z);
	if (r < 0)
		return r;
	w = (struct pt_wire){c->inflated.p, c->inflated.p + c->inflated.len};
	while (!r && (r = pt_next(&w, &f)) > 0)
		r = f.tag == PT_BYTES(1) ? packet(c, f.data, true) : -EBADMSG;
	return r;
}

/* 1: use it; 0: it is not to be used; or an error. */
static int look(struct mg_copy *c, const struct pt_packet *p, struct pt_seq **ret_seq)
{
	int r;

	if (p->zstd.p)
		return 0;
	r = update_state(c, p, ret_seq);
	if (r > 0 && p->stats.p) {
		r = take_stats(c, p->stats);
		c->f->in->skipped += r == -EBADMSG;
		r = r < 0 && r != -EBADMSG ? r : 1;
	}
	return r;
}

/* Nothing of the packet at hand is written. */
static int drop(struct mg_copy *c)
{
	c->m->pkt.len = 0;
	c->m->pkt.error = 0;
	return 0;
}

static int packet(struct mg_copy *c, struct pt_wire w, bool nested)
{
	struct mt_merge_input *in = c->f->in;
	struct pt_seq *s = NULL;
	struct pt_packet p;
	int r;

	r = pt_packet_parse(w, &p);
	if (!r && p.compressed.p && !p.zstd.p)
		return nested ? -EBADMSG : bundle(c, p.compressed);
	if (!r)
		r = look(c, &p, &s);
	if (r <= 0) {
		in->skipped += r == 0;
		return r;
	}
	r = mg_packet(c, w, &p, s);
	if (r > 0)
		r = mg_put(c->m);
	else if (!r)
		return drop(c);
	if (r == 1 || r == -EBADMSG) {
		in->skipped++;
		drop(c);
		r = mg_stub(c, &p, s);
		return r > 0 ? mg_put(c->m) : r;
	}
	in->packets += r == 0;
	return r;
}

/* What the file's last statistics say joins those of the others. */
static int join_stats(struct mg_copy *c)
{
	struct merge *m = c->m;

	c->f->in->complete = c->outcome == 1 && !c->f->in->torn && !*c->f->in->why;
	if (c->stats.error == -ENOMEM)
		return -ENOMEM;
	if (!c->stats.error && m->stats.len + c->stats.len <= MG_MAX_STATS) {
		mg_raw(&m->stats, c->stats.p, c->stats.len);
		m->nbuffers += c->nbuffers;
	}
	return m->stats.error;
}

int mg_copy_file(struct merge *m, struct mg_file *f)
{
	struct mg_copy c = {.m = m, .f = f, .host = &m->hosts[f->host], .several = m->nhosts > 1};
	struct source src = {.fd = f->in->fd, .end = f->in->bytes};
	struct pt_wire w;
	int r;

	r = mt_ptread_new(&c.state);
	while (!r && (r = next_packet(&src, &w)) > 0)
		r = packet(&c, w, false);
	if (!r)
		r = join_stats(&c);
	mt_ptread_free(c.state);
	pt_map_free(&c.seqs);
	mg_free(&c.inflated);
	mg_free(&c.stats);
	mg_free(&src.buf);
	if (r == -EBADMSG)
		return mg_fail(m, r, "%s: was changed while it was read", f->in->name);
	return r < 0 ? mg_fail(m, r, "%s: %s", f->in->name, strerror(-r)) : 0;
}
