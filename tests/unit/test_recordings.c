/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recordings, by the behaviour of the original recorder (names of the scenarios) and by what it did wrong.
 * The tests speak as `spans` does: numbers of spans are trace-wide and never used twice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recordings.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define S(text) ((struct mt_str){(text), (uint32_t)strlen(text)})

#define SITE(id_, class__, level_, name_, n_, ...)                                                    \
	{                                                                                             \
		.id = id_, .class_ = MONTRACE_CLASS_##class__, .level = MONTRACE_##level_, .line = 7, \
		.nfields = n_, .name = name_, .target = "app::db", .file = "f.c", .function = "",     \
		.fields = {                                                                           \
			__VA_ARGS__                                                                   \
		}                                                                                     \
	}

static const struct mt_callsite recording =
	SITE(1, RECORDING, INFO, "recording", 2, {.name = "subject", .type = MONTRACE_TYPE_STR},
	     {.name = "capacity", .type = MONTRACE_TYPE_U64});
static const struct mt_callsite span = SITE(2, SPAN, INFO, "child", 0, {0});
static const struct mt_callsite scope = SITE(3, SCOPE, INFO, "scope", 0, {0});
static const struct mt_callsite event =
	SITE(4, EVENT, WARN, "tick", 1, {.name = "i", .type = MONTRACE_TYPE_U64});
static const struct mt_callsite five =
	SITE(5, EVENT, ERROR, "five", 5, {.name = "z", .type = MONTRACE_TYPE_STR},
	     {.name = "b", .type = MONTRACE_TYPE_I64}, {.name = "a", .type = MONTRACE_TYPE_F64},
	     {.name = "m", .type = MONTRACE_TYPE_BOOL}, {.name = "b", .type = MONTRACE_TYPE_U64});
static const struct mt_callsite message =
	SITE(6, EVENT, INFO, "event f.c:9", 2, {.name = "message", .type = MONTRACE_TYPE_DEBUG},
	     {.name = "k", .type = MONTRACE_TYPE_STR});

/* ---- a program ---- */

struct rig {
	struct mt_sink *s;
	struct mt_process p;
	struct mt_thread t[2];
	uint64_t time, key;
};

static void rig_open(struct rig *r, const struct mt_recordings_opts *opts)
{
	static const struct mt_recordings_opts def = {0};

	memset(r, 0, sizeof(*r));
	assert_int_equal(mt_recordings_new(opts ? opts : &def, &r->s), 0);
	r->p = (struct mt_process){.pid = 10, .name = "app", .cmdline = "", .execution_id = ""};
	r->t[0] = (struct mt_thread){.process = &r->p, .tid = 10, .name = "main"};
	r->t[1] = (struct mt_thread){.process = &r->p, .tid = 11, .name = ""};
}

static void die(struct rig *r, enum mt_end_reason reason, uint32_t status)
{
	r->p.end_reason = reason;
	r->p.exit_status = status;
	assert_int_equal(r->s->ops->gone(r->s, &r->p, NULL, ++r->time), 0);
	assert_null(r->p.sink_data);
}

static void rig_close(struct rig *r)
{
	die(r, MT_END_DETACH, 0);
	assert_int_equal(r->s->ops->free(r->s), 0);
}

static void make(struct rig *r, const struct mt_callsite *cs, uint64_t number, uint64_t parent)
{
	struct mt_span_new n = {
		.process = &r->p, .time = ++r->time, .span = number, .parent = parent, .cs = cs};

	assert_int_equal(r->s->ops->span_new(r->s, &n), 0);
}

static void make_recording(struct rig *r, uint64_t number, const char *subject, uint64_t capacity)
{
	struct mt_value v[2] = {{.type = MONTRACE_TYPE_STR, .s = S(subject)},
				{.type = MONTRACE_TYPE_U64, .u = capacity}};
	struct mt_span_new n = {.process = &r->p,
				.time = ++r->time,
				.span = number,
				.cs = &recording,
				.nvalues = 2,
				.values = v};

	assert_int_equal(r->s->ops->span_new(r->s, &n), 0);
}

static void enter_as(struct rig *r, unsigned t, uint64_t number, uint64_t parent,
		     const struct mt_callsite *cs, uint32_t flags)
{
	struct mt_slice sl = {.thread = &r->t[t],
			      .time = ++r->time,
			      .cs = cs,
			      .name = S(cs->name),
			      .key = ++r->key,
			      .span = number,
			      .parent = parent,
			      .flags = flags};

	assert_int_equal(r->s->ops->begin(r->s, &sl), 0);
}

static void leave_as(struct rig *r, unsigned t, uint64_t number, const struct mt_callsite *cs,
		     enum mt_end_reason reason)
{
	struct mt_slice_end e = {.thread = &r->t[t],
				 .time = ++r->time,
				 .cs = cs,
				 .name = S(cs->name),
				 .span = number,
				 .reason = reason,
				 .exit_status = reason == MT_END_PROCESS ? 11 : 0};

	assert_int_equal(r->s->ops->end(r->s, &e), 0);
}

static void enter(struct rig *r, unsigned t, uint64_t number)
{
	enter_as(r, t, number, 0, &span, 0);
}

static void leave(struct rig *r, unsigned t, uint64_t number)
{
	leave_as(r, t, number, &span, MT_END_NORMAL);
}

