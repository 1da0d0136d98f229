/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of attach share: attach.c (files, report), attach_arm.c (links), attach_foreign.c (USDT specs). */
#ifndef MT_ATTACH_INT_H
#define MT_ATTACH_INT_H

#include "attach.h"

#include <linux/types.h>
#include <sys/types.h>
#include <time.h>

#include "room.h"
#include "usdt_plan.h"

struct bpf_link;

enum verdict { V_NONE, V_ARMED, V_MODE, V_DIRECTIVE, V_FAILED };

struct binary {
	uint32_t dev_major, dev_minor;
	uint64_t inode;
	struct timespec ctime, mtime;
	uint64_t code; /* a sum of the code around its probes */
	bool stale;    /* A8: it was written to; what is here is of before. Not looked at any more */
	int fd;        /* -1: no callsites in it */
	char *path;
	struct mt_elfnotes *notes; /* NULL: nothing in it for us */
	uint8_t *verdicts;         /* enum verdict per callsite */
	uint32_t *numbers;         /* site number per probe, 0 = none yet */
	bool *failed;
	int error;
	bool writable;           /* a process has code of it mapped so that no probes are put there */
	uint32_t copies;         /* how often a process has it mapped, at most */
	struct foreign *foreign; /* what the specs found in it; NULL: nothing */
};

struct attached {
	struct binary *binary;
	uint32_t pid; /* 0 = all */
	struct bpf_link **links;
	uint32_t n, cap;
};

/* That pid has that file: what scan found, for arm. */
struct mapped {
	struct binary *binary;
	uint32_t pid;
};

struct mt_attach {
	struct mt_attach_opts opts;
	const struct mt_filter *filter;
	const struct mt_usdt_set *usdt; /* NULL: no foreign probes are wanted */
	void (*on_first)(void *ctx, struct mt_attach *a);
	void *on_first_ctx;
	int proc;
	uint32_t next_id;  /* of callsites */
	uint32_t unusable; /* notes */
	struct binary **binaries;
	uint32_t nbinaries, cap_binaries;
	struct attached *attached;
	uint32_t nattached, cap_attached;
	struct mapped *mapped;
	uint32_t nmapped, cap_mapped;
};

/* Foreign callsites of a file. */
struct foreign {
	struct mt_usdt_found *found;
	uint32_t *numbers;    /* site number per site, 0 = none yet */
	bool *site_failed;    /* the kernel refused it, or it was not asked (A6) */
	uint8_t *verdicts;    /* enum verdict per callsite */
	int error;            /* last -errno */
	uint32_t armed_sites; /* of the last arming */
};

/* The sites of one binary that are to be attached, column-wise as the kernel wants them. */
struct batch {
	unsigned long *offsets;
	unsigned long *sems;
	__u64 *cookies;
	uint32_t *index; /* of `failed`, for each site */
	uint32_t n;
	bool *failed; /* where refusals are noted */
	int *error;
	const struct bpf_program *multi, *single;
};

/* attach_arm.c */
int mt_attach_batch(uint32_t n, struct batch *ret);
void mt_attach_batch_free(struct batch *s);
/* Attaches all of s; refused sites are marked, the others are in at. -ENOMEM, -ESRCH. */
int mt_attach_link(struct mt_attach *a, struct attached *at, const struct batch *s);
void mt_attach_unlink(struct attached *at);
/* Takes away what is attached of a file. */
void mt_attach_drop_file(struct mt_attach *a, const struct binary *b);

/* attach_foreign.c */
/* Looks for what the specs want in b. */
int mt_attach_foreign_find(struct mt_attach *a, struct binary *b);
int mt_attach_foreign_arm(struct mt_attach *a, struct attached *at);
void mt_attach_foreign_free(struct binary *b);
void mt_attach_foreign_report(const struct mt_attach *a, const struct binary *b, struct mt_attach_file *f);

#endif
