/* SPDX-License-Identifier: BSD-3-Clause */
/* A tiny protobuf writer for tests of readers. Shares nothing with the real one. */
#ifndef TRACE_ENC_H
#define TRACE_ENC_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct enc {
	unsigned char b[1 << 18];
	size_t n;
};

static inline void e_raw(struct enc *e, const void *p, size_t n)
{
	assert(e->n + n <= sizeof(e->b));
	memcpy(e->b + e->n, p, n);
	e->n += n;
}

static inline void e_var(struct enc *e, uint64_t v)
{
	do {
		unsigned char c = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));

		e_raw(e, &c, 1);
		v >>= 7;
	} while (v);
}

static inline void e_u(struct enc *e, unsigned num, uint64_t v)
{
	e_var(e, num * 8);
	e_var(e, v);
}

static inline void e_f64(struct enc *e, unsigned num, uint64_t v)
{
	e_var(e, num * 8 + 1);
	e_raw(e, &v, 8);
}

static inline void e_dbl(struct enc *e, unsigned num, double d)
{
	e_var(e, num * 8 + 1);
	e_raw(e, &d, 8);
}

static inline void e_bytes(struct enc *e, unsigned num, const void *p, size_t n)
{
	e_var(e, num * 8 + 2);
	e_var(e, n);
	e_raw(e, p, n);
}

static inline void e_s(struct enc *e, unsigned num, const char *s)
{
	e_bytes(e, num, s, strlen(s));
}

/* A message inside: m = e_open(), its fields, e_close(m). */
static inline size_t e_open(struct enc *e, unsigned num)
{
	e_var(e, num * 8 + 2);
	return e->n;
}

static inline void e_close(struct enc *e, size_t m)
{
	size_t len = e->n - m;
	struct {
		unsigned char b[10];
		size_t n;
	} head = {.n = 0};

	for (size_t v = len;; v >>= 7) {
		head.b[head.n++] = (unsigned char)((v & 127) | (v > 127 ? 128 : 0));
		if (v <= 127)
			break;
	}
	assert(e->n + head.n <= sizeof(e->b));
	memmove(e->b + m + head.n, e->b + m, len);
	memcpy(e->b + m, head.b, head.n);
	e->n += head.n;
}

/* {iid, text} inside field num */
static inline void e_named(struct enc *e, unsigned num, uint64_t iid, const char *s)
{
	size_t m = e_open(e, num);

	e_u(e, 1, iid);
	e_s(e, 2, s);
	e_close(e, m);
}

static inline size_t e_packet(struct enc *e, uint32_t seq, unsigned flags)
{
	size_t m = e_open(e, 1);

	if (seq)
		e_u(e, 10, seq);
	if (flags)
		e_u(e, 13, flags);
	return m;
}

static inline void e_clock(struct enc *e, unsigned id, uint64_t ts, int incremental, uint64_t unit)
{
	size_t m = e_open(e, 1);

	e_u(e, 1, id);
	e_u(e, 2, ts);
	if (incremental)
		e_u(e, 3, 1);
	if (unit)
		e_u(e, 4, unit);
	e_close(e, m);
}

/* Snapshot of the main clocks; 0 = leave it out. */
static inline void e_snapshot(struct enc *e, uint64_t boot, uint64_t mono, uint64_t real)
{
	size_t p = e_packet(e, 1, 1), m = e_open(e, 6);

	if (boot)
		e_clock(e, 6, boot, 0, 0);
	if (mono)
		e_clock(e, 3, mono, 0, 0);
	if (real)
		e_clock(e, 1, real, 0, 0);
	e_u(e, 2, 6);
	e_close(e, m);
	e_close(e, p);
}

static inline void e_process(struct enc *e, uint64_t uuid, int pid, const char *name)
{
	size_t p = e_packet(e, 1, 0), t = e_open(e, 60), m;

	e_u(e, 1, uuid);
	m = e_open(e, 3);
	e_u(e, 1, (uint64_t)pid);
	e_s(e, 6, name);
	e_close(e, m);
	e_close(e, t);
	e_close(e, p);
}

static inline void e_thread(struct enc *e, uint64_t uuid, uint64_t parent, int pid, int tid, const char *name)
{
	size_t p = e_packet(e, 1, 0), t = e_open(e, 60), m;

	e_u(e, 1, uuid);
	if (parent)
		e_u(e, 5, parent);
	m = e_open(e, 4);
	e_u(e, 1, (uint64_t)pid);
	e_u(e, 2, (uint64_t)tid);
	e_s(e, 5, name);
	e_close(e, m);
	e_close(e, t);
	e_close(e, p);
}

static inline void e_counter(struct enc *e, uint64_t uuid, uint64_t parent, const char *name,
			     uint64_t multiplier, int incremental)
{
	size_t p = e_packet(e, 1, 0), t = e_open(e, 60), m;

	e_u(e, 1, uuid);
	e_u(e, 5, parent);
	e_s(e, 2, name);
	m = e_open(e, 8);
	e_u(e, 3, 3);
	if (multiplier)
		e_u(e, 4, multiplier);
	if (incremental)
		e_u(e, 5, 1);
	e_close(e, m);
	e_close(e, t);
	e_close(e, p);
}

/* Simple event with its name in it. type: 1 begin, 2 end, 3 instant. */
static inline void e_event(struct enc *e, uint64_t ts, uint64_t track, unsigned type, const char *name)
{
	size_t p = e_packet(e, 2, 0), m;

	e_u(e, 8, ts);
	m = e_open(e, 11);
	e_u(e, 9, type);
	e_u(e, 11, track);
	if (name)
		e_s(e, 23, name);
	e_close(e, m);
	e_close(e, p);
}

#endif