static void close_span(struct rig *r, uint64_t number)
{
	assert_int_equal(r->s->ops->span_close(r->s, &r->p, number, ++r->time), 0);
}

static void tick(struct rig *r, unsigned t, uint64_t in, uint64_t i)
{
	struct mt_value v = {.type = MONTRACE_TYPE_U64, .u = i};
	struct mt_instant e = {.thread = &r->t[t],
			       .time = ++r->time,
			       .cs = &event,
			       .name = S("tick"),
			       .parent = in,
			       .nvalues = 1,
			       .values = &v};

	assert_int_equal(r->s->ops->instant(r->s, &e), 0);
}

/* ---- what is kept ---- */

static int add_event(void *ctx, const struct mt_recorded *e)
{
	char *text = ctx;
	size_t at = strlen(text);

	snprintf(text + at, 512 - at, "%s%" PRIu64 ":%" PRIu64, at ? " " : "", e->seq,
		 e->nvalues ? e->values[0].u : 0);
	return 0;
}

/* "seq:i seq:i" of recording id. */
static void expect_events(struct rig *r, uint64_t id, const char *want)
{
	char text[512] = "";

	assert_int_equal(mt_recordings_events(r->s, id, 1000, add_event, text), 0);
	assert_string_equal(text, want);
}

static int add_info(void *ctx, const struct mt_recording_info *i)
{
	char *text = ctx;
	size_t at = strlen(text);

	snprintf(text + at, 512 - at, "%s%" PRIu64 ":%s:%s", at ? " " : "", i->id, i->subject,
		 mt_recording_state_name(i->state));
	return 0;
}

static void expect_recordings(struct rig *r, const char *glob, const char *want)
{
	char text[512] = "";

	assert_int_equal(mt_recordings_each(r->s, glob, add_info, text), 0);
	assert_string_equal(text, want);
}

static int add_stack(void *ctx, const struct mt_recording_frame *f, uint32_t n)
{
	char *text = ctx;
	size_t at = strlen(text);
	uint32_t i;

	for (i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, 512 - at, "%s%s#%" PRIu64 "x%u",
				       i    ? "<"
				       : at ? " | "
					    : "",
				       f[i].cs->name, f[i].span, f[i].entered);
	return 0;
}

static void expect_stacks(struct rig *r, uint64_t id, const char *want)
{
	char text[512] = "";

	assert_int_equal(mt_recordings_stacks(r->s, id, add_stack, text), 0);
	assert_string_equal(text, want);
}

static struct mt_recordings_stats stats(const struct rig *r)
{
	struct mt_recordings_stats st;

	mt_recordings_stats(r->s, &st);
	return st;
}

/* ---- scenarios ---- */

static void recorder_last_n_seq(void **state)
{
	struct rig r;
	char text[512] = "";
	unsigned i;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	for (i = 0; i < 10; i++)
		tick(&r, 0, 1, i);
	expect_events(&r, 1, "5:5 6:6 7:7 8:8 9:9");
	assert_int_equal(mt_recordings_events(r.s, 1, 2, add_event, text), 0);
	assert_string_equal(text, "8:8 9:9");
	assert_int_equal(mt_recordings_events(r.s, 2, 2, add_event, text), -ENOENT);
	rig_close(&r);
}

static void outside_not_recorded(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	tick(&r, 0, 0, 1);
	make_recording(&r, 1, "job", 5);
	tick(&r, 0, 0, 2); /* made, but nothing is in it */
	make(&r, &span, 2, 0);
	enter(&r, 0, 2);
	tick(&r, 0, 2, 3);
	/* Around it in time is not in it. */
	enter_as(&r, 0, 1, 0, &recording, 0);
	enter(&r, 0, 2);
	tick(&r, 0, 2, 4);
	expect_events(&r, 1, "");
	assert_int_equal(stats(&r).spans, 1);
	rig_close(&r);
}

static void child_inherits(void **state)
{
	struct rig r;
	uint64_t i;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 8);
	for (i = 2; i < 6; i++)
		make(&r, &span, i, i - 1);
	tick(&r, 0, 5, 1);
	enter(&r, 1, 5); /* on another thread */
	enter_as(&r, 1, 6, 5, &scope, 0);
	tick(&r, 1, 6, 2);
	/* A scope that goes on in another slice is still the same. */
	leave_as(&r, 1, 6, &scope, MT_END_OUTER);
	leave(&r, 1, 5);
	enter_as(&r, 1, 6, 5, &scope, MT_SLICE_CONTINUED);
	tick(&r, 1, 6, 3);
	leave_as(&r, 1, 6, &scope, MT_END_NORMAL);
	tick(&r, 1, 6, 4); /* over: nobody says so but its end */
	tick(&r, 1, 5, 5);
	/* A span that began unseen, known only by its parent. */
	enter_as(&r, 1, 9, 5, &span, 0);
	tick(&r, 1, 9, 6);
	expect_events(&r, 1, "0:1 1:2 2:3 3:5 4:6");
	rig_close(&r);
}

/* A slice that only goes on elsewhere is no end: what the scope belongs to was decided when it began. */
static void scope_outlives_its_parent(void **state)
{
	static const enum mt_end_reason reasons[] = {MT_END_OUTER, MT_END_PART};
	struct rig r;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(reasons); i++) {
		rig_open(&r, NULL);
		make_recording(&r, 1, "job", 8);
		make(&r, &span, 2, 1);
		enter_as(&r, 0, 3, 2, &scope, 0);
		leave_as(&r, 0, 3, &scope, reasons[i]);
		close_span(&r, 2);
		enter_as(&r, 0, 3, 2, &scope, MT_SLICE_CONTINUED);
		tick(&r, 0, 3, 4);
		expect_events(&r, 1, "0:4");
		rig_close(&r);
	}
}

