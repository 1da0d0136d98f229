/* SPDX-License-Identifier: BSD-3-Clause */
/* Display names: message and name fields, target::name, endpoint names (BEHAVIOUR scenarios 14, 15, 16). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "names.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define ENDPOINT "monarch_hyperactor::telemetry::endpoint"
#define TELEMETRY "monarch_hyperactor::telemetry"

enum { S = MONTRACE_TYPE_STR, D = MONTRACE_TYPE_DEBUG, I = MONTRACE_TYPE_I64 };

struct field {
	const char *name;
	uint8_t type;
	const char *text; /* NULL: missing */
};

static const struct {
	enum mt_naming naming;
	uint8_t class_;
	uint16_t flags;
	const char *target;
	const char *name;
	struct field f[4];
	const char *want;
} cases[] = {
#define SPAN MONTRACE_CLASS_SPAN
#define SCOPE MONTRACE_CLASS_SCOPE
#define EVENT MONTRACE_CLASS_EVENT
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", S, "v"}}, "v"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", D, "v"}}, "v"},
	{MT_NAMING_USER, SCOPE, 0, "t", "n", {{"x", I, ""}, {"name", S, "v"}}, "v"},
	{MT_NAMING_USER, MONTRACE_CLASS_RECORDING, 0, "t", "n", {{"name", S, "v"}}, "v"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", S, ""}}, "n"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", I, ""}}, "n"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", S, NULL}}, "n"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"message", S, "v"}}, "n"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", S, "v"}, {"name", S, "w"}}, "w"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{"name", S, "v"}, {"name", I, ""}}, "v"},
	{MT_NAMING_USER, SPAN, 0, "t", "n", {{NULL, 0, NULL}}, "n"},
	{MT_NAMING_USER, EVENT, 0, "t", "event f.c:1", {{"message", S, "hi"}}, "hi"},
	{MT_NAMING_USER, EVENT, 0, "t", "event f.c:1", {{"message", D, "hi"}}, "hi"},
	{MT_NAMING_USER, EVENT, 0, "t", "n", {{"name", S, "v"}}, "n"},
	{MT_NAMING_USER,
	 EVENT,
	 MONTRACE_CSF_MESSAGE,
	 "t",
	 "got %d",
	 {{"text", D, "got 5"}, {"message", S, "m"}},
	 "got 5"},
	{MT_NAMING_USER, EVENT, MONTRACE_CSF_MESSAGE, "t", "got %d", {{NULL, 0, NULL}}, "got %d"},
	{MT_NAMING_USER, MONTRACE_CLASS_COUNTER, 0, "t", "n", {{"name", S, "v"}}, "n"},
	{MT_NAMING_DEV, SPAN, 0, "t::u", "n", {{"name", S, "v"}}, "t::u::n"},
	{MT_NAMING_DEV, EVENT, 0, "t::u", "event f.c:1", {{"message", S, "hi"}}, "t::u::event f.c:1"},
	{MT_NAMING_DEV, EVENT, MONTRACE_CSF_MESSAGE, "t", "got %d", {{"text", D, "got 5"}}, "t::got %d"},
	{MT_NAMING_DEV, MONTRACE_CLASS_COUNTER, 0, "t", "n", {{"value", I, ""}}, "n"},
	{MT_NAMING_PLAIN, SPAN, 0, "t", "n", {{"name", S, "v"}}, "n"},
	{MT_NAMING_PLAIN, EVENT, 0, "t", "n", {{"message", S, "v"}}, "n"},
	{MT_NAMING_UPSTREAM,
	 SPAN,
	 0,
	 ENDPOINT,
	 "call",
	 {{"mesh", S, "m"}, {"method", S, "go"}},
	 "m.go.call()"},
	{MT_NAMING_UPSTREAM, SPAN, 0, ENDPOINT, "call", {{"mesh", S, ""}, {"method", S, "go"}}, ".go.call()"},
	{MT_NAMING_UPSTREAM, SPAN, 0, ENDPOINT, "call", {{"mesh", D, "m"}, {"method", S, "go"}}, "call"},
	{MT_NAMING_UPSTREAM,
	 SPAN,
	 0,
	 ENDPOINT,
	 "call",
	 {{"mesh", S, "m"}, {"call_name", S, "c"}},
	 "c.call()"},
	{MT_NAMING_UPSTREAM,
	 SPAN,
	 0,
	 ENDPOINT,
	 "call",
	 {{"call_name", S, "c"}, {"mesh", S, "m"}, {"method", S, "go"}},
	 "m.go.call()"},
	{MT_NAMING_UPSTREAM, SPAN, 0, ENDPOINT, "call", {{"call_name", S, ""}}, "call"},
	{MT_NAMING_UPSTREAM, SPAN, 0, ENDPOINT, "call", {{"name", S, "v"}}, "call"},
	{MT_NAMING_UPSTREAM, SPAN, 0, ENDPOINT "s", "call", {{"call_name", S, "c"}}, ENDPOINT "s::call"},
	{MT_NAMING_UPSTREAM, SPAN, 0, TELEMETRY, "n", {{"name", S, "v"}}, "v"},
	{MT_NAMING_UPSTREAM, SPAN, 0, TELEMETRY, "n", {{"name", D, "v"}}, "n"},
	{MT_NAMING_UPSTREAM, SPAN, 0, "t", "n", {{"name", S, "v"}}, "t::n"},
	{MT_NAMING_UPSTREAM, EVENT, 0, TELEMETRY, "n", {{"message", D, "v"}}, "v"},
	{MT_NAMING_UPSTREAM, EVENT, 0, "t", "n", {{"x", I, ""}}, "n"},
};

