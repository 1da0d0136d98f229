/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where packets go: a file or memory.
 *
 * O1  Only whole packets are handed to the system: a reader that stops at any moment between two
 *     writes, or a tracer that is killed, leaves a file of whole packets plus at most one torn one
 *     at the very end (a killed write); never a torn one in the middle.
 * O2  The first error sticks: later calls return it and write nothing. A partly written batch is cut
 *     back to the last whole packet (ftruncate) where the file allows it.
 * O3  An existing file is never truncated or overwritten: creation is O_EXCL.
 */
#ifndef MT_OUT_H
#define MT_OUT_H

#include <stddef.h>
#include <stdint.h>

struct mt_out;

struct mt_out_ops {
	int (*write)(struct mt_out *o, const void *data, size_t len); /* len bytes of whole packets */
	int (*sync)(struct mt_out *o);                                /* NULL: nothing to do */
	int (*close)(struct mt_out *o);                               /* frees o */
};

/* Common head of every out; the rest is out.c's (or a test's) own. */
struct mt_out {
	const struct mt_out_ops *ops;
	int error;          /* 0 or the sticky -errno */
	uint64_t bytes;     /* handed over so far, buffered ones included */
	unsigned char *buf; /* whole packets not written yet */
	size_t buf_len, buf_cap;
};

/*
 * Takes over fd (closed by mt_out_close, also after an error here). The file's present end is where
 * writing starts. buf_cap: bytes to collect before a write, 0 = default (256 KiB).
 */
int mt_out_fd(int fd, size_t buf_cap, struct mt_out **ret_out);

/* Packets in memory, for tests and dumps; *data and *len are valid until the next put or close. */
int mt_out_mem(struct mt_out **ret_out);
void mt_out_mem_data(struct mt_out *o, const void **ret_data, size_t *ret_len);

/*
 * Creates path, exclusively, mode 0640, without following a symlink in the last component.
 * -EEXIST if there is something of that name. *ret_fd is the caller's.
 */
int mt_out_create(int dirfd, const char *path, int *ret_fd);

/* Appends whole packets (framed already). Returns 0 or the sticky error. */
int mt_out_put(struct mt_out *o, const void *packets, size_t len);

/* Hands everything buffered to the system (no fsync). 0 or the sticky error. */
int mt_out_flush(struct mt_out *o);

/* Flushes, closes, frees; NULL is fine. Returns the first error there ever was. */
int mt_out_close(struct mt_out *o);

#endif
