/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flight recorder: what a dump tells is compared, as the check sink's log, with what it should tell.
 * The check sink stands before the recorder too, so that the tests feed nothing wrong.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check_sink.h"
#include "flight.h"
#include "tee.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define S(text) ((struct mt_str){(text), (uint32_t)strlen(text)})

static const struct mt_callsite plain = {.id = 1,
					 .class_ = MONTRACE_CLASS_SPAN,
					 .level = MONTRACE_INFO,
					 .name = "work",
					 .target = "app",
					 .file = "f.c",
					 .function = ""};
static const struct mt_callsite rich = {.id = 2,
					.class_ = MONTRACE_CLASS_SPAN,
					.level = MONTRACE_INFO,
					.name = "rich",
					.target = "app::db",
					.file = "f.c",
					.function = "",
					.nfields = 6,
					.fields = {{.name = "i", .type = MONTRACE_TYPE_I64},
						   {.name = "u", .type = MONTRACE_TYPE_U64},
						   {.name = "f", .type = MONTRACE_TYPE_F64},
						   {.name = "b", .type = MONTRACE_TYPE_BOOL},
						   {.name = "s", .type = MONTRACE_TYPE_STR},
						   {.name = "d", .type = MONTRACE_TYPE_DEBUG}}};
static const struct mt_callsite text = {.id = 3,
					.class_ = MONTRACE_CLASS_EVENT,
					.level = MONTRACE_INFO,
					.name = "text",
					.target = "app",
					.file = "f.c",
					.function = "",
					.nfields = 1,
					.fields = {{.name = "s", .type = MONTRACE_TYPE_STR}}};
static const struct mt_callsite depth = {.id = 4,
					 .class_ = MONTRACE_CLASS_COUNTER,
					 .level = MONTRACE_INFO,
					 .name = "depth",
					 .target = "app",
					 .file = "f.c",
					 .function = "",
					 .nfields = 1,
					 .fields = {{.name = "value", .type = MONTRACE_TYPE_I64}}};

/* ---- a recorder behind a check sink ---- */

struct rig {
	struct mt_sink *flight, *in;
	struct mt_process p;
	struct mt_thread t[2];
	uint64_t key;
};

static void rig_open(struct rig *r, const char *limits)
{
	struct mt_flight_spec spec;

	memset(r, 0, sizeof(*r));
	assert_int_equal(mt_flight_spec_parse(limits, &spec, NULL, NULL), 0);
	assert_int_equal(mt_flight_new(&spec, &r->flight), 0);
	assert_int_equal(mt_check_new(r->flight, false, &r->in), 0);
	r->p = (struct mt_process){.pid = 10,
				   .ppid = 1,
				   .uid = 1000,
				   .start = 5,
				   .name = "app",
				   .cmdline = "app -x",
				   .execution_id = "e1"};
	r->t[0] = (struct mt_thread){.process = &r->p, .tid = 10, .start = 5, .name = "main"};
	r->t[1] = (struct mt_thread){.process = &r->p, .tid = 11, .start = 6, .name = "worker"};
	assert_int_equal(r->in->ops->process(r->in, &r->p, 0), 0);
	assert_int_equal(r->in->ops->thread(r->in, &r->t[0], 0), 0);
	assert_int_equal(r->in->ops->thread(r->in, &r->t[1], 0), 0);
}

/* The rest of the story is not told: the check sink's verdict is taken before. */
static void rig_close(struct rig *r)
{
	if (mt_check_error(r->in))
		fail_msg("%s", mt_check_error(r->in));
	r->in->ops->free(r->in);
}

static uint64_t begin_named(struct rig *r, unsigned t, uint64_t time, const struct mt_callsite *cs,
			    struct mt_str name)
{
	struct mt_slice sl = {
		.thread = &r->t[t], .time = time, .cs = cs, .name = name, .key = ++r->key, .span = r->key};

	assert_int_equal(r->in->ops->begin(r->in, &sl), 0);
	return sl.key;
}

static uint64_t begin(struct rig *r, unsigned t, uint64_t time)
{
	return begin_named(r, t, time, &plain, S(plain.name));
}

static void end(struct rig *r, unsigned t, uint64_t time, uint64_t key)
{
	struct mt_slice_end e = {.thread = &r->t[t],
				 .time = time,
				 .cs = &plain,
				 .name = S(plain.name),
				 .key = key,
				 .span = key};

	assert_int_equal(r->in->ops->end(r->in, &e), 0);
}

static void instant(struct rig *r, unsigned t, uint64_t time, const char *value, uint32_t len)
{
	struct mt_value v = {.type = MONTRACE_TYPE_STR, .s = {value, len}};
	struct mt_instant i = {.thread = &r->t[t],
			       .time = time,
			       .cs = &text,
			       .name = S("text"),
			       .parent = 3,
			       .nvalues = 1,
			       .values = &v};

	assert_int_equal(r->in->ops->instant(r->in, &i), 0);
}

static void drop_marks(char *log)
{
	char *p = log, *end;

	while (*p) {
		end = strchr(p, '\n') + 1;
		if (strncmp(p, "mark ", 5) == 0)
			memmove(p, end, strlen(end) + 1);
		else
			p = end;
	}
}

/* The dump as a log; the check sink must find nothing wrong with it. */
static char *dump_with_marks(struct rig *r, uint64_t now)
{
	struct mt_sink *out;
	char *log;

	assert_int_equal(mt_check_new(NULL, true, &out), 0);
	assert_int_equal(mt_flight_dump(r->flight, out, NULL, now), 0);
	assert_null(mt_check_final(out));
	log = strdup(mt_check_log(out) ? mt_check_log(out) : "");
	assert_int_equal(out->ops->free(out), 0);
	return log;
}

static char *dump(struct rig *r, uint64_t now)
{
	char *log = dump_with_marks(r, now);

	drop_marks(log);
	return log;
}

#define HEAD "process 10 name=app ppid=1 uid=1000 cmdline=app -x exec=e1\n"
#define MAIN "thread 10/10 name=main\n"
#define WORKER "thread 10/11 name=worker\n"

static void expect_dump(struct rig *r, uint64_t now, const char *log)
{
	char *got = dump(r, now);

	assert_string_equal(got, log);
	free(got);
}

static struct mt_flight_stats stats(const struct rig *r)
{
	struct mt_flight_stats st;

	mt_flight_stats(r->flight, &st);
	return st;
}

/* ---- limits as text ---- */

static void spec_parse_table(void **state)
{
	static const struct {
		const char *text;
		uint64_t time_ns, events, bytes;
	} good[] = {
		{NULL, 10000000000, 1000000, 64 << 20},
		{"", 10000000000, 1000000, 64 << 20},
		{"10s,1000000,256M", 10000000000, 1000000, 256 << 20},
		{"64K,5,1ms", 1000000, 5, 64 << 10},
		{"2m", 120000000000, 1000000, 64 << 20},
		{"2M", 10000000000, 1000000, 2 << 20},
		{"1h,1G", 3600000000000, 1000000, 1 << 30},
		{"8760h,64G,1000000000000", MT_FLIGHT_TIME_MAX, MT_FLIGHT_EVENTS_MAX, 64ull << 30},
	};
	static const struct {
		const char *text, *why;
		size_t pos;
	} bad[] = {
		{",", "a limit is missing", 0},
		{"10s,", "a limit is missing", 4},
		{"10s,,5", "a limit is missing", 4},
		{"ms", "a number is missing", 0},
		{"-1", "a number is missing", 0},
		{" 1", "a number is missing", 0},
		{"10s,5x", "unknown unit: time is ms s m h, memory is K M G, events have none", 4},
		{"10k", "unknown unit: time is ms s m h, memory is K M G, events have none", 0},
		{"1 s", "unknown unit: time is ms s m h, memory is K M G, events have none", 0},
		{"1s,2m", "a second limit of time", 3},
		{"1,1s,2", "a second limit of events", 5},
		{"1M,1M", "a second limit of memory", 3},
		{"0s", "the time must be at least 1ms", 0},
		{"0", "there must be at least one event", 0},
		{"63K", "the memory must be at least 64K", 0},
		{"65G", "the memory is more than 64G", 0},
		{"8761h", "the time is more than a year", 0},
		{"1000000000001", "too many events", 0},
		{"99999999999999999999", "number too large", 0},
	};
	struct mt_flight_spec spec;
	const char *why;
	size_t i, pos;

	(void)state;
	for (i = 0; i < N_OF(good); i++) {
		assert_int_equal(mt_flight_spec_parse(good[i].text, &spec, &pos, &why), 0);
		assert_int_equal(spec.time_ns, good[i].time_ns);
		assert_int_equal(spec.events, good[i].events);
		assert_int_equal(spec.bytes, good[i].bytes);
	}
	for (i = 0; i < N_OF(bad); i++) {
		spec.events = 77;
		assert_int_equal(mt_flight_spec_parse(bad[i].text, &spec, &pos, &why), -EINVAL);
		assert_string_equal(why, bad[i].why);
		assert_int_equal(pos, bad[i].pos);
		assert_int_equal(spec.events, 77);
		assert_int_equal(mt_flight_spec_parse(bad[i].text, &spec, NULL, NULL), -EINVAL);
	}
}

