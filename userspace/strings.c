/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text that came from a target.
 *
 * One function, mt_utf8_len, decides what a valid character is; everything else walks with it.
 * Interned texts live in blocks that never move, so a pointer to one stays good until the reset.
 */
#include "strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */
#define REPLACEMENT_LEN 3
#define BLOCK_SIZE (64 * 1024)

/* Length of the valid character at s (n bytes left, n > 0), 0 if there is none. NUL counts as one. */
static size_t utf8_len(const unsigned char *s, size_t n, uint32_t *ret_char)
{
	uint32_t c = s[0], min;
	size_t len, i;

	if (c < 0x80) {
		*ret_char = c;
		return 1;
	}
	if (c >= 0xc2 && c <= 0xdf) {
		len = 2, min = 0x80, c &= 0x1f;
	} else if (c >= 0xe0 && c <= 0xef) {
		len = 3, min = 0x800, c &= 0x0f;
	} else if (c >= 0xf0 && c <= 0xf4) {
		len = 4, min = 0x10000, c &= 0x07;
	} else {
		return 0;
	}
	if (n < len)
		return 0;
	for (i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < min || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret_char = c;
	return len;
}

/* Characters that move a terminal's cursor, break a line or turn the direction of text. */
static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static size_t fix(char *dst, size_t cap, const char *src, size_t len, bool controls)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t at = 0, i = 0;

	while (i < len) {
		uint32_t c = 0;
		size_t take = utf8_len(s + i, len - i, &c), put = take;
		const char *from = src + i;

		if (take == 0 || c == 0 || (controls && is_control(c))) {
			take = take ? take : 1;
			from = REPLACEMENT;
			put = REPLACEMENT_LEN;
		}
		if (put >= cap - at)
			break;
		memcpy(dst + at, from, put);
		at += put;
		i += take;
	}
	dst[at] = '\0';
	return at;
}

size_t mt_utf8_fix(char *dst, size_t cap, const char *src, size_t len)
{
	return fix(dst, cap, src, len, false);
}

size_t mt_text_safe(char *dst, size_t cap, const char *src, size_t len)
{
	return fix(dst, cap, src, len, true);
}

/* True if all 8 bytes are ASCII and none is NUL. A byte of 0x80 makes the second test useless, the first
 * covers it. */
static bool ascii8(const unsigned char *s)
{
	uint64_t v;

	memcpy(&v, s, sizeof(v));
	return !((v | (v - 0x0101010101010101ULL)) & 0x8080808080808080ULL);
}

bool mt_utf8_valid(const char *src, size_t len)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t i = 0;

	while (i < len) {
		uint32_t c = 0;
		size_t n;

		if (len - i >= 8 && ascii8(s + i)) {
			i += 8;
			continue;
		}
		n = utf8_len(s + i, len - i, &c);
		if (n == 0 || c == 0)
			return false;
		i += n;
	}
	return true;
}

size_t mt_utf8_prefix(const char *src, size_t len, size_t max)
{
	const unsigned char *s = (const unsigned char *)src;
	size_t back;

	if (len <= max)
		return len;
	/* A character that spans the cut starts at most three bytes before it. */
	for (back = 1; back <= 3 && back <= max; back++) {
		uint32_t c = 0;

		if ((s[max - back] & 0xc0) == 0x80)
			continue;
		if (utf8_len(s + max - back, len - (max - back), &c) > back)
			return max - back;
		break;
	}
	return max;
}

struct block {
	struct block *next;
	size_t used, cap;
	char bytes[];
};

struct entry {
	const char *text;
	uint32_t len;
	uint32_t hash;
};

/*
 * slots holds entry numbers (0 = free), linear probing, twice as many slots as entries or more.
 * entries[n - 1] is number n.
 */
struct mt_intern {
	uint32_t max_entries;
	size_t max_bytes;
	size_t bytes;
	struct entry *entries;
	uint32_t n, cap;
	uint32_t *slots;
	uint32_t nslots;
	struct block *blocks;
};

static uint32_t text_hash(const char *s, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ len, v;

	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&v, s, 8);
		h = (h ^ v) * 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	v = 0;
	if (len)
		memcpy(&v, s, len);
	h = (h ^ v) * 0xc4ceb9fe1a85ec53ULL;
	return (uint32_t)(h ^ h >> 32);
}

