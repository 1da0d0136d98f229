/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces built by hand, read, and written down one line an event: the lines must be exact. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "ptread.h"
#include "trace_enc.h"

struct log {
	char s[1 << 16];
	size_t n;
	int events, stop_at;
};

static void say(struct log *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->s + l->n, sizeof(l->s) - l->n, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(l->s) - l->n);
	l->n += (size_t)n;
}

static void say_str(struct log *l, const char *key, struct mt_str s)
{
	if (s.len)
		say(l, " %s=%.*s", key, (int)s.len, s.p);
}

static void say_arg(struct log *l, const struct mt_pt_arg *a)
{
	say(l, " %.*s", (int)a->name.len, a->name.p);
	switch ((enum mt_pt_arg_type)a->type) {
	case MT_PT_ARG_BOOL:
		say(l, ":b%d", (int)a->u);
		break;
	case MT_PT_ARG_INT:
		say(l, ":i%" PRId64, a->i);
		break;
	case MT_PT_ARG_UINT:
		say(l, ":u%" PRIu64, a->u);
		break;
	case MT_PT_ARG_DOUBLE:
		say(l, ":d%g", a->d);
		break;
	case MT_PT_ARG_STR:
		say(l, ":s'%.*s'", (int)a->s.len, a->s.p);
		break;
	case MT_PT_ARG_POINTER:
		say(l, ":p%" PRIx64, a->u);
		break;
	case MT_PT_ARG_TEXT:
		say(l, ":t%.*s", (int)a->s.len, a->s.p);
		break;
	case MT_PT_ARG_NONE:
		say(l, ":none");
		break;
	}
}

static int take(void *ctx, const struct mt_pt_event *ev)
{
	static const char kinds[] = "BEICTLA";
	struct log *l = ctx;

	if (++l->events == l->stop_at)
		return -ECANCELED;
	say(l, "%c", kinds[ev->kind]);
	if (ev->has_ts)
		say(l, " %" PRIu64, ev->ts);
	if (ev->track)
		say(l, " @%" PRIu64, ev->track->uuid);
	if (ev->has_name)
		say(l, " '%.*s'", (int)ev->name.len, ev->name.p);
	say_str(l, "cat", ev->cat);
	say_str(l, "file", ev->file);
	say_str(l, "func", ev->function);
	if (ev->line)
		say(l, " line=%u", ev->line);
	for (uint32_t i = 0; i < ev->nargs; i++)
		say_arg(l, &ev->args[i]);
	for (uint32_t i = 0; i < ev->nflows; i++)
		say(l, " ~%" PRIu64, ev->flows[i]);
	if (ev->kind == MT_PT_COUNTER && ev->is_double)
		say(l, " =%g", ev->d);
	else if (ev->kind == MT_PT_COUNTER)
		say(l, " =%" PRId64, ev->i);
	if (ev->kind == MT_PT_LOSS)
		say(l, " source=%d count=%" PRIu64 " cpu=%u seq=%u bits=%u", ev->loss.source, ev->loss.count,
		    ev->loss.cpu, ev->loss.seq, ev->loss.bits);
	say(l, "\n");
	return 0;
}

/* Reads e and compares; info may be NULL. The reader is given back if ret_reader is not NULL. */
static void read_enc(const struct enc *e, int rc, const char *lines, struct mt_ptread_info *info,
		     struct mt_ptread **ret_reader)
{
	struct log *l = calloc(1, sizeof(*l));
	unsigned char *copy = malloc(e->n + 1); /* exact size: reads beyond it are seen */
	struct mt_ptread *r;

	assert_non_null(l);
	assert_non_null(copy);
	copy = realloc(copy, e->n ? e->n : 1);
	memcpy(copy, e->b, e->n);
	assert_int_equal(mt_ptread_new(&r), 0);
	assert_int_equal(mt_ptread_mem(r, copy, e->n, take, l), rc);
	assert_string_equal(l->s, lines);
	if (info)
		*info = *mt_ptread_info(r);
	if (ret_reader)
		*ret_reader = r;
	else
		mt_ptread_free(r);
	free(copy);
	free(l);
}

static struct enc *fresh(void)
{
	struct enc *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	return e;
}

