/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>

#include "cmd_dump_int.h"

static void key_text(FILE *out, const char *key, struct mt_str s)
{
	fprintf(out, ",\"%s\":", key);
	tl_json_string(out, s);
}

static void put_owner(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	const struct mt_tl_track *t = &tl->tracks[e->track];
	const struct mt_tl_group *g = &tl->groups[t->group];

	if (g->has_pid)
		fprintf(out, ",\"pid\":%d", g->pid);
	else
		fputs(",\"pid\":null", out);
	if (t->thread)
		fprintf(out, ",\"tid\":%" PRId64, t->thread->tid);
	else
		fputs(",\"tid\":null", out);
	key_text(out, "thread", tl_cstr(t->thread ? t->thread->tname : ""));
	key_text(out, "process", tl_cstr(g->name));
	if (!t->t->is_thread && *t->t->name)
		key_text(out, "track", tl_cstr(t->t->name));
}

static void put_args(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	struct mt_tl_args a;

	a.nargs = a.nflows = 0;
	mt_tl_args_add(e, &a);
	if (e->kind == MT_PT_BEGIN && e->end != MT_TL_NONE && !(e->flags & MT_TL_CUT))
		mt_tl_args_add(&tl->events[e->end], &a);
	mt_tl_args_unique(&a);
	fputs(",\"args\":{", out);
	for (uint32_t i = 0; i < a.nargs; i++) {
		if (i)
			putc(',', out);
		tl_arg_json(out, tl, &a.args[i]);
	}
	fputs("},\"flows\":[", out);
	for (uint32_t i = 0; i < a.nflows; i++)
		fprintf(out, i ? ",%" PRIu64 : "%" PRIu64, a.flows[i]);
	putc(']', out);
}

static void put_event(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	bool slice = e->kind == MT_PT_BEGIN, counter = e->kind == MT_PT_COUNTER, loss = e->flags & MT_TL_LOSS;
	struct mt_str name = mt_tl_text(tl, e->name);
	uint64_t ns;

	if (counter && !name.len)
		name = tl_cstr(tl->tracks[e->track].t->name);
	fprintf(out, "{\"type\":\"%s\",\"ts\":%" PRIu64,
		slice     ? "slice"
		: counter ? "counter"
		: loss    ? "loss"
			  : "instant",
		e->ts);
	if (slice && mt_tl_duration(tl, e, &ns))
		fprintf(out, ",\"dur\":%" PRIu64, ns);
	else if (slice)
		fputs(",\"dur\":null", out);
	key_text(out, "name", name);
	put_owner(out, tl, e);
	fprintf(out, ",\"depth\":%u", e->depth);
	if (counter) {
		fputs(",\"value\":", out);
		if (e->flags & MT_TL_DOUBLE)
			tl_json_double(out, e->d);
		else
			fprintf(out, "%" PRId64, e->i);
	}
	if (loss)
		fprintf(out, ",\"source\":\"instant\",\"count\":%" PRIu64, e->u);
	key_text(out, "cat", mt_tl_text(tl, e->cat));
	key_text(out, "file", mt_tl_text(tl, e->file));
	fprintf(out, ",\"line\":%" PRIu32, e->line);
	put_args(out, tl, e);
	if (e->flags & MT_TL_CUT)
		fputs(",\"cut\":true", out);
	fputs("}\n", out);
}

static void put_loss(FILE *out, const struct mt_tl_loss *l)
{
	bool kernel = l->loss.source == MT_PT_LOSS_KERNEL;

	fputs("{\"type\":\"loss\",\"ts\":", out);
	if (l->has_ts)
		fprintf(out, "%" PRIu64, l->ts);
	else
		fputs("null", out);
	fprintf(out, ",\"source\":\"%s\",\"count\":%" PRIu64 ",\"%s\":%" PRIu32 "}\n",
		kernel ? "kernel" : "packets", l->loss.count, kernel ? "cpu" : "sequence",
		kernel ? l->loss.cpu : l->loss.seq);
}

/* Losses that have no place in time come last. */
int dump_json(FILE *out, const struct mt_timeline *tl)
{
	uint32_t *order, n;
	int r;

	r = mt_tl_by_time(tl, &order, &n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n && !ferror(out); i++)
		put_event(out, tl, &tl->events[order[i]]);
	free(order);
	for (uint32_t i = 0; i < tl->nlosses; i++)
		put_loss(out, &tl->losses[i]);
	if (tl->writer_lost)
		fprintf(out, "{\"type\":\"loss\",\"ts\":null,\"source\":\"writers\",\"count\":%" PRIu64 "}\n",
			tl->writer_lost);
	tl_end_json(out, tl);
	return 0;
}
