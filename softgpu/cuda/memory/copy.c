// SPDX-License-Identifier: Apache-2.0
/*
 * Copies.
 *
 * Whatever the call, a copy is a CUDA_MEMCPY3D: rows of bytes between two places, each of which is
 * host memory, device memory, an array, or an address of which it has to be found out. It is
 * checked when the call is made and again when its turn comes, because memory may be gone by then.
 */
#include "softgpu/cuda/memory/copy.h"

#include <string.h>

#include "softgpu/cuda/memory/array.h"
#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/mem/host.h"
#include "softgpu/mem/room.h"
#include "src/cuda/bulk-copy.h"

/* No extent, pitch or offset can be larger: it is what the address space has. */
#define EXTENT_MAX (1ULL << SPACE_BITS)

/* One end of a copy. */
struct side {
	CUmemorytype type;
	uint64_t addr; /* of the first byte */
	uint64_t size; /* to the last byte, gaps between rows included */
	size_t pitch, slice;
	bool pageable;
};

/* The fields of one end, which have the same names with src and dst before them. */
struct side_fields {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, lod, pitch, height;
};

static struct side_fields source_of(const CUDA_MEMCPY3D *copy)
{
	return (struct side_fields){
		copy->srcMemoryType, copy->srcHost,   copy->srcDevice, copy->srcArray,
		copy->srcXInBytes,   copy->srcY,      copy->srcZ,      copy->srcLOD,
		copy->srcPitch,	     copy->srcHeight,
	};
}

static struct side_fields target_of(const CUDA_MEMCPY3D *copy)
{
	return (struct side_fields){
		copy->dstMemoryType, copy->dstHost,   copy->dstDevice, copy->dstArray,
		copy->dstXInBytes,   copy->dstY,      copy->dstZ,      copy->dstLOD,
		copy->dstPitch,	     copy->dstHeight,
	};
}

static bool is_empty(const CUDA_MEMCPY3D *copy)
{
	return copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
}

static bool is_too_large(const CUDA_MEMCPY3D *copy, const struct side_fields *fields)
{
	return copy->WidthInBytes > EXTENT_MAX || copy->Height > EXTENT_MAX ||
	       copy->Depth > EXTENT_MAX || fields->x > EXTENT_MAX || fields->y > EXTENT_MAX ||
	       fields->z > EXTENT_MAX || fields->pitch > EXTENT_MAX || fields->height > EXTENT_MAX;
}

static CUresult side_in_array(const CUDA_MEMCPY3D *copy, const struct side_fields *fields,
			      struct side *ret)
{
	struct array_layout array;
	CUresult r;

	r = array_layout(fields->array, &array);
	if (r != CUDA_SUCCESS)
		return r;
	if (fields->x + copy->WidthInBytes > array.width ||
	    fields->y + copy->Height > array.height || fields->z + copy->Depth > array.depth)
		return CUDA_ERROR_INVALID_VALUE;

	ret->addr = array.addr;
	ret->pitch = array.pitch;
	ret->slice = array.slice;
	return CUDA_SUCCESS;
}

/* A pitch or height of 0 will do where there is only one row or layer. */
static CUresult side_in_memory(const CUDA_MEMCPY3D *copy, const struct side_fields *fields,
			       struct side *ret)
{
	size_t width = fields->x + copy->WidthInBytes, height = fields->y + copy->Height;
	size_t pitch = fields->pitch, rows = fields->height;

