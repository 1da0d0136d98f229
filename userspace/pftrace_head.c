/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Perfetto sink's first and last packets: clocks, trace uuid, system, attributes, totals.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "pftrace_cold.h"

typedef Perfetto__Protos__TraceAttributes__Attribute attribute_t;

int mt_pf_cold_put(struct pf *pf, const packet_t *p)
{
	size_t len = perfetto__protos__trace_packet__get_packed_size(p);
	struct mt_enc e;
	int r;

	r = mt_pf_room(pf);
	if (r < 0)
		return r;
	if (len > PF_PACKET_MAX - 16)
		return -E2BIG;
	e.p = pf->pend + pf->pend_len;
	mt_enc_tag(&e, 1, MT_WT_BYTES);
	mt_enc_varint(&e, len);
	e.p += perfetto__protos__trace_packet__pack(p, e.p);
	pf->pend_len = (size_t)(e.p - pf->pend);
	return 0;
}

int mt_pf_snapshot(struct pf *pf, bool first)
{
	Perfetto__Protos__ClockSnapshot snap = PERFETTO__PROTOS__CLOCK_SNAPSHOT__INIT;
	Perfetto__Protos__ClockSnapshot__Clock c[3], *pc[3] = {&c[0], &c[1], &c[2]};
	struct mt_clocks now = {0};
	packet_t p;

	pf->opts.clocks(pf->opts.clocks_ctx, &now);
	if (!first && (now.boot < pf->snap.boot || now.mono < pf->snap.mono))
		return 0;
	pf->snap = now;
	clock_set(&c[0], CLOCK_BOOT, now.boot);
	clock_set(&c[1], CLOCK_MONO, now.mono);
	clock_set(&c[2], CLOCK_REAL, now.real);
	snap.n_clocks = 3;
	snap.clocks = pc;
	snap.has_primary_trace_clock = 1;
	snap.primary_trace_clock = CLOCK_BOOT;
	packet_init(&p);
	packet_stamp(&p, now.boot);
	p.data_case = DATA(CLOCK_SNAPSHOT);
	p.clock_snapshot = &snap;
	if (first) {
		p.has_sequence_flags = 1;
		p.sequence_flags = SEQ_CLEARED;
		p.has_first_packet_on_sequence = 1;
		p.first_packet_on_sequence = 1;
	}
	return mt_pf_cold_put(pf, &p);
}

