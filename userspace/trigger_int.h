/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of `trigger`: trigger.c (matching, policy), trigger_watch.c (the sink), trigger_parse.c (text). */
#ifndef MT_TRIGGER_INT_H
#define MT_TRIGGER_INT_H

#include "trigger.h"

enum tr_what { TR_SPAN, TR_EVENT, TR_LEVEL, TR_LOST };
enum tr_op { TR_NONE, TR_EQ, TR_NE, TR_GT, TR_GE, TR_LT, TR_LE, TR_LIKE };
enum tr_num { TR_TEXT, TR_INT, TR_UINT, TR_REAL }; /* TR_INT: negative */

struct mt_trigger {
	enum tr_what what;
	enum tr_op op;
	struct mt_str name, field, value; /* in owned */
	enum tr_num num;                  /* what value is as a number */
	int64_t i;
	uint64_t u; /* also: ns, level, count */
	double f;
	uint64_t lost; /* so far */
	char *text, *owned;
};

#endif
