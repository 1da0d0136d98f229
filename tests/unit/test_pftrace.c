/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every test reads the trace back through protobuf-c. The reader checks in passing, for each packet of
 * each test, that packing what was read gives the same bytes again: so packets written by hand are
 * byte for byte what protobuf-c writes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "perfetto.pb-c.h"
#include "pftrace.h"
#include "pftrace_int.h" /* only to see memory given back */

typedef Perfetto__Protos__TracePacket packet_t;
typedef Perfetto__Protos__TrackEvent event_t;
typedef Perfetto__Protos__DebugAnnotation ann_t;
#define IS(p, name) ((p)->data_case == PERFETTO__PROTOS__TRACE_PACKET__DATA_##name)
#define STR(s) ((struct mt_str){(s), sizeof(s) - 1})
#define HEAD 4 /* packets of an empty trace's head: clocks, uuid, system, attributes */
#define MAX_PACKETS 8192

/* An out that keeps everything, and fails from a given number of bytes on. */
struct keep {
	struct mt_out o;
	unsigned char *data;
	size_t len, fail_at;
	int closed;
};

struct fx {
	struct keep out;
	struct mt_sink *sink;
	struct mt_clocks now;
	struct mt_pftrace_opts opts;
	struct mt_process proc;
	struct mt_thread a, b;
	struct mt_callsite scope, event, counter;
	packet_t *v[MAX_PACKETS];
	size_t n;
};

static int keep_write(struct mt_out *o, const void *data, size_t len)
{
	struct keep *k = (struct keep *)o;

	if (k->fail_at && k->len + len > k->fail_at)
		return -ENOSPC;
	k->data = realloc(k->data, k->len + len);
	assert_non_null(k->data);
	memcpy(k->data + k->len, data, len);
	k->len += len;
	return 0;
}

static int keep_close(struct mt_out *o)
{
	((struct keep *)o)->closed++;
	return 0;
}

static const struct mt_out_ops keep_ops = {.write = keep_write, .close = keep_close};

static void clocks(void *ctx, struct mt_clocks *ret)
{
	*ret = *(const struct mt_clocks *)ctx;
}

static void start(struct fx *f)
{
	assert_int_equal(mt_pftrace_new(&f->opts, &f->out.o, &f->sink), 0);
}

static int setup(void **state)
{
	static const unsigned char boot_id[16] = {1, 2, 3};
	struct fx *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->out.o.ops = &keep_ops;
	f->now = (struct mt_clocks){.boot = 5000, .mono = 4000, .real = 900000};
	f->opts = (struct mt_pftrace_opts){
		.clocks = clocks, .clocks_ctx = &f->now, .tool_version = "1.2.3", .boot_id = boot_id};
	f->proc = (struct mt_process){.pid = 70,
				      .ppid = 7,
				      .uid = 1000,
				      .start = 100,
				      .name = "prog",
				      .cmdline = "/bin/prog -x 1",
				      .execution_id = ""};
	f->a = (struct mt_thread){.process = &f->proc, .tid = 70, .start = 100, .name = "main"};
	f->b = (struct mt_thread){.process = &f->proc, .tid = 71, .start = 300, .name = ""};
	f->scope = (struct mt_callsite){.id = 7,
					.class_ = MONTRACE_CLASS_SCOPE,
					.level = MONTRACE_INFO,
					.flags = MONTRACE_CSF_DEFAULT_LEVEL,
					.line = 9,
					.nfields = 1,
					.name = "read",
					.target = "io",
					.file = "io.c",
					.function = "do_read",
					.fields = {{"n", MONTRACE_TYPE_I64}}};
	f->event = (struct mt_callsite){.id = 1000,
					.class_ = MONTRACE_CLASS_EVENT,
					.level = MONTRACE_WARN,
					.flags = MONTRACE_CSF_DEFAULT_LEVEL,
					.line = 20,
					.name = "retry",
					.target = "io",
					.file = "io.c",
					.function = ""};
	f->counter = (struct mt_callsite){.id = 3,
					  .class_ = MONTRACE_CLASS_COUNTER,
					  .name = "depth",
					  .target = "io",
					  .file = "q.c",
					  .function = ""};
	*state = f;
	return 0;
}

static void drop_packets(struct fx *f)
{
	for (size_t i = 0; i < f->n; i++)
		perfetto__protos__trace_packet__free_unpacked(f->v[i], NULL);
	f->n = 0;
}

static int teardown(void **state)
{
	struct fx *f = *state;

	if (f->sink)
		f->sink->ops->free(f->sink);
	drop_packets(f);
	free(f->out.data);
	free(f);
	return 0;
}

static size_t varint(const unsigned char *p, size_t len, uint64_t *ret)
{
	size_t i = 0;

	for (*ret = 0; i < len; i++) {
		*ret |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80))
			return i + 1;
	}
	fail_msg("cut varint");
	return 0;
}

static void add_packets(struct fx *f, const unsigned char *data, size_t len);

static void add_compressed(struct fx *f, ProtobufCBinaryData in)
{
	uLongf cap = 1u << 20;
	unsigned char *raw = malloc(cap);

	assert_non_null(raw);
	assert_true(in.len < 512 * 1024);
	assert_int_equal(uncompress(raw, &cap, in.data, in.len), Z_OK);
	add_packets(f, raw, cap);
	free(raw);
}

static void add_packets(struct fx *f, const unsigned char *data, size_t len)
{
	size_t at = 0;

	while (at < len) {
		unsigned char *again;
		uint64_t size;
		packet_t *p;

		assert_int_equal(data[at], 0x0a);
		at++;
		at += varint(data + at, len - at, &size);
		assert_true(size <= len - at);
		p = perfetto__protos__trace_packet__unpack(NULL, size, data + at);
		assert_non_null(p);
		assert_int_equal(p->base.n_unknown_fields, 0);
		assert_int_equal(perfetto__protos__trace_packet__get_packed_size(p), size);
		again = malloc(size + 1);
		perfetto__protos__trace_packet__pack(p, again);
		assert_memory_equal(again, data + at, size);
		free(again);
		at += size;
		if (IS(p, COMPRESSED_PACKETS)) {
			add_compressed(f, p->compressed_packets);
			perfetto__protos__trace_packet__free_unpacked(p, NULL);
		} else {
			assert_true(f->n < MAX_PACKETS);
			f->v[f->n++] = p;
		}
	}
}

/* Reads all that has been written; the sink lives on. */
static void reread(struct fx *f)
{
	drop_packets(f);
	assert_int_equal(f->sink->ops->flush(f->sink, f->now.boot), 0);
	add_packets(f, f->out.data, f->out.len);
}

static void finish(struct fx *f)
{
	drop_packets(f);
	assert_int_equal(f->sink->ops->free(f->sink), 0);
	f->sink = NULL;
	assert_int_equal(f->out.closed, 1);
	add_packets(f, f->out.data, f->out.len);
}

static const char *text_of(const packet_t *p, int kind, uint64_t iid)
{
	const Perfetto__Protos__InternedData *d = p->interned_data;

	if (!d)
		return NULL;
	for (size_t i = 0; kind == 0 && i < d->n_event_categories; i++)
		if (d->event_categories[i]->iid == iid)
			return d->event_categories[i]->name;
	for (size_t i = 0; kind == 1 && i < d->n_event_names; i++)
		if (d->event_names[i]->iid == iid)
			return d->event_names[i]->name;
	for (size_t i = 0; kind == 2 && i < d->n_debug_annotation_names; i++)
		if (d->debug_annotation_names[i]->iid == iid)
			return d->debug_annotation_names[i]->name;
	for (size_t i = 0; kind == 3 && i < d->n_debug_annotation_string_values; i++) {
		static char text[256];
		ProtobufCBinaryData str = d->debug_annotation_string_values[i]->str;

		if (d->debug_annotation_string_values[i]->iid != iid)
			continue;
		assert_true(str.len < sizeof(text));
		memcpy(text, str.data, str.len);
		text[str.len] = 0;
		return text;
	}
	return NULL;
}

static bool cleared(const packet_t *p)
{
	return p->sequence_flags & 1;
}

/* A number as an importer resolves it: the sequence's first definition since its last clear. */
static const char *resolve(const struct fx *f, size_t at, int kind, uint64_t iid)
{
	uint32_t seq = f->v[at]->trusted_packet_sequence_id;
	const char *found = NULL;

	for (size_t i = at + 1; i-- > 0;) {
		const char *t;

		if (f->v[i]->trusted_packet_sequence_id != seq)
			continue;
		t = text_of(f->v[i], kind, iid);
		if (t)
			found = t;
		if (cleared(f->v[i]))
			return found;
	}
	fail_msg("sequence %u never cleared", seq);
	return NULL;
}

static const char *name_of(const struct fx *f, size_t at)
{
	const event_t *e = f->v[at]->track_event;

	if (e->name)
		return e->name;
	return resolve(f, at, 1, e->name_iid);
}

static const ann_t *find_ann(const struct fx *f, size_t at, const char *name)
{
	const event_t *e = f->v[at]->track_event;

	for (size_t i = e->n_debug_annotations; i-- > 0;) {
		const ann_t *a = e->debug_annotations[i];
		const char *n = a->name ? a->name : resolve(f, at, 2, a->name_iid);

		assert_non_null(n);
		if (strcmp(n, name) == 0)
			return a;
	}
	return NULL;
}

