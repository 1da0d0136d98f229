/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void mode_parse_table(void **state)
{
	static const struct {
		const char *text;
		int want; /* enum mt_mode, -1 = refused */
	} rows[] = {
		{"off", MT_MODE_OFF},
		{"false", MT_MODE_OFF},
		{"0", MT_MODE_OFF},
		{"none", MT_MODE_OFF},
		{"user", MT_MODE_USER},
		{"true", MT_MODE_USER},
		{"1", MT_MODE_USER},
		{"dev", MT_MODE_DEV},
		{"all", MT_MODE_DEV},
		{"debug", MT_MODE_DEV},
		{"OFF", MT_MODE_OFF},
		{"None", MT_MODE_OFF},
		{"uSeR", MT_MODE_USER},
		{"TRUE", MT_MODE_USER},
		{"Dev", MT_MODE_DEV},
		{"DEBUG", MT_MODE_DEV},
		{"", -1},
		{" user", -1},
		{"user ", -1},
		{"users", -1},
		{"use", -1},
		{"2", -1},
		{"00", -1},
		{"on", -1},
		{"trace", -1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		enum mt_mode m = (enum mt_mode)77;

		assert_int_equal(mt_mode_parse(rows[i].text, &m), rows[i].want < 0 ? -EINVAL : 0);
		assert_int_equal(m, rows[i].want < 0 ? 77 : rows[i].want);
	}
}

static struct mt_filter *make(enum mt_mode mode, const char *directives)
{
	struct mt_filter_opts o = {.mode = mode, .directives = directives};
	struct mt_filter *f = NULL;

	assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), 0);
	return f;
}

/* The verdict on an event of that target and level; checks the rule and its text, too. */
static bool check(const struct mt_filter *f, const char *target, unsigned level,
		  enum mt_verdict_rule want_rule, const char *want_text)
{
	struct mt_callsite cs = {.class_ = MONTRACE_CLASS_EVENT,
				 .level = (uint8_t)level,
				 .target = target,
				 .name = "n",
				 .file = ""};
	enum mt_verdict_rule rule = (enum mt_verdict_rule)99;
	const char *text = NULL;
	bool pass = mt_filter_verdict(f, &cs, &rule, &text);

	if (rule != want_rule || strcmp(text, want_text))
		print_error("target %s level %u: rule %u text %s\n", target, level, rule, text);
	assert_int_equal(rule, want_rule);
	assert_string_equal(text, want_text);
	assert_int_equal(pass, rule == MT_RULE_PASS);
	assert_int_equal(mt_filter_verdict(f, &cs, NULL, NULL), pass);
	return pass;
}

static void user_prefix_exact_and_longer(void **state)
{
	static const struct {
		const char *target;
		bool want;
	} rows[] = {
		{"monarch_hyperactor::telemetry", true},
		{"monarch_hyperactor::telemetry::endpoint", true},
		{"monarch_hyperactor::telemetryX", true}, /* a plain prefix, as the originals */
		{"monarch_hyperactor::telemetr", false},
		{"monarch_hyperactor", false},
		{"x::monarch_hyperactor::telemetry", false},
		{"Monarch_hyperactor::telemetry", false},
		{"", false},
	};
	struct mt_filter *f = make(MT_MODE_USER, NULL);

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt_callsite cs = {.target = rows[i].target, .level = 3};

		check(f, rows[i].target, MONTRACE_TRACE, rows[i].want ? MT_RULE_PASS : MT_RULE_MODE_USER, "");
		assert_int_equal(mt_filter_user_facing(f, &cs), rows[i].want);
		cs.flags = MONTRACE_CSF_USER;
		assert_true(mt_filter_user_facing(f, &cs));
		assert_true(mt_filter_verdict(f, &cs, NULL, NULL));
	}
	mt_filter_free(f);
}

static void more_user_prefixes(void **state)
{
	char prefix[] = "app";
	const char *prefixes[] = {"my::", prefix};
	struct mt_filter_opts o = {.mode = MT_MODE_USER, .user_prefixes = prefixes, .n_user_prefixes = 2};
	struct mt_filter *f;

	(void)state;
	assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), 0);
	memset(prefix, 'x', 3); /* the filter has its own copy */
	check(f, "my::x", 1, MT_RULE_PASS, "");
	check(f, "my", 1, MT_RULE_MODE_USER, "");
	check(f, "application", 1, MT_RULE_PASS, "");
	check(f, "ap", 1, MT_RULE_MODE_USER, "");
	check(f, "monarch_hyperactor::telemetry", 1, MT_RULE_PASS, "");
	mt_filter_free(f);
}

