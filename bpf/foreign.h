/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Hits of foreign USDT sites -> the records that a montrace callsite would have made. Part of montrace.bpf.c.
 * foreign_read.h reads memory, foreign_test.h has the predicates.
 *
 * The idea: one program for all sites. What a site's operands are and what becomes of them says its plan
 * (shared.h), looked up by the cookie. The records are laid out in a buffer of the thread's own, then copied
 * into a ring slot of a fitting class: text is of unknown length until it is read, and slots must be reserved
 * before.
 *
 * Invariants
 *  F1  B1 and B2 hold. A hit that the predicate turns away has no number: for this thread it did not happen.
 *  F2  The buffer is the thread's: a thread makes one hit at a time, and reading memory fires no probe.
 *  F3  All indices are masked, all lengths bounded, whatever plan or target say. No loop over text.
 *  F4  A value that cannot be read is marked as missing, with the reason in its place. Never another value.
 *  F5  Texts and memory are read without faulting first. Where faulting is allowed (sleepable programs), a page
 *      that is not there is touched and the read is done again.
 *  F6  No page is touched that somebody else than the kernel would have to bring: userfaultfd, FUSE, network file
 *      systems, devices. Who waits for such a page in here holds up every detach in the system, for good if it never
 *      comes.
 *      What remains is a target that makes such memory of a page between the look and the touch, to harm itself.
 *  F7  A span with a key makes one record at its begin and one at its end; its id is made of the key and of what the
 *      plan adds (the callsite). Which begin an end belongs to, userspace knows (spans_keyed.c).
 *
 * Example: 8@%rdi 4@-20(%rbp), wanted as text and number: ops {di, +0}, {bp - 20, deref, 4 bytes}; values
 * {address, n}; the text is read at the address, behind the values; the record has 24 + 16 + its length.
 *
 * Not here: what an operand's text means, which sites there are (usdt_*.c, attach_foreign.c).
 */
#ifndef MT_FOREIGN_H
#define MT_FOREIGN_H

#define MAX_TEXT 1024  /* MONTRACE_MAX_TEXT */
#define TEXT_MASK 2047 /* covers MAX_TEXT and 2 */
#define TEXT_END 4064  /* RECORD_MAX less what fills up to 8 */
#define KIND_SCOPE_END 2
#define RF_CUT_TEXT 8 /* MONTRACE_RF_CUT_TEXT */

struct record {
	__u16 size;
	__u8 kind;
	__u8 nfields;
	__u32 flags;
	__u64 span;
	__u64 parent;
};

struct nest {
	__u32 spec;  /* 0 = free */
	__u32 depth; /* begins without their ends yet */
	__u64 bits;  /* what the predicate said of the innermost 64; the last is bit 0 */
};

struct scratch {
	__u64 regs[64]; /* struct pt_regs; what is behind it stays 0 */
	__u64 vals[MT_PLAN_OPS];
	__u8 missing[MT_PLAN_OPS];
	__u64 site; /* address of the site */
	__u64 fs, gs32;
	__u64 key; /* of the span */
	__u64 cmp[MT_PLAN_TEXT / 8 + 1];
	struct nest nest[MT_PLAN_NEST];
	__u32 end; /* bytes of buf in use */
	__u32 flags;
	union {
		struct record rec;
		__u64 words[3 + MT_PLAN_FIELDS];
		char buf[4096 + TEXT_MASK + 1];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* By site number. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MT_MAX_PLANS);
	__type(key, __u32);
	__type(value, struct mt_plan);
} plans SEC(".maps");

/*
 * A length of text, for the verifier: bounded in the very register that goes to the helper. Kernels such as 6.1 lose
 * bounds that were found by comparing a copy.
 */
static __always_inline __u64 bounded(__u64 n)
{
	barrier_var(n);
	return n & TEXT_MASK;
}

#include "foreign_read.h"

/* ---- Operands ------------------------------------------------------------------------------------- */

