/* SPDX-License-Identifier: BSD-3-Clause */
/* --usdt: what is accepted, where errors are; specs on probes: callsites and plans; profiles. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt_plan.h"
#include "usdt_profile.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- Errors --------------------------------------------------------------------------------------- */

static void errors(void **state)
{
	static const struct {
		const char *text;
		size_t pos;
		const char *why; /* a part of it */
	} rows[] = {
		{"", 0, "PROVIDER:NAME"},
		{"c", 1, "PROVIDER:NAME"},
		{"c:", 2, "name of a probe"},
		{"c:a..", 5, "name of a probe"},
		{"auto:", 5, "name of a provider"},
		{"c:a!", 3, "unexpected character"},
		{"c:a foo", 4, "unknown word"},
		{"c:a foo=", 8, "an argument is expected"},
		{"c:a foo=arg12", 8, "12 arguments at most"},
		{"c:a arg0:i65", 9, "unknown type"},
		{"c:a arg0:str(arg1", 17, "`)` is missing"},
		{"c:a arg0 arg0", 9, "two fields of one name"},
		{"c:a key=arg0", 4, "for spans"},
		{"c:a..b key=arg0 key=arg1", 16, "key= twice"},
		{"c:a counter=arg0 x=arg1", 17, "no other fields"},
		{"c:a x=arg1 counter=arg0", 11, "no other fields"},
		{"c:a..b counter=arg0", 7, "a span is no counter"},
		{"c:a counter=arg0:str", 4, "a counter is a number"},
		{"c:a counter=+", 13, "an argument is expected"},
		{"c:a counter=+2", 13, "an argument is expected"},
		{"c:a counter=1", 12, "an argument is expected"},
		{"c:a counter=+1 x=arg0", 15, "no other fields"},
		{"c:a while=", 10, "an argument is expected"},
		{"c:a..b while=arg0", 7, "for a single probe"},
		{"c:a while=arg0 while=arg1", 15, "for a single probe"},
		{"c:a while=arg0 counter=arg1", 15, "a span is no counter"},
		{"c:a while=arg0 end.x=arg0", 15, "for spans"},
		{"c:a while=arg0 key=arg0", 15, "for spans"},
		{"c:a nested", 4, "for spans"},
		{"c:a..b nested key=arg0", 7, "for spans without a key"},
		{"c:a..b nestedly", 7, "unknown word"},
		{"c:a end.x=arg0", 4, "for spans"},
		{"c:a..b end.x", 7, "end.FIELD=argN"},
		{"c:a..b end.x=arg0 end.x=arg1", 18, "two fields"},
		{"c:a level=high", 10, "a level is"},
		{"c:a name=\"x", 9, "closing quote"},
		{"c:a name=\"\\q\"", 10, "unknown escape"},
		{"c:a name=\"{x}\"", 9, "{...} in a name"},
		{"c:a name=\"{arg0\"", 9, "without `}`"},
		{"c:a name=arg0 name=arg1", 14, "name= twice"},
		{"c:a if", 6, "an argument is expected"},
		{"c:a if arg0", 11, "a comparison"},
		{"c:a if arg0 ~ 1", 12, "a comparison"},
		{"c:a if arg0 > x", 14, "a number (7"},
		{"c:a if arg0 > 1.", 14, "a number (7"},
		{"c:a if arg0 > .5", 14, "a number (7"},
		{"c:a if arg0 > 1.5.2", 14, "a number (7"},
		{"c:a if arg0 > 1.5f", 14, "a number (7"},
		{"c:a if arg0 > 1e", 14, "a number (7"},
		{"c:a if arg0 > -1e999", 14, "too big"},
		{"c:a if arg0:i32 > 1", 12, "f32 or f64"},
		{"c:a if arg0:f64 == \"x\"", 19, "a number is expected"},
		{"c:a if (arg0 > 1", 7, "`(` without `)`"},
		{"c:a if arg0 > 1 && (arg1 > 2 || (arg2 > 3)", 19, "`(` without `)`"},
		{"c:a if arg0 > 1)", 15, "`)` without `(`"},
		{"c:a if (arg0 > 1 arg1 > 2)", 17, "&&, || or `)`"},
		{"c:a if ()", 8, "an argument is expected"},
		{"c:a if (arg0 > 1) arg1 > 2", 18, "&& or ||"},
		{"c:a if (arg0 > 1) || ", 21, "an argument is expected"},
		{"c:a if (((((((((((((((((arg0 > 1)))))))))))))))))", 23, "more than 16 brackets"},
		{"c:a..b key=arg0:i32", 15, "a key is a number"},
		{"c:a..b key=arg0:str(arg1)", 19, "unexpected character"},
		{"c:a..b key=arg0:str/arg1", 20, "both keys"},
		{"c:a..b key=arg0/arg1:str", 16, "both keys"},
		{"c:a if arg0 > 18446744073709551616", 14, "too big"},
		{"c:a if arg0 > -9223372036854775809", 14, "too big"},
		{"c:a if arg0 > \"x\"", 14, "== and !="},
		{"c:a if arg0 == 1 and", 17, "&& or ||"},
		{"c:a if arg0==1&&arg0==2&&arg0==3&&arg0==4&&arg0==5&&arg0==6&&arg0==7&&arg0==8&&arg0==9", 79,
		 "more than 8"},
		{"c:a if arg0==\"a\"||arg0==\"b\"||arg0==\"c\"", 35, "more than 2 texts"},
		{"c:a__*..*b*", 8, "one `*` at most"},
		{"c:a..*b", 2, "one `*` is needed"},
		{"c:a..b?", 5, "no `?`"},
		{"c:a..x|y:b", 5, "before the first name"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt_usdt_err err = {0, ""};
		struct mt_usdt_spec *s = NULL;

		if (mt_usdt_spec_parse(rows[i].text, NULL, &s, &err) != -EINVAL)
			fail_msg("accepted: %s", rows[i].text);
		assert_null(s);
		if (err.pos != rows[i].pos || !strstr(err.why, rows[i].why))
			fail_msg("%s: at %zu: %s", rows[i].text, err.pos, err.why);
	}
}

/* ---- Specs on probes ------------------------------------------------------------------------------ */

#define PROBE(prov, nm, a, at)                                                    \
	{                                                                         \
		.provider = prov, .name = nm, .args = a, .addr = at, .offset = at \
	}

static struct mt_probe probes[] = {
	PROBE("c", "one", "4@%edi -8@8(%rsp) 8f@%xmm0 8f@-8(%rbp)", 0x10),
	PROBE("c", "two", "8@$1", 0x20),
	PROBE("c", "two", "-8@(%rax)", 0x30),
	PROBE("c", "req__start", "8@%rdi 8@%rsi 4@%edx", 0x40),
	PROBE("c", "req__start", "8@%rbx 8@%rcx 4@$5", 0x50),
	PROBE("c", "req__done", "4@%eax 8@%rdi", 0x60),
	PROBE("c", "q__plan__start", "", 0x70),
	PROBE("c", "q__plan__done", "", 0x80),
	PROBE("c", "q__exec__start", "", 0x90),
	PROBE("c", "q__exec__done", "", 0xa0),
	PROBE("c", "lone__start", "", 0xb0),
	PROBE("d", "tx_begin", "", 0xc0),
	PROBE("d", "tx_commit", "", 0xd0),
	PROBE("d", "tx_abort", "", 0xe0),
	PROBE("d", "f_entry", "", 0xf0),
	PROBE("d", "f_return", "", 0x100),
};

static const struct mt_elfnotes notes = {
	.probes = probes, .nprobes = COUNT(probes), .machine = EM_X86_64, .is64 = true};

struct lay {
	struct mt_usdt_set set;
	struct mt_usdt_found *f;
};

static void lay(struct lay *l, const char *text)
{
	struct mt_usdt_err err = {0, ""};
	struct mt_usdt_spec *s;

	memset(l, 0, sizeof(*l));
	if (mt_usdt_spec_parse(text, NULL, &s, &err))
		fail_msg("%s: at %zu: %s", text, err.pos, err.why);
	assert_int_equal(mt_usdt_set_add(&l->set, s), 0);
	assert_int_equal(mt_usdt_find(&notes, &l->set, 100, NULL, NULL, &l->f), 0);
}

static void unlay(struct lay *l)
{
	mt_usdt_found_free(l->f);
	mt_usdt_set_free(&l->set);
}

/* "class name(field:type...) kind@addr kind@addr ..., next callsite" */
static char *show(const struct mt_usdt_found *f)
{
	char *text = NULL;
	size_t len = 0;
	FILE *o = open_memstream(&text, &len);

	assert_non_null(o);
	for (uint32_t i = 0; i < f->ncallsites; i++) {
		const struct mt_callsite *cs = &f->callsites[i];

		assert_int_equal(cs->id, 100 + i);
		assert_true(cs->flags & MONTRACE_CSF_USER);
		fprintf(o, "%s%s %s(", i ? ", " : "", mt_class_name(cs->class_), cs->name);
		for (unsigned k = 0; k < cs->nfields; k++)
			fprintf(o, "%s%s:%s%s", k ? " " : "", cs->fields[k].name,
				mt_type_name(cs->fields[k].type), cs->fields[k].raw ? "*" : "");
		fputs(")", o);
		for (uint32_t k = 0; k < f->nsites; k++)
			if (f->sites[k].callsite == i)
				fprintf(o, " %s@%llx", mt_kind_name(f->sites[k].plan.kind),
					(unsigned long long)f->sites[k].probe->addr);
	}
	fclose(o);
	return text;
}

static void finding(void **state)
{
	static const struct {
		const char *spec, *want;
	} rows[] = {
		{"c:one", "event one(arg0:u64 arg1:i64 arg2:f64 arg3:f64) event@10"},
		{"c:two", "event two(arg0:i64) event@20 event@30"},
		{"c:one -", "event one() event@10"},
		{"c:one x=arg0 arg1:u8 y=arg1:str", "event one(x:u64 arg1:u64* y:str) event@10"},
		{"c:one x=arg0:hex, y=arg0:f32 z=arg0:bool", "event one(x:debug* y:f64* z:bool) event@10"},
		{"c:one counter=arg1", "counter one(value:i64) counter@10"},
		{"c:one counter=arg1 name=\"my count\"", "counter my count(value:i64) counter@10"},
		{"c:one counter=+arg1", "counter one(value:i64) counter@10"},
		{"c:one counter=+1", "counter one() counter@10"},
		{"c:two while=arg0 -", "scope two() scope_begin@20 scope_begin@30"},
		{"c:two x=arg0 while=arg0 nested", "scope two(x:i64) scope_begin@20 scope_begin@30"},
		{"c:two nested=arg0", "event two(nested:i64) event@20 event@30"},
		{"c:nix", ""},
		{"x:one", ""},
		{"c:t*", "event two(arg0:i64) event@20 event@30"},
		{"?:one|two", "event one(arg0:u64 arg1:i64 arg2:f64 arg3:f64) event@10, event two(arg0:i64) "
			      "event@20 event@30"},
		{"c:one|o*", "event one(arg0:u64 arg1:i64 arg2:f64 arg3:f64) event@10"},
		{"c:req__start..req__done arg2",
		 "scope req(arg2:u64) scope_begin@40 scope_begin@50 scope_end@60"},
		{"c:req__start..c:req__done -", "scope req() scope_begin@40 scope_begin@50 scope_end@60"},
		{"c:req__start..req__done key=arg0/arg1 arg1:str",
		 "span req(arg1:str) span_new@40 span_new@50 span_close@60"},
		{"c:q__*__start..q__*__done", "scope q__exec() scope_begin@90 scope_end@a0, scope q__plan() "
					      "scope_begin@70 scope_end@80"},
		{"c:lone__start..lone__done", ""},
		{"d:tx_begin..tx_commit|tx_abort", "scope tx() scope_begin@c0 scope_end@d0 scope_end@e0"},
		{"c:req__start..req__done arg0 end.ret=arg0:i32 end.p=arg1",
		 "scope req(arg0:u64 ret:i64* p:u64) scope_begin@40 scope_begin@50 scope_end@60"},
		{"c:q__plan__start..q__plan__done end.x=arg0",
		 "scope q__plan(-:u64 x:u64) scope_begin@70 scope_end@80"},
		{"auto:d", "scope f() scope_begin@f0 scope_end@100"},
		{"auto:c",
		 "scope q__exec() scope_begin@90 scope_end@a0, scope q__plan() scope_begin@70 scope_end@80, "
		 "scope req(arg0:u64 arg1:u64 arg2:u64) scope_begin@40 scope_begin@50 scope_end@60"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct lay l;
		char *got;

		lay(&l, rows[i].spec);
		got = show(l.f);
		if (strcmp(got, rows[i].want))
			fail_msg("%s:\n got %s\nwant %s", rows[i].spec, got, rows[i].want);
		free(got);
		unlay(&l);
	}
}

static void plans(void **state)
{
	const struct mt_plan *p;
	struct lay l;

	(void)state;
	/* what cannot be read is one field's loss */
	lay(&l, "c:one");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->nops, 4);
	assert_int_equal(p->ops[0].base, 14);
	assert_int_equal(p->ops[0].size, 4);
	assert_int_equal(p->ops[1].disp, 8);
	assert_int_equal(p->ops[2].missing, MT_MISSING_XMM);
	assert_int_equal(p->ops[3].missing, 0);
	assert_false(l.f->sites[0].faults); /* registers and the stack only */
	unlay(&l);
	/* an operand is read once; a text may fault */
	lay(&l, "c:req__start..req__done key=arg0/arg1 a=arg0 u=arg1:str(arg2) n=arg2");
	assert_int_equal(l.f->nsites, 3);
	p = &l.f->sites[0].plan;
	assert_int_equal(p->flags, MT_PLAN_SPAN);
	assert_int_equal(p->key, 0);
	assert_int_equal(p->nops, 3);
	assert_int_equal(p->nfields, 3);
	assert_int_equal(p->fields[0].op, 0);
	assert_int_equal(p->fields[1].op, 1);
	assert_int_equal(p->fields[1].kind, MT_FIELD_TEXT);
	assert_int_equal(p->fields[1].len_op, 2);
	assert_int_equal(p->fields[2].op, 2);
	assert_true(l.f->sites[0].faults);
	assert_false(l.f->sites[2].faults);
	assert_int_equal(l.f->sites[2].plan.nops, 1);
	assert_int_equal(l.f->sites[2].plan.ops[0].base, 14);
	assert_true(p->salt == l.f->sites[2].plan.salt && p->salt);
	unlay(&l);
	/* a vector register for a number, in many fields and comparisons: one operand, which is missing */
	lay(&l, "c:one a=arg2:i8 b=arg2:i8 c=arg2:i8 d=arg2:i8 e=arg2:i8 f=arg2:i8 g=arg2:i8 h=arg2:i8 "
		"i=arg2:i8 j=arg2:i8 k=arg2:i8 l=arg2:i8 if arg2 < 1 && arg2 < 2 && arg2 < 3 && arg2 < 4 && "
		"arg2 < 5 && arg2 < 6 && arg9 < 7 && arg3:f32 < 8");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->nops, 3);
	assert_int_equal(p->ops[p->fields[11].op].missing, MT_MISSING_XMM);
	assert_int_equal(p->ops[p->tests[5].op].missing, MT_MISSING_XMM);
	assert_int_equal(p->ops[p->tests[6].op].missing, MT_MISSING_ARG);
	assert_int_equal(p->ops[p->tests[7].op].missing, MT_MISSING_TYPE);
	unlay(&l);
	/* an argument that there is not; a float that is asked for as a number; a size that does not fit */
	lay(&l, "c:one arg9 arg3:i32 arg0:f64 z=arg3:f64");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->ops[p->fields[0].op].missing, MT_MISSING_ARG);
	assert_int_equal(p->ops[p->fields[1].op].missing, MT_MISSING_TYPE);
	assert_int_equal(p->ops[p->fields[2].op].missing, MT_MISSING_TYPE);
	assert_int_equal(p->ops[p->fields[3].op].missing, 0);
	unlay(&l);
	/* fields of the end */
	lay(&l, "c:req__start..req__done arg0 end.ret=arg0:i32 end.p=arg1");
	assert_int_equal(l.f->callsites[0].end_at, 1);
	assert_int_equal(l.f->sites[0].plan.nfields, 1);
	p = &l.f->sites[2].plan;
	assert_int_equal(p->nfields, 2);
	assert_int_equal(p->ops[p->fields[0].op].base, 10);
	assert_int_equal(p->ops[p->fields[1].op].base, 14);
	unlay(&l);
	/* a begin that may be an end only; what spans are told of a callsite */
	lay(&l, "c:one while=arg1 x=arg0 nested");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->flags, MT_PLAN_WHILE);
	assert_int_equal(p->ops[p->key].disp, 8);
	assert_int_equal(p->nfields, 1);
	assert_int_equal(l.f->callsites[0].how, MT_HOW_WHILE | MT_HOW_NESTED);
	unlay(&l);
	lay(&l, "c:one counter=+arg0");
	assert_int_equal(l.f->callsites[0].how, MT_HOW_SUM);
	unlay(&l);
	lay(&l, "c:req__start..req__done nested -");
	assert_int_equal(l.f->callsites[0].how, MT_HOW_NESTED);
	unlay(&l);
	lay(&l, "c:req__start..req__done -");
	assert_int_equal(l.f->callsites[0].how, 0);
	unlay(&l);
	/* spans with a predicate remember what it said */
	lay(&l, "c:req__start..req__done if arg2 > 3");
	assert_int_equal(l.f->sites[0].plan.flags, MT_PLAN_NEST_PUSH);
	assert_int_equal(l.f->sites[2].plan.flags, MT_PLAN_NEST_POP);
	assert_int_equal(l.f->sites[2].plan.ntests, 0);
	unlay(&l);
	/* unless the end says which of them it ends, by fields that the begin has too */
	lay(&l, "c:req__start..req__done a=arg0 b=arg1 end.c=arg0 end.b=arg1 if arg2 > 3");
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(l.f->callsites[0].fields[i].pair, i % 2 ? 2 : 0);
	assert_int_equal(l.f->sites[0].plan.flags, 0);
	assert_int_equal(l.f->sites[2].plan.flags, 0);
	unlay(&l);
	lay(&l, "c:req__start..req__done a=arg0 end.c=arg0 if arg2 > 3");
	assert_int_equal(l.f->callsites[0].fields[0].pair | l.f->callsites[0].fields[1].pair, 0);
	assert_int_equal(l.f->sites[2].plan.flags, MT_PLAN_NEST_POP);
	unlay(&l);
	lay(&l, "c:req__start..req__done key=arg0 a=arg0 end.a=arg0");
	assert_int_equal(l.f->callsites[0].fields[0].pair | l.f->callsites[0].fields[1].pair, 0);
	unlay(&l);
}

