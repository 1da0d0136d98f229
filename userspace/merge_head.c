/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a merged trace says of itself: clocks, uuid, systems, attributes; at the end, statistics.
 *
 * Each host has a head sequence of its own, numbers 1 to nhosts; sequences of files come after these.
 */
#include "merge_int.h"

enum { CLK_REAL = 1, CLK_MONO = 3, CLK_BOOT = 6 };

/* ---- attributes ---- */

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p++) {
		if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ','))
			return true;
	}
	return false;
}

/* Values that differ are listed, each once, as far as there is room. */
static void add_text(struct mg_attr *a, struct mt_str s)
{
	char text[MG_MAX_TEXT + 1];
	size_t n = mt_utf8_fix(text, sizeof(text), s.p, s.len), have = strlen(a->text);

	if (!n || has_word(a->text, text) || have + 2 + n > MG_MAX_TEXT)
		return;
	if (have) {
		memcpy(a->text + have, ", ", 2);
		have += 2;
	}
	memcpy(a->text + have, text, n + 1);
}

/* Numbers of losses and of ends without begins add up over the files; of other numbers the first counts. */
int mg_attr_add(struct merge *m, const struct mt_pt_event *ev)
{
	const struct mt_pt_arg *v = &ev->args[0];
	struct mg_attr *a = NULL;
	char key[sizeof(a->key)];

	mt_utf8_fix(key, sizeof(key), ev->name.p, ev->name.len);
	if (!key[0] || begins(key, "montrace-bpf.merged_files") ||
	    begins(key, "montrace-bpf.incomplete_files"))
		return 0;
	for (uint32_t i = 0; i < m->nattrs && !a; i++)
		a = strcmp(m->attrs[i].key, key) ? NULL : &m->attrs[i];
	if (!a) {
		if (m->nattrs == MG_MAX_ATTRS)
			return 0;
		a = &m->attrs[m->nattrs++];
		*a = (struct mg_attr){.is_long = v->type == MT_PT_ARG_INT};
		memcpy(a->key, key, sizeof(key));
		a->i = a->is_long ? v->i : 0;
		if (v->type == MT_PT_ARG_STR)
			add_text(a, v->s);
	} else if (a->is_long && v->type == MT_PT_ARG_INT) {
		if ((begins(key, "montrace-bpf.lost") || begins(key, "montrace-bpf.unpaired.")) && v->i > 0)
			a->i = a->i > INT64_MAX - v->i ? INT64_MAX : a->i + v->i;
	} else if (!a->is_long && v->type == MT_PT_ARG_STR) {
		add_text(a, v->s);
	}
	return 0;
}

static void put_long(struct mg_buf *b, const char *key, int64_t i)
{
	size_t at = mg_open(b, 1);

	mg_text(b, 1, key);
	mg_u64(b, 2, (uint64_t)i);
	mg_close(b, at);
}

/* ---- packets ---- */

/* The start of a packet of a host's head. */
static void head_packet(struct merge *m, uint32_t host, bool first)
{
	mg_u64(&m->pkt, 10, host + 1);
	if (first) {
		mg_u64(&m->pkt, 13, 1);
		mg_u64(&m->pkt, 87, 1);
	}
	if (m->nhosts > 1)
		mg_u64(&m->pkt, 98, host + 1);
}

static int put_attributes(struct merge *m)
{
	struct mg_buf *b = &m->pkt;
	size_t all, at;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->norder; i++) {
		const struct mt_merge_input *in = m->files[m->order[i]].in;

		n += in->torn || *in->why;
	}
	head_packet(m, m->ref, false);
	all = mg_open(b, 126);
	for (uint32_t i = 0; i < m->nattrs; i++) {
		const struct mg_attr *a = &m->attrs[i];

		if (a->is_long) {
			put_long(b, a->key, a->i);
			continue;
		}
		at = mg_open(b, 1);
		mg_text(b, 1, a->key);
		mg_text(b, 3, a->text);
		mg_close(b, at);
	}
	put_long(b, "montrace-bpf.merged_files", m->norder);
	if (n)
		put_long(b, "montrace-bpf.incomplete_files", n);
	mg_close(b, all);
	return mg_put(m);
}

static void put_clock(struct mg_buf *b, uint32_t id, uint64_t ts)
{
	size_t at = mg_open(b, 1);

	mg_u64(b, 1, id);
	mg_u64(b, 2, ts);
	mg_close(b, at);
}

static int put_snapshot(struct merge *m, uint32_t host, const struct pt_snapshot *s, bool real, bool first)
{
	size_t at;

	mg_u64(&m->pkt, 8, s->boot);
	head_packet(m, host, first);
	at = mg_open(&m->pkt, 6);
	put_clock(&m->pkt, CLK_BOOT, s->boot);
	put_clock(&m->pkt, CLK_MONO, s->mono);
	if (real)
		put_clock(&m->pkt, CLK_REAL, s->real);
	mg_u64(&m->pkt, 2, CLK_BOOT);
	mg_close(&m->pkt, at);
	return mg_put(m);
}

static int compare_snaps(const void *a, const void *b)
{
	const struct pt_snapshot *x = a, *y = b;

	if (x->boot != y->boot)
		return x->boot < y->boot ? -1 : 1;
	return x->mono < y->mono ? -1 : x->mono > y->mono;
}

/* A file of the reference host that has what snapshots need: the wall clock, if any file has it. */
static bool tells_time(const struct merge *m, const struct mg_file *f)
{
	return f->host == m->ref && f->nsnaps && f->has_real == m->hosts[m->ref].has_real;
}

