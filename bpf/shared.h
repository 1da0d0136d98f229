/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Numbers that the BPF program and `session` share. Records: wire.h. */
#ifndef MT_SHARED_H
#define MT_SHARED_H

/* Why a hit or a life record was not delivered. */
enum mt_lost_cause {
	MT_LOST_RING = 0,  /* ring full */
	MT_LOST_READ = 1,  /* the record's memory could not be read */
	MT_LOST_SIZE = 2,  /* the length passed to the probe is none of a record */
	MT_LOST_STATE = 3, /* no memory for the thread's state: the hit has no number either */
	MT_LOST_LIFE = 4,  /* life record (fork, exec, exit, rename), not a hit */
	MT_LOST_CAUSES = 8,
};

/* Flags of a traced process. */
enum {
	MT_TARGET_ON = 1,
	MT_TARGET_FOLLOW = 2, /* its children too */
	MT_TARGET_HELD = 4,   /* in an exec record only: it is stopped until its executable is armed */
	MT_TARGET_MOVED = 8,  /* in an exec record only: another thread than the first called exec */
	MT_TARGET_FILE = 16,  /* only as long as it runs one of `exes` */
};

#define MT_MAX_TARGETS 65536
#define MT_MAX_EXES 1024

/* An executable file as the kernel knows it; both numbers as /proc/PID/maps shows them. */
struct mt_exe_key {
	unsigned long long inode;
	unsigned int dev; /* major << 20 | minor */
	unsigned int zero;
};

/* ---- Plans: how a hit of a foreign USDT site becomes records (bpf/foreign.h) ----------------------- */

#define MT_PLAN_OPS 16    /* operands read in a hit */
#define MT_PLAN_FIELDS 16 /* MONTRACE_MAX_FIELDS */
#define MT_PLAN_TESTS 8   /* comparisons of a predicate */
#define MT_PLAN_TEXT 64   /* bytes of a text compared with, its NUL included */
#define MT_MAX_PLANS 65536
#define MT_PLAN_NEST 8 /* span specs with a predicate that a thread can be in at once, in full */

#define MT_REG_NONE 63 /* reads as 0 */
#define MT_NO_OP 0xff

enum {
	MT_OP_DEREF = 1,      /* the value is in memory at that address, else it is the sum itself */
	MT_OP_SIGNED = 2,     /* extended with its sign */
	MT_OP_SITE = 4,       /* disp is relative to the site's address */
	MT_OP_FS = 8,         /* add the thread's fs base */
	MT_OP_ADDR32 = 16,    /* addresses wrap at 4 GiB */
	MT_OP_INDEX_S32 = 32, /* the index register's lower half, sign-extended */
	MT_OP_INDEX_U32 = 64, /* ... zero-extended */
	MT_OP_GS32 = 128,     /* add the base of the 32-bit thread-local segment */
};

/* One operand: (disp + bases + index << scale), perhaps read from memory, >> shift, cut to size, extended. */
struct mt_plan_op {
	unsigned char missing; /* not 0: cannot be read, enum mt_missing says why */
	unsigned char flags;   /* MT_OP_* */
	unsigned char size;    /* 1, 2, 4, 8 */
	unsigned char base;    /* number of a register in struct pt_regs, MT_REG_NONE */
	unsigned char index;
	unsigned char scale; /* bits to shift the index */
	unsigned char shift; /* bits to shift the value down */
	unsigned char zero;
	long long disp;
};

/* Why a value is missing. Append-only; decode has the texts. */
enum mt_missing {
	MT_MISSING_NOT = 0,
	MT_MISSING_UNREADABLE = 1, /* the memory could not be read */
	MT_MISSING_XMM = 2,        /* in a vector register */
	MT_MISSING_X87 = 3,
	MT_MISSING_SIZE = 4,    /* no size of a number: a struct by value */
	MT_MISSING_SYMBOL = 5,  /* its symbol is not in the file's symbol table, or twice */
	MT_MISSING_OPERAND = 6, /* not understood */
	MT_MISSING_LENGTH = 7,  /* text of negative length */
	MT_MISSING_GOT = 8,     /* its address is in a table made at run time */
	MT_MISSING_TLS = 9,     /* thread-local in a way that only the process knows */
	MT_MISSING_ARG = 10,    /* the probe has no such argument */
	MT_MISSING_TYPE = 11,   /* of another type than at the probe's other sites, or than asked for */
};

enum { MT_FIELD_NUMBER = 0, MT_FIELD_TEXT = 1 };

struct mt_plan_field {
	unsigned char op; /* index; of a text: its address */
	unsigned char kind;
	unsigned char len_op; /* of a text: its length; MT_NO_OP = up to the NUL */
	unsigned char zero;
};

