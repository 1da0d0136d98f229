/* SPDX-License-Identifier: BSD-3-Clause */
/* One TracePacket: its parts, and what they say. */
#include "ptread_int.h"

/* Parts of a packet that are looked into, the frequent ones first. */
static const struct {
	uint32_t tag;
	size_t offset;
} parts[] = {
	{PT_BYTES(11), offsetof(struct pt_packet, event)},
	{PT_BYTES(12), offsetof(struct pt_packet, interned)},
	{PT_BYTES(60), offsetof(struct pt_packet, descriptor)},
	{PT_BYTES(6), offsetof(struct pt_packet, snapshot)},
	{PT_BYTES(59), offsetof(struct pt_packet, defaults)},
	{PT_BYTES(50), offsetof(struct pt_packet, compressed)},
	{PT_BYTES(133), offsetof(struct pt_packet, zstd)},
	{PT_BYTES(66), offsetof(struct pt_packet, perf)},
	{PT_BYTES(35), offsetof(struct pt_packet, stats)},
	{PT_BYTES(126), offsetof(struct pt_packet, attributes)},
};

static void take_part(struct pt_packet *p, const struct pt_field *f)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (parts[i].tag == f->tag) {
			memcpy((char *)p + parts[i].offset, &f->data, sizeof(f->data));
			return;
		}
	}
}

int pt_packet_parse(struct pt_wire w, struct pt_packet *p)
{
	struct pt_field f;
	int e;

	*p = (struct pt_packet){0};
	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_VARINT(8):
			p->ts = f.u;
			p->has_ts = true;
			break;
		case PT_VARINT(58):
			p->clk = (uint32_t)f.u;
			p->has_clk = true;
			break;
		case PT_VARINT(10):
			p->seq = (uint32_t)f.u;
			break;
		case PT_VARINT(13):
			p->cleared |= f.u & 1;
			p->needs = f.u & 2;
			break;
		case PT_VARINT(41):
			p->cleared |= f.u != 0;
			break;
		case PT_VARINT(42):
			p->dropped = (uint32_t)f.u;
			break;
		default:
			if ((f.tag & 7) == 2)
				take_part(p, &f);
		}
	}
	return e;
}

static int tell_loss(struct mt_ptread *r, const struct pt_packet *p, const struct mt_pt_loss *loss,
		     uint64_t ts)
{
	struct mt_pt_event ev = {.kind = MT_PT_LOSS,
				 .has_ts = p->has_ts,
				 .ts = p->has_ts ? ts : 0,
				 .offset = r->offset,
				 .seq = p->seq,
				 .name = {"", 0},
				 .cat = {"", 0},
				 .file = {"", 0},
				 .function = {"", 0},
				 .loss = *loss};

	return r->cb(r->ctx, &ev);
}

static int tell_perf(struct mt_ptread *r, const struct pt_packet *p, uint64_t ts)
{
	struct mt_pt_loss loss = {.source = MT_PT_LOSS_KERNEL};
	struct pt_wire w = p->perf;
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(1))
			loss.cpu = (uint32_t)f.u;
		else if (f.tag == PT_VARINT(17))
			loss.count = f.u;
	}
	return e < 0 || !loss.count ? e : tell_loss(r, p, &loss, ts);
}

/* TraceStats: what the writers of all buffers lost together. */
static int tell_stats(struct mt_ptread *r, const struct pt_packet *p, uint64_t ts)
{
	struct mt_pt_loss loss = {.source = MT_PT_LOSS_STATS};
	struct pt_wire w = p->stats;
	struct pt_field f, g;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag != PT_BYTES(1))
			continue;
		while ((e = pt_next(&f.data, &g)) > 0) {
			if (g.tag == PT_VARINT(19))
				loss.count += g.u;
		}
		if (e < 0)
			return e;
	}
	return e < 0 ? e : tell_loss(r, p, &loss, ts);
}

