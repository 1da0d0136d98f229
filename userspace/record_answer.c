/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to tail, stacks, snapshot and status. Each is made at once, but for a tail that follows. */
#include "record_flight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procinfo.h"
#include "timeline_text.h"

#define STATUS_PIDS 1000

static int send_line(void *ctx, const char *text, size_t len)
{
	return mt_control_line(ctx, text, len);
}

static int stacks(struct mt_recorder *m, struct mt_control_conn *c, const struct mt_control_req *req)
{
	const struct mt_stacks_opts o = {
		.pid = req->pid, .json = req->json, .now = mt_record_clock_ns(CLOCK_BOOTTIME)};
	char text[80];
	uint32_t n;
	int err;

	if (req->pid && !mt_session_is_target(m->r->session, req->pid)) {
		snprintf(text, sizeof(text), "process %u is not traced", req->pid);
		mt_control_fail(c, text);
		return 0;
	}
	if (req->subject[0])
		err = mt_record_subject_stacks(m->spans, m->recordings, req->subject, &o, send_line, c, &n);
	else
		err = mt_record_stacks(m->spans, &o, send_line, c, &n);
	if (!err && !n && !req->json) {
		snprintf(text, sizeof(text), "no span is open");
		err = mt_control_line(c, text, strlen(text));
	}
	if (!err)
		mt_control_done(c);
	return err;
}

/* ---- snapshot ------------------------------------------------------------------------------------- */

static void put_snapshot(FILE *f, const struct mt_snapshot *snap, bool json)
{
	if (json) {
		fprintf(f, "{");
		if (snap->path[0]) {
			fprintf(f, "\"path\":");
			tl_json_string(f, tl_cstr(snap->path));
			fprintf(f, ",");
		}
		fprintf(f, "\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"span_ns\":%" PRIu64 "}",
			snap->events, snap->bytes, snap->span_ns);
		return;
	}
	if (snap->path[0]) {
		tl_safe(f, tl_cstr(snap->path));
		fprintf(f, ": ");
	}
	fprintf(f, "%" PRIu64 " events of %.1f s, %" PRIu64 " bytes", snap->events,
		(double)snap->span_ns / 1e9, snap->bytes);
}

void mt_recorder_answer_snapshot(const struct mt_asked *asked, const struct mt_snapshot *snap, int err,
				 const char *why)
{
	struct mt_control_conn *c = asked->conn;
	char *text = NULL;
	size_t len;
	FILE *f;

	if (err) {
		mt_control_fail(c, why);
		return;
	}
	f = open_memstream(&text, &len);
	if (f)
		put_snapshot(f, snap, asked->json);
	if (f && !fclose(f))
		mt_control_line(c, text, len);
	free(text);
	mt_control_done(c);
}

static int snapshot(struct mt_recorder *m, struct mt_control_conn *c, const struct mt_control_req *req)
{
	struct mt_asked asked = {.conn = c,
				 .json = req->json,
				 .fd = mt_control_take_fd(c),
				 .time = mt_record_clock_ns(CLOCK_BOOTTIME)};
	int err = 0;

	if (m->flight)
		err = mt_recorder_ask(m, &asked);
	else
		mt_control_fail(c, "there is no flight recorder: this tracer writes all to its file (-F)");
	if ((!m->flight || err) && asked.fd >= 0)
		close(asked.fd);
	return err;
}

/* ---- status --------------------------------------------------------------------------------------- */

struct status {
	struct mt_session_stats session;
	struct mt_attach_file sites;
	struct mt_flight_stats flight;
	struct mt_recordings_stats recordings;
	struct mt_trigger_stats triggers;
	uint32_t npids, pids[STATUS_PIDS];
	uint64_t resident; /* bytes */
	uint64_t lost;
};

static uint64_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%lu %lu", &size, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void collect(struct mt_recorder *m, struct status *st)
{
	mt_session_stats(m->r->session, &st->session);
	mt_attach_total(mt_session_attach(m->r->session), &st->sites);
	if (m->flight)
		mt_flight_stats(m->flight, &st->flight);
	mt_recordings_stats(m->recordings, &st->recordings);
	if (m->triggers)
		mt_trigger_sink_stats(m->triggers, &st->triggers);
	st->npids = mt_session_targets(m->r->session, st->pids, STATUS_PIDS);
	st->resident = resident();
	st->lost = st->session.lost_total + st->session.decode->malformed + st->session.decode->unknown;
}