enum mt_cmp {
	MT_CMP_ALWAYS,
	MT_CMP_NEVER,
	MT_CMP_EQ,
	MT_CMP_NE,
	MT_CMP_LT,
	MT_CMP_LE,
	MT_CMP_GT,
	MT_CMP_GE,
	MT_CMP_TEXT_EQ,
	MT_CMP_TEXT_NE,
};

/* What kind of number a value is compared as. */
enum mt_num { MT_NUM_UNSIGNED, MT_NUM_SIGNED, MT_NUM_F32, MT_NUM_F64 };

/* Where a comparison goes on: a later test, or the end. */
enum { MT_TEST_YES = 0xfe, MT_TEST_NO = 0xff };

/* A comparison. A value that is missing makes it false. The first one is test 0. */
struct mt_plan_test {
	unsigned char op;
	unsigned char cmp; /* enum mt_cmp */
	unsigned char num; /* enum mt_num */
	unsigned char yes; /* next test if it is true, MT_TEST_*; always a later one */
	unsigned char no;
	unsigned char text; /* index of the text */
	unsigned short zero;
	unsigned long long value; /* bits */
};

/*
 * Bits of a number -> bits that are ordered as unsigned numbers. There is no floating point in BPF: the bits of
 * floats are ordered by magnitude, below 0 the other way round; -0 is 0. False: not a number, nothing is true of it.
 */
static inline __attribute__((always_inline)) int mt_num_order(unsigned char num, unsigned long long *v)
{
	unsigned long long bits = *v, infinity = 0x7ff0000000000000ull;

	if (num == MT_NUM_UNSIGNED)
		return 1;
	if (num == MT_NUM_SIGNED) {
		*v = bits ^ 1ull << 63;
		return 1;
	}
	if (num == MT_NUM_F32) { /* at the top, it is built as a double is */
		bits <<= 32;
		infinity = 0x7f80000000000000ull;
	}
	if (bits << 1 > infinity << 1)
		return 0;
	if (bits << 1 == 0)
		bits = 0;
	*v = bits >> 63 ? ~bits : bits | 1ull << 63;
	return 1;
}

enum {
	MT_PLAN_SPAN = 1,         /* with an id made of the key: SPAN_NEW and SPAN_CLOSE */
	MT_PLAN_NEST_PUSH = 2,    /* begin of a span with a predicate: remember what it said ... */
	MT_PLAN_NEST_POP = 4,     /* ... the end of such one: it said no, then this is nobody's end */
	MT_PLAN_REGS = 8,         /* operands in registers */
	MT_PLAN_THREAD_BASE = 16, /* operands relative to the thread's segment */
	MT_PLAN_WHILE = 32,       /* a begin, or only an end if the operand `key` is 0 */
	MT_PLAN_KEY_TEXT = 64,    /* the key is the address of a text; its first MT_PLAN_TEXT bytes count */
};

/*
 * The cookie of a foreign site: its number, under which the map has its plan; for a site with nothing to read and
 * nothing to ask also the kind, and then the plan is not looked up.
 */
#define MT_COOKIE_BARE(kind) ((unsigned long long)(kind) << 32)

struct mt_plan {
	unsigned char kind; /* enum montrace_kind of the first record */
	unsigned char nops;
	unsigned char nfields;
	unsigned char ntests;
	unsigned char flags; /* MT_PLAN_* */
	unsigned char key;   /* operand that is the span's key, or of MT_PLAN_WHILE; MT_NO_OP */
	unsigned short zero;
	unsigned int spec; /* number of the spec, for MT_PLAN_NEST_* */
	unsigned int zero2;
	unsigned long long salt; /* of the span ids */
	struct mt_plan_op ops[MT_PLAN_OPS];
	struct mt_plan_field fields[MT_PLAN_FIELDS];
	struct mt_plan_test tests[MT_PLAN_TESTS];
	char texts[2][MT_PLAN_TEXT]; /* compared with; zero-filled */
};

_Static_assert(sizeof(struct mt_plan_op) == 16, "plan op");
_Static_assert(sizeof(struct mt_plan_field) == 4, "plan field");
_Static_assert(sizeof(struct mt_plan_test) == 16, "plan test");
_Static_assert(sizeof(struct mt_plan) == 24 + 256 + 64 + 128 + 128, "plan");
_Static_assert(__builtin_offsetof(struct mt_plan, salt) == 16, "salt");
_Static_assert(__builtin_offsetof(struct mt_plan, ops) == 24, "ops");
_Static_assert(__builtin_offsetof(struct mt_plan, fields) == 280, "fields");
_Static_assert(__builtin_offsetof(struct mt_plan, tests) == 344, "tests");
_Static_assert(__builtin_offsetof(struct mt_plan, texts) == 472, "texts");

#endif
