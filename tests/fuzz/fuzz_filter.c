/* SPDX-License-Identifier: BSD-3-Clause */
/* First byte: mode, compat, level. Then a target up to a newline, then directives. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x)                  \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

/* What must hold between a verdict and its reason. */
static void check(const struct mt_filter *f, const struct mt_filter_opts *o, const struct mt_callsite *cs)
{
	enum mt_verdict_rule rule;
	const char *why;
	bool pass = mt_filter_verdict(f, cs, &rule, &why);

	MUST(pass == (rule == MT_RULE_PASS));
	MUST((rule == MT_RULE_MODE_OFF) == (o->mode == MT_MODE_OFF));
	MUST((rule == MT_RULE_MODE_USER) == (o->mode == MT_MODE_USER && !mt_filter_user_facing(f, cs)));
	MUST(rule != MT_RULE_DIRECTIVE || *why);
	/* the reason is what the user wrote, or built in */
	MUST(!*why || strstr(o->directives, why) || !strcmp(why, "tokio=off") || !strcmp(why, "runtime=off"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mt_filter_opts o = {0};
	struct mt_callsite cs = {.class_ = MONTRACE_CLASS_EVENT, .name = "", .file = ""};
	struct mt_filter *f = NULL;
	enum mt_mode mode;
	char *text, *rest;
	const char *why = NULL;
	size_t pos = SIZE_MAX;
	int r;

	if (!size)
		return 0;
	text = malloc(size);
	MUST(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	rest = strchr(text, '\n');
	if (rest)
		*rest++ = 0;
	o.mode = (enum mt_mode)(data[0] % 3);
	o.compat_prefix = data[0] & 0x80;
	o.directives = rest ? rest : "";
	cs.target = text;
	cs.level = (uint8_t)(1 + (data[0] >> 3) % 5);
	mt_mode_parse(text, &mode);
	r = mt_filter_new(&o, &f, &pos, &why);
	if (r) {
		MUST(r == -EINVAL && why && pos <= strlen(o.directives));
	} else {
		check(f, &o, &cs);
		mt_filter_free(f);
	}
	free(text);
	return 0;
}
