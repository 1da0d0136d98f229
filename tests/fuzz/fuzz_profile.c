/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a profile. */
#include "fuzz_usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of("", data, size);
	struct mt_profile_err err;
	struct mt_usdt_profile *p;
	int r = mt_usdt_profile_parse(text, size, "/x/p.profile", &p, &err);

	MUST(!r || (r == -EINVAL && err.text[0]));
	if (!r) {
		lay(&p->specs);
		mt_usdt_profile_free(p);
	}
	free(text);
	return 0;
}
