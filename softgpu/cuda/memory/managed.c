// SPDX-License-Identifier: Apache-2.0
/*
 * Managed memory: one address for host and devices.
 *
 * It is host memory that kernels may touch. Where it is resident is a matter of books: hardware
 * moves pages when they are touched, which nobody sees here, so memory counts as the host's until a
 * prefetch moves it to a device, and is charged to that device from then on. What does not fit
 * stays where it is, as with hardware that oversubscribes. Advice is kept for whole allocations.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/memory/location.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/cuda/rm.h"
#include "softgpu/state/state.h"

/* A place in the books of blocks: the host, or an ordinal and one. */
#define PLACE_HOST 0

/* The host's bit among those who were said to access memory. */
#define ACCESSED_HOST 63

struct managed {
	bool read_mostly;
	CUmemLocation preferred, prefetched; /* type INVALID: none */
	uint64_t accessed_by;
	uint64_t n_blocks;
	uint8_t places[]; /* of each block of the allocation */
};

static void block_leave(struct managed *managed, uint64_t block)
{
	unsigned place = managed->places[block];

	if (place != PLACE_HOST)
		state_uncharge(driver.state, driver.devices[place - 1].index, SPACE_BLOCK_SIZE);
	managed->places[block] = PLACE_HOST;
}

static void block_move(struct managed *managed, uint64_t block, unsigned place)
{
	if (managed->places[block] == place)
		return;

	if (place != PLACE_HOST && rm_charge(driver.devices[place - 1].index, SPACE_BLOCK_SIZE))
		return;

	block_leave(managed, block);
	managed->places[block] = place;
}

static void managed_end(struct memory *memory)
{
	struct managed *managed = memory->owner;

	for (uint64_t block = 0; block < managed->n_blocks; block++)
		block_leave(managed, block);
	memory_free(memory);
	free(managed);
}

CALL(cuMemAllocManaged, CUdeviceptr *ret, size_t bytes, unsigned flags)
{
	struct managed *managed;
	struct memory *memory;
	struct context *ctx;
	uint64_t n_blocks;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;

	r = stream_capture_check(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (bytes >> SPACE_BITS)
		return CUDA_ERROR_OUT_OF_MEMORY;

	n_blocks = (bytes + SPACE_BLOCK_SIZE - 1) / SPACE_BLOCK_SIZE;
	managed = calloc(1, sizeof(*managed) + n_blocks);
	if (!managed)
		return CUDA_ERROR_OUT_OF_MEMORY;

	managed->n_blocks = n_blocks;
	r = memory_new(MEMORY_MANAGED, memory_vram_host(), ctx, ctx->device, bytes, &memory);
	if (r != CUDA_SUCCESS) {
		free(managed);
		return r;
	}

	memory->flags = flags;
	memory->owner = managed;
	memory->end = managed_end;
	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}

/* The managed allocation that has all of the range; the caller has memory_lock. */
static struct memory *managed_find(uint64_t addr, uint64_t bytes)
{
	struct memory *memory = memory_find(addr);

	if (!memory || memory->is_freed || memory_kind(memory) != MEMORY_MANAGED || bytes == 0 ||
	    bytes > memory_size(memory) - (addr - memory_addr(memory)))
		return NULL;

	return memory;
}

static CUresult location_check(const CUmemLocation *location)
{
	struct device *device;

	if (location_is_host(location))
		return CUDA_SUCCESS;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;

	return device_find(location->id, &device);
}

/* What calls without suffix say with a device, or -1 for the host. */
static CUmemLocation location_of(CUdevice ordinal)
{
	if (ordinal == CU_DEVICE_CPU)
		return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };

	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal };
}

/* Prefetching */

struct prefetch_work {
	uint64_t addr, bytes;
	CUmemLocation to;
};

