/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The idea: a file (device, inode) is read once, however many processes map it; its callsites get their
 * site numbers when they are armed first. What is attached is a link of a file with a process, or with all
 * processes when children are followed.
 *
 * Invariants
 *  A1  A file is opened through the mapping itself (map_files), so it is the one that runs: deleted,
 *      replaced, in another mount namespace or not.
 *  A2  While a file with callsites is known its descriptor stays open: its inode number cannot be reused.
 *  A3  The 5-byte nop is used only at thunks vouched for by the file's own note, and only if the kernel was
 *      seen to turn it into a call.
 *  A4  A site that the kernel refuses costs its callsite, nothing else: a refused batch is halved until
 *      the bad site is alone.
 *  A5  A callsite is armed whole (all its probes) or not at all: a begin without its end would lie.
 *  A6  Nothing is put on a 5-byte nop that is not vouched for, where the kernel would turn it into a call: that
 *      writes below the stack pointer, where a leaf function may keep its data.
 *  A7  The kernel knows the memory that a link for one process is for by that process's first thread. Once that
 *      thread has ended (pthread_exit in main), such a link reaches no mapping that comes; then it is for all
 *      processes, of which the programs in the kernel let through those that are traced.
 *  A8  A file that was written to in place (cp over it) has other code at the old places, where the kernel would put
 *      breakpoints, and take them away by writing the old byte, when a process maps it. So it is looked at often;
 *      when code at its probes has changed what was known of it is dropped, and it is read anew.
 *
 * Example: pid 7 maps /bin/app (3 callsites: scope, scope, event) and libx.so (none). scan reads both, keeps
 * app's descriptor; arm asks the filter (the event is filtered), numbers 4 probes, attaches one link with
 * 4 offsets, 4 semaphores, 4 cookies.
 *
 * Foreign USDT probes that specs ask for are callsites like the others, found by attach_foreign.c.
 *
 * Not here: when to scan again (session), processes that come and go (session).
 */
#include "attach_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procinfo.h"

int mt_attach_new(const struct mt_attach_opts *opts, struct mt_attach **ret_attach)
{
	struct mt_attach *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	a->opts = *opts;
	a->next_id = 1;
	err = mt_proc_open(NULL, &a->proc);
	if (err) {
		free(a);
		return err;
	}
	*ret_attach = a;
	return 0;
}

static void binary_free(struct binary *b)
{
	if (b->fd >= 0)
		close(b->fd);
	mt_attach_foreign_free(b);
	mt_elfnotes_free(b->notes);
	free(b->path);
	free(b->verdicts);
	free(b->numbers);
	free(b->failed);
	free(b);
}

void mt_attach_detach(struct mt_attach *a)
{
	uint32_t i;

	if (!a)
		return;
	for (i = 0; i < a->nattached; i++)
		mt_attach_unlink(&a->attached[i]);
	a->nattached = 0;
}

void mt_attach_free(struct mt_attach *a)
{
	uint32_t i;

	if (!a)
		return;
	mt_attach_detach(a);
	for (i = 0; i < a->nbinaries; i++)
		binary_free(a->binaries[i]);
	free(a->binaries);
	free(a->attached);
	free(a->mapped);
	close(a->proc);
	free(a);
}

void mt_attach_set_filter(struct mt_attach *a, const struct mt_filter *f)
{
	a->filter = f;
}

void mt_attach_set_usdt(struct mt_attach *a, const struct mt_usdt_set *set)
{
	uint32_t i;

	a->usdt = set;
	for (i = 0; !set && i < a->nbinaries; i++)
		mt_attach_foreign_free(a->binaries[i]);
}

void mt_attach_on_first(struct mt_attach *a, void (*cb)(void *ctx, struct mt_attach *a), void *ctx)
{
	a->on_first = cb;
	a->on_first_ctx = ctx;
}

