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

#define SITE(id_, class__, name_, n_, ...)                                                                  \
	{.id = id_,                                                                                         \
	 .class_ = MONTRACE_CLASS_##class__,                                                                \
	 .level = MONTRACE_INFO,                                                                            \
	 .nfields = n_,                                                                                     \
	 .name = name_,                                                                                     \
	 .target = "app::db",                                                                               \
	 .file = "f.c",                                                                                     \
	 .function = "",                                                                                    \
	 .fields = {__VA_ARGS__}}

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
	SITE(23, SPAN, "dup", 3, {"k", I64}, {"name", STR}, {"name", STR}),
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
	if (type == STR || type == DBG) {
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
		{"new", MT_EV_SPAN_NEW, true},	      {"enter", MT_EV_SPAN_ENTER, true},
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
			assert_true(ev.cs && ev.nvalues < ev.cs->nfields);
			set_value(&ev.values[ev.nvalues], ev.cs->fields[ev.nvalues].type, arg[at]);
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
		o->thread->process->pid, o->thread->tid, o->depth, (int)o->name.len, o->name.p, o->span, o->parent,
		o->since);
	return 0;
}

static void run_line(struct world *w, char *line)
{
	char *arg[24] = {NULL}, *save = NULL;
	uint32_t n = 0;

	for (arg[0] = strtok_r(line, " ", &save); arg[n] && n < N_OF(arg) - 1; arg[n] = strtok_r(NULL, " ", &save))
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
	} else if (strcmp(arg[0], "losttotal") == 0) {
		assert_int_equal(mt_spans_lost_total(w->spans, num(arg[1]), w->time, "ring full"), 0);
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
	assert_int_equal(n->begins, mt_spans_stats(w->spans)->slices);
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

#include "test_spans_table.h"
