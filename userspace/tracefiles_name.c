/* SPDX-License-Identifier: BSD-3-Clause */
/* What files and directories of a recording are called: by options, by the program, by its environment. */
#include "tracefiles_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procinfo.h"

/* Whose pid it is: a number is given again when its process is gone. Times of /proc are rounded down to a tick. */
struct whose {
	uint32_t pid;
	uint64_t start;  /* boot-time ns; 0 = whoever has the pid */
	uint64_t before; /* for a parent, whose own start is not known: it was there at this time */
};

static bool is_it(const struct whose *w, const struct mt_proc_stat *st)
{
	uint64_t tick = mt_proc_tick_ns(), start = mt_proc_start_ns(st->start_ticks, tick);

	if (w->before && start > w->before)
		return false;
	return !w->start || mt_proc_start_same(w->start, start, tick);
}

/*
 * A variable of the process's environment at its exec. -ENODATA: it has none, or an empty one. -ESRCH: the
 * process is gone, nobody knows any more.
 */
static int process_variable(const struct whose *w, const char *name, char *value, size_t cap)
{
	struct mt_proc_stat st;
	int proc, dir, err;

	value[0] = 0;
	if (!w->pid)
		return -ESRCH;
	err = mt_proc_open(NULL, &proc);
	if (err)
		return err;
	err = mt_proc_pid(proc, w->pid, &dir); /* from here on the directory is of one process */
	if (!err) {
		err = mt_proc_stat(dir, &st);
		if (err || !is_it(w, &st))
			err = -ESRCH;
		if (!err) {
			err = mt_proc_environ(dir, name, value, cap);
			if (!err && !value[0])
				err = -ENODATA;
			if (err && mt_proc_ended(dir))
				err = -ESRCH; /* its memory goes before it does */
		}
		close(dir);
	}
	close(proc);
	if (err)
		value[0] = 0;
	return err;
}

static void program_name(uint32_t pid, char *name, size_t cap)
{
	struct mt_proc_info *info = malloc(sizeof(*info));
	int proc, dir;

	snprintf(name, cap, "process");
	if (info && !mt_proc_open(NULL, &proc)) {
		if (!mt_proc_pid(proc, pid, &dir)) {
			if (!mt_proc_info(dir, info))
				snprintf(name, cap, "%s", info->name);
			close(dir);
		}
		close(proc);
	}
	free(info);
}

int mt_tracefiles_name(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p, bool again,
		       char *name, size_t cap)
{
	char program[MT_PROC_NAME_MAX], host[256] = "";
	struct mt_name_vars vars = {.pid = pid, .name = program, .hostname = host};
	struct whose w = {pid, p ? p->start : 0, 0};
	size_t pos = 0;
	int err;

	if (p)
		snprintf(program, sizeof(program), "%s", p->name);
	else
		program_name(pid, program, sizeof(program));
	if (t->opts.name) {
		gethostname(host, sizeof(host) - 1);
		err = mt_tracedir_expand(t->opts.name, &vars, name, cap, &pos);
		if (err == -EINVAL) {
			snprintf(t->err->text, sizeof(t->err->text),
				 "--name: unknown sequence at `%s`: %%p, %%n, %%h and %%%% are known",
				 t->opts.name + pos);
			return mt_tracefiles_failed(t, err);
		}
		return err ? mt_tracefiles_explain(t, err, "a trace", "--name: the name is too long") : 0;
	}
	if (p && p->name_given) {
		snprintf(name, cap, "%s", p->name);
		return 0;
	}
	err = process_variable(&w, "HYPERACTOR_PROCESS_NAME", name, cap);
	if (err == -ESRCH && again)
		return err;
	if (err)
		snprintf(name, cap, "%s", program);
	return 0;
}

/* The execution id in the environment of a process that is gone: its parent's, which handed it on. */
static int inherited_id(struct mt_tracefiles *t, const struct mt_process *p, char *buf, size_t cap)
{
	struct whose w = {p->ppid, 0, p->start};
	uint32_t parent = p->ppid;
	int err = process_variable(&w, "HYPERACTOR_EXECUTION_ID", buf, cap);

	if (!err && parent) {
		t->parent = parent;
		snprintf(t->parent_id, sizeof(t->parent_id), "%s", buf);
	} else if (err == -ESRCH && parent && parent == t->parent) {
		snprintf(buf, cap, "%s", t->parent_id);
		err = 0;
	}
	return err;
}

const char *mt_tracefiles_id(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p, char *buf,
			     size_t cap)
{
	struct whose w = {pid, p ? p->start : 0, 0};
	int err;

	if (t->opts.execution_id)
		return t->opts.execution_id;
	if (p && p->execution_id[0])
		return p->execution_id;
	err = process_variable(&w, "HYPERACTOR_EXECUTION_ID", buf, cap);
	if (err == -ESRCH && p)
		err = inherited_id(t, p, buf, cap);
	return err ? t->made_id : buf; /* NULL the first time: tracedir makes one */
}

int mt_tracefiles_dir(struct mt_tracefiles *t, const char *id, struct mt_tracedir **ret_dir)
{
	struct mt_tracedir_opts to = {.user = t->opts.user, .base = t->opts.base, .execution_id = id};
	char clean[MT_TRACEDIR_NAME_MAX + 1];
	struct mt_tracedir_err why = {""};
	uint32_t i;
	int err;

	if (id) {
		mt_tracedir_sanitise(id, strlen(id), clean);
		for (i = 0; i < t->ndirs; i++) {
			if (!strcmp(mt_tracedir_id(t->dirs[i]), clean)) {
				*ret_dir = t->dirs[i];
				return 0;
			}
		}
	}
	if (t->ndirs == MT_TRACEFILES_MAX_DIRS) { /* a program that changes its execution id all the time */
		*ret_dir = t->dirs[0];
		return 0;
	}
	err = mt_tracedir_open(&to, &why, &t->dirs[t->ndirs]);
	if (err)
		return mt_tracefiles_explain(t, err, "a trace", why.text);
	if (!id)
		t->made_id = strdup(mt_tracedir_id(t->dirs[t->ndirs]));
	mt_tracedir_latest(t->dirs[t->ndirs], NULL);
	*ret_dir = t->dirs[t->ndirs++];
	return 0;
}
