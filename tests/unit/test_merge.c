/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * merge, on traces built by hand. The result is looked at twice: packet by packet with protobuf-c, and as the
 * timeline that `dump` shows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "cmd_merge.h"
#include "perfetto.pb-c.h"
#include "pftrace.h"
#include "timeline.h"
#include "trace_enc.h"

#define SEC 1000000000ull
#define WALL (1700000000 * SEC)
#define MAX_IN 8

typedef Perfetto__Protos__TracePacket packet_t;

/* ---- building ---- */

static struct enc *fresh(void)
{
	struct enc *e = calloc(1, sizeof(*e));

	assert_non_null(e);
	return e;
}

static void attribute(struct enc *e, const char *key, const char *text, uint64_t v)
{
	size_t p = e_packet(e, 1, 0), all = e_open(e, 126), m = e_open(e, 1);

	e_s(e, 1, key);
	if (text)
		e_s(e, 3, text);
	else
		e_u(e, 2, v);
	e_close(e, m);
	e_close(e, all);
	e_close(e, p);
}

/* Head of one of our files: booted at WALL + booted. */
static struct enc *head(const char *boot_id, const char *host, uint64_t boot, uint64_t booted)
{
	static uint64_t number;
	struct enc *e = fresh();
	size_t p, m;

	e_snapshot(e, boot, boot - 5, WALL + booted + boot);
	p = e_packet(e, 1, 0);
	m = e_open(e, 89);
	e_u(e, 1, ++number);
	e_u(e, 2, 77);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 1, 0);
	m = e_open(e, 45);
	e_u(e, 3, 100);
	e_u(e, 6, 4096);
	e_close(e, m);
	e_close(e, p);
	attribute(e, "montrace-bpf.version", "1", 0);
	if (boot_id)
		attribute(e, "montrace-bpf.boot_id", boot_id, 0);
	if (host)
		attribute(e, "montrace-bpf.host", host, 0);
	return e;
}

static void tail(struct enc *e)
{
	size_t p = e_packet(e, 1, 0), m = e_open(e, 35);

	e_u(e, 15, 1);
	e_close(e, m);
	e_close(e, p);
}

/* Starts a thread's sequence as the writer does: delta clock 64, default track, names 1 = "a", 2 = "b". */
static void clear(struct enc *e, uint32_t seq, uint64_t boot, uint64_t track, const char *a, const char *b)
{
	size_t p = e_packet(e, seq, 1), m = e_open(e, 6), k;

	e_clock(e, 64, boot, 1, 0);
	e_clock(e, 6, boot, 0, 0);
	e_close(e, m);
	m = e_open(e, 59);
	e_u(e, 58, 64);
	k = e_open(e, 11);
	e_u(e, 11, track);
	e_close(e, k);
	e_close(e, m);
	m = e_open(e, 12);
	e_named(e, 2, 1, a);
	e_named(e, 2, 2, b);
	e_close(e, m);
	e_close(e, p);
}

static void event(struct enc *e, uint32_t seq, uint64_t delta, unsigned type, unsigned name, uint64_t flow)
{
	size_t p = e_packet(e, seq, 2), m;

	e_u(e, 8, delta);
	m = e_open(e, 11);
	e_u(e, 9, type);
	e_u(e, 10, name);
	if (flow)
		e_f64(e, 47, flow);
	e_close(e, m);
	e_close(e, p);
}

/* A slice "a" of 100 ns at boot + 10 on sequence seq. */
static void slice(struct enc *e, uint32_t seq, uint64_t boot, uint64_t track, const char *name)
{
	clear(e, seq, boot, track, name, "other");
	event(e, seq, 10, 1, 1, 0);
	event(e, seq, 100, 2, 1, 0);
}

static struct enc *one_process(const char *boot_id, const char *host, uint64_t boot, uint64_t booted, int pid,
			       const char *name, uint64_t uuid)
{
	struct enc *e = head(boot_id, host, boot, booted);

	e_process(e, uuid, pid, name);
	e_thread(e, uuid + 1, uuid, pid, pid, "main");
	slice(e, 2, boot, uuid + 1, name);
	tail(e);
	return e;
}

/* All of `inner` as one bundle. */
static void bundle(struct enc *e, const struct enc *inner)
{
	uLongf len = compressBound((uLong)inner->n);
	unsigned char *z = malloc(len);
	size_t p = e_open(e, 1);

	assert_int_equal(compress(z, &len, inner->b, (uLong)inner->n), Z_OK);
	e_bytes(e, 50, z, len);
	e_close(e, p);
	free(z);
}

/* ---- merging ---- */

struct result {
	struct mt_merge_input in[MAX_IN];
	uint32_t n;
	struct mt_merge_report rep;
	struct mt_merge_err err;
	struct mt_out *out;
	const void *data;
	size_t len;
	Perfetto__Protos__Trace *t;
	struct mt_timeline *tl;
};

static int fd_of(const struct enc *e)
{
	int fd = memfd_create("trace", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, e->b, e->n), e->n);
	return fd;
}

static int merge_rc(struct result *r, struct enc **files, uint32_t n, bool squeeze)
{
	struct mt_merge_opts o = {.inputs = r->in, .ninputs = n, .compress = squeeze};
	int rc;

	memset(r, 0, sizeof(*r));
	r->n = n;
	assert_int_equal(mt_out_mem(&o.out), 0);
	for (uint32_t i = 0; i < n; i++)
		r->in[i] = (struct mt_merge_input){.fd = fd_of(files[i]), .name = "in"};
	rc = mt_merge(&o, &r->rep, &r->err);
	r->out = o.out;
	mt_out_flush(o.out);
	mt_out_mem_data(o.out, &r->data, &r->len);
	return rc;
}

/* Merges, and looks at what must hold of every result. */
static void merge(struct result *r, struct enc **files, uint32_t n)
{
	const struct mt_ptread_info *info;

	if (merge_rc(r, files, n, false))
		fail_msg("merge: %s", r->err.text);
	r->t = perfetto__protos__trace__unpack(NULL, r->len, r->data);
	assert_non_null(r->t);
	assert_int_equal(mt_timeline_read_mem(r->data, r->len, &r->tl), 0);
	info = mt_ptread_info(r->tl->reader);
	assert_int_equal(r->tl->error, 0);
	assert_int_equal(info->truncated + info->padding, 0);
	assert_int_equal(info->conflicts, 0);
	assert_int_equal(info->bad_snapshots, 0);
	assert_int_equal(info->no_clock, 0);
	assert_int_equal(info->unknown_iids + info->redefined_iids + info->no_state, 0);
	assert_int_equal(r->tl->stray_ends + r->tl->cut, 0);
	assert_int_equal(r->t->n_packet, r->rep.packets);
}

static void done(struct result *r, struct enc **files, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		free(files[i]);
		close(r->in[i].fd);
	}
	if (r->t)
		perfetto__protos__trace__free_unpacked(r->t, NULL);
	mt_timeline_free(r->tl);
	mt_out_close(r->out);
}

/* The only event of that kind and name. */
static const struct mt_tl_event *find(const struct result *r, int kind, const char *name)
{
	const struct mt_tl_event *found = NULL;

	for (uint32_t i = 0; i < r->tl->n; i++) {
		const struct mt_tl_event *e = &r->tl->events[i];
		struct mt_str s = mt_tl_text(r->tl, e->name);

		if (e->kind == kind && s.len == strlen(name) && !memcmp(s.p, name, s.len)) {
			assert_null(found);
			found = e;
		}
	}
	if (!found)
		fail_msg("no event %s", name);
	return found;
}

static const struct mt_tl_group *group_of(const struct result *r, const struct mt_tl_event *e)
{
	return &r->tl->groups[r->tl->tracks[e->track].group];
}

static uint64_t uuid_of(const struct result *r, const struct mt_tl_event *e)
{
	return r->tl->tracks[e->track].t->uuid;
}

