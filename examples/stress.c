/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One callsite hit again and again, timed by the program itself.
 *   stress --mode scope3|scope0|event3|counter|paced|none [--count N] [--rate N] [--wait] [--hold]
 * Prints `mode=`, `count=` and `ns=`: nanoseconds an iteration (paced: of the hit alone, without the pause;
 * none: the empty loop).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "montrace.h"
#include "example.h"

/* One turn each, not inlined: the loop is the same for all. */
#define TURN static __attribute__((noinline)) void

TURN none(long i)
{
	__asm__ __volatile__("" : : "r"(i));
}

TURN scope3(long i)
{
	MONTRACE_SCOPE("scope3", MT_I64("i", i), MT_U64("twice", i * 2), MT_STR("text", "sixteen bytes ok"));
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

static long long paced(long count, long rate)
{
	long long sum = 0, next = example_ns(), pause = 1000000000LL / (rate ? rate : 5000);

	for (long i = 0; i < count; i++) {
		long long t = example_ns();
		struct timespec at;

		event3(i);
		sum += example_ns() - t;
		next += pause;
		at.tv_sec = next / 1000000000;
		at.tv_nsec = next % 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return sum;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*turn)(long);
	} modes[] = {{"scope3", scope3},   {"scope0", scope0}, {"event3", event3},
		     {"counter", counter}, {"none", none},     {"paced", NULL}};
	const char *usage = "stress --mode scope3|scope0|event3|counter|paced|none [--count N] [--rate N] "
			    "[--wait] [--hold]\n";
	struct example o = {.mode = "scope3", .count = 1000000};
	size_t n = sizeof(modes) / sizeof(*modes), m = 0;
	long long t;

	example_options(&o, argc, argv, usage);
	while (m < n && strcmp(o.mode, modes[m].name))
		m++;
	if (m == n || !o.count)
		example_usage(usage);
	example_start(&o);
	if (modes[m].turn) {
		void (*volatile turn)(long) = modes[m].turn;

		t = example_ns();
		for (long i = 0; i < o.count; i++)
			turn(i);
		t = example_ns() - t;
	} else {
		t = paced(o.count, o.rate);
	}
	printf("mode=%s\ncount=%ld\nns=%.2f\n", o.mode, o.count, (double)t / (double)o.count);
	example_end(&o);
	return 0;
}
