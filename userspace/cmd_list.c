/* SPDX-License-Identifier: BSD-3-Clause */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_list_int.h"
#include "strings.h"

#define COLUMNS 8
#define WIDEST 48u /* a longer text sticks out rather than moving the column of all the others */

static const char *const cs_head[] = {"KIND", "LEVEL", "TARGET", "NAME", "SOURCE", "FIELDS", "VERDICT"};
static const char *const foreign_head[] = {"PROBE", "SITES", "SEMAPHORE", "PAIR", "PROFILE", "ARGUMENTS"};

/* One line of a table. Cells point to texts, or into buf. */
struct row {
	const char *cell[COLUMNS];
	unsigned n;
	char source[MT_LIST_VERDICT_MAX * 4];
	char fields[MONTRACE_MAX_FIELDS * 140];
	char verdict[MT_LIST_VERDICT_MAX];
	char pair[MT_LIST_VERDICT_MAX * 4];
	struct mt_list_foreign foreign;
};

/* Characters, not bytes; good enough for alignment. */
static unsigned width(const char *s)
{
	unsigned n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

const char *mt_list_machine(const struct mt_elfnotes *n)
{
	switch (n->machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_AARCH64:
		return "arm64";
	case EM_386:
		return "i386";
	}
	return "?";
}

const char *mt_list_verdict(const struct mt_list *l, const struct mt_callsite *cs, char *buf)
{
	enum mt_verdict_rule rule = MT_RULE_PASS;
	const char *text = "";
	size_t at;

	if (l->filter)
		mt_filter_verdict(l->filter, cs, &rule, &text);
	switch (rule) {
	case MT_RULE_PASS:
		return "armed";
	case MT_RULE_MODE_OFF:
		return "mode off";
	case MT_RULE_MODE_USER:
		return "mode user";
	case MT_RULE_DIRECTIVE:
		break;
	}
	at = (size_t)snprintf(buf, MT_LIST_VERDICT_MAX, "directive ");
	mt_text_safe(buf + at, MT_LIST_VERDICT_MAX - at, text, strlen(text));
	return buf;
}

static void callsite_row(const struct mt_list *l, const struct mt_callsite *cs, struct row *r)
{
	size_t at = 0;

	snprintf(r->source, sizeof(r->source), "%s:%u", *cs->file ? cs->file : "?", cs->line);
	for (unsigned i = 0; i < cs->nfields && at < sizeof(r->fields); i++)
		at += (size_t)snprintf(r->fields + at, sizeof(r->fields) - at, "%s%s:%s", i ? " " : "",
				       cs->fields[i].name, mt_type_name(cs->fields[i].type));
	r->cell[0] = mt_class_name(cs->class_);
	r->cell[1] = mt_level_name(cs->level);
	r->cell[2] = *cs->target ? cs->target : "-";
	r->cell[3] = *cs->name ? cs->name : "-";
	r->cell[4] = r->source;
	r->cell[5] = cs->nfields ? r->fields : "-";
	r->cell[6] = mt_list_verdict(l, cs, r->verdict);
	r->n = 7;
}

static void group_row(const struct mt_list *l, const struct mt_list_group *g, struct row *r)
{
	uint32_t sem = 0;

	for (uint32_t i = 0; i < g->n; i++)
		sem += g->sites[i]->sem_offset != 0;
	mt_list_foreign(l, g, &r->foreign);
	snprintf(r->source, sizeof(r->source), "%s:%s", g->sites[0]->provider, g->sites[0]->name);
	snprintf(r->verdict, sizeof(r->verdict), "%u", g->n);
	snprintf(r->pair, sizeof(r->pair), r->foreign.begin ? "..%.1024s" : "%.1024s..", r->foreign.pair);
	r->cell[0] = r->source;
	r->cell[1] = r->verdict;
	r->cell[2] = !sem ? "no" : sem == g->n ? "yes" : "some";
	r->cell[3] = *r->foreign.pair ? r->pair : "-";
	r->cell[4] = *r->foreign.profile ? r->foreign.profile : "-";
	r->cell[5] = r->foreign.types;
	r->n = 6;
}

static void widen(unsigned *widths, const struct row *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		unsigned w = width(r->cell[i]);

		w = w < WIDEST ? w : WIDEST;
		widths[i] = w > widths[i] ? w : widths[i];
	}
}

static void print_row(FILE *f, const unsigned *widths, const struct row *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		unsigned w = width(r->cell[i]), pad = w < widths[i] ? widths[i] - w : 0;

		fputs(r->cell[i], f);
		if (i + 1 < r->n)
			fprintf(f, "%*s", (int)pad + 2, "");
	}
	fputc('\n', f);
}

static void head_row(const char *const *head, unsigned n, struct row *r)
{
	memcpy(r->cell, head, n * sizeof(*head));
	r->n = n;
}

/* Two passes: the widths first, then the lines. r is too big for the stack's taste. */
static void callsite_table(const struct mt_list *l, struct row *r)
{
	unsigned widths[COLUMNS] = {0};

	head_row(cs_head, sizeof(cs_head) / sizeof(*cs_head), r);
	widen(widths, r);
	for (uint32_t i = 0; i < l->n->ncallsites; i++) {
		callsite_row(l, &l->n->callsites[i], r);
		widen(widths, r);
	}
	head_row(cs_head, sizeof(cs_head) / sizeof(*cs_head), r);
	print_row(l->f, widths, r);
	for (uint32_t i = 0; i < l->n->ncallsites; i++) {
		callsite_row(l, &l->n->callsites[i], r);
		print_row(l->f, widths, r);
	}
}

