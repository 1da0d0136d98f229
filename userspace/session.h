/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tracing session: the BPF program, its rings, the targets, the loop. One thread, one epoll set.
 *
 * Order of calls: open; add, add_file, add_comm, spawn (in any number); arm; run; close.
 */
#ifndef MT_SESSION_H
#define MT_SESSION_H

#include <stdint.h>

#include "attach.h"
#include "decode.h"
#include "features.h"
#include "filter.h"
#include "sink.h"
#include "spans.h"

#define MT_RING_DEFAULT (64u << 20)
#define MT_RING_MAX (1u << 30)

struct mt_session_opts {
	uint64_t ring_bytes; /* 0 = MT_RING_DEFAULT; rounded up to a power of two of at least a page */
	enum mt_nop5 nop5;   /* 5-byte nops: auto = where the trial showed that it is safe */
	bool per_site;       /* one link per site even if the kernel has uprobe_multi */
	bool follow;         /* children of targets, and what they exec, are targets */
	bool everybody; /* targets may appear later (follow, add_file, add_comm): links are for all processes
			 */
};

/* What went wrong: one line for the user. */
struct mt_session_err {
	char text[512];
};

enum mt_stop {
	MT_STOP_NONE,
	MT_STOP_SIGNAL, /* SIGINT, SIGTERM or SIGHUP */
	MT_STOP_DURATION,
	MT_STOP_GONE, /* all targets ended, and none can come */
	MT_STOP_SINK, /* the sink failed */
};

struct mt_session_stats {
	const struct mt_spans_stats *spans; /* NULL before run */
	const struct mt_decode_stats *decode;
	uint64_t lost[8];    /* by cause, shared.h */
	uint64_t lost_total; /* hits */
	uint64_t wakeups;    /* of the loop */
	uint64_t detach_ns;  /* what taking the probes away took; 0 before the end of run */
	uint64_t ring_bytes;
	uint32_t targets; /* alive */
	uint32_t targets_ever;
};

struct mt_session;

/* Loads the program and finds out what the kernel can do. */
int mt_session_open(const struct mt_session_opts *opts, struct mt_session **ret_session,
		    struct mt_session_err *err);

/* A process that exists: traced from now on, once armed. */
int mt_session_add(struct mt_session *s, uint32_t pid, struct mt_session_err *err);

/* All processes that run this file, now and later: later ones from their first instruction. */
int mt_session_add_file(struct mt_session *s, const char *path, struct mt_session_err *err);

/*
 * All processes whose name (comm) matches a glob, now and later: later ones from shortly after their exec.
 * glob must outlive s.
 */
int mt_session_add_comm(struct mt_session *s, const char *glob, struct mt_session_err *err);

/*
 * Makes a child that will run argv (PATH is searched) when released; its executable is armed before.
 * The caller reaps it. mt_session_run releases it, or mt_session_close ends it unreleased.
 */
int mt_session_spawn(struct mt_session *s, char **argv, uint32_t *ret_pid, struct mt_session_err *err);

/*
 * From now on targets that exec a file which is not armed yet are stopped (SIGSTOP) until it is: no hit of theirs is
 * missed. If this process dies they go on. mt_session_spawn does it by itself when children are followed.
 */
int mt_session_hold(struct mt_session *s);

/* What was found and armed so far. */
struct mt_attach *mt_session_attach(struct mt_session *s);
uint32_t mt_session_ntargets(const struct mt_session *s); /* alive */
/* Their numbers, at most cap of them. Returns how many. */
uint32_t mt_session_targets(const struct mt_session *s, uint32_t *ret_pids, uint32_t cap);
bool mt_session_is_target(const struct mt_session *s, uint32_t pid);

/* Puts the probes in, for all targets. filter stays the caller's and must outlive s. */
int mt_session_arm(struct mt_session *s, const struct mt_filter *filter, struct mt_session_err *err);

struct mt_run_opts {
	struct mt_sink *sink;
	const struct mt_spans_opts *spans;
	uint64_t duration_ms; /* 0 = no limit */
	/* Called on each tick (50 ms) and about twice a second; NULL is fine. */
	int (*on_tick)(void *ctx, struct mt_spans *spans, uint64_t now);
	void (*progress)(void *ctx, const struct mt_session_stats *st);
	/* The callbacks below are called when all hits up to now are in spans; NULL is fine. */
	int fd; /* on_fd is called while it is readable */
	int (*on_fd)(void *ctx, struct mt_spans *spans, uint64_t now);
	int (*on_usr2)(void *ctx, struct mt_spans *spans, uint64_t now); /* SIGUSR2 came */
	int (*on_end)(void *ctx, struct mt_spans *spans, uint64_t now);  /* before open slices are ended */
	void *ctx;
};

/*
 * Runs until a signal, the duration or the end of all targets; then takes the probes away, drains the ring
 * and ends what is open (mt_spans_finish). *ret_stop says why it ended. 0, or -errno of the sink or memory.
 */
int mt_session_run(struct mt_session *s, const struct mt_run_opts *opts, enum mt_stop *ret_stop);

/* Valid until close. */
void mt_session_stats(struct mt_session *s, struct mt_session_stats *ret_stats);

void mt_session_close(struct mt_session *s);

#endif
