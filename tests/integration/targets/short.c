/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short life: `short ID [N [STATUS [MS]]]` waits MS milliseconds, fires N events `tick` (fields id, pid, i) and one scope `life`
 * (N + 2 hits), and ends with STATUS.
 */
#include "montrace.h"

#include <stdlib.h>
#include <unistd.h>

static void live(long id, long n)
{
	MONTRACE_SCOPE("life", MT_I64("id", id), MT_I64("pid", getpid()));
	long i;

	for (i = 0; i < n; i++)
		MONTRACE_EVENT(MONTRACE_INFO, "tick", MT_I64("id", id), MT_I64("pid", getpid()),
			       MT_I64("i", i));
}

int main(int argc, char **argv)
{
	if (argc > 4)
		usleep((unsigned)atoi(argv[4]) * 1000);
	live(argc > 1 ? atol(argv[1]) : 0, argc > 2 ? atol(argv[2]) : 5);
	return argc > 3 ? atoi(argv[3]) : 0;
}
