/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions for snapshots: text, matching, the watching sink, and how often. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "glob.h"
#include "trigger.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define S(text) ((struct mt_str){(text), (uint32_t)strlen(text)})

static const struct mt_callsite query = {.id = 1,
					 .class_ = MONTRACE_CLASS_SPAN,
					 .level = MONTRACE_INFO,
					 .name = "query",
					 .target = "app::db",
					 .file = "f.c",
					 .function = ""};
static const struct mt_callsite reply = {.id = 2,
					 .class_ = MONTRACE_CLASS_EVENT,
					 .level = MONTRACE_WARN,
					 .name = "reply",
					 .target = "app",
					 .file = "f.c",
					 .function = "",
					 .nfields = 5,
					 .fields = {{.name = "code", .type = MONTRACE_TYPE_I64},
						    {.name = "size", .type = MONTRACE_TYPE_U64},
						    {.name = "load", .type = MONTRACE_TYPE_F64},
						    {.name = "ok", .type = MONTRACE_TYPE_BOOL},
						    {.name = "path", .type = MONTRACE_TYPE_STR}}};

static struct mt_trigger *parsed(const char *text)
{
	struct mt_trigger *t = NULL;
	const char *why = "";
	size_t pos;

	if (mt_trigger_parse(text, &t, &pos, &why) != 0)
		fail_msg("%s: %s at %zu", text, why, pos);
	assert_string_equal(mt_trigger_text(t), text);
	return t;
}

static void glob_table(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool want;
	} cases[] = {
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"*", "", true},
		{"*", "abc", true},
		{"a*c", "abbc", true},
		{"a*c", "abbcd", false},
		{"?", "a", true},
		{"?", "", false},
		{"a?c", "abc", true},
		{"**b*", "aab", true},
		{"*ab*ab", "ababab", true},
		{"*ab*ab", "abba", false},
		{"abc", "abd", false},
		{"a*", "b", false},
		{"*.c", "f.h.c", true},
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++)
		assert_int_equal(mt_glob(S(cases[i].pattern), S(cases[i].text)), cases[i].want);
}

static void errors_have_a_place(void **state)
{
	static const struct {
		const char *text, *why;
		size_t pos;
	} cases[] = {
		{"", "must begin with span, event or lost", 0},
		{"   ", "must begin with span, event or lost", 3},
		{"spam x > 1ms", "must begin with span, event or lost", 0},
		{"\"span\" x > 1ms", "must begin with span, event or lost", 0},
		{"span", "the name of a span is missing", 4},
		{"span > 1ms", "the name of a span is missing", 5},
		{"span x", "> or >= is missing", 6},
		{"span x < 1ms", "> or >= is missing", 7},
		{"span x >", "a duration is missing", 8},
		{"span x > ms", "this is no duration", 9},
		{"span x > 50", "the unit must be ns, us, ms or s", 11},
		{"span x > 50m", "the unit must be ns, us, ms or s", 11},
		{"span x > 50 ms", "the unit must be ns, us, ms or s", 11},
		{"span x > 18446744073709551616ns", "this is no duration", 9},
		{"span x > 18446744074s", "the duration is too long", 9},
		{"span x > 1ms y", "nothing may follow here", 13},
		{"event", "the name of an event, or `level`, is missing", 5},
		{"event level ~ error", "a level is not compared with ~", 12},
		{"event level >=", "a level is missing", 14},
		{"event level >= fatal", "the level must be trace, debug, info, warn or error", 15},
		{"event level >= error x", "nothing may follow here", 21},
		{"event x = 1", "the name of a field is missing", 8},
		{"event x code", "an operator is missing: = != > >= < <= ~", 12},
		{"event x code 5", "an operator is missing: = != > >= < <= ~", 13},
		{"event x code =", "a value is missing", 14},
		{"event x code > = 5", "a value is missing", 15},
		{"event x code > \"5\"", "a text is compared with = != or ~", 15},
		{"event x code <= abc", "a text is compared with = != or ~", 16},
		{"event x code = 1 2", "nothing may follow here", 17},
		{"event \"x", "the quote has no end", 6},
		{"event a b c d e f g h i", "too many words", 20},
		{"lost", "> or >= is missing", 4},
		{"lost = 0", "> or >= is missing", 5},
		{"lost > x", "this is no number", 7},
		{"lost > 5k", "this is no number", 7},
		{"lost >", "a number is missing", 6},
		{"lost > 0 1", "nothing may follow here", 9},
	};
	struct mt_trigger *t = NULL;
	char long_text[MT_TRIGGER_MAX + 2];
	const char *why;
	size_t i, pos;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		why = "none";
		if (mt_trigger_parse(cases[i].text, &t, &pos, &why) != -EINVAL || strcmp(why, cases[i].why) ||
		    pos != cases[i].pos)
			fail_msg("%s: %s at %zu", cases[i].text, why, pos);
		assert_int_equal(mt_trigger_parse(cases[i].text, &t, NULL, NULL), -EINVAL);
	}
	assert_null(t);
	memset(long_text, 'x', sizeof(long_text));
	long_text[MT_TRIGGER_MAX + 1] = '\0';
	assert_int_equal(mt_trigger_parse(long_text, &t, &pos, &why), -E2BIG);
	assert_string_equal(why, "the text is too long");
	assert_int_equal(pos, MT_TRIGGER_MAX);
}

