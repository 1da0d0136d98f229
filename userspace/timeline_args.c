/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of an event, packed: number of arguments, number of flows, then for each argument its
 * name, type and value, then the flows (8 bytes each). Numbers are varints; doubles are 8 bytes;
 * texts are numbers of the text table.
 */
#include <stdlib.h>

#include "ptread_wire.h"
#include "timeline_int.h"

#define CHUNK ((size_t)1 << 20)
#define PACKED_MAX (16 + MT_PTREAD_MAX_ARGS * 16 + MT_PTREAD_MAX_FLOWS * 8)

uint32_t tl_intern(struct mt_timeline *tl, struct mt_str s)
{
	return s.len ? mt_intern_get(tl->texts, s.p, s.len, NULL) : 0;
}

static unsigned char *put(unsigned char *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (unsigned char)(v | 0x80);
		v >>= 7;
	}
	*p++ = (unsigned char)v;
	return p;
}

static unsigned char *put_arg(struct mt_timeline *tl, unsigned char *p, const struct mt_pt_arg *a)
{
	p = put(p, tl_intern(tl, a->name));
	*p++ = a->type;
	switch ((enum mt_pt_arg_type)a->type) {
	case MT_PT_ARG_BOOL:
	case MT_PT_ARG_UINT:
	case MT_PT_ARG_POINTER:
		return put(p, a->u);
	case MT_PT_ARG_INT: /* zigzag, for small negative numbers */
		return put(p, a->u << 1 ^ (a->u >> 63 ? UINT64_MAX : 0));
	case MT_PT_ARG_DOUBLE:
		memcpy(p, &a->d, sizeof(a->d));
		return p + sizeof(a->d);
	case MT_PT_ARG_STR:
	case MT_PT_ARG_TEXT:
		/* An empty text has a number too: 0 says that the tables were full. */
		return put(p, mt_intern_get(tl->texts, a->s.p, a->s.len, NULL));
	case MT_PT_ARG_NONE:
		break;
	}
	return p;
}

static int store(struct mt_timeline *tl, const unsigned char *p, size_t len, const unsigned char **ret)
{
	struct mt_tl_chunk *c = tl->chunks;

	if (!c || c->cap - c->used < len) {
		c = malloc(sizeof(*c) + CHUNK);
		if (!c)
			return -ENOMEM;
		*c = (struct mt_tl_chunk){.next = tl->chunks, .cap = CHUNK};
		tl->chunks = c;
	}
	memcpy(c->bytes + c->used, p, len);
	*ret = c->bytes + c->used;
	c->used += len;
	return 0;
}

int tl_args_pack(struct mt_timeline *tl, const struct mt_pt_event *ev, const unsigned char **ret_args)
{
	unsigned char buf[PACKED_MAX], *p = buf;

	*ret_args = NULL;
	if (!ev->nargs && !ev->nflows)
		return 0;
	p = put(p, ev->nargs);
	p = put(p, ev->nflows);
	for (uint32_t i = 0; i < ev->nargs; i++)
		p = put_arg(tl, p, &ev->args[i]);
	if (ev->nflows)
		memcpy(p, ev->flows, ev->nflows * sizeof(*ev->flows));
	p += ev->nflows * sizeof(*ev->flows);
	return store(tl, buf, (size_t)(p - buf), ret_args);
}

/* Our own bytes: no checks. */
static uint64_t get(const unsigned char **p)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		unsigned char b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
}

static void get_arg(const unsigned char **p, struct mt_tl_arg *a)
{
	uint64_t v;

	*a = (struct mt_tl_arg){.name = (uint32_t)get(p)};
	a->type = *(*p)++;
	switch ((enum mt_pt_arg_type)a->type) {
	case MT_PT_ARG_BOOL:
	case MT_PT_ARG_UINT:
	case MT_PT_ARG_POINTER:
		a->u = get(p);
		break;
	case MT_PT_ARG_INT:
		v = get(p);
		a->u = v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
		break;
	case MT_PT_ARG_DOUBLE:
		memcpy(&a->d, *p, sizeof(a->d));
		*p += sizeof(a->d);
		break;
	case MT_PT_ARG_STR:
	case MT_PT_ARG_TEXT:
		a->text = (uint32_t)get(p);
		break;
	case MT_PT_ARG_NONE:
		break;
	}
}

void mt_tl_args_add(const struct mt_tl_event *e, struct mt_tl_args *a)
{
	const unsigned char *p = e->args;
	uint32_t nargs, nflows;

	if (!p)
		return;
	nargs = (uint32_t)get(&p);
	nflows = (uint32_t)get(&p);
	for (uint32_t i = 0; i < nargs; i++) {
		struct mt_tl_arg one;

		get_arg(&p, &one);
		if (a->nargs < MT_TL_MAX_ARGS)
			a->args[a->nargs++] = one;
	}
	for (uint32_t i = 0; i < nflows && a->nflows < MT_TL_MAX_FLOWS; i++, p += 8)
		memcpy(&a->flows[a->nflows++], p, 8);
}

void mt_tl_args_unique(struct mt_tl_args *a)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < a->nargs; i++) {
		uint32_t at = 0;

		while (at < n && a->args[at].name != a->args[i].name)
			at++;
		a->args[at] = a->args[i];
		if (at == n)
			n++;
	}
	a->nargs = n;
	n = 0;
	for (uint32_t i = 0; i < a->nflows; i++) {
		uint32_t at = 0;

		while (at < n && a->flows[at] != a->flows[i])
			at++;
		a->flows[at] = a->flows[i];
		if (at == n)
			n++;
	}
	a->nflows = n;
}
