/* SPDX-License-Identifier: BSD-3-Clause */
/* Libraries with callsites (arguments: lib1.so lib2.so libcc.so) loaded, unloaded, loaded again. */
#include <dlfcn.h>
#include <stdlib.h>

#include "montrace.h"
#include "harness.h"

#define N 500
static uint64_t ids[8 * N];
static int used;

static bool mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	while (f && fgets(line, sizeof(line), f))
		found |= strstr(line, name) != NULL;
	if (f)
		fclose(f);
	return found;
}

static void run(const char *path, bool twice)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *again = twice ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	void (*f)(uint64_t *, int);

	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&f = dlsym(lib, "lib_run");
	CHECK(h_load() > 0);
	h_arm(NULL, true);
	h_reset();
	f(ids + used, N);
	used += N;
	CHECK(h_nhits() >= 2 * N + 1);
	h_unload(strrchr(path, '/'));
	dlclose(lib);
	if (again) {
		CHECK(mapped(strrchr(path, '/')));
		dlclose(again);
	}
	CHECK(!mapped(strrchr(path, '/')));
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
	struct montrace_span s;

	if (argc != 4)
		return 2;
	h_load();
	h_arm(NULL, true);
	for (used = 0; used < N; used++) {
		MONTRACE_SPAN(&s, MONTRACE_INFO, "of the program");
		ids[used] = s.id;
	}
	for (int i = 1; i < 4; i++)
		run(argv[i], i == 1);
	run(argv[1], false);
	run(argv[3], false);
	qsort(ids, (size_t)used, sizeof(*ids), by_value);
	CHECK(ids[0]);
	for (int i = 1; i < used; i++)
		CHECK(ids[i] != ids[i - 1]);
	return h_report("t_dl") != 0;
}