static void spans_by_name_and_duration(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t ns;
		bool wants, fires;
	} cases[] = {
		{"span query > 50ms", "query", 50000000, true, false},
		{"span query > 50ms", "query", 50000001, true, true},
		{"span query >= 50ms", "query", 50000000, true, true},
		{"span query>=50ms", "query", 49999999, true, false},
		{"span query>7ns", "query", 8, true, true},
		{"span query >= 7us", "query", 6999, true, false},
		{"span query >= 2s", "query", 2000000000, true, true},
		{"span q* > 0ns", "query", 1, true, true},
		{"span select* > 0ns", "select 1", 1, true, true}, /* as displayed */
		{"span select > 0ns", "select 1", 1, false, true},
		{"span \"select 1\" > 0ns", "select 1", 1, true, true},
		{"span \"a\\\"b\\\\c\\d\" > 0ns", "a\"b\\c\\d", 1, true, true},
		{"\tspan\tquery\t>\t1ns ", "query", 2, true, true},
		{"span level > 1ns", "level", 2, true, true},
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct mt_trigger *t = parsed(cases[i].text);

		assert_int_equal(mt_trigger_wants_span(t, &query, S(cases[i].name)), cases[i].wants);
		assert_int_equal(mt_trigger_duration(t, cases[i].ns), cases[i].fires);
		mt_trigger_free(t);
	}
}

static void events_by_level(void **state)
{
	static const struct {
		const char *text;
		unsigned from, to; /* levels that match */
	} cases[] = {
		{"event level >= error", 5, 5}, {"event level>=warn", 4, 5},    {"event level > info", 4, 5},
		{"event level = debug", 2, 2},  {"event level == debug", 2, 2}, {"event level <= info", 1, 3},
		{"event level < trace", 9, 9},
	};
	struct mt_callsite cs = reply;
	struct mt_instant e = {.cs = &cs, .name = S("reply")};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct mt_trigger *t = parsed(cases[i].text);

		for (cs.level = 1; cs.level <= 5; cs.level++)
			assert_int_equal(mt_trigger_instant(t, &e),
					 cs.level >= cases[i].from && cs.level <= cases[i].to);
		assert_false(mt_trigger_wants_span(t, &query, S("query")));
		mt_trigger_free(t);
	}
}

