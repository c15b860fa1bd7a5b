/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc() and free() of kernels: a piece of device memory that a context's kernels share.
 *
 * What is in use is noted in memory of the host, where no kernel can write: two bits for each unit of
 * 16 bytes, one that it is used, one that a piece begins there. The search begins where the last one
 * ended.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/exec/block.h"

#define UNIT 16

struct exec_heap {
	pthread_mutex_t lock;
	u64 addr, n_units;
	u64 next; /* where to look first */
	u64 *used, *begins;
};

struct exec_heap *exec_heap_new(uint64_t addr, uint64_t size)
{
	struct exec_heap *heap = calloc(1, sizeof(*heap));
	u64 words = size / UNIT / 64 + 1;

	if (!heap)
		return NULL;
	heap->addr = addr;
	heap->n_units = size / UNIT;
	heap->used = calloc(words, sizeof(u64));
	heap->begins = calloc(words, sizeof(u64));
	if (!heap->used || !heap->begins) {
		free(heap->used);
		free(heap->begins);
		free(heap);
		return NULL;
	}
	pthread_mutex_init(&heap->lock, NULL);
	return heap;
}

void exec_heap_free(struct exec_heap *heap)
{
	if (!heap)
		return;
	pthread_mutex_destroy(&heap->lock);
	free(heap->used);
	free(heap->begins);
	free(heap);
}

static bool has(const u64 *bits, u64 i)
{
	return bits[i / 64] >> (i % 64) & 1;
}

static void put(u64 *bits, u64 i, bool value)
{
	if (value)
		bits[i / 64] |= UINT64_C(1) << (i % 64);
	else
		bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

/* Units from @i to the next at a multiple of @align. */
static u64 padding(const struct exec_heap *heap, u64 i, u64 align)
{
	return (-(heap->addr + i * UNIT) & (align - 1)) / UNIT;
}

/*
 * The first of @n free units in a row from @from to before @end, of which the first is at a multiple of
 * @align; @end if there are none.
 */
static u64 find_free(const struct exec_heap *heap, u64 from, u64 end, u64 n, u64 align)
{
	u64 run = 0;

	for (u64 i = from; i < end;) {
		bool whole = i % 64 == 0 && i + 64 <= end;

		if (whole && heap->used[i / 64] == 0) {
			run += 64;
			i += 64;
		} else if (whole && heap->used[i / 64] == UINT64_MAX) {
			run = 0;
			i += 64;
		} else {
			run = has(heap->used, i) ? 0 : run + 1;
			i++;
		}
		if (run >= n && run >= n + padding(heap, i - run, align))
			return i - run + padding(heap, i - run, align);
	}
	return end;
}

u64 heap_take(struct exec_heap *heap, u64 size, u64 align)
{
	u64 n = size / UNIT + (size % UNIT != 0), at;

	if (!heap || n == 0 || n > heap->n_units || align == 0 || align & (align - 1))
		return 0;
	align = align < UNIT ? UNIT : align;
	pthread_mutex_lock(&heap->lock);
	at = find_free(heap, heap->next, heap->n_units, n, align);
	if (at == heap->n_units)
		at = find_free(heap, 0, heap->n_units, n, align);
	if (at < heap->n_units) {
		for (u64 i = at; i < at + n; i++)
			put(heap->used, i, true);
		put(heap->begins, at, true);
		heap->next = at + n;
	}
	pthread_mutex_unlock(&heap->lock);
	return at < heap->n_units ? heap->addr + at * UNIT : 0;
}

bool heap_give(struct exec_heap *heap, u64 addr)
{
	u64 at = heap ? (addr - heap->addr) / UNIT : 0;
	bool known;

	if (!heap || addr % UNIT || at >= heap->n_units)
		return false;
	pthread_mutex_lock(&heap->lock);
	known = has(heap->begins, at);
	if (known) {
		put(heap->begins, at, false);
		for (u64 i = at; i < heap->n_units && has(heap->used, i) && !has(heap->begins, i);
		     i++)
			put(heap->used, i, false);
		heap->next = at;
	}
	pthread_mutex_unlock(&heap->lock);
	return known;
}
