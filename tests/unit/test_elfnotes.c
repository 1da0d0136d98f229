/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elfnotes on images made here, byte by byte: sound ones, damaged ones, and the test's own executable.
 *
 * The image: code at file offset 0x400 (address 0x1400, 1 KiB, all int3 except for thunks), data at
 * 0x800 (address 0x3800), then notes, then section names and headers.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elfnotes_int.h"
#include "strings.h"

#define CODE_OFF 0x400u
#define CODE 0x1400u
#define CODE_SIZE 0x400u
#define DATA_OFF 0x800u
#define DATA 0x3800u
#define DATA_SIZE 0x40u
#define BASE 0x2100u

struct buf {
	uint8_t *p;
	size_t len, cap;
};

static void put(struct buf *b, const void *data, size_t len)
{
	while (b->cap - b->len < len) {
		b->cap = b->cap ? b->cap * 2 : 256;
		b->p = realloc(b->p, b->cap);
		assert_non_null(b->p);
	}
	if (data && len)
		memcpy(b->p + b->len, data, len);
	b->len += len;
}

static void put_zeros(struct buf *b, size_t upto)
{
	while (b->len < upto)
		put(b, "", 1);
}

static void put_u32(struct buf *b, uint32_t v)
{
	put(b, &v, sizeof(v));
}

static void put_u64(struct buf *b, uint64_t v)
{
	put(b, &v, sizeof(v));
}

static void put_note(struct buf *b, const char *owner, uint32_t type, const void *desc, size_t len)
{
	uint32_t namesz = (uint32_t)strlen(owner) + 1;

	put_u32(b, namesz);
	put_u32(b, (uint32_t)len);
	put_u32(b, type);
	put(b, owner, namesz);
	put_zeros(b, (b->len + 3) & ~3ul);
	put(b, desc, len);
	put_zeros(b, (b->len + 3) & ~3ul);
}

/* What an image is made of; all parts can be spoilt before image_make. */
struct image {
	struct buf code, mt, stap, gnu; /* mt, stap, gnu: bytes of their sections */
	uint16_t machine, type;
	bool is32, no_sections, notes_in_phdr, no_base;
	Elf64_Phdr third; /* instead of the one for notes, if it has a type */
	uint64_t base;    /* address of .stapsdt.base */
	uint64_t mt_flags;
	uint32_t mt_type, mt_align;
	uint64_t mt_extra; /* what the section header says too much */
	struct buf out;
};

static void image_init(struct image *im)
{
	uint8_t int3 = 0xcc;

	*im = (struct image){
		.machine = EM_X86_64, .type = ET_DYN, .base = BASE, .mt_type = SHT_NOTE, .mt_align = 4};
	while (im->code.len < CODE_SIZE)
		put(&im->code, &int3, 1);
}

static void image_free(struct image *im)
{
	free(im->code.p);
	free(im->mt.p);
	free(im->stap.p);
	free(im->gnu.p);
	free(im->out.p);
}

static const char names[] = "\0.note.montrace\0.note.stapsdt\0.note.gnu.build-id\0.stapsdt.base\0.shstrtab";

static uint32_t name_at(const char *name)
{
	for (uint32_t i = 0; i < sizeof(names); i++)
		if (!strcmp(names + i, name))
			return i;
	fail();
	return 0;
}

static void put_phdr(struct image *im, Elf64_Phdr h)
{
	if (im->is32) {
		Elf32_Phdr s = {.p_type = h.p_type,
				.p_flags = h.p_flags,
				.p_offset = (uint32_t)h.p_offset,
				.p_vaddr = (uint32_t)h.p_vaddr,
				.p_filesz = (uint32_t)h.p_filesz,
				.p_align = (uint32_t)h.p_align};
		put(&im->out, &s, sizeof(s));
	} else {
		put(&im->out, &h, sizeof(h));
	}
}

static void put_shdr(struct image *im, Elf64_Shdr h)
{
	if (im->is32) {
		Elf32_Shdr s = {.sh_name = h.sh_name,
				.sh_type = h.sh_type,
				.sh_flags = (uint32_t)h.sh_flags,
				.sh_addr = (uint32_t)h.sh_addr,
				.sh_offset = (uint32_t)h.sh_offset,
				.sh_size = (uint32_t)h.sh_size,
				.sh_addralign = (uint32_t)h.sh_addralign};
		put(&im->out, &s, sizeof(s));
	} else {
		put(&im->out, &h, sizeof(h));
	}
}

static void put_ehdr(struct image *im, unsigned nph, uint64_t shoff)
{
	Elf64_Ehdr h = {.e_type = im->type,
			.e_machine = im->machine,
			.e_phoff = sizeof(h),
			.e_shoff = shoff,
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = (uint16_t)nph,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = shoff ? 6 : 0,
			.e_shstrndx = shoff ? 5 : 0};
	Elf32_Ehdr s = {.e_type = h.e_type,
			.e_machine = h.e_machine,
			.e_phoff = sizeof(s),
			.e_shoff = (uint32_t)shoff,
			.e_phentsize = sizeof(Elf32_Phdr),
			.e_phnum = h.e_phnum,
			.e_shentsize = sizeof(Elf32_Shdr),
			.e_shnum = h.e_shnum,
			.e_shstrndx = h.e_shstrndx};

	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_CLASS] = im->is32 ? ELFCLASS32 : ELFCLASS64;
	memcpy(s.e_ident, h.e_ident, EI_NIDENT);
	if (im->is32)
		put(&im->out, &s, sizeof(s));
	else
		put(&im->out, &h, sizeof(h));
}

static void image_make(struct image *im)
{
	uint64_t mt = DATA_OFF + DATA_SIZE, stap = mt + im->mt.len, gnu = stap + im->stap.len;
	uint64_t str = gnu + im->gnu.len, sh = str + sizeof(names);

	im->out.len = 0;
	put_ehdr(im, 3, im->no_sections ? 0 : sh);
	put_phdr(im, (Elf64_Phdr){PT_LOAD, PF_R | PF_X, CODE_OFF, CODE, 0, im->code.len, 0, 16});
	put_phdr(im, (Elf64_Phdr){PT_LOAD, PF_R | PF_W, DATA_OFF, DATA, 0, DATA_SIZE, 0, 16});
	if (im->third.p_type)
		put_phdr(im, im->third);
	else
		put_phdr(im, (Elf64_Phdr){im->notes_in_phdr ? PT_NOTE : PT_NULL, PF_R, mt, 0, 0,
					  im->mt.len + im->mt_extra, 0, 4});
	put_zeros(&im->out, CODE_OFF);
	put(&im->out, im->code.p, im->code.len);
	put_zeros(&im->out, mt);
	put(&im->out, im->mt.p, im->mt.len);
	put(&im->out, im->stap.p, im->stap.len);
	put(&im->out, im->gnu.p, im->gnu.len);
	if (im->no_sections)
		return;
	put(&im->out, names, sizeof(names));
	put_shdr(im, (Elf64_Shdr){0});
	put_shdr(im, (Elf64_Shdr){name_at(".note.montrace"), im->mt_type, im->mt_flags, 0, mt,
				  im->mt.len + im->mt_extra, 0, 0, im->mt_align, 0});
	put_shdr(im, (Elf64_Shdr){name_at(".note.stapsdt"), SHT_NOTE, 0, 0, stap, im->stap.len, 0, 0, 4, 0});
	put_shdr(im, (Elf64_Shdr){name_at(".note.gnu.build-id"), SHT_NOTE, SHF_ALLOC, 0, gnu, im->gnu.len, 0,
				  0, 4, 0});
	put_shdr(im, (Elf64_Shdr){im->no_base ? 0 : name_at(".stapsdt.base"), SHT_PROGBITS, SHF_ALLOC,
				  im->base, 0, 1, 0, 0, 1, 0});
	put_shdr(im, (Elf64_Shdr){name_at(".shstrtab"), SHT_STRTAB, 0, 0, str, sizeof(names), 0, 0, 1, 0});
}

/* ---- notes ---- */

