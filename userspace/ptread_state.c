/* SPDX-License-Identifier: BSD-3-Clause */
#include "ptread_int.h"

/* Makes room for one more element. 0 or -ENOMEM. */
static int grow(void **v, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return 0;
	if (want <= *cap)
		return -ENOMEM;
	p = realloc(*v, want * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = want;
	return 0;
}

/* *ret_seq is NULL if there are too many sequences. */
int pt_seq_get(struct mt_ptread *r, uint32_t id, struct pt_seq **ret_seq)
{
	uint32_t i = pt_map_get(&r->seq_map, r->seed, id);
	struct pt_seq *s;
	int e;

	if (i) {
		*ret_seq = r->seqs[i - 1];
		return 0;
	}
	if (r->nseqs >= MT_PTREAD_MAX_SEQS) {
		r->info.over_limit++;
		*ret_seq = NULL;
		return 0;
	}
	e = grow((void **)&r->seqs, r->nseqs, &r->cap_seqs, sizeof(*r->seqs));
	if (e < 0)
		return e;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->id = id;
	e = pt_map_add(&r->seq_map, r->seed, id, r->nseqs + 1);
	if (e < 0) {
		free(s);
		return e;
	}
	r->seqs[r->nseqs++] = s;
	*ret_seq = s;
	return 0;
}

/* SEQ_INCREMENTAL_STATE_CLEARED: forgets interned data and defaults; clocks keep their place. */
void pt_seq_clear(struct mt_ptread *r, struct pt_seq *s)
{
	for (int t = 0; t < PT_NTABLES; t++)
		pt_map_reset(&s->map[t]);
	r->interned -= s->text_len + (size_t)s->nentries * PT_ENTRY_COST;
	s->text_len = 0;
	s->nentries = 0;
	s->has_clk = s->has_uuid = false;
	s->valid = true;
}

void pt_seq_free(struct pt_seq *s)
{
	if (!s)
		return;
	for (int t = 0; t < PT_NTABLES; t++)
		pt_map_free(&s->map[t]);
	free(s->entries);
	free(s->text);
	free(s->clocks.v);
	free(s);
}

/* TracePacketDefaults */
int pt_seq_defaults(struct pt_seq *s, struct pt_wire w)
{
	struct pt_field f, g;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(58)) {
			s->clk = (uint32_t)f.u;
			s->has_clk = true;
		}
		if (f.tag != PT_BYTES(11))
			continue;
		while ((e = pt_next(&f.data, &g)) > 0) {
			if (g.tag == PT_VARINT(11)) {
				s->uuid = g.u;
				s->has_uuid = true;
			}
		}
		if (e < 0)
			return e;
	}
	return e;
}

/* Appends to the sequence's text; the caller has checked the budget. 0 or -ENOMEM. */
static int add_text(struct mt_ptread *r, struct pt_seq *s, struct mt_str t, uint32_t *ret_off)
{
	if (s->text_cap - s->text_len < t.len) {
		size_t cap = s->text_cap ? s->text_cap * 2 : 1024;
		char *p;

		while (cap - s->text_len < t.len)
			cap *= 2;
		p = realloc(s->text, cap);
		if (!p)
			return -ENOMEM;
		s->text = p;
		s->text_cap = cap;
	}
	if (t.len)
		memcpy(s->text + s->text_len, t.p, t.len);
	*ret_off = (uint32_t)s->text_len;
	s->text_len += t.len;
	r->interned += t.len;
	return 0;
}

static int add_entry(struct mt_ptread *r, struct pt_seq *s, enum pt_table t, uint64_t iid, struct mt_str a,
		     struct mt_str b, uint32_t line)
{
	struct pt_entry en = {.len = a.len, .len2 = b.len, .line = line};
	int e;

	if (!iid)
		return 0;
	if (pt_map_get(&s->map[t], r->seed, iid)) {
		r->info.redefined_iids++;
		return 0;
	}
	if ((uint64_t)r->interned + a.len + b.len + PT_ENTRY_COST > MT_PTREAD_MAX_INTERNED) {
		r->info.over_limit++;
		return 0;
	}
	e = grow((void **)&s->entries, s->nentries, &s->cap_entries, sizeof(*s->entries));
	if (e < 0)
		return e;
	e = add_text(r, s, a, &en.off);
	if (e < 0)
		return e;
	e = add_text(r, s, b, &en.off2);
	if (e < 0)
		return e;
	e = pt_map_add(&s->map[t], r->seed, iid, s->nentries + 1);
	if (e < 0)
		return e;
	s->entries[s->nentries++] = en;
	r->interned += PT_ENTRY_COST;
	return 0;
}

/* SourceLocation; what is not there stays as the caller set it. */
int pt_location(struct pt_wire w, uint64_t *ret_iid, struct mt_str *ret_file, struct mt_str *ret_function,
		uint32_t *ret_line)
{
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_VARINT(1):
			*ret_iid = f.u;
			break;
		case PT_BYTES(2):
			*ret_file = pt_str(f.data);
			break;
		case PT_BYTES(3):
			*ret_function = pt_str(f.data);
			break;
		case PT_VARINT(4):
			*ret_line = (uint32_t)f.u;
			break;
		}
	}
	return e;
}

/* {iid = 1, text = 2}: EventName, EventCategory, DebugAnnotationName, InternedString */
static int named(struct pt_wire w, uint64_t *ret_iid, struct mt_str *ret_text)
{
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag == PT_VARINT(1))
			*ret_iid = f.u;
		else if (f.tag == PT_BYTES(2))
			*ret_text = pt_str(f.data);
	}
	return e;
}

/* InternedData */
int pt_seq_intern(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w)
{
	struct pt_field f;
	int e;

	while ((e = pt_next(&w, &f)) > 0) {
		struct mt_str a = {"", 0}, b = {"", 0};
		enum pt_table t;
		uint64_t iid = 0;
		uint32_t line = 0;

		switch (f.tag) {
		case PT_BYTES(1):
			t = PT_CATEGORIES;
			break;
		case PT_BYTES(2):
			t = PT_NAMES;
			break;
		case PT_BYTES(3):
			t = PT_ARG_NAMES;
			break;
		case PT_BYTES(4):
			t = PT_LOCATIONS;
			break;
		case PT_BYTES(29):
			t = PT_ARG_STRINGS;
			break;
		default:
			continue;
		}
		e = t == PT_LOCATIONS ? pt_location(f.data, &iid, &a, &b, &line) : named(f.data, &iid, &a);
		if (e < 0)
			return e;
		e = add_entry(r, s, t, iid, a, b, line);
		if (e < 0)
			return e;
	}
	return e;
}

/* NULL, counted, if it is not there. The pointer is good until the next packet. */
const struct pt_entry *pt_seq_find(struct mt_ptread *r, struct pt_seq *s, enum pt_table t, uint64_t iid)
{
	uint32_t i = s->valid ? pt_map_get(&s->map[t], r->seed, iid) : 0;

	if (!i) {
		r->info.unknown_iids++;
		return NULL;
	}
	return &s->entries[i - 1];
}

struct mt_str pt_seq_text(const struct pt_seq *s, const struct pt_entry *e)
{
	return e->len ? (struct mt_str){s->text + e->off, e->len} : (struct mt_str){"", 0};
}
