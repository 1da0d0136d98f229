/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, forks, execs and ends of threads and processes.
 *
 * When a process dies its threads die first, one by one, and only the last one's record knows the exit
 * status. So an exited thread with open slices stays in a list (dying) for a short time. If its process ends
 * in that time the slices end with the status, else as ended by the thread's end; in both cases at the time
 * the thread exited.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spans_int.h"
#include "strings.h"

int sp_set_text(char **text, const char **pub, struct mt_str v, size_t max)
{
	size_t len = mt_utf8_prefix(v.p, v.len, max);
	char *copy = malloc(3 * len + 1);

	if (!copy)
		return -ENOMEM;
	mt_utf8_fix(copy, 3 * len + 1, v.p, len);
	if (strcmp(copy, *pub) == 0) {
		free(copy);
		return 0;
	}
	free(*text);
	*text = copy;
	*pub = copy;
	return 1;
}

static void thread_changed(struct mt_spans *s, struct sp_thread *t, uint64_t time)
{
	if (t->told && s->sink->ops->thread)
		sp_err(s, s->sink->ops->thread(s->sink, &t->pub, time));
}

static void process_changed(struct mt_spans *s, struct sp_process *p, uint64_t time)
{
	if (p->told && s->sink->ops->process)
		sp_err(s, s->sink->ops->process(s->sink, &p->pub, time));
}

static void set_thread_name(struct mt_spans *s, struct sp_thread *t, struct mt_str name, uint64_t time)
{
	int rc = sp_set_text(&t->name, &t->pub.name, name, SP_MAX_NAME);

	sp_err(s, rc);
	if (rc > 0)
		thread_changed(s, t, time);
}

/* True if it changed. A name of lower rank does not replace one of higher rank, an empty one none. */
static bool set_process_name(struct mt_spans *s, struct sp_process *p, struct mt_str name,
			     enum sp_name_rank rank)
{
	int rc;

	if (name.len == 0 || rank < p->rank)
		return false;
	rc = sp_set_text(&p->name, &p->pub.name, name, SP_MAX_NAME);
	sp_err(s, rc);
	p->rank = rank;
	p->pub.name_given = rank == SP_RANK_PROGRAM;
	return rc > 0;
}

void sp_given_name(struct mt_spans *s, struct sp_thread *t, const struct mt_event *ev,
		   const struct mt_value *v)
{
	struct sp_process *p = t->proc;
	int rc;

	if (v->missing || (v->type != MONTRACE_TYPE_STR && v->type != MONTRACE_TYPE_DEBUG) || v->s.len == 0)
		return;
	if (ev->kind == MT_EV_THREAD_NAME) {
		t->long_name = true;
		set_thread_name(s, t, v->s, ev->time);
	} else if (ev->kind == MT_EV_PROCESS_NAME) {
		if (set_process_name(s, p, v->s, SP_RANK_PROGRAM))
			process_changed(s, p, ev->time);
	} else {
		rc = sp_set_text(&p->execution_id, &p->pub.execution_id, v->s, SP_MAX_NAME);
		sp_err(s, rc);
		if (rc > 0)
			process_changed(s, p, ev->time);
	}
}

void sp_thread_end(struct mt_spans *s, struct sp_thread *t, uint64_t time, enum mt_end_reason reason)
{
	sp_end_all(s, t, t->dying ? t->exit_time : time, reason, 0);
	sp_thread_drop(s, t, time);
}

void sp_process_end(struct mt_spans *s, struct sp_process *p, uint64_t time, enum mt_end_reason reason,
		    uint32_t status)
{
	struct sp_thread *t;

	for (t = p->first; t; t = t->next) {
		if (!t->dying)
			sp_end_all(s, t, time, reason, status);
		else if (reason == MT_END_DETACH)
			sp_end_all(s, t, t->exit_time, MT_END_THREAD, 0);
		else
			sp_end_all(s, t, t->exit_time, reason, status);
	}
	sp_keyed_end_all(s, p, time, reason, status);
	p->pub.end_reason = (uint8_t)reason;
	p->pub.exit_status = status;
	sp_process_drop(s, p, time);
}

void sp_reap(struct mt_spans *s, uint64_t now)
{
	while (s->dying_first && now > s->dying_first->exit_time &&
	       now - s->dying_first->exit_time > SP_DYING_NS)
		sp_thread_end(s, s->dying_first, now, MT_END_THREAD);
}

static void thread_exit(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_thread *t = sp_thread_find(s, ev->tgid, ev->tid);

	if (!t && !(ev->has_seq && ev->seq > 0))
		return;
	t = sp_thread_get(s, ev);
	if (!t)
		return;
	t->exit_time = ev->time < t->last_time ? t->last_time : ev->time;
	if (ev->has_seq && ev->seq > t->next_seq && !t->any_seq)
		sp_lost(s, t, ev->seq - t->next_seq, t->exit_time);
	if (t->depth == 0) {
		sp_thread_end(s, t, t->exit_time, MT_END_THREAD);
		return;
	}
	sp_map_del(s, &s->threads, (uint64_t)ev->tgid << 32 | ev->tid);
	if (s->recent == t)
		s->recent = NULL;
	t->dying = true;
	t->dying_prev = s->dying_last;
	if (s->dying_last)
		s->dying_last->dying_next = t;
	else
		s->dying_first = t;
	s->dying_last = t;
}

