/* SPDX-License-Identifier: BSD-3-Clause */
/* One file of a recording: opening, closing, giving it another name. */
#include "tracefiles_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t mt_tracefiles_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int start_file(struct mt_tracefiles *t, struct mt_tracefile *f, int fd)
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
	f->opened = mt_tracefiles_now();
	f->next = t->files;
	t->files = f;
	t->created++;
	if (!t->first_path)
		t->first_path = strdup(f->path);
	return 0;
}

static void free_file(struct mt_tracefile *f)
{
	free(f->path);
	free(f->base_name);
	free(f);
}

static int create_named(struct mt_tracefiles *t, const char *path, int *ret_fd)
{
	int err;

	if (!strcmp(path, "-")) {
		*ret_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? mt_tracefiles_explain(t, -errno, "standard output", NULL) : 0;
	}
	err = mt_tracedir_file(t->opts.user, path, ret_fd);
	if (err == -EEXIST) {
		snprintf(t->err->text, sizeof(t->err->text),
			 "%.500s exists: traces are never overwritten; remove it or choose another name",
			 path);
		return mt_tracefiles_failed(t, err);
	}
	return err ? mt_tracefiles_explain(t, err, path, NULL) : 0;
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

int mt_tracefiles_open_output(struct mt_tracefiles *t, struct mt_tracefile **ret_file)
{
	struct mt_tracefile *f = calloc(1, sizeof(*f));
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
	return mt_tracefiles_failed(t, err);
}

int mt_tracefiles_open_in_dir(struct mt_tracefiles *t, uint32_t pid, const struct mt_process *p,
			      uint32_t part, struct mt_tracefile **ret_file)
{
	char name[4096], numbered[4200], id[4096];
	struct mt_tracedir_err why = {""};
	struct mt_tracefile *f = calloc(1, sizeof(*f));
	int fd, err;

	if (!f)
		return -ENOMEM;
	err = mt_tracefiles_name(t, pid, p, false, name, sizeof(name));
	if (!err)
		err = mt_tracefiles_dir(t, mt_tracefiles_id(t, pid, p, id, sizeof(id)), &f->dir);
	if (err)
		goto out;
	snprintf(numbered, sizeof(numbered), part > 1 ? "%s.part-%03u" : "%s", name, part);
	err = mt_tracedir_create_for(f->dir, numbered, pid, &why, &fd, &f->path);
	if (err) {
		mt_tracefiles_explain(t, err, "a trace", why.text);
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
	return mt_tracefiles_failed(t, err);
}

int mt_tracefiles_close(struct mt_tracefiles *t, struct mt_tracefile *f)
{
	struct mt_tracefile **at = &t->files;
	int err, flushed;

	flushed = f->sink->ops->flush ? f->sink->ops->flush(f->sink, mt_tracefiles_now()) : 0;
	t->closed_bytes += f->out->bytes;
	err = f->sink->ops->free(f->sink);
	while (*at && *at != f)
		at = &(*at)->next;
	if (*at)
		*at = f->next;
	if (t->common == f)
		t->common = NULL;
	free_file(f);
	return mt_tracefiles_failed(t, flushed ? flushed : err);
}

void mt_tracefiles_rename(struct mt_tracefiles *t, struct mt_tracefile *f, const struct mt_process *p)
{
	char name[4096], id[4096];
	struct mt_tracedir *dir;
	char *path;

	if (!f->dir || f == t->common || p->parts)
		return;
	if (mt_tracefiles_name(t, p->pid, p, true, name, sizeof(name)))
		snprintf(name, sizeof(name), "%s", f->base_name);
	dir = f->dir; /* what the environment says was asked when the file was made */
	if (p->execution_id[0] && mt_tracefiles_dir(t, mt_tracefiles_id(t, p->pid, p, id, sizeof(id)), &dir))
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
		mt_tracefiles_failed(t, -ENOMEM);
	free(t->where);
	t->where = strdup(mt_tracedir_path(dir));
}
