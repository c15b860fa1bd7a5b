// SPDX-License-Identifier: Apache-2.0
/* Allocating and freeing memory of every kind but arrays, and what is known of it. */
#include "softgpu/cudart/runtime.h"

RUNTIME_CALL(cudaMalloc, void **ptr, size_t size_bytes)
{
	cudaError_t error;

	if (!ptr)
		return failed(cudaErrorInvalidValue);
	error = in_context();
	if (error || size_bytes == 0) {
		*ptr = NULL;
		return error;
	}
	return told(driver.cuMemAlloc((CUdeviceptr *)ptr, size_bytes));
}

RUNTIME_CALL(cudaFree, void *ptr)
{
	/* cudaFree(NULL) is how programs make their context. */
	return in_context() ?: told(ptr ? driver.cuMemFree((CUdeviceptr)ptr) : CUDA_SUCCESS);
}

RUNTIME_CALL(cudaMallocPitch, void **ptr, size_t *pitch, size_t width, size_t height)
{
	if (!ptr || !pitch)
		return failed(cudaErrorInvalidValue);
	return in_context()
		       ?: told(driver.cuMemAllocPitch((CUdeviceptr *)ptr, pitch, width, height,
						      16));
}

RUNTIME_CALL(cudaMalloc3D, struct cudaPitchedPtr *ptr, struct cudaExtent extent)
{
	CUdeviceptr address;
	cudaError_t error;
	size_t pitch, rows;

	if (!ptr || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return failed(cudaErrorInvalidValue);
	error = in_context()
			?: told(driver.cuMemAllocPitch(&address, &pitch, extent.width, rows, 16));
	if (!error)
		*ptr = (struct cudaPitchedPtr){ .ptr = (void *)address,
						.pitch = pitch,
						.xsize = extent.width,
						.ysize = extent.height };
	return error;
}

RUNTIME_CALL(cudaMallocManaged, void **ptr, size_t size_bytes, unsigned flags)
{
	if (!ptr || size_bytes == 0)
		return failed(cudaErrorInvalidValue);
	return in_context()
		       ?: told(driver.cuMemAllocManaged((CUdeviceptr *)ptr, size_bytes, flags));
}

RUNTIME_CALL(cudaHostAlloc, void **ptr, size_t size_bytes, unsigned flags)
{
	if (!ptr)
		return failed(cudaErrorInvalidValue);
	return in_context() ?: told(driver.cuMemHostAlloc(ptr, size_bytes, flags));
}

RUNTIME_CALL(cudaMallocHost, void **ptr, size_t size_bytes)
{
	return impl_cudaHostAlloc(ptr, size_bytes, /* flags= */ 0);
}

RUNTIME_CALL(cudaFreeHost, void *ptr)
{
	return in_context() ?: told(ptr ? driver.cuMemFreeHost(ptr) : CUDA_SUCCESS);
}

RUNTIME_CALL(cudaHostRegister, void *ptr, size_t size_bytes, unsigned flags)
{
	return in_context() ?: told(driver.cuMemHostRegister(ptr, size_bytes, flags));
}

RUNTIME_CALL(cudaHostUnregister, void *ptr)
{
	return in_context() ?: told(driver.cuMemHostUnregister(ptr));
}

RUNTIME_CALL(cudaHostGetDevicePointer, void **device, void *host, unsigned flags)
{
	return in_context()
		       ?: told(driver.cuMemHostGetDevicePointer((CUdeviceptr *)device, host,
								flags));
}

RUNTIME_CALL(cudaHostGetFlags, unsigned *flags, void *host)
{
	return in_context() ?: told(driver.cuMemHostGetFlags(flags, host));
}

RUNTIME_CALL(cudaMemGetInfo, size_t *free_bytes, size_t *total_bytes)
{
	return in_context() ?: told(driver.cuMemGetInfo(free_bytes, total_bytes));
}

RUNTIME_CALL(cudaPointerGetAttributes, struct cudaPointerAttributes *attributes, const void *ptr)
{
	CUpointer_attribute wanted[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
					 CU_POINTER_ATTRIBUTE_HOST_POINTER,
					 CU_POINTER_ATTRIBUTE_IS_MANAGED };
	CUmemorytype type = 0;
	unsigned is_managed = 0;
	struct cudaPointerAttributes found = { 0 };
	void *values[] = { &type, &found.device, &found.devicePointer, &found.hostPointer,
			   &is_managed };
	cudaError_t error;

	if (!attributes)
		return failed(cudaErrorInvalidValue);
	error = in_context()
			?: told(driver.cuPointerGetAttributes(5, wanted, values, (CUdeviceptr)ptr));
	if (error)
		return error;

	/* 0 unregistered, 1 host, 2 device: as the driver counts; 3 is the runtime's own. */
	found.type = is_managed ? 3 : (int)type;
	if (found.type == 0)
		found.device = -2;
	if (found.type == 0)
		found.hostPointer = (void *)ptr;
	*attributes = found;
	return cudaSuccess;
}

STREAM_CALL(cudaMallocAsync, (void **ptr, size_t size_bytes, CUstream stream),
	    (ptr, size_bytes, stream))
{
	return in_context() ?: told(driver.cuMemAllocAsync((CUdeviceptr *)ptr, size_bytes, stream));
}

STREAM_CALL(cudaMallocFromPoolAsync,
	    (void **ptr, size_t size_bytes, CUmemoryPool pool, CUstream stream),
	    (ptr, size_bytes, pool, stream))
{
	return in_context()
		       ?: told(driver.cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, size_bytes, pool,
							      stream));
}

