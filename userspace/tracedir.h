/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where traces go, what they are called, and who owns them.
 *
 *   <base>/executions/<execution id>/<process name>.pftrace
 *   <base>/executions/latest -> <execution id>
 *
 * The tool runs as root and writes where others can: see tracedir_walk.c for the rules that keep
 * it from being led elsewhere. Nothing here prints; the reason of a failure is left in a
 * struct mt_tracedir_err, one line, ready for the user. It may hold bytes of hostile names: print
 * it through log.h only.
 */
#ifndef MT_TRACEDIR_H
#define MT_TRACEDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MT_TRACEDIR_NAME_MAX 200 /* bytes of a sanitised name, without suffix and extension */
#define MT_TRACEDIR_TRIES 1000   /* names tried before "in use" is an error */

/* Why a call failed: the path that is to blame and the reason. Every err below may be NULL. */
struct mt_tracedir_err {
	char text[512];
};

/* What the environment says; NULL or "" = not set. A struct, so that only main reads variables. */
struct mt_tracedir_env {
	const char *sudo_uid;           /* SUDO_UID */
	const char *sudo_gid;           /* SUDO_GID */
	const char *montrace_trace_dir; /* MONTRACE_TRACE_DIR */
	const char *monarch_trace_dir;  /* MONARCH_TRACE_DIR */
};

/* Who gets the files. */
struct mt_user {
	uint32_t uid;
	uint32_t gid;
	char name[MT_TRACEDIR_NAME_MAX + 1]; /* sanitised: a file name */
};

/*
 * uid, gid: the effective ids of this process. If uid is 0 and SUDO_UID is a valid number: that user, his
 * group from SUDO_GID or else the user data base (with neither, SUDO_UID does not count). Else uid and gid
 * themselves. The name always comes from the user data base; a user without one is "uid<number>".
 */
void mt_user_resolve(uint32_t uid, uint32_t gid, const struct mt_tracedir_env *env, struct mt_user *ret_user);

/*
 * A new file at a path that the user names (-o): never over another one (-EEXIST), no link followed at its end, the
 * user's if we are root. A file system that knows no owners is no reason to fail.
 */
int mt_tracedir_file(const struct mt_user *user, const char *path, int *ret_fd);

/*
 * The base directory: option, else MONTRACE_TRACE_DIR, else MONARCH_TRACE_DIR, else
 * /tmp/<user>/monarch_traces. Empty ones count as not given. -ENAMETOOLONG if cap is too small.
 */
int mt_tracedir_base(const char *option, const struct mt_tracedir_env *env, const struct mt_user *user,
		     char *ret_base, size_t cap);

/*
 * Makes a file name of any bytes: valid UTF-8, never empty ("process"), at most
 * MT_TRACEDIR_NAME_MAX bytes, no '/', no control characters, no '.' or '-' at the start ('_' takes
 * their place; what is not text becomes U+FFFD). Spaces, '@', ':', '[' and ']' stay. A longer name is cut at
 * a character and ends in '~' and eight hex digits of a hash of the whole name.
 */
void mt_tracedir_sanitise(const char *name, size_t len, char ret_name[MT_TRACEDIR_NAME_MAX + 1]);

/* What the sequences of a name pattern stand for. NULL texts count as "". */
struct mt_name_vars {
	uint32_t pid;         /* %p */
	const char *name;     /* %n: comm or executable */
	const char *hostname; /* %h */
};

/*
 * Expands %p, %n, %h and %%. The values are taken as they are: sanitise the result.
 * -EINVAL for another sequence: *ret_pos (may be NULL) is the offset of its '%'. -ENAMETOOLONG if
 * the result does not fit into cap with its NUL.
 */
int mt_tracedir_expand(const char *pattern, const struct mt_name_vars *vars, char *ret_text, size_t cap,
		       size_t *ret_pos);

/* `<user>_<Mon-DD_HH:MM>_<number>`, local time, English months whatever the locale. number < 1000. */
int mt_execution_id_make(const struct mt_user *user, time_t now, unsigned int number,
			 char ret_id[MT_TRACEDIR_NAME_MAX + 1]);

/* The directory of one execution. */
struct mt_tracedir;

struct mt_tracedir_opts {
	const struct mt_user *user;
	const char *base;         /* as mt_tracedir_base says; relative = to the working directory */
	const char *execution_id; /* sanitised here; NULL or "": one is made, not in use so far */
};

/*
 * Opens the directory, creating what is missing (mode 0750, owner = user).
 *  -ELOOP   a component is a symbolic link that is not followed
 *  -EPERM   a component belongs to somebody else, or anybody may write to it
 *  -ENOTDIR a component is no directory
 *  -EEXIST  an id was to be made and all thousand are in use
 */
int mt_tracedir_open(const struct mt_tracedir_opts *opts, struct mt_tracedir_err *err,
		     struct mt_tracedir **ret_dir);
void mt_tracedir_close(struct mt_tracedir *d); /* NULL is fine */

const char *mt_tracedir_path(const struct mt_tracedir *d); /* of the directory, as long as d */
const char *mt_tracedir_id(const struct mt_tracedir *d);   /* the execution id in use */
int mt_tracedir_fd(const struct mt_tracedir *d);           /* O_PATH, stays d's */

/*
 * Creates <sanitised process_name>.pftrace, mode 0640, owner = user, for writing. A name in use gets the pid
 * (name-PID), then a number (name-PID-2, -3, ... -999); with pid 0 the number alone (name-2 ... -1000); then -EEXIST.
 * Never opens what exists. *ret_path (may be NULL) is the caller's to free.
 */
int mt_tracedir_create_for(struct mt_tracedir *d, const char *process_name, uint32_t pid,
			   struct mt_tracedir_err *err, int *ret_fd, char **ret_path);

/*
 * Renames a file made by create_for (path as it returned it) for another process name or into another
 * execution's directory, as create_for would name it; never over anything. *ret_path: its new path, the
 * caller's.
 */
int mt_tracedir_move(struct mt_tracedir *from, const char *path, struct mt_tracedir *to,
		     const char *process_name, uint32_t pid, struct mt_tracedir_err *err, char **ret_path);

/*
 * For files that appear only when they are complete: create_tmp makes a hidden file, then either
 * publish gives it its name (suffixes as above, never replacing anything) or discard removes it.
 * The descriptor is the caller's and may be closed before or after. A publish that failed leaves
 * the hidden file: discard it, or publish under another name.
 */
struct mt_tracedir_tmp {
	char name[32];
};

int mt_tracedir_create_tmp(struct mt_tracedir *d, struct mt_tracedir_err *err,
			   struct mt_tracedir_tmp *ret_tmp, int *ret_fd);
int mt_tracedir_publish(struct mt_tracedir *d, const struct mt_tracedir_tmp *tmp, const char *process_name,
			struct mt_tracedir_err *err, char **ret_path);
void mt_tracedir_discard(struct mt_tracedir *d, const struct mt_tracedir_tmp *tmp);

/*
 * Makes executions/latest point to this execution, in one step: a reader sees the old or the new
 * one. -EEXIST if there is something of that name that is not a symbolic link: it stays, and the
 * trace is fine without.
 */
int mt_tracedir_latest(struct mt_tracedir *d, struct mt_tracedir_err *err);

#endif