static void events_by_field(void **state)
{
	static const struct {
		const char *text;
		bool want;
	} cases[] = {
		{"event reply", true},
		{"event re*", true},
		{"event shown", true}, /* the displayed name */
		{"event other", false},
		{"event level", false}, /* a name here */
		{"event level code = -5", false},
		{"event reply code = -5", true},
		{"event reply code = -6", false},
		{"event reply code != -6", true},
		{"event reply code < 0", true},
		{"event reply code >= -5", true},
		{"event reply code > -5", false},
		{"event reply code < 18446744073709551615", true},
		{"event reply code > -9223372036854775808", true},
		{"event reply code < -9223372036854775809", false},
		{"event reply code < -4.5", true},
		{"event reply code ~ -*", true},
		{"event reply code = \"-5\"", false}, /* a text */
		{"event reply code != \"-5\"", true},
		{"event reply size = 18446744073709551615", true},
		{"event reply size > 18446744073709551614", true},
		{"event reply size > -1", true},
		{"event reply size < 0", false},
		{"event reply load > 0.49", true},
		{"event reply load >= .5", true},
		{"event reply load > 0", true},
		{"event reply load > 1", false},
		{"event reply load > -1", true},
		{"event reply load = nan", false},
		{"event reply load ~ 0.5", true},
		{"event reply ok = true", true},
		{"event reply ok = false", false},
		{"event reply ok = 1", true},
		{"event reply ok ~ t*", true},
		{"event reply path = /index.html", true},
		{"event reply path = \"/index.html\"", true},
		{"event reply path != /index.html", false},
		{"event reply path ~ *.html", true},
		{"event reply path ~ \"*.htm\"", false},
		{"event reply path = /index.htm", false},
		{"event reply path > 5", false},
		{"event reply none = 1", false},
		{"event reply none != 1", false}, /* not there is not different */
		{"event reply late = 7", true},
		{"event reply gone != 7", false},
		{"event reply cut = abc", false}, /* may go on */
		{"event reply cut != abc", false},
		{"event reply cut != abd", true},
		{"event reply cut != abcdef", false},
		{"event reply cut ~ ab*", true},
		{"event reply nan != 5", true},
		{"event reply nan >= 5", false},
	};
	struct mt_value v[5] = {{.type = MONTRACE_TYPE_I64, .i = -5},
				{.type = MONTRACE_TYPE_U64, .u = UINT64_MAX},
				{.type = MONTRACE_TYPE_F64, .f = 0.5},
				{.type = MONTRACE_TYPE_BOOL, .u = 1},
				{.type = MONTRACE_TYPE_STR, .s = S("/index.html")}};
	struct mt_field extra[4] = {
		{S("late"), {.type = MONTRACE_TYPE_I64, .i = 7}},
		{S("gone"), {.type = MONTRACE_TYPE_I64, .missing = true, .s = S("unreadable")}},
		{S("cut"), {.type = MONTRACE_TYPE_STR, .cut = true, .full_len = 9, .s = S("abc")}},
		{S("nan"), {.type = MONTRACE_TYPE_F64, .f = NAN}}};
	struct mt_instant e = {
		.cs = &reply, .name = S("shown"), .nvalues = 5, .values = v, .nextra = 4, .extra = extra};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		struct mt_trigger *t = parsed(cases[i].text);

		if (mt_trigger_instant(t, &e) != cases[i].want)
			fail_msg("%s", cases[i].text);
		mt_trigger_free(t);
	}
}

/* ---- the sink ---- */

struct log {
	char text[4096];
};

static void on_fire(void *ctx, const struct mt_trigger *t, const char *text, uint64_t time)
{
	struct log *l = ctx;
	size_t at = strlen(l->text);

	(void)t;
	snprintf(l->text + at, sizeof(l->text) - at, "@%llu %s\n", (unsigned long long)time, text);
}

static struct mt_sink *watcher(struct log *l, uint32_t max_open, unsigned n, const char *const *texts)
{
	struct mt_trigger *t[8];
	struct mt_sink *s;
	unsigned i;

	memset(l, 0, sizeof(*l));
	for (i = 0; i < n; i++)
		t[i] = parsed(texts[i]);
	assert_int_equal(mt_trigger_sink_new(t, n, max_open, on_fire, l, &s), 0);
	return s;
}

static void begin(struct mt_sink *s, uint64_t time, uint64_t key, const char *name)
{
	struct mt_slice sl = {.time = time, .cs = &query, .name = S(name), .key = key};

	s->ops->begin(s, &sl);
}

static void end(struct mt_sink *s, uint64_t time, uint64_t key, const char *name)
{
	struct mt_slice_end e = {.time = time, .cs = &query, .name = S(name), .key = key};

	s->ops->end(s, &e);
}

