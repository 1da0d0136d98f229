/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands of stapsdt notes: every form of x86-64, i386 and arm64, and what is not understood. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "usdt_operand.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* An operand as one line: "-4 [bp+8]" signed, 4 bytes, in memory; "8 ax>>8"; "!3" missing for reason 3. */
static const char *show(const struct mt_operand *o, char buf[160])
{
	static const char *const x86[] = {"r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8",
					  "ax",  "cx",  "dx",  "si",  "di", "?",  "ip",  "?",   "?",  "sp"};
	const struct mt_plan_op *p = &o->op;
	char base[16] = "0", index[16] = "";

	if (p->missing) {
		snprintf(buf, 160, "!%u", p->missing);
		return buf;
	}
	if (p->base != MT_REG_NONE)
		snprintf(base, sizeof(base), "%s", x86[p->base]);
	if (p->index != MT_REG_NONE)
		snprintf(index, sizeof(index), "+%s<<%u", x86[p->index], p->scale);
	snprintf(buf, 160, "%s%u%s %s%s%s%s%s%s%s%+lld%s%s", p->flags & MT_OP_SIGNED ? "-" : "", p->size,
		 o->is_float ? "f" : "", p->flags & MT_OP_DEREF ? "[" : "",
		 p->flags & MT_OP_SITE ? "site+" : "", p->flags & MT_OP_FS ? "fs+" : "",
		 p->flags & MT_OP_GS32 ? "gs+" : "", p->flags & MT_OP_ADDR32 ? "a32+" : "", base, index,
		 p->disp, p->flags & MT_OP_DEREF ? "]" : "", p->shift ? ">>8" : "");
	return buf;
}

/* sym is at 0x5000, tls at -16 from the thread pointer; the probe is at 0x1000. */
static int symbol(void *ctx, struct mt_str name, enum mt_operand_sym kind, uint64_t *ret)
{
	(void)ctx;
	if (name.len == 3 && !memcmp(name.p, "sym", 3) && kind != MT_SYM_TPOFF)
		*ret = 0x5000;
	else if (name.len == 3 && !memcmp(name.p, "tls", 3) && kind == MT_SYM_TPOFF)
		*ret = (uint64_t)-16;
	else
		return -2;
	return 0;
}

struct row {
	const char *text, *want, *type;
};

static void run(const struct row *rows, size_t n, uint16_t machine)
{
	struct mt_operand ops[MT_MAX_ARGS];
	char got[160];

	for (size_t i = 0; i < n; i++) {
		unsigned k = mt_operands_parse(rows[i].text, machine, ops, NULL);

		if (k != 1)
			fail_msg("%s: %u operands", rows[i].text, k);
		mt_operand_resolve(&ops[0], 0x1000, symbol, NULL);
		if (strcmp(show(&ops[0], got), rows[i].want))
			fail_msg("%s: got \"%s\", want \"%s\"", rows[i].text, got, rows[i].want);
		if (strcmp(mt_operand_type(&ops[0]), rows[i].type))
			fail_msg("%s: type %s", rows[i].text, mt_operand_type(&ops[0]));
	}
}

