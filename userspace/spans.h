/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of threads -> slices that nest. The only module that knows the span model (docs/design.md,
 * section 5): per-thread stacks, spans entered anywhere, losses and their repair, deaths.
 */
#ifndef MT_SPANS_H
#define MT_SPANS_H

#include "sink.h"

enum mt_naming {
	MT_NAMING_USER = 0, /* field `name` (spans) / `message` (events) if text, else the static name */
	MT_NAMING_DEV,      /* target::name */
	MT_NAMING_UPSTREAM, /* endpoint names of the newer upstream (BEHAVIOUR P13) */
	MT_NAMING_PLAIN,    /* the static name */
};

struct mt_spans_opts {
	enum mt_naming naming;
	uint32_t max_spans;   /* live spans remembered per process; 0 = 1,000,000; beyond: oldest un-entered
				 forgotten, counted */
	uint32_t max_depth;   /* open slices on a thread; 0 = 500 (the importer drops below 512); deeper ones
				 are counted, not shown */
	uint32_t max_threads; /* 0 = 100,000 */
	uint32_t
		max_keyed; /* open spans with a key, per process; 0 = 10,000; beyond: the oldest is ended, counted */
};

struct mt_spans_stats {
	uint64_t events; /* events fed */
	uint64_t slices; /* begun, continued and re-entered ones included */
	uint64_t spans;  /* scopes begun + span ids first entered + spans with a key begun */
	uint64_t instants;
	uint64_t counters;
	uint64_t threads; /* that had an event */
	uint64_t processes;
	uint64_t delivered;     /* hits delivered (events with has_seq) */
	uint64_t lost;          /* hits known lost from gaps in sequence numbers */
	uint64_t unseen_enters; /* enter of an id whose creation was not seen */
	uint64_t
		stray_exits; /* exit, close or record of an unknown id, or exit of a span not entered there */
	uint64_t closed_entered;  /* closed while entered */
	uint64_t reordered;       /* exits that were not the innermost */
	uint64_t lost_ends;       /* slices closed because their end was lost */
	uint64_t too_deep;        /* begins not shown for depth */
	uint64_t forgotten;       /* spans dropped from the table for its bound */
	uint64_t keyed_again;     /* spans with a key ended because the key began again */
	uint64_t keyed_forgotten; /* spans with a key ended because too many were open */
	uint64_t time_back;       /* events whose time ran back on their thread: moved forward */
};

struct mt_spans;

/* opts: NULL = all defaults. sink stays the caller's; it must outlive the spans. *ret_spans: mt_spans_free.
 */
int mt_spans_new(const struct mt_spans_opts *opts, struct mt_sink *sink, struct mt_spans **ret_spans);

/* Takes one event. Returns 0, -ENOMEM, or the sink's error (state stays sound, the caller may go on). */
int mt_spans_feed(struct mt_spans *s, const struct mt_event *ev);

/*
 * For a sink that begins a new file: ends what is open in a process (NULL: in all) with MT_END_PART, tells gone()
 * for its threads and for it, then begins it again in continued slices at the same time, process() and thread()
 * first. Nothing is forgotten, no number changes. A process without open slices is told again with the next
 * thing that it does; if that is its end, only gone() comes (sink.h).
 */
int mt_spans_restart(struct mt_spans *s, struct mt_process *p, uint64_t time);

/*
 * Says that `total` hits were lost in all, as the kernel side counted (sum over causes): what the gaps
 * have not shown yet (a thread's last records) is told to the sink as a loss without thread.
 * cause as in struct mt_loss. May be called again with a higher total. Call it when the ring is drained: a
 * gap that shows only afterwards is told at its place as well.
 */
int mt_spans_lost_total(struct mt_spans *s, uint64_t total, uint64_t time, const char *cause);

/* Ends everything that is still open, reason MT_END_DETACH, and tells gone() for all. */
int mt_spans_finish(struct mt_spans *s, uint64_t time);

const struct mt_spans_stats *mt_spans_stats(const struct mt_spans *s);

/* Iterates open slices for `stacks`: innermost first, thread by thread. cb non-zero stops. */
struct mt_spans_open {
	const struct mt_thread *thread; /* NULL: a span with a key */
	const struct mt_process *process;
	uint32_t tid; /* on which thread it began */
	const struct mt_callsite *cs;
	struct mt_str name;
	uint64_t span, parent;
	uint64_t since; /* time of the span's first enter on this thread's stack */
	uint32_t depth; /* 0 = outermost; of spans with a key: 0 = oldest of its process ... */
	uint32_t of;    /* ... of so many */
	bool in_doubt; /* hits were lost while it was open (of its thread; with a key: of its process): it may be over */
};
int mt_spans_each_open(const struct mt_spans *s, int (*cb)(void *ctx, const struct mt_spans_open *o),
		       void *ctx);

/* The same for spans with a key: process by process, the oldest first. */
int mt_spans_each_keyed(const struct mt_spans *s, int (*cb)(void *ctx, const struct mt_spans_open *o),
			void *ctx);

void mt_spans_free(struct mt_spans *s);

#endif
