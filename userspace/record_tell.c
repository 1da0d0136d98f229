/* SPDX-License-Identifier: BSD-3-Clause */
#include "record_flight.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shared.h"

static int tell_file(void *ctx, const struct mt_attach_file *f)
{
	struct record *r = ctx;

	mt_log_debug(r->log,
		     "%s: %u of %u callsites armed%s, %u filtered by mode, %u by directives, %u failed%s%s",
		     f->path, f->armed, f->callsites, f->nop5 ? " (5-byte nops)" : "", f->by_mode,
		     f->by_directive, f->failed, f->failed ? ": " : "", f->failed ? strerror(-f->error) : "");
	if (f->armed && f->writable)
		mt_log_warn(r->log,
			    "%s: code of it is mapped writable or shared; the kernel puts no probes there",
			    f->path);
	if (f->guarded && f->copies > 1)
		mt_log_warn(r->log,
			    "%s is mapped %u times in a process: the kernel raises semaphores in one of "
			    "them; probes "
			    "with semaphores are silent in the others",
			    f->path, f->copies);
	return 0;
}

/* "process 7", "processes 7 and others", "command make", ... */
static void describe(const struct record *r, char *text, size_t cap)
{
	const struct mt_options *o = r->o;
	uint32_t n = mt_session_ntargets(r->session);

	if (o->argv)
		snprintf(text, cap, "%s (process %u)", o->argv[0], r->child);
	else if (n == 1 && o->npids)
		snprintf(text, cap, "process %u", o->pids[0]);
	else
		snprintf(text, cap, "%u process%s", n, n == 1 ? "" : "es");
}

void mt_record_tell_widened(struct record *r)
{
	mt_log_info(r->log, "no callsite is user-facing: tracing all of them (-m dev, -m user to choose)");
}

void mt_record_tell_attached(struct record *r)
{
	struct mt_attach *a = mt_session_attach(r->session);
	struct mt_tracefiles_stats fs = {.path = ""};
	char who[300], spec[MT_FLIGHT_SPEC_TEXT];
	struct mt_attach_file t;

	mt_attach_total(a, &t);
	if (r->sink)
		mt_tracefiles_stats(r->sink, &fs);
	describe(r, who, sizeof(who));
	if (r->widened)
		mt_record_tell_widened(r);
	r->attached = true;
	mt_log_info(r->log, "%s: %u of %u callsite%s armed%s%s%s", who, t.armed, t.callsites,
		    mt_record_plural(t.callsites), r->o->duration_ms || r->o->argv ? "" : "; Ctrl-C ends",
		    fs.path[0] ? "; writing " : "", fs.path);
	if (r->o->flight)
		mt_log_info(r->log,
			    "flight recorder: the last %s are kept, nothing is written until a snapshot",
			    mt_flight_spec_text(&r->o->flight_spec, spec));
	mt_record_usdt_tell(&r->usdt, mt_session_attach(r->session));
	if (t.failed)
		mt_log_warn(r->log, "%u callsite%s could not be armed (%s); -v lists them", t.failed,
			    mt_record_plural(t.failed), strerror(-t.error));
	mt_attach_each(a, tell_file, r);
}