static int64_t number(const struct result *r, const char *key)
{
	int64_t v = -1;
	int found = 0;

	for (size_t i = 0; i < r->t->n_packet; i++) {
		const packet_t *p = r->t->packet[i];

		if (p->data_case != PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_ATTRIBUTES)
			continue;
		for (size_t k = 0; k < p->trace_attributes->n_attribute; k++) {
			if (!strcmp(p->trace_attributes->attribute[k]->key, key)) {
				v = p->trace_attributes->attribute[k]->long_value;
				found++;
			}
		}
	}
	assert_true(found <= 1);
	return v;
}

static const char *text(const struct result *r, const char *key)
{
	for (size_t i = 0; i < r->t->n_packet; i++) {
		const packet_t *p = r->t->packet[i];

		if (p->data_case != PERFETTO__PROTOS__TRACE_PACKET__DATA_TRACE_ATTRIBUTES)
			continue;
		for (size_t k = 0; k < p->trace_attributes->n_attribute; k++) {
			if (!strcmp(p->trace_attributes->attribute[k]->key, key))
				return p->trace_attributes->attribute[k]->string_value;
		}
	}
	return NULL;
}

static size_t count(const struct result *r, int what)
{
	size_t n = 0;

	for (size_t i = 0; i < r->t->n_packet; i++)
		n += r->t->packet[i]->data_case == (Perfetto__Protos__TracePacket__DataCase)what;
	return n;
}

#define DATA(name) PERFETTO__PROTOS__TRACE_PACKET__DATA_##name

/* ---- one host ---- */

static void two_processes_of_one_host(void **st)
{
	struct enc *v[] = {one_process("b1", "h", 20 * SEC, 0, 7, "first", 70),
			   one_process("b1", "h", 10 * SEC, 0, 8, "second", 80)};
	uint64_t last = 0;
	struct result r;

	(void)st;
	merge(&r, v, 2);
	assert_int_equal(r.tl->slices, 2);
	assert_int_equal(r.tl->open, 0);
	assert_int_equal(find(&r, MT_PT_BEGIN, "first")->ts, 20 * SEC + 10);
	assert_int_equal(find(&r, MT_PT_BEGIN, "second")->ts, 10 * SEC + 10);
	assert_string_equal(group_of(&r, find(&r, MT_PT_BEGIN, "first"))->name, "first");
	assert_int_equal(group_of(&r, find(&r, MT_PT_BEGIN, "first"))->pid, 7);
	assert_int_equal(group_of(&r, find(&r, MT_PT_BEGIN, "second"))->pid, 8);
	assert_int_equal(uuid_of(&r, find(&r, MT_PT_BEGIN, "first")), 71);
	assert_int_equal(r.rep.files, 2);
	assert_int_equal(r.rep.hosts, 1);
	assert_int_equal(r.rep.renamed, 0);
	assert_int_equal(r.rep.incomplete, 0);
	assert_int_equal(count(&r, DATA(SYSTEM_INFO)), 1);
	assert_int_equal(count(&r, DATA(TRACE_UUID)), 1);
	assert_int_equal(count(&r, DATA(TRACE_ATTRIBUTES)), 1);
	assert_int_equal(count(&r, DATA(TRACE_STATS)), 1);
	assert_int_equal(r.t->packet[r.t->n_packet - 1]->trace_stats->final_flush_outcome, 1);
	assert_int_equal(number(&r, "montrace-bpf.merged_files"), 2);
	assert_int_equal(number(&r, "montrace-bpf.incomplete_files"), -1);
	assert_string_equal(text(&r, "montrace-bpf.boot_id"), "b1");
	assert_string_equal(text(&r, "montrace-bpf.version"), "1");
	assert_int_equal(r.t->packet[0]->data_case, DATA(CLOCK_SNAPSHOT));
	assert_int_equal(r.t->packet[0]->clock_snapshot->primary_trace_clock, 6);
	for (size_t i = 0; i < r.t->n_packet; i++) {
		const packet_t *p = r.t->packet[i];

		assert_false(p->has_machine_id);
		if (p->data_case != DATA(CLOCK_SNAPSHOT) || p->clock_snapshot->n_clocks != 3)
			continue;
		assert_true(i < 2); /* main clocks at the head only */
		assert_true(p->clock_snapshot->clocks[0]->timestamp >= last);
		last = p->clock_snapshot->clocks[0]->timestamp;
		assert_int_equal(p->clock_snapshot->clocks[1]->timestamp, last - 5);
		assert_int_equal(p->clock_snapshot->clocks[2]->timestamp, WALL + last);
	}
	assert_int_equal(last, 20 * SEC);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(r.in[i].complete);
		assert_int_equal(r.in[i].bytes, v[i]->n);
		assert_int_equal(r.in[i].packets, 6); /* clear, process, thread, clear, begin, end */
		assert_int_equal(r.in[i].skipped, 0);
	}
	done(&r, v, 2);
}

/* Sequences of two files never meet, whatever their numbers. */
static void sequence_ids_are_unique(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "first", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "second", 80)};
	uint32_t ids[8] = {0};
	struct result r;

	(void)st;
	merge(&r, v, 2);
	for (size_t i = 0; i < r.t->n_packet; i++) {
		assert_in_range(r.t->packet[i]->trusted_packet_sequence_id, 1, 5);
		ids[r.t->packet[i]->trusted_packet_sequence_id]++;
	}
	assert_int_equal(ids[1], 6); /* two snapshots, uuid, system, attributes, stats */
	assert_int_equal(ids[2], 3);
	assert_int_equal(ids[3], 3);
	assert_int_equal(ids[4], 3);
	assert_int_equal(ids[5], 3);
	done(&r, v, 2);
}

/* The later part is given first; the end of one and the begin of the other have the same time. */
static void two_parts_of_one_process(void **st)
{
	struct enc *a = one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70);
	struct enc *b = head("b1", NULL, 10 * SEC + 110, 0);
	struct enc *v[] = {b, a};
	struct result r;

	(void)st;
	e_process(b, 70, 7, "renamed");
	e_thread(b, 71, 70, 7, 7, "main");
	clear(b, 2, 10 * SEC + 110, 71, "two", "x");
	event(b, 2, 0, 1, 1, 0);
	event(b, 2, 50, 2, 1, 0);
	merge(&r, v, 2);
	assert_int_equal(r.rep.renamed, 0);
	assert_int_equal(r.tl->slices, 2);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->depth, 0);
	assert_int_equal(uuid_of(&r, find(&r, MT_PT_BEGIN, "one")), 71);
	assert_int_equal(uuid_of(&r, find(&r, MT_PT_BEGIN, "two")), 71);
	assert_string_equal(group_of(&r, find(&r, MT_PT_BEGIN, "one"))->name, "renamed");
	assert_int_equal(r.tl->ngroups, 2); /* the process and what is of none */
	assert_int_equal(r.rep.incomplete, 1);
	assert_false(r.in[0].complete);
	assert_int_equal(count(&r, DATA(TRACE_STATS)), 0);
	done(&r, v, 2);
}

/* Two tracers at once: their slices would nest in each other. Three parts: the third goes on with the second.
 */
static void two_recordings_of_one_thread(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 10 * SEC + 20, 0, 7, "two", 70),
			   one_process("b1", NULL, 11 * SEC, 0, 7, "three", 70)};
	uint64_t one, two, three;
	struct result r;

	(void)st;
	event(v[0], 2, 2 * SEC, 3, 2, 0);
	merge(&r, v, 3);
	one = uuid_of(&r, find(&r, MT_PT_BEGIN, "one"));
	two = uuid_of(&r, find(&r, MT_PT_BEGIN, "two"));
	three = uuid_of(&r, find(&r, MT_PT_BEGIN, "three"));
	assert_int_equal(one, 71);
	assert_int_not_equal(two, 71);
	assert_int_equal(three, two);
	assert_int_equal(r.tl->tracks[find(&r, MT_PT_BEGIN, "two")->track].t->tid, 7);
	assert_int_equal(r.tl->tracks[find(&r, MT_PT_BEGIN, "two")->track].t->parent, 70);
	assert_int_equal(r.tl->ngroups, 2);
	assert_int_equal(r.rep.renamed, 2);
	done(&r, v, 3);
}

