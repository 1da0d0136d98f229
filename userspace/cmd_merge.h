/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `montrace-bpf merge DIR|FILES... -o OUT`: the traces of one execution as one trace.
 *
 * Input is hostile, as for ptread. Memory is bounded by ptread's limits for one file, plus what all files
 * declare in tracks and snapshots; events are never kept.
 */
#ifndef MT_CMD_MERGE_H
#define MT_CMD_MERGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "out.h"
#include "tracedir.h"

#define MT_MERGE_MAX_FILES 65536u

enum mt_merge_status {
	MT_MERGE_TAKEN,      /* all of it or, see torn and why, what is good of it */
	MT_MERGE_DUPLICATE,  /* the same trace as input `same` */
	MT_MERGE_MERGED,     /* the result of a merge, found in a directory: left out */
	MT_MERGE_EMPTY,      /* no packet in it that could be read */
	MT_MERGE_UNREADABLE, /* not opened, see error */
};

struct mt_merge_input {
	int fd;           /* a regular file, read from its start; the caller's; -1: error says why */
	const char *name; /* for messages; the caller's */
	bool listed;      /* found in a directory, not named by the user */
	int error;        /* with fd -1: -errno */

	/* Filled in by mt_merge(). */
	enum mt_merge_status status;
	uint32_t same;       /* DUPLICATE: index of the input that counts */
	uint32_t host;       /* number of its host, from 0 */
	uint64_t packets;    /* of it that are in the merged trace */
	uint64_t bytes;      /* of it that were used: whole, good packets */
	uint64_t torn;       /* bytes of a torn packet at its end, left out */
	const char *why;     /* damage, static text; "" = none */
	uint64_t bad_offset; /* damage: where; everything from there on is left out */
	uint64_t skipped;    /* packets that cannot be carried over: zstd, ftrace of another host, ... */
	bool complete;       /* its writer closed it */
};

struct mt_merge_opts {
	struct mt_merge_input *inputs;
	uint32_t ninputs;
	struct mt_out *out; /* the caller's, not closed here */
	bool compress;      /* zlib packets */
};

struct mt_merge_report {
	uint32_t files;      /* taken */
	uint32_t incomplete; /* ... of these torn, damaged or not closed by their writer */
	uint32_t hosts;
	uint32_t unaligned;      /* hosts without wall clock: their times are as they were */
	uint32_t renamed;        /* tracks that got a new uuid */
	uint64_t packets, bytes; /* written; bytes before compression */
};

struct mt_merge_err {
	char text[640]; /* one line; may hold bytes of hostile names */
};

/*
 * Reads all inputs twice and writes the merged trace. What happened to each is left in the inputs.
 * 0; -ENODATA: nothing in any of them; -EINVAL: an input is no regular file, or a merge of several
 * hosts; -EFBIG: a limit; -ENOMEM; errors of reading and of out. *err is filled with every error; what was
 * written until then is of no use.
 */
int mt_merge(const struct mt_merge_opts *opts, struct mt_merge_report *ret_report, struct mt_merge_err *err);

/* Files and directories -> inputs. */
struct mt_merge_files {
	struct mt_merge_input *v;
	uint32_t n;
};

/*
 * Opens paths: a directory stands for all `*.pftrace` in it, by name; symbolic links and other odd things in
 * it are not followed (fd -1). 0 or -errno with *err filled; *ret_files is the caller's to free. Raises the
 * process's limit of open files as far as it may.
 */
int mt_merge_files_open(const char *const *paths, uint32_t npaths, struct mt_merge_files *ret_files,
			struct mt_merge_err *err);
void mt_merge_files_free(struct mt_merge_files *files);

/*
 * Opens, merges into a new file and removes that file if it did not work. -EEXIST if there is something of
 * that name; the file is the user's. *files is the caller's to free whenever it was filled (n > 0), also after an error.
 */
int mt_merge_paths(const char *const *paths, uint32_t npaths, const char *output, const struct mt_user *user,
		   bool compress, struct mt_merge_files *ret_files, struct mt_merge_report *ret_report,
		   struct mt_merge_err *err);

/*
 * What became of the inputs: a line for each that was not taken whole (all of them if `all`), then one for
 * the result. Safe for a terminal. 0 or -EIO.
 */
int mt_merge_print(FILE *out, const struct mt_merge_files *files, const struct mt_merge_report *report,
		   const char *output, bool all);

#endif