static void display_names(void **state)
{
	char buf[MT_NAME_MAX];
	size_t c;

	(void)state;
	for (c = 0; c < N_OF(cases); c++) {
		struct mt_callsite cs = {.class_ = cases[c].class_,
					 .flags = cases[c].flags,
					 .target = cases[c].target,
					 .name = cases[c].name};
		struct mt_value v[4] = {0};
		struct mt_name_plan plan;
		struct mt_str got;

		for (; cs.nfields < 4 && cases[c].f[cs.nfields].name; cs.nfields++) {
			const struct field *f = &cases[c].f[cs.nfields];

			cs.fields[cs.nfields] = (struct mt_field_desc){.name = f->name, .type = f->type};
			v[cs.nfields].type = f->type;
			v[cs.nfields].missing = !f->text;
			v[cs.nfields].s = (struct mt_str){f->text ? f->text : "unreadable",
							  f->text ? (uint32_t)strlen(f->text) : 10};
		}
		mt_name_plan_init(&plan, cases[c].naming, &cs);
		got = mt_name_get(&plan, v, cs.nfields, buf);
		if (got.len != strlen(cases[c].want) || memcmp(got.p, cases[c].want, got.len) != 0)
			fail_msg("case %zu: got '%.*s' not '%s'", c, (int)got.len, got.p, cases[c].want);
		if (mt_name_plan_fixed(&plan))
			assert_ptr_equal(got.p, plan.fixed.p);
		/* Without values: nothing to look up, nothing read. */
		got = mt_name_get(&plan, NULL, 0, buf);
		assert_ptr_equal(got.p, plan.fixed.p);
		mt_name_plan_drop(&plan);
	}
}

static void long_names_are_cut_between_characters(void **state)
{
	struct mt_callsite cs = {.class_ = MONTRACE_CLASS_SPAN,
				 .target = ENDPOINT,
				 .name = "call",
				 .nfields = 1,
				 .fields = {{"call_name", MONTRACE_TYPE_STR}}};
	static char text[MT_NAME_MAX + 4];
	char buf[MT_NAME_MAX];
	struct mt_value v = {.type = MONTRACE_TYPE_STR, .s = {text, MT_NAME_MAX}};
	struct mt_name_plan plan;
	struct mt_str got;
	size_t i;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text + MT_NAME_MAX - 2, "\xc3\xa4", 2);
	mt_name_plan_init(&plan, MT_NAMING_UPSTREAM, &cs);
	got = mt_name_get(&plan, &v, 1, buf);
	assert_int_equal(got.len, MT_NAME_MAX - 1); /* "xxx." */
	assert_int_equal(got.p[got.len - 1], '.');
	for (i = 0; i < got.len; i++)
		assert_true(got.p[i] > 0);
	mt_name_plan_drop(&plan);
}

