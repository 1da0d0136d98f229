/* SPDX-License-Identifier: BSD-3-Clause */
// Other instantiations of the same templates than in a.cc, and in another order.
#include "tmpl.h"

int in_b()
{
	thing t = {2};

	return with_lambda(2) + t.method_template<2>() + static_cast<int>(templated<float>(1.5f)) +
	       t.method(4) + t.method_template<1>() + templated<int>(3) + inline_function(2);
}
