/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service with a worker pool that does nothing real, to be traced: every kind of probe, and the truth
 * about what it did, counted by itself.
 *
 *   service [--threads N] [--count N] [--rate N] [--wait] [--hold] [--hostile-values]
 *
 * --count is the number of spans (scopes too) and events together, exactly; --rate how many of them a second
 * (0 = as fast as it can). A request is a span that the main thread makes and enters, that one worker enters,
 * then another (or the same again), and that the closer thread closes. At the end one `key=value` line
 * per thing: spans, events, counters, records, slices (begins of scopes and enters of spans), threads, and
 * `span:NAME=N`, `event:NAME=N`.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "montrace.h"
#include "example.h"

/* clang-format off */
#define THINGS(X)                                                                                        \
	X(span, request, "request")                                                                      \
	X(span, stage, "stage")                                                                          \
	X(span, background, "background")                                                                \
	X(span, recording, "recording")                                                                  \
	X(span, handle, "handle")                                                                        \
	X(span, parse, "parse")                                                                          \
	X(span, query, "query")                                                                          \
	X(event, accepted, "accepted")                                                                   \
	X(event, row, "row")                                                                             \
	X(event, miss, "cache miss")                                                                     \
	X(event, slow, "slow query")                                                                     \
	X(event, failed, "failed")                                                                       \
	X(event, done, "request %ld is done, status %d")                                                 \
	X(event, closing, "closing")                                                                     \
	X(event, alone, "alone")                                                                         \
	X(event, hostile, "hostile")
/* clang-format on */
#define ENUM(kind, name, text) THING_##name,
#define TABLE(kind, name, text) {#kind, text},
enum thing { THINGS(ENUM) N_THINGS };

static const struct {
	const char *kind, *name;
} things[N_THINGS] = {THINGS(TABLE)};

struct job {
	struct montrace_span span;
	struct montrace_span recording;
	struct job *next;
	long number;
	int stage;
	char path[32];
};

/* A queue of jobs; unbounded, its users bound it. */
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct job *head, **tail;
	bool over;
};

static struct example opts = {.threads = 4, .count = 1000};
static struct queue work, ended;
static long long began;
static long taken, flying, slices, counters, records, counts[N_THINGS];

static long add(long *what, long n)
{
	return __atomic_fetch_add(what, n, __ATOMIC_RELAXED);
}

/* Whether there is one more thing to do; waits for its time. */
static bool take(enum thing t)
{
	long i = add(&taken, 1);

	if (i >= opts.count)
		return false;
	add(&counts[t], 1);
	if (opts.rate) {
		long long at = began + i * 1000000000LL / opts.rate;
		struct timespec when = {at / 1000000000, at % 1000000000};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
	}
	return true;
}

static void queue_init(struct queue *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
	q->tail = &q->head;
}

