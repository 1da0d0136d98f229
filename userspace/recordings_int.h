/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside of `recordings`, shared by recordings*.c and nobody else. The essay is in recordings.c.
 *
 *   recordings.c        sink calls
 *   recordings_table.c  recordings, their events, spans -> recordings
 *   recordings_view.c   each, events, stacks, tail
 *   recordings_text.c   lines for people and JSON
 */
#ifndef MT_RECORDINGS_INT_H
#define MT_RECORDINGS_INT_H

#include "flight_codec.h"
#include "recordings.h"

#define RC_SUBJECT 512u /* bytes kept of a subject, with NUL */
#define RC_PROCESS 128u
#define RC_NAME 1024u /* bytes kept of an event's displayed name */
#define RC_THREAD 128u
#define RC_PACKED 65536u /* bytes of an event's texts and values */
#define RC_BUCKETS 65536u
#define RC_BYTES_MIN (2 * RC_PACKED) /* one event always has room */

/* packed: name, thread, values, extra fields */
struct rc_event {
	struct rc_event *next;
	uint64_t seq, time, span, lost;
	const struct mt_callsite *cs;
	const struct mt_callsite *span_cs;
	uint32_t tid;
	uint32_t len;
	bool cut;
	uint8_t packed[];
};

struct rc_span;
struct rc_process;

struct rc_rec {
	struct mt_recording_info info;
	struct rc_rec *prev, *next;                 /* of the live or the kept ones, oldest first */
	struct rc_process *process;                 /* live ones */
	struct rc_rec *sibling_prev, *sibling_next; /* live ones of the process, newest first */
	struct rc_event *first, *last;
	uint64_t bytes;     /* of its events */
	uint64_t lost_seen; /* hits lost up to its last event */
	struct rc_span *spans;
	struct rc_span *root;
	char subject[RC_SUBJECT];
	char process_name[RC_PROCESS];
};

/* A span whose events go to rec. Two lists: all of the recording's, and all but roots by last use. */
struct rc_span {
	uint64_t span, parent;
	struct rc_rec *rec;
	const struct mt_callsite *cs;
	uint32_t entered;
	bool has_inner; /* scratch of mt_recordings_stacks */
	struct rc_span *hash_next;
	struct rc_span *rec_prev, *rec_next;
	struct rc_span *lru_prev, *lru_next;
};

/* sink_data of a process that has or had a recording; parted: of one that is to be told again (MT_END_PART).
 */
struct rc_process {
	struct rc_process *parted_next;
	uint32_t pid;
	uint64_t start;
	struct rc_rec *recs; /* live ones */
	uint64_t lost;       /* hits */
	bool has_status;
	uint32_t exit_status;
};

struct rc_list {
	struct rc_rec *first, *last;
};

struct recordings {
	struct mt_sink sink;
	struct mt_recordings_opts opts;
	struct mt_recordings_stats stats;
	struct rc_list live, kept;
	struct rc_rec *hand, *probe; /* search for a large one: the largest so far, the last looked at */
	struct rc_span **buckets;
	struct rc_span *lru_first, *lru_last; /* first = longest unused */
	struct rc_process *parted;
	uint64_t last_id;
	uint64_t lost; /* hits of nobody knows which process */
	mt_recorded_cb watch;
	void *watch_ctx;
	uint8_t *scratch; /* RC_PACKED */
};

/* recordings_table.c */
struct rc_span *rc_span_find(struct recordings *r, uint64_t span);
void rc_span_touch(struct recordings *r, struct rc_span *e);
/* New entry; root: the recording's own. NULL: no memory or no room. */
struct rc_span *rc_span_add(struct recordings *r, struct rc_rec *rec, uint64_t span, uint64_t parent,
			    const struct mt_callsite *cs, bool root);
void rc_span_drop(struct recordings *r, struct rc_span *e);
/* A live recording with its root span. -ENOMEM; *ret_rec is NULL if it was refused. */
struct rc_new {
	struct mt_process *process;
	uint64_t time, span;
	const struct mt_callsite *cs;
	uint32_t nvalues;
	const struct mt_value *values;
};
/* The process's state if there is one, also if it was parted. */
struct rc_process *rc_process_of(struct recordings *r, struct mt_process *p);
int rc_rec_new(struct recordings *r, const struct rc_new *n, struct rc_rec **ret_rec);
/* Its spans are forgotten, it leaves its process and goes to the kept ones (or away, if it has no events). */
void rc_rec_end(struct recordings *r, struct rc_rec *rec, enum mt_recording_state state, uint32_t status,
		uint64_t time);
void rc_rec_free(struct recordings *r, struct rc_rec *rec, struct rc_list *list);
/* Takes over e. */
void rc_event_add(struct recordings *r, struct rc_rec *rec, struct rc_event *e);
struct rc_rec *rc_rec_find(const struct recordings *r, uint64_t id);

/* recordings_view.c: e as callers see it; arrays take MONTRACE_MAX_FIELDS and MT_PACK_MAX_FIELDS. */
void rc_event_view(const struct rc_rec *rec, const struct rc_event *e, struct mt_value *values,
		   struct mt_field *extra, struct mt_recorded *ret_view);

#endif