static const char *ann_text(const struct fx *f, size_t at, const char *name)
{
	const ann_t *a = find_ann(f, at, name);

	if (!a)
		return NULL;
	return a->string_value ? a->string_value : resolve(f, at, 3, a->string_value_iid);
}

/* Boot time of a packet on a thread's sequence. */
static uint64_t time_of(const struct fx *f, size_t at)
{
	uint32_t seq = f->v[at]->trusted_packet_sequence_id;
	uint64_t t = 0;

	for (size_t i = at + 1; i-- > 0;) {
		const packet_t *p = f->v[i];

		if (p->trusted_packet_sequence_id != seq)
			continue;
		if (cleared(p)) {
			assert_int_equal(p->has_timestamp, 0);
			assert_int_equal(p->clock_snapshot->clocks[0]->clock_id, 64);
			assert_int_equal(p->clock_snapshot->clocks[0]->is_incremental, 1);
			assert_int_equal(p->clock_snapshot->clocks[1]->clock_id, 6);
			assert_int_equal(p->clock_snapshot->clocks[0]->timestamp,
					 p->clock_snapshot->clocks[1]->timestamp);
			return t + p->clock_snapshot->clocks[0]->timestamp;
		}
		t += p->timestamp;
	}
	fail_msg("sequence %u never cleared", seq);
	return 0;
}

/* Index of the n-th (from 0) track event of a type after the head. */
static size_t nth(const struct fx *f, int type, size_t n)
{
	for (size_t i = 0; i < f->n; i++)
		if (IS(f->v[i], TRACK_EVENT) && (int)f->v[i]->track_event->type == type && n-- == 0)
			return i;
	fail_msg("no such event");
	return 0;
}

static size_t clears(const struct fx *f, uint32_t seq)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->v[i]->trusted_packet_sequence_id == seq && cleared(f->v[i]);
	return n;
}

static size_t told(const packet_t *p)
{
	const Perfetto__Protos__InternedData *d = p->interned_data;

	return d ? d->n_event_categories + d->n_event_names + d->n_debug_annotation_names +
			       d->n_source_locations + d->n_debug_annotation_string_values
		 : 0;
}

static int begin(struct fx *f, struct mt_thread *t, uint64_t time, int64_t n)
{
	struct mt_value v = {.type = MONTRACE_TYPE_I64, .i = n};
	struct mt_slice sl = {.thread = t,
			      .time = time,
			      .cs = &f->scope,
			      .name = {f->scope.name, (uint32_t)strlen(f->scope.name)},
			      .key = 1,
			      .span = 1,
			      .nvalues = 1,
			      .values = &v};

	return f->sink->ops->begin(f->sink, &sl);
}

static int end(struct fx *f, struct mt_thread *t, uint64_t time)
{
	struct mt_slice_end e = {.thread = t,
				 .time = time,
				 .cs = &f->scope,
				 .name = {f->scope.name, (uint32_t)strlen(f->scope.name)},
				 .key = 1,
				 .span = 1};

	return f->sink->ops->end(f->sink, &e);
}

static int instant(struct fx *f, struct mt_thread *t, uint64_t time, const struct mt_callsite *cs,
		   struct mt_str name, const struct mt_field *extra, uint32_t nextra)
{
	struct mt_instant i = {
		.thread = t, .time = time, .cs = cs, .name = name, .nextra = nextra, .extra = extra};

	return f->sink->ops->instant(f->sink, &i);
}

static void test_head(void **state)
{
	struct fx *f = *state;
	const Perfetto__Protos__ClockSnapshot *c;

	start(f);
	f->now = (struct mt_clocks){.boot = 6000, .mono = 5000, .real = 100};
	finish(f);
	assert_int_equal(f->n, HEAD + 3);
	c = f->v[0]->clock_snapshot;
	assert_true(IS(f->v[0], CLOCK_SNAPSHOT));
	assert_int_equal(f->v[0]->trusted_packet_sequence_id, 1);
	assert_int_equal(f->v[0]->sequence_flags, 1);
	assert_int_equal(f->v[0]->first_packet_on_sequence, 1);
	assert_int_equal(f->v[0]->timestamp, 5000);
	assert_int_equal(c->primary_trace_clock, 6);
	assert_int_equal(c->n_clocks, 3);
	assert_int_equal(c->clocks[0]->clock_id, 6);
	assert_int_equal(c->clocks[0]->timestamp, 5000);
	assert_int_equal(c->clocks[1]->clock_id, 3);
	assert_int_equal(c->clocks[1]->timestamp, 4000);
	assert_int_equal(c->clocks[2]->clock_id, 1);
	assert_int_equal(c->clocks[2]->timestamp, 900000);
	assert_true(IS(f->v[1], TRACE_UUID));
	assert_true(f->v[1]->trace_uuid->msb != 0 && f->v[1]->trace_uuid->lsb != 0);
	assert_true(IS(f->v[2], SYSTEM_INFO));
	assert_string_equal(f->v[2]->system_info->utsname->sysname, "Linux");
	assert_true(f->v[2]->system_info->num_cpus > 0 && f->v[2]->system_info->page_size >= 4096);
	assert_int_equal(f->v[2]->system_info->hz, 100);
	assert_true(IS(f->v[3], TRACE_ATTRIBUTES));
	assert_string_equal(f->v[3]->trace_attributes->attribute[0]->key, "montrace-bpf.version");
	assert_string_equal(f->v[3]->trace_attributes->attribute[0]->string_value, "1.2.3");
	/* The end: real time may have stepped back, the others went on. */
	assert_int_equal(f->v[4]->clock_snapshot->clocks[0]->timestamp, 6000);
	assert_int_equal(f->v[4]->clock_snapshot->clocks[2]->timestamp, 100);
	assert_string_equal(f->v[5]->trace_attributes->attribute[0]->key, "montrace-bpf.lost");
	assert_int_equal(f->v[5]->trace_attributes->n_attribute, 1);
	assert_int_equal(f->v[5]->trace_attributes->attribute[0]->long_value, 0);
	assert_int_equal(f->v[6]->trace_stats->final_flush_outcome, 1);
}

static void test_snapshots(void **state)
{
	/* What the clocks say at a flush, and how many snapshots there are then. */
	static const struct {
		uint64_t boot, mono;
		size_t n;
	} rows[] = {
		{5000 + 9999999999, 4000 + 9999999999, 1},
		{5000 + 10000000000, 4000 + 10000000000, 2},
		{5000 + 10000000001, 4000 + 10000000001, 2},
		{5000 + 20000000000, 4000 + 9000000000, 2}, /* monotonic ran back */
		{5000 + 30000000000, 4000 + 20000000000, 3},
	};
	struct fx *f = *state;
	size_t n;

	start(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		f->now.boot = rows[i].boot;
		f->now.mono = rows[i].mono;
		reread(f);
		n = 0;
		for (size_t k = 0; k < f->n; k++)
			n += IS(f->v[k], CLOCK_SNAPSHOT);
		assert_int_equal(n, rows[i].n);
	}
	f->now.boot = 5000; /* boot time ran back: no snapshot at the end */
	finish(f);
	n = 0;
	for (size_t k = 0; k < f->n; k++)
		n += IS(f->v[k], CLOCK_SNAPSHOT);
	assert_int_equal(n, 3);
}

static void test_tracks(void **state)
{
	struct fx *f = *state;
	const Perfetto__Protos__TrackDescriptor *p, *a, *b;

	start(f);
	f->proc.execution_id = "run-1";
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 2000), 0);
	assert_int_equal(f->sink->ops->thread(f->sink, &f->a, 2000), 0);
	assert_int_equal(f->sink->ops->thread(f->sink, &f->b, 200), 0); /* before its start */
	f->proc.name = "other name";
	f->proc.execution_id = "";
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 2500), 0);
	f->a.name = "worker\xff";
	assert_int_equal(f->sink->ops->thread(f->sink, &f->a, 3000), 0);
	reread(f);
	assert_int_equal(f->n, HEAD + 7);
	p = f->v[4]->track_descriptor;
	assert_int_equal(f->v[4]->timestamp, 100);
	assert_int_equal(f->v[4]->trusted_packet_sequence_id, 1);
	assert_int_equal(p->process->pid, 70);
	assert_string_equal(p->process->process_name, "prog");
	assert_int_equal(p->process->start_timestamp_ns, 100);
	assert_int_equal(p->process->n_process_labels, 1);
	assert_string_equal(p->process->process_labels[0], "execution run-1");
	assert_int_equal(f->v[5]->timestamp, 100);
	a = f->v[6]->track_descriptor;
	assert_int_equal(f->v[6]->timestamp, 100);
	assert_int_equal(a->parent_uuid, p->uuid);
	assert_int_equal(a->thread->pid, 70);
	assert_int_equal(a->thread->tid, 70);
	assert_string_equal(a->thread->thread_name, "main");
	b = f->v[7]->track_descriptor;
	assert_int_equal(f->v[7]->timestamp, 200);
	assert_int_equal(b->thread->tid, 71);
	assert_null(b->thread->thread_name);
	assert_true(p->uuid != a->uuid && a->uuid != b->uuid && p->uuid && a->uuid && b->uuid);
	assert_int_equal(f->v[8]->timestamp, 2500);
	assert_int_equal(f->v[8]->track_descriptor->uuid, p->uuid);
	assert_string_equal(f->v[8]->track_descriptor->process->process_name, "other name");
	assert_int_equal(f->v[8]->track_descriptor->process->n_process_labels, 0);
	assert_int_equal(f->v[10]->timestamp, 3000);
	assert_int_equal(f->v[10]->track_descriptor->uuid, a->uuid);
	assert_string_equal(f->v[10]->track_descriptor->thread->thread_name, "worker\xef\xbf\xbd");
}