/* What a dead tracer left open must not swallow what the next one records. */
static void open_slices_stay_alone(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 7, "two", 70)};
	struct result r;

	(void)st;
	event(v[0], 2, 5, 1, 2, 0);
	merge(&r, v, 2);
	assert_int_equal(r.tl->open, 1);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->depth, 0);
	assert_int_not_equal(uuid_of(&r, find(&r, MT_PT_BEGIN, "two")), 71);
	done(&r, v, 2);
}

static void uuid_clash_on_one_host(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 70)};
	const struct mt_tl_event *two;
	size_t p, m;
	struct result r;

	(void)st;
	/* Also where an event names its track itself, and extra counters, alone and packed. */
	e_counter(v[1], 75, 70, "queue", 0, 0);
	e_counter(v[0], 75, 70, "queue", 0, 0);
	p = e_packet(v[1], 2, 2);
	e_u(v[1], 8, 1);
	m = e_open(v[1], 11);
	e_u(v[1], 9, 4);
	e_u(v[1], 11, 75);
	e_u(v[1], 30, 12);
	e_u(v[1], 31, 75);
	e_bytes(v[1], 31, "\x4b\x46", 2);
	e_close(v[1], m);
	e_close(v[1], p);
	merge(&r, v, 2);
	two = find(&r, MT_PT_BEGIN, "two");
	assert_int_equal(group_of(&r, find(&r, MT_PT_BEGIN, "one"))->pid, 7);
	assert_int_equal(group_of(&r, two)->pid, 8);
	assert_string_equal(group_of(&r, two)->name, "two");
	assert_int_not_equal(uuid_of(&r, two), 71);
	assert_int_equal(r.rep.renamed, 3);
	for (uint32_t i = 0; i < r.tl->n; i++) {
		if (r.tl->events[i].kind == MT_PT_COUNTER) {
			assert_int_equal(group_of(&r, &r.tl->events[i])->pid, 8);
			assert_int_not_equal(uuid_of(&r, &r.tl->events[i]), 75);
		}
	}
	assert_int_equal(r.tl->counters, 1);
	/* 75, 75 and 70 are nowhere in the event any more. */
	for (size_t i = 0; i < r.t->n_packet; i++) {
		packet_t *q = r.t->packet[i];

		if (q->data_case != DATA(TRACK_EVENT) || q->track_event->type != 4)
			continue;
		assert_int_equal(q->track_event->base.n_unknown_fields, 3);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(q->track_event->base.unknown_fields[k].len, 9);
	}
	done(&r, v, 2);
}

/* ---- expanse's defects ---- */

/* As the original writes it: tracks from 1, the second of its start as sequence id, no clocks, fake tids. */
static struct enc *original(int pid, const char *name, uint64_t t)
{
	struct enc *e = fresh();
	size_t p = e_packet(e, 1700000000, 3), m;

	e_u(e, 41, 1);
	e_u(e, 87, 1);
	e_close(e, p);
	p = e_packet(e, 1700000000, 0);
	m = e_open(e, 60);
	e_u(e, 1, 1);
	{
		size_t k = e_open(e, 3);

		e_u(e, 1, (uint64_t)pid);
		e_s(e, 6, name);
		e_close(e, k);
	}
	e_close(e, m);
	e_close(e, p);
	e_thread(e, 2, 1, pid, 1, "main");
	p = e_packet(e, 1700000000, 2);
	m = e_open(e, 12);
	e_named(e, 2, 1, name);
	e_close(e, m);
	e_close(e, p);
	for (unsigned type = 1; type <= 2; type++) {
		p = e_packet(e, 1700000000, 2);
		e_u(e, 8, t + type * 10);
		m = e_open(e, 11);
		e_u(e, 11, 2);
		e_u(e, 9, type);
		if (type == 1)
			e_u(e, 10, 1);
		e_close(e, m);
		e_close(e, p);
	}
	return e;
}

static void x3_uuids_and_sequences_never_collide(void **st)
{
	/* The third has the first one's pid: another host, or the pid was used again. */
	struct enc *v[] = {original(7, "one", 100), original(8, "two", 105), original(7, "three", 300)};
	static const char *const names[] = {"one", "two", "three"};
	uint64_t uuid[3];
	struct result r;

	(void)st;
	merge(&r, v, 3);
	assert_int_equal(r.tl->slices, 3);
	for (int i = 0; i < 3; i++) {
		const struct mt_tl_event *e = find(&r, MT_PT_BEGIN, names[i]);

		assert_string_equal(group_of(&r, e)->name, names[i]);
		assert_int_not_equal(e->end, MT_TL_NONE);
		assert_int_equal(r.tl->events[e->end].ts - e->ts, 10);
		assert_int_equal(e->depth, 0);
		uuid[i] = uuid_of(&r, e);
	}
	assert_int_equal(group_of(&r, find(&r, MT_PT_BEGIN, "two"))->pid, 8);
	assert_true(uuid[0] != uuid[1] && uuid[0] != uuid[2] && uuid[1] != uuid[2]);
	assert_int_equal(r.tl->ngroups, 4);
	done(&r, v, 3);
}

/* Every length of a file: whole packets are kept, the rest is dropped, and what follows is not hurt. */
static void x4_truncated_file(void **st)
{
	struct enc *whole = one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70);
	size_t ends[64], nends = 0, at = 0;

	(void)st;
	for (; at < whole->n; at += 2u + whole->b[at + 1])
		ends[nends++] = at;
	assert_int_equal(at, whole->n);
	for (size_t len = 0; len < whole->n; len++) {
		struct enc *v[] = {fresh(), one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
		size_t good = 0;
		struct result r;

		e_raw(v[0], whole->b, len);
		for (size_t i = 0; i < nends; i++)
			good = ends[i] <= len ? ends[i] : good;
		merge(&r, v, 2);
		assert_int_equal(r.in[0].bytes, good);
		assert_int_equal(r.in[0].torn, len - good);
		assert_int_equal(r.in[0].status, good ? MT_MERGE_TAKEN : MT_MERGE_EMPTY);
		assert_false(r.in[0].complete);
		assert_string_equal(r.in[0].why, "");
		assert_int_equal(number(&r, "montrace-bpf.incomplete_files"), good && good < len ? 1 : -1);
		find(&r, MT_PT_BEGIN, "two");
		if (good > ends[nends - 3])
			find(&r, MT_PT_BEGIN, "one");
		done(&r, v, 2);
	}
	free(whole);
}

/* Who gets the merged file. */
static const struct mt_user me = {.uid = 65534, .gid = 65534, .name = "nobody"};