static int put_uuid(struct pf *pf)
{
	Perfetto__Protos__TraceUuid uuid = PERFETTO__PROTOS__TRACE_UUID__INIT;
	uint64_t r[2];
	packet_t p;

	if (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return -EIO;
	pf->salt = r[0] ^ r[1];
	uuid.has_msb = uuid.has_lsb = 1;
	uuid.msb = (int64_t)r[0];
	uuid.lsb = (int64_t)r[1];
	packet_init(&p);
	p.data_case = DATA(TRACE_UUID);
	p.trace_uuid = &uuid;
	return mt_pf_cold_put(pf, &p);
}

static int put_system(struct pf *pf)
{
	Perfetto__Protos__SystemInfo info = PERFETTO__PROTOS__SYSTEM_INFO__INIT;
	Perfetto__Protos__Utsname uts = PERFETTO__PROTOS__UTSNAME__INIT;
	struct utsname u;
	packet_t p;
	long v;

	if (uname(&u) == 0) {
		uts.sysname = u.sysname;
		uts.version = u.version;
		uts.release = u.release;
		uts.machine = u.machine;
		info.utsname = &uts;
	}
	v = sysconf(_SC_CLK_TCK);
	info.has_hz = v > 0;
	info.hz = v;
	v = sysconf(_SC_PAGESIZE);
	info.has_page_size = v > 0;
	info.page_size = (uint32_t)v;
	v = sysconf(_SC_NPROCESSORS_CONF);
	info.has_num_cpus = v > 0;
	info.num_cpus = (uint32_t)v;
	packet_init(&p);
	p.data_case = DATA(SYSTEM_INFO);
	p.system_info = &info;
	return mt_pf_cold_put(pf, &p);
}

static int put_attributes(struct pf *pf, attribute_t **attrs, size_t n)
{
	Perfetto__Protos__TraceAttributes all = PERFETTO__PROTOS__TRACE_ATTRIBUTES__INIT;
	packet_t p;

	all.n_attribute = n;
	all.attribute = attrs;
	packet_init(&p);
	p.data_case = DATA(TRACE_ATTRIBUTES);
	p.trace_attributes = &all;
	return mt_pf_cold_put(pf, &p);
}

static void text_attribute(attribute_t *a, const char *key, char *value)
{
	*a = (attribute_t)PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__INIT;
	a->key = (char *)key;
	a->value_case = PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_STRING_VALUE;
	a->string_value = value;
}

/* As /proc has it: 8-4-4-4-12 digits. False if it is not known. */
static bool boot_id_text(const unsigned char id[16], char text[37])
{
	unsigned char any = 0;
	char *p = text;

	for (int i = 0; i < 16; i++) {
		any |= id[i];
		p += sprintf(p, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
	}
	return any != 0;
}

/* Who wrote it, and where: `merge` tells hosts apart by the boot id. */
static int put_origin(struct pf *pf)
{
	attribute_t a[3], *attrs[3] = {&a[0], &a[1], &a[2]};
	struct cold_text version, host;
	char boot[37];
	size_t n = 0;

	text_attribute(&a[n++], "montrace-bpf.version", cold(&version, pf->opts.tool_version));
	if (boot_id_text(pf->boot_id, boot))
		text_attribute(&a[n++], "montrace-bpf.boot_id", boot);
	if (pf->opts.host && pf->opts.host[0])
		text_attribute(&a[n++], "montrace-bpf.host", cold(&host, pf->opts.host));
	return put_attributes(pf, attrs, n);
}

int mt_pf_head(struct pf *pf)
{
	int r;

	r = mt_pf_snapshot(pf, true);
	if (r == 0)
		r = put_uuid(pf);
	if (r == 0)
		r = put_system(pf);
	if (r == 0)
		r = put_origin(pf);
	return r;
}

/* Begins and ends without the other one, of processes that are gone; only what there was. */
static int put_unpaired(struct pf *pf)
{
	const struct {
		const char *key;
		uint64_t n;
	} all[] = {
		{"montrace-bpf.unpaired.stray_ends", pf->unpaired.stray_ends},
		{"montrace-bpf.unpaired.lost_ends", pf->unpaired.lost_ends},
		{"montrace-bpf.unpaired.begun_again", pf->unpaired.again},
		{"montrace-bpf.unpaired.too_many_open", pf->unpaired.forgotten},
		{"montrace-bpf.unpaired.too_deep", pf->unpaired.too_deep},
	};
	attribute_t attr[5], *attrs[5];
	size_t n = 0;

	for (size_t i = 0; i < 5; i++) {
		if (!all[i].n)
			continue;
		attr[n] = (attribute_t)PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__INIT;
		attr[n].key = (char *)(uintptr_t)all[i].key;
		attr[n].value_case = PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_LONG_VALUE;
		attr[n].long_value = (int64_t)all[i].n;
		attrs[n] = &attr[n];
		n++;
	}
	return n ? put_attributes(pf, attrs, n) : 0;
}

/* Totals: how much was lost, in all and by cause; then the mark of a complete trace. */
int mt_pf_tail(struct pf *pf)
{
	Perfetto__Protos__TraceStats stats = PERFETTO__PROTOS__TRACE_STATS__INIT;
	attribute_t attr[PF_CAUSES + 1], *attrs[PF_CAUSES + 1];
	char keys[PF_CAUSES + 1][64];
	packet_t p;
	int r;

	for (uint32_t i = 0; i <= pf->ncauses; i++) {
		attr[i] = (attribute_t)PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__INIT;
		attrs[i] = &attr[i];
		snprintf(keys[i], sizeof(keys[i]), "montrace-bpf.lost%s%s", i ? "." : "",
			 i ? pf->causes[i - 1].cause : "");
		attr[i].key = keys[i];
		attr[i].value_case = PERFETTO__PROTOS__TRACE_ATTRIBUTES__ATTRIBUTE__VALUE_LONG_VALUE;
		attr[i].long_value = (int64_t)(i ? pf->causes[i - 1].count : pf->lost);
	}
	r = put_attributes(pf, attrs, pf->ncauses + 1);
	if (r == 0)
		r = put_unpaired(pf);
	if (r < 0)
		return r;
	stats.has_final_flush_outcome = 1;
	stats.final_flush_outcome = PERFETTO__PROTOS__TRACE_STATS__FINAL_FLUSH_OUTCOME__FINAL_FLUSH_SUCCEEDED;
	packet_init(&p);
	packet_stamp(&p, pf->snap.boot);
	p.data_case = DATA(TRACE_STATS);
	p.trace_stats = &stats;
	return mt_pf_cold_put(pf, &p);
}