static void human_size(uint64_t n, char *text, size_t cap)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 1024 && u < 4; u++)
		v /= 1024;
	snprintf(text, cap, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

void mt_record_progress(void *ctx, const struct mt_session_stats *st)
{
	struct record *r = ctx;
	uint64_t now = mt_record_clock_ns(CLOCK_MONOTONIC), events = st->spans->events;
	double seconds = (double)(now - r->last_time) / 1e9;
	struct mt_tracefiles_stats fs = {.bytes = 0};
	char size[40] = "flight recorder";

	if (r->sink) {
		mt_tracefiles_stats(r->sink, &fs);
		human_size(fs.bytes, size, sizeof(size));
	}
	mt_log_progress(r->log, "%.0f events/s, %llu spans, %llu lost, %s",
			r->last_time && seconds > 0 ? (double)(events - r->last_events) / seconds : 0.0,
			(unsigned long long)st->spans->spans, (unsigned long long)st->lost_total, size);
	r->last_events = events;
	r->last_time = now;
}

static void tell_losses(struct record *r, const struct mt_session_stats *st)
{
	static const struct {
		int cause;
		const char *what;
	} causes[] = {
		{MT_LOST_RING, "the ring was full: a larger --ring or a narrower --filter helps"},
		{MT_LOST_READ, "records that could not be read"},
		{MT_LOST_SIZE, "records of impossible size"},
		{MT_LOST_STATE, "no kernel memory for a thread's state"},
		{MT_LOST_LIFE, "life records (fork, exec, exit, names), not events"},
	};
	unsigned i;

	for (i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (st->lost[causes[i].cause])
			mt_log_warn(r->log, "lost %llu: %s", (unsigned long long)st->lost[causes[i].cause],
				    causes[i].what);
	if (st->spans->too_deep)
		mt_log_warn(r->log, "%llu span%s nested too deep, not in the trace",
			    (unsigned long long)st->spans->too_deep, mt_record_plural(st->spans->too_deep));
	if (st->decode->malformed)
		mt_log_warn(r->log, "%llu malformed records dropped",
			    (unsigned long long)st->decode->malformed);
	if (st->decode->unknown)
		mt_log_warn(r->log,
			    "%llu records of unknown kinds dropped: the program's montrace.h is newer than "
			    "this tool",
			    (unsigned long long)st->decode->unknown);
}

void mt_record_tell_end(struct record *r, const struct mt_session_stats *st,
			const struct mt_tracefiles_stats *fs)
{
	char size[32], where[4400], files[48] = "";
	uint32_t n = r->recorder->written;

	if (fs->files > 1)
		snprintf(files, sizeof(files), " (%u files)", fs->files);
	human_size(fs->bytes, size, sizeof(size));
	if (r->o->flight)
		snprintf(where, sizeof(where), "%u snapshot%s%s%s", n, mt_record_plural(n),
			 n ? ", the last one is " : "", r->recorder->last_path);
	else if (fs->path[0])
		snprintf(where, sizeof(where), "%s in %s%s", size, fs->path, files);
	else
		snprintf(where, sizeof(where), "no file: nobody fired");
	tell_losses(r, st);
	mt_log_info(r->log, "%llu span%s, %llu event%s, %llu thread%s, %llu lost, %s",
		    (unsigned long long)st->spans->spans, mt_record_plural(st->spans->spans),
		    (unsigned long long)st->spans->instants, mt_record_plural(st->spans->instants),
		    (unsigned long long)st->spans->threads, mt_record_plural(st->spans->threads),
		    (unsigned long long)(st->lost_total + st->decode->malformed + st->decode->unknown),
		    where);
	mt_log_debug(r->log,
		     "%llu hits delivered, %llu slices, %llu counter values, %llu loop wake-ups, %llu enters "
		     "of unseen "
		     "spans, %llu stray exits, %llu reordered exits, %llu lost ends, %llu keys begun again, "
		     "%llu spans "
		     "ended for too many open",
		     (unsigned long long)st->spans->delivered, (unsigned long long)st->spans->slices,
		     (unsigned long long)st->spans->counters, (unsigned long long)st->wakeups,
		     (unsigned long long)st->spans->unseen_enters, (unsigned long long)st->spans->stray_exits,
		     (unsigned long long)st->spans->reordered, (unsigned long long)st->spans->lost_ends,
		     (unsigned long long)st->spans->keyed_again,
		     (unsigned long long)st->spans->keyed_forgotten);
	mt_log_debug(r->log, "attached in %.1f ms, detached in %.1f ms", (double)r->attach_ns / 1e6,
		     (double)st->detach_ns / 1e6);
}
