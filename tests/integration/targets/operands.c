/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One probe (provider `op`) for each kind of operand, with values that are known. Prints `ready PID`, waits for a line,
 * fires all, prints `done`, waits for the end of input. Made without a stapsdt header: the notes are written here.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NOTE(name, args)                                                                                \
	"990: nop\n"                                                                                    \
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"           \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n"  \
	".asciz \"op\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"        \
	".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.popsection\n.endif\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")

/* Files' data that nothing reads before the probes do. */
__attribute__((used)) static const int64_t far_data[8192] = {[4096] = -77, [8191] = 78};
__attribute__((used)) static const char far_text[8192] = {[4090] = 'f', 'a', 'r', ' ', 't', 'e', 'x', 't'};
__attribute__((used)) static int32_t op_global[4] = {1, -2, 3, -4};
__attribute__((used)) static __thread int32_t op_tls[2] = {1111, -2222};
static double dbl = 2.5;
static float flt = -0.75f;
static struct {
	char pad[3];
	uint32_t v;
} __attribute__((packed)) odd = {{0}, 0x80000001u};

static void numbers(void)
{
	uint64_t bits;
	uint32_t bits32;

	memcpy(&bits, &dbl, 8);
	memcpy(&bits32, &flt, 4);
	FIRE("imm", "-4@$-5 8@$18446744073709551615 -8@$-9223372036854775808 1@$255 -1@$255 8@$0x10 2@$65535",
	     "i"(0));
	FIRE("global",
	     "-4@op_global(%%rip) -4@op_global+4(%%rip) -4@12+op_global(%%rip) -4@op_global(,%%rcx,4)",
	     "c"(2L));
	FIRE("address", "8@$op_global 8@$op_global+8", "i"(0));
	FIRE("tls", "-4@%%fs:op_tls@tpoff -4@%%fs:op_tls@tpoff+4 8@%%fs:16", "r"(&op_tls[0]));
	FIRE("floats", "8f@(%%rax) 4f@(%%rbx) 8f@%%rcx 4f@%%edx 8f@%%xmm0", "a"(&dbl), "b"(&flt), "c"(bits),
	     "d"(bits32));
	FIRE("unaligned", "4@3(%%rax) -4@3(%%rax)", "a"(&odd));
	FIRE("bad",
	     "8@%%rax 16@(%%rbx) 8@%%st 8@nowhere(%%rip) -4@%%ecx 8@(%%rdx) 8@op_global@GOTPCREL(%%rip)",
	     "a"(5L), "b"(&dbl), "c"(-6), "d"(8L));
	FIRE("untouched", "-8@(%%rax) -8@(%%rbx)", "a"(&far_data[4096]), "b"(&far_data[8191]));
	FIRE("addr32", "4@(%%eax)", "a"((uint64_t)0xdead00000000u | 8));
}

static void texts(char *edge)
{
	FIRE("text", "8@%%rax 8@%%rbx", "a"(far_text + 4090), "b"(0L));
	FIRE("cut", "8@%%rax 8@%%rbx", "a"(edge - 2048), "b"(3000L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"("with\0nul"), "b"(8L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"("xy"), "b"(0L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"(edge - 4), "b"(4L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"(edge - 4), "b"(5L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"(edge - 4), "b"(0x7fffffffffffffffL));
	FIRE("length", "8@%%rax -8@%%rbx", "a"("negative"), "b"(-1L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"(0x123456789abcUL), "b"(4L));
	FIRE("length", "8@%%rax 8@%%rbx", "a"(0xffffffff81000000UL), "b"(4L)); /* the kernel's */
	FIRE("edge", "8@%%rax", "a"(edge - 4));
	FIRE("utf8", "8@%%rax", "a"("ok \xff\xc3\x28 \xe2\x82"));
}

static void *ends(void *unused)
{
	long k;

	(void)unused;
	for (k = 1; k <= 100; k++)
		FIRE("job__done", "8@%%rax -4@%%ecx", "a"(k), "c"((int)k));
	return NULL;
}

static void spans(void)
{
	pthread_t t;
	long k;

	/* begun here, ended there */
	for (k = 1; k <= 100; k++)
		FIRE("job__start", "8@%%rax 8@%%rbx", "a"(k), "b"(k % 2 ? "odd" : "even"));
	pthread_create(&t, NULL, ends, NULL);
	pthread_join(t, NULL);
	/* nested, only every third is wanted: the ends must go with their begins */
	for (k = 0; k < 30; k++)
		FIRE("nest__start", "4@%%eax 8@%%rbx", "a"((int)(k % 3)), "b"(k % 3 ? "no" : "yes"));
	for (k = 0; k < 30; k++)
		FIRE("nest__done", "", "i"(0));
	FIRE("count", "-4@%%eax", "a"(10));
	FIRE("count", "-4@%%eax", "a"(-20));
	for (k = 0; k < 1000; k++)
		FIRE("pred", "-4@%%eax 8@%%rbx", "a"((int)k - 500), "b"(k % 10 ? "other" : "ten"));
	FIRE("pred", "-4@%%eax 8@%%rbx", "a"(499),
	     "b"(8L)); /* unreadable: no text is equal or unequal to it */
}

int main(void)
{
	char *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char c;

	munmap(p + 2 * 4096, 4096);
	memset(p, 'e', 2 * 4096);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &c, 1) == 1) {
		numbers();
		texts(p + 2 * 4096);
		spans();
	}
	printf("address=%llu\nthread=%llu\n", (unsigned long long)(uintptr_t)op_global,
	       (unsigned long long)pthread_self());
	puts("done");
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
