/* SPDX-License-Identifier: BSD-3-Clause */
/* The annotations of an event, written in place. What does not fit is left out and marked. */
#include <stdio.h>

#include "pftrace_write.h"

/* An annotation's frame: name first if it has a number, last (10) if it is written in place. */
static unsigned char *ann_open(struct writing *w, uint32_t iid)
{
	unsigned char *start = mt_enc_open(&w->e, 4);

	if (iid)
		mt_enc_u64(&w->e, 1, iid);
	return start;
}

static void ann_close(struct writing *w, unsigned char *start, uint32_t iid, struct mt_str name)
{
	if (!iid)
		mt_enc_text(&w->e, 10, name.p, name.len, PF_MAX_NAME);
	mt_enc_close(&w->e, start);
}

static uint32_t ann_name(struct writing *w, struct mt_str name)
{
	uint32_t iid = mt_pf_intern(w->pf, PF_ANNOTATION, name.p, name.len);

	return mt_pf_announce(w->pf, w->th, PF_ANNOTATION, iid, NULL) ? iid : 0;
}

static void put_missing(struct mt_enc *e, const char *reason, size_t len)
{
	unsigned char *text = mt_enc_open(e, 6);

	mt_enc_raw(e, "<unavailable: ", 14);
	mt_enc_text_raw(e, reason, len, 256);
	mt_enc_raw(e, ">", 1);
	mt_enc_close(e, text);
}

static bool is_text(const struct mt_value *v)
{
	return v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG;
}

static void put_value(struct mt_enc *e, const struct mt_value *v)
{
	if (v->missing) {
		put_missing(e, v->s.p ? v->s.p : "", v->s.p ? v->s.len : 0);
		return;
	}
	switch (v->type) {
	case MONTRACE_TYPE_I64:
		mt_enc_u64(e, 4, (uint64_t)v->i);
		break;
	case MONTRACE_TYPE_U64:
		mt_enc_u64(e, 3, v->u);
		break;
	case MONTRACE_TYPE_F64:
		mt_enc_double(e, 5, v->f);
		break;
	case MONTRACE_TYPE_BOOL:
		mt_enc_u64(e, 2, v->u != 0);
		break;
	case MONTRACE_TYPE_STR:
	case MONTRACE_TYPE_DEBUG:
		mt_enc_text(e, 6, v->s.p, v->s.len, PF_MAX_TEXT);
		break;
	default:
		put_missing(e, "unknown type", 12);
	}
}

/* A text that was cut keeps what there is; a second annotation tells how long it was. */
static void put_full_length(struct writing *w, struct mt_str name, const struct mt_value *v)
{
	char text[PF_MAX_NAME + 16];
	size_t len = mt_utf8_fix(text, PF_MAX_NAME, name.p ? name.p : "", name.len);
	uint32_t full = v->cut ? v->full_len : v->s.len;
	struct mt_str key = {.p = text};
	unsigned char *start;
	uint32_t iid;

	memcpy(text + len, full ? "_full_length" : "_cut", full ? 12 : 4);
	key.len = (uint32_t)(len + (full ? 12 : 4));
	if (!mt_enc_room(&w->e, PF_MAX_NAME + 64)) {
		w->overflow = true;
		return;
	}
	iid = ann_name(w, key);
	start = ann_open(w, iid);
	if (full)
		mt_enc_u64(&w->e, 3, full);
	else
		mt_enc_u64(&w->e, 2, 1);
	ann_close(w, start, iid, key);
}

/* name_iid 0: name is looked up or written in place. */
static void put_annotation(struct writing *w, uint32_t name_iid, struct mt_str name, const struct mt_value *v)
{
	size_t text = is_text(v) && !v->missing ? v->s.len : 256;
	unsigned char *start;

	/* Broken text may grow to three times its length. */
	text = text < PF_MAX_TEXT / 3 ? text * 3 : PF_MAX_TEXT;
	if (!mt_enc_room(&w->e, text + PF_MAX_NAME + 64)) {
		w->overflow = true;
		return;
	}
	start = ann_open(w, name_iid);
	put_value(&w->e, v);
	ann_close(w, start, name_iid, name);
	if (is_text(v) && !v->missing && (v->cut || v->s.len > PF_MAX_TEXT))
		put_full_length(w, name, v);
}

static void put_flag(struct writing *w, const char *name)
{
	struct mt_str key = {.p = name, .len = (uint32_t)strlen(name)};
	uint32_t iid = ann_name(w, key);
	unsigned char *start = ann_open(w, iid);

	mt_enc_u64(&w->e, 2, 1);
	ann_close(w, start, iid, key);
}

/* By number if it has one. */
void mt_pf_put_constant(struct writing *w, const char *name, const char *text)
{
	struct mt_str key = {.p = name, .len = (uint32_t)strlen(name)};
	uint32_t iid = ann_name(w, key);
	uint32_t value = mt_pf_intern(w->pf, PF_STRING, text, strlen(text));
	unsigned char *start = ann_open(w, iid);

	if (mt_pf_announce(w->pf, w->th, PF_STRING, value, NULL)) {
		if (!iid) /* 10 goes before 17 */
			mt_enc_text(&w->e, 10, key.p, key.len, PF_MAX_NAME);
		mt_enc_u64(&w->e, 17, value);
		mt_enc_close(&w->e, start);
	} else {
		mt_enc_text(&w->e, 6, text, strlen(text), PF_MAX_NAME);
		ann_close(w, start, iid, key);
	}
}

static void put_values(struct writing *w, const struct payload *p)
{
	uint32_t nfields = w->cs ? w->cs->nfields : 0;
	char number[16];

	if (nfields > MONTRACE_MAX_FIELDS)
		nfields = MONTRACE_MAX_FIELDS;
	for (uint32_t i = 0; i < p->nvalues; i++) {
		struct mt_str name;
		uint32_t iid = 0;

		if (i < nfields) {
			name.p = w->cs->fields[i].name;
			name.len = (uint32_t)strlen(name.p);
			iid = w->site ? w->site->fields[i] : 0;
		} else {
			name.p = number;
			name.len = (uint32_t)snprintf(number, sizeof(number), "arg%u", i);
		}
		put_annotation(w, iid, name, &p->values[i]);
	}
}

void mt_pf_put_payload(struct writing *w, const struct payload *p)
{
	if (w->site && w->site->level) {
		unsigned char *start = ann_open(w, w->site->level_name);

		mt_enc_u64(&w->e, 17, w->site->level);
		mt_enc_close(&w->e, start);
	}
	if (p->flags & MT_SLICE_CONTINUED)
		put_flag(w, "continued");
	if (p->flags & MT_SLICE_CUT)
		put_flag(w, "cut");
	if (p->nvalues)
		put_values(w, p);
	for (uint32_t i = 0; i < p->nextra && !w->overflow; i++)
		put_annotation(w, ann_name(w, p->extra[i].name), p->extra[i].name, &p->extra[i].value);
	if (w->overflow && !(p->flags & MT_SLICE_CUT))
		put_flag(w, "cut");
}