static const uint8_t thunk_x86[16] = {0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0xcc,
				      0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
static const uint8_t thunk_arm[16] = {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};

static void thunks(struct image *im, uint64_t addr, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memcpy(im->code.p + (addr - CODE) + 16 * i, im->machine == EM_AARCH64 ? thunk_arm : thunk_x86,
		       16);
}

/* texts: name, target, file, fields; count of them. */
static void text_note(struct image *im, uint32_t abi, uint32_t key, const char *const *texts, unsigned n)
{
	struct buf d = {0};

	put_u32(&d, abi);
	put_u32(&d, key);
	for (unsigned i = 0; i < n; i++)
		put(&d, texts[i], strlen(texts[i]) + 1);
	put_note(&im->mt, "montrace", MONTRACE_NT_TEXT, d.p, d.len);
	free(d.p);
}

static struct montrace_note note_of(uint8_t class_, uint64_t thunk, unsigned nprobes)
{
	return (struct montrace_note){.abi = 1,
				      .code = CODE,
				      .base = BASE,
				      .sem = DATA + 8,
				      .thunk = thunk,
				      .class_ = class_,
				      .level = MONTRACE_INFO,
				      .line = 7,
				      .nprobes = (uint8_t)nprobes,
				      .nop5_at = 1};
}

static void callsite_note(struct image *im, const struct montrace_note *n, const uint8_t *types)
{
	struct buf d = {0};

	put(&d, n, sizeof(*n));
	put(&d, types, n->nfields);
	put_note(&im->mt, "montrace", MONTRACE_NT_CALLSITE, d.p, d.len);
	free(d.p);
}

/* An event without fields, its thunk included. */
static void simple(struct image *im, uint32_t key, uint64_t thunk, const char *name)
{
	struct montrace_note n = note_of(MONTRACE_CLASS_EVENT, thunk, 1);
	const char *texts[] = {name, "t", "f.c"};

	n.key = key;
	thunks(im, thunk, 1);
	text_note(im, 1, key, texts, 3);
	callsite_note(im, &n, NULL);
}

static void stap_note(struct image *im, uint64_t addr, uint64_t base, uint64_t sem, const char *texts,
		      size_t len)
{
	struct buf d = {0};

	if (im->is32) {
		put_u32(&d, (uint32_t)addr);
		put_u32(&d, (uint32_t)base);
		put_u32(&d, (uint32_t)sem);
	} else {
		put_u64(&d, addr);
		put_u64(&d, base);
		put_u64(&d, sem);
	}
	put(&d, texts, len);
	put_note(&im->stap, "stapsdt", 3, d.p, d.len);
	free(d.p);
}
#define STAP(im, addr, base, sem, texts) stap_note(im, addr, base, sem, texts, sizeof(texts))

/* ---- parsing ---- */

static void check_text(const char *s, size_t limit)
{
	size_t len;
	char safe[8192];

	assert_non_null(s);
	len = strlen(s);
	assert_true(len <= limit);
	assert_true(mt_utf8_valid(s, len));
	assert_int_equal(mt_text_safe(safe, sizeof(safe), s, len), len);
	assert_memory_equal(safe, s, len);
}

/* What holds for any result whatever the input was. */
static void check_sound(const struct mt_elfnotes *n, size_t size)
{
	assert_true(n->nnative <= n->nprobes);
	check_text(n->build_id, 40);
	for (uint32_t i = 0; i < n->ncallsites; i++) {
		const struct mt_callsite *c = &n->callsites[i];

		check_text(c->name, 1024);
		check_text(c->target, 256);
		check_text(c->file, 1024);
		check_text(c->function, 0);
		assert_true(c->nfields <= MONTRACE_MAX_FIELDS);
		assert_in_range(c->class_, 1, 9);
		assert_in_range(c->level, 1, 5);
		for (unsigned k = 0; k < c->nfields; k++) {
			check_text(c->fields[k].name, 128);
			assert_in_range(c->fields[k].type, 1, 6);
		}
	}
	for (uint32_t i = 0; i < n->nprobes; i++) {
		const struct mt_probe *p = &n->probes[i];

		assert_int_equal(p->cs != NULL, i < n->nnative);
		if (p->cs)
			assert_true(p->cs >= n->callsites && p->cs < n->callsites + n->ncallsites);
		assert_true(p->offset && p->offset < size && p->nop5_offset < size);
		assert_true(!p->sem_offset || p->sem_offset + 2 <= size);
		assert_true(!p->nop5_offset || p->thunk);
		check_text(p->provider, 256);
		check_text(p->name, 1024);
		check_text(p->args, 4096);
	}
}

static struct mt_elfnotes *parse(struct image *im, unsigned what)
{
	struct mt_elfnotes *n = NULL;
	uint8_t *exact;

	image_make(im);
	exact = malloc(im->out.len); /* so that a sanitizer sees any byte too far */
	assert_non_null(exact);
	memcpy(exact, im->out.p, im->out.len);
	assert_int_equal(mt_elfnotes_parse(exact, im->out.len, what, 100, &n), 0);
	free(exact);
	check_sound(n, im->out.len);
	return n;
}

static void check_stats(const struct mt_elfnotes *n, uint32_t malformed, uint32_t discarded,
			uint32_t duplicate)
{
	assert_int_equal(n->stats.malformed, malformed);
	assert_int_equal(n->stats.discarded, discarded);
	assert_int_equal(n->stats.duplicate, duplicate);
	assert_int_equal(n->stats.over_limit, 0);
}

/* A scope with two fields, an event, notes of their probes, two foreign probes, a build id. */
static void image_usual(struct image *im)
{
	struct montrace_note n = note_of(MONTRACE_CLASS_SCOPE, CODE + 0x40, 2);
	const char *texts[] = {"load", "app::db", "src/db.c", "rows", "query"};
	const uint8_t types[] = {MONTRACE_TYPE_U64, MONTRACE_TYPE_STR};

	image_init(im);
	n.key = 3;
	n.nfields = 2;
	n.flags = MONTRACE_CSF_USER;
	n.level = MONTRACE_DEBUG;
	n.line = 1234;
	thunks(im, CODE + 0x40, 2);
	text_note(im, 1, 3, texts, 5);
	callsite_note(im, &n, types);
	simple(im, 4, CODE + 0x60, "done");
	STAP(im, CODE + 0x40, BASE, DATA + 8, "montrace\0scope_begin\08@%rdi 8@%rsi");
	STAP(im, CODE + 0x50, BASE, DATA + 8, "montrace\0scope_end\08@%rdi 8@%rsi");
	STAP(im, CODE + 0x60, BASE, DATA + 8, "montrace\0event\08@%rdi 8@%rsi");
	STAP(im, CODE + 0x100, BASE, DATA + 0x10, "lib\0start\0-4@%eax 8@-8(%rbp)");
	STAP(im, CODE + 0x101, BASE, 0, "montrace\0own\0");
	put_note(&im->gnu, "GNU", NT_GNU_BUILD_ID, "\x01\x02\xab\xff", 4);
}

static void usual(void **state)
{
	struct image im;
	struct mt_elfnotes *n;
	const struct mt_callsite *c;
	const struct mt_probe *p;

	(void)state;
	image_usual(&im);
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->machine, EM_X86_64);
	assert_true(n->is64);
	assert_string_equal(n->build_id, "0102abff");
	assert_int_equal(n->ncallsites, 2);
	assert_int_equal(n->nprobes, 5);
	assert_int_equal(n->nnative, 3);

	c = &n->callsites[0];
	assert_int_equal(c->id, 100);
	assert_int_equal(c->class_, MONTRACE_CLASS_SCOPE);
	assert_int_equal(c->level, MONTRACE_DEBUG);
	assert_int_equal(c->flags, MONTRACE_CSF_USER);
	assert_int_equal(c->line, 1234);
	assert_string_equal(c->name, "load");
	assert_string_equal(c->target, "app::db");
	assert_string_equal(c->file, "src/db.c");
	assert_string_equal(c->function, "");
	assert_int_equal(c->nfields, 2);
	assert_string_equal(c->fields[0].name, "rows");
	assert_int_equal(c->fields[0].type, MONTRACE_TYPE_U64);
	assert_string_equal(c->fields[1].name, "query");
	assert_int_equal(c->fields[1].type, MONTRACE_TYPE_STR);
	assert_int_equal(n->callsites[1].id, 101);
	assert_string_equal(n->callsites[1].name, "done");

	p = &n->probes[1];
	assert_ptr_equal(p->cs, c);
	assert_int_equal(p->kind, MONTRACE_KIND_SCOPE_END);
	assert_true(p->thunk);
	assert_int_equal(p->addr, CODE + 0x50);
	assert_int_equal(p->offset, CODE_OFF + 0x50);
	assert_int_equal(p->nop5_offset, CODE_OFF + 0x51);
	assert_int_equal(p->sem_offset, DATA_OFF + 8);
	assert_string_equal(p->provider, "montrace");
	assert_string_equal(p->name, "scope_end");
	assert_string_equal(p->args, "8@%rdi 8@%rsi");
	assert_ptr_equal(n->probes[2].cs, &n->callsites[1]);

	p = &n->probes[3];
	assert_null(p->cs);
	assert_false(p->thunk);
	assert_int_equal(p->offset, CODE_OFF + 0x100);
	assert_int_equal(p->nop5_offset, 0);
	assert_int_equal(p->sem_offset, DATA_OFF + 0x10);
	assert_string_equal(p->provider, "lib");
	assert_string_equal(p->name, "start");
	assert_string_equal(p->args, "-4@%eax 8@-8(%rbp)");
	assert_string_equal(n->probes[4].name, "own");
	assert_int_equal(n->probes[4].sem_offset, 0);
	assert_string_equal(n->probes[4].args, "");
	mt_elfnotes_free(n);
	image_free(&im);
	mt_elfnotes_free(NULL);
}

