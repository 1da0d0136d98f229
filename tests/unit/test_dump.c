/* SPDX-License-Identifier: BSD-3-Clause */
/* dump and summary of traces built by hand: the whole output must be exact. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_dump.h"
#include "cmd_summary.h"
#include "timeline.h"
#include "trace_enc.h"

typedef int (*command)(FILE *out, int fd, const char *name, unsigned flags);

static int fd_of(const struct enc *e)
{
	int fd = memfd_create("trace", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, e->b, e->n), e->n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void expect(command cmd, const struct enc *e, unsigned flags, int rc, const char *want)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int fd = fd_of(e);

	assert_non_null(out);
	assert_int_equal(cmd(out, fd, "t.pftrace", flags), rc);
	fclose(out);
	close(fd);
	assert_string_equal(text, want);
	assert_int_equal(strlen(text), len);
	free(text);
}

static struct enc *fresh(void)
{
	struct enc *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	return e;
}

/* Process 100 with threads 101 (track 8) and 102 (track 9); snapshot at boot second 1. */
static struct enc *head(void)
{
	struct enc *e = fresh();

	e_snapshot(e, 1000000000, 900000000, 1700000000123456789);
	e_process(e, 7, 100, "prog");
	e_thread(e, 8, 7, 100, 101, "worker 1");
	e_thread(e, 9, 7, 100, 102, "");
	return e;
}

#define T0 1000000000ull
#define US 1000ull

/* An event with one annotation. num is the value's field. */
static void with_arg(struct enc *e, uint64_t ts, uint64_t track, unsigned type, const char *name,
		     const char *key, unsigned num, const void *text, uint64_t v)
{
	size_t p = e_packet(e, 2, 0), m, a;

	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, type);
	e_u(e, 11, track);
	e_s(e, 23, name);
	a = e_open(e, 4);
	e_s(e, 10, key);
	if (num == 5)
		e_f64(e, num, v);
	else if (text)
		e_s(e, num, text);
	else
		e_u(e, num, v);
	e_close(e, a);
	e_close(e, m);
	e_close(e, p);
}

static void place(struct enc *e, uint64_t ts, uint64_t track, unsigned type, const char *name)
{
	size_t p = e_packet(e, 2, 0), m, a;

	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, type);
	e_u(e, 11, track);
	e_s(e, 23, name);
	e_s(e, 22, "db");
	e_f64(e, 47, 26);
	a = e_open(e, 33);
	e_s(e, 2, "src/a.c");
	e_u(e, 4, 12);
	e_close(e, a);
	e_close(e, m);
	e_close(e, p);
}

static void counter_value(struct enc *e, uint64_t ts, uint64_t track, int64_t i)
{
	size_t p = e_packet(e, 2, 0), m;

	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, 4);
	e_u(e, 11, track);
	e_u(e, 30, (uint64_t)i);
	e_close(e, m);
	e_close(e, p);
}

static void perf_loss(struct enc *e)
{
	size_t p = e_packet(e, 0, 0), m = e_open(e, 66);

	e_u(e, 1, 1);
	e_u(e, 17, 4);
	e_close(e, m);
	e_close(e, p);
}

static void attribute(struct enc *e, const char *key, const char *text)
{
	size_t p = e_packet(e, 1, 0), m = e_open(e, 126), a = e_open(e, 1);

	e_s(e, 1, key);
	e_s(e, 3, text);
	e_close(e, a);
	e_close(e, m);
	e_close(e, p);
}

/* A bit of everything. */
static struct enc *rich(void)
{
	struct enc *e = head();

	attribute(e, "tool", "x\ty");
	e_counter(e, 20, 7, "queue", 0, 0);
	place(e, T0, 8, 1, "outer");
	with_arg(e, T0 + 1500 * US, 8, 1, "inner", "s", 6, "a \"q\" \x1b[31m", 0);
	with_arg(e, T0 + 1600 * US, 8, 3, "note", "n", 4, NULL, (uint64_t)-7);
	with_arg(e, T0 + 1700 * US, 8, 3, "events lost", "count", 3, NULL, 5);
	with_arg(e, T0 + 2500 * US, 8, 2, "inner", "why", 6, "done", 0);
	e_event(e, T0 + 3000 * US, 8, 2, "outer");
	e_event(e, T0 + 2000 * US, 9, 1, "left open");
	e_event(e, T0 + 2100 * US, 9, 2, "stray");
	counter_value(e, T0 + 2200 * US, 20, -3);
	perf_loss(e);
	return e;
}