static __always_inline int operand(struct scratch *s, const struct mt_plan *p, __u32 i, bool may_fault)
{
	const struct mt_plan_op *op = &p->ops[i & (MT_PLAN_OPS - 1)];
	__u64 v = op->disp, x, raw[2] = {};
	__u8 flags = op->flags, missing = op->missing;
	__u32 cut = 64 - 8 * (op->size & 15);

	if (flags & MT_OP_SITE)
		v += s->site;
	if (flags & MT_OP_FS)
		v += s->fs;
	if (flags & MT_OP_GS32)
		v += s->gs32;
	v += s->regs[op->base & 63];
	x = s->regs[op->index & 63];
	if (flags & MT_OP_INDEX_S32)
		x = (__s64)(__s32)x;
	if (flags & MT_OP_INDEX_U32)
		x = (__u32)x;
	v += x << (op->scale & 7);
	if (flags & MT_OP_ADDR32)
		v = (__u32)v;
	if ((flags & MT_OP_DEREF) && !missing) {
		if (read_user(raw, op->size & 15, v, may_fault))
			missing = MT_MISSING_UNREADABLE;
		v = raw[0];
	}
	v >>= op->shift & 63;
	v <<= cut & 63;
	s->vals[i & (MT_PLAN_OPS - 1)] =
		flags & MT_OP_SIGNED ? (__u64)((__s64)v >> (cut & 63)) : v >> (cut & 63);
	s->missing[i & (MT_PLAN_OPS - 1)] = missing;
	return 0;
}

/* Global functions: verified once each, not once per call. */
__noinline int mt_operand_n(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? operand(s, p, i, false) : 0;
}

__noinline int mt_operand_s(struct scratch *s, const struct mt_plan *p, __u32 i)
{
	return s && p ? operand(s, p, i, true) : 0;
}

/* ---- Fields --------------------------------------------------------------------------------------- */

static __always_inline void set_text(struct scratch *s, __u32 k, __u64 stored, __u64 full)
{
	if (full > 0xffffffff)
		full = 0xffffffff;
	if (full > stored)
		s->flags |= RF_CUT_TEXT;
	s->words[3 + (k & 15)] = s->end | (__u64)stored << 16 | full << 32;
	s->end += stored;
}

/* The text of field k at ptr, its length in op `len` or up to the NUL. Returns why not. */
static __always_inline __u8 text(struct scratch *s, __u32 k, __u64 ptr, __u32 len_op, bool may_fault)
{
	__u64 end = s->end & 4095, room = end < TEXT_END ? TEXT_END - end : 0, n, full;
	long r;

	n = room < MAX_TEXT ? room : MAX_TEXT;
	if (!ptr) {
		__builtin_memcpy(s->buf + end, "(null)", 6);
		set_text(s, k, n < 6 ? n : 6, 6);
		return 0;
	}
	if (len_op != MT_NO_OP) {
		if (s->missing[len_op & 15])
			return s->missing[len_op & 15];
		full = s->vals[len_op & 15];
		if ((__s64)full < 0)
			return MT_MISSING_LENGTH;
		if (full < n)
			n = full;
		n = bounded(n);
		if (read_user(s->buf + end, n, ptr, may_fault))
			return MT_MISSING_UNREADABLE;
		set_text(s, k, n, full);
		return 0;
	}
	/* One byte more than is stored, and the NUL: then what fits exactly is not taken for cut. */
	r = read_text(s->buf + end, bounded(n + 2), ptr, may_fault);
	if (r < 1 || r > MAX_TEXT + 2)
		return MT_MISSING_UNREADABLE;
	full = r - 1;
	set_text(s, k, full < n ? full : n, full);
	return 0;
}

static __always_inline int field(struct scratch *s, const struct mt_plan *p, __u32 k, bool may_fault)
{
	const struct mt_plan_field *f = &p->fields[k & 15];
	__u8 missing = s->missing[f->op & 15];

	if (!missing && f->kind == MT_FIELD_TEXT)
		missing = text(s, k, s->vals[f->op & 15], f->len_op, may_fault);
	else if (!missing)
		s->words[3 + (k & 15)] = s->vals[f->op & 15];
	if (missing) {
		s->words[3 + (k & 15)] = missing;
		s->flags |= 0x10000u << (k & 15);
	}
	return 0;
}

