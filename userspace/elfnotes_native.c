/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes of montrace: a TEXT note with the strings, a CALLSITE note with the numbers, joined by a key
 * that is unique in one source file only. A linked file holds many source files, so a CALLSITE note
 * belongs to the nearest TEXT note of its key before it.
 *
 *   TEXT key 0 "open"    from a.c      <-- nearest of key 0 before the first callsite
 *   CALLSITE key 0
 *   TEXT key 1 "lost"                  no callsite: ignored
 *   TEXT key 0 "close"   from b.c      <-- nearest of key 0 before the second
 *   CALLSITE key 0
 *
 * Sorting (key, position) puts them side by side; no table that a file could make slow.
 *
 * A callsite is taken whole or not at all: one probe that is not what the note claims, and the whole
 * note is not to be trusted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elfnotes_int.h"

struct ref {
	const uint8_t *desc;
	uint32_t descsz;
	uint32_t key;
	uint32_t text; /* CALLSITE: its TEXT note in refs, NO_TEXT if none */
	bool is_text;
	bool bad; /* TEXT: unusable, but it still hides an older one of its key */
};

#define NO_TEXT UINT32_MAX

struct refs {
	struct ref *v;
	uint32_t n, cap;
};

static int refs_add(struct refs *l, const struct ref *r)
{
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 256;
		struct ref *v = realloc(l->v, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = *r;
	return 0;
}

static int take_note(struct mt_build *b, struct refs *l, const struct mt_note *note)
{
	struct ref r = {.desc = note->desc, .descsz = note->descsz, .text = NO_TEXT};
	uint32_t head[2]; /* abi, key: both kinds begin with them */

	r.is_text = note->type == MONTRACE_NT_TEXT;
	if (!r.is_text && note->type != MONTRACE_NT_CALLSITE)
		return 0; /* of a later version */
	if (note->descsz < sizeof(head)) {
		b->stats.malformed++;
		return 0;
	}
	memcpy(head, note->desc, sizeof(head));
	r.key = head[1];
	r.bad = head[0] != MONTRACE_ABI_VERSION;
	if (r.bad)
		b->stats.malformed++;
	if (r.bad && !r.is_text)
		return 0;
	return refs_add(l, &r);
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int join(struct refs *l)
{
	uint64_t *order = malloc((l->n + 1ul) * sizeof(*order));
	uint32_t text = NO_TEXT;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++)
		order[i] = (uint64_t)l->v[i].key << 32 | i;
	qsort(order, l->n, sizeof(*order), cmp_u64);
	for (uint32_t i = 0; i < l->n; i++) {
		struct ref *r = &l->v[(uint32_t)order[i]];

		if (i && order[i] >> 32 != order[i - 1] >> 32)
			text = NO_TEXT;
		if (r->is_text)
			text = (uint32_t)order[i];
		else
			r->text = text;
	}
	free(order);
	return 0;
}

/* What one CALLSITE note comes to. */
enum outcome { TAKEN, MALFORMED, DISCARDED, OVER_LIMIT };

static const uint8_t x86_nop[] = {0x90};
/* With the return behind it: there nothing below the stack pointer is alive, whoever wrote the note. */
static const uint8_t x86_nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
static const uint8_t arm_nop[] = {0x1f, 0x20, 0x03, 0xd5};

/* The bytes at link-time address addr are `want`? 1, 0, or -EIO. */
static int bytes_are(struct mt_build *b, uint64_t addr, const uint8_t *want, uint32_t len, uint64_t *ret_off)
{
	uint8_t got[8];
	uint64_t off;
	int r;

	if (!mt_elf_offset(&b->elf, addr, len, PF_X, &off) || off < b->elf.headers_end)
		return 0;
	r = mt_src_peek(b->elf.src, off, len, got);
	if (r)
		return r == -ENODATA ? 0 : r;
	if (memcmp(got, want, len))
		return 0;
	*ret_off = off;
	return 1;
}

/* Checks one thunk and fills p. 1, 0 if there is no nop where the note says, or -EIO. */
static int check_thunk(struct mt_build *b, const struct montrace_note *n, uint64_t thunk, struct mt_probe *p)
{
	bool arm = b->elf.machine == EM_AARCH64;
	uint32_t len = arm ? sizeof(arm_nop) : sizeof(x86_nop);
	int r;

	p->addr = thunk + n->nop_at;
	if (n->nop_at + len > MONTRACE_THUNK_SIZE || (arm && p->addr % 4))
		return 0;
	r = bytes_are(b, p->addr, arm ? arm_nop : x86_nop, len, &p->offset);
	if (r <= 0)
		return r;
	p->thunk = true;
	if (!n->nop5_at)
		return 1;
	p->thunk = false;
	if (arm || n->nop5_at + sizeof(x86_nop5) > MONTRACE_THUNK_SIZE)
		return 1;
	r = bytes_are(b, thunk + n->nop5_at, x86_nop5, sizeof(x86_nop5), &p->nop5_offset);
	if (r < 0)
		return r;
	p->thunk = r == 1;
	return 1;
}

static int add_probes(struct mt_build *b, const struct montrace_note *n, uint64_t sem_offset,
		      enum outcome *ret_outcome)
{
	uint64_t thunk = mt_elf_adjust(&b->elf, n->thunk, n->base);
	uint32_t first = b->native.n;
	unsigned nkinds;
	const uint8_t *kinds = mt_class_kinds(n->class_, &nkinds);

	if (nkinds > n->nprobes) /* an older header knew fewer; a later one's own we do not know */
		nkinds = n->nprobes;
	*ret_outcome = MALFORMED;
	for (unsigned i = 0; i < nkinds; i++) {
		struct mt_cand *c = mt_cands_add(&b->native);
		int r = c ? check_thunk(b, n, thunk + i * MONTRACE_THUNK_SIZE, &c->p) : -ENOMEM;

		if (r <= 0) {
			b->native.n = first;
			return r;
		}
		c->cs = b->ncs;
		c->p.kind = kinds[i];
		c->p.sem_offset = sem_offset;
		c->p.provider = "montrace";
		c->p.name = mt_kind_name(kinds[i]);
		c->p.args = b->elf.machine == EM_AARCH64 ? "8@x0 8@x1" : "8@%rdi 8@%rsi";
	}
	if (nkinds)
		*ret_outcome = TAKEN;
	return 0;
}

/* Name of the file without directory and last extension, into out. */
static void stem(const char *file, const char **ret_p, size_t *ret_len)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	const char *dot = strrchr(base, '.');

	*ret_p = base;
	*ret_len = dot && dot != base ? (size_t)(dot - base) : strlen(base);
}

