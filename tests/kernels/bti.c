/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arm64 with branch target identification: guards the pages of this program itself (libc's start files do not allow
 * the linker to have it done), checks that they are, then fires 100 events and 50 scopes: the thunks are called
 * by address and must be targets. Prints `hits=200`; 77: this machine has no such thing.
 */
#include "montrace.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if !defined(__ARM_FEATURE_BTI_DEFAULT)
#error "build with -mbranch-protection=standard"
#endif
#ifndef HWCAP2_BTI
#define HWCAP2_BTI (1 << 17)
#endif
#ifndef PROT_BTI
#define PROT_BTI 0x10
#endif

extern char __executable_start, __etext;

/* Not a target: a function that begins with a nop. */
__asm__(".pushsection .text\n.balign 4\nno_target: nop\nret\n.popsection\n");
extern void no_target(void);

static int is_guarded(void)
{
	void (*volatile fn)(void) = no_target;
	int status;
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
}

int main(void)
{
	uintptr_t from = (uintptr_t)&__executable_start & ~4095ul,
		  to = ((uintptr_t)&__etext + 4095) & ~4095ul;
	int i;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_BTI))
		return 77;
	if (mprotect((void *)from, to - from, PROT_READ | PROT_EXEC | PROT_BTI) || !is_guarded())
		return 1;
	for (i = 0; i < 100; i++)
		MONTRACE_EVENT(MONTRACE_INFO, "guarded", MT(i));
	for (i = 0; i < 50; i++) {
		MONTRACE_SCOPE("guarded scope");
	}
	puts("hits=200");
	fflush(stdout);
	_exit(0); /* what libc has called at the end is no target */
}