static void nested_isolated(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "A", 5);
	enter_as(&r, 0, 1, 0, &recording, 0);
	tick(&r, 0, 1, 1);
	make_recording(&r, 2, "B", 5);
	enter_as(&r, 0, 2, 1, &recording, 0); /* whatever the parent */
	tick(&r, 0, 2, 2);
	make(&r, &span, 3, 2);
	tick(&r, 0, 3, 3);
	leave_as(&r, 0, 2, &recording, MT_END_NORMAL);
	tick(&r, 0, 1, 4);
	expect_events(&r, 1, "0:1 1:4");
	expect_events(&r, 2, "0:2 1:3");
	rig_close(&r);
}

static void explicit_parent_not_entered(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	make(&r, &span, 2, 1);
	make(&r, &span, 3, 2);
	tick(&r, 0, 1, 1);
	tick(&r, 0, 3, 2);
	expect_events(&r, 1, "0:1 1:2");
	rig_close(&r);
}

static void explicit_root_not_recorded(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	enter_as(&r, 0, 1, 0, &recording, 0);
	tick(&r, 0, 0, 1); /* root event */
	make(&r, &span, 2, 0);
	enter(&r, 0, 2); /* root span within it */
	tick(&r, 0, 2, 2);
	expect_events(&r, 1, "");
	rig_close(&r);
}

/* R21: spans outlive the subject. */
static void recording_dropped_spans_alive(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	make(&r, &span, 2, 1);
	enter(&r, 0, 2);
	tick(&r, 0, 2, 1);
	close_span(&r, 1);
	tick(&r, 0, 2, 2);
	tick(&r, 0, 1, 3);
	leave(&r, 0, 2);
	enter_as(&r, 0, 2, 1, &span, MT_SLICE_REENTERED);
	make(&r, &span, 3, 2);
	tick(&r, 0, 3, 4);
	close_span(&r, 2);
	close_span(&r, 1);
	expect_events(&r, 1, "0:1");
	expect_recordings(&r, NULL, "1:job:closed");
	assert_int_equal(stats(&r).spans, 0);
	assert_int_equal(mt_recordings_stacks(r.s, 1, add_stack, NULL), 0); /* none */
	rig_close(&r);
}

/*
 * R22, W19: the original's keys are addresses of small heap blocks, which the allocator hands out again at once:
 * there the old span's event is found in the new recording, in 200 of 200 rounds.
 */
static void recording_id_never_reused(void **state)
{
	struct rig r;
	uint64_t i;

	(void)state;
	rig_open(&r, NULL);
	for (i = 0; i < 200; i++) {
		make_recording(&r, 1 + 3 * i, "old", 5);
		make(&r, &span, 2 + 3 * i, 1 + 3 * i);
		close_span(&r, 1 + 3 * i);
		make_recording(&r, 3 + 3 * i, "new", 5);
		enter(&r, 0, 2 + 3 * i);
		tick(&r, 0, 2 + 3 * i, 7);
		expect_events(&r, 2 * i + 2, "");
		assert_int_equal(mt_recordings_events(r.s, 2 * i + 1, 9, add_event, NULL), -ENOENT);
	}
	assert_int_equal(stats(&r).events, 0);
	rig_close(&r);
}

static void stacks_leaf_to_root(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	expect_stacks(&r, 1, "");
	enter_as(&r, 0, 1, 0, &recording, 0);
	make(&r, &span, 2, 1);
	expect_stacks(&r, 1, "recording#1x1");
	enter(&r, 0, 2);
	expect_stacks(&r, 1, "child#2x1<recording#1x1");
	/* A sibling on another thread: two stacks. */
	make(&r, &span, 3, 1);
	enter(&r, 1, 3);
	expect_stacks(&r, 1, "child#3x1<recording#1x1 | child#2x1<recording#1x1");
	assert_int_equal(mt_recordings_stacks(r.s, 9, add_stack, NULL), -ENOENT);
	/* Nothing of one look is left for the next. */
	leave(&r, 0, 2);
	leave(&r, 1, 3);
	expect_stacks(&r, 1, "recording#1x1");
	rig_close(&r);
}

static void stacks_broken_at_unentered(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	make(&r, &span, 2, 1);
	make(&r, &span, 3, 2);
	enter_as(&r, 0, 1, 0, &recording, 0);
	enter(&r, 0, 3);
	expect_stacks(&r, 1, "child#3x1 | recording#1x1");
	leave_as(&r, 0, 1, &recording, MT_END_NORMAL);
	expect_stacks(&r, 1, "child#3x1");
	rig_close(&r);
}

/*
 * R20, W21: the original keeps one entry for each span that is entered, not how often; there the first exit
 * removes it, and no stack is left while the span is still entered twice.
 */
