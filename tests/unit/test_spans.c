/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The span model, told as scripts: what threads do on one side, what the sink is told on the other.
 * Each script runs against the check sink, its log is compared as a whole, then everything that counts
 * an anomaly. The words of the scripts are in `run_line`; times go up by 10 from line to line.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_sink.h"
#include "spans.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))

#define I64 MONTRACE_TYPE_I64
#define U64 MONTRACE_TYPE_U64
#define F64 MONTRACE_TYPE_F64
#define BOOL MONTRACE_TYPE_BOOL
#define STR MONTRACE_TYPE_STR
#define DBG MONTRACE_TYPE_DEBUG

#define SITE(id_, class__, name_, n_, ...)                                                            \
	{                                                                                             \
		.id = id_, .class_ = MONTRACE_CLASS_##class__, .level = MONTRACE_INFO, .nfields = n_, \
		.name = name_, .target = "app::db", .file = "f.c", .function = "", .fields = {        \
			__VA_ARGS__                                                                   \
		}                                                                                     \
	}

/* As foreign probes may have it. */
#define HOW(id_, class__, name_, how_, n_, ...)                                                              \
	{                                                                                                    \
		.id = id_, .class_ = MONTRACE_CLASS_##class__, .level = MONTRACE_INFO, .nfields = n_,        \
		.name = name_, .target = "db", .file = "", .function = "", .how = MT_HOW_##how_, .fields = { \
			__VA_ARGS__                                                                          \
		}                                                                                            \
	}

/* Scopes are lower case, spans upper case. */
static const struct mt_callsite sites[] = {
	SITE(1, SCOPE, "a", 0, {0}),
	SITE(2, SCOPE, "b", 0, {0}),
	SITE(3, SCOPE, "c", 0, {0}),
	SITE(4, SCOPE, "ai", 1, {"i", I64}),
	SITE(5, SCOPE, "named", 1, {"name", STR}),
	SITE(6, SPAN, "A", 0, {0}),
	SITE(7, SPAN, "B", 0, {0}),
	SITE(8, SPAN, "C", 0, {0}),
	SITE(9, SPAN, "Q", 2, {"sql", STR}, {"rows", U64}),
	SITE(10, SPAN, "Named", 2, {"name", DBG}, {"x", I64}),
	SITE(11, RECORDING, "recording", 2, {"subject", STR}, {"capacity", U64}),
	SITE(12, EVENT, "event f.c:1", 1, {"message", DBG}),
	SITE(13, EVENT, "tick", 1, {"i", I64}),
	SITE(14, EVENT, "all", 6, {"i", I64}, {"u", U64}, {"f", F64}, {"b", BOOL}, {"s", STR}, {"d", DBG}),
	SITE(15, RECORD, "rec", 2, {"host", STR}, {"rank", I64}),
	SITE(16, RECORD, "rec2", 1, {"rank", I64}),
	SITE(17, COUNTER, "depth", 1, {"value", I64}),
	SITE(18, COUNTER, "text", 1, {"value", STR}),
	SITE(19, COUNTER, "flag", 1, {"value", BOOL}),
	SITE(20, THREAD_NAME, "thread_name", 1, {"name", STR}),
	SITE(21, PROCESS_NAME, "process_name", 1, {"name", STR}),
	SITE(22, EXECUTION_ID, "execution_id", 1, {"id", STR}),
	HOW(31, SCOPE, "in", NESTED, 0, {0}),
	HOW(25, SCOPE, "state", WHILE, 1, {"to", I64}),
	HOW(26, COUNTER, "sum", SUM, 1, {"value", I64}),
	HOW(27, COUNTER, "fsum", SUM, 1, {"value", F64}),
	HOW(28, COUNTER, "hits", SUM | MT_HOW_COUNT, 0, {0}),
	HOW(29, SCOPE, "instate", WHILE | MT_HOW_NESTED, 0, {0}),
	{.id = 32,
	 .class_ = MONTRACE_CLASS_COUNTER,
	 .level = MONTRACE_INFO,
	 .how = MT_HOW_SUM | MT_HOW_COUNT,
	 .nfields = 1,
	 .name = "got",
	 .target = "app::db",
	 .file = "",
	 .function = "",
	 .label = "{what} got",
	 .fields = {{"what", STR}}},
	SITE(23, SPAN, "dup", 3, {"k", I64}, {"name", STR}, {"name", STR}),
	{.id = 24,
	 .class_ = MONTRACE_CLASS_COUNTER,
	 .level = MONTRACE_INFO,
	 .nfields = 2,
	 .name = "used",
	 .target = "app::db",
	 .file = "f.c",
	 .function = "",
	 .label = "{pool} used",
	 .fields = {{"value", I64}, {"pool", STR}}},
	/* the end says which one it ends, by f and g */
	{.id = 30,
	 .class_ = MONTRACE_CLASS_SCOPE,
	 .level = MONTRACE_INFO,
	 .name = "m",
	 .target = "app",
	 .file = "",
	 .function = "",
	 .nfields = 6,
	 .end_at = 3,
	 .fields = {{"f", STR, .pair = 2},
		    {"x", I64},
		    {"g", I64, .pair = 1},
		    {"g", I64, .pair = 1},
		    {"f", STR, .pair = 2},
		    {"ret", I64}}},
	{.id = 31,
	 .class_ = MONTRACE_CLASS_SCOPE,
	 .level = MONTRACE_INFO,
	 .how = MT_HOW_NESTED,
	 .name = "n",
	 .target = "app",
	 .file = "",
	 .function = "",
	 .nfields = 2,
	 .end_at = 1,
	 .fields = {{"f", STR, .pair = 1}, {"f", STR, .pair = 1}}},
	/* spans with a key; the second has a field that its end tells */
	{.id = 34,
	 .class_ = MONTRACE_CLASS_SPAN,
	 .level = MONTRACE_INFO,
	 .keyed = true,
	 .name = "K",
	 .target = "app",
	 .file = "",
	 .function = "",
	 .nfields = 1,
	 .fields = {{"n", I64}}},
	{.id = 35,
	 .class_ = MONTRACE_CLASS_SPAN,
	 .level = MONTRACE_INFO,
	 .keyed = true,
	 .name = "L",
	 .target = "app",
	 .file = "",
	 .function = "",
	 .label = "L {url}",
	 .nfields = 2,
	 .end_at = 1,
	 .fields = {{"url", STR}, {"done", I64}}},
};