int mt_intern_new(uint32_t max_entries, size_t max_bytes, struct mt_intern **ret_intern)
{
	struct mt_intern *t;

	if (max_entries == 0 || max_entries > UINT32_MAX / 8)
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->max_entries = max_entries;
	t->max_bytes = max_bytes;
	*ret_intern = t;
	return 0;
}

static bool grow(struct mt_intern *t)
{
	uint32_t cap = t->cap ? t->cap * 2 : 64, nslots = cap * 2, i;
	struct entry *entries;
	uint32_t *slots;

	slots = calloc(nslots, sizeof(*slots));
	if (!slots)
		return false;
	entries = realloc(t->entries, cap * sizeof(*entries));
	if (!entries) {
		free(slots);
		return false;
	}
	for (i = 0; i < t->n; i++) {
		uint32_t at = entries[i].hash & (nslots - 1);

		while (slots[at])
			at = (at + 1) & (nslots - 1);
		slots[at] = i + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = nslots;
	t->entries = entries;
	t->cap = cap;
	return true;
}

static char *store(struct mt_intern *t, const char *s, size_t len)
{
	struct block *b = t->blocks;
	char *p;

	if (!b || b->cap - b->used < len + 1) {
		size_t cap = len + 1 > BLOCK_SIZE ? len + 1 : BLOCK_SIZE;

		b = malloc(sizeof(*b) + cap);
		if (!b)
			return NULL;
		b->used = 0;
		b->cap = cap;
		b->next = t->blocks;
		t->blocks = b;
	}
	p = b->bytes + b->used;
	if (len)
		memcpy(p, s, len);
	p[len] = '\0';
	b->used += len + 1;
	return p;
}

uint32_t mt_intern_get(struct mt_intern *t, const char *s, size_t len, bool *ret_new)
{
	uint32_t hash, at;
	char *p;

	if (len >= UINT32_MAX)
		return 0;
	hash = text_hash(s, len);
	for (at = t->nslots ? hash & (t->nslots - 1) : 0; t->nslots && t->slots[at];
	     at = (at + 1) & (t->nslots - 1)) {
		const struct entry *e = &t->entries[t->slots[at] - 1];

		if (e->hash == hash && e->len == len && (len == 0 || memcmp(e->text, s, len) == 0)) {
			if (ret_new)
				*ret_new = false;
			return t->slots[at];
		}
	}
	if (t->n >= t->max_entries || len + 1 > t->max_bytes - t->bytes)
		return 0;
	if (t->n == t->cap) {
		if (!grow(t))
			return 0;
		for (at = hash & (t->nslots - 1); t->slots[at]; at = (at + 1) & (t->nslots - 1))
			;
	}
	p = store(t, s, len);
	if (!p)
		return 0;
	t->bytes += len + 1;
	t->entries[t->n] = (struct entry){.text = p, .len = (uint32_t)len, .hash = hash};
	t->slots[at] = ++t->n;
	if (ret_new)
		*ret_new = true;
	return t->n;
}

const char *mt_intern_text(const struct mt_intern *t, uint32_t number, size_t *ret_len)
{
	if (number == 0 || number > t->n)
		return NULL;
	if (ret_len)
		*ret_len = t->entries[number - 1].len;
	return t->entries[number - 1].text;
}

uint32_t mt_intern_count(const struct mt_intern *t)
{
	return t->n;
}

/* Keeps the tables and one ordinary block, so that regular resets cost no memory traffic. */
void mt_intern_reset(struct mt_intern *t)
{
	struct block *keep = NULL, *b;

	while ((b = t->blocks)) {
		t->blocks = b->next;
		if (!keep && b->cap == BLOCK_SIZE) {
			keep = b;
			continue;
		}
		free(b);
	}
	if (keep) {
		keep->next = NULL;
		keep->used = 0;
		t->blocks = keep;
	}
	if (t->slots)
		memset(t->slots, 0, t->nslots * sizeof(*t->slots));
	t->n = 0;
	t->bytes = 0;
}

void mt_intern_free(struct mt_intern *t)
{
	struct block *b;

	if (!t)
		return;
	while ((b = t->blocks)) {
		t->blocks = b->next;
		free(b);
	}
	free(t->entries);
	free(t->slots);
	free(t);
}
