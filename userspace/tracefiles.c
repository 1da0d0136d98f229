/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idea: a router. process() finds or creates the process's file, which is a pftrace sink on an out; all
 * other calls go to the file of their process. mt_process.file_data is the link.
 *
 * Example: -p 7 with no other option. expect(7) opens <dir>/executions/<id>/app.pftrace. The program says its
 * name is `proc 3 @ host`: process() comes again with name_given, the file becomes `proc 3 @ host.pftrace`.
 * Process 7 ends: gone() writes the closing packets and closes.
 *
 * Not here: what is in the files (pftrace), how directories are kept safe (tracedir).
 */
#include "tracefiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "procinfo.h"

#define MAX_DIRS 64 /* execution ids in one recording */

struct file {
	struct file *next;
	struct mt_sink *sink;
	struct mt_out *out;
	struct mt_tracedir *dir; /* NULL: -o */
	char *path;
	char *base_name;            /* unsanitised; what the file is named after */
	uint32_t pid;               /* whose, or whose it will be; 0 = of all */
	struct mt_process *process; /* once it was heard of */
	uint64_t opened;            /* ns */
};

struct tracefiles {
	struct mt_sink base;
	struct mt_tracefiles_opts opts;
	struct mt_pftrace_opts pftrace;
	struct mt_tracefiles_err *err;
	struct mt_tracedir *dirs[MAX_DIRS];
	uint32_t ndirs;
	char *made_id; /* execution id made for this recording */
	/* of the parent asked last: siblings tend to come together, the last one may come when it is gone */
	char parent_id[MT_TRACEDIR_NAME_MAX + 1];
	uint32_t parent;
	struct file *files;
	struct file *common; /* of all */
	char *first_path;
	char *where;
	uint64_t closed_bytes;
	uint32_t created;
	uint32_t parts; /* of the common file */
	bool rotating;  /* the common file is to be replaced by the next part */
	int error;
};

static struct tracefiles *self(struct mt_sink *s)
{
	return (struct tracefiles *)s;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int failed(struct tracefiles *t, int err)
{
	if (err && !t->error)
		t->error = err;
	return err;
}

static int explain(struct tracefiles *t, int err, const char *what, const char *why)
{
	if (!t->err->text[0])
		snprintf(t->err->text, sizeof(t->err->text), "cannot create %.300s: %.300s", what,
			 why && *why ? why : strerror(-err));
	return failed(t, err);
}

/* ---- Names ---------------------------------------------------------------------------------------- */

/*
 * A variable of the process's environment at its exec. -ENODATA: it has none, or an empty one. -ESRCH: the
 * process is gone, nobody knows any more.
 */
static int process_variable(uint32_t pid, const char *name, char *value, size_t cap)
{
	struct mt_proc_stat st;
	int proc, dir, err;

	value[0] = 0;
	if (!pid)
		return -ESRCH;
	err = mt_proc_open(NULL, &proc);
	if (err)
		return err;
	err = mt_proc_pid(proc, pid, &dir);
	if (!err) {
		err = mt_proc_environ(dir, name, value, cap);
		if (!err && !value[0])
			err = -ENODATA;
		if (err && (mt_proc_stat(dir, &st) || st.state == 'Z' || st.state == 'X'))
			err = -ESRCH; /* its memory goes before it does */
		close(dir);
	}
	close(proc);
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

/* p NULL: the process is not traced yet, ask /proc. -ESRCH, with `again`: what it is named after is gone. */
static int file_name(struct tracefiles *t, uint32_t pid, const struct mt_process *p, bool again, char *name,
		     size_t cap)
{
	char program[MT_PROC_NAME_MAX], host[256] = "";
	struct mt_name_vars vars = {.pid = pid, .name = program, .hostname = host};
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
			return failed(t, err);
		}
		return err ? explain(t, err, "a trace", "--name: the name is too long") : 0;
	}
	if (p && p->name_given) {
		snprintf(name, cap, "%s", p->name);
		return 0;
	}
	err = process_variable(pid, "HYPERACTOR_PROCESS_NAME", name, cap);
	if (err == -ESRCH && again)
		return err;
	if (err)
		snprintf(name, cap, "%s", program);
	return 0;
}

/* The execution id in the environment of a process that is gone: its parent's, which handed it on. */
static int inherited_id(struct tracefiles *t, uint32_t parent, char *buf, size_t cap)
{
	int err = process_variable(parent, "HYPERACTOR_EXECUTION_ID", buf, cap);

	if (!err && parent) {
		t->parent = parent;
		snprintf(t->parent_id, sizeof(t->parent_id), "%s", buf);
	} else if (err == -ESRCH && parent && parent == t->parent) {
		snprintf(buf, cap, "%s", t->parent_id);
		err = 0;
	}
	return err;
}

