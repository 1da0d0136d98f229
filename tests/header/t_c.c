/* SPDX-License-Identifier: BSD-3-Clause */
/* What callsites do, in C: each record byte for byte. A comment "@..." tells the
 * note of the callsite below it. */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "montrace.h"
#include "harness.h"
#include "same.h"

static struct h_exp e;
static int evaluated;

static int eval(int x)
{
	evaluated++;
	return x;
}

static void fields_i64(int64_t v)
{
	/* @event info "i64" - v:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "i64", MT_I64("v", v));
}

static void fields_u64(uint64_t v)
{
	/* @event trace "u64" - v:u64 n=1 */
	MONTRACE_EVENT(MONTRACE_TRACE, "u64", MT_U64("v", v));
}

static void fields_f64(double v)
{
	/* @event debug "f64" - v:f64 n=1 */
	MONTRACE_EVENT(MONTRACE_DEBUG, "f64", MT_F64("v", v));
}

static void fields_text(const char *v)
{
	/* @event warn "text" - v:str n=1 */
	MONTRACE_EVENT(MONTRACE_WARN, "text", MT_STR("v", v));
}

static void fields_textn(const void *p, uint64_t n)
{
	/* @event error "textn" - v:str d:debug n=1 */
	MONTRACE_EVENT(MONTRACE_ERROR, "textn", MT_STRN("v", p, n), MT_DEBUGN("d", p, n));
}

static void check_i64(int64_t v)
{
	h_reset();
	fields_i64(v);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_num(&e, (uint64_t)v);
	IS(0, "i64", &e);
	CHECK(h_nhits() == 1);
}

static void check_u64(uint64_t v)
{
	h_reset();
	fields_u64(v);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_num(&e, v);
	IS(0, "u64", &e);
}

static void check_f64(double v)
{
	h_reset();
	fields_f64(v);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_f64(&e, v);
	IS(0, "f64", &e);
}

static void check_text(const char *v, const char *want, uint32_t stored, uint32_t full)
{
	h_reset();
	fields_text(v);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, stored < full ? MONTRACE_RF_CUT_TEXT : 0, 0, 0);
	h_text(&e, want, stored, full);
	IS(0, "text", &e);
}

static void check_textn(const void *v, uint64_t n, const char *want, uint32_t stored, uint32_t full)
{
	h_reset();
	fields_textn(v, n);
	h_begin(&e, MONTRACE_KIND_EVENT, 2, stored < full ? MONTRACE_RF_CUT_TEXT : 0, 0, 0);
	h_text(&e, want, stored, full);
	h_text(&e, want, stored, full);
	IS(0, "textn", &e);
}

static void test_values(void)
{
	static char big[6000];

	memset(big, 'x', sizeof(big) - 1);
	big[700] = '\xff';
	check_i64(0);
	check_i64(-1);
	check_i64(INT64_MIN);
	check_i64(INT64_MAX);
	check_u64(UINT64_MAX);
	check_f64(0.0);
	check_f64(-0.0);
	check_f64((double)NAN);
	check_f64((double)INFINITY);
	check_f64(-(double)INFINITY);
	check_f64(DBL_MIN / 2);
	check_text("", "", 0, 0);
	check_text("abc", "abc", 3, 3);
	check_text("12345678", "12345678", 8, 8);
	check_text(NULL, "(null)", 6, 6);
	check_text("\xc3\x28 \"q\" \n \x01", "\xc3\x28 \"q\" \n \x01", 10, 10);
	big[1023] = 0;
	check_text(big, big, 1023, 1023);
	big[1023] = 'x';
	big[1024] = 0;
	check_text(big, big, 1024, 1024);
	big[1024] = 'x';
	big[1025] = 0;
	check_text(big, big, 1024, 1025);
	big[1025] = 'x';
	check_text(big, big, 1024, 1025); /* nobody counts on: it says "more" */
	check_textn(big, 1500, big, 1024, 1500);
	check_textn(big, UINT64_C(0x1234567890), big, 1024, UINT32_MAX);
	check_textn("a\0b", 3, "a\0b", 3, 3);
	check_textn(NULL, 99, "(null)", 6, 6);
	check_textn("zz", 0, "", 0, 0);
}

/* More text than a record takes: what is left for the fourth, nothing for the fifth; numbers are all there.
 */
