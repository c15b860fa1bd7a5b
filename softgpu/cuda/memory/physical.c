// SPDX-License-Identifier: Apache-2.0
/*
 * Making, ending and sharing memory that has no address. physical.h says how it is kept.
 *
 * An importer is charged only when the creator is gone (softgpu/mem/share.h). Memory whose creator
 * has let go of it stays charged to him while an importer has it.
 */
#include "softgpu/cuda/memory/physical.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/cuda/memory/location.h"
#include "softgpu/cuda/rm.h"
#include "softgpu/state/state.h"

#define GRANULARITY SPACE_BLOCK_SIZE

struct physical *physical_find(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = handle_get(HANDLE_PHYSICAL, handle);

	/* A handle that was released stays in the table while its memory is mapped. */
	return physical && physical->n_handles > 0 ? physical : NULL;
}

/* The memory of an own file goes when nobody has it open, which the kernel sees to. */
static void own_file_done(void *arg)
{
	struct physical *physical = arg;

	if (physical->device)
		state_uncharge(driver.state, physical->device->index, physical->size);
	close(physical->owner);
	close(physical->fd);
	free(physical);
}

static void own_file_end(struct physical *physical)
{
	if (share_unexport(physical->fd, /* offset= */ 0, physical->size))
		share_keep(physical->fd, /* offset= */ 0, physical->size, own_file_done, physical);
	else
		own_file_done(physical);
}

void physical_put(struct physical *physical)
{
	if (physical->n_handles > 0 || physical->n_mappings > 0)
		return;

	handle_remove(HANDLE_PHYSICAL, physical->handle);
	switch (physical->backing) {
	case PHYSICAL_OWN_FILE:
		own_file_end(physical);
		return;
	case PHYSICAL_IMPORT:
		share_close(&physical->import);
		break;
	case PHYSICAL_PART:
		vram_release(&physical->range);
		break;
	}
	free(physical);
}

int physical_file(const struct physical *physical, uint64_t *ret_offset)
{
	*ret_offset = 0;
	switch (physical->backing) {
	case PHYSICAL_OWN_FILE:
		return physical->fd;
	case PHYSICAL_IMPORT:
		return physical->import.fd;
	case PHYSICAL_PART:
	default:
		*ret_offset = vram_offset(&physical->range);
		return vram_file(physical->range.vram);
	}
}

static CUresult prop_check(const CUmemAllocationProp *prop, struct device **ret)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;

	*ret = NULL;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
		return device_find(prop->location.id, ret);

	return location_is_host(&prop->location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemGetAllocationGranularity, size_t *ret, const CUmemAllocationProp *prop,
     CUmemAllocationGranularity_flags option)
{
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
		     option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;

	r = prop_check(prop, &device);
	if (r == CUDA_SUCCESS)
		*ret = GRANULARITY;
	return r;
}

static CUresult own_file_fill(struct physical *physical, const char *name)
{
	struct share_ticket ticket;
	int fd;

	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return memory_error(-errno);

	if (ftruncate(fd, physical->size) < 0 ||
	    share_export(fd, /* offset= */ 0, physical->size, /* serial= */ 0, &ticket) < 0 ||
	    share_own(fd, &physical->owner) < 0) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	physical->fd = fd;
	physical->backing = PHYSICAL_OWN_FILE;
	return CUDA_SUCCESS;
}

static CUresult own_file_make(struct physical *physical)
{
	struct device *device = physical->device;
	char name[32];
	CUresult r;

	while (device && rm_charge(device->index, physical->size))
		if (!memory_reclaim(device))
			return CUDA_ERROR_OUT_OF_MEMORY;

	snprintf(name, sizeof(name), PHYSICAL_FILE "-%d", device ? (int)device->index : -1);
	r = own_file_fill(physical, name);
	if (r != CUDA_SUCCESS && device)
		state_uncharge(driver.state, device->index, physical->size);
	return r;
}

static CUresult physical_fill(struct physical *physical)
{
	struct vram *vram;
	int r;

	if (physical->prop.requestedHandleTypes || !physical->device)
		return own_file_make(physical);

	vram = memory_vram(physical->device);
	if (!vram)
		return CUDA_ERROR_OUT_OF_MEMORY;

	do
		r = vram_alloc(vram, physical->size, SPACE_NONE, &physical->range);
	while (r == VRAM_E_FULL && memory_reclaim(physical->device));

	return memory_error(r);
}

/* Gives @physical its first handle; ends it if that fails. */
static CUresult physical_publish(struct physical *physical, CUmemGenericAllocationHandle *ret)
{
	CUresult r = CUDA_SUCCESS;

	physical->handle = handle_new(CUmemGenericAllocationHandle, HANDLE_PHYSICAL, physical);
	pthread_mutex_lock(&memory_lock);
	if (physical->handle) {
		physical->n_handles = 1;
		*ret = physical->handle;
	} else {
		physical_put(physical);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemCreate, CUmemGenericAllocationHandle *ret, size_t size, const CUmemAllocationProp *prop,
     unsigned long long flags)
{
	struct physical *physical;
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || size == 0 || size % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;

	r = prop_check(prop, &device);
	if (r != CUDA_SUCCESS)
		return r;

	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;

	physical->prop = *prop;
	physical->device = device;
	physical->size = size;
	r = physical_fill(physical);
	if (r != CUDA_SUCCESS) {
		free(physical);
		return r;
	}

	return physical_publish(physical, ret);
}

CALL(cuMemRelease, CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical) {
		physical->n_handles--;
		physical_put(physical);
	}
	pthread_mutex_unlock(&memory_lock);

	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *ret,
     CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical)
		*ret = physical->prop;
	pthread_mutex_unlock(&memory_lock);

	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Sharing */

CALL(cuMemExportToShareableHandle, void *ret, CUmemGenericAllocationHandle handle,
     CUmemAllocationHandleType type, unsigned long long flags)
{
	struct physical *physical;
	int fd = -1;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (!physical || !(physical->prop.requestedHandleTypes & type))
		r = CUDA_ERROR_INVALID_VALUE;
	else if ((fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_unlock(&memory_lock);

	if (r == CUDA_SUCCESS)
		*(int *)ret = fd;
	return r;
}

static CUmemAllocationProp imported_prop(const struct device *device)
{
	return (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
		.location.id = device ? device->ordinal : 0,
	};
}

CALL(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *ret, void *shared,
     CUmemAllocationHandleType type)
{
	struct share_charge charge;
	struct share_ticket ticket;
	struct physical *physical;
	int fd = (int)(intptr_t)shared;
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!memory_file_device(fd, PHYSICAL_FILE, &device) || share_ticket_whole(fd, &ticket) < 0)
		return CUDA_ERROR_INVALID_VALUE;

	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (share_import_through(fd, &ticket, &physical->import)) {
		free(physical);
		return CUDA_ERROR_INVALID_VALUE;
	}

	physical->prop = imported_prop(device);
	physical->device = device;
	physical->size = physical->import.size;
	physical->backing = PHYSICAL_IMPORT;
	if (device) {
		charge = memory_charge_inherited(device);
		share_inherit(&physical->import, &charge);
	}
	return physical_publish(physical, ret);
}