static void only_what_is_asked_for(void **state)
{
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_usual(&im);
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 2);
	assert_int_equal(n->nprobes, 3);
	mt_elfnotes_free(n);
	n = parse(&im, MT_ELF_FOREIGN); /* and the native ones do not become foreign */
	assert_int_equal(n->ncallsites, 0);
	assert_int_equal(n->nnative, 0);
	assert_int_equal(n->nprobes, 2);
	assert_string_equal(n->probes[0].provider, "lib");
	mt_elfnotes_free(n);
	n = parse(&im, 0);
	assert_int_equal(n->nprobes, 0);
	assert_string_equal(n->build_id, "0102abff");
	mt_elfnotes_free(n);
	image_free(&im);
}

/* Keys are unique in one source file only; the nearest text before counts. */
static void texts_and_callsites_pair(void **state)
{
	const char *a[] = {"a", "", "a.c"}, *b[] = {"b", "", "b.c"}, *lost[] = {"lost", "", "x.c"};
	struct montrace_note n1 = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1), n2 = n1, n3 = n1, n4 = n1;
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x20, 4);
	n1.key = 9;
	callsite_note(&im, &n1, NULL); /* its text comes later: malformed */
	text_note(&im, 1, 9, a, 3);
	text_note(&im, 1, 5, lost, 3); /* ignored */
	put_note(&im.mt, "other", 7, "abc", 3);
	put_note(&im.mt, "montrace", 99, "abc", 3); /* a later version's */
	callsite_note(&im, &n1, NULL);
	text_note(&im, 1, 9, b, 3);
	n2.key = 9;
	n2.thunk += 16;
	callsite_note(&im, &n2, NULL);
	n3.key = 9;
	n3.thunk += 32;
	callsite_note(&im, &n3, NULL); /* two callsites, one text */
	text_note(&im, 2, 9, a, 3);    /* of another version: hides the older text of its key */
	n4.key = 9;
	n4.thunk += 48;
	callsite_note(&im, &n4, NULL);
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 3);
	assert_string_equal(n->callsites[0].name, "a");
	assert_string_equal(n->callsites[1].name, "b");
	assert_string_equal(n->callsites[1].target, "b");
	assert_string_equal(n->callsites[2].name, "b");
	check_stats(n, 3, 0, 0); /* the first, the text of version 2 and its callsite */
	mt_elfnotes_free(n);
	image_free(&im);
}

static void targets(void **state)
{
	static const struct {
		const char *target, *file, *want;
		uint16_t flags;
	} rows[] = {
		{"a::b", "src/x.c", "a::b", 0},
		{"", "src/x.c", "x", 0},
		{"ignored", "src/x.c", "x", MONTRACE_CSF_FILE_TARGET},
		{"", "/a.b/c.d.cpp", "c.d", 0},
		{"", "plain", "plain", 0},
		{"", ".hidden", ".hidden", 0},
		{"", "dir.d/", "", 0},
		{"", "", "", 0},
		{"a\x1b[2J", "x.c", "a\xef\xbf\xbd[2J", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct montrace_note note = note_of(MONTRACE_CLASS_COUNTER, CODE + 0x20, 1);
		const char *texts[] = {"n", rows[i].target, rows[i].file};
		struct image im;
		struct mt_elfnotes *n;

		image_init(&im);
		thunks(&im, CODE + 0x20, 1);
		note.flags = rows[i].flags;
		text_note(&im, 1, 0, texts, 3);
		callsite_note(&im, &note, NULL);
		n = parse(&im, MT_ELF_NATIVE);
		assert_int_equal(n->ncallsites, 1);
		assert_string_equal(n->callsites[0].target, rows[i].want);
		mt_elfnotes_free(n);
		image_free(&im);
	}
}

/* ASCII fill of `len` bytes, then a two-byte character, then more. */
static void long_text(char *out, size_t len)
{
	memset(out, 'x', len);
	strcpy(out + len, "\xc3\xa9-more");
}

static void long_texts_are_cut(void **state)
{
	static char name[2000], target[2000], file[2000], field[2000], provider[2000], args[8000];
	struct montrace_note note = note_of(MONTRACE_CLASS_COUNTER, CODE + 0x20, 1);
	const uint8_t type = MONTRACE_TYPE_F64;
	struct image im;
	struct mt_elfnotes *n;
	size_t len;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x20, 1);
	long_text(name, 1022);
	long_text(target, 255); /* the character does not fit: cut before it */
	long_text(file, 1023);
	long_text(field, 127);
	note.nfields = 1;
	text_note(&im, 1, 0, (const char *[]){name, target, file, field}, 4);
	callsite_note(&im, &note, &type);
	long_text(provider, 300);
	len = strlen(provider) + 1;
	memcpy(args, provider, len);
	memcpy(args + len, "n", 2);
	memset(args + len + 2, '8', 4096);
	stap_note(&im, CODE, 0, 0, args, len + 2 + 4096 + 1);
	memset(args + len + 2, '8', 4097); /* operands are never cut */
	stap_note(&im, CODE + 1, 0, 0, args, len + 2 + 4097 + 1);
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	assert_int_equal(n->nprobes, 2);
	assert_int_equal(strlen(n->callsites[0].name), 1024);
	assert_memory_equal(n->callsites[0].name + 1022, "\xc3\xa9", 3);
	assert_int_equal(strlen(n->callsites[0].target), 255);
	assert_int_equal(strlen(n->callsites[0].file), 1023);
	assert_int_equal(strlen(n->callsites[0].fields[0].name), 127);
	assert_int_equal(strlen(n->probes[1].provider), 256);
	assert_int_equal(strlen(n->probes[1].args), 4096);
	check_stats(n, 1, 0, 0);
	mt_elfnotes_free(n);
	image_free(&im);
}

struct bad_row {
	const char *what;
	void (*spoil)(struct montrace_note *n);
	uint32_t malformed, discarded;
};

#define SPOIL(name, code)                                 \
	static void spoil_##name(struct montrace_note *n) \
	{                                                 \
		code;                                     \
	}
SPOIL(nothing, (void)n)
SPOIL(abi, n->abi = 2)
SPOIL(class0, n->class_ = 0)
SPOIL(class10, n->class_ = 10)
SPOIL(level0, n->level = 0)
SPOIL(level6, n->level = 6)
SPOIL(fields, n->nfields = 17)
SPOIL(probes, n->nprobes = 0)
SPOIL(types, n->nfields = 1) /* the type byte is not there, nor is the name */
SPOIL(sem0, n->sem = 0)
SPOIL(sem_in_code, n->sem = CODE)
SPOIL(sem_past_data, n->sem = DATA + DATA_SIZE - 1)
SPOIL(code0, n->code = 0)
SPOIL(code_in_data, n->code = DATA)
SPOIL(code_wild, n->code = UINT64_MAX)
SPOIL(code_at_end, n->code = CODE + CODE_SIZE)
SPOIL(thunk_wild, n->thunk = UINT64_MAX - 8)
SPOIL(thunk_in_data, n->thunk = DATA)
SPOIL(thunk_elsewhere, n->thunk += 8)
SPOIL(nop_at, n->nop_at = 16)

