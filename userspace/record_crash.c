/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deaths: a sink that watches who ends and how, and the report on those that ended badly.
 *
 * What was open is learned from the ends that `spans` tells with MT_END_PROCESS, innermost first, before
 * gone() of the process. A process that ends well leaves nothing.
 */
#include "record_flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "procinfo.h"
#include "timeline_text.h"

#define MAX_DEATHS 100       /* told in one report */
#define OPEN_MAX_BYTES 65536 /* text on what was open in a process */
#define PRINT_LINES 200      /* of a report, on the terminal */
#define PRINT_EVENTS 20      /* of a recording, on the terminal */
#define REPORT_EVENTS 20000  /* in the file */

struct watched {
	struct watched *next, **pprev;
	struct mt_process *p;
	char *env_name; /* HYPERACTOR_PROCESS_NAME, NULL = none */
	char *open;     /* text */
	size_t open_len;
	uint32_t open_tid; /* whose slices came last */
	uint64_t time;     /* of the death */
	bool cut;
};

struct watch {
	struct mt_sink sink;
	struct mt_recorder *m;
	struct watched *first, **end; /* by the time they were heard of */
};

static struct watch *watch_of(struct mt_sink *s)
{
	return (struct watch *)s;
}

static char *environment_name(uint32_t pid)
{
	char value[256] = "";
	int proc, dir;

	if (mt_proc_open(NULL, &proc))
		return NULL;
	if (!mt_proc_pid(proc, pid, &dir)) {
		if (mt_proc_environ(dir, "HYPERACTOR_PROCESS_NAME", value, sizeof(value)))
			value[0] = 0;
		close(dir);
	}
	close(proc);
	return value[0] ? strdup(value) : NULL;
}

static int w_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct watch *w = watch_of(s);
	struct watched *e = p->sink_data;

	(void)time;
	if (e)
		return 0;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->p = p;
	e->env_name = environment_name(p->pid);
	e->pprev = w->end;
	*w->end = e;
	w->end = &e->next;
	p->sink_data = e;
	return 0;
}

static int w_thread(struct mt_sink *s, struct mt_thread *t, uint64_t time)
{
	(void)s;
	(void)t;
	(void)time;
	return 0;
}

static void add_open(struct watched *e, const struct mt_slice_end *end)
{
	char *text = NULL, *more;
	size_t len = 0;
	FILE *f;

	if (e->open_len > OPEN_MAX_BYTES || !(f = open_memstream(&text, &len)))
		return;
	if (!end->thread && e->open_tid != UINT32_MAX) {
		fprintf(f, "  by key\n");
		e->open_tid = UINT32_MAX;
	} else if (end->thread && e->open_tid != end->thread->tid) {
		fprintf(f, "  thread %u ", end->thread->tid);
		tl_safe(f, tl_cstr(end->thread->name));
		fprintf(f, "\n");
		e->open_tid = end->thread->tid;
	}
	fprintf(f, "    ");
	tl_safe(f, end->name);
	if (end->cs && end->cs->file[0]) {
		fprintf(f, "  ");
		tl_safe(f, tl_cstr(end->cs->file));
		fprintf(f, ":%u", end->cs->line);
	}
	fprintf(f, "%s\n", end->in_doubt ? "  (hits were lost since: it may be over)" : "");
	if (fclose(f) || !(more = realloc(e->open, e->open_len + len + 1))) {
		free(text);
		return;
	}
	memcpy(more + e->open_len, text, len + 1);
	e->open = more;
	e->open_len += len;
	free(text);
}

static int w_end(struct mt_sink *s, const struct mt_slice_end *end)
{
	struct watched *e = (end->thread ? end->thread->process : end->process)->sink_data;

	(void)s;
	if (end->reason != MT_END_PROCESS || !e)
		return 0;
	add_open(e, end);
	return 0;
}

