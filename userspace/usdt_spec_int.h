/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of usdt_spec: usdt_spec.c (tokens, probes), usdt_words.c, usdt_predicate.c (what follows `if`). */
#ifndef MT_USDT_SPEC_INT_H
#define MT_USDT_SPEC_INT_H

#include "usdt_int.h"
#include "usdt_spec.h"

struct mt_usdt_parse {
	struct mt_scan s;
	const char *start;
	struct mt_usdt_spec *spec;
	struct mt_usdt_err *err;
};

/* Notes the error down; -EINVAL. */
int mt_usdt_bad(struct mt_usdt_parse *p, const char *at, const char *why);
bool mt_usdt_ident(char c);
bool mt_usdt_blank(char c);
bool mt_usdt_is(struct mt_str s, const char *t);
void mt_usdt_skip(struct mt_usdt_parse *p); /* blanks */
bool mt_usdt_keyword(struct mt_usdt_parse *p, const char *t);
struct mt_str mt_usdt_identifier(struct mt_usdt_parse *p);
/* "argN"; false and nothing taken if it is none. */
bool mt_usdt_arg_word(struct mt_usdt_parse *p, uint8_t *ret);
/* "argN[:type]" */
int mt_usdt_argument(struct mt_usdt_parse *p, struct mt_usdt_arg *a);
int mt_usdt_arg_number(struct mt_usdt_parse *p, uint8_t *ret);
/* A text in quotes; its escapes are undone in place. */
int mt_usdt_quoted(struct mt_usdt_parse *p, struct mt_str *ret);
int mt_usdt_words(struct mt_usdt_parse *p); /* up to the end */
int mt_usdt_predicate(struct mt_usdt_parse *p);

#endif
