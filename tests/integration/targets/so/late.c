/* SPDX-License-Identifier: BSD-3-Clause */
/* A library with a callsite of its own, to be loaded late. */
#include "montrace.h"

void late_work(long i);
void late_work(long i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "late", MT_I64("i", i));
}

int late_armed(void);
int late_armed(void)
{
	/* A callsite that is looked at, not fired: is this library armed? */
	const struct montrace__cs *c;

	MT__SITE(c, MONTRACE_CLASS_EVENT, MONTRACE_INFO, MT__FLAGS(0), 4242, (MT__PROBES_ONE("event")),
		 "never");
	return MT__ARMED(c);
}
