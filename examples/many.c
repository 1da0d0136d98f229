/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 5,000 callsites: 10 of target many::hot, 4,990 of many::cold.
 *   many [--rounds N] [--loop] [--wait] [--hold]
 * Runs all of them N times (1), or (--loop) until it is killed. Prints `rounds=`, `events=`, `hot=`, `cold=`.
 */
#include "montrace.h"
#include "example.h"

/* clang-format off */
/* EVENT for each number with the given digits before the last one, two, three. */
#define TEN(p) EVENT(p##0) EVENT(p##1) EVENT(p##2) EVENT(p##3) EVENT(p##4) \
	EVENT(p##5) EVENT(p##6) EVENT(p##7) EVENT(p##8) EVENT(p##9)
#define HUNDRED(p) FUNCTION(p##0) FUNCTION(p##1) FUNCTION(p##2) FUNCTION(p##3) FUNCTION(p##4) \
	FUNCTION(p##5) FUNCTION(p##6) FUNCTION(p##7) FUNCTION(p##8) FUNCTION(p##9)
#define THOUSAND(p) HUNDRED(p##0) HUNDRED(p##1) HUNDRED(p##2) HUNDRED(p##3) HUNDRED(p##4) \
	HUNDRED(p##5) HUNDRED(p##6) HUNDRED(p##7) HUNDRED(p##8) HUNDRED(p##9)
/* 4,990: numbers 10000 to 14989 */
#define COLD THOUSAND(10) THOUSAND(11) THOUSAND(12) THOUSAND(13) \
	HUNDRED(140) HUNDRED(141) HUNDRED(142) HUNDRED(143) HUNDRED(144) HUNDRED(145) HUNDRED(146) HUNDRED(147) \
	HUNDRED(148) FUNCTION(1490) FUNCTION(1491) FUNCTION(1492) FUNCTION(1493) FUNCTION(1494) FUNCTION(1495) \
	FUNCTION(1496) FUNCTION(1497) FUNCTION(1498)

#define EVENT(n) MONTRACE_EVENT(MONTRACE_INFO, "event " #n, MT_I64("round", round));
#define FUNCTION(p)                             \
	static void f_##p(long round)           \
	{                                       \
		TEN(p)                          \
	}

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "many::cold"
COLD

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "many::hot"
FUNCTION(hot)

#undef FUNCTION
#define FUNCTION(p) f_##p,
static void (*const all_cold[])(long) = {COLD};
/* clang-format on */

int main(int argc, char **argv)
{
	struct example o = {.rounds = 1};
	long round, n = sizeof(all_cold) / sizeof(*all_cold);

	example_options(&o, argc, argv, "many [--rounds N] [--loop] [--wait] [--hold]\n");
	example_start(&o);
	for (round = 0; o.loop || round < o.rounds; round++) {
		f_hot(round);
		for (long i = 0; i < n; i++)
			all_cold[i](round);
		if (o.loop)
			usleep(1000);
	}
	printf("rounds=%ld\nevents=%ld\nhot=%ld\ncold=%ld\n", round, round * 5000, round * 10,
	       round * 10 * n);
	example_end(&o);
	return 0;
}