static void queue_put(struct queue *q, struct job *j)
{
	j->next = NULL;
	pthread_mutex_lock(&q->lock);
	*q->tail = j;
	q->tail = &j->next;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

static struct job *queue_get(struct queue *q)
{
	struct job *j;

	pthread_mutex_lock(&q->lock);
	while (!q->head && !q->over)
		pthread_cond_wait(&q->filled, &q->lock);
	j = q->head;
	if (j) {
		q->head = j->next;
		if (!q->head)
			q->tail = &q->head;
	}
	pthread_mutex_unlock(&q->lock);
	return j;
}

static void queue_end(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->over = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

static void enter(struct montrace_span *s)
{
	add(&slices, 1);
	montrace_enter(s);
}

/* ---- What a request goes through; each function makes one span, if there is one left to make. */

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "service::db"
static void query(const struct job *j)
{
	if (!take(THING_query))
		return;
	add(&slices, 1);
	MONTRACE_SCOPE_AT(MONTRACE_DEBUG, "query", MT_STR("table", "users"), MT_U64("limit", 10));
	for (int i = 0; i < j->number % 3; i++)
		if (take(THING_row))
			MONTRACE_EVENT(MONTRACE_TRACE, "row", MT(i), MT_F64("score", i / 3.0),
				       MT_BOOL("last", i == 1));
	if (j->number % 4 == 1 && take(THING_miss))
		MONTRACE_EVENT(MONTRACE_DEBUG, "cache miss", MT_DEBUG("key", "Key { id: 7 }"));
	if (j->number % 8 == 2 && take(THING_slow))
		MONTRACE_EVENT(MONTRACE_WARN, "slow query", MT_F64("seconds", 0.25), MT_I64("delta", -1));
}

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "service::http"
static void parse(const struct job *j)
{
	if (!take(THING_parse))
		return;
	add(&slices, 1);
	MONTRACE_SCOPE("parse", MT_AS("path", j->path), MT_AS("bytes", strlen(j->path)));
	add(&counters, 1);
	MONTRACE_COUNTER("bytes", strlen(j->path));
}

static void handle(struct job *j)
{
	if (!take(THING_handle))
		return;
	add(&slices, 1);
	MONTRACE_SCOPE("handle", MT_AS("number", j->number));
	parse(j);
	query(j);
	if (j->number % 16 == 3 && take(THING_failed))
		MONTRACE_EVENT(MONTRACE_ERROR, "failed", MT_I64("code", -5), MT_STR("why", "no such user"));
}

static void stage(struct job *j)
{
	struct montrace_span s;

	if (!take(THING_stage))
		return;
	MONTRACE_SPAN_IN(&s, &j->span, MONTRACE_INFO, "stage", MT_AS("stage", j->stage));
	enter(&s);
	if (take(THING_done))
		MONTRACE_LOG(MONTRACE_INFO, "request %ld is done, status %d", j->number, 200);
	montrace_exit(&s);
	montrace_close(&s);
}

static void background(const struct job *j)
{
	struct montrace_span s;

	if (!take(THING_background))
		return;
	MONTRACE_SPAN_ROOT(&s, MONTRACE_DEBUG, "background", MT_AS("of", j->number));
	enter(&s);
	if (take(THING_alone))
		MONTRACE_EVENT_ROOT(MONTRACE_INFO, "alone");
	montrace_exit(&s);
	montrace_close(&s);
}

static void *worker(void *arg)
{
	char name[64];
	struct job *j;

	snprintf(name, sizeof(name), "worker %ld of the service's pool", (long)(intptr_t)arg);
	montrace_thread_name(name);
	while ((j = queue_get(&work))) {
		bool recorded = j->recording.cs && j->stage == 0;

		if (recorded)
			enter(&j->recording);
		enter(&j->span);
		if (j->stage == 0) {
			handle(j);
		} else {
			add(&records, 1);
			MONTRACE_SPAN_RECORD(&j->span, MT_I64("status", 200), MT_STR("cache", "hit"));
			stage(j);
			if (j->number % 8 == 5)
				background(j);
		}
		montrace_exit(&j->span);
		if (recorded)
			montrace_exit(&j->recording);
		queue_put(j->stage++ ? &ended : &work, j);
	}
	return NULL;
}

static void *closer(void *arg)
{
	struct job *j;

	(void)arg;
	montrace_thread_name("closer");
	while ((j = queue_get(&ended))) {
		if (take(THING_closing))
			MONTRACE_EVENT_IN(&j->span, MONTRACE_INFO, "closing", MT_AS("number", j->number));
		montrace_close(&j->span);
		montrace_close(&j->recording);
		free(j);
		add(&flying, -1);
	}
	return NULL;
}

static void submit(long number)
{
	struct job *j = calloc(1, sizeof(*j));
	long now;

	if (!j)
		abort();
	j->number = number;
	snprintf(j->path, sizeof(j->path), "/users/%ld", number);
	if (!take(THING_request)) {
		free(j);
		return;
	}
	MONTRACE_USER_SPAN(&j->span, MONTRACE_INFO, "request", MT_AS("path", j->path),
			   MT_AS("number", number));
	if (number % 16 == 0 && take(THING_recording))
		MONTRACE_RECORDING(&j->recording, j->path, 32);
	enter(&j->span);
	if (take(THING_accepted))
		MONTRACE_USER_EVENT(MONTRACE_INFO, "accepted", MT_STR("message", "a request came"),
				    MT_AS("number", number));
	add(&counters, 1);
	now = add(&flying, 1) + 1; /* not in the macro: it evaluates its arguments only when somebody looks */
	MONTRACE_COUNTER("in flight", now);
	montrace_exit(&j->span);
	queue_put(&work, j);
}

#undef MONTRACE_TARGET
#define MONTRACE_TARGET "service::hostile"
#define HOSTILE(...)                                                           \
	do {                                                                   \
		if (take(THING_hostile))                                       \
			MONTRACE_EVENT(MONTRACE_INFO, "hostile", __VA_ARGS__); \
	} while (0)

static void hostile_values(void)
{
	static char kib[1025], two[2049];

	memset(kib, 'k', sizeof(kib) - 1);
	memset(two, '2', sizeof(two) - 1);
	HOSTILE(MT_I64("i64 min", INT64_MIN), MT_I64("i64 max", INT64_MAX), MT_U64("u64 max", UINT64_MAX));
	HOSTILE(MT_F64("nan", NAN), MT_F64("inf", INFINITY), MT_F64("-inf", -INFINITY), MT_F64("-0", -0.0));
	HOSTILE(MT_STR("empty", ""), MT_STR("null", NULL));
	HOSTILE(MT_STR("1 KiB", kib));
	HOSTILE(MT_STR("2 KiB", two));
	HOSTILE(MT_STR("invalid", "\xff\xfe \xc3\x28 \xed\xa0\x80 end"));
	HOSTILE(MT_STR("quotes", "\"quoted\" 'q' \\ \n\t\r end"));
	HOSTILE(MT_STR("control", "\x1b[31mred\x1b[0m\x07\x01"), MT_STRN("nul inside", "a\0b", 3));
	HOSTILE(MT_STR("a", kib), MT_STR("b", kib), MT_STR("c", kib), MT_STR("d", kib), MT_STR("e", kib));
	HOSTILE(MT_STR("same", "first"), MT_STR("same", "second"));
	HOSTILE(MT_STR("name", "a name"), MT_STR("message", "a message"), MT_STR("", "no name"));
}

static void report(void)
{
	long spans = 0, events = 0;

	for (int i = 0; i < N_THINGS; i++)
		*(things[i].kind[0] == 's' ? &spans : &events) += counts[i];
	printf("spans=%ld\nevents=%ld\ncounters=%ld\nrecords=%ld\nslices=%ld\nthreads=%ld\n", spans, events,
	       counters, records, slices, opts.threads + 2);
	for (int i = 0; i < N_THINGS; i++)
		printf("%s:%s=%ld\n", things[i].kind, things[i].name, counts[i]);
}

int main(int argc, char **argv)
{
	const char *usage =
		"service [--threads N] [--count N] [--rate N] [--wait] [--hold] [--hostile-values]\n";
	struct timespec moment = {0, 100000};
	pthread_t *pool, last;

	example_options(&opts, argc, argv, usage);
	pool = calloc((size_t)opts.threads, sizeof(*pool));
	if (!opts.threads || opts.threads > 10000 || !pool)
		example_usage(usage);
	example_start(&opts);
	began = example_ns();
	montrace_process_name("service example");
	montrace_thread_name("main of the service");
	queue_init(&work);
	queue_init(&ended);
	for (long i = 0; i < opts.threads; i++)
		if (pthread_create(&pool[i], NULL, worker, (void *)(intptr_t)i))
			abort();
	if (pthread_create(&last, NULL, closer, NULL))
		abort();
	if (opts.hostile)
		hostile_values();
	for (long n = 0; __atomic_load_n(&taken, __ATOMIC_RELAXED) < opts.count; n++) {
		while (__atomic_load_n(&flying, __ATOMIC_RELAXED) > 64)
			nanosleep(&moment, NULL);
		submit(n);
	}
	while (__atomic_load_n(&flying, __ATOMIC_ACQUIRE))
		nanosleep(&moment, NULL);
	queue_end(&work);
	for (long i = 0; i < opts.threads; i++)
		pthread_join(pool[i], NULL);
	queue_end(&ended);
	pthread_join(last, NULL);
	report();
	example_end(&opts);
	free(pool);
	return 0;
}
