/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of options. 0, or -EINVAL: not such a value; the caller knows what to say. Those that take an err have said
 * it.
 */
#ifndef MT_OPTIONS_INT_H
#define MT_OPTIONS_INT_H

#include "options.h"

/* Fills err; -EINVAL. */
int mt_options_bad(struct mt_options_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int mt_options_time(const char *s, uint64_t *ret_ms);         /* 500ms, 10s, 10, 5m, 1h; not 0 */
int mt_options_time_or_none(const char *s, uint64_t *ret_ms); /* also 0 */
int mt_options_count(const char *s, uint32_t max, uint32_t *ret);
int mt_options_size(const char *s, uint64_t *ret); /* 64M, 512K; not 0 */
int mt_options_rotation(struct mt_options *o, const char *s);
int mt_options_naming(const char *s, enum mt_naming *ret);
int mt_options_nop5(const char *s, enum mt_nop5 *ret);
int mt_options_pids(struct mt_options *o, const char *list, struct mt_options_err *err);
int mt_options_list(const char **list, uint32_t *n, const char *arg, const char *option,
		    struct mt_options_err *err);

#endif