struct world {
	struct mt_sink *sink;
	struct mt_spans *spans;
	uint64_t time;
	struct mt_event ev; /* head of the next event: who */
	struct {
		uint64_t who, seq;
	} seqs[64];
	uint32_t nseqs;
	char *out; /* rest of the result: each_open, statistics */
	size_t out_len;
	FILE *f;
};

static const struct mt_callsite *site(const char *name)
{
	size_t i;

	if (strcmp(name, "message") == 0)
		name = "event f.c:1";
	for (i = 0; i < N_OF(sites); i++)
		if (strcmp(sites[i].name, name) == 0)
			return &sites[i];
	fail_msg("no site %s", name);
	return NULL;
}

static uint64_t *seq_of(struct world *w)
{
	uint64_t who = (uint64_t)w->ev.tgid << 40 ^ (uint64_t)w->ev.tid << 16 ^ w->ev.thread_start;
	uint32_t i;

	for (i = 0; i < w->nseqs; i++)
		if (w->seqs[i].who == who)
			return &w->seqs[i].seq;
	assert_true(w->nseqs < N_OF(w->seqs));
	w->seqs[w->nseqs].who = who;
	w->seqs[w->nseqs].seq = 0;
	return &w->seqs[w->nseqs++].seq;
}

static uint64_t num(const char *s)
{
	return strtoull(s ? s : "0", NULL, 0);
}

static void set_value(struct mt_value *v, uint8_t type, const char *s)
{
	memset(v, 0, sizeof(*v));
	v->type = type;
	if (strcmp(s, "?") == 0) {
		v->missing = true;
		v->s = (struct mt_str){"gone", 4};
	} else if (type == STR || type == DBG) {
		const char *plus = strchr(s, '+'); /* abc+20: cut, 20 bytes in full */

		v->s.p = s;
		v->s.len = (uint32_t)(plus ? plus - s : (long)strlen(s));
		v->cut = plus;
		v->full_len = plus ? (uint32_t)num(plus + 1) : 0;
	} else if (type == F64) {
		v->f = strtod(s, NULL);
	} else if (type == U64) {
		v->u = num(s);
	} else {
		v->i = strtoll(s, NULL, 0);
	}
}

static void feed(struct world *w, struct mt_event *ev)
{
	ev->time = w->time;
	w->time += 10;
	assert_int_equal(mt_spans_feed(w->spans, ev), 0);
}

