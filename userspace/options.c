/* SPDX-License-Identifier: BSD-3-Clause */
/* One table of options; help, parsing and the checks of the documents all follow it. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, O_VERSION},
	{NULL, 0, NULL, 0},
};

static const char help[] =
	"Usage: montrace-bpf [record] -p PID[,PID...] [OPTION...]\n"
	"       montrace-bpf [record] [OPTION...] -- COMMAND [ARG...]\n"
	"       montrace-bpf list FILE... | -p PID [--json]\n"
	"       montrace-bpf dump FILE [--json]\n"
	"       montrace-bpf summary FILE [--json]\n"
	"       montrace-bpf merge DIR|FILE... -o OUT [--compress]\n"
	"       montrace-bpf tail [--subject GLOB] [-n N] [-f] [--json]\n"
	"       montrace-bpf stacks [--subject GLOB] [-p PID [-d TIME]] [--json]\n"
	"       montrace-bpf snapshot [-o FILE] [--json]\n"
	"       montrace-bpf status [--json]\n"
	"\n"
	"Traces the spans and events of running programs from outside and writes a Perfetto\n"
	"trace. Recording ends with Ctrl-C, SIGTERM, -d, or the end of the programs.\n"
	"\n"
	"What to trace:\n"
	"  -p, --pid PID[,PID...]   processes to attach to; may be given again\n"
	"      --all BINARY         all processes that run this file, now and later; may be given again\n"
	"      --comm GLOB          all processes of that name, now and later; may be given again\n"
	"      --follow             children too, and what they exec (the default with -- COMMAND)\n"
	"      --no-follow          not the children\n"
	"  -m, --mode MODE          off, user or dev (default: user; all of a program that has no\n"
	"                           user-facing callsite). Also PERFETTO_TRACE_MODE\n"
	"      --user-prefix P      targets that begin with P are user-facing; may be given again\n"
	"      --filter DIRECTIVES  as RUST_LOG: info,tokio=off,myapp::db=trace. Also MONTRACE_FILTER\n"
	"      --filter-compat prefix  match targets as raw prefixes, not by path segments\n"
	"      --usdt SPEC          also other USDT probes: prov:name, prov:begin..end, auto:prov, ...\n"
	"                           (docs/usdt.md); may be given again\n"
	"      --profile NAME|FILE  specs from a file; may be given again. Without either, a program that\n"
	"                           has no montrace probes is traced by the profiles that know it\n"
	"      --library FILE       arm this file before the processes load it; may be given again\n"
	"\n"
	"The trace:\n"
	"  -o, --output FILE        write all to FILE (a new file; - is standard output) instead of\n"
	"                           one file per process under the trace directory\n"
	"      --single             one file for all processes, under the trace directory\n"
	"      --directory DIR      trace directory (default: MONTRACE_TRACE_DIR, MONARCH_TRACE_DIR,\n"
	"                           /tmp/USER/monarch_traces); files are\n"
	"                           DIR/executions/ID/NAME.pftrace\n"
	"      --execution-id ID    name of the run's directory\n"
	"      --name PATTERN       name of the file: %p pid, %n program, %h host\n"
	"      --naming WAY         names of spans: user, dev, upstream or plain\n"
	"      --rotate LIMIT       begin a new file at a size or after a time: 512M, 10m\n"
	"      --lifetimes          also a slice for each span from creation to close, under its process\n"
	"      --compress           compress the packets (zlib)\n"
	"  -d, --duration TIME      stop after TIME: 500ms, 10s (the default unit), 5m, 1h\n"
	"\n"
	"Flight recorder (docs/flight-recorder.md):\n"
	"  -F, --flight-recorder[=SPEC]  keep the last moments in memory, write snapshots only. SPEC limits\n"
	"                           time, events and memory (default: 10s,1000000,64M); -F10s,256M.\n"
	"                           Snapshots: `montrace-bpf snapshot`, SIGUSR2, a process that dies, "
	"triggers\n"
	"      --trigger COND       a snapshot when COND is met; may be given again: 'span NAME > 50ms',\n"
	"                           'event level >= error', 'event NAME [FIELD OP VALUE]', 'lost > 0'\n"
	"      --after TIME         how long after COND was met (default 2s)\n"
	"      --cooldown TIME      then no other one by a trigger for this long (default 60s)\n"
	"      --max-snapshots N    automatic snapshots kept, the oldest goes (default 20; 0: all)\n"
	"      --no-crash-snapshot  none when a process is killed or ends with a status other than 0\n"
	"\n"
	"Asking a running tracer:\n"
	"      --tracer PID         which one, if there are several\n"
	"      --subject GLOB       tail, stacks: of recordings whose subject matches\n"
	"  -n, --lines N            tail: the last N lines (default 20)\n"
	"  -f                       tail: and new ones as they come\n"
	"\n"
	"How:\n"
	"      --ring SIZE          ring between kernel and tracer (default 64M; with -F 4M)\n"
	"      --nop5 WHEN          put probes on 5-byte nops (cheaper): auto (if this kernel does it\n"
	"                           safely), never, always (children that the program forks may die)\n"
	"      --per-site           one kernel link per probe, as on kernels before 6.6\n"
	"\n"
	"Other:\n"
	"      --json               all commands but record and merge: one JSON object per line\n"
	"  -q, --quiet              only errors\n"
	"  -v, --verbose            also details: files, callsites that are not armed and why\n"
	"  -h, --help               this text\n"
	"      --version            version\n"
	"\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n"
	"Manual: montrace-bpf(1). Adding probes to a program: docs/probes.md\n";

const char *mt_options_help(void)
{
	return help;
}

static int bad(struct mt_options_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct mt_options_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A decimal number and what follows it. */
static int number(const char *s, uint64_t *ret, const char **ret_rest)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	*ret_rest = end;
	return errno ? -EINVAL : 0;
}

