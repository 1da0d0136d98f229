/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks of a trace -> boot time.
 *
 * A ClockSnapshot says what several clocks showed at one moment. The three main ones (boot 6,
 * monotonic 3, real time 1) are kept from every snapshot, because their distance changes: monotonic
 * stands still while the machine sleeps, real time is set. A time is converted with the nearest
 * earlier snapshot. Of all other clocks only the last snapshot counts; their packets come after it.
 *
 *  C1  boot and mono of r->snaps never decrease; a snapshot that would break this is not used.
 *  C2  ids 64..127 belong to the sequence whose packet has the snapshot, all others to the file.
 *  C3  an incremental clock's time is the sum of what its packets say since the last snapshot.
 *
 * Worked example: snapshot {64: 0, incremental, unit 1000; 6: 5000000}, packets 3 and 4 on clock 64
 * are at boot times 5003000 and 5007000.
 *
 * Not done: times before the first snapshot in the file are not held back until it comes; a trace
 * whose main clock is not the boot clock is told in its main clock.
 */
#include "ptread_int.h"

enum { CLK_REAL = 1, CLK_MONO = 3, CLK_BOOT = 6, CLK_SEQ_FIRST = 64, CLK_SEQ_LAST = 127 };

#define MAX_IN_SNAPSHOT 64

struct reading {
	uint32_t id;
	bool incremental;
	uint64_t ts, unit;
};

static struct pt_clocks *clocks_of(struct mt_ptread *r, struct pt_seq *s, uint32_t id)
{
	return id >= CLK_SEQ_FIRST && id <= CLK_SEQ_LAST ? &s->clocks : &r->clocks;
}

static struct pt_clock *find(struct pt_clocks *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->v[i].id == id)
			return &c->v[i];
	}
	return NULL;
}

static int anchor(struct mt_ptread *r, struct pt_seq *s, const struct reading *rd, uint64_t boot)
{
	struct pt_clocks *c = clocks_of(r, s, rd->id);
	struct pt_clock *k = find(c, rd->id);

	if (!k) {
		struct pt_clock *v;

		if (c->n >= PT_MAX_CLOCKS) {
			r->info.over_limit++;
			return 0;
		}
		v = realloc(c->v, (c->n + 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->v = v;
		k = &v[c->n++];
	}
	*k = (struct pt_clock){.id = rd->id,
			       .incremental = rd->incremental,
			       .has_anchor = true,
			       .unit = rd->unit,
			       .last = rd->ts,
			       .anchor = rd->ts,
			       .anchor_boot = boot};
	return 0;
}

static int parse_reading(struct pt_wire w, struct reading *rd)
{
	struct pt_field f;
	int e;

	*rd = (struct reading){.unit = 1};
	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_VARINT(1):
			rd->id = (uint32_t)f.u;
			break;
		case PT_VARINT(2):
			rd->ts = f.u;
			break;
		case PT_VARINT(3):
			rd->incremental = f.u != 0;
			break;
		case PT_VARINT(4):
			rd->unit = f.u ? f.u : 1;
			break;
		}
	}
	return e;
}

static const struct reading *in(const struct reading *v, uint32_t n, uint32_t id)
{
	for (uint32_t i = 0; i < n; i++) {
		if (v[i].id == id)
			return &v[i];
	}
	return NULL;
}

/* The snapshot's place in trace time: its boot clock, else its primary one, else one already known. */
static bool trace_time(struct mt_ptread *r, struct pt_seq *s, const struct reading *v, uint32_t n,
		       uint32_t primary, uint64_t *ret_boot)
{
	const struct reading *k = in(v, n, CLK_BOOT);

	if (!k)
		k = in(v, n, primary);
	if (k) {
		*ret_boot = k->ts * k->unit;
		return true;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!v[i].incremental && !pt_clock_boot(r, s, v[i].id, v[i].ts, ret_boot))
			return true;
	}
	return false;
}