static void x5_output_is_never_appended_to(void **st)
{
	char dir[] = "/tmp/mt-merge-XXXXXX", a[64], out[64], missing[64];
	struct enc *e = one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70);
	const char *paths[] = {a};
	struct mt_merge_files files;
	struct mt_merge_report rep;
	struct mt_merge_err err;
	struct stat before, after;
	FILE *f;

	(void)st;
	assert_non_null(mkdtemp(dir));
	snprintf(a, sizeof(a), "%s/a.pftrace", dir);
	snprintf(out, sizeof(out), "%s/out", dir);
	snprintf(missing, sizeof(missing), "%s/no/out", dir);
	f = fopen(a, "w");
	assert_int_equal(fwrite(e->b, 1, e->n, f), e->n);
	fclose(f);
	assert_int_equal(mt_merge_paths(paths, 1, out, &me, false, &files, &rep, &err), 0);
	mt_merge_files_free(&files);
	assert_int_equal(stat(out, &before), 0);
	assert_true(before.st_size > 100);
	assert_int_equal(before.st_uid, geteuid() ? geteuid() : me.uid);
	assert_int_equal(mt_merge_paths(paths, 1, out, &me, false, &files, &rep, &err), -EEXIST);
	mt_merge_files_free(&files);
	assert_non_null(strstr(err.text, out));
	assert_int_equal(stat(out, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(mt_merge_paths(paths, 1, missing, &me, false, &files, &rep, &err), -ENOENT);
	mt_merge_files_free(&files);
	/* Nothing to merge: no output is left behind. */
	unlink(out);
	f = fopen(a, "w");
	fclose(f);
	assert_int_equal(mt_merge_paths(paths, 1, out, &me, false, &files, &rep, &err), -ENODATA);
	mt_merge_files_free(&files);
	assert_int_equal(stat(out, &after), -1);
	assert_int_equal(errno, ENOENT);
	unlink(a);
	rmdir(dir);
	free(e);
}

/* ---- damage, compression ---- */

static void damaged_file(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
	size_t good = v[0]->n;
	struct result r;

	(void)st;
	e_raw(v[0], "\x0a\x03\x5a\x09\x00\xff\xff\xff\xff\xff\xff\xff", 12);
	slice(v[0], 3, 11 * SEC, 71, "behind");
	merge(&r, v, 2);
	assert_int_equal(r.in[0].bytes, good);
	assert_int_equal(r.in[0].bad_offset, good);
	assert_string_not_equal(r.in[0].why, "");
	assert_false(r.in[0].complete);
	assert_string_equal(r.in[1].why, "");
	assert_int_equal(r.tl->slices, 2);
	assert_int_equal(r.rep.incomplete, 1);
	done(&r, v, 2);
}

static void compressed_input(void **st)
{
	struct enc *v[] = {head("b1", NULL, 10 * SEC, 0), one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
	struct enc *inner = fresh();
	struct result r;

	(void)st;
	e_process(inner, 70, 7, "one");
	e_thread(inner, 71, 70, 7, 7, "main");
	slice(inner, 2, 10 * SEC, 71, "one");
	bundle(v[0], inner);
	inner->n = 0;
	slice(inner, 2, 11 * SEC, 71, "more");
	tail(inner);
	bundle(v[0], inner);
	free(inner);
	merge(&r, v, 2);
	assert_int_equal(r.tl->slices, 3);
	assert_int_equal(find(&r, MT_PT_BEGIN, "more")->ts, 11 * SEC + 10);
	assert_int_equal(count(&r, DATA(COMPRESSED_PACKETS)), 0);
	assert_true(r.in[0].complete);
	done(&r, v, 2);
}

/* A bundle that is damaged is dropped whole; what came before it stays. */
static void damaged_bundle(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70)};
	size_t good = v[0]->n;
	struct enc *inner = fresh();
	struct result r;

	(void)st;
	slice(inner, 2, 11 * SEC, 71, "more");
	bundle(v[0], inner);
	v[0]->b[v[0]->n - 1] ^= 1;
	free(inner);
	merge(&r, v, 1);
	assert_int_equal(r.tl->slices, 1);
	assert_int_equal(r.in[0].bytes, good);
	assert_int_equal(r.in[0].bad_offset, good);
	done(&r, v, 1);
}

static void compressed_output(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
	struct result r;

	(void)st;
	for (int i = 0; i < 500; i++)
		slice(v[1], 2, 20 * SEC + 1000 + (uint64_t)i * 1000, 81, i ? "again" : "last");
	assert_int_equal(merge_rc(&r, v, 2, true), 0);
	assert_true(r.len < r.rep.bytes / 3);
	r.t = perfetto__protos__trace__unpack(NULL, r.len, r.data);
	assert_non_null(r.t);
	assert_int_equal(r.t->packet[0]->data_case, DATA(CLOCK_SNAPSHOT));
	assert_int_equal(r.t->packet[r.t->n_packet - 1]->data_case, DATA(COMPRESSED_PACKETS));
	assert_int_equal(mt_timeline_read_mem(r.data, r.len, &r.tl), 0);
	assert_int_equal(r.tl->error, 0);
	assert_int_equal(r.tl->slices, 502);
	find(&r, MT_PT_BEGIN, "last");
	done(&r, v, 2);
}

/* A packet too large for a bundle stands between bundles, in its place. */
static void large_packet(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70)}, *head_bytes = fresh();
	const size_t n = 600000, event_len = n + 7;
	unsigned char *big = malloc(n + 64), *z;
	uLongf len = compressBound(n + 64);
	struct result r;
	size_t p;

	(void)st;
	e_var(head_bytes, 10);
	e_var(head_bytes, event_len + 10);
	e_u(head_bytes, 10, 2);
	e_u(head_bytes, 13, 2);
	e_u(head_bytes, 8, 5);
	e_var(head_bytes, 11 * 8 + 2);
	e_var(head_bytes, event_len);
	e_u(head_bytes, 9, 3);
	e_var(head_bytes, 23 * 8 + 2);
	e_var(head_bytes, n);
	memcpy(big, head_bytes->b, head_bytes->n);
	memset(big + head_bytes->n, 'x', n);
	z = malloc(len);
	assert_int_equal(compress(z, &len, big, (uLong)(head_bytes->n + n)), Z_OK);
	p = e_open(v[0], 1);
	e_bytes(v[0], 50, z, len);
	e_close(v[0], p);
	event(v[0], 2, 5, 3, 2, 0);
	free(z);
	free(big);
	free(head_bytes);
	assert_int_equal(merge_rc(&r, v, 1, true), 0);
	assert_int_equal(mt_timeline_read_mem(r.data, r.len, &r.tl), 0);
	assert_int_equal(r.tl->error, 0);
	assert_int_equal(r.tl->instants, 2);
	assert_int_equal(find(&r, MT_PT_INSTANT, "other")->ts, 10 * SEC + 120);
	assert_true(r.len > n); /* it is not in a bundle */
	done(&r, v, 1);
}

/* ---- hosts ---- */

static struct enc *on_host(const char *id, const char *host, uint64_t boot, uint64_t booted, const char *name)
{
	struct enc *e = head(id, host, boot, booted);
	size_t p, m, k;

	p = e_packet(e, 1, 0);
	e_u(e, 8, boot - SEC);
	m = e_open(e, 60);
	e_u(e, 1, 70);
	k = e_open(e, 3);
	e_u(e, 1, 7);
	e_s(e, 6, name);
	e_u(e, 7, boot - SEC);
	e_close(e, k);
	e_close(e, m);
	e_close(e, p);
	p = e_packet(e, 1, 0);
	e_u(e, 8, boot - SEC);
	m = e_open(e, 2);
	k = e_open(e, 1);
	e_u(e, 1, 7);
	e_s(e, 3, name);
	e_u(e, 7, boot - SEC);
	e_close(e, k);
	e_close(e, m);
	e_close(e, p);
	e_thread(e, 71, 70, 7, 7, "main");
	clear(e, 2, boot, 71, name, "x");
	event(e, 2, 10, 1, 1, 0xabcd);
	event(e, 2, 100, 2, 1, 0);
	tail(e);
	return e;
}

