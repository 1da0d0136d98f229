/* SPDX-License-Identifier: BSD-3-Clause */
/* summary stays short: messages by their place, and a bound on the rows. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_summary.h"
#include "trace_enc.h"

static char *summary(const struct enc *e, unsigned flags)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	int fd = memfd_create("trace", 0);

	assert_non_null(out);
	assert_int_equal(write(fd, e->b, e->n), e->n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(mt_summary(out, fd, "t", flags), 0);
	fclose(out);
	close(fd);
	return text;
}

/* Process 100, thread 101, sequence 2 with category 1 = "io", location 1 = "f\x1b.c":7, 2 = "g.c":8. */
static struct enc *head(void)
{
	struct enc *e = calloc(1, sizeof(*e));
	size_t p, m, k;

	assert_non_null(e);
	e_snapshot(e, 1000, 1000, 1700000000000000000);
	e_process(e, 7, 100, "prog");
	e_thread(e, 8, 7, 100, 101, "main");
	p = e_packet(e, 2, 1);
	m = e_open(e, 12);
	e_named(e, 1, 1, "io");
	for (unsigned i = 1; i <= 2; i++) {
		k = e_open(e, 4);
		e_u(e, 1, i);
		e_s(e, 2, i == 1 ? "f\x1b.c" : "g.c");
		e_u(e, 4, 6 + i);
		e_close(e, k);
	}
	e_close(e, m);
	e_close(e, p);
	return e;
}

static void event(struct enc *e, unsigned type, const char *name, unsigned place)
{
	size_t p = e_packet(e, 2, 2), m;

	e_u(e, 8, 1000);
	m = e_open(e, 11);
	e_u(e, 9, type);
	e_u(e, 11, 8);
	e_u(e, 3, 1);
	e_s(e, 23, name);
	if (place)
		e_u(e, 34, place);
	e_close(e, m);
	e_close(e, p);
}

/* n different messages from `place`, each `times` times. */
static void messages(struct enc *e, unsigned n, unsigned times, unsigned place)
{
	char name[32];

	for (unsigned t = 0; t < times; t++) {
		for (unsigned i = 0; i < n; i++) {
			snprintf(name, sizeof(name), "message %u", i);
			event(e, 3, name, place);
		}
	}
}

static unsigned lines(const char *text, const char *with)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, with)); p++)
		n++;
	return n;
}

static void messages_are_one_row(void **st)
{
	struct enc *e = head();
	char *text, *json;

	(void)st;
	messages(e, 17, 3, 1);
	messages(e, 16, 1, 2);
	event(e, 3, "no place", 0);
	event(e, 3, "no place", 0);
	text = summary(e, 0);
	assert_non_null(
		strstr(text, "\n        51  f\xef\xbf\xbd.c:7, 17 different texts, category \"io\"\n"));
	assert_int_equal(lines(text, "  message "), 16); /* 16 names are not too many */
	assert_non_null(strstr(text, "\n         1  message 15\n"));
	assert_null(strstr(text, "message 16"));
	assert_null(strstr(text, "g.c"));
	assert_non_null(strstr(text, "\n         2  no place\n"));
	assert_non_null(strstr(text, "69 instants"));
	json = summary(e, MT_SUMMARY_JSON);
	assert_non_null(strstr(json, "{\"type\":\"instant\",\"name\":null,\"file\":\"f\\u001b.c\",\"line\":7,"
				     "\"cat\":\"io\",\"texts\":17,\"count\":51}\n"));
	assert_int_equal(lines(json, "\"name\":\"message "), 16);
	assert_non_null(strstr(json, "{\"type\":\"instant\",\"name\":\"no place\",\"count\":2}\n"));
	free(text);
	free(json);
	free(e);
}

/* Without a location names are all there is: however many, they stay rows. */
static void names_without_a_place(void **st)
{
	struct enc *e = head();
	char *text;

	(void)st;
	messages(e, 30, 1, 0);
	text = summary(e, 0);
	assert_int_equal(lines(text, "  message "), 30);
	assert_null(strstr(text, "different texts"));
	free(text);
	free(e);
}

static void rows_are_bounded(void **st)
{
	struct enc *e = head();
	char name[32], *text, *json;

	(void)st;
	messages(e, 203, 1, 0);
	for (unsigned i = 0; i < 201; i++) {
		snprintf(name, sizeof(name), "span %u", i);
		event(e, 1, name, 0);
		event(e, 2, name, 0);
	}
	for (unsigned i = 0; i < 202; i++) {
		size_t p, m;

		e_thread(e, 1000 + i, 7, 100, (int)(1000 + i), "t");
		e_counter(e, 2000 + i, 7, "c", 0, 0);
		e_event(e, 1000, 1000 + i, 3, "message 0");
		if (i == 201)
			continue;
		p = e_packet(e, 2, 2);
		e_u(e, 8, 1000);
		m = e_open(e, 11);
		e_u(e, 9, 4);
		e_u(e, 11, 2000 + i);
		e_u(e, 30, 1);
		e_close(e, m);
		e_close(e, p);
	}
	text = summary(e, 0);
	assert_non_null(strstr(text, "\n       ...  3 more instants, not shown (--all-rows)\n"));
	assert_non_null(strstr(text, "\n       ...  1 more spans, not shown (--all-rows)\n"));
	assert_non_null(strstr(text, "\n       ...  3 more threads, not shown (--all-rows)\n"));
	assert_non_null(strstr(text, "\n       ...  1 more counters, not shown (--all-rows)\n"));
	assert_int_equal(lines(text, "  message "), 200);
	assert_int_equal(lines(text, "  span "), 200);
	assert_int_equal(lines(text, "\"c\" [bytes]"), 200);
	free(text);
	text = summary(e, MT_SUMMARY_ALL);
	assert_null(strstr(text, "not shown"));
	assert_int_equal(lines(text, "  message "), 203);
	free(text);
	json = summary(e, MT_SUMMARY_JSON);
	assert_int_equal(lines(json, "{\"type\":\"instant\""), 200);
	assert_int_equal(lines(json, "{\"type\":\"span\""), 200);
	assert_int_equal(lines(json, "{\"type\":\"thread\""), 200);
	assert_int_equal(lines(json, "{\"type\":\"counter\""), 200);
	assert_non_null(strstr(json, "{\"type\":\"not_shown\",\"of\":\"instant\",\"rows\":3}\n"));
	assert_non_null(strstr(json, "{\"type\":\"not_shown\",\"of\":\"span\",\"rows\":1}\n"));
	assert_non_null(strstr(json, "{\"type\":\"not_shown\",\"of\":\"thread\",\"rows\":3}\n"));
	assert_non_null(strstr(json, "{\"type\":\"not_shown\",\"of\":\"counter\",\"rows\":1}\n"));
	free(json);
	json = summary(e, MT_SUMMARY_JSON | MT_SUMMARY_ALL);
	assert_null(strstr(json, "not_shown"));
	assert_int_equal(lines(json, "{\"type\":\"thread\""), 203);
	free(json);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_one_row),
		cmocka_unit_test(names_without_a_place),
		cmocka_unit_test(rows_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
