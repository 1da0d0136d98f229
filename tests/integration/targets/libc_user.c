/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does what the C library's own probes tell of, so often, and says it; `ready PID`, waits for a line, does it, prints
 * NAME=HOW_OFTEN lines and `done`, waits for one more line.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { JUMPS = 7, THREADS = 5, SIGNALS = 4, BROADCASTS = 3, LOADS = 2 };

static void *run(void *arg)
{
	return arg;
}

static void jumps(void)
{
	volatile int i;
	jmp_buf b;

	for (i = 0; i < JUMPS; i++)
		if (!setjmp(b))
			longjmp(b, 3 + i);
	printf("longjmp=%d\njump_from=%p\n", JUMPS, (void *)&b);
}

static void threads(void)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	pthread_t t;
	int i;

	for (i = 0; i < THREADS; i++)
		if (pthread_create(&t, NULL, run, (void *)(size_t)(40 + i)) || pthread_join(t, NULL))
			exit(3);
	for (i = 0; i < SIGNALS; i++)
		pthread_cond_signal(&cond);
	for (i = 0; i < BROADCASTS; i++)
		pthread_cond_broadcast(&cond);
	printf("pthread_create=%d\npthread_start=%d\npthread_join=%d\n", THREADS, THREADS, THREADS);
	printf("cond_signal=%d\ncond_broadcast=%d\nfunction=%p\ncond=%p\n", SIGNALS, BROADCASTS, (void *)run,
	       (void *)&cond);
}

int main(void)
{
	char c;
	int i;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 2;
	jumps();
	threads();
	mallopt(M_TRIM_THRESHOLD, 123456);
	for (i = 0; i < LOADS; i++) {
		void *h = dlopen("libm.so.6", RTLD_NOW);

		if (!h || dlclose(h))
			return 3;
	}
	printf("mallopt=1\nld.so map=%d\nld.so unmap=%d\ndone\n", LOADS, LOADS);
	fflush(stdout);
	return read(0, &c, 1) == 1 ? 0 : 2;
}
