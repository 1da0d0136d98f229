/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles that are shipped: each can be read, is used only where it belongs, and has a page that the index names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt_profile.h"

static char *read_text(const char *path)
{
	FILE *f = fopen(path, "re");
	char *text = NULL;
	size_t n = 0;

	if (!f)
		return NULL;
	if (getdelim(&text, &n, 0, f) < 0) {
		free(text);
		text = NULL;
	}
	fclose(f);
	return text;
}

/* What is in directory dir (of the source tree) with that ending: names without it, sorted. */
static unsigned names_in(const char *dir, const char *suffix, char v[][64], unsigned cap)
{
	struct dirent **found;
	char path[4096];
	unsigned count = 0;
	int n;

	snprintf(path, sizeof(path), "%s/%s", MT_SOURCE_DIR, dir);
	n = scandir(path, &found, NULL, alphasort);
	assert_true(n >= 0);
	for (int i = 0; i < n; i++) {
		size_t len = strlen(found[i]->d_name), s = strlen(suffix);

		if (len > s && !strcmp(found[i]->d_name + len - s, suffix) && len - s < 64) {
			assert_true(count < cap);
			snprintf(v[count++], 64, "%.*s", (int)(len - s), found[i]->d_name);
		}
		free(found[i]);
	}
	free(found);
	return count;
}

static struct mt_usdt_profile *load(const char *name)
{
	const char *dir = MT_SOURCE_DIR "/profiles";
	struct mt_usdt_profile *p;
	struct mt_profile_err err;

	if (mt_usdt_profile_load(name, &dir, 1, &p, &err))
		fail_msg("%s", err.text);
	assert_string_equal(p->name, name);
	return p;
}

static void readable(void **state)
{
	char v[64][64];
	unsigned n = names_in("profiles", ".profile", v, 64);

	(void)state;
	assert_true(n >= 2);
	for (unsigned i = 0; i < n; i++)
		mt_usdt_profile_free(load(v[i]));
}

/* No condition of a profile that is used by itself holds for everything. */
static void conditions(void **state)
{
	char v[64][64];
	unsigned n = names_in("profiles", ".profile", v, 64);

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		struct mt_usdt_profile *p = load(v[i]);

		for (uint32_t k = 0; k < p->nwhens; k++)
			for (unsigned j = 0; j < p->whens[k]->n; j++)
				assert_null(strpbrk(p->whens[k]->v[j].provider, "*?"));
		mt_usdt_profile_free(p);
	}
}

/* NAME.md; of variants of a profile, NAME-VARIANT, that of NAME. */
static size_t page_name(const char *profile, char v[][64], unsigned n)
{
	size_t len = strcspn(profile, "-");

	for (unsigned i = 0; i < n; i++)
		if (strlen(v[i]) == len && !strncmp(v[i], profile, len))
			return len;
	return strlen(profile);
}

/* A page for each, a row for each in the index that says whether it is used by itself, and no page of nothing. */
static void pages(void **state)
{
	char v[64][64], path[4096], link[192], *index, *page, *row;
	unsigned n = names_in("profiles", ".profile", v, 64), own = 0;
	struct mt_usdt_profile *p;

	(void)state;
	index = read_text(MT_SOURCE_DIR "/docs/usdt.md");
	assert_non_null(index);
	for (unsigned i = 0; i < n; i++) {
		int len = (int)page_name(v[i], v, n);

		own += len == (int)strlen(v[i]);
		snprintf(path, sizeof(path), "%s/docs/profiles/%.*s.md", MT_SOURCE_DIR, len, v[i]);
		page = read_text(path);
		if (!page)
			fail_msg("no page: %s", path);
		free(page);
		snprintf(link, sizeof(link), "\n| [%.63s](profiles/%.*s.md) |", v[i], len, v[i]);
		row = strstr(index, link);
		if (!row)
			fail_msg("docs/usdt.md has no row %s", link + 1);
		p = load(v[i]);
		row = strndup(row + 1, strcspn(row + 1, "\n"));
		assert_non_null(row);
		if (!strstr(row, p->automatic ? "| yes |" : "| no |"))
			fail_msg("docs/usdt.md is wrong about who is used by itself: %s", row);
		free(row);
		mt_usdt_profile_free(p);
	}
	free(index);
	assert_int_equal(names_in("docs/profiles", ".md", v, 64), own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readable),
		cmocka_unit_test(conditions),
		cmocka_unit_test(pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