static void note_death(struct mt_recorder *m, struct watched *e, uint64_t time)
{
	struct mt_deaths *list = &m->deaths;
	struct mt_death *d;

	if (list->n >= MAX_DEATHS || !(d = calloc(1, sizeof(*d)))) {
		list->untold++;
		return;
	}
	d->pid = e->p->pid;
	d->status = e->p->exit_status;
	d->time = time;
	d->name = strdup(e->p->name);
	d->file_name = strdup(e->p->name_given || !e->env_name ? e->p->name : e->env_name);
	d->execution_id = strdup(e->p->execution_id);
	d->open = e->open;
	e->open = NULL;
	if (!d->name || !d->file_name || !d->execution_id) {
		free(d->name);
		free(d->file_name);
		free(d->execution_id);
		free(d->open);
		free(d);
		list->untold++;
		return;
	}
	*list->end = d;
	list->end = &d->next;
	list->n++;
}

static void drop(struct watch *w, struct watched *e)
{
	*e->pprev = e->next;
	if (e->next)
		e->next->pprev = e->pprev;
	else
		w->end = e->pprev;
	free(e->env_name);
	free(e->open);
	free(e);
}

static int w_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *t, uint64_t time)
{
	struct watch *w = watch_of(s);
	struct watched *e = p ? p->sink_data : NULL;

	if (t || !e)
		return 0;
	if (p->end_reason == MT_END_PROCESS && p->exit_status && !w->m->r->o->no_crash_snapshot)
		note_death(w->m, e, time);
	drop(w, e);
	p->sink_data = NULL;
	return 0;
}

static int w_free(struct mt_sink *s)
{
	struct watch *w = watch_of(s);

	if (!w)
		return 0;
	while (w->first)
		drop(w, w->first);
	w->m->watch = NULL;
	free(w);
	return 0;
}

static const struct mt_sink_ops watch_ops = {
	.process = w_process,
	.thread = w_thread,
	.end = w_end,
	.keyed_end = w_end,
	.gone = w_gone,
	.free = w_free,
};

int mt_recorder_watch_new(struct mt_recorder *m, struct mt_sink **ret_sink)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->sink.ops = &watch_ops;
	w->sink.ignores = MT_IGNORES_ENDS;
	w->m = m;
	w->end = &w->first;
	*ret_sink = &w->sink;
	return 0;
}

const struct mt_process *mt_recorder_first_process(const struct mt_recorder *m, const char **ret_file_name)
{
	const struct watched *e = m->watch ? watch_of(m->watch)->first : NULL;

	if (!e)
		return NULL;
	if (ret_file_name)
		*ret_file_name = e->p->name_given || !e->env_name ? e->p->name : e->env_name;
	return e->p;
}

void mt_recorder_forget_deaths(struct mt_deaths *list)
{
	struct mt_death *d;

	while ((d = list->first)) {
		list->first = d->next;
		free(d->name);
		free(d->file_name);
		free(d->execution_id);
		free(d->open);
		free(d);
	}
	*list = (struct mt_deaths){.end = &list->first};
}

void mt_recorder_take_deaths(struct mt_deaths *from, struct mt_deaths *to)
{
	*to = *from;
	if (!to->first)
		to->end = &to->first;
	*from = (struct mt_deaths){.end = &from->first};
}

void mt_recorder_how(uint32_t status, char *text, size_t cap)
{
	int st = (int)status;

	if (WIFSIGNALED(st))
		snprintf(text, cap, "was killed by signal %d (%s)%s", WTERMSIG(st), strsignal(WTERMSIG(st)),
			 WCOREDUMP(st) ? ", core dumped" : "");
	else
		snprintf(text, cap, "ended with status %d", WEXITSTATUS(st));
}

/* ---- The report ----------------------------------------------------------------------------------- */

struct report {
	struct mt_recorder *m;
	FILE *f;
	const struct mt_death *death;
	uint32_t limit; /* events of a recording */
	uint32_t room;  /* events in all */
};

static int tell_event(void *ctx, const struct mt_recorded *e)
{
	struct report *rp = ctx;
	struct mt_recorded_clock clock = {rp->m->real_minus_boot};
	char *line;
	size_t len;
	int err;

	if (!rp->room)
		return 0;
	err = mt_recorded_text(e, &clock, &line, &len);
	if (err)
		return err;
	fprintf(rp->f, "  %s\n", line);
	free(line);
	rp->room--;
	return 0;
}

