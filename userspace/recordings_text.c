/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A recorded event as one line: for people, and as JSON.
 *
 *   W 14:03:22.123456 <job 7> cannot connect host=db1 tries=3 (worker-2)
 *
 * The message is the field `message`, else `msg`, if it is text, else the displayed name.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recordings_int.h"
#include "strings.h"

#define MAX_FIELDS (MONTRACE_MAX_FIELDS + MT_PACK_MAX_FIELDS)
#define SAFE_MAX (3 * MONTRACE_MAX_TEXT + 1)

static bool is_text(const struct mt_value *v)
{
	return !v->missing && (v->type == MONTRACE_TYPE_STR || v->type == MONTRACE_TYPE_DEBUG);
}

static struct mt_str text_of(const char *s)
{
	return (struct mt_str){s, (uint32_t)strlen(s)};
}

/* All fields with their names, values first. */
static uint32_t all_fields(const struct mt_recorded *e, struct mt_field *v)
{
	uint32_t n = 0, i;

	for (i = 0; i < e->nvalues && e->cs && i < e->cs->nfields; i++)
		v[n++] = (struct mt_field){text_of(e->cs->fields[i].name), e->values[i]};
	for (i = 0; i < e->nextra && i < MT_PACK_MAX_FIELDS; i++)
		v[n++] = e->extra[i];
	return n;
}

static bool named(const struct mt_field *f, const char *name)
{
	return f->name.len == strlen(name) && memcmp(f->name.p, name, f->name.len) == 0;
}

static void split_time(const struct mt_recorded *e, const struct mt_recorded_clock *clock, time_t *ret_sec,
		       uint32_t *ret_ns)
{
	int64_t real = (int64_t)(e->time + (uint64_t)clock->real_minus_boot);

	if (real < 0)
		real = 0;
	*ret_sec = real / 1000000000;
	*ret_ns = (uint32_t)(real % 1000000000);
}

/* ---- for people ---- */

static void put_safe(FILE *f, struct mt_str s)
{
	char buf[SAFE_MAX];
	uint32_t at, part;

	for (at = 0; at < s.len; at += part) {
		part = (uint32_t)mt_utf8_prefix(s.p + at, s.len - at, MONTRACE_MAX_TEXT);
		fwrite(buf, 1, mt_text_safe(buf, sizeof(buf), s.p + at, part), f);
	}
}

static void put_value(FILE *f, const struct mt_value *v)
{
	if (v->missing) {
		fputc('<', f);
		put_safe(f, v->s);
		fputc('>', f);
		return;
	}
	switch (v->type) {
	case MONTRACE_TYPE_I64:
		fprintf(f, "%" PRId64, v->i);
		break;
	case MONTRACE_TYPE_F64:
		fprintf(f, "%.17g", v->f);
		break;
	case MONTRACE_TYPE_BOOL:
		fputs(v->u ? "true" : "false", f);
		break;
	case MONTRACE_TYPE_STR:
	case MONTRACE_TYPE_DEBUG:
		put_safe(f, v->s);
		if (v->cut)
			fputs("...", f);
		break;
	default:
		fprintf(f, "%" PRIu64, v->u);
	}
}

static char level_char(const struct mt_callsite *cs)
{
	static const char chars[] = "?TDIWE";

	return cs && cs->level < sizeof(chars) - 1 ? chars[cs->level] : '?';
}

static const struct mt_field *message(const struct mt_field *v, uint32_t n)
{
	static const char *const names[] = {"message", "msg"};
	uint32_t i, k;

	for (k = 0; k < 2; k++)
		for (i = n; i > 0; i--)
			if (named(&v[i - 1], names[k]) && is_text(&v[i - 1].value))
				return &v[i - 1];
	return NULL;
}