static CUresult prefetch_run(_unused_ struct context *ctx, void *params)
{
	const struct prefetch_work *work = params;
	unsigned place = location_is_host(&work->to) ? PLACE_HOST : work->to.id + 1;
	struct managed *managed;
	struct memory *memory;
	uint64_t first, last;

	pthread_mutex_lock(&memory_lock);
	memory = managed_find(work->addr, work->bytes);
	if (memory) {
		managed = memory->owner;
		first = (work->addr - memory_addr(memory)) / SPACE_BLOCK_SIZE;
		last = (work->addr + work->bytes - 1 - memory_addr(memory)) / SPACE_BLOCK_SIZE;
		for (uint64_t block = first; block <= last; block++)
			block_move(managed, block, place);
		managed->prefetched = work->to;
	}
	pthread_mutex_unlock(&memory_lock);

	return CUDA_SUCCESS;
}

static const struct work_class work_prefetch = {
	.type = WORK_NO_NODE,
	.size = sizeof(struct prefetch_work),
	.run = prefetch_run,
};

static CUresult managed_check(uint64_t addr, uint64_t bytes)
{
	bool found;

	pthread_mutex_lock(&memory_lock);
	found = managed_find(addr, bytes);
	pthread_mutex_unlock(&memory_lock);

	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult prefetch(CUstream handle, enum stream_default dflt, CUdeviceptr addr, size_t bytes,
			 CUmemLocation to, unsigned flags)
{
	struct prefetch_work work = { addr, bytes, to };
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;

	r = location_check(&to);
	if (r == CUDA_SUCCESS)
		r = managed_check(addr, bytes);
	return r != CUDA_SUCCESS ? r : stream_enqueue(handle, dflt, &work_prefetch, &work);
}

CALL_TWINS(cuMemPrefetchAsync, _ptsz,
	   (CUdeviceptr addr, size_t bytes, CUdevice device, CUstream stream),
	   (addr, bytes, device, stream))
{
	return prefetch(stream, dflt, addr, bytes, location_of(device), /* flags= */ 0);
}

CALL_TWINS(cuMemPrefetchAsync_v2, _ptsz,
	   (CUdeviceptr addr, size_t bytes, CUmemLocation to, unsigned flags, CUstream stream),
	   (addr, bytes, to, flags, stream))
{
	return prefetch(stream, dflt, addr, bytes, to, flags);
}

/* Ranges with the locations that they go to; a location is for all from its index on. */
static CUresult prefetch_batch(CUstream stream, enum stream_default dflt, const CUdeviceptr *addrs,
			       const size_t *sizes, size_t count, const CUmemLocation *locations,
			       const size_t *indices, size_t n_locations, unsigned long long flags)
{
	size_t at = 0;
	CUresult r;

	if (!addrs || !sizes || !locations || !indices || n_locations == 0 || count == 0 ||
	    n_locations > count || indices[0] != 0 || flags)
		return CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < count; i++) {
		if (at + 1 < n_locations && indices[at + 1] <= i)
			at++;
		r = prefetch(stream, dflt, addrs[i], sizes[i], locations[at], /* flags= */ 0);
		if (r != CUDA_SUCCESS)
			return r;
	}

	return CUDA_SUCCESS;
}

CALL_TWINS(cuMemPrefetchBatchAsync, _ptsz,
	   (CUdeviceptr * addrs, size_t *sizes, size_t count, CUmemLocation *locations,
	    size_t *indices, size_t n_locations, unsigned long long flags, CUstream stream),
	   (addrs, sizes, count, locations, indices, n_locations, flags, stream))
{
	return prefetch_batch(stream, dflt, addrs, sizes, count, locations, indices, n_locations,
			      flags);
}

/* What is discarded may keep its contents. */
CALL_TWINS(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
	   (CUdeviceptr * addrs, size_t *sizes, size_t count, CUmemLocation *locations,
	    size_t *indices, size_t n_locations, unsigned long long flags, CUstream stream),
	   (addrs, sizes, count, locations, indices, n_locations, flags, stream))
{
	return prefetch_batch(stream, dflt, addrs, sizes, count, locations, indices, n_locations,
			      flags);
}

