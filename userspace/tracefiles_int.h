/* SPDX-License-Identifier: BSD-3-Clause */
/* Between tracefiles*.c. */
#ifndef MT_TRACEFILES_INT_H
#define MT_TRACEFILES_INT_H

#include "tracefiles.h"

#define MT_TRACEFILES_MAX_DIRS 64 /* execution ids in one recording */

struct mt_tracefile {
	struct mt_tracefile *next;
	struct mt_sink *sink;
	struct mt_out *out;
	struct mt_tracedir *dir; /* NULL: -o */
	char *path;
	char *base_name;            /* unsanitised; what the file is named after */
	uint32_t pid;               /* whose, or whose it will be; 0 = of all */
	struct mt_process *process; /* once it was heard of */
	uint64_t opened;            /* ns */
};

struct mt_tracefiles {
	struct mt_sink base;
	struct mt_tracefiles_opts opts;
	struct mt_pftrace_opts pftrace;
	struct mt_tracefiles_err *err;
	struct mt_tracedir *dirs[MT_TRACEFILES_MAX_DIRS];
	uint32_t ndirs;
	char *made_id; /* execution id made for this recording */
	/* of the parent asked last: siblings tend to come together, the last one may come when it is gone */
	char parent_id[MT_TRACEDIR_NAME_MAX + 1];
	uint32_t parent;
	struct mt_tracefile *files;
	struct mt_tracefile *common; /* of all */
	char *first_path;
	char *where;
	uint64_t closed_bytes;
	uint32_t created;
	uint32_t parts; /* of the common file */
	bool rotating;  /* the common file is to be replaced by the next part */
	int error;
};

uint64_t mt_tracefiles_now(void);

/* Remembers the first error; returns err. explain also says why, once. */
int mt_tracefiles_failed(struct mt_tracefiles *t, int err);
int mt_tracefiles_explain(struct mt_tracefiles *t, int err, const char *what, const char *why);

/* ---- tracefiles_name.c ---------------------------------------------------------------------------- */

/* What a file is called. p NULL: the process is not traced yet, ask /proc. -ESRCH, with `again`: what it is named after is gone. */
int mt_tracefiles_name(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p, bool again,
		       char *name, size_t cap);
/* Its execution; NULL: it has none, one is made. */
const char *mt_tracefiles_id(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p, char *buf,
			     size_t cap);
/* The directory of an execution, made if need be. */
int mt_tracefiles_dir(struct mt_tracefiles *t, const char *id, struct mt_tracedir **ret_dir);

/* ---- tracefiles_file.c ---------------------------------------------------------------------------- */

int mt_tracefiles_open_output(struct mt_tracefiles *t, struct mt_tracefile **ret_file);
int mt_tracefiles_open_in_dir(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p,
			      uint32_t part, struct mt_tracefile **ret_file);
int mt_tracefiles_close(struct mt_tracefiles *t, struct mt_tracefile *f);
/* F2. A failed rename is no loss: the trace keeps its name. */
void mt_tracefiles_rename(struct mt_tracefiles *t, struct mt_tracefile *f, const struct mt_process *p);

#endif
