/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "decode.h"
#include "wire.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define HEAD sizeof(struct montrace_record)

/* A ring record under construction, in memory of exactly its size when it is decoded. */
struct ring {
	uint8_t b[16384];
	size_t len;
};

struct got {
	struct mt_event ev[8];
	uint32_t n;
	int stop_at, rc;
	char text[64]; /* of ev[0].values[0] */
};

static int collect(void *ctx, const struct mt_event *ev)
{
	struct got *g = ctx;

	assert_true(g->n < N_OF(g->ev));
	if (g->n == 0 && ev->nvalues && ev->values[0].type >= MONTRACE_TYPE_STR) {
		assert_true(ev->values[0].s.len < sizeof(g->text));
		memcpy(g->text, ev->values[0].s.p, ev->values[0].s.len);
		g->text[ev->values[0].s.len] = '\0';
	}
	g->ev[g->n++] = *ev;
	return g->stop_at == (int)g->n ? g->rc : 0;
}

static const struct mt_callsite sites[] = {
	{.id = 1, .class_ = MONTRACE_CLASS_SCOPE, .nfields = 1, .fields = {{"s", MONTRACE_TYPE_STR}}},
	{.id = 2,
	 .class_ = MONTRACE_CLASS_EVENT,
	 .nfields = 5,
	 .fields = {{"i", MONTRACE_TYPE_I64},
		    {"u", MONTRACE_TYPE_U64},
		    {"f", MONTRACE_TYPE_F64},
		    {"b", MONTRACE_TYPE_BOOL},
		    {"d", MONTRACE_TYPE_DEBUG}}},
	{.id = 3, .class_ = MONTRACE_CLASS_SPAN},
	{.id = 4, .class_ = MONTRACE_CLASS_COUNTER, .nfields = 1, .fields = {{"value", MONTRACE_TYPE_I64}}},
	{.id = 5, .class_ = MONTRACE_CLASS_RECORD, .nfields = 1, .fields = {{"s", MONTRACE_TYPE_I64}}},
	{.id = 6, .class_ = MONTRACE_CLASS_RECORDING},
	{.id = 7, .class_ = MONTRACE_CLASS_THREAD_NAME},
	{.id = 8, .class_ = MONTRACE_CLASS_PROCESS_NAME},
	{.id = 9, .class_ = MONTRACE_CLASS_EXECUTION_ID},
};
enum { SCOPE = 1, EVENT, SPAN, COUNTER, RECORD, RECORDING, UNUSED = 99 };

static void add_sites(struct mt_sites *s)
{
	uint32_t i, number = 0;

	for (i = 0; i < N_OF(sites); i++) {
		assert_int_equal(mt_sites_add(s, &sites[i], &number), 0);
		assert_int_equal(number, i + 1);
	}
}

static void head(struct ring *r, uint8_t kind, uint32_t site)
{
	struct mt_wire w = {.size = sizeof(w),
			    .kind = kind,
			    .flags = MT_WIRE_F_SEQ,
			    .site = site,
			    .time = 123,
			    .tgid = 10,
			    .tid = 11,
			    .seq = 7,
			    .start = 99};

	memcpy(r->b, &w, sizeof(w));
	r->len = sizeof(w);
}

static void put(struct ring *r, const void *p, size_t n)
{
	uint16_t size;

	assert_true(r->len + n <= sizeof(r->b));
	if (n)
		memcpy(r->b + r->len, p, n);
	r->len += n;
	size = (uint16_t)r->len;
	memcpy(r->b, &size, sizeof(size));
}

static void record(struct ring *r, uint8_t kind, uint32_t nvalues, const uint64_t *v, const char *text,
		   size_t len)
{
	struct montrace_record m = {
		.kind = kind, .nfields = (uint8_t)nvalues, .flags = 5, .span = 0x1234, .parent = 0x5678};
	static const char zero[8];
	size_t pad = (8 - len % 8) % 8;

	m.size = (uint16_t)(sizeof(m) + nvalues * 8 + len + pad);
	put(r, &m, sizeof(m));
	put(r, v, nvalues * 8);
	put(r, text, len);
	put(r, zero, pad);
}

