/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of options: parsing, help (options_help.c) and the checks of the documents follow it. Values: options_value.c. */
#include "options_int.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "control.h"
#include "trigger.h"

enum {
	O_USER_PREFIX = 256,
	O_FILTER,
	O_FILTER_COMPAT,
	O_USDT,
	O_PROFILE,
	O_LIBRARY,
	O_NAMING,
	O_DIR,
	O_EXECUTION_ID,
	O_NAME,
	O_RING,
	O_NOP5,
	O_PER_SITE,
	O_COMPRESS,
	O_JSON,
	O_VERSION,
	O_ALL,
	O_COMM,
	O_FOLLOW,
	O_NO_FOLLOW,
	O_HOLD,
	O_SINGLE,
	O_ROTATE,
	O_LIFETIMES,
	O_TRIGGER,
	O_AFTER,
	O_COOLDOWN,
	O_MAX_SNAPSHOTS,
	O_NO_CRASH_SNAPSHOT,
	O_TRACER,
	O_SUBJECT,
	O_ALL_ROWS,
};

#define AFTER_MS 2000
#define COOLDOWN_MS 60000
#define MAX_SNAPSHOTS 20
#define TAIL_LINES 20

static const struct option longs[] = {
	{"pid", required_argument, NULL, 'p'},
	{"all", required_argument, NULL, O_ALL},
	{"comm", required_argument, NULL, O_COMM},
	{"follow", no_argument, NULL, O_FOLLOW},
	{"no-follow", no_argument, NULL, O_NO_FOLLOW},
	{"hold", no_argument, NULL, O_HOLD},
	{"single", no_argument, NULL, O_SINGLE},
	{"rotate", required_argument, NULL, O_ROTATE},
	{"lifetimes", no_argument, NULL, O_LIFETIMES},
	{"mode", required_argument, NULL, 'm'},
	{"user-prefix", required_argument, NULL, O_USER_PREFIX},
	{"filter", required_argument, NULL, O_FILTER},
	{"filter-compat", required_argument, NULL, O_FILTER_COMPAT},
	{"usdt", required_argument, NULL, O_USDT},
	{"profile", required_argument, NULL, O_PROFILE},
	{"library", required_argument, NULL, O_LIBRARY},
	{"naming", required_argument, NULL, O_NAMING},
	{"duration", required_argument, NULL, 'd'},
	{"output", required_argument, NULL, 'o'},
	{"directory", required_argument, NULL, O_DIR},
	{"execution-id", required_argument, NULL, O_EXECUTION_ID},
	{"name", required_argument, NULL, O_NAME},
	{"ring", required_argument, NULL, O_RING},
	{"nop5", required_argument, NULL, O_NOP5},
	{"per-site", no_argument, NULL, O_PER_SITE},
	{"compress", no_argument, NULL, O_COMPRESS},
	{"flight-recorder", optional_argument, NULL, 'F'},
	{"trigger", required_argument, NULL, O_TRIGGER},
	{"after", required_argument, NULL, O_AFTER},
	{"cooldown", required_argument, NULL, O_COOLDOWN},
	{"max-snapshots", required_argument, NULL, O_MAX_SNAPSHOTS},
	{"no-crash-snapshot", no_argument, NULL, O_NO_CRASH_SNAPSHOT},
	{"tracer", required_argument, NULL, O_TRACER},
	{"subject", required_argument, NULL, O_SUBJECT},
	{"lines", required_argument, NULL, 'n'},
	{"json", no_argument, NULL, O_JSON},
	{"all-rows", no_argument, NULL, O_ALL_ROWS},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, O_VERSION},
	{NULL, 0, NULL, 0},
};

static int flight(struct mt_options *o, const char *arg, struct mt_options_err *err)
{
	const char *why;
	size_t pos;

	o->flight = true;
	if (!mt_flight_spec_parse(arg, &o->flight_spec, &pos, &why))
		return 0;
	return mt_options_bad(err, "-F %s: %s at `%s`", arg, why, arg + pos);
}

