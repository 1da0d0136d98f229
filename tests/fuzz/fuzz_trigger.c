/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions for snapshots and limits of the flight recorder: any text; what is accepted is tried on events.
 */
#include <stdlib.h>
#include <string.h>

#include "flight.h"
#include "trigger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct mt_callsite cs = {.class_ = MONTRACE_CLASS_EVENT,
				      .level = MONTRACE_WARN,
				      .name = "aab",
				      .target = "t",
				      .file = "",
				      .function = "",
				      .nfields = 3,
				      .fields = {{.name = "i", .type = MONTRACE_TYPE_I64},
						 {.name = "f", .type = MONTRACE_TYPE_F64},
						 {.name = "s", .type = MONTRACE_TYPE_STR}}};

static void fired(void *ctx, const struct mt_trigger *t, const char *text, uint64_t time)
{
	(void)time;
	if (strncmp(text, mt_trigger_text(t), strlen(mt_trigger_text(t))) != 0)
		abort();
	++*(unsigned *)ctx;
}

static void use(struct mt_trigger *t, const uint8_t *data, size_t size)
{
	struct mt_value v[3] = {
		{.type = MONTRACE_TYPE_I64, .i = (int64_t)size - 20},
		{.type = MONTRACE_TYPE_F64, .f = (double)size / 7},
		{.type = MONTRACE_TYPE_STR, .cut = size & 1, .s = {(const char *)data, (uint32_t)size}}};
	struct mt_instant i = {
		.cs = &cs, .name = {(const char *)data, (uint32_t)size}, .nvalues = 3, .values = v};
	struct mt_slice sl = {.cs = &cs, .name = {"ab", 2}, .key = size + 1, .time = 5};
	struct mt_slice_end e = {.cs = &cs, .name = {"ab", 2}, .key = size + 1, .time = 5 + size * size};
	struct mt_loss l = {.count = size, .cause = ""};
	struct mt_sink *s;
	unsigned n = 0;

	if (mt_trigger_sink_new(&t, 1, 4, fired, &n, &s) < 0) {
		mt_trigger_free(t);
		return;
	}
	s->ops->begin(s, &sl);
	s->ops->instant(s, &i);
	s->ops->end(s, &e);
	if (size)
		s->ops->lost(s, &l);
	s->ops->free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), buf[MT_FLIGHT_SPEC_TEXT];
	struct mt_flight_spec spec, again;
	struct mt_trigger *t;
	const char *why = NULL;
	size_t pos = SIZE_MAX;
	int rc;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	rc = mt_trigger_parse(text, &t, &pos, &why);
	if (rc == 0)
		use(t, data, size);
	else if (!why || pos > strlen(text))
		abort();
	pos = SIZE_MAX;
	why = NULL;
	if (mt_flight_spec_parse(text, &spec, &pos, &why) == 0) {
		if (mt_flight_spec_parse(mt_flight_spec_text(&spec, buf), &again, NULL, NULL) < 0 ||
		    memcmp(&spec, &again, sizeof(spec)))
			abort();
	} else if (!why || pos > strlen(text)) {
		abort();
	}
	free(text);
	return 0;
}
