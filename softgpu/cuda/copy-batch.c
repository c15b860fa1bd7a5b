// SPDX-License-Identifier: Apache-2.0
/*
 * Copies in batches: many with one call, in no particular order among themselves.
 *
 * They are submitted one by one. The calls without suffix are of CUDA 12.8 and tell which copy
 * failed; those of CUDA 13 do not.
 */
#include "softgpu/cuda/copy.h"
#include "softgpu/cuda/core.h"
#include "softgpu/cuda/stream.h"

/* Batches are not for the legacy stream. */
static CUresult batch_begin(CUstream handle, enum stream_default dflt)
{
	struct stream *stream;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r == CUDA_SUCCESS)
		r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;
	if (handle == CU_STREAM_LEGACY || (!handle && dflt == STREAM_DEFAULT_LEGACY))
		return CUDA_ERROR_INVALID_VALUE;

	return CUDA_SUCCESS;
}

/* Each group of copies has attributes, which begin with its first copy. */
static bool attributes_are_valid(const CUmemcpyAttributes *attributes, const size_t *indices,
				 size_t n, size_t count)
{
	if (!attributes || !indices || n == 0 || n > count || indices[0] != 0)
		return false;

	for (size_t i = 0; i < n; i++)
		if (attributes[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID ||
		    attributes[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY ||
		    indices[i] >= count || (i > 0 && indices[i] <= indices[i - 1]))
			return false;

	return true;
}

static CUresult lines_copy(CUstream stream, enum stream_default dflt, const CUdeviceptr *dsts,
			   const CUdeviceptr *srcs, const size_t *sizes, size_t count,
			   const CUmemcpyAttributes *attributes, const size_t *indices,
			   size_t n_attributes, size_t *ret_failed)
{
	CUresult r;

	*ret_failed = SIZE_MAX;
	r = batch_begin(stream, dflt);
	if (r != CUDA_SUCCESS)
		return r;
	if (!dsts || !srcs || !sizes || count == 0 ||
	    !attributes_are_valid(attributes, indices, n_attributes, count))
		return CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < count; i++) {
		r = copy_line(stream, dflt, dsts[i], srcs[i], sizes[i]);
		if (r != CUDA_SUCCESS) {
			*ret_failed = i;
			return r;
		}
	}

	return CUDA_SUCCESS;
}

CALL_TWINS(cuMemcpyBatchAsync, _ptsz,
	   (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	    CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes,
	    size_t *ret_failed, CUstream stream),
	   (dsts, srcs, sizes, count, attributes, indices, n_attributes, ret_failed, stream))
{
	size_t failed;
	CUresult r;

	r = lines_copy(stream, dflt, dsts, srcs, sizes, count, attributes, indices, n_attributes,
		       &failed);
	if (r != CUDA_SUCCESS && ret_failed)
		*ret_failed = failed;
	return r;
}

CALL_TWINS(cuMemcpyBatchAsync_v2, _ptsz,
	   (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	    CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes, CUstream stream),
	   (dsts, srcs, sizes, count, attributes, indices, n_attributes, stream))
{
	size_t failed;

	return lines_copy(stream, dflt, dsts, srcs, sizes, count, attributes, indices, n_attributes,
			  &failed);
}