static void test_big_record(void)
{
	static char big[1025];

	memset(big, 'y', 1024);
	h_reset();
	/* @event info "big" - a:str b:str c:str d:str e:str f:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "big", MT_STR("a", big), MT_STR("b", big), MT_STR("c", big),
		       MT_STR("d", big), MT_STR("e", big), MT_I64("f", 7));
	h_begin(&e, MONTRACE_KIND_EVENT, 6, MONTRACE_RF_CUT_TEXT, 0, 0);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 4096 - 72 - 3072, 1024);
	h_text(&e, big, 0, 1024);
	h_num(&e, 7);
	CHECK(e.end == 4096);
	IS(0, "big", &e);
	h_reset();
	/* @event info "odd" - a:str b:str c:str d:str n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "odd", MT_STRN("a", big, 1024), MT_STRN("b", big, 1024),
		       MT_STRN("c", big, 1024), MT_STRN("d", big, 967));
	h_begin(&e, MONTRACE_KIND_EVENT, 4, 0, 0, 0);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 1024, 1024);
	h_text(&e, big, 967, 967); /* ends at 4095: one byte of padding */
	IS(0, "odd", &e);
}

static void test_all_types(void)
{
	const char *s = "str";
	char array[8] = "array";
	_Bool b = 1;
	const unsigned char uc = 200;
	const short sh = -3;
	float f = 1.5f;
	enum { RED, GREEN } color = GREEN;

	h_reset();
	/* @event info "types" - a:i64 b:u64 c:f64 d:bool e:str f:debug n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "types", MT_I64("a", -1), MT_U64("b", 1), MT_F64("c", 2),
		       MT_BOOL("d", 17), MT_STR("e", s), MT_DEBUG("f", "dbg"));
	h_begin(&e, MONTRACE_KIND_EVENT, 6, 0, 0, 0);
	h_num(&e, (uint64_t)-1);
	h_num(&e, 1);
	h_f64(&e, 2);
	h_num(&e, 1);
	h_text(&e, "str", 3, 3);
	h_text(&e, "dbg", 3, 3);
	IS(0, "types", &e);
	h_reset();
	/* @event info "auto" - s:str array:str b:bool uc:u64 sh:i64 f:f64 c:u64 l:i64 1+1:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "auto", MT(s), MT(array), MT(b), MT(uc), MT(sh), MT(f),
		       MT_AS("c", (unsigned)color), MT_AS("l", -5LL), MT_AS("1+1", 1 + 1));
	h_begin(&e, MONTRACE_KIND_EVENT, 9, 0, 0, 0);
	h_text(&e, "str", 3, 3);
	h_text(&e, "array", 5, 5);
	h_num(&e, 1);
	h_num(&e, 200);
	h_num(&e, (uint64_t)-3);
	h_f64(&e, 1.5);
	h_num(&e, 1);
	h_num(&e, (uint64_t)-5);
	h_num(&e, 2);
	IS(0, "auto", &e);
	h_reset();
	/* clang-format off */
	/* @event info "16" - a:i64 b:i64 c:i64 d:i64 e:i64 f:i64 g:i64 h:i64 i:i64 j:str k:f64 l:i64 m:i64 n:i64 o:i64 p:debug n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "16", MT_I64("a", 0), MT_I64("b", 1), MT_I64("c", 2), MT_I64("d", 3),
		       MT_I64("e", 4), MT_I64("f", 5), MT_I64("g", 6), MT_I64("h", 7), MT_I64("i", 8),
		       MT_STR("j", "J"), MT_F64("k", 10), MT_I64("l", 11), MT_I64("m", 12), MT_I64("n", 13),
		       MT_I64("o", 14), MT_DEBUG("p", "P"));
	/* clang-format on */
	h_begin(&e, MONTRACE_KIND_EVENT, 16, 0, 0, 0);
	for (int i = 0; i < 16; i++) {
		if (i == 9)
			h_text(&e, "J", 1, 1);
		else if (i == 10)
			h_f64(&e, 10);
		else if (i == 15)
			h_text(&e, "P", 1, 1);
		else
			h_num(&e, (uint64_t)i);
	}
	IS(0, "16", &e);
}