static int trigger(struct mt_options *o, const char *arg, struct mt_options_err *err)
{
	struct mt_trigger *t;
	const char *why;
	size_t pos;
	int code;

	code = mt_trigger_parse(arg, &t, &pos, &why);
	if (code == -EINVAL)
		return mt_options_bad(err, "--trigger '%s': %s at `%s`", arg, why, arg + pos);
	if (code)
		return mt_options_bad(err, "--trigger: %s", code == -E2BIG ? "too long" : strerror(-code));
	mt_trigger_free(t);
	return mt_options_list(o->triggers, &o->ntriggers, arg, "--trigger", err);
}

/* Options of the flight recorder and of questions to it. */
static int one_flight(struct mt_options *o, int c, const char *arg, struct mt_options_err *err)
{
	switch (c) {
	case 'F':
		return flight(o, arg, err);
	case O_TRIGGER:
		return trigger(o, arg, err);
	case O_AFTER:
		return mt_options_time_or_none(arg, &o->after_ms)
			       ? mt_options_bad(err, "--after %s: not a time such as 2s", arg)
			       : 0;
	case O_COOLDOWN:
		return mt_options_time_or_none(arg, &o->cooldown_ms)
			       ? mt_options_bad(err, "--cooldown %s: not a time such as 60s", arg)
			       : 0;
	case O_MAX_SNAPSHOTS:
		return mt_options_count(arg, 100000, &o->max_snapshots)
			       ? mt_options_bad(err, "--max-snapshots %s: not a number up to 100000", arg)
			       : 0;
	case O_NO_CRASH_SNAPSHOT:
		o->no_crash_snapshot = true;
		return 0;
	case O_TRACER:
		o->tracer = arg;
		return 0;
	case O_SUBJECT:
		o->subject = arg;
		return 0;
	case 'n':
		return mt_options_count(arg, MT_CONTROL_TAIL_MAX, &o->lines)
			       ? mt_options_bad(err, "-n %s: not a number up to %d", arg, MT_CONTROL_TAIL_MAX)
			       : 0;
	case 'f':
		o->follow_tail = true;
		return 0;
	}
	return -EINVAL;
}

static int one(struct mt_options *o, int c, const char *arg, struct mt_options_err *err)
{
	switch (c) {
	case 'p':
		return mt_options_pids(o, arg, err);
	case 'm':
		o->mode_given = true;
		return mt_mode_parse(arg, &o->mode)
			       ? mt_options_bad(err, "-m %s: unknown trace mode: off, user or dev", arg)
			       : 0;
	case O_USER_PREFIX:
		return mt_options_list(o->user_prefixes, &o->n_user_prefixes, arg, "--user-prefix", err);
	case O_ALL:
		return mt_options_list(o->binaries, &o->nbinaries, arg, "--all", err);
	case O_COMM:
		return mt_options_list(o->comms, &o->ncomms, arg, "--comm", err);
	case O_FOLLOW:
	case O_NO_FOLLOW:
		o->follow = c == O_FOLLOW;
		o->follow_given = true;
		return 0;
	case O_HOLD:
		o->hold = true;
		return 0;
	case O_LIFETIMES:
		o->lifetimes = true;
		return 0;
	case O_SINGLE:
		o->single = true;
		return 0;
	case O_ROTATE:
		return mt_options_rotation(o, arg)
			       ? mt_options_bad(
					 err,
					 "--rotate %s: not a size such as 512M (64K at least) or a time "
					 "such as 10m",
					 arg)
			       : 0;
	case O_FILTER:
		o->filter = arg;
		return 0;
	case O_FILTER_COMPAT:
		o->compat_prefix = true;
		return strcmp(arg, "prefix")
			       ? mt_options_bad(err, "--filter-compat %s: only `prefix` is known", arg)
			       : 0;
	case O_USDT:
		if (o->nusdt == MT_MAX_USDT)
			return mt_options_bad(err, "--usdt: more than %d of them; use a --profile FILE",
					      MT_MAX_USDT);
		o->usdt[o->nusdt++] = arg;
		return 0;
	case O_PROFILE:
		return mt_options_list(o->profiles, &o->nprofiles, arg, "--profile", err);
	case O_LIBRARY:
		return mt_options_list(o->libraries, &o->nlibraries, arg, "--library", err);
	case O_NAMING:
		o->naming_given = true;
		return mt_options_naming(arg, &o->naming)
			       ? mt_options_bad(err, "--naming %s: user, dev, upstream or plain", arg)
			       : 0;
	case 'd':
		return mt_options_time(arg, &o->duration_ms)
			       ? mt_options_bad(err, "-d %s: not a time such as 500ms, 10s or 5m", arg)
			       : 0;
	case 'o':
		o->output = arg;
		return 0;
	case O_DIR:
		o->directory = arg;
		return 0;
	case O_EXECUTION_ID:
		o->execution_id = arg;
		return 0;
	case O_NAME:
		o->process_name = arg;
		return 0;
	case O_RING:
		return mt_options_size(arg, &o->ring_bytes) || o->ring_bytes > 1ull << 30
			       ? mt_options_bad(err, "--ring %s: not a size such as 512K or 64M (at most 1G)",
						arg)
			       : 0;
	case O_NOP5:
		return mt_options_nop5(arg, &o->nop5)
			       ? mt_options_bad(err, "--nop5 %s: auto, never or always", arg)
			       : 0;
	case O_PER_SITE:
		o->per_site = true;
		return 0;
	case O_COMPRESS:
		o->compress = true;
		return 0;
	case O_JSON:
		o->json = true;
		return 0;
	case O_ALL_ROWS:
		o->all_rows = true;
		return 0;
	case 'q':
		o->verbosity = MT_LOG_QUIET;
		return 0;
	case 'v':
		o->verbosity = MT_LOG_VERBOSE;
		return 0;
	}
	return one_flight(o, c, arg, err);
}

