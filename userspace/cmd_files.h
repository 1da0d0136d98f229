/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that read files: list, dump, summary. Each returns the exit status. */
#ifndef MT_CMD_FILES_H
#define MT_CMD_FILES_H

#include "cmd_record.h"
#include "log.h"
#include "options.h"

int mt_cmd_list(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);
int mt_cmd_dump(const struct mt_options *o, struct mt_log *log);
int mt_cmd_merge(const struct mt_options *o, const struct mt_environment *env, struct mt_log *log);
int mt_cmd_summary(const struct mt_options *o, struct mt_log *log);

#endif
