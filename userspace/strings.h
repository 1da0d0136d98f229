/* SPDX-License-Identifier: BSD-3-Clause */
/* Text that came from a target: made safe, kept once, bounded. */
#ifndef MT_STRINGS_H
#define MT_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copies src[0..len) to dst as valid UTF-8: each byte that is not part of a valid sequence (overlong
 * forms, surrogates, > U+10FFFF included) becomes U+FFFD, which can triple the length. Stops before a
 * character that does not fit into cap - 1; NUL-terminates. Embedded NUL bytes become U+FFFD too, so
 * that the result has none. Returns the length written.
 * dst may not overlap src; cap >= 1. With cap > 3 * len nothing is ever cut.
 */
size_t mt_utf8_fix(char *dst, size_t cap, const char *src, size_t len);

/* True if all of it is valid UTF-8 without NUL (then no copy is needed). Fast for ASCII. */
bool mt_utf8_valid(const char *src, size_t len);

/* Longest prefix of src that is <= max bytes and does not split a character. */
size_t mt_utf8_prefix(const char *src, size_t len, size_t max);

/*
 * For terminals and one-line messages: like mt_utf8_fix, and every control character (C0 with newline
 * and tab, DEL, C1, U+2028, U+2029, bidirectional overrides) becomes U+FFFD.
 */
size_t mt_text_safe(char *dst, size_t cap, const char *src, size_t len);

/*
 * Interning: text -> number from 1. Bounded by entries and bytes; mt_intern_get returns 0 when full
 * (the caller resets or goes without).
 */
struct mt_intern;
int mt_intern_new(uint32_t max_entries, size_t max_bytes, struct mt_intern **ret_intern);
uint32_t mt_intern_get(struct mt_intern *t, const char *s, size_t len, bool *ret_new);
/* The text of a number; NUL-terminated, valid until reset or free. NULL if out of range. */
const char *mt_intern_text(const struct mt_intern *t, uint32_t number, size_t *ret_len);
uint32_t mt_intern_count(const struct mt_intern *t);
void mt_intern_reset(struct mt_intern *t);
void mt_intern_free(struct mt_intern *t);

#endif
