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
 *
 * Example: pid 7 maps /bin/app (3 callsites: scope, scope, event) and libx.so (none). scan reads both, keeps
 * app's descriptor; arm asks the filter (the event is filtered), numbers 4 probes, attaches one link with
 * 4 offsets, 4 semaphores, 4 cookies.
 *
 * Not here: when to scan again (session), processes that come and go (session).
 */
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "procinfo.h"

#define MAX_TRIES 10 /* of attaching when the error is not about the site */

enum verdict { V_NONE, V_ARMED, V_MODE, V_DIRECTIVE, V_FAILED };

struct binary {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	struct timespec ctime;
	int fd; /* -1: no callsites in it */
	char *path;
	struct mt_elfnotes *notes; /* NULL: no callsites in it */
	uint8_t *verdicts;         /* enum verdict per callsite */
	uint32_t *numbers;         /* site number per probe, 0 = none yet */
	bool *failed;
	int error;
};

struct attached {
	struct binary *binary;
	uint32_t pid; /* 0 = all */
	struct bpf_link **links;
	uint32_t n, cap;
};

/* That pid has that file: what scan found, for arm. */
struct mapped {
	struct binary *binary;
	uint32_t pid;
};

struct mt_attach {
	struct mt_attach_opts opts;
	const struct mt_filter *filter;
	void (*on_first)(void *ctx, struct mt_attach *a);
	void *on_first_ctx;
	int proc;
	uint32_t next_id; /* of callsites */
	struct binary **binaries;
	uint32_t nbinaries, cap_binaries;
	struct attached *attached;
	uint32_t nattached, cap_attached;
	struct mapped *mapped;
	uint32_t nmapped, cap_mapped;
};

/* Room for one more in a growing array; the array moves. */
static int room(void *array, uint32_t n, uint32_t *cap, size_t size)
{
	void **p = array, *moved;
	uint32_t want = *cap ? *cap * 2 : 16;

	if (n < *cap)
		return 0;
	moved = reallocarray(*p, want, size);
	if (!moved)
		return -ENOMEM;
	*p = moved;
	*cap = want;
	return 0;
}

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
	mt_elfnotes_free(b->notes);
	free(b->path);
	free(b->verdicts);
	free(b->numbers);
	free(b->failed);
	free(b);
}

static void attached_drop(struct attached *at)
{
	uint32_t i;

	for (i = 0; i < at->n; i++)
		bpf_link__destroy(at->links[i]);
	free(at->links);
	at->links = NULL;
	at->n = at->cap = 0;
}

void mt_attach_detach(struct mt_attach *a)
{
	uint32_t i;

	if (!a)
		return;
	for (i = 0; i < a->nattached; i++)
		attached_drop(&a->attached[i]);
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
			attached_drop(&a->attached[i]);
		else
			a->attached[n++] = a->attached[i];
	}
	a->nattached = n;
	for (i = n = 0; i < a->nmapped; i++)
		if (a->mapped[i].pid != pid)
			a->mapped[n++] = a->mapped[i];
	a->nmapped = n;
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
	err = mt_elfnotes_read(fd, MT_ELF_NATIVE, a->next_id, &b->notes);
	if (err == -ENOMEM)
		goto fail;
	if (err || !b->notes->ncallsites) {
		if (!err)
			mt_elfnotes_free(b->notes);
		b->notes = NULL;
		*ret_binary = b;
		return 0;
	}
	err = -ENOMEM;
	a->next_id += b->notes->ncallsites;
	b->path = strdup(f->path);
	b->verdicts = calloc(b->notes->ncallsites, 1);
	b->failed = calloc(b->notes->ncallsites, sizeof(*b->failed));
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
		    b->notes) {
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
		    !memcmp(&b->ctime, &st.st_ctim, sizeof(st.st_ctim))) {
			*ret_binary = b;
			close(fd);
			return 0;
		}
	}
	err = room(&a->binaries, a->nbinaries, &a->cap_binaries, sizeof(*a->binaries));
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
	err = room(&a->mapped, a->nmapped, &a->cap_mapped, sizeof(*a->mapped));
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
		if (!err && b && b->notes)
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

