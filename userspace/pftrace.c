/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slices, events and losses -> a Perfetto trace.
 *
 * Idea: a thread is a track and a packet sequence of its own. Its sequence has the track as default
 * and a clock that counts deltas, so an event is a handful of one-byte numbers; everything that
 * repeats is told once per sequence. The head of the file, descriptors and losses go on sequence 1
 * with absolute stamps and texts in place: they stay readable whatever happens to other sequences.
 *
 *  1. `pend` holds whole framed packets. It is handed to out at a mark, at flush and at the end, so
 *     out never sees half a packet.
 *  2. Before an event is written, its sequence is in the present generation of the tables, not older
 *     than reset_ms and has no loss untold; otherwise a packet clears it first (mt_pf_clear).
 *  3. Packets of a sequence are in the file in the order in which the events came.
 *  4. A slice's END carries the name: the importer can match it after a loss.
 *  5. Stamps on sequence 1 are boot time; the first packet relates boot, monotonic and real time.
 *     Snapshots never run back.
 *  6. The first error of out is returned by every later call, and nothing is written any more.
 *
 * Example, thread 71 of process 70, callsite 7 = {"read", target "io", io.c:9, field "n"}, begin at
 * 1000 with n = 3, end at 1500:
 *   seq 2: CLEARED, first on sequence, snapshot {boot 1000, clock 64: 1000}, defaults {clock 64, track}
 *   seq 2: stamp 0, BEGIN category 1, name 1, location 1, n = 3; interned {"io", "read", "n", io.c:9}
 *   seq 2: stamp 500, END name 1
 *
 * What it does not do: nesting and repair (spans does), sorting, reading the clock for events.
 * docs/pftrace.md lists the field numbers and the reasons.
 */
#include <errno.h>
#include <stdlib.h>

#include "pftrace_int.h"

#define ZLIB_LEVEL 1
#define ZHEAD 16 /* room for the frame in front of compressed data */

struct pf_process *mt_pf_process(struct pf *pf, struct mt_process *p)
{
	struct pf_process *pp = p->sink_data;

	if (pp)
		return pp;
	pp = calloc(1, sizeof(*pp));
	if (!pp)
		return NULL;
	pp->uuid = mt_pf_uuid(pf, 'p', p->pid, 0, p->start);
	pp->next = pf->processes;
	pp->pprev = &pf->processes;
	if (pp->next)
		pp->next->pprev = &pp->next;
	pf->processes = pp;
	p->sink_data = pp;
	return pp;
}

struct pf_thread *mt_pf_sequence(struct pf *pf, uint64_t uuid)
{
	struct pf_thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->uuid = uuid;
	th->seq = pf->next_seq++;
	th->next = pf->threads;
	th->pprev = &pf->threads;
	if (th->next)
		th->next->pprev = &th->next;
	pf->threads = th;
	return th;
}

void mt_pf_sequence_free(struct pf_thread *th)
{
	*th->pprev = th->next;
	if (th->next)
		th->next->pprev = th->pprev;
	mt_pf_bits_free(th);
	free(th);
}

struct pf_thread *mt_pf_thread(struct pf *pf, struct mt_thread *t)
{
	if (!t->sink_data)
		t->sink_data = mt_pf_sequence(pf, mt_pf_uuid(pf, 't', t->process->pid, t->tid, t->start));
	return t->sink_data;
}

static void free_process(struct pf_process *pp)
{
	*pp->pprev = pp->next;
	if (pp->next)
		pp->next->pprev = pp->pprev;
	free(pp->counters);
	mt_pf_lanes_free(pp);
	free(pp);
}

static void add_unpaired(struct mt_unpaired *to, const struct mt_unpaired *u)
{
	to->stray_ends += u->stray_ends;
	to->lost_ends += u->lost_ends;
	to->again += u->again;
	to->forgotten += u->forgotten;
	to->too_deep += u->too_deep;
}

static int op_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	int r = 0;

	if (t && t->sink_data) {
		mt_pf_sequence_free(t->sink_data);
		t->sink_data = NULL;
	}
	if (p && p->sink_data) {
		struct pf_process *pp = p->sink_data;

		r = mt_pf_lives_end(pf_of(s), pp, time);
		if (pp->keyed)
			mt_pf_sequence_free(pp->keyed);
		add_unpaired(&pf_of(s)->unpaired, &p->unpaired);
		free_process(pp);
		p->sink_data = NULL;
	}
	return r;
}

/* The whole batch as one packet {compressed_packets = 50}. */
static int put_compressed(struct pf *pf)
{
	unsigned char *data = pf->zbuf + ZHEAD;
	struct mt_enc head, frame;
	unsigned char head_buf[ZHEAD], frame_buf[ZHEAD];
	size_t len, nhead, nframe;

	if (deflateReset(&pf->z) != Z_OK)
		return -EIO;
	pf->z.next_in = pf->pend;
	pf->z.avail_in = (uInt)pf->pend_len;
	pf->z.next_out = data;
	pf->z.avail_out = (uInt)(pf->zbuf_cap - ZHEAD);
	if (deflate(&pf->z, Z_FINISH) != Z_STREAM_END)
		return -EIO;
	len = (size_t)pf->z.total_out;

	head = (struct mt_enc){.p = head_buf};
	mt_enc_tag(&head, 50, MT_WT_BYTES);
	mt_enc_varint(&head, len);
	nhead = (size_t)(head.p - head_buf);
	frame = (struct mt_enc){.p = frame_buf};
	mt_enc_tag(&frame, 1, MT_WT_BYTES);
	mt_enc_varint(&frame, nhead + len);
	nframe = (size_t)(frame.p - frame_buf);

	memcpy(data - nhead, head_buf, nhead);
	memcpy(data - nhead - nframe, frame_buf, nframe);
	return mt_out_put(pf->out, data - nhead - nframe, nframe + nhead + len);
}

