/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for texts: one set for the trace, told to each sequence when it first needs them.
 *
 * Perfetto keeps interned numbers per packet sequence, and we have a sequence per thread. Numbering
 * once for the whole trace means that a callsite's numbers are found once, not once per thread, and
 * that a sequence needs only one bit per number: "told since my last clear".
 *
 *  1. A number means the same text on every sequence, for one generation of the tables.
 *  2. A sequence whose `gen` is not the tables' generation is cleared before its next event.
 *  3. Tables are emptied between events only, never inside one: what mt_pf_intern() returned for an
 *     event stays right until it is written. A text that finds no room has number 0 and is written
 *     in place; then `full` asks for new tables.
 *  4. The bit of PF_SITE implies the bits of all numbers of that callsite.
 *  5. Bits are a saving, not a duty: where memory for them fails the entry is told again, which an
 *     importer ignores (the first definition stays).
 *
 * Example: thread A enters callsite 7 ("read", target "io") for the first time: name 1 and category 1
 * go with that packet, the bits are set. Thread B enters it: same numbers, told again on B's sequence.
 * A enters it again: one bit is looked at, nothing is told.
 */
#include <errno.h>
#include <stdlib.h>

#include "pftrace_int.h"

int mt_pf_tables_new(struct pf *pf)
{
	pf->gen = 1;
	for (int k = 0; k < PF_KINDS; k++) {
		int r;

		if (k == PF_SITE)
			continue;
		r = mt_intern_new(pf->opts.max_interned, PF_TABLE_BYTES, &pf->tab[k]);
		if (r < 0)
			return r;
	}
	return 0;
}

void mt_pf_tables_free(struct pf *pf)
{
	for (int k = 0; k < PF_KINDS; k++)
		mt_intern_free(pf->tab[k]);
	free(pf->sites);
	free(pf->site_map);
}

void mt_pf_tables_reset(struct pf *pf)
{
	for (int k = 0; k < PF_KINDS; k++)
		if (pf->tab[k])
			mt_intern_reset(pf->tab[k]);
	pf->nsites = 0;
	if (pf->site_map)
		memset(pf->site_map, 0, pf->map_cap * sizeof(*pf->site_map));
	pf->full = false;
	if (++pf->gen == 0)
		pf->gen = 1;
}

bool mt_pf_tables_room(const struct pf *pf, uint32_t more)
{
	uint32_t max = pf->opts.max_interned;

	if (pf->full)
		return false;
	if (more > max)
		more = max; /* can only be had from empty tables */
	if (pf->nsites >= max)
		return false;
	for (int k = 0; k < PF_KINDS; k++)
		if (pf->tab[k] && mt_intern_count(pf->tab[k]) > max - more)
			return false;
	return true;
}

uint32_t mt_pf_intern(struct pf *pf, enum pf_kind kind, const char *s, size_t len)
{
	char fixed[PF_MAX_NAME + 1];
	uint32_t iid;
	bool is_new;

	if (len == 0) {
		s = "";
	} else if (!mt_utf8_valid(s, len)) {
		len = mt_utf8_fix(fixed, sizeof(fixed), s, len);
		s = fixed;
	} else if (len > PF_MAX_NAME) {
		len = mt_utf8_prefix(s, len, PF_MAX_NAME);
	}
	iid = mt_intern_get(pf->tab[kind], s, len, &is_new);
	if (iid == 0)
		pf->full = true;
	return iid;
}

static uint32_t *map_slot(const struct pf *pf, uint32_t id)
{
	uint32_t i = id & (pf->map_cap - 1);

	while (pf->site_map[i] && pf->sites[pf->site_map[i] - 1].id != id)
		i = (i + 1) & (pf->map_cap - 1);
	return &pf->site_map[i];
}

struct pf_site *mt_pf_site_find(struct pf *pf, const struct mt_callsite *cs)
{
	uint32_t at;

	if (pf->map_cap == 0)
		return NULL;
	at = *map_slot(pf, cs->id);
	return at ? &pf->sites[at - 1] : NULL;
}

/* The map stays at most half full, so a search always ends. */
static int sites_grow(struct pf *pf)
{
	uint32_t cap = pf->site_cap ? pf->site_cap * 2 : 64;
	struct pf_site *sites;
	uint32_t *map;

	sites = realloc(pf->sites, cap * sizeof(*sites));
	if (!sites)
		return -ENOMEM;
	pf->sites = sites;
	map = calloc(cap * 2, sizeof(*map));
	if (!map)
		return -ENOMEM;
	free(pf->site_map);
	pf->site_map = map;
	pf->map_cap = cap * 2;
	pf->site_cap = cap;
	for (uint32_t i = 0; i < pf->nsites; i++)
		*map_slot(pf, sites[i].id) = i + 1;
	return 0;
}

static const char *level_text(uint8_t level)
{
	static const char *const texts[] = {NULL, "trace", "debug", "info", "warn", "error"};

	return level < sizeof(texts) / sizeof(texts[0]) ? texts[level] : NULL;
}

/* A span's level is worth its bytes only if somebody chose it; an event's always. */
static bool shows_level(const struct mt_callsite *cs)
{
	if (cs->class_ == MONTRACE_CLASS_EVENT)
		return true;
	return !(cs->flags & MONTRACE_CSF_DEFAULT_LEVEL);
}

struct pf_site *mt_pf_site_add(struct pf *pf, const struct mt_callsite *cs)
{
	const char *level = shows_level(cs) ? level_text(cs->level) : NULL;
	struct pf_site *site;