/* What the program does: hits. arg[1] is the callsite. */
static bool run_hit(struct world *w, char **arg, uint32_t n)
{
	static const struct {
		const char *word;
		enum mt_event_kind kind;
		bool id;
	} words[] = {
		{"begin", MT_EV_SCOPE_BEGIN, false},  {"end", MT_EV_SCOPE_END, false},
		{"new", MT_EV_SPAN_NEW, true},        {"enter", MT_EV_SPAN_ENTER, true},
		{"exit", MT_EV_SPAN_EXIT, true},      {"close", MT_EV_SPAN_CLOSE, true},
		{"record", MT_EV_SPAN_RECORD, true},  {"event", MT_EV_EVENT, false},
		{"counter", MT_EV_COUNTER, false},    {"tname", MT_EV_THREAD_NAME, false},
		{"pname", MT_EV_PROCESS_NAME, false}, {"execid", MT_EV_EXECUTION_ID, false},
	};
	struct mt_event ev = w->ev;
	uint32_t i, at = 2;

	for (i = 0; i < N_OF(words) && strcmp(words[i].word, arg[0]) != 0; i++)
		;
	if (i == N_OF(words))
		return false;
	ev.kind = words[i].kind;
	ev.cs = strcmp(arg[1], "-") == 0 ? NULL : site(arg[1]);
	if (words[i].id)
		ev.span = num(arg[at++]);
	for (; at < n; at++) {
		if (strcmp(arg[at], "root") == 0) {
			ev.flags |= MONTRACE_RF_ROOT;
		} else if (strncmp(arg[at], "parent=", 7) == 0) {
			ev.flags |= MONTRACE_RF_PARENT;
			ev.parent = num(arg[at] + 7);
		} else if (strcmp(arg[at], "late") == 0) {
			ev.flags |= MONTRACE_RF_LATE;
		} else if (strcmp(arg[at], "cutfields") == 0) {
			ev.flags |= MONTRACE_RF_CUT_FIELDS;
		} else {
			bool at_end = ev.kind == MT_EV_SCOPE_END || ev.kind == MT_EV_SPAN_CLOSE;
			uint32_t first = ev.cs && at_end ? ev.cs->end_at : 0;

			assert_true(ev.cs && first + ev.nvalues < ev.cs->nfields);
			set_value(&ev.values[ev.nvalues], ev.cs->fields[first + ev.nvalues].type, arg[at]);
			ev.nvalues++;
		}
	}
	ev.has_seq = true;
	ev.seq = (*seq_of(w))++;
	feed(w, &ev);
	return true;
}

/* What happens to threads and processes. */
static bool run_life(struct world *w, char **arg, uint32_t n)
{
	struct mt_event ev = w->ev;
	const char *word = arg[0];

	if (strcmp(word, "process") == 0) { /* pid start ppid uid name cmdline */
		ev.kind = MT_EV_PROCESS;
		ev.tgid = ev.tid = (uint32_t)num(arg[1]);
		ev.process.start = num(arg[2]);
		ev.process.ppid = (uint32_t)num(arg[3]);
		ev.process.uid = (uint32_t)num(arg[4]);
		ev.process.name = (struct mt_str){arg[5], (uint32_t)strlen(arg[5])};
		ev.process.cmdline = (struct mt_str){arg[6], n > 6 ? (uint32_t)strlen(arg[6]) : 0};
		ev.thread_start = 0;
	} else if (strcmp(word, "fork") == 0) { /* child start */
		ev.kind = MT_EV_PROCESS_FORK;
		ev.fork.child = (uint32_t)num(arg[1]);
		ev.fork.child_start = num(arg[2]);
	} else if (strcmp(word, "exec") == 0) { /* name; the thread is the process's first */
		ev.kind = MT_EV_PROCESS_EXEC;
		ev.tid = ev.tgid;
		ev.process.start = num(arg[2]);
		ev.process.name = (struct mt_str){arg[1], (uint32_t)strlen(arg[1])};
	} else if (strcmp(word, "pexit") == 0) { /* status */
		ev.kind = MT_EV_PROCESS_EXIT;
		ev.exit.status = (uint32_t)num(arg[1]);
		ev.thread_start = 0;
	} else if (strcmp(word, "texit") == 0) { /* [noseq] */
		ev.kind = MT_EV_THREAD_EXIT;
		ev.has_seq = n == 1;
		ev.seq = *seq_of(w);
	} else if (strcmp(word, "comm") == 0) {
		ev.kind = MT_EV_THREAD_COMM;
		ev.comm = (struct mt_str){arg[1], (uint32_t)strlen(arg[1])};
	} else if (strcmp(word, "detach") == 0) {
		ev.kind = MT_EV_DETACH;
		ev.thread_start = 0;
	} else {
		return false;
	}
	feed(w, &ev);
	return true;
}

static int show_open(void *ctx, const struct mt_spans_open *o)
{
	struct world *w = ctx;

	fprintf(w->f, "open %u/%u %u %.*s span=%" PRIu64 " parent=%" PRIu64 " since=%" PRIu64 "\n",
		o->thread->process->pid, o->thread->tid, o->depth, (int)o->name.len, o->name.p, o->span,
		o->parent, o->since);
	return 0;
}

