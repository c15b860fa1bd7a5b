// SPDX-License-Identifier: Apache-2.0
/* Sets: cuMemsetD8() to cuMemsetD2D32(). All are a CUDA_MEMSET_NODE_PARAMS. */
#include <string.h>
#include <sys/mman.h>

#include "softgpu/cuda/memory/copy.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/mem/room.h"

/* From here on, clearing is done by giving the pages back. */
#define ZERO_BY_PAGES_MIN (4ULL << 20)

#define EXTENT_MAX (1ULL << SPACE_BITS)

static bool is_empty(const CUDA_MEMSET_NODE_PARAMS *set)
{
	return set->width == 0 || set->height == 0;
}

/* From the first byte that is set to the last; false if there cannot be so many. */
static bool set_extent(const CUDA_MEMSET_NODE_PARAMS *set, uint64_t *ret)
{
	unsigned __int128 size;

	if (set->width > EXTENT_MAX || set->height > EXTENT_MAX || set->pitch > EXTENT_MAX)
		return false;

	size = (unsigned __int128)(set->height - 1) * set->pitch + set->width * set->elementSize;
	if (size > EXTENT_MAX)
		return false;

	*ret = size;
	return true;
}

CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *set)
{
	uint64_t size;

	if (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (is_empty(set))
		return CUDA_SUCCESS;

	if (set->dst % set->elementSize || !set_extent(set, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (set->height > 1 &&
	    (set->pitch % set->elementSize || set->pitch / set->elementSize < set->width))
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_check(set->dst, size))
		return CUDA_ERROR_INVALID_VALUE;

	if ((set->value != 0 || size < ZERO_BY_PAGES_MIN) && !room_for(set->dst, size))
		return CUDA_ERROR_OUT_OF_MEMORY;

	return CUDA_SUCCESS;
}

/*
 * Pages that go back to the host read as zeros from then on, so clearing 80 GiB costs nothing,
 * neither time nor RAM. Memory that is not backed by a file of ours refuses, and is written.
 */
static void clear(uint64_t addr, uint64_t size)
{
	const uint64_t page = 4096;
	uint64_t start = (addr + page - 1) & ~(page - 1), end = (addr + size) & ~(page - 1);

	if (size < ZERO_BY_PAGES_MIN || madvise((void *)start, end - start, MADV_REMOVE) < 0) {
		memset((void *)addr, 0, size);
		return;
	}

	memset((void *)addr, 0, start - addr);
	memset((void *)end, 0, addr + size - end);
}

static void set_row(uint64_t addr, unsigned value, unsigned element, size_t n)
{
	if (value == 0) {
		clear(addr, n * element);
		return;
	}

	switch (element) {
	case 1:
		memset((void *)addr, value, n);
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			((uint16_t *)addr)[i] = value;
		break;
	default:
		for (size_t i = 0; i < n; i++)
			((uint32_t *)addr)[i] = value;
	}
}

static CUresult set_run(_unused_ struct context *ctx, void *params)
{
	const CUDA_MEMSET_NODE_PARAMS *set = params;
	uint64_t size;

	if (is_empty(set))
		return CUDA_SUCCESS;
	if (!set_extent(set, &size) || !space_ok(set->dst, size, /* write= */ true))
		return CUDA_ERROR_ILLEGAL_ADDRESS;

	if (set->height == 1 || set->pitch == set->width * set->elementSize) {
		set_row(set->dst, set->value, set->elementSize, set->width * set->height);
		return CUDA_SUCCESS;
	}

	for (size_t y = 0; y < set->height; y++)
		set_row(set->dst + y * set->pitch, set->value, set->elementSize, set->width);
	return CUDA_SUCCESS;
}

const struct work_class work_memset = {
	.type = CU_GRAPH_NODE_TYPE_MEMSET,
	.size = sizeof(CUDA_MEMSET_NODE_PARAMS),
	.run = set_run,
};

static CUresult set_begin(const CUDA_MEMSET_NODE_PARAMS *set)
{
	CUresult r;

	r = context_need();
	return r != CUDA_SUCCESS ? r : set_check(set);
}

static CUresult set_now(enum stream_default dflt, CUDA_MEMSET_NODE_PARAMS set)
{
	struct stream *stream;
	CUresult r;

	r = set_begin(&set);
	if (r != CUDA_SUCCESS || is_empty(&set))
		return r;

	r = stream_find(/* handle= */ NULL, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;

	return stream_run(stream, &work_memset, &set);
}

static CUresult set_later(CUstream handle, enum stream_default dflt, CUDA_MEMSET_NODE_PARAMS set)
{
	struct stream *stream;
	CUresult r;

	r = set_begin(&set);
	if (r != CUDA_SUCCESS)
		return r;

	r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS || is_empty(&set))
		return r;

	return stream_submit(stream, &work_memset, &set);
}

static CUDA_MEMSET_NODE_PARAMS rows(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
				    size_t width, size_t height)
{
	return (CUDA_MEMSET_NODE_PARAMS){ dst, pitch, value, element, width, height };
}

/* All calls for elements of one size: now, as before CUDA 3.2, later; lines, then planes. */
#define SETS(bits, type)                                                                           \
	CALL_TWINS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, type value, size_t n),           \
		   (dst, value, n))                                                                \
	{                                                                                          \
		return set_now(dflt, rows(dst, 0, value, sizeof(type), n, 1));                     \
	}                                                                                          \
	CALL(cuMemsetD##bits, CUdeviceptr_v1 dst, type value, unsigned n)                          \
	{                                                                                          \
		return impl_cuMemsetD##bits##_v2(dst, value, n);                                   \
	}                                                                                          \
	CALL_TWINS(cuMemsetD##bits##Async, _ptsz,                                                  \
		   (CUdeviceptr dst, type value, size_t n, CUstream stream),                       \
		   (dst, value, n, stream))                                                        \
	{                                                                                          \
		return set_later(stream, dflt, rows(dst, 0, value, sizeof(type), n, 1));           \
	}                                                                                          \
	CALL_TWINS(cuMemsetD2D##bits##_v2, _ptds,                                                  \
		   (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height),       \
		   (dst, pitch, value, width, height))                                             \
	{                                                                                          \
		return set_now(dflt, rows(dst, pitch, value, sizeof(type), width, height));        \
	}                                                                                          \
	CALL(cuMemsetD2D##bits, CUdeviceptr_v1 dst, unsigned pitch, type value, unsigned width,    \
	     unsigned height)                                                                      \
	{                                                                                          \
		return impl_cuMemsetD2D##bits##_v2(dst, pitch, value, width, height);              \
	}                                                                                          \
	CALL_TWINS(cuMemsetD2D##bits##Async, _ptsz,                                                \
		   (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,        \
		    CUstream stream),                                                              \
		   (dst, pitch, value, width, height, stream))                                     \
	{                                                                                          \
		return set_later(stream, dflt,                                                     \
				 rows(dst, pitch, value, sizeof(type), width, height));            \
	}

SETS(8, unsigned char)
SETS(16, unsigned short)
SETS(32, unsigned)