static void bad_callsites(void **state)
{
	static const struct bad_row rows[] = {
		{"nothing", spoil_nothing, 0, 0},
		{"abi", spoil_abi, 1, 0},
		{"class0", spoil_class0, 1, 0},
		{"class10", spoil_class10, 1, 0},
		{"level0", spoil_level0, 1, 0},
		{"level6", spoil_level6, 1, 0},
		{"fields", spoil_fields, 1, 0},
		{"probes", spoil_probes, 1, 0},
		{"types", spoil_types, 1, 0},
		{"sem0", spoil_sem0, 1, 0},
		{"sem_in_code", spoil_sem_in_code, 1, 0},
		{"sem_past_data", spoil_sem_past_data, 1, 0},
		{"code0", spoil_code0, 0, 1},
		{"code_in_data", spoil_code_in_data, 0, 1},
		{"code_wild", spoil_code_wild, 0, 1},
		{"code_at_end", spoil_code_at_end, 0, 1},
		{"thunk_wild", spoil_thunk_wild, 1, 0},
		{"thunk_in_data", spoil_thunk_in_data, 1, 0},
		{"thunk_elsewhere", spoil_thunk_elsewhere, 1, 0},
		{"nop_at", spoil_nop_at, 1, 0},
	};
	const char *texts[] = {"n", "t", "f.c"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
		struct image im;
		struct mt_elfnotes *n;
		struct buf d = {0};

		image_init(&im);
		thunks(&im, CODE + 0x20, 1);
		rows[i].spoil(&note);
		text_note(&im, 1, 0, texts, 3);
		put(&d, &note, sizeof(note));
		put_note(&im.mt, "montrace", MONTRACE_NT_CALLSITE, d.p, d.len);
		free(d.p);
		simple(&im, 8, CODE + 0x80, "sound"); /* a bad note costs itself only */
		n = parse(&im, MT_ELF_NATIVE);
		if (n->stats.malformed != rows[i].malformed || n->stats.discarded != rows[i].discarded)
			print_error("row %s\n", rows[i].what);
		check_stats(n, rows[i].malformed, rows[i].discarded, 0);
		assert_int_equal(n->ncallsites, i ? 1 : 2);
		assert_int_equal(n->nprobes, i ? 1 : 2);
		assert_string_equal(n->callsites[n->ncallsites - 1].name, "sound");
		mt_elfnotes_free(n);
		image_free(&im);
	}
}

static void number_of_fields(void **state)
{
	static const char *const fields[] = {"f0", "f1",  "f2",  "f3",  "f4",  "f5",  "f6",  "f7", "f8",
					     "f9", "f10", "f11", "f12", "f13", "f14", "f15", "f16"};
	const char *texts[20] = {"n", "t", "f.c"};
	uint8_t types[17];

	(void)state;
	memcpy(texts + 3, fields, sizeof(fields));
	memset(types, MONTRACE_TYPE_BOOL, sizeof(types));
	for (uint8_t nfields = 15; nfields <= 17; nfields++) {
		struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
		struct image im;
		struct mt_elfnotes *n;

		image_init(&im);
		thunks(&im, CODE + 0x20, 1);
		note.nfields = nfields;
		text_note(&im, 1, 0, texts, 20);
		callsite_note(&im, &note, types);
		n = parse(&im, MT_ELF_NATIVE);
		check_stats(n, nfields == 17, 0, 0);
		assert_int_equal(n->ncallsites, nfields < 17);
		for (unsigned i = 0; nfields < 17 && i < nfields; i++) {
			assert_string_equal(n->callsites[0].fields[i].name, fields[i]);
			assert_int_equal(n->callsites[0].fields[i].type, MONTRACE_TYPE_BOOL);
		}
		mt_elfnotes_free(n);
		image_free(&im);
	}
}

static void short_notes(void **state)
{
	struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
	const char *two[] = {"name", "target"};
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x20, 2);
	put_note(&im.mt, "montrace", MONTRACE_NT_TEXT, "\1\0\0\0", 4);     /* no key */
	put_note(&im.mt, "montrace", MONTRACE_NT_CALLSITE, "\1\0\0\0", 4); /* the same */
	text_note(&im, 1, 0, two, 2);                                      /* the file is missing ... */
	callsite_note(&im, &note, NULL);                                   /* ... which spoils this one */
	note.key = 1;
	text_note(&im, 1, 1, (const char *[]){"n", "t", "f", "more", "of", "these"}, 6);
	put_note(&im.mt, "montrace", MONTRACE_NT_CALLSITE, &note, sizeof(note) - 1); /* too short */
	note.thunk += 16;
	callsite_note(&im, &note, NULL);
	n = parse(&im, MT_ELF_NATIVE);
	check_stats(n, 4, 0, 0);
	assert_int_equal(n->ncallsites, 1);
	assert_int_equal(n->probes[0].addr, CODE + 0x30);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* What is claimed of a thunk, and what its bytes say. */
static void thunks_are_checked(void **state)
{
	static const struct {
		uint16_t machine;
		uint8_t bytes[16];
		uint8_t nop_at, nop5_at;
		bool want, thunk;
		uint32_t nop5;
	} rows[] = {
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, 0, 1, true, true, 0x21},
		{EM_X86_64,
		 {0xf3, 0x0f, 0x1e, 0xfa, 0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3},
		 4,
		 5,
		 true,
		 true,
		 0x25},
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, 0, 0, true, true, 0},  /* none claimed */
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 8, 0xc3}, 0, 1, true, false, 0}, /* another nop */
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 0, 0x90}, 0, 1, true, false, 0}, /* no return */
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, 0, 2, true, false, 0}, /* beside it */
		{EM_X86_64,
		 {0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0},
		 0,
		 11,
		 true,
		 false,
		 0}, /* past the thunk */
		{EM_X86_64, {0x90, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, 0, 255, true, false, 0},
		{EM_X86_64, {0xcc, 0x0f, 0x1f, 0x44, 0, 0, 0xc3}, 0, 1, false, false, 0},
		{EM_X86_64, {0xcc, 0x90}, 255, 0, false, false, 0},
		{EM_AARCH64, {0x1f, 0x20, 0x03, 0xd5}, 0, 0, true, true, 0},
		{EM_AARCH64, {0x5f, 0x24, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5}, 4, 0, true, true, 0},
		{EM_AARCH64, {0x1f, 0x20, 0x03, 0xd5}, 0, 1, true, false, 0}, /* there is no nop5 there */
		{EM_AARCH64, {0xc0, 0x03, 0x5f, 0xd6}, 0, 0, false, false, 0},
		{EM_AARCH64, {0x90, 0x1f, 0x20, 0x03, 0xd5}, 1, 0, false, false, 0}, /* not aligned */
		{EM_AARCH64, {0}, 16, 0, false, false, 0},                           /* the next thunk's */
		{EM_AARCH64, {0}, 13, 0, false, false, 0},
	};
	const char *texts[] = {"n", "t", "f.c"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
		struct image im;
		struct mt_elfnotes *n;

		/* What follows the thunk would do, if it were looked at. */
		uint8_t behind = rows[i].nop5_at == 11 ? 0xc3 : 0x90;

		image_init(&im);
		im.machine = rows[i].machine;
		for (size_t at = 0x20; at < CODE_SIZE; at++)
			im.code.p[at] = im.machine == EM_AARCH64 ? thunk_arm[at % 4] : behind;
		memcpy(im.code.p + 0x20, rows[i].bytes, 16);
		note.nop_at = rows[i].nop_at;
		note.nop5_at = rows[i].nop5_at;
		text_note(&im, 1, 0, texts, 3);
		callsite_note(&im, &note, NULL);
		n = parse(&im, MT_ELF_NATIVE);
		check_stats(n, !rows[i].want, 0, 0);
		assert_int_equal(n->nprobes, rows[i].want);
		if (rows[i].want) {
			const struct mt_probe *p = &n->probes[0];

			assert_int_equal(p->offset, CODE_OFF + 0x20 + rows[i].nop_at);
			assert_int_equal(p->thunk, rows[i].thunk);
			assert_int_equal(p->nop5_offset, rows[i].nop5 ? CODE_OFF + rows[i].nop5 : 0);
			assert_string_equal(p->args,
					    rows[i].machine == EM_AARCH64 ? "8@x0 8@x1" : "8@%rdi 8@%rsi");
		}
		mt_elfnotes_free(n);
		image_free(&im);
	}
}

/* The second of two thunks is no nop: the callsite goes as a whole. */
static void half_a_callsite_is_none(void **state)
{
	struct montrace_note note = note_of(MONTRACE_CLASS_SCOPE, CODE + 0x20, 2);
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x20, 1);
	text_note(&im, 1, 0, (const char *[]){"n", "t", "f.c"}, 3);
	callsite_note(&im, &note, NULL);
	n = parse(&im, MT_ELF_NATIVE);
	check_stats(n, 1, 0, 0);
	assert_int_equal(n->ncallsites, 0);
	assert_int_equal(n->nprobes, 0);
	mt_elfnotes_free(n);
	image_free(&im);
}

