/* SPDX-License-Identifier: BSD-3-Clause */
#include "ptread_int.h"

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

/* A TrackEvent as far as it is known from one walk over it. */
struct raw {
	uint64_t type, uuid, name_iid, loc_iid;
	bool has_uuid, has_loc, legacy;
	size_t cat_len;
	struct pt_wire loc;
	struct mt_pt_event ev;
};

static void add_cat(struct mt_ptread *r, struct raw *w, struct mt_str s)
{
	size_t comma = w->cat_len > 0;

	if (s.len + comma > sizeof(r->cat) - w->cat_len) {
		r->info.over_limit++;
		return;
	}
	if (comma)
		r->cat[w->cat_len++] = ',';
	if (s.len)
		memcpy(r->cat + w->cat_len, s.p, s.len);
	w->cat_len += s.len;
}

static void add_cat_iid(struct mt_ptread *r, struct pt_seq *s, struct raw *w, uint64_t iid)
{
	const struct pt_entry *en = pt_seq_find(r, s, PT_CATEGORIES, iid);

	if (en)
		add_cat(r, w, pt_seq_text(s, en));
}

static void add_flow(struct mt_ptread *r, struct raw *w, uint64_t id)
{
	if (w->ev.nflows < MT_PTREAD_MAX_FLOWS)
		r->flows[w->ev.nflows++] = id;
	else
		r->info.over_limit++;
}

static int add_arg(struct mt_ptread *r, struct pt_seq *s, struct raw *w, struct pt_wire data)
{
	int e;

	if (w->ev.nargs == MT_PTREAD_MAX_ARGS) {
		r->info.over_limit++;
		return 0;
	}
	e = pt_arg(r, s, data, &r->args[w->ev.nargs]);
	if (e > 0)
		w->ev.nargs++;
	return e < 0 ? e : 0;
}

static int one_field(struct mt_ptread *r, struct pt_seq *s, struct raw *w, const struct pt_field *f)
{
	switch (f->tag) {
	case PT_VARINT(9):
		w->type = f->u;
		break;
	case PT_VARINT(11):
		w->uuid = f->u;
		w->has_uuid = true;
		break;
	case PT_VARINT(10):
		w->name_iid = f->u;
		break;
	case PT_BYTES(23):
		w->ev.name = pt_str(f->data);
		w->ev.has_name = true;
		break;
	case PT_VARINT(3):
		add_cat_iid(r, s, w, f->u);
		break;
	case PT_BYTES(22):
		add_cat(r, w, pt_str(f->data));
		break;
	case PT_BYTES(4):
		return add_arg(r, s, w, f->data);
	case PT_FIXED64(47):
	case PT_FIXED64(48):
	case PT_VARINT(36):
	case PT_VARINT(42):
		add_flow(r, w, f->u);
		break;
	case PT_VARINT(30):
		w->ev.i = (int64_t)f->u;
		w->ev.is_double = false;
		break;
	case PT_FIXED64(44):
		w->ev.d = pt_double(f->u);
		w->ev.is_double = true;
		break;
	case PT_BYTES(33):
		w->loc = f->data;
		w->has_loc = true;
		break;
	case PT_VARINT(34):
		w->loc_iid = f->u;
		break;
	case PT_BYTES(6):
		w->legacy = true;
		break;
	}
	return 0;
}

/* Names and places, after the walk. */
static int resolve(struct mt_ptread *r, struct pt_seq *s, struct raw *w)
{
	const struct pt_entry *en;
	uint64_t iid;

	if (w->name_iid && !w->ev.has_name) {
		en = pt_seq_find(r, s, PT_NAMES, w->name_iid);
		if (en) {
			w->ev.name = pt_seq_text(s, en);
			w->ev.has_name = true;
		}
	}
	if (w->has_loc)
		return pt_location(w->loc, &iid, &w->ev.file, &w->ev.function, &w->ev.line);
	if (!w->loc_iid)
		return 0;
	en = pt_seq_find(r, s, PT_LOCATIONS, w->loc_iid);
	if (en) {
		w->ev.file = pt_seq_text(s, en);
		w->ev.function = en->len2 ? (struct mt_str){s->text + en->off2, en->len2} : w->ev.function;
		w->ev.line = en->line;
	}
	return 0;
}

/* What a counter shows: scaled, and summed up if the file has differences. */
static void counter_value(struct mt_pt_track *t, struct mt_pt_event *ev)
{
	if (ev->is_double) {
		if (t->incremental)
			ev->d = t->sum_d += ev->d;
		return;
	}
	if (t->unit_multiplier)
		ev->i = (int64_t)((uint64_t)ev->i * (uint64_t)t->unit_multiplier);
	if (t->incremental)
		ev->i = t->sum_i = (int64_t)((uint64_t)t->sum_i + (uint64_t)ev->i);
}

static int kind_of(const struct raw *w)
{
	switch (w->type) {
	case TYPE_BEGIN:
		return MT_PT_BEGIN;
	case TYPE_END:
		return MT_PT_END;
	case TYPE_INSTANT:
		return MT_PT_INSTANT;
	case TYPE_COUNTER:
		return MT_PT_COUNTER;
	}
	return -1;
}

int pt_event(struct mt_ptread *r, struct pt_seq *s, const struct pt_packet *p, uint64_t ts)
{
	struct raw w = {.ev = {.name = {"", 0}, .file = {"", 0}, .function = {"", 0}}};
	struct pt_wire in = p->event;
	struct mt_pt_track *t;
	struct pt_field f;
	int e, kind;

	r->dict_len = 0;
	while ((e = pt_next(&in, &f)) > 0) {
		e = one_field(r, s, &w, &f);
		if (e < 0)
			return e;
	}
	if (e < 0)
		return e;
	e = resolve(r, s, &w);
	if (e < 0)
		return e;
	kind = kind_of(&w);
	if (kind < 0) {
		r->info.unsupported++;
		return 0;
	}
	if ((int64_t)ts < 0) {
		r->info.bad_time++;
		return 0;
	}
	e = pt_track_get(r, w.has_uuid ? w.uuid : s->has_uuid ? s->uuid : 0, &t);
	if (e < 0 || !t)
		return e;
	w.ev.kind = (enum mt_pt_kind)kind;
	if (kind == MT_PT_COUNTER)
		counter_value(t, &w.ev);
	w.ev.has_ts = true;
	w.ev.ts = ts;
	w.ev.track = t;
	w.ev.seq = p->seq;
	w.ev.offset = r->offset;
	w.ev.cat = (struct mt_str){r->cat, (uint32_t)w.cat_len};
	w.ev.args = r->args;
	w.ev.flows = r->flows;
	r->info.events++;
	return r->cb(r->ctx, &w.ev);
}