static void dump_text(void **st)
{
	struct enc *e = rich();

	(void)st;
	expect(mt_dump, e, 0, 0,
	       "start 2023-11-14 22:13:20.123456 UTC, length 3.000 ms\n"
	       "t.pftrace: 3 slices (1 open), 1 instants, 1 counter values\n"
	       "attribute tool=\"x\xef\xbf\xbdy\"\n"
	       "\n"
	       "process 100 \"prog\"\n"
	       "  thread 101 \"worker 1\"\n"
	       "         0.000         3.000  outer flow:1a src/a.c:12\n"
	       "         1.500         1.000    inner s=\"a \\\"q\\\" \xef\xbf\xbd[31m\" [end why=\"done\"]\n"
	       "         1.600             *      note n=-7\n"
	       "         1.700          LOST      events lost count=5\n"
	       "  thread 102\n"
	       "         2.000        (open)  left open\n"
	       "  counter \"queue\" [bytes]\n"
	       "         2.200             =  -3\n"
	       "\n"
	       "LOST\n"
	       "  events, marked `events lost`: 5\n"
	       "  records lost in the kernel: 4\n"
	       "\n"
	       "notes\n"
	       "  ends without a slice, ignored: 1\n");
	free(e);
}

#define OWNER1 "\"pid\":100,\"tid\":101,\"thread\":\"worker 1\",\"process\":\"prog\""
#define NOWHERE "\"cat\":\"\",\"file\":\"\",\"line\":0"

static void dump_json(void **st)
{
	struct enc *e = rich();

	(void)st;
	expect(mt_dump, e, MT_DUMP_JSON, 0,
	       "{\"type\":\"slice\",\"ts\":1000000000,\"dur\":3000000,\"name\":\"outer\"," OWNER1
	       ",\"depth\":0,\"cat\":\"db\",\"file\":\"src/a.c\",\"line\":12,\"args\":{},\"flows\":[26]}\n"
	       "{\"type\":\"slice\",\"ts\":1001500000,\"dur\":1000000,\"name\":\"inner\"," OWNER1
	       ",\"depth\":1," NOWHERE
	       ",\"args\":{\"s\":\"a \\\"q\\\" \\u001b[31m\",\"why\":\"done\"},\"flows\":[]}\n"
	       "{\"type\":\"instant\",\"ts\":1001600000,\"name\":\"note\"," OWNER1 ",\"depth\":2," NOWHERE
	       ",\"args\":{\"n\":-7},\"flows\":[]}\n"
	       "{\"type\":\"loss\",\"ts\":1001700000,\"name\":\"events lost\"," OWNER1
	       ",\"depth\":2,\"source\":\"instant\",\"count\":5," NOWHERE
	       ",\"args\":{\"count\":5},\"flows\":[]}\n"
	       "{\"type\":\"slice\",\"ts\":1002000000,\"dur\":null,\"name\":\"left open\",\"pid\":100,"
	       "\"tid\":102,\"thread\":\"\",\"process\":\"prog\",\"depth\":0," NOWHERE
	       ",\"args\":{},\"flows\":[]}\n"
	       "{\"type\":\"counter\",\"ts\":1002200000,\"name\":\"queue\",\"pid\":100,\"tid\":null,"
	       "\"thread\":\"\",\"process\":\"prog\",\"track\":\"queue\",\"depth\":0,\"value\":-3," NOWHERE
	       ",\"args\":{},\"flows\":[]}\n"
	       "{\"type\":\"loss\",\"ts\":null,\"source\":\"kernel\",\"count\":4,\"cpu\":1}\n");
	free(e);
}

/* The file's order is not that of time, and equal times keep the file's order. */
static void sorts_by_time_stably(void **st)
{
	struct enc *e = head();

	(void)st;
	e_event(e, T0 + 40 * US, 8, 2, "a");
	e_event(e, T0 + 30 * US, 8, 2, "b");
	e_event(e, T0 + 10 * US, 8, 1, "a");
	e_event(e, T0 + 10 * US, 8, 1, "b");
	e_event(e, T0 + 20 * US, 8, 3, "i1");
	e_event(e, T0 + 20 * US, 8, 3, "i2");
	e_event(e, T0 + 20 * US, 8, 3, "i3");
	e_event(e, T0, 9, 3, "first");
	expect(mt_dump, e, 0, 0,
	       "start 2023-11-14 22:13:20.123456 UTC, length 0.040 ms\n"
	       "t.pftrace: 2 slices (0 open), 4 instants, 0 counter values\n"
	       "\n"
	       "process 100 \"prog\"\n"
	       "  thread 101 \"worker 1\"\n"
	       "         0.010         0.030  a\n"
	       "         0.010         0.020    b\n"
	       "         0.020             *      i1\n"
	       "         0.020             *      i2\n"
	       "         0.020             *      i3\n"
	       "  thread 102\n"
	       "         0.000             *  first\n");
	free(e);
}