static void stacks_recursive_entry(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 5);
	make(&r, &span, 2, 1);
	enter(&r, 0, 2);
	enter(&r, 0, 2);
	enter(&r, 1, 2); /* and on a second thread */
	expect_stacks(&r, 1, "child#2x3");
	leave(&r, 0, 2);
	expect_stacks(&r, 1, "child#2x2");
	leave(&r, 1, 2);
	expect_stacks(&r, 1, "child#2x1");
	leave(&r, 0, 2);
	expect_stacks(&r, 1, "");
	leave(&r, 0, 2); /* one too many */
	enter(&r, 0, 2);
	expect_stacks(&r, 1, "child#2x1");
	rig_close(&r);
}

static int get_capacity(void *ctx, const struct mt_recording_info *i)
{
	*(uint32_t *)ctx = i->capacity;
	return 77;
}

static void cap_min_2(void **state)
{
	static const struct {
		struct mt_value v;
		uint32_t want;
	} cases[] = {
		{{.type = MONTRACE_TYPE_U64, .u = 0}, 2},
		{{.type = MONTRACE_TYPE_U64, .u = 1}, 2},
		{{.type = MONTRACE_TYPE_U64, .u = 3}, 3},
		{{.type = MONTRACE_TYPE_U64, .u = 4096}, 4096},
		{{.type = MONTRACE_TYPE_U64, .u = UINT64_MAX}, 4096},
		{{.type = MONTRACE_TYPE_I64, .i = -1}, 2},
		{{.type = MONTRACE_TYPE_I64, .i = 9}, 9},
		{{.type = MONTRACE_TYPE_U64, .missing = true, .s = {"gone", 4}}, 64},
	};
	uint32_t capacity;
	struct rig r;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct mt_value v[2] = {{.type = MONTRACE_TYPE_STR, .s = S("x")}, cases[i].v};
		struct mt_span_new n = {
			.process = &r.p, .span = 1, .cs = &recording, .nvalues = 2, .values = v};

		rig_open(&r, NULL);
		assert_int_equal(r.s->ops->span_new(r.s, &n), 0);
		assert_int_equal(mt_recordings_each(r.s, NULL, get_capacity, &capacity), 77);
		assert_int_equal(capacity, cases[i].want);
		rig_close(&r);
	}
	rig_open(&r, NULL);
	make_recording(&r, 1, "x", 1);
	for (i = 0; i < 3; i++)
		tick(&r, 0, 1, i);
	expect_events(&r, 1, "1:1 2:2");
	rig_close(&r);
}

/* Attached in the middle: the recording is known from its first slice, without subject. */
static void unseen_creation(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	enter_as(&r, 0, 1, 0, &recording, MT_SLICE_UNSEEN);
	tick(&r, 0, 1, 4);
	expect_recordings(&r, NULL, "1:recording #1:live");
	expect_events(&r, 1, "0:4");
	rig_close(&r);
}

/* ---- export ---- */

static int copy(void *ctx, const char *text, size_t len)
{
	char *buf = ctx;
	size_t at = strlen(buf);

	assert_int_equal(strlen(text), len);
	snprintf(buf + at, 8192 - at, "%s%s", at ? "\n" : "", text);
	return 0;
}

/* The newest event as a line; boot time 0 is 2026-01-02 01:04:05 UTC. */
static const char *line_of(struct rig *r, bool json)
{
	struct mt_recordings_tail_opts o = {.n = 1, .json = json, .clock = {1767315845000000000}};
	static char buf[8192];

	buf[0] = '\0';
	assert_int_equal(mt_recordings_tail(r->s, &o, copy, buf, NULL), 0);
	return buf;
}

/* R23, W18: the original makes a JSON number of each double and panics if there is none (NaN, infinities). */
static void json_sorted_and_nonfinite(void **state)
{
	static const struct {
		double f;
		const char *text;
	} cases[] = {{NAN, "\"NaN\""}, {INFINITY, "\"inf\""}, {-INFINITY, "\"-inf\""},         {0.1, "0.1"},
		     {-0.0, "-0"},     {1e300, "1e+300"},     {1.0 / 3, "0.33333333333333331"}};
	struct mt_value v[5] = {
		{.type = MONTRACE_TYPE_STR,
		 .s = S("q\"\\\n\x1b\xff\xc3\xa9\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xe2\x82\xac")},
		{.type = MONTRACE_TYPE_I64, .i = -1},
		{.type = MONTRACE_TYPE_F64},
		{.type = MONTRACE_TYPE_BOOL, .u = 1},
		{.type = MONTRACE_TYPE_U64, .u = UINT64_MAX}};
	struct mt_field extra[3] = {
		{{"parent", 6}, {.type = MONTRACE_TYPE_U64, .u = 2}},
		{{"ab", 2}, {.type = MONTRACE_TYPE_I64, .i = 5}},
		{{"gone", 4}, {.type = MONTRACE_TYPE_I64, .missing = true, .s = {"x", 1}}}};
	struct rig r;
	struct mt_instant e = {.thread = &r.t[0],
			       .time = 123456789,
			       .cs = &five,
			       .name = S("five"),
			       .parent = 2,
			       .nvalues = 5,
			       .values = v,
			       .extra = extra};
	char want[1024];
	size_t i;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "<job 7>", 2);
	make(&r, &span, 2, 1);
	for (i = 0; i < N_OF(cases); i++) {
		v[2].f = cases[i].f;
		e.extra = extra + (i & 1); /* the first one only repeats which span it is in */
		e.nextra = 3 - (i & 1);
		assert_int_equal(r.s->ops->instant(r.s, &e), 0);
		snprintf(want, sizeof(want),
			 "{\"timestamp\":\"2026-01-02T01:04:05.123456789Z\",\"seq\":%zu,\"level\":\"ERROR\","
			 "\"target\":\"app::db\",\"name\":\"five\",\"fields\":{\"a\":%s,\"ab\":5,"
			 "\"b\":18446744073709551615,\"gone\":null,\"m\":true,"
			 "\"z\":"
			 "\"q\\\"\\\\\\u000a\\u001b\xef\xbf\xbd\xc3\xa9\\u009b\\u202e\\u2066\xe2\x82\xac\"},"
			 "\"subject\":\"<job "
			 "7>\",\"recording\":1,"
			 "\"span\":2,\"span_name\":\"child\",\"thread\":\"main\",\"pid\":10,\"tid\":10,"
			 "\"file\":\"f.c\","
			 "\"line\":7}",
			 i, cases[i].text);
		assert_string_equal(line_of(&r, true), want);
	}
	rig_close(&r);
}

