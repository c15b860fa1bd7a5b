// SPDX-License-Identifier: Apache-2.0
/*
 * Copies in batches: many with one call, in no particular order among themselves.
 *
 * They are submitted one by one. The calls without suffix are of CUDA 12.8 and tell which copy
 * failed; those of CUDA 13 do not.
 */
#include "softgpu/cuda/memory/copy.h"

#include "softgpu/cuda/memory/array.h"
#include "softgpu/cuda/core.h"
#include "softgpu/cuda/stream/stream.h"

/* Batches are not for the legacy stream. */
static CUresult batch_begin(CUstream handle, enum stream_default dflt)
{
	struct stream *stream;
	CUresult r = stream_find_with_context(handle, dflt, &stream);

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
	   (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
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
	   (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
	    CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes, CUstream stream),
	   (dsts, srcs, sizes, count, attributes, indices, n_attributes, stream))
{
	size_t failed;

	return lines_copy(stream, dflt, dsts, srcs, sizes, count, attributes, indices, n_attributes,
			  &failed);
}

/*
 * Volumes. Extents and offsets are in elements: those of the arrays that take part, bytes if none
 * does.
 */

/* What is to be multiplied, and whether the arrays agree; @element is 0 while there is none. */
static CUresult operand_element(const CUmemcpy3DOperand *operand, size_t *element)
{
	struct array_layout array;
	CUresult r;

	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		return CUDA_SUCCESS;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;

	r = array_layout(operand->op.array.array, &array);
	if (r != CUDA_SUCCESS)
		return r;
	if (*element && *element != array.element)
		return CUDA_ERROR_INVALID_VALUE;

	*element = array.element;
	return CUDA_SUCCESS;
}

/* One end of a CUDA_MEMCPY3D, whose names differ in their first letters. */
#define OPERAND_TO_SIDE(copy, side, operand, extent, element)                                      \
	do {                                                                                       \
		if ((operand)->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {                             \
			(copy)->side##MemoryType = CU_MEMORYTYPE_ARRAY;                            \
			(copy)->side##Array = (operand)->op.array.array;                           \
			(copy)->side##XInBytes = (operand)->op.array.offset.x * (element);         \
			(copy)->side##Y = (operand)->op.array.offset.y;                            \
			(copy)->side##Z = (operand)->op.array.offset.z;                            \
		} else {                                                                           \
			size_t row = (operand)->op.ptr.rowLength;                                  \
			size_t rows = (operand)->op.ptr.layerHeight;                               \
                                                                                                   \
			(copy)->side##MemoryType = CU_MEMORYTYPE_UNIFIED;                          \
			(copy)->side##Device = (operand)->op.ptr.ptr;                              \
			(copy)->side##Pitch = (row ? row : (extent)->width) * (element);           \
			(copy)->side##Height = rows ? rows : (extent)->height;                     \
		}                                                                                  \
	} while (0)

static CUresult volume_make(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *ret)
{
	size_t element = 0;
	CUresult r;

	if (op->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID ||
	    op->srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
		return CUDA_ERROR_INVALID_VALUE;

	r = operand_element(&op->src, &element);
	if (r == CUDA_SUCCESS)
		r = operand_element(&op->dst, &element);
	if (r != CUDA_SUCCESS)
		return r;

	if (element == 0)
		element = 1;
	if (op->extent.width > SIZE_MAX / 16 || op->extent.width == 0 || op->extent.height == 0 ||
	    op->extent.depth == 0)
		return CUDA_ERROR_INVALID_VALUE;

	*ret = (CUDA_MEMCPY3D){
		.WidthInBytes = op->extent.width * element,
		.Height = op->extent.height,
		.Depth = op->extent.depth,
	};
	OPERAND_TO_SIDE(ret, src, &op->src, &op->extent, element);
	OPERAND_TO_SIDE(ret, dst, &op->dst, &op->extent, element);
	return CUDA_SUCCESS;
}

static CUresult volumes_copy(CUstream stream, enum stream_default dflt, size_t n,
			     const CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
			     size_t *ret_failed)
{
	CUDA_MEMCPY3D copy;
	CUresult r;

	*ret_failed = SIZE_MAX;
	r = batch_begin(stream, dflt);
	if (r != CUDA_SUCCESS)
		return r;
	if (n == 0 || !ops || flags)
		return CUDA_ERROR_INVALID_VALUE;

	for (size_t i = 0; i < n; i++) {
		r = volume_make(&ops[i], &copy);
		if (r == CUDA_SUCCESS)
			r = copy_volume(stream, dflt, &copy);
		if (r != CUDA_SUCCESS) {
			*ret_failed = i;
			return r;
		}
	}

	return CUDA_SUCCESS;
}

CALL_TWINS(cuMemcpy3DBatchAsync, _ptsz,
	   (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *ret_failed, unsigned long long flags,
	    CUstream stream),
	   (n, ops, ret_failed, flags, stream))
{
	size_t failed;
	CUresult r;

	r = volumes_copy(stream, dflt, n, ops, flags, &failed);
	if (r != CUDA_SUCCESS && ret_failed)
		*ret_failed = failed;
	return r;
}

CALL_TWINS(cuMemcpy3DBatchAsync_v2, _ptsz,
	   (size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
	   (n, ops, flags, stream))
{
	size_t failed;

	return volumes_copy(stream, dflt, n, ops, flags, &failed);
}
