/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tracks of the Perfetto sink: their uuids, descriptors, and the start of a thread's sequence.
 */
#include <errno.h>
#include <stdlib.h>

#include "pftrace_cold.h"

/* FNV-1a; finish_uuid() mixes the result. */
static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h;
}

/* 63 bits: a byte less in every packet that names a track. Never 0. */
static uint64_t finish_uuid(uint64_t h)
{
	h ^= h >> 33;
	h *= 0xff51afd7ed558ccdull;
	h ^= h >> 33;
	h *= 0xc4ceb9fe1a85ec53ull;
	h ^= h >> 33;
	h >>= 1;
	return h ? h : 1;
}

uint64_t mt_pf_uuid(const struct pf *pf, unsigned char what, uint32_t pid, uint32_t tid, uint64_t start)
{
	uint64_t h = hash(0xcbf29ce484222325ull, pf->boot_id, sizeof(pf->boot_id));

	h = hash(h, &what, 1);
	h = hash(h, &pid, sizeof(pid));
	h = hash(h, &tid, sizeof(tid));
	h = hash(h, &start, sizeof(start));
	return finish_uuid(h);
}

/*
 * Starts a thread's sequence anew: forgets what was told, sets the defaults and the base of the
 * delta clock. The packet itself has no stamp: it would count on the clock that it sets.
 */
int mt_pf_clear(struct pf *pf, struct pf_thread *th, uint64_t time)
{
	Perfetto__Protos__ClockSnapshot snap = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock c[2], *pc[2] = {&c[0], &c[1]};
	Perfetto__Protos__TrackEventDefaults event = PERFETTO__PROTOS__TRACK_EVENT_DEFAULTS__INIT;
	Perfetto__Protos__TracePacketDefaults defaults = PERFETTO__PROTOS__TRACE_PACKET_DEFAULTS__INIT;
	uint64_t base = time > th->base ? time : th->base;
	packet_t p;
	int r;

	clock_set(&c[0], CLOCK_DELTA, base);
	c[0].has_is_incremental = 1;
	c[0].is_incremental = 1;
	clock_set(&c[1], CLOCK_BOOT, base);
	snap.n_clocks = 2;
	snap.clocks = pc;
	event.has_track_uuid = 1;
	event.track_uuid = th->uuid;
	defaults.has_timestamp_clock_id = 1;
	defaults.timestamp_clock_id = CLOCK_DELTA;
	defaults.track_event_defaults = &event;
	packet_init(&p);
	p.trusted_packet_sequence_id = th->seq;
	p.has_sequence_flags = 1;
	p.sequence_flags = SEQ_CLEARED;
	p.has_previous_packet_dropped = p.previous_packet_dropped = th->dropped;
	p.has_first_packet_on_sequence = p.first_packet_on_sequence = !th->started;
	p.trace_packet_defaults = &defaults;
	p.data_case = DATA(CLOCK_SNAPSHOT);
	p.clock_snapshot = &snap;
	r = mt_pf_cold_put(pf, &p);
	if (r < 0)
		return r;
	for (int k = 0; k < PF_KINDS; k++)
		if (th->known[k].n)
			memset(th->known[k].w, 0, th->known[k].n * sizeof(uint64_t));
	th->base = th->last = base;
	th->reset_at = base + pf->reset_ns;
	th->gen = pf->gen;
	th->started = true;
	th->dropped = false;
	return 0;
}

int mt_pf_track_put(struct pf *pf, Perfetto__Protos__TrackDescriptor *t, uint64_t time)
{
	packet_t p;

	packet_init(&p);
	packet_stamp(&p, time);
	p.data_case = DATA(TRACK_DESCRIPTOR);
	p.track_descriptor = t;
	return mt_pf_cold_put(pf, &p);
}

/* The first description is stamped with the start, so that it holds for all that follows. */
static uint64_t describe_time(bool described, uint64_t start, uint64_t time)
{
	return !described && start && start < time ? start : time;
}

