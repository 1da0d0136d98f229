/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symbol table of a file, sorted by name. .symtab if there is one, else .dynsym. The file is hostile: sizes are
 * bounded, every index is checked, and a name that means two things means nothing.
 */
#include "elfsyms.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_TABLE (512ull << 20) /* bytes of symbols, and of their names */
#define MAX_HEADERS 65535u
#define MAX_DYNAMIC 4096u

struct sym {
	const char *name;
	uint64_t value;
	bool tls;
};

struct mt_elfsyms {
	int fd;
	bool loaded;
	bool is64;
	char *names;
	struct sym *v;
	size_t n;
	uint64_t tls_size; /* of the segment, as the thread pointer counts */
	bool has_tls;
	bool program; /* not a library: where those have their thread-local memory only the process knows */
};

int mt_elfsyms_new(int fd, struct mt_elfsyms **ret_syms)
{
	struct mt_elfsyms *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = fd;
	*ret_syms = s;
	return 0;
}

void mt_elfsyms_free(struct mt_elfsyms *s)
{
	if (!s)
		return;
	free(s->names);
	free(s->v);
	free(s);
}

static bool get(const struct mt_elfsyms *s, void *to, uint64_t size, uint64_t off)
{
	return size <= MAX_TABLE && off <= INT64_MAX - size &&
	       pread(s->fd, to, size, (off_t)off) == (ssize_t)size;
}

/* What is needed of the headers, for both word sizes. */
struct image {
	uint64_t phoff, shoff;
	unsigned phnum, shnum, phsize, shsize, type;
};

static bool read_image(struct mt_elfsyms *s, struct image *im)
{
	unsigned char id[EI_NIDENT];
	Elf64_Ehdr h;
	Elf32_Ehdr h32;

	if (!get(s, id, sizeof(id), 0) || memcmp(id, ELFMAG, SELFMAG))
		return false;
	s->is64 = id[EI_CLASS] == ELFCLASS64;
	if (s->is64) {
		if (!get(s, &h, sizeof(h), 0))
			return false;
		*im = (struct image){h.e_phoff,          h.e_shoff,          h.e_phnum, h.e_shnum,
				     sizeof(Elf64_Phdr), sizeof(Elf64_Shdr), h.e_type};
		return h.e_phentsize == im->phsize && h.e_shentsize == im->shsize;
	}
	if (!get(s, &h32, sizeof(h32), 0))
		return false;
	*im = (struct image){h32.e_phoff,        h32.e_shoff,        h32.e_phnum, h32.e_shnum,
			     sizeof(Elf32_Phdr), sizeof(Elf32_Shdr), h32.e_type};
	return h32.e_phentsize == im->phsize && h32.e_shentsize == im->shsize;
}

static bool read_segment(struct mt_elfsyms *s, const struct image *im, unsigned i, Elf64_Phdr *p)
{
	Elf32_Phdr p32;

	if (s->is64)
		return get(s, p, sizeof(*p), im->phoff + i * sizeof(*p));
	if (!get(s, &p32, sizeof(p32), im->phoff + i * sizeof(p32)))
		return false;
	*p = (Elf64_Phdr){.p_type = p32.p_type,
			  .p_offset = p32.p_offset,
			  .p_vaddr = p32.p_vaddr,
			  .p_filesz = p32.p_filesz,
			  .p_memsz = p32.p_memsz,
			  .p_align = p32.p_align};
	return true;
}

/* How glibc and musl place the segment below the thread pointer of x86. */
static void tls_segment(struct mt_elfsyms *s, const Elf64_Phdr *p)
{
	uint64_t align = p->p_align ? p->p_align : 1, first;

	if (align & (align - 1) || align > 1u << 20 || p->p_memsz > 1u << 30)
		return;
	first = p->p_vaddr & (align - 1);
	s->tls_size = p->p_memsz < first ? align : ((p->p_memsz - first + align - 1) & -align) + first;
	s->has_tls = true;
}

/* Position-independent programs say that they are programs. */
static bool is_pie(struct mt_elfsyms *s, const Elf64_Phdr *dynamic)
{
	size_t entry = s->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	uint64_t n = dynamic->p_filesz / entry;

	for (uint64_t i = 0; i < n && i < MAX_DYNAMIC; i++) {
		Elf64_Dyn d;
		Elf32_Dyn d32;

		if (!get(s, s->is64 ? (void *)&d : (void *)&d32, entry, dynamic->p_offset + i * entry))
			return false;
		if (!s->is64)
			d = (Elf64_Dyn){.d_tag = d32.d_tag, .d_un.d_val = d32.d_un.d_val};
		if (d.d_tag == DT_NULL)
			return false;
		if (d.d_tag == DT_FLAGS_1)
			return d.d_un.d_val & DF_1_PIE;
	}
	return false;
}

