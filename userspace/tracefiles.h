/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files of a recording, as a sink: each process's slices go to a Perfetto file of its own (or all to
 * one).
 *
 *  F1  A file is created when a process is first heard of, and never over another one: a name in use gets the
 *      pid, then a number.
 *  F2  When a program tells its name or execution id later, the file is renamed; what is written stays.
 *  F3  A file is complete when its process is gone: closing packets written, descriptor closed.
 *  F4  An error in one file (disk full) is an error of the recording: it sticks, and is told once.
 */
#ifndef MT_TRACEFILES_H
#define MT_TRACEFILES_H

#include "pftrace.h"
#include "sink.h"
#include "tracedir.h"

struct mt_tracefiles_opts {
	const struct mt_pftrace_opts *pftrace; /* copied */
	const struct mt_user *user;            /* outlives the sink */
	const char *output;       /* one file for all, this one; "-" = standard output; NULL: see below */
	bool single;              /* one file for all, in the trace directory */
	const char *base;         /* trace directory, as mt_tracedir_base says */
	const char *execution_id; /* NULL: the program's own, its environment's, or one that is made */
	const char *name;      /* pattern for file names; NULL: the program's own name, its environment's, its
				  file's */
	uint64_t rotate_bytes; /* 0 = never */
	uint64_t rotate_ns;    /* 0 = never */
};

/* What went wrong: one line for the user. */
struct mt_tracefiles_err {
	char text[640];
};

/*
 * Makes the sink. With output, the file is created here. err is filled when a call here or, later, a sink
 * function fails for a reason of names and directories; it must outlive the sink. The sink's free() closes
 * all.
 */
int mt_tracefiles_new(const struct mt_tracefiles_opts *opts, struct mt_tracefiles_err *err,
		      struct mt_sink **ret_sink);

/* Creates the file of a process that is there already, before it is traced (so that errors come before). */
int mt_tracefiles_expect(struct mt_sink *sink, uint32_t pid);

/* True if a file is due for rotation; *ret_process: whose, NULL = the file of all. */
bool mt_tracefiles_rotate_due(struct mt_sink *sink, uint64_t now, struct mt_process **ret_process);

struct mt_tracefiles_stats {
	uint64_t bytes;    /* written to all files so far, compressed or not as they are */
	uint32_t files;    /* created, parts included */
	const char *path;  /* of the first one (or the only one); "standard output" */
	const char *where; /* directory of the last one; "" with output */
};
void mt_tracefiles_stats(const struct mt_sink *sink, struct mt_tracefiles_stats *ret_stats);

#endif
