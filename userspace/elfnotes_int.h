/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside elfnotes: bytes -> image (elfnotes_elf.c) -> notes (elfnotes_iter.c) -> callsites
 * (elfnotes_native.c) and foreign probes (elfnotes_foreign.c); elfnotes.c joins them.
 */
#ifndef MT_ELFNOTES_INT_H
#define MT_ELFNOTES_INT_H

#include <elf.h>

#include "elfnotes.h"

/* ---- where bytes come from ---- */

#define MT_SRC_PAGE 4096u

struct mt_src {
	int fd;             /* used if mem is NULL */
	const uint8_t *mem; /* size bytes */
	uint64_t size;
	uint64_t page_off; /* what page[] holds; page_len 0 = nothing */
	uint32_t page_len;
	uint8_t page[MT_SRC_PAGE];
};

/* -ENODATA if the range is not in the file, -EIO if it cannot be read (the file shrank). */
int mt_src_read(struct mt_src *s, uint64_t off, uint64_t len, void *dst);
/* The same for a few bytes at a time in ascending order: reads by the page. */
int mt_src_peek(struct mt_src *s, uint64_t off, uint32_t len, void *dst);

/* ---- the image ---- */

#define MT_ELF_MAX_LOADS 256u
#define MT_ELF_MAX_RANGES 256u
#define MT_ELF_MAX_SECTIONS (1u << 18)
#define MT_ELF_MAX_SECTION_NAMES (1u << 22)
#define MT_ELF_MAX_NOTE_BYTES (128ull << 20)

struct mt_load {
	uint64_t vaddr, off, size; /* size: bytes that the file really has */
	uint64_t mapped; /* bytes that are mapped from the file: to the end of a page, if it is to be more */
	uint32_t flags;  /* PF_* */
};

/* Bytes that hold notes. */
struct mt_range {
	uint64_t off;
	uint32_t size;
	uint32_t align; /* 4 or 8 */
	uint8_t *data;
};

struct mt_elf {
	struct mt_src *src;
	bool is64;
	uint16_t machine;
	uint64_t headers_end; /* file and program headers: no code before this offset */
	struct mt_load loads[MT_ELF_MAX_LOADS];
	uint32_t nloads;
	struct mt_range ranges[MT_ELF_MAX_RANGES];
	uint32_t nranges;
	uint64_t note_bytes;
	uint64_t relro,
		relro_end;   /* link-time addresses that are read-only once the program runs; whole pages */
	uint32_t compressed; /* sections of notes */
	bool no_sections;
	char *debug_link; /* as in the file; NULL if none */
	bool has_base;
	uint64_t base;      /* address of section .stapsdt.base */
	uint32_t malformed; /* sections that lie */
};

/* Fills *e (zeroed by the caller) and loads the note ranges. mt_elf_close also after an error. */
int mt_elf_open(struct mt_elf *e, struct mt_src *src);
void mt_elf_close(struct mt_elf *e);

/*
 * Link-time address of len bytes -> file offset. flags: PF_X or PF_W, the segment must have it.
 * False if no segment has them in the file.
 */
bool mt_elf_offset(const struct mt_elf *e, uint64_t addr, uint32_t len, uint32_t flags, uint64_t *ret_off);

/*
 * The same for what need not be in the file but in a page that is mapped from it: the beginning of .bss. The offset
 * may be beyond the end of the file.
 */
bool mt_elf_mapped(const struct mt_elf *e, uint64_t addr, uint32_t len, uint32_t flags, uint64_t *ret_off);

/* Is that address made read-only when the program starts (PT_GNU_RELRO)? */
bool mt_elf_sealed(const struct mt_elf *e, uint64_t addr);

/* Address of a note, moved as the image was moved after the note was written (prelink). */
uint64_t mt_elf_adjust(const struct mt_elf *e, uint64_t addr, uint64_t note_base);

/* ---- notes ---- */

enum mt_owner { MT_OWNER_OTHER, MT_OWNER_GNU, MT_OWNER_STAPSDT, MT_OWNER_MONTRACE };

struct mt_note {
	enum mt_owner owner;
	uint32_t type;
	const uint8_t *desc;
	uint32_t descsz;
};

/*
 * Next note of r at *pos. False at the end. A note whose sizes lie is counted in *malformed (may be
 * NULL), and the walk goes on at the next thing that looks like a note of ours.
 */
bool mt_note_next(const struct mt_range *r, uint32_t *pos, struct mt_note *ret_note, uint32_t *malformed);

/* NUL-terminated text at *p, not past end; *p moves behind it. False if there is no NUL. */
bool mt_note_text(const uint8_t **p, const uint8_t *end, const char **ret_text, size_t *ret_len);

/* ---- memory of texts ---- */

struct mt_chunk;
struct mt_arena {
	struct mt_chunk *head;
	size_t used, cap; /* of head */
};

/* Sanitised copy, at most limit bytes (cut between characters). NULL: no memory. */
const char *mt_arena_text(struct mt_arena *a, const char *src, size_t len, size_t limit);
void mt_arena_free(struct mt_arena *a);

/* The same, and the previous text again if the bytes are the same as last time. */
struct mt_last {
	const char *src; /* points into a range */
	size_t len;
	const char *text;
};
const char *mt_arena_again(struct mt_arena *a, struct mt_last *l, const char *src, size_t len, size_t limit);

#define MT_LIMIT_NAME 1024u
#define MT_LIMIT_TARGET 256u
#define MT_LIMIT_FILE 1024u
#define MT_LIMIT_FIELD 128u
#define MT_LIMIT_PROVIDER 256u
#define MT_LIMIT_ARGS 4096u /* operands are never cut: a longer note is malformed */

/* ---- building ---- */

#define MT_NO_CALLSITE UINT32_MAX

/* A probe on its way; cs is an index because callsites still move. */
struct mt_cand {
	struct mt_probe p;
	uint32_t cs;
};

struct mt_cands {
	struct mt_cand *v;
	uint32_t n, cap;
};

struct mt_build {
	struct mt_elf elf;
	struct mt_arena arena;
	struct mt_elfnotes_stats stats;
	uint32_t max_probes;
	struct mt_callsite *cs;
	uint32_t ncs, cs_cap;
	struct mt_cands native;
	uint64_t *known; /* addresses of native probes, those of discarded callsites too; sorted at the end */
	uint32_t nknown, known_cap;
	struct mt_cands foreign;
	struct mt_last last_target, last_file, last_provider, last_name, last_args;
	char build_id[41];
};

/* Room for one more, zeroed. NULL: no memory. */
struct mt_cand *mt_cands_add(struct mt_cands *c);

int mt_build_native(struct mt_build *b);
int mt_build_foreign(struct mt_build *b);

/* Address and number of a probe: what duplicates are found by. */
struct mt_addr_idx {
	uint64_t addr;
	uint32_t idx;
};

/* The probes by address, then number; *ret_sorted is the caller's. */
int mt_cands_by_addr(const struct mt_cands *c, struct mt_addr_idx **ret_sorted);

/* What mt_elfnotes_read and _parse do; a lower bound than MT_ELFNOTES_MAX_PROBES is for tests. */
int mt_elfnotes_parse_src(struct mt_src *src, unsigned what, uint32_t first_id, uint32_t max_probes,
			  struct mt_elfnotes **ret_notes);

#endif
