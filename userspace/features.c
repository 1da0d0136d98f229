/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trial: a page of code in a memory file, mapped executable, with a function
 *
 *     nop; nopl 0(%rax,%rax); ret
 *
 * as the thunks of montrace.h have it. A thread of ours calls it while a uprobe_multi link with our own pid
 * sits on the 5-byte nop. Afterwards we know: the link exists (multi), its pid filter lets other threads
 * of the process through (multi_pid), and the byte at the nop is a call instruction, not a breakpoint (nop5).
 *
 * A child that is forked then gets a copy of that call, but on some kernels (6.18) not of the page that it
 * calls: the child dies at its first probe, traced or not. So a child of ours calls the function as well, and
 * nop5 is only true if it comes back.
 * Nothing of the system's or the user's is touched.
 */
#include "features.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#define TRIAL_NOP5 64 /* offset of the 5-byte nop in the page */

#if defined(__x86_64__)
static const unsigned char trial_code[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
#else
static const unsigned char trial_code[] = {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6}; /* nop; ret */
#endif

static void *call_trial(void *page)
{
	void (*fn)(void) = (void (*)(void))((uintptr_t)page + TRIAL_NOP5);
	int i;

	/* The first hit traps and has the kernel rewrite the nop; the others show that it holds. */
	for (i = 0; i < 16; i++)
		fn();
	return NULL;
}

#if defined(__x86_64__)
static void trial_died(int signal)
{
	(void)signal;
	_exit(1);
}

/* Does a forked child come back from the probe that was made a call? */
static bool child_survives(void *page)
{
	struct sigaction died = {.sa_handler =
					 trial_died}; /* handled: no core file, no line in the kernel log */
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		sigaction(SIGSEGV, &died, NULL);
		sigaction(SIGBUS, &died, NULL);
		sigaction(SIGILL, &died, NULL);
		sigaction(SIGTRAP, &died, NULL);
		call_trial(page);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

static void try_page(const struct bpf_program *trial, const volatile unsigned long long *hits, int fd,
		     unsigned char *page, struct mt_features *f)
{
	unsigned long offset = TRIAL_NOP5;
	unsigned long long before = *hits;
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = &offset, .cnt = 1);
	struct bpf_link *link;
	pthread_t thread;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	link = bpf_program__attach_uprobe_multi(trial, getpid(), path, NULL, &opts);
	if (!link)
		return;
	f->multi = true;
	if (!pthread_create(&thread, NULL, call_trial, page)) {
		pthread_join(thread, NULL);
		f->multi_pid = *hits - before == 16;
#if defined(__x86_64__)
		f->nop5_call = f->multi_pid && page[TRIAL_NOP5] == 0xe8;
		f->nop5 = f->nop5_call && child_survives(page);
#endif
	}
	bpf_link__destroy(link);
	/* A kernel that does not give the code back as it was is not to be trusted with anybody's. */
	if (memcmp(page + TRIAL_NOP5, trial_code, sizeof(trial_code)))
		f->nop5 = f->nop5_call = false;
}

int mt_features_probe(const struct bpf_program *trial, const volatile unsigned long long *hits,
		      struct mt_features *ret_features)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct mt_features f = {0};
	void *page = MAP_FAILED;
	int fd, err = 0;

	fd = memfd_create("montrace-trial", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) ||
	    pwrite(fd, trial_code, sizeof(trial_code), TRIAL_NOP5) != sizeof(trial_code)) {
		err = errno ? -errno : -EIO;
		goto out;
	}
	page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (page == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	try_page(trial, hits, fd, page, &f);
	munmap(page, size);
	*ret_features = f;
out:
	close(fd);
	return err;
}

/* The effective ones. False if that cannot be found out. */
static bool capabilities(uint64_t *ret_have)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{0}};

	if (syscall(SYS_capget, &h, d))
		return false;
	*ret_have = d[0].effective | (uint64_t)d[1].effective << 32;
	return true;
}

bool mt_features_may_kill(void)
{
	uint64_t have;

	return capabilities(&have) && have >> 5 & 1; /* CAP_KILL */
}

bool mt_features_missing_caps(char *ret_names, size_t cap)
{
	static const struct {
		int number;
		bool admin_will_do;
		const char *name;
	} need[] = {
		{39, true, "CAP_BPF"},
		{38, true, "CAP_PERFMON"},
		{40, true, "CAP_CHECKPOINT_RESTORE"},
		{19, false, "CAP_SYS_PTRACE"},
	};
	uint64_t have;
	size_t n = 0, i;
	bool missing = false;

	ret_names[0] = 0;
	if (!capabilities(&have))
		return false;
	for (i = 0; i < sizeof(need) / sizeof(need[0]); i++) {
		if (have >> need[i].number & 1 || (need[i].admin_will_do && have >> 21 & 1))
			continue;
		if (n < cap)
			n += (size_t)snprintf(ret_names + n, cap - n, "%s%s", missing ? " " : "",
					      need[i].name);
		missing = true;
	}
	return missing;
}

bool mt_features_lockdown(void)
{
	char text[128];
	FILE *f = fopen("/sys/kernel/security/lockdown", "re");
	bool yes = f && fgets(text, sizeof(text), f) && strstr(text, "[confidentiality]");

	if (f)
		fclose(f);
	return yes;
}

bool mt_features_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}