static void text_line(void **state)
{
	struct mt_value v[2] = {{.type = MONTRACE_TYPE_DEBUG, .s = S("bad \x1b[31mrequest\n")},
				{.type = MONTRACE_TYPE_STR, .s = S("v\x9b"), .cut = true, .full_len = 9}};
	struct rig r;
	struct mt_instant e = {.thread = &r.t[1],
			       .time = 123456789,
			       .cs = &message,
			       .name = S("event f.c:9"),
			       .parent = 1,
			       .flags = MT_SLICE_CUT,
			       .nvalues = 2,
			       .values = v};
	struct mt_instant none = {
		.thread = &r.t[0], .time = 123456789, .cs = &five, .name = S("five\x07"), .parent = 1};

	(void)state;
	setenv("TZ", "XXX-1", 1);
	tzset();
	rig_open(&r, NULL);
	make_recording(&r, 1, "job\t7", 2);
	r.s->ops->instant(r.s, &e);
	assert_string_equal(line_of(&r, false),
			    "I 02:04:05.123456 <job\xef\xbf\xbd"
			    "7> bad \xef\xbf\xbd[31mrequest\xef\xbf\xbd k=v\xef\xbf\xbd... ... (11)");
	r.s->ops->instant(r.s, &none);
	assert_string_equal(line_of(&r, false), "E 02:04:05.123456 <job\xef\xbf\xbd"
						"7> five\xef\xbf\xbd (main)");
	rig_close(&r);
}

/*
 * R17, W17: the original's fields live in a vector that is made longer, never shorter, with a count beside it that
 * its export does not look at: an event of one field in the place of one with five shows four of the old ones.
 */
static void stale_fields_not_leaked(void **state)
{
	struct mt_value v[5] = {{.type = MONTRACE_TYPE_STR, .s = S("secret")},
				{.type = MONTRACE_TYPE_I64, .i = 1},
				{.type = MONTRACE_TYPE_F64, .f = 1},
				{.type = MONTRACE_TYPE_BOOL, .u = 1},
				{.type = MONTRACE_TYPE_U64, .u = 1}};
	struct rig r;
	struct mt_instant e = {
		.thread = &r.t[0], .time = 1, .cs = &five, .name = S("five"), .parent = 1, .values = v};
	uint32_t n;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 2);
	for (n = 5; n > 0; n--) {
		e.nvalues = 5;
		r.s->ops->instant(r.s, &e);
		r.s->ops->instant(r.s, &e);
		e.nvalues = n == 5 ? 0 : 1;
		e.cs = &five;
		r.s->ops->instant(r.s, &e);
		assert_non_null(strstr(line_of(&r, true),
				       n == 5 ? "\"fields\":{}" : "\"fields\":{\"z\":\"secret\"}"));
	}
	rig_close(&r);
}

/*
 * W20: the original's ring takes number 0 for "nobody has written here" too, so at the first lap a second writer
 * does not wait for the first one: torn entries and panics of its own check. W21: its seq is taken before the
 * event is put in, so an overtaken writer leaves a hole. Here there is one writer, whatever the threads: no hole.
 */
static void concurrent_writers_gap_detection(void **state)
{
	char text[512] = "";
	struct rig r;
	uint64_t i;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 2);
	make(&r, &span, 2, 1);
	for (i = 0; i < 60000; i++)
		tick(&r, i & 1, i & 2 ? 1 : 2, i);
	assert_int_equal(mt_recordings_events(r.s, 1, 9, add_event, text), 0);
	assert_string_equal(text, "59998:59998 59999:59999");
	assert_int_equal(stats(&r).events, 60000);
	rig_close(&r);
}

static int add_lost(void *ctx, const struct mt_recorded *e)
{
	char *text = ctx;
	size_t at = strlen(text);

	snprintf(text + at, 512 - at, "%s%" PRIu64 "-%" PRIu64, at ? " " : "", e->lost, e->values[0].u);
	return 0;
}

static void lose(struct rig *r, struct mt_process *p, struct mt_thread *t, uint64_t n)
{
	struct mt_loss l = {.process = p, .thread = t, .time = ++r->time, .count = n, .cause = "ring full"};

	assert_int_equal(r->s->ops->lost(r->s, &l), 0);
}

/*
 * W21: a hit that never came has no number, and the original's seq says nothing of what its queue dropped. Here
 * the next event of each recording that it may have been for says how many were lost, and it is said once.
 */