	if (pitch < width && (pitch || height > 1 || fields->z + copy->Depth > 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (rows < height && (rows || fields->z + copy->Depth > 1))
		return CUDA_ERROR_INVALID_VALUE;

	ret->addr = fields->type == CU_MEMORYTYPE_HOST ? (uint64_t)fields->host : fields->device;
	ret->pitch = pitch ? pitch : width;
	if (__builtin_mul_overflow(ret->pitch, rows ? rows : height, &ret->slice))
		return CUDA_ERROR_INVALID_VALUE;

	return ret->addr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Moves @side to where the copy begins and finds out how far it goes. */
static CUresult side_extend(const CUDA_MEMCPY3D *copy, const struct side_fields *fields,
			    struct side *side)
{
	unsigned __int128 start, size;

	start = (unsigned __int128)fields->z * side->slice +
		(unsigned __int128)fields->y * side->pitch + fields->x + side->addr;
	size = (unsigned __int128)(copy->Depth - 1) * side->slice +
	       (unsigned __int128)(copy->Height - 1) * side->pitch + copy->WidthInBytes;
	if (start + size > EXTENT_MAX)
		return CUDA_ERROR_INVALID_VALUE;

	side->addr = start;
	side->size = size;
	return CUDA_SUCCESS;
}

static CUresult side_make(const CUDA_MEMCPY3D *copy, const struct side_fields *fields,
			  struct side *ret)
{
	struct side side = { .type = fields->type };
	CUresult r;

	if (fields->lod || is_too_large(copy, fields))
		return CUDA_ERROR_INVALID_VALUE;

	switch (fields->type) {
	case CU_MEMORYTYPE_ARRAY:
		r = side_in_array(copy, fields, &side);
		break;
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		r = side_in_memory(copy, fields, &side);
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS)
		r = side_extend(copy, fields, &side);
	if (r != CUDA_SUCCESS)
		return r;

	side.pageable = side.type != CU_MEMORYTYPE_ARRAY && side.type != CU_MEMORYTYPE_DEVICE &&
			memory_is_pageable(side.addr);
	*ret = side;
	return CUDA_SUCCESS;
}

static CUresult sides_make(const CUDA_MEMCPY3D *copy, struct side *ret_from, struct side *ret_to)
{
	struct side_fields from = source_of(copy), to = target_of(copy);
	CUresult r;

	r = side_make(copy, &from, ret_from);
	return r != CUDA_SUCCESS ? r : side_make(copy, &to, ret_to);
}

/*
 * What is said to be the host's is the program's affair. What is taken for it because nobody knows
 * the address may just as well be a stale or invented one.
 */
static bool side_is_there(const struct side *side)
{
	if (side->type == CU_MEMORYTYPE_ARRAY || side->type == CU_MEMORYTYPE_HOST)
		return true;
	return side->pageable ? host_memory_is_mapped(side->addr, side->size)
			      : memory_check(side->addr, side->size);
}

static CUresult copy_prepare(const CUDA_MEMCPY3D *copy, struct side *ret_from, struct side *ret_to)
{
	CUresult r;

	r = sides_make(copy, ret_from, ret_to);
	if (r != CUDA_SUCCESS)
		return r;
	if (!side_is_there(ret_from) || !side_is_there(ret_to))
		return CUDA_ERROR_INVALID_VALUE;

	/* Reading what nobody has written takes memory, too: its pages come into being. */
	if ((!ret_to->pageable && !room_for(ret_to->addr, ret_to->size)) ||
	    (!ret_from->pageable && !room_for(ret_from->addr, ret_from->size)))
		return CUDA_ERROR_OUT_OF_MEMORY;

	return CUDA_SUCCESS;
}

CUresult copy_check(const CUDA_MEMCPY3D *copy)
{
	struct side from, to;

	return is_empty(copy) ? CUDA_SUCCESS : copy_prepare(copy, &from, &to);
}

/* The sides of a copy may overlap; much memory is copied past the caches, as a device does. */
static void copy_bytes(uint64_t to, uint64_t from, size_t size)
{
	if (size >= BULK_COPY_MIN && (to >= from + size || from >= to + size))
		bulk_copy((void *)to, (const void *)from, size);
	else
		memmove((void *)to, (const void *)from, size);
}

static void copy_rows(const CUDA_MEMCPY3D *copy, const struct side *from, const struct side *to)
{
	size_t width = copy->WidthInBytes;

	if (from->size == to->size && from->size == width * copy->Height * copy->Depth) {
		copy_bytes(to->addr, from->addr, from->size);
		return;
	}

	for (size_t z = 0; z < copy->Depth; z++)
		for (size_t y = 0; y < copy->Height; y++)
			copy_bytes(to->addr + z * to->slice + y * to->pitch,
				   from->addr + z * from->slice + y * from->pitch, width);
}

/* Memory that is not the program's own must still be mapped, or we would crash in its place. */
static bool side_is_open(const struct side *side, bool write)
{
	return side->pageable || side->type == CU_MEMORYTYPE_HOST ||
	       space_ok(side->addr, side->size, write);
}

static CUresult copy_run(_unused_ struct context *ctx, void *params)
{
	const CUDA_MEMCPY3D *copy = params;
	struct side from, to;

	if (is_empty(copy))
		return CUDA_SUCCESS;
	if (sides_make(copy, &from, &to) != CUDA_SUCCESS ||
	    !side_is_open(&from, /* write= */ false) || !side_is_open(&to, /* write= */ true))
		return CUDA_ERROR_ILLEGAL_ADDRESS;

	copy_rows(copy, &from, &to);
	return CUDA_SUCCESS;
}

const struct work_class work_memcpy = {
	.type = CU_GRAPH_NODE_TYPE_MEMCPY,
	.size = sizeof(CUDA_MEMCPY3D),
	.run = copy_run,
};

/* Making the calls' arguments one thing */

static CUDA_MEMCPY3D line(CUmemorytype to_type, uint64_t to, CUmemorytype from_type, uint64_t from,
			  size_t bytes)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = from_type,
		.srcHost = (void *)from,
		.srcDevice = from,
		.dstMemoryType = to_type,
		.dstHost = (void *)to,
		.dstDevice = to,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};
}

static CUDA_MEMCPY3D line_to_array(CUarray to, size_t x, CUmemorytype from_type, uint64_t from,
				   size_t bytes)
{
	CUDA_MEMCPY3D copy = line(CU_MEMORYTYPE_ARRAY, 0, from_type, from, bytes);

	copy.dstArray = to;
	copy.dstXInBytes = x;
	return copy;
}

static CUDA_MEMCPY3D line_from_array(CUmemorytype to_type, uint64_t to, CUarray from, size_t x,
				     size_t bytes)
{
	CUDA_MEMCPY3D copy = line(to_type, to, CU_MEMORYTYPE_ARRAY, 0, bytes);

	copy.srcArray = from;
	copy.srcXInBytes = x;
	return copy;
}

static CUDA_MEMCPY3D line_between_arrays(CUarray to, size_t to_x, CUarray from, size_t from_x,
					 size_t bytes)
{
	CUDA_MEMCPY3D copy = line_from_array(CU_MEMORYTYPE_ARRAY, 0, from, from_x, bytes);

	copy.dstArray = to;
	copy.dstXInBytes = to_x;
	return copy;
}

/* The same for the current and the 32-bit structures: their fields have the same names. */
#define FIELDS_2D(c)                                                                               \
	.srcXInBytes = (c)->srcXInBytes, .srcY = (c)->srcY, .srcMemoryType = (c)->srcMemoryType,   \
	.srcHost = (c)->srcHost, .srcDevice = (c)->srcDevice, .srcArray = (c)->srcArray,           \
	.srcPitch = (c)->srcPitch, .dstXInBytes = (c)->dstXInBytes, .dstY = (c)->dstY,             \
	.dstMemoryType = (c)->dstMemoryType, .dstHost = (c)->dstHost, .dstDevice = (c)->dstDevice, \
	.dstArray = (c)->dstArray, .dstPitch = (c)->dstPitch, .WidthInBytes = (c)->WidthInBytes,   \
	.Height = (c)->Height

#define FIELDS_3D(c)                                                                               \
	FIELDS_2D(c), .srcZ = (c)->srcZ, .srcLOD = (c)->srcLOD, .srcHeight = (c)->srcHeight,       \
		      .dstZ = (c)->dstZ, .dstLOD = (c)->dstLOD, .dstHeight = (c)->dstHeight,       \
		      .Depth = (c)->Depth

#define PLANE(c)  ((CUDA_MEMCPY3D){ FIELDS_2D(c), .Depth = 1 })
#define VOLUME(c) ((CUDA_MEMCPY3D){ FIELDS_3D(c) })

/* Doing it */

static CUresult copy_begin(const CUDA_MEMCPY3D *copy, struct side *from, struct side *to)
{
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS || is_empty(copy))
		return r;