static void spec_text_again(void **state)
{
	static const char *const texts[] = {"10s,1000000,64M", "1500ms,7,65K", "2h,1,1G", "90m,3,100M"};
	char buf[MT_FLIGHT_SPEC_TEXT];
	struct mt_flight_spec spec;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(texts); i++) {
		assert_int_equal(mt_flight_spec_parse(texts[i], &spec, NULL, NULL), 0);
		assert_string_equal(mt_flight_spec_text(&spec, buf), texts[i]);
	}
}

static void new_refuses_bad_specs(void **state)
{
	static const struct mt_flight_spec bad[] = {{1, 1, 1}, {0, 1, 1 << 20}, {1, 0, 1 << 20}};
	struct mt_sink *s = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(bad); i++)
		assert_int_equal(mt_flight_new(&bad[i], &s), -EINVAL);
	assert_null(s);
}

/* ---- the window ---- */

static void open_slices_keep_their_begin(void **state)
{
	struct rig r;
	uint64_t a, b;

	(void)state;
	rig_open(&r, "1h,3,64K");
	a = begin(&r, 0, 1);
	b = begin(&r, 0, 2);
	instant(&r, 0, 3, "hi", 2);
	end(&r, 0, 4, b);
	begin(&r, 0, 5);
	expect_dump(&r, 6,
		    HEAD MAIN "begin 10/10 @1 work #1 span=1\n"
			      "begin 10/10 @2 work #2 span=2\n"
			      "instant 10/10 @3 text parent=3 s=\"hi\"\n"
			      "end 10/10 @4 work #2 span=2 normal\n"
			      "begin 10/10 @5 work #3 span=3\n"
			      "end 10/10 @6 work #3 span=3 detach\n"
			      "end 10/10 @6 work #1 span=1 detach\n"
			      "gone 10/10\ngone 10 detach\n");
	/* The dump has ended nothing: the recording goes on. */
	end(&r, 0, 7, 3);
	end(&r, 0, 8, a);
	expect_dump(&r, 9,
		    HEAD MAIN "begin 10/10 @1 work #1 span=1\n"
			      "begin 10/10 @5 work #3 span=3\n"
			      "end 10/10 @7 work #3 span=3 normal\n"
			      "end 10/10 @8 work #1 span=1 normal\n"
			      "gone 10/10\ngone 10 detach\n");
	assert_int_equal(stats(&r).events, 3);
	assert_int_equal(stats(&r).evicted, 4);
	assert_int_equal(stats(&r).open, 1);
	assert_int_equal(stats(&r).from, 5);
	assert_int_equal(stats(&r).to, 8);
	rig_close(&r);
}

static void limit_by_time(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "1ms,1000,64K");
	instant(&r, 0, 1000, "a", 1);
	instant(&r, 0, 1001000, "b", 1);
	assert_int_equal(stats(&r).events, 2); /* exactly 1 ms apart */
	instant(&r, 1, 1001001, "c", 1);
	assert_int_equal(stats(&r).events, 2);
	expect_dump(&r, 2001000,
		    HEAD MAIN WORKER "instant 10/10 @1001000 text parent=3 s=\"b\"\n"
				     "instant 10/11 @1001001 text parent=3 s=\"c\"\n"
				     "gone 10/10\ngone 10/11\ngone 10 detach\n");
	/* Time passes without events, in flush and in a dump. */
	assert_int_equal(r.in->ops->flush(r.in, 2001001), 0);
	assert_int_equal(stats(&r).events, 1);
	expect_dump(&r, 9000000, HEAD "gone 10 detach\n");
	assert_int_equal(stats(&r).events, 0);
	assert_int_equal(stats(&r).bytes, 0);
	rig_close(&r);
}

static void limit_by_bytes(void **state)
{
	char value[1000];
	struct rig r;
	uint64_t i;
	char *log;

	(void)state;
	memset(value, 'x', sizeof(value));
	rig_open(&r, "1h,1000000,64K");
	begin(&r, 0, 1);
	for (i = 0; i < 5000; i++) {
		instant(&r, i & 1, 2 + i, value, i % 7 ? 3 : 1000);
		assert_true(stats(&r).bytes <= 64 << 10);
	}
	/* The newest is there, and as much as there is room for. */
	assert_true(stats(&r).bytes > (64 << 10) - 2100);
	log = dump(&r, 6000);
	assert_non_null(strstr(log, "begin 10/10 @1 work #1"));
	assert_non_null(strstr(log, "@5001 text"));
	assert_null(strstr(log, "@3000 text"));
	free(log);
	rig_close(&r);
}

static void values_names_and_flags_survive(void **state)
{
	struct mt_value v[6] = {
		{.type = MONTRACE_TYPE_I64, .i = INT64_MIN},
		{.type = MONTRACE_TYPE_U64, .u = UINT64_MAX},
		{.type = MONTRACE_TYPE_F64, .f = 0.1},
		{.type = MONTRACE_TYPE_BOOL, .u = 1},
		{.type = MONTRACE_TYPE_STR, .s = {"abc", 3}, .cut = true, .full_len = 2000},
		{.type = MONTRACE_TYPE_DEBUG, .missing = true, .s = {"unreadable", 10}},
	};
	struct mt_field extra[2] = {{{"late", 4}, {.type = MONTRACE_TYPE_I64, .i = -3}},
				    {{"parent", 6}, {.type = MONTRACE_TYPE_U64, .u = 4}}};
	struct rig r;
	struct mt_slice sl = {.thread = &r.t[0],
			      .time = 100,
			      .cs = &rich,
			      .key = 900,
			      .span = 5,
			      .parent = 7000,
			      .flow = 0xfedcba9876543210,
			      .flags = MT_SLICE_REENTERED | MT_SLICE_CUT,
			      .nvalues = 6,
			      .values = v,
			      .nextra = 2,
			      .extra = extra};
	struct mt_slice_end e = {.thread = &r.t[0],
				 .time = 130,
				 .cs = &rich,
				 .key = 900,
				 .span = 5,
				 .reason = MT_END_PROCESS,
				 .exit_status = 139,
				 .nextra = 2,
				 .extra = extra};
	static const char *const names[] = {"rich", "app::db::rich", "select *", "app::db:.rich", ""};
	struct mt_sink *direct;
	char want[8192], *got;
	unsigned window, i;

	(void)state;
	for (i = 0; i < N_OF(names); i++) {
		sl.name = e.name = S(names[i]);
		/* What the recorder is told, told to a check sink directly. */
		rig_open(&r, "1h,1000,64K");
		rig_close(&r);
		r.t[0].sink_data = r.p.sink_data = NULL;
		assert_int_equal(mt_check_new(NULL, true, &direct), 0);
		direct->ops->process(direct, &r.p, 0);
		direct->ops->thread(direct, &r.t[0], 0);
		direct->ops->begin(direct, &sl);
		direct->ops->end(direct, &e);
		direct->ops->gone(direct, NULL, &r.t[0], 0);
		r.p.end_reason = MT_END_DETACH;
		direct->ops->gone(direct, &r.p, NULL, 0);
		snprintf(want, sizeof(want), "%s", mt_check_log(direct));
		assert_non_null(strstr(want, "reentered"));
		assert_int_equal(direct->ops->free(direct), 0);
		/* All in the log, and with the begin outside. */
		for (window = 1000; window; window = window == 1000 ? 1 : 0) {
			char limits[32];

			snprintf(limits, sizeof(limits), "1h,%u,64K", window);
			rig_open(&r, limits);
			assert_int_equal(r.in->ops->begin(r.in, &sl), 0);
			assert_int_equal(r.in->ops->end(r.in, &e), 0);
			assert_int_equal(stats(&r).open, window == 1 ? 1 : 0);
			got = dump(&r, 200);
			assert_string_equal(got, want);
			free(got);
			rig_close(&r);
		}
	}
}

