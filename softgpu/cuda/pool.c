// SPDX-License-Identifier: Apache-2.0
/*
 * Stream-ordered memory: cuMemAllocAsync() and pools.
 *
 * Memory is taken from the device when the call is made, so its address is known at once, and goes
 * back to its pool when the stream comes to its freeing. What a pool holds beyond its release
 * threshold goes back to the device then; up to it, memory is kept, charged, for allocations to
 * come. The threshold is 0 unless the program sets it.
 *
 *	used		allocated by the program
 *	kept		freed, held for reuse
 *	reserved	both: what the device is charged, but for the rounding to blocks
 *
 * Pools belong to devices, not to contexts. A pool that was destroyed lives on until its last
 * allocation is freed. memory_lock guards all of it.
 */
#include "softgpu/cuda/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/cuda/import.h"
#include "softgpu/cuda/graph-mem.h"
#include "softgpu/cuda/memory.h"
#include "softgpu/cuda/stream.h"
#include "softgpu/state/config.h"

/* Kept memory hangs in lists by the power of two of its size. */
#define N_BINS 48

/* Kept memory is reused if no more than one part in so many would be wasted. */
#define FIT_PARTS 8

#define POOL_FILE_LINK "/memfd:softgpu-memory-%u"

struct pool {
	CUmemoryPool handle;
	struct device *device;
	CUmemPoolProps props;
	bool is_default, is_destroyed;
	int fd;			/* of an imported pool: the exporter's file; else -1 */

	struct memory *bins[N_BINS];
	unsigned n_live;
	uint64_t threshold;
	uint64_t used, used_high;
	uint64_t reserved, reserved_high;
	int reuse[3];		/* the attributes from CU_MEMPOOL_ATTR_REUSE_FOLLOW_... on */
	uint64_t readers, writers;	/* a bit for each device beside its own */
};

/* What a pool's memory is exported as. */
struct pool_ticket {
	struct share_ticket ticket;
	uint64_t size;
};

_Static_assert(sizeof(struct pool_ticket) <= sizeof(CUmemPoolPtrExportData), "fits");

static struct {
	struct pool *of_device;		/* its default pool */
	struct pool *current;
} device_pools[SOFTGPU_DEVICES_MAX];

/* Memory in pools; the caller has the lock */

static unsigned bin_of(uint64_t span)
{
	return 63 - __builtin_clzll(span);
}

static void pool_end_if_unused(struct pool *pool)
{
	if (!pool->is_destroyed || pool->n_live > 0)
		return;

	if (pool->fd >= 0)
		close(pool->fd);
	free(pool);
}

/* Gives kept memory back to the device until no more than @keep is reserved. */
static void pool_trim(struct pool *pool, uint64_t keep)
{
	struct memory *memory;

	for (int bin = N_BINS - 1; bin >= 0; bin--) {
		while (pool->reserved > keep && (memory = pool->bins[bin])) {
			pool->bins[bin] = memory->next;
			pool->reserved -= memory->range.span;
			vram_release(&memory->range);
			free(memory);
		}
	}
}

/* Kept memory that will do for @bytes. */
static struct memory *pool_reuse(struct pool *pool, uint64_t bytes)
{
	uint64_t need = vram_span(bytes);
	struct memory **at, *memory;

	if (need == 0)
		return NULL;

	for (unsigned bin = bin_of(need); bin < N_BINS && bin <= bin_of(need) + 1; bin++) {
		for (at = &pool->bins[bin]; (memory = *at); at = &memory->next) {
			if (memory->range.span < need ||
			    memory->range.span - need > need / FIT_PARTS)
				continue;
			*at = memory->next;
			memory->next = NULL;
			memory->range.space.size = bytes;
			memory->is_freed = false;
			return memory;
		}
	}

	return NULL;
}

static void count_used(struct pool *pool, uint64_t span)
{
	pool->n_live++;
	pool->used += span;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
}

/* memory->end of a pool's memory: the stream has come to its freeing, or cuMemFree() has. */
static void pool_memory_end(struct memory *memory)
{
	struct pool *pool = memory->owner;
	unsigned bin = bin_of(memory->range.span);

	pthread_mutex_lock(&memory_lock);
	pool->n_live--;
	pool->used -= memory->range.span;
	/* What another process may have open is not used again under its hands. */
	if (pool->is_destroyed || pool->reserved > pool->threshold || memory->range.is_exported) {
		pool->reserved -= memory->range.span;
		vram_release(&memory->range);
		free(memory);
	} else {
		memory->next = pool->bins[bin];
		pool->bins[bin] = memory;
	}
	pool_end_if_unused(pool);
	pthread_mutex_unlock(&memory_lock);
}

