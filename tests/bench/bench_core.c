/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core costs: ns per record and bytes per span, without kernel and without target.
 *
 *   bench_core [SPANS]        default 1,000,000
 *
 * Part 1 drives the sink alone: the same spans in several shapes (fields, names, compression).
 * Part 2 makes ring records as the BPF side does and takes them through decode, spans and pftrace, or a flight
 * recorder whose window is full most of the time.
 * With "1,000 open" the spans have a key, and 1,000 of them are open all the time.
 * Spans: 8 threads, 20 callsites, one integer field, about 10 us long. Best of 5 runs; bytes are those
 * of the whole file divided by the spans.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <linux/types.h>

#include "decode.h"
#include "flight.h"
#include "pftrace.h"
#include "spans.h"
#include "wire.h"

#define THREADS 8
#define SITES 20
#define RUNS 5

static void die(const char *what)
{
	fprintf(stderr, "bench_core: %s\n", what);
	exit(1);
}

/* Time of this thread on a processor: other load on the machine does not count. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long rss_kib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

/* Counts bytes and forgets them. */
struct null_out {
	struct mt_out o;
	uint64_t written;
};

static int null_write(struct mt_out *o, const void *data, size_t len)
{
	(void)data;
	((struct null_out *)o)->written += len;
	return 0;
}

static int null_close(struct mt_out *o)
{
	(void)o;
	return 0;
}

static const struct mt_out_ops null_ops = {.write = null_write, .close = null_close};

static void clocks(void *ctx, struct mt_clocks *ret)
{
	(void)ctx;
	*ret = (struct mt_clocks){.boot = 1000, .mono = 1000, .real = 1000};
}

static struct mt_sink *make_sink(struct null_out *out, bool compress)
{
	static const unsigned char boot_id[16];
	struct mt_pftrace_opts opts = {
		.clocks = clocks, .tool_version = "bench", .boot_id = boot_id, .compress = compress};
	struct mt_sink *s;

	*out = (struct null_out){.o.ops = &null_ops};
	if (mt_pftrace_new(&opts, &out->o, &s) < 0)
		die("cannot make the sink");
	return s;
}

enum shape {
	PLAIN,    /* static name, one integer */
	BARE,     /* no field */
	TEXT,     /* one text of 24 bytes besides */
	DYNAMIC,  /* name from a field: 1000 different ones */
	LEVEL,    /* level chosen: annotation */
	ZLIB,     /* as PLAIN, compressed */
	INSTANTS, /* events of one integer field */
	NSHAPES,
};

static const char *const shape_names[NSHAPES] = {
	"span, 1 int",
	"span, no field",
	"span, int + 24 byte text",
	"span, name from a field",
	"span, level given",
	"span, 1 int, zlib",
	"event, 1 int",
};

struct world {
	struct mt_process proc;
	struct mt_thread threads[THREADS];
	struct mt_callsite cs[SITES];
	char names[SITES][32];
	char dynamic[1000][32];
};

static void make_world(struct world *w, enum shape shape)
{
	memset(w, 0, sizeof(*w));
	w->proc = (struct mt_process){
		.pid = 1000, .start = 1, .name = "bench", .cmdline = "bench", .execution_id = ""};
	for (unsigned i = 0; i < THREADS; i++)
		w->threads[i] =
			(struct mt_thread){.process = &w->proc, .tid = 1000 + i, .start = 1 + i, .name = "t"};
	for (unsigned i = 0; i < SITES; i++) {
		snprintf(w->names[i], sizeof(w->names[i]), "operation_%u", i);
		w->cs[i] = (struct mt_callsite){
			.id = i + 1,
			.class_ = shape == INSTANTS ? MONTRACE_CLASS_EVENT : MONTRACE_CLASS_SCOPE,
			.level = MONTRACE_DEBUG,
			.flags = shape == LEVEL ? 0 : MONTRACE_CSF_DEFAULT_LEVEL,
			.line = 100 + i,
			.nfields = shape == BARE   ? 0
				   : shape == TEXT ? 2
						   : 1,
			.name = w->names[i],
			.target = "app::db",
			.file = "src/app/db.c",
			.function = "query",
			.fields = {{"count", MONTRACE_TYPE_I64}, {"text", MONTRACE_TYPE_STR}},
		};
	}
	for (unsigned i = 0; i < 1000; i++)
		snprintf(w->dynamic[i], sizeof(w->dynamic[i]), "request %u", i);
}

static uint64_t random_step(uint64_t *x)
{
	*x = *x * 6364136223846793005ull + 1442695040888963407ull;
	return *x >> 33;
}