int mt_pf_drain(struct pf *pf)
{
	int r;

	if (pf->error)
		return pf->error;
	if (pf->pend_len == 0)
		return 0;
	if (pf->zlib_ready)
		r = put_compressed(pf);
	else
		r = mt_out_put(pf->out, pf->pend, pf->pend_len);
	pf->pend_len = 0;
	if (r < 0)
		pf->error = r;
	return r;
}

int mt_pf_room(struct pf *pf)
{
	if (pf->pend_len >= pf->gather)
		return mt_pf_drain(pf);
	return pf->error;
}

static int zlib_init(struct pf *pf)
{
	if (deflateInit(&pf->z, ZLIB_LEVEL) != Z_OK)
		return -ENOMEM;
	pf->zlib_ready = true;
	pf->zbuf_cap = ZHEAD + deflateBound(&pf->z, (uLong)(pf->gather + PF_PACKET_MAX));
	pf->zbuf = malloc(pf->zbuf_cap);
	return pf->zbuf ? 0 : -ENOMEM;
}

/* A sequence that was quiet for a whole reset period gives its memory back. */
static void drop_idle(struct pf *pf, uint64_t now)
{
	for (struct pf_thread *th = pf->threads; th; th = th->next) {
		if (th->gen == 0 || now < th->reset_at || now - th->last < pf->reset_ns)
			continue;
		mt_pf_bits_free(th);
		th->gen = 0;
	}
}

static int op_flush(struct mt_sink *s, uint64_t now)
{
	struct pf *pf = pf_of(s);
	int r;

	if (now >= pf->next_snap) {
		mt_pf_snapshot(pf, false);
		pf->next_snap = now + PF_SNAPSHOT_NS;
		drop_idle(pf, now);
	}
	/* Small compressed packets compress badly: let them wait a moment. */
	if (!pf->zlib_ready || pf->pend_len >= pf->gather / 2 || now < pf->drained_at ||
	    now - pf->drained_at >= PF_ZLIB_WAIT_NS) {
		pf->drained_at = now;
		mt_pf_drain(pf);
	}
	r = mt_out_flush(pf->out);
	if (r < 0 && !pf->error)
		pf->error = r;
	return pf->error;
}

static void free_all(struct pf *pf)
{
	while (pf->threads)
		mt_pf_sequence_free(pf->threads);
	while (pf->processes)
		free_process(pf->processes);
	mt_pf_tables_free(pf);
	if (pf->zlib_ready)
		deflateEnd(&pf->z);
	free(pf->zbuf);
	free(pf->pend);
	free(pf);
}

static int op_free(struct mt_sink *s)
{
	struct pf *pf;
	int first, r;

	if (!s)
		return 0;
	pf = pf_of(s);
	mt_pf_snapshot(pf, false);
	mt_pf_tail(pf);
	mt_pf_drain(pf);
	first = pf->error;
	r = mt_out_close(pf->out);
	free_all(pf);
	return first ? first : r;
}

static const struct mt_sink_ops ops = {
	.process = mt_pf_op_process,
	.thread = mt_pf_op_thread,
	.begin = mt_pf_op_begin,
	.end = mt_pf_op_end,
	.instant = mt_pf_op_instant,
	.counter = mt_pf_op_counter,
	.lost = mt_pf_op_lost,
	.gone = op_gone,
	.flush = op_flush,
	.free = op_free,
	.mark = mt_pf_op_mark,
	.span_new = mt_pf_op_span_new,
	.span_close = mt_pf_op_span_close,
	.keyed_begin = mt_pf_op_keyed_begin,
	.keyed_end = mt_pf_op_keyed_end,
};

static void take_opts(struct pf *pf, const struct mt_pftrace_opts *opts)
{
	pf->opts = *opts;
	if (pf->opts.reset_ms == 0)
		pf->opts.reset_ms = 10000;
	if (pf->opts.max_interned == 0)
		pf->opts.max_interned = 20000;
	if (pf->opts.max_interned < PF_MIN_INTERNED)
		pf->opts.max_interned = PF_MIN_INTERNED;
	pf->reset_ns = pf->opts.reset_ms * 1000000ull;
	memcpy(pf->boot_id, opts->boot_id, sizeof(pf->boot_id));
	pf->opts.boot_id = NULL; /* the caller's, may go */
	pf->gather = opts->compress ? PF_GATHER_ZLIB : PF_GATHER_PLAIN;
	pf->next_seq = 2;
}

int mt_pftrace_new(const struct mt_pftrace_opts *opts, struct mt_out *out, struct mt_sink **ret_sink)
{
	struct pf *pf;
	int r;

	pf = calloc(1, sizeof(*pf));
	if (!pf)
		return -ENOMEM;
	pf->sink.ops = &ops;
	pf->out = out;
	take_opts(pf, opts);
	r = -ENOMEM;
	pf->pend = malloc(pf->gather + PF_PACKET_MAX);
	if (!pf->pend)
		goto out;
	r = mt_pf_tables_new(pf);
	if (r < 0)
		goto out;
	/* The head stays uncompressed: whoever looks at the first bytes sees what the file is. */
	r = mt_pf_head(pf);
	if (r < 0)
		goto out;
	r = mt_pf_drain(pf);
	if (r < 0)
		goto out;
	if (opts->compress)
		r = zlib_init(pf);
out:
	if (r < 0) {
		free_all(pf);
		return r;
	}
	pf->opts.tool_version = pf->opts.host = NULL;
	pf->next_snap = pf->snap.boot + PF_SNAPSHOT_NS;
	*ret_sink = &pf->sink;
	return 0;
}
