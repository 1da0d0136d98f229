/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the Perfetto sink: packets that come seldom, built as protobuf-c structs.
 *
 * Texts are cut at PF_MAX_COLD bytes and made valid first (struct cold_text), so a packet's size is
 * bounded whatever a target calls itself.
 */
#ifndef MT_PFTRACE_COLD_H
#define MT_PFTRACE_COLD_H

#include "pftrace_int.h"

typedef Perfetto__Protos__TracePacket packet_t;

#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name
#define SEQ_CLEARED PERFETTO__PROTOS__TRACE_PACKET__SEQUENCE_FLAGS__SEQ_INCREMENTAL_STATE_CLEARED

enum {
	CLOCK_REAL = 1,
	CLOCK_MONO = 3,
	CLOCK_BOOT = 6,
	CLOCK_DELTA = 64, /* sequence-scoped, counts deltas */
};

struct cold_text {
	char s[PF_MAX_COLD + 1];
};

static inline char *cold(struct cold_text *t, const char *s)
{
	mt_utf8_fix(t->s, sizeof(t->s), s, strlen(s));
	return t->s;
}

/* A packet on sequence 1. */
static inline void packet_init(packet_t *p)
{
	perfetto__protos__trace_packet__init(p);
	p->has_trusted_packet_sequence_id = 1;
	p->trusted_packet_sequence_id = 1;
}

static inline void packet_stamp(packet_t *p, uint64_t time)
{
	p->has_timestamp = 1;
	p->timestamp = time;
}

static inline void clock_set(Perfetto__Protos__ClockSnapshot__Clock *c, uint32_t id, uint64_t t)
{
	perfetto__protos__clock_snapshot__clock__init(c);
	c->has_clock_id = 1;
	c->clock_id = id;
	c->has_timestamp = 1;
	c->timestamp = t;
}

int mt_pf_cold_put(struct pf *pf, const packet_t *p);
int mt_pf_track_put(struct pf *pf, Perfetto__Protos__TrackDescriptor *t, uint64_t time);

#endif
