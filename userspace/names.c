/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Display names. The rules of each naming are in mt_name_plan_init and nowhere else; a callsite that
 * has none of the fields in question ends up with a fixed name, which costs nothing per event.
 */
#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strings.h"

#define TARGET_PLAIN "monarch_hyperactor::telemetry"
#define TARGET_ENDPOINT "monarch_hyperactor::telemetry::endpoint"

static uint16_t fields_named(const struct mt_callsite *cs, const char *name)
{
	uint16_t mask = 0;
	unsigned i;

	for (i = 0; i < cs->nfields && i < MONTRACE_MAX_FIELDS; i++)
		if (strcmp(cs->fields[i].name, name) == 0)
			mask |= (uint16_t)(1u << i);
	return mask;
}

static bool is_span(const struct mt_callsite *cs)
{
	return cs->class_ == MONTRACE_CLASS_SCOPE || cs->class_ == MONTRACE_CLASS_SPAN ||
	       cs->class_ == MONTRACE_CLASS_RECORDING;
}

static void fix_with_target(struct mt_name_plan *p)
{
	size_t a = strlen(p->cs->target), b = strlen(p->cs->name);
	char *s;

	if (a + b > UINT32_MAX - 3)
		return;
	s = malloc(a + b + 3);
	if (!s)
		return;
	memcpy(s, p->cs->target, a);
	memcpy(s + a, "::", 2);
	memcpy(s + a + 2, p->cs->name, b + 1);
	p->owned = s;
	p->fixed = (struct mt_str){.p = s, .len = (uint32_t)(a + b + 2)};
}

static void plan_upstream_span(struct mt_name_plan *p)
{
	const struct mt_callsite *cs = p->cs;

	if (strcmp(cs->target, TARGET_ENDPOINT) == 0) {
		p->mesh = fields_named(cs, "mesh");
		p->method = fields_named(cs, "method");
		p->call_name = fields_named(cs, "call_name");
	} else if (strcmp(cs->target, TARGET_PLAIN) == 0) {
		p->text = fields_named(cs, "name");
	} else {
		fix_with_target(p);
	}
	p->str_only = true;
}

/* The field that a label names: "{query}", or "{arg0:str}", where the type is not part of the name. */
static int label_field(const struct mt_callsite *cs, const char *p, size_t len)
{
	const char *colon = memchr(p, ':', len);
	size_t n = colon ? (size_t)(colon - p) : len;
	int i;

	for (i = 0; i < cs->nfields && i < MONTRACE_MAX_FIELDS; i++)
		if (strlen(cs->fields[i].name) == n && !memcmp(cs->fields[i].name, p, n))
			return i;
	return -1;
}

static void add_part(struct mt_name_plan *p, const char *text, size_t len, int field)
{
	if (field >= 0 || len)
		p->parts[p->nparts++] = (struct mt_name_part){{text, (uint32_t)len}, field};
}

/* Cuts the label into parts. Braces that name no field are text. */
static void plan_label(struct mt_name_plan *p)
{
	const char *s = p->cs->label, *text = s, *close;
	int field;

	p->parts = calloc(strlen(s) + 1, sizeof(*p->parts));
	if (!p->parts)
		return;
	while ((s = strchr(s, '{'))) {
		close = strchr(s, '}');
		field = close ? label_field(p->cs, s + 1, (size_t)(close - s - 1)) : -1;
		if (field < 0) {
			s++;
			continue;
		}
		add_part(p, text, (size_t)(s - text), -1);
		add_part(p, NULL, 0, field);
		text = s = close + 1;
	}
	add_part(p, text, strlen(text), -1);
}

void mt_name_plan_init(struct mt_name_plan *p, enum mt_naming naming, const struct mt_callsite *cs)
{
	bool span = is_span(cs), event = cs->class_ == MONTRACE_CLASS_EVENT;
	size_t len = strlen(cs->name);

	*p = (struct mt_name_plan){.cs = cs, .fixed = {cs->name, len < UINT32_MAX ? (uint32_t)len : 0}};
	/* A template of a counter makes several counters, in every mode. */
	if (cs->label && (naming != MT_NAMING_PLAIN || cs->class_ == MONTRACE_CLASS_COUNTER)) {
		if (strchr(cs->label, '{'))
			plan_label(p);
		else
			p->fixed = (struct mt_str){cs->label, (uint32_t)strlen(cs->label)};
		return;
	}
	if (!span && !event)
		return;
	if (naming == MT_NAMING_DEV) {
		fix_with_target(p);
	} else if (naming == MT_NAMING_UPSTREAM && span) {
		plan_upstream_span(p);
	} else if (naming != MT_NAMING_PLAIN) {
		if (span)
			p->text = fields_named(cs, "name");
		else if ((cs->flags & MONTRACE_CSF_MESSAGE) && cs->nfields > 0)
			p->text = 1;
		else
			p->text = fields_named(cs, "message");
	}
}

