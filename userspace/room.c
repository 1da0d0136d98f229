/* SPDX-License-Identifier: BSD-3-Clause */
#include "room.h"

#include <errno.h>
#include <stdlib.h>

int mt_room(void *array, uint32_t n, uint32_t *cap, size_t size)
{
	void **p = array, *moved;
	uint32_t want = *cap ? *cap * 2 : 16;

	if (n < *cap)
		return 0;
	moved = want > *cap ? reallocarray(*p, want, size) : NULL;
	if (!moved)
		return -ENOMEM;
	*p = moved;
	*cap = want;
	return 0;
}