static int unit(const char *rest, const char *const *names, const uint64_t *factors, uint64_t *n)
{
	unsigned i;

	for (i = 0; names[i]; i++) {
		if (strcmp(rest, names[i]))
			continue;
		return __builtin_mul_overflow(*n, factors[i], n) ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int duration(const char *s, uint64_t *ret_ms)
{
	static const char *const names[] = {"", "s", "ms", "m", "h", NULL};
	static const uint64_t factors[] = {1000, 1000, 1, 60000, 3600000};
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || unit(rest, names, factors, &n) || !n || n > UINT64_MAX / 2000000)
		return -EINVAL;
	*ret_ms = n;
	return 0;
}

static int duration_or_none(const char *s, uint64_t *ret_ms)
{
	static const char *const none[] = {"0", "0s", "0ms", "0m", "0h"};
	unsigned i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		if (!strcmp(s, none[i])) {
			*ret_ms = 0;
			return 0;
		}
	}
	return duration(s, ret_ms);
}

static int count(const char *s, uint32_t max, uint32_t *ret)
{
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || *rest || n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

static int size(const char *s, uint64_t *ret)
{
	static const char *const names[] = {"", "K", "k", "M", "m", "G", "g", NULL};
	static const uint64_t factors[] = {1, 1024, 1024, 1 << 20, 1 << 20, 1 << 30, 1 << 30};
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || unit(rest, names, factors, &n) || !n)
		return -EINVAL;
	*ret = n;
	return 0;
}

/* A size (a unit of K, M, G) or a time (a unit of s, ms, m, h): the unit tells which. */
static int rotation(struct mt_options *o, const char *s)
{
	size_t n = strlen(s);

	if (n > 1 && strchr("KMGk", s[n - 1]))
		return size(s, &o->rotate_bytes) || o->rotate_bytes < 65536 ? -EINVAL : 0;
	if (n > 1 && strchr("smh", s[n - 1]))
		return duration(s, &o->rotate_ms);
	return -EINVAL;
}

static int list_add(const char **list, uint32_t *n, const char *arg, const char *option,
		    struct mt_options_err *err)
{
	if (*n == MT_MAX_LIST)
		return bad(err, "%s: more than %d of them", option, MT_MAX_LIST);
	if (!*arg)
		return bad(err, "%s: needs a value", option);
	list[(*n)++] = arg;
	return 0;
}

static int pids(struct mt_options *o, const char *list, struct mt_options_err *err)
{
	const char *s = list;
	uint64_t n;

	for (;;) {
		if (number(s, &n, &s) || !n || n > INT_MAX || (*s && *s != ','))
			return bad(err, "-p %s: not a process id (numbers joined by commas)", list);
		if (o->npids == MT_MAX_PIDS)
			return bad(err, "-p: more than %d processes", MT_MAX_PIDS);
		o->pids[o->npids++] = (uint32_t)n;
		if (!*s)
			return 0;
		s++;
	}
}