static void losses_and_counters(void **state)
{
	struct rig r;
	struct mt_count c = {
		.thread = &r.t[1], .time = 20, .cs = &depth, .value = {.type = MONTRACE_TYPE_I64, .i = -5}};
	struct mt_count named = c;
	struct mt_loss l = {.time = 10, .count = 7, .cause = "ring full"};

	(void)state;
	rig_open(&r, "1h,5,64K");
	r.in->ops->lost(r.in, &l); /* falls out */
	l.count = 1ull << 40;
	r.in->ops->lost(r.in, &l);
	l.process = &r.p;
	l.cause = "";
	r.in->ops->lost(r.in, &l);
	r.in->ops->counter(r.in, &c);
	named.name = (struct mt_str){"by name, not more", 7};
	r.in->ops->counter(r.in, &named);
	l.thread = &r.t[1];
	l.time = 30;
	l.count = 1;
	r.in->ops->lost(r.in, &l);
	expect_dump(&r, 40,
		    HEAD WORKER "lost @10 n=1099511627776 ring full\n"
				"lost 10 @10 n=1099511627776\n"
				"counter 10/11 @20 depth=-5\n"
				"counter 10/11 @20 by name=-5\n"
				"lost 10/11 @30 n=1\n"
				"gone 10/11\ngone 10 detach\n");
	rig_close(&r);
}

static void gone_ones_stay_while_needed(void **state)
{
	struct rig r;
	uint64_t k;

	(void)state;
	rig_open(&r, "1ms,100,64K");
	k = begin(&r, 1, 10);
	end(&r, 1, 20, k);
	r.t[1].name = "renamed";
	assert_int_equal(r.in->ops->thread(r.in, &r.t[1], 21), 0);
	r.p.name = "app2";
	assert_int_equal(r.in->ops->process(r.in, &r.p, 21), 0);
	r.p.end_reason = MT_END_PROCESS;
	r.p.exit_status = 9;
	assert_int_equal(r.in->ops->gone(r.in, NULL, &r.t[0], 30), 0);
	assert_int_equal(r.in->ops->gone(r.in, NULL, &r.t[1], 30), 0);
	assert_int_equal(r.in->ops->gone(r.in, &r.p, NULL, 30), 0);
	assert_null(r.t[1].sink_data);
	assert_null(r.p.sink_data);
	r.t[1].name = r.p.name = NULL; /* their memory may go */
	expect_dump(&r, 40,
		    "process 10 name=app2 ppid=1 uid=1000 cmdline=app -x exec=e1\n"
		    "thread 10/11 name=renamed\n"
		    "begin 10/11 @10 work #1 span=1\nend 10/11 @20 work #1 span=1 normal\n"
		    "gone 10/11\ngone 10 process status=9\n");
	assert_int_equal(stats(&r).threads, 1);
	assert_int_equal(stats(&r).processes, 1);
	expect_dump(&r, 2000000, "");
	assert_int_equal(stats(&r).threads, 0);
	assert_int_equal(stats(&r).processes, 0);
	rig_close(&r);
}

/* 64K has room for 256 threads. The longest gone one makes room, a live one never does. */
static void more_threads_than_slots(void **state)
{
	static struct mt_thread t[600];
	struct mt_instant i = {.cs = &text, .name = S("text")};
	struct rig r;
	unsigned k;
	char *log;

	(void)state;
	rig_open(&r, "1h,1000000,64K");
	for (k = 0; k < 300; k++) {
		t[k] = (struct mt_thread){.process = &r.p, .tid = 1000 + k, .name = ""};
		r.in->ops->thread(r.in, &t[k], 1);
		i.thread = &t[k];
		i.time = 1 + k;
		assert_int_equal(r.in->ops->instant(r.in, &i), 0);
		r.in->ops->gone(r.in, NULL, &t[k], 1);
	}
	assert_int_equal(stats(&r).threads, 256);
	assert_int_equal(stats(&r).skipped, 0);
	log = dump(&r, 1000);
	assert_null(strstr(log, "10/1043 "));
	assert_non_null(strstr(log, "instant 10/1044 @45 text\n"));
	assert_non_null(strstr(log, "instant 10/1299 @300 text\n"));
	free(log);
	for (k = 300; k < 600; k++) {
		t[k] = (struct mt_thread){.process = &r.p, .tid = 1000 + k, .name = ""};
		r.in->ops->thread(r.in, &t[k], 1);
		i.thread = &t[k];
		i.time = 1 + k;
		assert_int_equal(r.in->ops->instant(r.in, &i), 0);
	}
	assert_int_equal(stats(&r).skipped, 44);
	log = dump(&r, 1000);
	assert_non_null(strstr(log, "instant 10/1300 @301 text\n"));
	assert_non_null(strstr(log, "instant 10/1555 @556 text\n"));
	assert_null(strstr(log, "10/1556"));
	assert_non_null(strstr(log, "lost @1000 n=44 flight recorder: too many threads\n"));
	free(log);
	/* A slot that gets free is taken by one that had none. */
	r.in->ops->gone(r.in, NULL, &t[300], 600);
	i.thread = &t[599];
	i.time = 700;
	r.in->ops->instant(r.in, &i);
	log = dump(&r, 1000);
	assert_non_null(strstr(log, "instant 10/1599 @700 text\n"));
	assert_null(strstr(log, "instant 10/1300 "));
	free(log);
	rig_close(&r);
}

/* 64 processes: the longest gone makes room with its threads. */
static void more_processes_than_slots(void **state)
{
	static struct mt_process p[200];
	static struct mt_thread t[200];
	struct mt_instant i = {.cs = &text, .name = S("text")};
	struct rig r;
	unsigned k;
	char *log;

	(void)state;
	rig_open(&r, "1h,1000000,64K");
	for (k = 0; k < 200; k++) {
		p[k] = (struct mt_process){.pid = 100 + k, .name = "p", .cmdline = "", .execution_id = ""};
		t[k] = (struct mt_thread){.process = &p[k], .tid = 100 + k, .name = ""};
		r.in->ops->process(r.in, &p[k], 1);
		r.in->ops->thread(r.in, &t[k], 1);
		i.thread = &t[k];
		i.time = 1 + k;
		assert_int_equal(r.in->ops->instant(r.in, &i), 0);
		if (k < 100) {
			r.in->ops->gone(r.in, NULL, &t[k], 1);
			r.in->ops->gone(r.in, &p[k], NULL, 1);
		}
	}
	/* 63 of the 100 live ones (and the rig's) have a slot, no gone one has. */
	assert_int_equal(stats(&r).processes, 64);
	assert_int_equal(stats(&r).threads, 63);
	assert_int_equal(stats(&r).skipped, 37);
	log = dump(&r, 1000);
	assert_null(strstr(log, "process 199 "));
	assert_non_null(strstr(log, "process 200 "));
	assert_non_null(strstr(log, "instant 262/262 @163 text\n"));
	assert_null(strstr(log, "process 263 "));
	free(log);
	rig_close(&r);
}

