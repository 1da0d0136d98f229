/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans and events of several targets, one of them user-facing by its target. `ready PID`, a line, `done`. */
#include "montrace.h"

#include <stdio.h>
#include <unistd.h>

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "naming"
static void naming_plain(void)
{
	MONTRACE_SCOPE("span", MT_STR("name", "given name"));
	MONTRACE_EVENT(MONTRACE_INFO, "event", MT_STR("message", "given message"));
}
#undef MONTRACE_TARGET
#define MONTRACE_TARGET "monarch_hyperactor::telemetry::endpoint"
static void naming_endpoint(void)
{
	MONTRACE_SCOPE("call", MT_STR("mesh", "mesh"), MT_STR("method", "method"));
}

int main(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	naming_plain();
	naming_endpoint();
	printf("done\n");
	fflush(stdout);
	wait_line();
	return 0;
}