static uint64_t text_value(uint64_t off, uint64_t len, uint64_t full)
{
	return off | len << 16 | full << 32;
}

static int decode(const struct ring *r, struct mt_decode_stats *st, struct got *g)
{
	struct mt_sites s = {0};
	void *exact = malloc(r->len ? r->len : 1); /* so that reading over the end is seen */
	int rc;

	assert_non_null(exact);
	memcpy(exact, r->b, r->len);
	memset(st, 0, sizeof(*st));
	add_sites(&s);
	rc = mt_decode_record(&s, st, exact, r->len, collect, g);
	mt_sites_free(&s);
	assert_int_equal(st->records, 1);
	free(exact);
	return rc;
}

static void native_event(void **state)
{
	double f = 2.5;
	uint64_t v[5] = {(uint64_t)-3, UINT64_MAX, 0, 256, text_value(HEAD + 40, 5, 5)};
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	memcpy(&v[2], &f, 8);
	head(&r, MT_WIRE_NATIVE, EVENT);
	record(&r, MONTRACE_KIND_EVENT, 5, v, "hello", 5);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(st.malformed + st.unknown, 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].kind, MT_EV_EVENT);
	assert_true(g.ev[0].has_seq);
	assert_int_equal(g.ev[0].seq, 7);
	assert_int_equal(g.ev[0].time, 123);
	assert_int_equal(g.ev[0].tgid, 10);
	assert_int_equal(g.ev[0].tid, 11);
	assert_int_equal(g.ev[0].thread_start, 99);
	assert_ptr_equal(g.ev[0].cs, &sites[1]);
	assert_int_equal(g.ev[0].span, 0x1234);
	assert_int_equal(g.ev[0].parent, 0x5678);
	assert_int_equal(g.ev[0].flags, 5);
	assert_int_equal(g.ev[0].nvalues, 5);
	assert_int_equal(g.ev[0].values[0].type, MONTRACE_TYPE_I64);
	assert_int_equal(g.ev[0].values[0].i, -3);
	assert_true(g.ev[0].values[1].u == UINT64_MAX);
	assert_true(g.ev[0].values[2].f == 2.5);
	assert_int_equal(g.ev[0].values[3].u, 1);
	assert_int_equal(g.ev[0].values[4].type, MONTRACE_TYPE_DEBUG);
	assert_int_equal(g.ev[0].values[4].s.len, 5);
	assert_false(g.ev[0].values[4].cut);
	assert_false(g.ev[0].values[4].missing);
}

/* Values that the record does not have are absent, not made up. */
static void fewer_values(void **state)
{
	uint64_t v = 4;
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	head(&r, MT_WIRE_NATIVE, EVENT);
	record(&r, MONTRACE_KIND_EVENT, 1, &v, NULL, 0);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].nvalues, 1);
}

/* off, stored, full of a text in a record of 32 + 8 bytes with text "hello"; ok: what comes out */
static const struct {
	uint64_t off, len, full;
	const char *text; /* NULL: malformed */
	uint32_t full_len;
} texts[] = {
	{32, 5, 5, "hello", 0},     {32, 5, 9, "hello", 9},
	{32, 5, 3, "hello", 0},     {33, 4, 4, "ello", 0},
	{32, 8, 8, "hello", 0},     {39, 1, 1, "", 0},
	{0, 0, 0, "", 0},           {40, 0, 77, "", 77},
	{60000, 0, 0, "", 0},       {31, 5, 5, NULL, 0},
	{0, 5, 5, NULL, 0},         {32, 9, 9, NULL, 0},
	{40, 1, 1, NULL, 0},        {33, 8, 8, NULL, 0},
	{65535, 65535, 0, NULL, 0}, {32, 5, UINT32_MAX, "hello", UINT32_MAX},
};

