// SPDX-License-Identifier: Apache-2.0
/*
 * Pools between processes. A pool is shared as the file of its device's memory in the exporter; an
 * allocation in it is shared as a ticket (softgpu/mem/share.h) for a part of that file. An imported
 * pool has nothing to allocate.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/cuda/memory/import.h"
#include "softgpu/cuda/memory/pool.h"

/* What a pool's memory is exported as. */
struct pool_ticket {
	struct share_ticket ticket;
	uint64_t size;
};

_Static_assert(sizeof(struct pool_ticket) <= sizeof(CUmemPoolPtrExportData), "fits");

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

	if (!ret || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !memory_file_device((int)(intptr_t)shared, MEMORY_FILE, &device) || !device)
		return CUDA_ERROR_INVALID_VALUE;

	fd = fcntl((int)(intptr_t)shared, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;

	props.location.id = device->ordinal;
	pthread_mutex_lock(&memory_lock);
	r = pool_new(device, &props, &pool);
	pthread_mutex_unlock(&memory_lock);
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