CALL_TWINS(cuMemDiscardBatchAsync, _ptsz,
	   (CUdeviceptr * addrs, size_t *sizes, size_t count, unsigned long long flags,
	    CUstream handle),
	   (addrs, sizes, count, flags, handle))
{
	struct stream *stream;
	CUresult r = stream_find_with_context(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (!addrs || !sizes || count == 0 || flags)
		return CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++)
		r = managed_check(addrs[i], sizes[i]);
	return r;
}

/* Attaching is about host access while kernels run, which never needs leave here. */
CALL_TWINS(cuStreamAttachMemAsync, _ptsz,
	   (CUstream handle, CUdeviceptr addr, size_t bytes, unsigned flags),
	   (handle, addr, bytes, flags))
{
	struct stream *stream;
	struct memory *memory;
	CUresult r = stream_find_with_context(handle, dflt, &stream);

	if (r != CUDA_SUCCESS)
		return r;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;

	/* A length of 0 means the whole allocation, and nothing else is allowed but its size. */
	pthread_mutex_lock(&memory_lock);
	memory = managed_find(addr, bytes ? bytes : 1);
	if (!memory || memory_addr(memory) != addr || (bytes && bytes != memory_size(memory)))
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

/* Advice */

static uint64_t accessed_bit(const CUmemLocation *location)
{
	return 1ULL << (location_is_host(location) ? ACCESSED_HOST : location->id);
}

static void advice_take(struct managed *managed, CUmem_advise advice, const CUmemLocation *location)
{
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		managed->read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		managed->preferred = *location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		managed->preferred = (CUmemLocation){ 0 };
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		managed->accessed_by |= accessed_bit(location);
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		managed->accessed_by &= ~accessed_bit(location);
		break;
	}
}

/* Does the advice say something about a place? */
static bool advice_has_location(CUmem_advise advice)
{
	return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
	       advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CALL(cuMemAdvise_v2, CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
	struct memory *memory;
	CUresult r;

	r = context_need();
	if (r == CUDA_SUCCESS && advice_has_location(advice))
		r = location_check(&location);
	if (r != CUDA_SUCCESS)
		return r;
	if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = managed_find(addr, bytes);
	if (memory)
		advice_take(memory->owner, advice, &location);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemAdvise, CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUdevice device)
{
	return impl_cuMemAdvise_v2(addr, bytes, advice, location_of(device));
}

/* Asking */

static int location_number(const CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_INVALID)
		return CU_DEVICE_INVALID;

	return location_is_host(location) ? CU_DEVICE_CPU : location->id;
}

static CUresult accessors_get(const struct managed *managed, int *ret, size_t n)
{
	size_t found = 0;

	for (int bit = 0; bit <= ACCESSED_HOST && found < n; bit++)
		if (managed->accessed_by >> bit & 1)
			ret[found++] = bit == ACCESSED_HOST ? CU_DEVICE_CPU : bit;
	while (found < n)
		ret[found++] = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static CUresult attribute_get(const struct managed *managed, CUmem_range_attribute attribute,
			      int *ret, size_t size)
{
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return size % sizeof(int) ? CUDA_ERROR_INVALID_VALUE
					  : accessors_get(managed, ret, size / sizeof(int));
	if (size != sizeof(int))
		return CUDA_ERROR_INVALID_VALUE;

	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*ret = managed->read_mostly;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*ret = location_number(&managed->preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*ret = location_number(&managed->prefetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*ret = managed->preferred.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*ret = managed->preferred.id;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*ret = managed->prefetched.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*ret = managed->prefetched.id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

CALL(cuMemRangeGetAttributes, void **data, size_t *sizes, CUmem_range_attribute *attributes,
     size_t n, CUdeviceptr addr, size_t bytes)
{
	struct memory *memory;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!data || !sizes || !attributes || n == 0)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = managed_find(addr, bytes);
	if (!memory)
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
		r = data[i] && sizes[i]
			    ? attribute_get(memory->owner, attributes[i], data[i], sizes[i])
			    : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemRangeGetAttribute, void *data, size_t size, CUmem_range_attribute attribute,
     CUdeviceptr addr, size_t bytes)
{
	return impl_cuMemRangeGetAttributes(&data, &size, &attribute, /* n= */ 1, addr, bytes);
}
