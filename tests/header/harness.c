/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "montrace.h"
#include "harness.h"

#define MAX_SITES 16384
#define MAX_HITS 65536
#define STUB 32

int h_failures;
static struct h_site *sites;
static size_t nsites;
static struct h_hit hits[MAX_HITS];
static uint32_t nhits;
static uint8_t *stubs[64]; /* blocks of 64 KiB, each near the code that it serves */
static size_t nstubs;

static void die(const char *what)
{
	perror(what);
	abort();
}

/* Called from the assembly below, with a good stack. index: site * 4 + probe; words: rdx rcx r8 r9 rax r10 */
void h_capture(const void *rec, uint64_t len, uint32_t index, const uint64_t *words);
__attribute__((used, visibility("hidden"))) void h_capture(const void *rec, uint64_t len, uint32_t index,
							   const uint64_t *words)
{
	uint32_t i = __atomic_fetch_add(&nhits, 1, __ATOMIC_RELAXED);
	uint8_t *copy;

	if (i >= MAX_HITS)
		abort();
	copy = malloc(4096);
	if (!copy)
		abort();
	memcpy(copy, rec, len < 4096 ? len : 4096);
	hits[i].site = &sites[index / 4];
	hits[i].probe = index & 3;
	hits[i].tid = (uint32_t)syscall(SYS_gettid);
	hits[i].len = len;
	hits[i].rec = copy;
	memcpy(hits[i].words, words, sizeof(hits[i].words));
}

/* What a stub jumps to, index on the stack. Keeps the callee-saved registers, spoils all else. */
void h_common(void);
__asm__(".text\n"
	".globl h_common\n.hidden h_common\n.type h_common, @function\n"
	"h_common:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	push %r10\n	push %rax\n	push %r9\n	push %r8\n	push %rcx\n	push %rdx\n"
	"	mov %rsp, %rcx\n"
	"	mov 8(%rbp), %edx\n"
	"	and $-16, %rsp\n"
	"	cld\n"
	"	call h_capture\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	add $8, %rsp\n"
	"	lea -8(%rsp), %rax\n"
	"	mov $64, %ecx\n"
	"	movabs $0xdeadbeefdeadbeef, %rdx\n"
	"1:	mov %rdx, (%rax)\n"
	"	sub $8, %rax\n"
	"	dec %ecx\n"
	"	jnz 1b\n"
	"	mov %rdx, %rax\n	mov %rdx, %rcx\n	mov %rdx, %rsi\n	mov %rdx, %rdi\n"
	"	mov %rdx, %r8\n	mov %rdx, %r9\n	mov %rdx, %r10\n	mov %rdx, %r11\n"
	"	movq %rdx, %xmm0\n	movq %rdx, %xmm1\n	movq %rdx, %xmm2\n	movq %rdx, %xmm3\n"
	"	movq %rdx, %xmm4\n	movq %rdx, %xmm5\n	movq %rdx, %xmm6\n	movq %rdx, %xmm7\n"
	"	movq %rdx, %xmm8\n	movq %rdx, %xmm9\n	movq %rdx, %xmm10\n	movq %rdx, %xmm11\n"
	"	movq %rdx, %xmm12\n	movq %rdx, %xmm13\n	movq %rdx, %xmm14\n	movq %rdx, %xmm15\n"
	"	cmp %rax, %rdx\n	stc\n"
	"	ret\n"
	".size h_common, .-h_common\n");

/* A block of stubs within reach of a 32-bit displacement from `near`. */
static uint8_t *stub_block(uintptr_t near)
{
	const size_t size = 1 << 18;
	uintptr_t d;

	for (d = 1 << 24; d < (uintptr_t)1 << 30; d += 1 << 22) {
		for (int sign = 0; sign < 2; sign++) {
			uintptr_t at = (sign ? near - d : near + d) & ~(uintptr_t)0xfff;
			void *p;

			if (sign && near < d + 65536)
				continue;
			p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (p == (void *)at)
				return p;
			if (p != MAP_FAILED)
				munmap(p, size);
		}
	}
	die("no room for stubs");
	return NULL;
}

