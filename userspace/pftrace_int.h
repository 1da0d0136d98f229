/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of the Perfetto sink, shared by pftrace.c and pftrace_*.c only.
 *
 *   pftrace.c         making, flushing, ending; the batch of packets; clocks; compression
 *   pftrace_head.c    first and last packets
 *   pftrace_track.c   processes, threads, counter tracks; clearing a sequence
 *   pftrace_loss.c    losses, marks
 *   pftrace_intern.c  numbers for texts and callsites, and what each sequence has been told of them
 *   pftrace_event.c   begin, end, instant, counter, spans with a key: by hand
 *   pftrace_ann.c     ... their annotations
 *   pftrace_lane.c    tracks for spans that belong to no thread
 *   pftrace_life.c    lifetimes of spans, on lanes
 */
#ifndef MT_PFTRACE_INT_H
#define MT_PFTRACE_INT_H

#include <zlib.h>

#include "pftrace.h"
#include "pftrace_enc.h"
#include "strings.h"

#include "perfetto.pb-c.h"

#define PF_MAX_NAME 1024          /* bytes of a name: event, annotation, category, file, function */
#define PF_MAX_TEXT (16u * 1024)  /* bytes of a text value */
#define PF_MAX_COLD 4096          /* bytes of a text in a cold packet */
#define PF_ANN_ROOM (128u * 1024) /* bytes of an event's annotations */
#define PF_MAX_FRESH 128          /* interned entries that one packet introduces */
#define PF_PACKET_MAX (PF_ANN_ROOM + (PF_MAX_FRESH + 2) * (PF_MAX_NAME + 32) + 8 * PF_MAX_NAME)
#define PF_GATHER_PLAIN (64u * 1024)
#define PF_GATHER_ZLIB (256u * 1024)
#define PF_MIN_INTERNED 64 /* one event of 16 fields always fits into empty tables */
#define PF_TABLE_BYTES (4u * 1024 * 1024)
#define PF_MAX_COUNTERS 4096 /* remembered per process */
#define PF_SNAPSHOT_NS 10000000000ull
#define PF_ZLIB_WAIT_NS 500000000ull /* compressed packets wait this long to fill */
#define PF_CAUSES 8

/* Spaces of interned numbers. PF_SITE counts callsites; its numbers are those of source locations. */
enum pf_kind {
	PF_CATEGORY,
	PF_NAME,
	PF_ANNOTATION,
	PF_SITE,
	PF_STRING, /* annotation values that repeat: levels, end reasons */
	PF_KINDS,
};

struct pf_bits {
	uint64_t *w;
	uint32_t n; /* words */
};

/* Numbers of what is static at a callsite; 0 = had no room, written in place. */
struct pf_site {
	uint32_t id; /* mt_callsite.id */
	uint32_t name_len;
	uint32_t name, category, level_name, level;
	bool located; /* file or line known */
	uint8_t nfields;
	uint32_t fields[MONTRACE_MAX_FIELDS];
};

struct pf_fresh {
	enum pf_kind kind;
	uint32_t iid;
	const struct mt_callsite *cs; /* PF_SITE */
};

struct pf_counter {
	uint32_t site; /* mt_callsite.id that used it last; of one whose name varies it says nothing */
	uint64_t uuid;
};

#define PF_MAX_LIVES 1000 /* lanes of lifetimes, per process */
#define PF_MAX_LANES \
	65536 /* all lanes of a process; spans with a key beyond share a pool that has no name of theirs */

/* A track that holds one span at a time. */
struct pf_lane {
	uint64_t uuid; /* 0: not described yet */
	uint64_t last; /* time of its last event */
	char *name;    /* of the lifetime that is open on it */
};

struct pf_pool {
	uint64_t id; /* what its lanes' uuids are made of */
	struct pf_lane *lanes;
	uint32_t n, cap;
	uint32_t hint;  /* no lane below this word of free is free */
	uint64_t *free; /* bits */
};

