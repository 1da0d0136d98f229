/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One callsite hit again and again, timed by the program itself.
 *   stress --mode MODE[,MODE...] [--count N] [--rounds N] [--batch N] [--rate N] [--wait] [--hold]
 * Modes: scope3, scope1, scope0, event3, counter; aside (event3 of another target, stress::aside); paced (event3,
 * --rate times a second); and to compare with: none (the empty loop), syscall (a system call that does nothing).
 *
 * Prints for each mode `mode=`, `count=`, `ns=` and `best_ns=`: nanoseconds an iteration, on average and in the
 * best batch of N iterations (500). paced: of the hit alone, without the pause, in batches of at most 20.
 * Several modes take turns, --rounds times, each with --count iterations: what disturbs one disturbs all.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/syscall.h>

#include "montrace.h"
#include "example.h"

#define PACED_BATCH 20
#define MAX_MODES 16

/* One turn each, not inlined: the loop is the same for all. */
#define TURN static __attribute__((noinline)) void

TURN none(long i)
{
	__asm__ __volatile__("" : : "r"(i));
}

TURN call(long i)
{
	(void)i;
	syscall(SYS_getppid);
}

TURN scope3(long i)
{
	MONTRACE_SCOPE("scope3", MT_I64("i", i), MT_U64("twice", i * 2), MT_STR("text", "sixteen bytes ok"));
	__asm__ __volatile__("" : : "r"(i));
}

TURN scope1(long i)
{
	MONTRACE_SCOPE("scope1", MT_I64("i", i));
	__asm__ __volatile__("" : : "r"(i));
}

TURN scope0(long i)
{
	MONTRACE_SCOPE("scope0");
	__asm__ __volatile__("" : : "r"(i));
}

TURN event3(long i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "event3", MT_I64("i", i), MT_U64("twice", i * 2),
		       MT_STR("text", "sixteen bytes ok"));
}

TURN counter(long i)
{
	MONTRACE_COUNTER("counter", i);
}

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "stress::aside"

TURN aside(long i)
{
	MONTRACE_EVENT(MONTRACE_INFO, "aside", MT_I64("i", i), MT_U64("twice", i * 2),
		       MT_STR("text", "sixteen bytes ok"));
}

struct timing {
	void (*turn)(long);
	const char *name;
	long long sum; /* ns */
	long count;
	double best; /* ns an iteration; 0 = none yet */
};

static void add(struct timing *m, long long ns, long n, long batch)
{
	double each = (double)ns / (double)n;

	m->sum += ns;
	m->count += n;
	if (n == batch && (m->best == 0 || each < m->best))
		m->best = each;
}

static void burst(struct timing *m, long count, long batch)
{
	void (*volatile turn)(long) = m->turn;

	if (batch > count)
		batch = count;
	while (count > 0) {
		long n = count < batch ? count : batch;
		long long t = example_ns();

		for (long i = 0; i < n; i++)
			turn(i);
		add(m, example_ns() - t, n, batch);
		count -= n;
	}
}

/* The pauses are slept through: the core goes idle and its caches go to others, as in a real program. */
static void paced(struct timing *m, long count, long batch, long rate)
{
	long long next = example_ns(), pause = 1000000000LL / (rate ? rate : 5000);
	void (*volatile turn)(long) = event3;

	if (batch > PACED_BATCH)
		batch = PACED_BATCH;
	if (batch > count)
		batch = count;
	while (count > 0) {
		long n = count < batch ? count : batch;
		long long sum = 0;

		for (long i = 0; i < n; i++) {
			long long t = example_ns();
			struct timespec at;

			turn(i);
			sum += example_ns() - t;
			next += pause;
			at.tv_sec = next / 1000000000;
			at.tv_nsec = next % 1000000000;
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		}
		add(m, sum, n, batch);
		count -= n;
	}
}

/* "a,b,c" -> timings; the number of them, 0 if one is unknown. */
static size_t find_modes(const char *list, struct timing *ret)
{
	static const struct timing known[] = {
		{.turn = scope3, .name = "scope3"},   {.turn = scope1, .name = "scope1"},
		{.turn = scope0, .name = "scope0"},   {.turn = event3, .name = "event3"},
		{.turn = counter, .name = "counter"}, {.turn = aside, .name = "aside"},
		{.turn = none, .name = "none"},       {.turn = call, .name = "syscall"},
		{.turn = NULL, .name = "paced"},
	};
	size_t n = 0, k;

	for (;;) {
		size_t len = strcspn(list, ",");

		for (k = 0; k < sizeof(known) / sizeof(*known); k++)
			if (strlen(known[k].name) == len && !strncmp(known[k].name, list, len))
				break;
		if (k == sizeof(known) / sizeof(*known) || n == MAX_MODES)
			return 0;
		ret[n++] = known[k];
		if (!list[len])
			return n;
		list += len + 1;
	}
}

int main(int argc, char **argv)
{
	const char *usage = "stress --mode "
			    "scope3|scope1|scope0|event3|counter|aside|paced|none|syscall[,...] [--count N] "
			    "[--rounds N] [--batch N] [--rate N] [--wait] [--hold]\n";
	struct example o = {.mode = "scope3", .count = 1000000, .rounds = 1, .batch = 500};
	struct timing modes[MAX_MODES];
	size_t n, i;

	example_options(&o, argc, argv, usage);
	n = find_modes(o.mode, modes);
	if (!n || !o.count || !o.batch || !o.rounds)
		example_usage(usage);
	example_start(&o);
	for (long round = 0; round < o.rounds; round++)
		for (i = 0; i < n; i++)
			if (modes[i].turn)
				burst(&modes[i], o.count, o.batch);
			else
				paced(&modes[i], o.count, o.batch, o.rate);
	for (i = 0; i < n; i++)
		printf("mode=%s\ncount=%ld\nns=%.2f\nbest_ns=%.2f\n", modes[i].name, modes[i].count,
		       (double)modes[i].sum / (double)modes[i].count, modes[i].best);
	example_end(&o);
	return 0;
}
