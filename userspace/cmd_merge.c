/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many traces -> one.
 *
 * The importer sorts by time, so files may simply follow each other in the merged trace, if nothing in one
 * can be taken for something of another. Each input is read twice, so that memory does not grow with its
 * events: the first reading decodes all of it and says where the good part ends, what tracks it has and how
 * its clocks stand; then it is decided, for all of them, what is the same and what is not; the second
 * reading copies the packets and changes numbers.
 *
 *  M1  Every input's sequences get numbers of their own: interned texts and delta clocks stay theirs.
 *  M2  One uuid is one track: the same kind, pid, tid, name and parent on the same host, recorded one file
 *      after the other. Everything else that has the same uuid gets a new one. Only files that say their
 *      boot id are believed that equal uuids mean the same; and a track that was left open, or recorded twice
 *      at the same time, does not go on.
 *  M3  A host is a boot id. With several, every packet has a machine id from 1, names of processes say the
 *      host, flow ids are mixed with it.
 *  M4  All times are on the boot clock of one host, the one that was booted first. Others are moved by the
 *      distance that the wall clocks in the files give.
 *  M5  Snapshots of main clocks stand at the head, that host's, in order. Files are in order of their first
 *      time, so that what goes on in another file comes after it, also at equal times.
 *  M6  Only whole, good packets are copied: a torn end or damage costs what comes after it in that file.
 *  M7  Losses stay where they are (instants, records of the kernel's); totals are added up.
 *
 * Example: a.pftrace has sequences 1, 2 and track 5 (pid 7), b.pftrace sequences 1, 2 and track 5 (pid 8).
 * Merged: head 1; a's 2, 3 and track 5; b's 4, 5 and track 4242, which the description and all events of
 * b's pid 8 have.
 *
 * What it does not do: sort; join slices that one file opens and another ends; correct wall clocks.
 */
#include <stdarg.h>
#include <sys/random.h>

#include "merge_int.h"

int mg_fail(struct merge *m, int err, const char *fmt, ...)
{
	va_list ap;

	if (err && !m->err->text[0]) {
		va_start(ap, fmt);
		vsnprintf(m->err->text, sizeof(m->err->text), fmt, ap);
		va_end(ap);
	}
	return err;
}

static int begin(struct merge *m)
{
	uint32_t n = m->opts->ninputs;

	m->err->text[0] = 0;
	if (n > MT_MERGE_MAX_FILES)
		return mg_fail(m, -EFBIG, "more than %u files", MT_MERGE_MAX_FILES);
	/* Without randomness a file could be made slow to read, no more. */
	if (getrandom(&m->seed, sizeof(m->seed), GRND_NONBLOCK) < 0)
		m->seed = (uint64_t)(uintptr_t)m->opts;
	m->files = calloc((size_t)n + 1, sizeof(*m->files));
	m->order = calloc((size_t)n + 1, sizeof(*m->order));
	m->attrs = calloc(MG_MAX_ATTRS, sizeof(*m->attrs));
	for (uint32_t i = 0; i < n; i++) {
		struct mt_merge_input *in = &m->opts->inputs[i];

		*in = (struct mt_merge_input){
			.fd = in->fd, .name = in->name, .listed = in->listed, .error = in->error, .why = ""};
	}
	return m->files && m->order && m->attrs ? 0 : -ENOMEM;
}

static void end(struct merge *m)
{
	for (uint32_t i = 0; m->files && i < m->opts->ninputs; i++) {
		free(m->files[i].system);
		free(m->files[i].tracks);
		free(m->files[i].snaps);
		pt_map_free(&m->files[i].by_uuid);
	}
	free(m->files);
	free(m->order);
	free(m->hosts);
	free(m->attrs);
	free(m->known);
	pt_map_free(&m->uuids);
	mg_free(&m->pkt);
	mg_free(&m->pend);
	mg_free(&m->zbuf);
	mg_free(&m->stats);
	if (m->z_ready)
		deflateEnd(&m->z);
}

static int run(struct merge *m)
{
	int r = begin(m);

	if (!r)
		r = mg_peek_all(m);
	for (uint32_t i = 0; !r && i < m->opts->ninputs; i++) {
		if (m->files[i].in->status == MT_MERGE_TAKEN)
			r = mg_scan(m, &m->files[i]);
	}
	if (!r)
		r = mg_plan(m);
	if (r < 0)
		return r;
	m->next_seq = m->nhosts + 1;
	/* The head stays uncompressed: whoever looks at the first bytes sees what the file is. */
	r = mg_head(m);
	if (!r && m->opts->compress)
		r = mg_compress_start(m);
	for (uint32_t i = 0; !r && i < m->norder; i++)
		r = mg_copy_file(m, &m->files[m->order[i]]);
	if (!r)
		r = mg_tail(m);
	if (!r) {
		r = mt_out_flush(m->opts->out);
		if (r < 0)
			mg_fail(m, r, "output: %s", strerror(-r));
	}
	return r;
}

int mt_merge(const struct mt_merge_opts *opts, struct mt_merge_report *ret_report, struct mt_merge_err *err)
{
	struct merge m = {.opts = opts, .err = err};
	int r = run(&m);

	if (r > 0) /* a packet of ours that is too large: too many files' attributes or statistics */
		r = -EFBIG;
	if (r < 0)
		mg_fail(&m, r, "merge: %s", strerror(-r));
	else
		*ret_report = m.rep;
	end(&m);
	return r;
}