static void predicates(void **state)
{
	static const struct {
		const char *text;
		uint8_t cmp, num;
		uint64_t value;
	} rows[] = {
		/* arg0 is unsigned, arg1 signed */
		{"arg0 > 1000", MT_CMP_GT, 0, 1000},
		{"arg0==0x10", MT_CMP_EQ, 0, 16},
		{"arg1 >= -5", MT_CMP_GE, 1, (uint64_t)-5},
		{"arg1 < 7", MT_CMP_LT, 1, 7},
		{"arg0 > -1", MT_CMP_ALWAYS, 0, (uint64_t)-1},
		{"arg0 <= -1", MT_CMP_NEVER, 0, (uint64_t)-1},
		{"arg0 == -1", MT_CMP_NEVER, 0, (uint64_t)-1},
		{"arg0 != -1", MT_CMP_ALWAYS, 0, (uint64_t)-1},
		{"arg0 == -0", MT_CMP_EQ, 0, 0},
		{"arg1 < 18446744073709551615", MT_CMP_ALWAYS, 1, UINT64_MAX},
		{"arg1 > 9223372036854775808", MT_CMP_NEVER, 1, 1ull << 63},
		{"arg1 == -9223372036854775808", MT_CMP_EQ, 1, 1ull << 63},
		/* a fraction, for whole numbers */
		{"arg0 > 1.5", MT_CMP_GE, 0, 2},
		{"arg0 >= 1.5", MT_CMP_GE, 0, 2},
		{"arg0 < 1.5", MT_CMP_LE, 0, 1},
		{"arg0 <= 2.0", MT_CMP_LE, 0, 2},
		{"arg0 == 2e3", MT_CMP_EQ, 0, 2000},
		{"arg0 == 1.5", MT_CMP_NEVER, 0, 0},
		{"arg0 != 1.5", MT_CMP_ALWAYS, 0, 0},
		{"arg0 > -0.5", MT_CMP_GE, 0, 0},
		{"arg0 < -0.5", MT_CMP_NEVER, 0, (uint64_t)-1},
		{"arg1 > -1.5", MT_CMP_GE, 1, (uint64_t)-1},
		{"arg1 < -1.5", MT_CMP_LE, 1, (uint64_t)-2},
		{"arg1 < 1e300", MT_CMP_ALWAYS, 0, 0},
		{"arg1 > 1e300", MT_CMP_NEVER, 0, 0},
		{"arg1 > -1e300", MT_CMP_ALWAYS, 0, 0},
		{"arg1 <= -1e300", MT_CMP_NEVER, 0, 0},
		{"arg1 == 1e300", MT_CMP_NEVER, 0, 0},
		{"arg0 == 18446744073709551616.0", MT_CMP_NEVER, 0, 0},
		{"arg1 >= -9223372036854775808.0", MT_CMP_GE, 1, 1ull << 63},
		/* arg3 is a double; arg0 is taken for a float, it has 4 bytes */
		{"arg3 > 1.5", MT_CMP_GT, MT_NUM_F64, 0x3ff8000000000000},
		{"arg3 == -3", MT_CMP_EQ, MT_NUM_F64, 0xc008000000000000},
		{"arg3 != 0", MT_CMP_NE, MT_NUM_F64, 0},
		{"arg0:f32 <= -0.1", MT_CMP_LE, MT_NUM_F32, 0xbdcccccd},
		{"arg1:f64 < 1e-3", MT_CMP_LT, MT_NUM_F64, 0x3f50624dd2f1a9fc},
	};
	const struct mt_plan *p;
	char text[200];
	struct lay l;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(text, sizeof(text), "c:one - if %s", rows[i].text);
		lay(&l, text);
		p = &l.f->sites[0].plan;
		assert_int_equal(p->ntests, 1);
		if (p->tests[0].cmp != rows[i].cmp || p->tests[0].num != rows[i].num ||
		    p->tests[0].value != rows[i].value)
			fail_msg("%s: %u %u %llx", rows[i].text, p->tests[0].cmp, p->tests[0].num,
				 p->tests[0].value);
		unlay(&l);
	}
	lay(&l, "c:one - if arg0 == 1 && arg1 != \"a\\\"b\" || arg0 > 5 && arg1 == \"\"");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->ntests, 4);
	assert_int_equal(p->nops, 2);
	assert_int_equal(p->tests[1].cmp, MT_CMP_TEXT_NE);
	assert_int_equal(p->tests[3].cmp, MT_CMP_TEXT_EQ);
	assert_string_equal(p->texts[p->tests[1].text], "a\"b");
	assert_string_equal(p->texts[p->tests[3].text], "");
	unlay(&l);
	/* what a value cannot be compared as is missing */
	lay(&l, "c:one - if arg0:f64 > 1 && arg3:f32 > 1 && arg3 == \"x\" && arg2 > 1");
	p = &l.f->sites[0].plan;
	assert_int_equal(p->ntests, 4);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(p->ops[p->tests[i].op].missing, MT_MISSING_TYPE);
	assert_int_equal(p->ops[p->tests[3].op].missing, MT_MISSING_XMM);
	unlay(&l);
}

