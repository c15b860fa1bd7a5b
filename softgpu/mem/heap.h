/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stretches of a number line are free: the allocator under device memory.
 *
 * Two-level segregated fit: free chunks hang in lists by size, 16 lists for each power of two, and
 * two bitmaps find the first list that has one. So allocating and freeing take constant time, and
 * at most 1/16 of a request is wasted by taking a chunk that is a little too large. Knows nothing
 * of memory: the books are outside the memory they are about. The caller locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HEAP_SL_BITS 4
#define HEAP_N_SL    (1 << HEAP_SL_BITS)
#define HEAP_N_FL    40

enum {
	HEAP_E_FULL = 1,
};

/**
 * struct heap_chunk - a stretch, free or taken
 * @start:	its first unit
 * @n:		how many units it has
 * @before:	its neighbours in the same region, free or taken
 * @next:	its neighbours in the list of free chunks of its size
 */
struct heap_chunk {
	uint64_t start;
	uint64_t n;
	struct heap_chunk *before, *after;
	struct heap_chunk *next, *prev;
	bool free;
};

struct heap {
	uint64_t fl_map;
	uint16_t sl_map[HEAP_N_FL];
	struct heap_chunk *lists[HEAP_N_FL][HEAP_N_SL];
	struct heap_chunk *spare; /* structs to use again, linked by @next */
};

/** heap_done() - once every chunk has been freed */
void heap_done(struct heap *heap);

/** heap_add() - let it hand out @n units from @start, too. Return: 0 or -ENOMEM. */
int heap_add(struct heap *heap, uint64_t start, uint64_t n);

/** heap_alloc() - take @n units. Return: 0, HEAP_E_FULL or -ENOMEM. */
int heap_alloc(struct heap *heap, uint64_t n, struct heap_chunk **ret);

/** heap_free() - give a chunk back. Return: the free chunk that it is part of now. */
struct heap_chunk *heap_free(struct heap *heap, struct heap_chunk *chunk);

/** heap_chunk_is_region() - is this all that heap_add() added at once? */
static inline bool heap_chunk_is_region(const struct heap_chunk *chunk)
{
	return !chunk->before && !chunk->after;
}

/** heap_remove() - take a free chunk that is a whole region away again */
void heap_remove(struct heap *heap, struct heap_chunk *chunk);
