/* SPDX-License-Identifier: BSD-3-Clause */
/* The worked example of docs/parity.md: one span, one event in it. */
#define MONTRACE_TARGET "T"
#include "montrace.h"

#include <stdio.h>
#include <unistd.h>

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

int main(void)
{
	struct montrace_span s;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	MONTRACE_SPAN(&s, MONTRACE_INFO, "outer", MT_I64("a", 1));
	montrace_enter(&s);
	MONTRACE_LOG(MONTRACE_INFO, "hi");
	montrace_exit(&s);
	montrace_close(&s);
	printf("done\n");
	fflush(stdout);
	wait_line();
	return 0;
}
