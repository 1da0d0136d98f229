/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first reading: the head of each file (whose is it, have we had it already), then all of it by ptread,
 * which says where the good part ends, and what tracks, times and clocks are in that.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "merge_int.h"

#define PEEK (64u << 10)
#define MAX_SYSTEM 4096u
#define GAP_NS 10000000000ull /* between two snapshots of which the second says nothing new */
#define SUSPEND_NS 1000000ull /* boot against monotonic time: this much is news */
#define STEP_NS 50000000ull   /* real time: the same; slewing stays below it */

/* ---- the head of a file ---- */

static void keep_text(char *to, size_t cap, struct mt_str s)
{
	mt_text_safe(to, cap, s.p, s.len);
}

static bool is_key(struct mt_str s, const char *key)
{
	return s.len == strlen(key) && !memcmp(s.p, key, s.len);
}

static void peek_attribute(struct mg_file *f, struct pt_wire w)
{
	struct mt_str key = {"", 0}, text = {"", 0};
	struct pt_field fd;

	while (pt_next(&w, &fd) > 0) {
		if (fd.tag == PT_BYTES(1))
			key = pt_str(fd.data);
		else if (fd.tag == PT_BYTES(3))
			text = pt_str(fd.data);
	}
	if (is_key(key, "montrace-bpf.boot_id"))
		keep_text(f->boot_id, sizeof(f->boot_id), text);
	else if (is_key(key, "montrace-bpf.host"))
		keep_text(f->host_name, sizeof(f->host_name), text);
	else if (is_key(key, "montrace-bpf.merged_files"))
		f->merged = true;
}

static int peek_packet(struct mg_file *f, struct pt_wire w)
{
	struct pt_field fd, at;

	while (pt_next(&w, &fd) > 0) {
		size_t len = pt_wire_len(&fd.data);

		if (fd.tag == PT_VARINT(98)) {
			f->machines |= fd.u != 0;
		} else if (fd.tag == PT_BYTES(89) && len && len <= sizeof(f->uuid)) {
			memcpy(f->uuid, fd.data.p, len);
			f->uuid_len = (uint32_t)len;
		} else if (fd.tag == PT_BYTES(45) && !f->system && len <= MAX_SYSTEM) {
			f->system = malloc(len + 1);
			if (!f->system)
				return -ENOMEM;
			memcpy(f->system, fd.data.p, len);
			f->system_len = len;
		} else if (fd.tag == PT_BYTES(126)) {
			while (pt_next(&fd.data, &at) > 0)
				if (at.tag == PT_BYTES(1))
					peek_attribute(f, at.data);
		}
	}
	return 0;
}