STREAM_CALL(cudaFreeAsync, (void *ptr, CUstream stream), (ptr, stream))
{
	return in_context() ?: told(driver.cuMemFreeAsync((CUdeviceptr)ptr, stream));
}

RUNTIME_CALL(cudaDeviceGetDefaultMemPool, CUmemoryPool *pool, int device)
{
	return in_context() ?: told(driver.cuDeviceGetDefaultMemPool(pool, device));
}

RUNTIME_CALL(cudaDeviceGetMemPool, CUmemoryPool *pool, int device)
{
	return in_context() ?: told(driver.cuDeviceGetMemPool(pool, device));
}

RUNTIME_CALL(cudaDeviceSetMemPool, int device, CUmemoryPool pool)
{
	return in_context() ?: told(driver.cuDeviceSetMemPool(device, pool));
}

RUNTIME_CALL(cudaMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *props)
{
	return in_context() ?: told(driver.cuMemPoolCreate(pool, props));
}

RUNTIME_CALL(cudaMemPoolDestroy, CUmemoryPool pool)
{
	return in_context() ?: told(driver.cuMemPoolDestroy(pool));
}

RUNTIME_CALL(cudaMemPoolTrimTo, CUmemoryPool pool, size_t keep_bytes)
{
	return in_context() ?: told(driver.cuMemPoolTrimTo(pool, keep_bytes));
}

RUNTIME_CALL(cudaMemPoolGetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	return in_context() ?: told(driver.cuMemPoolGetAttribute(pool, attribute, value));
}

RUNTIME_CALL(cudaMemPoolSetAttribute, CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	return in_context() ?: told(driver.cuMemPoolSetAttribute(pool, attribute, value));
}

RUNTIME_CALL(cudaMemPoolGetAccess, CUmemAccess_flags *flags, CUmemoryPool pool,
	     CUmemLocation *location)
{
	return in_context() ?: told(driver.cuMemPoolGetAccess(flags, pool, location));
}

RUNTIME_CALL(cudaMemPoolSetAccess, CUmemoryPool pool, const CUmemAccessDesc *access, size_t n)
{
	return in_context() ?: told(driver.cuMemPoolSetAccess(pool, access, n));
}

RUNTIME_CALL(cudaMemPoolExportToShareableHandle, void *handle, CUmemoryPool pool,
	     CUmemAllocationHandleType type, unsigned flags)
{
	return in_context()
		       ?: told(driver.cuMemPoolExportToShareableHandle(handle, pool, type, flags));
}