static void patch(struct h_site *s, uint8_t *stub, uint32_t first)
{
	uintptr_t page = (uintptr_t)s->thunk & ~(uintptr_t)0xfff;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) &&
	    mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
		die("mprotect");
	for (uint32_t i = 0; i < s->nprobes; i++, stub += STUB) {
		uint8_t *nop5 = s->thunk + 16 * i + s->nop5_at;
		uint32_t index = first + i;
		uint64_t to = (uint64_t)(uintptr_t)h_common;
		int32_t rel = (int32_t)(stub - (nop5 + 5));

		CHECK(!memcmp(nop5 - 1, "\x90\x0f\x1f\x44\x00\x00\xc3", 7));
		/* push $index; movabs $h_common, %r11; jmp *%r11 */
		stub[0] = 0x68;
		memcpy(stub + 1, &index, 4);
		memcpy(stub + 5, "\x49\xbb", 2);
		memcpy(stub + 7, &to, 8);
		memcpy(stub + 15, "\x41\xff\xe3", 3);
		nop5[0] = 0xe8;
		memcpy(nop5 + 1, &rel, 4);
	}
	s->patched = true;
}

/* One callsite note after its text note. Notes of dropped functions have no sound addresses. */
static void take(const char *path, const uint8_t *text, const uint8_t *n, uintptr_t bias)
{
	struct {
		uint32_t abi, key;
		uint64_t code, base, sem, thunk;
		uint8_t class_, level;
		uint16_t flags;
		uint32_t line;
		uint8_t nfields, nprobes, nop_at, nop5_at;
	} note;
	struct h_site *s = &sites[nsites];
	const char *p = (const char *)text + 8;

	memcpy(&note, n, sizeof(note));
	if (memcmp(text + 4, n + 4, 4) || nsites == MAX_SITES) /* the keys of the two notes */
		abort();
	if (!note.thunk || !note.sem)
		return;
	memset(s, 0, sizeof(*s));
	snprintf(s->module, sizeof(s->module), "%s", path);
	s->name = p;
	s->target = p += strlen(p) + 1;
	s->file = p += strlen(p) + 1;
	for (int i = 0; i < note.nfields; i++) {
		s->fields[i] = p += strlen(p) + 1;
		s->types[i] = n[56 + i];
	}
	s->class_ = note.class_;
	s->level = note.level;
	s->flags = note.flags;
	s->line = note.line;
	s->nfields = note.nfields;
	s->nprobes = note.nprobes;
	s->nop5_at = note.nop5_at;
	s->sem = (volatile uint16_t *)(bias + note.sem);
	s->thunk = (uint8_t *)(bias + note.thunk);
	nsites++;
}

static int module(struct dl_phdr_info *info, size_t size, void *ctx)
{
	const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
	int fd = open(path, O_RDONLY);
	const Elf64_Shdr *sh;
	const Elf64_Ehdr *eh;
	const uint8_t *map, *text = NULL;
	uint8_t *copy;
	struct stat st;

	(void)size;
	(void)ctx;
	if (fd < 0 || fstat(fd, &st))
		return 0; /* the vdso */
	for (size_t i = 0; i < nsites; i++)
		if (!strcmp(sites[i].module, path)) {
			close(fd);
			return 0;
		}
	copy = malloc(
		(size_t)st.st_size); /* kept: the names point into it; no mapping, that would pin the file */
	if (!copy || pread(fd, copy, (size_t)st.st_size, 0) != st.st_size)
		die(path);
	close(fd);
	map = copy;
	eh = (const Elf64_Ehdr *)map;
	sh = (const Elf64_Shdr *)(map + eh->e_shoff);
	for (int i = 0; i < eh->e_shnum; i++) {
		const uint8_t *p = map + sh[i].sh_offset, *end = p + sh[i].sh_size;

		if (strcmp((const char *)map + sh[eh->e_shstrndx].sh_offset + sh[i].sh_name,
			   ".note.montrace"))
			continue;
		while (end - p >= 12) {
			uint32_t h[3];
			const uint8_t *desc;

			memcpy(h, p, 12);
			desc = p + 12 + ((h[0] + 3) & ~3u);
			if (h[2] == 2)
				text = desc;
			else if (h[2] == 1)
				take(path, text, desc, info->dlpi_addr);
			p = desc + ((h[1] + 3) & ~3u);
		}
	}
	return 0;
}

size_t h_load(void)
{
	size_t before = nsites, room = 0;
	uint8_t *block = NULL;

	if (!sites)
		sites = calloc(MAX_SITES, sizeof(*sites));
	if (!sites)
		die("calloc");
	dl_iterate_phdr(module, NULL);
	for (size_t i = before; i < nsites; i++) {
		struct h_site *s = &sites[i];
		ptrdiff_t away = block ? s->thunk - block : 0;

		if (room < 4 || away > (1 << 30) || away < -(1 << 30)) {
			if (nstubs == 64)
				abort();
			block = stubs[nstubs++] = stub_block((uintptr_t)s->thunk);
			room = (1 << 18) / (STUB);
		}
		patch(s, block + (1 << 18) - room * STUB, (uint32_t)i * 4);
		room -= s->nprobes;
	}
	return nsites - before;
}

