/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that ask a running tracer: tail, stacks, snapshot, status. Each returns the exit status. */
#ifndef MT_CMD_CONTROL_H
#define MT_CMD_CONTROL_H

#include "cmd_record.h"
#include "log.h"
#include "options.h"

int mt_cmd_tail(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);
/* With -p and no tracer that traces it: attaches for a moment. */
int mt_cmd_stacks(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);
int mt_cmd_snapshot(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);
int mt_cmd_status(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);

/* cmd_stacks.c */
int mt_stacks_attach(const struct mt_options *o, struct mt_log *log);

#endif
