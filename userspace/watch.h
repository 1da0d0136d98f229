/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells which processes map code (load a library): by the kernel's mmap events of the perf subsystem,
 * one ring per CPU for the whole system; only executable mappings are told, so they are rare.
 */
#ifndef MT_WATCH_H
#define MT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct mt_watch;

/* -EACCES, -ENOENT, ...: this kernel or these rights do not allow it; the caller looks from time to time
 * instead. */
int mt_watch_open(struct mt_watch **ret_watch);
void mt_watch_close(struct mt_watch *w); /* NULL is fine */

/* Descriptors to wait on (readable = something to read); n of them. */
int mt_watch_nfds(const struct mt_watch *w);
int mt_watch_fd(const struct mt_watch *w, int i);

/* The process that made a mapping, and of which file: device (major << 20 | minor) and inode as in its maps. */
typedef void mt_watch_cb(void *ctx, uint32_t pid, uint32_t dev, uint64_t inode);

/*
 * Calls cb for each mapping since the last call; it may be called several times for one process. Returns false if
 * some were lost (then any process may have mapped anything).
 */
bool mt_watch_read(struct mt_watch *w, mt_watch_cb *cb, void *ctx);

#endif