static void process_known(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_process *p = sp_process_get(s, ev->tgid, ev->process.start, ev->time);
	bool changed;
	int rc;

	if (!p)
		return;
	changed = p->pub.ppid != ev->process.ppid || p->pub.uid != ev->process.uid;
	p->pub.ppid = ev->process.ppid;
	p->pub.uid = ev->process.uid;
	changed |= set_process_name(s, p, ev->process.name, SP_RANK_KERNEL);
	rc = sp_set_text(&p->cmdline, &p->pub.cmdline, ev->process.cmdline, SP_MAX_CMDLINE);
	sp_err(s, rc);
	if (changed || rc > 0)
		process_changed(s, p, ev->time);
}

/* A child starts as a copy: names are the parent's until it says otherwise. */
static void forked(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_process *parent, *p;

	p = sp_process_get(s, ev->fork.child, ev->fork.child_start, ev->time);
	parent = sp_map_get(s, &s->procs, ev->tgid);
	if (!p || p == parent)
		return;
	p->pub.ppid = ev->tgid;
	if (!parent || p->rank != SP_RANK_NONE)
		return;
	p->pub.uid = parent->pub.uid;
	set_process_name(s, p, sp_str(parent->pub.name, strlen(parent->pub.name)), parent->rank);
	sp_err(s, sp_set_text(&p->cmdline, &p->pub.cmdline,
			      sp_str(parent->pub.cmdline, strlen(parent->pub.cmdline)), SP_MAX_CMDLINE));
	sp_err(s,
	       sp_set_text(&p->execution_id, &p->pub.execution_id,
			   sp_str(parent->pub.execution_id, strlen(parent->pub.execution_id)), SP_MAX_NAME));
	process_changed(s, p, ev->time);
}

/*
 * After an exec one thread is left and has the process's number as its own. If it was another thread that
 * called exec, it goes on counting its hits under the new number; which one it was is known if one is left.
 */
static struct sp_thread *exec_threads(struct mt_spans *s, struct sp_process *p, const struct mt_event *ev)
{
	struct sp_thread *main = sp_thread_find(s, ev->tgid, ev->tgid), *t, *next;
	struct mt_event as_main = {
		.time = ev->time, .tgid = ev->tgid, .tid = ev->tgid, .thread_start = p->start};
	uint64_t seq = 0;
	uint32_t left = 0;

	for (t = p->first; t; t = t->next)
		sp_end_all(s, t, t->dying ? t->exit_time : ev->time, MT_END_EXEC, 0);
	sp_keyed_end_all(s, p, ev->time, MT_END_EXEC, 0);
	for (t = p->first; t; t = next) {
		next = t->next;
		if (t == main)
			continue;
		if (!t->dying) {
			seq = t->next_seq;
			left++;
		}
		sp_thread_drop(s, t, ev->time);
	}
	if (left == 0)
		return main;
	if (main) { /* ends of threads were lost: one of these may have called exec */
		main->any_seq = true;
		return main;
	}
	main = sp_thread_get(s, &as_main);
	if (!main)
		return NULL;
	main->next_seq = left == 1 ? seq : 0;
	main->any_seq = left > 1;
	return main;
}

static void execed(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_process *p = sp_process_get(s, ev->tgid, ev->process.start, ev->time);
	struct sp_thread *t;
	bool changed;

	if (!p)
		return;
	t = exec_threads(s, p, ev);
	sp_spans_forget_all(s, p, true);
	if (t && ev->process.name.len) {
		t->long_name = false;
		set_thread_name(s, t, ev->process.name, ev->time);
	}
	p->rank = SP_RANK_NONE;
	changed = set_process_name(s, p, ev->process.name, SP_RANK_KERNEL);
	if (ev->process.cmdline.len) {
		int rc = sp_set_text(&p->cmdline, &p->pub.cmdline, ev->process.cmdline, SP_MAX_CMDLINE);

		sp_err(s, rc);
		changed |= rc > 0;
	}
	if (ev->process.ppid)
		p->pub.ppid = ev->process.ppid;
	if (changed)
		process_changed(s, p, ev->time);
}

static void renamed(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_thread *t = sp_thread_get(s, ev);

	if (!t)
		return;
	if (!t->long_name)
		set_thread_name(s, t, ev->comm, ev->time);
	if (ev->tid == ev->tgid && set_process_name(s, t->proc, ev->comm, SP_RANK_COMM))
		process_changed(s, t->proc, ev->time);
}

void sp_life(struct mt_spans *s, const struct mt_event *ev)
{
	struct sp_process *p;

	switch (ev->kind) {
	case MT_EV_PROCESS:
		process_known(s, ev);
		break;
	case MT_EV_PROCESS_FORK:
		forked(s, ev);
		break;
	case MT_EV_PROCESS_EXEC:
		execed(s, ev);
		break;
	case MT_EV_THREAD_COMM:
		renamed(s, ev);
		break;
	case MT_EV_THREAD_EXIT:
		thread_exit(s, ev);
		break;
	case MT_EV_PROCESS_EXIT:
	case MT_EV_DETACH:
		p = sp_map_get(s, &s->procs, ev->tgid);
		if (!p)
			break;
		if (ev->kind == MT_EV_DETACH)
			sp_process_end(s, p, ev->time, MT_END_DETACH, 0);
		else
			sp_process_end(s, p, ev->time, MT_END_PROCESS, ev->exit.status);
		break;
	default:
		break;
	}
}