static void span_once(struct mt_sink *s, struct world *w, enum shape shape, uint64_t i, uint64_t *t,
		      uint64_t len)
{
	struct mt_thread *th = &w->threads[i % THREADS];
	const struct mt_callsite *cs = &w->cs[i % SITES];
	struct mt_value v[2] = {
		{.type = MONTRACE_TYPE_I64, .i = (int64_t)(i % 100)},
		{.type = MONTRACE_TYPE_STR, .s = {"select from where and or", 24}},
	};
	struct mt_str name = {cs->name, (uint32_t)strlen(cs->name)};
	uint32_t n = cs->nfields;

	if (shape == DYNAMIC)
		name = (struct mt_str){w->dynamic[i % 1000], (uint32_t)strlen(w->dynamic[i % 1000])};
	if (shape == INSTANTS) {
		struct mt_instant e = {
			.thread = th, .time = *t, .cs = cs, .name = name, .nvalues = n, .values = v};

		s->ops->instant(s, &e);
		e.time = *t += len;
		s->ops->instant(s, &e);
	} else {
		struct mt_slice b = {.thread = th,
				     .time = *t,
				     .cs = cs,
				     .name = name,
				     .key = i + 1,
				     .span = i + 1,
				     .nvalues = n,
				     .values = v};
		struct mt_slice_end e = {.thread = th, .cs = cs, .name = name, .key = i + 1, .span = i + 1};

		s->ops->begin(s, &b);
		e.time = *t += len;
		s->ops->end(s, &e);
	}
}

static void bench_sink(enum shape shape, uint64_t spans)
{
	struct world *w = malloc(sizeof(*w));
	uint64_t best = UINT64_MAX, bytes = 0;

	if (!w)
		die("no memory");
	for (int run = 0; run < RUNS; run++) {
		struct null_out out;
		struct mt_sink *s = make_sink(&out, shape == ZLIB);
		uint64_t t[THREADS], x = 1, took;

		make_world(w, shape);
		for (unsigned i = 0; i < THREADS; i++)
			t[i] = 1ull << 48;
		took = cpu_ns();
		for (uint64_t i = 0; i < spans; i++) {
			span_once(s, w, shape, i, &t[i % THREADS], 5000 + random_step(&x) % 10000);
			t[i % THREADS] += random_step(&x) % 20000;
		}
		s->ops->free(s);
		took = cpu_ns() - took;
		if (took < best)
			best = took;
		bytes = out.written;
	}
	printf("%-28s %10.1f %12.1f %10ld\n", shape_names[shape], (double)best / (double)(2 * spans),
	       (double)bytes / (double)(shape == INSTANTS ? 2 * spans : spans), rss_kib());
	free(w);
}

/* A ring record with one record of the target. */
struct hit {
	struct mt_wire wire;
	struct montrace_record rec;
	uint64_t value;
};

static void make_hit(struct hit *h, uint64_t i, bool begin, uint64_t time, uint64_t seq, uint64_t id,
		     uint32_t thread)
{
	uint8_t kind = id      ? begin ? MONTRACE_KIND_SPAN_NEW : MONTRACE_KIND_SPAN_CLOSE
		       : begin ? MONTRACE_KIND_SCOPE_BEGIN
			       : MONTRACE_KIND_SCOPE_END;
	uint32_t nvalues = begin;
	uint32_t size = (uint32_t)(sizeof(h->rec) + nvalues * 8);

	*h = (struct hit){
		.wire = {.size = (uint16_t)(sizeof(h->wire) + size),
			 .kind = MT_WIRE_NATIVE,
			 .flags = MT_WIRE_F_SEQ,
			 .site = (uint32_t)(i % SITES) + 1,
			 .time = time,
			 .tgid = 1000,
			 .tid = 1000 + thread,
			 .seq = seq,
			 .start = 1 + thread},
		.rec = {.size = (uint16_t)size, .kind = kind, .span = id, .nfields = (uint8_t)nvalues},
		.value = i % 100,
	};
}

static int feed(void *ctx, const struct mt_event *ev)
{
	return mt_spans_feed(ctx, ev);
}

static int drop(void *ctx, const struct mt_event *ev)
{
	(void)ctx;
	(void)ev;
	return 0;
}

enum depth {
	DECODE,
	DECODE_SPANS,
	DECODE_SPANS_PFTRACE,
	DECODE_SPANS_FLIGHT,
	NDEPTHS,
};

static const char *const depth_names[NDEPTHS] = {"decode", "decode, spans", "decode, spans, pftrace",
						 "decode, spans, flight"};

static const struct mt_sink_ops no_ops;

struct chain {
	struct world *w;
	struct mt_sites sites;
	struct mt_spans *spans;
	struct mt_sink *sink;
	struct mt_sink nothing;
	struct null_out out;
};

