/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that knows what it did, also when it is dead: `endure FILE THREADS`. FILE is mapped and shared: for each
 * thread {events surely fired, hits surely fired}, 8 bytes each.
 * Prints `ready PID`, waits for a line; then the threads run at full rate: `outer`, open all the time, and in it again
 * and again `request`, `step`, event `tick`. Names and a counter are told once, at the start, and none runs before
 * all have told them: so also a buffer that holds next to nothing has room for them. Then lines:
 *   segv abort exit3   dies of it, in the main thread
 *   stop               ends the threads, prints hits=, waits for one more line, ends
 */
#include "montrace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS_MAX 64

struct truth {
	volatile uint64_t events, hits;
};

struct work {
	pthread_t thread;
	unsigned no;
	struct truth *truth;
	pthread_barrier_t *told;
};

static volatile int stop;

static void turn(struct truth *t, uint64_t i)
{
	MONTRACE_SCOPE("request", MT(i));
	MONTRACE_SCOPE("step");
	MONTRACE_EVENT(MONTRACE_INFO, "tick", MT(i));
	__atomic_store_n(&t->events, i + 1, __ATOMIC_RELEASE);
}

static void *run(void *arg)
{
	struct work *w = arg;
	char name[64];
	uint64_t i;

	snprintf(name, sizeof(name), "worker %u with a long name", w->no);
	montrace_thread_name(name);
	MONTRACE_COUNTER("once", 40 + (int64_t)w->no);
	MONTRACE_SCOPE("outer", MT_U64("no", w->no));
	pthread_barrier_wait(w->told);
	for (i = 0; !stop; i++) {
		turn(w->truth, i);
		w->truth->hits += 5;
	}
	return NULL;
}

static void line(char *text, size_t cap)
{
	size_t n = 0;
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		if (n + 1 < cap)
			text[n++] = c;
	text[n] = 0;
}

int main(int argc, char **argv)
{
	static struct work works[THREADS_MAX];
	volatile uintptr_t nowhere = 8;
	pthread_barrier_t told;
	unsigned n, i;
	struct truth *truth;
	uint64_t hits = 0;
	char text[32];
	int fd;

	if (argc < 3 || (n = (unsigned)atoi(argv[2])) < 1 || n > THREADS_MAX)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)(n * sizeof(*truth))))
		return 2;
	truth = mmap(NULL, n * sizeof(*truth), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (truth == MAP_FAILED)
		return 2;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	line(text, sizeof(text));
	pthread_barrier_init(&told, NULL, n);
	for (i = 0; i < n; i++) {
		works[i] = (struct work){.no = i, .truth = &truth[i], .told = &told};
		pthread_create(&works[i].thread, NULL, run, &works[i]);
	}
	line(text, sizeof(text));
	if (!strcmp(text, "segv"))
		*(volatile int *)nowhere = 1;
	else if (!strcmp(text, "abort"))
		abort();
	else if (!strcmp(text, "exit3"))
		_exit(3);
	stop = 1;
	for (i = 0; i < n; i++) {
		pthread_join(works[i].thread, NULL);
		hits += truth[i].hits;
	}
	printf("hits=%llu\ndone\n", (unsigned long long)hits);
	fflush(stdout);
	line(text, sizeof(text));
	return 0;
}
