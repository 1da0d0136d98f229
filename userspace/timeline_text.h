/* SPDX-License-Identifier: BSD-3-Clause */
/* How pieces of a timeline are written: for a terminal, and as JSON. All texts come from the file. */
#ifndef MT_TIMELINE_TEXT_H
#define MT_TIMELINE_TEXT_H

#include <stdio.h>

#include "timeline.h"

/* Safe for a terminal; tl_quoted puts it in quotes. */
void tl_safe(FILE *out, struct mt_str s);
void tl_quoted(FILE *out, struct mt_str s);
/* A JSON string, always valid UTF-8. */
void tl_json_string(FILE *out, struct mt_str s);
/* A JSON number; NaN and infinities as strings. */
void tl_json_double(FILE *out, double d);

void tl_arg_text(FILE *out, const struct mt_timeline *tl, const struct mt_tl_arg *a); /* k=v */
void tl_arg_json(FILE *out, const struct mt_timeline *tl, const struct mt_tl_arg *a); /* "k":v */

/* Milliseconds with three decimals in a field of `width`. */
void tl_ms(FILE *out, uint64_t ns, int width);
/* "2026-01-31 12:00:00.000000 UTC", or the boot time if the file has no wall clock. */
void tl_wall(FILE *out, const struct mt_timeline *tl, uint64_t ts);

/* `process 12 "name"`, `thread 13 "name"`, `track "name"`, `counter "name" [unit]`. */
void tl_group_title(FILE *out, const struct mt_tl_group *g);
void tl_track_title(FILE *out, const struct mt_tl_track *t);

/* Losses, what could not be read, how the file ends; nothing if all is well. */
void tl_losses(FILE *out, const struct mt_timeline *tl);
void tl_end(FILE *out, const struct mt_timeline *tl);
/* The same end as JSON lines. */
void tl_end_json(FILE *out, const struct mt_timeline *tl);

/* How a command ends: -EPIPE or -EIO if out could not be written, else tl->error. */
int tl_result(FILE *out, const struct mt_timeline *tl);

static inline struct mt_str tl_cstr(const char *s)
{
	return (struct mt_str){s, (uint32_t)__builtin_strlen(s)};
}

#endif