/* Equal pids, equal uuids, equal flows, equal moments: nothing may be taken for the other's. */
static void two_hosts(void **st)
{
	/* bob was booted 1,000 s after alice: his 30 s are her 1,030 s. */
	struct enc *v[] = {on_host("b2", "bob", 30 * SEC, 1000 * SEC, "prog"),
			   on_host("b1", "alice", 1030 * SEC, 0, "prog")};
	const struct mt_tl_event *e[2] = {NULL, NULL};
	uint32_t machine[3] = {0}, started = 0, systems = 0, trees = 0;
	struct mt_tl_args args;
	uint64_t flow[2], wall;
	struct result r;

	(void)st;
	merge(&r, v, 2);
	assert_int_equal(r.rep.hosts, 2);
	assert_int_equal(r.rep.unaligned, 0);
	assert_int_equal(r.tl->slices, 2);
	assert_int_equal(r.tl->ngroups, 3);
	for (uint32_t i = 0; i < r.tl->n; i++) {
		const struct mt_tl_event *x = &r.tl->events[i];

		if (x->kind == MT_PT_BEGIN)
			e[!strcmp(group_of(&r, x)->name, "prog @ alice")] = x;
	}
	assert_non_null(e[0]);
	assert_non_null(e[1]);
	assert_string_equal(group_of(&r, e[0])->name, "prog @ bob");
	assert_int_equal(e[0]->ts, 1030 * SEC + 10);
	assert_int_equal(e[1]->ts, 1030 * SEC + 10);
	assert_int_equal(mt_ptread_wall(r.tl->reader, e[0]->ts, &wall), 0);
	assert_int_equal(wall, WALL + 1030 * SEC + 10);
	assert_int_not_equal(uuid_of(&r, e[0]), uuid_of(&r, e[1]));
	for (int i = 0; i < 2; i++) {
		args.nargs = args.nflows = 0;
		mt_tl_args_add(e[i], &args);
		assert_int_equal(args.nflows, 1);
		flow[i] = args.flows[0];
	}
	assert_int_equal(flow[1], 0xabcd);
	assert_int_not_equal(flow[0], 0xabcd);
	assert_int_equal(r.in[0].host, 0);
	assert_int_equal(r.in[1].host, 1);
	for (size_t i = 0; i < r.t->n_packet; i++) {
		packet_t *p = r.t->packet[i];

		assert_in_range(p->machine_id, 1, 2);
		machine[p->machine_id]++;
		if (p->data_case == DATA(TRACK_DESCRIPTOR) && p->track_descriptor->process) {
			assert_int_equal(p->track_descriptor->process->start_timestamp_ns, 1029 * SEC);
			assert_int_equal(p->timestamp, 1029 * SEC);
			started++;
		} else if (p->data_case == DATA(SYSTEM_INFO)) {
			assert_int_equal(p->system_info->page_size, 4096);
			assert_int_equal(p->system_info->base.n_unknown_fields, 1); /* machine_name, 17 */
			assert_int_equal(p->system_info->base.unknown_fields[0].tag, 17);
			assert_memory_equal(p->system_info->base.unknown_fields[0].data + 1,
					    p->machine_id == 1 ? "bob" : "alice", 3);
			systems++;
		} else if (p->data_case == DATA(PROCESS_TREE)) {
			const Perfetto__Protos__ProcessTree__Process *q = p->process_tree->processes[0];

			assert_int_equal(q->process_start_from_boot, 1029 * SEC);
			assert_int_equal(q->n_cmdline, 2);
			assert_string_equal(q->cmdline[0],
					    p->machine_id == 1 ? "prog @ bob" : "prog @ alice");
			assert_string_equal(q->cmdline[1], "");
			trees++;
		}
	}
	assert_int_equal(started, 2);
	assert_int_equal(systems, 2);
	assert_int_equal(trees, 2);
	assert_int_equal(machine[1], 9);  /* bob's: snapshot, system, 7 of the file */
	assert_int_equal(machine[2], 12); /* alice's: the same, and uuid, attributes, stats */
	assert_string_equal(text(&r, "montrace-bpf.boot_id"), "b2, b1");
	assert_string_equal(text(&r, "montrace-bpf.host"), "bob, alice");
	done(&r, v, 2);
}

static uint64_t boot_clock(const packet_t *p)
{
	for (size_t i = 0; i < p->clock_snapshot->n_clocks; i++) {
		if (p->clock_snapshot->clocks[i]->clock_id == 6)
			return p->clock_snapshot->clocks[i]->timestamp;
	}
	return 0;
}

/* Main clocks of all machines are the same, and never run back; delta clocks keep their own numbers. */
static void snapshots_of_two_hosts(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 1030 * SEC, 0, "one"),
			   on_host("b2", "bob", 5 * SEC, 1000 * SEC, "two")};
	uint64_t last = 0;
	uint32_t own = 0;
	struct result r;

	(void)st;
	e_snapshot(v[1], 100 * SEC, 100 * SEC, WALL + 1100 * SEC);
	e_snapshot(v[0], 1060 * SEC, 1060 * SEC - 5, WALL + 1060 * SEC);
	merge(&r, v, 2);
	for (size_t i = 0; i < r.t->n_packet; i++) {
		packet_t *p = r.t->packet[i];

		if (p->data_case != DATA(CLOCK_SNAPSHOT))
			continue;
		if (p->clock_snapshot->n_clocks == 3) {
			assert_true(boot_clock(p) >= last);
			last = boot_clock(p);
			assert_int_equal(p->clock_snapshot->clocks[1]->timestamp, last - 5);
			assert_true(i < 3);
			continue;
		}
		own++;
		assert_int_equal(p->clock_snapshot->n_clocks, 2);
		assert_int_equal(p->clock_snapshot->clocks[0]->clock_id, 64);
		assert_true(p->clock_snapshot->clocks[0]->is_incremental);
		assert_int_equal(p->clock_snapshot->clocks[0]->timestamp,
				 p->machine_id == 1 ? 1030 * SEC : 5 * SEC);
		assert_int_equal(boot_clock(p), p->machine_id == 1 ? 1030 * SEC : 1005 * SEC);
	}
	assert_int_equal(last, 1060 * SEC);
	assert_int_equal(own, 2);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->ts, 1005 * SEC + 10);
	done(&r, v, 2);
}

/* The wall clock of the reference host was set in between: the moment at hand counts. */
static void clock_was_set(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 10 * SEC, 0, "one"),
			   on_host("b2", "bob", 5 * SEC, 1000 * SEC, "two")};
	struct result r;

	(void)st;
	e_snapshot(v[0], 900 * SEC, 900 * SEC, WALL + 960 * SEC); /* a minute ahead */
	merge(&r, v, 2);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->ts, 945 * SEC + 10);
	done(&r, v, 2);
}

static void hosts_without_names(void **st)
{
	struct enc *v[] = {on_host("b1", NULL, 10 * SEC, 0, "one"), on_host("b2", "h", 10 * SEC, 0, "two"),
			   on_host("b3", "h", 10 * SEC, 0, "three")};
	struct result r;

	(void)st;
	merge(&r, v, 3);
	assert_string_equal(group_of(&r, find(&r, MT_PT_BEGIN, "one"))->name, "one @ host 1");
	assert_string_equal(group_of(&r, find(&r, MT_PT_BEGIN, "two"))->name, "two @ h");
	assert_string_equal(group_of(&r, find(&r, MT_PT_BEGIN, "three"))->name, "three @ h #3");
	done(&r, v, 3);
}

/* Files that do not say their boot id: by the moment of boot. */
static void hosts_by_boot_moment(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 10 * SEC, 0, "one"),
			   on_host(NULL, NULL, 10 * SEC, 2 * SEC, "two"),
			   on_host(NULL, NULL, 10 * SEC, 60 * SEC, "three"), fresh()};
	struct result r;

	(void)st;
	e_process(v[3], 70, 9, "four"); /* no clocks at all */
	merge(&r, v, 4);
	assert_int_equal(r.rep.hosts, 2);
	assert_int_equal(r.in[0].host, 0);
	assert_int_equal(r.in[1].host, 0);
	assert_int_equal(r.in[2].host, 1);
	assert_int_equal(r.in[3].host, 0);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->ts, 10 * SEC + 10);
	/* The second file has the host's later wall clock, two seconds ahead: that one counts. */
	assert_int_equal(find(&r, MT_PT_BEGIN, "three")->ts, 68 * SEC + 10);
	done(&r, v, 4);
}

static void no_wall_clock(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 10 * SEC, 0, "one"), fresh()};
	struct result r;

	(void)st;
	attribute(v[1], "montrace-bpf.boot_id", "b2", 0);
	e_process(v[1], 80, 8, "two");
	e_thread(v[1], 81, 80, 8, 8, "main");
	slice(v[1], 2, 5 * SEC, 81, "two");
	merge(&r, v, 2);
	assert_int_equal(r.rep.hosts, 2);
	assert_int_equal(r.rep.unaligned, 1);
	assert_int_equal(find(&r, MT_PT_BEGIN, "two")->ts, 5 * SEC + 10);
	done(&r, v, 2);
}

static void merge_of_hosts_is_refused(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 10 * SEC, 0, "one"),
			   on_host("b2", "bob", 10 * SEC, 0, "two")};
	struct enc *again = fresh();
	struct result r, s;

	(void)st;
	merge(&r, v, 2);
	e_raw(again, r.data, r.len);
	assert_int_equal(merge_rc(&s, &again, 1, false), -EINVAL);
	assert_non_null(strstr(s.err.text, "several hosts"));
	done(&s, &again, 1);
	done(&r, v, 2);
}

