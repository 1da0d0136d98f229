/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is what follows `if`, of an event, a span and a counter. */
#include "fuzz_usdt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const heads[] = {"c:a if ", "c:*__start..*__done key=arg0 x=arg1:str if ",
					    "c:a counter=arg4 if ", "p:x_entry..x_return if "};

	for (unsigned i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		char *text = text_of(heads[i], data, size);

		try_spec(text);
		free(text);
	}
	return 0;
}