static void the_sink_fires(void **state)
{
	static const char *const texts[] = {"span query > 50ms", "span sel* >= 10ms", "event level >= warn",
					    "lost > 4"};
	struct mt_instant e = {.time = 7, .cs = &reply, .name = S("bad\x1b[0m")};
	struct mt_loss l = {.time = 8, .count = 3, .cause = ""};
	struct mt_trigger_stats st;
	struct mt_sink *s;
	struct log log;

	(void)state;
	s = watcher(&log, 0, N_OF(texts), texts);
	begin(s, 0, 1, "select 1"); /* both conditions: the static and the displayed name */
	begin(s, 5000000, 2, "x");
	end(s, 54000000, 2, "x");
	end(s, 60000000, 1, "select 1");
	end(s, 60000000, 1, "select 1"); /* again: not known */
	end(s, 90000000, 99, "query");
	s->ops->instant(s, &e);
	s->ops->lost(s, &l);
	l.count = 2;
	s->ops->lost(s, &l);
	s->ops->lost(s, &l); /* counts anew */
	assert_string_equal(log.text, "@60000000 span query > 50ms (select 1 took 60.000 ms)\n"
				      "@60000000 span sel* >= 10ms (select 1 took 60.000 ms)\n"
				      "@7 event level >= warn (bad\xef\xbf\xbd[0m)\n"
				      "@8 lost > 4 (5 lost)\n");
	mt_trigger_sink_stats(s, &st);
	assert_int_equal(st.fired, 4);
	assert_int_equal(st.forgotten, 0);
	assert_int_equal(s->ops->free(s), 0);
}

/* The table of open slices: full, empty again, keys that meet in it. */
static void many_open_slices(void **state)
{
	static const char *const texts[] = {"span query >= 100ns"};
	struct mt_trigger_stats st;
	struct mt_sink *s;
	struct log log;
	uint64_t k, round, fired = 0;

	(void)state;
	s = watcher(&log, 64, 1, texts);
	for (round = 0; round < 50; round++) {
		uint64_t base = round * 1000003, from = 1 + round % 7;

		for (k = 1; k <= 70; k++)
			begin(s, 0, base + k * from, "query");
		/* In another order; the last six found no room. */
		for (k = 1; k <= 70; k += 2)
			end(s, 100 + k, base + k * from, "query");
		for (k = 70; k >= 2; k -= 2)
			end(s, 100 + k, base + k * from, "query");
		fired += 64;
		mt_trigger_sink_stats(s, &st);
		assert_int_equal(st.fired, fired);
		assert_int_equal(st.forgotten, 6 * (round + 1));
		log.text[0] = '\0';
	}
	s->ops->free(s);
}

/* A hang: what is open for too long meets its condition once, the oldest first, and its end does not again. */
static void open_for_too_long(void **state)
{
	static const char *const texts[] = {"event nothing", "span query > 50ns", "span sel* >= 80ns"};
	struct mt_process p = {.name = "app"};
	struct mt_thread t = {.process = &p, .tid = 7, .name = "work\x1b"};
	struct mt_slice sl = {.time = 10, .cs = &query, .name = S("select 1"), .key = 3, .thread = &t};
	struct mt_trigger_stats st;
	struct mt_sink *s;
	struct log log;

	(void)state;
	s = watcher(&log, 0, N_OF(texts), texts);
	s->ops->begin(s, &sl); /* both */
	begin(s, 15, 4, "x");  /* the first one */
	begin(s, 20, 5, "x");
	s->ops->flush(s, 5); /* before any of them */
	s->ops->flush(s, 60);
	assert_string_equal(log.text, "");
	s->ops->flush(s, 61);
	end(s, 62, 5, "x"); /* in time */
	s->ops->flush(s, 65);
	s->ops->flush(s, 66);
	s->ops->flush(s, 89);
	s->ops->flush(s, 90);
	s->ops->flush(s, 1000000);
	end(s, 2000000, 3, "select 1");
	end(s, 2000000, 4, "x");
	assert_string_equal(
		log.text,
		"@61 span query > 50ns (query is open for 0.000 ms on thread 7 work\xef\xbf\xbd)\n"
		"@66 span query > 50ns (query is open for 0.000 ms)\n"
		"@90 span sel* >= 80ns (query is open for 0.000 ms on thread 7 work\xef\xbf\xbd)\n");
	mt_trigger_sink_stats(s, &st);
	assert_int_equal(st.fired, 3);
	assert_int_equal(st.forgotten, 0);
	s->ops->free(s);
}