static void write_text(FILE *f, const struct mt_recorded *e, const struct mt_recorded_clock *clock)
{
	struct mt_field v[MAX_FIELDS];
	uint32_t n = all_fields(e, v), i, ns;
	const struct mt_field *msg = message(v, n);
	struct tm tm = {0};
	time_t sec;

	split_time(e, clock, &sec, &ns);
	localtime_r(&sec, &tm);
	fprintf(f, "%c %02d:%02d:%02d.%06u <", level_char(e->cs), tm.tm_hour, tm.tm_min, tm.tm_sec,
		ns / 1000);
	put_safe(f, text_of(e->recording->subject));
	fputs("> ", f);
	if (msg)
		put_value(f, &msg->value);
	else
		put_safe(f, e->name);
	for (i = 0; i < n; i++) {
		if (&v[i] == msg)
			continue;
		fputc(' ', f);
		put_safe(f, v[i].name);
		fputc('=', f);
		put_value(f, &v[i].value);
	}
	if (e->cut)
		fputs(" ...", f);
	fputs(" (", f);
	if (e->thread.len)
		put_safe(f, e->thread);
	else
		fprintf(f, "%" PRIu32, e->tid);
	if (e->lost)
		fprintf(f, ", %" PRIu64 " lost before", e->lost);
	fputc(')', f);
}

/* ---- JSON ---- */

/*
 * A character that a terminal may act on though it is valid in JSON: C1, line separators, direction of text.
 * Its number and *ret_len, or 0. p: valid UTF-8, NUL-terminated.
 */
static unsigned unsafe_at(const unsigned char *p, size_t *ret_len)
{
	unsigned c = 0;

	if (p[0] == 0xc2 && p[1] <= 0x9f) {
		*ret_len = 2;
		return p[1];
	}
	if (p[0] == 0xe2 && (p[1] == 0x80 || p[1] == 0x81))
		c = 0x2000 + ((p[1] & 1u) << 6) + (p[2] & 0x3fu);
	*ret_len = 3;
	return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ? c : 0;
}

static void json_string(FILE *f, struct mt_str s)
{
	char buf[SAFE_MAX];
	uint32_t at, part;
	size_t n, i, len;
	unsigned odd;

	fputc('"', f);
	for (at = 0; at < s.len; at += part) {
		part = (uint32_t)mt_utf8_prefix(s.p + at, s.len - at, MONTRACE_MAX_TEXT);
		n = mt_utf8_fix(buf, sizeof(buf), s.p + at, part);
		for (i = 0; i < n; i++) {
			unsigned char c = (unsigned char)buf[i];

			if (c == '"' || c == '\\')
				fprintf(f, "\\%c", c);
			else if (c < 0x20 || c == 0x7f)
				fprintf(f, "\\u%04x", c);
			else if (c >= 0x80 && (odd = unsafe_at((unsigned char *)buf + i, &len)))
				fprintf(f, "\\u%04x", odd), i += len - 1;
			else
				fputc(c, f);
		}
	}
	fputc('"', f);
}

static void json_double(FILE *f, double d)
{
	char buf[32];

	if (isnan(d)) {
		fputs("\"NaN\"", f);
	} else if (isinf(d)) {
		fputs(d < 0 ? "\"-inf\"" : "\"inf\"", f);
	} else {
		snprintf(buf, sizeof(buf), "%.15g", d);
		if (strtod(buf, NULL) != d)
			snprintf(buf, sizeof(buf), "%.17g", d);
		fputs(buf, f);
	}
}

static void json_value(FILE *f, const struct mt_value *v)
{
	if (v->missing)
		fputs("null", f);
	else if (is_text(v))
		json_string(f, v->s);
	else if (v->type == MONTRACE_TYPE_F64)
		json_double(f, v->f);
	else if (v->type == MONTRACE_TYPE_I64)
		fprintf(f, "%" PRId64, v->i);
	else if (v->type == MONTRACE_TYPE_BOOL)
		fputs(v->u ? "true" : "false", f);
	else
		fprintf(f, "%" PRIu64, v->u);
}

