/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "timeline_text.h"

#define PIECE 1024u /* bytes that are made safe at a time */

typedef size_t (*fix_fn)(char *dst, size_t cap, const char *src, size_t len);

/* Plain printable ASCII without quotes and backslashes: nothing to be done. */
static bool plain(struct mt_str s)
{
	for (uint32_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return true;
}

/*
 * escape: quotes, backslashes and control characters, as JSON has it; also those from 0x7f to 0x9f, which JSON
 * lets through and a terminal obeys. s is valid UTF-8, so 0xc2 has a byte behind it.
 */
static void put_fixed(FILE *out, const char *s, size_t len, bool escape)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (escape && (c == '"' || c == '\\'))
			fprintf(out, "\\%c", c);
		else if (escape && (c < 0x20 || c == 0x7f))
			fprintf(out, "\\u%04x", c);
		else if (escape && c == 0xc2 && i + 1 < len && (unsigned char)s[i + 1] < 0xa0)
			fprintf(out, "\\u%04x", (unsigned char)s[++i]);
		else
			putc(c, out);
	}
}

static void put_text(FILE *out, struct mt_str s, fix_fn fix, bool escape)
{
	char buf[3 * PIECE + 1];

	if (plain(s)) {
		fwrite(s.p, 1, s.len, out);
		return;
	}
	while (s.len) {
		size_t take = mt_utf8_prefix(s.p, s.len, PIECE);

		take = take ? take : 1;
		put_fixed(out, buf, fix(buf, sizeof(buf), s.p, take), escape);
		s.p += take;
		s.len -= (uint32_t)take;
	}
}

void tl_safe(FILE *out, struct mt_str s)
{
	put_text(out, s, mt_text_safe, false);
}

void tl_quoted(FILE *out, struct mt_str s)
{
	putc('"', out);
	put_text(out, s, mt_text_safe, true);
	putc('"', out);
}

void tl_json_string(FILE *out, struct mt_str s)
{
	putc('"', out);
	put_text(out, s, mt_utf8_fix, true);
	putc('"', out);
}

void tl_json_double(FILE *out, double d)
{
	if (isnan(d))
		fputs("\"NaN\"", out);
	else if (isinf(d))
		fputs(d < 0 ? "\"-Infinity\"" : "\"Infinity\"", out);
	else
		fprintf(out, "%.17g", d);
}

static void arg_value(FILE *out, const struct mt_timeline *tl, const struct mt_tl_arg *a, bool json)
{
	switch ((enum mt_pt_arg_type)a->type) {
	case MT_PT_ARG_BOOL:
		fputs(a->u ? "true" : "false", out);
		break;
	case MT_PT_ARG_INT:
		fprintf(out, "%" PRId64, a->i);
		break;
	case MT_PT_ARG_UINT:
		fprintf(out, "%" PRIu64, a->u);
		break;
	case MT_PT_ARG_POINTER:
		fprintf(out, json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, a->u);
		break;
	case MT_PT_ARG_DOUBLE:
		if (json)
			tl_json_double(out, a->d);
		else
			fprintf(out, "%.10g", a->d);
		break;
	case MT_PT_ARG_STR:
	case MT_PT_ARG_TEXT:
		if (!a->text)
			fputs(json ? "null" : "(missing)", out);
		else if (json)
			tl_json_string(out, mt_tl_text(tl, a->text));
		else if (a->type == MT_PT_ARG_STR)
			tl_quoted(out, mt_tl_text(tl, a->text));
		else
			tl_safe(out, mt_tl_text(tl, a->text));
		break;
	case MT_PT_ARG_NONE:
		fputs(json ? "null" : "(unknown)", out);
		break;
	}
}

void tl_arg_text(FILE *out, const struct mt_timeline *tl, const struct mt_tl_arg *a)
{
	struct mt_str name = mt_tl_text(tl, a->name);

	if (!name.len || memchr(name.p, ' ', name.len) || memchr(name.p, '=', name.len))
		tl_quoted(out, name);
	else
		tl_safe(out, name);
	putc('=', out);
	arg_value(out, tl, a, false);
}

void tl_arg_json(FILE *out, const struct mt_timeline *tl, const struct mt_tl_arg *a)
{
	tl_json_string(out, mt_tl_text(tl, a->name));
	putc(':', out);
	arg_value(out, tl, a, true);
}

void tl_ms(FILE *out, uint64_t ns, int width)
{
	fprintf(out, "%*" PRIu64 ".%03u", width > 4 ? width - 4 : 0, ns / 1000000,
		(unsigned)(ns % 1000000 / 1000));
}

void tl_wall(FILE *out, const struct mt_timeline *tl, uint64_t ts)
{
	uint64_t real;
	struct tm tm;
	time_t s;
	char buf[40];

	if (!mt_ptread_wall(tl->reader, ts, &real)) {
		s = (time_t)(real / 1000000000);
		if (gmtime_r(&s, &tm) && strftime(buf, sizeof(buf), "%Y-%m-%d %H:%M:%S", &tm)) {
			fprintf(out, "%s.%06u UTC", buf, (unsigned)(real % 1000000000 / 1000));
			return;
		}
	}
	fprintf(out, "boot time %" PRIu64 ".%06u s (the file has no wall clock)", ts / 1000000000,
		(unsigned)(ts % 1000000000 / 1000));
}

