/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names -> descriptors, and the words of the result. What is in a directory may belong to anybody: links in
 * it are not followed, nothing that could block or answer is opened for reading.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd_merge.h"
#include "strings.h"

#define SUFFIX ".pftrace"

static int fail(struct mt_merge_err *err, int r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return r;
}

/* Takes over fd and name. */
static int add(struct mt_merge_files *files, int fd, int error, char *name, bool listed,
	       struct mt_merge_err *err)
{
	int r = 0;

	if (name && files->n < MT_MERGE_MAX_FILES) {
		if ((files->n & (files->n - 1)) == 0) {
			size_t cap = files->n ? (size_t)files->n * 2 : 1;
			struct mt_merge_input *v = realloc(files->v, cap * sizeof(*v));

			if (!v)
				r = -ENOMEM;
			else
				files->v = v;
		}
	} else {
		r = name ? -EFBIG : -ENOMEM;
	}
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		free(name);
		return fail(err, r, r == -EFBIG ? "too many files" : "out of memory");
	}
	files->v[files->n++] =
		(struct mt_merge_input){.fd = fd, .error = error, .name = name, .listed = listed, .why = ""};
	return 0;
}

static bool is_trace(const char *name)
{
	size_t n = strlen(name), k = sizeof(SUFFIX) - 1;

	return name[0] != '.' && n > k && !strcmp(name + n - k, SUFFIX);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of all traces in it, sorted; each and *ret_names are the caller's. */
static int list(DIR *dir, char ***ret_names, size_t *ret_n)
{
	char **v = NULL, **more;
	size_t n = 0, cap = 0;
	struct dirent *d;
	int r = 0;

	for (errno = 0; !r && (d = readdir(dir)); errno = 0) {
		if (!is_trace(d->d_name))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 64;
			more = n < MT_MERGE_MAX_FILES ? realloc(v, cap * sizeof(*v)) : NULL;
			if (!more) {
				r = n < MT_MERGE_MAX_FILES ? -ENOMEM : -EFBIG;
				break;
			}
			v = more;
		}
		v[n] = strdup(d->d_name);
		r = v[n] ? 0 : -ENOMEM;
		n += !r;
	}
	if (!r && errno)
		r = -errno;
	if (n)
		qsort(v, n, sizeof(*v), compare_names);
	*ret_names = v;
	*ret_n = n;
	return r;
}

