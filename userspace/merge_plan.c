/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What both readings need to agree on: which host a file is of, how far its clock is from the first host's,
 * in which order files come, and what uuid each track gets.
 */
#include "merge_int.h"

#define BOOT_SLACK_NS \
	10000000000ull /* boot moments this close are one host's, if there is nothing better \
			*/
#define MAX_PARENTS 32
#define MAX_CHAIN 4096

uint64_t mg_mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) + 0x9e3779b97f4a7c15ull;
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
	return h ^ (h >> 31);
}

/* ---- hosts ---- */

/* The moment of boot on the wall clock. */
static uint64_t boot_moment(const struct pt_snapshot *s)
{
	return s->real - s->boot;
}

static bool is_host(const struct mg_host *h, const struct mg_file *f)
{
	uint64_t d;

	if (f->boot_id[0])
		return !strcmp(h->boot_id, f->boot_id);
	if (!f->has_real || !f->nsnaps || !h->has_real)
		return true;
	d = boot_moment(&h->at) - boot_moment(&f->snaps[0]);
	return d + BOOT_SLACK_NS <= 2 * BOOT_SLACK_NS;
}

static void join_host(struct merge *m, struct mg_file *f)
{
	struct mg_host *h = NULL;

	for (uint32_t i = 0; i < m->nhosts && !h; i++)
		h = is_host(&m->hosts[i], f) ? &m->hosts[i] : NULL;
	if (!h) {
		h = &m->hosts[m->nhosts++];
		*h = (struct mg_host){0};
		memcpy(h->boot_id, f->boot_id, sizeof(h->boot_id));
	}
	f->host = f->in->host = (uint32_t)(h - m->hosts);
	if (!h->name[0])
		memcpy(h->name, f->host_name, sizeof(h->name));
	if (!h->system && f->system)
		h->system = f;
	if (f->has_real && f->nsnaps && (!h->has_real || f->snaps[0].boot < h->at.boot)) {
		h->has_real = true;
		h->at = f->snaps[0];
	}
}

/* Names tell hosts apart: none is empty, no two are equal. */
static void name_host(struct merge *m, uint32_t i)
{
	struct mg_host *h = &m->hosts[i];
	bool taken = false;
	char number[12];

	for (uint32_t k = 0; k < i; k++)
		taken |= !strcmp(m->hosts[k].name, h->name);
	snprintf(number, sizeof(number), "%u", i + 1);
	if (!h->name[0])
		snprintf(h->name, sizeof(h->name), "host %s", number);
	else if (taken)
		snprintf(h->name + mt_utf8_prefix(h->name, strlen(h->name), MG_MAX_HOST - 14), 14, " #%s",
			 number);
}

/* Those that say their boot id first: the others are compared with them. */
static int find_hosts(struct merge *m)
{
	m->hosts = calloc(m->norder + 1, sizeof(*m->hosts));
	if (!m->hosts)
		return -ENOMEM;
	for (int known = 1; known >= 0; known--) {
		for (uint32_t i = 0; i < m->norder; i++) {
			struct mg_file *f = &m->files[m->order[i]];

			if ((f->boot_id[0] != 0) == known)
				join_host(m, f);
		}
	}
	for (uint32_t i = 0; i < m->nhosts; i++)
		name_host(m, i);
	return 0;
}

/* The boot moment of the reference host as its wall clock had it at `real`. */
static uint64_t ref_moment(const struct merge *m, uint64_t real)
{
	const struct pt_snapshot *at = &m->hosts[m->ref].at, *s;
	bool found = false;

	for (uint32_t i = 0; i < m->norder; i++) {
		const struct mg_file *f = &m->files[m->order[i]];

		if (f->host != m->ref || !f->has_real)
			continue;
		for (uint32_t k = 0; k < f->nsnaps; k++) {
			s = &f->snaps[k];
			if (s->real <= real && (!found || s->real > at->real)) {
				at = s;
				found = true;
			}
		}
	}
	return boot_moment(at);
}

/*
 * The host that was booted first is the reference, so that no time gets negative. Times of another one are
 * moved by how much later it was booted.
 */
static void align_hosts(struct merge *m)
{
	m->ref = 0;
	for (uint32_t i = 1; i < m->nhosts; i++) {
		const struct mg_host *a = &m->hosts[m->ref], *h = &m->hosts[i];

		if (h->has_real && (!a->has_real || (int64_t)(boot_moment(&h->at) - boot_moment(&a->at)) < 0))
			m->ref = i;
	}
	for (uint32_t i = 0; i < m->nhosts; i++) {
		struct mg_host *h = &m->hosts[i];

		if (i == m->ref)
			continue;
		h->flow = mg_mix(0x6d6f6e7472616365ull, i + 1) | 1;
		if (h->has_real)
			h->shift = boot_moment(&h->at) - ref_moment(m, h->at.real);
		else
			m->rep.unaligned++;
	}
	m->rep.hosts = m->nhosts;
}

/* ---- order ---- */

