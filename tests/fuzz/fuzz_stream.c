/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring records -> decode -> spans -> check sink.
 *
 * The input drives a small model of the kernel side: a few processes and threads make hits at a few
 * callsites, some records are lost, threads exit, processes fork, exec, die and are detached. The first
 * byte chooses how:
 *   ordered  heads of ring records are right, what the target writes (payloads) may be anything. Then
 *            every hit must be accounted for: delivered + lost = what the sequence numbers say.
 *   wild     heads may be damaged too; then only the oracle's invariants hold.
 * Violations abort.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "check_sink.h"
#include "decode.h"
#include "spans.h"
#include "wire.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define N_THREADS 12
#define CHECK(x)                                                                \
	do {                                                                    \
		if (!(x)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
			abort();                                                \
		}                                                               \
	} while (0)

struct input {
	const uint8_t *p;
	size_t n;
};

static uint8_t byte(struct input *in)
{
	if (in->n == 0)
		return 0;
	in->n--;
	return *in->p++;
}

static uint64_t word(struct input *in)
{
	uint64_t v = 0;
	int i;

	for (i = 0; i < 8; i++)
		v = v << 8 | byte(in);
	return v;
}

/* Thread i is tid i % 4 of process i / 4; the first one has the process's number. */
struct thread {
	uint64_t start;
	uint64_t made;  /* hits made, delivered or not */
	uint64_t known; /* hits that the delivered records tell of */
	bool alive;
};

struct run {
	struct mt_sites sites;
	struct mt_decode_stats decode;
	struct mt_spans *spans;
	struct mt_sink *check;
	struct thread t[N_THREADS];
	uint64_t now;
	uint64_t settled;          /* hits of incarnations that are over */
	bool stale[N_THREADS / 4]; /* threads of the process may have gone without a word */
	bool wild;
	uint32_t at; /* thread of the running record */
};

static const struct mt_callsite callsites[] = {
#define SITE(id_, class__, name_, n, ...)                                                                \
	{                                                                                                \
		.id = id_, .class_ = MONTRACE_CLASS_##class__, .name = name_, .target = "t", .file = "", \
		.function = "", .nfields = n, .fields = {                                                \
			__VA_ARGS__                                                                      \
		}                                                                                        \
	}
	SITE(1, SCOPE, "a", 0, {0}),
	SITE(2, SCOPE, "b", 2, {"name", MONTRACE_TYPE_STR}, {"x", MONTRACE_TYPE_BOOL}),
	SITE(3, SPAN, "A", 0, {0}),
	SITE(4, SPAN, "B", 2, {"name", MONTRACE_TYPE_DEBUG}, {"x", MONTRACE_TYPE_F64}),
	SITE(5, EVENT, "e", 2, {"message", MONTRACE_TYPE_STR}, {"i", MONTRACE_TYPE_I64}),
	SITE(6, COUNTER, "c", 1, {"value", MONTRACE_TYPE_U64}),
	SITE(7, RECORD, "r", 2, {"x", MONTRACE_TYPE_U64}, {"s", MONTRACE_TYPE_STR}),
	SITE(8, RECORDING, "recording", 2, {"subject", MONTRACE_TYPE_STR}, {"capacity", MONTRACE_TYPE_U64}),
	SITE(9, THREAD_NAME, "tn", 1, {"name", MONTRACE_TYPE_STR}),
	SITE(10, PROCESS_NAME, "pn", 1, {"name", MONTRACE_TYPE_STR}),
	SITE(11, EXECUTION_ID, "ex", 1, {"id", MONTRACE_TYPE_STR}),
	SITE(12, SCOPE, "d", 1, {"y", MONTRACE_TYPE_I64}),
	{.id = 13,
	 .class_ = MONTRACE_CLASS_SPAN,
	 .keyed = true,
	 .name = "K",
	 .target = "t",
	 .file = "",
	 .function = "",
	 .nfields = 3,
	 .end_at = 1,
	 .fields = {{"s", MONTRACE_TYPE_STR}, {"x", MONTRACE_TYPE_U64}, {"e", MONTRACE_TYPE_STR}}},
};

