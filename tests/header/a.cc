/* SPDX-License-Identifier: BSD-3-Clause */
#include "tmpl.h"

int in_a()
{
	thing t = {1};

	return inline_function(1) + templated<int>(2) + t.method(3) + thing::static_method() +
	       t.method_template<1>() + with_lambda(1);
}
