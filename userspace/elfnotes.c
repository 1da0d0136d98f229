/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes of an ELF file.
 *
 * The idea: the file is a claim, the bytes at the places it names are the proof. Notes say where probes
 * are; every place is looked up in the loadable segments, and for montrace's own probes the very
 * instructions are compared before anybody may overwrite them.
 *
 *  1. Only the headers, the section names, the note sections and the probed instructions are read, never
 *     the file as a whole, and never through a mapping.
 *  2. Work and memory are bounded by constants and by the file's size: 256 segments, 256 note sections,
 *     128 MiB of notes, 1,000,000 probes; sorting instead of hashing, so no input is a slow one.
 *  3. A note that lies costs itself. It is counted by reason and the walk goes on.
 *  4. What comes out is safe: offsets are inside of the file and of an executable (probe) or writable
 *     (semaphore) segment; texts are valid UTF-8 without control characters and of bounded length.
 *  5. No address occurs in two callsites, and a montrace probe is not listed again as a foreign one.
 *
 * Example: a file has one callsite of class SCOPE and one foreign probe.
 *   .note.montrace  TEXT key 0 "load" "" "src/db.c" "rows"
 *                   CALLSITE key 0 class SCOPE thunk 0x2000 nop_at 4 nop5_at 5 nprobes 2 types U64
 *   .note.stapsdt   0x2004 montrace:scope_begin, 0x2014 montrace:scope_end, 0x1100 libx:done
 * The callsite gets target "db"; its probes are at 0x2004 (5-byte nop at 0x2005) and 0x2014, if the nops
 * are there. The first two stapsdt notes are then known already; the third is the one foreign probe.
 *
 * What it does not do: it does not parse operands (usdt_operand), follow debug links (it names them), inflate
 * compressed sections (it counts them), or look at the process.
 * It does not check the instruction at a foreign probe: others put probes on other things than nops.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "elfnotes_int.h"
#include "strings.h"

/* What *ret_notes really is: the texts live with it. */
struct notes {
	struct mt_elfnotes pub;
	struct mt_arena arena;
};

struct mt_cand *mt_cands_add(struct mt_cands *c)
{
	if (c->n == c->cap) {
		uint32_t cap = c->cap ? c->cap * 2 : 128;
		struct mt_cand *v = realloc(c->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		c->v = v;
		c->cap = cap;
	}
	memset(&c->v[c->n], 0, sizeof(*c->v));
	return &c->v[c->n++];
}

static int cmp_addr(const void *a, const void *b)
{
	const struct mt_addr_idx *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (x->idx > y->idx) - (x->idx < y->idx);
}

int mt_cands_by_addr(const struct mt_cands *c, struct mt_addr_idx **ret_sorted)
{
	struct mt_addr_idx *v = malloc((c->n + 1ul) * sizeof(*v));
	bool sorted = true;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		v[i] = (struct mt_addr_idx){c->v[i].p.addr, i};
		sorted = sorted && (!i || v[i - 1].addr <= v[i].addr);
	}
	if (!sorted) /* linkers keep the order of notes and code, so this is the rare case */
		qsort(v, c->n, sizeof(*v), cmp_addr);
	*ret_sorted = v;
	return 0;
}

/* Moves what `what` asks for into n. */
static int finish(struct mt_build *b, unsigned what, uint32_t first_id, struct notes *n)
{
	struct mt_elfnotes *pub = &n->pub;

	if (!(what & MT_ELF_NATIVE))
		b->ncs = b->native.n = 0;
	pub->machine = b->elf.machine;
	pub->is64 = b->elf.is64;
	pub->stats = b->stats;
	pub->stats.malformed += b->elf.malformed;
	pub->stats.compressed = b->elf.compressed;
	memcpy(pub->build_id, b->build_id, sizeof(pub->build_id));
	pub->no_sections = b->elf.no_sections;
	if (b->elf.debug_link)
		mt_text_safe(pub->debug_link, sizeof(pub->debug_link), b->elf.debug_link,
			     strlen(b->elf.debug_link));
	pub->probes = calloc(b->native.n + b->foreign.n + 1ul, sizeof(*pub->probes));
	if (!pub->probes)
		return -ENOMEM;
	pub->callsites = b->cs;
	pub->ncallsites = b->ncs;
	b->cs = NULL;
	for (uint32_t i = 0; i < pub->ncallsites; i++)
		pub->callsites[i].id = first_id + i;
	for (uint32_t i = 0; i < b->native.n; i++) {
		pub->probes[i] = b->native.v[i].p;
		pub->probes[i].cs = &pub->callsites[b->native.v[i].cs];
	}
	for (uint32_t i = 0; i < b->foreign.n; i++)
		pub->probes[b->native.n + i] = b->foreign.v[i].p;
	pub->nnative = b->native.n;
	pub->nprobes = b->native.n + b->foreign.n;
	n->arena = b->arena;
	b->arena = (struct mt_arena){0};
	return 0;
}

int mt_elfnotes_parse_src(struct mt_src *src, unsigned what, uint32_t first_id, uint32_t max_probes,
			  struct mt_elfnotes **ret_notes)
{
	struct mt_build *b = calloc(1, sizeof(*b));
	struct notes *n = calloc(1, sizeof(*n));
	int r = -ENOMEM;

	if (!b || !n)
		goto out;
	b->max_probes = max_probes;
	r = src->size > MT_ELFNOTES_MAX_FILE ? -EFBIG : mt_elf_open(&b->elf, src);
	if (r)
		goto out;
	r = mt_build_native(b); /* always: foreign are those that are not native */
	if (!r && what & MT_ELF_FOREIGN)
		r = mt_build_foreign(b);
	if (!r)
		r = finish(b, what, first_id, n);
	if (r)
		goto out;
	*ret_notes = &n->pub;
	n = NULL;
out:
	if (b) {
		mt_elf_close(&b->elf);
		mt_arena_free(&b->arena);
		free(b->cs);
		free(b->native.v);
		free(b->known);
		free(b->foreign.v);
	}
	free(b);
	free(n);
	return r;
}

int mt_elfnotes_read(int fd, unsigned what, uint32_t first_id, struct mt_elfnotes **ret_notes)
{
	struct mt_src *src;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -EIO;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	src = calloc(1, sizeof(*src));
	if (!src)
		return -ENOMEM;
	src->fd = fd;
	src->size = (uint64_t)st.st_size;
	r = mt_elfnotes_parse_src(src, what, first_id, MT_ELFNOTES_MAX_PROBES, ret_notes);
	free(src);
	return r;
}

int mt_elfnotes_parse(const void *data, size_t len, unsigned what, uint32_t first_id,
		      struct mt_elfnotes **ret_notes)
{
	struct mt_src *src = calloc(1, sizeof(*src));
	int r;

	if (!src)
		return -ENOMEM;
	src->fd = -1;
	src->mem = data ? data : (const void *)"";
	src->size = data ? len : 0;
	r = mt_elfnotes_parse_src(src, what, first_id, MT_ELFNOTES_MAX_PROBES, ret_notes);
	free(src);
	return r;
}

void mt_elfnotes_free(struct mt_elfnotes *n)
{
	struct notes *all = (struct notes *)n; /* pub is the first member */

	if (!n)
		return;
	free(n->callsites);
	free(n->probes);
	mt_arena_free(&all->arena);
	free(all);
}