/* The first word may be a command; the rest are options and files. */
static bool command(const char *word, enum mt_command *ret)
{
	static const struct {
		const char *name;
		enum mt_command command;
	} commands[] = {
		{"record", MT_CMD_RECORD},   {"list", MT_CMD_LIST},     {"dump", MT_CMD_DUMP},
		{"summary", MT_CMD_SUMMARY}, {"merge", MT_CMD_MERGE},   {"help", MT_CMD_HELP},
		{"tail", MT_CMD_TAIL},       {"stacks", MT_CMD_STACKS}, {"snapshot", MT_CMD_SNAPSHOT},
		{"status", MT_CMD_STATUS},
	};
	unsigned i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(word, commands[i].name)) {
			*ret = commands[i].command;
			return true;
		}
	}
	return false;
}

static int check_flight(struct mt_options *o, struct mt_options_err *err)
{
	if (!o->flight && (o->ntriggers || o->no_crash_snapshot))
		return mt_options_bad(err, "%s needs the flight recorder: give -F as well",
				      o->ntriggers ? "--trigger" : "--no-crash-snapshot");
	if (o->flight && (o->output || o->single || o->rotate_bytes || o->rotate_ms))
		return mt_options_bad(
			err,
			"-F writes snapshots under the trace directory: it does not go with -o, --single "
			"or --rotate; `montrace-bpf snapshot -o FILE` writes one elsewhere");
	if (o->tracer || o->subject || o->follow_tail)
		return mt_options_bad(err,
				      "--tracer, --subject and -f are for tail, stacks, snapshot and status");
	return 0;
}

static int check_question(struct mt_options *o, struct mt_options_err *err)
{
	if (o->nfiles)
		return mt_options_bad(err, "what is `%s`? See --help", o->files[0]);
	if (o->npids && (o->command != MT_CMD_STACKS || o->npids > 1))
		return mt_options_bad(
			err, "-p goes with stacks, and with one process; --tracer PID says which tracer");
	if ((o->nusdt || o->nprofiles) && !o->npids)
		return mt_options_bad(err, "%s says what to attach to: it goes with record and stacks -p",
				      o->nusdt ? "--usdt" : "--profile");
	if (o->subject && (o->command == MT_CMD_SNAPSHOT || o->command == MT_CMD_STATUS))
		return mt_options_bad(err, "--subject is for tail and stacks");
	if (o->output && o->command != MT_CMD_SNAPSHOT)
		return mt_options_bad(err, "-o is for snapshot");
	if (o->subject && strlen(o->subject) > MT_CONTROL_TEXT_MAX)
		return mt_options_bad(err, "--subject: too long");
	return 0;
}