static void classes_and_their_kinds(void **state)
{
	static const struct {
		uint8_t class_, nprobes;
		const char *want[5];
	} rows[] = {
		{MONTRACE_CLASS_SCOPE, 2, {"scope_begin", "scope_end"}},
		{MONTRACE_CLASS_SCOPE, 1, {"scope_begin"}},
		{MONTRACE_CLASS_SCOPE, 200, {"scope_begin", "scope_end"}},
		{MONTRACE_CLASS_SPAN, 4, {"span_new", "span_enter", "span_exit", "span_close"}},
		{MONTRACE_CLASS_SPAN, 3, {"span_new", "span_enter", "span_exit"}},
		{MONTRACE_CLASS_RECORDING, 4, {"span_new", "span_enter", "span_exit", "span_close"}},
		{MONTRACE_CLASS_EVENT, 1, {"event"}},
		{MONTRACE_CLASS_COUNTER, 1, {"counter"}},
		{MONTRACE_CLASS_RECORD, 1, {"span_record"}},
		{MONTRACE_CLASS_THREAD_NAME, 1, {"thread_name"}},
		{MONTRACE_CLASS_PROCESS_NAME, 1, {"process_name"}},
		{MONTRACE_CLASS_EXECUTION_ID, 1, {"execution_id"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct montrace_note note = note_of(rows[i].class_, CODE + 0x40, rows[i].nprobes);
		struct image im;
		struct mt_elfnotes *n;
		uint32_t k = 0;

		image_init(&im);
		thunks(&im, CODE + 0x40, 4);
		text_note(&im, 1, 0, (const char *[]){"n", "t", "f.c"}, 3);
		callsite_note(&im, &note, NULL);
		n = parse(&im, MT_ELF_NATIVE);
		for (; rows[i].want[k]; k++) {
			assert_true(k < n->nprobes);
			assert_string_equal(n->probes[k].name, rows[i].want[k]);
			assert_int_equal(n->probes[k].addr, CODE + 0x40 + 16 * k);
			assert_string_equal(mt_kind_name(n->probes[k].kind), rows[i].want[k]);
		}
		assert_int_equal(n->nprobes, k);
		mt_elfnotes_free(n);
		image_free(&im);
	}
	assert_string_equal(mt_kind_name(0), "?");
	assert_string_equal(mt_kind_name(200), "?");
	assert_string_equal(mt_class_name(0), "?");
	assert_string_equal(mt_class_name(MONTRACE_CLASS_RECORDING), "recording");
	assert_string_equal(mt_level_name(MONTRACE_WARN), "warn");
	assert_string_equal(mt_type_name(MONTRACE_TYPE_DEBUG), "debug");
	assert_string_equal(mt_type_name(7), "?");
}

static void duplicates_are_dropped(void **state)
{
	struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	simple(&im, 0, CODE + 0x80, "first");
	simple(&im, 1, CODE + 0x20, "second");
	note.key = 1;
	text_note(&im, 1, 1, (const char *[]){"again", "t", "f.c"}, 3);
	callsite_note(&im, &note, NULL); /* the thunk of "second" once more */
	simple(&im, 2, CODE + 0x40, "third");
	STAP(&im, CODE + 9, 0, 0, "p\0b\0");
	STAP(&im, CODE + 5, 0, 0, "p\0a\0one");
	STAP(&im, CODE + 5, 0, 0, "p\0c\0");
	STAP(&im, CODE + 5, 0, 0, "p\0a\0two");
	STAP(&im, CODE + 5, 0, 0, "q\0a\0");
	STAP(&im, CODE + 9, 0, 0, "p\0b\0");
	STAP(&im, CODE + 0x20, 0, 0, "8letters\0x\0"); /* another's probe at a thunk */
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 3);
	assert_int_equal(n->ncallsites, 3);
	assert_string_equal(n->callsites[1].name, "second");
	assert_string_equal(n->callsites[2].name, "third");
	assert_ptr_equal(n->probes[2].cs, &n->callsites[2]);
	assert_int_equal(n->probes[2].addr, CODE + 0x40);
	assert_int_equal(n->nprobes, 8);
	assert_string_equal(n->probes[7].provider, "8letters");
	assert_string_equal(n->probes[3].name, "b"); /* in the order of the file */
	assert_string_equal(n->probes[4].args, "one");
	assert_string_equal(n->probes[5].name, "c");
	assert_string_equal(n->probes[6].provider, "q");
	mt_elfnotes_free(n);
	image_free(&im);
}

/* A linker dropped the function and kept the thunk with its stapsdt note: not a foreign probe. */
static void thunk_of_discarded_function(void **state)
{
	struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x60, 1);
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x60, 1);
	note.code = 0;
	text_note(&im, 1, 0, (const char *[]){"n", "t", "f.c"}, 3);
	callsite_note(&im, &note, NULL);
	simple(&im, 1, CODE + 0x20, "kept");
	STAP(&im, CODE + 0x60, BASE, DATA + 8, "montrace\0event\0");
	STAP(&im, CODE + 0x20, BASE, DATA + 8, "montrace\0event\0");
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 1, 0);
	assert_int_equal(n->nprobes, 1);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* Address 0 is what a linker leaves where something was dropped, even if there is code; file offset 0 and
   the headers are never a probe or a semaphore. */
static void zero_is_no_place(void **state)
{
	const char *texts[] = {"n", "t", "f.c"};
	struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x20, 1);
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x20, 1);
	im.third = (Elf64_Phdr){PT_LOAD, PF_R | PF_X, CODE_OFF, 0, 0, 0x100, 0, 16};
	text_note(&im, 1, 0, texts, 3);
	note.code = 0;
	callsite_note(&im, &note, NULL);
	STAP(&im, 0, 0, 0, "p\0zero\0");
	STAP(&im, 1, 0, 0, "p\0one\0");
	n = parse(&im, 3);
	check_stats(n, 0, 2, 0);
	assert_int_equal(n->nprobes, 1);
	assert_int_equal(n->probes[0].offset, CODE_OFF + 1);
	mt_elfnotes_free(n);

	im.third = (Elf64_Phdr){PT_LOAD, PF_R | PF_W | PF_X, 0, 0x9000, 0, 0x400, 0, 16};
	im.mt.len = im.stap.len = 0;
	text_note(&im, 1, 0, texts, 3);
	note.code = 0x9010;
	callsite_note(&im, &note, NULL); /* code in the headers: discarded */
	note.code = CODE;
	note.sem = 0x9000;
	callsite_note(&im, &note, NULL); /* semaphore at offset 0: malformed */
	STAP(&im, CODE, 0, 0x9000, "p\0sem\0");
	STAP(&im, 0x9010, 0, 0, "p\0headers\0");
	STAP(&im, 0x9300, 0, 0, "p\0fine\0");
	n = parse(&im, 3);
	check_stats(n, 1, 2, 0);
	assert_int_equal(n->stats.semaphore, 1);
	assert_int_equal(n->nprobes, 1);
	assert_string_equal(n->probes[0].name, "fine");
	mt_elfnotes_free(n);
	image_free(&im);
}

/* The image was moved after the notes were written: everything moves with .stapsdt.base. */
static void moved_images(void **state)
{
	struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, CODE + 0x60 - 0x1000, 1);
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	thunks(&im, CODE + 0x60, 1);
	note.code -= 0x1000;
	note.sem -= 0x1000;
	note.base -= 0x1000;
	text_note(&im, 1, 0, (const char *[]){"n", "t", "f.c"}, 3);
	callsite_note(&im, &note, NULL);
	STAP(&im, CODE - 0x1000, BASE - 0x1000, DATA - 0x1000, "p\0down\0");
	STAP(&im, CODE + 0x1008, BASE + 0x1000, DATA + 0x1004, "p\0up\0");
	STAP(&im, CODE + 4, 0, DATA + 8, "p\0without\0");
	STAP(&im, CODE + 0x60 - 0x1000, BASE - 0x1000, DATA, "montrace\0event\0");
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->nprobes, 4);
	assert_int_equal(n->probes[0].addr, CODE + 0x60);
	assert_int_equal(n->probes[0].sem_offset, DATA_OFF + 8);
	assert_int_equal(n->probes[1].offset, CODE_OFF);
	assert_int_equal(n->probes[1].sem_offset, DATA_OFF);
	assert_int_equal(n->probes[2].offset, CODE_OFF + 8);
	assert_int_equal(n->probes[2].sem_offset, DATA_OFF + 4);
	assert_int_equal(n->probes[3].offset, CODE_OFF + 4);
	mt_elfnotes_free(n);
	im.no_base = true; /* nothing to adjust by: the addresses are as they stand */
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 3, 0); /* the callsite, its own stapsdt note with it; "down"; "up" */
	assert_int_equal(n->nprobes, 1);
	mt_elfnotes_free(n);
	image_free(&im);
}