/* The importer's rule for ends: by name, innermost first; what is inside ends with it. */
static void ends_close_by_name(void **st)
{
	struct enc *e = head();

	(void)st;
	e_event(e, T0, 8, 1, "a");
	e_event(e, T0 + 100 * US, 8, 1, "b");
	e_event(e, T0 + 200 * US, 8, 1, "a");
	e_event(e, T0 + 300 * US, 8, 2, "b"); /* cuts the inner a */
	e_event(e, T0 + 400 * US, 8, 1, "c");
	e_event(e, T0 + 500 * US, 8, 2, NULL); /* no name: the innermost */
	e_event(e, T0 + 600 * US, 8, 2, "none");
	e_event(e, T0 + 700 * US, 8, 2, "a");
	expect(mt_dump, e, 0, 0,
	       "start 2023-11-14 22:13:20.123456 UTC, length 0.700 ms\n"
	       "t.pftrace: 4 slices (0 open), 0 instants, 0 counter values\n"
	       "\n"
	       "process 100 \"prog\"\n"
	       "  thread 101 \"worker 1\"\n"
	       "         0.000         0.700  a\n"
	       "         0.100         0.200    b\n"
	       "         0.200         0.100      a [cut]\n"
	       "         0.400         0.100    c\n"
	       "\n"
	       "notes\n"
	       "  slices cut by the end of one around them: 1\n"
	       "  ends without a slice, ignored: 1\n");
	expect(mt_summary, e, MT_SUMMARY_JSON, 0,
	       "{\"type\":\"trace\",\"start\":1000000000,\"dur\":700000,\"wall\":1700000000123456789,"
	       "\"slices\":4,"
	       "\"open\":0,\"instants\":0,\"counters\":0,\"threads\":2,\"processes\":1,\"lost\":0,"
	       "\"kernel_lost\":0,\"writer_lost\":0,\"packet_gaps\":0,\"stray_ends\":0,\"lost_ends\":0,"
	       "\"begun_again\":0,"
	       "\"too_many_open\":0,\"too_deep\":0}\n"
	       "{\"type\":\"span\",\"name\":\"a\",\"count\":2,\"open\":0,\"total\":800000,\"self\":500000,"
	       "\"min\":100000,\"p50\":100000,\"p99\":700000,\"max\":700000}\n"
	       "{\"type\":\"span\",\"name\":\"b\",\"count\":1,\"open\":0,\"total\":200000,\"self\":100000,"
	       "\"min\":200000,\"p50\":200000,\"p99\":200000,\"max\":200000}\n"
	       "{\"type\":\"span\",\"name\":\"c\",\"count\":1,\"open\":0,\"total\":100000,\"self\":100000,"
	       "\"min\":100000,\"p50\":100000,\"p99\":100000,\"max\":100000}\n"
	       "{\"type\":\"thread\",\"name\":\"worker 1\",\"pid\":100,\"process\":\"prog\",\"tid\":101,"
	       "\"slices\":4,\"instants\":0}\n");
	free(e);
}

static void depth_is_limited(void **st)
{
	struct enc *e = head();
	struct mt_timeline *tl;

	(void)st;
	for (unsigned i = 0; i < MT_TL_MAX_DEPTH + 3; i++)
		e_event(e, T0 + i, 8, 1, "d");
	assert_int_equal(mt_timeline_read_mem(e->b, e->n, &tl), 0);
	assert_int_equal(tl->slices, MT_TL_MAX_DEPTH);
	assert_int_equal(tl->open, MT_TL_MAX_DEPTH);
	assert_int_equal(tl->too_deep, 3);
	mt_timeline_free(tl);
	free(e);
}

