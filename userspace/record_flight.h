/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What record has beside its files: the recordings, the window and its snapshots, triggers, deaths, and the
 * socket for questions. record_flight.c says when, record_snapshot.c writes snapshots, record_crash.c watches for
 * deaths and writes the reports, record_answer.c answers questions.
 */
#ifndef MT_RECORD_FLIGHT_H
#define MT_RECORD_FLIGHT_H

#include <stdio.h>

#include "control_tail.h"
#include "flight.h"
#include "pftrace.h"
#include "record_int.h"
#include "recordings.h"
#include "trigger.h"

#define MT_RECORDER_DIRS 64

/* A process that ended badly: what is told of it. */
struct mt_death {
	struct mt_death *next;
	uint32_t pid, status; /* wait(2) status */
	uint64_t time;
	char *name;
	char *file_name;    /* unsanitised, for files */
	char *execution_id; /* "" = none of its own */
	char *open;         /* what was open, as text; NULL = nothing */
};

/* Oldest first. */
struct mt_deaths {
	struct mt_death *first, **end;
	uint32_t n, untold;
};

/* A snapshot that was written. */
struct mt_snapshot {
	char path[4200]; /* "" for a file that came with the request */
	uint64_t bytes, events, span_ns;
};

/* A request that waits for its snapshot. */
struct mt_asked {
	struct mt_control_conn *conn; /* NULL: gone */
	bool json;
	int fd; /* its file, -1: into the trace directory */
	uint64_t time;
};

/* The snapshot that is being written. */
struct mt_job {
	bool busy;
	char why[1400]; /* UTF-8 */
	uint64_t time;  /* when that was */
	uint64_t now;   /* when its writing began */
	uint64_t unplaced;
	bool automatic;
	struct mt_deaths deaths; /* that it is for; to be told in its report */
	struct mt_asked asked;   /* time 0: nobody asked */
	struct mt_tracedir *dir; /* NULL: the file came with the request */
	struct mt_tracedir_tmp tmp;
	char name[4200];
	int fd;
	pid_t pid; /* who writes it */
	int pidfd;
	struct mt_snapshot snap;
};

struct mt_automatic {
	struct mt_tracedir *dir;
	char name[256];
};

struct mt_recorder {
	struct record *r;
	struct mt_sink *recordings;
	struct mt_sink *flight; /* NULL: no -F; then the next two are NULL, too */
	struct mt_sink *triggers, *watch;
	bool handed_over;           /* the sinks are r->all's */
	int epoll;                  /* the socket, and who writes a snapshot */
	struct mt_control *control; /* NULL: could not be made */
	struct mt_control_tail *tail;
	struct mt_spans *spans; /* from the first callback on */
	int64_t real_minus_boot;
	uint64_t next_second, rate_events, rate_time;
	double rate;

	/* what is to be written, in this order, one after the other */
	struct mt_job job;
	struct mt_deaths deaths;
	uint64_t crash_ready; /* no snapshot for a death before this */
	uint64_t usr2;        /* when SIGUSR2 came, 0 = it did not */
	struct mt_asked asked[MT_CONTROL_CONNS];
	uint32_t nasked;
	struct mt_policy policy;
	char why[1400];
	uint64_t why_time;

	/* where snapshots go */
	struct mt_tracedir *dirs[MT_RECORDER_DIRS];
	uint32_t ndirs;
	char env_id[256]; /* the first process's execution id, as its environment has it */
	uint32_t number;  /* of the last file */
	uint32_t written, failed;
	char last_path[4200];
	struct mt_automatic *automatic; /* oldest first */
	uint32_t nautomatic, cap_automatic;
};

/* Makes r->recorder, and r->all of r->sink (NULL with -F) and its own sinks. What is wrong is said. */
int mt_recorder_open(struct record *r);
int mt_recorder_fd(const struct mt_recorder *m); /* for mt_recorder_asked */
/* Callbacks of mt_session_run; ctx is the record. */
int mt_recorder_tick(void *ctx, struct mt_spans *spans, uint64_t now);
int mt_recorder_asked(void *ctx, struct mt_spans *spans, uint64_t now);
int mt_recorder_usr2(void *ctx, struct mt_spans *spans, uint64_t now);
/* After mt_session_run: last snapshots, last answers. */
void mt_recorder_end(struct mt_recorder *m);
/* Before r->all is freed; NULL is fine. */
void mt_recorder_free(struct mt_recorder *m);

/* ---- between the files of the recorder ---- */

int mt_recorder_watch_fd(struct mt_recorder *m, int fd);
/* A request for a snapshot; takes over its fd unless it fails. */
int mt_recorder_ask(struct mt_recorder *m, const struct mt_asked *asked);
void mt_recorder_asker_gone(struct mt_recorder *m, const struct mt_control_conn *c);
/* m->job is written (err 0), or why not; it is over after that. */
void mt_recorder_written(struct mt_recorder *m, int err, const char *why);

/* record_snapshot.c */
int mt_recorder_open_directory(struct mt_recorder *m);
/* Begins to write m->job, which says why, for whom, and where to. here: is done with it, too. */
void mt_recorder_write(struct mt_recorder *m, bool here);
/* Looks whether it is done. */
void mt_recorder_reap(struct mt_recorder *m, bool wait);
/* Hits that the kernel side counted as lost and that no gap has shown. */
uint64_t mt_recorder_unplaced(struct mt_recorder *m);

/* record_crash.c */
int mt_recorder_watch_new(struct mt_recorder *m, struct mt_sink **ret_sink);
/* The process heard of first of those that are there. NULL: none. */
const struct mt_process *mt_recorder_first_process(const struct mt_recorder *m, const char **ret_file_name);
/* Moves them. */
void mt_recorder_take_deaths(struct mt_deaths *from, struct mt_deaths *to);
/* Prints the report on deaths and writes it, if dir is not NULL: path of the snapshot they are in, its directory. */
void mt_recorder_report(struct mt_recorder *m, const struct mt_deaths *deaths, struct mt_tracedir *dir,
			const char *snapshot);
/* x.pftrace -> x.crash.txt */
void mt_recorder_report_name(const char *snapshot, char *name, size_t cap);
void mt_recorder_forget_deaths(struct mt_deaths *deaths);
/* "was killed by signal 9 (Killed)", "ended with status 3". */
void mt_recorder_how(uint32_t status, char *text, size_t cap);

/* record_answer.c */
extern const struct mt_control_ops mt_recorder_control_ops;
/* err not 0: why there is none. */
void mt_recorder_answer_snapshot(const struct mt_asked *asked, const struct mt_snapshot *snap, int err,
				 const char *why);

/* record_stacks.c: what is open, as lines. subject NULL: all threads, of process pid or (0) of all. */
typedef int (*mt_line_cb)(void *ctx, const char *text, size_t len);
struct mt_stacks_opts {
	uint32_t pid;
	bool json;
	uint64_t now;
};
int mt_record_stacks(const struct mt_spans *spans, const struct mt_stacks_opts *o, mt_line_cb line, void *ctx,
		     uint32_t *ret_stacks);
int mt_record_subject_stacks(const struct mt_spans *spans, const struct mt_sink *recordings,
			     const char *subject, const struct mt_stacks_opts *o, mt_line_cb line, void *ctx,
			     uint32_t *ret_stacks);

#endif