static void not_armed(void)
{
	struct montrace_span s;

	/* @scope info "off scope" - x:i64 n=1 */
	MONTRACE_SCOPE("off scope", MT_I64("x", eval(1)));
	/* @event info "off" - x:i64 y:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "off", MT_I64("x", eval(1)), MT_AS("y", eval(2)));
	/* @event-message warn "off %d" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_WARN, "off %d", eval(3));
	/* @counter info "off counter" - value:i64 n=1 */
	MONTRACE_COUNTER("off counter", eval(4));
	/* @span info "off span" - x:str n=1 */
	MONTRACE_SPAN(&s, MONTRACE_INFO, "off span", MT_STR("x", eval(5) ? "a" : "b"));
	/* @record error "record" - x:i64 n=1 */
	MONTRACE_SPAN_RECORD(&s, MT_I64("x", eval(6)));
	CHECK(!s.id == !evaluated && s.cs);
	montrace_enter(&s);
	montrace_exit(&s);
	montrace_close(&s);
	CHECK(s.id == 0 && !s.cs);
}

static void test_not_armed(void)
{
	h_arm(NULL, false);
	h_reset();
	evaluated = 0;
	errno = 77;
	not_armed();
	CHECK(errno == 77);
	CHECK(evaluated == 0 && h_nhits() == 0);
	h_arm(NULL, true);
	not_armed();
	CHECK(evaluated == 7);
	CHECK(h_nhits() == 10);
}

static int scope_ways(int way)
{
	for (int i = 0; i < 3; i++) {
		/* @user-scope info "way" - way:i64 n=1 */
		MONTRACE_USER_SCOPE("way", MT(way));
		if (way == 0)
			continue;
		if (way == 1)
			break;
		if (way == 2)
			goto out;
		if (way == 3)
			return 3;
	}
out:
	return way;
}

static void test_scopes(void)
{
	static const int begins[] = {3, 1, 1, 1};

	for (int way = 0; way < 4; way++) {
		h_reset();
		CHECK(scope_ways(way) == way);
		CHECK(h_nhits() == (size_t)(2 * begins[way]));
		for (size_t i = 0; i < h_nhits(); i++) {
			h_begin(&e, i & 1 ? MONTRACE_KIND_SCOPE_END : MONTRACE_KIND_SCOPE_BEGIN,
				i & 1 ? 0 : 1, 0, 0, 0);
			if (!(i & 1))
				h_num(&e, (uint64_t)way);
			IS(i, "way", &e);
			CHECK(h_hit_at(i)->probe == (i & 1));
		}
	}
	h_reset();
	{
		/* @scope debug "outer" - n=1 */
		MONTRACE_SCOPE_AT(MONTRACE_DEBUG, "outer");
		/* @scope info "inner" - n=1 */
		MONTRACE_SCOPE("inner");
	}
	CHECK(h_nhits() == 4 && !strcmp(h_hit_at(2)->site->name, "inner") &&
	      !strcmp(h_hit_at(3)->site->name, "outer"));
	h_reset();
	h_arm("half", false);
	{
		/* @scope info "half" - n=1 */
		MONTRACE_SCOPE("half");
		h_arm("half", true);
	}
	CHECK(h_nhits() == 0); /* no end without its begin */
	{
		/* @scope info "half" - n=1 */
		MONTRACE_SCOPE("half");
		h_arm("half", false);
	}
	CHECK(h_nhits() == 1);
	h_arm("half", true);
}

static void is_span(size_t i, const char *name, unsigned kind, uint32_t flags, uint64_t id, uint64_t parent)
{
	h_begin(&e, kind, 0, flags, id, parent);
	IS(i, name, &e);
	if (kind >= MONTRACE_KIND_SPAN_NEW && kind <= MONTRACE_KIND_SPAN_CLOSE)
		CHECK(h_hit_at(i)->probe == kind - MONTRACE_KIND_SPAN_NEW);
}

