/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of session share: session.c (loop), session_open.c (open, close), session_feed.c, session_targets.c. */
#ifndef MT_SESSION_INT_H
#define MT_SESSION_INT_H

#include "session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "montrace.skel.h"
#include "shared.h"
#include "watch.h"

#define MT_TICK_MS 50 /* of the loop */
#define LIFE_BYTES 96 /* room for a life record */
#define TARGET_SLOTS 4096
#define PENDING_BITS 4096

struct target {
	struct target *next; /* in its slot */
	uint32_t pid;
	int pidfd;   /* -1: found by fork or exec; its exit record tells of its end */
	bool follow; /* its children are targets (the kernel side makes them so) */
	bool rescan; /* it mapped code: look at its files on the next tick */
};

struct life {
	struct mt_life_head h;
	uint32_t len;
	unsigned char data[LIFE_BYTES];
};

struct mt_session {
	struct mt_session_opts opts;
	struct montrace_bpf *skel;
	struct bpf_link *life_links[4];
	struct ring_buffer *main_rb, *life_rb;
	struct mt_features features;
	struct mt_attach *attach;
	struct mt_watch *watch; /* NULL: not to be had; files are looked at from time to time */
	struct mt_sites sites;
	struct mt_decode_stats decode;
	struct mt_spans *spans;
	struct target *targets[TARGET_SLOTS];
	uint32_t ntargets, ever;
	bool open_ended; /* more targets may come */
	const char *globs[64];
	uint32_t nglobs;
	int proc, epoll, signals, timer;
	int alive;            /* pipe to the guard of held children; -1 = none */
	int guard;            /* its pid */
	int release;          /* pipe that holds the spawned child; -1 = none */
	struct life *pending; /* by time */
	uint32_t npending, cap_pending;
	uint64_t pending_bits[PENDING_BITS / 64]; /* thread and process numbers among them, hashed */
	/* When the ring is read up to mark_pos, all hits up to mark_time are fed. 0 = no mark. */
	uint64_t mark_time;
	unsigned long mark_pos;
	uint64_t fed_time; /* all hits up to then are fed */
	uint32_t batch;
	uint64_t wakeups;
	uint64_t detach_ns;
	int error; /* of feeding: sticks and ends the loop */
};

enum { W_SIGNAL, W_TIMER, W_RING, W_PID, W_MAPS, W_FD };

uint64_t mt_session_boot_ns(void);
int mt_session_say(struct mt_session_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int mt_session_watch_fd(struct mt_session *s, int fd, uint32_t what, uint32_t data);

/* session_feed.c */
int mt_session_open_rings(struct mt_session *s);
/* Takes a batch of records. True if there was more than that. */
bool mt_session_drain(struct mt_session *s);
/* Everything that is left, life records too. */
void mt_session_drain_all(struct mt_session *s);
/* Tells spans who a process is, as /proc has it. */
void mt_session_feed_process(struct mt_session *s, uint32_t pid, uint64_t time);
void mt_session_feed_exit(struct mt_session *s, uint32_t pid);
void mt_session_feed_detach(struct mt_session *s, uint32_t pid, uint64_t time);

/* session_targets.c */
struct target *mt_session_target(struct mt_session *s, uint32_t pid);
/* A process that the kernel side traces already (fork, exec). NULL: no memory. */
struct target *mt_session_target_found(struct mt_session *s, uint32_t pid, bool follow);
void mt_session_target_gone(struct mt_session *s, uint32_t pid);
/* An exec: of a target, or of somebody whose name may be wanted. */
void mt_session_target_exec(struct mt_session *s, const struct mt_event *ev);
/* Code was mapped: targets are marked; the files of marked ones are looked at. */
void mt_session_maps_changed(struct mt_session *s);
void mt_session_rescan(struct mt_session *s, uint64_t tick);
void mt_session_free_targets(struct mt_session *s);

#endif