static int show_keyed(void *ctx, const struct mt_spans_open *o)
{
	struct world *w = ctx;

	assert_null(o->thread);
	fprintf(w->f, "keyed %u tid=%u %u of %u %.*s span=%" PRIu64 " since=%" PRIu64 "\n", o->process->pid,
		o->tid, o->depth, o->of, (int)o->name.len, o->name.p, o->span, o->since);
	return 0;
}

static void run_line(struct world *w, char *line)
{
	char *arg[24] = {NULL}, *save = NULL;
	uint32_t n = 0;

	for (arg[0] = strtok_r(line, " ", &save); arg[n] && n < N_OF(arg) - 1;
	     arg[n] = strtok_r(NULL, " ", &save))
		n++;
	if (n == 0)
		return;
	if (strcmp(arg[0], "thread") == 0) { /* pid tid [start] */
		w->ev.tgid = (uint32_t)num(arg[1]);
		w->ev.tid = (uint32_t)num(arg[2]);
		w->ev.thread_start = n > 3 ? num(arg[3]) : w->ev.tid * 1000u;
	} else if (strcmp(arg[0], "at") == 0) {
		w->time = num(arg[1]);
	} else if (strcmp(arg[0], "skip") == 0) { /* hits that do not arrive */
		*seq_of(w) += num(arg[1]);
	} else if (strcmp(arg[0], "setseq") == 0) {
		*seq_of(w) = num(arg[1]);
	} else if (strcmp(arg[0], "show") == 0) {
		assert_int_equal(mt_spans_each_open(w->spans, show_open, w), 0);
		assert_int_equal(mt_spans_each_keyed(w->spans, show_keyed, w), 0);
	} else if (strcmp(arg[0], "losttotal") == 0) {
		assert_int_equal(mt_spans_lost_total(w->spans, num(arg[1]), w->time, "ring full"), 0);
	} else if (strcmp(arg[0], "restart") == 0) {
		assert_int_equal(mt_spans_restart(w->spans, NULL, w->time), 0);
	} else if (strcmp(arg[0], "finish") == 0) {
		assert_int_equal(mt_spans_finish(w->spans, w->time), 0);
	} else if (strcmp(arg[0], "quiet") == 0) { /* what came so far is not looked at */
		mt_check_log_clear(w->sink);
	} else if (!run_hit(w, arg, n) && !run_life(w, arg, n)) {
		fail_msg("no word %s", arg[0]);
	}
}

static void show_stats(struct world *w)
{
	const struct mt_spans_stats *st = mt_spans_stats(w->spans);
	const struct {
		const char *name;
		uint64_t n;
	} v[] = {
		{"lost", st->lost},
		{"unseen", st->unseen_enters},
		{"stray", st->stray_exits},
		{"closed", st->closed_entered},
		{"reordered", st->reordered},
		{"lostends", st->lost_ends},
		{"deep", st->too_deep},
		{"forgotten", st->forgotten},
		{"timeback", st->time_back},
		{"again", st->keyed_again},
		{"keyedforgotten", st->keyed_forgotten},
	};
	size_t i;

	for (i = 0; i < N_OF(v); i++)
		if (v[i].n)
			fprintf(w->f, "%s=%" PRIu64 "\n", v[i].name, v[i].n);
}

static void world_open(struct world *w, const struct mt_spans_opts *opts)
{
	memset(w, 0, sizeof(*w));
	w->time = 10;
	w->ev.tgid = 1;
	w->ev.tid = 1;
	w->ev.thread_start = 1000;
	assert_int_equal(mt_check_new(NULL, true, &w->sink), 0);
	assert_int_equal(mt_spans_new(opts, w->sink, &w->spans), 0);
	w->f = open_memstream(&w->out, &w->out_len);
	assert_non_null(w->f);
}

static void world_close(struct world *w)
{
	const struct mt_check_counts *n = mt_check_counts(w->sink);

	assert_int_equal(mt_spans_finish(w->spans, w->time), 0);
	if (mt_check_final(w->sink))
		fail_msg("%s", mt_check_final(w->sink));
	assert_int_equal(n->begins + n->keyed_begins, mt_spans_stats(w->spans)->slices);
	assert_int_equal(n->keyed_ends, n->keyed_begins);
	assert_int_equal(n->instants, mt_spans_stats(w->spans)->instants);
	assert_int_equal(n->counters, mt_spans_stats(w->spans)->counters);
	assert_int_equal(n->ends, n->begins);
	mt_spans_free(w->spans);
	assert_int_equal(w->sink->ops->free(w->sink), 0);
	fclose(w->f);
	free(w->out);
}

