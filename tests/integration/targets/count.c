/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fires a known number of hits: `count THREADS HITS [spin]`: each thread fires HITS events in all, every
 * eighth pair of them as a scope (two hits). Prints `ready PID`, waits for a line, fires, prints what it
 * fired (hits=, events=, scopes=), waits for a line, exits with 0.
 * With `spin` it goes on until a line comes, and prints the counts then.
 */
#include "montrace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct work {
	pthread_t thread;
	long hits, events, scopes;
};

static long per_thread;
static int spin;
static volatile int stop;

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void fire_scope(struct work *w, long i)
{
	MONTRACE_SCOPE("scope", MT(i));
	w->scopes++;
	w->hits += 2;
}

static void *run(void *arg)
{
	struct work *w = arg;
	long i;

	for (i = 0; spin ? !stop : w->hits < per_thread; i++) {
		if (i % 8 == 7 && per_thread - w->hits >= 2) {
			fire_scope(w, i);
		} else {
			MONTRACE_EVENT(MONTRACE_INFO, "event", MT(i));
			w->events++;
			w->hits++;
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, i;
	struct work *w = calloc((size_t)n, sizeof(*w));
	long hits = 0, events = 0, scopes = 0;

	per_thread = argc > 2 ? atol(argv[2]) : 1000;
	spin = argc > 3 && !strcmp(argv[3], "spin");
	if (!w)
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	for (i = 0; i < n; i++)
		if (pthread_create(&w[i].thread, NULL, run, &w[i]))
			return 1;
	if (spin) {
		wait_line();
		stop = 1;
	}
	for (i = 0; i < n; i++) {
		pthread_join(w[i].thread, NULL);
		hits += w[i].hits;
		events += w[i].events;
		scopes += w[i].scopes;
	}
	printf("hits=%ld\nevents=%ld\nscopes=%ld\ndone\n", hits, events, scopes);
	fflush(stdout);
	wait_line();
	return 0;
}