static void foreign_notes_that_lie(void **state)
{
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	STAP(&im, 0, 0, 0, "p\0zero\0");                  /* discarded */
	STAP(&im, DATA, 0, 0, "p\0in_data\0");            /* discarded */
	STAP(&im, CODE + CODE_SIZE, 0, 0, "p\0behind\0"); /* discarded */
	STAP(&im, UINT64_MAX, 0, 0, "p\0wild\0");         /* discarded */
	STAP(&im, CODE, 0, UINT64_MAX, "p\0sem_wild\0");  /* semaphores that are none */
	STAP(&im, CODE, 0, CODE, "p\0sem_in_code\0");
	STAP(&im, CODE, 0, DATA + DATA_SIZE - 1, "p\0sem_cut\0");
	STAP(&im, CODE, 0, DATA + 3, "p\0sem_odd\0");
	STAP(&im, CODE, 0, 1, "p\0sem_nowhere\0");
	/* malformed from here */
	STAP(&im, CODE, 0, 0, "\0no_provider\0");
	STAP(&im, CODE, 0, 0, "p\0\0");
	stap_note(&im, CODE, 0, 0, "AAAAAAAA", 8);
	stap_note(&im, CODE, 0, 0, "p\0nam", 5);
	stap_note(&im, CODE, 0, 0, "p\0n\0arg", 7);
	put_note(&im.stap, "stapsdt", 3, "12345678901234567890123", 23);
	put_note(&im.stap, "stapsdt", 4, "other type", 10); /* ignored */
	put_note(&im.stap, "stapsd", 3, "other owner", 11);
	stap_note(&im, CODE, 0, 0, "p\0n", 4); /* no operands at all: fine */
	STAP(&im, CODE + CODE_SIZE - 1, 0, DATA + DATA_SIZE - 2, "p\0last\0-4@%eax");
	put_note(&im.stap, "stapsdt", 3, "1234567890123456", 16); /* at the very end */
	n = parse(&im, MT_ELF_FOREIGN);
	check_stats(n, 7, 4, 0);
	assert_int_equal(n->stats.semaphore, 5);
	assert_int_equal(n->nprobes, 2);
	assert_string_equal(n->probes[0].name, "n");
	assert_string_equal(n->probes[0].args, "");
	assert_string_equal(n->probes[1].name, "last");
	mt_elfnotes_free(n);
	im.machine = EM_AARCH64; /* "last" is not on an instruction */
	n = parse(&im, MT_ELF_FOREIGN);
	check_stats(n, 8, 4, 0);
	assert_int_equal(n->stats.semaphore, 5);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* Data that is made read-only when the program starts holds no semaphore; the page behind it does. */
static void semaphores_and_relro(void **state)
{
	static const struct {
		uint64_t vaddr, memsz;
		bool usable;
	} rows[] = {
		{DATA, 0x40, true}, /* not a whole page: ld.so leaves it as it is */
		{DATA & ~0xfffull, 0x1000, false},
		{DATA, 0x1000 - (DATA & 0xfff), false},
		{DATA, 0xfff - (DATA & 0xfff), true},
		{DATA - 0x2000, 0x2000, true},
		{0, UINT64_MAX, false},
		{0x1000, UINT64_MAX, true}, /* no such segment */
	};
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	STAP(&im, CODE, 0, DATA + 2, "p\0n\0");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		im.third = (Elf64_Phdr){
			.p_type = PT_GNU_RELRO, .p_vaddr = rows[i].vaddr, .p_memsz = rows[i].memsz};
		n = parse(&im, MT_ELF_FOREIGN);
		check_stats(n, 0, 0, 0);
		assert_int_equal(n->nprobes, rows[i].usable);
		assert_int_equal(n->stats.semaphore, !rows[i].usable);
		mt_elfnotes_free(n);
	}
	image_free(&im);
}

/* 5-byte nops in all their forms, and what is not one. */
static void nops_of_5(void **state)
{
	static const struct {
		const char *code;
		bool is;
	} rows[] = {
		{"\x0f\x1f\x44\x00\x00", true},  {"\x66\x0f\x1f\x40\x00", true},
		{"\x66\x66\x66\x66\x90", true},  {"\x2e\x66\x66\x48\x90", true},
		{"\x66\x66\x0f\x1f\x00", true},  {"\x66\x0f\x1f\x04\x00", true},
		{"\x90\x0f\x1f\x44\x00", false}, {"\x0f\x1f\x40\x00\x90", false},
		{"\x0f\x1f\x00\x90\x90", false}, {"\x0f\x1f\x84\x00\x00", false},
		{"\x0f\x1f\x80\x00\x00", false}, {"\x0f\x1f\x05\x00\x00", false},
		{"\x66\x66\x66\x66\x66", false}, {"\xe8\x00\x00\x00\x00", false},
		{"\x0f\x0f\x44\x00\x00", false}, {"\x0f\x1f\xc0\x90\x90", false},
		{"\x66\x66\x66\x0f\x1f", false}, {"\xcc\x66\x66\x66\x90", false},
	};
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	STAP(&im, CODE + 0x10, 0, 0, "p\0n\0");
	STAP(&im, CODE + CODE_SIZE - 1, 0, 0, "p\0end\0");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(im.code.p + 0x10, rows[i].code, 5);
		im.machine = EM_X86_64;
		n = parse(&im, MT_ELF_FOREIGN);
		assert_int_equal(n->nprobes, 2);
		if (n->probes[0].on_nop5 != rows[i].is)
			fail_msg("row %zu", i);
		assert_false(n->probes[1].on_nop5);
		mt_elfnotes_free(n);
		im.machine = EM_AARCH64;
		n = parse(&im, MT_ELF_FOREIGN);
		assert_false(n->probes[0].on_nop5);
		mt_elfnotes_free(n);
	}
	image_free(&im);
}

static void i386_foreign_only(void **state)
{
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	simple(&im, 0, CODE + 0x20, "native");
	im.is32 = true;
	im.machine = EM_386;
	STAP(&im, CODE + 2 - 0x1000, BASE - 0x1000, DATA + 4 - 0x1000, "p\0n\0-4@%eax 4@8(%ebp)");
	STAP(&im, CODE + 0x1003, BASE + 0x1000, 0, "p\0m\0");
	put_note(&im.gnu, "GNU", NT_GNU_BUILD_ID, "123456789012345678901234", 24);
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_false(n->is64);
	assert_int_equal(n->machine, EM_386);
	assert_int_equal(n->ncallsites, 0);
	assert_int_equal(n->nprobes, 2);
	assert_int_equal(n->probes[0].addr, CODE + 2);
	assert_int_equal(n->probes[0].offset, CODE_OFF + 2);
	assert_int_equal(n->probes[0].sem_offset, DATA_OFF + 4);
	assert_string_equal(n->probes[0].args, "-4@%eax 4@8(%ebp)");
	assert_int_equal(n->probes[1].addr, CODE + 3);
	assert_int_equal(strlen(n->build_id), 40);
	mt_elfnotes_free(n);
	im.stap.len = 0;
	im.base = 0xfffff010; /* 32 bits wrap */
	STAP(&im, CODE + 0x1005, 0x10, 0, "p\0wraps\0");
	n = parse(&im, MT_ELF_FOREIGN);
	assert_int_equal(n->nprobes, 1);
	assert_int_equal(n->probes[0].addr, CODE + 5);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* Sizes of a note that lie, in the middle: what follows is found again. */
static void walk_goes_on_after_damage(void **state)
{
	static const struct {
		size_t word; /* 0 namesz, 1 descsz */
		uint32_t value;
	} rows[] = {{0, 0xffffffff}, {0, 0x10000}, {1, 0xfffffff0}, {1, 0xffffffff}, {1, 0x1000}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image im;
		struct mt_elfnotes *n;
		size_t at;

		image_init(&im);
		STAP(&im, CODE, 0, 0, "p\0before\0");
		at = im.stap.len;
		STAP(&im, CODE + 1, 0, 0, "p\0damaged\0");
		STAP(&im, CODE + 2, 0, 0, "p\0after\0");
		simple(&im, 0, CODE + 0x20, "one");
		memcpy(im.stap.p + at + 4 * rows[i].word, &rows[i].value, 4);
		n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
		check_stats(n, 1, 0, 0);
		assert_int_equal(n->nprobes, 3);
		assert_string_equal(n->probes[1].name, "before");
		assert_string_equal(n->probes[2].name, "after");
		mt_elfnotes_free(n);
		image_free(&im);
	}
}

static void sections_that_lie(void **state)
{
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_init(&im);
	simple(&im, 0, CODE + 0x20, "one");
	put_u64(&im.mt, 0); /* padding at the end is no note */
	n = parse(&im, MT_ELF_NATIVE);
	check_stats(n, 0, 0, 0);
	mt_elfnotes_free(n);
	im.mt_type = SHT_PROGBITS; /* the name is enough */
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 1);
	mt_elfnotes_free(n);
	im.mt_type = SHT_NOBITS;
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 0);
	check_stats(n, 0, 0, 0);
	mt_elfnotes_free(n);
	im.mt_type = SHT_NOTE;
	im.mt_flags = SHF_COMPRESSED;
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 0);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->stats.compressed, 1);
	mt_elfnotes_free(n);
	im.mt_flags = 0;
	im.mt_extra = 0x7fffffffffff; /* beyond the file: what is there is still read */
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 1);
	assert_true(n->stats.malformed >= 1);
	mt_elfnotes_free(n);
	im.no_sections = true; /* the same of a segment, with nothing behind it that could confuse */
	im.notes_in_phdr = true;
	n = parse(&im, MT_ELF_NATIVE);
	assert_int_equal(n->ncallsites, 1);
	check_stats(n, 1, 0, 0);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* Alignment 8, as sections of 64-bit notes may have it: padding to 8 behind name and description. */