struct pf_map_slot {
	uint64_t key, value;
};
struct pf_map {
	struct pf_map_slot *v;
	uint32_t n, bits;
};

struct pf_process {
	struct pf_process *next, **pprev;
	uint64_t uuid;
	bool described;
	struct pf_counter *counters;
	uint32_t ncounters, counter_cap, last_counter;
	struct pf_pool *pools;
	uint32_t npools, pool_cap, nlanes;
	uint32_t last_site; /* callsite of the last span with a key, and the id of its pool */
	uint64_t last_pool;
	struct pf_map pool_of;   /* id -> index */
	struct pf_map lane_of;   /* key of a span -> index of the pool << 32 | number of the lane */
	struct pf_thread *keyed; /* sequence of the spans with a key; NULL: none yet */
};

/* A thread is a track and a packet sequence. Spans with a key have a sequence per process that is no thread's. */
struct pf_thread {
	struct pf_thread *next, **pprev;
	uint64_t uuid;
	uint32_t seq;
	uint32_t gen;      /* of the tables, when the sequence was cleared; 0 = never or dropped */
	uint64_t last;     /* time of the last packet: what the next delta counts from */
	uint64_t base;     /* time of the last clear */
	uint64_t reset_at; /* time from which it is cleared again */
	bool started;      /* first_packet_on_sequence was written */
	bool dropped;      /* a loss was told: the next clear says so */
	bool described;
	struct pf_bits known[PF_KINDS]; /* numbers introduced since the clear */
};

struct pf {
	struct mt_sink sink;
	struct mt_out *out;
	int error; /* sticky */
	struct mt_pftrace_opts opts;
	unsigned char boot_id[16];
	uint64_t reset_ns;
	uint64_t salt; /* of flow ids: random per trace */
	uint32_t next_seq;

	unsigned char *pend; /* framed packets, whole */
	size_t pend_len, gather;
	uint64_t drained_at;
	bool zlib_ready;
	z_stream z;
	unsigned char *zbuf;
	size_t zbuf_cap;

	struct mt_intern *tab[PF_KINDS]; /* NULL for PF_SITE */
	bool full;                       /* a table refused: start anew before the next event */
	uint32_t gen;                    /* of the tables, from 1 */
	struct pf_site *sites;
	uint32_t nsites, site_cap;
	uint32_t *site_map; /* id -> index + 1, open addressing; 0 = free */
	uint32_t map_cap;   /* power of two */
	struct pf_fresh fresh[PF_MAX_FRESH];
	uint32_t nfresh;

	struct pf_thread *threads;
	struct pf_process *processes;
	uint64_t tracer_uuid; /* 0 until the tracer's own track was described */
	uint64_t tracer_last; /* time of the last event on it */
	struct mt_clocks snap;
	uint64_t next_snap;
	uint64_t lost;
	struct {
		char cause[32];
		uint64_t count;
	} causes[PF_CAUSES];
	uint32_t ncauses;
	struct mt_unpaired unpaired; /* of processes that are gone */
};

static inline struct pf *pf_of(struct mt_sink *s)
{
	return (struct pf *)s;
}

/* pftrace.c */
int mt_pf_drain(struct pf *pf); /* hands the batch on; 0 or the sticky error */
int mt_pf_room(struct pf *pf);  /* makes room for one packet of PF_PACKET_MAX */
struct pf_thread *mt_pf_thread(struct pf *pf, struct mt_thread *t);
struct pf_thread *mt_pf_sequence(struct pf *pf, uint64_t uuid); /* a new one; uuid: its default track */
void mt_pf_sequence_free(struct pf_thread *th);
struct pf_process *mt_pf_process(struct pf *pf, struct mt_process *p);

/* pftrace_head.c */
int mt_pf_snapshot(struct pf *pf, bool first); /* writes the clocks unless they ran back */
int mt_pf_head(struct pf *pf);
int mt_pf_tail(struct pf *pf);

