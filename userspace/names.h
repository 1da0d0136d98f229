/* SPDX-License-Identifier: BSD-3-Clause */
/* What a slice or an instant is called in the trace. */
#ifndef MT_NAMES_H
#define MT_NAMES_H

#include "spans.h" /* enum mt_naming */

#define MT_NAME_MAX 4096 /* longest name that is put together from parts, with its NUL */

/*
 * How one callsite's names are made, worked out once: either a fixed text, or fields that are looked
 * up in the values of each event (bit i of a mask = field i; the last one with usable text wins).
 */
struct mt_name_plan {
	const struct mt_callsite *cs;
	struct mt_str fixed;              /* name where no field decides; lives as long as the plan and cs */
	char *owned;                      /* memory of fixed, if it is not cs->name */
	uint16_t text;                    /* fields whose text is the name */
	uint16_t mesh, method, call_name; /* MT_NAMING_UPSTREAM: parts of an endpoint's name */
	bool str_only;                    /* the text must be STR, DEBUG does not count */
	struct mt_name_part *parts;       /* of a label; NULL = none */
	unsigned nparts;
};

/* A piece of a label. */
struct mt_name_part {
	struct mt_str text; /* if field is -1 */
	int field;
};

/* Without memory for a composed name the plan falls back to cs->name. */
void mt_name_plan_init(struct mt_name_plan *p, enum mt_naming naming, const struct mt_callsite *cs);
void mt_name_plan_drop(struct mt_name_plan *p);

/* True if every event of the callsite has the name p->fixed. */
static inline bool mt_name_plan_fixed(const struct mt_name_plan *p)
{
	return !p->parts && !(p->text | p->mesh | p->method | p->call_name);
}

/*
 * The name for these values (texts must be valid UTF-8). Points to p->fixed, into a value's text, or
 * into buf, which takes MT_NAME_MAX bytes; longer names are cut between characters.
 */
struct mt_str mt_name_get(const struct mt_name_plan *p, const struct mt_value *values, uint32_t n, char *buf);

#endif
