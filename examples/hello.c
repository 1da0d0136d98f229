/* SPDX-License-Identifier: BSD-3-Clause */
/* cc -I../include hello.c -o hello && ./hello */
#include <unistd.h>
#include "montrace.h"

static void greet(int turn)
{
	MONTRACE_SCOPE("greet", MT(turn), MT_STR("whom", "world"));
	usleep(1000);
	if (turn % 10 == 0)
		MONTRACE_EVENT(MONTRACE_WARN, "tenth turn", MT(turn));
}

int main(void)
{
	for (int turn = 1;; turn++) {
		greet(turn);
		usleep(99000);
	}
}
