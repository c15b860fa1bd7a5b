// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that graphs allocate.
 *
 * A memory node has its address from its creation on, so that other nodes can name it: a
 * reservation of address space. Device memory is mapped there, and charged, when the graph is
 * launched. It stays mapped after it was freed, for the next launch, until the program trims the
 * device's graph memory or the node is gone. "In use" is what was allocated and not freed,
 * "reserved" what is mapped.
 */
#include <stdlib.h>

#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream-queue.h"

#define GRANULE (2ULL << 20)

/* The calls on virtual memory that this rests on. */
CUresult impl_cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr hint,
				  unsigned long long flags);
CUresult impl_cuMemAddressFree(CUdeviceptr addr, size_t size);
CUresult impl_cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size,
			  const CUmemAllocationProp *prop, unsigned long long flags);
CUresult impl_cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult impl_cuMemMap(CUdeviceptr addr, size_t size, size_t offset,
		       CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult impl_cuMemUnmap(CUdeviceptr addr, size_t size);
CUresult impl_cuMemSetAccess(CUdeviceptr addr, size_t size, const CUmemAccessDesc *desc,
			     size_t count);

/**
 * struct graph_memory - the memory of a node
 * @has_node:	the node exists; else the memory goes with its last use
 * @is_claimed:	there is an executable graph that allocates it
 */
struct graph_memory {
	struct graph_memory *next;
	struct device *device;
	CUdeviceptr addr;
	size_t size;
	bool is_mapped, in_use, has_node, is_claimed;
};

/* Bytes of a device's graph memory. */
struct graph_memory_use {
	uint64_t used, used_high, reserved, reserved_high;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct graph_memory *memories;
static struct graph_memory_use uses[SOFTGPU_DEVICES_MAX];

static struct graph_memory_use *use_of(const struct graph_memory *memory)
{
	return &uses[memory->device->ordinal];
}

static struct graph_memory *memory_at(CUdeviceptr addr)
{
	struct graph_memory *memory;

	for (memory = memories; memory; memory = memory->next)
		if (memory->addr == addr)
			break;
	return memory;
}

static void raise_high(uint64_t *high, uint64_t now)
{
	if (now > *high)
		*high = now;
}

static CUresult back(const struct graph_memory *memory)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, memory->device->ordinal },
	};
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUresult r;

	r = impl_cuMemCreate(&handle, memory->size, &prop, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = impl_cuMemMap(memory->addr, memory->size, 0, handle, 0);
	if (r == CUDA_SUCCESS) {
		r = impl_cuMemSetAccess(memory->addr, memory->size, &access, 1);
		if (r != CUDA_SUCCESS)
			impl_cuMemUnmap(memory->addr, memory->size);
	}
	/* From here on the mapping alone keeps it. */
	impl_cuMemRelease(handle);
	return r;
}

static CUresult memory_map(struct graph_memory *memory)
{
	CUresult r;

	if (memory->is_mapped)
		return CUDA_SUCCESS;
	r = back(memory);
	if (r != CUDA_SUCCESS)
		return r;
	memory->is_mapped = true;
	use_of(memory)->reserved += memory->size;
	raise_high(&use_of(memory)->reserved_high, use_of(memory)->reserved);
	return CUDA_SUCCESS;
}

static void memory_unmap(struct graph_memory *memory)
{
	if (!memory->is_mapped || memory->in_use)
		return;
	impl_cuMemUnmap(memory->addr, memory->size);
	memory->is_mapped = false;
	use_of(memory)->reserved -= memory->size;
}

static void memory_begin_use(struct graph_memory *memory)
{
	if (memory->in_use)
		return;
	memory->in_use = true;
	use_of(memory)->used += memory->size;
	raise_high(&use_of(memory)->used_high, use_of(memory)->used);
}

/* Ends a memory that neither a node nor the program has any more. */
static void memory_end_if_unused(struct graph_memory *memory)
{
	struct graph_memory **at = &memories;

	if (memory->has_node || memory->in_use)
		return;
	memory_unmap(memory);
	impl_cuMemAddressFree(memory->addr, memory->size);
	while (*at != memory)
		at = &(*at)->next;
	*at = memory->next;
	free(memory);
}

static void memory_end_use(struct graph_memory *memory)
{
	if (!memory->in_use)
		return;
	memory->in_use = false;
	use_of(memory)->used -= memory->size;
	memory_end_if_unused(memory);
}

CUresult graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct graph_memory *memory;
	struct device *device;
	CUresult r;

	if (params->bytesize == 0 || params->bytesize > SIZE_MAX - GRANULE ||
	    params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	r = device_find(params->poolProps.location.id, &device);
	if (r != CUDA_SUCCESS)
		return r;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory->device = device;
	memory->size = (params->bytesize + GRANULE - 1) & ~(GRANULE - 1);
	memory->has_node = true;
	r = impl_cuMemAddressReserve(&memory->addr, memory->size, 0, 0, 0);
	if (r != CUDA_SUCCESS) {
		free(memory);
		return r;
	}

	pthread_mutex_lock(&lock);
	memory->next = memories;
	memories = memory;
	pthread_mutex_unlock(&lock);
	params->dptr = memory->addr;
	return CUDA_SUCCESS;
}