/* 1,024 open slices and 64 KiB of their data: what is beyond goes without values, then is left out. */
static void more_open_slices_than_room(void **state)
{
	char value[1000];
	struct mt_value v = {.type = MONTRACE_TYPE_STR, .s = {value, sizeof(value)}};
	struct rig r;
	struct mt_slice sl = {.thread = &r.t[0], .cs = &text, .name = S("text"), .nvalues = 1, .values = &v};
	struct mt_slice_end e = {.thread = &r.t[0], .cs = &text, .name = S("text")};
	char *log, *p;
	unsigned k, bare = 0;

	(void)state;
	memset(value, 'x', sizeof(value));
	rig_open(&r, "1h,1,64K");
	for (k = 1; k <= 1100; k++) {
		sl.key = sl.span = sl.time = k;
		assert_int_equal(r.in->ops->begin(r.in, &sl), 0);
	}
	assert_int_equal(stats(&r).open, 1024);
	assert_int_equal(stats(&r).open_lost, 75);
	assert_int_equal(stats(&r).open_bare, 1024 - 1024 / 17);
	log = dump_with_marks(&r, 2000);
	assert_non_null(
		strstr(log, "mark @1100 75 slices that were open here are not shown: no room for more\n"));
	free(log);
	log = dump(&r, 2000);
	assert_non_null(strstr(log, "begin 10/10 @1024 text #1024 span=1024 cut\n"));
	assert_null(strstr(log, "#1025 "));
	assert_non_null(
		strstr(log, "end 10/10 @2000 text #1100 span=1100 detach\nend 10/10 @2000 text #1024 "));
	for (p = log; (p = strstr(p, " cut\n")); p++)
		bare++;
	assert_int_equal(bare, stats(&r).open_bare);
	free(log);
	/* All end; ends of those left out are left out. Then the room is free again. */
	for (k = 1100; k >= 1; k--) {
		e.key = e.span = k;
		e.time = 4000 - k;
		assert_int_equal(r.in->ops->end(r.in, &e), 0);
		if (k == 1050)
			free(dump(&r, 4000));
	}
	instant(&r, 0, 5000, "x", 1);
	assert_int_equal(stats(&r).open, 0);
	log = dump_with_marks(&r, 5001);
	assert_null(strstr(log, "no room"));
	free(log);
	expect_dump(&r, 5001,
		    HEAD MAIN "instant 10/10 @5000 text parent=3 s=\"x\"\ngone 10/10\ngone 10 detach\n");
	for (k = 1; k <= 60; k++) {
		sl.key = sl.span = 2000 + k;
		sl.time = 6000 + k;
		r.in->ops->begin(r.in, &sl);
	}
	assert_int_equal(stats(&r).open, 59);
	assert_int_equal(stats(&r).open_bare, 1024 - 1024 / 17);
	rig_close(&r);
}

static void too_large_records_are_cut(void **state)
{
	static char value[9000];
	struct mt_value v[3] = {{.type = MONTRACE_TYPE_STR, .s = {value, 9000}},
				{.type = MONTRACE_TYPE_STR, .s = {value, 9000}},
				{.type = MONTRACE_TYPE_I64, .i = 1}};
	struct rig r;
	struct mt_slice sl = {.thread = &r.t[0],
			      .time = 5,
			      .cs = &rich,
			      .name = S("rich"),
			      .key = 1,
			      .span = 1,
			      .nvalues = 3,
			      .values = v};
	char *log;

	(void)state;
	memset(value, 'x', sizeof(value));
	rig_open(&r, "1h,10,64K");
	/* Directly: for the check sink the types do not fit the callsite. */
	assert_int_equal(r.flight->ops->begin(r.flight, &sl), 0);
	assert_int_equal(stats(&r).cut, 1);
	log = dump(&r, 6);
	assert_non_null(strstr(log, "rich #1 span=1 cut i="));
	assert_null(strstr(log, " u="));
	free(log);
	rig_close(&r);
}

static void memory_does_not_grow(void **state)
{
	static char value[500];
	struct mallinfo2 before, after;
	uint64_t k, memory;
	struct rig r;
	unsigned i;

	(void)state;
	memset(value, 'y', sizeof(value));
	rig_open(&r, "1h,1000000,64K");
	memory = stats(&r).memory;
	assert_true(memory < (64 << 10) + 400000);
	k = begin(&r, 0, 1); /* the check sink grows its stack once */
	end(&r, 0, 1, k);
	before = mallinfo2();
	for (i = 2; i < 20000; i++) {
		k = begin(&r, 0, i);
		instant(&r, 0, i, value, i % 500);
		end(&r, 0, i, k);
	}
	after = mallinfo2();
	assert_int_equal(after.uordblks, before.uordblks);
	assert_int_equal(after.hblkhd, before.hblkhd);
	assert_int_equal(stats(&r).memory, memory);
	rig_close(&r);
}

/* ---- dumps ---- */

struct marks {
	struct mt_sink sink;
	char text[1024];
	int fail, begins, ends, gones;
};

static int mark_mark(struct mt_sink *s, uint64_t time, struct mt_str t)
{
	struct marks *m = (struct marks *)s;
	size_t at = strlen(m->text);

	snprintf(m->text + at, sizeof(m->text) - at, "@%" PRIu64 " %.*s\n", time, (int)t.len, t.p);
	return 0;
}

static int mark_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct marks *m = (struct marks *)s;

	(void)sl;
	m->begins++;
	return m->fail;
}

static int mark_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	(void)e;
	((struct marks *)s)->ends++;
	return 0;
}

static int mark_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	(void)p;
	(void)t;
	(void)time;
	((struct marks *)s)->gones++;
	return -EIO;
}

static int mark_free(struct mt_sink *s)
{
	(void)s;
	return 0;
}

static const struct mt_sink_ops mark_ops = {
	.begin = mark_begin, .end = mark_end, .gone = mark_gone, .free = mark_free, .mark = mark_mark};

static void dump_says_why_and_where_it_starts(void **state)
{
	static const struct {
		const char *limits, *text;
	} cases[] = {
		{"1h,10,64K", "@40 snapshot\n"},
		{"1h,2,64K", "@20 window starts here: older events have left (limit: events of "
			     "1h,2,64K)\n@40 snapshot\n"},
		{"1ms,10,64K", "@2000000 window starts here: older events have left (limit: time of "
			       "1ms,10,64K)\n@40 snapshot\n"},
	};
	struct mt_flight_mark mark = {.text = "snapshot", .time = 40};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct marks m = {.sink = {&mark_ops}, .fail = -ENOSPC};
		struct rig r;

		rig_open(&r, cases[i].limits);
		begin(&r, 0, 10);
		begin(&r, 0, 20);
		instant(&r, 1, i == 2 ? 2000000 : 30, "x", 1);
		/* The first error is the result; the rest is told all the same. */
		assert_int_equal(mt_flight_dump(r.flight, &m.sink, &mark, 2000001), -ENOSPC);
		assert_string_equal(m.text, cases[i].text);
		assert_int_equal(m.begins, 2);
		assert_int_equal(m.ends, 2);
		assert_int_equal(m.gones, 3);
		rig_close(&r);
	}
}

static void marks_are_kept(void **state)
{
	struct marks m = {.sink = {&mark_ops}};
	struct rig r;

	(void)state;
	rig_open(&r, "1h,10,64K");
	assert_int_equal(r.flight->ops->mark(r.flight, 15, S("a remark")), 0);
	mt_flight_dump(r.flight, &m.sink, NULL, 20);
	assert_string_equal(m.text, "@15 a remark\n");
	rig_close(&r);
}

