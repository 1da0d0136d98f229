/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user wants of foreign USDT probes: the language of --usdt and of profiles. docs/usdt.md has it
 * with examples; in short:
 *
 *     spec    = probes { word } [ 'if' test ]
 *     probes  = names [ '..' names ]  |  'auto:' provider
 *     names   = provider ':' name { '|' name }                     globs; behind '..' the provider may be left out
 *     word    = 'key=' key [ '/' key ]  |  'counter=' [ '+' ] arg  |  'counter=+1'  |  'name=' ( arg | text )  |  'level=' level
 *             | 'while=' arg  |  'nested'  |  '-'  |  [ field '=' ] arg  |  'end.' field '=' arg
 *     arg     = 'arg' N [ ':' type ]
 *     type    = i8 .. i64 | u8 .. u64 | f32 | f64 | bool | hex | str | str(argN)
 *     key     = 'arg' N [ ':str' ]
 *     test    = and { '||' and },  and = cmp { '&&' cmp }
 *     cmp     = '(' test ')'  |  'arg' N [ ':f32' | ':f64' ] op ( number | text )
 */
#ifndef MT_USDT_SPEC_H
#define MT_USDT_SPEC_H

#include "model.h"

#define MT_USDT_NAMES 16 /* alternatives */
#define MT_USDT_NO_ARG 0xff

enum mt_usdt_kind { MT_USDT_INSTANT, MT_USDT_COUNTER, MT_USDT_SPAN, MT_USDT_AUTO, MT_USDT_WHILE };

enum mt_usdt_type {
	MT_UT_NATURAL = 0, /* as the note says */
	MT_UT_I8,
	MT_UT_I16,
	MT_UT_I32,
	MT_UT_I64,
	MT_UT_U8,
	MT_UT_U16,
	MT_UT_U32,
	MT_UT_U64,
	MT_UT_F32,
	MT_UT_F64,
	MT_UT_BOOL,
	MT_UT_HEX,
	MT_UT_STR,
};

struct mt_usdt_arg {
	uint8_t arg; /* MT_USDT_NO_ARG: none */
	uint8_t type;
	uint8_t len; /* of a text: argument with its length; MT_USDT_NO_ARG = up to the NUL */
};

struct mt_usdt_profile;

struct mt_usdt_field {
	struct mt_str name;
	struct mt_usdt_arg arg;
};

struct mt_usdt_test {
	uint8_t arg;
	uint8_t cmp;     /* enum mt_cmp of shared.h */
	uint8_t type;    /* MT_UT_F32, MT_UT_F64 if the user says so, else MT_UT_NATURAL */
	uint8_t yes, no; /* as in struct mt_plan_test */
	bool is_text, is_real, negative;
	uint64_t value; /* magnitude of a whole number */
	double real;    /* of one with a fraction or an exponent, sign included */
	struct mt_str text;
};

struct mt_usdt_spec {
	char *source; /* own copy; all texts point into it */
	char *where;  /* "--usdt", "postgresql:12": for messages */
	enum mt_usdt_kind kind;
	uint8_t level;
	struct mt_str provider, end_provider;
	struct mt_str names[MT_USDT_NAMES], ends[MT_USDT_NAMES];
	uint8_t nnames, nends;
	uint8_t key, end_key; /* arguments; MT_USDT_NO_ARG: per thread */
	uint8_t while_;       /* argument of MT_USDT_WHILE */
	uint8_t how;          /* MT_HOW_* */
	bool key_text;        /* they are addresses of texts */
	bool no_args;         /* no fields at all */
	char *label;          /* template of the display name, fields in braces; NULL = by the probe */
	uint8_t nfields;
	struct mt_usdt_field fields[MONTRACE_MAX_FIELDS];
	uint8_t nend_fields; /* of a span: they come with its end; not among the others */
	struct mt_usdt_field end_fields[MONTRACE_MAX_FIELDS];
	uint8_t ntests;
	struct mt_usdt_test tests[8];
	uint8_t ntexts;                        /* of tests */
	const struct mt_usdt_profile *profile; /* it is from; NULL = from --usdt */
	const struct mt_usdt_whens *whens;     /* of the profile: files that it is for; NULL = all */
};

struct mt_usdt_err {
	size_t pos; /* in the text */
	const char *why;
};

/* 0, -EINVAL with *err filled, or -ENOMEM. where may be NULL. */
int mt_usdt_spec_parse(const char *text, const char *where, struct mt_usdt_spec **ret_spec,
		       struct mt_usdt_err *err);
void mt_usdt_spec_free(struct mt_usdt_spec *s);

/*
 * Begin and end by their names: "query__start" and "query__done". If name ends like a begin: true, and the length
 * of what is before. mt_usdt_pair_end: are these two a pair?
 */
bool mt_usdt_begin(struct mt_str name, uint32_t *ret_stem);
bool mt_usdt_pair(struct mt_str begin, struct mt_str end);
/* The k-th name, from 0, that the end of this begin may have; into buf. False: no more (or it is no begin). */
bool mt_usdt_end_name(struct mt_str begin, unsigned k, char *buf, size_t cap, struct mt_str *ret_end);

/* Glob with one star at most, and what the star stood for. */
bool mt_usdt_match(struct mt_str glob, struct mt_str text, struct mt_str *ret_star);

/* Conditions of a profile's specs: the file has one of these probes. */
#define MT_USDT_WHENS 16
struct mt_usdt_whens {
	unsigned n;
	struct {
		char *provider, *name; /* globs */
	} v[MT_USDT_WHENS];
};
struct mt_elfnotes;
/* Does the spec want a probe of that name, as begin, end or alone? `auto:`: if it is half of a pair by its name. */
bool mt_usdt_spec_wants(const struct mt_usdt_spec *s, struct mt_str provider, struct mt_str name);
bool mt_usdt_when(const struct mt_elfnotes *n, const struct mt_usdt_whens *w);

/* Many specs. */
struct mt_usdt_set {
	struct mt_usdt_spec **v;
	uint32_t n, cap;
};
int mt_usdt_set_add(struct mt_usdt_set *set, struct mt_usdt_spec *spec);
void mt_usdt_set_free(struct mt_usdt_set *set);

#endif