static void text_bounds(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(texts); i++) {
		uint64_t v = text_value(texts[i].off, texts[i].len, texts[i].full);
		struct mt_decode_stats st;
		struct got g = {0};
		struct ring r;

		head(&r, MT_WIRE_NATIVE, SCOPE);
		record(&r, MONTRACE_KIND_SCOPE_BEGIN, 1, &v, "hello", 5);
		assert_int_equal(decode(&r, &st, &g), 0);
		if (g.n != (texts[i].text != NULL) || st.malformed != !texts[i].text)
			fail_msg("text %zu", i);
		if (!texts[i].text)
			continue;
		assert_string_equal(g.text, texts[i].text);
		assert_int_equal(g.ev[0].values[0].cut, texts[i].full_len != 0);
		assert_int_equal(g.ev[0].values[0].full_len, texts[i].full_len);
	}
}

/* A text over the limit is cut to it, and says so. */
static void text_over_the_limit(void **state)
{
	static char text[2000];
	uint64_t v[5] = {0, 0, 0, 0, text_value(HEAD + 40, 2000, 2000)};
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	head(&r, MT_WIRE_NATIVE, EVENT);
	record(&r, MONTRACE_KIND_EVENT, 5, v, text, 2000);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].values[4].s.len, MONTRACE_MAX_TEXT);
	assert_true(g.ev[0].values[4].cut);
	assert_int_equal(g.ev[0].values[4].full_len, 2000);
}

static void kind_belongs_to_class(void **state)
{
	/* bit k: a record of kind k may come from the site */
	static const uint32_t want[] = {0, 0x6, 0x100, 0x78, 0x200, 0x80, 0x78, 0x400, 0x800, 0x1000};
	uint32_t site, kind;

	(void)state;
	for (site = 1; site <= N_OF(sites); site++) {
		for (kind = 0; kind < 256; kind++) {
			bool known = kind >= 1 && kind <= 12, ok = known && (want[site] >> kind & 1);
			struct mt_decode_stats st;
			struct got g = {0};
			struct ring r;

			head(&r, MT_WIRE_NATIVE, site);
			record(&r, (uint8_t)kind, 0, NULL, NULL, 0);
			assert_int_equal(decode(&r, &st, &g), 0);
			if (g.n != ok || st.malformed != (known && !ok) || st.unknown != !known)
				fail_msg("site %u kind %u", site, kind);
			if (ok)
				assert_int_equal(g.ev[0].kind, kind);
		}
	}
}

static void batch(void **state)
{
	uint64_t v[2] = {1, 2};
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	head(&r, MT_WIRE_NATIVE, COUNTER);
	record(&r, 200, 1, v, "newer", 5); /* unknown: stepped over */
	record(&r, MONTRACE_KIND_COUNTER, 1, v, NULL, 0);
	record(&r, MONTRACE_KIND_COUNTER, 1, v + 1, NULL, 0);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(st.unknown, 1);
	assert_int_equal(st.malformed, 0);
	assert_true(g.ev[0].has_seq);
	assert_false(g.ev[1].has_seq);
	assert_int_equal(g.ev[0].values[0].i, 1);
	assert_int_equal(g.ev[1].values[0].i, 2);
	/* What comes before a bad record counts, what comes after it does not. */
	record(&r, MONTRACE_KIND_EVENT, 0, NULL, NULL, 0);
	record(&r, MONTRACE_KIND_COUNTER, 1, v, NULL, 0);
	memset(&g, 0, sizeof(g));
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(st.malformed, 1);
	/* The callback stops it. */
	memset(&g, 0, sizeof(g));
	g.stop_at = 1;
	g.rc = -5;
	assert_int_equal(decode(&r, &st, &g), -5);
	assert_int_equal(g.n, 1);
}