static void test_process_tree(void **state)
{
	static const struct {
		const char *name, *cmdline;
		size_t n;
		const char *v[2];
	} rows[] = {
		{"prog", "/bin/prog -x 1", 2, {"prog", "/bin/prog -x 1"}},
		{"prog", "prog -x 1", 2, {"prog", "-x 1"}},
		{"prog", "prog", 1, {"prog", NULL}},
		{"prog", "", 1, {"prog", NULL}},
		{"prog", "program -x", 2, {"prog", "program -x"}},
		{"my prog", "", 2, {"my prog", ""}},
		{"my prog", "my prog a", 2, {"my prog", "a"}},
	};
	struct fx *f = *state;

	start(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const Perfetto__Protos__ProcessTree__Process *p;

		f->proc.name = rows[i].name;
		f->proc.cmdline = rows[i].cmdline;
		assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 2000), 0);
		reread(f);
		p = f->v[f->n - 1]->process_tree->processes[0];
		assert_int_equal(p->pid, 70);
		assert_int_equal(p->ppid, 7);
		assert_int_equal(p->uid, 1000);
		assert_int_equal(p->process_start_from_boot, 100);
		assert_int_equal(p->n_cmdline, rows[i].n);
		for (size_t k = 0; k < rows[i].n; k++)
			assert_string_equal(p->cmdline[k], rows[i].v[k]);
	}
}

/* A track's uuid depends on boot, pid, tid and start, and on nothing else. */
static void test_uuids(void **state)
{
	struct fx *f = *state;
	unsigned char other[16] = {9};
	struct mt_process procs[2];
	struct mt_thread t[5];
	uint64_t u[2][5];

	procs[0] = procs[1] = f->proc;
	procs[1].pid = 72;
	for (int i = 0; i < 5; i++)
		t[i] = f->a;
	t[1].tid = 73;
	t[2].start = 101;
	t[3].process = &procs[1];
	t[4].name = "x"; /* the same track */
	for (int run = 0; run < 2; run++) {
		start(f);
		for (int i = 0; i < 5; i++) {
			assert_int_equal(f->sink->ops->thread(f->sink, &t[i], 2000), 0);
			reread(f);
			u[run][i] = f->v[f->n - 1]->track_descriptor->uuid;
			for (int k = 0; k < i && k < 3; k++)
				assert_true(i == 4 && k == 0 ? u[run][i] == u[run][k]
							     : u[run][i] != u[run][k]);
			assert_int_equal(f->sink->ops->gone(f->sink, NULL, &t[i], 2000), 0);
			assert_null(t[i].sink_data);
		}
		assert_int_equal(f->sink->ops->gone(f->sink, &f->proc, NULL, 2000), 0);
		assert_int_equal(f->sink->ops->gone(f->sink, &procs[1], NULL, 2000), 0);
		finish(f);
		f->out.len = 0;
		f->out.closed = 0;
		f->opts.boot_id = other;
	}
	assert_true(u[0][0] != u[1][0] && u[0][1] != u[1][1]);

	/* A process and a thread are different things, whatever their numbers. */
	start(f);
	f->b.tid = 0;
	f->b.start = f->proc.start;
	assert_int_equal(f->sink->ops->thread(f->sink, &f->b, 2000), 0);
	reread(f);
	assert_true(f->v[f->n - 1]->track_descriptor->uuid != f->v[f->n - 1]->track_descriptor->parent_uuid);
}

/* The example of pftrace.c's essay, packet by packet and byte by byte. */
static void test_example(void **state)
{
	static const unsigned char want_begin[] = {
		0x0a, 0x47, 0x40, 0x00, 0x50, 0x02, 0x5a, 0x0f, 0x18, 0x01, 0x22, 0x04, 0x08,
		0x01, 0x20, 0x03, 0x48, 0x01, 0x50, 0x01, 0x90, 0x02, 0x01, /* name, location */
		0x62, 0x2e, 0x0a, 0x06, 0x08, 0x01, 0x12, 0x02, 'i',  'o',  0x12, 0x08, 0x08,
		0x01, 0x12, 0x04, 'r',  'e',  'a',  'd',  0x1a, 0x05, 0x08, 0x01, 0x12, 0x01,
		'n',  0x22, 0x13, 0x08, 0x01, 0x12, 0x04, 'i',  'o',  '.',  'c',  0x1a, 0x07,
		'd',  'o',  '_',  'r',  'e',  'a',  'd',  0x20, 0x09, 0x68, 0x02};
	static const unsigned char want_end[] = {0x0a, 0x0d, 0x40, 0xf4, 0x03, 0x50, 0x02, 0x5a,
						 0x04, 0x48, 0x02, 0x50, 0x01, 0x68, 0x02};
	struct fx *f = *state;
	size_t at;

	start(f);
	assert_int_equal(f->sink->ops->thread(f->sink, &f->b, 1000), 0);
	assert_int_equal(begin(f, &f->b, 1000, 3), 0);
	assert_int_equal(end(f, &f->b, 1500), 0);
	reread(f);
	at = f->n - 3;
	assert_int_equal(f->v[at]->trusted_packet_sequence_id, 2);
	assert_int_equal(f->v[at]->sequence_flags, 1);
	assert_int_equal(f->v[at]->first_packet_on_sequence, 1);
	assert_int_equal(f->v[at]->has_previous_packet_dropped, 0);
	assert_int_equal(f->v[at]->trace_packet_defaults->timestamp_clock_id, 64);
	assert_int_equal(f->v[at]->trace_packet_defaults->track_event_defaults->track_uuid,
			 f->v[at - 1]->track_descriptor->uuid);
	assert_int_equal(time_of(f, at), 1000);
	assert_int_equal(time_of(f, at + 1), 1000);
	assert_int_equal(time_of(f, at + 2), 1500);
	assert_memory_equal(f->out.data + f->out.len - sizeof(want_end), want_end, sizeof(want_end));
	assert_memory_equal(f->out.data + f->out.len - sizeof(want_end) - sizeof(want_begin), want_begin,
			    sizeof(want_begin));
}

/* Texts are told once per sequence, in the packet that needs them first. */
static void test_interning(void **state)
{
	struct fx *f = *state;

	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(begin(f, &f->a, 1001, 2), 0);
	assert_int_equal(begin(f, &f->b, 1002, 3), 0);
	assert_int_equal(instant(f, &f->b, 1003, &f->event, STR("retry"), NULL, 0), 0);
	assert_int_equal(end(f, &f->b, 1004), 0);
	reread(f);
	assert_int_equal(told(f->v[nth(f, 1, 0)]), 4);
	assert_int_equal(told(f->v[nth(f, 1, 1)]), 0);
	assert_int_equal(told(f->v[nth(f, 1, 2)]), 4);
	assert_int_equal(f->v[nth(f, 1, 2)]->trusted_packet_sequence_id, 3);
	/* The category is known already: name, location, "level", "warn". */
	assert_int_equal(told(f->v[nth(f, 3, 0)]), 4);
	assert_int_equal(told(f->v[nth(f, 2, 0)]), 0);
	for (int i = 0; i < 3; i++) {
		size_t at = nth(f, 1, (size_t)i);
		const event_t *e = f->v[at]->track_event;

		assert_string_equal(name_of(f, at), "read");
		assert_int_equal(e->n_category_iids, 1);
		assert_string_equal(resolve(f, at, 0, e->category_iids[0]), "io");
		assert_int_equal(find_ann(f, at, "n")->int_value, i + 1);
		assert_int_equal(e->n_debug_annotations, 1);
		assert_int_equal(e->source_location_iid, 1);
		assert_int_equal(e->has_track_uuid, 0);
		assert_int_equal(f->v[at]->sequence_flags, 2);
	}
	assert_string_equal(name_of(f, nth(f, 3, 0)), "retry");
	assert_string_equal(ann_text(f, nth(f, 3, 0), "level"), "warn");
	assert_int_equal(f->v[nth(f, 3, 0)]->track_event->source_location_iid, 2);
	assert_string_equal(name_of(f, nth(f, 2, 0)), "read");
	assert_int_equal(f->v[nth(f, 2, 0)]->track_event->n_debug_annotations, 0);
}

