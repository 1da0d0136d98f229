/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of same.c and sub/same.c, two files of one base name; and what both inline. */
#ifndef MT_TEST_SAME_H
#define MT_TEST_SAME_H
#include "montrace.h"
int same_one(void);
int same_two(void);

static inline __attribute__((always_inline)) void twice(int x)
{
	/* @event info "twice" - x:i64 */
	MONTRACE_EVENT(MONTRACE_INFO, "twice", MT(x));
}

static inline void unrolled(int n)
{
	for (int i = 0; i < n; i++) {
		/* @scope info "unrolled" - i:i64 */
		MONTRACE_SCOPE("unrolled", MT(i));
		if (i == 1000)
			return;
	}
}
#endif