/* The kernel side's way through the tests; bit i of truth: comparison i is true. */
static bool walk(const struct mt_plan *p, unsigned truth)
{
	unsigned at = 0, next, steps = 0;

	while (at < p->ntests) {
		next = truth >> at & 1 ? p->tests[at].yes : p->tests[at].no;
		assert_true(next > at && steps++ < MT_PLAN_TESTS);
		at = next;
	}
	assert_true(at == MT_TEST_YES || at == MT_TEST_NO);
	return at == MT_TEST_YES;
}

#define A (t & 1)
#define B (t >> 1 & 1)
#define C (t >> 2 & 1)
#define D (t >> 3 & 1)
/* Brackets: each combination of what the comparisons say, against C's own && and ||. */
static void brackets(void **state)
{
	static const char *const rows[] = {
		"a",
		"a && b || c && d",
		"a && (b || c) && d",
		"(a || b) && (c || d)",
		"a || b && (c || d)",
		"((a && b) || (c)) && d",
		"a && (b || (c && d))",
		"(a || (b && (c || d)))",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[400] = "c:one - if ";
		size_t n = strlen(text);
		struct lay l;

		for (const char *c = rows[i]; *c; c++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      *c >= 'a' && *c <= 'd' ? "arg0 == %d" : "%c",
					      *c >= 'a' && *c <= 'd' ? *c - 'a' : *c);
		lay(&l, text);
		for (int t = 0; t < 16; t++) {
			const bool want[] = {
				A,
				(A && B) || (C && D),
				A && (B || C) && D,
				(A || B) && (C || D),
				A || (B && (C || D)),
				((A && B) || C) && D,
				A && (B || (C && D)),
				A || (B && (C || D)),
			};

			if (walk(&l.f->sites[0].plan, (unsigned)t) != want[i])
				fail_msg("%s: wrong for %x", rows[i], (unsigned)t);
		}
		unlay(&l);
	}
}