/* A name that is not the callsite's: the same text has the same number, wherever it lies. */
static void test_dynamic_names(void **state)
{
	struct fx *f = *state;
	char copy[] = "read";
	struct mt_callsite bare = {.id = 5,
				   .class_ = MONTRACE_CLASS_SPAN,
				   .name = "",
				   .target = "",
				   .file = "",
				   .function = "",
				   .flags = 4};

	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(instant(f, &f->a, 1001, &f->scope, (struct mt_str){copy, 4}, NULL, 0), 0);
	assert_int_equal(instant(f, &f->a, 1002, &f->scope, (struct mt_str){copy, 2}, NULL, 0), 0);
	assert_int_equal(instant(f, &f->a, 1003, &f->scope, (struct mt_str){f->scope.name, 3}, NULL, 0), 0);
	assert_int_equal(instant(f, &f->a, 1004, NULL, STR("a\xc3("), NULL, 0), 0);
	assert_int_equal(instant(f, &f->a, 1005, &bare, (struct mt_str){NULL, 0}, NULL, 0), 0);
	reread(f);
	assert_int_equal(f->v[nth(f, 3, 0)]->track_event->name_iid,
			 f->v[nth(f, 1, 0)]->track_event->name_iid);
	assert_string_equal(name_of(f, nth(f, 3, 1)), "re");
	assert_string_equal(name_of(f, nth(f, 3, 2)), "rea");
	assert_string_equal(name_of(f, nth(f, 3, 3)), "a\xef\xbf\xbd(");
	assert_int_equal(f->v[nth(f, 3, 3)]->track_event->n_category_iids, 0);
	assert_int_equal(f->v[nth(f, 3, 3)]->track_event->has_source_location_iid, 0);
	assert_string_equal(name_of(f, nth(f, 3, 4)), "");
	assert_int_equal(f->v[nth(f, 3, 4)]->track_event->n_category_iids, 0);
	assert_int_equal(f->v[nth(f, 3, 4)]->track_event->has_source_location_iid, 0);
}

static void test_levels(void **state)
{
	static const struct {
		uint8_t class_, level;
		uint16_t flags;
		const char *want;
	} rows[] = {
		{MONTRACE_CLASS_SCOPE, MONTRACE_INFO, MONTRACE_CSF_DEFAULT_LEVEL, NULL},
		{MONTRACE_CLASS_SCOPE, MONTRACE_INFO, 0, "info"},
		{MONTRACE_CLASS_SPAN, MONTRACE_DEBUG, 0, "debug"},
		{MONTRACE_CLASS_RECORDING, MONTRACE_TRACE, 0, "trace"},
		{MONTRACE_CLASS_EVENT, MONTRACE_INFO, MONTRACE_CSF_DEFAULT_LEVEL, "info"},
		{MONTRACE_CLASS_EVENT, MONTRACE_ERROR, 0, "error"},
		{MONTRACE_CLASS_EVENT, 0, 0, NULL},
		{MONTRACE_CLASS_EVENT, 6, 0, NULL},
	};
	enum { N = sizeof(rows) / sizeof(rows[0]) };
	struct mt_callsite cs[N];
	struct fx *f = *state;

	start(f);
	for (uint32_t i = 0; i < N; i++) {
		const char *got;

		cs[i] = f->event;
		cs[i].id = 100 + i;
		cs[i].class_ = rows[i].class_;
		cs[i].level = rows[i].level;
		cs[i].flags = rows[i].flags;
		assert_int_equal(instant(f, &f->a, 1000 + i, &cs[i], STR("x"), NULL, 0), 0);
		reread(f);
		got = ann_text(f, nth(f, 3, i), "level");
		if (rows[i].want)
			assert_string_equal(got, rows[i].want);
		else
			assert_null(got);
	}
}

static const ann_t *one_value(struct fx *f, struct mt_value v, size_t *ret_at)
{
	struct mt_field x = {.name = STR("x"), .value = v};

	assert_int_equal(instant(f, &f->a, 1000, NULL, STR("e"), &x, 1), 0);
	reread(f);
	*ret_at = f->n - 1;
	return f->v[f->n - 1]->track_event->debug_annotations[0];
}

static void test_numbers(void **state)
{
	static const int64_t ints[] = {0, 1, -1, INT64_MIN, INT64_MAX};
	static const uint64_t uints[] = {0, 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
	static const double doubles[] = {0.0, -0.0, 1.5, DBL_MIN, -DBL_MAX, INFINITY, -INFINITY, NAN};
	struct fx *f = *state;
	size_t at;

	start(f);
	for (size_t i = 0; i < 5; i++) {
		const ann_t *a =
			one_value(f, (struct mt_value){.type = MONTRACE_TYPE_I64, .i = ints[i]}, &at);

		assert_true(a->has_int_value && a->int_value == ints[i]);
		a = one_value(f, (struct mt_value){.type = MONTRACE_TYPE_U64, .u = uints[i]}, &at);
		assert_true(a->has_uint_value && a->uint_value == uints[i]);
		a = one_value(f, (struct mt_value){.type = MONTRACE_TYPE_BOOL, .u = i}, &at);
		assert_true(a->has_bool_value && a->bool_value == (i != 0));
	}
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		const ann_t *a =
			one_value(f, (struct mt_value){.type = MONTRACE_TYPE_F64, .f = doubles[i]}, &at);

		assert_true(a->has_double_value);
		assert_memory_equal(&a->double_value, &doubles[i], sizeof(double));
	}
}

static void test_texts(void **state)
{
	static char kib[1025], broken[2001];
	static const struct {
		const char *in, *want;
	} rows[] = {
		{"", ""},
		{"plain", "plain"},
		{"\"quoted\"\nand\ttabbed\\", "\"quoted\"\nand\ttabbed\\"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"bad \x80 byte", "bad \xef\xbf\xbd byte"},
		{kib, kib},
	};
	struct fx *f = *state;
	size_t at;

	memset(kib, 'k', 1024);
	memset(broken, 0x80, 2000);
	start(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mt_value v = {.type = i % 2 ? MONTRACE_TYPE_STR : MONTRACE_TYPE_DEBUG,
				     .s = {rows[i].in, (uint32_t)strlen(rows[i].in)}};
		const ann_t *a = one_value(f, v, &at);

		assert_string_equal(a->string_value, rows[i].want);
	}
	one_value(f, (struct mt_value){.type = MONTRACE_TYPE_STR, .s = {broken, 2000}}, &at);
	assert_int_equal(strlen(ann_text(f, at, "x")), 6000);
	one_value(f, (struct mt_value){.type = MONTRACE_TYPE_STR, .s = {NULL, 0}}, &at);
	assert_string_equal(ann_text(f, at, "x"), "");
}

static void test_cut_and_missing(void **state)
{
	struct fx *f = *state;
	uint32_t big = 40000;
	char *text = malloc(big);
	size_t at;

	memset(text, 'b', big);
	start(f);
	one_value(f,
		  (struct mt_value){.type = MONTRACE_TYPE_STR, .cut = true, .full_len = 3000, .s = STR("ab")},
		  &at);
	assert_string_equal(ann_text(f, at, "x"), "ab");
	assert_int_equal(find_ann(f, at, "x_full_length")->uint_value, 3000);
	one_value(f, (struct mt_value){.type = MONTRACE_TYPE_STR, .cut = true, .s = STR("ab")}, &at);
	assert_int_equal(find_ann(f, at, "x_cut")->bool_value, 1);
	one_value(f, (struct mt_value){.type = MONTRACE_TYPE_STR, .s = {text, big}}, &at);
	assert_int_equal(strlen(ann_text(f, at, "x")), 16 * 1024);
	assert_int_equal(find_ann(f, at, "x_full_length")->uint_value, big);
	one_value(f, (struct mt_value){.type = MONTRACE_TYPE_I64, .missing = true, .s = STR("unreadable")},
		  &at);
	assert_string_equal(ann_text(f, at, "x"), "<unavailable: unreadable>");
	assert_int_equal(f->v[at]->track_event->n_debug_annotations, 1);
	one_value(f, (struct mt_value){.type = 99}, &at);
	assert_string_equal(ann_text(f, at, "x"), "<unavailable: unknown type>");
	free(text);
}

/* More than a packet holds: what fits, and a mark. All texts are broken: the worst case for room. */
static void test_too_much(void **state)
{
	enum { N = 400, LEN = 5000 };
	struct fx *f = *state;
	struct mt_field *x = calloc(N, sizeof(*x));
	char *text = malloc(LEN), (*names)[600] = calloc(N, 600);
	const event_t *e;
	size_t at;

	memset(text, 0x80, LEN);
	for (uint32_t i = 0; i < N; i++) {
		memset(names[i], 0x81, 599);
		snprintf(names[i], 600, "%u", i);
		names[i][strlen(names[i])] = '-';
		x[i].name = (struct mt_str){names[i], 599};
		x[i].value = (struct mt_value){.type = MONTRACE_TYPE_STR,
					       .cut = true,
					       .full_len = 9999,
					       .s = {text, i % 2 ? LEN : 0}};
	}
	f->opts.max_interned = 64;
	start(f);
	for (uint32_t k = 0; k < 10; k++) {
		for (uint32_t i = 0; i < N; i++)
			x[i].value.cut = k % 2;
		assert_int_equal(instant(f, &f->a, 1000, NULL, STR("e"), x, N), 0);
	}
	reread(f);
	for (size_t k = 0; k < 10; k++) {
		at = nth(f, 3, k);
		e = f->v[at]->track_event;
		assert_true(e->n_debug_annotations > 15 && e->n_debug_annotations < N);
		assert_int_equal(find_ann(f, at, "cut")->bool_value, 1);
		assert_true(perfetto__protos__track_event__get_packed_size(e) <= 128 * 1024 + 16);
		assert_true(perfetto__protos__trace_packet__get_packed_size(f->v[at]) < 512 * 1024);
	}
	free(names);
	free(text);
	free(x);
}