/* Each breaks one thing of a good record. at: offset in the ring record. */
static const struct {
	size_t at;
	uint8_t bytes;
	uint32_t value;
	bool ok;
} damage[] = {
	{0, 2, 72, true},                             /* nothing */
	{0, 2, 39, false},                            /* ring record: shorter than its head */
	{0, 2, 40, false},                            /* without payload */
	{0, 2, 63, false},                            /* half a head */
	{0, 2, 71, false},                            /* record longer than the ring record */
	{0, 2, 73, false},                            /* ring record longer than what is there */
	{0, 2, 65535, false},                         /* the same */
	{4, 4, 0, false},                             /* site 0 */
	{4, 4, 10, false},                            /* the first number not given out */
	{4, 4, 0xffffffff, false}, {40, 2, 0, false}, /* record: size 0 would never end */
	{40, 2, 16, false},                           /* shorter than its head */
	{40, 2, 24, false},                           /* no room for the value */
	{40, 2, 31, false},                           /* no multiple of 8 */
	{40, 2, 40, false},                           /* longer than the payload */
	{40, 2, 65528, false},                        /* the same */
	{42, 1, 1, false},                            /* kind of another class */
	{43, 1, 0, true},                             /* no value, 8 bytes behind: allowed */
	{43, 1, 2, false},                            /* more than the callsite has */
	{43, 1, 17, false},        {43, 1, 255, false},
};

static void damaged(void **state)
{
	uint64_t v = 1;
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(damage); i++) {
		struct mt_decode_stats st;
		struct got g = {0};
		struct ring r;

		head(&r, MT_WIRE_NATIVE, COUNTER);
		record(&r, MONTRACE_KIND_COUNTER, 1, &v, NULL, 0);
		assert_int_equal(r.len, 72);
		memcpy(r.b + damage[i].at, &damage[i].value, damage[i].bytes);
		assert_int_equal(decode(&r, &st, &g), 0);
		if (g.n != damage[i].ok || st.malformed != !damage[i].ok)
			fail_msg("damage %zu", i);
	}
}

/* A slot may be longer than its record, and a record as long as it may be, not longer. */
static void sizes(void **state)
{
	static char text[MONTRACE_MAX_RECORD];
	uint64_t v = 1;
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	head(&r, MT_WIRE_NATIVE, COUNTER);
	record(&r, MONTRACE_KIND_COUNTER, 1, &v, NULL, 0);
	memset(r.b + r.len, 0xff, 100);
	r.len += 100;
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	head(&r, MT_WIRE_NATIVE, COUNTER);
	record(&r, MONTRACE_KIND_COUNTER, 1, &v, text, MONTRACE_MAX_RECORD - HEAD - 8);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	head(&r, MT_WIRE_NATIVE, COUNTER);
	record(&r, MONTRACE_KIND_COUNTER, 1, &v, text, MONTRACE_MAX_RECORD - HEAD);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(st.malformed, 1);
}

/* A size that is no multiple of 8, and more values than fields, in records that are whole otherwise. */
static void odd_records(void **state)
{
	uint64_t v[2] = {1, 2};
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;
	uint16_t size;

	(void)state;
	head(&r, MT_WIRE_NATIVE, COUNTER);
	record(&r, MONTRACE_KIND_COUNTER, 2, v, NULL, 0);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(st.malformed, 1);
	assert_int_equal(g.n, 0);
	head(&r, MT_WIRE_NATIVE, SPAN);
	record(&r, MONTRACE_KIND_SPAN_EXIT, 0, NULL, NULL, 0);
	put(&r, "1234", 4);
	size = HEAD + 4;
	memcpy(r.b + sizeof(struct mt_wire), &size, sizeof(size));
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(st.malformed, 1);
	assert_int_equal(g.n, 0);
}

/* Cut anywhere: never more than what is there is read (the sanitizer looks), never an event. */
static void truncated(void **state)
{
	uint64_t v = text_value(32, 5, 5);
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;
	size_t len;

	(void)state;
	head(&r, MT_WIRE_NATIVE, SCOPE);
	record(&r, MONTRACE_KIND_SCOPE_BEGIN, 1, &v, "hello", 5);
	for (len = r.len; len-- > 0;) {
		uint16_t size = (uint16_t)len;

		r.len = len;
		assert_int_equal(decode(&r, &st, &g), 0);
		assert_int_equal(st.malformed, 1);
		memcpy(r.b, &size, len < 2 ? len : 2);
		assert_int_equal(decode(&r, &st, &g), 0);
		assert_int_equal(st.malformed, 1);
	}
	assert_int_equal(g.n, 0);
}

