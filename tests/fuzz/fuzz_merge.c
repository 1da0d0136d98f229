/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as up to four traces: merged, and the result read. Whatever goes in, what comes out is a good
 * trace in which the inputs' own events are, no more and no less, at their times.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_merge.h"
#include "ptread.h"

#define MAX_IN 4

static void check(int ok)
{
	if (!ok)
		abort();
}

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", 0);

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

/* What a reader is told, without order and without what a merge may change: a sum of hashes. */
struct told {
	uint64_t n, sum;
	bool times; /* they are not moved */
};

static uint64_t mix(uint64_t h, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return h ^ h >> 29;
}

static int tell(void *ctx, const struct mt_pt_event *ev)
{
	struct told *t = ctx;
	uint64_t h = mix(ev->kind + 1, ev->name.p, ev->name.len);

	if (ev->kind > MT_PT_COUNTER)
		return 0;
	h = mix(h, ev->cat.p, ev->cat.len);
	h = mix(h, ev->file.p, ev->file.len);
	h = mix(h, &ev->line, sizeof(ev->line));
	h = mix(h, &ev->nflows, sizeof(ev->nflows));
	if (ev->has_ts && t->times)
		h = mix(h, &ev->ts, sizeof(ev->ts));
	for (uint32_t i = 0; i < ev->nargs; i++) {
		const struct mt_pt_arg *a = &ev->args[i];

		h = mix(h, a->name.p, a->name.len);
		h = mix(h, &a->type, 1);
		if (a->type == MT_PT_ARG_STR || a->type == MT_PT_ARG_TEXT)
			h = mix(h, a->s.p, a->s.len);
		else if (a->type != MT_PT_ARG_NONE)
			h = mix(h, &a->u, sizeof(a->u));
	}
	t->n++;
	t->sum += h;
	return 0;
}

/* Adds what the trace says to *t. Returns how many things were beyond what is kept. */
static uint64_t read_trace(const void *data, size_t size, struct told *t, struct mt_ptread_info *ret_info)
{
	struct mt_ptread *r;

	check(mt_ptread_new(&r) == 0);
	mt_ptread_mem(r, data, size, tell, t);
	*ret_info = *mt_ptread_info(r);
	mt_ptread_free(r);
	return ret_info->over_limit + ret_info->zstd;
}

static void check_result(const struct mt_merge_opts *o, const struct mt_merge_report *rep,
			 const uint8_t **data, const size_t *len)
{
	struct told in = {.times = rep->hosts == 1}, out = {.times = rep->hosts == 1};
	struct mt_ptread_info info, result;
	uint64_t skipped = 0, conflicts = 0;
	const void *bytes;
	size_t n;

	mt_out_mem_data(o->out, &bytes, &n);
	skipped += read_trace(bytes, n, &out, &result);
	for (uint32_t i = 0; i < o->ninputs; i++) {
		const struct mt_merge_input *f = &o->inputs[i];

		check(f->bytes + f->torn <= len[i]);
		check(f->status != MT_MERGE_DUPLICATE || (f->same < o->ninputs && f->same != i));
		if (f->status != MT_MERGE_TAKEN)
			continue;
		skipped += f->skipped + read_trace(data[i], f->bytes, &in, &info);
		conflicts += info.conflicts;
		check(info.bytes == f->bytes && !info.truncated && !*info.why);
	}
	check(!*result.why && !result.truncated && !result.padding);
	check(result.bad_snapshots == 0);
	check(conflicts || !result.conflicts);
	if (!skipped) {
		check(in.n == out.n);
		check(in.sum == out.sum);
	}
}

/* The first byte says how many files and whether to compress; then each file is a length and bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mt_merge_input in[MAX_IN];
	const uint8_t *bytes[MAX_IN];
	size_t len[MAX_IN];
	struct mt_merge_opts o = {.inputs = in};
	struct mt_merge_report rep;
	struct mt_merge_err err;

	if (!size)
		return 0;
	o.compress = data[0] & 4;
	o.ninputs = 1 + (data[0] & 3);
	data++;
	size--;
	for (uint32_t i = 0; i < o.ninputs; i++) {
		size_t n = size;

		if (i + 1 < o.ninputs && size >= 2) {
			n = (size_t)data[0] << 4 | (data[1] & 15);
			data += 2;
			size -= 2;
			n = n < size ? n : size;
		}
		bytes[i] = data;
		len[i] = n;
		in[i] = (struct mt_merge_input){.fd = file_of(data, n), .name = "x"};
		data += n;
		size -= n;
	}
	check(mt_out_mem(&o.out) == 0);
	if (!mt_merge(&o, &rep, &err)) {
		mt_out_flush(o.out);
		check_result(&o, &rep, bytes, len);
	} else {
		check(err.text[0]);
	}
	mt_out_close(o.out);
	for (uint32_t i = 0; i < o.ninputs; i++)
		close(in[i].fd);
	return 0;
}