struct scenario {
	const char *name;
	const char *script; /* lines end with ; */
	const char *log;
	struct mt_spans_opts opts;
};

static void run_scenario(void **state)
{
	const struct scenario *sc = *state;
	char *script = strdup(sc->script), *line, *save = NULL, *got;
	struct world w;

	assert_non_null(script);
	world_open(&w, &sc->opts);
	for (line = strtok_r(script, ";", &save); line; line = strtok_r(NULL, ";", &save))
		run_line(&w, line);
	show_stats(&w);
	fflush(w.f);
	assert_true(asprintf(&got, "%s%s", mt_check_log(w.sink), w.out) >= 0);
	if (strcmp(got, sc->log) != 0)
		fail_msg("%s: got\n%s\nexpected\n%s", sc->name, got, sc->log);
	free(got);
	free(script);
	world_close(&w);
}

#include "spans_scenarios.h"

static struct mt_event hit(enum mt_event_kind kind, const char *cs, uint64_t time)
{
	return (struct mt_event){.kind = kind,
				 .time = time,
				 .tgid = 1,
				 .tid = 1,
				 .thread_start = 1000,
				 .cs = cs ? site(cs) : NULL};
}

static void expect_log(struct world *w, const char *log)
{
	assert_string_equal(mt_check_log(w->sink), log);
	mt_check_log_clear(w->sink);
}

/* Bytes that are no UTF-8 never reach the sink; whole texts keep all they have. */
static void texts_become_valid(void **state)
{
	struct mt_event ev = hit(MT_EV_EVENT, "all", 10);
	char longest[MONTRACE_MAX_TEXT + 5];
	struct world w;

	(void)state;
	world_open(&w, NULL);
	ev.nvalues = 6;
	ev.values[0] = (struct mt_value){.type = I64, .missing = true, .s = {"un\xffreadable", 11}};
	ev.values[1] = ev.values[2] = ev.values[3] = (struct mt_value){.type = U64};
	ev.values[4] = (struct mt_value){.type = STR, .s = {"a\xff\xc3\xa4", 4}};
	ev.values[5] = (struct mt_value){.type = DBG, .cut = true, .full_len = 9, .s = {"b\xe2\x82", 3}};
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	expect_log(&w, "process 1 name=\nthread 1/1 name=\n"
		       "instant 1/1 @10 all cut i=?un\xef\xbf\xbdreadable u=0 f=0 b=0 "
		       "s=\"a\xef\xbf\xbd\xc3\xa4\" d=\"b\"+9\n");
	memset(longest, 0xff, sizeof(longest));
	ev.values[4] = ev.values[5] = (struct mt_value){.type = STR, .s = {longest, sizeof(longest)}};
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(strlen(strrchr(mt_check_log(w.sink), '"') - 3 * MONTRACE_MAX_TEXT),
			 3 * MONTRACE_MAX_TEXT + 7); /* "+1029 */
	;
	mt_check_log_clear(w.sink);
	ev = hit(MT_EV_THREAD_COMM, NULL, 20);
	ev.comm = (struct mt_str){"\xc3\0x", 3};
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	expect_log(&w,
		   "thread 1/1 name=\xef\xbf\xbd\xef\xbf\xbdx\nprocess 1 name=\xef\xbf\xbd\xef\xbf\xbdx\n");
	world_close(&w);
}

/* Names made of a field live as long as the slice, whether short (pooled) or long. */
static void scope_names_are_kept(void **state)
{
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "named", 10);
	char text[200];
	struct world w;
	int i;

	(void)state;
	world_open(&w, NULL);
	for (i = 0; i < 100; i++) {
		ev.kind = MT_EV_SCOPE_BEGIN;
		ev.nvalues = 1;
		memset(text, 'a' + i % 26, sizeof(text));
		ev.values[0] = (struct mt_value){.type = STR, .s = {text, 50u + (uint32_t)i % 10}};
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
		if (i % 3)
			continue;
		ev.kind = MT_EV_SCOPE_END;
		ev.nvalues = 0;
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	}
	assert_null(mt_check_error(w.sink));
	assert_int_equal(mt_check_counts(w.sink)->open, 66);
	world_close(&w);
}