static void life(struct ring *r, uint8_t kind, uint8_t flags, const char *comm, size_t len)
{
	struct mt_wire_life l = {.child = 20, .status = 0x8b, .child_start = 777};

	memcpy(l.comm, comm, len);
	head(r, kind, 0);
	r->b[3] = flags;
	put(r, &l, sizeof(l));
}

static void thread_exit(void **state)
{
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	life(&r, MT_WIRE_THREAD_EXIT, 0, "", 1);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].kind, MT_EV_THREAD_EXIT);
	assert_false(g.ev[0].has_seq);
	assert_int_equal(g.ev[0].thread_start, 99);
	memset(&g, 0, sizeof(g));
	life(&r, MT_WIRE_THREAD_EXIT, MT_WIRE_F_SEQ | MT_WIRE_F_GROUP_DEAD, "", 1);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(g.ev[0].kind, MT_EV_THREAD_EXIT);
	assert_true(g.ev[0].has_seq);
	assert_int_equal(g.ev[0].seq, 7);
	assert_int_equal(g.ev[1].kind, MT_EV_PROCESS_EXIT);
	assert_false(g.ev[1].has_seq);
	assert_int_equal(g.ev[1].tgid, 10);
	assert_int_equal(g.ev[1].exit.status, 0x8b);
	assert_int_equal(g.ev[1].thread_start, 0);
	memset(&g, 0, sizeof(g));
	g.stop_at = 1;
	g.rc = -7;
	assert_int_equal(decode(&r, &st, &g), -7);
	assert_int_equal(g.n, 1);
}

static void fork_exec_comm(void **state)
{
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	life(&r, MT_WIRE_FORK, MT_WIRE_F_SEQ, "kid", 4);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 2);
	assert_int_equal(g.ev[0].kind, MT_EV_PROCESS_FORK);
	assert_false(g.ev[0].has_seq);
	assert_int_equal(g.ev[0].tgid, 10);
	assert_int_equal(g.ev[0].fork.child, 20);
	assert_int_equal(g.ev[0].fork.child_start, 777);
	assert_int_equal(g.ev[1].kind, MT_EV_THREAD_COMM);
	assert_int_equal(g.ev[1].tgid, 20);
	assert_int_equal(g.ev[1].tid, 20);
	assert_int_equal(g.ev[1].thread_start, 777);
	assert_int_equal(g.ev[1].comm.len, 3);

	memset(&g, 0, sizeof(g));
	life(&r, MT_WIRE_EXEC, 0, "sh", 3);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].kind, MT_EV_PROCESS_EXEC);
	assert_int_equal(g.ev[0].process.start, 99);
	assert_int_equal(g.ev[0].process.name.len, 2);
	assert_int_equal(g.ev[0].process.cmdline.len, 0);

	memset(&g, 0, sizeof(g));
	life(&r, MT_WIRE_COMM, MT_WIRE_F_SEQ, "0123456789abcdef", 16); /* no NUL at the end */
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].kind, MT_EV_THREAD_COMM);
	assert_false(g.ev[0].has_seq);
	assert_int_equal(g.ev[0].comm.len, 16);
	assert_int_equal(st.malformed + st.unknown, 0);
	r.len = 71;
	r.b[0] = 71;
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(st.malformed, 1);
}

static void unknown_kinds(void **state)
{
	struct mt_decode_stats st;
	struct got g = {0};
	struct ring r;

	(void)state;
	head(&r, 15, SCOPE);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(st.unknown, 1);
	head(&r, 0, SCOPE);
	assert_int_equal(decode(&r, &st, &g), 0);
	assert_int_equal(st.unknown, 1);
	assert_int_equal(g.n, 0);
}