/* More new names than one packet introduces: the rest is written in place. */
static void test_many_extras(void **state)
{
	enum { N = 300 };
	struct fx *f = *state;
	struct mt_field x[N];
	char names[N][8];
	const event_t *e;

	for (uint32_t i = 0; i < N; i++) {
		x[i] = (struct mt_field){.value = {.type = MONTRACE_TYPE_U64, .u = i}};
		x[i].name.p = names[i];
		x[i].name.len = (uint32_t)snprintf(names[i], sizeof(names[i]), "x%u", i);
	}
	start(f);
	assert_int_equal(instant(f, &f->a, 1000, &f->event, STR("e"), x, N), 0);
	assert_int_equal(instant(f, &f->a, 1000, &f->event, STR("e"), x, N), 0);
	reread(f);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(find_ann(f, nth(f, 3, 0), names[i])->uint_value, i);
		assert_int_equal(find_ann(f, nth(f, 3, 1), names[i])->uint_value, i);
	}
	assert_int_equal(told(f->v[nth(f, 3, 0)]), 128);
	e = f->v[nth(f, 3, 0)]->track_event;
	assert_null(e->debug_annotations[100]->name);
	assert_string_equal(e->debug_annotations[N]->name, "x299");
	assert_int_equal(told(f->v[nth(f, 3, 1)]), 128);
	assert_null(f->v[nth(f, 3, 1)]->track_event->debug_annotations[200]->name);
}

/* Tables are bounded in bytes too. */
static void test_long_names(void **state)
{
	enum { N = 5000, LEN = 1100 };
	struct fx *f = *state;
	char *name = malloc(LEN);
	size_t in_place = 0;

	memset(name, 'n', LEN);
	start(f);
	for (uint32_t i = 0; i < N; i++) {
		name[snprintf(name, LEN, "%u", i)] = '.';
		assert_int_equal(instant(f, &f->a, 1000 + i, NULL, (struct mt_str){name, LEN}, NULL, 0), 0);
	}
	reread(f);
	for (size_t i = 0; i < f->n; i++)
		in_place += IS(f->v[i], TRACK_EVENT) && f->v[i]->track_event->name != NULL;
	assert_int_equal(in_place, 1); /* the one that found no room */
	assert_int_equal(clears(f, 2), 2);
	assert_int_equal(strlen(name_of(f, f->n - 1)), 1024);
	free(name);
}

/* More values than the callsite has fields. */
static void test_unnamed_values(void **state)
{
	struct fx *f = *state;
	struct mt_value v[2] = {{.type = MONTRACE_TYPE_U64, .u = 5}, {.type = MONTRACE_TYPE_U64, .u = 6}};
	struct mt_slice sl = {
		.thread = &f->a, .time = 1000, .cs = &f->scope, .name = STR("x"), .nvalues = 2, .values = v};

	start(f);
	assert_int_equal(f->sink->ops->begin(f->sink, &sl), 0);
	reread(f);
	assert_int_equal(find_ann(f, f->n - 1, "n")->uint_value, 5);
	assert_int_equal(find_ann(f, f->n - 1, "arg1")->uint_value, 6);
}

static void test_slice_flags(void **state)
{
	struct fx *f = *state;
	struct mt_slice sl = {.thread = &f->a, .time = 1000, .cs = &f->scope, .name = STR("x")};
	size_t at[5];

	start(f);
	for (size_t i = 0; i < 5; i++) {
		sl.flags = i == 4 ? MT_SLICE_REENTERED : 1u << i;
		sl.flow = i < 2 ? 77 : i == 2 ? 78 : 0;
		assert_int_equal(f->sink->ops->begin(f->sink, &sl), 0);
	}
	reread(f);
	for (size_t i = 0; i < 5; i++) {
		at[i] = nth(f, 1, i);
		assert_int_equal(find_ann(f, at[i], "continued") != NULL, i == 1);
		assert_int_equal(find_ann(f, at[i], "cut") != NULL, i == 3);
		assert_int_equal(f->v[at[i]]->track_event->n_debug_annotations, i == 1 || i == 3);
		assert_int_equal(f->v[at[i]]->track_event->n_flow_ids, i < 3);
	}
	assert_int_equal(find_ann(f, at[1], "continued")->bool_value, 1);
	assert_int_equal(find_ann(f, at[3], "cut")->bool_value, 1);
	assert_true(f->v[at[0]]->track_event->flow_ids[0] == f->v[at[1]]->track_event->flow_ids[0]);
	assert_true(f->v[at[0]]->track_event->flow_ids[0] != f->v[at[2]]->track_event->flow_ids[0]);
}

static void test_end_reasons(void **state)
{
	static const struct {
		enum mt_end_reason reason;
		uint32_t status;
		const char *want;
	} rows[] = {
		{MT_END_NORMAL, 9, NULL},
		{MT_END_OUTER, 0, "continued"},
		{MT_END_CLOSED, 0, "closed"},
		{MT_END_LOST, 0, "end lost"},
		{MT_END_THREAD, 0, "thread exit"},
		{MT_END_PROCESS, 9, "process killed by signal 9 (SIGKILL)"},
		{MT_END_PROCESS, 11 | 0x80, "process killed by signal 11 (SIGSEGV)"},
		{MT_END_PROCESS, 35, "process killed by signal 35"},
		{MT_END_PROCESS, 3 << 8, "process exit 3"},
		{MT_END_PROCESS, 0, "process exit 0"},
		{MT_END_EXEC, 0, "exec"},
		{MT_END_DETACH, 0, "detached"},
		{MT_END_PART, 0, "continued in the next file"},
		{MT_END_AGAIN, 0, "begun again"},
		{MT_END_FORGOTTEN, 0, "too many open"},
		{(enum mt_end_reason)50, 0, "unknown"},
	};
	struct mt_field x = {.name = STR("late"), .value = {.type = MONTRACE_TYPE_I64, .i = -5}};
	struct fx *f = *state;

	f->scope.flags = 0; /* a level, which only the begin tells */
	start(f);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mt_slice_end e = {.thread = &f->a,
					 .time = 1000 + i,
					 .cs = &f->scope,
					 .name = STR("x"),
					 .reason = rows[i].reason,
					 .exit_status = rows[i].status,
					 .in_doubt = i % 3 == 1,
					 .nextra = i % 2,
					 .extra = &x};
		const char *got;
		size_t at;

		assert_int_equal(f->sink->ops->end(f->sink, &e), 0);
		reread(f);
		at = f->n - 1;
		got = ann_text(f, at, "end");
		if (rows[i].want)
			assert_string_equal(got, rows[i].want);
		else
			assert_null(got);
		got = ann_text(f, at, "doubt");
		if (i % 3 == 1)
			assert_string_equal(got, "hits were lost: it may have ended before");
		else
			assert_null(got);
		assert_int_equal(f->v[at]->track_event->type, 2);
		assert_string_equal(name_of(f, at), "x");
		assert_int_equal(f->v[at]->track_event->n_debug_annotations, (i > 0) + i % 2 + (i % 3 == 1));
		if (i % 2)
			assert_int_equal(find_ann(f, at, "late")->int_value, -5);
		assert_int_equal(f->v[at]->track_event->n_category_iids, 0);
	}
}

static void test_reset(void **state)
{
	struct fx *f = *state;
	size_t at;

	f->opts.reset_ms = 2;
	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(begin(f, &f->b, 1500, 1), 0);
	assert_int_equal(end(f, &f->b, 2000999), 0);
	assert_int_equal(end(f, &f->a, 2000999), 0);
	reread(f);
	assert_int_equal(clears(f, 2), 1);
	assert_int_equal(begin(f, &f->a, 2001000, 2), 0);
	reread(f);
	at = f->n - 1;
	assert_int_equal(clears(f, 2), 2);
	assert_int_equal(clears(f, 3), 1);
	assert_true(cleared(f->v[at - 1]));
	assert_int_equal(f->v[at - 1]->has_first_packet_on_sequence, 0);
	assert_int_equal(f->v[at - 1]->trace_packet_defaults->timestamp_clock_id, 64);
	assert_int_equal(told(f->v[at]), 4);
	assert_int_equal(time_of(f, at), 2001000);
	/* An end after a clear tells the name, and nothing that it does not need. */
	assert_int_equal(end(f, &f->a, 4001000), 0);
	reread(f);
	assert_int_equal(clears(f, 2), 3);
	assert_int_equal(told(f->v[f->n - 1]), 1);
	assert_string_equal(name_of(f, f->n - 1), "read");
}