/* A regular file that is no link; -errno. */
static int open_listed(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

/* Takes over fd. */
static int add_directory(struct mt_merge_files *files, int fd, const char *path, struct mt_merge_err *err)
{
	DIR *dir = fdopendir(fd);
	char **names = NULL, *name;
	size_t n = 0;
	int r;

	if (!dir) {
		r = fail(err, -errno, "%s: %s", path, strerror(errno));
		close(fd);
		return r;
	}
	r = list(dir, &names, &n);
	if (r < 0)
		fail(err, r, "%s: %s", path, strerror(-r));
	if (!r && !n)
		r = fail(err, -ENODATA, "%s: no " SUFFIX " file in it", path);
	for (size_t i = 0; !r && i < n; i++) {
		int f = open_listed(dirfd(dir), names[i]);

		if (f == -EMFILE || f == -ENFILE) {
			r = fail(err, f, "%s: %s", path, strerror(-f));
			break;
		}
		if (asprintf(&name, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", names[i]) < 0)
			name = NULL;
		r = add(files, f < 0 ? -1 : f, f < 0 ? f : 0, name, true, err);
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
	closedir(dir);
	return r;
}

static int add_path(struct mt_merge_files *files, const char *path, struct mt_merge_err *err)
{
	int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	struct stat st;
	int r;

	if (!*path)
		return fail(err, -ENOENT, "an empty file name");
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = fail(err, -errno, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return r;
	}
	if (S_ISDIR(st.st_mode))
		return add_directory(files, fd, path, err);
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return fail(err, -EINVAL, "%s: is not a regular file", path);
	}
	return add(files, fd, 0, strdup(path), false, err);
}

int mt_merge_files_open(const char *const *paths, uint32_t npaths, struct mt_merge_files *ret_files,
			struct mt_merge_err *err)
{
	struct mt_merge_files files = {0};
	struct rlimit lim;
	int r = 0;

	err->text[0] = 0;
	if (!getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur < lim.rlim_max) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_NOFILE, &lim);
	}
	for (uint32_t i = 0; !r && i < npaths; i++)
		r = add_path(&files, paths[i], err);
	if (r < 0)
		mt_merge_files_free(&files);
	else
		*ret_files = files;
	return r;
}

void mt_merge_files_free(struct mt_merge_files *files)
{
	for (uint32_t i = 0; i < files->n; i++) {
		if (files->v[i].fd >= 0)
			close(files->v[i].fd);
		free((char *)files->v[i].name);
	}
	free(files->v);
	*files = (struct mt_merge_files){0};
}

/* Removes the output if it is still the file that was made. */
static void discard(const char *output, const struct stat *made)
{
	struct stat st;

	if (!lstat(output, &st) && st.st_dev == made->st_dev && st.st_ino == made->st_ino)
		unlink(output);
}

int mt_merge_paths(const char *const *paths, uint32_t npaths, const char *output, const struct mt_user *user,
		   bool compress, struct mt_merge_files *ret_files, struct mt_merge_report *ret_report,
		   struct mt_merge_err *err)
{
	struct mt_merge_opts opts = {.compress = compress};
	struct stat made;
	int fd = -1, r, e;

	*ret_files = (struct mt_merge_files){0};
	r = mt_merge_files_open(paths, npaths, ret_files, err);
	if (r < 0)
		return r;
	r = mt_tracedir_file(user, output, &fd);
	if (r < 0)
		return fail(err, r, "%s: %s", output, strerror(-r));
	if (fstat(fd, &made) < 0) {
		r = fail(err, -errno, "%s: %s", output, strerror(errno));
		close(fd);
		return r;
	}
	r = mt_out_fd(fd, 0, &opts.out);
	if (r < 0) {
		fail(err, r, "%s: %s", output, strerror(-r));
		close(fd);
		goto out;
	}
	opts.inputs = ret_files->v;
	opts.ninputs = ret_files->n;
	r = mt_merge(&opts, ret_report, err);
	e = mt_out_close(opts.out);
	if (!r && e)
		r = fail(err, e, "%s: %s", output, strerror(-e));
out:
	if (r < 0)
		discard(output, &made);
	return r;
}

/* ---- the result in words ---- */

static void put_safe(FILE *out, const char *s)
{
	char buf[3 * 4096 + 1];

	mt_text_safe(buf, sizeof(buf), s, strlen(s));
	fputs(buf, out);
}

static void put_count(FILE *out, const char *before, uint64_t n, const char *what)
{
	fprintf(out, "%s%" PRIu64 " %s%s", before, n, what, n == 1 ? "" : "s");
}

static void put_input(FILE *out, const struct mt_merge_files *files, const struct mt_merge_input *in)
{
	put_safe(out, in->name);
	fputs(": ", out);
	switch (in->status) {
	case MT_MERGE_TAKEN:
		put_count(out, "", in->packets, "packet");
		put_count(out, ", ", in->bytes, "byte");
		break;
	case MT_MERGE_DUPLICATE:
		fputs("left out: the same trace as ", out);
		put_safe(out, files->v[in->same].name);
		break;
	case MT_MERGE_MERGED:
		fputs("left out: the result of a merge", out);
		break;
	case MT_MERGE_EMPTY:
		fputs("left out: nothing in it", out);
		break;
	case MT_MERGE_UNREADABLE:
		fprintf(out, "left out: %s",
			in->error == -ELOOP    ? "a symbolic link"
			: in->error == -EINVAL ? "not a regular file"
					       : strerror(-in->error));
		break;
	}
	if (in->torn)
		put_count(out, ", the last packet is torn, dropped: ", in->torn, "byte");
	if (*in->why)
		fprintf(out, ", damaged at byte %" PRIu64 " (%s): the rest is dropped", in->bad_offset,
			in->why);
	if (in->skipped)
		put_count(out, ", not carried over: ", in->skipped, "packet");
	if (in->status == MT_MERGE_TAKEN && !in->complete && !in->torn && !*in->why)
		fputs(", not closed by its writer", out);
	putc('\n', out);
}

int mt_merge_print(FILE *out, const struct mt_merge_files *files, const struct mt_merge_report *report,
		   const char *output, bool all)
{
	for (uint32_t i = 0; i < files->n; i++) {
		const struct mt_merge_input *in = &files->v[i];

		if (all || in->status != MT_MERGE_TAKEN || !in->complete || in->skipped)
			put_input(out, files, in);
	}
	put_safe(out, output);
	put_count(out, ": ", report->files, "file");
	put_count(out, ", ", report->hosts, "host");
	put_count(out, ", ", report->packets, "packet");
	if (report->incomplete)
		put_count(out, ", incomplete: ", report->incomplete, "file");
	if (report->unaligned)
		put_count(out, ", without wall clock, times not aligned: ", report->unaligned, "host");
	putc('\n', out);
	return fflush(out) || ferror(out) ? -EIO : 0;
}
