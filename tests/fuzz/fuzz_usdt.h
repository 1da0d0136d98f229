/* SPDX-License-Identifier: BSD-3-Clause */
/* What is accepted of specs, predicates and profiles is laid on probes with all kinds of names and operands. */
#ifndef MT_FUZZ_USDT_H
#define MT_FUZZ_USDT_H

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usdt_plan.h"
#include "usdt_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

#define PROBE(prov, nm, a, at)                                                    \
	{                                                                         \
		.provider = prov, .name = nm, .args = a, .addr = at, .offset = at \
	}

static struct mt_probe probes[] = {
	PROBE("c", "a", "", 16),
	PROBE("c", "a", "8@%rdi -4@8(%rsp) 8f@%xmm0 4f@%eax 16@(%rax) 1@%ah 8@sym(%rip) 8@%fs:8 q", 32),
	PROBE("c", "a__start", "8@%rdi 8@%rsi", 48),
	PROBE("c", "a__done", "8@%rdi", 64),
	PROBE("c", "b__start", "1@$1 2@$2 4@$3 8@$4 1@$1 2@$2 4@$3 8@$4 1@$1 2@$2 4@$3 8@$4 8@$5", 80),
	PROBE("c", "b__end", "8@%rdi", 96),
	PROBE("p", "x_entry", "8@%rdi", 112),
	PROBE("p", "x_return", "8@%rdi", 128),
};

static inline void check_plan(const struct mt_usdt_found *f, const struct mt_usdt_site *s)
{
	const struct mt_plan *p = &s->plan;

	MUST(s->callsite < f->ncallsites);
	MUST(p->nops <= MT_PLAN_OPS && p->nfields <= MT_PLAN_FIELDS && p->ntests <= MT_PLAN_TESTS);
	MUST(p->nfields <= f->callsites[s->callsite].nfields);
	for (unsigned i = 0; i < p->nfields; i++) {
		MUST(p->fields[i].op < p->nops);
		MUST(p->fields[i].len_op == MT_NO_OP || p->fields[i].len_op < p->nops);
		/* floats and structs are never taken for something else */
		MUST(f->callsites[s->callsite].fields[i].type || p->ops[p->fields[i].op].missing);
	}
	for (unsigned i = 0; i < p->ntests; i++) {
		const struct mt_plan_test *t = &p->tests[i];

		MUST(t->op < p->nops && t->text < 2);
		MUST(t->yes >= MT_TEST_YES || (t->yes > i && t->yes < p->ntests)); /* forwards only */
		MUST(t->no >= MT_TEST_YES || (t->no > i && t->no < p->ntests));
	}
	MUST(!(p->flags & (MT_PLAN_SPAN | MT_PLAN_WHILE)) == (p->key == MT_NO_OP));
	MUST(p->key == MT_NO_OP || p->key < p->nops);
	MUST(!p->texts[0][MT_PLAN_TEXT - 1] && !p->texts[1][MT_PLAN_TEXT - 1]);
}

static inline void lay(const struct mt_usdt_set *set)
{
	struct mt_elfnotes n = {.probes = probes,
				.nprobes = sizeof(probes) / sizeof(*probes),
				.machine = EM_X86_64,
				.is64 = true};
	struct mt_usdt_found *f;

	MUST(!mt_usdt_find(&n, set, 1, NULL, NULL, &f));
	for (uint32_t i = 0; i < f->ncallsites; i++) {
		const struct mt_callsite *cs = &f->callsites[i];

		MUST(cs->id == i + 1 && cs->name && cs->target && cs->nfields <= MONTRACE_MAX_FIELDS);
		for (unsigned k = 0; k < cs->nfields; k++)
			MUST(cs->fields[k].name && cs->fields[k].type);
	}
	for (uint32_t i = 0; i < f->nsites; i++)
		check_plan(f, &f->sites[i]);
	mt_usdt_found_free(f);
}

/* The spec is turned down with a place in it, or every plan that it makes is sound. */
static inline void try_spec(const char *text)
{
	struct mt_usdt_err err = {SIZE_MAX, NULL};
	struct mt_usdt_set set = {0};
	struct mt_usdt_spec *s;
	int r = mt_usdt_spec_parse(text, NULL, &s, &err);

	if (r) {
		MUST(r == -EINVAL && err.why && err.pos <= strlen(text));
		return;
	}
	MUST(!mt_usdt_set_add(&set, s));
	lay(&set);
	mt_usdt_set_free(&set);
}

/* The input as a text behind `head`; ended where it has a NUL. */
static inline char *text_of(const char *head, const uint8_t *data, size_t size)
{
	size_t n = strlen(head);
	char *text = malloc(n + size + 1);

	MUST(text);
	memcpy(text, head, n);
	if (size)
		memcpy(text + n, data, size);
	text[n + size] = 0;
	return text;
}

#endif
