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

#include "pftrace_write.h"

enum {
	TYPE_BEGIN = 1,
	TYPE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
};

#define SEQ_NEEDS_STATE 2
#define PF_POOL 0x706f6f6c /* what a pool's id is made with, so that it is no lane's */

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

static int ev_open(struct writing *w, struct pf *pf, struct pf_thread *th, uint64_t time, uint32_t nextra)
{
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
	mt_pf_put_payload(w, p);
	mt_enc_u64(e, 9, type);
	if (w->name_iid)
		mt_enc_u64(e, 10, w->name_iid);
	if (w->track)
		mt_enc_u64(e, 11, w->track);
	if (!w->name_iid)
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

static struct payload payload_of(const struct mt_slice *sl)
{
	return (struct payload){
		.flags = sl->flags,
		.nvalues = sl->nvalues,
		.values = sl->values,
		.nextra = sl->nextra,
		.extra = sl->extra,
	};
}

int mt_pf_op_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct payload p = payload_of(sl);
	struct writing w = {.cs = sl->cs, .name = sl->name};
	struct pf *pf = pf_of(s);
	int r;

	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	r = ev_open(&w, pf, mt_pf_thread(pf, sl->thread), sl->time, sl->nextra);
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
	r = ev_open(&w, pf_of(s), mt_pf_thread(pf_of(s), i->thread), i->time, i->nextra);
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
	case MT_END_AGAIN:
		return "begun again";
	case MT_END_FORGOTTEN:
		return "too many open";
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

static int put_end(struct pf *pf, struct pf_thread *th, const struct mt_slice_end *end, uint64_t time,
		   uint64_t track)
{
	struct writing w = {.cs = end->cs, .name = end->name, .track = track};
	struct payload p = {.nextra = end->nextra, .extra = end->extra};
	char buf[64];
	const char *why;
	int r;

	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	r = ev_open(&w, pf, th, time, end->nextra);
	if (r < 0)
		return r;
	ready_name(&w);
	w.site = NULL; /* the level was told by the begin */
	if (p.nextra)
		mt_pf_put_payload(&w, &p);
	why = end_text(end, buf, sizeof(buf));
	if (why)
		mt_pf_put_constant(&w, "end", why);
	if (end->in_doubt)
		mt_pf_put_constant(&w, "doubt", "hits were lost: it may have ended before");
	mt_enc_u64(&w.e, 9, TYPE_END);
	if (w.name_iid)
		mt_enc_u64(&w.e, 10, w.name_iid);
	if (w.track)
		mt_enc_u64(&w.e, 11, w.track);
	if (!w.name_iid)
		mt_enc_text(&w.e, 23, w.name.p, w.name.len, PF_MAX_NAME);
	return ev_close(&w);
}

int mt_pf_op_end(struct mt_sink *s, const struct mt_slice_end *end)
{
	struct pf *pf = pf_of(s);

	return put_end(pf, mt_pf_thread(pf, end->thread), end, end->time, 0);
}

/* The lane's pool is named after the callsite: names made of fields would need one each. */
int mt_pf_op_keyed_begin(struct mt_sink *s, const struct mt_slice *sl)
{
	struct payload p = payload_of(sl);
	struct writing w = {.cs = sl->cs, .name = sl->name};
	struct pf *pf = pf_of(s);
	struct pf_process *pp = mt_pf_process(pf, sl->process);
	const char *name = sl->cs ? sl->cs->name : "";
	struct pf_lane *lane;
	int r;

	if (pp && !pp->keyed)
		pp->keyed = mt_pf_sequence(pf, pp->uuid);
	if (!pp || !pp->keyed)
		return -ENOMEM;
	if (!w.name.p)
		w.name = (struct mt_str){.p = "", .len = 0};
	if (!pp->last_pool || !sl->cs || pp->last_site != sl->cs->id) {
		pp->last_pool = mt_pf_uuid_of(pp->uuid, name, PF_POOL);
		pp->last_site = sl->cs ? sl->cs->id : 0;
	}
	r = mt_pf_lane_take(pf, pp, pp->last_pool, pp->nlanes < PF_MAX_LANES ? UINT32_MAX : 0, name,
			    PF_KEYED_KEY(sl->key), sl->time, &lane);
	if (r == 0 && !lane) /* at most as many as are open at once */
		r = mt_pf_lane_take(pf, pp, mt_pf_uuid_of(pp->uuid, "more spans", PF_POOL), UINT32_MAX,
				    "more spans", PF_KEYED_KEY(sl->key), sl->time, &lane);
	if (r < 0)
		return r;
	w.track = lane->uuid;
	r = ev_open(&w, pf, pp->keyed, lane->last, sl->nextra);
	if (r < 0)
		return r;
	return put_event(&w, TYPE_BEGIN, &p, sl->flow ? mt_pf_flow(pf, sl->flow) : 0);
}

int mt_pf_op_keyed_end(struct mt_sink *s, const struct mt_slice_end *end)
{
	struct pf_process *pp = end->process->sink_data;
	struct pf_lane *lane = pp ? mt_pf_lane_give(pp, PF_KEYED_KEY(end->key), end->time) : NULL;

	return lane ? put_end(pf_of(s), pp->keyed, end, lane->last, lane->uuid) : 0;
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
	r = ev_open(&w, pf, mt_pf_thread(pf, c->thread), c->time, 0);
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