/* Interned names 1 a, 2 b; categories 1 c1, 2 c2; argument names 1 k, 2 l; string 1 str; location 1. */
static void intern(struct enc *e)
{
	size_t m = e_open(e, 12), n;

	e_named(e, 2, 1, "a");
	e_named(e, 2, 2, "b");
	e_named(e, 1, 1, "c1");
	e_named(e, 1, 2, "c2");
	e_named(e, 3, 1, "k");
	e_named(e, 3, 2, "l");
	e_named(e, 29, 1, "str");
	n = e_open(e, 4);
	e_u(e, 1, 1);
	e_s(e, 2, "f.c");
	e_s(e, 3, "fn");
	e_u(e, 4, 77);
	e_close(e, n);
	e_close(e, m);
}

static void default_track(struct enc *e, uint64_t uuid, unsigned clk)
{
	size_t m = e_open(e, 59), n = e_open(e, 11);

	e_u(e, 11, uuid);
	e_close(e, n);
	if (clk)
		e_u(e, 58, clk);
	e_close(e, m);
}

/* Clears sequence 2 and interns. */
static void state(struct enc *e)
{
	size_t p = e_packet(e, 2, 1);

	default_track(e, 8, 0);
	intern(e);
	e_close(e, p);
}

/* An event of sequence 2 that needs state: e_close() twice ends it. */
static size_t p_mark;
static size_t event(struct enc *e, uint64_t ts, unsigned type, unsigned name_iid)
{
	size_t m;

	p_mark = e_packet(e, 2, 2);
	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, type);
	if (name_iid)
		e_u(e, 10, name_iid);
	return m;
}

static void event_end(struct enc *e, size_t m)
{
	e_close(e, m);
	e_close(e, p_mark);
}

static void arg(struct enc *e, unsigned name_iid, unsigned num, uint64_t v)
{
	size_t m = e_open(e, 4);

	e_u(e, 1, name_iid);
	e_u(e, num, v);
	e_close(e, m);
}

static void resolves_everything(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread_info info;
	size_t m, n;

	(void)st;
	e_process(e, 7, 100, "prog");
	e_thread(e, 8, 7, 100, 101, "worker");
	state(e);
	m = event(e, 1000, 1, 1);
	e_u(e, 3, 1);
	e_u(e, 3, 2);
	e_s(e, 22, "own");
	e_u(e, 34, 1);
	arg(e, 1, 2, 1);
	arg(e, 2, 3, UINT64_MAX);
	arg(e, 1, 4, (uint64_t)-5);
	arg(e, 2, 7, 0xffff888012345678);
	arg(e, 1, 17, 1);
	n = e_open(e, 4);
	e_s(e, 10, "dbl");
	e_dbl(e, 5, -0.5);
	e_close(e, n);
	n = e_open(e, 4);
	e_s(e, 10, "txt");
	e_s(e, 6, "v\nw");
	e_close(e, n);
	n = e_open(e, 4);
	e_s(e, 10, "empty");
	e_close(e, n);
	e_f64(e, 47, 5);
	e_f64(e, 48, 6);
	e_u(e, 36, 7);
	event_end(e, m);
	m = event(e, 2000, 2, 1);
	e_u(e, 11, 9); /* its own track goes before the default */
	event_end(e, m);
	m = event(e, 2001, 3, 0);
	e_s(e, 23, "inline");
	n = e_open(e, 33);
	e_s(e, 2, "g.c");
	e_u(e, 4, 3);
	e_close(e, n);
	event_end(e, m);
	read_enc(e, 0,
		 "T @7\nT @8\n"
		 "B 1000 @8 'a' cat=c1,c2,own file=f.c func=fn line=77 k:b1 l:u18446744073709551615 k:i-5 "
		 "l:pffff888012345678 k:s'str' dbl:d-0.5 txt:s'v\nw' empty:none ~5 ~6 ~7\n"
		 "E 2000 @9 'a'\n"
		 "I 2001 @8 'inline' file=g.c line=3\n",
		 &info, NULL);
	assert_int_equal(info.packets, 6);
	assert_int_equal(info.events, 3);
	assert_int_equal(info.bytes, e->n);
	assert_int_equal(info.unknown_iids, 0);
	free(e);
}

