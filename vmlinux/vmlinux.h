/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The kernel types that the BPF program touches, and only their members that it reads. CO-RE moves the
 * accesses to where a running kernel has them, so order and size here mean nothing and a build needs no
 * kernel with BTF. pt_regs is the exception: its layout is user ABI.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
};
#endif

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
};

struct block_device;

struct super_block {
	unsigned int s_dev;
	struct block_device *s_bdev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct userfaultfd_ctx;

struct vm_userfaultfd_ctx {
	struct userfaultfd_ctx *ctx;
};

struct vm_area_struct {
	unsigned long vm_flags;
	struct file *vm_file;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
};

struct linux_binprm {
	struct file *file;
};

#if defined(__TARGET_ARCH_x86)
struct desc_struct {
	__u16 limit0;
	__u16 base0;
};

struct thread_struct {
	struct desc_struct tls_array[3];
	unsigned short gsindex;
	unsigned long fsbase;
};
#endif

struct task_struct {
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
	int pid;
	int tgid;
	int exit_code;
	__u64 start_boottime;
	char comm[16];
	struct signal_struct *signal;
};

#pragma clang attribute pop

#endif
