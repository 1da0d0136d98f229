/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes of an ELF file: its .note.stapsdt and .note.montrace notes, joined and checked.
 *
 * Input is hostile: any length, offset or string may lie. Everything is bounded; a bad note costs
 * itself, never the file. Nothing of the process is read.
 */
#ifndef MT_ELFNOTES_H
#define MT_ELFNOTES_H

#include "model.h"

/* A place where a probe can be put. */
struct mt_probe {
	const struct mt_callsite *cs; /* montrace callsite; NULL for foreign probes */
	uint8_t kind;                 /* enum montrace_kind, montrace callsites only */
	bool thunk;                   /* vouched for by .note.montrace: nop5_offset may be used */
	uint64_t offset;              /* file offset of the nop */
	uint64_t nop5_offset;         /* file offset of the 5-byte nop behind it; 0 if none */
	uint64_t sem_offset;          /* file offset of the semaphore; 0 if none */
	uint64_t addr;                /* link-time address of the nop */
	bool on_nop5;                 /* foreign probes: the very place is a 5-byte nop */
	const char *provider;         /* stapsdt provider and name, sanitised */
	const char *name;
	const char *args; /* operand string as in the note, sanitised; "" if none */
};

/* Notes that could not be used, by reason. */
struct mt_elfnotes_stats {
	uint32_t malformed;  /* note or string runs out of its section, bad version, count, ... */
	uint32_t discarded;  /* address 0 or outside code: the linker dropped the function */
	uint32_t duplicate;  /* same address and name again */
	uint32_t over_limit; /* beyond MT_ELFNOTES_MAX_PROBES */
	uint32_t semaphore;  /* it cannot be raised: at an odd address, or not in memory that is written to */
	uint32_t compressed; /* sections of notes that are compressed; they are not read */
};

#define MT_ELFNOTES_MAX_PROBES 1000000u
#define MT_ELFNOTES_MAX_FILE (4ull << 30)

struct mt_elfnotes {
	struct mt_callsite *callsites; /* montrace callsites, in file order */
	uint32_t ncallsites;
	struct mt_probe *probes; /* those of callsites first, callsite by callsite; then foreign ones */
	uint32_t nprobes;
	uint32_t nnative; /* how many of probes belong to montrace callsites */
	uint16_t machine; /* e_machine */
	bool is64;
	struct mt_elfnotes_stats stats;
	char build_id[41];    /* hex, "" if none */
	bool no_sections;     /* there is no section table: notes are found only if a segment has them */
	char debug_link[256]; /* its file of debug information, sanitised; it is not read */
};

enum {
	MT_ELF_NATIVE = 1,  /* montrace callsites */
	MT_ELF_FOREIGN = 2, /* other stapsdt probes */
};

/*
 * Reads fd (kept open by the caller; any offset; pread/mmap only) and returns what `what` asks for.
 * first_id: id of the first callsite; they are numbered from there.
 * 0, or -ENOEXEC (not an ELF file or one of a kind not supported), -EFBIG, -ENOMEM, -EIO.
 * A file without probes is no error: nprobes is 0.
 */
int mt_elfnotes_read(int fd, unsigned what, uint32_t first_id, struct mt_elfnotes **ret_notes);

/* The same on memory (fuzzing, tests). data must outlive the call only. */
int mt_elfnotes_parse(const void *data, size_t len, unsigned what, uint32_t first_id,
		      struct mt_elfnotes **ret_notes);

void mt_elfnotes_free(struct mt_elfnotes *n);

#endif
