/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Memory of the target, read so that nobody waits: F5 and F6 of foreign.h, which this is a part of. */
#ifndef MT_FOREIGN_READ_H
#define MT_FOREIGN_READ_H

#define VM_PFNMAP 0x400
#define VM_IO 0x4000
#define S_IFMT 0170000
#define S_IFREG 0100000
#define FUSE_MAGIC 0x65735546 /* fuseblk too, which has a block device */
#define E_BUSY 16
#define MAX_TRIES 1024 /* for the lock of the address space: about 50 us */

struct look {
	__u64 at;
	__u32 ok;
	__u32 zero;
};

/* File systems without a block device that ask nobody. */
static __always_inline bool is_local(unsigned long magic)
{
	switch (magic) {
	case 0x01021994: /* tmpfs */
	case 0x858458f6: /* ramfs */
	case 0x958458f6: /* hugetlbfs */
	case 0x9123683e: /* btrfs */
	case 0x794c7630: /* overlayfs */
	case 0x2fc12fc1: /* zfs */
	case 0xca451a4e: /* bcachefs */
		return true;
	}
	return false;
}

static long look_at(struct task_struct *t, struct vm_area_struct *vma, struct look *l)
{
	struct inode *inode;
	unsigned long magic;

	(void)t;
	if (BPF_CORE_READ(vma, vm_flags) & (VM_IO | VM_PFNMAP))
		return 0;
	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx) && BPF_CORE_READ(vma, vm_userfaultfd_ctx.ctx))
		return 0;
	if (!BPF_CORE_READ(vma, vm_file)) {
		l->ok = 1;
		return 0;
	}
	inode = BPF_CORE_READ(vma, vm_file, f_inode);
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	l->ok = (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFREG && magic != FUSE_MAGIC &&
		(is_local(magic) || BPF_CORE_READ(inode, i_sb, s_bdev));
	return 0;
}

/* The lock is only ever tried for: somebody else may be mapping just now. */
static long try_look(__u32 i, struct look *l)
{
	(void)i;
	return bpf_find_vma(bpf_get_current_task_btf(), l->at, look_at, l, 0) != -E_BUSY;
}

/* F6: may the page at that address be touched? */
__noinline int mt_may_touch(__u64 at)
{
	struct look l = {.at = at};

	bpf_loop(MAX_TRIES, try_look, &l, 0);
	return l.ok;
}

static __always_inline bool may_touch(__u64 from, __u64 size)
{
	__u64 last = from + size - 1;

	return mt_may_touch(from) && (from >> 12 == last >> 12 || mt_may_touch(last));
}

static __always_inline long read_user(void *to, __u64 size, __u64 from, bool may_fault)
{
	long r = bpf_probe_read_user(to, size, (const void *)from);

	if (r && may_fault && may_touch(from, size))
		r = bpf_copy_from_user(to, size, (const void *)from); /* F5 */
	return r;
}

/* Length with the NUL; or an error. */
static __always_inline long read_text(void *to, __u64 size, __u64 from, bool may_fault)
{
	long r = bpf_probe_read_user_str(to, size, (const void *)from);
	char c;

	if (r >= 0 || !may_fault)
		return r;
	/* size is less than a page: two pages at most. The text may end before the second. */
	if (!mt_may_touch(from) || bpf_copy_from_user(&c, 1, (const void *)from))
		return r;
	from += size - 1;
	if (mt_may_touch(from))
		bpf_copy_from_user(&c, 1, (const void *)from);
	from -= size - 1;
	return bpf_probe_read_user_str(to, size, (const void *)from);
}

#endif
