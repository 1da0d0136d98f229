/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs test_main, linked in or (-DLOAD) from the library that the first argument names. */
#include <dlfcn.h>
#include <stdio.h>

int test_main(void);

int main(int argc, char **argv)
{
#ifdef LOAD
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(void) = NULL;

	if (lib)
		*(void **)&run = dlsym(lib, "test_main");
	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	return !!run();
#else
	(void)argc;
	(void)argv;
	return !!test_main();
#endif
}