/* Counters may come with a time before the thread's last clear: a new clear still does not run back. */
static void test_clear_is_monotone(void **state)
{
	struct fx *f = *state;
	struct mt_loss l = {.thread = &f->a, .process = &f->proc, .time = 900, .count = 1, .cause = ""};

	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(f->sink->ops->lost(f->sink, &l), 0);
	reread(f);
	assert_int_equal(clears(f, 2), 2);
	assert_int_equal(f->v[nth(f, 3, 0) - 1]->clock_snapshot->clocks[0]->timestamp, 1000);
	assert_int_equal(time_of(f, nth(f, 3, 0)), 900);
}

/* Many names: tables start anew, everything stays readable, memory stays bounded. */
static void test_many_names(void **state)
{
	enum { N = 500 };
	struct fx *f = *state;
	char name[32];

	f->opts.max_interned = 64;
	start(f);
	assert_int_equal(begin(f, &f->b, 500, 1), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct mt_field x = {.name = {name, 0}, .value = {.type = MONTRACE_TYPE_U64, .u = i}};

		x.name.len = (uint32_t)snprintf(name, sizeof(name), "name %u", i);
		assert_int_equal(instant(f, &f->a, 1000 + i, &f->event, x.name, &x, 1), 0);
	}
	assert_int_equal(end(f, &f->b, 5000), 0);
	reread(f);
	for (uint32_t i = 0; i < N; i++) {
		size_t at = nth(f, 3, i);

		snprintf(name, sizeof(name), "name %u", i);
		assert_string_equal(name_of(f, at), name);
		assert_int_equal(find_ann(f, at, name)->uint_value, i);
		assert_string_equal(ann_text(f, at, "level"), "warn");
		assert_true(f->v[at]->track_event->name_iid >= 1 && f->v[at]->track_event->name_iid <= 64);
	}
	assert_in_range(clears(f, 2) + clears(f, 3), 10, 30);
	assert_int_equal(clears(f, 2), 2);
	assert_string_equal(name_of(f, f->n - 1), "read");
}

static void test_many_sites(void **state)
{
	enum { N = 300 };
	struct fx *f = *state;
	struct mt_callsite *cs = calloc(N, sizeof(*cs));
	char file[32];

	start(f);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++) {
			cs[i] = f->scope;
			cs[i].id = i * 64 + 1; /* all collide in a small table */
			cs[i].line = i + 1;
			snprintf(file, sizeof(file), "f%u.c", i);
			cs[i].file = file;
			assert_int_equal(instant(f, &f->a, 1000, &cs[i], STR("x"), NULL, 0), 0);
		}
	}
	reread(f);
	for (uint32_t i = 0; i < N; i++) {
		const packet_t *p = f->v[nth(f, 3, i)];

		snprintf(file, sizeof(file), "f%u.c", i);
		assert_int_equal(p->track_event->source_location_iid, i + 1);
		assert_int_equal(p->interned_data->n_source_locations, 1);
		assert_int_equal(p->interned_data->source_locations[0]->iid, i + 1);
		assert_int_equal(p->interned_data->source_locations[0]->line_number, i + 1);
		assert_string_equal(p->interned_data->source_locations[0]->file_name, file);
		assert_string_equal(p->interned_data->source_locations[0]->function_name, "do_read");
		p = f->v[nth(f, 3, N + i)];
		assert_int_equal(p->track_event->source_location_iid, i + 1);
		assert_null(p->interned_data);
	}
	free(cs);
}

/* More callsites than a table takes. */
static void test_sites_bounded(void **state)
{
	enum { N = 300 };
	struct fx *f = *state;
	struct mt_callsite *cs = calloc(N, sizeof(*cs));

	f->opts.max_interned = 64;
	start(f);
	for (uint32_t i = 0; i < N; i++) {
		cs[i] = f->scope;
		cs[i].id = i + 1;
		cs[i].line = i + 1;
		assert_int_equal(instant(f, &f->a, 1000, &cs[i], STR("x"), NULL, 0), 0);
	}
	reread(f);
	for (uint32_t i = 0; i < N; i++) {
		const packet_t *p = f->v[nth(f, 3, i)];

		assert_int_equal(p->track_event->source_location_iid, i % 64 + 1);
		assert_int_equal(p->interned_data->source_locations[0]->line_number, i + 1);
	}
	assert_int_equal(clears(f, 2), 5);
	free(cs);
}

static void test_loss_on_thread(void **state)
{
	struct fx *f = *state;
	struct mt_loss l = {
		.thread = &f->a, .process = &f->proc, .time = 1200, .count = 17, .cause = "ring full"};
	size_t at;

	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(f->sink->ops->lost(f->sink, &l), 0);
	assert_int_equal(end(f, &f->a, 1300), 0);
	l.count = 0;
	assert_int_equal(f->sink->ops->lost(f->sink, &l), 0); /* nothing lost, nothing told */
	reread(f);
	at = nth(f, 3, 0);
	assert_int_equal(at, f->n - 3);
	assert_string_equal(name_of(f, at), "events lost");
	assert_int_equal(time_of(f, at), 1200);
	assert_int_equal(find_ann(f, at, "count")->uint_value, 17);
	assert_string_equal(ann_text(f, at, "cause"), "ring full");
	assert_true(cleared(f->v[at - 1]));
	assert_int_equal(f->v[at - 1]->previous_packet_dropped, 1);
	assert_true(IS(f->v[at + 1], PERF_SAMPLE));
	assert_int_equal(f->v[at + 1]->perf_sample->cpu, 0);
	assert_int_equal(f->v[at + 1]->perf_sample->kernel_records_lost, 17);
	assert_int_equal(f->v[at + 1]->has_timestamp, 0);
	assert_string_equal(name_of(f, at + 2), "read");
	assert_int_equal(time_of(f, at + 2), 1300);
	assert_int_equal(clears(f, 2), 2);
}

static void test_loss_elsewhere(void **state)
{
	struct fx *f = *state;
	struct mt_loss of_process = {.process = &f->proc, .time = 1200, .count = 5, .cause = ""};
	struct mt_loss of_nobody = {.time = 1300, .count = 6, .cause = "ring full"};
	const Perfetto__Protos__TraceAttributes *t;
	uint64_t uuid;
	char cause[16];

	start(f);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 1000), 0);
	assert_int_equal(f->sink->ops->lost(f->sink, &of_process), 0);
	assert_int_equal(f->sink->ops->lost(f->sink, &of_nobody), 0);
	assert_int_equal(f->sink->ops->lost(f->sink, &of_nobody), 0);
	finish(f);
	assert_int_equal(f->v[6]->track_event->track_uuid, f->v[4]->track_descriptor->uuid);
	assert_int_equal(f->v[6]->timestamp, 1200);
	assert_int_equal(f->v[6]->trusted_packet_sequence_id, 1);
	assert_string_equal(f->v[6]->track_event->name, "events lost");
	assert_string_equal(f->v[6]->track_event->categories[0], "montrace-bpf");
	assert_int_equal(f->v[6]->track_event->n_debug_annotations, 1);
	assert_string_equal(f->v[6]->track_event->debug_annotations[0]->name, "count");
	assert_int_equal(f->v[6]->track_event->debug_annotations[0]->uint_value, 5);
	assert_int_equal(f->v[7]->perf_sample->kernel_records_lost, 5);
	uuid = f->v[8]->track_descriptor->uuid;
	assert_string_equal(f->v[8]->track_descriptor->name, "montrace-bpf");
	assert_int_equal(f->v[9]->track_event->track_uuid, uuid);
	assert_string_equal(f->v[9]->track_event->debug_annotations[1]->name, "cause");
	assert_string_equal(f->v[9]->track_event->debug_annotations[1]->string_value, "ring full");
	assert_int_equal(f->v[11]->track_event->track_uuid, uuid); /* described once */
	t = f->v[f->n - 2]->trace_attributes;
	assert_int_equal(t->n_attribute, 3);
	assert_int_equal(t->attribute[0]->long_value, 17);
	assert_string_equal(t->attribute[1]->key, "montrace-bpf.lost.unknown");
	assert_int_equal(t->attribute[1]->long_value, 5);
	assert_string_equal(t->attribute[2]->key, "montrace-bpf.lost.ring full");
	assert_int_equal(t->attribute[2]->long_value, 12);

	/* More causes than are kept apart: the total still has them. */
	f->out.len = 0;
	f->out.closed = 0;
	start(f);
	for (uint64_t i = 0; i < 20; i++) {
		snprintf(cause, sizeof(cause), "c%u", (unsigned)i);
		of_nobody.cause = cause;
		assert_int_equal(f->sink->ops->lost(f->sink, &of_nobody), 0);
	}
	finish(f);
	t = f->v[f->n - 2]->trace_attributes;
	assert_int_equal(t->n_attribute, 9);
	assert_int_equal(t->attribute[0]->long_value, 120);
	f->proc.sink_data = NULL; /* the first sink's */
}

static int count(struct fx *f, const struct mt_callsite *cs, uint64_t time, struct mt_value v)
{
	struct mt_count c = {.thread = &f->a, .time = time, .cs = cs, .value = v};

	return f->sink->ops->counter(f->sink, &c);
}

