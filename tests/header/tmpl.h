/* SPDX-License-Identifier: BSD-3-Clause */
// Callsites in a header of two files: inline function, template, method, lambda.
#ifndef MT_TEST_TMPL_H
#define MT_TEST_TMPL_H
#include "montrace.h"

inline int inline_function(int x)
{
	/* @scope info "inline function" - x:i64 */
	MONTRACE_SCOPE("inline function", MT(x));
	return x + 1;
}

template <class T> T templated(T x)
{
	/* @event info "templated" - x:i64 */
	/* @event info "templated" - x:f64 */
	MONTRACE_EVENT(MONTRACE_INFO, "templated", MT(x));
	return x;
}

struct thing {
	int v;
	int method(int x)
	{
		/* @event debug "method" - v:i64 x:i64 */
		MONTRACE_EVENT(MONTRACE_DEBUG, "method", MT(v), MT(x));
		return v + x;
	}
	static int static_method()
	{
		/* @counter info "static method" - value:i64 */
		MONTRACE_COUNTER("static method", 1);
		return 1;
	}
	template <int N> int method_template()
	{
		/* @event info "method template" - n:i64 */
		MONTRACE_EVENT(MONTRACE_INFO, "method template", MT_AS("n", N));
		return N;
	}
};

inline int with_lambda(int x)
{
	auto f = [x](int y) {
		/* @event info "lambda" - x:i64 y:i64 */
		MONTRACE_EVENT(MONTRACE_INFO, "lambda", MT(x), MT(y));
		return x + y;
	};
	auto g = [](auto y) {
		/* @event info "generic lambda" - y:i64 */
		/* @event info "generic lambda" - y:f64 */
		MONTRACE_EVENT(MONTRACE_INFO, "generic lambda", MT(y));
		return y;
	};
	return f(1) + g(2) + static_cast<int>(g(3.0));
}

int in_a();
int in_b();
#endif
