/* SPDX-License-Identifier: BSD-3-Clause */
// What callsites do in C++: templates over files, lambdas, exceptions, strings, temporaries.
#include <string>
#include <vector>

#include "montrace.h"
#include "harness.h"
#include "tmpl.h"

namespace
{
h_exp e;
int evaluated;

int eval(int x)
{
	evaluated++;
	return x;
}

void test_strings()
{
	const std::string s("a string");
	std::string zero("a\0b", 3);
	char array[] = "array";
	const char *null = nullptr;

	h_reset();
	/* @event info "strings" - s:str zero:str array:str null:str lit:str t:str d:debug n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "strings", MT(s), MT(zero), MT(array), MT(null), MT_AS("lit", "x"),
		       MT_STR("t", s), MT_DEBUG("d", std::string("debug")));
	h_begin(&e, MONTRACE_KIND_EVENT, 7, 0, 0, 0);
	h_text(&e, "a string", 8, 8);
	h_text(&e, "a\0b", 3, 3);
	h_text(&e, "array", 5, 5);
	h_text(&e, "(null)", 6, 6);
	h_text(&e, "x", 1, 1);
	h_text(&e, "a string", 8, 8);
	h_text(&e, "debug", 5, 5);
	IS(0, "strings", &e);
	h_reset();
	// what the field's expression makes lives until it was copied: long, so that it is on the heap
	/* @scope info "temporary" - t:str u:str n=1 */
	MONTRACE_SCOPE("temporary", MT_STR("t", (s + " that is longer than what is stored inside").c_str()),
		       MT_AS("u", s + " and so long that it must be allocated"));
	h_begin(&e, MONTRACE_KIND_SCOPE_BEGIN, 2, 0, 0, 0);
	h_text(&e, "a string that is longer than what is stored inside", 50, 50);
	h_text(&e, "a string and so long that it must be allocated", 46, 46);
	IS(0, "temporary", &e);
}

enum plain { ZERO, ONE };
enum class scoped : unsigned char { X = 7 };

void test_types()
{
	const bool b = true;
	unsigned char uc = 255;
	long long ll = -1;
	unsigned long ul = ~0ul;
	float f = 0.25f;
	std::vector<int> v(3);

	h_reset();
	/* @event warn "types" - b:bool uc:u64 ll:i64 ul:u64 f:f64 c:i64 one:i64 n:u64 x:u64 y:i64 n=1 */
	MONTRACE_EVENT(MONTRACE_WARN, "types", MT(b), MT(uc), MT(ll), MT(ul), MT(f), MT_AS("c", 'c'),
		       MT_AS("one", ONE), MT_AS("n", v.size()), MT_U64("x", scoped::X), MT_I64("y", -2.0));
	h_begin(&e, MONTRACE_KIND_EVENT, 10, 0, 0, 0);
	h_num(&e, 1);
	h_num(&e, 255);
	h_num(&e, UINT64_MAX);
	h_num(&e, UINT64_MAX);
	h_f64(&e, 0.25);
	h_num(&e, 'c');
	h_num(&e, 1);
	h_num(&e, 3);
	h_num(&e, 7);
	h_num(&e, static_cast<uint64_t>(-2));
	IS(0, "types", &e);
}

void throws(int x)
{
	/* @scope info "throws" - x:i64 n=1 */
	MONTRACE_SCOPE("throws", MT(x));
	if (x > 0)
		throw x;
	/* @event info "not thrown" - n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "not thrown");
}

int bad_value(int x)
{
	if (x)
		throw x;
	return x;
}

void test_exceptions()
{
	int caught = 0;

	h_reset();
	try {
		/* @scope info "tries" - n=1 */
		MONTRACE_SCOPE("tries");
		throws(0);
		throws(5);
	} catch (int x) {
		caught = x;
	}
	static const char *const names[] = {"tries",  "throws", "not thrown", "throws",
					    "throws", "throws", "tries"};
	CHECK(caught == 5 && h_nhits() == 7);
	for (size_t i = 0; i < 7; i++)
		CHECK(!strcmp(h_hit_at(i)->site->name, names[i]));
	h_begin(&e, MONTRACE_KIND_SCOPE_END, 0, 0, 0, 0);
	IS(5, "throws", &e);
	IS(6, "tries", &e);

	h_reset(); // a field's expression throws: no record, no scope
	try {
		/* @scope info "bad" - x:i64 n=1 */
		MONTRACE_SCOPE("bad", MT_I64("x", bad_value(1)));
	} catch (int) {
		caught = 1;
	}
	CHECK(caught == 1 && h_nhits() == 0);
}

template <class... T> int variadic(T... x)
{
	/* @event info "variadic" - n:u64 n=2 */
	MONTRACE_EVENT(MONTRACE_INFO, "variadic", MT_AS("n", sizeof...(x)));
	return 0;
}

struct raii {
	montrace_span s;
	raii()
	{
		/* @span info "raii" - n=1 */
		MONTRACE_SPAN(&s, MONTRACE_INFO, "raii");
		montrace_enter(&s);
	}
	~raii()
	{
		montrace_exit(&s);
		montrace_close(&s);
	}
};

size_t instances(const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < h_nsites(); i++)
		n += !strcmp(h_site_at(i)->name, name);
	return n;
}

void test_files()
{
	h_arm(nullptr, false);
	h_reset();
	CHECK(in_a() == 17 && in_b() == 24);
	CHECK(h_nhits() == 0);
	h_arm(nullptr, true);
	CHECK(in_a() == 17 && in_b() == 24);
	CHECK(h_nhits() == 9 + 10);
	CHECK(instances("templated") >= 2 && instances("method template") >= 2);
	CHECK(instances("static method") >= 1);
	size_t ints = 0, floats = 0;
	for (size_t i = 0; i < h_nhits(); i++)
		if (!strcmp(h_hit_at(i)->site->name, "templated"))
			(h_hit_at(i)->site->types[0] == MONTRACE_TYPE_I64 ? ints : floats)++;
	CHECK(ints == 2 && floats == 1);
}

void test_more()
{
	h_reset();
	variadic(1, 2);
	variadic("x");
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_num(&e, 2);
	IS(0, "variadic", &e);
	h_reset();
	{
		raii r;
	}
	CHECK(h_nhits() == 4);
	h_reset();
	h_arm(nullptr, false);
	/* @event info "unarmed" - x:i64 y:i64 s:str n=1 */
	MONTRACE_EVENT(MONTRACE_INFO, "unarmed", MT_I64("x", eval(1)), MT_AS("y", eval(2)),
		       MT_STR("s", std::string("x") + std::to_string(eval(3))));
	CHECK(evaluated == 0);
	h_arm(nullptr, true);
	/* @event-message error "log %s" - message:str n=1 */
	MONTRACE_LOG(MONTRACE_ERROR, "log %s", std::string("text").c_str());
	h_begin(&e, MONTRACE_KIND_EVENT, 1, 0, 0, 0);
	h_text(&e, "log text", 8, 8);
	IS(0, "log %s", &e);
}
} // namespace

int test_main(void)
{
	CHECK(h_load() > 0);
	h_arm(nullptr, true);
	test_strings();
	test_types();
	test_exceptions();
	test_files();
	test_more();
	return h_report("t_cc");
}
