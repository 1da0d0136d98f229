/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that nobody calls, with -Wl,--gc-sections. */
#include "montrace.h"

int dead_function(int x)
{
	/* @event info "dead" - x:i64 dead */
	MONTRACE_EVENT(MONTRACE_INFO, "dead", MT(x));
	return x;
}

#ifdef __cplusplus
template <class T> int dead_template(T x)
{
	/* @event info "dead template" - x:i64 dead */
	MONTRACE_EVENT(MONTRACE_INFO, "dead template", MT(x));
	return x;
}
template int dead_template<int>(int);
#endif

int main(int argc, char **argv)
{
	/* @scope info "alive" - argc:i64 */
	MONTRACE_SCOPE("alive", MT(argc));
	(void)argv;
	return 0;
}