/* Far deeper than what is remembered one by one: everything that begins ends, in order, and nothing else. */
static void recursion_beyond_all_bounds(void **state)
{
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "a", 10);
	struct world w;
	int i, n = 500 + 16384 + 1000;

	(void)state;
	world_open(&w, NULL);
	for (i = 0; i < n; i++)
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_check_counts(w.sink)->begins, 500);
	assert_int_equal(mt_spans_stats(w.spans)->too_deep, n - 500);
	ev.kind = MT_EV_SCOPE_END;
	for (i = 0; i < n - 500; i++)
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_check_counts(w.sink)->ends, 0);
	for (i = 0; i < 500; i++)
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_check_counts(w.sink)->ends, 500);
	assert_int_equal(mt_spans_stats(w.spans)->stray_exits, 0);
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_spans_stats(w.spans)->stray_exits, 1);
	/* A loss in the depth: the ends of all these may have been lost, one end at the bottom clears them.
	 */
	ev.kind = MT_EV_SCOPE_BEGIN;
	ev.cs = site("b");
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.cs = site("a");
	for (i = 0; i < n; i++)
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.kind = MT_EV_SCOPE_END;
	ev.cs = site("b");
	ev.has_seq = true;
	ev.seq = 5;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_check_counts(w.sink)->open, 0);
	ev.kind = MT_EV_SCOPE_BEGIN;
	ev.seq = 6;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_check_counts(w.sink)->open, 1);
	world_close(&w);
}

static void recorded_fields_are_bounded(void **state)
{
	struct mt_callsite rec[40];
	struct mt_event ev = hit(MT_EV_SPAN_NEW, "A", 10);
	struct world w;
	char names[40][16], *last;
	int i;

	(void)state;
	world_open(&w, NULL);
	ev.span = 5;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.kind = MT_EV_SPAN_RECORD;
	for (i = 0; i < 40; i++) {
		snprintf(names[i], sizeof(names[i]), "f%d", i);
		rec[i] = *site("rec2");
		rec[i].id = 100 + (uint32_t)i;
		rec[i].fields[0].name = names[i];
		ev.cs = &rec[i];
		ev.nvalues = 1;
		ev.values[0] = (struct mt_value){.type = I64, .i = i};
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	}
	ev = hit(MT_EV_SPAN_ENTER, "A", 20);
	ev.span = 5;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	last = strstr(mt_check_log(w.sink), "begin ");
	assert_non_null(strstr(last, " cut |"));
	assert_non_null(strstr(last, "f30=30 f31=31\n"));
	world_close(&w);
}

/* Ids that a simple hash would put in one place, ids that differ in high bits only, 0 and the largest. */
static void hostile_ids(void **state)
{
	struct mt_event ev = hit(MT_EV_SPAN_NEW, "A", 10);
	struct world w;
	uint64_t i, n = 40000;

	(void)state;
	world_open(&w, NULL);
	for (i = 0; i < 3 * n; i++) {
		ev.kind = i < n ? MT_EV_SPAN_NEW : i < 2 * n ? MT_EV_SPAN_ENTER : MT_EV_SPAN_CLOSE;
		ev.span = i % n < n / 2 ? (i % n) << 48 | 1 : UINT64_MAX - (i % n) * 4096;
		if (ev.kind == MT_EV_SPAN_ENTER) {
			assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
			ev.kind = MT_EV_SPAN_EXIT;
		}
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
		mt_check_log_clear(w.sink);
	}
	assert_int_equal(mt_spans_stats(w.spans)->slices, n);
	assert_int_equal(mt_spans_stats(w.spans)->spans, n);
	assert_int_equal(mt_spans_stats(w.spans)->stray_exits, 0);
	assert_int_equal(mt_spans_stats(w.spans)->unseen_enters, 0);
	world_close(&w);
}

static void flow_links_pieces_and_differs(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, NULL);
	for (w.ev.tgid = 1; w.ev.tgid < 60; w.ev.tgid++) {
		char line[] = "new A 5", enter[] = "enter A 5", exit[] = "exit A 5", again[] = "enter A 5";

		w.ev.tid = w.ev.tgid;
		run_line(&w, line);
		run_line(&w, enter);
		run_line(&w, exit);
		run_line(&w, again);
	}
	assert_non_null(strstr(mt_check_log(w.sink), "flow=F59"));
	assert_null(strstr(mt_check_log(w.sink), "flow=F60"));
	world_close(&w);
}

