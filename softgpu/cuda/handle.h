/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles: what programs hold of the driver's objects.
 *
 * A handle is a number, never an address, so a stale, foreign or invented one is
 * told from a good one without touching memory that may be gone:
 *
 *	 63    47 46      40 39          22 21           0
 *	|   0   |   kind    | generation   |    index     |
 *
 * The table maps the index to the object and keeps the whole handle; a lookup
 * compares the two. The generation changes with each reuse of an index, so a
 * handle comes back after 262,144 reuses of its place. Lookups take no lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Kinds start at 1: then no handle is as small as NULL or the special streams 1 and 2. */
enum handle_kind {
	HANDLE_CONTEXT = 1,
	HANDLE_GREEN_CONTEXT,
	HANDLE_RESOURCE_DESC,
	HANDLE_MODULE,
	HANDLE_FUNCTION,
	HANDLE_LIBRARY,
	HANDLE_KERNEL,
	HANDLE_LINK,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_GRAPH,
	HANDLE_GRAPH_NODE,
	HANDLE_GRAPH_EXEC,
	HANDLE_USER_OBJECT,
	HANDLE_CONDITIONAL,
	HANDLE_ARRAY,
	HANDLE_MIPMAPPED_ARRAY,
	HANDLE_TEXTURE_REFERENCE,
	HANDLE_SURFACE_REFERENCE,
	HANDLE_TEXTURE,
	HANDLE_SURFACE,
	HANDLE_POOL,
	HANDLE_PHYSICAL,
	HANDLE_MULTICAST,
	HANDLE_EXTERNAL_MEMORY,
	HANDLE_EXTERNAL_SEMAPHORE,
	HANDLE_GRAPHICS_RESOURCE,
	HANDLE_ASYNC_CALLBACK,
	HANDLE_LOG_CALLBACK,
};

#define HANDLE_INDEX_BITS      22
#define HANDLE_GENERATION_BITS 18
#define HANDLE_KIND_SHIFT      (HANDLE_INDEX_BITS + HANDLE_GENERATION_BITS)
#define HANDLE_N_MAX	       (1u << HANDLE_INDEX_BITS)
#define HANDLE_ENDED	       (1ull << 63)

struct handle_slot {
	_Atomic uint64_t handle; /* 0 or the last one with HANDLE_ENDED while free */
	_Atomic(void *) object;
};

/* HANDLE_N_MAX slots of reserved address space; pages come as they are used. */
extern struct handle_slot *handle_slots;

/**
 * handle_new_() - give an object a handle
 *
 * Return: the handle, or 0 if there is no memory or no index left.
 */
uint64_t handle_new_(enum handle_kind kind, void *object);

/**
 * handle_remove_() - end a handle
 *
 * Of several threads that remove the same handle, one gets the object.
 *
 * Return: the object, or NULL if @handle is none of this kind.
 */
void *handle_remove_(enum handle_kind kind, uint64_t handle);

static inline void *handle_get_(enum handle_kind kind, uint64_t handle)
{
	struct handle_slot *slot;
	void *object;

	if (handle >> HANDLE_KIND_SHIFT != (uint64_t)kind || !handle_slots)
		return NULL;
	slot = &handle_slots[handle & (HANDLE_N_MAX - 1)];
	object = atomic_load_explicit(&slot->object, memory_order_acquire);
	/* The handle last: had the place been reused in between, it would differ. */
	if (atomic_load_explicit(&slot->handle, memory_order_acquire) != handle)
		return NULL;
	return object;
}

/* The calls, for handles that are pointers to the compiler and those that are numbers. */
#define handle_new(type, kind, object) ((type)(uintptr_t)handle_new_(kind, object))
#define handle_get(kind, handle)       handle_get_(kind, (uint64_t)(uintptr_t)(handle))
#define handle_remove(kind, handle)    handle_remove_(kind, (uint64_t)(uintptr_t)(handle))