static int compare(struct mt_str a, struct mt_str b)
{
	uint32_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

/* Sorted by name; of equal names only the last stays. Few fields: insertion. */
static uint32_t sort_fields(struct mt_field *v, uint32_t n)
{
	uint32_t out = 0, i, at;

	for (i = 0; i < n; i++) {
		struct mt_field f = v[i];

		for (at = out; at > 0 && compare(v[at - 1].name, f.name) > 0; at--)
			;
		if (at > 0 && compare(v[at - 1].name, f.name) == 0) {
			v[at - 1] = f;
			continue;
		}
		memmove(&v[at + 1], &v[at], (out - at) * sizeof(*v));
		v[at] = f;
		out++;
	}
	return out;
}

static void json_member(FILE *f, const char *name, struct mt_str s)
{
	fprintf(f, ",\"%s\":", name);
	json_string(f, s);
}

static void json_level(FILE *f, const struct mt_callsite *cs)
{
	const char *p;

	fputs(",\"level\":\"", f);
	for (p = mt_level_name(cs ? cs->level : 0); *p; p++)
		fputc(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p, f);
	fputc('"', f);
}

static void write_json(FILE *f, const struct mt_recorded *e, const struct mt_recorded_clock *clock)
{
	struct mt_field v[MAX_FIELDS];
	uint32_t n = sort_fields(v, all_fields(e, v)), i, ns;
	char when[40];
	struct tm tm = {0};
	time_t sec;

	split_time(e, clock, &sec, &ns);
	gmtime_r(&sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	fprintf(f, "{\"timestamp\":\"%s.%09uZ\",\"seq\":%" PRIu64, when, ns, e->seq);
	json_level(f, e->cs);
	json_member(f, "target", text_of(e->cs ? e->cs->target : ""));
	json_member(f, "name", e->cs ? text_of(e->cs->name) : e->name);
	fputs(",\"fields\":{", f);
	for (i = 0; i < n; i++) {
		if (i)
			fputc(',', f);
		json_string(f, v[i].name);
		fputc(':', f);
		json_value(f, &v[i].value);
	}
	fputc('}', f);
	if (e->cut)
		fputs(",\"cut\":true", f);
	if (e->lost)
		fprintf(f, ",\"lost_before\":%" PRIu64, e->lost);
	json_member(f, "subject", text_of(e->recording->subject));
	fprintf(f, ",\"recording\":%" PRIu64 ",\"span\":%" PRIu64, e->recording->id, e->span);
	json_member(f, "span_name", text_of(e->span_name));
	json_member(f, "thread", e->thread);
	fprintf(f, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, e->recording->pid, e->tid);
	if (e->cs && e->cs->file[0]) {
		json_member(f, "file", text_of(e->cs->file));
		fprintf(f, ",\"line\":%" PRIu32, e->cs->line);
	}
	fputc('}', f);
}

static int make_line(const struct mt_recorded *e, const struct mt_recorded_clock *clock,
		     void (*write)(FILE *f, const struct mt_recorded *e,
				   const struct mt_recorded_clock *clock),
		     char **ret_line, size_t *ret_len)
{
	char *line = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&line, &len);
	bool bad;

	if (!f)
		return -ENOMEM;
	write(f, e, clock);
	bad = ferror(f);
	if (fclose(f) || bad) {
		free(line);
		return -ENOMEM;
	}
	*ret_line = line;
	*ret_len = len;
	return 0;
}

int mt_recorded_text(const struct mt_recorded *e, const struct mt_recorded_clock *clock, char **ret_line,
		     size_t *ret_len)
{
	return make_line(e, clock, write_text, ret_line, ret_len);
}

int mt_recorded_json(const struct mt_recorded *e, const struct mt_recorded_clock *clock, char **ret_line,
		     size_t *ret_len)
{
	return make_line(e, clock, write_json, ret_line, ret_len);
}
