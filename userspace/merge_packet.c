/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One packet as it is in its file -> as it is in the merged trace.
 *
 * Everything is copied as it is, field by field, but for numbers that mean something in the file only:
 * sequence ids, uuids that were taken, times and flow ids of another host, names of its processes.
 *
 *  P1  Stamps are boot time or of a sequence's own clock. Others (monotonic, real time, another tool's) are
 *      turned into boot time here, with the file's snapshots, so that no main clock of any file is needed.
 *  P2  Clock snapshots keep the sequence's own clocks only, each beside the reference host's boot time.
 *  P3  A stamp on a sequence's own clock is never dropped, for later ones count from it: of a packet that
 *      cannot be carried over it stays.
 *  P4  What is said once for the whole trace is left out. A packet that also starts a sequence or has its
 *      defaults stays for that.
 *
 * Example, host 2 with shift 500, sequence 7 of the file is 31: {ts 1000, seq 7, snapshot {64: 1000, 6: 1000,
 * 3: 900}, defaults {clock 64, track 5}} becomes {ts 1500, seq 31, snapshot {64: 1000, 6: 1500}, defaults
 * {clock 64, track 5}, machine 2}: deltas on clock 64 need no change.
 */
#include "merge_int.h"

enum { CLK_BOOT = 6, CLK_SEQ_FIRST = 64, CLK_SEQ_LAST = 127 };

static bool is_own_clock(uint64_t id)
{
	return id >= CLK_SEQ_FIRST && id <= CLK_SEQ_LAST;
}

static uint64_t track_of(const struct mg_copy *c, uint64_t uuid)
{
	uint32_t i = c->f->renamed ? pt_map_get(&c->f->by_uuid, c->m->seed, uuid) : 0;

	return i ? c->f->tracks[i - 1].to : uuid;
}

static uint64_t flow_of(const struct mg_copy *c, uint64_t flow)
{
	uint64_t to = flow ^ c->host->flow;

	return to || !flow ? to : 1;
}

static void keep(struct mg_buf *b, const unsigned char *from, const struct pt_wire *w)
{
	mg_raw(b, from, (size_t)(w->p - from));
}

/* A text with the host's name behind it. */
static void put_name(struct mg_copy *c, uint32_t field, struct pt_wire text)
{
	struct mg_buf *b = &c->m->pkt;
	size_t at = mg_open(b, field);

	mg_raw(b, text.p, pt_wire_len(&text));
	mg_raw(b, " @ ", 3);
	mg_raw(b, c->host->name, strlen(c->host->name));
	mg_close(b, at);
}

/* ---- TrackEvent, TracePacketDefaults ---- */

static int put_event(struct mg_copy *c, uint32_t field, struct pt_wire w)
{
	struct mg_buf *b = &c->m->pkt;
	const unsigned char *from;
	struct pt_field f;
	uint64_t v;
	size_t at;
	int r;

	if (!c->f->renamed && !c->host->flow) {
		mg_bytes(b, field, w.p, pt_wire_len(&w));
		return 0;
	}
	at = mg_open(b, field);
	while ((r = mg_next(&w, &f, &from)) > 0) {
		switch (f.tag) {
		case PT_VARINT(11): /* track */
		case PT_VARINT(31): /* tracks of extra counters */
		case PT_VARINT(45):
			mg_u64(b, f.tag >> 3, track_of(c, f.u));
			break;
		case PT_BYTES(31):
		case PT_BYTES(45):
			while (f.data.p < f.data.end && !(r = pt_varint(&f.data, &v)))
				mg_u64(b, f.tag >> 3, track_of(c, v));
			if (r < 0)
				return r;
			break;
		case PT_FIXED64(47): /* flows */
		case PT_FIXED64(48):
			mg_fixed64(b, f.tag >> 3, flow_of(c, f.u));
			break;
		case PT_VARINT(36): /* their old form */
		case PT_VARINT(42):
			mg_u64(b, f.tag >> 3, flow_of(c, f.u));
			break;
		default:
			keep(b, from, &w);
		}
	}
	mg_close(b, at);
	return r;
}

static int put_defaults(struct mg_copy *c, struct pt_wire w)
{
	struct mg_buf *b = &c->m->pkt;
	size_t at = mg_open(b, 59);
	const unsigned char *from;
	struct pt_field f;
	int r, e = 0;

	while ((r = mg_next(&w, &f, &from)) > 0 && !e) {
		if (f.tag == PT_VARINT(58))
			mg_u64(b, 58, is_own_clock(f.u) ? f.u : CLK_BOOT);
		else if (f.tag == PT_BYTES(11))
			e = put_event(c, 11, f.data);
		else
			keep(b, from, &w);
	}
	mg_close(b, at);
	return e < 0 ? e : r;
}

/* ---- ClockSnapshot ---- */

/* Where a reading of a sequence's own clock is in boot time; false if it is not known. */
static bool own_boot(const struct pt_seq *s, uint32_t id, uint64_t ts, uint64_t *ret_boot)
{
	for (uint32_t i = 0; i < s->clocks.n; i++) {
		const struct pt_clock *k = &s->clocks.v[i];

		if (k->id == id && k->has_anchor && k->anchor == ts) {
			*ret_boot = k->anchor_boot;
			return true;
		}
	}
	return false;
}