/* ---- clocks of other tools ---- */

static void other_clocks_become_boot_time(void **st)
{
	struct enc *v[] = {head("b1", NULL, 10 * SEC, 0), head("b2", NULL, 10 * SEC, 100 * SEC)};
	struct result r;
	size_t p, m;

	(void)st;
	for (int i = 0; i < 2; i++) {
		e_process(v[i], 70, 7, "p");
		/* By the packet, by default, by a clock of the tool's own. */
		p = e_packet(v[i], 2, 1);
		m = e_open(v[i], 59);
		e_u(v[i], 58, 3);
		e_close(v[i], m);
		e_close(v[i], p);
		e_event(v[i], 10 * SEC, 70, 3, i ? "b default" : "a default");
		p = e_packet(v[i], 2, 0);
		e_u(v[i], 8, WALL + 11 * SEC + (i ? 100 * SEC : 0));
		e_u(v[i], 58, 1);
		m = e_open(v[i], 11);
		e_u(v[i], 9, 3);
		e_u(v[i], 11, 70);
		e_s(v[i], 23, i ? "b real" : "a real");
		e_close(v[i], m);
		e_close(v[i], p);
		p = e_packet(v[i], 2, 0);
		m = e_open(v[i], 6);
		e_clock(v[i], 200, 5, 0, 1000);
		e_clock(v[i], 3, 12 * SEC, 0, 0);
		e_close(v[i], m);
		e_close(v[i], p);
		p = e_packet(v[i], 2, 0);
		e_u(v[i], 8, 8);
		e_u(v[i], 58, 200);
		m = e_open(v[i], 11);
		e_u(v[i], 9, 3);
		e_u(v[i], 11, 70);
		e_s(v[i], 23, i ? "b own" : "a own");
		e_close(v[i], m);
		e_close(v[i], p);
	}
	merge(&r, v, 2);
	assert_int_equal(find(&r, MT_PT_INSTANT, "a default")->ts, 10 * SEC + 5);
	assert_int_equal(find(&r, MT_PT_INSTANT, "b default")->ts, 110 * SEC + 5);
	assert_int_equal(find(&r, MT_PT_INSTANT, "a real")->ts, 11 * SEC);
	assert_int_equal(find(&r, MT_PT_INSTANT, "b real")->ts, 111 * SEC);
	assert_int_equal(find(&r, MT_PT_INSTANT, "a own")->ts, 12 * SEC + 5 + 3000);
	assert_int_equal(find(&r, MT_PT_INSTANT, "b own")->ts, 112 * SEC + 5 + 3000);
	for (size_t i = 0; i < r.t->n_packet; i++) {
		if (r.t->packet[i]->has_timestamp_clock_id)
			assert_int_equal(r.t->packet[i]->timestamp_clock_id, 6);
	}
	done(&r, v, 2);
}

/* Deltas count from every stamp before them: also from that of a packet that is not carried over. */
static void stamps_on_own_clocks_stay(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 100 * SEC, 0, "one"),
			   on_host("b2", "bob", 50 * SEC, 9 * SEC, "two")};
	static const unsigned kinds[] = {1, 107, 126, 35, 6};
	struct result r;

	(void)st;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5; k++) {
			size_t p = e_packet(v[i], 2, 2);

			e_u(v[i], 8, 1000);
			e_bytes(v[i], kinds[k], "", 0);
			e_close(v[i], p);
			p = e_packet(v[i], 2, 2);
			e_u(v[i], 8, 1000);
			e_close(v[i], p);
		}
		event(v[i], 2, 5, 3, 2, 0);
	}
	merge(&r, v, 2);
	assert_int_equal(r.tl->instants, 2);
	for (uint32_t i = 0; i < r.tl->n; i++) {
		if (r.tl->events[i].kind == MT_PT_INSTANT)
			assert_int_equal(r.tl->events[i].ts % SEC, 10 + 100 + 10000 + 5);
	}
	done(&r, v, 2);
}

/* An event without a time has that of the packet before it, which is another one in the merged trace. */
static void events_without_a_stamp(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
	struct result r;

	(void)st;
	for (int i = 0; i < 2; i++) {
		for (uint32_t seq = 2; seq <= 3; seq++) {
			size_t p = e_packet(v[i], seq, seq == 3), m = e_open(v[i], 11);

			e_u(v[i], 9, 3);
			e_u(v[i], 11, i ? 81 : 71);
			e_s(v[i], 23, seq == 3 ? "plain" : "delta");
			e_close(v[i], m);
			e_close(v[i], p);
		}
		event(v[i], 2, 7, 3, 2, 0); /* the delta clock has not moved */
	}
	merge(&r, v, 2);
	assert_int_equal(r.tl->instants, 6);
	for (uint32_t i = 0; i < r.tl->n; i++) {
		const struct mt_tl_event *e = &r.tl->events[i];
		uint64_t start = group_of(&r, e)->pid == 7 ? 10 * SEC : 20 * SEC;
		bool other = mt_tl_text(r.tl, e->name).len == 5 && mt_tl_text(r.tl, e->name).p[0] == 'o';

		if (e->kind == MT_PT_INSTANT)
			assert_int_equal(e->ts - start, other ? 117 : 110);
	}
	done(&r, v, 2);
}

static uint32_t main_snapshots(const struct result *r)
{
	uint64_t boot = 0, mono = 0;
	uint32_t n = 0;

	for (size_t i = 0; i < r->t->n_packet; i++) {
		const packet_t *p = r->t->packet[i];

		if (p->data_case != DATA(CLOCK_SNAPSHOT) || p->clock_snapshot->n_clocks != 3)
			continue;
		assert_true(boot_clock(p) >= boot);
		assert_true(p->clock_snapshot->clocks[1]->timestamp >= mono);
		boot = boot_clock(p);
		mono = p->clock_snapshot->clocks[1]->timestamp;
		n++;
	}
	return n;
}

/* Files overlap, were written at the same moments, and one of them lies. */
static void snapshots_of_one_host(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80),
			   one_process("b1", NULL, 20 * SEC + 1000, 0, 9, "three", 90)};
	struct result r;

	(void)st;
	e_snapshot(v[0], 30 * SEC, 30 * SEC - 5, WALL + 30 * SEC);
	e_snapshot(v[1], 40 * SEC, 40 * SEC - 5, WALL + 40 * SEC);
	e_snapshot(v[1], 50 * SEC, 65 * SEC, WALL + 50 * SEC);
	e_snapshot(v[0], 60 * SEC, 60 * SEC - 5, WALL + 60 * SEC);
	merge(&r, v, 3);
	assert_int_equal(main_snapshots(&r), 5);
	done(&r, v, 3);
}

/* ---- losses, duplicates, errors ---- */

static void losses_are_carried_over(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70),
			   one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80)};
	Perfetto__Protos__TraceStats *s = NULL;
	struct result r;
	size_t p, m, k;

	(void)st;
	for (unsigned i = 0; i < 2; i++) {
		attribute(v[i], "montrace-bpf.lost", NULL, 5 + i);
		attribute(v[i], i ? "montrace-bpf.lost.ring full" : "montrace-bpf.lost.other", NULL, 5 + i);
		attribute(v[i], "answer", NULL, 42 + i);
		p = e_packet(v[i], 0, 0);
		m = e_open(v[i], 66);
		e_u(v[i], 1, 0);
		e_u(v[i], 17, 5 + i);
		e_close(v[i], m);
		e_close(v[i], p);
		p = e_packet(v[i], 1, 0);
		m = e_open(v[i], 35);
		k = e_open(v[i], 1);
		e_u(v[i], 19, 10 + i);
		e_close(v[i], k);
		e_u(v[i], 15, 1);
		k = e_open(v[i], 18);
		e_u(v[i], 1, 2);
		e_u(v[i], 4, 0);
		e_close(v[i], k);
		e_close(v[i], m);
		e_close(v[i], p);
	}
	merge(&r, v, 2);
	assert_int_equal(r.tl->kernel_lost, 11);
	assert_int_equal(r.tl->writer_lost, 21);
	assert_int_equal(number(&r, "montrace-bpf.lost"), 11);
	assert_int_equal(number(&r, "montrace-bpf.lost.other"), 5);
	assert_int_equal(number(&r, "montrace-bpf.lost.ring full"), 6);
	assert_int_equal(number(&r, "answer"), 42);
	s = r.t->packet[r.t->n_packet - 1]->trace_stats;
	assert_non_null(s);
	assert_int_equal(s->n_buffer_stats, 2);
	assert_int_equal(s->n_writer_stats, 2);
	assert_int_equal(s->writer_stats[0]->sequence_id, 3);
	assert_int_equal(s->writer_stats[0]->buffer, 0);
	assert_int_equal(s->writer_stats[1]->sequence_id, 5);
	assert_int_equal(s->writer_stats[1]->buffer, 1);
	assert_int_equal(s->final_flush_outcome, 1);
	done(&r, v, 2);
}

