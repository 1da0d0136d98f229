/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes of everybody's USDT probes (owner "stapsdt", type 3): address, base, semaphore, then provider,
 * name and operands. Probes of montrace callsites have such a note too; those are not listed twice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elfnotes_int.h"

#define NT_STAPSDT 3

struct stap {
	uint64_t addr, base, sem;
	const char *provider, *name, *args;
	size_t provider_len, name_len, args_len;
};

static bool parse(const struct mt_elf *e, const struct mt_note *note, struct stap *ret)
{
	const uint8_t *p = note->desc, *end = p + note->descsz;
	uint64_t v[3] = {0};
	size_t word = e->is64 ? 8 : 4;

	if (note->descsz < 3 * word)
		return false;
	for (unsigned i = 0; i < 3; i++, p += word)
		memcpy(&v[i], p, word); /* little endian: the upper half stays 0 */
	ret->addr = v[0];
	ret->base = v[1];
	ret->sem = v[2];
	if (!mt_note_text(&p, end, &ret->provider, &ret->provider_len) ||
	    !mt_note_text(&p, end, &ret->name, &ret->name_len) || !ret->provider_len || !ret->name_len)
		return false;
	if (p == end) { /* no operands, and no NUL for them either */
		ret->args = "";
		ret->args_len = 0;
		return true;
	}
	return mt_note_text(&p, end, &ret->args, &ret->args_len) && ret->args_len <= MT_LIMIT_ARGS;
}