static int tell_recording(void *ctx, const struct mt_recording_info *i)
{
	struct report *rp = ctx;
	uint32_t n = i->events < rp->limit ? i->events : rp->limit;

	if (i->pid != rp->death->pid || i->state != MT_RECORDING_FAILED)
		return 0;
	fprintf(rp->f, "recording ");
	tl_safe(rp->f, tl_cstr(i->subject));
	fprintf(rp->f, ": the last %u of %llu event%s\n", n, (unsigned long long)i->next_seq,
		mt_record_plural(i->next_seq));
	return mt_recordings_events(rp->m->recordings, i->id, n, tell_event, rp);
}

static void tell_death(struct report *rp)
{
	const struct mt_death *d = rp->death;
	int64_t wall = (int64_t)d->time + rp->m->real_minus_boot;
	time_t s = (time_t)(wall / 1000000000);
	char how[80], when[40] = "";
	struct tm tm;

	if (localtime_r(&s, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	mt_recorder_how(d->status, how, sizeof(how));
	fprintf(rp->f, "process %u ", d->pid);
	tl_safe(rp->f, tl_cstr(d->name));
	fprintf(rp->f, " %s at %s.%06u\n", how, when, (unsigned)(wall % 1000000000 / 1000));
	if (d->open)
		fprintf(rp->f, "open, innermost first:\n%s", d->open);
	else
		fprintf(rp->f, "no span was open\n");
	mt_recordings_each(rp->m->recordings, NULL, tell_recording, rp);
}

static char *compose(struct mt_recorder *m, const struct mt_deaths *deaths, const char *snapshot,
		     uint32_t limit, uint32_t room)
{
	struct report rp = {.m = m, .limit = limit, .room = room};
	char *text = NULL;
	size_t len;

	rp.f = open_memstream(&text, &len);
	if (!rp.f)
		return NULL;
	for (rp.death = deaths->first; rp.death; rp.death = rp.death->next) {
		tell_death(&rp);
		fprintf(rp.f, "\n");
	}
	if (deaths->untold)
		fprintf(rp.f, "%u more processes ended badly\n", deaths->untold);
	if (snapshot)
		fprintf(rp.f, "snapshot: %s\n", snapshot);
	if (fclose(rp.f)) {
		free(text);
		return NULL;
	}
	return text;
}

void mt_recorder_report_name(const char *snapshot, char *name, size_t cap)
{
	const char *slash = strrchr(snapshot, '/'), *base = slash ? slash + 1 : snapshot;
	size_t len = strlen(base);

	if (len > 8 && !strcmp(base + len - 8, ".pftrace"))
		len -= 8;
	snprintf(name, cap, "%.*s.crash.txt", (int)len, base);
}

/* As complete as the snapshot: a hidden file that gets its name at the end. */
static int write_report(struct mt_tracedir *dir, const char *snapshot, const char *text)
{
	struct mt_tracedir_tmp tmp;
	size_t len = strlen(text);
	char name[300];
	int err, fd;

	err = mt_tracedir_create_tmp(dir, NULL, &tmp, &fd);
	if (err)
		return err;
	mt_recorder_report_name(snapshot, name, sizeof(name));
	while (!err && len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			err = -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
		}
	}
	close(fd);
	if (!err && renameat2(mt_tracedir_fd(dir), tmp.name, mt_tracedir_fd(dir), name, RENAME_NOREPLACE))
		err = -errno;
	if (err)
		mt_tracedir_discard(dir, &tmp);
	return err;
}

static void print(struct mt_log *log, char *text)
{
	char *line, *rest = text;
	uint32_t n = 0;

	while ((line = strsep(&rest, "\n"))) {
		if (++n > PRINT_LINES) {
			mt_log_info(log, "...");
			break;
		}
		if (*line)
			mt_log_info(log, "%s", line);
	}
}

void mt_recorder_report(struct mt_recorder *m, const struct mt_deaths *deaths, struct mt_tracedir *dir,
			const char *snapshot)
{
	char *all = compose(m, deaths, snapshot, UINT32_MAX, REPORT_EVENTS);
	char *brief = compose(m, deaths, NULL, PRINT_EVENTS, UINT32_MAX);
	int err = all && brief ? 0 : -ENOMEM;

	if (!err && dir)
		err = write_report(dir, snapshot, all);
	if (err)
		mt_log_warn(m->r->log, "no crash report: %s", strerror(-err));
	if (brief)
		print(m->r->log, brief);
	free(all);
	free(brief);
}
