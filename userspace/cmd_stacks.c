/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `stacks -p PID` without a tracer: attach, listen for a moment, tell what is open at its end. What was entered
 * before and not since is not known, and that is said. A program without montrace probes is seen by its foreign ones,
 * as record does it.
 */
#include "cmd_control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record_flight.h"
#include "record_usdt.h"
#include "session.h"

struct look {
	const struct mt_options *o;
	struct mt_log *log;
	struct mt_sink *recordings;
	struct mt_record_usdt usdt;
	uint32_t stacks;
	uint64_t events;
};

static int print_line(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	return fwrite(text, 1, len, stdout) == len && putchar('\n') != EOF ? 0 : -EPIPE;
}

static int at_end(void *ctx, struct mt_spans *spans, uint64_t now)
{
	struct look *l = ctx;
	const struct mt_stacks_opts so = {.pid = l->o->pids[0], .json = l->o->json, .now = now};
	int err;

	l->events = mt_spans_stats(spans)->events;
	if (l->o->subject)
		err = mt_record_subject_stacks(spans, l->recordings, l->o->subject, &so, print_line, NULL,
					       &l->stacks);
	else
		err = mt_record_stacks(spans, &so, print_line, NULL, &l->stacks);
	return err ? err : fflush(stdout) ? -EPIPE : 0;
}

/* Adds the process; says no if nothing would be armed. */
static int add(struct look *l, struct mt_session *s, struct mt_session_err *ret_se)
{
	struct mt_attach *a = mt_session_attach(s);
	struct mt_attach_file t;
	int err;

	err = mt_session_add(s, l->o->pids[0], ret_se);
	if (err)
		return err;
	mt_record_usdt_decide(&l->usdt, a);
	mt_attach_total(a, &t);
	if (t.callsites || !l->usdt.automatic)
		return 0;
	snprintf(ret_se->text, sizeof(ret_se->text),
		 "process %u has no montrace probes, and no others that a profile knows; `montrace-bpf list "
		 "-p %u` "
		 "shows what there is for --usdt",
		 l->o->pids[0], l->o->pids[0]);
	return -ENOENT;
}

static int look_at(struct look *l, struct mt_session *s, const struct mt_filter *filter)
{
	struct mt_run_opts ro = {
		.sink = l->recordings,
		.duration_ms = l->o->duration_ms ? l->o->duration_ms : 1000,
		.on_end = at_end,
		.ctx = l,
	};
	struct mt_session_err se = {""};
	enum mt_stop stop;
	int err;

	err = add(l, s, &se);
	if (!err)
		err = mt_session_arm(s, filter, &se);
	if (err) {
		mt_log_error(l->log, "%s", se.text);
		return err;
	}
	mt_record_usdt_tell(&l->usdt, mt_session_attach(s));
	err = mt_session_run(s, &ro, &stop);
	if (err && err != -EPIPE)
		mt_log_error(l->log, "%s", strerror(-err));
	if (err)
		return err;
	mt_log_info(l->log, "process %u: %llu events in %.1f s, %u stack%s%s", l->o->pids[0],
		    (unsigned long long)l->events, (double)ro.duration_ms / 1e3, l->stacks,
		    mt_record_plural(l->stacks),
		    stop == MT_STOP_GONE ? "; it has ended"
					 : "; spans that were entered before are not known");
	return 0;
}

int mt_stacks_attach(const struct mt_options *o, struct mt_log *log)
{
	const struct mt_filter_opts fo = {.mode = MT_MODE_DEV, .directives = o->filter};
	const struct mt_session_opts so = {
		.ring_bytes = o->ring_bytes, .nop5 = o->nop5, .per_site = o->per_site};
	struct look l = {.o = o, .log = log};
	struct mt_filter *filter = NULL;
	struct mt_session *s = NULL;
	struct mt_session_err se;
	const char *why = "";
	size_t pos = 0;
	int err;

	err = mt_filter_new(&fo, &filter, &pos, &why);
	if (err) {
		mt_log_error(log, "--filter: %s at `%s`", why, o->filter ? o->filter + pos : "");
		return 1;
	}
	err = mt_session_open(&so, &s, &se);
	if (err)
		mt_log_error(log, "%s", se.text);
	else
		err = mt_record_usdt_open(&l.usdt, o, log, mt_session_attach(s));
	if (!err)
		err = mt_recordings_new(&(struct mt_recordings_opts){0}, &l.recordings);
	if (!err)
		err = look_at(&l, s, filter);
	if (l.recordings)
		l.recordings->ops->free(l.recordings);
	mt_session_close(s);
	mt_record_usdt_free(&l.usdt);
	mt_filter_free(filter);
	return err ? 1 : 0;
}