static void read_segments(struct mt_elfsyms *s, const struct image *im)
{
	bool tls = false;
	Elf64_Phdr p;

	s->program = im->type == ET_EXEC;
	for (unsigned i = 0; i < im->phnum; i++) {
		if (!read_segment(s, im, i, &p))
			return;
		if (p.p_type == PT_TLS && !tls) {
			tls = true;
			tls_segment(s, &p);
		} else if (p.p_type == PT_DYNAMIC && !s->program) {
			s->program = is_pie(s, &p);
		}
	}
}

static bool read_section(struct mt_elfsyms *s, const struct image *im, unsigned i, Elf64_Shdr *h)
{
	Elf32_Shdr h32;

	if (i >= im->shnum)
		return false;
	if (s->is64)
		return get(s, h, sizeof(*h), im->shoff + i * sizeof(*h));
	if (!get(s, &h32, sizeof(h32), im->shoff + i * sizeof(h32)))
		return false;
	*h = (Elf64_Shdr){.sh_type = h32.sh_type,
			  .sh_offset = h32.sh_offset,
			  .sh_size = h32.sh_size,
			  .sh_link = h32.sh_link};
	return true;
}

static bool find_table(struct mt_elfsyms *s, const struct image *im, Elf64_Shdr *ret)
{
	bool found = false;
	Elf64_Shdr h;

	for (unsigned i = 0; i < im->shnum && i < MAX_HEADERS; i++) {
		if (!read_section(s, im, i, &h))
			return found;
		if (h.sh_type != SHT_SYMTAB && (h.sh_type != SHT_DYNSYM || found))
			continue;
		*ret = h;
		found = true;
		if (h.sh_type == SHT_SYMTAB)
			break;
	}
	return found;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct sym *)a)->name, ((const struct sym *)b)->name);
}

static void take(struct mt_elfsyms *s, const unsigned char *raw, uint64_t bytes, uint64_t names_size)
{
	size_t entry = s->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);

	for (uint64_t at = 0; at + entry <= bytes; at += entry) {
		Elf64_Sym y;
		Elf32_Sym y32;

		if (s->is64) {
			memcpy(&y, raw + at, sizeof(y));
		} else {
			memcpy(&y32, raw + at, sizeof(y32));
			y = (Elf64_Sym){.st_name = y32.st_name,
					.st_info = y32.st_info,
					.st_shndx = y32.st_shndx,
					.st_value = y32.st_value};
		}
		if (y.st_shndx == SHN_UNDEF || y.st_shndx == SHN_ABS /* not moved with the image */ ||
		    y.st_name >= names_size || !s->names[y.st_name] || ELF64_ST_TYPE(y.st_info) == STT_FILE ||
		    ELF64_ST_TYPE(y.st_info) == STT_SECTION)
			continue;
		s->v[s->n++] =
			(struct sym){s->names + y.st_name, y.st_value, ELF64_ST_TYPE(y.st_info) == STT_TLS};
	}
	qsort(s->v, s->n, sizeof(*s->v), by_name);
}

static void load(struct mt_elfsyms *s)
{
	unsigned char *raw = NULL;
	Elf64_Shdr table, names;
	struct image im;
	size_t entry;

	s->loaded = true;
	if (!read_image(s, &im))
		return;
	read_segments(s, &im);
	if (!find_table(s, &im, &table) || !read_section(s, &im, table.sh_link, &names) ||
	    names.sh_type != SHT_STRTAB || table.sh_size > MAX_TABLE || names.sh_size > MAX_TABLE)
		return;
	entry = s->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	raw = malloc(table.sh_size + 1);
	s->names = calloc(1, names.sh_size + 1);
	s->v = malloc((table.sh_size / entry + 1) * sizeof(*s->v));
	if (raw && s->names && s->v && get(s, raw, table.sh_size, table.sh_offset) &&
	    get(s, s->names, names.sh_size, names.sh_offset))
		take(s, raw, table.sh_size, names.sh_size);
	free(raw);
}

static int cmp(struct mt_str want, const char *name)
{
	int r = strncmp(want.p, name, want.len);

	return r ? r : name[want.len] ? -1 : 0;
}

int mt_elfsyms_find(void *ctx, struct mt_str name, enum mt_operand_sym kind, uint64_t *ret_value)
{
	struct mt_elfsyms *s = ctx;
	size_t lo = 0, hi, i;
	bool tls = kind == MT_SYM_TPOFF;

	if (!s->loaded)
		load(s);
	if (tls && !s->program)
		return -ENOTSUP;
	for (hi = s->n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (cmp(name, s->v[mid].name) <= 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	if (lo == s->n || cmp(name, s->v[lo].name) || s->v[lo].tls != tls || (tls && !s->has_tls))
		return -ENOENT;
	for (i = lo + 1; i < s->n && !cmp(name, s->v[i].name); i++)
		if (s->v[i].value != s->v[lo].value || s->v[i].tls != tls)
			return -ENOENT;
	*ret_value = tls ? s->v[lo].value - s->tls_size : s->v[lo].value;
	return 0;
}