static void x86_64(void **state)
{
	static const struct row rows[] = {
		{"8@%rdi", "8 di+0", "u64"},
		{"-8@%r15", "-8 r15+0", "i64"},
		{"4@%eax", "4 ax+0", "u32"},
		{"-4@%r10d", "-4 r10+0", "i32"},
		{"2@%r8w", "2 r8+0", "u16"},
		{"-2@%si", "-2 si+0", "i16"},
		{"1@%sil", "1 si+0", "u8"},
		{"1@%bpl", "1 bp+0", "u8"},
		{"-1@%r13b", "-1 r13+0", "i8"},
		{"1@%r9l", "1 r9+0", "u8"},
		{"1@%ah", "1 ax+0>>8", "u8"},
		{"-1@%bh", "-1 bx+0>>8", "i8"},
		{"4@%rax", "4 ax+0", "u32"},  /* 4 bytes of a wider register */
		{"-4@%al", "-1 ax+0", "i32"}, /* no more than the register has */
		{"%rcx", "8 cx+0", "u64"},
		{"8@%rip", "8 ip+0", "u64"},
		{"-4@$-5", "-4 0-5", "i32"},
		{"4@$4294967295", "4 0+4294967295", "u32"},
		{"8@$18446744073709551615", "8 0-1", "u64"},
		{"-8@$-9223372036854775808", "-8 0-9223372036854775808", "i64"},
		{"8@$0xdeadbeefcafe", "8 0+244837814094590", "u64"},
		{"8@$010", "8 0+8", "u64"},
		{"8@$18446744073709551616", "!6", "u64"},
		{"8@$sym", "8 site+0+16384", "u64"},
		{"8@$sym+8", "8 site+0+16392", "u64"},
		{"8@(%rax)", "8 [ax+0]", "u64"},
		{"-4@-20(%rbp)", "-4 [bp-20]", "i32"},
		{"8@0x10(%rsp)", "8 [sp+16]", "u64"},
		{"8@(%rax,%rcx)", "8 [ax+cx<<0+0]", "u64"},
		{"4@8(%rax,%rcx,4)", "4 [ax+cx<<2+8]", "u32"},
		{"8@-16(%r8,%rdx,8)", "8 [r8+dx<<3-16]", "u64"},
		{"8@16(,%rcx,8)", "8 [0+cx<<3+16]", "u64"},
		{"8@(%rax, %rcx, 2)", "8 [ax+cx<<1+0]", "u64"},
		{"8@(%rax,%rcx,3)", "!6", "u64"},
		{"8@(%eax)", "8 [a32+ax+0]", "u64"},
		{"4@sym(%rip)", "4 [site+0+16384]", "u32"},
		{"4@sym+4(%rip)", "4 [site+0+16388]", "u32"},
		{"4@4+sym(%rip)", "4 [site+0+16388]", "u32"},
		{"4@-4+sym(%rip)", "4 [site+0+16380]", "u32"},
		{"4@sym-8+4(%rip)", "4 [site+0+16380]", "u32"},
		{"4@(4+sym)(%rip)", "4 [site+0+16388]", "u32"},
		{"4@-(4-8)(%rsp)", "4 [sp+4]", "u32"},
		{"4@sym", "4 [site+0+16384]", "u32"},
		{"4@sym(,%rbx,4)", "4 [site+0+bx<<2+16384]", "u32"},
		{"4@32(%rip)", "4 [site+0+32]", "u32"},
		{"4@0x601040", "4 [0+6295616]", "u32"},
		{"4@other(%rip)", "!5", "u32"},
		{"4@.LC0(%rip)", "!5", "u32"},
		{"8@sym@GOTPCREL(%rip)", "!8", "u64"},
		{"8@%fs:16", "8 [fs+0+16]", "u64"},
		{"8@%fs:0", "8 [fs+0+0]", "u64"},
		{"4@%fs:-4(%rax)", "4 [fs+ax-4]", "u32"},
		{"4@%fs:tls@tpoff", "4 [fs+0-16]", "u32"},
		{"4@%fs:tls@tpoff+4", "4 [fs+0-12]", "u32"},
		{"4@tls@tpoff(%rax)", "4 [ax-16]", "u32"},
		{"4@%fs:sym@tpoff", "!5", "u32"},
		{"4@%gs:8", "!9", "u32"},
		{"4@sym@tlsgd(%rip)", "!9", "u32"},
		{"4@%ds:8(%rax)", "4 [ax+8]", "u32"},
		{"8f@-8(%rbp)", "8f [bp-8]", "f64"},
		{"4f@%eax", "4f ax+0", "f32"},
		{"8f@%rax", "8f ax+0", "f64"},
		{"8f@%xmm0", "!2", "f64"},
		{"4f@%xmm15", "!2", "f32"},
		{"8f@%ymm3", "!2", "f64"},
		{"8@%xmm32", "!6", "u64"},
		{"8f@%st", "!3", "f64"},
		{"8f@%st(1)", "!3", "f64"},
		{"8@%mm3", "!3", "u64"},
		{"16@(%rsp)", "!4", "?"},
		{"3@%eax", "!4", "?"},
		{"2f@%eax", "!4", "?"},
		{"8@%qqq", "!6", "u64"},
		{"8@", "!6", "u64"},
		{"@%eax", "!6", "u64"},
		{"8@%eax%eax", "!6", "u64"},
		{"8@(%rax", "!6", "u64"},
		{"8@$", "!6", "u64"},
		{"8@$1+", "!6", "u64"},
		{"8@%fs:", "!6", "u64"},
		{"8@((((((((((1))))))))))", "!6", "u64"},
		{"8@sym+sym(%rip)", "!6", "u64"},
		{"8@4-sym(%rip)", "!6", "u64"},
		{"8@$09", "!6", "u64"},
		{"8@(%ax)", "!6", "u64"},
	};

	(void)state;
	run(rows, COUNT(rows), EM_X86_64);
}