static void nested_arguments_become_text(void **st)
{
	struct enc *e = fresh();
	size_t m, a, b, c;

	(void)st;
	state(e);
	m = event(e, 1, 3, 1);
	a = e_open(e, 4);
	e_s(e, 10, "d");
	b = e_open(e, 11); /* value before name: order must not matter */
	c = e_open(e, 12);
	e_u(e, 4, (uint64_t)-1);
	e_close(e, c);
	c = e_open(e, 12);
	e_s(e, 6, "q\"\\\x01");
	e_close(e, c);
	e_u(e, 1, 1);
	e_close(e, b);
	b = e_open(e, 11);
	e_s(e, 10, "n");
	e_dbl(e, 5, 1.5);
	e_close(e, b);
	b = e_open(e, 11); /* unknown name: left out */
	e_u(e, 1, 99);
	e_u(e, 2, 1);
	e_close(e, b);
	e_close(e, a);
	event_end(e, m);
	read_enc(e, 0, "I 1 @8 'a' d:t{\"k\":[-1,\"q\\\"\\\\\\u0001\"],\"n\":1.5}\n", NULL, NULL);
	free(e);
}

/* Deep nesting must neither crash nor be followed for ever. */
static void deep_nesting_is_cut(void **st)
{
	struct enc *e = fresh();
	struct log *l = calloc(1, sizeof(*l));
	struct mt_ptread *r;
	size_t marks[200], m;

	(void)st;
	state(e);
	m = event(e, 1, 3, 1);
	marks[0] = e_open(e, 4);
	e_s(e, 10, "d");
	for (int i = 1; i < 200; i++)
		marks[i] = e_open(e, 12);
	e_u(e, 2, 1);
	for (int i = 200; i-- > 0;)
		e_close(e, marks[i]);
	event_end(e, m);
	assert_int_equal(mt_ptread_new(&r), 0);
	assert_int_equal(mt_ptread_mem(r, e->b, e->n, take, l), 0);
	assert_string_equal(l->s, "I 1 @8 'a' d:t[[[[[[[[[[[[[[[[\"...\"]]]]]]]]]]]]]]]]\n");
	mt_ptread_free(r);
	free(l);
	free(e);
}

static void interned_data_follows_the_rules(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread_info info;
	size_t p, m, n;

	(void)st;
	state(e);
	p = e_packet(e, 2, 2); /* again, with another text: the first stays */
	n = e_open(e, 12);
	e_named(e, 2, 1, "other");
	e_named(e, 2, 3, "third");
	e_close(e, n);
	e_close(e, p);
	event_end(e, event(e, 1, 3, 1));
	event_end(e, event(e, 2, 3, 3));
	m = event(e, 3, 3, 9); /* unknown name; unknown argument name: argument left out */
	arg(e, 9, 2, 1);
	arg(e, 1, 17, 9);
	arg(e, 1, 2, 1);
	event_end(e, m);
	p = e_packet(e, 2, 1); /* cleared: names and default track are gone */
	e_close(e, p);
	m = event(e, 4, 3, 1);
	event_end(e, m);
	p = e_packet(e, 3, 0); /* never cleared: interned data is not taken, event without needs is */
	e_u(e, 8, 5);
	intern(e);
	n = e_open(e, 11);
	e_u(e, 9, 3);
	e_u(e, 10, 1);
	e_u(e, 11, 8);
	e_close(e, n);
	e_close(e, p);
	read_enc(e, 0, "I 1 @8 'a'\nI 2 @8 'third'\nI 3 @8 k:b1\nI 4 @0\nI 5 @8\n", &info, NULL);
	assert_int_equal(info.redefined_iids, 1);
	assert_int_equal(info.unknown_iids, 5);
	free(e);
}

static void dropped_packets_invalidate_state(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread_info info;
	size_t p;

	(void)st;
	p = e_packet(e, 2, 0); /* the first packet of a sequence is no loss */
	e_u(e, 42, 1);
	e_close(e, p);
	event_end(e, event(e, 1, 3, 1)); /* never cleared */
	state(e);
	event_end(e, event(e, 2, 3, 1));
	p = e_packet(e, 2, 0);
	e_u(e, 42, 64);
	e_close(e, p);
	event_end(e, event(e, 3, 3, 1));
	p = e_packet(e, 2, 1); /* cleared in the same packet: told, nothing skipped */
	e_u(e, 42, 1);
	default_track(e, 8, 0);
	intern(e);
	e_close(e, p);
	event_end(e, event(e, 4, 3, 2));
	read_enc(e, 0,
		 "I 2 @8 'a'\nL source=1 count=1 cpu=0 seq=2 bits=64\n"
		 "L source=1 count=1 cpu=0 seq=2 bits=1\nI 4 @8 'b'\n",
		 &info, NULL);
	assert_int_equal(info.no_state, 2);
	free(e);
}