	return copy_prepare(copy, from, to);
}

static CUresult copy_now(enum stream_default dflt, CUDA_MEMCPY3D copy)
{
	struct stream *stream;
	struct side from, to;
	CUresult r;

	r = copy_begin(&copy, &from, &to);
	if (r != CUDA_SUCCESS || is_empty(&copy))
		return r;

	r = stream_find(/* handle= */ NULL, dflt, &stream);
	if (r != CUDA_SUCCESS)
		return r;

	return stream_run(stream, &work_memcpy, &copy);
}

/*
 * With the program's own memory at one end the driver works through a buffer of its own, and the
 * program may change or read that memory as soon as the call is back. So it waits.
 */
static CUresult copy_later(CUstream handle, enum stream_default dflt, CUDA_MEMCPY3D copy)
{
	struct side from = {}, to = {};
	struct stream *stream;
	CUresult r;

	r = copy_begin(&copy, &from, &to);
	if (r != CUDA_SUCCESS)
		return r;

	r = stream_find(handle, dflt, &stream);
	if (r != CUDA_SUCCESS || is_empty(&copy))
		return r;

	if ((from.pageable || to.pageable) && !stream_is_capturing(stream))
		return stream_run(stream, &work_memcpy, &copy);
	return stream_submit(stream, &work_memcpy, &copy);
}