/* Labels: fields in braces, whatever their type; braces that name none are text. */
static void labels(void **state)
{
	static const struct {
		const char *label, *want;
	} rows[] = {
		{"{q}", "select"},
		{"q: {q}!", "q: select!"},
		{"{i}/{u} {f} {b} {h}", "-5/7 1.5 true 0xff"},
		{"{i:i32}{q:str}", "-5select"},
		{"{gone}", "?"},
		{"{nix} {q", "{nix} {q"},
		{"{{q}}", "{select}"},
		{"{empty}", "n"},
		{"{not seen}", "n"},
	};
	struct mt_callsite cs = {.class_ = MONTRACE_CLASS_SCOPE, .target = "t", .name = "n", .nfields = 8};
	static const char *const names[] = {"q", "i", "u", "f", "b", "h", "gone", "empty"};
	struct mt_value v[8] = {
		{.type = S, .s = {"select", 6}},
		{.type = I, .i = -5},
		{.type = MONTRACE_TYPE_U64, .u = 7},
		{.type = MONTRACE_TYPE_F64, .f = 1.5},
		{.type = MONTRACE_TYPE_BOOL, .u = 1},
		{.type = D, .s = {"0xff", 4}},
		{.type = I, .missing = true, .s = {"unreadable", 10}},
		{.type = S, .s = {"", 0}},
	};
	char buf[MT_NAME_MAX];

	(void)state;
	for (unsigned i = 0; i < 8; i++)
		cs.fields[i] = (struct mt_field_desc){.name = names[i], .type = v[i].type};
	cs.fields[8] = (struct mt_field_desc){.name = "not seen", .type = I};
	cs.nfields = 9;
	for (size_t i = 0; i < N_OF(rows); i++) {
		struct mt_name_plan plan;
		struct mt_str got;

		cs.label = rows[i].label;
		mt_name_plan_init(&plan, MT_NAMING_DEV, &cs);
		got = mt_name_get(&plan, v, 8, buf);
		if (got.len != strlen(rows[i].want) || memcmp(got.p, rows[i].want, got.len))
			fail_msg("%s: %.*s", rows[i].label, (int)got.len, got.p);
		mt_name_plan_drop(&plan);
		/* Of counters: whatever the naming. */
		cs.class_ = MONTRACE_CLASS_COUNTER;
		mt_name_plan_init(&plan, MT_NAMING_PLAIN, &cs);
		got = mt_name_get(&plan, v, 8, buf);
		assert_int_equal(got.len, strlen(rows[i].want));
		assert_memory_equal(got.p, rows[i].want, got.len);
		mt_name_plan_drop(&plan);
		cs.class_ = MONTRACE_CLASS_SCOPE;
	}
}

/* A name that the user gave stands, whatever the fields are called. */
static void given_names(void **state)
{
	struct mt_callsite cs = {.target = "t", .name = "n", .label = "given", .nfields = 2};
	struct mt_value v[2] = {{.type = S, .s = {"a", 1}}, {.type = S, .s = {"b", 1}}};
	char buf[MT_NAME_MAX];

	(void)state;
	cs.fields[0] = (struct mt_field_desc){.name = "name", .type = S};
	cs.fields[1] = (struct mt_field_desc){.name = "message", .type = S};
	for (unsigned i = 0; i < 3; i++) {
		static const uint8_t classes[] = {SPAN, SCOPE, EVENT};

		for (int naming = MT_NAMING_USER; naming <= MT_NAMING_UPSTREAM; naming++) {
			struct mt_name_plan plan;
			struct mt_str got;

			cs.class_ = classes[i];
			mt_name_plan_init(&plan, (enum mt_naming)naming, &cs);
			assert_true(mt_name_plan_fixed(&plan) || naming == MT_NAMING_PLAIN);
			got = mt_name_get(&plan, v, 2, buf);
			assert_int_equal(got.len, naming == MT_NAMING_PLAIN ? 1 : 5);
			assert_memory_equal(got.p, naming == MT_NAMING_PLAIN ? "n" : "given", got.len);
			mt_name_plan_drop(&plan);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(display_names),
		cmocka_unit_test(long_names_are_cut_between_characters),
		cmocka_unit_test(labels),
		cmocka_unit_test(given_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