/* The reference host's snapshots, in order. */
static int gather_snaps(struct merge *m, struct pt_snapshot **ret_v, size_t *ret_n)
{
	struct pt_snapshot *v;
	size_t n = 0;

	for (uint32_t i = 0; i < m->norder; i++) {
		if (tells_time(m, &m->files[m->order[i]]))
			n += m->files[m->order[i]].nsnaps;
	}
	v = malloc((n + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	n = 0;
	for (uint32_t i = 0; i < m->norder; i++) {
		const struct mg_file *f = &m->files[m->order[i]];

		if (!tells_time(m, f))
			continue;
		memcpy(v + n, f->snaps, f->nsnaps * sizeof(*v));
		n += f->nsnaps;
	}
	qsort(v, n, sizeof(*v), compare_snaps);
	*ret_v = v;
	*ret_n = n;
	return 0;
}

/*
 * All snapshots of the main clocks come first, those of one host, for the importer refuses those that run
 * back, and files overlap. The other hosts are told the same: their times are on this host's clock.
 */
static int put_clocks(struct merge *m)
{
	bool real = m->hosts[m->ref].has_real;
	struct pt_snapshot *v, last = {0};
	size_t n, every, written = 1;
	int r;

	r = gather_snaps(m, &v, &n);
	if (r < 0)
		return r;
	every = n / MG_MAX_HEAD_SNAPS + 1;
	if (n) {
		last = v[0];
		r = put_snapshot(m, m->ref, &last, real, true);
	}
	for (uint32_t i = 0; !r && i < m->nhosts; i++) {
		if (n && i != m->ref)
			r = put_snapshot(m, i, &last, real, true);
	}
	for (size_t i = every; !r && i < n; i += every) {
		const struct pt_snapshot *s = &v[i];
		int64_t mono = (int64_t)(s->boot - s->mono - (last.boot - last.mono));
		int64_t wall = (int64_t)(s->real - s->boot - (last.real - last.boot));

		if (s->mono < last.mono || written == MG_MAX_HEAD_SNAPS)
			continue;
		if (s->boot - last.boot < 1000000000 && mono > -1000000 && mono < 1000000 &&
		    (!real || (wall > -1000000 && wall < 1000000)))
			continue; /* another file's, of the same moment */
		last = *s;
		written++;
		r = put_snapshot(m, m->ref, &last, real, false);
	}
	free(v);
	return r;
}

/* Of what was merged: the same inputs give the same trace. */
static int put_uuid(struct merge *m)
{
	uint64_t a = 1, b = 2;
	size_t at;

	for (uint32_t i = 0; i < m->norder; i++) {
		const struct mg_file *f = &m->files[m->order[i]];

		a = mg_mix(mg_mix(a, f->in->bytes), f->first);
		for (uint32_t k = 0; k < f->uuid_len; k++)
			a = mg_mix(a, f->uuid[k]);
		for (uint32_t k = 0; k < f->ntracks; k++)
			b = mg_mix(b, f->tracks[k].to);
	}
	head_packet(m, m->ref, false);
	at = mg_open(&m->pkt, 89);
	mg_u64(&m->pkt, 1, a);
	mg_u64(&m->pkt, 2, mg_mix(a, b));
	mg_close(&m->pkt, at);
	return mg_put(m);
}

static int put_systems(struct merge *m)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < m->nhosts; i++) {
		const struct mg_host *h = &m->hosts[i];
		const unsigned char *from;
		struct pt_field fd;
		struct pt_wire w;
		size_t at;

		if (!h->system)
			continue;
		w = (struct pt_wire){h->system->system, h->system->system + h->system->system_len};
		head_packet(m, i, false);
		at = mg_open(&m->pkt, 45);
		while (mg_next(&w, &fd, &from) > 0) {
			if (fd.tag != PT_BYTES(17) || m->nhosts == 1)
				mg_raw(&m->pkt, from, (size_t)(w.p - from));
		}
		if (m->nhosts > 1)
			mg_text(&m->pkt, 17, h->name);
		mg_close(&m->pkt, at);
		r = mg_put(m);
	}
	return r;
}

int mg_head(struct merge *m)
{
	int r = put_clocks(m);

	if (!r)
		r = put_uuid(m);
	if (!r)
		r = put_systems(m);
	if (!r)
		r = put_attributes(m);
	return r ? r : mg_flush(m);
}

/* The mark of a complete trace, if all files have it. */
int mg_tail(struct merge *m)
{
	bool complete = true;
	uint64_t last = 0;
	size_t at;
	int r;

	for (uint32_t i = 0; i < m->norder; i++) {
		const struct mg_file *f = &m->files[m->order[i]];

		complete &= f->in->complete;
		m->rep.incomplete += !f->in->complete;
	}
	for (uint32_t i = 0; i < m->nknown; i++)
		last = m->known[i].last > last && !(m->known[i].last >> 63) ? m->known[i].last : last;
	if (complete || m->stats.len) {
		if (last)
			mg_u64(&m->pkt, 8, last);
		head_packet(m, m->ref, false);
		at = mg_open(&m->pkt, 35);
		mg_raw(&m->pkt, m->stats.p, m->stats.len);
		if (complete)
			mg_u64(&m->pkt, 15, 1);
		mg_close(&m->pkt, at);
		r = mg_put(m);
		if (r)
			return r;
	}
	return mg_flush(m);
}