static void test_counters(void **state)
{
	struct fx *f = *state;
	struct mt_callsite same = f->counter, other = f->counter;
	const Perfetto__Protos__TrackDescriptor *t;
	uint64_t uuid;

	same.id = 4;
	other.id = 5;
	other.name = "other";
	start(f);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 900), 0);
	assert_int_equal(count(f, &f->counter, 1000, (struct mt_value){.type = 1, .i = INT64_MIN}), 0);
	assert_int_equal(count(f, &f->counter, 1001, (struct mt_value){.type = 2, .u = 7}), 0);
	assert_int_equal(count(f, &f->counter, 999, (struct mt_value){.type = 2, .u = UINT64_MAX}), 0);
	assert_int_equal(count(f, &f->counter, 1003, (struct mt_value){.type = 3, .f = -0.5}), 0);
	assert_int_equal(count(f, &same, 1004, (struct mt_value){.type = 1, .i = 2}), 0);
	assert_int_equal(count(f, &other, 1005, (struct mt_value){.type = 1, .i = 3}), 0);
	assert_int_equal(count(f, &f->counter, 1006, (struct mt_value){.type = 1, .missing = true}), 0);
	reread(f);
	t = f->v[6]->track_descriptor;
	uuid = t->uuid;
	assert_int_equal(t->parent_uuid, f->v[4]->track_descriptor->uuid);
	assert_string_equal(t->name, "depth");
	assert_non_null(t->counter);
	for (size_t i = 0; i < 6; i++) {
		const event_t *e = f->v[nth(f, 4, i)]->track_event;
		static const uint64_t times[] = {1000, 1001, 999, 1003, 1004, 1005};

		assert_int_equal(time_of(f, nth(f, 4, i)), times[i]);
		assert_int_equal(e->track_uuid == uuid, i < 5);
		assert_int_equal(e->has_counter_value, i != 2 && i != 3);
		assert_int_equal(e->has_double_counter_value, i == 2 || i == 3);
	}
	assert_true(f->v[nth(f, 4, 0)]->track_event->counter_value == INT64_MIN);
	assert_int_equal(f->v[nth(f, 4, 1)]->track_event->counter_value, 7);
	assert_true(f->v[nth(f, 4, 2)]->track_event->double_counter_value == 18446744073709551616.0);
	assert_true(f->v[nth(f, 4, 3)]->track_event->double_counter_value == -0.5);
	assert_int_equal(f->v[nth(f, 4, 5)]->track_event->counter_value, 3);
	assert_int_equal(nth(f, 4, 5), f->n - 1);
	/* Head, process and tree, clear, 6 values, a descriptor for each callsite. */
	assert_int_equal(f->n, HEAD + 2 + 1 + 6 + 3);
}

static void kbegin(struct fx *f, uint64_t key, uint64_t time, const char *cs_name, struct mt_str name,
		   uint64_t flow)
{
	struct mt_value v = {.type = MONTRACE_TYPE_I64, .i = (int64_t)key};
	struct mt_callsite cs = f->scope; /* one for each name */
	struct mt_slice sl = {.process = &f->proc,
			      .time = time,
			      .cs = &cs,
			      .name = name,
			      .key = key,
			      .span = key,
			      .flow = flow,
			      .nvalues = 1,
			      .values = &v};

	cs.id += (unsigned char)cs_name[0];
	cs.name = cs_name;
	assert_int_equal(f->sink->ops->keyed_begin(f->sink, &sl), 0);
}

static void kend(struct fx *f, uint64_t key, uint64_t time, struct mt_str name, enum mt_end_reason reason)
{
	struct mt_field x = {.name = STR("result"), .value = {.type = MONTRACE_TYPE_I64, .i = -5}};
	struct mt_slice_end e = {.process = &f->proc,
				 .time = time,
				 .cs = &f->scope,
				 .name = name,
				 .key = key,
				 .span = key,
				 .reason = reason,
				 .nextra = 1,
				 .extra = &x};

	assert_int_equal(f->sink->ops->keyed_end(f->sink, &e), 0);
}

/* Lanes: named after the callsite, under the process, the lowest free one, with times that do not run back. */
static void test_keyed(void **state)
{
	static const struct {
		int type;
		uint64_t key, time, told; /* told: the time that is in the trace */
		const char *cs, *name;
		int lane; /* number of its descriptor */
		uint64_t flow;
		const char *end;
	} rows[] = {
		{1, 1, 1000, 1000, "req", "req /a", 0, 0, ""},
		{1, 2, 1010, 1010, "req", "req /b", 1, 0, ""},
		{1, 3, 1020, 1020, "job", "job", 2, 0, ""},
		{2, 1, 1030, 1030, "", "req /a", 0, 0, ""},
		{1, 4, 1025, 1030, "req", "req /c", 0, 7, ""},
		{1, 5, 1040, 1040, "req", "req /d", 3, 0, ""},
		{2, 2, 1050, 1050, "", "req /b", 1, 0, "begun again"},
		{2, 5, 1060, 1060, "", "req /d", 3, 0, ""},
		{1, 6, 1070, 1070, "req", "req /e", 1, 0, ""},
		{2, 3, 1080, 1080, "", "job", 2, 0, ""},
	};
	const Perfetto__Protos__TrackDescriptor *lanes[4];
	struct fx *f = *state;
	size_t n = 0, at = 0;

	start(f);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 900), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mt_str name = {rows[i].name, (uint32_t)strlen(rows[i].name)};

		if (rows[i].type == 1)
			kbegin(f, rows[i].key, rows[i].time, rows[i].cs, name, rows[i].flow);
		else
			kend(f, rows[i].key, rows[i].time, name,
			     rows[i].end[0] ? MT_END_AGAIN : MT_END_NORMAL);
	}
	kend(f, 99, 1090, STR("job"), MT_END_NORMAL); /* has no lane: nothing */
	reread(f);
	for (size_t i = HEAD + 2; i < f->n; i++) {
		const packet_t *p = f->v[i];

		if (IS(p, TRACK_DESCRIPTOR)) {
			assert_true(n < 4);
			lanes[n++] = p->track_descriptor;
			assert_true(p->track_descriptor->parent_uuid == f->v[HEAD]->track_descriptor->uuid);
			assert_string_equal(p->track_descriptor->name, n == 3 ? "job" : "req");
			assert_null(p->track_descriptor->thread);
		}
		if (!IS(p, TRACK_EVENT))
			continue;
		assert_true(at < sizeof(rows) / sizeof(rows[0]));
		assert_int_equal(p->track_event->type, rows[at].type);
		assert_int_equal(time_of(f, i), rows[at].told);
		assert_string_equal(name_of(f, i), rows[at].name);
		assert_true(p->track_event->track_uuid == lanes[rows[at].lane]->uuid);
		assert_int_equal(p->trusted_packet_sequence_id, 2);
		assert_int_equal(p->track_event->n_flow_ids, rows[at].flow != 0);
		if (rows[at].type == 1)
			assert_int_equal(find_ann(f, i, "n")->int_value, rows[at].key);
		else
			assert_int_equal(find_ann(f, i, "result")->int_value, -5);
		assert_string_equal(ann_text(f, i, "end") ? ann_text(f, i, "end") : "", rows[at].end);
		at++;
	}
	assert_int_equal(at, sizeof(rows) / sizeof(rows[0]));
	assert_int_equal(n, 4);
}

/* Many at once, in any order, again and again: as many lanes as were open, on each one at a time. */
static void test_keyed_many(void **state)
{
	struct fx *f = *state;
	uint64_t open[700], key = 0, x = 1, uuids[700];
	bool busy[700] = {false};
	size_t nopen = 0, most = 0, lanes = 0, begins = 0;

	start(f);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 900), 0);
	for (uint64_t i = 0; i < 2500; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		if (nopen == 0 || (nopen < 300 && (x >> 40) % 3)) {
			open[nopen++] = ++key;
			kbegin(f, key, 1000 + i, "req", STR("req"), 0);
		} else {
			size_t k = (x >> 20) % nopen;

			kend(f, open[k], 1000 + i, STR("req"), MT_END_NORMAL);
			open[k] = open[--nopen];
		}
		most = nopen > most ? nopen : most;
	}
	reread(f);
	for (size_t i = HEAD + 2; i < f->n; i++) {
		const event_t *e = IS(f->v[i], TRACK_EVENT) ? f->v[i]->track_event : NULL;
		size_t k;

		if (IS(f->v[i], TRACK_DESCRIPTOR) && lanes < 700)
			uuids[lanes++] = f->v[i]->track_descriptor->uuid;
		for (k = 0; e && k < lanes && uuids[k] != e->track_uuid; k++)
			;
		if (!e)
			continue;
		assert_true(k < lanes);
		assert_true(busy[k] == (e->type == 2));
		busy[k] = e->type == 1;
		begins += e->type == 1;
	}
	assert_int_equal(lanes, most);
	assert_int_equal(begins, key);
}