static void counts(void **state)
{
	static const char script[] =
		"thread 1 1;begin a;end a;skip 2;begin a;thread 1 2;event tick 1;new A 5;enter A 5;"
		"exit A 5;enter A 5;counter depth 3;thread 2 2;event tick 1;fork 9 9;comm x";
	const struct mt_spans_stats *st;
	char *copy = strdup(script), *line, *save = NULL;
	struct world w;

	(void)state;
	world_open(&w, NULL);
	for (line = strtok_r(copy, ";", &save); line; line = strtok_r(NULL, ";", &save))
		run_line(&w, line);
	free(copy);
	st = mt_spans_stats(w.spans);
	assert_int_equal(st->events, 12);
	assert_int_equal(st->slices, 4);
	assert_int_equal(st->spans, 3);
	assert_int_equal(st->instants, 2);
	assert_int_equal(st->counters, 1);
	assert_int_equal(st->threads, 3);
	assert_int_equal(st->processes, 2);
	assert_int_equal(st->delivered, 10);
	assert_int_equal(st->lost, 2);
	world_close(&w);
}

/* Several events of one hit: only the first one has the number. */
static void batched_hit(void **state)
{
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "a", 10);
	struct world w;

	(void)state;
	world_open(&w, NULL);
	ev.has_seq = true;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.has_seq = false;
	ev.kind = MT_EV_SCOPE_END;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.has_seq = true;
	ev.seq = 1;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	assert_int_equal(mt_spans_stats(w.spans)->delivered, 2);
	assert_int_equal(mt_spans_stats(w.spans)->lost, 0);
	world_close(&w);
}

static int broken_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	(void)s;
	(void)sl;
	return -28;
}

static int broken_lost(struct mt_sink *s, const struct mt_loss *l)
{
	(void)s;
	(void)l;
	return -5;
}

/* The first error of a call is returned, and the rest goes on as if nothing were. */
static void sink_errors(void **state)
{
	static const struct mt_sink_ops ops = {.begin = broken_begin, .lost = broken_lost};
	struct mt_sink inner = {&ops}, *check;
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "a", 10);
	struct mt_spans *s;

	(void)state;
	assert_int_equal(mt_check_new(&inner, false, &check), 0);
	assert_int_equal(mt_spans_new(NULL, check, &s), 0);
	assert_int_equal(mt_spans_feed(s, &ev), -28);
	ev.has_seq = true;
	ev.seq = 3;
	assert_int_equal(mt_spans_feed(s, &ev), -5);
	ev.has_seq = false;
	ev.kind = MT_EV_SCOPE_END;
	assert_int_equal(mt_spans_feed(s, &ev), 0);
	assert_int_equal(mt_check_counts(check)->open, 1);
	assert_int_equal(mt_spans_lost_total(s, 9, 30, NULL), -5);
	assert_int_equal(mt_spans_finish(s, 40), 0);
	assert_null(mt_check_final(check));
	mt_spans_free(s);
	assert_int_equal(check->ops->free(check), 0);
}

/* A sink that wants nothing is left alone. */
static void sink_without_functions(void **state)
{
	static const struct mt_sink_ops ops = {0};
	struct mt_sink sink = {&ops};
	static const char *const lines[] = {"begin a", "end a",   "event tick 1", "counter depth 1",
					    "comm x",  "begin a", "texit"};
	struct world w;
	size_t i;

	(void)state;
	world_open(&w, NULL);
	mt_spans_free(w.spans);
	assert_int_equal(mt_spans_new(NULL, &sink, &w.spans), 0);
	for (i = 0; i < N_OF(lines); i++) {
		char *copy = strdup(lines[i]);

		run_line(&w, copy);
		free(copy);
	}
	assert_int_equal(mt_spans_stats(w.spans)->slices, 2);
	mt_spans_free(w.spans);
	assert_int_equal(mt_spans_new(NULL, w.sink, &w.spans), 0);
	world_close(&w);
}

struct starts {
	struct mt_sink sink;
	uint64_t v[4];
	uint32_t n;
};

static int note_start(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	struct starts *st = (struct starts *)s;

	(void)time;
	st->v[st->n++ % 4] = t->start;
	return 0;
}

/* A thread's start time is part of who it is: if it is known better later, the next file keeps to the first one. */
static void parts_agree_on_threads(void **state)
{
	static const struct mt_sink_ops ops = {.thread = note_start};
	struct starts st = {.sink = {&ops}};
	static const char *const lines[] = {"thread 1 2 0",    "event tick 1", "restart",
					    "thread 1 2 2000", "event tick 2", "thread 1 3 3000",
					    "event tick 3"};
	struct world w;
	size_t i;

	(void)state;
	world_open(&w, NULL);
	mt_spans_free(w.spans);
	assert_int_equal(mt_spans_new(NULL, &st.sink, &w.spans), 0);
	for (i = 0; i < N_OF(lines); i++) {
		char *copy = strdup(lines[i]);

		run_line(&w, copy);
		free(copy);
	}
	assert_int_equal(st.n, 3);
	assert_int_equal(st.v[0], 0);
	assert_int_equal(st.v[1], 0);
	assert_int_equal(st.v[2], 3000);
	mt_spans_free(w.spans);
	assert_int_equal(mt_spans_new(NULL, w.sink, &w.spans), 0);
	world_close(&w);
}

