/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * keyed N THREADS [LOOPS [PAUSE_MS]]: N requests open at once, as in a server with an event loop. Provider `k`:
 *
 *   req__start(id, name), req__done(id, result)     id 1 .. N; name "/p<id>", result 3 * id
 *   txt__start(name, id), txt__done(name)           found by the text alone
 *   nest__start(id), nest__done(id)                 one inside the other, 8 deep
 *   val(n, double, float)                           for predicates
 *
 * Prints `ready PID`; at a line begins all N on its first thread, ends them in another order, by turns on its threads;
 * prints the threads' numbers (tid0 ...), and with LOOPS (0: none) the ns per nest and req pair; `open` after the begins of 3 more,
 * one of them twice; with PAUSE_MS it waits that long while all are open; at the next line ends the last one, prints `done`, waits for the end of input.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NOTE(name, args)                                                                                \
	"990: nop\n"                                                                                    \
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"           \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte 0\n.8byte 0\n.asciz \"k\"\n" \
	".asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")
#elif defined(__aarch64__)
#define NOTE(name, args)                                                                                \
	"990: nop\n"                                                                                    \
	".pushsection .note.stapsdt,\"\",%%note\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"             \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte 0\n.8byte 0\n.asciz \"k\"\n" \
	".asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")
#endif

/* r: a register, m: memory of 8 bytes. */
__attribute__((noinline)) static void req_start(long id, const char *name)
{
	FIRE("req__start", "8@%0 8@%1", "r"(id), "r"(name));
}

__attribute__((noinline)) static void req_done(long id, long result)
{
	FIRE("req__done", "8@%0 -8@%1", "r"(id), "r"(result));
}

__attribute__((noinline)) static void txt_start(const char *name, long id)
{
	FIRE("txt__start", "8@%0 8@%1", "r"(name), "r"(id));
}

__attribute__((noinline)) static void txt_done(const char *name)
{
	FIRE("txt__done", "8@%0", "r"(name));
}

__attribute__((noinline)) static void nest_start(long id)
{
	FIRE("nest__start", "8@%0", "r"(id));
}

__attribute__((noinline)) static void nest_done(long id)
{
	FIRE("nest__done", "8@%0", "r"(id));
}

__attribute__((noinline)) static void val(long n, const double *d, const float *f)
{
	uint64_t d_bits;
	uint32_t f_bits;

	memcpy(&d_bits, d, 8);
	memcpy(&f_bits, f, 4);
#if defined(__x86_64__)
	FIRE("val", "-8@%0 8f@%1 4f@%k2", "r"(n), "r"(d_bits), "r"(f_bits));
#else
	FIRE("val", "-8@%0 8f@%1 4f@%w2", "r"(n), "r"(d_bits), "r"(f_bits));
#endif
}

static long n, nthreads;
static char (*names)[80];

static long order(long i) /* a permutation of 1 .. n */
{
	return (i * 7 + 3) % n + 1;
}

struct part {
	pthread_t thread;
	long number;
	int tid;
};

static void *ends(void *arg)
{
	struct part *part = arg;

	part->tid = gettid();
	for (long i = part->number; i < n; i += nthreads) {
		req_done(order(i), 3 * order(i));
		txt_done(names[order(i)]);
	}
	return NULL;
}

static void values(void)
{
	static const double d[] = {-1e300, -2.5, -0.0, 0.0, 1.5, 2.5, 1e300};

	for (long i = 0; i < 7; i++) {
		float f = (float)d[i];

		val(i, &d[i], &f);
	}
	val(7, &(double){__builtin_nan("")}, &(float){__builtin_nanf("")});
}

static double ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* As many of one as of the other; of the keyed ones n are open all the time. */
static void loops(long count)
{
	double start = ns(), mid;
	long i, k;

	for (i = 0; i < count; i += 8) {
		for (k = 0; k < 8; k++)
			nest_start(k);
		for (k = 8; k-- > 0;)
			nest_done(k);
	}
	mid = ns();
	for (i = 1; i <= n; i++)
		req_start(i, names[1]);
	for (i = 1; i <= count; i++) {
		req_done(i, i);
		req_start(i + n, names[1]);
	}
	printf("nest_ns=%ld\nkeyed_ns=%ld\n", (long)((mid - start) / (double)count),
	       (long)((ns() - mid) / (double)(count + n)));
	for (i = count + 1; i <= count + n; i++)
		req_done(i, i);
}

int main(int argc, char **argv)
{
	struct part parts[64];
	char c;
	long i;

	n = argc > 1 ? atol(argv[1]) : 1000;
	nthreads = argc > 2 ? atol(argv[2]) : 1;
	names = calloc((size_t)n + 1, sizeof(*names));
	if (!names || nthreads < 1 || nthreads > 64 || n < 8 || n % 7 == 0)
		return 1;
	for (i = 1; i <= n; i++)
		snprintf(names[i], sizeof(names[i]), "/p%ld", i);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &c, 1) != 1 || read(0, &c, 1) != 1)
		return 1;
	for (i = 1; i <= n; i++) {
		req_start(i, names[i]);
		txt_start(names[i], i);
	}
	if (argc > 4)
		usleep((useconds_t)atol(argv[4]) * 1000);
	for (i = 1; i < nthreads; i++) {
		parts[i].number = i;
		if (pthread_create(&parts[i].thread, NULL, ends, &parts[i]))
			return 1;
	}
	parts[0].number = 0;
	ends(&parts[0]);
	for (i = 1; i < nthreads; i++)
		pthread_join(parts[i].thread, NULL);
	for (i = 0; i < nthreads; i++)
		printf("tid%ld=%d\n", i, parts[i].tid);
	values();
	if (argc > 3 && atol(argv[3]))
		loops(atol(argv[3]));
	req_done(n + 100, 0); /* nobody began it */
	for (i = 1; i <= 3; i++)
		req_start(n + i, names[1]);
	req_start(n + 1, names[2]); /* again */
	printf("open\n");
	fflush(stdout);
	if (read(0, &c, 1) != 1)
		return 0;
	req_done(n + 3, 9);
	printf("done\n");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
