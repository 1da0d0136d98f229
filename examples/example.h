/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples share: options and the meeting with whoever watches them.
 *   --wait  print `ready PID`, wait for a line on stdin, then start
 *   --hold  when all is done and printed, print `done` and wait for a line before the end
 */
#ifndef MT_EXAMPLE_H
#define MT_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct example {
	const char *mode;
	long threads, count, rate, rounds, batch;
	int wait, hold, loop, hostile;
};

static inline void example_usage(const char *text)
{
	fprintf(stderr, "usage: %s", text);
	exit(2);
}

static inline void example_options(struct example *o, int argc, char **argv, const char *usage)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i];
		const struct {
			const char *name;
			long *value;
		} numbers[] = {{"--threads", &o->threads},
			       {"--count", &o->count},
			       {"--rate", &o->rate},
			       {"--rounds", &o->rounds},
			       {"--batch", &o->batch}};
		const struct {
			const char *name;
			int *value;
		} flags[] = {{"--wait", &o->wait},
			     {"--wait-armed", &o->wait},
			     {"--hold", &o->hold},
			     {"--loop", &o->loop},
			     {"--hostile-values", &o->hostile}};
		size_t n = sizeof(numbers) / sizeof(*numbers), f = sizeof(flags) / sizeof(*flags), k;
		char *end;

		for (k = 0; k < f && strcmp(a, flags[k].name); k++)
			;
		if (k < f) {
			*flags[k].value = 1;
			continue;
		}
		if (!strcmp(a, "--mode") && i + 1 < argc) {
			o->mode = argv[++i];
			continue;
		}
		for (k = 0; k < n && strcmp(a, numbers[k].name); k++)
			;
		if (k == n || i + 1 == argc)
			example_usage(usage);
		*numbers[k].value = strtol(argv[++i], &end, 10);
		if (*end || *numbers[k].value < 0)
			example_usage(usage);
	}
}

static inline void example_line(void)
{
	int c;

	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

static inline void example_start(const struct example *o)
{
	if (!o->wait)
		return;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	example_line();
}

static inline void example_end(const struct example *o)
{
	fflush(stdout);
	if (!o->hold)
		return;
	puts("done");
	fflush(stdout);
	example_line();
}

static inline long long example_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}
#endif