void mt_name_plan_drop(struct mt_name_plan *p)
{
	free(p->owned);
	p->owned = NULL;
	free(p->parts);
	p->parts = NULL;
}

/* The last value of these fields that is text; NULL if none is. */
static const struct mt_str *text_of(uint16_t mask, bool str_only, const struct mt_value *v, uint32_t n)
{
	while (mask) {
		unsigned i = 31 - (unsigned)__builtin_clz(mask);

		mask &= (uint16_t) ~(1u << i);
		if (i >= n || v[i].missing)
			continue;
		if (v[i].type == MONTRACE_TYPE_STR || (v[i].type == MONTRACE_TYPE_DEBUG && !str_only))
			return &v[i].s;
	}
	return NULL;
}

static size_t append(char *buf, size_t at, const char *s, size_t len)
{
	size_t n = mt_utf8_prefix(s, len, MT_NAME_MAX - 1 - at);

	if (n)
		memcpy(buf + at, s, n);
	return at + n;
}

static size_t append_value(char *buf, size_t at, const struct mt_value *v)
{
	char text[48];
	int n = 0;

	if (v->missing)
		return append(buf, at, "?", 1);
	switch (v->type) {
	case MONTRACE_TYPE_STR:
	case MONTRACE_TYPE_DEBUG:
		return append(buf, at, v->s.p, v->s.len);
	case MONTRACE_TYPE_I64:
		n = snprintf(text, sizeof(text), "%lld", (long long)v->i);
		break;
	case MONTRACE_TYPE_F64:
		n = snprintf(text, sizeof(text), "%g", v->f);
		break;
	case MONTRACE_TYPE_BOOL:
		return append(buf, at, v->u ? "true" : "false", v->u ? 4 : 5);
	default:
		n = snprintf(text, sizeof(text), "%llu", (unsigned long long)v->u);
		break;
	}
	return append(buf, at, text, (size_t)n);
}

static struct mt_str label_get(const struct mt_name_plan *p, const struct mt_value *values, uint32_t n,
			       char *buf)
{
	size_t at = 0;

	for (unsigned i = 0; i < p->nparts; i++) {
		const struct mt_name_part *part = &p->parts[i];

		if (part->field < 0)
			at = append(buf, at, part->text.p, part->text.len);
		else if ((uint32_t)part->field < n)
			at = append_value(buf, at, &values[part->field]);
	}
	buf[at] = '\0';
	return at ? (struct mt_str){.p = buf, .len = (uint32_t)at} : p->fixed;
}

struct mt_str mt_name_get(const struct mt_name_plan *p, const struct mt_value *values, uint32_t n, char *buf)
{
	const struct mt_str *mesh, *method, *s;
	size_t at = 0;

	if (mt_name_plan_fixed(p))
		return p->fixed;
	if (p->parts)
		return label_get(p, values, n, buf);
	if (p->text) {
		s = text_of(p->text, p->str_only, values, n);
		return s && s->len ? *s : p->fixed;
	}
	mesh = text_of(p->mesh, true, values, n);
	method = text_of(p->method, true, values, n);
	s = text_of(p->call_name, true, values, n);
	if (mesh && method) {
		at = append(buf, at, mesh->p, mesh->len);
		at = append(buf, at, ".", 1);
		at = append(buf, at, method->p, method->len);
	} else if (s && s->len) {
		at = append(buf, at, s->p, s->len);
	} else {
		return p->fixed;
	}
	at = append(buf, at, ".", 1);
	at = append(buf, at, p->fixed.p, p->fixed.len);
	at = append(buf, at, "()", 2);
	buf[at] = '\0';
	return (struct mt_str){.p = buf, .len = (uint32_t)at};
}
