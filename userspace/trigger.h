/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When to take a snapshot by itself: conditions as text, a sink that watches for them, and the rules for
 * how often.
 *
 *   span NAME > 50ms             a slice of a span takes longer (also >=); ns us ms s
 *   event level >= error         (also = > !=)
 *   event NAME                   it happened
 *   event NAME FIELD OP VALUE    ... with this field; OP is = != > >= < <= or ~ (VALUE is a pattern)
 *   lost > 0                     so many hits were lost since it last fired (also >=)
 *
 * NAME is a pattern (* and ?), matched against the static and the displayed name. What has spaces or begins
 * with an operator is put in double quotes; \" and \\ stand for themselves there.
 */
#ifndef MT_TRIGGER_H
#define MT_TRIGGER_H

#include "sink.h"

struct mt_trigger;

/*
 * -EINVAL: *ret_pos is the offset of what is wrong, *ret_why a static text (both may be NULL). -E2BIG: longer
 * than MT_TRIGGER_MAX.
 */
#define MT_TRIGGER_MAX 1024
int mt_trigger_parse(const char *text, struct mt_trigger **ret_trigger, size_t *ret_pos,
		     const char **ret_why);
void mt_trigger_free(struct mt_trigger *t);
const char *mt_trigger_text(const struct mt_trigger *t); /* as given */

/* The conditions one by one. */
bool mt_trigger_wants_span(const struct mt_trigger *t, const struct mt_callsite *cs, struct mt_str name);
bool mt_trigger_duration(const struct mt_trigger *t, uint64_t ns);
bool mt_trigger_instant(const struct mt_trigger *t, const struct mt_instant *i);
bool mt_trigger_lost(struct mt_trigger *t, uint64_t count); /* adds up; starts again when it fires */

/* Called in the middle of a sink call: only note it. text: the trigger and what met it, one line. */
typedef void (*mt_trigger_cb)(void *ctx, const struct mt_trigger *t, const char *text, uint64_t time);

struct mt_trigger_stats {
	uint64_t fired;
	uint64_t forgotten; /* slices not timed: more than max_open open ones that a condition wants */
};

/*
 * A sink that watches. Takes over the triggers (not the array) unless it fails. max_open: 0 = 65,536. A slice that
 * is open for too long is found by flush(), and its end then meets nothing. Freed by its ops->free.
 */
int mt_trigger_sink_new(struct mt_trigger *const *triggers, unsigned n, uint32_t max_open, mt_trigger_cb cb,
			void *ctx, struct mt_sink **ret_sink);
void mt_trigger_sink_stats(const struct mt_sink *s, struct mt_trigger_stats *ret_stats);

/* ---- how often ---- */

/*
 * Logic only: the caller brings the time (any clock that does not run back, ns). A condition that is met
 * starts a snapshot `after_ns` later, so that it shows what followed; until it is taken, more of them change
 * nothing. Then there is none for cooldown_ns, and never more than max (0 = no limit). Asked-for ones do not
 * count.
 */
struct mt_policy {
	uint64_t after_ns, cooldown_ns;
	uint32_t max;
	/* state, zero at first */
	bool pending;
	uint64_t due;      /* of the pending one */
	uint64_t ready_at; /* end of the cooldown */
	uint32_t taken;
	uint64_t suppressed; /* met, but one was pending, or too soon, or max was reached */
};

/* A condition is met at now. True: a snapshot is pending from now on (remember why). */
bool mt_policy_fire(struct mt_policy *p, uint64_t now);
/* True: take the pending snapshot now; the cooldown begins. */
bool mt_policy_take(struct mt_policy *p, uint64_t now);
/* At the end of tracing: as mt_policy_take, but without waiting for the rest of after_ns. */
bool mt_policy_flush(struct mt_policy *p, uint64_t now);

#endif
