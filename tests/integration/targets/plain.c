/* SPDX-License-Identifier: BSD-3-Clause */
/* A program without probes. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	char c;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(0, &c, 1) == 1 && c != '\n')
		;
	return 0;
}
