/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MT_CMD_DUMP_INT_H
#define MT_CMD_DUMP_INT_H

#include "timeline_text.h"

int dump_json(FILE *out, const struct mt_timeline *tl);

#endif
