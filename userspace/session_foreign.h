/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of loading and attaching that is about foreign USDT probes. */
#ifndef MT_SESSION_FOREIGN_H
#define MT_SESSION_FOREIGN_H

#include "session_int.h"

/* Before loading: which programs this kernel takes. */
void mt_session_foreign_load(struct montrace_bpf *skel, bool with_multi);
/* Hands the loaded ones to attach; o->multi is set already. */
void mt_session_foreign_attach(const struct montrace_bpf *skel, struct mt_attach_opts *o);

#endif