/* NULL: it has none, one is made. */
static const char *execution_id(struct tracefiles *t, uint32_t pid, const struct mt_process *p, char *buf,
				size_t cap)
{
	int err;

	if (t->opts.execution_id)
		return t->opts.execution_id;
	if (p && p->execution_id[0])
		return p->execution_id;
	err = process_variable(pid, "HYPERACTOR_EXECUTION_ID", buf, cap);
	if (err == -ESRCH && p)
		err = inherited_id(t, p->ppid, buf, cap);
	return err ? t->made_id : buf; /* NULL the first time: tracedir makes one */
}

static int directory(struct tracefiles *t, const char *id, struct mt_tracedir **ret_dir)
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
	if (t->ndirs == MAX_DIRS) { /* a program that changes its execution id all the time */
		*ret_dir = t->dirs[0];
		return 0;
	}
	err = mt_tracedir_open(&to, &why, &t->dirs[t->ndirs]);
	if (err)
		return explain(t, err, "a trace", why.text);
	if (!id)
		t->made_id = strdup(mt_tracedir_id(t->dirs[t->ndirs]));
	mt_tracedir_latest(t->dirs[t->ndirs], NULL);
	*ret_dir = t->dirs[t->ndirs++];
	return 0;
}

/* ---- Opening and closing -------------------------------------------------------------------------- */

static int start_file(struct tracefiles *t, struct file *f, int fd)
{
	int err = mt_out_fd(fd, 0, &f->out);

	if (err) {
		close(fd);
		return err;
	}
	err = mt_pftrace_new(&t->pftrace, f->out, &f->sink);
	if (err) {
		mt_out_close(f->out);
		return err;
	}
	f->opened = now_ns();
	f->next = t->files;
	t->files = f;
	t->created++;
	if (!t->first_path)
		t->first_path = strdup(f->path);
	return 0;
}

static void free_file(struct file *f)
{
	free(f->path);
	free(f->base_name);
	free(f);
}

static int create_named(struct tracefiles *t, const char *path, int *ret_fd)
{
	int err;

	if (!strcmp(path, "-")) {
		*ret_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? explain(t, -errno, "standard output", NULL) : 0;
	}
	err = mt_out_create(AT_FDCWD, path, ret_fd);
	if (err == -EEXIST) {
		snprintf(t->err->text, sizeof(t->err->text),
			 "%.500s exists: traces are never overwritten; remove it or choose another name",
			 path);
		return failed(t, err);
	}
	if (err)
		return explain(t, err, path, NULL);
	if (geteuid() == 0 && fchown(*ret_fd, t->opts.user->uid, t->opts.user->gid) && errno != EPERM)
		return explain(t, -errno, path, NULL);
	return 0;
}

/* Part 1 of -o t.pftrace is t.pftrace, part 2 t.part-002.pftrace; the same in the trace directory. */
static void part_name(const char *name, uint32_t part, char *out, size_t cap)
{
	const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
	size_t stem = dot && (!slash || dot > slash + 1) && dot != name ? (size_t)(dot - name) : strlen(name);

	if (part < 2)
		snprintf(out, cap, "%s", name);
	else
		snprintf(out, cap, "%.*s.part-%03u%s", (int)stem, name, part, name + stem);
}

static int open_output(struct tracefiles *t, struct file **ret_file)
{
	struct file *f = calloc(1, sizeof(*f));
	char name[4096];
	int fd, err;

	if (!f)
		return -ENOMEM;
	part_name(t->opts.output, ++t->parts, name, sizeof(name));
	err = create_named(t, name, &fd);
	if (!err) {
		f->path = strdup(strcmp(name, "-") ? name : "standard output");
		f->base_name = strdup(name);
		err = f->path && f->base_name ? start_file(t, f, fd) : -ENOMEM;
	}
	if (err)
		free_file(f);
	else
		*ret_file = f;
	return failed(t, err);
}

static int open_in_dir(struct tracefiles *t, uint32_t pid, const struct mt_process *p, uint32_t part,
		       struct file **ret_file)
{
	char name[4096], numbered[4200], id[4096];
	struct mt_tracedir_err why = {""};
	struct file *f = calloc(1, sizeof(*f));
	int fd, err;

	if (!f)
		return -ENOMEM;
	err = file_name(t, pid, p, false, name, sizeof(name));
	if (!err)
		err = directory(t, execution_id(t, pid, p, id, sizeof(id)), &f->dir);
	if (err)
		goto out;
	snprintf(numbered, sizeof(numbered), part > 1 ? "%s.part-%03u" : "%s", name, part);
	err = mt_tracedir_create_for(f->dir, numbered, pid, &why, &fd, &f->path);
	if (err) {
		explain(t, err, "a trace", why.text);
		goto out;
	}
	f->base_name = strdup(name);
	f->pid = pid;
	err = f->base_name ? start_file(t, f, fd) : -ENOMEM;
	if (!err) {
		free(t->where);
		t->where = strdup(mt_tracedir_path(f->dir));
	}
out:
	if (err)
		free_file(f);
	else
		*ret_file = f;
	return failed(t, err);
}

