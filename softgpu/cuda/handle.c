// SPDX-License-Identifier: Apache-2.0
/*
 * The table of handles. Free places are a list through the object field of the
 * slots, under a lock; lookups are in the header.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/cuda/handle.h"

struct handle_slot *handle_slots;

static pthread_mutex_t handle_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under handle_lock. */
static uint32_t n_used;		      /* places that have ever been used */
static struct handle_slot *free_list; /* linked through `object` */

static struct handle_slot *slot_take(void)
{
	struct handle_slot *slot = free_list;

	if (slot) {
		free_list = atomic_load_explicit(&slot->object, memory_order_relaxed);
		return slot;
	}
	if (!handle_slots) {
		void *at = mmap(NULL, HANDLE_N_MAX * sizeof(*handle_slots), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (at == MAP_FAILED)
			return NULL;
		handle_slots = at;
	}
	if (n_used == HANDLE_N_MAX)
		return NULL;
	return &handle_slots[n_used++];
}

uint64_t handle_new_(enum handle_kind kind, void *object)
{
	const uint64_t generations = (1ull << HANDLE_GENERATION_BITS) - 1;
	uint64_t generation, handle = 0;
	struct handle_slot *slot;

	pthread_mutex_lock(&handle_lock);
	slot = slot_take();
	if (slot) {
		handle = atomic_load_explicit(&slot->handle, memory_order_relaxed);
		generation = ((handle >> HANDLE_INDEX_BITS) + 1) & generations;
		handle = (uint64_t)kind << HANDLE_KIND_SHIFT | generation << HANDLE_INDEX_BITS |
			 (uint64_t)(slot - handle_slots);
		atomic_store_explicit(&slot->object, object, memory_order_release);
		atomic_store_explicit(&slot->handle, handle, memory_order_release);
	}
	pthread_mutex_unlock(&handle_lock);
	return handle;
}

void *handle_remove_(enum handle_kind kind, uint64_t handle)
{
	struct handle_slot *slot;
	void *object;

	pthread_mutex_lock(&handle_lock);
	object = handle_get_(kind, handle);
	if (object) {
		slot = &handle_slots[handle & (HANDLE_N_MAX - 1)];
		atomic_store_explicit(&slot->handle, handle | HANDLE_ENDED, memory_order_release);
		atomic_store_explicit(&slot->object, free_list, memory_order_release);
		free_list = slot;
	}
	pthread_mutex_unlock(&handle_lock);
	return object;
}