int mt_attach_scan_file(struct mt_attach *a, const char *path, struct mt_attach_id *ret_file)
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
		err = mapped_add(a, b, 0, &count);
	munmap(map, page);
	close(fd);
	return err;
}

/* ---- Arming --------------------------------------------------------------------------------------- */

/* The sites of one binary that are to be attached, column-wise as the kernel wants them. */
struct batch {
	unsigned long *offsets;
	unsigned long *sems;
	__u64 *cookies;
	uint32_t *callsites; /* index of each site's callsite */
	uint32_t n;
};

static struct bpf_link *link_batch(struct mt_attach *a, struct binary *b, uint32_t pid, const struct batch *s,
				   uint32_t from, uint32_t n)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
	if (a->opts.multi) {
		LIBBPF_OPTS(bpf_uprobe_multi_opts, o, .offsets = s->offsets + from,
			    .ref_ctr_offsets = s->sems + from, .cookies = s->cookies + from, .cnt = n);
		return bpf_program__attach_uprobe_multi(a->opts.multi, pid ? (int)pid : -1, path, NULL, &o);
	} else {
		LIBBPF_OPTS(bpf_uprobe_opts, o, .ref_ctr_offset = s->sems[from],
			    .bpf_cookie = s->cookies[from]);
		return bpf_program__attach_uprobe_opts(a->opts.single, -1, path, s->offsets[from], &o);
	}
}

static int keep_link(struct attached *at, struct bpf_link *l)
{
	int err = room(&at->links, at->n, &at->cap, sizeof(*at->links));

	if (err)
		bpf_link__destroy(l);
	else
		at->links[at->n++] = l;
	return err;
}

/*
 * Errors that are not about the site: while the kernel walks over all who map the file, one of them was just
 * starting, ending or replacing its memory. Seen: -ENOENT with processes that exec.
 */
static bool transient(int err)
{
	return err == -ENOENT || err == -EAGAIN || err == -EBUSY || err == -EFAULT || err == -EINTR;
}

/* A4: attaches sites [from, from + n), halving what is refused. -ENOMEM, -ESRCH end it. */
static int link_sites(struct mt_attach *a, struct attached *at, const struct batch *s, uint32_t from,
		      uint32_t n)
{
	struct binary *b = at->binary;
	struct bpf_link *l;
	int err, tries;

	if (!a->opts.multi && n > 1) {
		for (; n && !(err = link_sites(a, at, s, from, 1)); from++, n--)
			;
		return n ? err : 0;
	}
	for (tries = 0, err = -EAGAIN; transient(err) && tries < MAX_TRIES; tries++) {
		l = link_batch(a, b, at->pid, s, from, n);
		if (l)
			return keep_link(at, l);
		err = -errno;
	}
	if (err == -ENOMEM || err == -ESRCH)
		return err;
	if (n == 1) {
		b->failed[s->callsites[from]] = true;
		b->error = err;
		return 0;
	}
	err = link_sites(a, at, s, from, n / 2);
	return err ? err : link_sites(a, at, s, from + n / 2, n - n / 2);
}

static void judge(struct mt_attach *a, struct binary *b)
{
	enum mt_verdict_rule rule;
	uint32_t i;

	for (i = 0; i < b->notes->ncallsites; i++) {
		if (mt_filter_verdict(a->filter, &b->notes->callsites[i], &rule, NULL))
			b->verdicts[i] = b->failed[i] ? V_FAILED : V_ARMED;
		else
			b->verdicts[i] = rule == MT_RULE_MODE_USER ? V_MODE : V_DIRECTIVE;
	}
}