static void dump_is_repeatable(void **state)
{
	struct rig r;
	char *a, *b;
	unsigned i;

	(void)state;
	rig_open(&r, "1h,50,64K");
	for (i = 1; i < 100; i++)
		begin(&r, i & 1, i);
	a = dump(&r, 200);
	b = dump(&r, 200);
	assert_string_equal(a, b);
	assert_int_equal(stats(&r).events, 50);
	free(a);
	free(b);
	rig_close(&r);
}

/* Events newer than `now`: the ends do not run back. */
static void dump_in_the_past(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "1h,50,64K");
	begin(&r, 0, 100);
	expect_dump(&r, 50,
		    HEAD MAIN "begin 10/10 @100 work #1 span=1\nend 10/10 @100 work #1 span=1 detach\n"
			      "gone 10/10\ngone 10 detach\n");
	rig_close(&r);
}

/* ---- any cut of any stream ---- */

enum { OP_BEGIN, OP_END, OP_INSTANT };

struct op {
	int what;
	unsigned t;
	uint64_t time, key;
};

static void tell_op(struct mt_sink *s, struct mt_thread *t, const struct op *o)
{
	struct mt_slice sl = {
		.thread = t, .time = o->time, .cs = &plain, .name = S("work"), .key = o->key, .span = o->key};
	struct mt_slice_end e = {
		.thread = t, .time = o->time, .cs = &plain, .name = S("work"), .key = o->key, .span = o->key};
	struct mt_instant i = {
		.thread = t, .time = o->time, .cs = &text, .name = S("text"), .parent = o->key};

	if (o->what == OP_BEGIN)
		s->ops->begin(s, &sl);
	else if (o->what == OP_END)
		s->ops->end(s, &e);
	else
		s->ops->instant(s, &i);
}

#define OPS 400

/* What a dump of the last `window` of n operations must tell: computed from the whole story. */
static void tell_expected(struct mt_sink *s, struct rig *r, const struct op *ops, unsigned n, unsigned window)
{
	unsigned first = n > window ? n - window : 0, i, t, d[2] = {0}, base[2];
	static struct op open[2][OPS];
	struct mt_slice_end e = {.cs = &plain, .name = S("work"), .time = 100000, .reason = MT_END_DETACH};
	bool used[2] = {false};

	for (i = 0; i < first; i++) {
		if (ops[i].what == OP_BEGIN)
			open[ops[i].t][d[ops[i].t]++] = ops[i];
		else if (ops[i].what == OP_END)
			d[ops[i].t]--;
	}
	for (i = first; i < n; i++)
		used[ops[i].t] = true;
	s->ops->process(s, &r->p, 0);
	for (t = 0; t < 2; t++) {
		base[t] = d[t];
		if (used[t] || d[t])
			s->ops->thread(s, &r->t[t], 0);
	}
	for (t = 0; t < 2; t++)
		for (i = 0; i < base[t]; i++)
			tell_op(s, &r->t[t], &open[t][i]);
	for (i = first; i < n; i++) {
		tell_op(s, &r->t[ops[i].t], &ops[i]);
		if (ops[i].what == OP_BEGIN)
			open[ops[i].t][d[ops[i].t]++] = ops[i];
		else if (ops[i].what == OP_END)
			d[ops[i].t]--;
	}
	for (t = 0; t < 2; t++) {
		while (d[t]) {
			e.thread = &r->t[t];
			e.key = e.span = open[t][--d[t]].key;
			s->ops->end(s, &e);
		}
	}
	for (t = 0; t < 2; t++)
		if (used[t] || base[t])
			s->ops->gone(s, NULL, &r->t[t], 0);
	r->p.end_reason = MT_END_DETACH;
	s->ops->gone(s, &r->p, NULL, 0);
}

static void count(struct rig *r, struct mt_thread *t, uint64_t time, const struct mt_callsite *cs, int64_t v)
{
	struct mt_count c = {
		.thread = t, .time = time, .cs = cs, .value = {.type = MONTRACE_TYPE_I64, .i = v}};

	assert_int_equal(r->in->ops->counter(r->in, &c), 0);
}

/* What a counter was when the window began is told with it, of each process, also when its thread is gone. */
static void counters_from_before_the_window(void **state)
{
	static struct mt_callsite real = {.id = 9,
					  .class_ = MONTRACE_CLASS_COUNTER,
					  .name = "load",
					  .target = "app",
					  .file = "f.c",
					  .function = "",
					  .nfields = 1,
					  .fields = {{.name = "value", .type = MONTRACE_TYPE_F64}}};
	struct mt_process other = {.pid = 20, .name = "other", .cmdline = "", .execution_id = "", .start = 3};
	struct mt_thread t = {.process = &other, .tid = 21, .name = "w"};
	struct mt_count f = {.cs = &real, .time = 103, .value = {.type = MONTRACE_TYPE_F64, .f = 0.5}};
	struct rig r;

	(void)state;
	rig_open(&r, "1h,3,64K");
	r.in->ops->process(r.in, &other, 1);
	r.in->ops->thread(r.in, &t, 1);
	count(&r, &r.t[0], 100, &depth, 1);
	count(&r, &r.t[1], 101, &depth, -2); /* the process's, whoever sets it */
	count(&r, &t, 102, &depth, 77);
	f.thread = &r.t[1];
	r.in->ops->counter(r.in, &f);
	count(&r, &r.t[0], 104, &depth, 4);
	/* The newest of those that have left. */
	assert_int_equal(stats(&r).counters, 1);
	expect_dump(&r, 200,
		    HEAD "process 20 name=other\n" MAIN WORKER "thread 20/21 name=w\n"
			 "counter 10/11 @101 depth=-2\ncounter 20/21 @102 depth=77\n"
			 "counter 10/11 @103 load=0.5\ncounter 10/10 @104 depth=4\n"
			 "gone 10/10\ngone 10/11\ngone 20/21\ngone 10 detach\ngone 20 detach\n");
	r.in->ops->gone(r.in, NULL, &t, 105);
	instant(&r, 0, 110, "a", 1);
	instant(&r, 0, 111, "b", 1);
	instant(&r, 0, 112, "c", 1);
	assert_int_equal(stats(&r).counters, 3);
	/* 20/21 is no more: the first thread of 20 tells. */
	expect_dump(&r, 200,
		    HEAD
		    "process 20 name=other\n" MAIN "thread 20/20 name=\n"
		    "counter 10/10 @103 load=0.5\ncounter 10/10 @104 depth=4\n"
		    "counter 20/20 @102 depth=77\n"
		    "instant 10/10 @110 text parent=3 s=\"a\"\ninstant 10/10 @111 text parent=3 s=\"b\"\n"
		    "instant 10/10 @112 text parent=3 s=\"c\"\n"
		    "gone 10/10\ngone 20/20\ngone 10 detach\ngone 20 detach\n");
	r.in->ops->gone(r.in, &other, NULL, 113);
	assert_int_equal(stats(&r).counters, 2);
	rig_close(&r);
}

/* Counters of one callsite with names of their own are different ones; too long a name is not kept. */
static void counters_with_names(void **state)
{
	char longest[105];
	struct mt_count c = {.cs = &depth, .value = {.type = MONTRACE_TYPE_I64}};
	struct rig r;
	unsigned i;
	char *log;

	(void)state;
	memset(longest, 'l', sizeof(longest));
	rig_open(&r, "1h,1,64K");
	c.thread = &r.t[0];
	for (i = 0; i < 12; i++) {
		c.name = i % 4 == 0   ? (struct mt_str){NULL, 0}
			 : i % 4 == 1 ? (struct mt_str){longest, 104}
			 : i % 4 == 2 ? (struct mt_str){longest, 103}
				      : (struct mt_str){longest, 105};
		c.time = 10 + i;
		c.value.i = i;
		assert_int_equal(r.in->ops->counter(r.in, &c), 0);
	}
	instant(&r, 0, 100, "a", 1);
	assert_int_equal(stats(&r).counters, 3);
	assert_int_equal(stats(&r).counters_lost, 3);
	log = dump(&r, 200);
	assert_non_null(strstr(log, "@18 "));
	assert_non_null(strstr(log, "@19 "));
	assert_non_null(strstr(log, "@20 "));
	assert_null(strstr(log, "@17 "));
	assert_null(strstr(log, "@21 "));
	assert_non_null(strstr(log, "=8\n"));
	free(log);
	rig_close(&r);
}

