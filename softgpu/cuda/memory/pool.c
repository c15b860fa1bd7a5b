// SPDX-License-Identifier: Apache-2.0
/* Pools: their memory, making and ending them, and which one a device uses. See pool.h. */
#include "softgpu/cuda/memory/pool.h"

#include <stdlib.h>
#include <unistd.h>

#include "softgpu/state/config.h"

/* Kept memory is reused if no more than one part in so many would be wasted. */
#define FIT_PARTS 8

static struct pool *pools; /* all that there are; under memory_lock */

/* A pool may hold more than its threshold: spares synchronisations the lock. */
static _Atomic bool unsettled;

static struct {
	struct pool *of_device; /* its default pool */
	struct pool *current;
} device_pools[SOFTGPU_DEVICES_MAX];

/* Memory in pools; the caller has the lock */

static unsigned bin_of(uint64_t span)
{
	return 63 - __builtin_clzll(span);
}

static void pool_end_if_unused(struct pool *pool)
{
	struct pool **at = &pools;

	if (!pool->is_destroyed || pool->n_live > 0)
		return;

	while (*at != pool)
		at = &(*at)->next;
	*at = pool->next;
	vram_group_free(pool->group);
	if (pool->fd >= 0)
		close(pool->fd);
	free(pool);
}

/* Gives kept memory back to the device until no more than @keep is reserved. */
static void pool_trim(struct pool *pool, uint64_t keep)
{
	struct memory *memory;

	for (int bin = POOL_N_BINS - 1; bin >= 0; bin--) {
		while (pool->reserved > keep && (memory = pool->bins[bin])) {
			pool->bins[bin] = memory->next;
			pool->reserved -= memory->range.span;
			vram_release(&memory->range);
			free(memory);
		}
	}
}

void pool_unsettle(const struct pool *pool)
{
	if (pool->reserved > pool->threshold)
		atomic_store_explicit(&unsettled, true, memory_order_relaxed);
}

void pools_settle(void)
{
	if (!atomic_load_explicit(&unsettled, memory_order_relaxed))
		return;

	pthread_mutex_lock(&memory_lock);
	atomic_store_explicit(&unsettled, false, memory_order_relaxed);
	for (struct pool *pool = pools; pool; pool = pool->next)
		pool_trim(pool, pool->threshold);
	pthread_mutex_unlock(&memory_lock);
}

bool memory_reclaim(const struct device *device)
{
	bool any = false;

	pthread_mutex_lock(&memory_lock);
	for (struct pool *pool = pools; pool; pool = pool->next) {
		if (pool->device != device || pool->reserved == pool->used)
			continue;
		pool_trim(pool, /* keep= */ 0);
		any = true;
	}
	pthread_mutex_unlock(&memory_lock);

	return any;
}

/* Kept memory that will do for @bytes. */
static struct memory *pool_reuse(struct pool *pool, uint64_t bytes)
{
	uint64_t need = vram_span(bytes);
	struct memory **at, *memory;

	if (need == 0)
		return NULL;

	for (unsigned bin = bin_of(need); bin < POOL_N_BINS && bin <= bin_of(need) + 1; bin++) {
		for (at = &pool->bins[bin]; (memory = *at); at = &memory->next) {
			if (memory->range.span < need ||
			    memory->range.span - need > need / FIT_PARTS)
				continue;
			*at = memory->next;
			memory->range.space.size = bytes;
			memory->is_freed = false;
			return memory;
		}
	}

	return NULL;
}

static uint8_t pool_whose(const struct pool *pool)
{
	return space_named(pool->access.readers, pool->access.writers);
}

/* What shares a block is shown with its group. */
static void memory_show(const struct memory *memory, uint8_t whose)
{
	if (!memory->range.block)
		space_protect(memory_addr(memory), memory->range.span, SPACE_READ_WRITE, whose);
}

void pool_show(const struct pool *pool)
{
	uint8_t whose = pool_whose(pool);

	if (pool->group)
		vram_group_show(pool->group, whose);
	for (const struct memory *memory = pool->used_first; memory; memory = memory->next)
		memory_show(memory, whose);
}

