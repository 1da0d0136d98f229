// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Probe hits and the life of processes -> ring records.
 *
 * The idea: a hit costs one look at the thread's storage (is it traced? which hit is this?), one
 * reservation, one copy of the record that the target laid out (from registers if it is short), one submit. No
 * policy is here beyond "is
 * this process traced".
 *
 * Invariants
 *  B1  Every hit of a traced thread takes the thread's next number, whether it is delivered or not; what is
 *      not delivered is counted by cause. So per thread: hits = delivered + lost, exactly.
 *  B2  The time is taken after the reservation: who finds the ring empty knows that what comes is later.
 *  B3  A record is filled in its ring slot, or in memory of its thread. No per-CPU scratch: the program may be
 *      preempted.
 *  B4  Submitting does not wake the reader, except once when the ring passes its fill mark.
 *  B5  Life records go through a ring of their own, so a flood of hits cannot push them out.
 *
 * Example: thread 71 fires three scopes while the ring is full for the second. Records: seq 0, seq 2;
 * lost[MT_LOST_RING] = 1. `spans` sees the gap before seq 2 and marks one lost event on that thread there.
 *
 * Not here: operands of foreign USDT sites (foreign.h), anything that could differ between native records.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "wire.h"
#include "shared.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define TASK_COMM_LEN 16
#define SIGSTOP 19
#define RECORD_MIN 24   /* sizeof(struct montrace_record) */
#define RECORD_MAX 4096 /* MONTRACE_MAX_RECORD */

/* Sizes of both rings are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} life SEC(".maps");

/* Traced processes (tgid, initial namespace) -> MT_TARGET_* */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

/* Executables whose processes are traced from their exec on -> MT_TARGET_* */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MT_MAX_EXES);
	__type(key, struct mt_exe_key);
	__type(value, __u32);
} exes SEC(".maps");

/* Executables that need no hold: looked at already. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct mt_exe_key);
	__type(value, __u32);
} known SEC(".maps");

/* Processes stopped at their exec until their executable is armed (tgid). The reader, or its guard, lets them go. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MT_MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u32);
} held SEC(".maps");

struct thread_state {
	__u64 seq;   /* number of the next hit */
	__u32 epoch; /* of the target set when `traced` was found out; 0 = never */
	__u32 traced;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread_state);
} threads SEC(".maps");

const volatile __u64 fill_mark = 0; /* bytes in the ring from which the reader is woken */

/* Shared with the reader. */
__u32 epoch = 1;        /* it counts this up after each change of `targets` */
__u32 report_execs = 0; /* it wants to hear of every exec, not only those of traced processes */
__u32 hold_execs = 0;   /* it wants targets that exec an unknown file stopped until it has armed it */
__u32 woken = 0;        /* it clears this when it has drained the ring */
__u64 lost[MT_LOST_CAUSES] = {}; /* enum mt_lost_cause */

static __always_inline void count_lost(enum mt_lost_cause cause)
{
	__sync_fetch_and_add(&lost[cause], 1);
}

static __always_inline __u32 target_flags(__u32 tgid)
{
	__u32 *v = bpf_map_lookup_elem(&targets, &tgid);

	return v ? *v : 0;
}

static __always_inline void head(struct mt_wire *w, struct task_struct *t, __u8 kind, __u16 size)
{
	w->size = size;
	w->kind = kind;
	w->flags = 0;
	w->site = 0;
	w->time = bpf_ktime_get_boot_ns();
	w->tgid = t->tgid;
	w->tid = t->pid;
	w->seq = 0;
	w->start = t->start_boottime;
}

struct life_record {
	struct mt_wire head;
	struct mt_wire_life life;
};

/* Life records are rare and wanted soon: they wake the reader. NULL: counted as lost. */
static __always_inline struct life_record *life_begin(struct task_struct *t, __u8 kind)
{
	struct life_record *r = bpf_ringbuf_reserve(&life, sizeof(*r), 0);

	if (!r) {
		count_lost(MT_LOST_LIFE);
		return 0;
	}
	head(&r->head, t, kind, sizeof(*r));
	r->life.child = 0;
	r->life.status = 0;
	r->life.child_start = 0;
	__builtin_memset(r->life.comm, 0, sizeof(r->life.comm));
	return r;
}