static int tell_attribute(struct mt_ptread *r, struct pt_wire w)
{
	struct mt_pt_arg arg = {.name = {"value", 5}, .type = MT_PT_ARG_NONE};
	struct mt_pt_event ev = {.kind = MT_PT_ATTRIBUTE,
				 .offset = r->offset,
				 .name = {"", 0},
				 .cat = {"", 0},
				 .file = {"", 0},
				 .function = {"", 0},
				 .nargs = 1,
				 .args = &arg};
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_BYTES(1):
			ev.name = pt_str(f.data);
			ev.has_name = true;
			break;
		case PT_VARINT(2):
			arg.type = MT_PT_ARG_INT;
			arg.u = f.u;
			break;
		case PT_BYTES(3):
			arg.type = MT_PT_ARG_STR;
			arg.s = pt_str(f.data);
			break;
		}
	}
	return e < 0 ? e : r->cb(r->ctx, &ev);
}

static int tell_attributes(struct mt_ptread *r, struct pt_wire w)
{
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		e = f.tag == PT_BYTES(1) ? tell_attribute(r, f.data) : 0;
		if (e)
			return e;
	}
	return e;
}

static int tell_track(struct mt_ptread *r, const struct pt_packet *p, uint64_t ts)
{
	struct mt_pt_event ev = {.kind = MT_PT_TRACK,
				 .has_ts = p->has_ts,
				 .ts = p->has_ts ? ts : 0,
				 .offset = r->offset,
				 .seq = p->seq,
				 .name = {"", 0},
				 .cat = {"", 0},
				 .file = {"", 0},
				 .function = {"", 0}};
	struct mt_pt_track *t;
	int e;

	e = pt_track_describe(r, p->descriptor, &t);
	if (e < 0 || !t)
		return e;
	ev.track = t;
	return r->cb(r->ctx, &ev);
}

/* Brings the packet's sequence up to date. 1: go on; 0: the packet cannot be used; or an error. */
static int update_seq(struct mt_ptread *r, struct pt_seq *s, const struct pt_packet *p)
{
	bool seen = s->seen;
	int e = 0;

	s->seen = true;
	if (p->cleared)
		pt_seq_clear(r, s);
	else if (p->dropped)
		s->valid = false;
	if (p->defaults.p)
		e = pt_seq_defaults(s, p->defaults);
	if (e < 0)
		return e;
	if (p->interned.p && s->valid)
		e = pt_seq_intern(r, s, p->interned);
	if (e < 0)
		return e;
	if (p->dropped && seen) {
		struct mt_pt_loss loss = {
			.source = MT_PT_LOSS_PACKETS, .count = 1, .seq = p->seq, .bits = p->dropped};
		struct pt_packet plain = {.seq = p->seq};

		e = tell_loss(r, &plain, &loss, 0);
		if (e)
			return e;
	}
	if (p->needs && !s->valid) {
		r->info.no_state++;
		return 0;
	}
	return 1;
}

/* The packet's time in boot time; its sequence's clock moves on. */
static uint64_t packet_time(struct mt_ptread *r, struct pt_seq *s, const struct pt_packet *p)
{
	uint64_t ts = p->ts;

	if (!p->has_ts)
		return r->last_ts;
	if (p->has_clk || s->has_clk) {
		if (pt_clock_boot(r, s, p->has_clk ? p->clk : s->clk, p->ts, &ts) < 0)
			r->info.no_clock++;
	}
	r->last_ts = ts;
	return ts;
}

int pt_packet_use(struct mt_ptread *r, const struct pt_packet *p)
{
	struct pt_seq *s;
	uint64_t ts;
	int e;

	if (p->zstd.p) {
		r->info.zstd++;
		return 0;
	}
	if (p->compressed.p)
		return r->nested ? pt_bad(r, "compressed packets inside compressed packets")
				 : pt_inflate(r, p->compressed);
	e = pt_seq_get(r, p->seq, &s);
	if (e < 0 || !s)
		return e;
	e = update_seq(r, s, p);
	if (e <= 0)
		return e;
	if (p->snapshot.p) {
		e = pt_clock_snapshot(r, s, p->snapshot);
		if (e < 0)
			return e;
	}
	ts = packet_time(r, s, p);
	e = 0;
	if (p->descriptor.p)
		e = tell_track(r, p, ts);
	else if (p->event.p && !p->seq)
		r->info.no_sequence++;
	else if (p->event.p)
		e = pt_event(r, s, p, ts);
	else if (p->perf.p)
		e = tell_perf(r, p, ts);
	else if (p->stats.p)
		e = tell_stats(r, p, ts);
	else if (p->attributes.p)
		e = tell_attributes(r, p->attributes);
	return e;
}
