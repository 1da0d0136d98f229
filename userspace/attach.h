/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes -> armed callsites. Finds the files that a process has mapped as code, reads their notes, asks
 * the filter, puts probes where it says yes, and knows afterwards what is armed and what is not, and why.
 */
#ifndef MT_ATTACH_H
#define MT_ATTACH_H

#include "decode.h"
#include "elfnotes.h"
#include "filter.h"
#include "usdt_spec.h"

struct bpf_program;
struct mt_attach;

struct mt_attach_opts {
	const struct bpf_program *multi;  /* for uprobe_multi links; NULL: kernel has none */
	const struct bpf_program *single; /* for one link per site */
	bool pid_filter;                  /* links can be limited to one process */
	bool nop5;      /* the kernel turns probes on 5-byte nops into calls: use them where vouched for */
	bool everybody; /* one link for all processes of a file (children are followed) */
	struct mt_sites *sites; /* numbers of armed probes are added here; outlives the attach */
	/* For foreign sites: as multi and single; _s may sleep (NULL: the kernel has none such). plans: map fd. */
	const struct bpf_program *foreign_multi, *foreign_multi_s;
	const struct bpf_program *foreign_single, *foreign_single_s;
	int plans;
	bool nop5_call; /* a probe on any 5-byte nop becomes a call, which uses the stack: foreign sites may not */
};

int mt_attach_new(const struct mt_attach_opts *opts, struct mt_attach **ret_attach);

/* Detaches everything and frees; NULL is fine. Callsites given out (in sites, in events) are gone then. */
void mt_attach_free(struct mt_attach *a);

/* The filter for mt_attach_arm; stays the caller's. */
void mt_attach_set_filter(struct mt_attach *a, const struct mt_filter *f);

/*
 * What is wanted of foreign probes; before the first scan. The specs stay the caller's and must outlive a. NULL: no
 * more of them (nothing of them may be armed yet).
 */
void mt_attach_set_usdt(struct mt_attach *a, const struct mt_usdt_set *set);

/* What the specs found so far. */
struct mt_attach_usdt {
	uint32_t callsites, sites; /* found */
	uint32_t armed_sites;
	uint32_t refused; /* sites */
	int error;        /* ... last -errno */
	uint32_t on_nop5; /* sites left alone, for they are on 5-byte nops (nop5_call) */
	uint32_t
		unusable; /* notes of all files that say nothing true, or name a semaphore that cannot be raised */
	uint32_t endless; /* begins without an end, in all files and of all specs with globs */
};
/* spec: index in the set, or MT_ATTACH_ALL_SPECS. */
#define MT_ATTACH_ALL_SPECS UINT32_MAX
void mt_attach_usdt(const struct mt_attach *a, uint32_t spec, struct mt_attach_usdt *ret);

/* Calls cb once, before the first arming that finds callsites: it may set another filter. */
void mt_attach_on_first(struct mt_attach *a, void (*cb)(void *ctx, struct mt_attach *a), void *ctx);

/*
 * Reads the notes of what pid has mapped (only files not seen before). *ret_new: how many of its files
 * with callsites this attach did not know; may be NULL. -ESRCH, -EACCES, -ENOMEM.
 */
int mt_attach_scan(struct mt_attach *a, uint32_t pid, uint32_t *ret_new);

/*
 * The same for a file that no process may have mapped yet; arm(0) then arms it for all processes. *ret_file:
 * device (major << 20 | minor) and inode as /proc/PID/maps shows them. -ENOENT, -EACCES, -ENOEXEC (not an ELF
 * file, or its file system allows no execution), ...
 */
struct mt_attach_id {
	uint64_t inode;
	uint32_t dev;
};
int mt_attach_scan_file(struct mt_attach *a, const char *path, struct mt_attach_id *ret_file);

/* The same for a file that pid will map: arm(pid) arms it for pid, who then has it armed from the start. */
int mt_attach_scan_library(struct mt_attach *a, const char *path, uint32_t pid);

/* Arms what scan found for pid and the filter lets through and is not armed yet. -ENOMEM; failures of
   single sites are no error, they are in the report. */
int mt_attach_arm(struct mt_attach *a, uint32_t pid);

/*
 * pid has mapped that file anew, once more perhaps. If its first thread has ended, a link for that process does not
 * reach new mappings: the link goes, the next scan and arm make one that does.
 */
void mt_attach_remapped(struct mt_attach *a, uint32_t pid, const struct mt_attach_id *file);

/*
 * Looks whether armed files were written to in place: their probes go away, before a process maps them anew. True if
 * there were some: scan and arm then.
 */
bool mt_attach_written(struct mt_attach *a);

/* Takes away the probes of one process (it ended, or is to be traced no more). */
void mt_attach_drop(struct mt_attach *a, uint32_t pid);

/* Detaches everything; reports and callsites stay. NULL is fine. */
void mt_attach_detach(struct mt_attach *a);

/* What became of the callsites of a file. */
struct mt_attach_file {
	const char *path; /* as mapped; raw */
	const struct mt_elfnotes *notes;
	uint32_t callsites;
	uint32_t user_facing; /* of them, for the filter set */
	uint32_t armed;
	uint32_t by_mode;            /* not armed: mode user */
	uint32_t by_directive;       /* not armed: a directive, or mode off */
	uint32_t failed;             /* not armed: the kernel refused one of its probes */
	int error;                   /* ... the last -errno that it gave, 0 if none */
	const bool *callsite_failed; /* per callsite of notes; NULL: none */
	bool nop5;                   /* probes sit on the 5-byte nops */
	uint32_t foreign;       /* how many of callsites are foreign ones; they are not in notes->callsites */
	uint32_t foreign_sites; /* their probes that are armed */
	bool guarded;           /* armed ones have semaphores */
	bool writable; /* a process has code of it mapped writable, or shared: the kernel puts no probes there */
	uint32_t
		copies; /* how often a process has it mapped, at most: semaphores are raised in one of them */
};

/* Calls cb for each file with callsites; non-zero stops and is returned. */
int mt_attach_each(const struct mt_attach *a, int (*cb)(void *ctx, const struct mt_attach_file *f),
		   void *ctx);

/* Sums over all files. path and notes are NULL. */
void mt_attach_total(const struct mt_attach *a, struct mt_attach_file *ret_total);

#endif