static void instant_on_clock(struct enc *e, unsigned clk, uint64_t ts)
{
	size_t p = e_packet(e, 2, 0), m;

	e_u(e, 8, ts);
	if (clk)
		e_u(e, 58, clk);
	m = e_open(e, 11);
	e_u(e, 9, 3);
	e_u(e, 11, 8);
	e_close(e, m);
	e_close(e, p);
}

static void delta_state(struct enc *e, uint64_t boot, uint64_t delta_ts)
{
	size_t p = e_packet(e, 2, 1), m;

	default_track(e, 8, 64);
	m = e_open(e, 6);
	e_clock(e, 6, boot, 0, 0);
	e_clock(e, 64, delta_ts, 1, 1000);
	e_u(e, 2, 6);
	e_close(e, m);
	e_close(e, p);
}

static void clocks_become_boot_time(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread_info info;
	struct mt_ptread *r;
	uint64_t wall;

	(void)st;
	instant_on_clock(e, 3, 50); /* no snapshot yet: as written */
	e_snapshot(e, 1000, 400, 9000);
	e_snapshot(e, 2000, 500, 9500); /* the machine slept, and the wall clock was set back */
	instant_on_clock(e, 0, 2100);
	instant_on_clock(e, 6, 2101);
	instant_on_clock(e, 3, 450);
	instant_on_clock(e, 3, 510);
	instant_on_clock(e, 1, 9700);
	instant_on_clock(e, 1, 9100); /* before the last snapshot: the one before it counts */
	instant_on_clock(e, 3, 300);
	instant_on_clock(e, 64, 9); /* unknown */
	delta_state(e, 3000, 5);
	instant_on_clock(e, 0, 2);
	instant_on_clock(e, 0, 3);
	instant_on_clock(e, 0, (uint64_t)-1);
	instant_on_clock(e, 3, 510); /* does not move the delta clock */
	instant_on_clock(e, 0, 1);
	delta_state(e, 9000, 0);
	instant_on_clock(e, 0, 7);
	e_snapshot(e, 1999, 600, 1); /* runs back: not used */
	instant_on_clock(e, 3, 600);
	read_enc(e, 0,
		 "I 50 @8\nI 2100 @8\nI 2101 @8\nI 1050 @8\nI 2010 @8\nI 2200 @8\nI 1100 @8\nI 900 @8\nI 9 "
		 "@8\n"
		 "I 5000 @8\nI 8000 @8\nI 7000 @8\nI 2010 @8\nI 8000 @8\nI 16000 @8\nI 2100 @8\n",
		 &info, &r);
	assert_int_equal(info.no_clock, 2);
	assert_int_equal(info.bad_snapshots, 1);
	assert_int_equal(mt_ptread_wall(r, 1500, &wall), 0);
	assert_int_equal(wall, 9500);
	assert_int_equal(mt_ptread_wall(r, 2500, &wall), 0);
	assert_int_equal(wall, 10000);
	assert_int_equal(mt_ptread_wall(r, 900, &wall), 0);
	assert_int_equal(wall, 8900);
	mt_ptread_free(r);
	free(e);
}

static void no_wall_clock(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread *r;
	uint64_t wall = 1;

	(void)st;
	e_snapshot(e, 1000, 400, 0);
	read_enc(e, 0, "", NULL, &r);
	assert_int_equal(mt_ptread_wall(r, 1000, &wall), -ENODATA);
	assert_int_equal(wall, 1);
	mt_ptread_free(r);
	free(e);
}

static void deflate_into(struct enc *e, const struct enc *in, size_t cut)
{
	unsigned char *z = malloc(sizeof(in->b));
	uLongf n = sizeof(in->b);
	size_t p;

	assert_non_null(z);
	assert_int_equal(compress(z, &n, in->b, in->n), Z_OK);
	p = e_open(e, 1);
	e_bytes(e, 50, z, n - cut);
	e_close(e, p);
	free(z);
}