static void foreign_table(const struct mt_list *l, struct row *r)
{
	unsigned widths[COLUMNS] = {0};

	head_row(foreign_head, sizeof(foreign_head) / sizeof(*foreign_head), r);
	widen(widths, r);
	for (uint32_t i = 0; i < l->ngroups; i++) {
		group_row(l, &l->groups[i], r);
		widen(widths, r);
	}
	head_row(foreign_head, sizeof(foreign_head) / sizeof(*foreign_head), r);
	print_row(l->f, widths, r);
	for (uint32_t i = 0; i < l->ngroups; i++) {
		group_row(l, &l->groups[i], r);
		print_row(l->f, widths, r);
	}
}

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

static int summary(const struct mt_list *l)
{
	const struct mt_elfnotes *n = l->n;
	const struct mt_elfnotes_stats *s = &n->stats;
	uint32_t nforeign = n->nprobes - n->nnative, nop5 = 0;
	size_t len = strlen(l->path), cap = len * 3 + 1;
	char *path = malloc(cap);

	if (!path)
		return -ENOMEM;
	mt_text_safe(path, cap, l->path, len);
	fprintf(l->f, "%s (%s): %u callsite%s, %u armed, %u filtered; %u probe%s", path, mt_list_machine(n),
		n->ncallsites, plural(n->ncallsites), l->armed, n->ncallsites - l->armed, n->nnative,
		plural(n->nnative));
	if (nforeign)
		fprintf(l->f, "; %u foreign probe%s at %u site%s", l->ngroups, plural(l->ngroups), nforeign,
			plural(nforeign));
	for (uint32_t i = n->nnative; i < n->nprobes; i++)
		nop5 += n->probes[i].on_nop5;
	if (nop5)
		fprintf(l->f, ", %u of them on 5-byte nops (not armed on Linux 6.18 and newer)", nop5);
	if (s->malformed)
		fprintf(l->f, "; %u malformed note%s", s->malformed, plural(s->malformed));
	if (s->discarded)
		fprintf(l->f, "; %u note%s of discarded code", s->discarded, plural(s->discarded));
	if (s->duplicate)
		fprintf(l->f, "; %u duplicate%s", s->duplicate, plural(s->duplicate));
	if (s->semaphore)
		fprintf(l->f, "; %u with a semaphore that cannot be raised", s->semaphore);
	if (s->over_limit)
		fprintf(l->f, "; %u beyond the limit", s->over_limit);
	if (s->compressed)
		fprintf(l->f, "; %u compressed section%s of notes, not read", s->compressed,
			plural(s->compressed));
	if (n->no_sections)
		fprintf(l->f, "; no section headers, so notes can only be found in segments");
	if (*n->debug_link && !n->nprobes)
		fprintf(l->f, "; its debug file %s is not read", n->debug_link);
	fputc('\n', l->f);
	free(path);
	return 0;
}

static int print_human(const struct mt_list *l)
{
	struct row *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	if (l->n->ncallsites) {
		callsite_table(l, r);
		fputc('\n', l->f);
	}
	if (l->ngroups) {
		foreign_table(l, r);
		fputc('\n', l->f);
	}
	free(r);
	return summary(l);
}

static int cmp_group(const struct mt_probe *a, const struct mt_probe *b)
{
	int r = strcmp(a->provider, b->provider);

	return r ? r : strcmp(a->name, b->name);
}

static int cmp_probe(const void *a, const void *b)
{
	const struct mt_probe *x = *(const struct mt_probe *const *)a,
			      *y = *(const struct mt_probe *const *)b;
	int r = cmp_group(x, y);

	return r ? r : (x->addr > y->addr) - (x->addr < y->addr);
}

static int group_foreign(struct mt_list *l)
{
	uint32_t n = l->n->nprobes - l->n->nnative;

	l->foreign = malloc((n + 1ul) * sizeof(*l->foreign));
	l->groups = malloc((n + 1ul) * sizeof(*l->groups));
	if (!l->foreign || !l->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		l->foreign[i] = &l->n->probes[l->n->nnative + i];
	qsort(l->foreign, n, sizeof(*l->foreign), cmp_probe);
	for (uint32_t i = 0; i < n; i++) {
		if (!i || cmp_group(l->foreign[i], l->foreign[i - 1]))
			l->groups[l->ngroups++] = (struct mt_list_group){&l->foreign[i], 0};
		l->groups[l->ngroups - 1].n++;
	}
	return 0;
}

int mt_list_print(FILE *f, const struct mt_elfnotes *n, const char *path, const struct mt_filter *filter,
		  unsigned flags)
{
	return mt_list_print_with(f, n, path, filter, &(struct mt_list_more){0}, flags);
}

int mt_list_print_with(FILE *f, const struct mt_elfnotes *n, const char *path, const struct mt_filter *filter,
		       const struct mt_list_more *more, unsigned flags)
{
	struct mt_list l = {.f = f, .n = n, .path = path, .filter = filter, .more = *more};
	int r = group_foreign(&l);

	if (r)
		goto out;
	for (uint32_t i = 0; i < n->ncallsites; i++)
		l.armed += !filter || mt_filter_verdict(filter, &n->callsites[i], NULL, NULL);
	if (flags & MT_LIST_JSON)
		mt_list_json(&l);
	else
		r = print_human(&l);
	if (!r && (fflush(f) || ferror(f)))
		r = -EIO;
out:
	free(l.foreign);
	free(l.groups);
	return r;
}
