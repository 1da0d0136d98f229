/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "cmd_summary_int.h"

#define MS_WIDTH 13

static void put_name(FILE *out, const struct mt_timeline *tl, uint32_t name)
{
	fputs("  ", out);
	if (mt_tl_text(tl, name).len)
		tl_safe(out, mt_tl_text(tl, name));
	else
		fputs("(no name)", out);
	putc('\n', out);
}

static uint32_t shown(const struct summary *s, uint32_t n)
{
	return n < s->rows ? n : s->rows;
}

static void text_rest(FILE *out, const struct summary *s, uint32_t n, const char *what)
{
	if (n > s->rows)
		fprintf(out, "%10s  %" PRIu32 " more %s, not shown (--all-rows)\n", "...", n - s->rows, what);
}

static void text_spans(FILE *out, const struct summary *s)
{
	if (!s->nspans)
		return;
	fprintf(out, "\n%10s %8s %*s %*s %*s %*s %*s %*s  %s\n", "count", "open", MS_WIDTH, "total ms",
		MS_WIDTH, "self ms", MS_WIDTH, "min ms", MS_WIDTH, "p50 ms", MS_WIDTH, "p99 ms", MS_WIDTH,
		"max ms", "span");
	for (uint32_t i = 0; i < shown(s, s->nspans); i++) {
		const struct summary_span *sp = &s->spans[i];
		const uint64_t ns[] = {sp->total, sp->self, sp->min, sp->p50, sp->p99, sp->max};

		fprintf(out, "%10" PRIu64 " %8" PRIu64, sp->count, sp->open);
		for (int k = 0; k < 6; k++) {
			putc(' ', out);
			if (sp->count)
				tl_ms(out, ns[k], MS_WIDTH);
			else
				fprintf(out, "%*s", MS_WIDTH, "-");
		}
		put_name(out, s->tl, sp->name);
	}
	text_rest(out, s, s->nspans, "spans");
}

/* `  file.c:12, 345 different texts, category "cat"` */
static void put_location(FILE *out, const struct mt_timeline *tl, const struct summary_instant *in)
{
	fputs("  ", out);
	tl_safe(out, mt_tl_text(tl, in->file));
	fprintf(out, ":%" PRIu32 ", %" PRIu32 " different texts", in->line, in->texts);
	if (in->cat) {
		fputs(", category ", out);
		tl_quoted(out, mt_tl_text(tl, in->cat));
	}
	putc('\n', out);
}

static void text_instants(FILE *out, const struct summary *s)
{
	if (!s->ninstants)
		return;
	fprintf(out, "\n%10s  %s\n", "count", "instant");
	for (uint32_t i = 0; i < shown(s, s->ninstants); i++) {
		const struct summary_instant *in = &s->instants[i];

		fprintf(out, "%10" PRIu64, in->count);
		if (in->texts)
			put_location(out, s->tl, in);
		else
			put_name(out, s->tl, in->name);
	}
	text_rest(out, s, s->ninstants, "instants");
}

static void text_counters(FILE *out, const struct summary *s)
{
	if (!s->ncounters)
		return;
	fprintf(out, "\n%10s %20s %20s %20s  %s\n", "count", "last", "min", "max", "counter");
	for (uint32_t i = 0; i < shown(s, s->ncounters); i++) {
		const struct summary_counter *c = &s->counters[i];
		const struct mt_tl_track *t = &s->tl->tracks[c->track];

		if (c->is_double)
			fprintf(out, "%10" PRIu64 " %20.10g %20.10g %20.10g  ", c->count, c->last_d, c->min_d,
				c->max_d);
		else
			fprintf(out, "%10" PRIu64 " %20" PRId64 " %20" PRId64 " %20" PRId64 "  ", c->count,
				c->last_i, c->min_i, c->max_i);
		tl_track_title(out, t);
		fputs(", ", out);
		tl_group_title(out, &s->tl->groups[t->group]);
		putc('\n', out);
	}
	text_rest(out, s, s->ncounters, "counters");
}