CUresult copy_volume(CUstream stream, enum stream_default dflt, const CUDA_MEMCPY3D *copy)
{
	return copy_later(stream, dflt, *copy);
}

/* A synchronous call with its twin, and an asynchronous one with its own. */
#define COPY(name, parameters, arguments, copy)                                                    \
	CALL_TWINS(name, _ptds, parameters, arguments)                                             \
	{                                                                                          \
		return copy_now(dflt, copy);                                                       \
	}

#define COPY_ASYNC(name, parameters, arguments, copy)                                              \
	CALL_TWINS(name, _ptsz, parameters, arguments)                                             \
	{                                                                                          \
		return copy_later(stream, dflt, copy);                                             \
	}

/* As the call was before CUDA 3.2: narrower arguments, which become the current ones. */
#define COPY_OLD(name, parameters, copy)                                                           \
	CALL(name, CALL_TWINS_LIST parameters)                                                     \
	{                                                                                          \
		return copy_now(STREAM_DEFAULT_LEGACY, copy);                                      \
	}

#define COPY_OLD_ASYNC(name, parameters, copy)                                                     \
	CALL(name, CALL_TWINS_LIST parameters)                                                     \
	{                                                                                          \
		return copy_later(stream, STREAM_DEFAULT_LEGACY, copy);                            \
	}

#define HOST	CU_MEMORYTYPE_HOST
#define DEVICE	CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED

#define LINE_HTOD    line(DEVICE, dst, HOST, (uint64_t)src, bytes)
#define LINE_DTOH    line(HOST, (uint64_t)dst, DEVICE, src, bytes)
#define LINE_DTOD    line(DEVICE, dst, DEVICE, src, bytes)
#define LINE_UNIFIED line(UNIFIED, dst, UNIFIED, src, bytes)
#define LINE_DTOA    line_to_array(dst, dst_x, DEVICE, src, bytes)
#define LINE_ATOD    line_from_array(DEVICE, dst, src, src_x, bytes)
#define LINE_HTOA    line_to_array(dst, dst_x, HOST, (uint64_t)src, bytes)
#define LINE_ATOH    line_from_array(HOST, (uint64_t)dst, src, src_x, bytes)
#define LINE_ATOA    line_between_arrays(dst, dst_x, src, src_x, bytes)

COPY(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes), LINE_UNIFIED)
COPY_ASYNC(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	   (dst, src, bytes, stream), LINE_UNIFIED)

