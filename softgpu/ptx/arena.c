/* SPDX-License-Identifier: Apache-2.0 */
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/arena.h"

/* Pieces larger than a quarter of a block get a block of their own. */
#define BLOCK_BYTES (64u << 10)

struct block {
	struct block *next;
	alignas(max_align_t) char bytes[];
};

struct arena {
	struct block *blocks;
	char *free;
	size_t left;
};

struct arena *arena_new(void)
{
	return calloc(1, sizeof(struct arena));
}

void arena_free(struct arena *arena)
{
	struct block *block, *next;

	if (!arena)
		return;
	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(arena);
}

static char *block_add(struct arena *arena, size_t size)
{
	struct block *block = calloc(1, sizeof(*block) + size);

	if (!block)
		return NULL;
	block->next = arena->blocks;
	arena->blocks = block;
	return block->bytes;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);
	char *piece;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + align - 1) & ~(align - 1);
	if (size > BLOCK_BYTES / 4)
		return block_add(arena, size);

	if (size > arena->left) {
		piece = block_add(arena, BLOCK_BYTES);
		if (!piece)
			return NULL;
		arena->free = piece;
		arena->left = BLOCK_BYTES;
	}
	piece = arena->free;
	arena->free += size;
	arena->left -= size;
	return piece;
}

void *arena_copy(struct arena *arena, const void *from, size_t size)
{
	void *to = arena_alloc(arena, size);

	if (to && size)
		memcpy(to, from, size);
	return to;
}
