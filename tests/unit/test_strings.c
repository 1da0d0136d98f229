/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "strings.h"

#define N_OF(a) (sizeof(a) / sizeof((a)[0]))
#define R "\xef\xbf\xbd"
#define T(s) s, sizeof(s) - 1

/* in, what mt_utf8_fix makes of it (NULL: the same, and valid), what mt_text_safe makes of it (NULL: as fix)
 */
static const struct {
	const char *in;
	size_t len;
	const char *fixed;
	const char *safe;
} texts[] = {
	{T(""), NULL, NULL},
	{T("plain"), NULL, NULL},
	{T("exactly8"), NULL, NULL},
	{T("more than eight bytes"), NULL, NULL},
	{T("\x7f"), NULL, R},
	{T("a\nb\tc\x1b[1m"), NULL, "a" R "b" R "c" R "[1m"},
	{T("gr\xc3\xbc\xc3\x9f"), NULL, NULL},
	{T("12345678\xe2\x82\xac"), NULL, NULL},
	{T("\xf0\x9f\x98\x80"), NULL, NULL},
	{T("\xc2\x80\xc2\x9f\xc2\xa0"), NULL, R R "\xc2\xa0"},
	{T("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), NULL, NULL}, /* around the surrogates, U+FFFF */
	{T("\xf4\x8f\xbf\xbf"), NULL, NULL},                     /* U+10FFFF */
	{T("\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xa9"), NULL,
	 "\xe2\x80\xa7" R R}, /* line and paragraph separator */
	{T("\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf"), NULL, R R "\xe2\x80\xaf"}, /* overrides */
	{T("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa"), NULL, "\xe2\x81\xa5" R R "\xe2\x81\xaa"},
	{T("\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x8d"), NULL,
	 R R R "\xe2\x80\x8d"}, /* marks of direction */
	{T("a\0b"), "a" R "b", NULL},
	{T("1234567\0"), "1234567" R, NULL},
	{T("\x80"), R, NULL},
	{T("\xbf\xbf"), R R, NULL},
	{T("1234567\xff"), "1234567" R, NULL},
	{T("\xc0\x80"), R R, NULL},             /* overlong NUL */
	{T("\xc1\xbf"), R R, NULL},             /* overlong, 2 */
	{T("\xe0\x9f\xbf"), R R R, NULL},       /* overlong, 3 */
	{T("\xf0\x8f\xbf\xbf"), R R R R, NULL}, /* overlong, 4 */
	{T("\xed\xa0\x80"), R R R, NULL},       /* surrogates, first and last */
	{T("\xed\xbf\xbf"), R R R, NULL},
	{T("\xf4\x90\x80\x80"), R R R R, NULL}, /* U+110000 */
	{T("\xf5\x80\x80\x80"), R R R R, NULL},
	{T("\xfe\xff"), R R, NULL},
	{T("\xc3"), R, NULL}, /* ends too early */
	{T("\xe2\x82"), R R, NULL},
	{T("\xf0\x9f\x98"), R R R, NULL},
	{T("\xe2\x82x"), R R "x", NULL},
	{T("\xc3\xc3\xa4"), R "\xc3\xa4", NULL}, /* the second one starts a good character */
};

static void fix_valid_safe(void **state)
{
	char out[128];
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(texts); i++) {
		const char *fixed = texts[i].fixed ? texts[i].fixed : texts[i].in;
		const char *safe = texts[i].safe ? texts[i].safe : fixed;

		if (mt_utf8_valid(texts[i].in, texts[i].len) != !texts[i].fixed)
			fail_msg("text %zu: valid", i);
		assert_int_equal(mt_utf8_fix(out, sizeof(out), texts[i].in, texts[i].len), strlen(fixed));
		assert_string_equal(out, fixed);
		assert_true(mt_utf8_valid(out, strlen(out)));
		assert_int_equal(mt_text_safe(out, sizeof(out), texts[i].in, texts[i].len), strlen(safe));
		assert_string_equal(out, safe);
	}
}

/* Valid at each place of the fast path's eight bytes, invalid at each. */
static void valid_at_all_places(void **state)
{
	char s[24];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(s); i++) {
		memset(s, 'a', sizeof(s));
		s[i] = '\0';
		assert_false(mt_utf8_valid(s, sizeof(s)));
		s[i] = (char)0x80;
		assert_false(mt_utf8_valid(s, sizeof(s)));
		s[i] = 0x01;
		assert_true(mt_utf8_valid(s, sizeof(s)));
		s[i] = 0x7f;
		assert_true(mt_utf8_valid(s, sizeof(s)));
		if (i + 1 < sizeof(s)) {
			memcpy(s + i, "\xc3\xa4", 2);
			assert_true(mt_utf8_valid(s, sizeof(s)));
		}
	}
}

static void fix_stops_before_what_does_not_fit(void **state)
{
	static const struct {
		const char *in;
		size_t cap;
		const char *out;
	} cases[] = {
		{"abc", 1, ""},
		{"abc", 3, "ab"},
		{"abc", 4, "abc"},
		{"\xc3\xa4\xc3\xa4", 4, "\xc3\xa4"},
		{"\xff", 3, ""},
		{"\xff", 4, R},
		{"\xff\xff", 6, R},
		{"a\xe2\x82\xac", 4, "a"},
		{"\xe2\x82\xacx", 4, "\xe2\x82\xac"},
	};
	char out[16];
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++) {
		memset(out, '#', sizeof(out));
		assert_int_equal(mt_utf8_fix(out, cases[i].cap, cases[i].in, strlen(cases[i].in)),
				 strlen(cases[i].out));
		assert_string_equal(out, cases[i].out);
		assert_int_equal(out[cases[i].cap], '#');
	}
}

