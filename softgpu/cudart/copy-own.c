// SPDX-License-Identifier: Apache-2.0
/*
 * Copies and sets of programs whose NULL stream is the thread's own: the asynchronous call on
 * that stream, waited for.
 */
#include "softgpu/cudart/runtime.h"

#define ARGUMENTS(...) __VA_ARGS__

/* @async takes the same arguments and a stream after them; the rest are the parameters. */
#define OWN_STREAM(name, async, args, ...)                                                         \
	cudaError_t impl_##async(__VA_ARGS__, CUstream stream);                                    \
	RUNTIME_CALL(name, __VA_ARGS__)                                                            \
	{                                                                                          \
		return impl_##async(ARGUMENTS args, CU_STREAM_PER_THREAD)                          \
			       ?: told(driver.cuStreamSynchronize(CU_STREAM_PER_THREAD));          \
	}

OWN_STREAM(cudaMemcpy_ptds, cudaMemcpyAsync, (dst, src, size_bytes, kind), void *dst,
	   const void *src, size_t size_bytes, enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpy2D_ptds, cudaMemcpy2DAsync,
	   (dst, dst_pitch, src, src_pitch, width, height, kind), void *dst, size_t dst_pitch,
	   const void *src, size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpy3D_ptds, cudaMemcpy3DAsync, (parms), const struct cudaMemcpy3DParms *parms)
OWN_STREAM(cudaMemcpy3DPeer_ptds, cudaMemcpy3DPeerAsync, (parms),
	   const struct cudaMemcpy3DPeerParms *parms)

OWN_STREAM(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArrayAsync,
	   (dst, x_bytes, y, src, src_pitch, width, height, kind), CUarray dst, size_t x_bytes,
	   size_t y, const void *src, size_t src_pitch, size_t width, size_t height,
	   enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArrayAsync,
	   (dst, dst_pitch, src, x_bytes, y, width, height, kind), void *dst, size_t dst_pitch,
	   CUarray src, size_t x_bytes, size_t y, size_t width, size_t height,
	   enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpyToArray_ptds, cudaMemcpyToArrayAsync, (dst, x_bytes, y, src, size_bytes, kind),
	   CUarray dst, size_t x_bytes, size_t y, const void *src, size_t size_bytes,
	   enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpyFromArray_ptds, cudaMemcpyFromArrayAsync,
	   (dst, src, x_bytes, y, size_bytes, kind), void *dst, CUarray src, size_t x_bytes,
	   size_t y, size_t size_bytes, enum cudaMemcpyKind kind)

OWN_STREAM(cudaMemcpyToSymbol_ptds, cudaMemcpyToSymbolAsync,
	   (symbol, src, size_bytes, offset, kind), const void *symbol, const void *src,
	   size_t size_bytes, size_t offset, enum cudaMemcpyKind kind)
OWN_STREAM(cudaMemcpyFromSymbol_ptds, cudaMemcpyFromSymbolAsync,
	   (dst, symbol, size_bytes, offset, kind), void *dst, const void *symbol,
	   size_t size_bytes, size_t offset, enum cudaMemcpyKind kind)

OWN_STREAM(cudaMemset_ptds, cudaMemsetAsync, (ptr, value, size_bytes), void *ptr, int value,
	   size_t size_bytes)
OWN_STREAM(cudaMemset2D_ptds, cudaMemset2DAsync, (ptr, pitch, value, width, height), void *ptr,
	   size_t pitch, int value, size_t width, size_t height)
OWN_STREAM(cudaMemset3D_ptds, cudaMemset3DAsync, (ptr, value, extent), struct cudaPitchedPtr ptr,
	   int value, struct cudaExtent extent)