static unsigned long long f64_bits(double d)
{
	unsigned long long u;

	memcpy(&u, &d, sizeof(u));
	return u;
}

static unsigned long long f32_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u | 0xabcdef0100000000; /* what is above does not count */
}

/* Bits in the order of the numbers. */
static void order(void **state)
{
	static const double up[] = {-HUGE_VAL, -1e300, -3.5, -1,  -1e-310, 0,
				    5e-324,    1e-300, 1,    1.5, 1e300,   HUGE_VAL};
	unsigned long long a, b;

	(void)state;
	for (size_t i = 0; i < COUNT(up); i++) {
		for (size_t k = 0; k < COUNT(up); k++) {
			a = f64_bits(up[i]);
			b = f64_bits(up[k]);
			assert_true(mt_num_order(MT_NUM_F64, &a) && mt_num_order(MT_NUM_F64, &b));
			assert_int_equal((a > b) - (a < b), (up[i] > up[k]) - (up[i] < up[k]));
			a = f32_bits((float)up[i]);
			b = f32_bits((float)up[k]);
			assert_true(mt_num_order(MT_NUM_F32, &a) && mt_num_order(MT_NUM_F32, &b));
			assert_int_equal((a > b) - (a < b),
					 ((float)up[i] > (float)up[k]) - ((float)up[i] < (float)up[k]));
		}
	}
	a = f64_bits(-0.0);
	b = f64_bits(0.0);
	assert_true(mt_num_order(MT_NUM_F64, &a) && mt_num_order(MT_NUM_F64, &b) && a == b);
	a = f32_bits(-0.0f);
	b = f32_bits(0.0f);
	assert_true(mt_num_order(MT_NUM_F32, &a) && mt_num_order(MT_NUM_F32, &b) && a == b);
	a = f64_bits(NAN);
	b = f64_bits(-NAN);
	assert_false(mt_num_order(MT_NUM_F64, &a) || mt_num_order(MT_NUM_F64, &b));
	a = f32_bits(NAN);
	b = 0x7ff0000000000001;
	assert_false(mt_num_order(MT_NUM_F32, &a) || mt_num_order(MT_NUM_F64, &b));
	a = (unsigned long long)-1;
	b = 1;
	assert_true(mt_num_order(MT_NUM_SIGNED, &a) && mt_num_order(MT_NUM_SIGNED, &b) && a < b);
}