static void text_threads(FILE *out, const struct summary *s)
{
	if (!s->nthreads)
		return;
	fprintf(out, "\n%10s %10s  %s\n", "slices", "instants", "thread");
	for (uint32_t i = 0; i < shown(s, s->nthreads); i++) {
		const struct summary_thread *th = &s->threads[i];
		const struct mt_tl_track *t = &s->tl->tracks[th->track];

		fprintf(out, "%10" PRIu64 " %10" PRIu64 "  ", th->slices, th->instants);
		tl_track_title(out, t);
		fputs(", ", out);
		tl_group_title(out, &s->tl->groups[t->group]);
		putc('\n', out);
	}
	text_rest(out, s, s->nthreads, "threads");
}

/* What the tracer counted of begins and ends without the other one. */
static const struct {
	const char *key, *text, *json;
} unpaired[] = {
	{"montrace-bpf.unpaired.stray_ends", "ends without a begin", "stray_ends"},
	{"montrace-bpf.unpaired.lost_ends", "spans closed because their end was lost", "lost_ends"},
	{"montrace-bpf.unpaired.begun_again", "spans ended because their key began again", "begun_again"},
	{"montrace-bpf.unpaired.too_many_open", "spans ended because too many were open", "too_many_open"},
	{"montrace-bpf.unpaired.too_deep", "spans nested too deep, not in the trace", "too_deep"},
};
#define UNPAIRED (sizeof(unpaired) / sizeof(unpaired[0]))

static int64_t attribute(const struct mt_timeline *tl, const char *key)
{
	size_t len = strlen(key);

	for (uint32_t i = 0; i < tl->nattributes; i++) {
		struct mt_str s = mt_tl_text(tl, tl->attributes[i].key);

		if (!tl->attributes[i].text && s.len == len && !memcmp(s.p, key, len))
			return tl->attributes[i].i;
	}
	return 0;
}

static void text_unpaired(FILE *out, const struct mt_timeline *tl)
{
	bool any = false;

	for (unsigned i = 0; i < UNPAIRED; i++) {
		int64_t n = attribute(tl, unpaired[i].key);

		if (n)
			fprintf(out, "%s  %s: %" PRId64 "\n", any ? "" : "\nUNPAIRED\n", unpaired[i].text, n);
		any |= n != 0;
	}
}

void summary_text(FILE *out, const struct summary *s, const char *name)
{
	const struct mt_timeline *tl = s->tl;

	fputs("start ", out);
	tl_wall(out, tl, tl->start);
	fputs(", length ", out);
	tl_ms(out, tl->stop - tl->start, 0);
	fputs(" ms\n", out);
	tl_safe(out, tl_cstr(name));
	fprintf(out,
		": %" PRIu64 " slices (%" PRIu64 " open), %" PRIu64 " instants, %" PRIu64
		" counter values, %" PRIu32 " threads, %" PRIu32 " processes\n",
		tl->slices, tl->open, tl->instants, tl->counters, s->described_threads, s->processes);
	text_spans(out, s);
	text_instants(out, s);
	text_counters(out, s);
	text_threads(out, s);
	tl_losses(out, tl);
	text_unpaired(out, tl);
	tl_end(out, tl);
}

static void json_name(FILE *out, const char *type, struct mt_str name)
{
	fprintf(out, "{\"type\":\"%s\",\"name\":", type);
	tl_json_string(out, name);
}

static void json_owner(FILE *out, const struct mt_timeline *tl, const struct mt_tl_track *t)
{
	const struct mt_tl_group *g = &tl->groups[t->group];

	if (g->has_pid)
		fprintf(out, ",\"pid\":%d,\"process\":", g->pid);
	else
		fputs(",\"pid\":null,\"process\":", out);
	tl_json_string(out, tl_cstr(g->name));
}

static void json_counter(FILE *out, const struct summary *s, const struct summary_counter *c)
{
	const struct mt_tl_track *t = &s->tl->tracks[c->track];
	const double d[] = {c->last_d, c->min_d, c->max_d};
	const int64_t v[] = {c->last_i, c->min_i, c->max_i};
	static const char *const keys[] = {"last", "min", "max"};

	json_name(out, "counter", tl_cstr(t->t->name));
	json_owner(out, s->tl, t);
	fprintf(out, ",\"count\":%" PRIu64, c->count);
	for (int i = 0; i < 3; i++) {
		fprintf(out, ",\"%s\":", keys[i]);
		if (c->is_double)
			tl_json_double(out, d[i]);
		else
			fprintf(out, "%" PRId64, v[i]);
	}
	fputs("}\n", out);
}