void mt_attach_drop(struct mt_attach *a, uint32_t pid)
{
	uint32_t i, n;

	for (i = n = 0; i < a->nattached; i++) {
		if (a->attached[i].pid == pid)
			mt_attach_unlink(&a->attached[i]);
		else
			a->attached[n++] = a->attached[i];
	}
	a->nattached = n;
	for (i = n = 0; i < a->nmapped; i++)
		if (a->mapped[i].pid != pid)
			a->mapped[n++] = a->mapped[i];
	a->nmapped = n;
}

/* Of the bytes around each probe: are they what they were? */
static uint64_t code_sum(const struct mt_elfnotes *n, int fd)
{
	uint64_t sum = 0xcbf29ce484222325ull, from;
	unsigned char code[16];
	ssize_t len, k;
	uint32_t i;

	for (i = 0; i < n->nprobes; i++) {
		from = n->probes[i].offset < 8 ? 0 : n->probes[i].offset - 8;
		len = pread(fd, code, sizeof(code), (off_t)from);
		for (k = 0; k < len; k++)
			sum = (sum ^ code[k]) * 0x100000001b3ull;
		sum = (sum ^ (uint64_t)(len + 1)) * 0x100000001b3ull;
	}
	return sum;
}

/* Reads a file's notes into a new binary. A file that cannot be read has no callsites. */
static int binary_read(struct mt_attach *a, const struct mt_proc_file *f, int fd, const struct stat *st,
		       struct binary **ret_binary)
{
	struct binary *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	b->fd = -1;
	b->dev_major = f->dev_major;
	b->dev_minor = f->dev_minor;
	b->inode = f->inode;
	b->ctime = st->st_ctim;
	b->mtime = st->st_mtim;
	err = mt_elfnotes_read(fd, MT_ELF_NATIVE | (a->usdt ? MT_ELF_FOREIGN : 0), a->next_id, &b->notes);
	if (err == -ENOMEM)
		goto fail;
	if (!err) {
		if (a->usdt)
			a->unusable += b->notes->stats.malformed + b->notes->stats.semaphore +
				       b->notes->stats.compressed;
		a->next_id += b->notes->ncallsites;
		b->fd = fd; /* for the symbols only */
		err = mt_attach_foreign_find(a, b);
		b->fd = -1;
		if (err)
			goto fail;
	}
	if (!b->notes || (!b->notes->ncallsites && !b->foreign)) {
		mt_elfnotes_free(b->notes);
		b->notes = NULL;
		*ret_binary = b;
		return 0;
	}
	b->code = code_sum(b->notes, fd);
	err = -ENOMEM;
	b->path = strdup(f->path);
	b->verdicts = calloc(b->notes->ncallsites + 1ul, 1);
	b->failed = calloc(b->notes->ncallsites + 1ul, sizeof(*b->failed));
	b->numbers = calloc(b->notes->nprobes ? b->notes->nprobes : 1, sizeof(*b->numbers));
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (!b->path || !b->verdicts || !b->failed || !b->numbers || b->fd < 0)
		goto fail;
	*ret_binary = b;
	return 0;
fail:
	binary_free(b);
	return err;
}

/* A8. Its callsites stay, for events that tell of them. */
static bool forget_if_written(struct mt_attach *a, struct binary *b)
{
	uint32_t i, n;
	struct stat st;

	if (fstat(b->fd, &st) || !memcmp(&b->mtime, &st.st_mtim, sizeof(st.st_mtim)))
		return false;
	b->mtime = st.st_mtim;
	if (code_sum(b->notes, b->fd) == b->code)
		return false; /* nothing where it matters: what is armed stays */
	b->stale = true;
	mt_attach_drop_file(a, b);
	for (i = n = 0; i < a->nmapped; i++)
		if (a->mapped[i].binary != b)
			a->mapped[n++] = a->mapped[i];
	a->nmapped = n;
	return true;
}