static void keys(void **state)
{
	struct lay l;

	(void)state;
	lay(&l, "c:req__start..req__done key=arg1:str/arg1:str -");
	assert_true(l.f->callsites[0].keyed);
	assert_int_equal(l.f->sites[0].plan.flags, MT_PLAN_SPAN | MT_PLAN_KEY_TEXT);
	assert_int_equal(l.f->sites[2].plan.flags, MT_PLAN_SPAN | MT_PLAN_KEY_TEXT);
	assert_true(l.f->sites[0].faults && l.f->sites[2].faults);
	unlay(&l);
	lay(&l, "c:req__start..req__done key=arg1:str");
	assert_int_equal(l.f->sites[2].plan.flags, MT_PLAN_SPAN | MT_PLAN_KEY_TEXT);
	unlay(&l);
	lay(&l, "c:req__start..req__done arg1");
	assert_false(l.f->callsites[0].keyed);
	unlay(&l);
	/* the same key means another span at another callsite, also of one spec */
	lay(&l, "c:q__*__start..q__*__done key=arg0");
	assert_int_equal(l.f->nsites, 4);
	assert_true(l.f->sites[0].plan.salt == l.f->sites[1].plan.salt);
	assert_true(l.f->sites[0].plan.salt != l.f->sites[2].plan.salt);
	unlay(&l);
}