__noinline int mt_field_n(struct scratch *s, const struct mt_plan *p, __u32 k)
{
	return s && p ? field(s, p, k, false) : 0;
}

__noinline int mt_field_s(struct scratch *s, const struct mt_plan *p, __u32 k)
{
	return s && p ? field(s, p, k, true) : 0;
}

#include "foreign_test.h"

/* ---- A hit ---------------------------------------------------------------------------------------- */

static __always_inline void read_registers(struct scratch *s, struct pt_regs *ctx, struct task_struct *t,
					   const struct mt_plan *p)
{
#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_kernel(s->regs, sizeof(struct pt_regs), ctx);
	s->site = s->regs[16]; /* ip */
	if (p->flags & MT_PLAN_THREAD_BASE) {
		__u32 n = (__u32)BPF_CORE_READ(t, thread.gsindex) / 8 -
			  12; /* the kernel's 3 slots start there */
		__u64 d = 0;

		s->fs = BPF_CORE_READ(t, thread.fsbase);
		n = n < 3 ? n : 0;
		bpf_probe_read_kernel(&d, sizeof(d),
				      (const char *)__builtin_preserve_access_index(&t->thread.tls_array) +
					      8 * n);
		s->gs32 = (d >> 16 & 0xffffff) | (d >> 32 & 0xff000000);
	}
#else
	bpf_probe_read_kernel(s->regs, 33 * 8, ctx);
	s->site = s->regs[32]; /* pc */
#endif
}

static __always_inline __u64 span_id(__u64 key, __u64 salt)
{
	__u64 id = (key ^ salt) * 0x9e3779b97f4a7c15ull;

	id ^= id >> 29; /* both steps can be undone: different keys have different ids */
	return id ? id : 1;
}

static __always_inline bool only_ends(struct scratch *s, const struct mt_plan *p)
{
	return (p->flags & MT_PLAN_WHILE) && !s->vals[p->key & 15];
}

/* Closes the record in the buffer. Returns its bytes. */
static __always_inline __u32 lay_out(struct scratch *s, const struct mt_plan *p)
{
	__u32 end = s->end & 4095;

	*(__u64 *)(s->buf + end) = 0;
	end = (end + 7) & 4088;
	s->rec.size = end;
	s->rec.kind = p->kind;
	s->rec.nfields = p->nfields;
	s->rec.flags = s->flags;
	s->rec.span = p->flags & MT_PLAN_SPAN ? span_id(s->key, p->salt) : 0;
	s->rec.parent = 0;
	if (only_ends(s, p)) {
		s->rec.kind = KIND_SCOPE_END;
		s->rec.nfields = 0;
	}
	return end;
}

#define PUT_FOREIGN(max)                                                              \
	do {                                                                          \
		struct {                                                              \
			struct mt_wire head;                                          \
			__u8 data[max];                                               \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(struct mt_wire) + (max), 0); \
		if (!r) {                                                             \
			count_lost(MT_LOST_RING);                                     \
			return 0;                                                     \
		}                                                                     \
		head(&r->head, t, MT_WIRE_FOREIGN, sizeof(struct mt_wire) + size);    \
		r->head.flags = MT_WIRE_F_SEQ;                                        \
		r->head.site = site;                                                  \
		r->head.seq = seq;                                                    \
		bpf_probe_read_kernel(r->data, size, s->buf);                         \
		bpf_ringbuf_submit(r, wake_flags(seq));                               \
		return 0;                                                             \
	} while (0)

static __always_inline bool wanted(struct scratch *s, const struct mt_plan *p, bool may_fault)
{
	__u32 i, at = 0;

	if (!p->ntests)
		return !(p->flags & MT_PLAN_NEST_POP) || mt_nest_pop(s, p->spec);
	for (i = 0; i < MT_PLAN_TESTS; i++) {
		if (i != at)
			continue;
		at = (may_fault ? mt_test_s(s, p, i) : mt_test_n(s, p, i)) ? p->tests[i].yes : p->tests[i].no;
	}
	if (p->flags & MT_PLAN_NEST_PUSH)
		mt_nest_push(s, p->spec, at == MT_TEST_YES);
	return at == MT_TEST_YES;
}

