/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that is loaded, unloaded and loaded again (C, and C++ with -x c++). */
#include "montrace.h"

#ifdef __cplusplus
template <class T> static inline void tell(T x)
{
	MONTRACE_EVENT(MONTRACE_INFO, "lib template", MT(x));
}
inline void inl(int x)
{
	MONTRACE_SCOPE("lib inline", MT(x));
}
extern "C"
#endif
	void
	lib_run(uint64_t *ids, int n);

void lib_run(uint64_t *ids, int n)
{
	int i;

	montrace_thread_name("of the library");
	for (i = 0; i < n; i++) {
		struct montrace_span s;

		MONTRACE_SPAN(&s, MONTRACE_INFO, "lib span", MT(i));
		ids[i] = s.id;
		montrace_close(&s);
	}
#ifdef __cplusplus
	tell(1);
	tell(1.0);
	inl(1);
#endif
}