static int check_record(struct mt_options *o, struct mt_options_err *err)
{
	if (o->nfiles)
		return mt_options_bad(
			err,
			"what is `%s`? Commands are record, list, dump, summary, merge, tail, stacks, "
			"snapshot and status; see --help",
			o->files[0]);
	if (!o->npids && !o->nbinaries && !o->ncomms && !o->argv)
		return mt_options_bad(
			err, "nothing to trace: give -p PID, --all, --comm or -- COMMAND; see --help");
	if (o->output && (o->directory || o->execution_id || o->process_name || o->single))
		return mt_options_bad(
			err, "-o names the file: it does not go with --directory, --execution-id, --name "
			     "or --single");
	if (o->output && !strcmp(o->output, "-") && (o->rotate_bytes || o->rotate_ms))
		return mt_options_bad(err, "--rotate needs files: it does not go with -o -");
	if (o->json)
		return mt_options_bad(err,
				      "--json is for list, dump, summary, tail, stacks, snapshot and status");
	if (!o->follow_given)
		o->follow = o->argv != NULL;
	if (o->hold && !o->follow)
		return mt_options_bad(err, "--hold stops what children exec: it needs --follow");
	return check_flight(o, err);
}

static int check(struct mt_options *o, struct mt_options_err *err)
{
	if (o->all_rows && o->command != MT_CMD_SUMMARY)
		return mt_options_bad(err, "--all-rows is for summary");
	switch (o->command) {
	case MT_CMD_RECORD:
		return check_record(o, err);
	case MT_CMD_LIST:
		return o->nfiles || o->npids ? 0 : mt_options_bad(err, "list what? Give files or -p PID");
	case MT_CMD_DUMP:
	case MT_CMD_SUMMARY:
		return o->nfiles == 1 ? 0 : mt_options_bad(err, "give one trace file");
	case MT_CMD_MERGE:
		if (!o->nfiles)
			return mt_options_bad(err, "merge what? Give trace files or a directory of them");
		return o->output ? 0 : mt_options_bad(err, "merge: give the new file with -o OUT");
	case MT_CMD_TAIL:
	case MT_CMD_STACKS:
	case MT_CMD_SNAPSHOT:
	case MT_CMD_STATUS:
		return check_question(o, err);
	case MT_CMD_HELP:
	case MT_CMD_VERSION:
		return 0;
	}
	return 0;
}

int mt_options_parse(int argc, char **argv, struct mt_options *ret_opts, struct mt_options_err *err)
{
	struct mt_options o = {.command = MT_CMD_RECORD,
			       .verbosity = MT_LOG_NORMAL,
			       .after_ms = AFTER_MS,
			       .cooldown_ms = COOLDOWN_MS,
			       .max_snapshots = MAX_SNAPSHOTS,
			       .lines = TAIL_LINES};
	int c, code;

	if (argc > 1 && command(argv[1], &o.command)) {
		argv++;
		argc--;
	}
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":p:m:d:o:F::n:fqvh", longs, NULL)) != -1) {
		if (c == 'h' || c == O_VERSION) {
			o.command = c == 'h' ? MT_CMD_HELP : MT_CMD_VERSION;
			*ret_opts = o;
			return 0;
		}
		if (c == ':')
			return mt_options_bad(err, "option `%s` needs a value", argv[optind - 1]);
		if (c == '?' && optopt && optopt < 256)
			return mt_options_bad(err, "unknown option `-%c`; see --help", optopt);
		if (c == '?')
			return mt_options_bad(err, "unknown or ambiguous option `%s`; see --help",
					      argv[optind - 1]);
		code = one(&o, c, optarg, err);
		if (code)
			return code;
	}
	o.files = argv + optind;
	o.nfiles = argc - optind;
	if (o.command == MT_CMD_RECORD && o.nfiles && !strcmp(argv[optind - 1], "--")) {
		o.argv = o.files;
		o.nfiles = 0;
	}
	code = check(&o, err);
	if (code)
		return code;
	*ret_opts = o;
	return 0;
}