/* Hands memory of the pool out. */
static void pool_use(struct pool *pool, struct memory *memory)
{
	memory->prev = NULL;
	memory->next = pool->used_first;
	if (memory->next)
		memory->next->prev = memory;
	pool->used_first = memory;

	pool->n_live++;
	pool->used += memory->range.span;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	memory_show(memory, pool_whose(pool));
}

static void pool_unuse(struct pool *pool, struct memory *memory)
{
	if (memory->next)
		memory->next->prev = memory->prev;
	if (memory->prev)
		memory->prev->next = memory->next;
	else
		pool->used_first = memory->next;

	pool->n_live--;
	pool->used -= memory->range.span;
}

/* memory->end of a pool's memory: the stream has come to its freeing, or cuMemFree() has. */
static void pool_memory_end(struct memory *memory)
{
	struct pool *pool = memory->owner;
	unsigned bin = bin_of(memory->range.span);

	pthread_mutex_lock(&memory_lock);
	pool_unuse(pool, memory);
	/* What another process may have open is not used again under its hands. */
	if (pool->is_destroyed || memory->range.is_exported) {
		pool->reserved -= memory->range.span;
		vram_release(&memory->range);
		free(memory);
	} else {
		memory->next = pool->bins[bin];
		pool->bins[bin] = memory;
		pool_unsettle(pool);
	}
	pool_end_if_unused(pool);
	pthread_mutex_unlock(&memory_lock);
}

CUmemoryPool pool_of(const struct memory *memory)
{
	const struct pool *pool = memory_kind(memory) == MEMORY_POOL ? memory->owner : NULL;

	return pool && !pool->is_destroyed ? pool->handle : NULL;
}

/* NULL without memory for it; the caller has no lock. */
static struct vram_group *pool_group(struct pool *pool)
{
	struct vram *vram = memory_vram(pool->device);
	struct vram_group *group;

	if (!vram)
		return NULL;
	pthread_mutex_lock(&memory_lock);
	if (!pool->group)
		(void)vram_group_new(vram, pool_whose(pool), &pool->group);
	group = pool->group;
	pthread_mutex_unlock(&memory_lock);
	return group;
}

/* Takes from the device; the caller has no lock. */
static CUresult pool_grow(struct pool *pool, uint64_t bytes, struct memory **ret)
{
	struct memory *memory;
	CUresult r;

	r = memory_new_in(MEMORY_POOL, pool_group(pool), /* ctx= */ NULL, pool->device, bytes,
			  &memory);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory->owner = pool;
	memory->end = pool_memory_end;
	pool->reserved += memory->range.span;
	pool_use(pool, memory);
	pthread_mutex_unlock(&memory_lock);
	*ret = memory;
	return CUDA_SUCCESS;
}

