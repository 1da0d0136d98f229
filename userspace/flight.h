/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sink that keeps the last of everything in memory and writes nothing; mt_flight_dump replays what it
 * has into another sink. The essay is in flight.c.
 *
 * Callsites must outlive the sink. Memory is taken when it is made and never grows (mt_flight_stats says how
 * much); a dump takes some of its own and gives it back.
 */
#ifndef MT_FLIGHT_H
#define MT_FLIGHT_H

#include "sink.h"

/* How much is kept: whichever limit is met first. */
struct mt_flight_spec {
	uint64_t time_ns;
	uint64_t events;
	uint64_t bytes; /* of the log; tables come on top: about a fifth of it, 300 KiB to 16 MiB */
};

#define MT_FLIGHT_TIME_DEFAULT 10000000000ull
#define MT_FLIGHT_EVENTS_DEFAULT 1000000ull
#define MT_FLIGHT_BYTES_DEFAULT (64ull << 20)
#define MT_FLIGHT_BYTES_MIN (64ull << 10)
#define MT_FLIGHT_BYTES_MAX (64ull << 30)
#define MT_FLIGHT_TIME_MAX (365ull * 86400 * 1000000000)
#define MT_FLIGHT_EVENTS_MAX 1000000000000ull

/*
 * "10s,1000000,256M": time (ms s m h), events (bare number), bytes (K M G), each at most once, any order;
 * what is not named gets its default. NULL and "": all defaults. -EINVAL: *ret_pos (offset) and *ret_why
 * (static text) say what is wrong; both may be NULL.
 */
int mt_flight_spec_parse(const char *text, struct mt_flight_spec *ret_spec, size_t *ret_pos,
			 const char **ret_why);

#define MT_FLIGHT_SPEC_TEXT 80
/* The same text again, shortest units. Returns buf (MT_FLIGHT_SPEC_TEXT bytes). */
char *mt_flight_spec_text(const struct mt_flight_spec *spec, char *buf);

/* -EINVAL for a spec out of bounds. Freed by its ops->free. */
int mt_flight_new(const struct mt_flight_spec *spec, struct mt_sink **ret_sink);

/* Why a dump is made. */
struct mt_flight_mark {
	const char *text; /* trigger or "snapshot"; valid UTF-8 */
	uint64_t time;    /* boot time when that was */
};

/*
 * Replays the window into `into`, which has been told nothing yet and stays the caller's; keeps S1 to S5.
 * Slices that are open at `now` end there with MT_END_DETACH, in the dump only. Processes and threads are
 * copies, and gone() is told for all of them. The recording goes on as if nothing had been.
 * Returns the first error of `into`, or -ENOMEM (then `into` may have got a part, all slices ended).
 */
int mt_flight_dump(struct mt_sink *flight, struct mt_sink *into, const struct mt_flight_mark *mark,
		   uint64_t now);

struct mt_flight_stats {
	uint64_t events;             /* in the window now */
	uint64_t bytes;              /* they take */
	uint64_t from, to;           /* time of the oldest and the newest; 0 if there are none */
	uint64_t evicted;            /* that have left the window */
	uint64_t skipped;            /* never kept: more threads or processes alive than the tables take */
	uint64_t cut;                /* kept without all of their values: larger than 64 KiB */
	uint64_t open;               /* slices kept because they were open when the window began */
	uint64_t open_lost;          /* of these, not kept: table full */
	uint64_t open_bare;          /* of these, kept without values: no room */
	uint64_t counters;           /* counters with a value from before the window */
	uint64_t counters_lost;      /* such values not kept: table full */
	uint64_t threads, processes; /* in the tables now, gone ones included */
	uint64_t memory;             /* bytes taken, all in all; constant */
};
void mt_flight_stats(const struct mt_sink *flight, struct mt_flight_stats *ret_stats);

#endif