static __always_inline void tell_comm(struct task_struct *t)
{
	struct life_record *r = life_begin(t, MT_WIRE_COMM);

	if (!r)
		return;
	bpf_probe_read_kernel_str(r->life.comm, TASK_COMM_LEN, t->comm);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* The current thread's state if its process is traced, else NULL. */
static __always_inline struct thread_state *traced_thread(struct task_struct *t)
{
	struct thread_state *st = bpf_task_storage_get(&threads, t, 0, 0);
	__u32 now = epoch;
	bool fresh = false;

	if (!st) {
		if (!target_flags(t->tgid))
			return 0;
		st = bpf_task_storage_get(&threads, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!st) {
			count_lost(MT_LOST_STATE);
			return 0;
		}
		fresh = true;
	}
	if (st->epoch != now) {
		st->traced = target_flags(t->tgid);
		st->epoch = now;
	}
	if (!st->traced)
		return 0;
	if (fresh)
		tell_comm(t);
	return st;
}

/* Asking the ring for its fill costs as much as a submit: every eighth hit of a thread asks. */
static __always_inline __u64 wake_flags(__u64 seq)
{
	if ((seq & 7) || woken || bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < fill_mark)
		return BPF_RB_NO_WAKEUP;
	woken = 1;
	return BPF_RB_FORCE_WAKEUP;
}

/*
 * The record in a slot of `max` bytes of data. `fill` puts the data there; non-zero: it could not be read.
 * One class per size: a reservation's size has to be a constant.
 */
#define PUT(max, fill)                                                                \
	do {                                                                          \
		struct {                                                              \
			struct mt_wire head;                                          \
			__u64 data[(max) / 8];                                        \
		} *r = bpf_ringbuf_reserve(&ring, sizeof(struct mt_wire) + (max), 0); \
		if (!r) {                                                             \
			count_lost(MT_LOST_RING);                                     \
			return 0;                                                     \
		}                                                                     \
		head(&r->head, t, MT_WIRE_NATIVE, sizeof(struct mt_wire) + size);     \
		r->head.flags = MT_WIRE_F_SEQ;                                        \
		r->head.site = bpf_get_attach_cookie(ctx);                            \
		r->head.seq = seq;                                                    \
		if (fill) {                                                           \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);                     \
			count_lost(MT_LOST_READ);                                     \
			return 0;                                                     \
		}                                                                     \
		bpf_ringbuf_submit(r, wake_flags(seq));                               \
		return 0;                                                             \
	} while (0)

#define PUT_MEMORY(max) PUT(max, bpf_probe_read_user(r->data, size, from))

/* Registers that carry the record's words, in order (montrace.h, montrace__probe). */
#if defined(__TARGET_ARCH_x86)
#define WORD0(c) ((c)->dx)
#define WORD1(c) ((c)->cx)
#define WORD2(c) ((c)->r8)
#define WORD3(c) ((c)->r9)
#define WORD4(c) ((c)->ax)
#define WORD5(c) ((c)->r10)
#else
#define WORD0(c) ((c)->user_regs.regs[2])
#define WORD1(c) ((c)->user_regs.regs[3])
#define WORD2(c) ((c)->user_regs.regs[4])
#define WORD3(c) ((c)->user_regs.regs[5])
#define WORD4(c) ((c)->user_regs.regs[6])
#define WORD5(c) ((c)->user_regs.regs[7])
#endif

static __always_inline int fill_with_ids(__u64 *data, struct pt_regs *ctx)
{
	data[0] = WORD0(ctx);
	data[1] = WORD1(ctx);
	data[2] = WORD2(ctx);
	data[3] = WORD3(ctx);
	data[4] = WORD4(ctx);
	data[5] = WORD5(ctx);
	return 0;
}

static __always_inline int fill_without_ids(__u64 *data, struct pt_regs *ctx)
{
	data[0] = WORD0(ctx);
	data[1] = 0;
	data[2] = 0;
	data[3] = WORD1(ctx);
	data[4] = WORD2(ctx);
	data[5] = WORD3(ctx);
	data[6] = WORD4(ctx);
	data[7] = WORD5(ctx);
	return 0;
}

#define RF_NO_IDS 32 /* MONTRACE_RF_NO_IDS */

static __always_inline int native_hit(struct pt_regs *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct thread_state *st = traced_thread(t);
	__u64 size, seq, word0;
	const void *from;

	if (!st)
		return 0;
	seq = st->seq++;
	from = (const void *)PT_REGS_PARM1(ctx);
	size = PT_REGS_PARM2(ctx);
	if (size < RECORD_MIN || size > RECORD_MAX) {
		count_lost(MT_LOST_SIZE);
		return 0;
	}
	word0 = WORD0(ctx);
	if ((word0 & 0xffff) == size) { /* the record's own size: it is in the registers */
		if (size <= 64 && (word0 >> 32 & RF_NO_IDS))
			PUT(64, fill_without_ids(r->data, ctx));
		if (size <= 48 && !(word0 >> 32 & RF_NO_IDS))
			PUT(64, fill_with_ids(r->data, ctx));
	}
	if (size <= 64)
		PUT_MEMORY(64);
	if (size <= 128)
		PUT_MEMORY(128);
	if (size <= 256)
		PUT_MEMORY(256);
	if (size <= 1024)
		PUT_MEMORY(1024);
	PUT_MEMORY(4096);
}

SEC("uprobe.multi")
int mt_native_multi(struct pt_regs *ctx)
{
	return native_hit(ctx);
}