/* False: it could not be read. */
static __always_inline bool read_key(struct scratch *s, const struct mt_plan *p, bool may_fault)
{
	if (s->missing[p->key & 15])
		return false;
	s->key = s->vals[p->key & 15];
	if (!(p->flags & MT_PLAN_KEY_TEXT))
		return true;
	return may_fault ? mt_text_key_s(s, p->key) : mt_text_key_n(s, p->key);
}

/* Nothing to read and nothing to ask: half of all probes of spans. Their record needs neither plan nor scratch. */
static __always_inline int bare_hit(struct task_struct *t, struct thread_state *st, __u8 kind, __u32 site)
{
	__u64 seq = st->seq++;
	struct {
		struct mt_wire head;
		struct record rec;
	} *r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);

	if (!r) {
		count_lost(MT_LOST_RING);
		return 0;
	}
	head(&r->head, t, MT_WIRE_FOREIGN, sizeof(*r));
	r->head.flags = MT_WIRE_F_SEQ;
	r->head.site = site;
	r->head.seq = seq;
	r->rec.size = sizeof(r->rec);
	r->rec.kind = kind;
	r->rec.nfields = 0;
	r->rec.flags = 0;
	r->rec.span = 0;
	r->rec.parent = 0;
	bpf_ringbuf_submit(r, wake_flags(seq));
	return 0;
}

static __always_inline int foreign_hit(struct pt_regs *ctx, bool may_fault)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct thread_state *st = traced_thread(t);
	__u32 i, site, size, n;
	struct mt_plan *p;
	struct scratch *s;
	__u64 seq, cookie;

	if (!st)
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	site = cookie;
	if (cookie >> 32)
		return bare_hit(t, st, cookie >> 32, site);
	p = bpf_map_lookup_elem(&plans, &site);
	s = bpf_task_storage_get(&scratches, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!p || !s) {
		st->seq++;
		count_lost(MT_LOST_STATE);
		return 0;
	}
	if (p->nops)
		read_registers(s, ctx, t, p);
	for (i = 0; i < MT_PLAN_OPS; i++) {
		if (i >= p->nops)
			break;
		if (may_fault)
			mt_operand_s(s, p, i);
		else
			mt_operand_n(s, p, i);
	}
	if (!wanted(s, p, may_fault)) /* F1 */
		return 0;
	seq = st->seq++;
	if (((p->flags & MT_PLAN_SPAN) && !read_key(s, p, may_fault)) ||
	    ((p->flags & MT_PLAN_WHILE) && s->missing[p->key & 15])) {
		count_lost(MT_LOST_READ);
		return 0;
	}
	s->flags = 0;
	n = only_ends(s, p) ? 0 : p->nfields;
	s->end = sizeof(struct record) + 8 * (n & 31);
	for (i = 0; i < MT_PLAN_FIELDS; i++) {
		if (i >= n)
			break;
		if (may_fault)
			mt_field_s(s, p, i);
		else
			mt_field_n(s, p, i);
	}
	size = lay_out(s, p);
	if (size <= 32)
		PUT_FOREIGN(32);
	if (size <= 64)
		PUT_FOREIGN(64);
	if (size <= 128)
		PUT_FOREIGN(128);
	if (size <= 256)
		PUT_FOREIGN(256);
	if (size <= 1024)
		PUT_FOREIGN(1024);
	if (size <= 4096)
		PUT_FOREIGN(4096);
	return 0;
}

SEC("uprobe.multi")
int mt_foreign_multi(struct pt_regs *ctx)
{
	return foreign_hit(ctx, false);
}

SEC("uprobe.multi.s")
int mt_foreign_multi_s(struct pt_regs *ctx)
{
	return foreign_hit(ctx, true);
}

SEC("uprobe")
int mt_foreign_single(struct pt_regs *ctx)
{
	return foreign_hit(ctx, false);
}

SEC("uprobe.s")
int mt_foreign_single_s(struct pt_regs *ctx)
{
	return foreign_hit(ctx, true);
}

#endif
