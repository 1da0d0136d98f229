/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans that live longer than they are entered: `lives N`: N spans made on the main thread, all alive at once,
 * each entered twice (once on another thread), closed in order of creation; then N more one after the other; one
 * is never closed. Prints `ready PID`, waits for a line, runs, prints spans=, done, waits for a line.
 */
#include "montrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct montrace_span *spans;
static int n;

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void *elsewhere(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < n; i++) {
		montrace_enter(&spans[i]);
		montrace_exit(&spans[i]);
	}
	return NULL;
}

static void one_after_the_other(int i)
{
	struct montrace_span s;

	MONTRACE_SPAN(&s, MONTRACE_INFO, "short life", MT(i));
	montrace_enter(&s);
	montrace_exit(&s);
	montrace_close(&s);
}

int main(int argc, char **argv)
{
	struct montrace_span open;
	pthread_t t;
	int i;

	n = argc > 1 ? atoi(argv[1]) : 10;
	spans = calloc((size_t)n, sizeof(*spans));
	if (!spans)
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	for (i = 0; i < n; i++) {
		MONTRACE_SPAN(&spans[i], MONTRACE_INFO, "long life", MT(i));
		montrace_enter(&spans[i]);
		montrace_exit(&spans[i]);
	}
	if (pthread_create(&t, NULL, elsewhere, NULL))
		return 1;
	pthread_join(t, NULL);
	for (i = 0; i < n; i++)
		montrace_close(&spans[i]);
	for (i = 0; i < n; i++)
		one_after_the_other(i);
	MONTRACE_SPAN(&open, MONTRACE_INFO, "never closed");
	printf("spans=%d\ndone\n", 2 * n + 1);
	fflush(stdout);
	wait_line();
	free(spans);
	return 0;
}
