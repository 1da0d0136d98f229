/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sink that keeps the last events of each subject: one recording for every span that MONTRACE_RECORDING made.
 * The essay is in recordings.c. Callsites must outlive the sink.
 */
#ifndef MT_RECORDINGS_H
#define MT_RECORDINGS_H

#include "sink.h"

/* 0 = the number in brackets. */
struct mt_recordings_opts {
	uint32_t max_capacity;     /* events of one recording (4,096); smaller ones are at least 2 */
	uint32_t default_capacity; /* of one whose creation was not seen (64) */
	uint32_t max_live;         /* recordings at a time (10,000); beyond: refused, counted */
	uint32_t max_kept;         /* of closed subjects and ended processes (100) */
	uint32_t max_spans; /* spans known to belong to one (262,144); beyond: longest unused forgotten */
	uint64_t max_bytes; /* of all events (64 MiB); at least 128 KiB */
};

int mt_recordings_new(const struct mt_recordings_opts *opts, struct mt_sink **ret_sink);

enum mt_recording_state {
	MT_RECORDING_LIVE,
	MT_RECORDING_CLOSED, /* the subject's span was closed */
	MT_RECORDING_ENDED,  /* the process ended with status 0, replaced its image or is no longer traced */
	MT_RECORDING_FAILED, /* the process was killed or ended with another status */
};
const char *mt_recording_state_name(enum mt_recording_state state);

struct mt_recording_info {
	uint64_t id;   /* from 1, never used again */
	uint64_t span; /* trace-wide number of its span */
	const char *subject;
	uint32_t pid;
	const char *process;
	enum mt_recording_state state;
	uint32_t exit_status; /* ENDED and FAILED, wait(2) status */
	uint32_t capacity;
	uint32_t events;   /* kept now */
	uint64_t next_seq; /* recorded so far */
	uint64_t since;    /* boot time */
	uint64_t until;    /* not LIVE: when it ended */
};

/* An event as kept. What it points to is valid during the call only. */
struct mt_recorded {
	const struct mt_recording_info *recording;
	uint64_t seq;
	uint64_t time;
	const struct mt_callsite *cs; /* NULL in tests only */
	struct mt_str name;           /* as displayed */
	struct mt_str thread;
	uint32_t tid;
	uint64_t span; /* that it happened in */
	const char *span_name;
	uint64_t
		lost; /* hits lost in its process since the event before it: so many events may be missing here */
	bool cut;
	uint32_t nvalues;
	const struct mt_value *values; /* of cs->fields */
	uint32_t nextra;
	const struct mt_field *extra;
};

typedef int (*mt_recorded_cb)(void *ctx, const struct mt_recorded *e);

/* Live ones first, both by age. subject: glob, NULL = all. A non-zero return of cb ends it and is returned.
 */
int mt_recordings_each(const struct mt_sink *s, const char *subject,
		       int (*cb)(void *ctx, const struct mt_recording_info *i), void *ctx);

/* The last n events of a recording, oldest first. -ENOENT if there is none of that id. Changes nothing. */
int mt_recordings_events(const struct mt_sink *s, uint64_t id, uint32_t n, mt_recorded_cb cb, void *ctx);

/* Calls cb for each event as it is recorded, until called with NULL. One at a time; its result is ignored. */
void mt_recordings_watch(struct mt_sink *s, mt_recorded_cb cb, void *ctx);

/* A span that is entered now, on any thread. */
struct mt_recording_frame {
	uint64_t span;
	const struct mt_callsite *cs;
	uint32_t entered; /* how many times */
};

/*
 * What a live recording is doing: for each entered span that is no parent of another entered one, the spans
 * from it outwards, up to the first that is not entered. -ENOENT.
 */
int mt_recordings_stacks(const struct mt_sink *s, uint64_t id,
			 int (*cb)(void *ctx, const struct mt_recording_frame *frames, uint32_t n),
			 void *ctx);

struct mt_recordings_stats {
	uint64_t events;    /* recorded */
	uint64_t refused;   /* recordings beyond max_live */
	uint64_t short_;    /* events dropped early, for max_bytes */
	uint64_t forgotten; /* spans dropped for max_spans */
	uint64_t evicted;   /* ended recordings dropped for max_kept or max_bytes */
	uint32_t live, kept, spans;
	uint64_t bytes;
};
void mt_recordings_stats(const struct mt_sink *s, struct mt_recordings_stats *ret_stats);

/* ---- export ---- */

/* Boot time -> wall clock. */
struct mt_recorded_clock {
	int64_t real_minus_boot; /* ns */
};

/*
 * One line, malloc'd, NUL-terminated, without newline. 0 or -ENOMEM.
 * text: level, local time, subject, message, fields, thread: safe for a terminal.
 * json: an object; fields sorted, of two with one name the last, NaN and infinities as strings.
 */
int mt_recorded_text(const struct mt_recorded *e, const struct mt_recorded_clock *clock, char **ret_line,
		     size_t *ret_len);
int mt_recorded_json(const struct mt_recorded *e, const struct mt_recorded_clock *clock, char **ret_line,
		     size_t *ret_len);

struct mt_recordings_tail_opts {
	const char *subject; /* glob, NULL = all */
	uint32_t n;          /* lines */
	size_t max_bytes;    /* of all lines; 0 = no limit */
	bool json;
	struct mt_recorded_clock clock;
};

/*
 * The last n events of all recordings that match, oldest first, as lines. If they are more than max_bytes
 * the newest ones count. *ret_left_out (may be NULL): events among the n that had no room.
 */
int mt_recordings_tail(const struct mt_sink *s, const struct mt_recordings_tail_opts *opts,
		       int (*line)(void *ctx, const char *text, size_t len), void *ctx,
		       uint32_t *ret_left_out);

#endif
