/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of ptread: ptread.c files and frames, _packet.c, _state.c sequences, _track.c,
 * _clock.c, _event.c, _args.c.
 */
#ifndef MT_PTREAD_INT_H
#define MT_PTREAD_INT_H

#include "ptread.h"
#include "ptread_map.h"
#include "ptread_wire.h"

/* Interned tables that are kept. */
enum pt_table { PT_CATEGORIES, PT_NAMES, PT_ARG_NAMES, PT_LOCATIONS, PT_ARG_STRINGS, PT_NTABLES };

/* One interned entry: offsets in its sequence's text. The second text is a location's function. */
struct pt_entry {
	uint32_t off, len, off2, len2, line;
};

#define PT_ENTRY_COST 64u /* bytes an entry takes, its share of the map included */

/* A clock other than the boot, monotonic and real-time ones. Times are in its own units. */
struct pt_clock {
	uint32_t id;
	bool incremental, has_anchor;
	uint64_t unit;                /* ns per unit */
	uint64_t last;                /* incremental: sum so far */
	uint64_t anchor, anchor_boot; /* the same moment in both clocks */
};

struct pt_clocks {
	struct pt_clock *v;
	uint32_t n;
};
#define PT_MAX_CLOCKS 256u

/* State of one packet sequence. */
struct pt_seq {
	uint32_t id;
	bool seen;     /* had a packet */
	bool valid;    /* incremental state was cleared and nothing dropped since */
	bool has_clk;  /* defaults: clock id */
	bool has_uuid; /* defaults: track uuid */
	uint32_t clk;
	uint64_t uuid;
	struct pt_map map[PT_NTABLES];
	struct pt_entry *entries; /* of all tables */
	uint32_t nentries, cap_entries;
	char *text;
	size_t text_len, text_cap;
	struct pt_clocks clocks;
};

/* The three main clocks, read together. */
struct pt_snapshot {
	uint64_t boot, mono, real;
};

#define PT_MAX_SNAPSHOTS 1000000u
#define PT_MAX_CAT 4096u

struct mt_ptread {
	struct mt_ptread_info info;
	mt_ptread_cb cb;
	void *ctx;
	uint64_t seed;
	uint64_t offset;  /* of the packet at hand, in the file */
	uint64_t last_ts; /* for packets without a time */
	size_t interned;  /* bytes in use: texts and entries of sequences, names of tracks */
	bool nested;      /* inside a compressed packet */
	bool zeros;       /* a zero byte where a packet should begin */
	unsigned char *inflated;
	size_t inflated_cap;

	struct pt_map seq_map, track_map;
	struct pt_seq **seqs;
	uint32_t nseqs, cap_seqs;
	struct mt_pt_track **tracks;
	uint32_t ntracks, cap_tracks;

	struct pt_snapshot *snaps; /* boot and mono never decrease */
	uint32_t nsnaps, cap_snaps;
	bool has_real;
	struct pt_clocks clocks; /* global ones */

	/* the event at hand */
	struct mt_pt_arg args[MT_PTREAD_MAX_ARGS];
	uint64_t flows[MT_PTREAD_MAX_FLOWS];
	char cat[PT_MAX_CAT];
	char dict[MT_PTREAD_MAX_DICT];
	size_t dict_len;
};

/* One TracePacket, its parts not looked into yet (p == NULL: not there). */
struct pt_packet {
	uint64_t ts;
	bool has_ts, has_clk, cleared, needs;
	uint32_t clk, seq, dropped;
	struct pt_wire snapshot, defaults, interned, event, descriptor, compressed, zstd, perf, stats,
		attributes;
};

/* ptread.c */
int pt_bad(struct mt_ptread *r, const char *why);
int pt_inflate(struct mt_ptread *r, struct pt_wire w);

/* ptread_packet.c */
int pt_packet_parse(struct pt_wire w, struct pt_packet *ret_packet);
int pt_packet_use(struct mt_ptread *r, const struct pt_packet *p);

/* ptread_state.c */
int pt_seq_get(struct mt_ptread *r, uint32_t id, struct pt_seq **ret_seq);
void pt_seq_clear(struct mt_ptread *r, struct pt_seq *s);
int pt_seq_defaults(struct pt_seq *s, struct pt_wire w);
int pt_seq_intern(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w);
const struct pt_entry *pt_seq_find(struct mt_ptread *r, struct pt_seq *s, enum pt_table t, uint64_t iid);
struct mt_str pt_seq_text(const struct pt_seq *s, const struct pt_entry *e);
int pt_location(struct pt_wire w, uint64_t *ret_iid, struct mt_str *ret_file, struct mt_str *ret_function,
		uint32_t *ret_line);
void pt_seq_free(struct pt_seq *s);

/* ptread_track.c: NULL in *ret_track if there are too many. */
int pt_track_get(struct mt_ptread *r, uint64_t uuid, struct mt_pt_track **ret_track);
int pt_track_describe(struct mt_ptread *r, struct pt_wire w, struct mt_pt_track **ret_track);
void pt_track_free(struct mt_pt_track *t);

/* ptread_clock.c */
int pt_clock_snapshot(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w);
int pt_clock_boot(struct mt_ptread *r, struct pt_seq *s, uint32_t clk, uint64_t ts, uint64_t *ret_boot);

/* ptread_event.c: tells the event. */
int pt_event(struct mt_ptread *r, struct pt_seq *s, const struct pt_packet *p, uint64_t ts);
/* ptread_args.c: one DebugAnnotation; 1 if *arg is filled in, 0 if it has to be left out. */
int pt_arg(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w, struct mt_pt_arg *arg);

static inline struct mt_str pt_str(struct pt_wire w)
{
	return (struct mt_str){(const char *)w.p, (uint32_t)pt_wire_len(&w)};
}

#endif
