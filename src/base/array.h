/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow one by one.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>
#include <stdlib.h>

#define ARRAY_LEAST 16

/**
 * array_room() - room for one more behind @n items of @size bytes
 * @cap:	for how many there is room
 *
 * Return: the array, where it lies now; NULL without memory, and it is where it was.
 */
static inline void *array_room(void *items, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? 2 * *cap : ARRAY_LEAST;

	if (n < *cap)
		return items;
	items = reallocarray(items, more, size);
	if (items)
		*cap = more;
	return items;
}

#endif
