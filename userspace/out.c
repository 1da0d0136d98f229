/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets -> file, pipe or memory.
 *
 * Idea: everything that passes here is a run of whole framed packets (0x0A, varint length, payload),
 * so the only place where a packet can be torn is a write that the system took in part. After such a
 * failure the batch's own framing tells where its last whole packet ends, and the file is cut there:
 * what was written whole is kept, the torn rest goes.
 *
 *  1. buf holds whole packets only; one write() call never starts inside a packet unless the call
 *     before it took part of the batch.
 *  2. fd_out.pos is the file's length after the last batch that was written in full.
 *  3. After the first error nothing is written any more, not even what is still in buf.
 *
 * Example: pos is 1000, the batch has packets of 40, 50 and 60 bytes, the disk fills up after 70.
 * 40 of these 70 are a whole packet: the file is cut to 1040, the error is -ENOSPC for ever.
 *
 * What it does not do: look into packets; retry after an error; cut a pipe. It does not touch
 * SIGPIPE and SIGXFSZ either: who wants an error instead of a signal ignores these.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "out.h"

#define OUT_DEFAULT_CAP (256u * 1024)

struct fd_out {
	struct mt_out o;
	int fd;
	bool regular; /* pos is known and the file can be cut */
	uint64_t pos;
};

struct mem_out {
	struct mt_out o;
	unsigned char *data;
	size_t len, cap;
};

/* Longest prefix of data[0..len) that is whole packets, looking at the first `max` bytes only. */
static size_t whole_prefix(const unsigned char *data, size_t len, size_t max)
{
	size_t at = 0;

	while (at < len) {
		uint64_t size = 0;
		size_t p = at + 1;
		unsigned shift = 0;

		if (data[at] != 0x0a)
			break;
		while (p < len && shift < 35) {
			size |= (uint64_t)(data[p] & 0x7f) << shift;
			shift += 7;
			if (!(data[p++] & 0x80))
				break;
		}
		if (p > max || size > max - p)
			break;
		at = p + (size_t)size;
	}
	return at;
}

/* Writes all of it; *ret_done says how far it came, also after an error. */
static int write_all(int fd, const unsigned char *data, size_t len, size_t *ret_done)
{
	size_t done = 0;
	int r = 0;

	while (done < len) {
		ssize_t n = write(fd, data + done, len - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0) {
			r = -EIO;
			break;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			struct pollfd pfd = {.fd = fd, .events = POLLOUT};

			if (poll(&pfd, 1, -1) < 0 && errno != EINTR) {
				r = -errno;
				break;
			}
		} else if (errno != EINTR) {
			r = -errno;
			break;
		}
	}
	*ret_done = done;
	return r;
}

static int fd_write(struct mt_out *o, const void *data, size_t len)
{
	struct fd_out *f = (struct fd_out *)o;
	size_t done, whole;
	int r;

	r = write_all(f->fd, data, len, &done);
	if (r == 0) {
		f->pos += len;
		return 0;
	}
	if (f->regular && done > 0) {
		whole = whole_prefix(data, len, done);
		/* If even this fails the torn packet stays, as the last thing in the file. */
		if (ftruncate(f->fd, (off_t)(f->pos + whole)) == 0)
			f->pos += whole;
	}
	return r;
}

static int fd_sync(struct mt_out *o)
{
	struct fd_out *f = (struct fd_out *)o;

	if (f->regular && fdatasync(f->fd) < 0 && errno != EINVAL && errno != ENOSYS)
		return -errno;
	return 0;
}

static int fd_close(struct mt_out *o)
{
	struct fd_out *f = (struct fd_out *)o;
	int r = 0;

	/* EINTR: Linux has closed it all the same. */
	if (close(f->fd) < 0 && errno != EINTR)
		r = -errno;
	free(o->buf);
	free(f);
	return r;
}

static const struct mt_out_ops fd_ops = {
	.write = fd_write,
	.sync = fd_sync,
	.close = fd_close,
};

int mt_out_fd(int fd, size_t buf_cap, struct mt_out **ret_out)
{
	struct fd_out *f;
	struct stat st;
	off_t end;

	if (fstat(fd, &st) < 0)
		return -errno;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->o.ops = &fd_ops;
	f->o.buf_cap = buf_cap ? buf_cap : OUT_DEFAULT_CAP;
	f->o.buf = malloc(f->o.buf_cap);
	if (!f->o.buf) {
		free(f);
		return -ENOMEM;
	}
	f->fd = fd;
	if (S_ISREG(st.st_mode)) {
		end = lseek(fd, 0, SEEK_END);
		if (end >= 0) {
			f->regular = true;
			f->pos = (uint64_t)end;
		}
	}
	*ret_out = &f->o;
	return 0;
}

static int mem_write(struct mt_out *o, const void *data, size_t len)
{
	struct mem_out *m = (struct mem_out *)o;

	if (len > m->cap - m->len) {
		size_t cap = m->cap ? m->cap : 64u * 1024;
		unsigned char *p;

		if (len > SIZE_MAX / 4 - m->len)
			return -ENOMEM;
		while (cap < m->len + len)
			cap *= 2;
		p = realloc(m->data, cap);
		if (!p)
			return -ENOMEM;
		m->data = p;
		m->cap = cap;
	}
	memcpy(m->data + m->len, data, len);
	m->len += len;
	return 0;
}

static int mem_close(struct mt_out *o)
{
	struct mem_out *m = (struct mem_out *)o;

	free(m->data);
	free(m);
	return 0;
}

static const struct mt_out_ops mem_ops = {
	.write = mem_write,
	.close = mem_close,
};

int mt_out_mem(struct mt_out **ret_out)
{
	struct mem_out *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->o.ops = &mem_ops;
	*ret_out = &m->o;
	return 0;
}

void mt_out_mem_data(struct mt_out *o, const void **ret_data, size_t *ret_len)
{
	struct mem_out *m = (struct mem_out *)o;

	*ret_data = m->data;
	*ret_len = m->len;
}

int mt_out_create(int dirfd, const char *path, int *ret_fd)
{
	int fd;

	fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int put_error(struct mt_out *o, int r)
{
	if (r < 0 && !o->error)
		o->error = r;
	return o->error;
}

int mt_out_put(struct mt_out *o, const void *packets, size_t len)
{
	if (o->error)
		return o->error;
	if (len == 0)
		return 0;
	if (len > o->buf_cap - o->buf_len) {
		if (mt_out_flush(o) < 0)
			return o->error;
	}
	o->bytes += len;
	if (len >= o->buf_cap)
		return put_error(o, o->ops->write(o, packets, len));
	memcpy(o->buf + o->buf_len, packets, len);
	o->buf_len += len;
	return 0;
}

int mt_out_flush(struct mt_out *o)
{
	size_t len = o->buf_len;

	if (o->error || len == 0)
		return o->error;
	o->buf_len = 0;
	return put_error(o, o->ops->write(o, o->buf, len));
}

int mt_out_close(struct mt_out *o)
{
	int first, r;

	if (!o)
		return 0;
	mt_out_flush(o);
	if (!o->error && o->ops->sync)
		put_error(o, o->ops->sync(o));
	first = o->error;
	r = o->ops->close(o);
	return first ? first : r;
}
