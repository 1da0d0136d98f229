/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lies to the tracer: calls its probe with lengths and pointers that are none, with records whose head,
 * fields and texts are not what they say. `liar ROUNDS`. Prints `ready PID`, waits for a line, lies, prints
 * what it did: sizes= (impossible lengths), reads= (unreadable memory), false= (records that are wrong
 * inside), honest= (good events), hits= (all of them).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "montrace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long sizes, reads, falses, honest;
static uintptr_t thunk;

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

/* The probe itself, by the ordinary calling convention: the first word in a register only if told so. */
static __attribute__((noinline)) void probe(const void *record, uint64_t size, uint64_t word0)
{
	((void (*)(const void *, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t))thunk)(
		record, size, word0, UINT64_MAX, 0x4141414141414141, UINT64_MAX);
}

static void find_thunk(void)
{
	const struct montrace__cs *c;

	MT__SITE(c, MONTRACE_CLASS_EVENT, MONTRACE_INFO, MT__FLAGS(0), 4243, (MT__PROBES_ONE("event")), "lie",
		 MT_U64("number", 0), MT_STR("text", ""));
	thunk = (uintptr_t)c + (uintptr_t)(intptr_t)c->thunk;
}

static void truth(void)
{
	MONTRACE_EVENT(MONTRACE_INFO, "truth", MT_I64("i", honest));
	honest++;
}

static void wrong_sizes(void)
{
	static const uint64_t all[] = {0,     1,          8,          23,         4097,
				       65536, 1ull << 31, 1ull << 32, UINT64_MAX, 1ull << 63};
	static const uint64_t zero[600];
	unsigned i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		probe(zero, all[i], 0);
		probe(NULL, all[i], all[i] & 0xffff);
		sizes += 2;
	}
}

static void wrong_pointers(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *gone = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const void *all[] = {NULL,
			     (void *)8,
			     (void *)0xffff888000000000,
			     (void *)0x00007ffffffff000,
			     (void *)0x4141414141414141,
			     (void *)UINTPTR_MAX,
			     gone,
			     gone + page - 64,
			     gone + page};
	static const uint64_t lengths[] = {72, 128, 1024, 4096};
	unsigned i, k;

	if (gone == MAP_FAILED)
		exit(1);
	memset(gone, 1, 2 * page);
	munmap(gone, page); /* the record's page goes; half of one that reaches into the next is left */
	mprotect(gone + page, page, PROT_NONE);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (k = 0; k < 4; k++) {
			probe(all[i], lengths[k], 0);
			reads++;
		}
	}
	munmap(gone + page, page);
}

/* A record of one number and one text that says what the arguments say. */
static void false_record(uint16_t said, uint8_t kind, uint8_t nfields, uint64_t text, uint64_t length)
{
	union {
		struct montrace_record head;
		uint64_t w[512];
	} r;

	memset(&r, 0x42, sizeof(r));
	r.head.size = said;
	r.head.kind = kind;
	r.head.nfields = nfields;
	r.head.flags = 0;
	r.head.span = UINT64_MAX;
	r.head.parent = 0;
	r.w[3] = 7;
	r.w[4] = text;
	probe(&r, length, 0);      /* as memory says it */
	probe(&r, length, r.w[0]); /* as registers say it, where the length agrees */
	falses += 2;
}

static void false_records(void)
{
	const uint64_t good = 40 | 8ull << 16 | 8ull << 32;
	unsigned i;

	for (i = 0; i < 256; i += 5) {
		false_record(72, (uint8_t)i, 2, good, 72); /* kinds that are none of this callsite's */
		false_record(72, MONTRACE_KIND_EVENT, (uint8_t)i, good,
			     72); /* more fields than there is room for */
		false_record((uint16_t)(i * 257), MONTRACE_KIND_EVENT, 2, good,
			     72); /* another size than told */
		false_record((uint16_t)(i * 16 + 4), MONTRACE_KIND_EVENT, 2, good, 4096);
		false_record(72, MONTRACE_KIND_EVENT, 2, i * 0x0101010101010101u,
			     72); /* texts that lie elsewhere */
		false_record(72, MONTRACE_KIND_EVENT, 2, i | 0xffff0000u, 72);
		false_record(48, MONTRACE_KIND_EVENT, (uint8_t)i, i, 48);
		false_record(24, MONTRACE_KIND_EVENT, (uint8_t)i, good, 24);
	}
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 10, i;

	find_thunk();
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
	for (i = 0; i < rounds; i++) {
		truth();
		wrong_sizes();
		truth();
		wrong_pointers();
		truth();
		false_records();
		truth();
	}
	printf("sizes=%ld\nreads=%ld\nfalse=%ld\nhonest=%ld\nhits=%ld\ndone\n", sizes, reads, falses, honest,
	       sizes + reads + falses + honest);
	fflush(stdout);
	wait_line();
	return 0;
}