static void compressed_packets(void **st)
{
	struct enc *in = fresh(), *e = fresh(), *twice = fresh();
	struct mt_ptread_info info;

	(void)st;
	e_event(in, 5, 8, 3, "x");
	e_event(in, 6, 8, 3, "y");
	deflate_into(e, in, 0);
	e_event(e, 7, 8, 3, "z");
	read_enc(e, 0, "I 5 @8 'x'\nI 6 @8 'y'\nI 7 @8 'z'\n", &info, NULL);
	assert_int_equal(info.packets, 4);
	assert_int_equal(info.bytes, e->n);

	deflate_into(twice, e, 0); /* compressed inside compressed */
	read_enc(twice, -EBADMSG, "", &info, NULL);
	assert_string_equal(info.why, "compressed packets inside compressed packets");

	e->n = 0;
	e_event(e, 4, 8, 3, "w");
	info.bad_offset = e->n;
	deflate_into(e, in, 3); /* stream cut off */
	read_enc(e, -EBADMSG, "I 4 @8 'w'\n", &info, NULL);
	assert_string_equal(info.why, "compressed packets that cannot be inflated");

	e->n = 0;
	in->n -= 1; /* last packet inside torn */
	deflate_into(e, in, 0);
	read_enc(e, -EBADMSG, "I 5 @8 'x'\n", &info, NULL);
	assert_string_equal(info.why, "compressed packets that end in a torn one");
	assert_int_equal(info.bad_offset, 0);
	free(in);
	free(e);
	free(twice);
}

static void compressed_bomb_is_bounded(void **st)
{
	size_t n = (size_t)MT_PTREAD_MAX_PACKET + 1, p;
	unsigned char *zeros = calloc(1, n), *z = malloc(1 << 18);
	struct enc *e = fresh();
	struct mt_ptread_info info;
	uLongf zn = 1 << 18;

	(void)st;
	assert_int_equal(compress2(z, &zn, zeros, n, 9), Z_OK);
	p = e_open(e, 1);
	e_bytes(e, 50, z, zn);
	e_close(e, p);
	read_enc(e, -EBADMSG, "", &info, NULL);
	assert_string_equal(info.why, "compressed packets larger than the limit of 64 MiB");
	free(zeros);
	free(z);
	free(e);
}

/* Every length of a file of three packets: whole ones told, the rest counted. */
static void torn_at_every_byte(void **st)
{
	static const char *const lines[] = {"", "I 5 @8 'x'\n", "I 5 @8 'x'\nI 6 @8 'yy'\n",
					    "I 5 @8 'x'\nI 6 @8 'yy'\nI 7 @8 'zzz'\n"};
	struct enc *e = fresh();
	struct mt_ptread_info info;
	size_t end[4] = {0}, full;

	(void)st;
	e_event(e, 5, 8, 3, "x");
	end[1] = e->n;
	e_event(e, 6, 8, 3, "yy");
	end[2] = e->n;
	e_event(e, 7, 8, 3, "zzz");
	end[3] = full = e->n;
	for (e->n = 0; e->n <= full; e->n++) {
		int whole = e->n >= end[3] ? 3 : e->n >= end[2] ? 2 : e->n >= end[1] ? 1 : 0;

		read_enc(e, 0, lines[whole], &info, NULL);
		assert_int_equal(info.packets, whole);
		assert_int_equal(info.bytes, end[whole]);
		assert_int_equal(info.truncated, e->n - end[whole]);
	}
	free(e);
}

