/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walking notes and copying their texts.
 *
 * A note is {u32 namesz, descsz, type}, the owner's name, the description, both padded. Nothing but
 * the sizes tells where the next one starts. If they lie, the rest would be lost with it; so the walk
 * then looks for the next head of a note of ours (sizes, type and owner all right), and takes it from
 * there. Each byte is looked at a bounded number of times: the position never goes back.
 */
#include <stdlib.h>
#include <string.h>

#include "elfnotes_int.h"
#include "strings.h"

#define HEAD 12u

static const struct {
	const char *name;
	enum mt_owner owner;
} owners[] = {
	{"stapsdt", MT_OWNER_STAPSDT},
	{"montrace", MT_OWNER_MONTRACE},
	{"GNU", MT_OWNER_GNU},
};

static enum mt_owner owner_of(const uint8_t *name, uint32_t namesz)
{
	for (unsigned i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (namesz == strlen(owners[i].name) + 1 && !memcmp(name, owners[i].name, namesz))
			return owners[i].owner;
	return MT_OWNER_OTHER;
}

/* Reads the note at pos; *ret_next is where the next one starts. False if its sizes lie. */
static bool note_at(const struct mt_range *r, uint32_t pos, struct mt_note *ret_note, uint32_t *ret_next)
{
	uint64_t mask = r->align - 1, desc, end;
	uint32_t h[3];

	if (r->size - pos < HEAD)
		return false;
	memcpy(h, r->data + pos, HEAD);
	desc = (HEAD + (uint64_t)h[0] + mask) & ~mask;
	end = desc + h[1];
	if (h[0] > r->size - pos - HEAD || end > r->size - pos)
		return false;
	ret_note->owner = owner_of(r->data + pos + HEAD, h[0]);
	ret_note->type = h[2];
	ret_note->desc = r->data + pos + desc;
	ret_note->descsz = h[1];
	end = (end + mask) & ~mask; /* the last note may go without its padding */
	*ret_next = end < r->size - pos ? pos + (uint32_t)end : r->size;
	return true;
}

static bool all_zero(const uint8_t *p, uint32_t n)
{
	while (n && !*p)
		p++, n--;
	return !n;
}

static bool resync(const struct mt_range *r, uint32_t pos, struct mt_note *ret_note, uint32_t *ret_next)
{
	for (pos += 4; pos < r->size && r->size - pos >= HEAD; pos += 4) {
		if (note_at(r, pos, ret_note, ret_next) &&
		    (ret_note->owner == MT_OWNER_STAPSDT || ret_note->owner == MT_OWNER_MONTRACE))
			return true;
	}
	return false;
}

bool mt_note_next(const struct mt_range *r, uint32_t *pos, struct mt_note *ret_note, uint32_t *malformed)
{
	uint32_t next, at = *pos;

	if (at >= r->size)
		return false;
	if (!note_at(r, at, ret_note, &next)) {
		if (malformed && !(r->size - at < HEAD && all_zero(r->data + at, r->size - at)))
			(*malformed)++;
		if (!resync(r, at, ret_note, &next)) {
			*pos = r->size;
			return false;
		}
	}
	*pos = next;
	return true;
}

bool mt_note_text(const uint8_t **p, const uint8_t *end, const char **ret_text, size_t *ret_len)
{
	const uint8_t *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;

	if (!nul)
		return false;
	*ret_text = (const char *)*p;
	*ret_len = (size_t)(nul - *p);
	*p = nul + 1;
	return true;
}

struct mt_chunk {
	struct mt_chunk *next;
	char text[];
};

#define CHUNK 65536u

const char *mt_arena_text(struct mt_arena *a, const char *src, size_t len, size_t limit)
{
	size_t room;
	char *dst;

	/* A byte becomes one byte at least: what is behind limit + 4 cannot get into the copy. */
	if (len > limit + 4)
		len = limit + 4;
	room = (len * 3 < limit ? len * 3 : limit) + 1;
	if (!a->head || a->cap - a->used < room) {
		struct mt_chunk *c = malloc(sizeof(*c) + CHUNK);

		if (!c)
			return NULL;
		c->next = a->head;
		a->head = c;
		a->used = 0;
		a->cap = CHUNK;
	}
	dst = a->head->text + a->used;
	a->used += mt_text_safe(dst, room, src, len) + 1;
	return dst;
}

const char *mt_arena_again(struct mt_arena *a, struct mt_last *l, const char *src, size_t len, size_t limit)
{
	if (!l->text || l->len != len || memcmp(l->src, src, len)) {
		const char *text = mt_arena_text(a, src, len, limit);

		if (!text)
			return NULL;
		*l = (struct mt_last){src, len, text};
	}
	return l->text;
}

void mt_arena_free(struct mt_arena *a)
{
	while (a->head) {
		struct mt_chunk *c = a->head;

		a->head = c->next;
		free(c);
	}
}