static void end_of_file(void **st)
{
	struct enc *e = head();
	size_t good;

	(void)st;
	e_event(e, T0, 8, 3, "i");
	good = e->n;
	e_raw(e, "\x0a\x20torn", 6);
	expect(mt_dump, e, 0, 0,
	       "start 2023-11-14 22:13:20.123456 UTC, length 0.000 ms\n"
	       "t.pftrace: 0 slices (0 open), 1 instants, 0 counter values\n"
	       "\n"
	       "process 100 \"prog\"\n"
	       "  thread 101 \"worker 1\"\n"
	       "         0.000             *  i\n"
	       "\n"
	       "the last packet is torn: 6 bytes cut off\n");
	expect(mt_dump, e, MT_DUMP_JSON, 0,
	       "{\"type\":\"instant\",\"ts\":1000000000,\"name\":\"i\"," OWNER1 ",\"depth\":0," NOWHERE
	       ",\"args\":{},\"flows\":[]}\n"
	       "{\"type\":\"truncated\",\"bytes\":6}\n");
	e->n = good;
	e_raw(e, "garbage", 7);
	assert_int_equal(good, 129);
	expect(mt_dump, e, 0, -EBADMSG,
	       "start 2023-11-14 22:13:20.123456 UTC, length 0.000 ms\n"
	       "t.pftrace: 0 slices (0 open), 1 instants, 0 counter values\n"
	       "\n"
	       "process 100 \"prog\"\n"
	       "  thread 101 \"worker 1\"\n"
	       "         0.000             *  i\n"
	       "\n"
	       "bad data at byte 129: no packet begins here; what comes before it is above\n");
	expect(mt_dump, e, MT_DUMP_JSON, -EBADMSG,
	       "{\"type\":\"instant\",\"ts\":1000000000,\"name\":\"i\"," OWNER1 ",\"depth\":0," NOWHERE
	       ",\"args\":{},\"flows\":[]}\n"
	       "{\"type\":\"error\",\"offset\":129,\"message\":\"no packet begins here\"}\n");
	e->n = 0;
	expect(mt_dump, e, 0, 0,
	       "start boot time 0.000000 s (the file has no wall clock), length 0.000 ms\n"
	       "t.pftrace: 0 slices (0 open), 0 instants, 0 counter values\n");
	expect(mt_dump, e, MT_DUMP_JSON, 0, "");
	free(e);
}

static uint64_t bits(double d)
{
	uint64_t u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

/* Values at the edges, and bytes that are no text. */
static void values_in_json(void **st)
{
	static const struct {
		unsigned num;
		const char *text;
		uint64_t v;
		const char *json, *human;
	} v[] = {
		{2, NULL, 0, "false", "false"},
		{2, NULL, 1, "true", "true"},
		{3, NULL, UINT64_MAX, "18446744073709551615", "18446744073709551615"},
		{4, NULL, (uint64_t)INT64_MIN, "-9223372036854775808", "-9223372036854775808"},
		{4, NULL, INT64_MAX, "9223372036854775807", "9223372036854775807"},
		{5, NULL, 0x7ff8000000000000, "\"NaN\"", "nan"},
		{5, NULL, 0x7ff0000000000000, "\"Infinity\"", "inf"},
		{5, NULL, 0xfff0000000000000, "\"-Infinity\"", "-inf"},
		{5, NULL, 0x3fb999999999999a, "0.10000000000000001", "0.1"},
		{7, NULL, 0xffff8880, "\"0xffff8880\"", "0xffff8880"},
		{6, "", 0, "\"\"", "\"\""},
		{6, "\xff\\\n\xc3\xa4", 0, "\"\xef\xbf\xbd\\\\\\u000a\xc3\xa4\"",
		 "\"\xef\xbf\xbd\\\\\xef\xbf\xbd\xc3\xa4\""},
		{6, "\xe2\x80\xae", 0, "\"\xe2\x80\xae\"", "\"\xef\xbf\xbd\""},
		{9, "{\"x\":1}", 0, "\"{\\\"x\\\":1}\"", "{\"x\":1}"},
	};

	(void)st;
	assert_int_equal(bits(0.1), 0x3fb999999999999a);
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		struct enc *e = head();
		char want[1024];

		with_arg(e, T0, 8, 3, "i", "k", v[i].num, v[i].text, v[i].v);
		snprintf(want, sizeof(want),
			 "{\"type\":\"instant\",\"ts\":1000000000,\"name\":\"i\"," OWNER1
			 ",\"depth\":0," NOWHERE ",\"args\":{\"k\":%s},\"flows\":[]}\n",
			 v[i].json);
		expect(mt_dump, e, MT_DUMP_JSON, 0, want);
		snprintf(want, sizeof(want),
			 "start 2023-11-14 22:13:20.123456 UTC, length 0.000 ms\n"
			 "t.pftrace: 0 slices (0 open), 1 instants, 0 counter values\n\n"
			 "process 100 \"prog\"\n  thread 101 \"worker 1\"\n"
			 "         0.000             *  i k=%s\n",
			 v[i].human);
		expect(mt_dump, e, 0, 0, want);
		free(e);
	}
}