/* Operands as they were read -> values; those that could not be read have the reason, for foreign sites only. */
static void foreign(void **state)
{
	static const struct mt_callsite cs = {.id = 1,
					      .class_ = MONTRACE_CLASS_EVENT,
					      .nfields = 10,
					      .fields = {{"i8", MONTRACE_TYPE_I64, MT_RAW_I8},
							 {"i16", MONTRACE_TYPE_I64, MT_RAW_I16},
							 {"i32", MONTRACE_TYPE_I64, MT_RAW_I32},
							 {"u8", MONTRACE_TYPE_U64, MT_RAW_U8},
							 {"u16", MONTRACE_TYPE_U64, MT_RAW_U16},
							 {"u32", MONTRACE_TYPE_U64, MT_RAW_U32},
							 {"f", MONTRACE_TYPE_F64, MT_RAW_F32},
							 {"hex", MONTRACE_TYPE_DEBUG, MT_RAW_HEX},
							 {"gone", MONTRACE_TYPE_STR, MT_RAW_AS_IS},
							 {"xmm", MONTRACE_TYPE_F64, MT_RAW_F32}}};
	const uint64_t v[] = {0xffffff80, 0xffff8000, 0x80000000,     ~0ull, ~0ull,
			      ~0ull,      0x3fc00000, 0xdeadbeefcafe, 1,     2};
	struct montrace_record m = {.size = sizeof(m) + sizeof(v),
				    .kind = MONTRACE_KIND_EVENT,
				    .nfields = 10,
				    .flags = 0x3000000u | 5};
	struct mt_decode_stats st = {0};
	struct mt_sites s = {0};
	struct got g = {0};
	struct ring r;
	uint32_t number;

	(void)state;
	assert_int_equal(mt_sites_add(&s, &cs, &number), 0);
	head(&r, MT_WIRE_FOREIGN, 1);
	put(&r, &m, sizeof(m));
	put(&r, v, sizeof(v));
	assert_int_equal(mt_decode_record(&s, &st, r.b, r.len, collect, &g), 0);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.ev[0].flags, 5);
	assert_true(g.ev[0].has_seq);
	assert_true(g.ev[0].values[0].i == -128);
	assert_true(g.ev[0].values[1].i == -32768);
	assert_true(g.ev[0].values[2].i == INT32_MIN);
	assert_true(g.ev[0].values[3].u == 255);
	assert_true(g.ev[0].values[4].u == 65535);
	assert_true(g.ev[0].values[5].u == UINT32_MAX);
	assert_true(g.ev[0].values[6].f == 1.5);
	assert_int_equal(g.ev[0].values[7].s.len, 14);
	assert_false(g.ev[0].values[7].missing);
	assert_true(g.ev[0].values[8].missing && g.ev[0].values[9].missing);
	assert_string_equal(g.ev[0].values[8].s.p, "unreadable");
	assert_memory_equal(g.ev[0].values[9].s.p, "in a vector", 11);
	/* a target cannot claim that */
	r.b[2] = MT_WIRE_NATIVE;
	g.n = 0;
	assert_int_equal(mt_decode_record(&s, &st, r.b, r.len, collect, &g), 0);
	assert_int_equal(g.n, 1);
	assert_false(g.ev[0].values[8].missing || g.ev[0].values[9].missing);
	assert_int_equal(g.ev[0].values[8].s.len, 0);
	mt_sites_free(&s);
}

static void site_numbers(void **state)
{
	struct mt_sites s = {0};
	uint32_t i, n = 0;

	(void)state;
	for (i = 1; i <= 1000; i++) {
		assert_int_equal(mt_sites_add(&s, &sites[i % 3], &n), 0);
		assert_int_equal(n, i);
		assert_ptr_equal(s.v[n - 1].cs, &sites[i % 3]);
	}
	mt_sites_free(&s);
	assert_null(s.v);
	assert_int_equal(s.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_event),
		cmocka_unit_test(fewer_values),
		cmocka_unit_test(text_bounds),
		cmocka_unit_test(text_over_the_limit),
		cmocka_unit_test(kind_belongs_to_class),
		cmocka_unit_test(batch),
		cmocka_unit_test(damaged),
		cmocka_unit_test(sizes),
		cmocka_unit_test(odd_records),
		cmocka_unit_test(truncated),
		cmocka_unit_test(thread_exit),
		cmocka_unit_test(fork_exec_comm),
		cmocka_unit_test(unknown_kinds),
		cmocka_unit_test(foreign),
		cmocka_unit_test(site_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
