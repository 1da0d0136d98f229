/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The image: ELF headers, loadable segments, and where notes are.
 *
 * Only headers and note sections are read, by pread: a file that shrinks meanwhile gives -EIO, never a
 * SIGBUS. 32-bit headers are widened first; everything behind speaks 64 bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elfnotes_int.h"

int mt_src_read(struct mt_src *s, uint64_t off, uint64_t len, void *dst)
{
	if (off > s->size || len > s->size - off)
		return -ENODATA;
	if (s->mem) {
		if (len)
			memcpy(dst, s->mem + off, len);
		return 0;
	}
	for (uint64_t done = 0; done < len;) {
		ssize_t n = pread(s->fd, (char *)dst + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		done += (uint64_t)n;
	}
	return 0;
}

int mt_src_peek(struct mt_src *s, uint64_t off, uint32_t len, void *dst)
{
	if (s->mem)
		return mt_src_read(s, off, len, dst);
	if (off < s->page_off || off - s->page_off + len > s->page_len) {
		uint64_t left = off < s->size ? s->size - off : 0;
		uint32_t want = left < MT_SRC_PAGE ? (uint32_t)left : MT_SRC_PAGE;
		int r;

		if (want < len)
			return -ENODATA;
		s->page_len = 0;
		r = mt_src_read(s, off, want, s->page);
		if (r)
			return r;
		s->page_off = off;
		s->page_len = want;
	}
	memcpy(dst, s->page + (off - s->page_off), len);
	return 0;
}

static void widen_ehdr(const Elf32_Ehdr *from, Elf64_Ehdr *to)
{
	memcpy(to->e_ident, from->e_ident, EI_NIDENT);
	to->e_type = from->e_type;
	to->e_machine = from->e_machine;
	to->e_phoff = from->e_phoff;
	to->e_shoff = from->e_shoff;
	to->e_phentsize = from->e_phentsize;
	to->e_phnum = from->e_phnum;
	to->e_shentsize = from->e_shentsize;
	to->e_shnum = from->e_shnum;
	to->e_shstrndx = from->e_shstrndx;
}

static void get_phdr(const struct mt_elf *e, const uint8_t *p, Elf64_Phdr *to)
{
	Elf32_Phdr h;

	if (e->is64) {
		memcpy(to, p, sizeof(*to));
		return;
	}
	memcpy(&h, p, sizeof(h));
	*to = (Elf64_Phdr){.p_type = h.p_type,
			   .p_flags = h.p_flags,
			   .p_offset = h.p_offset,
			   .p_vaddr = h.p_vaddr,
			   .p_filesz = h.p_filesz,
			   .p_memsz = h.p_memsz,
			   .p_align = h.p_align};
}

static void get_shdr(const struct mt_elf *e, const uint8_t *p, Elf64_Shdr *to)
{
	Elf32_Shdr h;

	if (e->is64) {
		memcpy(to, p, sizeof(*to));
		return;
	}
	memcpy(&h, p, sizeof(h));
	*to = (Elf64_Shdr){.sh_name = h.sh_name,
			   .sh_type = h.sh_type,
			   .sh_flags = h.sh_flags,
			   .sh_addr = h.sh_addr,
			   .sh_offset = h.sh_offset,
			   .sh_size = h.sh_size,
			   .sh_link = h.sh_link,
			   .sh_addralign = h.sh_addralign};
}

static bool supported(const Elf64_Ehdr *h, bool is64)
{
	if (h->e_ident[EI_DATA] != ELFDATA2LSB || (h->e_type != ET_EXEC && h->e_type != ET_DYN))
		return false;
	if (is64)
		return h->e_machine == EM_X86_64 || h->e_machine == EM_AARCH64;
	return h->e_machine == EM_386;
}

static int read_ehdr(struct mt_elf *e, Elf64_Ehdr *h)
{
	unsigned char ident[EI_NIDENT];
	Elf32_Ehdr h32;
	int r = mt_src_read(e->src, 0, sizeof(ident), ident);

	if (r)
		return r == -ENODATA ? -ENOEXEC : r;
	if (memcmp(ident, ELFMAG, SELFMAG) ||
	    (ident[EI_CLASS] != ELFCLASS64 && ident[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	e->is64 = ident[EI_CLASS] == ELFCLASS64;
	r = e->is64 ? mt_src_read(e->src, 0, sizeof(*h), h) : mt_src_read(e->src, 0, sizeof(h32), &h32);
	if (r)
		return r == -ENODATA ? -ENOEXEC : r;
	if (!e->is64)
		widen_ehdr(&h32, h);
	if (!supported(h, e->is64))
		return -ENOEXEC;
	e->machine = h->e_machine;
	return 0;
}

/*
 * Takes a range of notes in. What reaches beyond the file is cut off and counted; so is what is beyond
 * the bounds on bytes and ranges (a file can name the same bytes in thousands of sections).
 */
static void add_range(struct mt_elf *e, uint64_t off, uint64_t size, uint64_t align)
{
	uint64_t left = off < e->src->size ? e->src->size - off : 0;

	if (!size)
		return;
	if (size > left) {
		size = left;
		e->malformed++;
	}
	if (size > MT_ELF_MAX_NOTE_BYTES - e->note_bytes || e->nranges == MT_ELF_MAX_RANGES) {
		e->malformed++;
		return;
	}
	if (!size)
		return;
	e->note_bytes += size;
	e->ranges[e->nranges++] =
		(struct mt_range){.off = off, .size = (uint32_t)size, .align = align == 8 ? 8 : 4};
}

/* Is there a section for what is at that offset? */
static bool has_range(const struct mt_elf *e, uint64_t off)
{
	for (uint32_t i = 0; i < e->nranges; i++)
		if (off >= e->ranges[i].off && off - e->ranges[i].off < e->ranges[i].size)
			return true;
	return false;
}

/* What ld.so protects: whole pages only, the smallest there are. */
static void take_relro(struct mt_elf *e, const Elf64_Phdr *h)
{
	const uint64_t page = 4096;

	if (h->p_memsz > UINT64_MAX - h->p_vaddr)
		return;
	e->relro = h->p_vaddr & -page;
	e->relro_end = (h->p_vaddr + h->p_memsz) & -page;
}

/* A segment's bytes in pages of the file. What is behind p_filesz in the last one is the program's, zeroed at first. */
static uint64_t mapped(const Elf64_Phdr *h, uint64_t left)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t rest = -(h->p_offset + h->p_filesz) & (page - 1), more = h->p_memsz - h->p_filesz;

	if (h->p_filesz > left || h->p_memsz <= h->p_filesz || !h->p_filesz)
		return h->p_filesz < left ? h->p_filesz : left;
	return h->p_filesz + (more < rest ? more : rest);
}

/* Loads of the file, and its PT_NOTE segments as ranges if `notes` (those that no section has). */
static void take_phdrs(struct mt_elf *e, const uint8_t *table, uint32_t n, size_t entsize, bool notes)
{
	for (uint32_t i = 0; i < n; i++) {
		Elf64_Phdr h;
		uint64_t left;

		get_phdr(e, table + i * entsize, &h);
		if (notes && h.p_type == PT_NOTE && !has_range(e, h.p_offset))
			add_range(e, h.p_offset, h.p_filesz, h.p_align);
		if (!notes && h.p_type == PT_GNU_RELRO)
			take_relro(e, &h);
		if (notes || h.p_type != PT_LOAD || h.p_offset >= e->src->size)
			continue;
		if (e->nloads == MT_ELF_MAX_LOADS) {
			e->malformed++;
			return;
		}
		left = e->src->size - h.p_offset;
		e->loads[e->nloads++] = (struct mt_load){.vaddr = h.p_vaddr,
							 .off = h.p_offset,
							 .size = h.p_filesz < left ? h.p_filesz : left,
							 .mapped = mapped(&h, left),
							 .flags = h.p_flags};
	}
}

static int read_table(struct mt_elf *e, uint64_t off, uint64_t n, size_t entsize, uint8_t **ret_table)
{
	uint64_t bytes = n * entsize; /* n is 32 bits at most */
	uint8_t *t;
	int r;

	if (off > e->src->size || bytes > e->src->size - off)
		return -ENODATA;
	t = malloc(bytes ? bytes : 1);
	if (!t)
		return -ENOMEM;
	r = mt_src_read(e->src, off, bytes, t);
	if (r) {
		free(t);
		return r;
	}
	*ret_table = t;
	return 0;
}

/* The section table and its names, as far as they can be had. */
struct sections {
	uint8_t *table;
	uint32_t n;
	size_t entsize;
	char *names;
	uint32_t names_len;
};

static int read_names(struct mt_elf *e, struct sections *s, uint32_t strndx)
{
	Elf64_Shdr h;
	uint8_t *names;
	int r;

	if (strndx == SHN_UNDEF || strndx >= s->n)
		return 0;
	get_shdr(e, s->table + strndx * s->entsize, &h);
	if (h.sh_type == SHT_NOBITS || h.sh_offset >= e->src->size)
		return 0;
	if (h.sh_size > e->src->size - h.sh_offset)
		h.sh_size = e->src->size - h.sh_offset;
	if (h.sh_size > MT_ELF_MAX_SECTION_NAMES)
		h.sh_size = MT_ELF_MAX_SECTION_NAMES;
	r = read_table(e, h.sh_offset, h.sh_size, 1, &names);
	if (r)
		return r;
	s->names = (char *)names;
	s->names_len = (uint32_t)h.sh_size;
	return 0;
}

/* -ENODATA: there is no section table, or a damaged one (counted). */
static int read_sections(struct mt_elf *e, const Elf64_Ehdr *eh, struct sections *s)
{
	uint64_t n = eh->e_shnum;
	uint32_t strndx = eh->e_shstrndx;
	uint8_t *first;
	Elf64_Shdr h;
	int r;

	s->entsize = e->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	if (!eh->e_shoff)
		return -ENODATA;
	if (eh->e_shentsize != s->entsize)
		goto damaged;
	if (!n || strndx == SHN_XINDEX) {
		/* More than 16 bits can say: the numbers are in section 0. */
		r = read_table(e, eh->e_shoff, 1, s->entsize, &first);
		if (r == -ENODATA)
			goto damaged;
		if (r)
			return r;
		get_shdr(e, first, &h);
		free(first);
		n = n ? n : h.sh_size;
		strndx = strndx == SHN_XINDEX ? h.sh_link : strndx;
	}
	if (!n)
		return -ENODATA;
	if (n > MT_ELF_MAX_SECTIONS)
		goto damaged;
	r = read_table(e, eh->e_shoff, n, s->entsize, &s->table);
	if (r == -ENODATA)
		goto damaged;
	if (r)
		return r;
	s->n = (uint32_t)n;
	return read_names(e, s, strndx);
damaged:
	e->malformed++;
	return -ENODATA;
}

static bool is_named(const struct sections *s, const Elf64_Shdr *h, const char *name)
{
	size_t len = strlen(name) + 1;

	return h->sh_name < s->names_len && s->names_len - h->sh_name >= len &&
	       !memcmp(s->names + h->sh_name, name, len);
}

#define LINK_MAX_BYTES 256u

/* A name, NUL, padding, a checksum. */
static int take_debug_link(struct mt_elf *e, const Elf64_Shdr *h)
{
	uint32_t max = h->sh_size > LINK_MAX_BYTES ? LINK_MAX_BYTES : (uint32_t)h->sh_size;
	uint8_t *name;
	int r;

	if (e->debug_link)
		return 0;
	r = read_table(e, h->sh_offset, max, 1, &name);
	if (r)
		return r == -ENODATA ? 0 : r;
	if (memchr(name, 0, max))
		e->debug_link = (char *)name;
	else
		free(name);
	return 0;
}

static int take_sections(struct mt_elf *e, const struct sections *s)
{
	for (uint32_t i = 1; i < s->n; i++) {
		Elf64_Shdr h;

		get_shdr(e, s->table + i * s->entsize, &h);
		if (h.sh_type == SHT_NULL)
			continue;
		if (!e->has_base && is_named(s, &h, ".stapsdt.base")) {
			e->has_base = true; /* holds without bytes too: only the address counts */
			e->base = h.sh_addr;
		}
		if (h.sh_type == SHT_NOBITS)
			continue;
		if (is_named(s, &h, ".gnu_debuglink")) {
			int r = take_debug_link(e, &h);

			if (r)
				return r;
		}
		if (h.sh_type != SHT_NOTE && !is_named(s, &h, ".note.stapsdt") &&
		    !is_named(s, &h, ".note.montrace"))
			continue;
		if (h.sh_flags & SHF_COMPRESSED)
			e->compressed++; /* nobody compresses notes: what would read them then? */
		else
			add_range(e, h.sh_offset, h.sh_size, h.sh_addralign);
	}
	return 0;
}

static int load_ranges(struct mt_elf *e)
{
	for (uint32_t i = 0; i < e->nranges; i++) {
		struct mt_range *r = &e->ranges[i];
		int err = read_table(e, r->off, r->size, 1, &r->data);

		if (err)
			return err;
	}
	return 0;
}

int mt_elf_open(struct mt_elf *e, struct mt_src *src)
{
	struct sections s = {0};
	Elf64_Ehdr eh = {0};
	uint8_t *phdrs = NULL;
	size_t entsize;
	int r;

	e->src = src;
	r = read_ehdr(e, &eh);
	if (r)
		return r;
	entsize = e->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	if (!eh.e_phnum || eh.e_phentsize != entsize)
		return -ENOEXEC;
	r = read_table(e, eh.e_phoff, eh.e_phnum, entsize, &phdrs);
	if (r)
		return r == -ENODATA ? -ENOEXEC : r;
	e->headers_end = eh.e_phoff + eh.e_phnum * entsize;
	if (e->headers_end > MT_SRC_PAGE) /* headers elsewhere: then only the first one is at the start */
		e->headers_end = e->is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
	take_phdrs(e, phdrs, eh.e_phnum, entsize, false);

	r = read_sections(e, &eh, &s);
	e->no_sections = r == -ENODATA;
	if (!r)
		r = take_sections(e, &s);
	if (r && r != -ENODATA)
		goto out;
	take_phdrs(e, phdrs, eh.e_phnum, entsize, true);
	r = load_ranges(e);
out:
	free(s.names);
	free(s.table);
	free(phdrs);
	return r;
}

void mt_elf_close(struct mt_elf *e)
{
	for (uint32_t i = 0; i < e->nranges; i++)
		free(e->ranges[i].data);
	e->nranges = 0;
	free(e->debug_link);
	e->debug_link = NULL;
}

static bool find(const struct mt_elf *e, uint64_t addr, uint32_t len, uint32_t flags, bool mapped,
		 uint64_t *ret_off)
{
	for (uint32_t i = 0; i < e->nloads; i++) {
		const struct mt_load *l = &e->loads[i];
		uint64_t at = addr - l->vaddr, size = mapped ? l->mapped : l->size;

		if (addr < l->vaddr || at >= size || size - at < len || !(l->flags & flags))
			continue;
		*ret_off = l->off + at;
		return true;
	}
	return false;
}

bool mt_elf_offset(const struct mt_elf *e, uint64_t addr, uint32_t len, uint32_t flags, uint64_t *ret_off)
{
	return find(e, addr, len, flags, false, ret_off);
}

bool mt_elf_mapped(const struct mt_elf *e, uint64_t addr, uint32_t len, uint32_t flags, uint64_t *ret_off)
{
	return find(e, addr, len, flags, true, ret_off);
}

bool mt_elf_sealed(const struct mt_elf *e, uint64_t addr)
{
	return addr >= e->relro && addr < e->relro_end;
}

uint64_t mt_elf_adjust(const struct mt_elf *e, uint64_t addr, uint64_t note_base)
{
	if (!addr || !note_base || !e->has_base)
		return addr;
	addr += e->base - note_base;
	return e->is64 ? addr : (uint32_t)addr;
}