/* class -> kinds, most used twice */
static const uint8_t kinds[][4] = {
	[MONTRACE_CLASS_SCOPE] = {MONTRACE_KIND_SCOPE_BEGIN, MONTRACE_KIND_SCOPE_END,
				  MONTRACE_KIND_SCOPE_BEGIN, MONTRACE_KIND_SCOPE_END},
	[MONTRACE_CLASS_SPAN] = {MONTRACE_KIND_SPAN_NEW, MONTRACE_KIND_SPAN_ENTER, MONTRACE_KIND_SPAN_EXIT,
				 MONTRACE_KIND_SPAN_CLOSE},
	[MONTRACE_CLASS_EVENT] = {MONTRACE_KIND_EVENT, MONTRACE_KIND_EVENT, MONTRACE_KIND_EVENT,
				  MONTRACE_KIND_EVENT},
	[MONTRACE_CLASS_COUNTER] = {MONTRACE_KIND_COUNTER, MONTRACE_KIND_COUNTER, MONTRACE_KIND_COUNTER,
				    MONTRACE_KIND_COUNTER},
	[MONTRACE_CLASS_RECORD] = {MONTRACE_KIND_SPAN_RECORD, MONTRACE_KIND_SPAN_RECORD,
				   MONTRACE_KIND_SPAN_RECORD, MONTRACE_KIND_SPAN_RECORD},
	[MONTRACE_CLASS_RECORDING] = {MONTRACE_KIND_SPAN_NEW, MONTRACE_KIND_SPAN_ENTER,
				      MONTRACE_KIND_SPAN_EXIT, MONTRACE_KIND_SPAN_CLOSE},
	[MONTRACE_CLASS_THREAD_NAME] = {MONTRACE_KIND_THREAD_NAME, 0, 0, 0},
	[MONTRACE_CLASS_PROCESS_NAME] = {MONTRACE_KIND_PROCESS_NAME, 0, 0, 0},
	[MONTRACE_CLASS_EXECUTION_ID] = {MONTRACE_KIND_EXECUTION_ID, 0, 0, 0},
};

struct record {
	uint8_t b[2048];
	size_t n;
};

static void head(struct run *r, struct record *rec, uint8_t kind, uint8_t flags, uint32_t site)
{
	const struct thread *t = &r->t[r->at];
	struct mt_wire w = {.kind = kind,
			    .flags = flags,
			    .site = site,
			    .time = r->now,
			    .tgid = 100 * (r->at / 4 + 1),
			    .tid = 100 * (r->at / 4 + 1) + r->at % 4,
			    .seq = t->made,
			    .start = t->start};

	memcpy(rec->b, &w, sizeof(w));
	rec->n = sizeof(w);
}

static void add(struct record *rec, const void *p, size_t n)
{
	if (n > sizeof(rec->b) - rec->n)
		return;
	memcpy(rec->b + rec->n, p, n);
	rec->n += n;
}

/* One record of the target; its text is input bytes. */
static void add_native(struct input *in, struct record *rec, const struct mt_callsite *cs)
{
	uint8_t how = byte(in), text[32], i, len = byte(in) % 25;
	struct montrace_record m = {.kind = kinds[cs->class_][how & 3], .nfields = cs->nfields};

	m.span = how >> 2 & 7;
	m.flags = byte(in) & 31;
	m.parent = m.flags & MONTRACE_RF_PARENT ? byte(in) & 7 : 0;
	if (how & 0x80)
		m.nfields = 0;
	m.size = (uint16_t)(sizeof(m) + m.nfields * 8u + (len + 7u) / 8 * 8);
	add(rec, &m, sizeof(m));
	for (i = 0; i < m.nfields; i++) {
		uint64_t v = byte(in);

		if (cs->fields[i].type >= MONTRACE_TYPE_STR)
			v = (sizeof(m) + m.nfields * 8u) | (uint64_t)len << 16 | (v & 63) << 32;
		add(rec, &v, sizeof(v));
	}
	memset(text, 0, sizeof(text));
	for (i = 0; i < len; i++)
		text[i] = byte(in);
	add(rec, text, (len + 7u) / 8 * 8);
}

/* A start time that nobody else has, and that is no tick of /proc. */
static uint64_t new_start(struct run *r)
{
	r->now += 2;
	return r->now | 1;
}

/* Whatever an incarnation has told so far is what there is to know of it. */
static void settle(struct run *r, uint32_t i)
{
	r->settled += r->t[i].known;
	r->t[i].known = 0;
	r->t[i].made = 0;
}

