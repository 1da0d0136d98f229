/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow. */
#ifndef MT_ROOM_H
#define MT_ROOM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Room for one more in an array of n elements of `size` bytes; array: address of the pointer to it. It may move;
 * twice as large each time. 0, -ENOMEM (nothing changed).
 */
int mt_room(void *array, uint32_t n, uint32_t *cap, size_t size);

#endif
