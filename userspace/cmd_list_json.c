/* SPDX-License-Identifier: BSD-3-Clause */
/* One JSON object a line. Strings come as UTF-8; what a terminal could obey is escaped. */
#include <string.h>

#include "cmd_list_int.h"
#include "strings.h"

/* Controls, line separators and marks that change the direction of text. */
static bool must_escape(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* p points to valid UTF-8; *ret_len is the length of the character. */
static uint32_t character(const char *p, unsigned *ret_len)
{
	const unsigned char *s = (const unsigned char *)p;
	unsigned len = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? s[0] : s[0] & (0x7fu >> len);

	for (unsigned i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	*ret_len = len;
	return c;
}

/* A string of any bytes, in pieces: each is made valid first. */
static void put_string(FILE *f, const char *s)
{
	size_t left = strlen(s);
	char buf[768 + 1];

	fputc('"', f);
	while (left) {
		size_t take = left > 256 ? mt_utf8_prefix(s, left, 256) : left;
		unsigned len;

		mt_utf8_fix(buf, sizeof(buf), s, take);
		for (const char *p = buf; *p; p += len) {
			uint32_t c = character(p, &len);

			if (must_escape(c))
				fprintf(f, "\\u%04x", c);
			else if (c == '"' || c == '\\')
				fprintf(f, "\\%c", (int)c);
			else
				fwrite(p, 1, len, f);
		}
		s += take;
		left -= take;
	}
	fputc('"', f);
}

/* Key with a string; all but the first member of an object. */
static void put_text(FILE *f, const char *key, const char *text)
{
	fprintf(f, ",\"%s\":", key);
	put_string(f, text);
}

static void put_site(FILE *f, const struct mt_probe *p)
{
	fprintf(f, "\"addr\":\"0x%llx\",\"offset\":%llu,\"semaphore\":", (unsigned long long)p->addr,
		(unsigned long long)p->offset);
	if (p->sem_offset)
		fprintf(f, "%llu", (unsigned long long)p->sem_offset);
	else
		fputs("null", f);
	put_text(f, "args", p->args);
}

/* *at walks over the probes: they are in the order of their callsites. */
static void put_callsite(const struct mt_list *l, const struct mt_callsite *cs, uint32_t *at)
{
	char buf[MT_LIST_VERDICT_MAX];
	const char *verdict = mt_list_verdict(l, cs, buf);
	bool armed = !strcmp(verdict, "armed");
	FILE *f = l->f;

	fputs("{\"type\":\"callsite\"", f);
	put_text(f, "path", l->path);
	fprintf(f, ",\"id\":%u", cs->id);
	put_text(f, "class", mt_class_name(cs->class_));
	put_text(f, "level", mt_level_name(cs->level));
	put_text(f, "target", cs->target);
	put_text(f, "name", cs->name);
	put_text(f, "file", cs->file);
	fprintf(f, ",\"line\":%u,\"user\":%s,\"fields\":[", cs->line,
		cs->flags & MONTRACE_CSF_USER ? "true" : "false");
	for (unsigned i = 0; i < cs->nfields; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", f);
		put_string(f, cs->fields[i].name);
		put_text(f, "type", mt_type_name(cs->fields[i].type));
		fputc('}', f);
	}
	fprintf(f, "],\"armed\":%s,\"reason\":", armed ? "true" : "false");
	put_string(f, armed ? "" : verdict);
	fputs(",\"probes\":[", f);
	for (bool first = true; *at < l->n->nnative && l->n->probes[*at].cs == cs; ++*at, first = false) {
		const struct mt_probe *p = &l->n->probes[*at];

		fputs(first ? "{\"kind\":" : ",{\"kind\":", f);
		put_string(f, p->name);
		fprintf(f, ",\"nop5\":%s,", p->nop5_offset ? "true" : "false");
		put_site(f, p);
		fputc('}', f);
	}
	fputs("]}\n", f);
}

static void put_group(const struct mt_list *l, const struct mt_list_group *g)
{
	struct mt_list_foreign extra;

	fputs("{\"type\":\"probe\"", l->f);
	put_text(l->f, "path", l->path);
	put_text(l->f, "provider", g->sites[0]->provider);
	put_text(l->f, "name", g->sites[0]->name);
	mt_list_foreign(l, g, &extra);
	fputs(",\"arguments\":[", l->f);
	for (unsigned i = 0; i < extra.nargs; i++) {
		fprintf(l->f, "%s{\"name\":\"arg%u\"", i ? "," : "", i);
		put_text(l->f, "type", extra.args[i].type);
		if (extra.args[i].missing) {
			put_text(l->f, "missing", extra.args[i].missing);
			fprintf(l->f, ",\"missing_at\":%u", extra.args[i].missing_at);
		}
		fputc('}', l->f);
	}
	fputc(']', l->f);
	put_text(l->f, extra.begin ? "end" : "begin", extra.pair);
	put_text(l->f, "profile", extra.profile);
	fputs(",\"sites\":[", l->f);
	for (uint32_t i = 0; i < g->n; i++) {
		fputs(i ? ",{" : "{", l->f);
		put_site(l->f, g->sites[i]);
		fprintf(l->f, ",\"nop5\":%s}", g->sites[i]->on_nop5 ? "true" : "false");
	}
	fputs("]}\n", l->f);
}

void mt_list_json(const struct mt_list *l)
{
	const struct mt_elfnotes *n = l->n;
	uint32_t at = 0;

	for (uint32_t i = 0; i < n->ncallsites; i++)
		put_callsite(l, &n->callsites[i], &at);
	for (uint32_t i = 0; i < l->ngroups; i++)
		put_group(l, &l->groups[i]);
	fputs("{\"type\":\"file\"", l->f);
	put_text(l->f, "path", l->path);
	put_text(l->f, "machine", mt_list_machine(n));
	put_text(l->f, "build_id", n->build_id);
	fprintf(l->f, ",\"callsites\":%u,\"armed\":%u,\"filtered\":%u,\"probes\":%u", n->ncallsites, l->armed,
		n->ncallsites - l->armed, n->nnative);
	fprintf(l->f, ",\"foreign\":%u,\"foreign_sites\":%u,\"malformed\":%u,\"discarded\":%u", l->ngroups,
		n->nprobes - n->nnative, n->stats.malformed, n->stats.discarded);
	fprintf(l->f, ",\"duplicate\":%u,\"over_limit\":%u,\"semaphore\":%u,\"compressed\":%u",
		n->stats.duplicate, n->stats.over_limit, n->stats.semaphore, n->stats.compressed);
	fprintf(l->f, ",\"section_headers\":%s", n->no_sections ? "false" : "true");
	put_text(l->f, "debug_link", n->debug_link);
	fputs("}\n", l->f);
}
