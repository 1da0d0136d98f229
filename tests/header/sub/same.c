/* SPDX-License-Identifier: BSD-3-Clause */
#define MONTRACE_TARGET "two"
#include "../same.h"

static int helper(int x)
{
	/* @event info "same file" two x:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "same file", MT(x));
	return x;
}

int same_two(void)
{
	return helper(2);
}