RUNTIME_CALL(cudaMemPoolImportFromShareableHandle, CUmemoryPool *pool, void *handle,
	     CUmemAllocationHandleType type, unsigned flags)
{
	return in_context()
		       ?: told(driver.cuMemPoolImportFromShareableHandle(pool, handle, type,
									 flags));
}

RUNTIME_CALL(cudaMemPoolExportPointer, CUmemPoolPtrExportData *data, void *ptr)
{
	return in_context() ?: told(driver.cuMemPoolExportPointer(data, (CUdeviceptr)ptr));
}

RUNTIME_CALL(cudaMemPoolImportPointer, void **ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	return in_context() ?: told(driver.cuMemPoolImportPointer((CUdeviceptr *)ptr, pool, data));
}

RUNTIME_CALL(cudaIpcGetMemHandle, CUipcMemHandle *handle, void *ptr)
{
	return in_context() ?: told(driver.cuIpcGetMemHandle(handle, (CUdeviceptr)ptr));
}

RUNTIME_CALL(cudaIpcOpenMemHandle, void **ptr, CUipcMemHandle handle, unsigned flags)
{
	return in_context() ?: told(driver.cuIpcOpenMemHandle((CUdeviceptr *)ptr, handle, flags));
}

RUNTIME_CALL(cudaIpcCloseMemHandle, void *ptr)
{
	return in_context() ?: told(driver.cuIpcCloseMemHandle((CUdeviceptr)ptr));
}

RUNTIME_CALL(cudaMemAdvise, const void *ptr, size_t size_bytes, CUmem_advise advice, int device)
{
	return in_context()
		       ?: told(driver.cuMemAdvise((CUdeviceptr)ptr, size_bytes, advice, device));
}

/* A device's number, or -1 for the host, of a location as 12.2 and newer name it. */
static int device_of(CUmemLocation location)
{
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : -1;
}

RUNTIME_CALL(cudaMemAdvise_v2, const void *ptr, size_t size_bytes, CUmem_advise advice,
	     CUmemLocation location)
{
	return impl_cudaMemAdvise(ptr, size_bytes, advice, device_of(location));
}

STREAM_CALL(cudaMemPrefetchAsync, (const void *ptr, size_t size_bytes, int device, CUstream stream),
	    (ptr, size_bytes, device, stream))
{
	return in_context()
		       ?: told(driver.cuMemPrefetchAsync((CUdeviceptr)ptr, size_bytes, device,
							 stream));
}

TWIN_CALL(cudaMemPrefetchAsync_v2, cudaMemPrefetchAsync_v2_ptsz,
	  (const void *ptr, size_t size_bytes, CUmemLocation location, _unused_ unsigned flags,
	   CUstream stream),
	  (ptr, size_bytes, location, flags, stream))
{
	return run_cudaMemPrefetchAsync(ptr, size_bytes, device_of(location), stream);
}

RUNTIME_CALL(cudaMemRangeGetAttribute, void *value, size_t value_bytes,
	     CUmem_range_attribute attribute, const void *ptr, size_t size_bytes)
{
	return in_context()
		       ?: told(driver.cuMemRangeGetAttribute(value, value_bytes, attribute,
							     (CUdeviceptr)ptr, size_bytes));
}

PASSED_ON(cudaMemRangeGetAttributes, cuMemRangeGetAttributes,
	  (void **values, size_t *value_bytes, CUmem_range_attribute *attributes, size_t n,
	   const void *ptr, size_t size_bytes),
	  (values, value_bytes, attributes, n, (CUdeviceptr)ptr, size_bytes))

/* Since 13, pools of a location and a kind of memory. */
PASSED_ON(cudaMemGetDefaultMemPool, cuMemGetDefaultMemPool,
	  (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
	  (pool, location, type))
PASSED_ON(cudaMemGetMemPool, cuMemGetMemPool,
	  (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
	  (pool, location, type))
PASSED_ON(cudaMemSetMemPool, cuMemSetMemPool,
	  (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
	  (location, type, pool))
