/* SPDX-License-Identifier: BSD-3-Clause */
/* Every macro once. With -DMONTRACE_DISABLE nothing of it may remain; C and C++. */
#include "montrace.h"

int calls;
static inline int f(int x)
{
	calls++;
	return x;
}

int main(void)
{
	struct montrace_span s, t = {0, MT__NULL};
	const char *p = "p";
	int used_in_fields_only = f(0) + 1;
	double d = 2;

	calls = 0;
	MONTRACE_SCOPE("scope", MT(used_in_fields_only), MT_I64("f", f(1)));
	MONTRACE_SCOPE_AT(MONTRACE_DEBUG, "scope at");
	MONTRACE_USER_SCOPE("user scope", MT_U64("u", 1));
	MONTRACE_SPAN(&s, MONTRACE_INFO, "span", MT_F64("d", d));
	MONTRACE_SPAN_IN(&t, &s, MONTRACE_INFO, "span in", MT_BOOL("b", p != MT__NULL));
	MONTRACE_SPAN_ROOT(&t, MONTRACE_INFO, "span root", MT_STR("p", p), MT_DEBUG("d", p));
	MONTRACE_USER_SPAN(&t, MONTRACE_INFO, "user span", MT_STRN("p", p, 1), MT_DEBUGN("d", p, 1));
	MONTRACE_SPAN_RECORD(&s, MT_AS("f", f(2)));
	MONTRACE_RECORDING(&t, "subject", 10);
	montrace_enter(&s);
	MONTRACE_EVENT(MONTRACE_INFO, "event", MT_I64("f", f(3)));
	MONTRACE_EVENT_IN(&s, MONTRACE_INFO, "event in");
	MONTRACE_EVENT_ROOT(MONTRACE_INFO, "event root");
	MONTRACE_USER_EVENT(MONTRACE_INFO, "user event");
	MONTRACE_LOG(MONTRACE_WARN, "log %d", f(4));
	MONTRACE_USER_LOG(MONTRACE_WARN, "user log");
	MONTRACE_COUNTER("counter", f(5));
	montrace_exit(&s);
	montrace_close(&s);
	montrace_thread_name("t");
	montrace_process_name("p");
	montrace_execution_id("e");
	return calls;
}
