/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbols of this very program; files that lie. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elfsyms.h"

int elfsyms_global = 1;
__attribute__((used)) static int elfsyms_static = 2;
__attribute__((used)) static __thread int elfsyms_tls = 3;

static int first(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1; /* the program itself comes first */
}

static int find(struct mt_elfsyms *s, const char *name, enum mt_operand_sym kind, uint64_t *ret)
{
	return mt_elfsyms_find(s, (struct mt_str){name, (uint32_t)strlen(name)}, kind, ret);
}

static void own(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t v = 0, bias = 0, tp;
	struct mt_elfsyms *s;

	(void)state;
	assert_true(fd >= 0);
	dl_iterate_phdr(first, &bias);
	assert_int_equal(mt_elfsyms_new(fd, &s), 0);
	assert_int_equal(find(s, "elfsyms_global", MT_SYM_ADDR, &v), 0);
	assert_int_equal(v + bias, (uintptr_t)&elfsyms_global);
	assert_int_equal(find(s, "elfsyms_static", MT_SYM_ADDR, &v), 0);
	assert_int_equal(v + bias, (uintptr_t)&elfsyms_static);
	assert_int_equal(find(s, "elfsyms_stati", MT_SYM_ADDR, &v), -ENOENT);
	assert_int_equal(find(s, "elfsyms_static2", MT_SYM_ADDR, &v), -ENOENT);
	assert_int_equal(find(s, "", MT_SYM_ADDR, &v), -ENOENT);
	assert_int_equal(find(s, "elfsyms_tls", MT_SYM_ADDR, &v), -ENOENT);
	assert_int_equal(find(s, "elfsyms_static", MT_SYM_TPOFF, &v), -ENOENT);
	assert_int_equal(find(s, "elfsyms_tls", MT_SYM_TPOFF, &v), 0);
#if defined(__x86_64__)
	__asm__("mov %%fs:0, %0" : "=r"(tp));
	assert_int_equal(tp + v, (uintptr_t)&elfsyms_tls);
#else
	(void)tp;
#endif
	mt_elfsyms_free(s);
	close(fd);
}

#if defined(__x86_64__)
/* The same file without the mark of a program is a library: what it has thread-local is not at a known place. */
static void library(void **state)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd = memfd_create("library", MFD_CLOEXEC);
	off_t size = lseek(from, 0, SEEK_END);
	char *p = malloc((size_t)size);
	Elf64_Ehdr *h = (void *)p;
	Elf64_Phdr *ph;
	bool found = false;
	struct mt_elfsyms *s;
	uint64_t v;

	(void)state;
	assert_non_null(p);
	assert_int_equal(pread(from, p, (size_t)size, 0), size);
	h->e_type = ET_DYN;
	ph = (void *)(p + h->e_phoff);
	for (unsigned i = 0; i < h->e_phnum; i++) {
		Elf64_Dyn *d = (void *)(p + ph[i].p_offset);

		for (; ph[i].p_type == PT_DYNAMIC && d->d_tag != DT_NULL; d++) {
			if (d->d_tag == DT_FLAGS_1) {
				found = d->d_un.d_val & DF_1_PIE;
				d->d_un.d_val &= ~(uint64_t)DF_1_PIE;
			}
		}
	}
	if (!found) {
		free(p);
		skip(); /* not linked as one that could be a library */
	}
	assert_int_equal(write(fd, p, (size_t)size), size);
	assert_int_equal(mt_elfsyms_new(fd, &s), 0);
	assert_int_equal(find(s, "elfsyms_tls", MT_SYM_TPOFF, &v), -ENOTSUP);
	assert_int_equal(find(s, "elfsyms_global", MT_SYM_ADDR, &v), 0);
	mt_elfsyms_free(s);
	free(p);
	close(fd);
	close(from);
}
#endif

/* A file with three symbols; two have one name. */
struct image {
	Elf64_Ehdr h;
	Elf64_Shdr sh[3];
	Elf64_Sym sym[4];
	char names[16];
};

static void image(struct image *im)
{
	memset(im, 0, sizeof(*im));
	memcpy(im->h.e_ident, ELFMAG, SELFMAG);
	im->h.e_ident[EI_CLASS] = ELFCLASS64;
	im->h.e_shoff = offsetof(struct image, sh);
	im->h.e_shentsize = sizeof(Elf64_Shdr);
	im->h.e_phentsize = sizeof(Elf64_Phdr);
	im->h.e_shnum = 3;
	im->sh[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				 .sh_offset = offsetof(struct image, sym),
				 .sh_size = sizeof(im->sym),
				 .sh_link = 2};
	im->sh[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				 .sh_offset = offsetof(struct image, names),
				 .sh_size = sizeof(im->names)};
	memcpy(im->names, "\0one\0same\0", 10);
	im->sym[1] = (Elf64_Sym){.st_name = 1, .st_shndx = 1, .st_value = 0x1234};
	im->sym[2] = (Elf64_Sym){.st_name = 5, .st_shndx = 1, .st_value = 1};
	im->sym[3] = (Elf64_Sym){.st_name = 5, .st_shndx = 1, .st_value = 2};
}

static int lookup(const struct image *im, size_t len, const char *name, uint64_t *ret)
{
	int fd = memfd_create("elfsyms", MFD_CLOEXEC), r;
	struct mt_elfsyms *s;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, im, len), (ssize_t)len);
	assert_int_equal(mt_elfsyms_new(fd, &s), 0);
	r = find(s, name, MT_SYM_ADDR, ret);
	mt_elfsyms_free(s);
	close(fd);
	return r;
}

static void damaged(void **state)
{
	struct image im;
	uint64_t v = 0;

	(void)state;
	image(&im);
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), 0);
	assert_int_equal(v, 0x1234);
	assert_int_equal(lookup(&im, sizeof(im), "same", &v), -ENOENT); /* two values */
	im.sym[3].st_value = 1;
	assert_int_equal(lookup(&im, sizeof(im), "same", &v), 0);
	assert_int_equal(v, 1);
	for (size_t len = 0; len < sizeof(im); len++)
		assert_int_equal(lookup(&im, len, "one", &v), -ENOENT);
	image(&im);
	im.sym[1].st_shndx = SHN_ABS; /* a number, not a place */
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	im.sym[1].st_name = 16; /* behind the names */
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	memset(im.names, 'x', sizeof(im.names)); /* no end */
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	im.sh[1].sh_size = UINT64_MAX;
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	im.sh[2].sh_offset = UINT64_MAX - 4;
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	im.sh[1].sh_link = 1;
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
	image(&im);
	im.h.e_shentsize = 1;
	assert_int_equal(lookup(&im, sizeof(im), "one", &v), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own),
#if defined(__x86_64__)
		cmocka_unit_test(library),
#endif
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
