/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of every event, written by hand into the batch.
 *
 * A packet here is: stamp (delta) = 8, sequence = 10, track_event = 11, interned_data = 12, flags = 13;
 * track_event: category 3, annotations 4, type 9, name_iid 10, track 11 (counters only), name 23,
 * counter 30 or 44, location 34, flow 47. All in this order.
 *
 * ev_open() makes everything ready that may add packets of its own (new tables, a
 * clear, a full batch), so that from then on the packet grows in one place and cannot fail; ev_close()
 * puts the texts that the event needed behind it.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "pftrace_int.h"

enum {
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
};

#define SEQ_NEEDS_STATE 2

/* An event under way. */
struct writing {
	struct pf *pf;
	struct pf_thread *th;
	const struct mt_callsite *cs;
	const struct pf_site *site; /* NULL: write names in place */
	struct mt_enc e;
	unsigned char *packet, *event;
	struct mt_str name;
	uint32_t name_iid; /* 0: written in place */
	bool overflow;     /* annotations were left out */
};

/* What an event carries besides its name. */
struct payload {
	uint32_t flags, nvalues, nextra;
	const struct mt_value *values;
	const struct mt_field *extra;
};

static bool name_is_static(const struct pf_site *site, const struct mt_callsite *cs, struct mt_str name)
{
	return name.p == cs->name && name.len == site->name_len;
}

/* New tables if these are too full for one more event; finds or makes the callsite's numbers. */
static const struct pf_site *ready_site(struct pf *pf, const struct mt_callsite *cs, struct mt_str name,
					uint32_t nextra)
{
	struct pf_site *site = cs ? mt_pf_site_find(pf, cs) : NULL;

	if (site && nextra == 0 && !pf->full && name_is_static(site, cs, name))
		return site;
	if (!mt_pf_tables_room(pf, MONTRACE_MAX_FIELDS + 8 + (nextra < 1u << 20 ? nextra : 1u << 20))) {
		mt_pf_tables_reset(pf);
		site = NULL;
	}
	return site || !cs ? site : mt_pf_site_add(pf, cs);
}

/* Sets the name's number and has it told. */
static void ready_name(struct writing *w)
{
	struct pf *pf = w->pf;

	if (w->site && name_is_static(w->site, w->cs, w->name))
		w->name_iid = w->site->name;
	else
		w->name_iid = mt_pf_intern(pf, PF_NAME, w->name.p, w->name.len);
	if (!mt_pf_announce(pf, w->th, PF_NAME, w->name_iid, NULL))
		w->name_iid = 0;
}

static int ev_open(struct writing *w, struct pf *pf, struct mt_thread *t, uint64_t time, uint32_t nextra)
{
	struct pf_thread *th = mt_pf_thread(pf, t);
	int r;

	if (!th)
		return -ENOMEM;
	w->pf = pf;
	w->th = th;
	if (w->name.p)
		w->site = ready_site(pf, w->cs, w->name, nextra);
	r = mt_pf_room(pf);
	if (r < 0)
		return r;
	if (th->gen != pf->gen || time >= th->reset_at || th->dropped) {
		r = mt_pf_clear(pf, th, time);
		if (r < 0)
			return r;
		r = mt_pf_room(pf);
		if (r < 0)
			return r;
	}
	w->e.p = pf->pend + pf->pend_len;
	w->e.end = w->e.p + PF_ANN_ROOM;
	w->packet = mt_enc_open(&w->e, 1);
	mt_enc_u64(&w->e, 8, time - th->last);
	mt_enc_u64(&w->e, 10, th->seq);
	w->event = mt_enc_open(&w->e, 11);
	th->last = time;
	return 0;
}

static int ev_close(struct writing *w)
{
	struct pf *pf = w->pf;

	mt_enc_close(&w->e, w->event);
	mt_pf_put_fresh(pf, &w->e);
	mt_enc_u64(&w->e, 13, SEQ_NEEDS_STATE);
	mt_enc_close(&w->e, w->packet);
	pf->pend_len = (size_t)(w->e.p - pf->pend);
	return 0;
}

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

/* A text that repeats: by number if it has one. */
static void put_constant(struct writing *w, const char *name, const char *text)
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

static void put_payload(struct writing *w, const struct payload *p)
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

/* BEGIN and INSTANT: they differ in the type, and only BEGIN has flows. */
static int put_event(struct writing *w, unsigned type, const struct payload *p, uint64_t flow)
{
	const struct pf_site *site = w->site;
	struct mt_enc *e = &w->e;

	if (site)
		mt_pf_announce_site(w->pf, w->th, site, w->cs);
	ready_name(w);
	if (site && site->category)
		mt_enc_u64(e, 3, site->category);
	put_payload(w, p);
	mt_enc_u64(e, 9, type);
	if (w->name_iid)
		mt_enc_u64(e, 10, w->name_iid);
	else
		mt_enc_text(e, 23, w->name.p, w->name.len, PF_MAX_NAME);
	if (site && site->located)
		mt_enc_u64(e, 34, (uint64_t)(site - w->pf->sites) + 1);
	if (flow)
		mt_enc_fixed64(e, 47, flow);
	return ev_close(w);
}

/* Flow ids are global to an importer, which may read several traces: a bijection with a random part. */
uint64_t mt_pf_flow(const struct pf *pf, uint64_t flow)
{
	uint64_t v = (flow ^ pf->salt) * 0x9e3779b97f4a7c15ull;

	v ^= v >> 32;
	return v ? v : 1;
}