/* 256 of them with 64 KiB; a slot that is free again is empty. */
static void more_counters_than_room(void **state)
{
	static struct mt_callsite cs[300];
	struct mt_process p = {.pid = 20, .name = "p", .cmdline = "", .execution_id = ""};
	struct mt_thread t = {.process = &p, .tid = 20, .name = ""};
	struct rig r;
	unsigned i, k;
	char *log;

	(void)state;
	for (i = 0; i < 300; i++)
		cs[i] = depth;
	rig_open(&r, "1h,1,64K");
	for (k = 0; k < 3; k++) {
		p.sink_data = t.sink_data = NULL;
		r.in->ops->process(r.in, &p, 1);
		r.in->ops->thread(r.in, &t, 1);
		for (i = 0; i < 300; i++)
			count(&r, &t, 10 + i, &cs[i], (int64_t)i);
		instant(&r, 0, 500, "a", 1);
		assert_int_equal(stats(&r).counters, 256);
		assert_int_equal(stats(&r).counters_lost, 44 * (k + 1));
		log = dump(&r, 600);
		assert_non_null(strstr(log, "@265 depth=255\n"));
		assert_null(strstr(log, "@266 "));
		free(log);
		r.in->ops->gone(r.in, NULL, &t, 501);
		r.in->ops->gone(r.in, &p, NULL, 501);
		assert_int_equal(stats(&r).counters, 0);
	}
	rig_close(&r);
}

/* ---- spans with a key ---- */

static const struct mt_callsite keyed = {.id = 5,
					 .class_ = MONTRACE_CLASS_SPAN,
					 .keyed = true,
					 .name = "req",
					 .target = "app",
					 .file = "",
					 .function = "",
					 .nfields = 1,
					 .fields = {{.name = "id", .type = MONTRACE_TYPE_U64}}};

static void kbegin(struct mt_sink *s, struct mt_process *p, uint64_t time, uint64_t key, const char *name)
{
	struct mt_value v = {.type = MONTRACE_TYPE_U64, .u = key * 10};
	struct mt_slice sl = {.process = p,
			      .time = time,
			      .cs = &keyed,
			      .name = S(name),
			      .key = key,
			      .span = key,
			      .nvalues = 1,
			      .values = &v};

	assert_int_equal(s->ops->keyed_begin(s, &sl), 0);
}

static void kend(struct mt_sink *s, struct mt_process *p, uint64_t time, uint64_t key, const char *name,
		 enum mt_end_reason reason)
{
	struct mt_field extra = {.name = S("result"), .value = {.type = MONTRACE_TYPE_I64, .i = -3}};
	struct mt_slice_end e = {.process = p,
				 .time = time,
				 .cs = &keyed,
				 .name = S(name),
				 .key = key,
				 .span = key,
				 .reason = reason,
				 .nextra = reason == MT_END_NORMAL,
				 .extra = &extra};

	assert_int_equal(s->ops->keyed_end(s, &e), 0);
}

#define KREST "gone 10 detach\n"

/* Open ones stay when their begin leaves, in order, and leave with their end, whichever that is. */
static void keyed_ones_keep_their_begin(void **state)
{
	struct rig r;

	(void)state;
	rig_open(&r, "1h,3,64K");
	kbegin(r.in, &r.p, 10, 1, "req");
	kbegin(r.in, &r.p, 20, 2, "req /x");
	kbegin(r.in, &r.p, 30, 3, "req");
	expect_dump(&r, 90,
		    HEAD "kbegin 10 @10 req #1 span=1 id=10\nkbegin 10 @20 req /x #2 span=2 id=20\n"
			 "kbegin 10 @30 req #3 span=3 id=30\nkend 10 @90 req #1 span=1 detach\n"
			 "kend 10 @90 req /x #2 span=2 detach\nkend 10 @90 req #3 span=3 detach\n" KREST);
	kend(r.in, &r.p, 40, 2, "req /x", MT_END_NORMAL);
	kbegin(r.in, &r.p, 50, 4, "req");
	/* log: begin 3, end 2, begin 4; table: 1, 2 */
	expect_dump(&r, 90,
		    HEAD
		    "kbegin 10 @10 req #1 span=1 id=10\nkbegin 10 @20 req /x #2 span=2 id=20\n"
		    "kbegin 10 @30 req #3 span=3 id=30\nkend 10 @40 req /x #2 span=2 normal | result=-3\n"
		    "kbegin 10 @50 req #4 span=4 id=40\nkend 10 @90 req #1 span=1 detach\n"
		    "kend 10 @90 req #3 span=3 detach\nkend 10 @90 req #4 span=4 detach\n" KREST);
	assert_int_equal(stats(&r).open, 2);
	kend(r.in, &r.p, 60, 1, "req", MT_END_AGAIN);
	kend(r.in, &r.p, 70, 4, "req", MT_END_NORMAL);
	/* log: begin 4, end 1, end 4; table: 1, 3 */
	expect_dump(&r, 90,
		    HEAD
		    "kbegin 10 @10 req #1 span=1 id=10\nkbegin 10 @30 req #3 span=3 id=30\n"
		    "kbegin 10 @50 req #4 span=4 id=40\nkend 10 @60 req #1 span=1 again\n"
		    "kend 10 @70 req #4 span=4 normal | result=-3\nkend 10 @90 req #3 span=3 detach\n" KREST);
	kend(r.in, &r.p, 80, 3, "req", MT_END_NORMAL);
	instant(&r, 0, 81, "x", 1);
	instant(&r, 0, 82, "x", 1);
	instant(&r, 0, 83, "x", 1);
	assert_int_equal(stats(&r).open, 0);
	rig_close(&r);
}

/*
 * What was open when hits were lost may be over; what began later is not. Whether begins and losses are still in the
 * window or have left it changes nothing.
 */
static void losses_leave_doubt(void **state)
{
	static const char *const ends[] = {
		"end 10/11 @90 work #2 span=2 detach\nend 10/11 @90 work #1 span=1 detach doubt\n",
		"end 10/10 @90 work #3 span=3 detach\n",
		"kend 10 @90 req #5 span=5 detach doubt\n",
		"kend 10 @90 req #6 span=6 detach doubt\n",
		"kend 10 @90 req #7 span=7 detach\n",
	};
	struct mt_loss l = {.time = 20, .count = 1, .cause = "ring full"};
	char limits[32], *got;
	struct rig r;
	unsigned i, window;

	(void)state;
	for (window = 1; window < 12; window++) {
		snprintf(limits, sizeof(limits), "1h,%u,64K", window);
		rig_open(&r, limits);
		begin(&r, 1, 10);
		kbegin(r.in, &r.p, 11, 5, "req");
		l.thread = &r.t[1];
		l.time = 20;
		r.in->ops->lost(r.in, &l);
		begin(&r, 1, 30);
		begin(&r, 0, 31);
		kbegin(r.in, &r.p, 32, 6, "req");
		l.thread = NULL; /* of nobody */
		l.time = 33;
		r.in->ops->lost(r.in, &l);
		kbegin(r.in, &r.p, 34, 7, "req");
		instant(&r, 0, 40, "x", 1);
		got = dump(&r, 90);
		for (i = 0; i < N_OF(ends); i++)
			if (!strstr(got, ends[i]))
				fail_msg("window %u: no %s in\n%s", window, ends[i], got);
		free(got);
		rig_close(&r);
	}
}

