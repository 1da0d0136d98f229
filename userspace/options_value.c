/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of options: text to numbers, with units. Nothing of the tables of options.c. */
#include "options_int.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mt_options_bad(struct mt_options_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A decimal number and what follows it. */
static int number(const char *s, uint64_t *ret, const char **ret_rest)
{
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &end, 10);
	*ret_rest = end;
	return errno ? -EINVAL : 0;
}

static int unit(const char *rest, const char *const *names, const uint64_t *factors, uint64_t *n)
{
	unsigned i;

	for (i = 0; names[i]; i++) {
		if (strcmp(rest, names[i]))
			continue;
		return __builtin_mul_overflow(*n, factors[i], n) ? -EINVAL : 0;
	}
	return -EINVAL;
}

int mt_options_time(const char *s, uint64_t *ret_ms)
{
	static const char *const names[] = {"", "s", "ms", "m", "h", NULL};
	static const uint64_t factors[] = {1000, 1000, 1, 60000, 3600000};
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || unit(rest, names, factors, &n) || !n || n > UINT64_MAX / 2000000)
		return -EINVAL;
	*ret_ms = n;
	return 0;
}

int mt_options_time_or_none(const char *s, uint64_t *ret_ms)
{
	static const char *const none[] = {"0", "0s", "0ms", "0m", "0h"};
	unsigned i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		if (!strcmp(s, none[i])) {
			*ret_ms = 0;
			return 0;
		}
	}
	return mt_options_time(s, ret_ms);
}

int mt_options_count(const char *s, uint32_t max, uint32_t *ret)
{
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || *rest || n > max)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

int mt_options_size(const char *s, uint64_t *ret)
{
	static const char *const names[] = {"", "K", "k", "M", "m", "G", "g", NULL};
	static const uint64_t factors[] = {1, 1024, 1024, 1 << 20, 1 << 20, 1 << 30, 1 << 30};
	const char *rest;
	uint64_t n;

	if (number(s, &n, &rest) || unit(rest, names, factors, &n) || !n)
		return -EINVAL;
	*ret = n;
	return 0;
}

/* A size (a unit of K, M, G) or a time (a unit of s, ms, m, h): the unit tells which. */
int mt_options_rotation(struct mt_options *o, const char *s)
{
	size_t n = strlen(s);

	if (n > 1 && strchr("KMGk", s[n - 1]))
		return mt_options_size(s, &o->rotate_bytes) || o->rotate_bytes < 65536 ? -EINVAL : 0;
	if (n > 1 && strchr("smh", s[n - 1]))
		return mt_options_time(s, &o->rotate_ms);
	return -EINVAL;
}

int mt_options_list(const char **list, uint32_t *n, const char *arg, const char *option,
		    struct mt_options_err *err)
{
	if (*n == MT_MAX_LIST)
		return mt_options_bad(err, "%s: more than %d of them", option, MT_MAX_LIST);
	if (!*arg)
		return mt_options_bad(err, "%s: needs a value", option);
	list[(*n)++] = arg;
	return 0;
}

int mt_options_pids(struct mt_options *o, const char *list, struct mt_options_err *err)
{
	const char *s = list;
	uint64_t n;

	for (;;) {
		if (number(s, &n, &s) || !n || n > INT_MAX || (*s && *s != ','))
			return mt_options_bad(err, "-p %s: not a process id (numbers joined by commas)",
					      list);
		if (o->npids == MT_MAX_PIDS)
			return mt_options_bad(err, "-p: more than %d processes", MT_MAX_PIDS);
		o->pids[o->npids++] = (uint32_t)n;
		if (!*s)
			return 0;
		s++;
	}
}

int mt_options_naming(const char *s, enum mt_naming *ret)
{
	static const char *const names[] = {
		[MT_NAMING_USER] = "user",
		[MT_NAMING_DEV] = "dev",
		[MT_NAMING_UPSTREAM] = "upstream",
		[MT_NAMING_PLAIN] = "plain",
	};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(s, names[i])) {
			*ret = (enum mt_naming)i;
			return 0;
		}
	}
	return -EINVAL;
}

int mt_options_nop5(const char *s, enum mt_nop5 *ret)
{
	static const char *const names[] = {"auto", "never", "always"};
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(s, names[i])) {
			*ret = (enum mt_nop5)i;
			return 0;
		}
	}
	return -EINVAL;
}