static int compare_files(const void *a, const void *b, void *ctx)
{
	const struct merge *m = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct mg_file *x = &m->files[i], *y = &m->files[k];
	uint64_t tx = x->first == UINT64_MAX ? x->first : x->first + m->hosts[x->host].shift;
	uint64_t ty = y->first == UINT64_MAX ? y->first : y->first + m->hosts[y->host].shift;

	if (tx != ty)
		return tx < ty ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* ---- uuids ---- */

static int claim(struct merge *m, uint64_t uuid, const struct mg_uuid *u)
{
	if (m->nknown == m->cap_known) {
		uint32_t cap = m->cap_known ? m->cap_known * 2 : 256;
		struct mg_uuid *v = realloc(m->known, cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		m->known = v;
		m->cap_known = cap;
	}
	m->known[m->nknown] = *u;
	m->known[m->nknown++].uuid = uuid;
	return pt_map_add(&m->uuids, m->seed, uuid, m->nknown);
}

/*
 * A track goes on in a later file if it is the same thing of the same host, nothing was left open on it, and
 * the later file's events are later. Else the importer would make one tangle of two recordings.
 */
static bool goes_on(const struct mg_uuid *k, const struct mg_file *f, const struct mg_track *t,
		    const struct mg_uuid *u, uint64_t shift)
{
	bool loose = !t->described && f->boot_id[0] && k->host == u->host;

	if (!loose && k->identity != u->identity)
		return false;
	return t->first > t->last || (!k->open && t->first + shift >= k->last);
}

/* 63 bits, as the writer's own; must be in no file yet that was looked at. */
static uint64_t new_uuid(struct merge *m, const struct mg_file *f, uint64_t uuid)
{
	uint64_t h = mg_mix(uuid, (uint64_t)(f - m->files) + 1);

	while (!(h >> 1) || pt_map_get(&m->uuids, m->seed, h >> 1) ||
	       pt_map_get(&f->by_uuid, m->seed, h >> 1))
		h = mg_mix(h, 1);
	return h >> 1;
}

/*
 * Finds t a uuid: its own, one that was given to the same thing in an earlier file, or a new one. Uuids that
 * came from one are a chain.
 */
static int settle(struct merge *m, struct mg_file *f, struct mg_track *t, const struct mg_uuid *u)
{
	uint32_t at = pt_map_get(&m->uuids, m->seed, t->uuid), last = 0;
	int r;

	if (!t->uuid)
		return 0; /* no track */
	if (!at)
		return claim(m, t->uuid, u);
	for (int i = 0; at && i < MAX_CHAIN; i++) {
		struct mg_uuid *k = &m->known[at - 1];

		if (goes_on(k, f, t, u, m->hosts[f->host].shift)) {
			if (t->first <= t->last) {
				k->last = u->last;
				k->open = u->open;
			}
			t->to = k->uuid;
			goto out;
		}
		last = at;
		at = k->next;
	}
	t->to = new_uuid(m, f, t->uuid);
	r = claim(m, t->to, u);
	if (r < 0)
		return r;
	m->known[m->nknown - 1].next = m->known[last - 1].next;
	m->known[last - 1].next = m->nknown;
out:
	if (t->to != t->uuid) {
		f->renamed++;
		m->rep.renamed++;
	}
	return 0;
}

static int resolve(struct merge *m, struct mg_file *f, struct mg_track *t, int depth)
{
	struct mg_uuid u = {.host = f->host, .open = t->open};
	uint64_t parent = t->parent;
	uint32_t at;
	int r = 0;

	if (t->resolved)
		return 0;
	t->busy = true; /* parents may form a ring */
	at = parent ? pt_map_get(&f->by_uuid, m->seed, parent) : 0;
	if (at && !f->tracks[at - 1].busy && depth < MAX_PARENTS)
		r = resolve(m, f, &f->tracks[at - 1], depth + 1);
	if (r < 0)
		return r;
	if (at)
		parent = f->tracks[at - 1].to;
	t->busy = false;
	t->resolved = true;
	if (t->first <= t->last)
		u.last = t->last + m->hosts[f->host].shift;
	u.identity = mg_mix(mg_mix(t->what, parent), f->host);
	if (!f->boot_id[0]) /* numbers of another tool may mean anything */
		u.identity = mg_mix(u.identity, (uint64_t)(f - m->files) + 1);
	if (!t->described)
		u.identity = mg_mix(u.identity, 0);
	return settle(m, f, t, &u);
}

int mg_plan(struct merge *m)
{
	int r;

	m->norder = 0;
	for (uint32_t i = 0; i < m->opts->ninputs; i++) {
		if (m->files[i].in->status == MT_MERGE_TAKEN)
			m->order[m->norder++] = i;
	}
	m->rep.files = m->norder;
	if (!m->norder)
		return mg_fail(m, -ENODATA, "nothing to merge: no trace could be read");
	r = find_hosts(m);
	if (r < 0)
		return r;
	align_hosts(m);
	qsort_r(m->order, m->norder, sizeof(*m->order), compare_files, m);
	for (uint32_t i = 0; !r && i < m->norder; i++) {
		struct mg_file *f = &m->files[m->order[i]];

		for (uint32_t k = 0; !r && k < f->ntracks; k++)
			r = resolve(m, f, &f->tracks[k], 0);
	}
	return r;
}