/* A process that is gone stays as long as it has something in the window, and no longer. */
static void keyed_ones_keep_their_process(void **state)
{
	struct rig r;
	struct mt_process p = {.pid = 20,
			       .start = 9,
			       .name = "gone",
			       .cmdline = "",
			       .execution_id = "",
			       .end_reason = MT_END_PROCESS};

	(void)state;
	rig_open(&r, "1h,2,64K");
	r.in->ops->process(r.in, &p, 0);
	kbegin(r.in, &p, 10, 1, "req");
	kend(r.in, &p, 20, 1, "req", MT_END_PROCESS);
	r.in->ops->gone(r.in, &p, NULL, 21);
	assert_int_equal(stats(&r).processes, 2);
	instant(&r, 0, 30, "x", 1);
	expect_dump(&r, 90,
		    HEAD "process 20 name=gone\n" MAIN
			 "kbegin 20 @10 req #1 span=1 id=10\nkend 20 @20 req #1 span=1 process\n"
			 "instant 10/10 @30 text parent=3 s=\"x\"\n"
			 "gone 10/10\ngone 10 detach\ngone 20 process\n");
	instant(&r, 0, 40, "x", 1);
	assert_int_equal(stats(&r).processes, 1);
	rig_close(&r);
}

#define KEYS 800
#define KEYED_OPS 4000

/* Any window over any order of begins and ends: what is open, and what is told, by the whole story. */
static void keyed_any_window(void **state)
{
	static struct {
		bool begin;
		uint64_t key;
	} ops[KEYED_OPS];
	unsigned seed, i, k, first;

	(void)state;
	for (seed = 1; seed <= 8; seed++) {
		unsigned window = 1 + seed * 137 % 600, x = seed * 2654435761u, nopen = 0, at;
		static uint64_t open[KEYED_OPS];
		uint64_t key = seed;
		struct mt_sink *want;
		char limits[32], *got;
		struct rig r;

		snprintf(limits, sizeof(limits), "1h,%u,1M", window);
		rig_open(&r, limits);
		for (i = 0; i < KEYED_OPS; i++) {
			x = x * 1664525 + 1013904223;
			ops[i].begin = nopen == 0 || (nopen < KEYS && (x >> 12) % 3);
			at = nopen ? (x >> 16) % nopen : 0;
			key = key * 6364136223846793005u +
			      1442695040888963407u; /* buckets with more than one */
			ops[i].key = ops[i].begin ? key : open[at];
			if (ops[i].begin) {
				open[nopen++] = key;
				kbegin(r.in, &r.p, 10 + i, key, "req");
			} else {
				open[at] = open[--nopen];
				kend(r.in, &r.p, 10 + i, ops[i].key, "req", MT_END_NORMAL);
			}
		}
		mt_check_new(NULL, true, &want);
		want->ops->process(want, &r.p, 0);
		first = KEYED_OPS - window;
		for (i = 0; i < KEYED_OPS; i++) { /* begun before the window, not ended before it */
			for (k = i + 1; k < first && ops[k].key != ops[i].key; k++)
				;
			if (ops[i].begin && (i >= first || k >= first))
				kbegin(want, &r.p, 10 + i, ops[i].key, "req");
			else if (!ops[i].begin && i >= first)
				kend(want, &r.p, 10 + i, ops[i].key, "req", MT_END_NORMAL);
		}
		for (i = 0; i < KEYED_OPS; i++) {
			for (k = i + 1; k < KEYED_OPS && ops[k].key != ops[i].key; k++)
				;
			if (ops[i].begin && k == KEYED_OPS)
				kend(want, &r.p, 90000, ops[i].key, "req", MT_END_DETACH);
		}
		r.p.end_reason = MT_END_DETACH;
		want->ops->gone(want, &r.p, NULL, 0);
		assert_null(mt_check_final(want));
		got = dump(&r, 90000);
		assert_string_equal(got, mt_check_log(want));
		free(got);
		want->ops->free(want);
		rig_close(&r);
	}
}

static void any_window_is_what_the_whole_story_says(void **state)
{
	static struct op ops[OPS];
	uint64_t open[2][OPS];
	unsigned seed, i, d[2];

	(void)state;
	for (seed = 1; seed <= 60; seed++) {
		unsigned window = 1 + seed * 5 % 97, x = seed * 2654435761u;
		char limits[32];
		struct rig r;

		snprintf(limits, sizeof(limits), "1h,%u,64K", window);
		rig_open(&r, limits);
		d[0] = d[1] = 0;
		for (i = 0; i < OPS; i++) {
			struct op *o = &ops[i];
			struct mt_sink *want;
			char *got;

			x = x * 1664525 + 1013904223;
			*o = (struct op){
				.what = (x >> 10) % 3, .t = i < 2 ? i : (x >> 20) & 1, .time = 10 + i * 3};
			if (o->what == OP_END && !d[o->t])
				o->what = OP_BEGIN;
			if (o->what == OP_BEGIN)
				open[o->t][d[o->t]++] = o->key = ++r.key;
			else if (o->what == OP_END)
				o->key = open[o->t][--d[o->t]];
			tell_op(r.in, &r.t[o->t], o);
			if (i % 37)
				continue;
			got = dump(&r, 100000);
			mt_check_new(NULL, true, &want);
			tell_expected(want, &r, ops, i + 1, window);
			assert_null(mt_check_final(want));
			if (i >= 2) /* slots are in order of first use */
				assert_string_equal(got, mt_check_log(want));
			want->ops->free(want);
			free(got);
		}
		rig_close(&r);
	}
}

/* ---- tee ---- */

/* Remembers sink_data as it was given; puts its own in. */
struct own {
	struct mt_sink sink;
	char mine;
	int calls, bad, rc, freed;
};

static int own_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct own *o = (struct own *)s;

	(void)time;
	o->calls++;
	o->bad += p->sink_data && p->sink_data != &o->mine;
	p->sink_data = &o->mine;
	return o->rc;
}

static int own_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	struct own *o = (struct own *)s;

	(void)time;
	o->calls++;
	o->bad += t->process->sink_data != &o->mine;
	t->sink_data = &o->mine;
	return o->rc;
}

static void own_check(struct own *o, const struct mt_thread *t)
{
	o->calls++;
	o->bad += t->sink_data != &o->mine || t->process->sink_data != &o->mine;
}

static int own_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	own_check((struct own *)s, sl->thread);
	return ((struct own *)s)->rc;
}

static int own_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct own *o = (struct own *)s;

	o->calls++;
	o->bad += l->process && l->process->sink_data != &o->mine;
	return o->rc;
}

static int own_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	struct own *o = (struct own *)s;

	o->calls++;
	o->bad += n->process->sink_data != &o->mine;
	return o->rc;
}

static int own_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	struct own *o = (struct own *)s;

	(void)time;
	o->calls++;
	o->bad += p->sink_data != &o->mine || span != 4;
	return o->rc;
}

static int own_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	struct own *o = (struct own *)s;

	(void)time;
	o->calls++;
	if (t)
		o->bad += t->sink_data != &o->mine;
	if (p)
		o->bad += p->sink_data != &o->mine;
	return o->rc;
}

static int own_free(struct mt_sink *s)
{
	((struct own *)s)->freed++;
	return ((struct own *)s)->rc;
}

static const struct mt_sink_ops own_ops = {.process = own_process,
					   .thread = own_thread,
					   .begin = own_begin,
					   .lost = own_lost,
					   .gone = own_gone,
					   .free = own_free,
					   .span_new = own_span_new,
					   .span_close = own_span_close};

