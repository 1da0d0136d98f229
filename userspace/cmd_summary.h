/* SPDX-License-Identifier: BSD-3-Clause */
/* `montrace-bpf summary FILE [--json]`: what is in a trace, in numbers. */
#ifndef MT_CMD_SUMMARY_H
#define MT_CMD_SUMMARY_H

#include <stdio.h>

enum mt_summary_flags {
	MT_SUMMARY_JSON = 1,
	MT_SUMMARY_ALL = 2, /* all rows, not the first 200 of each kind */
};

/*
 * For each span name: count, total, self (total less the slices directly inside), min, p50, p99, max
 * (exact, nearest rank), sorted by total; open slices are counted apart and have no duration. Then
 * instants by name, counters (last, min, max), threads, losses, and how the file ends.
 * Instants of one source location that have more than 16 different names are messages: they are one row, with
 * the location and the number of different texts.
 *
 * MT_SUMMARY_JSON: one object a line, types trace, span, instant, counter, thread, then truncated or
 * error; times in ns. A row of messages has name null, file, line, cat and texts. What is not shown is told
 * by {"type":"not_shown","of":"span","rows":n}.
 *
 * Returns as mt_dump().
 */
int mt_summary(FILE *out, int fd, const char *name, unsigned flags);

#endif