static void notes_aligned_to_8(void **state)
{
	struct image im;
	struct mt_elfnotes *n;
	struct buf d = {0};

	(void)state;
	image_init(&im);
	put_u64(&d, CODE + 3);
	put_u64(&d, 0);
	put_u64(&d, 0);
	put(&d, "p\0n\0abc", 8);
	for (int i = 0; i < 2; i++) {
		put_u32(&im.mt, 8);
		put_u32(&im.mt, (uint32_t)d.len);
		put_u32(&im.mt, 3);
		put(&im.mt, "stapsdt", 8);
		put_zeros(&im.mt, (im.mt.len + 7) & ~7ul);
		put(&im.mt, d.p, d.len);
		put_zeros(&im.mt, (im.mt.len + 7) & ~7ul);
		d.p[0]++;
	}
	im.mt_align = 8;
	n = parse(&im, MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->nprobes, 2);
	assert_int_equal(n->probes[1].addr, CODE + 4);
	mt_elfnotes_free(n);
	free(d.p);
	image_free(&im);
}

static void without_section_headers(void **state)
{
	struct image im;
	struct mt_elfnotes *n;

	(void)state;
	image_usual(&im);
	im.no_sections = true;
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	assert_int_equal(n->nprobes, 0); /* notes are not loaded: nobody says where they are */
	assert_true(n->no_sections);
	mt_elfnotes_free(n);
	im.notes_in_phdr = true;
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->ncallsites, 2);
	mt_elfnotes_free(n);
	im.no_sections = false; /* both say where they are: read once */
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_false(n->no_sections);
	assert_int_equal(n->ncallsites, 2);
	mt_elfnotes_free(n);
	im.mt_type = SHT_NOBITS; /* the section has none, the segment has */
	n = parse(&im, MT_ELF_NATIVE | MT_ELF_FOREIGN);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->ncallsites, 2);
	mt_elfnotes_free(n);
	image_free(&im);
}

/* The section table is cut off or nonsense: the segments help out, and it is counted. */
static void damaged_section_table(void **state)
{
	struct image im;

	(void)state;
	image_usual(&im);
	im.notes_in_phdr = true;
	image_make(&im);
	for (int i = 0; i < 4; i++) {
		struct mt_elfnotes *n;
		size_t len = im.out.len;
		uint8_t *copy = malloc(len);
		Elf64_Ehdr *h = (void *)copy;

		assert_non_null(copy);
		memcpy(copy, im.out.p, len);
		len -= i == 0;
		if (i == 1)
			h->e_shoff = UINT64_MAX - 3;
		if (i == 2)
			h->e_shentsize = 40;
		if (i == 3)
			h->e_shnum = 0xfff0;
		assert_int_equal(mt_elfnotes_parse(copy, len, MT_ELF_NATIVE, 1, &n), 0);
		check_sound(n, len);
		check_stats(n, 1, 0, 0);
		assert_int_equal(n->ncallsites, 2);
		mt_elfnotes_free(n);
		free(copy);
	}
	image_free(&im);
}

/* More sections than 16 bits can say: count and names' index are in section 0. */
static void extended_section_numbers(void **state)
{
	struct image im;
	struct mt_elfnotes *n;
	Elf64_Ehdr *h;
	Elf64_Shdr first = {0};

	(void)state;
	image_usual(&im);
	STAP(&im, CODE + 0x1200, BASE + 0x1000, 0, "p\0moved\0"); /* needs the names */
	image_make(&im);
	h = (void *)im.out.p;
	first.sh_size = h->e_shnum;
	first.sh_link = h->e_shstrndx;
	memcpy(im.out.p + h->e_shoff, &first, sizeof(first));
	h->e_shnum = 0;
	h->e_shstrndx = SHN_XINDEX;
	assert_int_equal(mt_elfnotes_parse(im.out.p, im.out.len, 3, 1, &n), 0);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->ncallsites, 2);
	assert_int_equal(n->nprobes, 6);
	mt_elfnotes_free(n);
	image_free(&im);
}

static void not_for_us(void **state)
{
	struct image im;
	struct mt_elfnotes *n = (void *)-1;
	Elf64_Ehdr *h, ok;

	(void)state;
	image_usual(&im);
	image_make(&im);
	h = (void *)im.out.p;
	ok = *h;
#define REFUSED(change)                                                                        \
	do {                                                                                   \
		change;                                                                        \
		assert_int_equal(mt_elfnotes_parse(im.out.p, im.out.len, 3, 1, &n), -ENOEXEC); \
		assert_ptr_equal(n, (void *)-1);                                               \
		*h = ok;                                                                       \
	} while (0)
	REFUSED(h->e_ident[0] = 0);
	REFUSED(h->e_ident[EI_CLASS] = 3);
	REFUSED(h->e_ident[EI_DATA] = ELFDATA2MSB);
	REFUSED(h->e_type = ET_REL);
	REFUSED(h->e_type = ET_CORE);
	REFUSED(h->e_machine = EM_386);
	REFUSED(h->e_machine = EM_RISCV);
	REFUSED(h->e_phnum = 0);
	REFUSED(h->e_phentsize = 32);
	REFUSED(h->e_phoff = im.out.len - 8);
	REFUSED(h->e_phoff = UINT64_MAX - 8);
	assert_int_equal(mt_elfnotes_parse(NULL, 0, 3, 1, &n), -ENOEXEC);
	assert_int_equal(mt_elfnotes_parse("#!/bin/sh\n", 10, 3, 1, &n), -ENOEXEC);
	image_free(&im);
}

static void limit_on_probes(void **state)
{
	struct image im;
	struct mt_src src = {.fd = -1};
	struct mt_elfnotes *n;

	(void)state;
	image_usual(&im); /* callsites of 2 and 1 probes, 2 foreign */
	image_make(&im);
	src.mem = im.out.p;
	src.size = im.out.len;
	for (uint32_t max = 0; max <= 5; max++) {
		/* stapsdt notes of callsites that did not fit count, too */
		static const uint32_t native[] = {0, 1, 2, 3, 3, 3}, over[] = {8, 6, 4, 2, 1, 0};

		assert_int_equal(mt_elfnotes_parse_src(&src, 3, 1, max, &n), 0);
		check_sound(n, im.out.len);
		assert_int_equal(n->nnative, native[max]);
		assert_true(n->nprobes <= max);
		assert_int_equal(n->stats.over_limit, over[max]);
		mt_elfnotes_free(n);
	}
	src.size = MT_ELFNOTES_MAX_FILE + 1;
	assert_int_equal(mt_elfnotes_parse_src(&src, 3, 1, 5, &n), -EFBIG);
	image_free(&im);
}