static int batch_make(struct mt_attach *a, struct binary *b, struct batch *ret)
{
	uint32_t n = b->notes->nnative, i, k;
	struct batch s = {0};
	int err = -ENOMEM;

	s.offsets = calloc(n + 1, sizeof(*s.offsets));
	s.sems = calloc(n + 1, sizeof(*s.sems));
	s.cookies = calloc(n + 1, sizeof(*s.cookies));
	s.callsites = calloc(n + 1, sizeof(*s.callsites));
	if (!s.offsets || !s.sems || !s.cookies || !s.callsites)
		goto fail;
	for (i = 0; i < n; i++) {
		const struct mt_probe *p = &b->notes->probes[i];

		k = (uint32_t)(p->cs - b->notes->callsites);
		if (b->verdicts[k] != V_ARMED)
			continue;
		if (!b->numbers[i]) {
			err = mt_sites_add(a->opts.sites, p->cs, &b->numbers[i]);
			if (err)
				goto fail;
		}
		/* A3 */
		s.offsets[s.n] = a->opts.nop5 && p->thunk && p->nop5_offset ? p->nop5_offset : p->offset;
		s.sems[s.n] = p->sem_offset;
		s.cookies[s.n] = b->numbers[i];
		s.callsites[s.n++] = k;
	}
	*ret = s;
	return 0;
fail:
	free(s.offsets);
	free(s.sems);
	free(s.cookies);
	free(s.callsites);
	return err;
}

static void batch_free(struct batch *s)
{
	free(s->offsets);
	free(s->sems);
	free(s->cookies);
	free(s->callsites);
}

static bool any_failed_now(const struct binary *b)
{
	uint32_t i;

	for (i = 0; i < b->notes->ncallsites; i++)
		if (b->failed[i] && b->verdicts[i] == V_ARMED)
			return true;
	return false;
}

/* Attaches a binary for a process (0 = all). A5: if a probe was refused, again without its callsite. */
static int arm_binary(struct mt_attach *a, struct binary *b, uint32_t pid)
{
	struct attached at = {.binary = b, .pid = pid};
	struct batch s;
	int err, round;

	err = room(&a->attached, a->nattached, &a->cap_attached, sizeof(*a->attached));
	if (err)
		return err;
	for (round = 0; round < 3; round++) {
		judge(a, b);
		err = batch_make(a, b, &s);
		if (err)
			return err;
		err = s.n ? link_sites(a, &at, &s, 0, s.n) : 0;
		batch_free(&s);
		if (err || !any_failed_now(b))
			break;
		attached_drop(&at);
	}
	if (err)
		attached_drop(&at);
	else
		a->attached[a->nattached++] = at;
	return err;
}

int mt_attach_arm(struct mt_attach *a, uint32_t pid)
{
	uint32_t to = a->opts.everybody || !a->opts.pid_filter ? 0 : pid, i, k;
	void (*first)(void *ctx, struct mt_attach *a) = a->on_first;
	int err = 0;

	if (first && a->nmapped) {
		a->on_first = NULL;
		first(a->on_first_ctx, a);
	}
	for (i = 0; i < a->nmapped && !err; i++) {
		if (a->mapped[i].pid != pid)
			continue;
		for (k = 0; k < a->nattached; k++)
			if (a->attached[k].binary == a->mapped[i].binary && a->attached[k].pid == to)
				break;
		if (k == a->nattached)
			err = arm_binary(a, a->mapped[i].binary, to);
	}
	return err;
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
}

int mt_attach_each(const struct mt_attach *a, int (*cb)(void *ctx, const struct mt_attach_file *f), void *ctx)
{
	struct mt_attach_file f;
	uint32_t i;
	int err;

	for (i = 0; i < a->nbinaries; i++) {
		if (!a->binaries[i]->notes)
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
	if (f->error)
		t->error = f->error;
	return 0;
}

void mt_attach_total(const struct mt_attach *a, struct mt_attach_file *ret_total)
{
	memset(ret_total, 0, sizeof(*ret_total));
	mt_attach_each(a, add_file, ret_total);
}