static void modes(void **state)
{
	struct mt_filter *off = make(MT_MODE_OFF, "trace"), *user = make(MT_MODE_USER, NULL),
			 *dev = make(MT_MODE_DEV, "");

	(void)state;
	check(off, "monarch_hyperactor::telemetry", MONTRACE_ERROR, MT_RULE_MODE_OFF, "");
	check(user, "a", MONTRACE_ERROR, MT_RULE_MODE_USER, "");
	check(dev, "a", MONTRACE_TRACE, MT_RULE_PASS, "");
	check(dev, "", MONTRACE_TRACE, MT_RULE_PASS, "");
	/* Whoever is filtered by both hears of the mode. */
	check(user, "tokio", MONTRACE_ERROR, MT_RULE_MODE_USER, "");
	mt_filter_free(off);
	mt_filter_free(user);
	mt_filter_free(dev);
	mt_filter_free(NULL);
}

/* User mode and directives hold both. */
static void user_mode_with_directives(void **state)
{
	struct mt_filter *f = make(MT_MODE_USER, "monarch_hyperactor=warn");

	(void)state;
	check(f, "monarch_hyperactor::telemetry", MONTRACE_INFO, MT_RULE_DIRECTIVE,
	      "monarch_hyperactor=warn");
	check(f, "monarch_hyperactor::telemetry", MONTRACE_WARN, MT_RULE_PASS, "monarch_hyperactor=warn");
	check(f, "other", MONTRACE_WARN, MT_RULE_MODE_USER, "");
	mt_filter_free(f);
}

static void classes_that_always_pass(void **state)
{
	static const struct {
		uint8_t class_;
		bool always;
	} rows[] = {
		{MONTRACE_CLASS_SCOPE, false},       {MONTRACE_CLASS_SPAN, false},
		{MONTRACE_CLASS_EVENT, false},       {MONTRACE_CLASS_COUNTER, false},
		{MONTRACE_CLASS_RECORD, true},       {MONTRACE_CLASS_RECORDING, false},
		{MONTRACE_CLASS_THREAD_NAME, true},  {MONTRACE_CLASS_PROCESS_NAME, true},
		{MONTRACE_CLASS_EXECUTION_ID, true},
	};
	struct mt_filter *off = make(MT_MODE_OFF, NULL), *user = make(MT_MODE_USER, NULL),
			 *dev = make(MT_MODE_DEV, "off");

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt_callsite cs = {.class_ = rows[i].class_, .level = MONTRACE_INFO, .target = "tokio"};

		assert_false(mt_filter_verdict(off, &cs, NULL, NULL));
		assert_int_equal(mt_filter_verdict(user, &cs, NULL, NULL), rows[i].always);
		assert_int_equal(mt_filter_verdict(dev, &cs, NULL, NULL), rows[i].always);
	}
	mt_filter_free(off);
	mt_filter_free(user);
	mt_filter_free(dev);
}

static void filter_tokio_runtime_prefix(void **state)
{
	static const struct {
		const char *target;
		const char *segments, *raw; /* the directive that drops it, "" = passes */
	} rows[] = {
		{"tokio", "tokio=off", "tokio=off"},
		{"tokio::task", "tokio=off", "tokio=off"},
		{"tokio_util", "", "tokio=off"},
		{"tokio:x", "", "tokio=off"},
		{"my_tokio", "", ""},
		{"my::tokio", "", ""},
		{"runtime", "runtime=off", "runtime=off"},
		{"runtime::resource", "runtime=off", "runtime=off"},
		{"runtimes", "", "runtime=off"},
		{"run", "", ""},
	};
	struct mt_filter_opts o = {.mode = MT_MODE_DEV, .compat_prefix = true};
	struct mt_filter *f = make(MT_MODE_DEV, NULL), *compat;

	(void)state;
	assert_int_equal(mt_filter_new(&o, &compat, NULL, NULL), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		check(f, rows[i].target, MONTRACE_ERROR, *rows[i].segments ? MT_RULE_DIRECTIVE : MT_RULE_PASS,
		      rows[i].segments);
		check(compat, rows[i].target, MONTRACE_ERROR, *rows[i].raw ? MT_RULE_DIRECTIVE : MT_RULE_PASS,
		      rows[i].raw);
	}
	mt_filter_free(f);
	mt_filter_free(compat);
}

