/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the Perfetto sink: an event that is being written by hand (pftrace_event.c, pftrace_ann.c). */
#ifndef MT_PFTRACE_WRITE_H
#define MT_PFTRACE_WRITE_H

#include "pftrace_int.h"

/* An event under way. */
struct writing {
	struct pf *pf;
	struct pf_thread *th;
	const struct mt_callsite *cs;
	const struct pf_site *site; /* NULL: write names in place */
	struct mt_enc e;
	unsigned char *packet, *event;
	struct mt_str name;
	uint32_t name_iid; /* 0: written in place */
	bool overflow;     /* annotations were left out */
	uint64_t track;    /* not 0: the event is not on its sequence's track */
};

/* What an event carries besides its name. */
struct payload {
	uint32_t flags, nvalues, nextra;
	const struct mt_value *values;
	const struct mt_field *extra;
};

/* pftrace_ann.c */
void mt_pf_put_payload(struct writing *w, const struct payload *p);             /* level, flags, values */
void mt_pf_put_constant(struct writing *w, const char *name, const char *text); /* a text that repeats */

#endif
