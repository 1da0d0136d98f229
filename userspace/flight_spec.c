/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a flight recorder as text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "flight.h"

enum { T_TIME, T_EVENTS, T_BYTES, T_COUNT };

static const struct {
	const char *suffix;
	int what;
	uint64_t unit;
} units[] = {
	{"", T_EVENTS, 1},          {"ms", T_TIME, 1000000},      {"s", T_TIME, 1000000000},
	{"m", T_TIME, 60000000000}, {"h", T_TIME, 3600000000000}, {"K", T_BYTES, 1ull << 10},
	{"M", T_BYTES, 1ull << 20}, {"G", T_BYTES, 1ull << 30},
};

static const struct {
	uint64_t min, max;
	const char *low, *high;
} bounds[T_COUNT] = {
	[T_TIME] = {1000000, MT_FLIGHT_TIME_MAX, "the time must be at least 1ms",
		    "the time is more than a year"},
	[T_EVENTS] = {1, MT_FLIGHT_EVENTS_MAX, "there must be at least one event", "too many events"},
	[T_BYTES] = {MT_FLIGHT_BYTES_MIN, MT_FLIGHT_BYTES_MAX, "the memory must be at least 64K",
		     "the memory is more than 64G"},
};

/* One limit in text[0..len). NULL, or why not. */
static const char *parse_one(const char *text, size_t len, uint64_t v[T_COUNT])
{
	size_t i = 0, u;
	uint64_t n = 0;
	int what;

	for (; i < len && text[i] >= '0' && text[i] <= '9'; i++) {
		if (n > (UINT64_MAX - 9) / 10)
			return "number too large";
		n = n * 10 + (uint64_t)(text[i] - '0');
	}
	if (i == 0)
		return len ? "a number is missing" : "a limit is missing";
	for (u = 0; u < sizeof(units) / sizeof(units[0]); u++)
		if (strlen(units[u].suffix) == len - i && memcmp(units[u].suffix, text + i, len - i) == 0)
			break;
	if (u == sizeof(units) / sizeof(units[0]))
		return "unknown unit: time is ms s m h, memory is K M G, events have none";
	what = units[u].what;
	if (v[what])
		return what == T_TIME    ? "a second limit of time"
		       : what == T_BYTES ? "a second limit of memory"
					 : "a second limit of events";
	if (n < (bounds[what].min + units[u].unit - 1) / units[u].unit)
		return bounds[what].low;
	if (n > bounds[what].max / units[u].unit)
		return bounds[what].high;
	v[what] = n * units[u].unit;
	return NULL;
}

int mt_flight_spec_parse(const char *text, struct mt_flight_spec *ret_spec, size_t *ret_pos,
			 const char **ret_why)
{
	uint64_t v[T_COUNT] = {0};
	const char *p = text, *why;

	while (text && *text) {
		size_t len = strcspn(p, ",");

		why = parse_one(p, len, v);
		if (why) {
			if (ret_pos)
				*ret_pos = (size_t)(p - text);
			if (ret_why)
				*ret_why = why;
			return -EINVAL;
		}
		if (!p[len])
			break;
		p += len + 1;
	}
	ret_spec->time_ns = v[T_TIME] ? v[T_TIME] : MT_FLIGHT_TIME_DEFAULT;
	ret_spec->events = v[T_EVENTS] ? v[T_EVENTS] : MT_FLIGHT_EVENTS_DEFAULT;
	ret_spec->bytes = v[T_BYTES] ? v[T_BYTES] : MT_FLIGHT_BYTES_DEFAULT;
	return 0;
}

/* The largest unit of a kind that divides n. */
static void split(uint64_t n, int what, uint64_t *ret_n, const char **ret_suffix)
{
	size_t u;

	*ret_n = n;
	*ret_suffix = "";
	for (u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		if (units[u].what != what || n % units[u].unit)
			continue;
		*ret_n = n / units[u].unit;
		*ret_suffix = units[u].suffix;
	}
}

char *mt_flight_spec_text(const struct mt_flight_spec *spec, char *buf)
{
	const char *ts, *bs;
	uint64_t t, b;

	split(spec->time_ns, T_TIME, &t, &ts);
	split(spec->bytes, T_BYTES, &b, &bs);
	snprintf(buf, MT_FLIGHT_SPEC_TEXT, "%" PRIu64 "%s,%" PRIu64 ",%" PRIu64 "%s", t, ts, spec->events, b,
		 bs);
	return buf;
}