static void built_in_rules_can_be_replaced(void **state)
{
	struct mt_filter *f = make(MT_MODE_DEV, "tokio=warn,runtime::ok,trace");

	(void)state;
	check(f, "tokio::x", MONTRACE_INFO, MT_RULE_DIRECTIVE, "tokio=warn");
	check(f, "tokio::x", MONTRACE_WARN, MT_RULE_PASS, "tokio=warn");
	check(f, "runtime::ok::x", MONTRACE_TRACE, MT_RULE_PASS, "runtime::ok");
	check(f, "runtime", MONTRACE_ERROR, MT_RULE_DIRECTIVE, "runtime=off");
	mt_filter_free(f);
	f = make(MT_MODE_DEV, "tokio");
	check(f, "tokio::x", MONTRACE_TRACE, MT_RULE_PASS, "tokio");
	mt_filter_free(f);
}

/* Each way to write a level, and where it draws the line. */
static void levels(void **state)
{
	static const struct {
		const char *word;
		unsigned lowest; /* level that passes; 6 = none */
	} rows[] = {
		{"trace", 1}, {"debug", 2}, {"info", 3}, {"warn", 4}, {"error", 5}, {"off", 6},
		{"TRACE", 1}, {"Debug", 2}, {"iNFO", 3}, {"WARN", 4}, {"Error", 5}, {"OFF", 6},
		{"5", 1},     {"4", 2},     {"3", 3},    {"2", 4},    {"1", 5},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char pair[32];
		struct mt_filter *bare = make(MT_MODE_DEV, rows[i].word), *with;

		snprintf(pair, sizeof(pair), "a::b=%s", rows[i].word);
		with = make(MT_MODE_DEV, pair);
		for (unsigned level = MONTRACE_TRACE; level <= MONTRACE_ERROR; level++) {
			enum mt_verdict_rule want =
				level >= rows[i].lowest ? MT_RULE_PASS : MT_RULE_DIRECTIVE;

			check(bare, "any::thing", level, want, rows[i].word);
			check(with, "a::b", level, want, pair);
			check(with, "a", level, MT_RULE_PASS, "");
		}
		mt_filter_free(bare);
		mt_filter_free(with);
	}
}

struct probe {
	const char *target;
	unsigned level;
	const char *text; /* the directive that decides */
	bool pass;
};

