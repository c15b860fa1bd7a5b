// SPDX-License-Identifier: Apache-2.0
/*
 * What an address is: cuPointerGetAttribute() and its like.
 *
 * An address that no call made known has no attributes. The call for one of them says so with an
 * error, the call for several with values that mean "nothing": programs use that to tell their own
 * memory from the device's.
 */
#include <string.h>

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/memory/pool.h"

static bool is_host(const struct memory *memory)
{
	return memory_kind(memory) == MEMORY_HOST || memory_kind(memory) == MEMORY_REGISTERED;
}

/* Memory that host code may touch, too. */
static bool has_host_pointer(const struct memory *memory)
{
	return is_host(memory) || memory_kind(memory) == MEMORY_MANAGED;
}

static CUmemorytype type_of(const struct memory *memory)
{
	return is_host(memory) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static unsigned allowed_handle_types(const struct memory *memory)
{
	return memory_kind(memory) == MEMORY_VIRTUAL ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
						     : CU_MEM_HANDLE_TYPE_NONE;
}

static unsigned access_flags(const struct memory *memory)
{
	if (space_ok(memory_addr(memory), /* size= */ 1, /* write= */ true))
		return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
	if (space_ok(memory_addr(memory), /* size= */ 1, /* write= */ false))
		return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;

	return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

#define PUT(type, value) (*(type *)(data) = (type)(value))

/* Of memory that is known. */
static CUresult attribute_get(const struct memory *memory, CUpointer_attribute attribute,
			      CUdeviceptr ptr, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		PUT(CUcontext, memory->ctx_handle);
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		PUT(CUmemorytype, type_of(memory));
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		PUT(CUdeviceptr, ptr);
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!has_host_pointer(memory))
			return CUDA_ERROR_INVALID_VALUE;
		PUT(void *, (uintptr_t)ptr);
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		PUT(unsigned, memory->sync_memops);
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		PUT(unsigned long long, memory->id);
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		PUT(unsigned, memory_kind(memory) == MEMORY_MANAGED);
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		PUT(int, memory->device ? memory->device->ordinal : CU_DEVICE_CPU);
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		PUT(unsigned, memory_kind(memory) == MEMORY_DEVICE);
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		PUT(CUdeviceptr, memory_addr(memory));
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		PUT(size_t, memory_size(memory));
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		PUT(unsigned, 1);
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		PUT(unsigned long long, allowed_handle_types(memory));
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		PUT(unsigned, 0);
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		PUT(unsigned, access_flags(memory));
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		PUT(CUmemoryPool, pool_of(memory));
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

/* The value that says "nothing", for memory that is not known or does not have the attribute. */
static CUresult attribute_clear(CUpointer_attribute attribute, void *data)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		PUT(unsigned, 0);
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		PUT(int, CU_DEVICE_INVALID);
		break;
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		PUT(uint64_t, 0);
		break;
	case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
		memset(data, 0, sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS));
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

/* The caller has memory_lock. */
static struct memory *pointer_find(CUdeviceptr ptr)
{
	struct memory *memory = memory_find(ptr);

	return memory && !memory->is_freed ? memory : NULL;
}

CALL(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct memory *memory;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = pointer_find(ptr);
	r = memory ? attribute_get(memory, attribute, ptr, data) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuPointerGetAttributes, unsigned n, CUpointer_attribute *attributes, void **data,
     CUdeviceptr ptr)
{
	struct memory *memory;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (n == 0 || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = pointer_find(ptr);
	for (unsigned i = 0; i < n && r == CUDA_SUCCESS; i++) {
		if (!data[i])
			r = CUDA_ERROR_INVALID_VALUE;
		else if (!memory || attribute_get(memory, attributes[i], ptr, data[i]))
			r = attribute_clear(attributes[i], data[i]);
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuPointerSetAttribute, const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct memory *memory;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = pointer_find(ptr);
	if (memory && memory_kind(memory) != MEMORY_MANAGED)
		memory->sync_memops = *(const unsigned *)value;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}
