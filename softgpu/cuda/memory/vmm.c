// SPDX-License-Identifier: Apache-2.0
/*
 * Virtual memory: address space reserved apart from the memory that is mapped there.
 *
 *	cuMemAddressReserve	struct reservation: addresses without memory
 *	cuMemCreate		struct physical: memory without an address (physical.h)
 *	cuMemMap		struct mapping: the one in the other
 *	cuMemSetAccess		which devices may touch a mapping
 *
 * memory_lock guards everything here.
 */
#include <stdlib.h>

#include "softgpu/cuda/memory/location.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/memory/physical.h"
#include "softgpu/mem/section.h"

#define GRANULARITY SPACE_BLOCK_SIZE

/* For host memory in access masks, which have a bit for each device. */
#define ACCESS_HOST 63

struct mapping {
	struct memory memory;
	struct physical *physical;
	struct access access;
};

struct reservation {
	uint64_t addr, size;
	struct reservation *next;
};

static struct reservation *reservations;

static bool is_aligned(uint64_t n)
{
	return n % GRANULARITY == 0;
}

/* Addresses without memory */

CALL(cuMemAddressReserve, CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr hint,
     unsigned long long flags)
{
	struct reservation *reservation;
	CUresult r;
	int error;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || size == 0 || !is_aligned(size) || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	if (size >> SPACE_BITS || alignment >> SPACE_BITS)
		return CUDA_ERROR_OUT_OF_MEMORY;

	reservation = calloc(1, sizeof(*reservation));
	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;

	reservation->size = size;
	error = section_reserve(hint, size, alignment, /* flags= */ 0, &reservation->addr);
	if (error < 0) {
		free(reservation);
		return memory_error(error);
	}

	pthread_mutex_lock(&memory_lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_mutex_unlock(&memory_lock);
	*ret = reservation->addr;
	return CUDA_SUCCESS;
}

/* The next mapping at or after @addr and before @end. Blocks that are not mapped are skipped. */
static struct mapping *mapping_from(uint64_t addr, uint64_t end)
{
	struct memory *memory;

	for (; addr < end; addr += GRANULARITY) {
		memory = memory_find(addr);
		if (memory && memory_kind(memory) == MEMORY_VIRTUAL)
			return (struct mapping *)memory;
	}

	return NULL;
}

CALL(cuMemAddressFree, CUdeviceptr addr, size_t size)
{
	struct reservation **at, *reservation = NULL;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	for (at = &reservations; *at; at = &(*at)->next)
		if ((*at)->addr == addr && (*at)->size == size)
			break;
	if (*at && !mapping_from(addr, addr + size)) {
		reservation = *at;
		*at = reservation->next;
	}
	pthread_mutex_unlock(&memory_lock);
	if (!reservation)
		return CUDA_ERROR_INVALID_VALUE;

	section_free(addr, size);
	free(reservation);
	return CUDA_SUCCESS;
}

bool memory_is_reserved(uint64_t addr, uint64_t size)
{
	const struct reservation *reservation;

	for (reservation = reservations; reservation; reservation = reservation->next)
		if (addr >= reservation->addr && size <= reservation->size &&
		    addr - reservation->addr <= reservation->size - size)
			return true;

	return false;
}

/* The one in the other */

static CUresult mapping_make(struct mapping *mapping, uint64_t addr, uint64_t size, uint64_t offset)
{
	struct physical *physical = mapping->physical;
	uint64_t file_offset;
	int fd = physical_file(physical, &file_offset), r;

	mapping->memory.range.space.addr = addr;
	mapping->memory.range.space.size = size;
	mapping->memory.owner = mapping;

	r = section_map(addr, size, fd, file_offset + offset, /* accessible= */ true);
	if (r < 0)
		return memory_error(r);

	memory_enter(&mapping->memory, MEMORY_VIRTUAL, /* ctx= */ NULL, physical->device);
	r = space_add(&mapping->memory.range.space, addr, size, SPACE_NONE, SPACE_EVERYONE);
	if (r < 0) {
		section_unmap(addr, size);
		return memory_error(r);
	}

	physical->n_mappings++;
	return CUDA_SUCCESS;
}

static CUresult map(struct mapping *mapping, uint64_t addr, uint64_t size, uint64_t offset,
		    CUmemGenericAllocationHandle handle)
{
	uint64_t end;

	mapping->physical = physical_find(handle);
	if (!mapping->physical || __builtin_add_overflow(offset, size, &end) ||
	    end > mapping->physical->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_is_reserved(addr, size) || mapping_from(addr, addr + size))
		return CUDA_ERROR_INVALID_VALUE;

	return mapping_make(mapping, addr, size, offset);
}

CALL(cuMemMap, CUdeviceptr addr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
     unsigned long long flags)
{
	struct mapping *mapping;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (flags || size == 0 || !is_aligned(addr | size | offset))
		return CUDA_ERROR_INVALID_VALUE;

	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&memory_lock);
	r = map(mapping, addr, size, offset, handle);
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS)
		free(mapping);

	return r;
}

