/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a Perfetto trace of TrackEvents, ours or that of another tool, packet by packet.
 *
 * Input is hostile: every length, id and number may lie. Memory is bounded by the limits below plus
 * what the trace declares (tracks, sequences, interned text), each with a limit of its own. A packet
 * is decoded completely before anything of it is told, so what was told is good.
 */
#ifndef MT_PTREAD_H
#define MT_PTREAD_H

#include "model.h"

#define MT_PTREAD_MAX_PACKET (64u << 20) /* bytes of a packet, and of what a packet inflates to */
#define MT_PTREAD_MAX_TRACKS 1000000u
#define MT_PTREAD_MAX_SEQS 1000000u
#define MT_PTREAD_MAX_INTERNED (256u << 20) /* bytes, all sequences together */
#define MT_PTREAD_MAX_ARGS 256u             /* of one event */
#define MT_PTREAD_MAX_FLOWS 64u             /* of one event */
#define MT_PTREAD_MAX_DICT (64u << 10)      /* bytes of text that dicts and arrays of one event become */

struct mt_ptread;

/*
 * A track. Lives, at the same address, as long as the reader; its description may come after events
 * that use it. Texts are bytes of the file, NUL-terminated, never NULL; they may change until the
 * file has been read.
 */
struct mt_pt_track {
	uint64_t uuid;
	uint64_t parent; /* uuid, 0 = none */
	uint32_t index;  /* from 0, in order of appearance */
	bool described;
	bool is_process, is_thread, is_counter;
	bool incremental; /* counter: values in the file are differences (what is told is the sum) */
	int32_t pid;      /* process and thread tracks */
	int64_t tid;      /* thread tracks */
	int64_t unit_multiplier;
	uint32_t unit;     /* 1 ns, 2 count, 3 bytes, 0 not given */
	const char *name;  /* of the track itself, "" if none */
	const char *pname; /* process name */
	const char *tname; /* thread name */
	const char *unit_name;
	int64_t sum_i; /* for incremental counters */
	double sum_d;
};

enum mt_pt_arg_type {
	MT_PT_ARG_BOOL = 1,
	MT_PT_ARG_INT,
	MT_PT_ARG_UINT,
	MT_PT_ARG_DOUBLE,
	MT_PT_ARG_STR,
	MT_PT_ARG_POINTER,
	MT_PT_ARG_TEXT, /* dict or array, as JSON-like text in .s; also JSON that the file gave as text */
	MT_PT_ARG_NONE, /* no value, or one of a kind not known */
};

struct mt_pt_arg {
	struct mt_str name;
	uint8_t type; /* enum mt_pt_arg_type */
	union {
		int64_t i;
		uint64_t u; /* also BOOL, POINTER */
		double d;
		struct mt_str s; /* bytes of the file: not necessarily UTF-8 */
	};
};

enum mt_pt_kind {
	MT_PT_BEGIN,
	MT_PT_END,
	MT_PT_INSTANT,
	MT_PT_COUNTER,
	MT_PT_TRACK,     /* .track was described, or described again */
	MT_PT_LOSS,      /* .loss */
	MT_PT_ATTRIBUTE, /* .name, .args[0].value */
};

enum mt_pt_loss_source {
	MT_PT_LOSS_KERNEL,  /* PerfSample.kernel_records_lost: adds up, per cpu */
	MT_PT_LOSS_PACKETS, /* previous_packet_dropped: count is 1, how many were dropped is not known */
	MT_PT_LOSS_STATS,   /* TraceStats: packets lost by the writers in all; the last one counts */
};

struct mt_pt_loss {
	enum mt_pt_loss_source source;
	uint64_t count;
	uint32_t cpu;  /* KERNEL */
	uint32_t seq;  /* PACKETS */
	uint32_t bits; /* PACKETS: as in the file */
};

/*
 * One thing that the file says, everything resolved. All texts are bytes of the file (any byte, not
 * NUL-terminated) and valid during the call only.
 */