static void grammar(void **state)
{
	static const struct {
		const char *directives;
		struct probe probes[5];
	} rows[] = {
		{"", {{"a", 1, "", true}}},
		{" \t ", {{"a", 1, "", true}}},
		{",, ,", {{"a", 1, "", true}}},
		{"info,", {{"a", 2, "info", false}, {"a", 3, "info", true}}},
		{"a", {{"a", 1, "a", true}, {"b", 1, "", true}}},
		{"warn,a", {{"a", 1, "a", true}, {"b", 3, "warn", false}, {"b", 4, "warn", true}}},
		{"a=debug,info",
		 {{"a", 1, "a=debug", false}, {"a", 2, "a=debug", true}, {"b", 2, "info", false}}},
		{" a=debug , info ", {{"a", 2, "a=debug", true}, {"b", 2, "info", false}}},
		{"\ta = debug\t,\tinfo", {{"a", 2, "a = debug", true}, {"b", 2, "info", false}}},
		/* the longest target decides, in any order */
		{"a=off,a::b=trace",
		 {{"a", 5, "a=off", false},
		  {"a::b", 1, "a::b=trace", true},
		  {"a::b::c", 1, "a::b=trace", true},
		  {"a::bc", 5, "a=off", false}}},
		{"a::b=trace,a=off", {{"a", 5, "a=off", false}, {"a::b::c", 1, "a::b=trace", true}}},
		/* later ones replace earlier ones */
		{"a=off,a=info", {{"a", 3, "a=info", true}, {"a", 2, "a=info", false}}},
		{"off,info", {{"a", 3, "info", true}}},
		{"A=off", {{"a", 5, "", true}, {"A", 5, "A=off", false}}},
		{"a:b=off", {{"a:b", 5, "a:b=off", false}}},
		{"net/http=off,x-y=off,\xc3\xa9=off",
		 {{"net/http", 5, "net/http=off", false},
		  {"x-y", 5, "x-y=off", false},
		  {"\xc3\xa9", 5, "\xc3\xa9=off", false}}},
		{"information", {{"information", 1, "information", true}, {"a", 1, "", true}}},
		{"3d", {{"3d", 1, "3d", true}}},
		{"info=off", {{"info", 5, "info=off", false}, {"a", 1, "", true}}},
		{"3=off", {{"3", 5, "3=off", false}}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt_filter *f = make(MT_MODE_DEV, rows[i].directives);

		for (unsigned k = 0; k < 5 && rows[i].probes[k].target; k++) {
			const struct probe *p = &rows[i].probes[k];

			check(f, p->target, p->level, p->pass ? MT_RULE_PASS : MT_RULE_DIRECTIVE, p->text);
		}
		mt_filter_free(f);
	}
}

static void errors_and_their_places(void **state)
{
	static const char level[] = "unknown level (off, error, warn, info, debug, trace, 1 to 5)";
	static const struct {
		const char *directives;
		size_t pos;
		const char *why;
	} rows[] = {
		{"=info", 0, "no target before '='"},
		{"a, =info", 3, "no target before '='"},
		{"  =  ", 2, "no target before '='"},
		{"a=", 2, "no level after '='"},
		{"a= ,b", 2, "no level after '='"},
		{"a=nope", 2, level},
		{"info,a= nope", 8, level},
		{"a=6", 2, level},
		{"a=0", 2, level},
		{"a=-1", 2, level},
		{"a=infos", 2, level},
		{"a=in fo", 2, level},
		{"6", 0, level},
		{"a,12345", 2, level},
		{"a=info=b", 6, "more than one '='"},
		{"a==info", 2, "more than one '='"},
		{"a b", 1, "space inside of a target"},
		{"x,a\tb=info", 3, "space inside of a target"},
		{"a\x01", 1, "control character"},
		{"a\x7f=info", 1, "control character"},
		{"a\nb", 1, "control character"},
		{"a[span]=info", 1, "filters on spans and fields are not supported"},
		{"a=info,{x}", 7, "filters on spans and fields are not supported"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mt_filter_opts o = {.mode = MT_MODE_DEV, .directives = rows[i].directives};
		struct mt_filter *f = (void *)-1;
		const char *why = NULL;
		size_t pos = 777;

		assert_int_equal(mt_filter_new(&o, &f, &pos, &why), -EINVAL);
		assert_string_equal(why, rows[i].why);
		assert_int_equal(pos, rows[i].pos);
		assert_ptr_equal(f, (void *)-1);
		assert_int_equal(mt_filter_new(&o, &f, NULL, NULL), -EINVAL);
	}
}

static void too_many_directives(void **state)
{
	struct mt_filter_opts o = {.mode = MT_MODE_DEV};
	struct mt_filter *f;
	char *text = malloc(1100 * 8), *p = text;
	const char *why = "";
	size_t pos = 0, at_1022 = 0;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < 1100; i++) {
		if (i == 1022) { /* two are built in */
			at_1022 = (size_t)(p - text);
			p[-1] = 0;
			o.directives = text;
			assert_int_equal(mt_filter_new(&o, &f, &pos, &why), 0);
			check(f, "t1021", 1, MT_RULE_PASS, "t1021");
			mt_filter_free(f);
			p[-1] = ',';
		}
		p += sprintf(p, "t%u,", i);
	}
	assert_int_equal(mt_filter_new(&o, &f, &pos, &why), -EINVAL);
	assert_string_equal(why, "too many directives");
	assert_int_equal(pos, at_1022);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mode_parse_table),
		cmocka_unit_test(user_prefix_exact_and_longer),
		cmocka_unit_test(more_user_prefixes),
		cmocka_unit_test(modes),
		cmocka_unit_test(user_mode_with_directives),
		cmocka_unit_test(classes_that_always_pass),
		cmocka_unit_test(filter_tokio_runtime_prefix),
		cmocka_unit_test(built_in_rules_can_be_replaced),
		cmocka_unit_test(levels),
		cmocka_unit_test(grammar),
		cmocka_unit_test(errors_and_their_places),
		cmocka_unit_test(too_many_directives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
