/* SPDX-License-Identifier: BSD-3-Clause */
/* Links: probes of a file go in, and which of them the kernel refuses. Invariants: attach.c. */
#include "attach_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <bpf/libbpf.h>

#include "procinfo.h"

#define MAX_TRIES 10 /* of attaching when the error is not about the site */

void mt_attach_unlink(struct attached *at)
{
	uint32_t i;

	for (i = 0; i < at->n; i++)
		bpf_link__destroy(at->links[i]);
	free(at->links);
	at->links = NULL;
	at->n = at->cap = 0;
}

static struct bpf_link *link_batch(struct binary *b, uint32_t pid, const struct batch *s, uint32_t from,
				   uint32_t n)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", b->fd);
	if (s->multi) {
		LIBBPF_OPTS(bpf_uprobe_multi_opts, o, .offsets = s->offsets + from,
			    .ref_ctr_offsets = s->sems + from, .cookies = s->cookies + from, .cnt = n);
		return bpf_program__attach_uprobe_multi(s->multi, pid ? (int)pid : -1, path, NULL, &o);
	} else {
		LIBBPF_OPTS(bpf_uprobe_opts, o, .ref_ctr_offset = s->sems[from],
			    .bpf_cookie = s->cookies[from]);
		return bpf_program__attach_uprobe_opts(s->single, -1, path, s->offsets[from], &o);
	}
}

static int keep_link(struct attached *at, struct bpf_link *l)
{
	int err = mt_room(&at->links, at->n, &at->cap, sizeof(*at->links));

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
static int link_sites(struct attached *at, const struct batch *s, uint32_t from, uint32_t n)
{
	struct binary *b = at->binary;
	struct bpf_link *l;
	int err, tries;

	if (!s->multi && n > 1) {
		for (; n && !(err = link_sites(at, s, from, 1)); from++, n--)
			;
		return n ? err : 0;
	}
	for (tries = 0, err = -EAGAIN; transient(err) && tries < MAX_TRIES; tries++) {
		l = link_batch(b, at->pid, s, from, n);
		if (l)
			return keep_link(at, l);
		err = -errno;
	}
	if (err == -ENOMEM || err == -ESRCH)
		return err;
	if (n == 1) {
		s->failed[s->index[from]] = true;
		*s->error = err;
		return 0;
	}
	err = link_sites(at, s, from, n / 2);
	return err ? err : link_sites(at, s, from + n / 2, n - n / 2);
}

int mt_attach_link(struct mt_attach *a, struct attached *at, const struct batch *s)
{
	(void)a;
	return s->n ? link_sites(at, s, 0, s->n) : 0;
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

int mt_attach_batch(uint32_t n, struct batch *ret)
{
	struct batch s = {0};

	s.offsets = calloc(n + 1ul, sizeof(*s.offsets));
	s.sems = calloc(n + 1ul, sizeof(*s.sems));
	s.cookies = calloc(n + 1ul, sizeof(*s.cookies));
	s.index = calloc(n + 1ul, sizeof(*s.index));
	*ret = s;
	if (s.offsets && s.sems && s.cookies && s.index)
		return 0;
	mt_attach_batch_free(ret);
	return -ENOMEM;
}

void mt_attach_batch_free(struct batch *s)
{
	free(s->offsets);
	free(s->sems);
	free(s->cookies);
	free(s->index);
}

static int batch_make(struct mt_attach *a, struct binary *b, struct batch *ret)
{
	uint32_t n = b->notes->nnative, i, k;
	struct batch s;
	int err;

	err = mt_attach_batch(n, &s);
	if (err)
		return err;
	s.failed = b->failed;
	s.error = &b->error;
	s.multi = a->opts.multi;
	s.single = a->opts.single;
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
		s.index[s.n++] = k;
	}
	*ret = s;
	return 0;
fail:
	mt_attach_batch_free(&s);
	return err;
}

static bool any_failed_now(const struct binary *b)
{
	uint32_t i;

	for (i = 0; i < b->notes->ncallsites; i++)
		if (b->failed[i] && b->verdicts[i] == V_ARMED)
			return true;
	return false;
}

/*
 * A7: has the process no first thread any more? The kernel finds the memory that a link is for through that thread.
 */
static bool headless(const struct mt_attach *a, uint32_t pid)
{
	bool is = false;
	int dir;

	if (mt_proc_pid(a->proc, pid, &dir))
		return false;
	is = mt_proc_headless(dir);
	close(dir);
	return is;
}

void mt_attach_drop_file(struct mt_attach *a, const struct binary *b)
{
	uint32_t i = 0;

	while (i < a->nattached) {
		if (a->attached[i].binary == b) {
			mt_attach_unlink(&a->attached[i]);
			a->attached[i] = a->attached[--a->nattached];
		} else {
			i++;
		}
	}
}

/* Attaches a binary for a process (0 = all). A5: if a probe was refused, again without its callsite. */
static int arm_binary(struct mt_attach *a, struct binary *b, uint32_t pid)
{
	struct attached at = {.binary = b, .pid = pid};
	struct batch s;
	int err, round;

	err = mt_room(&a->attached, a->nattached, &a->cap_attached, sizeof(*a->attached));
	if (err)
		return err;
	if (!pid) /* what is attached for single processes would be told a second time */
		mt_attach_drop_file(a, b);
	for (round = 0; round < 3; round++) {
		judge(a, b);
		err = batch_make(a, b, &s);
		if (err)
			return err;
		err = mt_attach_link(a, &at, &s);
		mt_attach_batch_free(&s);
		if (err || !any_failed_now(b))
			break;
		mt_attach_unlink(&at);
	}
	if (!err)
		err = mt_attach_foreign_arm(a, &at);
	if (!err && pid && headless(a, pid)) { /* since we looked: the link may reach nothing */
		mt_attach_unlink(&at);
		return arm_binary(a, b, 0);
	}
	if (err)
		mt_attach_unlink(&at);
	else
		a->attached[a->nattached++] = at;
	return err;
}

void mt_attach_remapped(struct mt_attach *a, uint32_t pid, const struct mt_attach_id *file)
{
	uint32_t i, k;

	for (i = 0; i < a->nattached; i++) {
		struct binary *b = a->attached[i].binary;

		if (a->attached[i].pid != pid || b->inode != file->inode ||
		    (b->dev_major << 20 | b->dev_minor) != file->dev)
			continue;
		if (!headless(a, pid))
			return;
		mt_attach_unlink(&a->attached[i]);
		a->attached[i] = a->attached[--a->nattached];
		for (k = 0; k < a->nmapped; k++)
			if (a->mapped[k].binary == b && a->mapped[k].pid == pid) {
				a->mapped[k] = a->mapped[--a->nmapped];
				break;
			}
		return;
	}
}

int mt_attach_arm(struct mt_attach *a, uint32_t pid)
{
	uint32_t to = a->opts.everybody || !a->opts.pid_filter || headless(a, pid) ? 0 : pid, i, k;
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
			if (a->attached[k].binary == a->mapped[i].binary &&
			    (!a->attached[k].pid || a->attached[k].pid == pid))
				break;
		if (k == a->nattached)
			err = arm_binary(a, a->mapped[i].binary, to);
	}
	return err;
}