static bool texts_are_whole(const struct ref *text, unsigned nfields)
{
	const uint8_t *p = text->desc + 8, *end = text->desc + text->descsz;
	const char *s;
	size_t len;

	for (unsigned i = 0; i < 3 + nfields; i++)
		if (!mt_note_text(&p, end, &s, &len))
			return false;
	return true;
}

/* Only after texts_are_whole. */
static int add_texts(struct mt_build *b, const struct ref *text, struct mt_callsite *cs)
{
	const uint8_t *p = text->desc + 8, *end = text->desc + text->descsz;
	const char *name, *target, *file, *field;
	size_t name_len, target_len, file_len, len;

	if (!mt_note_text(&p, end, &name, &name_len) || !mt_note_text(&p, end, &target, &target_len) ||
	    !mt_note_text(&p, end, &file, &file_len))
		return -EINVAL;
	cs->name = mt_arena_text(&b->arena, name, name_len, MT_LIMIT_NAME);
	cs->file = mt_arena_again(&b->arena, &b->last_file, file, file_len, MT_LIMIT_FILE);
	cs->function = "";
	if (!cs->name || !cs->file)
		return -ENOMEM;
	if (!target_len || cs->flags & MONTRACE_CSF_FILE_TARGET)
		stem(cs->file, &target, &target_len);
	cs->target = mt_arena_again(&b->arena, &b->last_target, target, target_len, MT_LIMIT_TARGET);
	if (!cs->target)
		return -ENOMEM;
	for (unsigned i = 0; i < cs->nfields; i++) {
		if (!mt_note_text(&p, end, &field, &len))
			return -EINVAL;
		cs->fields[i].name = mt_arena_text(&b->arena, field, len, MT_LIMIT_FIELD);
		if (!cs->fields[i].name)
			return -ENOMEM;
	}
	return 0;
}