CUresult copy_line(CUstream stream, enum stream_default dflt, CUdeviceptr dst, CUdeviceptr src,
		   size_t bytes)
{
	return copy_later(stream, dflt, LINE_UNIFIED);
}

COPY(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t bytes), (dst, src, bytes),
     LINE_HTOD)
COPY_OLD(cuMemcpyHtoD, (CUdeviceptr_v1 dst, const void *src, unsigned bytes), LINE_HTOD)
COPY_ASYNC(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
	   (dst, src, bytes, stream), LINE_HTOD)
COPY_OLD_ASYNC(cuMemcpyHtoDAsync,
	       (CUdeviceptr_v1 dst, const void *src, unsigned bytes, CUstream stream), LINE_HTOD)

COPY(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t bytes), (dst, src, bytes), LINE_DTOH)
COPY_OLD(cuMemcpyDtoH, (void *dst, CUdeviceptr_v1 src, unsigned bytes), LINE_DTOH)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream),
	   (dst, src, bytes, stream), LINE_DTOH)
COPY_OLD_ASYNC(cuMemcpyDtoHAsync, (void *dst, CUdeviceptr_v1 src, unsigned bytes, CUstream stream),
	       LINE_DTOH)

COPY(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), (dst, src, bytes),
     LINE_DTOD)
COPY_OLD(cuMemcpyDtoD, (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned bytes), LINE_DTOD)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	   (dst, src, bytes, stream), LINE_DTOD)
COPY_OLD_ASYNC(cuMemcpyDtoDAsync,
	       (CUdeviceptr_v1 dst, CUdeviceptr_v1 src, unsigned bytes, CUstream stream), LINE_DTOD)

COPY(cuMemcpyDtoA_v2, (CUarray dst, size_t dst_x, CUdeviceptr src, size_t bytes),
     (dst, dst_x, src, bytes), LINE_DTOA)
COPY_OLD(cuMemcpyDtoA, (CUarray dst, unsigned dst_x, CUdeviceptr_v1 src, unsigned bytes), LINE_DTOA)
COPY(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t src_x, size_t bytes),
     (dst, src, src_x, bytes), LINE_ATOD)
COPY_OLD(cuMemcpyAtoD, (CUdeviceptr_v1 dst, CUarray src, unsigned src_x, unsigned bytes), LINE_ATOD)
COPY(cuMemcpyAtoA_v2, (CUarray dst, size_t dst_x, CUarray src, size_t src_x, size_t bytes),
     (dst, dst_x, src, src_x, bytes), LINE_ATOA)
COPY_OLD(cuMemcpyAtoA, (CUarray dst, unsigned dst_x, CUarray src, unsigned src_x, unsigned bytes),
	 LINE_ATOA)

COPY(cuMemcpyHtoA_v2, (CUarray dst, size_t dst_x, const void *src, size_t bytes),
     (dst, dst_x, src, bytes), LINE_HTOA)
COPY_OLD(cuMemcpyHtoA, (CUarray dst, unsigned dst_x, const void *src, unsigned bytes), LINE_HTOA)
COPY_ASYNC(cuMemcpyHtoAAsync_v2,
	   (CUarray dst, size_t dst_x, const void *src, size_t bytes, CUstream stream),
	   (dst, dst_x, src, bytes, stream), LINE_HTOA)
COPY_OLD_ASYNC(cuMemcpyHtoAAsync,
	       (CUarray dst, unsigned dst_x, const void *src, unsigned bytes, CUstream stream),
	       LINE_HTOA)

COPY(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t src_x, size_t bytes),
     (dst, src, src_x, bytes), LINE_ATOH)
COPY_OLD(cuMemcpyAtoH, (void *dst, CUarray src, unsigned src_x, unsigned bytes), LINE_ATOH)
COPY_ASYNC(cuMemcpyAtoHAsync_v2,
	   (void *dst, CUarray src, size_t src_x, size_t bytes, CUstream stream),
	   (dst, src, src_x, bytes, stream), LINE_ATOH)