static void test_spans(void)
{
	struct montrace_span a, b, c, zero = {0, NULL};
	uint64_t id;

	h_reset();
	/* @span info "a" - n=1 */
	MONTRACE_SPAN(&a, MONTRACE_INFO, "a");
	CHECK(a.id);
	/* @span warn "b" - n=1 */
	MONTRACE_SPAN_IN(&b, &a, MONTRACE_WARN, "b");
	CHECK(b.id && b.id != a.id);
	/* @span debug "c" - n=1 */
	MONTRACE_SPAN_ROOT(&c, MONTRACE_DEBUG, "c");
	montrace_enter(&b);
	montrace_exit(&b);
	/* @record error "record" - late:u64 n=1 */
	MONTRACE_SPAN_RECORD(&b, MT_U64("late", 9));
	/* @event info "in b" - n=1 */
	MONTRACE_EVENT_IN(&b, MONTRACE_INFO, "in b");
	/* @event info "in none" - n=1 */
	MONTRACE_EVENT_ROOT(MONTRACE_INFO, "in none");
	id = b.id;
	montrace_close(&b);
	CHECK(!b.id && !b.cs);
	is_span(0, "a", MONTRACE_KIND_SPAN_NEW, 0, a.id, 0);
	is_span(1, "b", MONTRACE_KIND_SPAN_NEW, MONTRACE_RF_PARENT, id, a.id);
	is_span(2, "c", MONTRACE_KIND_SPAN_NEW, MONTRACE_RF_ROOT, c.id, 0);
	is_span(3, "b", MONTRACE_KIND_SPAN_ENTER, 0, id, 0);
	is_span(4, "b", MONTRACE_KIND_SPAN_EXIT, 0, id, 0);
	h_begin(&e, MONTRACE_KIND_SPAN_RECORD, 1, 0, id, 0);
	h_num(&e, 9);
	IS(5, "record", &e);
	is_span(6, "in b", MONTRACE_KIND_EVENT, MONTRACE_RF_PARENT, 0, id);
	is_span(7, "in none", MONTRACE_KIND_EVENT, MONTRACE_RF_ROOT, 0, 0);
	is_span(8, "b", MONTRACE_KIND_SPAN_CLOSE, 0, id, 0);
	CHECK(h_nhits() == 9);

	h_reset(); /* nothing happens to what is closed or was never made */
	montrace_enter(&b);
	montrace_exit(&b);
	montrace_close(&b);
	montrace_enter(&zero);
	montrace_close(&zero);
	CHECK(h_nhits() == 0);

	h_arm(NULL, false); /* made unseen; the first enter that is seen gives an id */
	/* @user-span info "late" - n=1 */
	MONTRACE_USER_SPAN(&a, MONTRACE_INFO, "late");
	montrace_enter(&a);
	h_arm(NULL, true);
	montrace_exit(&a);
	CHECK(h_nhits() == 0 && a.id == 0);
	montrace_enter(&a);
	CHECK(a.id);
	is_span(0, "late", MONTRACE_KIND_SPAN_ENTER, MONTRACE_RF_LATE, a.id, 0);
	montrace_exit(&a);
	is_span(1, "late", MONTRACE_KIND_SPAN_EXIT, 0, a.id, 0);
	id = a.id;
	montrace_close(&a);
	is_span(2, "late", MONTRACE_KIND_SPAN_CLOSE, 0, id, 0);

	h_arm(NULL, false); /* an unseen parent gets its id from the child */
	/* @span info "unseen" - n=1 */
	MONTRACE_SPAN(&a, MONTRACE_INFO, "unseen");
	h_arm(NULL, true);
	h_reset();
	/* @event info "child" - n=1 */
	MONTRACE_EVENT_IN(&a, MONTRACE_INFO, "child");
	CHECK(a.id);
	is_span(0, "child", MONTRACE_KIND_EVENT, MONTRACE_RF_PARENT, 0, a.id);
	h_reset();
	/* @recording info "recording" - subject:str capacity:u64 n=1 */
	MONTRACE_RECORDING(&c, "job", 64);
	h_begin(&e, MONTRACE_KIND_SPAN_NEW, 2, MONTRACE_RF_ROOT, c.id, 0);
	h_text(&e, "job", 3, 3);
	h_num(&e, 64);
	IS(0, "recording", &e);
}

