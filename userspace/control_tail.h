/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers `tail` requests of the control socket from the recordings, once or for as long as the client stays.
 */
#ifndef MT_CONTROL_TAIL_H
#define MT_CONTROL_TAIL_H

#include "control.h"
#include "recordings.h"

struct mt_control_tail;

/* recordings: a sink of mt_recordings_new; must outlive it; its watch is taken. */
int mt_control_tail_new(struct mt_sink *recordings, const struct mt_recorded_clock *clock,
			struct mt_control_tail **ret_tail);
/* The wall clock was set: times of later lines. */
void mt_control_tail_clock(struct mt_control_tail *t, const struct mt_recorded_clock *clock);
/* From the handler's request(), verb MT_CONTROL_TAIL. Finishes c itself unless it follows. */
int mt_control_tail_request(struct mt_control_tail *t, struct mt_control_conn *c,
			    const struct mt_control_req *req);
/* From the handler's gone(); also for connections that are not ours. */
void mt_control_tail_gone(struct mt_control_tail *t, struct mt_control_conn *c);
/* Ends the answers of those that still follow. */
void mt_control_tail_free(struct mt_control_tail *t);

#endif
