/* SPDX-License-Identifier: BSD-3-Clause */
/* Throws, catches and throws again on four threads, in numbers that it says. */
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <typeinfo>
#include <unistd.h>
#include <vector>

struct Own {
	int v;
};

static void work(int n, long c[3])
{
	for (int i = 0; i < n; i++) {
		try {
			try {
				c[0]++;
				throw Own{i};
			} catch (Own &) {
				c[1]++;
				if (i % 3)
					continue;
				c[2]++;
				throw;
			}
		} catch (Own &) {
			c[1]++;
		}
		try {
			c[0]++;
			throw std::runtime_error("x");
		} catch (std::exception &) { /* of another type: the event has that of the object */
			c[1]++;
		}
	}
}

int main()
{
	long c[4][3] = {};
	char x;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (read(0, &x, 1) != 1)
		return 1;
	std::vector<std::thread> v;
	for (int i = 0; i < 4; i++)
		v.emplace_back(work, 300 * (i + 1), c[i]);
	for (auto &t : v)
		t.join();
	for (int i = 0; i < 4; i++)
		printf("throw %d=%ld\ncatch %d=%ld\nrethrow %d=%ld\n", i, c[i][0], i, c[i][1], i, c[i][2]);
	printf("own=%ld\nerror=%ld\ndone\n", (long)&typeid(Own), (long)&typeid(std::runtime_error));
	fflush(stdout);
	while (read(0, &x, 1) == 1)
		;
}
