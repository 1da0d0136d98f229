/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sink that writes a Perfetto trace: packets -> out.
 * Field numbers and importer behaviour: docs/pftrace.md.
 */
#ifndef MT_PFTRACE_H
#define MT_PFTRACE_H

#include "out.h"
#include "sink.h"

/* Three clocks read together, ns. */
struct mt_clocks {
	uint64_t boot, mono, real;
};

struct mt_pftrace_opts {
	/* Reads the clocks (session: the real ones; tests: fixed ones). Never NULL. */
	void (*clocks)(void *ctx, struct mt_clocks *ret_clocks);
	void *clocks_ctx;
	const char *tool_version;     /* goes to the trace's attributes; never NULL */
	const unsigned char *boot_id; /* 16 bytes; part of every track uuid */
	const char *host;             /* its name; NULL or "": not said */
	uint32_t reset_ms;            /* incremental state is cleared and re-emitted this often; 0 = 10,000 */
	uint32_t max_interned;        /* names per table before it is reset; 0 = 20,000 */
	bool lifetimes;               /* a slice for the life of each span, on lanes under its process */
	bool compress;                /* zlib packets */
};

/*
 * Makes the sink and writes the head of the trace. *ret_sink is freed with its ops->free, which
 * flushes, writes the closing packets and closes out (taken over on success).
 */
int mt_pftrace_new(const struct mt_pftrace_opts *opts, struct mt_out *out, struct mt_sink **ret_sink);

#endif