static void i386(void **state)
{
	static const struct row rows[] = {
		{"4@%eax", "4 a32+ax+0", "u32"},
		{"-4@8(%ebp)", "-4 [a32+bp+8]", "i32"},
		{"4@(%eax,%ecx,4)", "4 [a32+ax+cx<<2+0]", "u32"},
		{"4@sym", "4 [site+a32+0+16384]", "u32"},
		{"4@$-1", "4 0-1", "u32"},
		{"4@%gs:20", "4 [gs+a32+0+20]", "u32"},
		{"4@%gs:tls@ntpoff", "4 [gs+a32+0-16]", "u32"},
		{"4@%fs:20", "!9", "u32"},
		{"1@%dh", "1 a32+dx+0>>8", "u8"},
		{"%esi", "4 a32+si+0", "u32"},
		{"8@%rax", "!6", "u64"},
		{"1@%sil", "!6", "u8"},
		{"4@%r8d", "!6", "u32"},
	};

	(void)state;
	run(rows, COUNT(rows), EM_386);
}

/* Registers are shown by the numbers of x86: r15 is x0, r14 is x1, cx is x11, sp is x19. */
static void arm64(void **state)
{
	static const struct row rows[] = {
		{"8@x0", "8 r15+0", "u64"},
		{"-4@w1", "-4 r14+0", "i32"},
		{"-8@w1", "-4 r14+0", "i64"},
		{"x11", "8 cx+0", "u64"},
		{"-4@-5", "-4 0-5", "i32"},
		{"4@#7", "4 0+7", "u32"},
		{"8@0xff", "8 0+255", "u64"},
		{"8@xzr", "8 0+0", "u64"},
		{"8@[x19]", "8 [sp+0]", "u64"},
		{"8@[x19, 16]", "8 [sp+16]", "u64"},
		{"-4@[x19, #-12]", "-4 [sp-12]", "i32"},
		{"8@[x0,x1]", "8 [r15+r14<<0+0]", "u64"},
		{"8@[x0, x1, lsl 3]", "8 [r15+r14<<3+0]", "u64"},
		{"4@[x0, w1, sxtw 2]", "4 [r15+r14<<2+0]", "u32"},
		{"4@[x0, w1, uxtw #2]", "4 [r15+r14<<2+0]", "u32"},
		{"4@[x0, w1, uxtw]", "4 [r15+r14<<0+0]", "u32"},
		{"4@[x0, w1]", "!6", "u32"},
		{"4@[x0, x1, lsl 9]", "!6", "u32"},
		{"4@[x0, #:lo12:sym]", "4 [r15+0]", "u32"},
		{"4@[x0, #:lo12:sym+4]", "4 [r15+4]", "u32"},
		{"4@[x0, #:lo12:nix]", "!5", "u32"},
		/* as gcc 12 and clang 14 print them */
		{"-4@w3", "-4 r12+0", "i32"},
		{"1@[x0, -256]", "1 [r15-256]", "u8"},
		{"-8@[x0, 32760]", "-8 [r15+32760]", "i64"},
		{"-2@[x2, x3, lsl 1]", "-2 [r13+r12<<1+0]", "i16"},
		{"2@[x2, w3, uxtw 1]", "2 [r13+r12<<1+0]", "u16"},
		{"-1@[x0,x1]", "-1 [r15+r14<<0+0]", "i8"},
		{"8@[x0, x1, sxtx 3]", "8 [r15+r14<<3+0]", "u64"},
		{"8f@[x0, 8]", "8f [r15+8]", "f64"},
		{"4f@w1", "4f r14+0", "f32"},
		{"8f@x0", "8f r15+0", "f64"},
		{"-8@-9223372036854775808", "-8 0-9223372036854775808", "i64"},
		{"8@18446744073709551615", "8 0-1", "u64"},
		{"8@18446744073709551616", "!6", "u64"},
		{"8f@v3", "!2", "f64"},
		/* the base changes with it: no compiler prints it for an operand, and what would it mean? */
		{"8@[x0], 16", "!6", "u64"},
		{"8@[x0, 16]!", "!6", "u64"},
		{"8@[x0], x1", "!6", "u64"},
		{"8@[x0, x1, x2]", "!6", "u64"},
		{"8@[x0, #:got_lo12:sym]", "!6", "u64"},
		{"8@[x0, #:tprel_lo12:sym]", "!6", "u64"},
		{"8@[xzr]", "8 [0+0]", "u64"},
		{"8@[]", "!6", "u64"},
		{"8f@d0", "!2", "f64"},
		{"4f@s31", "!2", "f32"},
		{"16@q1", "!2", "?"},
		{"8@x31", "!6", "u64"},
		{"8@x01", "!6", "u64"},
		{"8@[w0]", "!6", "u64"},
		{"8@[x0, 16", "!6", "u64"},
		{"8@sym", "!6", "u64"},
		{"8@%rax", "!6", "u64"},
	};
	struct mt_operand ops[MT_MAX_ARGS];

	(void)state;
	run(rows, COUNT(rows), EM_AARCH64);
	assert_int_equal(
		mt_operands_parse("8@[sp, 8] 8@[x29] 8@lr 4@wzr 4@[x0, w1, sxtw 2]", EM_AARCH64, ops, NULL),
		5);
	assert_int_equal(ops[0].op.base, 31);
	assert_true(ops[0].stack && ops[1].stack && !ops[2].stack);
	assert_int_equal(ops[1].op.base, 29);
	assert_int_equal(ops[2].op.base, 30);
	assert_int_equal(ops[3].op.base, MT_REG_NONE);
	assert_int_equal(ops[4].op.flags, MT_OP_DEREF | MT_OP_INDEX_S32);
	assert_int_equal(
		mt_operands_parse("-4@[sp] 8@[sp, -16] 8@[sp, 4080] 8@sp 4@wsp 8@[sp, x1] 8@[x30, 8] 4@w30",
				  EM_AARCH64, ops, NULL),
		8);
	for (int i = 0; i < 6; i++)
		assert_int_equal(ops[i].op.base, 31);
	assert_int_equal(ops[0].op.flags, MT_OP_DEREF | MT_OP_SIGNED);
	assert_true(ops[1].op.disp == -16 && ops[2].op.disp == 4080);
	assert_int_equal(ops[3].op.flags, 0);
	assert_int_equal(ops[4].op.size, 4);
	assert_true(ops[0].stack && ops[2].stack && !ops[5].stack); /* an index may lead anywhere */
	assert_int_equal(ops[6].op.base, 30);
	assert_int_equal(ops[7].op.size, 4);
}