/* One file says that it is complete, the other has statistics but not that. */
static void incomplete_statistics(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70), head("b1", NULL, 20 * SEC, 0)};
	struct result r;
	size_t p, m, k;

	(void)st;
	p = e_packet(v[1], 1, 0);
	m = e_open(v[1], 35);
	k = e_open(v[1], 1);
	e_u(v[1], 19, 3);
	e_close(v[1], k);
	e_close(v[1], m);
	e_close(v[1], p);
	merge(&r, v, 2);
	assert_int_equal(r.tl->writer_lost, 3);
	assert_int_equal(r.t->packet[r.t->n_packet - 1]->data_case, DATA(TRACE_STATS));
	assert_false(r.t->packet[r.t->n_packet - 1]->trace_stats->has_final_flush_outcome);
	done(&r, v, 2);
}

static void put_file(const char *path, const struct enc *e, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(e->b, 1, len, f), len);
	fclose(f);
}

/* The same file by two names, a link to it, a copy, half a copy, the result of an earlier merge, odd things.
 */
static void duplicates_and_directories(void **st)
{
	char dir[] = "/tmp/mt-merge-XXXXXX", p[16][64], text_buf[4096];
	static const char *const names[] = {"a.pftrace",       "b.pftrace", "c.pftrace", "d.pftrace",
					    "e.pftrace",       "f.pftrace", "g.pftrace", "z.pftrace",
					    ".hidden.pftrace", "note.txt"};
	struct enc *a = one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70);
	struct enc *b = one_process("b1", NULL, 20 * SEC, 0, 8, "two", 80);
	const char *paths[3] = {dir, p[0], p[1]};
	struct mt_merge_files files;
	struct mt_merge_report rep;
	struct mt_merge_err err;
	FILE *mem;

	(void)st;
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < 10; i++)
		snprintf(p[i], sizeof(p[i]), "%s/%s", dir, names[i]);
	snprintf(p[10], sizeof(p[10]), "%s/out", dir);
	put_file(p[0], a, a->n - 3);
	put_file(p[1], b, b->n);
	assert_int_equal(link(p[1], p[2]), 0);
	put_file(p[3], a, a->n);
	assert_int_equal(symlink("b.pftrace", p[4]), 0);
	assert_int_equal(mkfifo(p[5], 0600), 0);
	put_file(p[6], a, 0);
	put_file(p[8], b, b->n);
	put_file(p[9], b, b->n);
	assert_int_equal(mt_merge_paths(&paths[1], 2, p[7], &me, false, &files, &rep, &err), 0);
	mt_merge_files_free(&files);

	assert_int_equal(mt_merge_paths(paths, 3, p[10], &me, false, &files, &rep, &err), 0);
	assert_int_equal(files.n, 10);
	assert_int_equal(files.v[0].status, MT_MERGE_DUPLICATE); /* half a copy */
	assert_int_equal(files.v[0].same, 3);
	assert_int_equal(files.v[1].status, MT_MERGE_TAKEN);
	assert_int_equal(files.v[2].status, MT_MERGE_DUPLICATE);
	assert_int_equal(files.v[2].same, 1);
	assert_int_equal(files.v[3].status, MT_MERGE_TAKEN);
	assert_int_equal(files.v[4].status, MT_MERGE_UNREADABLE);
	assert_int_equal(files.v[5].status, MT_MERGE_UNREADABLE);
	assert_int_equal(files.v[6].status, MT_MERGE_EMPTY);
	assert_int_equal(files.v[7].status, MT_MERGE_MERGED);
	assert_int_equal(files.v[8].status, MT_MERGE_DUPLICATE); /* named once more */
	assert_int_equal(files.v[8].same, 3);
	assert_int_equal(files.v[9].same, 1);
	assert_int_equal(rep.files, 2);
	mem = fmemopen(text_buf, sizeof(text_buf), "w");
	assert_int_equal(mt_merge_print(mem, &files, &rep, "o\x1b[31mut", false), 0);
	fclose(mem);
	assert_non_null(strstr(text_buf, "a.pftrace: left out: the same trace as "));
	assert_non_null(strstr(text_buf, "e.pftrace: left out: a symbolic link\n"));
	assert_non_null(strstr(text_buf, "f.pftrace: left out: not a regular file\n"));
	assert_non_null(strstr(text_buf, "g.pftrace: left out: nothing in it\n"));
	assert_non_null(strstr(text_buf, "z.pftrace: left out: the result of a merge\n"));
	assert_null(strstr(text_buf, "b.pftrace: 6 packets"));
	assert_non_null(strstr(text_buf, "[31mut: 2 files, 1 host, "));
	assert_null(strchr(text_buf, 0x1b));
	mt_merge_files_free(&files);
	unlink(p[10]);
	/* One that is a link may be named. */
	paths[0] = p[4];
	assert_int_equal(mt_merge_paths(paths, 1, p[10], &me, false, &files, &rep, &err), 0);
	mt_merge_files_free(&files);
	for (int i = 0; i <= 10; i++)
		unlink(p[i]);
	paths[0] = dir;
	assert_int_equal(mt_merge_paths(paths, 1, p[10], &me, false, &files, &rep, &err), -ENODATA);
	assert_non_null(strstr(err.text, "no .pftrace file"));
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mt_merge_paths(paths, 1, p[10], &me, false, &files, &rep, &err), -ENOENT);
	free(a);
	free(b);
}

static void errors(void **st)
{
	struct enc *v[] = {one_process("b1", NULL, 10 * SEC, 0, 7, "one", 70)}, *junk = fresh();
	struct mt_merge_input in = {.name = "in"};
	struct mt_merge_opts o = {.inputs = &in, .ninputs = 1};
	struct mt_merge_report rep;
	struct mt_merge_err err;
	struct result r;
	int fds[2];

	(void)st;
	assert_int_equal(merge_rc(&r, v, 0, false), -ENODATA);
	mt_out_close(r.out);
	e_raw(junk,
	      "\x7f"
	      "ELF and so on",
	      12);
	assert_int_equal(merge_rc(&r, &junk, 1, false), -ENODATA);
	assert_int_equal(r.in[0].status, MT_MERGE_EMPTY);
	assert_string_equal(r.in[0].why, "no packet begins here");
	done(&r, &junk, 1);

	assert_int_equal(pipe(fds), 0);
	in.fd = fds[0];
	assert_int_equal(mt_out_mem(&o.out), 0);
	assert_int_equal(mt_merge(&o, &rep, &err), -EINVAL);
	assert_string_equal(err.text, "in: is not a regular file");
	mt_out_close(o.out);
	close(fds[0]);
	close(fds[1]);

	in.fd = fd_of(v[0]);
	for (int squeeze = 0; squeeze < 2; squeeze++) {
		o.compress = squeeze;
		assert_int_equal(mt_out_fd(open("/dev/full", O_WRONLY), 0, &o.out), 0);
		assert_int_equal(mt_merge(&o, &rep, &err), -ENOSPC);
		assert_string_equal(err.text, "output: No space left on device");
		mt_out_close(o.out);
	}
	close(in.fd);
	free(v[0]);
}