struct mt_pt_event {
	enum mt_pt_kind kind;
	bool has_ts;
	bool has_name;
	bool is_double;  /* counter: .d counts */
	uint64_t ts;     /* boot time, ns (as far as the file's clocks can be related, else as written) */
	uint64_t offset; /* of the packet in the file */
	uint32_t seq;
	const struct mt_pt_track *track;
	struct mt_str name;
	struct mt_str cat; /* categories joined by commas */
	struct mt_str file, function;
	uint32_t line;
	uint32_t nargs, nflows;
	const struct mt_pt_arg *args;
	const uint64_t *flows; /* terminating ones included */
	union {
		int64_t i;
		double d;
		struct mt_pt_loss loss;
	};
};

/* What was read, and what could not be. Counted in packets or events. */
struct mt_ptread_info {
	uint64_t bytes;      /* good ones: where the last whole packet ends */
	uint64_t packets;    /* those inside compressed packets included */
	uint64_t truncated;  /* bytes of a torn packet at the end */
	uint64_t padding;    /* zero bytes at the end */
	const char *why;     /* static text after -EBADMSG, else "" */
	uint64_t bad_offset; /* where the packet with the error begins, after -EBADMSG */

	uint64_t events;         /* begin, end, instant, counter */
	uint64_t unknown_iids;   /* references to interned data that is not there */
	uint64_t redefined_iids; /* the first definition stays */
	uint64_t no_state;       /* packets that need incremental state which is not there: skipped */
	uint64_t no_sequence;    /* track events without sequence: skipped */
	uint64_t no_clock;       /* packets stamped with a clock that no snapshot relates: taken as written */
	uint64_t bad_time;       /* events with a negative time: skipped */
	uint64_t bad_snapshots;  /* clock snapshots that run backwards: not used */
	uint64_t conflicts;      /* a track described again as something else: refused */
	uint64_t unsupported;    /* events of a kind not read here (legacy phases) */
	uint64_t zstd;           /* packets compressed with zstd: skipped */
	uint64_t over_limit;     /* tracks, sequences, interned data, arguments beyond the limits */
};

/* Non-zero stops the reading and is returned. */
typedef int (*mt_ptread_cb)(void *ctx, const struct mt_pt_event *ev);

int mt_ptread_new(struct mt_ptread **ret_reader);

/*
 * Reads to the end of fd (kept open by the caller; from its present offset; pipes are fine).
 * 0 also for a file that ends in a torn packet (info->truncated) or in zero bytes;
 * -EBADMSG at the first thing that is no packet (info->why, info->bad_offset): what was told before
 * stays good; -ENOMEM, an error of read(2), or what cb returned. A reader reads one file.
 */
int mt_ptread_fd(struct mt_ptread *r, int fd, mt_ptread_cb cb, void *ctx);
int mt_ptread_mem(struct mt_ptread *r, const void *data, size_t len, mt_ptread_cb cb, void *ctx);

const struct mt_ptread_info *mt_ptread_info(const struct mt_ptread *r);

uint32_t mt_ptread_ntracks(const struct mt_ptread *r);
const struct mt_pt_track *mt_ptread_track(const struct mt_ptread *r, uint32_t index);
/* The parent if it is known, else NULL. */
const struct mt_pt_track *mt_ptread_parent(const struct mt_ptread *r, const struct mt_pt_track *t);
/* The nearest thread and process tracks at or above t; NULL where there is none. */
void mt_ptread_owner(const struct mt_ptread *r, const struct mt_pt_track *t,
		     const struct mt_pt_track **ret_thread, const struct mt_pt_track **ret_process);

/* Wall-clock time (ns since 1970) of a boot time, by the file's snapshots. -ENODATA if they do not say. */
int mt_ptread_wall(const struct mt_ptread *r, uint64_t boot, uint64_t *ret_real);

void mt_ptread_free(struct mt_ptread *r);

#endif