/* What was unpaired goes into the tail, added up over processes; nothing if there was nothing. */
static void test_unpaired(void **state)
{
	static const char *const keys[] = {"montrace-bpf.lost", "montrace-bpf.unpaired.stray_ends",
					   "montrace-bpf.unpaired.begun_again"};
	static const int64_t values[] = {0, 12, 3};
	struct fx *f = *state;
	struct mt_process other = f->proc;
	size_t n = 0;

	other.pid = 71;
	start(f);
	f->sink->ops->process(f->sink, &f->proc, 900);
	f->sink->ops->process(f->sink, &other, 900);
	f->proc.unpaired = (struct mt_unpaired){.stray_ends = 5, .again = 3};
	other.unpaired.stray_ends = 7;
	f->sink->ops->gone(f->sink, &f->proc, NULL, 1000);
	f->sink->ops->gone(f->sink, &other, NULL, 1000);
	finish(f);
	for (size_t i = HEAD; i < f->n; i++) {
		if (!IS(f->v[i], TRACE_ATTRIBUTES))
			continue;
		for (size_t k = 0; k < f->v[i]->trace_attributes->n_attribute; k++, n++) {
			assert_true(n < 3);
			assert_string_equal(f->v[i]->trace_attributes->attribute[k]->key, keys[n]);
			assert_int_equal(f->v[i]->trace_attributes->attribute[k]->long_value, values[n]);
		}
	}
	assert_int_equal(n, 3);
}

/* A counter whose name varies: a track for each name, shared with the callsite of that name. */
static void test_counters_by_name(void **state)
{
	static const struct {
		const char *name; /* NULL: the callsite's */
		unsigned track;
	} rows[] = {{"eden", 0}, {"old", 1}, {"eden", 0}, {"eden", 0}, {NULL, 2}, {"depth", 2}, {"old", 1}};
	struct fx *f = *state;
	struct mt_callsite varies = f->counter;
	uint64_t uuid[3] = {0};
	unsigned tracks = 0;

	varies.id = 4;
	varies.name = "used";
	start(f);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 900), 0);
	for (unsigned i = 0; i < 7; i++) {
		struct mt_count c = {.thread = &f->a,
				     .time = 1000 + i,
				     .cs = rows[i].name ? &varies : &f->counter,
				     .value = {.type = 1, .i = i}};

		if (rows[i].name)
			c.name = (struct mt_str){rows[i].name, (uint32_t)strlen(rows[i].name)};
		assert_int_equal(f->sink->ops->counter(f->sink, &c), 0);
	}
	reread(f);
	for (size_t i = 0; i < f->n; i++) {
		const Perfetto__Protos__TrackDescriptor *t = f->v[i]->track_descriptor;

		if (!IS(f->v[i], TRACK_DESCRIPTOR) || !t->counter)
			continue;
		for (unsigned k = 0; k < 7; k++)
			if (!strcmp(t->name, rows[k].name ? rows[k].name : "depth"))
				uuid[rows[k].track] = t->uuid;
		tracks++;
	}
	assert_int_equal(tracks, 3);
	for (unsigned i = 0; i < 7; i++) {
		const event_t *e = f->v[nth(f, 4, i)]->track_event;

		assert_int_equal(e->counter_value, i);
		assert_true(uuid[rows[i].track] && e->track_uuid == uuid[rows[i].track]);
	}
	assert_true(uuid[0] != uuid[1] && uuid[1] != uuid[2] && uuid[0] != uuid[2]);
}

static void test_errors_stick(void **state)
{
	struct fx *f = *state;
	struct mt_loss l = {.time = 3000, .count = 1, .cause = ""};
	size_t len;

	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	reread(f);
	len = f->out.len;
	f->out.fail_at = len + 10;
	assert_int_equal(end(f, &f->a, 1100), 0); /* only collected */
	assert_int_equal(f->sink->ops->flush(f->sink, 1200), -ENOSPC);
	f->out.fail_at = 0;
	assert_int_equal(begin(f, &f->a, 2000, 1), -ENOSPC);
	assert_int_equal(end(f, &f->b, 2000), -ENOSPC);
	assert_int_equal(instant(f, &f->a, 2000, NULL, STR("x"), NULL, 0), -ENOSPC);
	assert_int_equal(count(f, &f->counter, 2000, (struct mt_value){.type = 1}), -ENOSPC);
	assert_int_equal(f->sink->ops->process(f->sink, &f->proc, 2000), -ENOSPC);
	assert_int_equal(f->sink->ops->thread(f->sink, &f->a, 2000), -ENOSPC);
	assert_int_equal(f->sink->ops->lost(f->sink, &l), -ENOSPC);
	assert_int_equal(f->sink->ops->flush(f->sink, 3000), -ENOSPC);
	assert_int_equal(f->sink->ops->free(f->sink), -ENOSPC);
	f->sink = NULL;
	assert_int_equal(f->out.closed, 1);
	assert_int_equal(f->out.len, len);
}

/* Nobody flushes: batches go out by themselves, and their errors come back from the events. */
static void test_batches(void **state)
{
	struct fx *f = *state;
	int r = 0;

	start(f);
	for (uint64_t i = 0; i < 20000 && f->out.len < 100000; i++)
		assert_int_equal(begin(f, &f->a, 1000 + i, 1), 0);
	assert_in_range(f->out.len, 100000, 200000);
	f->out.fail_at = f->out.len;
	for (uint64_t i = 0; i < 20000 && r == 0; i++)
		r = begin(f, &f->a, 30000 + i, 1);
	assert_int_equal(r, -ENOSPC);
	f->out.fail_at = 0;
	assert_int_equal(begin(f, &f->a, 60000, 1), -ENOSPC); /* at once, not at the next batch */
	assert_int_equal(f->sink->ops->free(f->sink), -ENOSPC);
	f->sink = NULL;
}

static void test_new_fails(void **state)
{
	struct fx *f = *state;

	f->out.fail_at = 10;
	assert_int_equal(mt_pftrace_new(&f->opts, &f->out.o, &f->sink), -ENOSPC);
	assert_null(f->sink);
	assert_int_equal(f->out.closed, 0); /* still the caller's */
}

static void test_compressed(void **state)
{
	enum { N = 1500 };
	struct fx *f = *state;
	size_t plain = 0, n = 0;

	for (int compress = 0; compress < 2; compress++) {
		f->opts.compress = compress;
		start(f);
		for (uint64_t i = 0; i < N; i++) {
			struct mt_thread *t = i % 3 ? &f->a : &f->b;

			assert_int_equal(begin(f, t, 1000 + 10 * i, (int64_t)i), 0);
			if (i % 500 == 0)
				assert_int_equal(f->sink->ops->flush(f->sink, i * 1000000), 0);
		}
		assert_int_equal(f->sink->ops->gone(f->sink, NULL, &f->a, 1), 0);
		assert_int_equal(f->sink->ops->gone(f->sink, NULL, &f->b, 1), 0);
		finish(f);
		for (uint64_t i = 0; i < N; i++) {
			size_t at = nth(f, 1, i);

			assert_int_equal(time_of(f, at), 1000 + 10 * i);
			assert_string_equal(name_of(f, at), "read");
			assert_int_equal(find_ann(f, at, "n")->int_value, i);
		}
		if (compress) {
			assert_int_equal(f->n, n);
			assert_true(f->out.len < plain / 2);
		}
		plain = f->out.len;
		n = f->n;
		f->out.len = 0;
		f->out.closed = 0;
	}
}

/* Compressed packets wait for company, but not for long. */
static void test_compressed_wait(void **state)
{
	struct fx *f = *state;
	size_t len;

	f->opts.compress = true;
	start(f);
	len = f->out.len;
	assert_true(len > 0); /* the head is there, uncompressed */
	assert_int_equal(f->sink->ops->flush(f->sink, 1000000000), 0);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(f->sink->ops->flush(f->sink, 1499999999), 0);
	assert_int_equal(f->out.len, len);
	assert_int_equal(f->sink->ops->flush(f->sink, 1500000000), 0);
	assert_true(f->out.len > len);
}

/* A thread that is quiet for long is cleared again, so its memory could be given back. */
static void test_idle(void **state)
{
	struct fx *f = *state;

	f->opts.reset_ms = 1000;
	start(f);
	assert_int_equal(begin(f, &f->a, 1000, 1), 0);
	assert_int_equal(begin(f, &f->b, 19999999000, 1), 0);
	f->now.boot = f->now.mono = 20000000000;
	reread(f);
	assert_null(((struct pf_thread *)f->a.sink_data)->known[PF_NAME].w);
	assert_non_null(((struct pf_thread *)f->b.sink_data)->known[PF_NAME].w);
	assert_int_equal(end(f, &f->a, 20000000001), 0);
	reread(f);
	assert_int_equal(clears(f, 2), 2);
	assert_string_equal(name_of(f, f->n - 1), "read");
	assert_int_equal(time_of(f, f->n - 1), 20000000001);
}

#define T(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(head),
		T(snapshots),
		T(tracks),
		T(process_tree),
		T(uuids),
		T(example),
		T(interning),
		T(dynamic_names),
		T(levels),
		T(keyed),
		T(keyed_many),
		T(unpaired),
		T(numbers),
		T(texts),
		T(cut_and_missing),
		T(too_much),
		T(many_extras),
		T(long_names),
		T(unnamed_values),
		T(slice_flags),
		T(end_reasons),
		T(reset),
		T(clear_is_monotone),
		T(many_names),
		T(many_sites),
		T(sites_bounded),
		T(loss_on_thread),
		T(loss_elsewhere),
		T(counters),
		T(counters_by_name),
		T(errors_stick),
		T(batches),
		T(new_fails),
		T(compressed),
		T(compressed_wait),
		T(idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
