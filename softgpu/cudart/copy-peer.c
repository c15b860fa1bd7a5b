// SPDX-License-Identifier: Apache-2.0
/* Copies between devices. */
#include <string.h>

#include "softgpu/cudart/copy.h"

static cudaError_t both_contexts(int dst_device, CUcontext *dst, int src_device, CUcontext *src)
{
	return in_context() ?: primary_context(dst_device, dst) ?: primary_context(src_device, src);
}

RUNTIME_CALL(cudaMemcpyPeer, void *dst, int dst_device, const void *src, int src_device,
	     size_t size_bytes)
{
	CUcontext to, from;
	cudaError_t error = both_contexts(dst_device, &to, src_device, &from);

	return error
		       ?: told(driver.cuMemcpyPeer((CUdeviceptr)dst, to, (CUdeviceptr)src, from,
						   size_bytes));
}

/* It has no twin: a NULL stream is the legacy one. */
RUNTIME_CALL(cudaMemcpyPeerAsync, void *dst, int dst_device, const void *src, int src_device,
	     size_t size_bytes, CUstream stream)
{
	CUcontext to, from;
	cudaError_t error = both_contexts(dst_device, &to, src_device, &from);

	return error
		       ?: told(driver.cuMemcpyPeerAsync((CUdeviceptr)dst, to, (CUdeviceptr)src,
							from, size_bytes, stream));
}

static cudaError_t copy_of_peers(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *ret)
{
	CUcontext to, from;
	CUDA_MEMCPY3D copy;
	cudaError_t error;

	if (!p)
		return failed(cudaErrorInvalidValue);
	error = both_contexts(p->dstDevice, &to, p->srcDevice, &from)
			?: copy_of_parms(&(struct cudaMemcpy3DParms){ .srcArray = p->srcArray,
								      .srcPos = p->srcPos,
								      .srcPtr = p->srcPtr,
								      .dstArray = p->dstArray,
								      .dstPos = p->dstPos,
								      .dstPtr = p->dstPtr,
								      .extent = p->extent,
								      .kind = cudaMemcpyDefault },
					 &copy);
	if (error)
		return error;

	/* The same but for the contexts, which stand where the other has reserved words. */
	_Static_assert(sizeof(*ret) == sizeof(copy), "as a copy on one device");
	memcpy(ret, &copy, sizeof(*ret));
	ret->dstContext = to;
	ret->srcContext = from;
	return cudaSuccess;
}

RUNTIME_CALL(cudaMemcpy3DPeer, const struct cudaMemcpy3DPeerParms *parms)
{
	CUDA_MEMCPY3D_PEER copy;

	return copy_of_peers(parms, &copy) ?: told(driver.cuMemcpy3DPeer(&copy));
}

STREAM_CALL(cudaMemcpy3DPeerAsync, (const struct cudaMemcpy3DPeerParms *parms, CUstream stream),
	    (parms, stream))
{
	CUDA_MEMCPY3D_PEER copy;

	return copy_of_peers(parms, &copy) ?: told(driver.cuMemcpy3DPeerAsync(&copy, stream));
}