/* Against a table of what is open: ends, and looks at any time, in any order. */
static void open_ones_against_a_model(void **state)
{
	static const char *const texts[] = {"span query >= 100ns", "span query > 299ns"};
	static const uint64_t limits[] = {100, 300};
	struct {
		bool open, met[2];
		uint64_t since;
	} m[40];
	uint64_t now = 1, seed = 42, met = 0, key, base = 0;
	struct mt_trigger_stats st;
	struct mt_sink *s;
	struct log log;
	unsigned i, k, t;

	(void)state;
	s = watcher(&log, 0, N_OF(texts), texts);
	memset(m, 0, sizeof(m));
	for (i = 0; i < 200000; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		k = (unsigned)(seed >> 33) % N_OF(m);
		now += (seed >> 50) % 8;
		key = base + k + 1;
		if (i % 50 == 49) {
			s->ops->flush(s, now);
			for (k = 0; k < N_OF(m); k++)
				for (t = 0; t < 2; t++)
					if (m[k].open && !m[k].met[t] && now - m[k].since >= limits[t])
						met += m[k].met[t] = true;
		} else if (!m[k].open) {
			begin(s, now, key, "query");
			m[k].open = true;
			m[k].since = now;
			m[k].met[0] = m[k].met[1] = false;
		} else {
			end(s, now, key, "query");
			m[k].open = false;
			for (t = 0; t < 2; t++)
				met += !m[k].met[t] && now - m[k].since >= limits[t];
		}
		log.text[0] = '\0';
		mt_trigger_sink_stats(s, &st);
		assert_int_equal(st.fired, met);
	}
	assert_true(met > 1000);
	s->ops->free(s);
}

/* ---- how often ---- */

static void policy_story(void **state)
{
	struct mt_policy p = {.after_ns = 10, .cooldown_ns = 100, .max = 3};

	(void)state;
	assert_false(mt_policy_take(&p, 0));
	assert_true(mt_policy_fire(&p, 1000));
	assert_false(mt_policy_fire(&p, 1005)); /* one is pending */
	assert_false(mt_policy_take(&p, 1009));
	assert_true(mt_policy_take(&p, 1012));
	assert_false(mt_policy_take(&p, 1012));
	assert_false(mt_policy_fire(&p, 1111)); /* until 1112 */
	assert_true(mt_policy_fire(&p, 1112));
	assert_true(mt_policy_flush(&p, 1113)); /* the end: does not wait */
	assert_false(mt_policy_flush(&p, 1113));
	assert_true(mt_policy_fire(&p, 2000));
	assert_true(mt_policy_take(&p, 2010));
	assert_false(mt_policy_fire(&p, 9000)); /* three were taken */
	assert_int_equal(p.taken, 3);
	assert_int_equal(p.suppressed, 3);
}

static void policy_without_limits(void **state)
{
	struct mt_policy p = {0}, far = {.after_ns = UINT64_MAX};
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		assert_true(mt_policy_fire(&p, 5));
		assert_true(mt_policy_take(&p, 5));
	}
	assert_int_equal(p.taken, 1000);
	assert_true(mt_policy_fire(&far, 5));
	assert_false(mt_policy_take(&far, UINT64_MAX - 1));
	assert_true(mt_policy_flush(&far, 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(glob_table),
		cmocka_unit_test(errors_have_a_place),
		cmocka_unit_test(spans_by_name_and_duration),
		cmocka_unit_test(events_by_level),
		cmocka_unit_test(events_by_field),
		cmocka_unit_test(the_sink_fires),
		cmocka_unit_test(many_open_slices),
		cmocka_unit_test(open_for_too_long),
		cmocka_unit_test(open_ones_against_a_model),
		cmocka_unit_test(policy_story),
		cmocka_unit_test(policy_without_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
