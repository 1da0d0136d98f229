/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_event_open(2): a software event that never counts (DUMMY), with `mmap2`, on each CPU and for every
 * process. The kernel writes PERF_RECORD_MMAP2 when code is mapped, after the mapping is there.
 * The kernel wakes the reader when a ring is half full, not for each record: a system that starts thousands of
 * processes a second would keep it busy. So the reader also looks by itself from time to time.
 * Rings: one page of control (struct perf_event_mmap_page) and WATCH_PAGES of data; a record may wrap.
 */
#include "watch.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WATCH_PAGES 16

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

struct mt_watch {
	int n;
	size_t bytes; /* of data in a ring */
	struct ring rings[];
};

static int ring_open(struct ring *r, int cpu, size_t page)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap2 = 1,
	};

	r->fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	r->page = mmap(NULL, (1 + WATCH_PAGES) * page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return -errno;
	}
	return 0;
}

int mt_watch_open(struct mt_watch **ret_watch)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), page = sysconf(_SC_PAGESIZE), cpu;
	struct mt_watch *w;
	int err = 0;

	w = calloc(1, sizeof(*w) + (size_t)cpus * sizeof(w->rings[0]));
	if (!w)
		return -ENOMEM;
	w->bytes = (size_t)page * WATCH_PAGES;
	for (cpu = 0; cpu < cpus; cpu++) {
		err = ring_open(&w->rings[w->n], (int)cpu, (size_t)page);
		if (err == -ENODEV)
			continue; /* a CPU that is off */
		w->n++;
		if (err)
			break;
	}
	if (err && err != -ENODEV) {
		mt_watch_close(w);
		return err;
	}
	*ret_watch = w;
	return 0;
}

void mt_watch_close(struct mt_watch *w)
{
	int i;

	if (!w)
		return;
	for (i = 0; i < w->n; i++) {
		if (w->rings[i].page)
			munmap(w->rings[i].page, w->bytes + (size_t)sysconf(_SC_PAGESIZE));
		if (w->rings[i].fd >= 0)
			close(w->rings[i].fd);
	}
	free(w);
}

int mt_watch_nfds(const struct mt_watch *w)
{
	return w->n;
}

int mt_watch_fd(const struct mt_watch *w, int i)
{
	return w->rings[i].fd;
}

/* Copies n bytes at a ring position, which may wrap. */
static void ring_copy(const struct mt_watch *w, const struct ring *r, uint64_t pos, void *dst, size_t n)
{
	const char *data = (const char *)r->page + r->page->data_offset;
	size_t at = pos % w->bytes, first = n < w->bytes - at ? n : w->bytes - at;

	memcpy(dst, data + at, first);
	memcpy((char *)dst + first, data, n - first);
}

/* Of PERF_RECORD_MMAP2, behind its header. */
struct mapped {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t major, minor;
	uint64_t inode;
};

static bool ring_read(const struct mt_watch *w, struct ring *r, mt_watch_cb *cb, void *ctx)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), pos = r->page->data_tail;
	struct perf_event_header h;
	bool whole = true;
	struct mapped m;

	while (head - pos >= sizeof(h)) {
		ring_copy(w, r, pos, &h, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - pos)
			break;
		if (h.type == PERF_RECORD_MMAP2 && h.size >= sizeof(h) + sizeof(m)) {
			ring_copy(w, r, pos + sizeof(h), &m, sizeof(m));
			cb(ctx, m.pid, m.major << 20 | m.minor, m.inode);
		} else if (h.type == PERF_RECORD_LOST) {
			whole = false;
		}
		pos += h.size;
	}
	__atomic_store_n(&r->page->data_tail, pos, __ATOMIC_RELEASE);
	return whole;
}

bool mt_watch_read(struct mt_watch *w, mt_watch_cb *cb, void *ctx)
{
	bool whole = true;
	int i;

	for (i = 0; i < w->n; i++)
		whole &= ring_read(w, &w->rings[i], cb, ctx);
	return whole;
}