static void comm(uint32_t pid, char *name, size_t cap)
{
	struct mt_proc_stat stat;
	int proc, dir;

	snprintf(name, cap, "?");
	if (mt_proc_open(NULL, &proc))
		return;
	if (!mt_proc_pid(proc, pid, &dir)) {
		if (!mt_proc_stat(dir, &stat))
			snprintf(name, cap, "%s", stat.comm);
		close(dir);
	}
	close(proc);
}

static void json_targets(FILE *f, const struct status *st)
{
	char name[MT_PROC_NAME_MAX];
	uint32_t i;

	fprintf(f, ",\"targets\":[");
	for (i = 0; i < st->npids; i++) {
		comm(st->pids[i], name, sizeof(name));
		fprintf(f, "%s{\"pid\":%u,\"name\":", i ? "," : "", st->pids[i]);
		tl_json_string(f, tl_cstr(name));
		fprintf(f, "}");
	}
	fprintf(f, "],\"targets_alive\":%u,\"targets_ever\":%u", st->session.targets,
		st->session.targets_ever);
}

static void json_window(FILE *f, const struct mt_recorder *m, const struct status *st)
{
	const struct mt_flight_spec *spec = &m->r->o->flight_spec;

	fprintf(f,
		",\"window\":{\"limit_ns\":%" PRIu64 ",\"limit_events\":%" PRIu64 ",\"limit_bytes\":%" PRIu64
		",\"events\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"span_ns\":%" PRIu64 ",\"evicted\":%" PRIu64
		",\"skipped\":%" PRIu64 ",\"memory\":%" PRIu64 "}",
		spec->time_ns, spec->events, spec->bytes, st->flight.events, st->flight.bytes,
		st->flight.to - st->flight.from, st->flight.evicted, st->flight.skipped, st->flight.memory);
	fprintf(f,
		",\"snapshots\":{\"written\":%u,\"failed\":%u,\"triggers_met\":%" PRIu64
		",\"triggers_suppressed\":%" PRIu64 ",\"pending\":%s",
		m->written, m->failed, st->triggers.fired, m->policy.suppressed,
		m->policy.pending ? "true" : "false");
	if (m->last_path[0]) {
		fprintf(f, ",\"last\":");
		tl_json_string(f, tl_cstr(m->last_path));
	}
	fprintf(f, "}");
}

static void status_json(FILE *f, const struct mt_recorder *m, const struct status *st)
{
	const struct mt_spans_stats *sp = st->session.spans;

	fprintf(f, "{\"tracer\":%d,\"flight_recorder\":%s", (int)getpid(), m->flight ? "true" : "false");
	json_targets(f, st);
	fprintf(f, ",\"callsites\":%u,\"armed\":%u", st->sites.callsites, st->sites.armed);
	fprintf(f,
		",\"events\":%" PRIu64 ",\"events_per_second\":%.0f,\"spans\":%" PRIu64 ",\"lost\":%" PRIu64,
		sp ? sp->events : 0, m->rate, sp ? sp->spans : 0, st->lost);
	fprintf(f,
		",\"unpaired\":{\"stray_ends\":%" PRIu64 ",\"lost_ends\":%" PRIu64 ",\"begun_again\":%" PRIu64
		",\"too_many_open\":%" PRIu64 ",\"too_deep\":%" PRIu64 "}",
		sp ? sp->stray_exits : 0, sp ? sp->lost_ends : 0, sp ? sp->keyed_again : 0,
		sp ? sp->keyed_forgotten : 0, sp ? sp->too_deep : 0);
	if (m->flight)
		json_window(f, m, st);
	fprintf(f,
		",\"recordings\":{\"live\":%u,\"kept\":%u,\"events\":%" PRIu64 ",\"bytes\":%" PRIu64
		",\"refused\":%" PRIu64 "}",
		st->recordings.live, st->recordings.kept, st->recordings.events, st->recordings.bytes,
		st->recordings.refused);
	fprintf(f, ",\"resident_bytes\":%" PRIu64 ",\"ring_bytes\":%" PRIu64 "}\n", st->resident,
		st->session.ring_bytes);
}

static void text_targets(FILE *f, const struct status *st)
{
	char name[MT_PROC_NAME_MAX];
	uint32_t i;

	fprintf(f, "targets     %u", st->session.targets);
	for (i = 0; i < st->npids && i < 8; i++) {
		comm(st->pids[i], name, sizeof(name));
		fprintf(f, "%s%u ", i ? ", " : ": ", st->pids[i]);
		tl_safe(f, tl_cstr(name));
	}
	fprintf(f, "%s\n", i < st->session.targets ? ", ..." : "");
}