/* A long text is made safe in pieces: no character may be lost or broken at a seam. */
static void long_text_keeps_its_characters(void **st)
{
	struct enc *e = head();
	char text[3001], want[4096];
	size_t n;

	(void)st;
	for (size_t i = 0; i < 1000; i++)
		memcpy(text + 3 * i, "\xe2\x82\xac", 3);
	text[3000] = 0;
	with_arg(e, T0, 8, 3, "i", "k", 6, text, 0);
	n = (size_t)snprintf(want, sizeof(want),
			     "{\"type\":\"instant\",\"ts\":1000000000,\"name\":\"i\"," OWNER1
			     ",\"depth\":0," NOWHERE ",\"args\":{\"k\":\"%s\"},\"flows\":[]}\n",
			     text);
	assert_true(n < sizeof(want));
	expect(mt_dump, e, MT_DUMP_JSON, 0, want);
	free(e);
}

/* JSON has no key twice: an end's value replaces the begin's. */
static void end_overrides_begin(void **st)
{
	struct enc *e = head();

	(void)st;
	with_arg(e, T0, 8, 1, "a", "k", 4, NULL, 1);
	with_arg(e, T0 + 5, 8, 2, "a", "k", 4, NULL, 2);
	expect(mt_dump, e, MT_DUMP_JSON, 0,
	       "{\"type\":\"slice\",\"ts\":1000000000,\"dur\":5,\"name\":\"a\"," OWNER1
	       ",\"depth\":0," NOWHERE ",\"args\":{\"k\":2},\"flows\":[]}\n");
	free(e);
}

/* Tracks without process, without description, and a thread whose process is known by pid only. */
static void odd_tracks(void **st)
{
	struct enc *e = fresh();

	(void)st;
	e_thread(e, 50, 0, 300, 301, "alone");
	e_event(e, 5000, 50, 3, "x");
	e_event(e, 5000, 60, 3, "y");
	expect(mt_dump, e, 0, 0,
	       "start boot time 0.000005 s (the file has no wall clock), length 0.000 ms\n"
	       "t.pftrace: 0 slices (0 open), 2 instants, 0 counter values\n"
	       "\n"
	       "no process\n"
	       "  track 60 (never described)\n"
	       "         0.000             *  y\n"
	       "\n"
	       "process 300\n"
	       "  thread 301 \"alone\"\n"
	       "         0.000             *  x\n");
	free(e);
}

static void summary_text(void **st)
{
	struct enc *e = head();
	uint64_t t = T0;

	(void)st;
	e_counter(e, 20, 7, "queue", 0, 0);
	e_event(e, t, 8, 1, "all");
	for (uint64_t i = 100; i > 0; i--) { /* durations 1 to 100 ms */
		e_event(e, t, 8, 1, "step");
		t += i * 1000000;
		e_event(e, t, 8, 2, "step");
	}
	t += 1000000;
	e_event(e, t, 8, 2, "all");
	e_event(e, t, 9, 1, "left");
	e_event(e, t, 9, 3, "tick");
	e_event(e, t, 9, 3, "tick");
	e_event(e, t, 9, 3, "other");
	counter_value(e, t, 20, 5);
	counter_value(e, t + 2, 20, -1);
	counter_value(e, t + 1, 20, 9);
	expect(mt_summary, e, 0, 0,
	       "start 2023-11-14 22:13:20.123456 UTC, length 5051.000 ms\n"
	       "t.pftrace: 102 slices (1 open), 3 instants, 3 counter values, 2 threads, 1 processes\n"
	       "\n"
	       "     count     open      total ms       self ms        min ms        p50 ms        p99 ms    "
	       "    max "
	       "ms  span\n"
	       "         1        0      5051.000         1.000      5051.000      5051.000      5051.000    "
	       "  "
	       "5051.000  all\n"
	       "       100        0      5050.000      5050.000         1.000        50.000        99.000    "
	       "   "
	       "100.000  step\n"
	       "         0        1             -             -             -             -             -    "
	       "         "
	       "-  left\n"
	       "\n"
	       "     count  instant\n"
	       "         2  tick\n"
	       "         1  other\n"
	       "\n"
	       "     count                 last                  min                  max  counter\n"
	       "         3                   -1                   -1                    9  counter \"queue\" "
	       "[bytes], "
	       "process 100 \"prog\"\n"
	       "\n"
	       "    slices   instants  thread\n"
	       "       101          0  thread 101 \"worker 1\", process 100 \"prog\"\n"
	       "         1          3  thread 102, process 100 \"prog\"\n");
	free(e);
}