static void json_trace(FILE *out, const struct summary *s)
{
	const struct mt_timeline *tl = s->tl;
	uint64_t wall;

	fprintf(out, "{\"type\":\"trace\",\"start\":%" PRIu64 ",\"dur\":%" PRIu64 ",\"wall\":", tl->start,
		tl->stop - tl->start);
	if (!mt_ptread_wall(tl->reader, tl->start, &wall))
		fprintf(out, "%" PRIu64, wall);
	else
		fputs("null", out);
	fprintf(out,
		",\"slices\":%" PRIu64 ",\"open\":%" PRIu64 ",\"instants\":%" PRIu64 ",\"counters\":%" PRIu64
		",\"threads\":%" PRIu32 ",\"processes\":%" PRIu32,
		tl->slices, tl->open, tl->instants, tl->counters, s->described_threads, s->processes);
	fprintf(out,
		",\"lost\":%" PRIu64 ",\"kernel_lost\":%" PRIu64 ",\"writer_lost\":%" PRIu64
		",\"packet_gaps\":%" PRIu64,
		tl->lost, tl->kernel_lost, tl->writer_lost, tl->packet_gaps);
	for (unsigned i = 0; i < UNPAIRED; i++)
		fprintf(out, ",\"%s\":%" PRId64, unpaired[i].json, attribute(tl, unpaired[i].key));
	fputs("}\n", out);
}

static void json_location(FILE *out, const struct mt_timeline *tl, const struct summary_instant *in)
{
	fputs("{\"type\":\"instant\",\"name\":null,\"file\":", out);
	tl_json_string(out, mt_tl_text(tl, in->file));
	fprintf(out, ",\"line\":%" PRIu32 ",\"cat\":", in->line);
	tl_json_string(out, mt_tl_text(tl, in->cat));
	fprintf(out, ",\"texts\":%" PRIu32, in->texts);
}

static void json_rest(FILE *out, const struct summary *s, uint32_t n, const char *what)
{
	if (n > s->rows)
		fprintf(out, "{\"type\":\"not_shown\",\"of\":\"%s\",\"rows\":%" PRIu32 "}\n", what,
			n - s->rows);
}

void summary_json(FILE *out, const struct summary *s)
{
	json_trace(out, s);
	for (uint32_t i = 0; i < shown(s, s->nspans); i++) {
		const struct summary_span *sp = &s->spans[i];

		json_name(out, "span", mt_tl_text(s->tl, sp->name));
		fprintf(out, ",\"count\":%" PRIu64 ",\"open\":%" PRIu64, sp->count, sp->open);
		if (sp->count)
			fprintf(out,
				",\"total\":%" PRIu64 ",\"self\":%" PRIu64 ",\"min\":%" PRIu64
				",\"p50\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64,
				sp->total, sp->self, sp->min, sp->p50, sp->p99, sp->max);
		fputs("}\n", out);
	}
	json_rest(out, s, s->nspans, "span");
	for (uint32_t i = 0; i < shown(s, s->ninstants); i++) {
		const struct summary_instant *in = &s->instants[i];

		if (in->texts)
			json_location(out, s->tl, in);
		else
			json_name(out, "instant", mt_tl_text(s->tl, in->name));
		fprintf(out, ",\"count\":%" PRIu64 "}\n", in->count);
	}
	json_rest(out, s, s->ninstants, "instant");
	for (uint32_t i = 0; i < shown(s, s->ncounters); i++)
		json_counter(out, s, &s->counters[i]);
	json_rest(out, s, s->ncounters, "counter");
	for (uint32_t i = 0; i < shown(s, s->nthreads); i++) {
		const struct summary_thread *th = &s->threads[i];
		const struct mt_tl_track *t = &s->tl->tracks[th->track];

		json_name(out, "thread", tl_cstr(t->t->tname));
		json_owner(out, s->tl, t);
		fprintf(out, ",\"tid\":%" PRId64 ",\"slices\":%" PRIu64 ",\"instants\":%" PRIu64 "}\n",
			t->t->tid, th->slices, th->instants);
	}
	json_rest(out, s, s->nthreads, "thread");
	tl_end_json(out, s->tl);
}