/*
 * The importer takes a process's name from the first of cmdline's elements, up to a space if it is
 * the only one. So the name comes first and the rest is a second element: what follows the name if
 * the command line begins with it, else all of it.
 */
static size_t tree_cmdline(char *name, char *cmdline, char **v)
{
	size_t n = strlen(name);

	v[0] = name;
	v[1] = cmdline;
	if (strncmp(cmdline, name, n) == 0 && (cmdline[n] == ' ' || cmdline[n] == '\0'))
		v[1] = cmdline + n + (cmdline[n] == ' ');
	return v[1][0] || strchr(name, ' ') ? 2 : 1;
}

static int put_process_tree(struct pf *pf, const struct mt_process *p, uint64_t time)
{
	Perfetto__Protos__ProcessTree tree = PERFETTO__PROTOS__PROCESS_TREE__INIT;
	Perfetto__Protos__ProcessTree__Process proc = PERFETTO__PROTOS__PROCESS_TREE__PROCESS__INIT;
	Perfetto__Protos__ProcessTree__Process *procs[] = {&proc};
	struct cold_text name, cmdline;
	char *args[2];
	packet_t pkt;

	proc.has_pid = proc.has_ppid = proc.has_uid = 1;
	proc.pid = (int32_t)p->pid;
	proc.ppid = (int32_t)p->ppid;
	proc.uid = (int32_t)p->uid;
	proc.n_cmdline = tree_cmdline(cold(&name, p->name), cold(&cmdline, p->cmdline), args);
	proc.cmdline = args;
	proc.has_process_start_from_boot = p->start != 0;
	proc.process_start_from_boot = p->start;
	tree.n_processes = 1;
	tree.processes = procs;
	packet_init(&pkt);
	packet_stamp(&pkt, time);
	pkt.data_case = DATA(PROCESS_TREE);
	pkt.process_tree = &tree;
	return mt_pf_cold_put(pf, &pkt);
}

int mt_pf_op_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ProcessDescriptor proc = PERFETTO__PROTOS__PROCESS_DESCRIPTOR__INIT;
	struct pf *pf = pf_of(s);
	struct pf_process *pp = mt_pf_process(pf, p);
	struct cold_text name;
	char label[256], *labels[] = {label};
	int r;

	if (!pp)
		return -ENOMEM;
	time = describe_time(pp->described, p->start, time);
	track.has_uuid = 1;
	track.uuid = pp->uuid;
	track.process = &proc;
	proc.has_pid = 1;
	proc.pid = (int32_t)p->pid;
	proc.process_name = cold(&name, p->name);
	proc.has_start_timestamp_ns = p->start != 0;
	proc.start_timestamp_ns = (int64_t)p->start;
	if (p->execution_id[0]) {
		memcpy(label, "execution ", 10);
		mt_utf8_fix(label + 10, sizeof(label) - 10, p->execution_id, strlen(p->execution_id));
		proc.n_process_labels = 1;
		proc.process_labels = labels;
	}
	r = mt_pf_track_put(pf, &track, time);
	if (r == 0)
		r = put_process_tree(pf, p, time);
	if (r == 0)
		pp->described = true;
	return r;
}

int mt_pf_op_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__ThreadDescriptor thread = PERFETTO__PROTOS__THREAD_DESCRIPTOR__INIT;
	struct pf *pf = pf_of(s);
	struct pf_process *pp = mt_pf_process(pf, t->process);
	struct pf_thread *th = mt_pf_thread(pf, t);
	struct cold_text name;
	int r;

	if (!pp || !th)
		return -ENOMEM;
	track.has_uuid = 1;
	track.uuid = th->uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = pp->uuid;
	track.thread = &thread;
	thread.has_pid = thread.has_tid = 1;
	thread.pid = (int32_t)t->process->pid;
	thread.tid = t->tid;
	if (t->name[0])
		thread.thread_name = cold(&name, t->name);
	r = mt_pf_track_put(pf, &track, describe_time(th->described, t->start, time));
	if (r == 0)
		th->described = true;
	return r;
}