COPY_OLD_ASYNC(cuMemcpyAtoHAsync,
	       (void *dst, CUarray src, unsigned src_x, unsigned bytes, CUstream stream), LINE_ATOH)

/* Planes and volumes: the structure may be missing, so it is looked at only if it is there. */
#define COPY_STRUCT(name, type, shape)                                                             \
	CALL_TWINS(name, _ptds, (const type *copy), (copy))                                        \
	{                                                                                          \
		return copy ? copy_now(dflt, shape(copy)) : CUDA_ERROR_INVALID_VALUE;              \
	}

#define COPY_STRUCT_ASYNC(name, type, shape)                                                       \
	CALL_TWINS(name, _ptsz, (const type *copy, CUstream stream), (copy, stream))               \
	{                                                                                          \
		return copy ? copy_later(stream, dflt, shape(copy)) : CUDA_ERROR_INVALID_VALUE;    \
	}

#define COPY_STRUCT_OLD(name, type, shape)                                                         \
	CALL(name, const type *copy)                                                               \
	{                                                                                          \
		return copy ? copy_now(STREAM_DEFAULT_LEGACY, shape(copy))                         \
			    : CUDA_ERROR_INVALID_VALUE;                                            \
	}

#define COPY_STRUCT_OLD_ASYNC(name, type, shape)                                                   \
	CALL(name, const type *copy, CUstream stream)                                              \
	{                                                                                          \
		return copy ? copy_later(stream, STREAM_DEFAULT_LEGACY, shape(copy))               \
			    : CUDA_ERROR_INVALID_VALUE;                                            \
	}

COPY_STRUCT(cuMemcpy2D_v2, CUDA_MEMCPY2D, PLANE)
COPY_STRUCT(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, PLANE)
COPY_STRUCT(cuMemcpy3D_v2, CUDA_MEMCPY3D, VOLUME)
COPY_STRUCT_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, PLANE)
COPY_STRUCT_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, VOLUME)
COPY_STRUCT_OLD(cuMemcpy2D, CUDA_MEMCPY2D_v1, PLANE)
COPY_STRUCT_OLD(cuMemcpy2DUnaligned, CUDA_MEMCPY2D_v1, PLANE)
COPY_STRUCT_OLD(cuMemcpy3D, CUDA_MEMCPY3D_v1, VOLUME)
COPY_STRUCT_OLD_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D_v1, PLANE)
COPY_STRUCT_OLD_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D_v1, VOLUME)

/*
 * Between contexts: addresses are the same in all of them, so all that the contexts are good for
 * is being there.
 */
static CUresult contexts_check(CUcontext to, CUcontext from)
{
	struct context *ctx;
	CUresult r;

	r = driver_check();
	if (r == CUDA_SUCCESS)
		r = context_find(to, &ctx);
	if (r == CUDA_SUCCESS)
		r = context_find(from, &ctx);
	return r;
}

CALL_TWINS(cuMemcpyPeer, _ptds,
	   (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes),
	   (dst, dst_ctx, src, src_ctx, bytes))
{
	CUresult r = contexts_check(dst_ctx, src_ctx);

	return r != CUDA_SUCCESS ? r : copy_now(dflt, LINE_DTOD);
}

CALL_TWINS(cuMemcpyPeerAsync, _ptsz,
	   (CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
	    CUstream stream),
	   (dst, dst_ctx, src, src_ctx, bytes, stream))
{
	CUresult r = contexts_check(dst_ctx, src_ctx);

	return r != CUDA_SUCCESS ? r : copy_later(stream, dflt, LINE_DTOD);
}

CALL_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), (copy))
{
	CUresult r;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;

	r = contexts_check(copy->dstContext, copy->srcContext);
	return r != CUDA_SUCCESS ? r : copy_now(dflt, VOLUME(copy));
}

CALL_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
	   (copy, stream))
{
	CUresult r;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;

	r = contexts_check(copy->dstContext, copy->srcContext);
	return r != CUDA_SUCCESS ? r : copy_later(stream, dflt, VOLUME(copy));
}