/* pftrace_track.c */
uint64_t mt_pf_uuid(const struct pf *pf, unsigned char what, uint32_t pid, uint32_t tid, uint64_t start);
int mt_pf_clear(struct pf *pf, struct pf_thread *th, uint64_t time);
int mt_pf_counter_track(struct pf *pf, const struct mt_count *count, uint64_t *ret_uuid);
int mt_pf_op_process(struct mt_sink *s, struct mt_process *p, uint64_t time);
int mt_pf_op_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time);

uint64_t mt_pf_uuid_of(uint64_t parent, const char *what, uint32_t number); /* of a track below another one */

/*
 * pftrace_lane.c. key: not 0, of the span that takes the lane; max: lanes in the pool. *ret_lane NULL: they are all
 * taken. lane->last is the stamp to use.
 */
int mt_pf_lane_take(struct pf *pf, struct pf_process *pp, uint64_t pool, uint32_t max, const char *name,
		    uint64_t key, uint64_t time, struct pf_lane **ret_lane);
/* The lane that key has had until now; valid until the next is taken. NULL: it has none. */
struct pf_lane *mt_pf_lane_give(struct pf_process *pp, uint64_t key, uint64_t time);
void mt_pf_lanes_free(struct pf_process *pp);
/* Keys of lifetimes and of spans with a key are numbers of different kinds. */
#define PF_LIFE_KEY(span) ((span) << 1 | 1)
#define PF_KEYED_KEY(key) ((key) << 1)

/* pftrace_life.c */
int mt_pf_op_span_new(struct mt_sink *s, const struct mt_span_new *n);
int mt_pf_op_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time);
int mt_pf_lives_end(struct pf *pf, struct pf_process *pp, uint64_t time);

/* pftrace_loss.c */
int mt_pf_op_lost(struct mt_sink *s, const struct mt_loss *l);
int mt_pf_op_mark(struct mt_sink *s, uint64_t time, struct mt_str text);

/* pftrace_intern.c */
int mt_pf_tables_new(struct pf *pf);
void mt_pf_tables_free(struct pf *pf);
void mt_pf_tables_reset(struct pf *pf);
bool mt_pf_tables_room(const struct pf *pf, uint32_t more); /* false: reset before the next event */
uint32_t mt_pf_intern(struct pf *pf, enum pf_kind kind, const char *s, size_t len);
struct pf_site *mt_pf_site_find(struct pf *pf, const struct mt_callsite *cs);
struct pf_site *mt_pf_site_add(struct pf *pf, const struct mt_callsite *cs); /* NULL: go without */
bool mt_pf_announce(struct pf *pf, struct pf_thread *th, enum pf_kind kind, uint32_t iid,
		    const struct mt_callsite *cs);
void mt_pf_announce_site(struct pf *pf, struct pf_thread *th, const struct pf_site *site,
			 const struct mt_callsite *cs);
void mt_pf_put_fresh(struct pf *pf, struct mt_enc *e); /* TracePacket.interned_data, if any */
void mt_pf_bits_free(struct pf_thread *th);

static inline bool mt_pf_bit(const struct pf_bits *b, uint32_t i)
{
	return i / 64 < b->n && (b->w[i / 64] >> (i % 64) & 1);
}

/* pftrace_event.c */
uint64_t mt_pf_flow(const struct pf *pf, uint64_t flow); /* the number that stands in the trace */
int mt_pf_op_begin(struct mt_sink *s, const struct mt_slice *sl);
int mt_pf_op_end(struct mt_sink *s, const struct mt_slice_end *end);
int mt_pf_op_instant(struct mt_sink *s, const struct mt_instant *i);
int mt_pf_op_counter(struct mt_sink *s, const struct mt_count *c);
int mt_pf_op_keyed_begin(struct mt_sink *s, const struct mt_slice *sl);
int mt_pf_op_keyed_end(struct mt_sink *s, const struct mt_slice_end *end);

#endif
