/* SPDX-License-Identifier: BSD-3-Clause */
#include "ptread_int.h"

#define MAX_PARENTS 16

int pt_track_get(struct mt_ptread *r, uint64_t uuid, struct mt_pt_track **ret_track)
{
	uint32_t i = pt_map_get(&r->track_map, r->seed, uuid);
	struct mt_pt_track *t;
	int e;

	if (i) {
		*ret_track = r->tracks[i - 1];
		return 0;
	}
	if (r->ntracks >= MT_PTREAD_MAX_TRACKS) {
		r->info.over_limit++;
		*ret_track = NULL;
		return 0;
	}
	if (r->ntracks == r->cap_tracks) {
		uint32_t cap = r->cap_tracks ? r->cap_tracks * 2 : 64;
		struct mt_pt_track **v = realloc(r->tracks, cap * sizeof(struct mt_pt_track *));

		if (!v)
			return -ENOMEM;
		r->tracks = v;
		r->cap_tracks = cap;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->uuid = uuid;
	t->index = r->ntracks;
	t->name = t->pname = t->tname = t->unit_name = "";
	e = pt_map_add(&r->track_map, r->seed, uuid, r->ntracks + 1);
	if (e < 0) {
		free(t);
		return e;
	}
	r->tracks[r->ntracks++] = t;
	*ret_track = t;
	return 0;
}

static void text_free(const char *s)
{
	if (*s)
		free((char *)s);
}

void pt_track_free(struct mt_pt_track *t)
{
	text_free(t->name);
	text_free(t->pname);
	text_free(t->tname);
	text_free(t->unit_name);
	free(t);
}

/* Takes a new text, if there is one, within the budget for what a trace declares. */
static int set_text(struct mt_ptread *r, const char **text, struct mt_str s)
{
	size_t len = s.len ? strnlen(s.p, s.len) : 0;
	char *copy;

	if (!len || (strlen(*text) == len && !memcmp(*text, s.p, len)))
		return 0;
	if (r->interned + len > MT_PTREAD_MAX_INTERNED) {
		r->info.over_limit++;
		return 0;
	}
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s.p, len);
	copy[len] = 0;
	r->interned += len;
	r->interned -= strlen(*text);
	text_free(*text);
	*text = copy;
	return 0;
}

/* A descriptor, taken apart. */
struct desc {
	struct mt_pt_track t; /* numbers only */
	struct mt_str name, pname, tname, unit_name;
};

static int parse_process(struct pt_wire w, struct desc *d)
{
	struct pt_field f;
	int e;

	d->t.is_process = true;
	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(1))
			d->t.pid = (int32_t)f.u;
		else if (f.tag == PT_BYTES(6))
			d->pname = pt_str(f.data);
	}
	return e;
}

static int parse_thread(struct pt_wire w, struct desc *d)
{
	struct pt_field f;
	int e;

	d->t.is_thread = true;
	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(1))
			d->t.pid = (int32_t)f.u;
		else if (f.tag == PT_VARINT(2))
			d->t.tid = (int64_t)f.u;
		else if (f.tag == PT_BYTES(5))
			d->tname = pt_str(f.data);
	}
	return e;
}

static int parse_counter(struct pt_wire w, struct desc *d)
{
	struct pt_field f;
	int e;

	d->t.is_counter = true;
	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(3))
			d->t.unit = (uint32_t)f.u;
		else if (f.tag == PT_VARINT(4))
			d->t.unit_multiplier = (int64_t)f.u;
		else if (f.tag == PT_VARINT(5))
			d->t.incremental = f.u != 0;
		else if (f.tag == PT_BYTES(6))
			d->unit_name = pt_str(f.data);
	}
	return e;
}

static int parse(struct pt_wire w, struct desc *d)
{
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_VARINT(1):
			d->t.uuid = f.u;
			break;
		case PT_VARINT(5):
			d->t.parent = f.u;
			break;
		case PT_BYTES(2):
		case PT_BYTES(10):
		case PT_BYTES(13):
			d->name = pt_str(f.data);
			break;
		case PT_BYTES(3):
			e = parse_process(f.data, d);
			break;
		case PT_BYTES(4):
			e = parse_thread(f.data, d);
			break;
		case PT_BYTES(8):
			e = parse_counter(f.data, d);
			break;
		}
		if (e < 0)
			return e;
	}
	return e;
}

static bool same_identity(const struct mt_pt_track *a, const struct mt_pt_track *b)
{
	return a->parent == b->parent && a->is_process == b->is_process && a->is_thread == b->is_thread &&
	       a->is_counter == b->is_counter && a->pid == b->pid && a->tid == b->tid;
}

/* TrackDescriptor. The first identity of a uuid stays; names are the last ones. */
int pt_track_describe(struct mt_ptread *r, struct pt_wire w, struct mt_pt_track **ret_track)
{
	struct desc d = {0};
	struct mt_pt_track *t;
	int e;

	*ret_track = NULL;
	e = parse(w, &d);
	if (e < 0)
		return e;
	e = pt_track_get(r, d.t.uuid, &t);
	if (e < 0 || !t)
		return e;
	if (t->described && !same_identity(t, &d.t)) {
		r->info.conflicts++;
		return 0;
	}
	if (!t->described) {
		t->described = true;
		t->parent = d.t.parent;
		t->is_process = d.t.is_process;
		t->is_thread = d.t.is_thread;
		t->is_counter = d.t.is_counter;
		t->incremental = d.t.incremental;
		t->pid = d.t.pid;
		t->tid = d.t.tid;
		t->unit = d.t.unit;
		t->unit_multiplier = d.t.unit_multiplier;
	}
	e = set_text(r, &t->name, d.name);
	if (!e)
		e = set_text(r, &t->pname, d.pname);
	if (!e)
		e = set_text(r, &t->tname, d.tname);
	if (!e)
		e = set_text(r, &t->unit_name, d.unit_name);
	*ret_track = t;
	return e;
}

uint32_t mt_ptread_ntracks(const struct mt_ptread *r)
{
	return r->ntracks;
}

const struct mt_pt_track *mt_ptread_track(const struct mt_ptread *r, uint32_t index)
{
	return index < r->ntracks ? r->tracks[index] : NULL;
}

const struct mt_pt_track *mt_ptread_parent(const struct mt_ptread *r, const struct mt_pt_track *t)
{
	uint32_t i = t->parent ? pt_map_get(&r->track_map, r->seed, t->parent) : 0;

	return i ? r->tracks[i - 1] : NULL;
}

/* Parents may form a ring in a bad file, hence the bound. */
void mt_ptread_owner(const struct mt_ptread *r, const struct mt_pt_track *t,
		     const struct mt_pt_track **ret_thread, const struct mt_pt_track **ret_process)
{
	*ret_thread = *ret_process = NULL;
	for (int i = 0; t && i < MAX_PARENTS; i++, t = mt_ptread_parent(r, t)) {
		if (t->is_thread && !*ret_thread)
			*ret_thread = t;
		if (t->is_process) {
			*ret_process = t;
			return;
		}
	}
}
