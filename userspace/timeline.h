/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of a trace in memory, as `dump` and `summary` need it: events sorted by time on each track, ends
 * matched to begins as the Perfetto importer does it. About 150 bytes a span.
 */
#ifndef MT_TIMELINE_H
#define MT_TIMELINE_H

#include "ptread.h"
#include "strings.h"

#define MT_TL_NONE UINT32_MAX
#define MT_TL_MAX_DEPTH 512 /* as the importer: deeper slices are left out */

enum mt_tl_flags {
	MT_TL_CUT = 1,    /* slice: ended by the end of one around it */
	MT_TL_DEEP = 2,   /* slice: beyond MT_TL_MAX_DEPTH, not shown */
	MT_TL_STRAY = 4,  /* end: there was no slice to end */
	MT_TL_DOUBLE = 8, /* counter: .d counts */
	MT_TL_LOSS = 16,  /* instant named `events lost`; .u is how many */
};

/* kind is one of MT_PT_BEGIN (the slice), MT_PT_END, MT_PT_INSTANT, MT_PT_COUNTER. */
struct mt_tl_event {
	uint64_t ts;
	union {
		uint64_t children; /* slice: ns that the slices directly in it took */
		int64_t i;         /* counter */
		double d;
		uint64_t u;
	};
	const unsigned char *args; /* packed; NULL = none; mt_tl_args() */
	uint32_t name, cat, file;  /* texts; 0 = none */
	uint32_t line;
	uint32_t track; /* index in the reader */
	uint32_t end;   /* slice: index of the event that ended it; MT_TL_NONE = still open */
	uint16_t depth;
	uint8_t kind;
	uint8_t flags;
};

/* Values of one event, and flows, taken out of their packed form. */
struct mt_tl_arg {
	uint32_t name; /* text */
	uint8_t type;  /* enum mt_pt_arg_type */
	union {
		uint64_t u;
		int64_t i;
		double d;
		uint32_t text; /* STR, TEXT; 0 = the tables were full */
	};
};

/* A process and where its tracks are. */
struct mt_tl_group {
	bool has_pid;
	int32_t pid;
	const char *name; /* never NULL */
	uint32_t threads; /* that are described */
};

struct mt_tl_track {
	const struct mt_pt_track *t;
	const struct mt_pt_track *thread; /* nearest at or above, or NULL */
	uint32_t group;
	uint32_t first, n; /* its events are order[first .. first + n) */
};

struct mt_tl_loss {
	struct mt_pt_loss loss;
	bool has_ts;
	uint64_t ts;
};

struct mt_tl_attribute {
	uint32_t key, text; /* texts; text 0: .i counts */
	int64_t i;
};

struct mt_timeline {
	struct mt_ptread *reader;
	struct mt_intern *texts;
	struct mt_tl_event *events; /* in the order of the file */
	uint32_t n, cap;
	uint32_t *order; /* indexes, track by track, each by time */
	struct mt_tl_track *tracks;
	uint32_t ntracks;
	uint32_t *by_group; /* indexes of tracks: by group, in it threads and processes first */
	struct mt_tl_group *groups;
	uint32_t ngroups;
	struct mt_tl_loss *losses;
	uint32_t nlosses, cap_losses;
	struct mt_tl_attribute *attributes;
	uint32_t nattributes, cap_attributes;
	uint64_t start, stop; /* first and last time of an event */
	uint64_t slices, open, instants, counters, stray_ends, cut, too_deep;
	uint64_t lost;        /* sum of the instants `events lost` */
	uint64_t kernel_lost; /* kernel_records_lost */
	uint64_t writer_lost; /* TraceStats */
	uint64_t packet_gaps; /* previous_packet_dropped */
	int error;            /* 0 or -EBADMSG: how the reading ended; see mt_ptread_info() */
	struct mt_tl_chunk *chunks;
};

/*
 * Reads all of fd. 0 also if the file turns out to be bad (tl->error): what was good is there.
 * -ENOMEM, -EFBIG (more than 4 thousand million events), an error of read(2).
 */
int mt_timeline_read(int fd, struct mt_timeline **ret_timeline);
int mt_timeline_read_mem(const void *data, size_t len, struct mt_timeline **ret_timeline);
void mt_timeline_free(struct mt_timeline *tl);

/* Bytes of the file; "" for 0. Valid as long as tl. */
struct mt_str mt_tl_text(const struct mt_timeline *tl, uint32_t text);

/* Duration of a slice; false if it is open. */
bool mt_tl_duration(const struct mt_timeline *tl, const struct mt_tl_event *e, uint64_t *ret_ns);

#define MT_TL_MAX_ARGS (2 * MT_PTREAD_MAX_ARGS)
#define MT_TL_MAX_FLOWS (2 * MT_PTREAD_MAX_FLOWS)
struct mt_tl_args {
	uint32_t nargs, nflows;
	struct mt_tl_arg args[MT_TL_MAX_ARGS];
	uint64_t flows[MT_TL_MAX_FLOWS];
};
/* Adds the arguments of e to *a. */
void mt_tl_args_add(const struct mt_tl_event *e, struct mt_tl_args *a);
/* Leaves the last one of equal names, where the first one stood. */
void mt_tl_args_unique(struct mt_tl_args *a);

/* Indexes of all slices, instants and counters by time; *ret_order is the caller's. 0 or -ENOMEM. */
int mt_tl_by_time(const struct mt_timeline *tl, uint32_t **ret_order, uint32_t *ret_n);

#endif
