/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this kernel can do and what this process may do, found out by trying on ourselves.
 */
#ifndef MT_FEATURES_H
#define MT_FEATURES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether probes go on 5-byte nops where the thunk offers one. */
enum mt_nop5 {
	MT_NOP5_AUTO, /* where the trial showed that it works and harms nobody */
	MT_NOP5_NEVER,
	MT_NOP5_ALWAYS, /* where it works, even if children that the target forks die of it */
};

struct bpf_program;

struct mt_features {
	bool multi;     /* uprobe_multi links (6.6) */
	bool multi_pid; /* ... whose pid filter matches all threads of the process (6.11 and fixed stables) */
	bool nop5_call; /* a probe on a 5-byte nop becomes a call (6.18), seen on our own code ... */
	bool nop5; /* a probe on a 5-byte nop becomes a call (6.18), and forked children survive it: seen on
		      our own code */
};

/*
 * Attaches `trial` (a loaded program that counts into *hits) to code of our own: a page in a memory file,
 * called from a second thread. Tells what worked. 0, or -errno if not even memory for the trial was there.
 */
int mt_features_probe(const struct bpf_program *trial, const volatile unsigned long long *hits,
		      struct mt_features *ret_features);

/*
 * Writes the names of the capabilities that this process lacks of those that tracing needs
 * (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE), joined by spaces. CAP_SYS_ADMIN stands for
 * all but CAP_SYS_PTRACE. True if something is missing.
 */
bool mt_features_missing_caps(char *ret_names, size_t cap);

/* True if we may send signals to everybody's processes (CAP_KILL): who stops others must be able to let them go. */
bool mt_features_may_kill(void);

/* True if the kernel is locked down so that BPF programs may not read memory (needs securityfs to tell). */
bool mt_features_lockdown(void);

/* True if the kernel offers its own BTF, which everything here needs. */
bool mt_features_btf(void);

#endif