static int put_counter_track(struct pf *pf, uint64_t uuid, uint64_t parent, struct mt_str name, uint64_t time)
{
	Perfetto__Protos__TrackDescriptor track = PERFETTO__PROTOS__TRACK_DESCRIPTOR__INIT;
	Perfetto__Protos__CounterDescriptor counter = PERFETTO__PROTOS__COUNTER_DESCRIPTOR__INIT;
	struct cold_text text;

	track.has_uuid = 1;
	track.uuid = uuid;
	track.has_parent_uuid = 1;
	track.parent_uuid = parent;
	mt_utf8_fix(text.s, sizeof(text.s), name.p, name.len);
	track.name = text.s;
	track.counter = &counter;
	return mt_pf_track_put(pf, &track, time);
}

/* uuid: of a counter whose name varies; 0 = the callsite says which it is. */
static bool counter_is(const struct pf_counter *c, uint32_t site, uint64_t uuid)
{
	return uuid ? c->uuid == uuid : c->site == site;
}

static struct pf_counter *counter_find(struct pf_process *pp, uint32_t site, uint64_t uuid)
{
	if (pp->last_counter < pp->ncounters && counter_is(&pp->counters[pp->last_counter], site, uuid))
		return &pp->counters[pp->last_counter];
	for (uint32_t i = 0; i < pp->ncounters; i++) {
		if (counter_is(&pp->counters[i], site, uuid)) {
			pp->last_counter = i;
			return &pp->counters[i];
		}
	}
	return NULL;
}

static void counter_remember(struct pf_process *pp, uint32_t site, uint64_t uuid)
{
	if (pp->ncounters == PF_MAX_COUNTERS)
		return; /* described again each time, which is harmless */
	if (pp->ncounters == pp->counter_cap) {
		uint32_t cap = pp->counter_cap ? pp->counter_cap * 2 : 8;
		struct pf_counter *v = realloc(pp->counters, cap * sizeof(*v));

		if (!v)
			return;
		pp->counters = v;
		pp->counter_cap = cap;
	}
	pp->last_counter = pp->ncounters;
	pp->counters[pp->ncounters++] = (struct pf_counter){.site = site, .uuid = uuid};
}

uint64_t mt_pf_uuid_of(uint64_t parent, const char *what, uint32_t number)
{
	uint64_t h = hash(0xcbf29ce484222325ull, &parent, sizeof(parent));

	h = hash(h, what, strlen(what));
	return finish_uuid(hash(h, &number, sizeof(number)));
}

static uint64_t counter_uuid(const struct pf_process *pp, struct mt_str name)
{
	return finish_uuid(hash(hash(0xcbf29ce484222325ull, &pp->uuid, sizeof(pp->uuid)), name.p, name.len));
}

/* One track per process and name: callsites of the same name share it, one whose name varies has several. */
int mt_pf_counter_track(struct pf *pf, const struct mt_count *count, uint64_t *ret_uuid)
{
	struct pf_process *pp = mt_pf_process(pf, count->thread->process);
	const struct mt_callsite *cs = count->cs;
	struct mt_str name =
		count->name.p ? count->name : (struct mt_str){cs->name, (uint32_t)strlen(cs->name)};
	uint64_t uuid = 0;
	struct pf_counter *c;
	int r;

	if (!pp)
		return -ENOMEM;
	if (count->name.p)
		uuid = counter_uuid(pp, name);
	c = counter_find(pp, cs->id, uuid);
	if (c) {
		*ret_uuid = c->uuid;
		return 0;
	}
	uuid = counter_uuid(pp, name);
	r = put_counter_track(pf, uuid, pp->uuid, name, count->time);
	if (r < 0)
		return r;
	counter_remember(pp, cs->id, uuid);
	*ret_uuid = uuid;
	return 0;
}
