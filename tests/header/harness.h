/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arms the callsites of the very process it runs in and captures what they hand to their probes, without a
 * kernel: the semaphores are written directly, and the 5-byte nop of each thunk becomes a call, as a kernel
 * that optimises probes makes it. What the call reaches spoils every register that a call may spoil, the
 * flags, and the memory below the stack pointer. x86-64 only.
 */
#ifndef MT_TEST_HARNESS_H
#define MT_TEST_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct h_site {
	char module[256]; /* path of the ELF file */
	const char *name, *target, *file;
	uint8_t class_, level, nfields, nprobes;
	uint16_t flags;
	uint32_t line;
	const char *fields[16];
	uint8_t types[16];
	volatile uint16_t *sem;
	uint8_t *thunk;
	uint8_t nop5_at;
	bool patched;
};

struct h_hit {
	const struct h_site *site;
	uint32_t probe; /* which of the site's thunks */
	uint32_t tid;
	uint64_t len;       /* second argument */
	const uint8_t *rec; /* copy of len bytes (at most 4096) */
	uint64_t words[6];  /* what came in rdx rcx r8 r9 rax r10 */
};

/* Finds the callsites of all loaded modules (those seen before are kept) and patches their thunks. Count. */
size_t h_load(void);
/* Forgets the sites of modules whose path ends with `suffix`: call it before dlclose. */
void h_unload(const char *suffix);
size_t h_nsites(void);
const struct h_site *h_site_at(size_t i);

/* Sets the semaphores of all instances of `name` (NULL: all callsites). Number of them. */
size_t h_arm(const char *name, bool on);

/* Captured hits, oldest first. */
void h_reset(void);
size_t h_nhits(void);
const struct h_hit *h_hit_at(size_t i);

/* Expected record, built here once more, in another way than the header does. */
struct h_exp {
	uint8_t b[8192];
	uint32_t nfields, nnum, end;
};
void h_begin(struct h_exp *e, unsigned kind, unsigned nfields, uint32_t flags, uint64_t span,
	     uint64_t parent);
void h_num(struct h_exp *e, uint64_t v);
void h_f64(struct h_exp *e, double v);
/* `stored` bytes of p are there, the text had `full` */
void h_text(struct h_exp *e, const void *p, uint32_t stored, uint32_t full);
/* Hit i is exactly this, of callsite `name`. */
bool h_is(size_t i, const char *name, struct h_exp *e, const char *where, int line);

extern int h_failures;
int h_report(const char *what);

#define CHECK(x)                                                                        \
	do {                                                                            \
		if (!(x)) {                                                             \
			__atomic_fetch_add(&h_failures, 1, __ATOMIC_RELAXED);           \
			fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #x); \
		}                                                                       \
	} while (0)
#define IS(i, name, e) CHECK(h_is(i, name, e, __FILE__, __LINE__))

int test_main(void); /* the program's tests; number of failures */

#ifdef __cplusplus
}
#endif
#endif
