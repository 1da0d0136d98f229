/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dies in the middle of nested spans: `die kill|segv|abort|exit3|return [spans before]`. Prints `ready PID`,
 * waits for a line, opens and closes N spans, then opens `outer` and `inner`, fires `last words`, and dies.
 */
#include "montrace.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(const char *how)
{
	volatile uintptr_t nowhere = 8;

	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	else if (!strcmp(how, "segv"))
		*(volatile int *)nowhere = 1;
	else if (!strcmp(how, "abort"))
		abort();
	else if (!strcmp(how, "exit3"))
		_exit(3);
}

static void before(int i)
{
	/* 64 bytes without the ids: as much as goes in registers */
	MONTRACE_SCOPE("before", MT(i), MT_I64("b", i + 10), MT_I64("c", i + 20), MT_I64("d", i + 30),
		       MT_I64("e", i + 40));
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 10, i;
	char c;

	if (argc < 2)
		return 2;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(0, &c, 1) == 1 && c != '\n')
		;
	for (i = 0; i < n; i++)
		before(i);
	{
		MONTRACE_SCOPE("outer");
		MONTRACE_SCOPE("inner", MT_I64("depth", 2));
		MONTRACE_EVENT(MONTRACE_ERROR, "last words");
		die(argv[1]);
	}
	return 0;
}