static void summary_of_a_damaged_file(void **st)
{
	struct enc *e = rich();

	(void)st;
	e_raw(e, "\x0a\x20", 2);
	expect(mt_summary, e, MT_SUMMARY_JSON, 0,
	       "{\"type\":\"trace\",\"start\":1000000000,\"dur\":3000000,\"wall\":1700000000123456789,"
	       "\"slices\":3,"
	       "\"open\":1,\"instants\":1,\"counters\":1,\"threads\":2,\"processes\":1,\"lost\":5,"
	       "\"kernel_lost\":4,\"writer_lost\":0,\"packet_gaps\":0,\"stray_ends\":0,\"lost_ends\":0,"
	       "\"begun_again\":0,"
	       "\"too_many_open\":0,\"too_deep\":0}\n"
	       "{\"type\":\"span\",\"name\":\"outer\",\"count\":1,\"open\":0,\"total\":3000000,\"self\":"
	       "2000000,"
	       "\"min\":3000000,\"p50\":3000000,\"p99\":3000000,\"max\":3000000}\n"
	       "{\"type\":\"span\",\"name\":\"inner\",\"count\":1,\"open\":0,\"total\":1000000,\"self\":"
	       "1000000,"
	       "\"min\":1000000,\"p50\":1000000,\"p99\":1000000,\"max\":1000000}\n"
	       "{\"type\":\"span\",\"name\":\"left open\",\"count\":0,\"open\":1}\n"
	       "{\"type\":\"instant\",\"name\":\"note\",\"count\":1}\n"
	       "{\"type\":\"counter\",\"name\":\"queue\",\"pid\":100,\"process\":\"prog\",\"count\":1,"
	       "\"last\":-3,\"min\":-3,\"max\":-3}\n"
	       "{\"type\":\"thread\",\"name\":\"worker 1\",\"pid\":100,\"process\":\"prog\",\"tid\":101,"
	       "\"slices\":2,\"instants\":1}\n"
	       "{\"type\":\"thread\",\"name\":\"\",\"pid\":100,\"process\":\"prog\",\"tid\":102,\"slices\":1,"
	       "\"instants\":0}\n"
	       "{\"type\":\"truncated\",\"bytes\":2}\n");
	free(e);
}

static void output_errors_are_returned(void **st)
{
	static const command commands[] = {mt_dump, mt_summary};
	struct enc *e = rich();

	(void)st;
	for (size_t i = 0; i < 2; i++) {
		FILE *full = fopen("/dev/full", "w");
		int fd = fd_of(e), dir = open("/", O_RDONLY | O_DIRECTORY);

		assert_non_null(full);
		assert_int_equal(commands[i](full, fd, "x", 0), -EIO);
		assert_int_equal(commands[i](full, dir, "x", 0), -EISDIR);
		fclose(full);
		close(fd);
		close(dir);
	}
	free(e);
}

/* Who reads the output has had enough: that is told, and soon. */
static void closed_pipe(void **st)
{
	static const command commands[] = {mt_dump, mt_summary};
	struct enc *e = rich();

	(void)st;
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < 4; i++) {
		int fds[2], fd = fd_of(e);
		FILE *out;

		assert_int_equal(pipe(fds), 0);
		close(fds[0]);
		out = fdopen(fds[1], "w");
		assert_non_null(out);
		assert_int_equal(commands[i / 2](out, fd, "x", i % 2), -EPIPE);
		fclose(out);
		close(fd);
	}
	signal(SIGPIPE, SIG_DFL);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump_text),
		cmocka_unit_test(dump_json),
		cmocka_unit_test(sorts_by_time_stably),
		cmocka_unit_test(ends_close_by_name),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(end_of_file),
		cmocka_unit_test(values_in_json),
		cmocka_unit_test(long_text_keeps_its_characters),
		cmocka_unit_test(end_overrides_begin),
		cmocka_unit_test(odd_tracks),
		cmocka_unit_test(summary_text),
		cmocka_unit_test(summary_of_a_damaged_file),
		cmocka_unit_test(output_errors_are_returned),
		cmocka_unit_test(closed_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