static void tee_keeps_sink_data_apart(void **state)
{
	struct own a = {.sink = {&own_ops}}, b = {.sink = {&own_ops}, .rc = -EIO},
		   c = {.sink = {&own_ops}, .rc = -EPERM};
	struct marks m = {.sink = {&mark_ops}}; /* another set of slots */
	struct mt_sink *inner[] = {&b.sink, &c.sink}, *all[3], *tee, *tee2;
	struct mt_process p = {.name = "p", .cmdline = "", .execution_id = ""};
	struct mt_thread t = {.process = &p, .name = "t"};
	struct mt_slice sl = {.thread = &t, .key = 1};
	struct mt_loss l = {.process = &p, .count = 1, .cause = ""}, nowhere = {.count = 1, .cause = ""};
	struct mt_span_new n = {.process = &p};

	(void)state;
	assert_int_equal(mt_tee_new(inner, 0, &tee), -EINVAL);
	assert_int_equal(mt_tee_new(inner, MT_TEE_MAX + 1, &tee), -EINVAL);
	assert_int_equal(mt_tee_new(inner, 2, &tee2), 0);
	all[0] = &a.sink;
	all[1] = &m.sink;
	all[2] = tee2;
	assert_int_equal(mt_tee_new(all, 3, &tee), 0);
	assert_int_equal(tee->ops->process(tee, &p, 1), -EIO);
	assert_int_equal(tee->ops->process(tee, &p, 1), -EIO); /* renamed */
	assert_int_equal(tee->ops->thread(tee, &t, 1), -EIO);
	assert_int_equal(tee->ops->begin(tee, &sl), -EIO);
	assert_int_equal(m.begins, 1);
	assert_int_equal(tee->ops->lost(tee, &l), -EIO);
	assert_int_equal(tee->ops->lost(tee, &nowhere), -EIO);
	assert_int_equal(tee->ops->span_new(tee, &n), -EIO);
	assert_int_equal(tee->ops->span_close(tee, &p, 4, 1), -EIO);
	assert_int_equal(tee->ops->mark(tee, 3, S("x")), 0);
	assert_string_equal(m.text, "@3 x\n");
	assert_ptr_not_equal(p.sink_data, &a.mine);
	assert_int_equal(tee->ops->flush(tee, 1), 0);
	assert_int_equal(tee->ops->gone(tee, NULL, &t, 1), -EIO);
	assert_int_equal(tee->ops->gone(tee, &p, NULL, 1), -EIO);
	assert_null(p.sink_data);
	assert_null(t.sink_data);
	/* Not known any more: no call reaches anybody. */
	assert_int_equal(tee->ops->begin(tee, &sl), -ENOMEM);
	assert_int_equal(a.calls, 10);
	assert_int_equal(b.calls, 10);
	assert_int_equal(c.calls, 10);
	assert_int_equal(a.bad + b.bad + c.bad, 0);
	assert_int_equal(tee->ops->free(NULL), 0);
	assert_int_equal(tee->ops->free(tee), -EIO);
	assert_int_equal(a.freed, 1);
	assert_int_equal(b.freed, 1);
	assert_int_equal(c.freed, 1);
}

/* A process between two files: its end and those of its spans reach all sinks, which find no state of theirs. */
static void tee_of_a_parted_process(void **state)
{
	struct own a = {.sink = {&own_ops}}, b = {.sink = {&own_ops}};
	struct mt_sink *inner[] = {&b.sink}, *all[] = {&a.sink, NULL}, *tee;
	struct mt_process p = {.name = "p", .cmdline = "", .execution_id = ""};

	(void)state;
	assert_int_equal(mt_tee_new(inner, 1, &all[1]), 0);
	assert_int_equal(mt_tee_new(all, 2, &tee), 0);
	assert_int_equal(tee->ops->process(tee, &p, 1), 0);
	p.end_reason = MT_END_PART;
	assert_int_equal(tee->ops->gone(tee, &p, NULL, 1), 0);
	assert_null(p.sink_data);
	assert_int_equal(a.bad + b.bad, 0);
	assert_int_equal(tee->ops->span_close(tee, &p, 4, 1), 0);
	assert_null(p.sink_data);
	p.end_reason = MT_END_PROCESS;
	assert_int_equal(tee->ops->gone(tee, &p, NULL, 1), 0);
	assert_null(p.sink_data);
	assert_int_equal(a.calls, 4);
	assert_int_equal(b.calls, 4);
	assert_int_equal(a.bad, 2); /* nothing of its own there, twice */
	assert_int_equal(b.bad, 2);
	assert_int_equal(tee->ops->free(tee), 0);
}

/* tee(check, flight): the recorder works behind it, and a dump leaves the tee's rows alone. */
static void tee_with_a_recorder(void **state)
{
	struct mt_flight_spec spec = {1000000, 10, 64 << 10};
	struct mt_sink *to[2], *tee, *out;
	struct mt_process p = {.pid = 1, .name = "p", .cmdline = "", .execution_id = ""};
	struct mt_thread t = {.process = &p, .tid = 1, .name = "t"};
	struct mt_slice sl = {.thread = &t, .key = 1, .span = 1, .time = 5, .cs = &plain, .name = S("work")};
	struct mt_slice_end e = {
		.thread = &t, .key = 1, .span = 1, .time = 9, .cs = &plain, .name = S("work")};

	(void)state;
	assert_int_equal(mt_flight_new(&spec, &to[0]), 0);
	assert_int_equal(mt_check_new(NULL, true, &to[1]), 0);
	assert_int_equal(mt_tee_new(to, 2, &tee), 0);
	tee->ops->process(tee, &p, 1);
	tee->ops->thread(tee, &t, 1);
	tee->ops->begin(tee, &sl);
	assert_int_equal(mt_check_new(NULL, true, &out), 0);
	assert_int_equal(mt_flight_dump(to[0], out, NULL, 7), 0);
	assert_string_equal(mt_check_log(out),
			    "process 1 name=p\nthread 1/1 name=t\nbegin 1/1 @5 work #1 span=1\n"
			    "end 1/1 @7 work #1 span=1 detach\ngone 1/1\ngone 1 detach\n");
	assert_int_equal(out->ops->free(out), 0);
	tee->ops->end(tee, &e);
	tee->ops->gone(tee, NULL, &t, 10);
	tee->ops->gone(tee, &p, NULL, 10);
	assert_int_equal(mt_check_new(NULL, true, &out), 0);
	assert_int_equal(mt_flight_dump(to[0], out, NULL, 11), 0);
	assert_string_equal(mt_check_log(out), mt_check_log(to[1]));
	assert_int_equal(out->ops->free(out), 0);
	assert_int_equal(tee->ops->free(tee), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spec_parse_table),
		cmocka_unit_test(spec_text_again),
		cmocka_unit_test(new_refuses_bad_specs),
		cmocka_unit_test(open_slices_keep_their_begin),
		cmocka_unit_test(limit_by_time),
		cmocka_unit_test(limit_by_bytes),
		cmocka_unit_test(values_names_and_flags_survive),
		cmocka_unit_test(losses_and_counters),
		cmocka_unit_test(losses_leave_doubt),
		cmocka_unit_test(gone_ones_stay_while_needed),
		cmocka_unit_test(more_threads_than_slots),
		cmocka_unit_test(more_processes_than_slots),
		cmocka_unit_test(more_open_slices_than_room),
		cmocka_unit_test(too_large_records_are_cut),
		cmocka_unit_test(memory_does_not_grow),
		cmocka_unit_test(dump_says_why_and_where_it_starts),
		cmocka_unit_test(marks_are_kept),
		cmocka_unit_test(dump_is_repeatable),
		cmocka_unit_test(dump_in_the_past),
		cmocka_unit_test(counters_from_before_the_window),
		cmocka_unit_test(counters_with_names),
		cmocka_unit_test(more_counters_than_room),
		cmocka_unit_test(any_window_is_what_the_whole_story_says),
		cmocka_unit_test(keyed_ones_keep_their_begin),
		cmocka_unit_test(keyed_ones_keep_their_process),
		cmocka_unit_test(keyed_any_window),
		cmocka_unit_test(tee_keeps_sink_data_apart),
		cmocka_unit_test(tee_of_a_parted_process),
		cmocka_unit_test(tee_with_a_recorder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