static void settle_process(struct run *r, uint32_t i)
{
	uint32_t first = i / 4 * 4, k;

	for (k = first; k < first + 4; k++) {
		settle(r, k);
		r->t[k].alive = false;
		r->t[k].start = 0;
	}
}

static int on_event(void *ctx, const struct mt_event *ev)
{
	struct run *r = ctx;
	struct thread *t = &r->t[r->at];

	if (!r->wild && ev->has_seq && ev->kind < MT_EV_PROCESS && t->known < ev->seq + 1)
		t->known = ev->seq + 1;
	if (!r->wild && ev->has_seq && ev->kind == MT_EV_THREAD_EXIT && t->known < ev->seq)
		t->known = ev->seq;
	CHECK(mt_spans_feed(r->spans, ev) == 0);
	if (mt_check_error(r->check)) {
		fprintf(stderr, "%s\n", mt_check_error(r->check));
		abort();
	}
	return 0;
}

static void account(struct run *r)
{
	const struct mt_spans_stats *st = mt_spans_stats(r->spans);
	uint64_t known = r->settled;
	uint32_t i;

	for (i = 0; i < N_THREADS; i++)
		known += r->t[i].known;
	CHECK(r->wild || st->delivered + st->lost == known);
	CHECK(st->lost == mt_check_counts(r->check)->lost);
	CHECK(st->slices == mt_check_counts(r->check)->begins + mt_check_counts(r->check)->keyed_begins);
	CHECK(st->instants == mt_check_counts(r->check)->instants);
}

static void give(struct run *r, struct record *rec, struct input *in)
{
	uint16_t size = (uint16_t)rec->n;
	uint8_t *exact;

	memcpy(rec->b, &size, sizeof(size));
	if (r->wild && (byte(in) & 3) == 0) {
		size_t at = byte(in) % rec->n;

		rec->b[at] ^= byte(in);
	}
	exact = malloc(rec->n);
	CHECK(exact);
	memcpy(exact, rec->b, rec->n);
	CHECK(mt_decode_record(&r->sites, &r->decode, exact, rec->n, on_event, r) == 0);
	free(exact);
}

static void hit(struct run *r, struct input *in)
{
	uint32_t site = byte(in) % N_OF(callsites);
	uint8_t how = byte(in);
	struct record rec;

	head(r, &rec, MT_WIRE_NATIVE, MT_WIRE_F_SEQ, site + 1);
	add_native(in, &rec, &callsites[site]);
	if ((how & 0x70) == 0x10) /* batched */
		add_native(in, &rec, &callsites[site]);
	if ((how & 0x70) == 0x20) { /* the target writes what it likes */
		size_t at = sizeof(struct mt_wire) + byte(in) % (rec.n - sizeof(struct mt_wire));

		rec.b[at] = byte(in);
	}
	if ((how & 0x70) == 0x30) { /* a large id */
		uint64_t id = word(in);

		memcpy(rec.b + sizeof(struct mt_wire) + offsetof(struct montrace_record, span), &id,
		       sizeof(id));
	}
	if (how & 7) /* else the ring was full */
		give(r, &rec, in);
	r->t[r->at].made++;
}

static void life(struct run *r, struct input *in, uint8_t kind, uint8_t flags)
{
	struct mt_wire_life l = {.status = byte(in)};
	uint32_t child = byte(in) % 3;
	struct record rec;
	uint32_t i;

	for (i = 0; i < 4; i++)
		l.comm[i] = (char)byte(in);
	if (kind == MT_WIRE_FORK) {
		if (child == r->at / 4)
			return;
		settle_process(r, child * 4);
		r->stale[child] = true;
		l.child = 100 * (child + 1);
		l.child_start = r->t[child * 4].start = new_start(r);
		r->t[child * 4].alive = true;
	}
	head(r, &rec, kind, flags, 0);
	add(&rec, &l, sizeof(l));
	give(r, &rec, in);
}

static void thread_exits(struct run *r, struct input *in, bool last)
{
	struct thread *t = &r->t[r->at];

	life(r, in, MT_WIRE_THREAD_EXIT, (t->made ? MT_WIRE_F_SEQ : 0) | (last ? MT_WIRE_F_GROUP_DEAD : 0));
	settle(r, r->at);
	t->alive = false;
	t->start = 0;
	if (last) {
		settle_process(r, r->at);
		r->stale[r->at / 4] = false;
	}
}

