/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a probe invisible to the code around it? `redzone CALLS`: a leaf in assembly keeps data below the
 * stack pointer, values in all registers and live flags, and calls a callsite's function from C between
 * two such leaves; a second part has the callsite inlined into C code that keeps many values alive.
 * Prints `ready PID`, waits for a line, runs, prints wrong=N and calls=N, waits for a line.
 *
 * x86-64 only; elsewhere it prints wrong=0 calls=0.
 */
#include "montrace.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_line(void)
{
	char c;

	while (read(0, &c, 1) == 1 && c != '\n')
		;
}

#if defined(__x86_64__)
/*
 * The callsite sits in this very frame: 16 values derived from i are alive across it, in registers, in
 * memory, and as a flag. The compiler may keep what it likes in the red zone before it: the function is a
 * leaf but for the cold call.
 */
static __attribute__((noinline)) uint64_t mix(uint64_t i)
{
	uint64_t a = i * 3, b = i ^ 0x5555, c = i + 7, d = i << 3, e = i >> 1, f = ~i, g = i * i, h = i - 9;
	uint64_t k = i | 1, l = i & 0xffff, m = i * 11, n = i ^ d, o = a + b, p = c ^ e;
	double x = (double)i * 0.5, y = (double)i + 0.25;
	int odd = (int)(i & 1);

	MONTRACE_EVENT(MONTRACE_INFO, "mix", MT(i));
	return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 + h * 19 + k * 23 + l * 29 + m * 31 +
	       n * 37 + o * 41 + p * 43 + (uint64_t)(x * 2) + (uint64_t)(y * 4) + (uint64_t)odd;
}

static uint64_t expected(uint64_t i)
{
	uint64_t a = i * 3, b = i ^ 0x5555, c = i + 7, d = i << 3, e = i >> 1, f = ~i, g = i * i, h = i - 9;
	uint64_t k = i | 1, l = i & 0xffff, m = i * 11, n = i ^ d, o = a + b, p = c ^ e;

	return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 + h * 19 + k * 23 + l * 29 + m * 31 +
	       n * 37 + o * 41 + p * 43 + i + (i * 4 + 1) + (i & 1);
}

static struct montrace_span span;

/*
 * Assembly leaf: writes 16 words below the stack pointer, loads every register, sets the carry flag, then
 * steps down (as a compiler must before a call), calls `fire`, steps up and checks what has to be alive:
 * the words below the old stack pointer, the callee-saved registers.
 */
uint64_t redzone_leaf(uint64_t seed, void (*fire)(uint64_t));
__asm__(".text\n.globl redzone_leaf\n.type redzone_leaf,@function\nredzone_leaf:\n"
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov %rsi,%rax\n"
	"lea 1(%rdi),%rbx\nlea 2(%rdi),%rbp\nlea 3(%rdi),%r12\nlea 4(%rdi),%r13\nlea 5(%rdi),%r14\nlea "
	"6(%rdi),%r15\n"
	"mov %rdi,-8(%rsp)\nmov %rbx,-16(%rsp)\nmov %rbp,-64(%rsp)\nmov %r12,-120(%rsp)\nmov "
	"%r13,-128(%rsp)\n"
	"sub $136,%rsp\n"
	"call *%rax\n"
	"add $136,%rsp\n"
	"mov -8(%rsp),%rdi\n"
	"xor %eax,%eax\n"
	"lea 1(%rdi),%rcx\ncmp %rcx,%rbx\njne 1f\ncmp %rcx,-16(%rsp)\njne 1f\n"
	"lea 2(%rdi),%rcx\ncmp %rcx,%rbp\njne 1f\ncmp %rcx,-64(%rsp)\njne 1f\n"
	"lea 3(%rdi),%rcx\ncmp %rcx,%r12\njne 1f\ncmp %rcx,-120(%rsp)\njne 1f\n"
	"lea 4(%rdi),%rcx\ncmp %rcx,%r13\njne 1f\ncmp %rcx,-128(%rsp)\njne 1f\n"
	"lea 5(%rdi),%rcx\ncmp %rcx,%r14\njne 1f\n"
	"lea 6(%rdi),%rcx\ncmp %rcx,%r15\njne 1f\n"
	"jmp 2f\n1: mov $1,%eax\n2:\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
	".size redzone_leaf,.-redzone_leaf\n");

static __attribute__((noinline)) void fire(uint64_t i)
{
	MONTRACE_SCOPE("leaf", MT(i));
	montrace_enter(&span);
	montrace_exit(&span);
}

/* Flags: the carry of an addition must survive a callsite between it and its use. */
static __attribute__((noinline)) int carry(uint64_t a, uint64_t b)
{
	uint64_t sum;
	unsigned char c = __builtin_add_overflow(a, b, &sum);

	MONTRACE_COUNTER("carry", sum);
	return c;
}
#endif

int main(int argc, char **argv)
{
	uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000, wrong = 0, i, done = 0;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	wait_line();
#if defined(__x86_64__)
	MONTRACE_SPAN(&span, MONTRACE_INFO, "span");
	for (i = 0; i < calls; i++) {
		wrong += mix(i) != expected(i);
		wrong += redzone_leaf(i * 0x9E3779B97F4A7C15ull, fire);
		wrong += carry(UINT64_MAX - i, i + (i & 1)) != (int)(i & 1);
		done++;
	}
#else
	(void)calls;
	(void)i;
#endif
	printf("wrong=%llu\ncalls=%llu\ndone\n", (unsigned long long)wrong, (unsigned long long)done);
	fflush(stdout);
	wait_line();
	return 0;
}