/* Packets that cannot be carried over are left out, counted, and hurt nothing. */
static void foreign_packets(void **st)
{
	struct enc *v[] = {on_host("b1", "alice", 100 * SEC, 0, "one"),
			   on_host("b2", "bob", 50 * SEC, 9 * SEC, "two")};
	static const unsigned kinds[] = {1, 107, 133, 69, 36};
	struct result r;

	(void)st;
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5; k++) {
			size_t p = e_packet(v[i], 1, 0);

			e_bytes(v[i], kinds[k], "", 0);
			e_close(v[i], p);
		}
	}
	merge(&r, v, 2);
	assert_int_equal(r.in[0].skipped, 2); /* clocks of hosts, zstd */
	assert_int_equal(r.in[1].skipped, 3); /* ftrace too: its times are not moved */
	assert_int_equal(r.in[0].packets, 9);
	assert_int_equal(r.in[1].packets, 8);
	done(&r, v, 2);
}

/* ---- with the writer ---- */

static void fixed_clocks(void *ctx, struct mt_clocks *now)
{
	*now = *(struct mt_clocks *)ctx;
}

static struct enc *written(const char *host, uint8_t boot, uint64_t start, uint64_t booted, bool squeeze)
{
	unsigned char boot_id[16] = {boot, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
	struct mt_clocks now = {start, start - 7, WALL + booted + start};
	struct mt_pftrace_opts o = {.clocks = fixed_clocks,
				    .clocks_ctx = &now,
				    .tool_version = "1",
				    .boot_id = boot_id,
				    .host = host,
				    .compress = squeeze};
	struct mt_callsite cs = {
		.id = 1, .name = "work", .target = "t", .file = "f.c", .function = "", .line = 3};
	struct mt_process p = {
		.pid = 7, .start = 5, .name = "prog", .cmdline = "prog -x", .execution_id = ""};
	struct mt_thread t = {.process = &p, .tid = 7, .start = 5, .name = "main"};
	struct enc *e = fresh();
	struct mt_sink *s;
	int fd = memfd_create("w", 0), dup_fd = dup(fd);
	struct mt_out *out;
	ssize_t n;

	assert_int_equal(mt_out_fd(dup_fd, 0, &out), 0);
	assert_int_equal(mt_pftrace_new(&o, out, &s), 0);
	s->ops->process(s, &p, start);
	s->ops->thread(s, &t, start);
	for (uint64_t i = 0; i < 100; i++) {
		struct mt_slice sl = {.thread = &t,
				      .time = start + i * SEC,
				      .cs = &cs,
				      .name = {"work", 4},
				      .key = i + 1,
				      .span = i + 1,
				      .flow = 9};
		struct mt_slice_end se = {.thread = &t,
					  .time = sl.time + 1000,
					  .cs = &cs,
					  .name = {"work", 4},
					  .key = i + 1,
					  .span = i + 1};

		now.boot = start + i * SEC;
		now.mono = now.boot - 7;
		now.real = WALL + booted + now.boot;
		assert_int_equal(s->ops->begin(s, &sl), 0);
		assert_int_equal(s->ops->end(s, &se), 0);
		s->ops->flush(s, now.boot);
	}
	s->ops->lost(s, &(struct mt_loss){.time = now.boot, .count = 3, .cause = "ring full"});
	assert_int_equal(s->ops->free(s), 0);
	n = pread(fd, e->b, sizeof(e->b), 0);
	assert_true(n > 0 && (size_t)n < sizeof(e->b));
	e->n = (size_t)n;
	close(fd);
	return e;
}

static void with_the_writer(void **st)
{
	struct enc *v[] = {written("alice", 1, 1000 * SEC, 0, false),
			   written("bob", 2, 50 * SEC, 1000 * SEC, true),
			   written("alice", 1, 1200 * SEC, 0, true)};
	uint32_t n[3] = {0}, flows[2] = {0};
	struct result r;

	(void)st;
	merge(&r, v, 3);
	assert_int_equal(r.rep.hosts, 2);
	assert_int_equal(r.rep.renamed, 0); /* the boot id is in the hash; parts of one thread go on */
	assert_int_equal(r.rep.incomplete, 0);
	assert_int_equal(r.tl->slices, 300);
	assert_int_equal(r.tl->lost, 9);
	assert_int_equal(r.tl->kernel_lost, 9);
	assert_int_equal(number(&r, "montrace-bpf.lost"), 9);
	assert_int_equal(number(&r, "montrace-bpf.lost.ring full"), 9);
	assert_string_equal(text(&r, "montrace-bpf.boot_id"),
			    "01020304-0506-0708-090a-0b0c0d0e0f10, 02020304-0506-0708-090a-0b0c0d0e0f10");
	for (uint32_t i = 0; i < r.tl->n; i++) {
		const struct mt_tl_event *e = &r.tl->events[i];
		bool bob;

		if (e->kind != MT_PT_BEGIN)
			continue;
		bob = !strcmp(group_of(&r, e)->name, "prog @ bob");
		n[bob]++;
		flows[bob] += bob ? e->ts % SEC == 0 && e->ts >= 1050 * SEC && e->ts < 1150 * SEC
				  : e->ts % SEC == 0 && e->ts >= 1000 * SEC;
	}
	assert_int_equal(n[0], 200);
	assert_int_equal(n[1], 100);
	assert_int_equal(flows[0], 200);
	assert_int_equal(flows[1], 100);
	done(&r, v, 3);
}

/* The same inputs give the same bytes; a merge of one host can be merged again. */
static void merge_again(void **st)
{
	struct enc *v[] = {one_process("b1", "h", 20 * SEC, 0, 7, "first", 70),
			   one_process("b1", "h", 10 * SEC, 0, 8, "second", 80)};
	struct enc *again[2] = {fresh(), one_process("b1", "h", 30 * SEC, 0, 9, "third", 90)};
	struct result r, s, t;

	(void)st;
	merge(&r, v, 2);
	assert_int_equal(merge_rc(&s, v, 2, false), 0);
	assert_int_equal(r.len, s.len);
	assert_memory_equal(r.data, s.data, r.len);
	e_raw(again[0], r.data, r.len);
	merge(&t, again, 2);
	assert_int_equal(t.tl->slices, 3);
	assert_int_equal(number(&t, "montrace-bpf.merged_files"), 2);
	assert_int_equal(t.rep.renamed, 0);
	done(&t, again, 2);
	close(s.in[0].fd);
	close(s.in[1].fd);
	mt_out_close(s.out);
	done(&r, v, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_of_one_host),
		cmocka_unit_test(sequence_ids_are_unique),
		cmocka_unit_test(two_parts_of_one_process),
		cmocka_unit_test(two_recordings_of_one_thread),
		cmocka_unit_test(open_slices_stay_alone),
		cmocka_unit_test(uuid_clash_on_one_host),
		cmocka_unit_test(x3_uuids_and_sequences_never_collide),
		cmocka_unit_test(x4_truncated_file),
		cmocka_unit_test(x5_output_is_never_appended_to),
		cmocka_unit_test(damaged_file),
		cmocka_unit_test(compressed_input),
		cmocka_unit_test(damaged_bundle),
		cmocka_unit_test(compressed_output),
		cmocka_unit_test(large_packet),
		cmocka_unit_test(two_hosts),
		cmocka_unit_test(snapshots_of_two_hosts),
		cmocka_unit_test(clock_was_set),
		cmocka_unit_test(hosts_without_names),
		cmocka_unit_test(hosts_by_boot_moment),
		cmocka_unit_test(no_wall_clock),
		cmocka_unit_test(merge_of_hosts_is_refused),
		cmocka_unit_test(other_clocks_become_boot_time),
		cmocka_unit_test(stamps_on_own_clocks_stay),
		cmocka_unit_test(events_without_a_stamp),
		cmocka_unit_test(snapshots_of_one_host),
		cmocka_unit_test(losses_are_carried_over),
		cmocka_unit_test(incomplete_statistics),
		cmocka_unit_test(duplicates_and_directories),
		cmocka_unit_test(errors),
		cmocka_unit_test(foreign_packets),
		cmocka_unit_test(with_the_writer),
		cmocka_unit_test(merge_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