static void prefix(void **state)
{
	static const struct {
		const char *in;
		size_t max, want;
	} cases[] = {
		{"abc", 5, 3},
		{"abc", 3, 3},
		{"abc", 2, 2},
		{"abc", 0, 0},
		{"\xc3\xa4", 1, 0},
		{"a\xc3\xa4", 2, 1},
		{"\xc3\xa4z", 2, 2},
		{"\xe2\x82\xac", 2, 0},
		{"\xe2\x82\xac", 1, 0},
		{"\xe2\x82\xacz", 3, 3},
		{"\xf0\x9f\x98\x80", 3, 0},
		{"x\xf0\x9f\x98\x80", 4, 1},
		{"x\xf0\x9f\x98\x80z", 5, 5},
		{"\x80\x80\x80\x80\x80", 3, 3}, /* no character: any cut will do */
		{"\xe2\x82zz", 2, 2},           /* was none anyway */
	};
	size_t i;

	(void)state;
	for (i = 0; i < N_OF(cases); i++)
		if (mt_utf8_prefix(cases[i].in, strlen(cases[i].in), cases[i].max) != cases[i].want)
			fail_msg("case %zu", i);
}

static void intern_numbers(void **state)
{
	struct mt_intern *t;
	bool is_new = false;
	size_t len = 0;

	(void)state;
	assert_int_equal(mt_intern_new(100, 1000, &t), 0);
	assert_int_equal(mt_intern_get(t, "a", 1, &is_new), 1);
	assert_true(is_new);
	assert_int_equal(mt_intern_get(t, "", 0, &is_new), 2);
	assert_true(is_new);
	assert_int_equal(mt_intern_get(t, "a\0", 2, NULL), 3);
	assert_int_equal(mt_intern_get(t, "abc", 1, &is_new), 1);
	assert_false(is_new);
	assert_int_equal(mt_intern_get(t, NULL, 0, &is_new), 2);
	assert_false(is_new);
	assert_int_equal(mt_intern_count(t), 3);
	assert_string_equal(mt_intern_text(t, 1, NULL), "a");
	assert_memory_equal(mt_intern_text(t, 3, &len), "a\0", 3);
	assert_int_equal(len, 2);
	assert_null(mt_intern_text(t, 0, NULL));
	assert_null(mt_intern_text(t, 4, NULL));
	mt_intern_reset(t);
	assert_int_equal(mt_intern_count(t), 0);
	assert_null(mt_intern_text(t, 1, NULL));
	assert_int_equal(mt_intern_get(t, "z", 1, &is_new), 1);
	assert_true(is_new);
	mt_intern_free(t);
	mt_intern_free(NULL);
	assert_int_equal(mt_intern_new(0, 10, &t), -EINVAL);
	assert_int_equal(mt_intern_new(UINT32_MAX, 10, &t), -EINVAL);
}

static void intern_bounds(void **state)
{
	struct mt_intern *t;
	bool is_new = true;

	(void)state;
	assert_int_equal(mt_intern_new(2, 1000, &t), 0);
	mt_intern_get(t, "a", 1, NULL);
	mt_intern_get(t, "b", 1, NULL);
	assert_int_equal(mt_intern_get(t, "c", 1, &is_new), 0);
	assert_int_equal(mt_intern_get(t, "b", 1, &is_new), 2); /* what is in stays in */
	mt_intern_free(t);
	assert_int_equal(mt_intern_new(10, 6, &t), 0);
	assert_int_equal(mt_intern_get(t, "123456", 6, NULL), 0); /* the end counts */
	assert_int_equal(mt_intern_get(t, "123", 3, NULL), 1);
	assert_int_equal(mt_intern_get(t, "12", 2, NULL), 0);
	assert_int_equal(mt_intern_get(t, "1", 1, NULL), 2);
	mt_intern_reset(t);
	assert_int_equal(mt_intern_get(t, "12345", 5, NULL), 1); /* all of it is free again */
	mt_intern_free(t);
}

/* Growth keeps numbers and addresses; texts longer than a block too. */
static void intern_many(void **state)
{
	static char big[100000];
	const char *first, *text;
	struct mt_intern *t;
	uint32_t i, round;
	char s[16];
	int len;

	(void)state;
	assert_int_equal(mt_intern_new(100000, 10000000, &t), 0);
	for (round = 0; round < 2; round++) {
		assert_int_equal(mt_intern_get(t, "first", 5, NULL), 1);
		first = mt_intern_text(t, 1, NULL);
		memset(big, 'x', sizeof(big));
		assert_int_equal(mt_intern_get(t, big, sizeof(big), NULL), 2);
		for (i = 0; i < 40000; i++) {
			len = snprintf(s, sizeof(s), "text %u", i % 20000);
			assert_int_equal(mt_intern_get(t, s, (size_t)len, NULL), i % 20000 + 3);
			text = mt_intern_text(t, i % 20000 + 3, NULL);
			assert_string_equal(text, s);
		}
		assert_ptr_equal(mt_intern_text(t, 1, NULL), first);
		assert_string_equal(first, "first");
		assert_int_equal(mt_intern_get(t, big, sizeof(big), NULL), 2);
		mt_intern_reset(t);
	}
	mt_intern_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fix_valid_safe),
		cmocka_unit_test(valid_at_all_places),
		cmocka_unit_test(fix_stops_before_what_does_not_fit),
		cmocka_unit_test(prefix),
		cmocka_unit_test(intern_numbers),
		cmocka_unit_test(intern_bounds),
		cmocka_unit_test(intern_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
