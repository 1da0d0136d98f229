// SPDX-License-Identifier: BSD-3-Clause
// The same idea as service.c in C++: templates, lambdas, methods, std::string fields, exceptions through
// scopes.
//   service_cpp [--threads N] [--count N] [--wait] [--hold]
// --count is the number of rounds a thread makes. At the end the truth, one `key=value` line per thing.
#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define MONTRACE_TARGET "service::cpp"
#include "montrace.h"
#include "example.h"

namespace
{
std::mutex lock;
std::map<std::string, long> counts;
std::atomic<long> slices{0}, counters{0};

void count(const char *what)
{
	std::lock_guard<std::mutex> held(lock);
	counts[what]++;
}

void count_scope(const char *what)
{
	slices++;
	count(what);
}

template <class T> T twice(T x)
{
	count_scope("span:twice");
	MONTRACE_SCOPE("twice", MT(x));
	return x + x;
}

class account
{
	std::string owner;
	double balance;

      public:
	account(std::string o, double b) : owner(std::move(o)), balance(b)
	{
	}

	void withdraw(double amount)
	{
		count_scope("span:withdraw");
		MONTRACE_SCOPE("withdraw", MT(owner), MT(amount), MT_STR("note", "for " + owner));
		if (amount > balance)
			throw std::runtime_error("not enough");
		balance -= amount;
		counters++;
		MONTRACE_COUNTER("balance", balance);
	}
};

// A span with the life of an object; it can be moved to another thread.
class request
{
	montrace_span span;

      public:
	explicit request(long number)
	{
		count("span:request");
		MONTRACE_SPAN(&span, MONTRACE_INFO, "request", MT(number));
	}
	template <class F> void run(F f)
	{
		slices++;
		montrace_enter(&span);
		f();
		montrace_exit(&span);
	}
	~request()
	{
		montrace_close(&span);
	}
	request(const request &) = delete;
	request &operator=(const request &) = delete;
};

void round(long n)
{
	request r(n);

	r.run([n] {
		account a("owner " + std::to_string(n), 10);

		count_scope("span:lambda");
		MONTRACE_SCOPE("lambda", MT(n));
		try {
			a.withdraw(3);
			a.withdraw(n % 2 ? 5 : 50);
		} catch (const std::exception &e) {
			count("event:caught");
			MONTRACE_EVENT(MONTRACE_WARN, "caught", MT_STR("what", e.what()));
		}
	});
	std::thread([&r] { r.run([] { twice(1); }); }).join();
	r.run([] {
		twice(1.5f);
		twice(2u);
		count("event:log %s");
		MONTRACE_LOG(MONTRACE_DEBUG, "log %s", std::string("text").c_str());
	});
}
} // namespace

int main(int argc, char **argv)
{
	struct example o = {};
	std::vector<std::thread> threads;
	long spans = 0, events = 0;

	o.threads = 2;
	o.count = 10;
	example_options(&o, argc, argv, "service_cpp [--threads N] [--count N] [--wait] [--hold]\n");
	example_start(&o);
	montrace_process_name("service in C++");
	for (long t = 0; t < o.threads; t++)
		threads.emplace_back([t, &o] {
			montrace_thread_name(("C++ worker " + std::to_string(t)).c_str());
			for (long i = 0; i < o.count; i++)
				round(i);
		});
	for (auto &t : threads)
		t.join();
	for (auto &c : counts)
		(c.first[0] == 's' ? spans : events) += c.second;
	printf("spans=%ld\nevents=%ld\ncounters=%ld\nslices=%ld\nthreads=%ld\n", spans, events,
	       counters.load(), slices.load(), 1 + o.threads + o.threads * o.count);
	for (auto &c : counts)
		printf("%s=%ld\n", c.first.c_str(), c.second);
	example_end(&o);
	return 0;
}