static void losses_are_told_with_the_next_event(void **state)
{
	struct mt_process other = {.pid = 11, .name = "", .cmdline = "", .execution_id = ""};
	char text[512] = "";
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	lose(&r, NULL, &r.t[0], 100); /* before there was a recording */
	lose(&r, NULL, NULL, 100);
	make_recording(&r, 1, "a", 9);
	make_recording(&r, 2, "b", 9);
	tick(&r, 0, 1, 1);
	lose(&r, NULL, &r.t[0], 3);
	lose(&r, &r.p, NULL, 4);
	lose(&r, &other, NULL, 50); /* somebody else's */
	tick(&r, 1, 1, 2);
	assert_non_null(strstr(line_of(&r, false), "tick i=2 (11, 7 lost before)"));
	assert_non_null(strstr(line_of(&r, true), "},\"lost_before\":7,\"subject\""));
	tick(&r, 0, 1, 3);
	assert_null(strstr(line_of(&r, false), "lost"));
	assert_null(strstr(line_of(&r, true), "lost"));
	lose(&r, NULL, NULL, 5); /* nobody knows whose */
	tick(&r, 0, 2, 4);
	tick(&r, 0, 1, 5);
	assert_int_equal(mt_recordings_events(r.s, 1, 9, add_lost, text), 0);
	assert_string_equal(text, "0-1 7-2 0-3 5-5");
	text[0] = '\0';
	assert_int_equal(mt_recordings_events(r.s, 2, 9, add_lost, text), 0);
	assert_string_equal(text, "12-4");
	rig_close(&r);
}

static void tail_repeatable(void **state)
{
	struct rig r;
	char *a, *b;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "a", 5);
	make_recording(&r, 2, "b", 5);
	tick(&r, 0, 1, 1);
	tick(&r, 0, 2, 2);
	a = strdup(line_of(&r, true));
	b = strdup(line_of(&r, true));
	assert_string_equal(a, b);
	assert_int_equal(stats(&r).events, 2);
	expect_events(&r, 1, "0:1");
	expect_events(&r, 1, "0:1");
	free(a);
	free(b);
	rig_close(&r);
}

static void snapshot_on_target_death_keeps_64(void **state)
{
	static const struct {
		enum mt_end_reason reason;
		uint32_t status;
		const char *want;
	} cases[] = {
		{MT_END_PROCESS, 0, "1:job:ended"},    {MT_END_PROCESS, 9, "1:job:failed"},
		{MT_END_PROCESS, 256, "1:job:failed"}, {MT_END_EXEC, 0, "1:job:ended"},
		{MT_END_DETACH, 0, "1:job:ended"},
	};
	char text[512] = "";
	struct rig r;
	size_t i, k;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		rig_open(&r, NULL);
		make_recording(&r, 1, "job", 64);
		for (k = 0; k < 100; k++)
			tick(&r, 0, 1, k);
		die(&r, cases[i].reason, cases[i].status);
		r.p.name = NULL;
		expect_recordings(&r, NULL, cases[i].want);
		text[0] = '\0';
		assert_int_equal(mt_recordings_events(r.s, 1, 64, add_event, text), 0);
		assert_memory_equal(text, "36:36 37:37", 11);
		assert_int_equal(stats(&r).kept, 1);
		tick(&r, 0, 1, 5);
		assert_int_equal(stats(&r).events, 100);
		assert_int_equal(r.s->ops->free(r.s), 0);
	}
	/* Nobody said how it ended, but the end of a slice did. */
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 64);
	enter_as(&r, 0, 1, 0, &recording, 0);
	tick(&r, 0, 1, 1);
	leave_as(&r, 0, 1, &recording, MT_END_PROCESS);
	die(&r, MT_END_NORMAL, 0);
	expect_recordings(&r, NULL, "1:job:failed");
	assert_int_equal(r.s->ops->free(r.s), 0);
}

/* A new file begins, and nothing more happens in the process but that its spans are closed and it ends. */
static void ends_between_two_files(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 8);
	make_recording(&r, 2, "other", 8);
	make(&r, &span, 3, 2);
	tick(&r, 0, 1, 1);
	tick(&r, 0, 2, 2);
	die(&r, MT_END_PART, 0);
	close_span(&r, 3);
	close_span(&r, 1);
	expect_recordings(&r, NULL, "2:other:live 1:job:closed");
	assert_int_equal(stats(&r).spans, 1);
	die(&r, MT_END_PROCESS, 9);
	expect_recordings(&r, NULL, "1:job:closed 2:other:failed");
	rig_close(&r);
}

/* A new file begins: the process is told gone and then again; the recording goes on. */
static void another_part_of_the_trace(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "job", 8);
	enter_as(&r, 0, 1, 0, &recording, 0);
	enter_as(&r, 0, 2, 1, &scope, 0);
	tick(&r, 0, 2, 1);
	leave_as(&r, 0, 2, &scope, MT_END_PART);
	leave_as(&r, 0, 1, &recording, MT_END_PART);
	die(&r, MT_END_PART, 0);
	expect_recordings(&r, NULL, "1:job:live");
	enter_as(&r, 0, 1, 0, &recording, MT_SLICE_CONTINUED);
	enter_as(&r, 0, 2, 1, &scope, MT_SLICE_CONTINUED);
	tick(&r, 0, 2, 2);
	expect_stacks(&r, 1, "scope#2x1<recording#1x1");
	expect_events(&r, 1, "0:1 1:2");
	/* Again, and this time it ends before anything is said of it. */
	die(&r, MT_END_PART, 0);
	die(&r, MT_END_PROCESS, 9);
	expect_recordings(&r, NULL, "1:job:failed");
	/* Its pid is another process's now; a parted one that never comes back is no leak. */
	r.p.start = 99;
	make_recording(&r, 5, "new", 8);
	die(&r, MT_END_PART, 0);
	r.p.start = 100;
	make_recording(&r, 6, "newer", 8);
	tick(&r, 0, 6, 1);
	die(&r, MT_END_PROCESS, 0);
	expect_recordings(&r, NULL, "2:new:live 1:job:failed 3:newer:ended");
	rig_close(&r);
}