static bool is_native(const struct mt_build *b, const struct stap *s, uint64_t addr)
{
	uint32_t lo = 0, hi = b->nknown;

	if (s->provider_len != 8 || memcmp(s->provider, "montrace", 8))
		return false;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (b->known[mid] == addr)
			return true;
		if (b->known[mid] < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

/* With a semaphore that cannot be raised the probe would never fire: better no probe. *ret 0: it has none. */
static bool semaphore(const struct mt_elf *e, const struct stap *s, uint64_t *ret)
{
	uint64_t addr = mt_elf_adjust(e, s->sem, s->base);

	*ret = 0;
	return !s->sem ||
	       (mt_elf_mapped(e, addr, 2, PF_W, ret) && *ret && *ret % 2 == 0 && !mt_elf_sealed(e, addr));
}

/* A nop of exactly 5 bytes, in whatever form: prefixes, then 90, or 0f 1f with its operand. */
static bool is_nop5(const uint8_t p[5])
{
	unsigned i = 0, mod, rm;

	while (i < 4 &&
	       (memchr("\x66\x67\x2e\x36\x3e\x26\x64\x65\xf2\xf3", p[i], 10) || (p[i] & 0xf0) == 0x40))
		i++;
	if (p[i] == 0x90)
		return i == 4;
	if (i > 2 || p[i] != 0x0f || p[i + 1] != 0x1f)
		return false;
	i += 2;
	mod = p[i] >> 6;
	rm = p[i] & 7;
	i += 1 + (mod != 3 && rm == 4);
	if (mod == 1)
		i++;
	else if (mod == 2 || (mod == 0 && rm == 5))
		i += 4;
	return i == 5;
}

static bool on_nop5(struct mt_build *b, uint64_t offset)
{
	uint8_t p[5];

	return b->elf.machine == EM_X86_64 && !mt_src_peek(b->elf.src, offset, sizeof(p), p) && is_nop5(p);
}

static int add(struct mt_build *b, const struct stap *s, uint64_t addr, uint64_t offset, uint64_t sem)
{
	struct mt_cand *c = mt_cands_add(&b->foreign);

	if (!c)
		return -ENOMEM;
	c->cs = MT_NO_CALLSITE;
	c->p.addr = addr;
	c->p.offset = offset;
	c->p.sem_offset = sem;
	c->p.on_nop5 = on_nop5(b, offset);
	c->p.provider =
		mt_arena_again(&b->arena, &b->last_provider, s->provider, s->provider_len, MT_LIMIT_PROVIDER);
	c->p.name = mt_arena_again(&b->arena, &b->last_name, s->name, s->name_len, MT_LIMIT_NAME);
	c->p.args = mt_arena_again(&b->arena, &b->last_args, s->args, s->args_len, MT_LIMIT_ARGS);
	return c->p.provider && c->p.name && c->p.args ? 0 : -ENOMEM;
}

static int take_note(struct mt_build *b, const struct mt_note *note)
{
	const struct mt_elf *e = &b->elf;
	uint64_t addr, off, sem = 0;
	struct stap s;

	if (!parse(e, note, &s)) {
		b->stats.malformed++;
		return 0;
	}
	addr = mt_elf_adjust(e, s.addr, s.base);
	if (is_native(b, &s, addr))
		return 0;
	if (!s.addr || !mt_elf_offset(e, addr, 1, PF_X, &off) || off < e->headers_end) {
		b->stats.discarded++;
		return 0;
	}
	if (e->machine == EM_AARCH64 && addr % 4) {
		b->stats.malformed++;
		return 0;
	}
	if (!semaphore(e, &s, &sem)) {
		b->stats.semaphore++;
		return 0;
	}
	if (b->native.n + b->foreign.n >= b->max_probes) {
		b->stats.over_limit++;
		return 0;
	}
	return add(b, &s, addr, off, sem);
}

/* Same text? Mostly the same pointer. */
static int cmp_text(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

static int cmp_probe(const void *a, const void *b)
{
	const struct mt_cand *x = *(const struct mt_cand *const *)a, *y = *(const struct mt_cand *const *)b;
	int r = cmp_text(x->p.provider, y->p.provider);

	if (!r)
		r = cmp_text(x->p.name, y->p.name);
	return r ? r : (x > y) - (x < y);
}

/* Marks what is twice among n probes of one address; provider NULL is the mark. */
static int mark_twins(struct mt_cands *c, const struct mt_addr_idx *same, uint32_t n)
{
	struct mt_cand **v;

	if (n < 2)
		return 0;
	v = malloc(n * sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		v[i] = &c->v[same[i].idx];
	qsort(v, n, sizeof(*v), cmp_probe);
	for (uint32_t i = 1, kept = 0; i < n; i++) {
		if (cmp_text(v[kept]->p.provider, v[i]->p.provider) ||
		    cmp_text(v[kept]->p.name, v[i]->p.name))
			kept = i;
		else
			v[i]->p.provider = NULL;
	}
	free(v);
	return 0;
}

static int drop_duplicates(struct mt_build *b)
{
	struct mt_addr_idx *sorted = NULL;
	uint32_t kept = 0;
	int r = mt_cands_by_addr(&b->foreign, &sorted);

	for (uint32_t i = 0, j; !r && i < b->foreign.n; i = j) {
		for (j = i + 1; j < b->foreign.n && sorted[j].addr == sorted[i].addr; j++)
			;
		r = mark_twins(&b->foreign, sorted + i, j - i);
	}
	free(sorted);
	if (r)
		return r;
	for (uint32_t i = 0; i < b->foreign.n; i++) {
		if (b->foreign.v[i].p.provider)
			b->foreign.v[kept++] = b->foreign.v[i];
		else
			b->stats.duplicate++;
	}
	b->foreign.n = kept;
	return 0;
}

int mt_build_foreign(struct mt_build *b)
{
	for (uint32_t i = 0; i < b->elf.nranges; i++) {
		struct mt_note note;
		uint32_t pos = 0;

		while (mt_note_next(&b->elf.ranges[i], &pos, &note, NULL)) {
			int r = 0;

			if (note.owner == MT_OWNER_STAPSDT && note.type == NT_STAPSDT)
				r = take_note(b, &note);
			if (r)
				return r;
		}
	}
	return drop_duplicates(b);
}
