/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes -> elfnotes -> list. The first byte chooses: even, the rest is a whole ELF file; odd, the rest is
 * a section of notes in a sound file whose code is full of thunks, so that notes get far.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_list.h"
#include "strings.h"

#define CODE_OFF 0x400u
#define CODE 0x1400u
#define CODE_SIZE 0x800u
#define DATA_OFF (CODE_OFF + CODE_SIZE)
#define DATA 0x3800u
#define DATA_SIZE 0x40u
#define NOTES_OFF (DATA_OFF + DATA_SIZE)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

static void check_text(const char *s, size_t limit)
{
	char safe[3 * 4096 + 1];
	size_t len = strlen(s);

	MUST(len <= limit);
	MUST(mt_text_safe(safe, sizeof(safe), s, len) == len && !memcmp(safe, s, len));
}

static void check_sound(const struct mt_elfnotes *n, size_t size)
{
	MUST(n->nnative <= n->nprobes);
	for (uint32_t i = 0; i < n->ncallsites; i++) {
		const struct mt_callsite *c = &n->callsites[i];

		check_text(c->name, 1024);
		check_text(c->target, 256);
		check_text(c->file, 1024);
		MUST(c->id == 1 + i && c->nfields <= MONTRACE_MAX_FIELDS);
		for (unsigned k = 0; k < c->nfields; k++)
			check_text(c->fields[k].name, 128);
	}
	for (uint32_t i = 0; i < n->nprobes; i++) {
		const struct mt_probe *p = &n->probes[i];

		MUST((p->cs != NULL) == (i < n->nnative));
		MUST(p->offset && p->offset < size && p->nop5_offset < size && p->sem_offset < size);
		MUST(!p->nop5_offset || p->thunk);
		check_text(p->provider, 256);
		check_text(p->name, 1024);
		check_text(p->args, 4096);
	}
}

static uint8_t *wrap(const uint8_t *notes, size_t len, size_t *ret_size)
{
	static const uint8_t x86[16] = {0x90, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
	size_t size = NOTES_OFF + len;
	uint8_t *p = calloc(1, size);
	Elf64_Ehdr h = {.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_phoff = sizeof(h),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 3};
	Elf64_Phdr ph[3] = {
		{PT_LOAD, PF_R | PF_X, CODE_OFF, CODE, 0, CODE_SIZE, 0, 16},
		{PT_LOAD, PF_R | PF_W, DATA_OFF, DATA, 0, DATA_SIZE, 0, 16},
		{PT_NOTE, PF_R, NOTES_OFF, 0, 0, len, 0, 4},
	};

	MUST(p);
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(p, &h, sizeof(h));
	memcpy(p + sizeof(h), ph, sizeof(ph));
	for (size_t at = 0; at < CODE_SIZE; at += 16)
		memcpy(p + CODE_OFF + at, x86, 16);
	memcpy(p + NOTES_OFF, notes, len);
	*ret_size = size;
	return p;
}

static void list(const struct mt_elfnotes *n, unsigned flags)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	MUST(f);
	MUST(!mt_list_print(f, n, "file", NULL, flags));
	fclose(f);
	for (size_t i = 0; i < len; i++)
		MUST(text[i] == '\n' || ((unsigned char)text[i] >= 0x20 && text[i] != 0x7f));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mt_elfnotes *n;
	uint8_t *wrapped = NULL;

	if (!size)
		return 0;
	data++, size--;
	if (data[-1] & 1) {
		wrapped = wrap(data, size, &size);
		data = wrapped;
	}
	if (!mt_elfnotes_parse(data, size, MT_ELF_NATIVE | MT_ELF_FOREIGN, 1, &n)) {
		check_sound(n, size);
		list(n, 0);
		list(n, MT_LIST_JSON);
		mt_elfnotes_free(n);
	}
	free(wrapped);
	return 0;
}
