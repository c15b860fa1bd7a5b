// SPDX-License-Identifier: Apache-2.0
#include "src/cuda/bulk-copy.h"

#include <stdbool.h>
#include <stdio.h>

#define ROOM	1024
#define OUTSIDE 0x55

static unsigned char from[ROOM], to[ROOM];

/* Every byte of it, and none beside it. */
static bool copies(size_t in, size_t out, size_t size)
{
	memset(to, OUTSIDE, sizeof(to));
	bulk_copy(to + out, from + in, size);
	for (size_t i = 0; i < ROOM; i++)
		if (to[i] != (i < out || i >= out + size ? OUTSIDE : from[in + i - out]))
			return false;
	return true;
}

int main(void)
{
	size_t in, out, size;

	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 7 + i / 256);
	for (in = 0; in < 20; in += 3)
		for (out = 0; out < 70; out++)
			for (size = 0; size < 330; size++)
				if (!copies(in, out, size)) {
					printf("%zu bytes from %zu to %zu differ\n", size, in, out);
					return 1;
				}
	printf("ok 'bulk_copy: every byte and none beside them'\n");
	return 0;
}