static void test_log_counter(void)
{
	char long_text[3001];

	memset(long_text, 'l', 3000);
	long_text[3000] = 0;
	h_reset();
	errno = ENOENT;
	/* @event-message info "n=%d %s 100%%" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_INFO, "n=%d %s 100%%", 5, "five");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat" /* %m is no ISO C */
	/* @event-message info "m=%m" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_INFO, "m=%m");
#pragma GCC diagnostic pop
	/* @user-event-message warn "%s" - message:str n=1 */
	MONTRACE_USER_LOG(MONTRACE_WARN, "%s", long_text);
	/* @event-message info "v=%lu!" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_INFO, "v=%" PRIu64 "!", UINT64_MAX);
	/* @event-message info "bad %ls" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_INFO, "bad %ls", L"\xd800");
	CHECK(errno == ENOENT);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_text(&e, "n=5 five 100%", 13, 13);
	IS(0, "n=%d %s 100%%", &e);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_text(&e, "m=No such file or directory", 27, 27);
	IS(1, "m=%m", &e);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, MONTRACE_RF_CUT_TEXT, 0, 0);
	h_text(&e, long_text, 1024, 3000);
	IS(2, "%s", &e);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_text(&e, "v=18446744073709551615!", 23, 23);
	IS(3, "v=%lu!", &e);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_text(&e, "", 0, 0); /* vsnprintf failed: no text, but an event */
	IS(4, "bad %ls", &e);
	h_reset();
	/* @counter info "ci" - value:i64 n=1 */
	MONTRACE_COUNTER("ci", -4);
	/* @counter info "cf" - value:f64 n=1 */
	MONTRACE_COUNTER("cf", 0.5);
	h_begin(&e, MONTRACE_KIND_COUNTER, 1, 0, 0, 0);
	h_num(&e, (uint64_t)-4);
	IS(0, "ci", &e);
	h_begin(&e, MONTRACE_KIND_COUNTER, 1, 0, 0, 0);
	h_f64(&e, 0.5);
	IS(1, "cf", &e);
}

static void is_name(size_t i, const char *name, unsigned kind, const char *text, uint32_t n)
{
	h_begin(&e, kind, 1, 0, 0, 0);
	h_text(&e, text, n, n);
	IS(i, name, &e);
}

/* Names are told at once, and again about every second, by whoever fires. */
static void test_names(void)
{
	char name[200];

	memset(name, 'N', 199);
	name[199] = 0;
	h_reset();
	montrace_thread_name(name);
	montrace_process_name("the process");
	montrace_execution_id("run-1");
	is_name(0, "thread_name", MONTRACE_KIND_THREAD_NAME, name, 111);
	CHECK(h_nhits() >= 3);
	h_reset();
	montrace__thread_v1.last = montrace__process_v1.last = montrace__execution_v1.last = 1;
	fields_u64(1);
	is_name(0, "thread_name", MONTRACE_KIND_THREAD_NAME, name, 111);
	is_name(1, "process_name", MONTRACE_KIND_PROCESS_NAME, "the process", 11);
	is_name(2, "execution_id", MONTRACE_KIND_EXECUTION_ID, "run-1", 5);
	CHECK(h_nhits() == 4);
	h_reset();
	h_arm("thread_name", false);
	montrace__thread_v1.last = montrace__process_v1.last = montrace__execution_v1.last = 1;
	fields_u64(1);
	is_name(0, "process_name", MONTRACE_KIND_PROCESS_NAME, "the process", 11);
	h_arm("thread_name", true);
	h_reset();
	fields_u64(1); /* told as soon as somebody wants it */
	is_name(0, "thread_name", MONTRACE_KIND_THREAD_NAME, name, 111);
	montrace_thread_name(NULL);
	montrace__named_v1 = 0;
	h_reset();
}

#define THREADS 4
#define SPANS 2000
static uint64_t ids[THREADS][SPANS];

