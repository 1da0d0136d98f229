/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One stream of calls to several sinks, each with its own sink_data in processes and threads.
 * A tee may be a sink of another tee.
 */
#ifndef MT_TEE_H
#define MT_TEE_H

#include "sink.h"

#define MT_TEE_MAX 8

/*
 * Every call goes to sinks[0], sinks[1], ... in this order, also after one of them failed; the first error
 * is returned. flush and free too: the sinks are the tee's from here on (not if this fails).
 * -EINVAL: n is 0 or more than MT_TEE_MAX. Without memory for a process or thread it is not told to anybody,
 * nor anything on it (-ENOMEM each time).
 */
int mt_tee_new(struct mt_sink *const *sinks, unsigned n, struct mt_sink **ret_tee);

#endif