static void splitting(void **state)
{
	struct mt_operand ops[MT_MAX_ARGS];
	unsigned more = 99;

	(void)state;
	assert_int_equal(mt_operands_parse("", EM_X86_64, ops, &more), 0);
	assert_int_equal(more, 0);
	assert_int_equal(mt_operands_parse("  \t ", EM_X86_64, ops, &more), 0);
	assert_int_equal(mt_operands_parse(" 8@%rdi  %qq 4@8(%rsp) ", EM_X86_64, ops, &more), 3);
	assert_int_equal(ops[0].op.missing, 0);
	assert_int_equal(ops[1].op.missing, MT_MISSING_OPERAND);
	assert_int_equal(ops[2].op.missing, 0);
	assert_true(ops[2].stack);
	assert_int_equal(ops[1].text.len, 3);
	assert_int_equal(
		mt_operands_parse("$1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14", EM_X86_64, ops, &more),
		12);
	assert_int_equal(more, 2);
	assert_int_equal(ops[11].op.disp, 12);
	/* without symbols a symbol is missing, the rest is not */
	assert_int_equal(mt_operands_parse("4@sym(%rip) 4@%eax", EM_X86_64, ops, NULL), 2);
	mt_operand_resolve(&ops[0], 0x1000, NULL, NULL);
	mt_operand_resolve(&ops[1], 0x1000, NULL, NULL);
	assert_int_equal(ops[0].op.missing, MT_MISSING_SYMBOL);
	assert_int_equal(ops[1].op.missing, 0);
	assert_string_equal(mt_missing_text(MT_MISSING_UNREADABLE), "unreadable");
	assert_string_equal(mt_missing_text(200), "missing");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86_64),
		cmocka_unit_test(i386),
		cmocka_unit_test(arm64),
		cmocka_unit_test(splitting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
