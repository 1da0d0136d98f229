/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verdict on a callsite: is it traced? Made once, at attach time, from what the note says.
 *
 * Two conditions, both must hold:
 *  mode        off nothing; user: the target begins with a user prefix (plain string prefix, as the
 *              originals) or the callsite is marked user-facing; dev everything.
 *  directives  as RUST_LOG: `level`, `target`, `target=level`, `target=off`, joined by commas. The
 *              longest target that matches on path segments (`a` matches `a` and `a::b`, not `ab`)
 *              decides; without one the bare level; without that everything. Built in, as the
 *              originals, unless named by the user: tokio=off, runtime=off.
 * Names of threads and processes, the execution id and late-recorded fields pass unless the mode is off.
 */
#ifndef MT_FILTER_H
#define MT_FILTER_H

#include "model.h"

enum mt_mode { MT_MODE_OFF, MT_MODE_USER, MT_MODE_DEV };

/*
 * off|false|0|none, user|true|1, dev|all|debug; any case, exact words (no spaces, not empty).
 * -EINVAL otherwise.
 */
int mt_mode_parse(const char *text, enum mt_mode *ret_mode);

#define MT_USER_PREFIX_DEFAULT "monarch_hyperactor::telemetry"

struct mt_filter;

struct mt_filter_opts {
	enum mt_mode mode;
	const char *const *user_prefixes; /* in addition to the default one */
	uint32_t n_user_prefixes;
	const char *directives; /* NULL or "": only the built-in ones */
	bool compat_prefix;     /* raw string prefixes instead of path segments, as the originals */
};

/*
 * Copies what it needs. -EINVAL for a bad directive: *ret_pos is then its offset in directives and
 * *ret_why a static text. ret_pos and ret_why may be NULL.
 */
int mt_filter_new(const struct mt_filter_opts *opts, struct mt_filter **ret_filter, size_t *ret_pos,
		  const char **ret_why);
void mt_filter_free(struct mt_filter *f);

enum mt_verdict_rule {
	MT_RULE_PASS,
	MT_RULE_MODE_OFF,
	MT_RULE_MODE_USER, /* mode user, and the callsite is not user-facing */
	MT_RULE_DIRECTIVE, /* ret_text is the directive */
};

/*
 * True if cs is traced. *ret_rule says which rule decided; *ret_text (valid as long as f) is the
 * directive that matched, "" if none. Both may be NULL.
 */
bool mt_filter_verdict(const struct mt_filter *f, const struct mt_callsite *cs,
		       enum mt_verdict_rule *ret_rule, const char **ret_text);

/* True if cs is user-facing for this filter, whatever the mode. */
bool mt_filter_user_facing(const struct mt_filter *f, const struct mt_callsite *cs);

#endif
