/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of tracedir; for nobody else. */
#ifndef MT_TRACEDIR_INT_H
#define MT_TRACEDIR_INT_H

#include <limits.h>
#include <sys/stat.h>

#include "tracedir.h"

/*
 * A walk down a path. fd is the directory reached (O_PATH or better), st its attributes, path its
 * name for messages. After an error fd is still the last good one.
 */
struct mt_walk {
	const struct mt_user *user;
	struct mt_tracedir_err *err;
	int fd;
	struct stat st;
	unsigned int links; /* followed so far */
	char path[PATH_MAX];
};

enum mt_walk_how {
	MT_WALK_OPEN,   /* open it, or create it */
	MT_WALK_CREATE, /* create it: -EEXIST if it is there, without a message */
};

/* Walks base, trusted links followed, missing directories created. w->user and w->err must be set. */
int mt_walk_base(struct mt_walk *w, const char *base);
/* One component more, never through a link. */
int mt_walk_step(struct mt_walk *w, const char *name, enum mt_walk_how how);
void mt_walk_end(struct mt_walk *w);

/* Leaves "path[/name]: <printf>" in err (may be NULL) and returns code. */
int mt_tracedir_fail(struct mt_tracedir_err *err, int code, const char *path, const char *name,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#define MT_TMP_NAME_LEN 32
/* A hidden name that nobody guesses. Sanitised names begin with no dot, so it is never one of them. */
void mt_tracedir_tmp_name(char ret_name[MT_TMP_NAME_LEN]);
uint64_t mt_tracedir_random(void);

#endif