static void garbage(void **st)
{
	static const struct {
		const char *what, *bytes;
		size_t len;
		int rc;
		const char *why;
	} v[] = {
		{"other tag", "\x12\x01\x00", 3, -EBADMSG, "no packet begins here"},
		{"length too long", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, -EBADMSG,
		 "a packet without proper length"},
		{"too large", "\x0a\x81\x80\x80\x20", 5, -EBADMSG,
		 "a packet larger than the limit of 64 MiB"},
		{"largest, torn", "\x0a\x80\x80\x80\x20", 5, 0, ""},
		{"field cut off", "\x0a\x02\x5a\x05", 4, -EBADMSG, "a packet that cannot be decoded"},
		{"field one byte too long", "\x0a\x03\x5a\x02\x48", 5, -EBADMSG,
		 "a packet that cannot be decoded"},
		{"varint cut off", "\x0a\x02\x40\x80", 4, -EBADMSG, "a packet that cannot be decoded"},
		{"varint too long", "\x0a\x0c\x40\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 14, -EBADMSG,
		 "a packet that cannot be decoded"},
		{"fixed cut off", "\x0a\x04\x41\x01\x02\x03", 6, -EBADMSG, "a packet that cannot be decoded"},
		{"group", "\x0a\x02\x43\x44", 4, -EBADMSG, "a packet that cannot be decoded"},
		{"field 0", "\x0a\x02\x00\x00", 4, -EBADMSG, "a packet that cannot be decoded"},
		{"bad descriptor", "\x0a\x05\xe2\x03\x02\x1a\x05", 7, -EBADMSG,
		 "a packet that cannot be decoded"},
		{"bad snapshot", "\x0a\x04\x32\x02\x0a\x05", 6, -EBADMSG, "a packet that cannot be decoded"},
		{"zeros", "\0\0\0\0", 4, 0, ""},
		{"zeros inside", "\0\0\0\x0a", 4, -EBADMSG, "zero bytes that are not the end of the file"},
		{"empty packet", "\x0a\x00", 2, 0, ""},
	};

	(void)st;
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
		struct enc *e = fresh();
		struct mt_ptread_info info;
		size_t good;

		e_event(e, 5, 8, 3, "x");
		good = e->n;
		e_raw(e, v[i].bytes, v[i].len);
		read_enc(e, v[i].rc, "I 5 @8 'x'\n", &info, NULL);
		if (strcmp(info.why, v[i].why))
			fail_msg("%s: '%s'", v[i].what, info.why);
		assert_int_equal(info.bytes, strcmp(v[i].what, "empty packet") ? good : good + 2);
		if (v[i].rc)
			assert_int_equal(info.bad_offset, good);
		else if (!strcmp(v[i].what, "zeros"))
			assert_int_equal(info.padding, 4);
		free(e);
	}
}

static void unknown_fields_are_skipped(void **st)
{
	struct enc *e = fresh();
	size_t p, m;

	(void)st;
	p = e_packet(e, 2, 0);
	e_u(e, 1000, 7);
	e_f64(e, 1001, 8);
	e_s(e, 1002, "text");
	e_var(e, 1003 * 8 + 5);
	e_raw(e, "abcd", 4);
	e_u(e, 8, 5);
	e_s(e, 8, "timestamp of the wrong type");
	m = e_open(e, 11);
	e_s(e, 1999, "extension");
	e_u(e, 9, 3);
	e_u(e, 11, 8);
	e_u(e, 4, 1); /* annotation of the wrong type */
	e_close(e, m);
	e_close(e, p);
	read_enc(e, 0, "I 5 @8\n", NULL, NULL);
	free(e);
}

static void tracks_and_owners(void **st)
{
	struct enc *e = fresh();
	const struct mt_pt_track *t, *th, *pr;
	struct mt_ptread_info info;
	struct mt_ptread *r;
	size_t p, m;

	(void)st;
	e_thread(e, 8, 7, 100, 101, "w1");
	e_process(e, 7, 100, "prog");
	e_thread(e, 8, 7, 100, 101, "w2");   /* new name */
	e_thread(e, 8, 7, 100, 102, "evil"); /* other identity: refused */
	p = e_packet(e, 1, 0);               /* lane under the thread */
	m = e_open(e, 60);
	e_u(e, 1, 10);
	e_u(e, 5, 8);
	e_s(e, 10, "lane");
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 1, 0); /* its own parent */
	m = e_open(e, 60);
	e_u(e, 1, 11);
	e_u(e, 5, 11);
	e_close(e, m);
	e_close(e, p);
	e_thread(e, 12, 0, 300, 301, "alone");
	read_enc(e, 0, "T @8\nT @7\nT @8\nT @10\nT @11\nT @12\n", &info, &r);
	assert_int_equal(info.conflicts, 1);
	assert_int_equal(mt_ptread_ntracks(r), 5);
	assert_null(mt_ptread_track(r, 5));
	t = mt_ptread_track(r, 0);
	assert_string_equal(t->tname, "w2");
	assert_int_equal(t->pid, 100);
	assert_int_equal(t->tid, 101);
	assert_true(t->is_thread && t->described && !t->is_process && !t->is_counter);
	assert_ptr_equal(mt_ptread_parent(r, t), mt_ptread_track(r, 1));
	assert_string_equal(mt_ptread_track(r, 1)->pname, "prog");
	mt_ptread_owner(r, mt_ptread_track(r, 2), &th, &pr);
	assert_ptr_equal(th, t);
	assert_ptr_equal(pr, mt_ptread_track(r, 1));
	assert_string_equal(mt_ptread_track(r, 2)->name, "lane");
	mt_ptread_owner(r, mt_ptread_track(r, 3), &th, &pr);
	assert_null(th);
	assert_null(pr);
	mt_ptread_owner(r, mt_ptread_track(r, 4), &th, &pr);
	assert_ptr_equal(th, mt_ptread_track(r, 4));
	assert_null(pr);
	mt_ptread_free(r);
	free(e);
}

