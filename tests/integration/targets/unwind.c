/* SPDX-License-Identifier: BSD-3-Clause */
/* One event, three calls deep, for who looks at the stack in it. */
#include "montrace.h"

#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) static int inner(int i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "here", MT(i), MT_STR("text", "text"));
	return i + 1;
}

__attribute__((noinline)) static int outer(int i)
{
	return inner(i + 1) + 2;
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	return outer(argc) == 0;
}
