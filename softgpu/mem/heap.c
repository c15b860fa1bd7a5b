// SPDX-License-Identifier: Apache-2.0
/* Two-level segregated fit over unit numbers. heap.h says what for. */
#include "softgpu/mem/heap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/*
 * Sizes below 16 have a list each. From there on the list is the number's highest five bits:
 * 16..31 one apart, 32..63 two apart, and so on.
 */
static void class_of(uint64_t n, unsigned *ret_fl, unsigned *ret_sl)
{
	unsigned top;

	if (n < HEAP_N_SL) {
		*ret_fl = 0;
		*ret_sl = n;
		return;
	}

	top = 63 - __builtin_clzll(n);
	*ret_fl = top - HEAP_SL_BITS + 1;
	*ret_sl = (n >> (top - HEAP_SL_BITS)) & (HEAP_N_SL - 1);
}

/* The smallest size of which every chunk in its list, or a higher one, has room for @n. */
static uint64_t round_up_to_class(uint64_t n)
{
	if (n < HEAP_N_SL)
		return n;

	return n + (1ULL << (63 - __builtin_clzll(n) - HEAP_SL_BITS)) - 1;
}

static struct heap_chunk *chunk_new(struct heap *heap)
{
	struct heap_chunk *chunk = heap->spare;

	if (!chunk)
		return malloc(sizeof(*chunk));

	heap->spare = chunk->next;
	return chunk;
}

static void chunk_drop(struct heap *heap, struct heap_chunk *chunk)
{
	chunk->next = heap->spare;
	heap->spare = chunk;
}

static void list_insert(struct heap *heap, struct heap_chunk *chunk)
{
	struct heap_chunk **head;
	unsigned fl, sl;

	class_of(chunk->n, &fl, &sl);
	head = &heap->lists[fl][sl];

	chunk->free = true;
	chunk->prev = NULL;
	chunk->next = *head;
	if (*head)
		(*head)->prev = chunk;
	*head = chunk;

	heap->fl_map |= 1ULL << fl;
	heap->sl_map[fl] |= 1U << sl;
}

static void list_remove(struct heap *heap, struct heap_chunk *chunk)
{
	unsigned fl, sl;

	class_of(chunk->n, &fl, &sl);
	if (chunk->next)
		chunk->next->prev = chunk->prev;
	if (chunk->prev)
		chunk->prev->next = chunk->next;
	else
		heap->lists[fl][sl] = chunk->next;
	chunk->free = false;

	if (heap->lists[fl][sl])
		return;
	heap->sl_map[fl] &= ~(1U << sl);
	if (!heap->sl_map[fl])
		heap->fl_map &= ~(1ULL << fl);
}

static struct heap_chunk *find(struct heap *heap, uint64_t n)
{
	struct heap_chunk *head;
	unsigned fl, sl;
	uint64_t map;

	/*
	 * The list of the size itself holds smaller ones too, but its first is worth a look: often
	 * it is what was freed last by somebody who asked for just as much.
	 */
	class_of(n, &fl, &sl);
	if (fl >= HEAP_N_FL)
		return NULL;
	head = heap->lists[fl][sl];
	if (head && head->n >= n)
		return head;

	class_of(round_up_to_class(n), &fl, &sl);
	if (fl >= HEAP_N_FL)
		return NULL;
	map = heap->sl_map[fl] & (~0U << sl);
	if (!map) {
		map = fl + 1 < HEAP_N_FL ? heap->fl_map & (~0ULL << (fl + 1)) : 0;
		if (!map)
			return NULL;
		fl = __builtin_ctzll(map);
		map = heap->sl_map[fl];
	}

	return heap->lists[fl][__builtin_ctzll(map)];
}

int heap_add(struct heap *heap, uint64_t start, uint64_t n)
{
	struct heap_chunk *chunk = chunk_new(heap);

	if (!chunk)
		return -ENOMEM;

	*chunk = (struct heap_chunk){ .start = start, .n = n };
	list_insert(heap, chunk);
	return 0;
}

int heap_alloc(struct heap *heap, uint64_t n, struct heap_chunk **ret)
{
	struct heap_chunk *chunk, *rest;

	assert(n > 0);

	chunk = find(heap, n);
	if (!chunk)
		return HEAP_E_FULL;

	if (chunk->n > n) {
		rest = chunk_new(heap);
		if (!rest)
			return -ENOMEM;

		list_remove(heap, chunk);
		*rest = (struct heap_chunk){
			.start = chunk->start + n,
			.n = chunk->n - n,
			.before = chunk,
			.after = chunk->after,
		};
		if (rest->after)
			rest->after->before = rest;
		chunk->after = rest;
		chunk->n = n;
		list_insert(heap, rest);
	} else {
		list_remove(heap, chunk);
	}

	*ret = chunk;
	return 0;
}

/* Makes @chunk include the one after it. */
static void absorb_after(struct heap *heap, struct heap_chunk *chunk)
{
	struct heap_chunk *after = chunk->after;

	chunk->n += after->n;
	chunk->after = after->after;
	if (chunk->after)
		chunk->after->before = chunk;
	chunk_drop(heap, after);
}

struct heap_chunk *heap_free(struct heap *heap, struct heap_chunk *chunk)
{
	assert(!chunk->free);

	if (chunk->after && chunk->after->free) {
		list_remove(heap, chunk->after);
		absorb_after(heap, chunk);
	}
	if (chunk->before && chunk->before->free) {
		chunk = chunk->before;
		list_remove(heap, chunk);
		absorb_after(heap, chunk);
	}

	list_insert(heap, chunk);
	return chunk;
}

void heap_remove(struct heap *heap, struct heap_chunk *chunk)
{
	assert(chunk->free && heap_chunk_is_region(chunk));

	list_remove(heap, chunk);
	chunk_drop(heap, chunk);
}

void heap_done(struct heap *heap)
{
	struct heap_chunk *chunk;
	unsigned fl;

	while (heap->fl_map) {
		fl = __builtin_ctzll(heap->fl_map);
		heap_remove(heap, heap->lists[fl][__builtin_ctz(heap->sl_map[fl])]);
	}
	while ((chunk = heap->spare)) {
		heap->spare = chunk->next;
		free(chunk);
	}
}