int mt_pf_op_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct payload p = {
		.flags = sl->flags,
		.nvalues = sl->nvalues,
		.values = sl->values,
		.nextra = sl->nextra,
		.extra = sl->extra,
	};
	struct writing w = {.cs = sl->cs, .name = sl->name};
	struct pf *pf = pf_of(s);
	int r;

	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	r = ev_open(&w, pf, sl->thread, sl->time, sl->nextra);
	if (r < 0)
		return r;
	return put_event(&w, TYPE_BEGIN, &p, sl->flow ? mt_pf_flow(pf, sl->flow) : 0);
}

int mt_pf_op_instant(struct mt_sink *s, const struct mt_instant *i)
{
	struct payload p = {
		.flags = i->flags & MT_SLICE_CUT,
		.nvalues = i->nvalues,
		.values = i->values,
		.nextra = i->nextra,
		.extra = i->extra,
	};
	struct writing w = {.cs = i->cs, .name = i->name};
	int r;

	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	r = ev_open(&w, pf_of(s), i->thread, i->time, i->nextra);
	if (r < 0)
		return r;
	return put_event(&w, TYPE_INSTANT, &p, 0);
}

static const char *signal_name(int sig)
{
	static const char *const names[] = {
		[1] = "SIGHUP",     [2] = "SIGINT",   [3] = "SIGQUIT",  [4] = "SIGILL",     [5] = "SIGTRAP",
		[6] = "SIGABRT",    [7] = "SIGBUS",   [8] = "SIGFPE",   [9] = "SIGKILL",    [10] = "SIGUSR1",
		[11] = "SIGSEGV",   [12] = "SIGUSR2", [13] = "SIGPIPE", [14] = "SIGALRM",   [15] = "SIGTERM",
		[16] = "SIGSTKFLT", [24] = "SIGXCPU", [25] = "SIGXFSZ", [26] = "SIGVTALRM", [27] = "SIGPROF",
		[29] = "SIGIO",     [30] = "SIGPWR",  [31] = "SIGSYS",
	};

	return sig > 0 && sig < (int)(sizeof(names) / sizeof(names[0])) ? names[sig] : NULL;
}

/* Text for the annotation `end`; NULL for an ordinary end. */
static const char *end_text(const struct mt_slice_end *end, char *buf, size_t cap)
{
	int status = (int)end->exit_status;

	switch (end->reason) {
	case MT_END_NORMAL:
		return NULL;
	case MT_END_OUTER:
		return "continued";
	case MT_END_CLOSED:
		return "closed";
	case MT_END_LOST:
		return "end lost";
	case MT_END_THREAD:
		return "thread exit";
	case MT_END_EXEC:
		return "exec";
	case MT_END_DETACH:
		return "detached";
	case MT_END_LEFT:
		return "left";
	case MT_END_PART:
		return "continued in the next file";
	case MT_END_PROCESS:
		if (WIFSIGNALED(status)) {
			const char *name = signal_name(WTERMSIG(status));

			snprintf(buf, cap, "process killed by signal %d%s%s%s", WTERMSIG(status),
				 name ? " (" : "", name ? name : "", name ? ")" : "");
		} else {
			snprintf(buf, cap, "process exit %d", WEXITSTATUS(status));
		}
		return buf;
	}
	return "unknown";
}

int mt_pf_op_end(struct mt_sink *s, const struct mt_slice_end *end)
{
	struct writing w = {.cs = end->cs, .name = end->name};
	struct payload p = {.nextra = end->nextra, .extra = end->extra};
	char buf[64];
	const char *why;
	int r;

	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	r = ev_open(&w, pf_of(s), end->thread, end->time, end->nextra);
	if (r < 0)
		return r;
	ready_name(&w);
	w.site = NULL; /* the level was told by the begin */
	if (p.nextra)
		put_payload(&w, &p);
	why = end_text(end, buf, sizeof(buf));
	if (why)
		put_constant(&w, "end", why);
	mt_enc_u64(&w.e, 9, TYPE_END);
	if (w.name_iid)
		mt_enc_u64(&w.e, 10, w.name_iid);
	else
		mt_enc_text(&w.e, 23, w.name.p, w.name.len, PF_MAX_NAME);
	return ev_close(&w);
}

int mt_pf_op_counter(struct mt_sink *s, const struct mt_count *c)
{
	struct writing w = {0};
	struct pf *pf = pf_of(s);
	const struct mt_value *v = &c->value;
	uint64_t uuid = 0;
	int r;

	if (!c->cs || v->missing)
		return pf->error;
	r = mt_pf_counter_track(pf, c, &uuid);
	if (r < 0)
		return r;
	r = ev_open(&w, pf, c->thread, c->time, 0);
	if (r < 0)
		return r;
	mt_enc_u64(&w.e, 9, TYPE_COUNTER);
	mt_enc_u64(&w.e, 11, uuid);
	if (v->type == MONTRACE_TYPE_F64)
		mt_enc_double(&w.e, 44, v->f);
	else if (v->type == MONTRACE_TYPE_I64 || v->u <= INT64_MAX)
		mt_enc_u64(&w.e, 30, v->u);
	else
		mt_enc_double(&w.e, 44, (double)v->u); /* counter_value is signed */
	return ev_close(&w);
}
