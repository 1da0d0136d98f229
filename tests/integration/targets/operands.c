/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One probe (provider `op`) for each kind of operand, with values that are known. Prints `ready PID`, waits for a line,
 * fires all, prints `done`, waits for the end of input. Made without a stapsdt header: the notes are written here.
 * What registers and memory are called differs between machines; the values do not, but for the probes of one machine.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOTE(name, args)                                                                                \
	"990: nop\n"                                                                                    \
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n"           \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte 0\n"  \
	".asciz \"op\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994: .balign 4\n.popsection\n"        \
	".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.popsection\n.endif\n"
#define FIRE(name, args, ...) __asm__ volatile(NOTE(name, args) : : __VA_ARGS__ : "memory")

#if defined(__x86_64__)
#define NUM(n) "$" #n
#define REG(n) "%" #n    /* of the asm's operand n */
#define REG32(n) "%k" #n /* its low half */
#define MEM(n) "(%" #n ")"
#define MEM3(n) "3(%" #n ")"
#define A "a"
#define B "b"
#define C "c"
#define D "d"
#elif defined(__aarch64__)
#define NUM(n) #n
#define REG(n) "%" #n
#define REG32(n) "%w" #n
#define MEM(n) "[%" #n "]"
#define MEM3(n) "[%" #n ", 3]"
#define A "r"
#define B "r"
#define C "r"
#define D "r"
#else
#error "which operands has this machine?"
#endif

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

#if defined(__x86_64__)
#define VECTOR "%%xmm0"
static void of_this_machine(void)
{
	FIRE("global",
	     "-4@op_global(%%rip) -4@op_global+4(%%rip) -4@12+op_global(%%rip) -4@op_global(,%%rcx,4)",
	     "c"(2L));
	FIRE("address", "8@$op_global 8@$op_global+8", "i"(0));
	FIRE("tls", "-4@%%fs:op_tls@tpoff -4@%%fs:op_tls@tpoff+4 8@%%fs:16", "r"(&op_tls[0]));
	FIRE("bad",
	     "8@%%rax 16@(%%rbx) 8@%%st 8@nowhere(%%rip) -4@%%ecx 8@(%%rdx) 8@op_global@GOTPCREL(%%rip)",
	     "a"(5L), "b"(&dbl), "c"(-6), "d"(8L));
	FIRE("addr32", "4@(%%eax)", "a"((uint64_t)0xdead00000000u | 8));
}
#else
#define VECTOR "d0"
static void of_this_machine(void)
{
	char *page;

	(void)op_tls;
	__asm__("adrp %0, op_global" : "=r"(page));
	FIRE("global", "-4@[%0, #:lo12:op_global] -4@[%1, 4] -4@[%1, #12] -4@[%1, %2, lsl 2]", "r"(page),
	     "r"(op_global), "r"(2L));
	FIRE("address", "8@%0 8@%1", "r"(op_global), "r"(&op_global[2]));
	FIRE("extend", "-4@[%0, %w1, sxtw 2] -4@[%0, %w2, uxtw #2] -8@[%3, -8]", "r"(op_global + 3),
	     "r"(0xffffffffL << 32 | 0xfffffffeL), "r"(0x100000000L), "r"(&far_data[4097]));
	FIRE("halves", "-4@%w0 4@%w0 -1@%w0 2@%w0 8@%0 8@xzr 4@wzr", "r"(0x1122334485868788L));
	__asm__ volatile("sub sp, sp, 32\n str %0, [sp, 24]\n" NOTE(
				 "stack", "8@[sp, 24] 8@sp 8@[sp]") "add sp, sp, 32\n"
			 :
			 : "r"(4711L)
			 : "memory");
	FIRE("bad", "-4@%w0 16@[%1] 8@d3 8@[x0, nowhere] 8@[%2] 8@x31 8@nowhere", "r"(-6), "r"(&dbl),
	     "r"(8L));
}
#endif

static void numbers(void)
{
	uint64_t bits;
	uint32_t bits32;

	memcpy(&bits, &dbl, 8);
	memcpy(&bits32, &flt, 4);
	FIRE("imm",
	     "-4@" NUM(-5) " 8@" NUM(18446744073709551615) " -8@" NUM(-9223372036854775808) " 1@" NUM(
		     255) " -1@" NUM(255) " 8@" NUM(0x10) " 2@" NUM(65535),
	     "i"(0));
	FIRE("floats", "8f@" MEM(0) " 4f@" MEM(1) " 8f@" REG(2) " 4f@" REG32(3) " 8f@" VECTOR, A(&dbl),
	     B(&flt), C(bits), D(bits32));
	FIRE("unaligned", "4@" MEM3(0) " -4@" MEM3(0), A(&odd));
	FIRE("untouched", "-8@" MEM(0) " -8@" MEM(1), A(&far_data[4096]), B(&far_data[8191]));
	of_this_machine();
}

static void texts(char *edge)
{
	FIRE("text", "8@" REG(0) " 8@" REG(1), A(far_text + 4090), B(0L));
	FIRE("cut", "8@" REG(0) " 8@" REG(1), A(edge - 2048), B(3000L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A("with\0nul"), B(8L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A("xy"), B(0L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A(edge - 4), B(4L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A(edge - 4), B(5L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A(edge - 4), B(0x7fffffffffffffffL));
	FIRE("length", "8@" REG(0) " -8@" REG(1), A("negative"), B(-1L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A(0x123456789abcUL), B(4L));
	FIRE("length", "8@" REG(0) " 8@" REG(1), A(0xffffffff81000000UL), B(4L)); /* the kernel's */
	FIRE("edge", "8@" REG(0), A(edge - 4));
	FIRE("utf8", "8@" REG(0), A("ok \xff\xc3\x28 \xe2\x82"));
}

static void *ends(void *unused)
{
	long k;

	(void)unused;
	for (k = 1; k <= 100; k++)
		FIRE("job__done", "8@" REG(0) " -4@" REG32(1), A(k), C((int)k));
	return NULL;
}

static void spans(void)
{
	pthread_t t;
	long k;

	/* begun here, ended there */
	for (k = 1; k <= 100; k++)
		FIRE("job__start", "8@" REG(0) " 8@" REG(1), A(k), B(k % 2 ? "odd" : "even"));
	pthread_create(&t, NULL, ends, NULL);
	pthread_join(t, NULL);
	/* nested, only every third is wanted: the ends must go with their begins */
	for (k = 0; k < 30; k++)
		FIRE("nest__start", "4@" REG32(0) " 8@" REG(1), A((int)(k % 3)), B(k % 3 ? "no" : "yes"));
	for (k = 0; k < 30; k++)
		FIRE("nest__done", "", "i"(0));
	FIRE("count", "-4@" REG32(0), A(10));
	FIRE("count", "-4@" REG32(0), A(-20));
	for (k = 0; k < 1000; k++)
		FIRE("pred", "-4@" REG32(0) " 8@" REG(1), A((int)k - 500), B(k % 10 ? "other" : "ten"));
	FIRE("pred", "-4@" REG32(0) " 8@" REG(1), A(499),
	     B(8L)); /* unreadable: no text is equal or unequal to it */
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
	printf("address=%llu\n", (unsigned long long)(uintptr_t)op_global);
#if defined(__x86_64__)
	printf("thread=%llu\n", (unsigned long long)pthread_self());
#endif
	puts("done");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return 0;
}