static int close_file(struct tracefiles *t, struct file *f)
{
	struct file **at = &t->files;
	int err, flushed;

	flushed = f->sink->ops->flush ? f->sink->ops->flush(f->sink, now_ns()) : 0;
	t->closed_bytes += f->out->bytes;
	err = f->sink->ops->free(f->sink);
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	if (t->common == f)
		t->common = NULL;
	free_file(f);
	return failed(t, flushed ? flushed : err);
}

int mt_tracefiles_expect(struct mt_sink *sink, uint32_t pid)
{
	struct tracefiles *t = self(sink);
	struct file *f;
	int err;

	if (t->common)
		return 0;
	err = open_in_dir(t, pid, NULL, ++t->parts, &f);
	if (!err && t->opts.single)
		t->common = f;
	if (!t->opts.single)
		t->parts = 0;
	return err;
}

/* The file for a process: the common one, the one expected for it, or a new one. */
static int file_for(struct tracefiles *t, struct mt_process *p, struct file **ret_file)
{
	struct file *f;
	int err;

	if (t->rotating) {
		t->rotating = false;
		err = close_file(t, t->common);
		if (err)
			return err;
	}
	if (t->common) {
		*ret_file = t->common;
		return 0;
	}
	if (t->opts.output || t->opts.single) {
		err = t->opts.output ? open_output(t, &t->common)
				     : open_in_dir(t, p->pid, p, ++t->parts, &t->common);
		if (!err)
			*ret_file = t->common;
		return err;
	}
	for (f = t->files; f; f = f->next) {
		if (f->pid == p->pid && !f->process) {
			f->process = p;
			*ret_file = f;
			return 0;
		}
	}
	err = open_in_dir(t, p->pid, p, 1 + (uint32_t)p->parts, ret_file);
	if (!err)
		(*ret_file)->process = p;
	return err;
}

/* F2. A failed rename is no loss: the trace keeps its name. */
static void rename_file(struct tracefiles *t, struct file *f, const struct mt_process *p)
{
	char name[4096], id[4096];
	struct mt_tracedir *dir;
	char *path;

	if (!f->dir || f == t->common || p->parts)
		return;
	if (file_name(t, p->pid, p, true, name, sizeof(name)))
		snprintf(name, sizeof(name), "%s", f->base_name);
	dir = f->dir; /* what the environment says was asked when the file was made */
	if (p->execution_id[0] && directory(t, execution_id(t, p->pid, p, id, sizeof(id)), &dir))
		return;
	if (dir == f->dir && !strcmp(name, f->base_name))
		return;
	if (mt_tracedir_move(f->dir, f->path, dir, name, p->pid, NULL, &path))
		return;
	if (t->first_path && !strcmp(t->first_path, f->path)) {
		free(t->first_path);
		t->first_path = strdup(path);
	}
	free(f->path);
	f->path = path;
	f->dir = dir;
	free(f->base_name);
	f->base_name = strdup(name);
	if (!f->base_name)
		failed(t, -ENOMEM);
	free(t->where);
	t->where = strdup(mt_tracedir_path(dir));
}

/* ---- The sink ------------------------------------------------------------------------------------- */

static int tf_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct tracefiles *t = self(s);
	struct file *f = p->file_data;
	int err;

	if (f) {
		rename_file(t, f, p);
	} else {
		err = file_for(t, p, &f);
		if (err)
			return err;
		p->file_data = f;
		rename_file(t, f, p);
	}
	return failed(t, f->sink->ops->process(f->sink, p, time));
}

/* The file that a thread's or process's calls go to; NULL if it could not be opened. */
static struct file *of(const struct mt_process *p)
{
	return p ? p->file_data : NULL;
}

#define FORWARD(t, p, call, ...)                                                \
	do {                                                                    \
		struct file *f_ = of(p);                                        \
		if (!f_ || !f_->sink->ops->call)                                \
			return (t)->error;                                      \
		return failed((t), f_->sink->ops->call(f_->sink, __VA_ARGS__)); \
	} while (0)

static int tf_thread(struct mt_sink *s, struct mt_thread *th, uint64_t time)
{
	FORWARD(self(s), th->process, thread, th, time);
}

static int tf_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	FORWARD(self(s), sl->thread->process, begin, sl);
}

static int tf_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	FORWARD(self(s), e->thread->process, end, e);
}

static int tf_instant(struct mt_sink *s, const struct mt_instant *i)
{
	FORWARD(self(s), i->thread->process, instant, i);
}