static void *make_spans(void *arg)
{
	uint64_t *out = arg;

	for (int i = 0; i < SPANS; i++) {
		struct montrace_span s;
		/* @span info "thread" - i:i64 n=1 */
		MONTRACE_SPAN(&s, MONTRACE_INFO, "thread", MT(i));
		out[i] = s.id;
		montrace_close(&s);
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void test_threads(void)
{
	pthread_t t[THREADS];
	uint64_t *all = ids[0];

	h_reset();
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, make_spans, ids[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(h_nhits() == 2 * THREADS * SPANS);
	qsort(all, THREADS * SPANS, sizeof(*all), by_value);
	CHECK(all[0] != 0);
	for (int i = 1; i < THREADS * SPANS; i++)
		if (all[i] == all[i - 1]) {
			CHECK(!"an id twice");
			break;
		}
	h_reset();
}

static void on_signal(int sig)
{
	/* @event info "signal" - sig:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "signal", MT(sig));
}

static void test_signal_fork(void)
{
	static char stack[65536];
	stack_t ss = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	int status = -1;
	pid_t pid;

	h_reset();
	CHECK(!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	raise(SIGUSR1);
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_num(&e, SIGUSR1);
	IS(0, "signal", &e);
	pid = fork();
	if (!pid) {
		h_reset();
		fields_i64(3);
		_exit(h_nhits() == 1 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/*
 * Much is alive around the callsite: integers, doubles, an array. The harness spoils all that a call may.
 * The sums must be the same with the callsite armed and not.
 */
static __attribute__((noinline)) uint64_t busy(uint64_t n, bool tell)
{
	uint64_t a = n, b = n * 3, c = n ^ 0x55, d = n + 9, f = ~n, g = n << 7, h = n * n, k = 1;
	double x = (double)n, y = 0.5, z = 3;
	uint64_t small[8] = {n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7};

	for (uint64_t i = 0; i < n; i++) {
		uint64_t carry;

		a += b ^ i;
		if (tell)
			/* @event info "busy" - a:u64 x:f64 n=1 */
			MONTRACE_EVENT(MONTRACE_INFO, "busy", MT(a), MT(x));
		carry = a < b;
		b = b * 5 + c + carry;
		c ^= d + small[i & 7];
		small[(i + 3) & 7] += c;
		d += f;
		f = f * 7 + g;
		g ^= h;
		h += k++;
		x += y * (double)(i & 3);
		y = y * 0.75 + z;
		z += 1 / y;
	}
	memcpy(&k, &x, 8);
	return a ^ b ^ c ^ d ^ f ^ g ^ h ^ k ^ small[0] ^ small[5];
}

static void test_registers(void)
{
	uint64_t want, got;

	h_reset();
	want = busy(50, false);
	got = busy(50, true);
	CHECK(want == got);
	CHECK(h_nhits() == 50);
	h_arm("busy", false);
	CHECK(busy(50, true) == want && h_nhits() == 50);
	h_arm("busy", true);
}

#if defined(__x86_64__)
/*
 * The probe below a leaf that keeps data below its stack pointer: the leaf is assembly, and calls nothing; a
 * signal that comes in between runs a handler with callsites. The data must survive.
 */
uint64_t leaf_with_red_zone(volatile int *go, uint64_t n);
__asm__(".text\n.type leaf_with_red_zone, @function\n.hidden leaf_with_red_zone\n.globl leaf_with_red_zone\n"
	"leaf_with_red_zone:\n"
#if defined(__CET__)
	"	endbr64\n"
#endif
	"	.byte 0x48,0x89,0x74,0x24,0xf8\n" /* mov rsi, -8(rsp) */
	"	.byte 0x48,0x89,0x74,0x24,0x80\n" /* mov rsi, -128(rsp) */
	"7:	.byte 0x83,0x3f,0x00\n"           /* cmp dword (rdi), 0 */
	"	je 7b\n"                          /* in Intel syntax 1b is a number */
	"	.byte 0x48,0x8b,0x44,0x24,0xf8\n" /* mov -8(rsp), rax */
	"	.byte 0x48,0x03,0x44,0x24,0x80\n" /* add -128(rsp), rax */
	"	ret\n"
	".size leaf_with_red_zone, .-leaf_with_red_zone\n");

static volatile int go;

static void on_alarm(int sig)
{
	static int times;

	/* @event info "alarm" - sig:i64 dead */
	MONTRACE_EVENT(MONTRACE_INFO, "alarm", MT(sig));
	go = ++times == 3;
	if (!go)
		ualarm(1000, 0);
}

static void test_red_zone(void)
{
	struct sigaction sa = {.sa_handler = on_alarm};

	h_reset();
	CHECK(!sigaction(SIGALRM, &sa, NULL));
	ualarm(1000, 0);
	CHECK(leaf_with_red_zone(&go, 21) == 42);
	CHECK(h_nhits() == 3);
}
#endif

static void test_inlined_twice(void)
{
	size_t n = 0;

	h_reset();
	twice(1);
	twice(2);
	for (size_t i = 0; i < h_nsites(); i++)
		n += !strcmp(h_site_at(i)->name, "twice");
	CHECK(n >= 1 && h_nhits() == 2);
	h_reset();
	unrolled(4);
	CHECK(h_nhits() == 8);
	CHECK(same_one() == 1 && same_two() == 2);
}

int test_main(void)
{
	CHECK(h_load() > 0);
	test_not_armed();
	test_values();
	test_big_record();
	test_all_types();
	test_scopes();
	test_spans();
	test_log_counter();
	test_names();
	test_threads();
	test_signal_fork();
	test_registers();
#if defined(__x86_64__)
	test_red_zone();
#endif
	test_inlined_twice();
	return h_report("t_c");
}