void tl_group_title(FILE *out, const struct mt_tl_group *g)
{
	if (!g->has_pid) {
		fputs("no process", out);
		return;
	}
	fprintf(out, "process %d", g->pid);
	if (*g->name) {
		putc(' ', out);
		tl_quoted(out, tl_cstr(g->name));
	}
}

static const char *unit(const struct mt_pt_track *t)
{
	static const char *const names[] = {"", "ns", "count", "bytes"};

	if (*t->unit_name)
		return t->unit_name;
	return t->unit < 4 ? names[t->unit] : "";
}

void tl_track_title(FILE *out, const struct mt_tl_track *t)
{
	const char *name = t->t->name;

	if (t->t->is_thread) {
		fprintf(out, "thread %" PRId64, t->t->tid);
		name = *t->t->tname ? t->t->tname : name;
	} else if (t->t->is_counter) {
		fputs("counter", out);
	} else if (t->t->is_process) {
		fputs("process track", out);
	} else if (!t->t->described) {
		fprintf(out, "track %" PRIu64 " (never described)", t->t->uuid);
	} else {
		fputs("track", out);
	}
	if (*name) {
		putc(' ', out);
		tl_quoted(out, tl_cstr(name));
	}
	if (t->t->is_counter && *unit(t->t)) {
		fputs(" [", out);
		tl_safe(out, tl_cstr(unit(t->t)));
		putc(']', out);
	}
	if (!t->t->is_thread && t->thread)
		fprintf(out, " of thread %" PRId64, t->thread->tid);
}

static void line(FILE *out, const char *text, uint64_t n)
{
	if (n)
		fprintf(out, "  %s: %" PRIu64 "\n", text, n);
}

void tl_losses(FILE *out, const struct mt_timeline *tl)
{
	if (!tl->lost && !tl->kernel_lost && !tl->writer_lost && !tl->packet_gaps)
		return;
	fputs("\nLOST\n", out);
	line(out, "events, marked `events lost`", tl->lost);
	line(out, "records lost in the kernel", tl->kernel_lost);
	line(out, "packets lost by the writers", tl->writer_lost);
	line(out, "places where packets are missing", tl->packet_gaps);
}

static void notes(FILE *out, const struct mt_timeline *tl)
{
	const struct mt_ptread_info *in = mt_ptread_info(tl->reader);
	const struct {
		const char *text;
		uint64_t n;
	} v[] = {
		{"slices cut by the end of one around them", tl->cut},
		{"ends without a slice, ignored", tl->stray_ends},
		{"slices nested too deep, left out", tl->too_deep},
		{"references to interned data that is not there", in->unknown_iids},
		{"interned data given twice, the first one counts", in->redefined_iids},
		{"packets skipped because their sequence's state is missing", in->no_state},
		{"events skipped because they have no sequence", in->no_sequence},
		{"packets with a clock that no snapshot relates, taken as written", in->no_clock},
		{"events skipped because their time is negative", in->bad_time},
		{"clock snapshots that run backwards, not used", in->bad_snapshots},
		{"tracks described twice in different ways, the first one counts", in->conflicts},
		{"events of a kind not supported, skipped", in->unsupported},
		{"zstd packets, skipped", in->zstd},
		{"parts beyond a limit, left out", in->over_limit},
	};
	bool any = false;

	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		any |= v[i].n != 0;
	if (any)
		fputs("\nnotes\n", out);
	for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
		line(out, v[i].text, v[i].n);
}

void tl_end(FILE *out, const struct mt_timeline *tl)
{
	const struct mt_ptread_info *in = mt_ptread_info(tl->reader);

	notes(out, tl);
	if (tl->error)
		fprintf(out, "\nbad data at byte %" PRIu64 ": %s; what comes before it is above\n",
			in->bad_offset, in->why);
	else if (in->truncated)
		fprintf(out, "\nthe last packet is torn: %" PRIu64 " bytes cut off\n", in->truncated);
}

void tl_end_json(FILE *out, const struct mt_timeline *tl)
{
	const struct mt_ptread_info *in = mt_ptread_info(tl->reader);

	if (tl->error)
		fprintf(out, "{\"type\":\"error\",\"offset\":%" PRIu64 ",\"message\":\"%s\"}\n",
			in->bad_offset, in->why);
	else if (in->truncated)
		fprintf(out, "{\"type\":\"truncated\",\"bytes\":%" PRIu64 "}\n", in->truncated);
}

int tl_result(FILE *out, const struct mt_timeline *tl)
{
	errno = 0;
	if (fflush(out) || ferror(out))
		return errno == EPIPE ? -EPIPE : -EIO;
	return tl->error;
}