/* R28: of those that ended the clean ones go first, the oldest of them; then the newest failures. */
static void kept_ones_go_in_order(void **state)
{
	static const struct mt_recordings_opts opts = {.max_kept = 3};
	static const struct {
		bool fails;
		const char *want;
	} steps[] = {
		{false, "1:s1:ended"},
		{true, "1:s1:ended 2:s2:failed"},
		{false, "1:s1:ended 2:s2:failed 3:s3:ended"},
		{true, "2:s2:failed 3:s3:ended 4:s4:failed"},
		{true, "2:s2:failed 4:s4:failed 5:s5:failed"},
		{true, "2:s2:failed 4:s4:failed 5:s5:failed"},
		{false, "2:s2:failed 4:s4:failed 5:s5:failed"},
	};
	char subject[8];
	struct rig r;
	size_t i;

	(void)state;
	rig_open(&r, &opts);
	for (i = 0; i < N_OF(steps); i++) {
		snprintf(subject, sizeof(subject), "s%zu", i + 1);
		make_recording(&r, i + 1, subject, 4);
		tick(&r, 0, i + 1, i);
		die(&r, MT_END_PROCESS, steps[i].fails ? 9 : 0);
		expect_recordings(&r, NULL, steps[i].want);
	}
	assert_int_equal(stats(&r).evicted, 4);
	/* One without events is not worth keeping. */
	make_recording(&r, 50, "empty", 4);
	die(&r, MT_END_PROCESS, 9);
	expect_recordings(&r, NULL, steps[6].want);
	rig_close(&r);
}

/* ---- bounds ---- */

static int get_events(void *ctx, const struct mt_recording_info *i)
{
	((uint32_t *)ctx)[i->subject[4] != '\0'] = i->events;
	return 0;
}

static void quiet_subjects_keep_theirs(void **state)
{
	uint32_t n[2] = {0};
	static const struct mt_recordings_opts opts = {.max_bytes = 256 << 10};
	char value[1000];
	struct mt_value v[2] = {{.type = MONTRACE_TYPE_DEBUG, .s = {value, 1000}},
				{.type = MONTRACE_TYPE_STR, .s = {"", 0}}};
	struct rig r;
	struct mt_instant e = {
		.thread = &r.t[0], .time = 1, .cs = &message, .name = S("m"), .nvalues = 2, .values = v};
	uint64_t i;

	(void)state;
	memset(value, 'x', sizeof(value));
	rig_open(&r, &opts);
	make_recording(&r, 1, "quiet", 4);
	for (i = 0; i < 4; i++)
		tick(&r, 0, 1, i);
	make_recording(&r, 4, "closed", 4);
	tick(&r, 0, 4, 1);
	close_span(&r, 4);
	assert_int_equal(stats(&r).kept, 1);
	make_recording(&r, 2, "busy", 4096);
	make_recording(&r, 3, "busy too", 4096);
	for (i = 0; i < 4000; i++) {
		e.parent = i < 2000 ? 2 : 3;
		r.s->ops->instant(r.s, &e);
		assert_true(stats(&r).bytes <= 256 << 10);
	}
	expect_events(&r, 1, "0:0 1:1 2:2 3:3");
	assert_int_equal(stats(&r).kept, 0); /* went first */
	assert_int_equal(stats(&r).evicted, 1);
	assert_true(stats(&r).short_ > 3000);
	/* Both busy ones have about half of the rest, whoever came first. */
	assert_int_equal(mt_recordings_each(r.s, "busy*", get_events, n), 0);
	assert_in_range(n[0], 100, 150);
	assert_in_range(n[1], 100, 150);
	rig_close(&r);
}

static void too_many_recordings_and_spans(void **state)
{
	static const struct mt_recordings_opts opts = {.max_live = 2, .max_spans = 5};
	struct rig r;
	uint64_t i;

	(void)state;
	rig_open(&r, &opts);
	make_recording(&r, 1, "a", 9);
	make_recording(&r, 2, "b", 9);
	make_recording(&r, 3, "c", 9);
	assert_int_equal(stats(&r).refused, 1);
	expect_recordings(&r, NULL, "1:a:live 2:b:live");
	for (i = 10; i < 13; i++)
		make(&r, &span, i, 1);
	tick(&r, 0, 10, 1); /* used now: 11 is the longest unused */
	make(&r, &span, 13, 1);
	tick(&r, 0, 11, 2);
	tick(&r, 0, 10, 3);
	tick(&r, 0, 12, 4);
	tick(&r, 0, 13, 5);
	tick(&r, 0, 1, 6); /* roots are never forgotten */
	expect_events(&r, 1, "0:1 1:3 2:4 3:5 4:6");
	assert_int_equal(stats(&r).spans, 5);
	assert_int_equal(stats(&r).forgotten, 1);
	close_span(&r, 12);
	tick(&r, 0, 12, 7);
	assert_int_equal(stats(&r).events, 5);
	assert_int_equal(stats(&r).spans, 4);
	rig_close(&r);
}