/* Numbers that are in their ranges. Types: those of a later version could not be decoded. */
static bool numbers_are_sane(const struct montrace_note *n, const struct ref *r)
{
	unsigned nkinds;

	if (!mt_class_kinds(n->class_, &nkinds) || !n->nprobes || n->nfields > MONTRACE_MAX_FIELDS ||
	    n->level < MONTRACE_TRACE || n->level > MONTRACE_ERROR)
		return false;
	if (r->descsz - sizeof(*n) < n->nfields)
		return false;
	for (unsigned i = 0; i < n->nfields; i++) {
		uint8_t type = r->desc[sizeof(*n) + i];

		if (type < MONTRACE_TYPE_I64 || type > MONTRACE_TYPE_DEBUG)
			return false;
	}
	return true;
}

static struct mt_callsite *next_callsite(struct mt_build *b)
{
	if (b->ncs == b->cs_cap) {
		uint32_t cap = b->cs_cap ? b->cs_cap * 2 : 128;
		struct mt_callsite *v = realloc(b->cs, cap * sizeof(*v));

		if (!v)
			return NULL;
		b->cs = v;
		b->cs_cap = cap;
	}
	memset(&b->cs[b->ncs], 0, sizeof(*b->cs));
	return &b->cs[b->ncs];
}

static bool is_discarded(struct mt_build *b, const struct montrace_note *n)
{
	uint64_t code = mt_elf_adjust(&b->elf, n->code, n->base), off;

	return !n->code || !mt_elf_offset(&b->elf, code, 1, PF_X, &off) || off < b->elf.headers_end;
}

