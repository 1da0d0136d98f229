/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of cmd_summary: cmd_summary.c counts, _out.c writes. */
#ifndef MT_CMD_SUMMARY_INT_H
#define MT_CMD_SUMMARY_INT_H

#include "timeline_text.h"

struct summary_span {
	uint32_t name;
	uint64_t count; /* ended ones */
	uint64_t open;
	uint64_t total, self, min, p50, p99, max;
	uint64_t first; /* of its durations */
};

#define SUMMARY_ROWS 200u /* of each kind, unless all are asked for */
#define SUMMARY_NAMES 16u /* different names that a location may have before it is one row */

/* By name or, texts not 0, of one location. */
struct summary_instant {
	uint32_t name;
	uint32_t file, line, cat;
	uint32_t texts; /* different names */
	uint64_t count;
};

struct summary_counter {
	uint32_t track;
	uint64_t count;
	bool is_double;
	int64_t last_i, min_i, max_i;
	double last_d, min_d, max_d;
};

struct summary_thread {
	uint32_t track;
	uint64_t slices, instants;
};

struct summary {
	const struct mt_timeline *tl;
	struct summary_span *spans;
	uint32_t nspans;
	struct summary_instant *instants;
	uint32_t ninstants;
	struct summary_counter *counters;
	uint32_t ncounters;
	struct summary_thread *threads; /* that have events */
	uint32_t nthreads;
	uint32_t processes, described_threads;
	uint32_t rows; /* at most, of each kind */
};

void summary_text(FILE *out, const struct summary *s, const char *name);
void summary_json(FILE *out, const struct summary *s);

#endif