static int keep(struct mt_ptread *r, const struct pt_snapshot *sn)
{
	if (r->nsnaps >= PT_MAX_SNAPSHOTS) {
		r->info.over_limit++;
		return 0;
	}
	if (r->nsnaps == r->cap_snaps) {
		uint32_t cap = r->cap_snaps ? r->cap_snaps * 2 : 16;
		struct pt_snapshot *v = realloc(r->snaps, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		r->snaps = v;
		r->cap_snaps = cap;
	}
	r->snaps[r->nsnaps++] = *sn;
	return 0;
}

static int use(struct mt_ptread *r, struct pt_seq *s, const struct reading *v, uint32_t n, uint32_t primary)
{
	const struct reading *mono = in(v, n, CLK_MONO), *real = in(v, n, CLK_REAL);
	const struct pt_snapshot *last = r->nsnaps ? &r->snaps[r->nsnaps - 1] : NULL;
	struct pt_snapshot sn;
	uint64_t boot;
	int e;

	if (!trace_time(r, s, v, n, primary, &boot)) {
		r->info.bad_snapshots++;
		return 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (v[i].id == CLK_BOOT || v[i].id == CLK_MONO || v[i].id == CLK_REAL)
			continue;
		e = anchor(r, s, &v[i], boot);
		if (e < 0)
			return e;
	}
	if (!mono && !real)
		return 0;
	sn.boot = boot;
	sn.mono = mono ? mono->ts : last ? last->mono + (boot - last->boot) : boot;
	sn.real = real ? real->ts : last ? last->real + (boot - last->boot) : 0;
	if (last && (sn.boot < last->boot || sn.mono < last->mono)) {
		r->info.bad_snapshots++;
		return 0;
	}
	if (real && !r->has_real) {
		for (uint32_t i = 0; i < r->nsnaps; i++)
			r->snaps[i].real = real->ts - (boot - r->snaps[i].boot);
		r->has_real = true;
	}
	return keep(r, &sn);
}

/* ClockSnapshot */
int pt_clock_snapshot(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w)
{
	struct reading v[MAX_IN_SNAPSHOT];
	uint32_t n = 0, primary = CLK_BOOT;
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(2))
			primary = (uint32_t)f.u;
		if (f.tag != PT_BYTES(1))
			continue;
		if (n == MAX_IN_SNAPSHOT) {
			r->info.over_limit++;
			continue;
		}
		e = parse_reading(f.data, &v[n++]);
		if (e < 0)
			return e;
	}
	return e < 0 ? e : use(r, s, v, n, primary);
}

/* The nearest snapshot at or before a monotonic or boot time, else the first. */
static const struct pt_snapshot *before(const struct mt_ptread *r, uint64_t t, bool mono)
{
	uint32_t lo = 0, hi = r->nsnaps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if ((mono ? r->snaps[mid].mono : r->snaps[mid].boot) <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &r->snaps[lo ? lo - 1 : 0];
}

/* 0, or -ENODATA if no snapshot relates the clock: then *ret_boot is the time as written. */
int pt_clock_boot(struct mt_ptread *r, struct pt_seq *s, uint32_t clk, uint64_t ts, uint64_t *ret_boot)
{
	const struct pt_snapshot *sn;
	struct pt_clock *k;

	*ret_boot = ts;
	if (clk == CLK_BOOT)
		return 0;
	if (clk == CLK_MONO || clk == CLK_REAL) {
		if (!r->nsnaps || (clk == CLK_REAL && !r->has_real))
			return -ENODATA;
		if (clk == CLK_MONO) {
			sn = before(r, ts, true);
			*ret_boot = sn->boot + (ts - sn->mono);
			return 0;
		}
		/* Real time may have been set back: the last snapshot is the one that counts. */
		sn = &r->snaps[r->nsnaps - 1];
		for (int i = 0; i < 8 && sn > r->snaps && sn->real > ts; i++)
			sn--;
		*ret_boot = sn->boot + (ts - sn->real);
		return 0;
	}
	k = find(clocks_of(r, s, clk), clk);
	if (!k)
		return -ENODATA;
	if (k->incremental)
		ts = k->last += ts;
	*ret_boot = k->anchor_boot + (ts - k->anchor) * k->unit;
	return 0;
}

int mt_ptread_wall(const struct mt_ptread *r, uint64_t boot, uint64_t *ret_real)
{
	const struct pt_snapshot *sn;

	if (!r->nsnaps || !r->has_real)
		return -ENODATA;
	sn = before(r, boot, false);
	*ret_real = sn->real + (boot - sn->boot);
	return 0;
}
