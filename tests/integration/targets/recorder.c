/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the flight recorder is for. Prints `ready PID`, waits for a line, then:
 *   recorder jobs N EVENTS   N subjects `job I` that keep 8 events each, EVENTS events in each; then it is stuck
 *                            in `handle`, `query`, `lock` below `job 0`, and a second thread in `handle` too
 *   recorder slow N          N times `work`, every third one takes 60 ms, the others 1 ms; prints slow=
 *   recorder load HOW        4 threads at full rate in nested spans; a line later the main thread says its last
 *                            words in `inner` below `outer` below the subject `load`, and dies: kill segv abort
 *                            exit3; or `spin`: goes on until a line comes, prints hits=
 *   recorder steps X         does what each line says: `reply CODE` is an event of level info, `fail` one of level error,
 *                            `begin` enters the span `hang`, `end` leaves it; answers `did=N`
 */
#include "montrace.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int stop;
static long hits[4];

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

static void *second(void *arg)
{
	montrace_enter(arg);
	pause();
	return NULL;
}

static void stuck(struct montrace_span *job)
{
	static struct montrace_span handle;
	pthread_t t;

	montrace_enter(job);
	MONTRACE_SPAN(&handle, MONTRACE_INFO, "handle");
	montrace_enter(&handle);
	pthread_create(&t, NULL, second, &handle);
	MONTRACE_SCOPE("query", MT_STR("table", "users"));
	MONTRACE_SCOPE("lock");
	printf("stuck=1\ndone\n");
	fflush(stdout);
	wait_line();
	_exit(0);
}

static void jobs(int n, int events)
{
	struct montrace_span *v = calloc((size_t)n, sizeof(*v));
	char name[32];
	int i, k;

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "job %d", i);
		MONTRACE_RECORDING(&v[i], name, 8);
		montrace_enter(&v[i]);
		for (k = 0; k < events; k++)
			MONTRACE_EVENT(MONTRACE_WARN, "step", MT(k), MT_STR("esc", "\033[31mred"));
		montrace_exit(&v[i]);
	}
	MONTRACE_EVENT(MONTRACE_INFO, "outside");
	stuck(&v[0]);
}

static void work(int i, int ms)
{
	MONTRACE_SCOPE("work", MT(i));
	usleep((useconds_t)ms * 1000);
}

static void slow(int n)
{
	int i, count = 0;

	for (i = 0; i < n; i++) {
		work(i, i % 3 == 2 ? 60 : 1);
		count += i % 3 == 2;
		usleep(120000);
	}
	printf("slow=%d\ndone\n", count);
	fflush(stdout);
	wait_line();
}

static void *load(void *arg)
{
	long i, *n = arg;

	for (i = 0; !stop; i++) {
		MONTRACE_SCOPE("request", MT(i));
		MONTRACE_SCOPE("step");
		MONTRACE_EVENT(MONTRACE_INFO, "tick", MT(i));
		*n += 5;
	}
	return NULL;
}

static void die(const char *how)
{
	volatile uintptr_t nowhere = 8;

	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	else if (!strcmp(how, "segv"))
		*(volatile int *)nowhere = 1;
	else if (!strcmp(how, "abort"))
		abort();
	_exit(3);
}

static void under_load(const char *how)
{
	struct montrace_span job;
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, load, &hits[i]);
	wait_line();
	if (!strcmp(how, "spin")) {
		stop = 1;
		for (i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
		printf("hits=%ld\ndone\n", hits[0] + hits[1] + hits[2] + hits[3]);
		fflush(stdout);
		wait_line();
		return;
	}
	MONTRACE_RECORDING(&job, "load", 64);
	montrace_enter(&job);
	for (i = 0; i < 100; i++)
		MONTRACE_EVENT(MONTRACE_INFO, "before", MT(i));
	MONTRACE_SCOPE("outer");
	MONTRACE_SCOPE("inner");
	MONTRACE_EVENT(MONTRACE_ERROR, "last words");
	die(how);
}

static void steps(void)
{
	struct montrace_span hang;
	char text[64];
	int n = 0;

	while (fgets(text, sizeof(text), stdin)) {
		if (!strncmp(text, "reply ", 6))
			MONTRACE_EVENT(MONTRACE_INFO, "reply", MT_I64("code", atoi(text + 6)));
		else if (!strncmp(text, "fail", 4))
			MONTRACE_EVENT(MONTRACE_ERROR, "failed");
		else if (!strncmp(text, "begin", 5)) {
			MONTRACE_SPAN(&hang, MONTRACE_INFO, "hang", MT(n));
			montrace_enter(&hang);
		} else if (!strncmp(text, "end", 3)) {
			montrace_exit(&hang);
			montrace_close(&hang);
		}
		printf("did=%d\ndone\n", ++n);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	if (!strcmp(argv[1], "jobs"))
		jobs(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 20);
	else if (!strcmp(argv[1], "steps"))
		steps();
	else if (!strcmp(argv[1], "slow"))
		slow(atoi(argv[2]));
	else
		under_load(argv[2]);
	return 0;
}