CUmemoryPool pool_of(const struct memory *memory)
{
	const struct pool *pool = memory_kind(memory) == MEMORY_POOL ? memory->owner : NULL;

	return pool && !pool->is_destroyed ? pool->handle : NULL;
}

/* Takes from the device; the caller has no lock. */
static CUresult pool_grow(struct pool *pool, uint64_t bytes, struct memory **ret)
{
	struct memory *memory;
	CUresult r;

	r = memory_new(MEMORY_POOL, memory_vram(pool->device), /* ctx= */ NULL, pool->device, bytes,
		       &memory);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory->owner = pool;
	memory->end = pool_memory_end;
	pool->reserved += memory->range.span;
	count_used(pool, memory->range.span);
	pthread_mutex_unlock(&memory_lock);
	*ret = memory;
	return CUDA_SUCCESS;
}

static CUresult pool_alloc(struct pool *pool, uint64_t bytes, struct memory **ret)
{
	struct memory *memory;
	bool may_grow;
	CUresult r;

	pthread_mutex_lock(&memory_lock);
	memory = pool_reuse(pool, bytes);
	if (memory)
		count_used(pool, memory->range.span);
	may_grow = pool->props.maxSize == 0 || (bytes <= pool->props.maxSize &&
						pool->used <= pool->props.maxSize - bytes);
	pthread_mutex_unlock(&memory_lock);
	if (memory) {
		*ret = memory;
		return CUDA_SUCCESS;
	}
	if (!may_grow)
		return CUDA_ERROR_OUT_OF_MEMORY;

	r = pool_grow(pool, bytes, ret);
	if (r != CUDA_ERROR_OUT_OF_MEMORY)
		return r;

	pthread_mutex_lock(&memory_lock);
	pool_trim(pool, /* keep= */ 0);
	pthread_mutex_unlock(&memory_lock);
	return pool_grow(pool, bytes, ret);
}

/* Pools themselves */

