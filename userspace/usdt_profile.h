/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Profiles: files of specs for well-known programs. A line is a spec, or `when PROVIDER:NAME` (globs): specs that
 * follow are for files that have such a probe (several `when` lines in a row: one of them). `#` begins a comment
 * where a line begins; `\` at the end of a line joins the next.
 */
#ifndef MT_USDT_PROFILE_H
#define MT_USDT_PROFILE_H

#include "usdt_spec.h"

struct mt_usdt_profile {
	char *name; /* of the file, without .profile */
	char *path;
	struct mt_usdt_whens **whens;
	uint32_t nwhens;
	bool automatic; /* every spec has a condition: it may be used without being asked for */
	struct mt_usdt_set specs;
};

struct mt_profile_err {
	char text[512]; /* one line */
};

/* Reads the text of a profile. 0, -EINVAL (err filled: line and place), -ENOMEM. */
int mt_usdt_profile_parse(const char *text, size_t len, const char *path,
			  struct mt_usdt_profile **ret_profile, struct mt_profile_err *err);

/*
 * what: a path (with a slash or ending in .profile), or a name that is looked up in dirs (dirs[ndirs], first one
 * first). -ENOENT and other -errno, err filled.
 */
int mt_usdt_profile_load(const char *what, const char *const *dirs, unsigned ndirs,
			 struct mt_usdt_profile **ret_profile, struct mt_profile_err *err);
void mt_usdt_profile_free(struct mt_usdt_profile *p);

#define MT_PROFILE_DIRS 3
struct mt_profile_dirs {
	char path[MT_PROFILE_DIRS][4200];
	const char *v[MT_PROFILE_DIRS];
	unsigned n;
};
/*
 * Where profiles are: MONTRACE_PROFILES, then share/montrace/profiles beside the program's bin, then profiles/ of the
 * source tree if the program runs from a build directory in it.
 */
void mt_usdt_profile_dirs(struct mt_profile_dirs *ret);

/* Those of dirs, by name; a bad one costs itself (*ret_bad, may be NULL, counts). -ENOMEM. */
int mt_usdt_profiles_find(const char *const *dirs, unsigned ndirs, bool automatic,
			  struct mt_usdt_profile ***ret_v, uint32_t *ret_n, uint32_t *ret_bad);

#endif
