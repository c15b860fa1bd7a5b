// SPDX-License-Identifier: Apache-2.0
/*
 * Where managed memory is to be. It is host memory that devices reach, so it is wherever it is wanted already, and
 * what a program wishes is granted by doing nothing; it is only checked that the wish is about such memory.
 */
#include "forward/guest/call.h"
#include "forward/guest/memory.h"

static CUresult check(CUdeviceptr ptr, size_t size)
{
	CUresult r = session_check();
	struct memory memory;

	if (r != CUDA_SUCCESS)
		return r;
	if (!memory_find(ptr, &memory) || memory.kind != MEMORY_MANAGED ||
	    size > memory.size - (ptr - memory.address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CALL_TWINS(cuStreamAttachMemAsync, _ptsz,
	   (_unused_ CUstream stream, CUdeviceptr ptr, size_t size, _unused_ unsigned flags),
	   (stream, ptr, size, flags))
{
	return check(ptr, size);
}

CALL_TWINS(cuMemPrefetchAsync, _ptsz,
	   (CUdeviceptr ptr, size_t size, _unused_ CUdevice device, _unused_ CUstream stream),
	   (ptr, size, device, stream))
{
	return check(ptr, size);
}

CALL_TWINS(cuMemPrefetchAsync_v2, _ptsz,
	   (CUdeviceptr ptr, size_t size, _unused_ CUmemLocation location, unsigned flags,
	    _unused_ CUstream stream),
	   (ptr, size, location, flags, stream))
{
	return flags ? CUDA_ERROR_INVALID_VALUE : check(ptr, size);
}

CALL(cuMemAdvise, CUdeviceptr ptr, size_t size, _unused_ CUmem_advise advice,
     _unused_ CUdevice device)
{
	return check(ptr, size);
}

CALL(cuMemAdvise_v2, CUdeviceptr ptr, size_t size, _unused_ CUmem_advise advice,
     _unused_ CUmemLocation location)
{
	return check(ptr, size);
}