static int tf_counter(struct mt_sink *s, const struct mt_count *c)
{
	FORWARD(self(s), c->thread->process, counter, c);
}

static int tf_lost(struct mt_sink *s, const struct mt_loss *l)
{
	struct tracefiles *t = self(s);
	const struct mt_process *p = l->thread ? l->thread->process : l->process;
	struct file *f = p ? of(p) : t->common ? t->common : t->files;

	/* Nobody knows whose: it is told in the file that was opened last, rather than nowhere. */
	if (!f || !f->sink->ops->lost)
		return t->error;
	return failed(t, f->sink->ops->lost(f->sink, l));
}

static int tf_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *th, uint64_t time)
{
	struct tracefiles *t = self(s);
	struct file *f = of(th ? th->process : p);
	int err;

	if (!f)
		return t->error;
	err = f->sink->ops->gone ? f->sink->ops->gone(f->sink, p, th, time) : 0;
	failed(t, err);
	if (th)
		return err;
	p->file_data = NULL;
	if (f != t->common) { /* F3 */
		p->parts++;
		return close_file(t, f);
	}
	return err;
}

static int tf_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	struct tracefiles *t = self(s);
	struct file *f;

	for (f = t->files; f; f = f->next)
		if (f->sink->ops->mark)
			failed(t, f->sink->ops->mark(f->sink, time, text));
	return t->error;
}

static int tf_span_new(struct mt_sink *s, const struct mt_span_new *n)
{
	FORWARD(self(s), n->process, span_new, n);
}

static int tf_span_close(struct mt_sink *s, struct mt_process *p, uint64_t span, uint64_t time)
{
	FORWARD(self(s), p, span_close, p, span, time);
}

static int tf_flush(struct mt_sink *s, uint64_t now)
{
	struct tracefiles *t = self(s);
	struct file *f;

	for (f = t->files; f; f = f->next)
		if (f->sink->ops->flush)
			failed(t, f->sink->ops->flush(f->sink, now));
	return t->error;
}

static int tf_free(struct mt_sink *s)
{
	struct tracefiles *t = self(s);
	uint32_t i;
	int err;

	while (t->files)
		close_file(t, t->files);
	for (i = 0; i < t->ndirs; i++)
		mt_tracedir_close(t->dirs[i]);
	free(t->made_id);
	free(t->first_path);
	free(t->where);
	err = t->error;
	free(t);
	return err;
}

static const struct mt_sink_ops tracefiles_ops = {
	.process = tf_process,
	.thread = tf_thread,
	.begin = tf_begin,
	.end = tf_end,
	.instant = tf_instant,
	.counter = tf_counter,
	.lost = tf_lost,
	.gone = tf_gone,
	.flush = tf_flush,
	.free = tf_free,
	.span_new = tf_span_new,
	.span_close = tf_span_close,
	.mark = tf_mark,
};

int mt_tracefiles_new(const struct mt_tracefiles_opts *opts, struct mt_tracefiles_err *err,
		      struct mt_sink **ret_sink)
{
	struct tracefiles *t = calloc(1, sizeof(*t));
	int code = 0;

	err->text[0] = 0;
	if (!t)
		return -ENOMEM;
	t->base.ops = &tracefiles_ops;
	t->opts = *opts;
	t->pftrace = *opts->pftrace;
	t->err = err;
	if (opts->output)
		code = open_output(t, &t->common);
	if (code) {
		tf_free(&t->base);
		return code;
	}
	*ret_sink = &t->base;
	return 0;
}

static bool due(const struct tracefiles *t, const struct file *f, uint64_t now)
{
	return (t->opts.rotate_bytes && f->out->bytes >= t->opts.rotate_bytes) ||
	       (t->opts.rotate_ns && now > f->opened && now - f->opened >= t->opts.rotate_ns);
}

bool mt_tracefiles_rotate_due(struct mt_sink *sink, uint64_t now, struct mt_process **ret_process)
{
	struct tracefiles *t = self(sink);
	struct file *f;

	if (t->common) {
		if (t->rotating || !due(t, t->common, now))
			return false;
		t->rotating = true; /* replaced when the first process is told again */
		*ret_process = NULL;
		return true;
	}
	for (f = t->files; f; f = f->next) {
		if (!f->process || !due(t, f, now))
			continue;
		*ret_process = f->process;
		return true;
	}
	return false;
}

void mt_tracefiles_stats(const struct mt_sink *sink, struct mt_tracefiles_stats *st)
{
	const struct tracefiles *t = (const struct tracefiles *)sink;
	const struct file *f;

	st->bytes = t->closed_bytes;
	for (f = t->files; f; f = f->next)
		st->bytes += f->out->bytes;
	st->files = t->created;
	st->path = t->first_path ? t->first_path : "";
	st->where = t->where ? t->where : "";
}