bool mt_attach_written(struct mt_attach *a)
{
	bool any = false;
	uint32_t i;

	for (i = 0; i < a->nbinaries; i++)
		if (a->binaries[i]->notes && !a->binaries[i]->stale)
			any |= forget_if_written(a, a->binaries[i]);
	return any;
}

/* The binary of a mapped file, read if it is new. NULL: it cannot be opened (gone, or not ours to see). */
static int binary_get(struct mt_attach *a, int dir, const struct mt_proc_file *f, struct binary **ret_binary)
{
	struct binary *b;
	struct stat st;
	uint32_t i;
	int fd, err;

	*ret_binary = NULL;
	for (i = 0; i < a->nbinaries; i++) {
		b = a->binaries[i];
		if (b->inode == f->inode && b->dev_major == f->dev_major && b->dev_minor == f->dev_minor &&
		    b->notes && !b->stale && !forget_if_written(a, b)) {
			*ret_binary = b; /* A2 */
			return 0;
		}
	}
	err = mt_proc_open_file(dir, f, &fd);
	if (err)
		return err == -ESRCH || err == -ENOMEM ? err : 0;
	if (fstat(fd, &st)) {
		close(fd);
		return 0;
	}
	for (i = 0; i < a->nbinaries; i++) {
		b = a->binaries[i];
		if (b->inode == f->inode && b->dev_major == f->dev_major && b->dev_minor == f->dev_minor &&
		    !b->stale && !memcmp(&b->ctime, &st.st_ctim, sizeof(st.st_ctim))) {
			*ret_binary = b;
			close(fd);
			return 0;
		}
	}
	err = mt_room(&a->binaries, a->nbinaries, &a->cap_binaries, sizeof(*a->binaries));
	if (!err)
		err = binary_read(a, f, fd, &st, &b);
	close(fd);
	if (err)
		return err;
	a->binaries[a->nbinaries++] = b;
	*ret_binary = b;
	return 0;
}

static int mapped_add(struct mt_attach *a, struct binary *b, uint32_t pid, uint32_t *count)
{
	uint32_t i;
	int err;

	for (i = 0; i < a->nmapped; i++)
		if (a->mapped[i].binary == b && a->mapped[i].pid == pid)
			return 0;
	err = mt_room(&a->mapped, a->nmapped, &a->cap_mapped, sizeof(*a->mapped));
	if (err)
		return err;
	a->mapped[a->nmapped++] = (struct mapped){b, pid};
	++*count;
	return 0;
}

int mt_attach_scan(struct mt_attach *a, uint32_t pid, uint32_t *ret_new)
{
	struct mt_proc_files files;
	uint32_t count = 0;
	struct binary *b;
	int dir, err;
	size_t i;

	err = mt_proc_pid(a->proc, pid, &dir);
	if (err)
		return err;
	err = mt_proc_files(dir, &files);
	if (err)
		goto out;
	for (i = 0; i < files.n && !err; i++) {
		err = binary_get(a, dir, &files.v[i], &b);
		if (err || !b || !b->notes)
			continue;
		b->writable |= files.v[i].writable;
		if (files.v[i].copies > b->copies)
			b->copies = files.v[i].copies;
		err = mapped_add(a, b, pid, &count);
	}
	mt_proc_files_free(&files);
	if (!err && ret_new)
		*ret_new = count;
out:
	close(dir);
	return err;
}

/* The mapping of ours at addr, as the kernel tells it. */
static int own_mapping(struct mt_attach *a, const void *addr, struct mt_proc_file *ret_file,
		       struct mt_proc_files *ret_all)
{
	int dir, err;
	size_t i;

	err = mt_proc_pid(a->proc, (uint32_t)getpid(), &dir);
	if (err)
		return err;
	err = mt_proc_files(dir, ret_all);
	close(dir);
	if (err)
		return err;
	for (i = 0; i < ret_all->n; i++) {
		if (ret_all->v[i].start <= (uintptr_t)addr && (uintptr_t)addr < ret_all->v[i].end) {
			*ret_file = ret_all->v[i];
			return 0;
		}
	}
	mt_proc_files_free(ret_all);
	return -ENOENT;
}