CUresult pool_alloc(struct pool *pool, uint64_t bytes, struct memory **ret)
{
	struct memory *memory;
	bool may_grow;

	pthread_mutex_lock(&memory_lock);
	memory = pool_reuse(pool, bytes);
	if (memory)
		pool_use(pool, memory);
	may_grow = pool->props.maxSize == 0 ||
		   (bytes <= pool->props.maxSize && pool->used <= pool->props.maxSize - bytes);
	pthread_mutex_unlock(&memory_lock);
	if (memory) {
		*ret = memory;
		return CUDA_SUCCESS;
	}

	return may_grow ? pool_grow(pool, bytes, ret) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Pools themselves */

CUresult pool_new(struct device *device, const CUmemPoolProps *props, struct pool **ret)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;

	pool->device = device;
	pool->props = *props;
	pool->fd = -1;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	access_set(&pool->access, 1ULL << device->ordinal, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	pool->handle = handle_new(CUmemoryPool, HANDLE_POOL, pool);
	if (!pool->handle) {
		free(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	pool->next = pools;
	pools = pool;
	*ret = pool;
	return CUDA_SUCCESS;
}

static CUresult default_pool(struct device *device, struct pool **ret)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
		.location.id = device->ordinal,
	};
	struct pool **at = &device_pools[device->ordinal].of_device;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&memory_lock);
	if (!*at) {
		r = pool_new(device, &props, at);
		if (r == CUDA_SUCCESS)
			(*at)->is_default = true;
	}
	*ret = *at;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CUresult pool_current(struct device *device, struct pool **ret)
{
	pthread_mutex_lock(&memory_lock);
	*ret = device_pools[device->ordinal].current;
	pthread_mutex_unlock(&memory_lock);

	return *ret ? CUDA_SUCCESS : default_pool(device, ret);
}

CUresult pool_find(CUmemoryPool handle, struct pool **ret)
{
	return FIND(handle_get(HANDLE_POOL, handle), CUDA_ERROR_INVALID_VALUE, ret);
}

CALL(cuMemPoolCreate, CUmemoryPool *ret, const CUmemPoolProps *props)
{
	struct device *device;
	struct pool *pool;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return props->location.type == CU_MEM_LOCATION_TYPE_INVALID
			       ? CUDA_ERROR_INVALID_VALUE
			       : CUDA_ERROR_NOT_SUPPORTED;

	r = device_find(props->location.id, &device);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	r = pool_new(device, props, &pool);
	pthread_mutex_unlock(&memory_lock);
	if (r == CUDA_SUCCESS)
		*ret = pool->handle;
	return r;
}

CALL(cuMemPoolDestroy, CUmemoryPool handle)
{
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	/* Of several threads one gets it. */
	if (!handle_remove(HANDLE_POOL, handle))
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	for (unsigned i = 0; i < SOFTGPU_DEVICES_MAX; i++)
		if (device_pools[i].current == pool)
			device_pools[i].current = NULL;
	pool_trim(pool, /* keep= */ 0);
	pool->is_destroyed = true;
	pool_end_if_unused(pool);
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

CALL(cuMemPoolTrimTo, CUmemoryPool handle, size_t keep)
{
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	pool_trim(pool, keep);
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

/* Which pool a device's allocations come from */

static CUresult device_of_location(const CUmemLocation *location, CUmemAllocationType type,
				   struct device **ret)
{
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;

	return device_find(location->id, ret);
}

static CUresult pool_tell(CUresult (*find)(struct device *, struct pool **), struct device *device,
			  CUmemoryPool *ret)
{
	struct pool *pool;
	CUresult r;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	r = find(device, &pool);
	if (r == CUDA_SUCCESS)
		*ret = pool->handle;
	return r;
}

static CUresult pool_choose(struct device *device, CUmemoryPool handle)
{
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (pool->device != device || pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	device_pools[device->ordinal].current = pool;
	pthread_mutex_unlock(&memory_lock);
	return CUDA_SUCCESS;
}

static CUresult device_for_pool(CUdevice ordinal, struct device **ret)
{
	CUresult r = driver_check();

	return r != CUDA_SUCCESS ? r : device_find(ordinal, ret);
}

CALL(cuDeviceGetDefaultMemPool, CUmemoryPool *ret, CUdevice ordinal)
{
	struct device *device;
	CUresult r = device_for_pool(ordinal, &device);

	return r != CUDA_SUCCESS ? r : pool_tell(default_pool, device, ret);
}

CALL(cuDeviceGetMemPool, CUmemoryPool *ret, CUdevice ordinal)
{
	struct device *device;
	CUresult r = device_for_pool(ordinal, &device);

	return r != CUDA_SUCCESS ? r : pool_tell(pool_current, device, ret);
}

CALL(cuDeviceSetMemPool, CUdevice ordinal, CUmemoryPool handle)
{
	struct device *device;
	CUresult r = device_for_pool(ordinal, &device);

	return r != CUDA_SUCCESS ? r : pool_choose(device, handle);
}

CALL(cuMemGetDefaultMemPool, CUmemoryPool *ret, CUmemLocation *location, CUmemAllocationType type)
{
	struct device *device;
	CUresult r = device_of_location(location, type, &device);

	return r != CUDA_SUCCESS ? r : pool_tell(default_pool, device, ret);
}

CALL(cuMemGetMemPool, CUmemoryPool *ret, CUmemLocation *location, CUmemAllocationType type)
{
	struct device *device;
	CUresult r = device_of_location(location, type, &device);

	return r != CUDA_SUCCESS ? r : pool_tell(pool_current, device, ret);
}

CALL(cuMemSetMemPool, CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
	struct device *device;
	CUresult r = device_of_location(location, type, &device);

	return r != CUDA_SUCCESS ? r : pool_choose(device, handle);
}
