/* SPDX-License-Identifier: BSD-3-Clause */
/* DebugAnnotation -> struct mt_pt_arg. Dicts and arrays become text, in r->dict, bounded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ptread_int.h"

#define MAX_DEPTH 16

enum { DICT_ENTRY = PT_BYTES(11), ARRAY_VALUE = PT_BYTES(12) };

static void put(struct mt_ptread *r, const char *s, size_t len)
{
	if (len > sizeof(r->dict) - r->dict_len)
		len = sizeof(r->dict) - r->dict_len;
	memcpy(r->dict + r->dict_len, s, len);
	r->dict_len += len;
}

static void put_quoted(struct mt_ptread *r, struct mt_str s)
{
	put(r, "\"", 1);
	for (uint32_t i = 0; i < s.len && r->dict_len < sizeof(r->dict); i++) {
		unsigned char c = (unsigned char)s.p[i];
		char esc[8];

		if (c == '"' || c == '\\') {
			put(r, (char[]){'\\', (char)c}, 2);
		} else if (c < 0x20) {
			snprintf(esc, sizeof(esc), "\\u%04x", c);
			put(r, esc, 6);
		} else {
			put(r, (const char *)&s.p[i], 1);
		}
	}
	put(r, "\"", 1);
}

static void put_scalar(struct mt_ptread *r, const struct mt_pt_arg *a)
{
	char num[40] = "null";

	switch ((enum mt_pt_arg_type)a->type) {
	case MT_PT_ARG_BOOL:
		strcpy(num, a->u ? "true" : "false");
		break;
	case MT_PT_ARG_INT:
		snprintf(num, sizeof(num), "%" PRId64, a->i);
		break;
	case MT_PT_ARG_UINT:
		snprintf(num, sizeof(num), "%" PRIu64, a->u);
		break;
	case MT_PT_ARG_POINTER:
		snprintf(num, sizeof(num), "\"0x%" PRIx64 "\"", a->u);
		break;
	case MT_PT_ARG_DOUBLE:
		snprintf(num, sizeof(num), isfinite(a->d) ? "%.17g" : "\"%f\"", a->d);
		break;
	case MT_PT_ARG_STR:
		put_quoted(r, a->s);
		return;
	case MT_PT_ARG_TEXT:
		put(r, a->s.p, a->s.len);
		return;
	case MT_PT_ARG_NONE:
		break;
	}
	put(r, num, strlen(num));
}

/* What is to be known of an annotation before its children are looked at. */
struct shape {
	bool has_name, known; /* known: the name, and the value if it is interned, could be found */
	uint32_t children;    /* DICT_ENTRY, ARRAY_VALUE or 0 */
	struct mt_pt_arg a;
};

static void find_text(struct mt_ptread *r, struct pt_seq *s, enum pt_table t, uint64_t iid, struct shape *sh,
		      struct mt_str *ret_text)
{
	const struct pt_entry *en = pt_seq_find(r, s, t, iid);

	if (en)
		*ret_text = pt_seq_text(s, en);
	else
		sh->known = false;
}

static int look(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w, struct shape *sh)
{
	struct mt_pt_arg *a = &sh->a;
	struct pt_field f;
	int e;

	*sh = (struct shape){.known = true, .a = {.name = {"", 0}, .type = MT_PT_ARG_NONE}};
	while ((e = pt_next(&w, &f)) > 0) {
		switch (f.tag) {
		case PT_VARINT(1):
			find_text(r, s, PT_ARG_NAMES, f.u, sh, &a->name);
			break;
		case PT_BYTES(10):
			a->name = pt_str(f.data);
			break;
		case PT_VARINT(2):
			a->type = MT_PT_ARG_BOOL;
			a->u = f.u != 0;
			break;
		case PT_VARINT(3):
			a->type = MT_PT_ARG_UINT;
			a->u = f.u;
			break;
		case PT_VARINT(4):
			a->type = MT_PT_ARG_INT;
			a->u = f.u;
			break;
		case PT_FIXED64(5):
			a->type = MT_PT_ARG_DOUBLE;
			a->d = pt_double(f.u);
			break;
		case PT_BYTES(6):
			a->type = MT_PT_ARG_STR;
			a->s = pt_str(f.data);
			break;
		case PT_VARINT(7):
			a->type = MT_PT_ARG_POINTER;
			a->u = f.u;
			break;
		case PT_BYTES(9):
			a->type = MT_PT_ARG_TEXT;
			a->s = pt_str(f.data);
			break;
		case PT_VARINT(17):
			a->type = MT_PT_ARG_STR;
			a->s = (struct mt_str){"", 0};
			find_text(r, s, PT_ARG_STRINGS, f.u, sh, &a->s);
			break;
		case DICT_ENTRY:
		case ARRAY_VALUE:
			sh->children = f.tag;
			break;
		}
	}
	return e;
}

static int put_children(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w, uint32_t children, int depth)
{
	bool dict = children == DICT_ENTRY, first = true;
	struct pt_field f;
	struct shape sh;
	int e;

	if (depth >= MAX_DEPTH) {
		put(r, "\"...\"", 5);
		return 0;
	}
	put(r, dict ? "{" : "[", 1);
	while ((e = pt_next(&w, &f)) > 0) {
		if (f.tag != children)
			continue;
		e = look(r, s, f.data, &sh);
		if (e < 0)
			return e;
		if (!sh.known)
			continue;
		if (!first)
			put(r, ",", 1);
		first = false;
		if (dict) {
			put_quoted(r, sh.a.name);
			put(r, ":", 1);
		}
		if (!sh.children) {
			put_scalar(r, &sh.a);
			continue;
		}
		e = put_children(r, s, f.data, sh.children, depth + 1);
		if (e < 0)
			return e;
	}
	put(r, dict ? "}" : "]", 1);
	return e;
}

int pt_arg(struct mt_ptread *r, struct pt_seq *s, struct pt_wire w, struct mt_pt_arg *arg)
{
	struct shape sh;
	size_t from = r->dict_len;
	int e;

	e = look(r, s, w, &sh);
	if (e < 0)
		return e;
	if (!sh.known)
		return 0;
	*arg = sh.a;
	if (sh.children) {
		e = put_children(r, s, w, sh.children, 0);
		if (e < 0)
			return e;
		arg->type = MT_PT_ARG_TEXT;
		arg->s = (struct mt_str){r->dict + from, (uint32_t)(r->dict_len - from)};
		if (r->dict_len == sizeof(r->dict))
			r->info.over_limit++;
	}
	return 1;
}