static void labels(void **state)
{
	struct lay l;

	(void)state;
	lay(&l, "c:req__start..req__done name=arg1");
	assert_string_equal(l.f->callsites[0].label, "{name}");
	assert_string_equal(l.f->callsites[0].fields[0].name, "name");
	assert_int_equal(l.f->callsites[0].fields[0].type, MONTRACE_TYPE_STR);
	unlay(&l);
	lay(&l, "c:req__start..req__done name=\"r {u} {arg2:u8}\" u=arg1:str");
	assert_string_equal(l.f->callsites[0].label, "r {u} {arg2:u8}");
	assert_int_equal(l.f->callsites[0].nfields, 2);
	assert_string_equal(l.f->callsites[0].fields[1].name, "arg2");
	unlay(&l);
	lay(&l, "c:req__start..req__done name=\"plain\"");
	assert_string_equal(l.f->callsites[0].label, "plain");
	assert_string_equal(l.f->callsites[0].name, "plain");
	unlay(&l);
	lay(&l, "c:req__start..req__done");
	assert_null(l.f->callsites[0].label);
	assert_string_equal(l.f->callsites[0].name, "req");
	unlay(&l);
}

/* ---- Pairs, profiles ------------------------------------------------------------------------------ */

static void pairs(void **state)
{
	static const struct {
		const char *begin, *end;
		bool pair;
	} rows[] = {
		{"a__start", "a__done", true},
		{"a__start", "a__end", true},
		{"a__begin", "a__end", true},
		{"a__entry", "a__return", true},
		{"a-start", "a-end", true},
		{"a_start", "a_done", true},
		{"a_enter", "a_exit", true},
		{"a__start", "b__done", false},
		{"a__start", "a_done", false},
		{"a__start", "a__return", false},
		{"start", "done", false},
		{"_start", "_done", false},
		{"a", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(mt_usdt_pair((struct mt_str){rows[i].begin, (uint32_t)strlen(rows[i].begin)},
					      (struct mt_str){rows[i].end, (uint32_t)strlen(rows[i].end)}),
				 rows[i].pair);
}

static int load(const char *text, struct mt_usdt_profile **p, char *why)
{
	struct mt_profile_err err;
	int r = mt_usdt_profile_parse(text, strlen(text), "/d/my.profile", p, &err);

	strcpy(why, err.text);
	return r;
}

static void profiles(void **state)
{
	struct mt_usdt_found *f;
	struct mt_usdt_profile *p;
	char why[600], *got;

	(void)state;
	assert_int_equal(
		load("# mine\n\n  when c:one\nwhen x:*\r\nc:two\nwhen x:y\nc:one - \\\n  level=debug\n", &p,
		     why),
		0);
	assert_string_equal(p->name, "my");
	assert_int_equal(p->specs.n, 2);
	assert_true(p->automatic);
	assert_int_equal(p->nwhens, 2);
	assert_int_equal(p->whens[0]->n, 2);
	assert_int_equal(p->specs.v[1]->level, MONTRACE_DEBUG);
	assert_string_equal(p->specs.v[1]->where, "profile my, line 7");
	assert_int_equal(mt_usdt_find(&notes, &p->specs, 100, NULL, NULL, &f), 0);
	got = show(f); /* the second one's condition does not hold */
	assert_string_equal(got, "event two(arg0:i64) event@20 event@30");
	free(got);
	mt_usdt_found_free(f);
	mt_usdt_profile_free(p);

	assert_int_equal(load("c:one\nwhen c:*\nc:two\n", &p, why), 0);
	assert_false(p->automatic);
	mt_usdt_profile_free(p);

	assert_int_equal(load("# nothing\n", &p, why), -EINVAL);
	assert_string_equal(why, "/d/my.profile: no spec in it");
	assert_int_equal(load("c:one\nwhen c\n", &p, why), -EINVAL);
	assert_string_equal(why, "/d/my.profile:2: `when` needs PROVIDER:NAME");
	assert_int_equal(load("c:one\n\nc:one x=arg99\n", &p, why), -EINVAL);
	assert_string_equal(why,
			    "/d/my.profile:3: a probe has 12 arguments at most: arg0 .. arg11 at `arg99`");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors),     cmocka_unit_test(finding),  cmocka_unit_test(plans),
		cmocka_unit_test(predicates), cmocka_unit_test(brackets), cmocka_unit_test(order),
		cmocka_unit_test(keys),       cmocka_unit_test(labels),   cmocka_unit_test(pairs),
		cmocka_unit_test(profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