static int naming(const char *s, enum mt_naming *ret)
{
	static const char *const names[] = {
		[MT_NAMING_USER] = "user",
		[MT_NAMING_DEV] = "dev",
		[MT_NAMING_UPSTREAM] = "upstream",
		[MT_NAMING_PLAIN] = "plain",
	};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(s, names[i])) {
			*ret = (enum mt_naming)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int nop5(const char *s, enum mt_nop5 *ret)
{
	static const char *const names[] = {"auto", "never", "always"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(s, names[i])) {
			*ret = (enum mt_nop5)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int flight(struct mt_options *o, const char *arg, struct mt_options_err *err)
{
	const char *why;
	size_t pos;

	o->flight = true;
	if (!mt_flight_spec_parse(arg, &o->flight_spec, &pos, &why))
		return 0;
	return bad(err, "-F %s: %s at `%s`", arg, why, arg + pos);
}

static int trigger(struct mt_options *o, const char *arg, struct mt_options_err *err)
{
	struct mt_trigger *t;
	const char *why;
	size_t pos;
	int code;

	code = mt_trigger_parse(arg, &t, &pos, &why);
	if (code == -EINVAL)
		return bad(err, "--trigger '%s': %s at `%s`", arg, why, arg + pos);
	if (code)
		return bad(err, "--trigger: %s", code == -E2BIG ? "too long" : strerror(-code));
	mt_trigger_free(t);
	return list_add(o->triggers, &o->ntriggers, arg, "--trigger", err);
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
		return duration_or_none(arg, &o->after_ms)
			       ? bad(err, "--after %s: not a time such as 2s", arg)
			       : 0;
	case O_COOLDOWN:
		return duration_or_none(arg, &o->cooldown_ms)
			       ? bad(err, "--cooldown %s: not a time such as 60s", arg)
			       : 0;
	case O_MAX_SNAPSHOTS:
		return count(arg, 100000, &o->max_snapshots)
			       ? bad(err, "--max-snapshots %s: not a number up to 100000", arg)
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
		return count(arg, MT_CONTROL_TAIL_MAX, &o->lines)
			       ? bad(err, "-n %s: not a number up to %d", arg, MT_CONTROL_TAIL_MAX)
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
		return pids(o, arg, err);
	case 'm':
		o->mode_given = true;
		return mt_mode_parse(arg, &o->mode)
			       ? bad(err, "-m %s: unknown trace mode: off, user or dev", arg)
			       : 0;
	case O_USER_PREFIX:
		return list_add(o->user_prefixes, &o->n_user_prefixes, arg, "--user-prefix", err);
	case O_ALL:
		return list_add(o->binaries, &o->nbinaries, arg, "--all", err);
	case O_COMM:
		return list_add(o->comms, &o->ncomms, arg, "--comm", err);
	case O_FOLLOW:
	case O_NO_FOLLOW:
		o->follow = c == O_FOLLOW;
		o->follow_given = true;
		return 0;
	case O_LIFETIMES:
		o->lifetimes = true;
		return 0;
	case O_SINGLE:
		o->single = true;
		return 0;
	case O_ROTATE:
		return rotation(o, arg) ? bad(err,
					      "--rotate %s: not a size such as 512M (64K at least) or a time "
					      "such as 10m",
					      arg)
					: 0;
	case O_FILTER:
		o->filter = arg;
		return 0;
	case O_FILTER_COMPAT:
		o->compat_prefix = true;
		return strcmp(arg, "prefix") ? bad(err, "--filter-compat %s: only `prefix` is known", arg)
					     : 0;
	case O_USDT:
		if (o->nusdt == MT_MAX_USDT)
			return bad(err, "--usdt: more than %d of them; use a --profile FILE", MT_MAX_USDT);
		o->usdt[o->nusdt++] = arg;
		return 0;
	case O_PROFILE:
		return list_add(o->profiles, &o->nprofiles, arg, "--profile", err);
	case O_LIBRARY:
		return list_add(o->libraries, &o->nlibraries, arg, "--library", err);
	case O_NAMING:
		o->naming_given = true;
		return naming(arg, &o->naming) ? bad(err, "--naming %s: user, dev, upstream or plain", arg)
					       : 0;
	case 'd':
		return duration(arg, &o->duration_ms)
			       ? bad(err, "-d %s: not a time such as 500ms, 10s or 5m", arg)
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
		return size(arg, &o->ring_bytes) || o->ring_bytes > 1ull << 30
			       ? bad(err, "--ring %s: not a size such as 512K or 64M (at most 1G)", arg)
			       : 0;
	case O_NOP5:
		return nop5(arg, &o->nop5) ? bad(err, "--nop5 %s: auto, never or always", arg) : 0;
	case O_PER_SITE:
		o->per_site = true;
		return 0;
	case O_COMPRESS:
		o->compress = true;
		return 0;
	case O_JSON:
		o->json = true;
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
		return bad(err, "%s needs the flight recorder: give -F as well",
			   o->ntriggers ? "--trigger" : "--no-crash-snapshot");
	if (o->flight && (o->output || o->single || o->rotate_bytes || o->rotate_ms))
		return bad(err,
			   "-F writes snapshots under the trace directory: it does not go with -o, --single "
			   "or --rotate; `montrace-bpf snapshot -o FILE` writes one elsewhere");
	if (o->tracer || o->subject || o->follow_tail)
		return bad(err, "--tracer, --subject and -f are for tail, stacks, snapshot and status");
	return 0;
}

static int check_question(struct mt_options *o, struct mt_options_err *err)
{
	if (o->nfiles)
		return bad(err, "what is `%s`? See --help", o->files[0]);
	if (o->npids && (o->command != MT_CMD_STACKS || o->npids > 1))
		return bad(err, "-p goes with stacks, and with one process; --tracer PID says which tracer");
	if (o->subject && (o->command == MT_CMD_SNAPSHOT || o->command == MT_CMD_STATUS))
		return bad(err, "--subject is for tail and stacks");
	if (o->output && o->command != MT_CMD_SNAPSHOT)
		return bad(err, "-o is for snapshot");
	if (o->subject && strlen(o->subject) > MT_CONTROL_TEXT_MAX)
		return bad(err, "--subject: too long");
	return 0;
}

static int check_record(struct mt_options *o, struct mt_options_err *err)
{
	if (o->nfiles)
		return bad(err,
			   "what is `%s`? Commands are record, list, dump, summary, merge, tail, stacks, "
			   "snapshot and status; see --help",
			   o->files[0]);
	if (!o->npids && !o->nbinaries && !o->ncomms && !o->argv)
		return bad(err, "nothing to trace: give -p PID, --all, --comm or -- COMMAND; see --help");
	if (o->output && (o->directory || o->execution_id || o->process_name || o->single))
		return bad(err, "-o names the file: it does not go with --directory, --execution-id, --name "
				"or --single");
	if (o->output && !strcmp(o->output, "-") && (o->rotate_bytes || o->rotate_ms))
		return bad(err, "--rotate needs files: it does not go with -o -");
	if (o->json)
		return bad(err, "--json is for list, dump, summary, tail, stacks, snapshot and status");
	if (!o->follow_given)
		o->follow = o->argv != NULL;
	return check_flight(o, err);
}

static int check(struct mt_options *o, struct mt_options_err *err)
{
	switch (o->command) {
	case MT_CMD_RECORD:
		return check_record(o, err);
	case MT_CMD_LIST:
		return o->nfiles || o->npids ? 0 : bad(err, "list what? Give files or -p PID");
	case MT_CMD_DUMP:
	case MT_CMD_SUMMARY:
		return o->nfiles == 1 ? 0 : bad(err, "give one trace file");
	case MT_CMD_MERGE:
		if (!o->nfiles)
			return bad(err, "merge what? Give trace files or a directory of them");
		return o->output ? 0 : bad(err, "merge: give the new file with -o OUT");
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
			return bad(err, "option `%s` needs a value", argv[optind - 1]);
		if (c == '?' && optopt && optopt < 256)
			return bad(err, "unknown option `-%c`; see --help", optopt);
		if (c == '?')
			return bad(err, "unknown or ambiguous option `%s`; see --help", argv[optind - 1]);
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