static void text_window(FILE *f, const struct mt_recorder *m, const struct status *st)
{
	char spec[MT_FLIGHT_SPEC_TEXT];

	fprintf(f, "window      %" PRIu64 " events of %.1f s, %.1f MiB (limits %s), %" PRIu64 " have left\n",
		st->flight.events, (double)(st->flight.to - st->flight.from) / 1e9,
		(double)st->flight.bytes / (1 << 20), mt_flight_spec_text(&m->r->o->flight_spec, spec),
		st->flight.evicted);
	fprintf(f, "snapshots   %u written, %u failed; triggers met %" PRIu64 " times%s\n", m->written,
		m->failed, st->triggers.fired, m->policy.pending ? ", one snapshot to come" : "");
	if (m->last_path[0]) {
		fprintf(f, "last        ");
		tl_safe(f, tl_cstr(m->last_path));
		fprintf(f, "\n");
	}
}

static void status_text(FILE *f, const struct mt_recorder *m, const struct status *st)
{
	const struct mt_spans_stats *sp = st->session.spans;

	fprintf(f, "tracer      %d, %s\n", (int)getpid(),
		m->flight ? "flight recorder" : "writes all to files");
	text_targets(f, st);
	fprintf(f, "callsites   %u of %u armed\n", st->sites.armed, st->sites.callsites);
	fprintf(f, "events      %" PRIu64 ", %.0f/s, %" PRIu64 " spans\n", sp ? sp->events : 0, m->rate,
		sp ? sp->spans : 0);
	fprintf(f, "lost        %" PRIu64 "\n", st->lost);
	fprintf(f,
		"unpaired    %" PRIu64 " stray ends, %" PRIu64 " lost ends, %" PRIu64 " begun again, %" PRIu64
		" ended for too many open, %" PRIu64 " too deep\n",
		sp ? sp->stray_exits : 0, sp ? sp->lost_ends : 0, sp ? sp->keyed_again : 0,
		sp ? sp->keyed_forgotten : 0, sp ? sp->too_deep : 0);
	if (m->flight)
		text_window(f, m, st);
	fprintf(f, "recordings  %u live, %u kept, %" PRIu64 " events recorded\n", st->recordings.live,
		st->recordings.kept, st->recordings.events);
	fprintf(f, "memory      %.1f MiB resident", (double)st->resident / (1 << 20));
	if (m->flight)
		fprintf(f, ", %.1f MiB of it the window", (double)st->flight.memory / (1 << 20));
	fprintf(f, "; ring %.1f MiB\n", (double)st->session.ring_bytes / (1 << 20));
}

static int send_lines(struct mt_control_conn *c, const char *text)
{
	const char *nl;
	int err = 0;

	for (; !err && (nl = strchr(text, '\n')); text = nl + 1)
		err = mt_control_line(c, text, (size_t)(nl - text));
	return err;
}

static int status(struct mt_recorder *m, struct mt_control_conn *c, bool json)
{
	struct status *st = calloc(1, sizeof(*st));
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int err = -ENOMEM;

	if (st && f) {
		collect(m, st);
		(json ? status_json : status_text)(f, m, st);
	}
	if (f && !fclose(f) && st)
		err = send_lines(c, text);
	if (!err)
		mt_control_done(c);
	free(text);
	free(st);
	return err;
}

/* ---- The handler ---------------------------------------------------------------------------------- */

static int request(void *ctx, struct mt_control_conn *c, const struct mt_control_req *req)
{
	struct mt_recorder *m = ctx;

	switch (req->verb) {
	case MT_CONTROL_TAIL:
		return m->tail ? mt_control_tail_request(m->tail, c, req) : -ESHUTDOWN;
	case MT_CONTROL_STACKS:
		return m->spans ? stacks(m, c, req) : -EAGAIN;
	case MT_CONTROL_SNAPSHOT:
		return m->spans ? snapshot(m, c, req) : -EAGAIN;
	case MT_CONTROL_STATUS:
		return status(m, c, req->json);
	}
	return -EINVAL;
}

static void gone(void *ctx, struct mt_control_conn *c)
{
	struct mt_recorder *m = ctx;

	if (m->tail)
		mt_control_tail_gone(m->tail, c);
	mt_recorder_asker_gone(m, c);
}

const struct mt_control_ops mt_recorder_control_ops = {.request = request, .gone = gone};