static int add_known(struct mt_build *b, uint64_t addr)
{
	if (b->nknown == b->known_cap) {
		uint32_t cap = b->known_cap ? b->known_cap * 2 : 128;
		uint64_t *v = realloc(b->known, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		b->known = v;
		b->known_cap = cap;
	}
	b->known[b->nknown++] = addr;
	return 0;
}

/* Some linkers drop a function and keep its thunks: their stapsdt notes are no foreign probes. */
static int add_dead(struct mt_build *b, const struct montrace_note *n)
{
	uint64_t thunk = mt_elf_adjust(&b->elf, n->thunk, n->base);
	unsigned nkinds;
	int r = 0;

	mt_class_kinds(n->class_, &nkinds);
	for (unsigned i = 0; !r && thunk && i < nkinds && i < n->nprobes; i++)
		r = add_known(b, thunk + i * MONTRACE_THUNK_SIZE + n->nop_at);
	return r;
}

static int add_callsite(struct mt_build *b, const struct refs *l, const struct ref *r,
			enum outcome *ret_outcome)
{
	const struct ref *text = r->text == NO_TEXT ? NULL : &l->v[r->text];
	struct montrace_note n;
	struct mt_callsite *cs;
	uint64_t sem;
	int err;

	*ret_outcome = MALFORMED;
	if (r->descsz < sizeof(n))
		return 0;
	memcpy(&n, r->desc, sizeof(n));
	if (is_discarded(b, &n)) {
		*ret_outcome = DISCARDED;
		return add_dead(b, &n);
	}
	if (!text || text->bad || !numbers_are_sane(&n, r) || !texts_are_whole(text, n.nfields))
		return 0;
	if (!mt_elf_offset(&b->elf, mt_elf_adjust(&b->elf, n.sem, n.base), 2, PF_W, &sem) || !sem)
		return 0;
	cs = next_callsite(b);
	if (!cs)
		return -ENOMEM;
	err = add_probes(b, &n, sem, ret_outcome);
	if (err || *ret_outcome != TAKEN)
		return err;
	if (b->native.n > b->max_probes) {
		while (b->native.n && b->native.v[b->native.n - 1].cs == b->ncs)
			b->native.n--, b->stats.over_limit++;
		*ret_outcome = OVER_LIMIT;
		return 0;
	}
	cs->class_ = n.class_;
	cs->level = n.level;
	cs->flags = n.flags;
	cs->line = n.line;
	cs->nfields = n.nfields;
	for (unsigned i = 0; i < n.nfields; i++)
		cs->fields[i].type = r->desc[sizeof(n) + i];
	err = add_texts(b, text, cs);
	if (!err)
		b->ncs++;
	return err;
}

static int take_range(struct mt_build *b, const struct mt_range *range)
{
	struct refs l = {0};
	struct mt_note note;
	uint32_t pos = 0;
	int r = 0;

	while (!r && mt_note_next(range, &pos, &note, &b->stats.malformed)) {
		if (note.owner == MT_OWNER_GNU && note.type == NT_GNU_BUILD_ID && !b->build_id[0]) {
			static const char hex[] = "0123456789abcdef";

			for (uint32_t i = 0; i < note.descsz && i < 20; i++) {
				b->build_id[2 * i] = hex[note.desc[i] >> 4];
				b->build_id[2 * i + 1] = hex[note.desc[i] & 15];
			}
		}
		if (note.owner == MT_OWNER_MONTRACE && b->elf.is64)
			r = take_note(b, &l, &note);
	}
	if (!r)
		r = join(&l);
	for (uint32_t i = 0; !r && i < l.n; i++) {
		enum outcome o;

		if (l.v[i].is_text)
			continue;
		r = add_callsite(b, &l, &l.v[i], &o);
		b->stats.malformed += !r && o == MALFORMED;
		b->stats.discarded += !r && o == DISCARDED;
	}
	free(l.v);
	return r;
}

/* Drops callsites that have a probe where an earlier one has one. */
static int drop_duplicates(struct mt_build *b)
{
	struct mt_addr_idx *sorted = NULL;
	uint32_t ncs = 0, np = 0;
	bool *drop = NULL;
	int r = mt_cands_by_addr(&b->native, &sorted);

	if (r)
		return r;
	drop = calloc(b->ncs + 1ul, sizeof(*drop));
	if (!drop) {
		r = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 1; i < b->native.n; i++)
		if (sorted[i].addr == sorted[i - 1].addr)
			drop[b->native.v[sorted[i].idx].cs] = true;
	for (uint32_t cs = 0, p = 0; cs < b->ncs; cs++) {
		for (; p < b->native.n && b->native.v[p].cs == cs; p++) {
			if (drop[cs])
				continue;
			b->native.v[np] = b->native.v[p];
			b->native.v[np++].cs = ncs;
		}
		if (drop[cs])
			b->stats.duplicate++;
		else
			b->cs[ncs++] = b->cs[cs];
	}
	b->ncs = ncs;
	b->native.n = np;
out:
	free(drop);
	free(sorted);
	return r;
}

static int sort_known(struct mt_build *b)
{
	bool sorted = true;
	int r = 0;

	for (uint32_t i = 0; !r && i < b->native.n; i++)
		r = add_known(b, b->native.v[i].p.addr);
	for (uint32_t i = 1; i < b->nknown; i++)
		sorted = sorted && b->known[i - 1] <= b->known[i];
	if (!sorted)
		qsort(b->known, b->nknown, sizeof(*b->known), cmp_u64);
	return r;
}

int mt_build_native(struct mt_build *b)
{
	int r;

	for (uint32_t i = 0; i < b->elf.nranges; i++) {
		r = take_range(b, &b->elf.ranges[i]);
		if (r)
			return r;
	}
	r = drop_duplicates(b);
	return r ? r : sort_known(b);
}
