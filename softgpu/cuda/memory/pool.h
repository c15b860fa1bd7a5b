/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory: pools.
 *
 * Memory is taken from the device when the call is made, so its address is known at once, and goes
 * back to its pool when the stream comes to its freeing. There it is kept, charged, for allocations
 * to come. What a pool holds beyond its release threshold goes back to the device when the program
 * next waits for a stream, an event or a context; all that it keeps does when the device is full.
 * The threshold is 0 unless the program sets it.
 *
 *	used		allocated by the program
 *	kept		freed, held for reuse
 *	reserved	both: what the device is charged, but for the rounding to blocks
 *
 * The devices that may touch a pool's memory are told for the whole pool, whatever peer access
 * contexts have. So its small allocations share blocks with each other only.
 *
 * Pools belong to devices, not to contexts. A pool that was destroyed lives on until its last
 * allocation is freed. memory_lock guards all of it.
 */
#pragma once

#include "softgpu/cuda/memory/location.h"
#include "softgpu/cuda/memory/memory.h"

/* Kept memory hangs in lists by the power of two of its size. */
#define POOL_N_BINS 48

struct pool {
	struct pool *next; /* in the list of all */
	CUmemoryPool handle;
	struct device *device;
	CUmemPoolProps props;
	bool is_default, is_destroyed;
	int fd; /* of an imported pool: the exporter's file; else -1 */

	struct vram_group *group;  /* made with its first memory */
	struct memory *used_first; /* linked by next and prev */
	struct memory *bins[POOL_N_BINS];
	unsigned n_live;
	uint64_t threshold;
	uint64_t used, used_high;
	uint64_t reserved, reserved_high;
	int reuse[3]; /* the attributes from CU_MEMPOOL_ATTR_REUSE_FOLLOW_... on */
	struct access access;
};

/** pool_new() - the caller has memory_lock */
CUresult pool_new(struct device *device, const CUmemPoolProps *props, struct pool **ret);

/** pool_find() - CUDA_ERROR_INVALID_VALUE if the handle is none */
CUresult pool_find(CUmemoryPool handle, struct pool **ret);

/** pool_current() - the pool that a device's allocations come from */
CUresult pool_current(struct device *device, struct pool **ret);

/** pool_alloc() - CUDA_ERROR_OUT_OF_MEMORY also where the pool's own limit is reached */
CUresult pool_alloc(struct pool *pool, uint64_t bytes, struct memory **ret);

/** pool_show() - its memory is to be seen by the devices that have access; with memory_lock */
void pool_show(const struct pool *pool);

/** pool_unsettle() - it may hold more than its threshold now; the caller has memory_lock */
void pool_unsettle(const struct pool *pool);

/** pools_settle() - the program has waited: give back what is beyond the thresholds */
void pools_settle(void);

/** pool_of() - the pool that memory came from, or NULL */
CUmemoryPool pool_of(const struct memory *memory);