static void value(struct enc *e, uint64_t ts, uint64_t track, int is_double, int64_t i, double d)
{
	size_t p = e_packet(e, 2, 0), m;

	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, 4);
	e_u(e, 11, track);
	if (is_double)
		e_dbl(e, 44, d);
	else
		e_u(e, 30, (uint64_t)i);
	e_close(e, m);
	e_close(e, p);
}

static void counters(void **st)
{
	struct enc *e = fresh();

	(void)st;
	e_counter(e, 20, 7, "plain", 0, 0);
	e_counter(e, 21, 7, "scaled", 10, 0);
	e_counter(e, 22, 7, "delta", 2, 1);
	value(e, 1, 20, 0, -3, 0);
	value(e, 2, 20, 1, 0, 2.5);
	value(e, 3, 21, 0, 7, 0);
	value(e, 4, 22, 0, 5, 0);
	value(e, 5, 22, 0, -2, 0);
	value(e, 6, 22, 1, 0, 1.5);
	value(e, 7, 22, 1, 0, 1.5);
	read_enc(e, 0,
		 "T @20\nT @21\nT @22\nC 1 @20 =-3\nC 2 @20 =2.5\nC 3 @21 =70\nC 4 @22 =10\nC 5 @22 =6\n"
		 "C 6 @22 =1.5\nC 7 @22 =3\n",
		 NULL, NULL);
	free(e);
}

static void losses_and_attributes(void **st)
{
	struct enc *e = fresh();
	size_t p, m, n;

	(void)st;
	p = e_packet(e, 0, 0);
	m = e_open(e, 66);
	e_u(e, 1, 3);
	e_u(e, 17, 12);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 0, 0); /* a sample that lost nothing */
	m = e_open(e, 66);
	e_u(e, 1, 3);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 1, 0);
	e_u(e, 8, 55);
	m = e_open(e, 35);
	n = e_open(e, 1);
	e_u(e, 19, 4);
	e_close(e, n);
	n = e_open(e, 1);
	e_u(e, 19, 5);
	e_close(e, n);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 1, 0);
	m = e_open(e, 126);
	n = e_open(e, 1);
	e_s(e, 1, "tool");
	e_s(e, 3, "x");
	e_close(e, n);
	n = e_open(e, 1);
	e_s(e, 1, "num");
	e_u(e, 2, (uint64_t)-2);
	e_close(e, n);
	e_close(e, m);
	e_close(e, p);
	read_enc(e, 0,
		 "L source=0 count=12 cpu=3 seq=0 bits=0\nL 55 source=2 count=9 cpu=0 seq=0 bits=0\n"
		 "A 'tool' value:s'x'\nA 'num' value:i-2\n",
		 NULL, NULL);
	free(e);
}

static void what_cannot_be_told_is_counted(void **st)
{
	struct enc *e = fresh();
	struct mt_ptread_info info;
	size_t p, m;

	(void)st;
	p = e_packet(e, 0, 0); /* no sequence */
	e_u(e, 8, 1);
	m = e_open(e, 11);
	e_u(e, 9, 3);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 2, 0); /* legacy */
	e_u(e, 8, 1);
	m = e_open(e, 11);
	e_s(e, 6, "");
	e_close(e, m);
	e_close(e, p);
	e_event(e, UINT64_MAX, 8, 3, "negative");
	p = e_packet(e, 2, 0);
	e_s(e, 133, "zstd");
	e_close(e, p);
	state(e);
	m = event(e, 9, 3, 1);
	for (unsigned i = 0; i < MT_PTREAD_MAX_ARGS + 2; i++)
		arg(e, 1, 2, 1);
	for (unsigned i = 0; i < MT_PTREAD_MAX_FLOWS + 3; i++)
		e_f64(e, 47, i + 1);
	event_end(e, m);
	{
		struct mt_ptread *r;
		struct log *l = calloc(1, sizeof(*l));

		assert_int_equal(mt_ptread_new(&r), 0);
		assert_int_equal(mt_ptread_mem(r, e->b, e->n, take, l), 0);
		info = *mt_ptread_info(r);
		assert_int_equal(l->events, 1);
		mt_ptread_free(r);
		free(l);
	}
	assert_int_equal(info.no_sequence, 1);
	assert_int_equal(info.unsupported, 1);
	assert_int_equal(info.bad_time, 1);
	assert_int_equal(info.zstd, 1);
	assert_int_equal(info.over_limit, 5);
	free(e);
}

