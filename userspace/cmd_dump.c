/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio_ext.h>

#include "cmd_dump.h"
#include "cmd_dump_int.h"

#define TIME_WIDTH 14

static void put_args(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	struct mt_tl_args a;

	a.nargs = a.nflows = 0;
	mt_tl_args_add(e, &a);
	for (uint32_t i = 0; i < a.nargs; i++) {
		putc(' ', out);
		tl_arg_text(out, tl, &a.args[i]);
	}
	for (uint32_t i = 0; i < a.nflows; i++)
		fprintf(out, " flow:%" PRIx64, a.flows[i]);
}

static void put_name(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	struct mt_str name = mt_tl_text(tl, e->name);

	fprintf(out, "%*s", 2 + 2 * e->depth, "");
	if (name.len)
		tl_safe(out, name);
	else
		fputs("(no name)", out);
}

static void put_place(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	if (!e->file && !e->line)
		return;
	putc(' ', out);
	tl_safe(out, mt_tl_text(tl, e->file));
	fprintf(out, ":%" PRIu32, e->line);
}

static void put_slice(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	uint64_t ns;

	if (mt_tl_duration(tl, e, &ns))
		tl_ms(out, ns, TIME_WIDTH);
	else
		fprintf(out, "%*s", TIME_WIDTH, "(open)");
	put_name(out, tl, e);
	put_args(out, tl, e);
	put_place(out, tl, e);
	if (e->flags & MT_TL_CUT) {
		fputs(" [cut]", out);
	} else if (e->end != MT_TL_NONE && tl->events[e->end].args) {
		fputs(" [end", out);
		put_args(out, tl, &tl->events[e->end]);
		putc(']', out);
	}
}

static void put_event(FILE *out, const struct mt_timeline *tl, const struct mt_tl_event *e)
{
	if (e->kind == MT_PT_END || (e->flags & MT_TL_DEEP))
		return;
	tl_ms(out, e->ts - tl->start, TIME_WIDTH);
	if (e->kind == MT_PT_BEGIN) {
		put_slice(out, tl, e);
	} else if (e->kind == MT_PT_COUNTER) {
		fprintf(out, "%*s  ", TIME_WIDTH, "=");
		if (e->flags & MT_TL_DOUBLE)
			fprintf(out, "%.10g", e->d);
		else
			fprintf(out, "%" PRId64, e->i);
	} else if (e->flags & MT_TL_LOSS) {
		fprintf(out, "%*s", TIME_WIDTH, "LOST");
		put_name(out, tl, e);
		put_args(out, tl, e);
	} else {
		fprintf(out, "%*s", TIME_WIDTH, "*");
		put_name(out, tl, e);
		put_args(out, tl, e);
		put_place(out, tl, e);
	}
	putc('\n', out);
}

static void put_head(FILE *out, const struct mt_timeline *tl, const char *name)
{
	fputs("start ", out);
	tl_wall(out, tl, tl->start);
	fputs(", length ", out);
	tl_ms(out, tl->stop - tl->start, 0);
	fputs(" ms\n", out);
	tl_safe(out, tl_cstr(name));
	fprintf(out,
		": %" PRIu64 " slices (%" PRIu64 " open), %" PRIu64 " instants, %" PRIu64 " counter values\n",
		tl->slices, tl->open, tl->instants, tl->counters);
	for (uint32_t i = 0; i < tl->nattributes; i++) {
		const struct mt_tl_attribute *a = &tl->attributes[i];

		fputs("attribute ", out);
		tl_safe(out, mt_tl_text(tl, a->key));
		putc('=', out);
		if (a->text)
			tl_quoted(out, mt_tl_text(tl, a->text));
		else
			fprintf(out, "%" PRId64, a->i);
		putc('\n', out);
	}
}

static void dump_text(FILE *out, const struct mt_timeline *tl, const char *name)
{
	uint32_t group = MT_TL_NONE;

	put_head(out, tl, name);
	for (uint32_t i = 0; i < tl->ntracks && !ferror(out); i++) {
		const struct mt_tl_track *t = &tl->tracks[tl->by_group[i]];

		if (!t->n)
			continue;
		if (t->group != group) {
			putc('\n', out);
			tl_group_title(out, &tl->groups[t->group]);
			putc('\n', out);
			group = t->group;
		}
		fputs("  ", out);
		tl_track_title(out, t);
		putc('\n', out);
		for (uint32_t k = 0; k < t->n && !ferror(out); k++)
			put_event(out, tl, &tl->events[tl->order[t->first + k]]);
	}
	tl_losses(out, tl);
	tl_end(out, tl);
}

int mt_dump(FILE *out, int fd, const char *name, unsigned flags)
{
	struct mt_timeline *tl;
	int r, locking;

	r = mt_timeline_read(fd, &tl);
	if (r < 0)
		return r;
	locking = __fsetlocking(out, FSETLOCKING_BYCALLER);
	if (flags & MT_DUMP_JSON)
		r = dump_json(out, tl);
	else
		dump_text(out, tl, name);
	__fsetlocking(out, locking);
	if (!r)
		r = tl_result(out, tl);
	mt_timeline_free(tl);
	return r;
}