/* *ret_any: there was something to keep, it is in the packet now. */
static int put_snapshot(struct mg_copy *c, struct pt_wire w, const struct pt_seq *s, bool *ret_any)
{
	struct mg_buf *b = &c->m->pkt;
	size_t before = b->len, at = mg_open(b, 6), inner;
	uint64_t boot = 0;
	struct pt_field f, g;
	int r;

	*ret_any = false;
	while ((r = pt_next(&w, &f)) > 0) {
		struct pt_wire in = f.data;
		uint64_t id = 0, ts = 0;

		if (f.tag != PT_BYTES(1))
			continue;
		while ((r = pt_next(&in, &g)) > 0) {
			if (g.tag == PT_VARINT(1))
				id = g.u;
			else if (g.tag == PT_VARINT(2))
				ts = g.u;
		}
		if (r < 0)
			return r;
		if (is_own_clock(id) && own_boot(s, (uint32_t)id, ts, &boot)) {
			mg_bytes(b, 1, f.data.p, pt_wire_len(&f.data));
			*ret_any = true;
		}
	}
	if (r < 0)
		return r;
	if (!*ret_any) {
		b->len = b->error ? b->len : before;
		return 0;
	}
	inner = mg_open(b, 1);
	mg_u64(b, 1, CLK_BOOT);
	mg_u64(b, 2, boot + c->host->shift);
	mg_close(b, inner);
	mg_close(b, at);
	return 0;
}

/* ---- TrackDescriptor, ProcessTree ---- */

static int put_process(struct mg_copy *c, struct pt_wire w)
{
	struct mg_buf *b = &c->m->pkt;
	size_t at = mg_open(b, 3);
	const unsigned char *from;
	struct pt_field f;
	int r;

	while ((r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_BYTES(6) && c->several)
			put_name(c, 6, f.data);
		else if (f.tag == PT_VARINT(7) && f.u)
			mg_u64(b, 7, f.u + c->host->shift);
		else
			keep(b, from, &w);
	}
	mg_close(b, at);
	return r;
}

/* A track of no process, thread or parent: the importer would put those of all hosts together by name. */
static bool is_global(struct pt_wire w)
{
	struct pt_field f;

	while (pt_next(&w, &f) > 0) {
		if (f.tag == PT_BYTES(3) || f.tag == PT_BYTES(4) || (f.tag == PT_VARINT(5) && f.u))
			return false;
	}
	return true;
}

static int put_descriptor(struct mg_copy *c, struct pt_wire w)
{
	bool named = c->several && is_global(w);
	struct mg_buf *b = &c->m->pkt;
	size_t at = mg_open(b, 60);
	const unsigned char *from;
	struct pt_field f;
	int r, e = 0;

	while (!e && (r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_VARINT(1) || f.tag == PT_VARINT(5))
			mg_u64(b, f.tag >> 3, track_of(c, f.u));
		else if (f.tag == PT_BYTES(3))
			e = put_process(c, f.data);
		else if (named && (f.tag == PT_BYTES(2) || f.tag == PT_BYTES(10) || f.tag == PT_BYTES(13)))
			put_name(c, f.tag >> 3, f.data);
		else
			keep(b, from, &w);
	}
	mg_close(b, at);
	return e < 0 ? e : r;
}

/*
 * One process of the tree. Its name is the first element of the command line, cut at a space if it is the
 * only one, so there must be a second one.
 */
static int put_tree_process(struct mg_copy *c, struct pt_wire w)
{
	struct mg_buf *b = &c->m->pkt;
	size_t at = mg_open(b, 1);
	const unsigned char *from;
	uint32_t args = 0;
	struct pt_field f;
	int r;

	while ((r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_BYTES(3) && !args++)
			put_name(c, 3, f.data);
		else if (f.tag == PT_VARINT(7) && f.u)
			mg_u64(b, 7, f.u + c->host->shift);
		else
			keep(b, from, &w);
	}
	if (args == 1)
		mg_text(b, 3, "");
	mg_close(b, at);
	return r;
}

static int put_tree(struct mg_copy *c, struct pt_wire w)
{
	struct mg_buf *b = &c->m->pkt;
	size_t at;
	const unsigned char *from;
	struct pt_field f;
	int r, e = 0;

	if (!c->several) {
		mg_bytes(b, 2, w.p, pt_wire_len(&w));
		return 0;
	}
	at = mg_open(b, 2);
	while (!e && (r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_BYTES(1))
			e = put_tree_process(c, f.data);
		else if (f.tag == PT_VARINT(3) && f.u)
			mg_u64(b, 3, f.u + c->host->shift);
		else
			keep(b, from, &w);
	}
	mg_close(b, at);
	return e < 0 ? e : r;
}

/* ---- TracePacket ---- */

/*
 * The packet's stamp and its clock, as P1 says. An event without a stamp has the time of the packet before
 * it, which may be another one in the merged trace: it gets that time.
 */
