/* SPDX-License-Identifier: BSD-3-Clause */
#include "session_foreign.h"

#include <linux/bpf.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI, which older headers lack */

/* Does this kernel take a probe program that may sleep? Uprobes have it from 6.0 on. */
static bool may_sleep(bool multi)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, o, .prog_flags = BPF_F_SLEEPABLE);
	int fd;

	o.expected_attach_type = multi ? (enum bpf_attach_type)UPROBE_MULTI : (enum bpf_attach_type)0;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "mt_try", "Dual BSD/GPL", insns, 2, &o);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool kernel_older(unsigned major, unsigned minor)
{
	unsigned a = 0, b = 0;
	struct utsname u;

	if (uname(&u) || sscanf(u.release, "%u.%u", &a, &b) != 2)
		return true;
	return a < major || (a == major && b < minor);
}

/*
 * These programs ask more of the verifier than the others. Kernels from 6.1 on are known to take them; an older one
 * is asked with a copy, so that a refusal costs foreign probes only.
 */
static bool takes_foreign(void)
{
	struct bpf_program *p;
	struct montrace_bpf *skel;
	bool ok;

	if (!kernel_older(6, 1))
		return true;
	skel = montrace_bpf__open();
	if (!skel)
		return false;
	bpf_object__for_each_program(p, skel->obj)
		bpf_program__set_autoload(p, p == skel->progs.mt_foreign_single);
	ok = !montrace_bpf__load(skel);
	montrace_bpf__destroy(skel);
	return ok;
}

void mt_session_foreign_load(struct montrace_bpf *skel, bool with_multi)
{
	bool any = takes_foreign();

	bpf_program__set_autoload(skel->progs.mt_foreign_multi, any && with_multi);
	bpf_program__set_autoload(skel->progs.mt_foreign_multi_s, any && with_multi && may_sleep(true));
	bpf_program__set_autoload(skel->progs.mt_foreign_single, any);
	bpf_program__set_autoload(skel->progs.mt_foreign_single_s, any && may_sleep(false));
}

static const struct bpf_program *loaded(const struct bpf_program *p)
{
	return bpf_program__fd(p) >= 0 ? p : NULL;
}

void mt_session_foreign_attach(const struct montrace_bpf *skel, struct mt_attach_opts *o)
{
	if (o->multi) {
		o->foreign_multi = loaded(skel->progs.mt_foreign_multi);
		o->foreign_multi_s = loaded(skel->progs.mt_foreign_multi_s);
	} else {
		o->foreign_single = loaded(skel->progs.mt_foreign_single);
		o->foreign_single_s = loaded(skel->progs.mt_foreign_single_s);
	}
	o->plans = bpf_map__fd(skel->maps.plans);
}