/* An exec leaves one thread, here always the first; the others exit before. */
static void execs(struct run *r, struct input *in)
{
	uint32_t first = r->at / 4 * 4, k;

	if (r->stale[r->at / 4]) /* then nobody can say whose numbers the new first thread goes on with */
		return;
	for (k = first + 1; k < first + 4; k++) {
		r->at = k;
		if (r->t[k].alive)
			thread_exits(r, in, false);
	}
	r->at = first;
	life(r, in, MT_WIRE_EXEC, 0);
}

static void session_event(struct run *r, struct input *in, uint8_t how)
{
	const struct thread *main = &r->t[r->at / 4 * 4];
	struct mt_event ev = {.time = r->now, .tgid = 100 * (r->at / 4 + 1), .tid = 100 * (r->at / 4 + 1)};
	char text[4] = {(char)byte(in), (char)byte(in), 'x', (char)byte(in)};

	if (how & 1) {
		ev.kind = MT_EV_DETACH;
	} else {
		ev.kind = MT_EV_PROCESS;
		ev.process.start = main->alive && main->start ? main->start - main->start % 10000000 : 0;
		ev.process.ppid = byte(in);
		ev.process.name = (struct mt_str){text, 4};
		ev.process.cmdline = (struct mt_str){text, how & 3};
	}
	on_event(r, &ev);
	if (how & 1) {
		settle_process(r, r->at);
		r->stale[r->at / 4] = false;
	}
}

/* A process that is new, its number perhaps an old one's: as the tracer learns it from /proc or a fork. */
static void born(struct run *r)
{
	struct mt_event ev = {.kind = MT_EV_PROCESS, .time = r->now, .tgid = 100 * (r->at / 4 + 1)};

	ev.tid = ev.tgid;
	ev.process.start = r->t[r->at].start;
	ev.process.name = (struct mt_str){"p", 1};
	ev.process.cmdline = (struct mt_str){"", 0};
	on_event(r, &ev);
}

static void step(struct run *r, struct input *in)
{
	uint8_t what = byte(in), who = byte(in);

	r->at = who % N_THREADS;
	r->now += who < 240 ? who / 16 : 300000000;
	if (!r->t[r->at].alive) {
		if (r->at % 4 == 0) { /* no threads of an older one */
			settle_process(r, r->at);
			r->stale[r->at / 4] = true;
		}
		r->t[r->at].alive = true;
		r->t[r->at].start = new_start(r);
		if (r->at % 4 == 0)
			born(r);
	}
	if (what < 0xd0)
		hit(r, in);
	else if (what < 0xd4)
		life(r, in, MT_WIRE_COMM, 0);
	else if (what < 0xdc)
		thread_exits(r, in, what & 1);
	else if (what < 0xe0)
		life(r, in, MT_WIRE_FORK, 0);
	else if (what < 0xe4)
		execs(r, in);
	else
		session_event(r, in, what);
}

static int look(void *ctx, const struct mt_spans_open *o)
{
	uint64_t *n = ctx;

	CHECK(o->thread->process && o->span && o->cs);
	*n += 1;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct run r = {0};
	uint8_t mode = byte(&in);
	struct mt_spans_opts opts = {.naming = mode & 3,
				     .max_depth = mode & 4 ? 3 : 0,
				     .max_spans = mode & 8 ? 3 : 0,
				     .max_threads = (mode & 0x90) == 0x90 ? 4 : 0};
	uint64_t open = 0;
	uint32_t i, number;

	r.wild = mode & 0x80;
	r.now = 1000000000;
	for (i = 0; i < N_OF(callsites); i++)
		CHECK(mt_sites_add(&r.sites, &callsites[i], &number) == 0);
	CHECK(mt_check_new(NULL, false, &r.check) == 0);
	CHECK(mt_spans_new(&opts, r.check, &r.spans) == 0);
	while (in.n) {
		step(&r, &in);
		account(&r);
	}
	CHECK(mt_spans_each_open(r.spans, look, &open) == 0);
	CHECK(open <= mt_check_counts(r.check)->open);
	CHECK(mt_spans_finish(r.spans, r.now) == 0);
	account(&r);
	if (mt_check_final(r.check)) {
		fprintf(stderr, "%s\n", mt_check_final(r.check));
		abort();
	}
	mt_spans_free(r.spans);
	CHECK(r.check->ops->free(r.check) == 0);
	mt_sites_free(&r.sites);
	return 0;
}
