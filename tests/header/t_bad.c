/* SPDX-License-Identifier: BSD-3-Clause */
/* What must not compile: -DCASE=1 and on; CASE 0 must. C and C++. */
#include "montrace.h"
#define X MT_I64("x", 1)

int main(int argc, char **argv)
{
	const char *name = argv[0];
	struct montrace_span s;

	(void)name;
	(void)argc;
	MONTRACE_SPAN(&s, MONTRACE_INFO, "s");
#if CASE == 0
	MONTRACE_EVENT(MONTRACE_INFO, "16", X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X);
#elif CASE == 1
	MONTRACE_EVENT(MONTRACE_INFO, "17", X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X);
#elif CASE == 2
	MONTRACE_EVENT(MONTRACE_INFO, "20", X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X);
#elif CASE == 3
	MONTRACE_SCOPE("21", X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X);
#elif CASE == 4
	MONTRACE_EVENT(argc, "a level known at run time only");
#elif CASE == 5
	MONTRACE_EVENT(0, "no level");
#elif CASE == 6
	MONTRACE_SPAN(&s, 6, "no level");
#elif CASE == 7
	MONTRACE_EVENT(MONTRACE_INFO, name);
#elif CASE == 8
	MONTRACE_EVENT(MONTRACE_INFO, "e", MT_I64(name, 1));
#elif CASE == 9
	MONTRACE_COUNTER("text is no number", "x");
#elif CASE == 10
	MONTRACE_EVENT(MONTRACE_INFO, "e", MT(argv));
#elif CASE == 11
	MONTRACE_EVENT(MONTRACE_INFO, "e", MT_AS("p", (void *)name));
#elif CASE == 12
	MONTRACE_EVENT(MONTRACE_INFO, "e", MT(s));
#elif CASE == 13
	MONTRACE_LOG(MONTRACE_INFO, name);
#elif CASE == 14
	MONTRACE_LOG(MONTRACE_INFO, "%s", argc); /* by -Wformat */
#elif CASE == 15
	MONTRACE_SCOPE_AT(argc, "a level known at run time only");
#else
#error no such case
#endif
	return 0;
}