static int peek(struct mg_file *f)
{
	unsigned char *buf = malloc(PEEK);
	struct pt_wire w;
	struct pt_field fd;
	ssize_t n;
	int r = 0;

	if (!buf)
		return -ENOMEM;
	do {
		n = pread(f->in->fd, buf, PEEK, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		r = -errno;
	w = (struct pt_wire){buf, buf + (n > 0 ? n : 0)};
	while (!r && pt_next(&w, &fd) > 0 && fd.tag == PT_BYTES(1))
		r = peek_packet(f, fd.data);
	free(buf);
	return r;
}

/* ---- the same trace twice ---- */

static bool same_file(const struct mg_file *a, const struct mg_file *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

static bool same_uuid(const struct mg_file *a, const struct mg_file *b)
{
	return a->uuid_len && a->uuid_len == b->uuid_len && !memcmp(a->uuid, b->uuid, a->uuid_len);
}

/* The input of which f is the same file or a copy, MG_NONE if there is none so far; then f is remembered. */
static int find_twin(struct merge *m, struct pt_map *inodes, struct pt_map *uuids, uint32_t i,
		     uint32_t *ret_twin)
{
	const struct mg_file *f = &m->files[i];
	uint64_t ino = mg_mix(f->dev, f->ino), id = 0;
	uint32_t by_ino = pt_map_get(inodes, m->seed, ino), by_id = 0;
	int r = 0;

	for (uint32_t k = 0; k < f->uuid_len; k++)
		id = mg_mix(id, f->uuid[k]);
	if (f->uuid_len)
		by_id = pt_map_get(uuids, m->seed, id);
	*ret_twin = MG_NONE;
	if (by_ino && same_file(f, &m->files[by_ino - 1]))
		*ret_twin = by_ino - 1;
	else if (by_id && same_uuid(f, &m->files[by_id - 1]))
		*ret_twin = by_id - 1;
	if (!by_ino)
		r = pt_map_add(inodes, m->seed, ino, i + 1);
	if (!r && f->uuid_len && !by_id)
		r = pt_map_add(uuids, m->seed, id, i + 1);
	return r;
}

/*
 * Of inputs that are one file, or copies of one trace, the largest counts: a copy may have been taken while
 * the trace was written. class[i]: the first of them; best[class]: the one that counts.
 */
static int find_duplicates(struct merge *m)
{
	struct pt_map inodes = {0}, uuids = {0};
	uint32_t n = m->opts->ninputs, *class = calloc(n + 1, sizeof(*class));
	uint32_t *best = calloc(n + 1, sizeof(*best)), twin;
	int r = class && best ? 0 : -ENOMEM;

	for (uint32_t i = 0; !r && i < n; i++) {
		class[i] = best[i] = i;
		if (m->files[i].in->status != MT_MERGE_TAKEN)
			continue;
		r = find_twin(m, &inodes, &uuids, i, &twin);
		if (r || twin == MG_NONE)
			continue;
		class[i] = class[twin];
		if (m->files[i].size > m->files[best[class[i]]].size)
			best[class[i]] = i;
	}
	for (uint32_t i = 0; !r && i < n; i++) {
		m->files[i].in->same = best[class[i]];
		if (best[class[i]] != i)
			m->files[i].in->status = MT_MERGE_DUPLICATE;
	}
	pt_map_free(&inodes);
	pt_map_free(&uuids);
	free(class);
	free(best);
	return r;
}

static int open_input(struct merge *m, struct mg_file *f)
{
	struct mt_merge_input *in = f->in;
	struct stat st;
	int r;

	in->why = "";
	in->status = MT_MERGE_UNREADABLE;
	if (in->fd < 0)
		return 0;
	if (fstat(in->fd, &st) < 0)
		return mg_fail(m, -errno, "%s: %s", in->name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return mg_fail(m, -EINVAL, "%s: is not a regular file", in->name);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->size = (uint64_t)st.st_size;
	r = peek(f);
	if (r < 0)
		return mg_fail(m, r, "%s: %s", in->name, strerror(-r));
	in->status = f->merged && in->listed ? MT_MERGE_MERGED : MT_MERGE_TAKEN;
	if (f->machines && in->status == MT_MERGE_TAKEN)
		return mg_fail(m, -EINVAL, "%s: holds several hosts already: merge the files it was made of",
			       in->name);
	return 0;
}

int mg_peek_all(struct merge *m)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < m->opts->ninputs; i++) {
		m->files[i].in = &m->opts->inputs[i];
		r = open_input(m, &m->files[i]);
	}
	return r ? r : find_duplicates(m);
}

/* ---- all of a file ---- */

struct scan {
	struct merge *m;
	struct mg_file *f;
	struct mg_track *v;
	uint32_t cap;
};

static int touch(struct scan *s, uint32_t index)
{
	uint32_t cap = s->cap ? s->cap * 2 : 64;
	struct mg_track *v;

	if (index < s->cap)
		return 0;
	while (cap <= index)
		cap *= 2;
	v = realloc(s->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = s->cap; i < cap; i++)
		v[i] = (struct mg_track){.first = UINT64_MAX};
	s->v = v;
	s->cap = cap;
	return 0;
}

static int take_event(struct scan *s, const struct mt_pt_event *ev)
{
	struct mg_track *t;
	int r = touch(s, ev->track->index);

	if (r < 0)
		return r;
	t = &s->v[ev->track->index];
	if (ev->has_ts) {
		t->first = ev->ts < t->first ? ev->ts : t->first;
		t->last = ev->ts > t->last ? ev->ts : t->last;
		s->f->first = ev->ts < s->f->first ? ev->ts : s->f->first;
	}
	if (ev->kind == MT_PT_BEGIN)
		t->open += t->open < UINT32_MAX;
	else if (ev->kind == MT_PT_END)
		t->open -= t->open > 0;
	return 0;
}

static int take(void *ctx, const struct mt_pt_event *ev)
{
	struct scan *s = ctx;

	switch (ev->kind) {
	case MT_PT_BEGIN:
	case MT_PT_END:
	case MT_PT_INSTANT:
	case MT_PT_COUNTER:
		return take_event(s, ev);
	case MT_PT_ATTRIBUTE:
		return mg_attr_add(s->m, ev);
	case MT_PT_TRACK:
	case MT_PT_LOSS:
		break;
	}
	return 0;
}

static uint64_t text_hash(const char *s)
{
	uint64_t h = 0;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
	return h;
}

static void take_track(struct mg_track *t, const struct mt_pt_track *p)
{
	t->uuid = t->to = p->uuid;
	t->parent = p->parent;
	t->described = p->described;
	t->what = mg_mix((uint64_t)p->is_process | (uint64_t)p->is_thread << 1 | (uint64_t)p->is_counter << 2,
			 (uint32_t)p->pid);
	t->what = mg_mix(t->what, (uint64_t)p->tid);
	if (!p->is_process && !p->is_thread)
		t->what = mg_mix(t->what, text_hash(p->name));
	/* Sums do not go on in another file. */
	if (p->incremental && t->first <= t->last)
		t->open = 1;
}

static int keep_tracks(struct scan *s, const struct mt_ptread *r)
{
	struct mg_file *f = s->f;
	uint32_t n = mt_ptread_ntracks(r);
	int e = 0;

	if (n > MG_MAX_TRACKS - s->m->ntracks)
		return mg_fail(s->m, -EFBIG, "%s: more than %u tracks in all", f->in->name, MG_MAX_TRACKS);
	s->m->ntracks += n;
	e = n ? touch(s, n - 1) : 0;
	f->tracks = s->v;
	s->v = NULL;
	for (uint32_t i = 0; !e && i < n; i++) {
		take_track(&f->tracks[i], mt_ptread_track(r, i));
		e = pt_map_add(&f->by_uuid, s->m->seed, f->tracks[i].uuid, i + 1);
	}
	f->ntracks = e ? 0 : n;
	return e;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a - b < b - a ? a - b : b - a;
}

/* Leaves out what says nothing new, and what is too much. */
static int keep_snaps(struct mg_file *f, const struct mt_ptread *r)
{
	uint64_t gap = GAP_NS, span = r->nsnaps ? r->snaps[r->nsnaps - 1].boot - r->snaps[0].boot : 0;
	const struct pt_snapshot *last = NULL;

	if (span / (MG_MAX_SNAPS / 2) > gap)
		gap = span / (MG_MAX_SNAPS / 2);
	f->has_real = r->has_real;
	if (!r->nsnaps)
		return 0;
	f->first = r->snaps[0].boot < f->first ? r->snaps[0].boot : f->first;
	f->snaps = calloc(r->nsnaps < MG_MAX_SNAPS ? r->nsnaps : MG_MAX_SNAPS, sizeof(*f->snaps));
	if (!f->snaps)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->nsnaps && f->nsnaps < MG_MAX_SNAPS; i++) {
		const struct pt_snapshot *s = &r->snaps[i];

		if (!last || i == r->nsnaps - 1 || s->boot - last->boot >= gap ||
		    apart(s->boot - s->mono, last->boot - last->mono) >= SUSPEND_NS ||
		    (f->has_real && apart(s->real - s->boot, last->real - last->boot) >= STEP_NS)) {
			f->snaps[f->nsnaps++] = *s;
			last = s;
		}
	}
	return 0;
}

/* Fills in what the first reading says of f. */
int mg_scan(struct merge *m, struct mg_file *f)
{
	struct scan s = {.m = m, .f = f};
	const struct mt_ptread_info *info;
	struct mt_ptread *r = NULL;
	int e;

	f->first = UINT64_MAX;
	e = mt_ptread_new(&r);
	if (!e && lseek(f->in->fd, 0, SEEK_SET) < 0)
		e = -errno;
	if (e < 0)
		goto out;
	e = mt_ptread_fd(r, f->in->fd, take, &s);
	if (e < 0 && e != -EBADMSG)
		goto out;
	info = mt_ptread_info(r);
	f->in->bytes = info->bytes;
	f->in->torn = e ? 0 : info->truncated;
	f->in->why = info->why;
	f->in->bad_offset = info->bad_offset;
	if (!info->packets)
		f->in->status = MT_MERGE_EMPTY;
	e = keep_tracks(&s, r);
	if (!e)
		e = keep_snaps(f, r);
out:
	free(s.v);
	mt_ptread_free(r);
	return e < 0 ? mg_fail(m, e, "%s: %s", f->in->name, strerror(-e)) : 0;
}