void h_unload(const char *suffix)
{
	for (size_t i = 0; i < nsites; i++) {
		size_t n = strlen(sites[i].module), k = strlen(suffix);

		if (n >= k && !strcmp(sites[i].module + n - k, suffix)) {
			sites[i].module[0] = 0;
			sites[i].sem = NULL;
		}
	}
}

size_t h_nsites(void)
{
	return nsites;
}

const struct h_site *h_site_at(size_t i)
{
	return i < nsites ? &sites[i] : NULL;
}

size_t h_arm(const char *name, bool on)
{
	size_t n = 0;

	for (size_t i = 0; i < nsites; i++) {
		if (!sites[i].sem || (name && strcmp(sites[i].name, name)))
			continue;
		*sites[i].sem = on;
		n++;
	}
	return n;
}

void h_reset(void)
{
	for (uint32_t i = 0; i < nhits; i++)
		free((void *)(uintptr_t)hits[i].rec);
	nhits = 0;
}

size_t h_nhits(void)
{
	return nhits;
}

const struct h_hit *h_hit_at(size_t i)
{
	static const struct h_site none = {.name = "(no such hit)"};
	static const uint8_t zero[4096];
	static const struct h_hit no = {.site = &none, .rec = zero};

	return i < nhits ? &hits[i] : &no;
}

static void put(struct h_exp *e, uint32_t at, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		e->b[at + (uint32_t)i] = (uint8_t)(v >> 8 * i);
}

void h_begin(struct h_exp *e, unsigned kind, unsigned nfields, uint32_t flags, uint64_t span, uint64_t parent)
{
	memset(e, 0, sizeof(*e));
	put(e, 2, kind, 1);
	put(e, 3, nfields, 1);
	put(e, 4, flags | (span || parent ? 0 : MONTRACE_RF_NO_IDS), 4);
	put(e, 8, span, 8);
	put(e, 16, parent, 8);
	e->nfields = nfields;
	e->end = 24 + 8 * nfields;
}

void h_num(struct h_exp *e, uint64_t v)
{
	put(e, 24 + 8 * e->nnum++, v, 8);
}

void h_f64(struct h_exp *e, double v)
{
	uint64_t u;

	memcpy(&u, &v, 8);
	h_num(e, u);
}

void h_text(struct h_exp *e, const void *p, uint32_t stored, uint32_t full)
{
	put(e, 24 + 8 * e->nnum, e->end, 2);
	put(e, 24 + 8 * e->nnum + 2, stored, 2);
	put(e, 24 + 8 * e->nnum++ + 4, full, 4);
	memcpy(e->b + e->end, p, stored);
	e->end += stored;
}

static void dump(const char *what, const uint8_t *p, uint64_t n)
{
	fprintf(stderr, "  %s (%llu):", what, (unsigned long long)n);
	for (uint64_t i = 0; i < n && i < 256; i++)
		fprintf(stderr, "%s%02x", i % 8 ? "" : " ", p[i]);
	fprintf(stderr, "\n");
}

bool h_is(size_t i, const char *name, struct h_exp *e, const char *where, int line)
{
	const struct h_hit *h = h_hit_at(i);
	uint32_t size = (e->end + 7) & ~7u;
	uint32_t rest = e->b[4] & MONTRACE_RF_NO_IDS ? 24 : 8; /* what is in registers after the first word */

	put(e, 0, size, 2);
	if (e->nnum == e->nfields && h->len == size && !memcmp(h->rec, e->b, size) &&
	    !strcmp(h->site->name, name) && !memcmp(h->words, e->b, 8) &&
	    !memcmp(h->words + 1, e->b + rest, 40))
		return true;
	fprintf(stderr, "%s:%d: hit %zu of %zu is of `%s`, want `%s`\n", where, line, i, h_nhits(),
		h->site->name, name);
	dump("has ", h->rec, h->len);
	dump("want", e->b, size);
	dump("registers", (const uint8_t *)h->words, sizeof(h->words));
	return false;
}

int h_report(const char *what)
{
	if (h_failures)
		fprintf(stderr, "%s: %d checks failed\n", what, h_failures);
	return h_failures;
}