void graph_memory_drop(CUdeviceptr dptr)
{
	struct graph_memory *memory;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	if (memory) {
		memory->has_node = false;
		memory_end_if_unused(memory);
	}
	pthread_mutex_unlock(&lock);
}

bool graph_memory_exists(CUdeviceptr dptr)
{
	bool exists;

	pthread_mutex_lock(&lock);
	exists = memory_at(dptr);
	pthread_mutex_unlock(&lock);
	return exists;
}

bool graph_memory_covers(uint64_t addr, uint64_t bytes)
{
	struct graph_memory *memory;

	pthread_mutex_lock(&lock);
	for (memory = memories; memory; memory = memory->next)
		if (addr >= memory->addr && addr - memory->addr < memory->size &&
		    bytes <= memory->size - (addr - memory->addr))
			break;
	pthread_mutex_unlock(&lock);
	return memory;
}

bool graph_memory_claim(CUdeviceptr dptr)
{
	struct graph_memory *memory;
	bool claimed;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	claimed = memory && !memory->is_claimed;
	if (claimed)
		memory->is_claimed = true;
	pthread_mutex_unlock(&lock);
	return claimed;
}

void graph_memory_unclaim(CUdeviceptr dptr)
{
	struct graph_memory *memory;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	if (memory)
		memory->is_claimed = false;
	pthread_mutex_unlock(&lock);
}

CUresult graph_memory_back(CUdeviceptr dptr, bool may_be_in_use)
{
	struct graph_memory *memory;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	if (memory && (may_be_in_use || !memory->in_use))
		r = memory_map(memory);
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult graph_memory_take(CUdeviceptr dptr)
{
	struct graph_memory *memory;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	if (memory) {
		r = memory_map(memory);
		if (r == CUDA_SUCCESS)
			memory_begin_use(memory);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

bool graph_memory_free(CUdeviceptr dptr)
{
	struct graph_memory *memory;
	bool freed;

	pthread_mutex_lock(&lock);
	memory = memory_at(dptr);
	freed = memory && memory->in_use;
	if (freed)
		memory_end_use(memory);
	pthread_mutex_unlock(&lock);
	return freed;
}

CUresult graph_memory_free_async(CUdeviceptr dptr, struct stream *stream)
{
	struct graph_memory_work work = { dptr };

	return stream_submit(stream, &work_graph_free, &work);
}

/* The launch before has freed it meanwhile, perhaps. It is mapped since this one was launched. */
static CUresult alloc_run(_unused_ struct context *ctx, void *params)
{
	const struct graph_memory_work *work = params;

	return graph_memory_take(work->dptr);
}

static CUresult free_run(_unused_ struct context *ctx, void *params)
{
	const struct graph_memory_work *work = params;

	graph_memory_free(work->dptr);
	return CUDA_SUCCESS;
}

const struct work_class work_graph_alloc = {
	.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
	.size = sizeof(struct graph_memory_work),
	.run = alloc_run,
};

const struct work_class work_graph_free = {
	.type = CU_GRAPH_NODE_TYPE_MEM_FREE,
	.size = sizeof(struct graph_memory_work),
	.run = free_run,
};

CALL(cuDeviceGraphMemTrim, CUdevice ordinal)
{
	struct device *device;
	CUresult r = device_find(ordinal, &device);

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	for (struct graph_memory *memory = memories; memory; memory = memory->next)
		if (memory->device == device)
			memory_unmap(memory);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The number of an attribute, and which one a high-water mark goes back to. NULL: no attribute. */
static uint64_t *use_attribute(struct graph_memory_use *use, CUgraphMem_attribute attribute,
			       uint64_t **ret_now)
{
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		return &use->used;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*ret_now = &use->used;
		return &use->used_high;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		return &use->reserved;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*ret_now = &use->reserved;
		return &use->reserved_high;
	default:
		return NULL;
	}
}

CALL(cuDeviceGetGraphMemAttribute, CUdevice ordinal, CUgraphMem_attribute attribute, void *ret)
{
	uint64_t *number, *now = NULL;
	struct device *device;
	CUresult r = device_find(ordinal, &device);

	if (r != CUDA_SUCCESS)
		return r;
	number = use_attribute(&uses[device->ordinal], attribute, &now);
	if (!ret || !number)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*(cuuint64_t *)ret = *number;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* High-water marks can be set back, which means to what is used now. */
CALL(cuDeviceSetGraphMemAttribute, CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
	uint64_t *number, *now = NULL;
	struct device *device;
	CUresult r = device_find(ordinal, &device);

	if (r != CUDA_SUCCESS)
		return r;
	number = use_attribute(&uses[device->ordinal], attribute, &now);
	if (!value || !number || !now || *(const cuuint64_t *)value != 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	*number = *now;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}