SEC("uprobe")
int mt_native_single(struct pt_regs *ctx)
{
	return native_hit(ctx);
}

#include "foreign.h"

__u64 trial_hits = 0;

/* Counts: for the trial on our own code, which tells what this kernel can do. */
SEC("uprobe.multi")
int mt_trial(struct pt_regs *ctx)
{
	__sync_fetch_and_add(&trial_hits, 1);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(mt_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 flags, tgid = child->tgid;
	struct life_record *r;

	if (child->pid != child->tgid)
		return 0; /* a thread */
	flags = target_flags(parent->tgid);
	if (!flags)
		return 0;
	/* From its first instruction on, if children are followed. */
	if ((flags & MT_TARGET_FOLLOW) && bpf_map_update_elem(&targets, &tgid, &flags, BPF_ANY))
		count_lost(MT_LOST_LIFE);
	r = life_begin(parent, MT_WIRE_FORK);
	if (!r)
		return 0;
	r->life.child = tgid;
	r->life.child_start = child->start_boottime;
	bpf_probe_read_kernel_str(r->life.comm, TASK_COMM_LEN, child->comm);
	bpf_ringbuf_submit(r, (flags & MT_TARGET_FOLLOW) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void exe_key(struct linux_binprm *bprm, struct mt_exe_key *key)
{
	key->inode = BPF_CORE_READ(bprm, file, f_inode, i_ino);
	key->dev = BPF_CORE_READ(bprm, file, f_inode, i_sb, s_dev);
	key->zero = 0;
}

/* Stops the process before its first instruction. If it cannot be noted down, it is not stopped either. */
static __always_inline bool hold(__u32 tgid, const struct mt_exe_key *key)
{
	__u32 one = 1;

	if (!hold_execs || bpf_map_lookup_elem(&known, key) ||
	    bpf_map_update_elem(&held, &tgid, &one, BPF_ANY))
		return false;
	if (!bpf_send_signal(SIGSTOP))
		return true;
	bpf_map_delete_elem(&held, &tgid);
	return false;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(mt_exec, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	__u32 tgid = t->tgid, flags = target_flags(tgid), *exe;
	struct mt_exe_key key = {};
	struct life_record *r;
	bool left;

	exe_key(bprm, &key);
	exe = bpf_map_lookup_elem(&exes, &key);
	/* A process that runs one of `exes` now is traced before its first instruction. */
	if (exe && (flags & *exe) != *exe) {
		flags |= flags ? *exe & ~MT_TARGET_FILE : *exe;
		if (bpf_map_update_elem(&targets, &tgid, &flags, BPF_ANY))
			count_lost(MT_LOST_LIFE);
		__sync_fetch_and_add(&epoch, 1);
	}
	left = !exe && (flags & MT_TARGET_FILE);
	if (left) { /* it was one for the file that it ran */
		flags = 0;
		bpf_map_delete_elem(&targets, &tgid);
		__sync_fetch_and_add(&epoch, 1);
	}
	if (!flags && !left && !report_execs)
		return 0;
	r = life_begin(t, MT_WIRE_EXEC);
	if (!r)
		return 0;
	r->life.status = flags;
	r->life.child = key.dev;
	r->life.child_start = key.inode;
	if (flags && hold(tgid, &key))
		r->life.status |= MT_TARGET_HELD;
	if (flags && old_pid != t->pid)
		r->life.status |= MT_TARGET_MOVED;
	bpf_probe_read_kernel_str(r->life.comm, TASK_COMM_LEN, t->comm);
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(mt_rename, struct task_struct *t, const char *comm)
{
	struct life_record *r;

	if (!target_flags(t->tgid))
		return 0;
	r = life_begin(t, MT_WIRE_COMM);
	if (!r)
		return 0;
	bpf_probe_read_kernel_str(r->life.comm, TASK_COMM_LEN, comm);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(mt_exit, struct task_struct *t)
{
	__u32 tgid = t->tgid;
	struct thread_state *st;
	struct life_record *r;
	int code;

	if (!target_flags(tgid))
		return 0;
	r = life_begin(t, MT_WIRE_THREAD_EXIT);
	if (!r)
		return 0;
	st = bpf_task_storage_get(&threads, t, 0, 0);
	if (st) {
		r->head.flags |= MT_WIRE_F_SEQ;
		r->head.seq = st->seq;
	}
	bpf_probe_read_kernel_str(r->life.comm, TASK_COMM_LEN, t->comm);
	/* `live` was counted down before: zero for the last thread (twice, if two leave at once). */
	if (t->signal->live.counter == 0) {
		code = t->signal->group_exit_code;
		if (!code)
			code = t->exit_code;
		r->head.flags |= MT_WIRE_F_GROUP_DEAD;
		r->life.status = code;
		bpf_map_delete_elem(&targets, &tgid);
		bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
		return 0;
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}