/* ---- tail ---- */

static void tail_by_subject_and_time(void **state)
{
	struct mt_recordings_tail_opts o = {.subject = "job *", .n = 3};
	char buf[8192] = "";
	uint32_t left = 99;
	struct rig r;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	rig_open(&r, NULL);
	make_recording(&r, 1, "job 1", 4);
	make_recording(&r, 2, "job 2", 4);
	make_recording(&r, 3, "other", 4);
	r.time = 1000;
	tick(&r, 0, 1, 1);
	tick(&r, 0, 2, 2);
	tick(&r, 0, 3, 3);
	tick(&r, 0, 2, 4);
	close_span(&r, 2);
	tick(&r, 1, 1, 5);
	expect_recordings(&r, "job ?", "1:job 1:live 2:job 2:closed");
	assert_int_equal(mt_recordings_tail(r.s, &o, copy, buf, &left), 0);
	assert_string_equal(
		buf, "W 00:00:00.000001 <job 2> tick i=2 (main)\nW 00:00:00.000001 <job 2> tick i=4 (main)\n"
		     "W 00:00:00.000001 <job 1> tick i=5 (11)");
	assert_int_equal(left, 0);
	/* Not enough room: the newest count. */
	o.max_bytes = 90;
	buf[0] = '\0';
	assert_int_equal(mt_recordings_tail(r.s, &o, copy, buf, &left), 0);
	assert_string_equal(
		buf, "W 00:00:00.000001 <job 2> tick i=4 (main)\nW 00:00:00.000001 <job 1> tick i=5 (11)");
	assert_int_equal(left, 1);
	o.n = 0;
	buf[0] = '\0';
	assert_int_equal(mt_recordings_tail(r.s, &o, copy, buf, &left), 0);
	assert_string_equal(buf, "");
	rig_close(&r);
}

static int stop(void *ctx, const char *text, size_t len)
{
	(void)text;
	(void)len;
	(*(int *)ctx)++;
	return -EPIPE;
}

static void watch_and_stop(void **state)
{
	struct mt_recordings_tail_opts o = {.n = 9};
	char text[512] = "";
	struct rig r;
	int lines = 0;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "a", 2);
	mt_recordings_watch(r.s, add_event, text);
	tick(&r, 0, 1, 5);
	tick(&r, 0, 0, 6);
	tick(&r, 0, 1, 7);
	mt_recordings_watch(r.s, NULL, NULL);
	tick(&r, 0, 1, 8);
	assert_string_equal(text, "0:5 1:7");
	assert_int_equal(mt_recordings_tail(r.s, &o, stop, &lines, NULL), -EPIPE);
	assert_int_equal(lines, 1);
	rig_close(&r);
}

static int get_process(void *ctx, const struct mt_recording_info *i)
{
	char *text = ctx;

	snprintf(text + strlen(text), 64, "%s=%s ", i->subject, i->process);
	return 0;
}

static void process_is_renamed(void **state)
{
	char text[256] = "";
	struct rig r;

	(void)state;
	rig_open(&r, NULL);
	make_recording(&r, 1, "a", 2);
	make_recording(&r, 2, "b", 2);
	tick(&r, 0, 1, 1);
	close_span(&r, 1);
	r.p.name = "new";
	assert_int_equal(r.s->ops->process(r.s, &r.p, 5), 0);
	assert_int_equal(mt_recordings_each(r.s, NULL, get_process, text), 0);
	assert_string_equal(text, "b=new a=app ");
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorder_last_n_seq),
		cmocka_unit_test(outside_not_recorded),
		cmocka_unit_test(child_inherits),
		cmocka_unit_test(scope_outlives_its_parent),
		cmocka_unit_test(nested_isolated),
		cmocka_unit_test(explicit_parent_not_entered),
		cmocka_unit_test(explicit_root_not_recorded),
		cmocka_unit_test(recording_dropped_spans_alive),
		cmocka_unit_test(recording_id_never_reused),
		cmocka_unit_test(stacks_leaf_to_root),
		cmocka_unit_test(stacks_broken_at_unentered),
		cmocka_unit_test(stacks_recursive_entry),
		cmocka_unit_test(cap_min_2),
		cmocka_unit_test(unseen_creation),
		cmocka_unit_test(json_sorted_and_nonfinite),
		cmocka_unit_test(text_line),
		cmocka_unit_test(stale_fields_not_leaked),
		cmocka_unit_test(concurrent_writers_gap_detection),
		cmocka_unit_test(losses_are_told_with_the_next_event),
		cmocka_unit_test(tail_repeatable),
		cmocka_unit_test(snapshot_on_target_death_keeps_64),
		cmocka_unit_test(another_part_of_the_trace),
		cmocka_unit_test(ends_between_two_files),
		cmocka_unit_test(kept_ones_go_in_order),
		cmocka_unit_test(quiet_subjects_keep_theirs),
		cmocka_unit_test(too_many_recordings_and_spans),
		cmocka_unit_test(tail_by_subject_and_time),
		cmocka_unit_test(watch_and_stop),
		cmocka_unit_test(process_is_renamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