static int memfd_with(const void *data, size_t len)
{
	int fd = memfd_create("image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	return fd;
}

/* Thousands of callsites in the reverse order of their addresses, read from a file. */
static void many_callsites(void **state)
{
	enum { N = 5000 };
	struct image im;
	struct mt_elfnotes *n;
	char name[32];
	int fd;

	(void)state;
	image_init(&im);
	im.code.len = 0;
	for (unsigned i = 0; i < N; i++)
		put(&im.code, thunk_x86, 16);
	/* Data and notes move behind the code; build by hand what image_make cannot. */
	for (unsigned i = 0; i < N; i++) {
		struct montrace_note note = note_of(MONTRACE_CLASS_EVENT, 0x100000 + (N - 1 - i) * 16, 1);
		const char *texts[] = {name, "t", "f.c"};

		snprintf(name, sizeof(name), "event %u", i);
		note.code = 0x100000;
		note.key = i % 7;
		text_note(&im, 1, note.key, texts, 3);
		callsite_note(&im, &note, NULL);
	}
	{
		struct buf code = im.code;
		Elf64_Phdr *ph;
		uint64_t at;

		im.code = (struct buf){0};
		put_zeros(&im.code, CODE_SIZE);
		image_make(&im);
		at = im.out.len;
		put(&im.out, code.p, code.len);
		ph = (void *)(im.out.p + sizeof(Elf64_Ehdr));
		ph[0].p_offset = at;
		ph[0].p_vaddr = 0x100000;
		ph[0].p_filesz = code.len;
		free(code.p);
	}
	fd = memfd_with(im.out.p, im.out.len);
	assert_int_equal(mt_elfnotes_read(fd, 3, 1, &n), 0);
	check_sound(n, im.out.len);
	check_stats(n, 0, 0, 0);
	assert_int_equal(n->ncallsites, N);
	assert_int_equal(n->nprobes, N);
	assert_string_equal(n->callsites[0].name, "event 0");
	assert_int_equal(n->probes[0].addr, 0x100000 + (N - 1) * 16);
	assert_string_equal(n->callsites[N - 1].name, "event 4999");
	assert_int_equal(n->callsites[N - 1].id, N);
	mt_elfnotes_free(n);
	close(fd);
	image_free(&im);
}

static void files(void **state)
{
	struct image im;
	struct mt_src *src = calloc(1, sizeof(*src));
	struct mt_elfnotes *n;
	int fd;

	(void)state;
	assert_non_null(src);
	image_usual(&im);
	image_make(&im);
	fd = memfd_with(im.out.p, im.out.len);
	assert_int_equal(mt_elfnotes_read(fd, 3, 1, &n), 0);
	check_sound(n, im.out.len);
	assert_int_equal(n->ncallsites, 2);
	assert_int_equal(n->nprobes, 5);
	assert_int_equal(n->probes[1].nop5_offset, CODE_OFF + 0x51);
	mt_elfnotes_free(n);

	/* The file is shorter than it was when it was looked at. */
	src->fd = fd;
	src->size = im.out.len;
	assert_int_equal(ftruncate(fd, (off_t)im.out.len - 1), 0);
	assert_int_equal(mt_elfnotes_parse_src(src, 3, 1, 100, &n), -EIO);
	assert_int_equal(ftruncate(fd, 5l << 30), 0);
	assert_int_equal(mt_elfnotes_read(fd, 3, 1, &n), -EFBIG);
	close(fd);

	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_int_equal(mt_elfnotes_read(fd, 3, 1, &n), -ENOEXEC);
	close(fd);
	assert_int_equal(mt_elfnotes_read(-1, 3, 1, &n), -EIO);
	free(src);
	image_free(&im);
}

/* Whatever the bytes, the answer is one of three, and a result is sound. */
static bool parse_any(const uint8_t *data, size_t len)
{
	struct mt_elfnotes *n;
	uint8_t *exact = malloc(len ? len : 1);
	int r;

	assert_non_null(exact);
	memcpy(exact, data, len);
	r = mt_elfnotes_parse(exact, len, 3, 1, &n);
	free(exact);
	if (!r) {
		check_sound(n, len);
		mt_elfnotes_free(n);
	}
	assert_true(r == 0 || r == -ENOEXEC);
	return !r;
}

static void cut_at_every_byte(void **state)
{
	struct image im;

	(void)state;
	for (int sections = 0; sections < 2; sections++) {
		image_usual(&im);
		im.notes_in_phdr = true;
		im.no_sections = !sections;
		image_make(&im);
		for (size_t len = 0; len <= im.out.len; len++)
			assert_int_equal(parse_any(im.out.p, len),
					 len >= sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr));
		image_free(&im);
	}
}

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void random_damage(void **state)
{
	static const uint64_t values[] = {0,      1,          0x7f,       0xff,      0x7fff,
					  0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX};
	struct image im;
	uint32_t x = 2463534242u, usable = 0;

	(void)state;
	image_usual(&im);
	im.notes_in_phdr = true;
	image_make(&im);
	for (unsigned round = 0; round < 20000; round++) {
		uint8_t copy[8192];

		assert_true(im.out.len <= sizeof(copy));
		memcpy(copy, im.out.p, im.out.len);
		for (unsigned k = next_random(&x) % 4; k < 4; k++) {
			size_t width = 1ul << next_random(&x) % 4;
			size_t at = next_random(&x) % (im.out.len - 8);

			/* Code and zeros are most of the image and say little. */
			if (at >= 0x100 && at < DATA_OFF)
				at = DATA_OFF + at % (im.out.len - DATA_OFF - 8);
			memcpy(copy + at, &values[next_random(&x) % 9], width);
		}
		usable += parse_any(copy, im.out.len);
	}
	assert_true(usable > 10000); /* else the damage is not where it is interesting */
	image_free(&im);
}

/* Real notes, made by the header and this test's compiler and linker. */
static __attribute__((noinline)) void own_probes(int n)
{
	struct montrace_span s;

	MONTRACE_SCOPE("own scope", MT_I64("n", n), MT_STR("text", "x"));
	MONTRACE_SPAN(&s, MONTRACE_DEBUG, "own span");
	montrace_close(&s);
	MONTRACE_EVENT(MONTRACE_WARN, "own event", MT_F64("f", 1.5));
}

static void own_executable(void **state)
{
	struct mt_elfnotes *n;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), found = 0;

	(void)state;
	own_probes(1);
#if !MONTRACE_ENABLED
	close(fd);
	skip();
#endif
	assert_int_equal(mt_elfnotes_read(fd, MT_ELF_NATIVE | MT_ELF_FOREIGN, 1, &n), 0);
	check_sound(n, (size_t)lseek(fd, 0, SEEK_END));
	check_stats(n, 0, 0, 0);
	assert_true(n->ncallsites >= 3);
	for (uint32_t i = 0; i < n->nprobes; i++) {
		const struct mt_probe *p = &n->probes[i];

		if (strcmp(p->provider, "montrace"))
			continue;       /* a static libc has some */
		assert_non_null(p->cs); /* each stapsdt note was recognised as a callsite's */
		assert_true(p->thunk);
		assert_true(p->sem_offset);
		assert_int_equal(p->nop5_offset, n->machine == EM_X86_64 ? p->offset + 1 : 0);
		found += !strcmp(p->cs->name, "own scope") && !strcmp(p->cs->target, "test_elfnotes") &&
			 p->cs->nfields == 2 && !strcmp(p->cs->fields[1].name, "text") &&
			 p->cs->fields[1].type == MONTRACE_TYPE_STR;
		found += !strcmp(p->cs->name, "own span") && p->cs->level == MONTRACE_DEBUG;
		found += !strcmp(p->cs->name, "own event") && p->cs->level == MONTRACE_WARN;
	}
	assert_int_equal(found, 7);
	mt_elfnotes_free(n);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usual),
		cmocka_unit_test(only_what_is_asked_for),
		cmocka_unit_test(texts_and_callsites_pair),
		cmocka_unit_test(targets),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(bad_callsites),
		cmocka_unit_test(number_of_fields),
		cmocka_unit_test(short_notes),
		cmocka_unit_test(thunks_are_checked),
		cmocka_unit_test(half_a_callsite_is_none),
		cmocka_unit_test(classes_and_their_kinds),
		cmocka_unit_test(duplicates_are_dropped),
		cmocka_unit_test(thunk_of_discarded_function),
		cmocka_unit_test(zero_is_no_place),
		cmocka_unit_test(moved_images),
		cmocka_unit_test(foreign_notes_that_lie),
		cmocka_unit_test(semaphores_and_relro),
		cmocka_unit_test(nops_of_5),
		cmocka_unit_test(i386_foreign_only),
		cmocka_unit_test(walk_goes_on_after_damage),
		cmocka_unit_test(sections_that_lie),
		cmocka_unit_test(notes_aligned_to_8),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(damaged_section_table),
		cmocka_unit_test(extended_section_numbers),
		cmocka_unit_test(not_for_us),
		cmocka_unit_test(limit_on_probes),
		cmocka_unit_test(many_callsites),
		cmocka_unit_test(files),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(random_damage),
		cmocka_unit_test(own_executable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