static void chain_make(struct chain *c, enum depth depth, bool keyed)
{
	struct mt_spans_opts opts = {.naming = MT_NAMING_USER};
	struct mt_event ev = {.kind = MT_EV_PROCESS, .time = 1, .tgid = 1000, .tid = 1000};
	uint32_t number;

	memset(c, 0, sizeof(*c));
	c->w = malloc(sizeof(*c->w));
	if (!c->w)
		die("no memory");
	make_world(c->w, PLAIN);
	for (unsigned i = 0; i < SITES; i++) {
		c->w->cs[i].keyed = keyed;
		c->w->cs[i].class_ = keyed ? MONTRACE_CLASS_SPAN : c->w->cs[i].class_;
		if (mt_sites_add(&c->sites, &c->w->cs[i], &number) < 0)
			die("no memory");
	}
	c->nothing.ops = &no_ops;
	if (depth == DECODE_SPANS_PFTRACE)
		c->sink = make_sink(&c->out, false);
	if (depth == DECODE_SPANS_FLIGHT &&
	    mt_flight_new(&(struct mt_flight_spec){1ull << 60, 200000, 16 << 20}, &c->sink) < 0)
		die("no memory");
	if (mt_spans_new(&opts, c->sink ? c->sink : &c->nothing, &c->spans) < 0)
		die("cannot make spans");
	ev.process.start = 1;
	ev.process.name = (struct mt_str){"bench", 5};
	mt_spans_feed(c->spans, &ev);
}

static void chain_free(struct chain *c, uint64_t spans, enum depth depth)
{
	const struct mt_spans_stats *st = mt_spans_stats(c->spans);

	if (depth != DECODE && (st->slices != spans || st->lost || st->stray_exits))
		die("the chain did not make the spans it was given");
	mt_spans_finish(c->spans, UINT64_MAX / 2);
	mt_spans_free(c->spans);
	if (c->sink)
		c->sink->ops->free(c->sink);
	mt_sites_free(&c->sites);
	free(c->w);
}

/* Records are made in blocks outside the clock, so that only the chain is timed. */
static void bench_chain(enum depth depth, uint64_t spans, uint64_t open)
{
	enum { BLOCK = 4096 };
	struct hit *hits = malloc(BLOCK * sizeof(*hits));
	uint64_t best = UINT64_MAX, bytes = 0;

	if (!hits)
		die("no memory");
	for (int run = 0; run < RUNS; run++) {
		uint64_t t[THREADS], seq[THREADS] = {0}, x = 1, took = 0;
		struct mt_decode_stats stats = {0};
		struct chain c;

		chain_make(&c, depth, open);
		for (unsigned i = 0; i < THREADS; i++)
			t[i] = 1ull << 48;
		for (uint64_t i = 0; i < spans;) {
			uint64_t n = 0, from;

			for (; n + 1 < BLOCK && i < spans; i++) {
				uint32_t on = i % THREADS;
				uint64_t *tt = &t[on], *q = &seq[on];

				make_hit(&hits[n++], i, true, *tt, (*q)++, open ? i + 1 : 0, on);
				*tt += 5000 + random_step(&x) % 10000;
				if (i >= open)
					make_hit(&hits[n++], i - open, false, *tt, (*q)++,
						 open ? i + 1 - open : 0, on);
				*tt += random_step(&x) % 20000;
			}
			from = cpu_ns();
			for (uint64_t k = 0; k < n; k++)
				mt_decode_record(&c.sites, &stats, &hits[k], hits[k].wire.size,
						 depth == DECODE ? drop : feed, c.spans);
			took += cpu_ns() - from;
		}
		if (stats.malformed || stats.records != 2 * spans - open)
			die("decode refused a record");
		chain_free(&c, spans, depth);
		if (took < best)
			best = took;
		bytes = c.out.written;
	}
	printf("%-28s %10.1f %12.1f %10ld\n", open ? "the same, 1,000 open" : depth_names[depth],
	       (double)best / (double)(2 * spans - open), (double)bytes / (double)spans, rss_kib());
	free(hits);
}

int main(int argc, char **argv)
{
	uint64_t spans = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;

	if (spans < 2000)
		die("at least 2000 spans");
	printf("%" PRIu64 " spans, %d threads, %d callsites, best of %d\n\n", spans, THREADS, SITES, RUNS);
	printf("%-28s %10s %12s %10s\n", "sink alone", "ns/record", "bytes/span", "RSS KiB");
	for (int i = 0; i < NSHAPES; i++)
		bench_sink((enum shape)i, spans);
	printf("\n%-28s %10s %12s %10s\n", "chain: span, 1 int", "ns/record", "bytes/span", "RSS KiB");
	for (int i = 0; i < NDEPTHS; i++)
		bench_chain((enum depth)i, spans, 0);
	bench_chain(DECODE_SPANS, spans, 1000);
	bench_chain(DECODE_SPANS_PFTRACE, spans, 1000);
	return 0;
}
