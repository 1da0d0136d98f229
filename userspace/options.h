/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argv -> struct mt_options. No I/O, no globals; the struct points into argv.
 */
#ifndef MT_OPTIONS_H
#define MT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "features.h"
#include "filter.h"
#include "flight.h"
#include "log.h"
#include "spans.h"

enum mt_command {
	MT_CMD_RECORD,
	MT_CMD_LIST,
	MT_CMD_DUMP,
	MT_CMD_SUMMARY,
	MT_CMD_MERGE,
	MT_CMD_TAIL,
	MT_CMD_STACKS,
	MT_CMD_SNAPSHOT,
	MT_CMD_STATUS,
	MT_CMD_HELP,
	MT_CMD_VERSION,
};

#define MT_MAX_PIDS 1024
#define MT_MAX_LIST 64
#define MT_MAX_USDT 1024

struct mt_options {
	enum mt_command command;
	enum mt_log_level verbosity;

	/* what to trace */
	uint32_t pids[MT_MAX_PIDS];
	uint32_t npids;
	const char *binaries[MT_MAX_LIST]; /* --all */
	uint32_t nbinaries;
	const char *comms[MT_MAX_LIST]; /* --comm */
	uint32_t ncomms;
	char **argv; /* -- COMMAND ARGS...; NULL: none */
	bool follow, follow_given;

	/* which callsites */
	bool mode_given;
	enum mt_mode mode;
	const char *user_prefixes[MT_MAX_LIST];
	uint32_t n_user_prefixes;
	const char *filter; /* directives; NULL: not given */
	bool compat_prefix;
	const char *usdt[MT_MAX_USDT]; /* --usdt */
	uint32_t nusdt;
	const char *profiles[MT_MAX_LIST]; /* --profile */
	uint32_t nprofiles;
	const char *libraries[MT_MAX_LIST]; /* --library */
	uint32_t nlibraries;
	enum mt_naming naming;
	bool naming_given;

	/* how long, how much, where to */
	uint64_t duration_ms;             /* 0: until told */
	const char *output;               /* NULL: under the trace directory; "-" = standard output */
	bool single;                      /* all processes in one file */
	uint64_t rotate_bytes, rotate_ms; /* 0: never */
	const char *directory;
	const char *execution_id;
	const char *process_name;
	uint64_t ring_bytes; /* 0: default */
	enum mt_nop5 nop5;
	bool per_site; /* one link per site, as on kernels before 6.6 */
	bool compress;
	bool lifetimes;

	/* flight recorder */
	bool flight;
	struct mt_flight_spec flight_spec;
	const char *triggers[MT_MAX_LIST]; /* --trigger */
	uint32_t ntriggers;
	bool no_crash_snapshot;
	uint64_t after_ms, cooldown_ms;
	uint32_t max_snapshots; /* automatic ones kept; 0: all */

	/* tail, stacks, snapshot, status */
	const char *tracer;  /* NULL: the only one there is */
	const char *subject; /* NULL: all */
	uint32_t lines;
	bool follow_tail;

	/* list, dump, summary, merge */
	bool json;
	bool all_rows; /* summary */
	bool hold;     /* what followed children exec is stopped until it is armed */
	char **files;
	int nfiles;
};

/* What is wrong with the command line: one line, ready to print. */
struct mt_options_err {
	char text[512];
};

/*
 * Parses argv. 0, or -EINVAL with *err filled (usage error, exit status 2).
 * Uses getopt_long, so not thread-safe; argv's order may change.
 */
int mt_options_parse(int argc, char **argv, struct mt_options *ret_opts, struct mt_options_err *err);

/* The text of --help; the man page and README are checked against it. */
const char *mt_options_help(void);

#endif