static CUresult pool_new(struct device *device, const CUmemPoolProps *props, struct pool **ret)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return CUDA_ERROR_OUT_OF_MEMORY;

	pool->device = device;
	pool->props = *props;
	pool->fd = -1;
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->readers = pool->writers = 1ULL << device->ordinal;
	pool->handle = handle_new(CUmemoryPool, HANDLE_POOL, pool);
	if (!pool->handle) {
		free(pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

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

static CUresult current_pool(struct device *device, struct pool **ret)
{
	pthread_mutex_lock(&memory_lock);
	*ret = device_pools[device->ordinal].current;
	pthread_mutex_unlock(&memory_lock);

	return *ret ? CUDA_SUCCESS : default_pool(device, ret);
}

static CUresult pool_find(CUmemoryPool handle, struct pool **ret)
{
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	*ret = handle_get(HANDLE_POOL, handle);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
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
		return props->location.type == CU_MEM_LOCATION_TYPE_INVALID ?
			       CUDA_ERROR_INVALID_VALUE :
			       CUDA_ERROR_NOT_SUPPORTED;

	r = device_find(props->location.id, &device);
	if (r != CUDA_SUCCESS)
		return r;

	r = pool_new(device, props, &pool);
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

	return r != CUDA_SUCCESS ? r : pool_tell(current_pool, device, ret);
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

	return r != CUDA_SUCCESS ? r : pool_tell(current_pool, device, ret);
}

CALL(cuMemSetMemPool, CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
	struct device *device;
	CUresult r = device_of_location(location, type, &device);

	return r != CUDA_SUCCESS ? r : pool_choose(device, handle);
}

/* Attributes */

static bool is_reuse(CUmemPool_attribute attribute)
{
	return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
	       attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

/* The field of a 64-bit attribute, or NULL. */
static uint64_t *attribute_field(struct pool *pool, CUmemPool_attribute attribute)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &pool->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		return &pool->reserved;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &pool->reserved_high;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &pool->used;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &pool->used_high;
	default:
		return NULL;
	}
}

CALL(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *ret)
{
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || (!is_reuse(attribute) && !attribute_field(pool, attribute)))
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	if (is_reuse(attribute))
		*(int *)ret = pool->reuse[attribute -
					  CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
	else
		*(cuuint64_t *)ret = *attribute_field(pool, attribute);
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

/* High-water marks can only be reset, which means to what is now. */
static CUresult attribute_set(struct pool *pool, CUmemPool_attribute attribute, uint64_t value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->reserved_high = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CALL(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!value || (!is_reuse(attribute) && !attribute_field(pool, attribute)))
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	if (is_reuse(attribute))
		pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] =
			*(int *)value != 0;
	else
		r = attribute_set(pool, attribute, *(cuuint64_t *)value);
	pthread_mutex_unlock(&memory_lock);

	return r;
}

/* Access of other devices */

static CUresult pool_device(const CUmemLocation *location, struct device **ret)
{
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;

	return device_find(location->id, ret);
}

static CUresult access_check(const struct pool *pool, const CUmemAccessDesc *desc, size_t count)
{
	struct device *device;
	CUresult r;

	for (size_t i = 0; i < count; i++) {
		r = pool_device(&desc[i].location, &device);
		if (r != CUDA_SUCCESS)
			return r;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		/* The device that has the memory cannot be locked out. */
		if (device == pool->device && desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

CALL(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc *desc, size_t count)
{
	struct device *device;
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!desc && count > 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = access_check(pool, desc, count);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	for (size_t i = 0; i < count; i++) {
		if (pool_device(&desc[i].location, &device) != CUDA_SUCCESS)
			continue;
		pool->readers &= ~(1ULL << device->ordinal);
		pool->writers &= ~(1ULL << device->ordinal);
		if (desc[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
			pool->readers |= 1ULL << device->ordinal;
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			pool->writers |= 1ULL << device->ordinal;
	}
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

CALL(cuMemPoolGetAccess, CUmemAccess_flags *ret, CUmemoryPool handle, CUmemLocation *location)
{
	struct device *device;
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !location)
		return CUDA_ERROR_INVALID_VALUE;

	r = pool_device(location, &device);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	if (pool->writers >> device->ordinal & 1)
		*ret = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else if (pool->readers >> device->ordinal & 1)
		*ret = CU_MEM_ACCESS_FLAGS_PROT_READ;
	else
		*ret = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

/* Allocating and freeing in the order of a stream */

static CUresult alloc_on(struct stream *stream, struct pool *pool, size_t bytes, CUdeviceptr *ret)
{
	struct memory *memory;
	CUresult r;

	if (stream_is_capturing(stream))
		return stream_capture_alloc(stream, bytes, ret);
	if (pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = pool_alloc(pool, bytes, &memory);
	if (r == CUDA_ERROR_OUT_OF_MEMORY) {
		/* Some may come free when the stream has done what it was given. */
		r = stream_synchronize(stream);
		if (r == CUDA_SUCCESS)
			r = pool_alloc(pool, bytes, &memory);
	}
	if (r != CUDA_SUCCESS)
		return r;

	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}

static CUresult alloc_begin(CUdeviceptr *ret, size_t bytes, CUstream handle,
			    enum stream_default dflt, struct stream **ret_stream)
{
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = stream_find(handle, dflt, ret_stream);
	return r != CUDA_SUCCESS ? r : context_error(stream_context(*ret_stream));
}

CALL_TWINS(cuMemAllocAsync, _ptsz, (CUdeviceptr *ret, size_t bytes, CUstream handle),
	   (ret, bytes, handle))
{
	struct stream *stream;
	struct pool *pool;
	CUresult r;

	r = alloc_begin(ret, bytes, handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = current_pool(stream_context(stream)->device, &pool);
	return r != CUDA_SUCCESS ? r : alloc_on(stream, pool, bytes, ret);
}

CALL_TWINS(cuMemAllocFromPoolAsync, _ptsz,
	   (CUdeviceptr *ret, size_t bytes, CUmemoryPool pool_handle, CUstream handle),
	   (ret, bytes, pool_handle, handle))
{
	struct stream *stream;
	struct pool *pool;
	CUresult r;

	r = alloc_begin(ret, bytes, handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = pool_find(pool_handle, &pool);
	return r != CUDA_SUCCESS ? r : alloc_on(stream, pool, bytes, ret);
}

struct free_work {
	struct memory *memory;
};

/* All happens on release, so that memory is freed even if the stream is given up before. */
static CUresult free_run(struct context *ctx, void *params)
{
	return CUDA_SUCCESS;
}

static void free_release(void *params)
{
	struct free_work *work = params;

	work->memory->end(work->memory);
}

static const struct work_class work_free = {
	.type = WORK_NO_NODE,
	.size = sizeof(struct free_work),
	.run = free_run,
	.release = free_release,
	.always = true,
};

CALL_TWINS(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream handle), (dptr, handle))
{
	struct stream *stream;
	struct free_work work;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r == CUDA_SUCCESS)
		r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (stream_is_capturing(stream))
		return stream_capture_free(stream, dptr);

	if (graph_memory_exists(dptr))
		return graph_memory_free_async(dptr, stream);

	work.memory = memory_claim(dptr, 1U << MEMORY_POOL | 1U << MEMORY_POOL_IMPORT);
	if (!work.memory)
		return CUDA_ERROR_INVALID_VALUE;

	/*
	 * Without memory for the queue the work may have been released, so the claim stays. Any
	 * other refusal comes before.
	 */
	r = stream_submit(stream, &work_free, &work);
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_OUT_OF_MEMORY)
		work.memory->is_freed = false;
	return r;
}

/* Between processes: a pool is the exporter's file, its memory are tickets for parts of it. */

static bool is_shareable(const struct pool *pool)
{
	return pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

CALL(cuMemPoolExportToShareableHandle, void *ret, CUmemoryPool handle,
     CUmemAllocationHandleType type, unsigned long long flags)
{
	struct pool *pool;
	struct vram *vram;
	CUresult r;
	int fd;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !is_shareable(pool) || pool->fd >= 0)
		return CUDA_ERROR_INVALID_VALUE;

	vram = memory_vram(pool->device);
	if (!vram)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = fcntl(vram_file(vram), F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;

	*(int *)ret = fd;
	return CUDA_SUCCESS;
}

/* Reads off the file's name which device's memory it is. */
static struct device *file_device(int fd)
{
	char path[64], name[128];
	unsigned index;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return NULL;

	name[n] = '\0';
	if (sscanf(name, POOL_FILE_LINK, &index) != 1)
		return NULL;

	for (unsigned i = 0; i < driver.n_devices; i++)
		if (driver.devices[i].index == index)
			return &driver.devices[i];
	return NULL;
}

CALL(cuMemPoolImportFromShareableHandle, CUmemoryPool *ret, void *shared,
     CUmemAllocationHandleType type, unsigned long long flags)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	struct device *device;
	struct pool *pool;
	CUresult r;
	int fd;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	device = file_device((int)(intptr_t)shared);
	if (!ret || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !device)
		return CUDA_ERROR_INVALID_VALUE;

	fd = fcntl((int)(intptr_t)shared, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;

	props.location.id = device->ordinal;
	r = pool_new(device, &props, &pool);
	if (r != CUDA_SUCCESS) {
		close(fd);
		return r;
	}

	pool->fd = fd;
	*ret = pool->handle;
	return CUDA_SUCCESS;
}

static CUresult pointer_export(CUdeviceptr dptr, struct pool_ticket *ret)
{
	struct memory *memory = memory_find(dptr);
	struct vram_range *range;

	if (!memory || memory->is_freed || memory_kind(memory) != MEMORY_POOL ||
	    !is_shareable(memory->owner))
		return CUDA_ERROR_INVALID_VALUE;

	range = &memory->range;
	if (share_export(vram_file(range->vram), vram_offset(range), range->span, memory->id,
			 &ret->ticket) < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;

	range->is_exported = true;
	ret->size = memory_size(memory);
	return CUDA_SUCCESS;
}

CALL(cuMemPoolExportPointer, CUmemPoolPtrExportData *ret, CUdeviceptr dptr)
{
	struct pool_ticket ticket;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	r = pointer_export(dptr, &ticket);
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS)
		return r;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

CALL(cuMemPoolImportPointer, CUdeviceptr *ret, CUmemoryPool handle, CUmemPoolPtrExportData *data)
{
	struct share_import import;
	struct pool_ticket ticket;
	struct memory *memory;
	struct pool *pool;
	CUresult r;

	r = pool_find(handle, &pool);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !data || pool->fd < 0)
		return CUDA_ERROR_INVALID_VALUE;

	memcpy(&ticket, data, sizeof(ticket));
	if (share_import_through(pool->fd, &ticket.ticket, &import))
		return CUDA_ERROR_INVALID_VALUE;

	r = import_new(MEMORY_POOL_IMPORT, /* ctx= */ NULL, pool->device, &import, &ticket.ticket,
		       ticket.size, &memory);
	if (r != CUDA_SUCCESS) {
		share_close(&import);
		return r;
	}

	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}
