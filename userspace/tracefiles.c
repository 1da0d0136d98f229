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
#include "tracefiles_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mt_tracefiles *self(struct mt_sink *s)
{
	return (struct mt_tracefiles *)s;
}

int mt_tracefiles_failed(struct mt_tracefiles *t, int err)
{
	if (err && !t->error)
		t->error = err;
	return err;
}

int mt_tracefiles_explain(struct mt_tracefiles *t, int err, const char *what, const char *why)
{
	if (!t->err->text[0])
		snprintf(t->err->text, sizeof(t->err->text), "cannot create %.300s: %.300s", what,
			 why && *why ? why : strerror(-err));
	return mt_tracefiles_failed(t, err);
}

int mt_tracefiles_expect(struct mt_sink *sink, uint32_t pid)
{
	struct mt_tracefiles *t = self(sink);
	struct mt_tracefile *f;
	int err;

	if (t->common)
		return 0;
	err = mt_tracefiles_open_in_dir(t, pid, NULL, ++t->parts, &f);
	if (!err && t->opts.single)
		t->common = f;
	if (!t->opts.single)
		t->parts = 0;
	return err;
}

/* The file for a process: the common one, the one expected for it, or a new one. */
static int file_for(struct mt_tracefiles *t, struct mt_process *p, struct mt_tracefile **ret_file)
{
	struct mt_tracefile *f;
	int err;

	if (t->rotating) {
		t->rotating = false;
		err = mt_tracefiles_close(t, t->common);
		if (err)
			return err;
	}
	if (t->common) {
		*ret_file = t->common;
		return 0;
	}
	if (t->opts.output || t->opts.single) {
		err = t->opts.output ? mt_tracefiles_open_output(t, &t->common)
				     : mt_tracefiles_open_in_dir(t, p->pid, p, ++t->parts, &t->common);
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
	err = mt_tracefiles_open_in_dir(t, p->pid, p, 1 + (uint32_t)p->parts, ret_file);
	if (!err)
		(*ret_file)->process = p;
	return err;
}

/* ---- The sink ------------------------------------------------------------------------------------- */

static int tf_process(struct mt_sink *s, struct mt_process *p, uint64_t time)
{
	struct mt_tracefiles *t = self(s);
	struct mt_tracefile *f = p->file_data;
	int err;

	if (f) {
		mt_tracefiles_rename(t, f, p);
	} else {
		err = file_for(t, p, &f);
		if (err)
			return err;
		p->file_data = f;
		mt_tracefiles_rename(t, f, p);
	}
	return mt_tracefiles_failed(t, f->sink->ops->process(f->sink, p, time));
}

/* The file that a thread's or process's calls go to; NULL if it could not be opened. */
static struct mt_tracefile *of(const struct mt_process *p)
{
	return p ? p->file_data : NULL;
}

#define FORWARD(t, p, call, ...)                                                              \
	do {                                                                                  \
		struct mt_tracefile *f_ = of(p);                                              \
		if (!f_ || !f_->sink->ops->call)                                              \
			return (t)->error;                                                    \
		return mt_tracefiles_failed((t), f_->sink->ops->call(f_->sink, __VA_ARGS__)); \
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
	struct mt_tracefiles *t = self(s);
	const struct mt_process *p = l->thread ? l->thread->process : l->process;
	struct mt_tracefile *f = p ? of(p) : t->common ? t->common : t->files;

	/* Nobody knows whose: it is told in the file that was opened last, rather than nowhere. */
	if (!f || !f->sink->ops->lost)
		return t->error;
	return mt_tracefiles_failed(t, f->sink->ops->lost(f->sink, l));
}

static int tf_gone(struct mt_sink *s, struct mt_process *p, struct mt_thread *th, uint64_t time)
{
	struct mt_tracefiles *t = self(s);
	struct mt_tracefile *f = of(th ? th->process : p);
	int err;

	if (!f)
		return t->error;
	err = f->sink->ops->gone ? f->sink->ops->gone(f->sink, p, th, time) : 0;
	mt_tracefiles_failed(t, err);
	if (th)
		return err;
	p->file_data = NULL;
	if (f != t->common) { /* F3 */
		p->parts++;
		return mt_tracefiles_close(t, f);
	}
	return err;
}

static int tf_mark(struct mt_sink *s, uint64_t time, struct mt_str text)
{
	struct mt_tracefiles *t = self(s);
	struct mt_tracefile *f;

	for (f = t->files; f; f = f->next)
		if (f->sink->ops->mark)
			mt_tracefiles_failed(t, f->sink->ops->mark(f->sink, time, text));
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

static int tf_keyed_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	FORWARD(self(s), sl->process, keyed_begin, sl);
}

static int tf_keyed_end(struct mt_sink *s, const struct mt_slice_end *e)
{
	FORWARD(self(s), e->process, keyed_end, e);
}

static int tf_flush(struct mt_sink *s, uint64_t now)
{
	struct mt_tracefiles *t = self(s);
	struct mt_tracefile *f;

	for (f = t->files; f; f = f->next)
		if (f->sink->ops->flush)
			mt_tracefiles_failed(t, f->sink->ops->flush(f->sink, now));
	return t->error;
}

static int tf_free(struct mt_sink *s)
{
	struct mt_tracefiles *t = self(s);
	uint32_t i;
	int err;

	while (t->files)
		mt_tracefiles_close(t, t->files);
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
	.keyed_begin = tf_keyed_begin,
	.keyed_end = tf_keyed_end,
};

int mt_tracefiles_new(const struct mt_tracefiles_opts *opts, struct mt_tracefiles_err *err,
		      struct mt_sink **ret_sink)
{
	struct mt_tracefiles *t = calloc(1, sizeof(*t));
	int code = 0;

	err->text[0] = 0;
	if (!t)
		return -ENOMEM;
	t->base.ops = &tracefiles_ops;
	t->opts = *opts;
	t->pftrace = *opts->pftrace;
	t->err = err;
	if (opts->output)
		code = mt_tracefiles_open_output(t, &t->common);
	if (code) {
		tf_free(&t->base);
		return code;
	}
	*ret_sink = &t->base;
	return 0;
}

static bool due(const struct mt_tracefiles *t, const struct mt_tracefile *f, uint64_t now)
{
	return (t->opts.rotate_bytes && f->out->bytes >= t->opts.rotate_bytes) ||
	       (t->opts.rotate_ns && now > f->opened && now - f->opened >= t->opts.rotate_ns);
}

bool mt_tracefiles_rotate_due(struct mt_sink *sink, uint64_t now, struct mt_process **ret_process)
{
	struct mt_tracefiles *t = self(sink);
	struct mt_tracefile *f;

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
	const struct mt_tracefiles *t = (const struct mt_tracefiles *)sink;
	const struct mt_tracefile *f;

	st->bytes = t->closed_bytes;
	for (f = t->files; f; f = f->next)
		st->bytes += f->out->bytes;
	st->files = t->created;
	st->path = t->first_path ? t->first_path : "";
	st->where = t->where ? t->where : "";
}