	if (pf->nsites == pf->site_cap && sites_grow(pf) < 0)
		return NULL;
	site = &pf->sites[pf->nsites];
	memset(site, 0, sizeof(*site));
	site->id = cs->id;
	site->name_len = (uint32_t)strlen(cs->name);
	site->name = mt_pf_intern(pf, PF_NAME, cs->name, site->name_len);
	site->category = cs->target[0] ? mt_pf_intern(pf, PF_CATEGORY, cs->target, strlen(cs->target)) : 0;
	site->located = cs->file[0] || cs->line;
	if (level) {
		site->level_name = mt_pf_intern(pf, PF_ANNOTATION, "level", 5);
		site->level = mt_pf_intern(pf, PF_STRING, level, strlen(level));
		if (!site->level_name || !site->level)
			site->level_name = site->level = 0;
	}
	site->nfields = cs->nfields <= MONTRACE_MAX_FIELDS ? cs->nfields : MONTRACE_MAX_FIELDS;
	for (unsigned i = 0; i < site->nfields; i++)
		site->fields[i] =
			mt_pf_intern(pf, PF_ANNOTATION, cs->fields[i].name, strlen(cs->fields[i].name));
	*map_slot(pf, cs->id) = ++pf->nsites;
	return site;
}

static void bit_set(struct pf_bits *b, uint32_t i)
{
	uint32_t need = i / 64 + 1;

	if (need > b->n) {
		uint32_t n = b->n ? b->n : 1;
		uint64_t *w;

		while (n < need)
			n *= 2;
		w = realloc(b->w, n * sizeof(*w));
		if (!w)
			return; /* told again next time */
		memset(w + b->n, 0, (n - b->n) * sizeof(*w));
		b->w = w;
		b->n = n;
	}
	b->w[i / 64] |= 1ull << (i % 64);
}

void mt_pf_bits_free(struct pf_thread *th)
{
	for (int k = 0; k < PF_KINDS; k++) {
		free(th->known[k].w);
		th->known[k] = (struct pf_bits){0};
	}
}

/* False: cannot be told in this packet (no number, or too many new ones): write the text itself. */
bool mt_pf_announce(struct pf *pf, struct pf_thread *th, enum pf_kind kind, uint32_t iid,
		    const struct mt_callsite *cs)
{
	if (iid == 0)
		return false;
	if (mt_pf_bit(&th->known[kind], iid))
		return true;
	if (pf->nfresh == PF_MAX_FRESH)
		return false;
	pf->fresh[pf->nfresh++] = (struct pf_fresh){.kind = kind, .iid = iid, .cs = cs};
	bit_set(&th->known[kind], iid);
	return true;
}

/* Called first in a packet, so that all of it has room in `fresh`. */
void mt_pf_announce_site(struct pf *pf, struct pf_thread *th, const struct pf_site *site,
			 const struct mt_callsite *cs)
{
	uint32_t number = (uint32_t)(site - pf->sites) + 1;

	if (mt_pf_bit(&th->known[PF_SITE], number))
		return;
	mt_pf_announce(pf, th, PF_CATEGORY, site->category, NULL);
	mt_pf_announce(pf, th, PF_NAME, site->name, NULL);
	mt_pf_announce(pf, th, PF_ANNOTATION, site->level_name, NULL);
	mt_pf_announce(pf, th, PF_STRING, site->level, NULL);
	for (unsigned i = 0; i < site->nfields; i++)
		mt_pf_announce(pf, th, PF_ANNOTATION, site->fields[i], NULL);
	if (site->located)
		mt_pf_announce(pf, th, PF_SITE, number, cs);
	else
		bit_set(&th->known[PF_SITE], number);
}

static void put_location(struct mt_enc *e, uint32_t iid, const struct mt_callsite *cs)
{
	unsigned char *start = mt_enc_open(e, 4); /* source_locations */

	mt_enc_u64(e, 1, iid);
	if (cs->file[0])
		mt_enc_text(e, 2, cs->file, strlen(cs->file), PF_MAX_NAME);
	if (cs->function[0])
		mt_enc_text(e, 3, cs->function, strlen(cs->function), PF_MAX_NAME);
	if (cs->line)
		mt_enc_u64(e, 4, cs->line);
	mt_enc_close(e, start);
}

void mt_pf_put_fresh(struct pf *pf, struct mt_enc *e)
{
	/* In the order of enum pf_kind; ascending, as protobuf-c writes them. */
	static const uint8_t field[PF_KINDS] = {1, 2, 3, 4, 29};
	unsigned char *all, *entry;

	if (pf->nfresh == 0)
		return;
	all = mt_enc_open(e, 12); /* interned_data */
	for (unsigned k = 0; k < PF_KINDS; k++) {
		for (uint32_t i = 0; i < pf->nfresh; i++) {
			const struct pf_fresh *f = &pf->fresh[i];
			const char *text;
			size_t len = 0;

			if (f->kind != k)
				continue;
			if (k == PF_SITE) {
				put_location(e, f->iid, f->cs);
				continue;
			}
			text = mt_intern_text(pf->tab[k], f->iid, &len);
			entry = mt_enc_open(e, field[k]);
			mt_enc_u64(e, 1, f->iid);
			mt_enc_bytes(e, 2, text, len);
			mt_enc_close(e, entry);
		}
	}
	mt_enc_close(e, all);
	pf->nfresh = 0;
}