static void callback_stops(void **st)
{
	struct enc *e = fresh();
	struct log *l = calloc(1, sizeof(*l));
	struct mt_ptread *r;

	(void)st;
	e_event(e, 5, 8, 3, "x");
	e_event(e, 6, 8, 3, "y");
	l->stop_at = 2;
	assert_int_equal(mt_ptread_new(&r), 0);
	assert_int_equal(mt_ptread_mem(r, e->b, e->n, take, l), -ECANCELED);
	assert_string_equal(l->s, "I 5 @8 'x'\n");
	mt_ptread_free(r);
	free(l);
	free(e);
}

struct feed {
	int fd;
	const struct enc *e;
	size_t step;
};

static void *feeder(void *arg_)
{
	struct feed *f = arg_;

	for (size_t i = 0; i < f->e->n; i += f->step) {
		size_t n = f->e->n - i < f->step ? f->e->n - i : f->step;

		if (write(f->fd, f->e->b + i, n) != (ssize_t)n)
			break;
	}
	close(f->fd);
	return NULL;
}

/* The same bytes through a pipe in pieces of any size. */
static void pipes_in_pieces(void **st)
{
	static const size_t steps[] = {1, 7, 4096};
	struct enc *e = fresh();
	char *big = malloc(200000);
	size_t p, m;

	(void)st;
	e_event(e, 5, 8, 3, "x");
	memset(big, 'n', 200000);
	p = e_packet(e, 2, 0);
	e_u(e, 8, 6);
	m = e_open(e, 11);
	e_u(e, 9, 3);
	e_u(e, 11, 8);
	e_bytes(e, 500, big, 200000);
	e_close(e, m);
	e_close(e, p);
	e_event(e, 7, 8, 3, "z");
	e_raw(e, "\x0a\x30", 2);
	for (size_t i = 0; i < 3; i++) {
		struct log *l = calloc(1, sizeof(*l));
		struct feed f = {.e = e, .step = steps[i]};
		struct mt_ptread *r;
		pthread_t th;
		int fds[2];

		assert_int_equal(pipe(fds), 0);
		f.fd = fds[1];
		assert_int_equal(pthread_create(&th, NULL, feeder, &f), 0);
		assert_int_equal(mt_ptread_new(&r), 0);
		assert_int_equal(mt_ptread_fd(r, fds[0], take, l), 0);
		assert_string_equal(l->s, "I 5 @8 'x'\nI 6 @8\nI 7 @8 'z'\n");
		assert_int_equal(mt_ptread_info(r)->truncated, 2);
		assert_int_equal(mt_ptread_info(r)->bytes, e->n - 2);
		pthread_join(th, NULL);
		close(fds[0]);
		mt_ptread_free(r);
		free(l);
	}
	free(big);
	free(e);
}

static void read_errors_are_returned(void **st)
{
	struct mt_ptread *r;
	struct log l = {.n = 0};

	(void)st;
	assert_int_equal(mt_ptread_new(&r), 0);
	assert_int_equal(mt_ptread_fd(r, -1, take, &l), -EBADF);
	mt_ptread_free(r);
	mt_ptread_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_everything),
		cmocka_unit_test(nested_arguments_become_text),
		cmocka_unit_test(deep_nesting_is_cut),
		cmocka_unit_test(interned_data_follows_the_rules),
		cmocka_unit_test(dropped_packets_invalidate_state),
		cmocka_unit_test(clocks_become_boot_time),
		cmocka_unit_test(no_wall_clock),
		cmocka_unit_test(compressed_packets),
		cmocka_unit_test(compressed_bomb_is_bounded),
		cmocka_unit_test(torn_at_every_byte),
		cmocka_unit_test(garbage),
		cmocka_unit_test(unknown_fields_are_skipped),
		cmocka_unit_test(tracks_and_owners),
		cmocka_unit_test(counters),
		cmocka_unit_test(losses_and_attributes),
		cmocka_unit_test(what_cannot_be_told_is_counted),
		cmocka_unit_test(callback_stops),
		cmocka_unit_test(pipes_in_pieces),
		cmocka_unit_test(read_errors_are_returned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
