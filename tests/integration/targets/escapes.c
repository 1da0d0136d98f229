/* SPDX-License-Identifier: BSD-3-Clause */
/* Terminal escapes wherever a text goes: names of process and thread, messages, fields. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "montrace.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ESCAPE "\033[31m\033]0;owned\007\r\n\b\177\302\233"

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void fire(void)
{
	MONTRACE_SCOPE("scope", MT_STR("name", ESCAPE "span"), MT_STR("field", ESCAPE));
	MONTRACE_LOG(MONTRACE_INFO, "%s", ESCAPE "message");
}

int main(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	prctl(PR_SET_NAME, ESCAPE);
	montrace_thread_name(ESCAPE "thread");
	montrace_process_name(ESCAPE "process");
	montrace_execution_id(ESCAPE "execution");
	fire();
	printf("done\n");
	fflush(stdout);
	wait_line();
	return 0;
}