/* Is the range made of whole mappings without a hole? */
static bool is_whole_mappings(uint64_t addr, uint64_t size)
{
	uint64_t end = addr + size;
	const struct memory *memory;

	while (addr < end) {
		memory = memory_find(addr);
		if (!memory || memory_kind(memory) != MEMORY_VIRTUAL ||
		    memory_addr(memory) != addr || memory_size(memory) > end - addr)
			return false;
		addr += memory_size(memory);
	}

	return true;
}

static bool is_range(uint64_t addr, uint64_t size)
{
	return size > 0 && is_aligned(addr | size) && size >> SPACE_BITS == 0 &&
	       (addr + size) >> SPACE_BITS == 0;
}

static void unmap(uint64_t addr, uint64_t size)
{
	struct mapping *mapping;
	uint64_t end = addr + size;

	while ((mapping = mapping_from(addr, end))) {
		addr = memory_addr(&mapping->memory) + memory_size(&mapping->memory);
		space_remove(memory_addr(&mapping->memory), memory_size(&mapping->memory));
		section_unmap(memory_addr(&mapping->memory), memory_size(&mapping->memory));
		mapping->physical->n_mappings--;
		physical_put(mapping->physical);
		free(mapping);
	}
}

CALL(cuMemUnmap, CUdeviceptr addr, size_t size)
{
	struct context *ctx;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!is_range(addr, size))
		return CUDA_ERROR_INVALID_VALUE;

	/* What runs may use it, and touching what is not mapped would end the process. */
	if (context_current(&ctx) == CUDA_SUCCESS)
		context_synchronize(ctx);

	pthread_mutex_lock(&memory_lock);
	if (is_whole_mappings(addr, size))
		unmap(addr, size);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *ret, void *addr)
{
	struct memory *memory;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find((uint64_t)addr);
	if (memory && memory_kind(memory) == MEMORY_VIRTUAL) {
		struct physical *physical = ((struct mapping *)memory->owner)->physical;

		physical->n_handles++;
		*ret = physical->handle;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

/* Access */

/* The bit of a location in struct access. */
static CUresult location_bit(const CUmemLocation *location, uint64_t *ret)
{
	struct device *device;
	CUresult r;

	if (location_is_host(location)) {
		*ret = 1ULL << ACCESS_HOST;
		return CUDA_SUCCESS;
	}
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;

	r = device_find(location->id, &device);
	if (r == CUDA_SUCCESS)
		*ret = 1ULL << device->ordinal;
	return r;
}

static CUresult access_check(const CUmemAccessDesc *desc, size_t count)
{
	uint64_t bit;
	CUresult r;

	for (size_t i = 0; i < count; i++) {
		r = location_bit(&desc[i].location, &bit);
		if (r != CUDA_SUCCESS)
			return r;
		if (!access_flags_are_valid(desc[i].flags))
			return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

static void mapping_protect(struct mapping *mapping)
{
	uint64_t devices = ~(1ULL << ACCESS_HOST);
	uint64_t readers = mapping->access.readers & devices;
	uint64_t writers = mapping->access.writers & devices;
	enum space_access access = SPACE_NONE;

	/* Of any device; each sees what it may do itself. */
	if (writers)
		access = SPACE_READ_WRITE;
	else if (readers)
		access = SPACE_READ;
	space_protect(memory_addr(&mapping->memory), memory_size(&mapping->memory), access,
		      space_named(readers, writers));
}

/* Everything has been checked. */
static void set_access(uint64_t addr, uint64_t size, const CUmemAccessDesc *desc, size_t count)
{
	uint64_t end = addr + size, bit;
	struct mapping *mapping;

	while ((mapping = mapping_from(addr, end))) {
		for (size_t i = 0; i < count; i++)
			if (location_bit(&desc[i].location, &bit) == CUDA_SUCCESS)
				access_set(&mapping->access, bit, desc[i].flags);
		mapping_protect(mapping);
		addr = memory_addr(&mapping->memory) + memory_size(&mapping->memory);
	}
}

CALL(cuMemSetAccess, CUdeviceptr addr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!desc || count == 0 || !is_range(addr, size))
		return CUDA_ERROR_INVALID_VALUE;

	r = access_check(desc, count);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	if (is_whole_mappings(addr, size))
		set_access(addr, size, desc, count);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemGetAccess, unsigned long long *ret, const CUmemLocation *location, CUdeviceptr addr)
{
	struct memory *memory;
	uint64_t bit;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !location)
		return CUDA_ERROR_INVALID_VALUE;

	r = location_bit(location, &bit);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find(addr);
	if (memory && memory_kind(memory) == MEMORY_VIRTUAL)
		*ret = access_get(&((struct mapping *)memory->owner)->access, bit);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}