static int stop_at_second(void *ctx, const struct mt_spans_open *o)
{
	(void)o;
	return ++*(int *)ctx == 2 ? 7 : 0;
}

static void each_open_stops(void **state)
{
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "a", 10);
	struct world w;
	int n = 0;

	(void)state;
	world_open(&w, NULL);
	for (n = 0; n < 3; n++)
		assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	n = 0;
	assert_int_equal(mt_spans_each_open(w.spans, stop_at_second, &n), 7);
	assert_int_equal(n, 2);
	world_close(&w);
}

/* Callsite ids come from us, but two that share one, or a huge one, must not be mixed up. */
static void odd_callsite_ids(void **state)
{
	struct mt_callsite other = *site("named"), huge = *site("named");
	struct mt_event ev = hit(MT_EV_SCOPE_BEGIN, "named", 10);
	struct mt_spans_opts opts = {.naming = MT_NAMING_DEV};
	struct world w;

	(void)state;
	world_open(&w, &opts);
	other.name = "other";
	huge.name = "huge";
	huge.id = UINT32_MAX;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.cs = &other;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	ev.cs = &huge;
	assert_int_equal(mt_spans_feed(w.spans, &ev), 0);
	expect_log(&w, "process 1 name=\nthread 1/1 name=\nbegin 1/1 @10 app::db::named #1 span=1\n"
		       "begin 1/1 @10 other #2 span=2 parent=1\nbegin 1/1 @10 huge #3 span=3 parent=2\n");
	world_close(&w);
}

/* The oracle must see what it is for. */
static void oracle_sees_violations(void **state)
{
	struct mt_process p = {.pid = 1, .name = "", .cmdline = "", .execution_id = ""};
	struct mt_thread t = {.process = &p, .tid = 2, .name = ""};
	struct mt_slice b = {.thread = &t, .time = 10, .name = {"x", 1}, .key = 1, .span = 1};
	struct mt_slice_end e = {.thread = &t, .time = 20, .name = {"x", 1}, .key = 1, .span = 1};
	struct mt_sink *c;
	unsigned i;

	(void)state;
	for (i = 0; i < 9; i++) {
		static const char *const want[] = {"S1", "S1", "S2", "S2", "S2", "S3", "S4", "S5", "UTF-8"};
		const char *error;

		assert_int_equal(mt_check_new(NULL, false, &c), 0);
		if (i != 0)
			c->ops->process(c, &p, 1);
		if (i != 1)
			c->ops->thread(c, &t, 1);
		b.name = i == 8 ? (struct mt_str){"\xff", 1} : (struct mt_str){"x", 1};
		e.name = b.name;
		if (i != 2)
			c->ops->begin(c, &b);
		e.key = i == 3 ? 2 : 1;
		if (i == 4)
			e.name.p = "y";
		e.time = i == 5 ? 9 : 20;
		if (i != 6)
			c->ops->end(c, &e);
		c->ops->gone(c, NULL, &t, 30);
		if (i != 7)
			c->ops->gone(c, &p, NULL, 30);
		error = mt_check_final(c);
		assert_non_null(error);
		if (!strstr(error, want[i]))
			fail_msg("case %u: %s", i, error);
		assert_int_equal(c->ops->free(c), -74);
	}
}

#define MORE(f)                            \
	{                                  \
		.name = #f, .test_func = f \
	}

static const struct CMUnitTest more[] = {
	MORE(texts_become_valid),
	MORE(scope_names_are_kept),
	MORE(recursion_beyond_all_bounds),
	MORE(recorded_fields_are_bounded),
	MORE(hostile_ids),
	MORE(flow_links_pieces_and_differs),
	MORE(counts),
	MORE(batched_hit),
	MORE(sink_errors),
	MORE(sink_without_functions),
	MORE(parts_agree_on_threads),
	MORE(each_open_stops),
	MORE(odd_callsite_ids),
	MORE(oracle_sees_violations),
};

int main(void)
{
	struct CMUnitTest tests[N_OF(scenarios) + N_OF(more)];
	size_t n = 0, i;

	for (i = 0; i < N_OF(scenarios); i++)
		tests[n++] = (struct CMUnitTest){.name = scenarios[i].name,
						 .test_func = run_scenario,
						 .initial_state = (void *)(uintptr_t)&scenarios[i]};
	memcpy(tests + n, more, sizeof(more));
	n += N_OF(more);
	return _cmocka_run_group_tests("spans", tests, n, NULL, NULL);
}