static void put_stamp(struct mg_copy *c, const struct pt_packet *p, struct pt_seq *s)
{
	struct mg_buf *b = &c->m->pkt;
	uint32_t clk = p->has_clk ? p->clk : s->has_clk ? s->clk : CLK_BOOT;
	uint64_t ts = p->ts;

	if (p->has_ts) {
		pt_clock_boot(c->state, s, clk, ts, &ts); /* not related: taken as written */
		c->state->last_ts = ts;
		if (is_own_clock(clk)) {
			mg_u64(b, 8, p->ts);
			if (p->has_clk)
				mg_u64(b, 58, clk);
			return;
		}
	} else if (p->event.p) {
		ts = c->state->last_ts;
	} else {
		return;
	}
	mg_u64(b, 8, ts + c->host->shift);
	if (p->has_clk || (s->has_clk && is_own_clock(s->clk))) /* other defaults become the boot clock */
		mg_u64(b, 58, CLK_BOOT);
}

enum what {
	NOTHING,  /* of no use alone */
	STATE,    /* of use to its sequence */
	PAYLOAD,  /* what the packet is for */
	LEFT_OUT, /* cannot be carried over */
};

/* Fields that hold messages. */
static int put_part(struct mg_copy *c, const struct pt_field *f, const struct pt_seq *s, enum what *ret_what)
{
	struct mg_buf *b = &c->m->pkt;
	bool any;
	int r = 0;

	*ret_what = PAYLOAD;
	switch (f->tag) {
	case PT_BYTES(11):
		return put_event(c, 11, f->data);
	case PT_BYTES(59):
		*ret_what = STATE;
		return put_defaults(c, f->data);
	case PT_BYTES(6):
		r = put_snapshot(c, f->data, s, &any);
		*ret_what = any ? PAYLOAD : NOTHING;
		return r;
	case PT_BYTES(60):
		return put_descriptor(c, f->data);
	case PT_BYTES(2):
		return put_tree(c, f->data);
	case PT_BYTES(69):  /* marks by which the importer would sort in pieces */
	case PT_BYTES(35):  /* statistics: joined */
	case PT_BYTES(89):  /* uuid of the trace */
	case PT_BYTES(126): /* attributes: joined */
		*ret_what = NOTHING;
		return 0;
	case PT_BYTES(45):
		if (c->host->system) {
			*ret_what = NOTHING;
			return 0;
		}
		break;
	case PT_BYTES(1): /* ftrace: has boot times in it */
		if (c->host->shift) {
			*ret_what = LEFT_OUT;
			return 0;
		}
		break;
	case PT_BYTES(107): /* clocks of hosts */
		*ret_what = LEFT_OUT;
		return 0;
	}
	*ret_what = f->tag == PT_BYTES(12) ? STATE : PAYLOAD;
	mg_bytes(b, f->tag >> 3, f->data.p, pt_wire_len(&f->data));
	return 0;
}

/* True if the sequence's later deltas count from this packet's stamp: then it must stay, whatever is in it.
 */
static bool moves_clock(const struct pt_packet *p, const struct pt_seq *s)
{
	return p->has_ts && is_own_clock(p->has_clk ? p->clk : s->has_clk ? s->clk : CLK_BOOT);
}

int mg_stub(struct mg_copy *c, const struct pt_packet *p, const struct pt_seq *s)
{
	struct mg_buf *b = &c->m->pkt;
	uint32_t seq;
	int r;

	if (!moves_clock(p, s))
		return 0;
	r = mg_seq(c, p->seq, &seq);
	if (r < 0)
		return r;
	mg_u64(b, 8, p->ts);
	if (p->has_clk)
		mg_u64(b, 58, p->clk);
	mg_u64(b, 10, seq);
	if (c->several)
		mg_u64(b, 98, c->f->host + 1);
	return 1;
}

int mg_packet(struct mg_copy *c, struct pt_wire w, const struct pt_packet *p, struct pt_seq *s)
{
	struct mg_buf *b = &c->m->pkt;
	const unsigned char *from;
	bool of_use = p->cleared || p->dropped || moves_clock(p, s), left_out = false;
	enum what what;
	struct pt_field f;
	uint32_t seq;
	int r;

	put_stamp(c, p, s);
	r = mg_seq(c, p->seq, &seq);
	if (r < 0)
		return r;
	if (seq)
		mg_u64(b, 10, seq);
	while ((r = mg_next(&w, &f, &from)) > 0) {
		if (f.tag == PT_VARINT(8) || f.tag == PT_VARINT(58) || f.tag == PT_VARINT(10) ||
		    f.tag == PT_VARINT(98))
			continue;
		if ((f.tag & 7) != 2) {
			keep(b, from, &w);
			continue;
		}
		r = put_part(c, &f, s, &what);
		if (r < 0)
			return r;
		of_use |= what == STATE || what == PAYLOAD;
		left_out |= what == LEFT_OUT;
	}
	if (c->several)
		mg_u64(b, 98, c->f->host + 1);
	c->f->in->skipped += left_out;
	return r < 0 ? r : of_use;
}