static int scan_path(struct mt_attach *a, const char *path, uint32_t pid, struct mt_attach_id *ret_file)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mt_proc_files all = {0};
	struct mt_proc_file f;
	struct binary *b = NULL;
	uint32_t count = 0;
	int fd, dir, err;
	void *map;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	/* Mapped for a moment, because only maps tells device and inode as the kernel compares them. */
	map = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED) {
		err = errno == EACCES || errno == EPERM || errno == ENODEV ? -ENOEXEC : -errno;
		close(fd);
		return err;
	}
	err = mt_proc_pid(a->proc, (uint32_t)getpid(), &dir);
	if (!err) {
		err = own_mapping(a, map, &f, &all);
		if (!err) {
			err = binary_get(a, dir, &f, &b);
			ret_file->inode = f.inode;
			ret_file->dev = f.dev_major << 20 | f.dev_minor;
			mt_proc_files_free(&all);
		}
		close(dir);
	}
	if (!err && b && b->notes)
		err = mapped_add(a, b, pid, &count);
	munmap(map, page);
	close(fd);
	return err;
}

int mt_attach_scan_file(struct mt_attach *a, const char *path, struct mt_attach_id *ret_file)
{
	return scan_path(a, path, 0, ret_file);
}

int mt_attach_scan_library(struct mt_attach *a, const char *path, uint32_t pid)
{
	struct mt_attach_id id;

	return scan_path(a, path, pid, &id);
}

/* ---- Report --------------------------------------------------------------------------------------- */

static void file_of(const struct mt_attach *a, const struct binary *b, struct mt_attach_file *f)
{
	uint32_t i;

	memset(f, 0, sizeof(*f));
	f->path = b->path;
	f->notes = b->notes;
	f->callsites = b->notes->ncallsites;
	f->error = b->error;
	f->callsite_failed = b->failed;
	f->nop5 = a->opts.nop5;
	for (i = 0; i < f->callsites; i++) {
		if (a->filter && mt_filter_user_facing(a->filter, &b->notes->callsites[i]))
			f->user_facing++;
		switch ((enum verdict)b->verdicts[i]) {
		case V_ARMED:
			f->armed++;
			break;
		case V_MODE:
			f->by_mode++;
			break;
		case V_DIRECTIVE:
			f->by_directive++;
			break;
		case V_FAILED:
			f->failed++;
			break;
		case V_NONE:
			break;
		}
	}
	f->guarded = f->armed;
	f->writable = b->writable;
	f->copies = b->copies;
	mt_attach_foreign_report(a, b, f);
}

int mt_attach_each(const struct mt_attach *a, int (*cb)(void *ctx, const struct mt_attach_file *f), void *ctx)
{
	struct mt_attach_file f;
	uint32_t i;
	int err;

	for (i = 0; i < a->nbinaries; i++) {
		if (!a->binaries[i]->notes || a->binaries[i]->stale)
			continue;
		file_of(a, a->binaries[i], &f);
		err = cb(ctx, &f);
		if (err)
			return err;
	}
	return 0;
}

static int add_file(void *ctx, const struct mt_attach_file *f)
{
	struct mt_attach_file *t = ctx;

	t->callsites += f->callsites;
	t->user_facing += f->user_facing;
	t->armed += f->armed;
	t->by_mode += f->by_mode;
	t->by_directive += f->by_directive;
	t->failed += f->failed;
	t->foreign += f->foreign;
	t->foreign_sites += f->foreign_sites;
	if (f->error)
		t->error = f->error;
	return 0;
}

void mt_attach_total(const struct mt_attach *a, struct mt_attach_file *ret_total)
{
	memset(ret_total, 0, sizeof(*ret_total));
	mt_attach_each(a, add_file, ret_total);
}
