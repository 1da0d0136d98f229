/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file whose notes the tests change (provider `n`): plain fires always; guard and guard2 share a semaphore, solo has
 * its own. Prints `ready PID`, waits for a line, fires each 5 times, prints both semaphores as seen meanwhile, whether
 * other data changed, and `done`; waits for the end of input.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#define FIRE(name, sem, args, ...)                                                                 \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                   \
			 ".4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n" \
			 "993: .8byte 990b,_.stapsdt.base," sem "\n.asciz \"n\"\n.asciz \"" name   \
			 "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"                  \
			 ".ifndef _.stapsdt.base\n"                                                \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"   \
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                          \
			 "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" \
			 :                                                                         \
			 : __VA_ARGS__                                                             \
			 : "memory")

static unsigned short shared_sem __attribute__((section(".probes"), used));
static unsigned short solo_sem __attribute__((section(".probes"), used));
/* Read-only once the program runs: its address makes it so. */
static const void *const sealed[512] __attribute__((used)) = {sealed, [511] = sealed};
static unsigned char data[256] __attribute__((used));

static int on(const unsigned short *sem)
{
	return *(const volatile unsigned short *)sem;
}

/* A leaf that keeps data below the stack pointer, around a probe on a nop of 5 bytes. Returns 0 if it is intact. */
uint64_t red(uint64_t v);
__asm__(".text\n.globl red\nred:\n"
	"mov %rdi, -8(%rsp)\nmov %rdi, -16(%rsp)\nmov %rdi, -64(%rsp)\nmov %rdi, -128(%rsp)\n"
	"990: .byte 0x0f,0x1f,0x44,0,0\n"
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b,_.stapsdt.base,0\n"
	".asciz \"n\"\n.asciz \"nop5\"\n.asciz \"8@%rdi\"\n994: .balign 4\n.popsection\n"
	"mov %rdi, %rax\nxor -8(%rsp), %rax\nmov -16(%rsp), %rcx\nxor %rdi, %rcx\nor %rcx, %rax\n"
	"mov -64(%rsp), %rcx\nxor %rdi, %rcx\nor %rcx, %rax\nmov -128(%rsp), %rcx\nxor %rdi, %rcx\nor %rcx, "
	"%rax\nret\n");

int main(void)
{
	int shared = -1, solo = -1, changed = 0, wrong = 0;
	char c;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &c, 1) == 1) {
		shared = on(&shared_sem);
		solo = on(&solo_sem);
		for (int i = 0; i < 5; i++) {
			FIRE("plain", "0", "-4@%%eax", "a"(i));
			if (on(&shared_sem))
				FIRE("guard", "shared_sem", "-4@%%eax", "a"(10 + i));
			if (on(&shared_sem))
				FIRE("guard2", "shared_sem", "-4@%%eax", "a"(20 + i));
			if (on(&solo_sem))
				FIRE("solo", "solo_sem", "-4@%%eax", "a"(30 + i));
		}
		for (int i = 0; i < 1000; i++)
			wrong += red(0x0123456789abcdefull * (unsigned)(i + 1)) != 0;
		for (unsigned i = 0; i < sizeof(data); i++)
			changed += data[i];
	}
	printf("shared=%d\nsolo=%d\nchanged=%d\nwrong=%d\ndone\n", shared, solo, changed, wrong);
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
#else
int main(void)
{
	printf("ready %d\n", (int)getpid());
	return 0;
}
#endif
