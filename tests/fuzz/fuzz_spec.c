/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a spec, as behind --usdt. */
#include "fuzz_usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of("", data, size);

	try_spec(text);
	free(text);
	return 0;
}
