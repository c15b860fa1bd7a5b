// SPDX-License-Identifier: Apache-2.0
/*
 * Copies and sets.
 *
 * One-dimensional copies go to the driver's call of their direction, as a genuine runtime
 * makes them; everything with pitches or arrays becomes the driver's three-dimensional copy.
 * The twins that wait on the thread's own stream are in copy-own.c.
 */
#include <string.h>

#include "softgpu/cudart/copy.h"

static bool kind_is_valid(enum cudaMemcpyKind kind)
{
	return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

static CUresult copy_linear(CUdeviceptr dst, CUdeviceptr src, size_t size_bytes,
			    enum cudaMemcpyKind kind)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return driver.cuMemcpyHtoD(dst, (const void *)src, size_bytes);
	case cudaMemcpyDeviceToHost:
		return driver.cuMemcpyDtoH((void *)dst, src, size_bytes);
	case cudaMemcpyDeviceToDevice:
		return driver.cuMemcpyDtoD(dst, src, size_bytes);
	default:
		return driver.cuMemcpy(dst, src, size_bytes);
	}
}

static CUresult copy_linear_async(CUdeviceptr dst, CUdeviceptr src, size_t size_bytes,
				  enum cudaMemcpyKind kind, CUstream stream)
{
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return driver.cuMemcpyHtoDAsync(dst, (const void *)src, size_bytes, stream);
	case cudaMemcpyDeviceToHost:
		return driver.cuMemcpyDtoHAsync((void *)dst, src, size_bytes, stream);
	case cudaMemcpyDeviceToDevice:
		return driver.cuMemcpyDtoDAsync(dst, src, size_bytes, stream);
	default:
		return driver.cuMemcpyAsync(dst, src, size_bytes, stream);
	}
}

RUNTIME_CALL(cudaMemcpy, void *dst, const void *src, size_t size_bytes, enum cudaMemcpyKind kind)
{
	cudaError_t error;

	if (!kind_is_valid(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	error = in_context();
	if (error || size_bytes == 0)
		return error;
	return told(copy_linear((CUdeviceptr)dst, (CUdeviceptr)src, size_bytes, kind));
}

STREAM_CALL(cudaMemcpyAsync,
	    (void *dst, const void *src, size_t size_bytes, enum cudaMemcpyKind kind,
	     CUstream stream),
	    (dst, src, size_bytes, kind, stream))
{
	cudaError_t error;

	if (!kind_is_valid(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	error = in_context();
	if (error || size_bytes == 0)
		return error;
	return told(
		copy_linear_async((CUdeviceptr)dst, (CUdeviceptr)src, size_bytes, kind, stream));
}

/* One side of a copy: an array, or pitched memory on the side that the kind says. */
struct side {
	CUarray array;
	struct cudaPitchedPtr ptr;
	struct cudaPos pos; /* in elements of an array, else in bytes */
	CUmemorytype type;
};

static CUmemorytype type_of(CUarray array, bool is_host, enum cudaMemcpyKind kind)
{
	if (array)
		return CU_MEMORYTYPE_ARRAY;
	if (kind == cudaMemcpyDefault)
		return CU_MEMORYTYPE_UNIFIED;
	return is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static bool source_is_host(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
}

static bool destination_is_host(enum cudaMemcpyKind kind)
{
	return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
}

/* Bytes that a copy counts in: an element where the side is an array; 0 if it is none. */
static size_t unit_of(const struct side *side)
{
	return side->array ? element_bytes(side->array) : 1;
}

/**
 * copy_of() - the driver's form of a copy
 * @width:	in elements where an array takes part, else in bytes
 *
 * Return: cudaSuccess, or cudaErrorInvalidValue if what is called an array is none.
 */
static cudaError_t copy_of(struct side dst, struct side src, size_t width, size_t height,
			   size_t depth, CUDA_MEMCPY3D *ret)
{
	size_t dst_unit = unit_of(&dst), src_unit = unit_of(&src);

	if (!dst_unit || !src_unit)
		return failed(cudaErrorInvalidValue);
	*ret = (CUDA_MEMCPY3D){
		.srcXInBytes = src.pos.x * src_unit,
		.srcY = src.pos.y,
		.srcZ = src.pos.z,
		.srcMemoryType = src.type,
		.srcHost = src.ptr.ptr,
		.srcDevice = (CUdeviceptr)src.ptr.ptr,
		.srcArray = src.array,
		.srcPitch = src.ptr.pitch,
		.srcHeight = src.ptr.ysize,
		.dstXInBytes = dst.pos.x * dst_unit,
		.dstY = dst.pos.y,
		.dstZ = dst.pos.z,
		.dstMemoryType = dst.type,
		.dstHost = dst.ptr.ptr,
		.dstDevice = (CUdeviceptr)dst.ptr.ptr,
		.dstArray = dst.array,
		.dstPitch = dst.ptr.pitch,
		.dstHeight = dst.ptr.ysize,
		.WidthInBytes = width * (dst.array ? dst_unit : src_unit),
		.Height = height,
		.Depth = depth,
	};
	return cudaSuccess;
}

cudaError_t copy_of_parms(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret)
{
	struct side dst, src;

	if (!p || (p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr))
		return failed(cudaErrorInvalidValue);
	if (!kind_is_valid(p->kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	dst = (struct side){ p->dstArray, p->dstPtr, p->dstPos,
			     type_of(p->dstArray, destination_is_host(p->kind), p->kind) };
	src = (struct side){ p->srcArray, p->srcPtr, p->srcPos,
			     type_of(p->srcArray, source_is_host(p->kind), p->kind) };
	return copy_of(dst, src, p->extent.width, p->extent.height, p->extent.depth, ret);
}

static enum cudaMemcpyKind kind_of(CUmemorytype dst, CUmemorytype src)
{
	if (dst == CU_MEMORYTYPE_UNIFIED || src == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (dst == CU_MEMORYTYPE_HOST)
		return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
	return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

struct cudaMemcpy3DParms parms_of_copy(const CUDA_MEMCPY3D *copy)
{
	bool to_array = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
	bool from_array = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY;
	/* An array that is gone by now has no elements: bytes, then. */
	size_t element = (to_array     ? element_bytes(copy->dstArray)
			  : from_array ? element_bytes(copy->srcArray)
				       : 1)
				 ?: 1;
	struct cudaMemcpy3DParms parms = {
		.srcPos = { copy->srcXInBytes / (from_array ? element : 1), copy->srcY,
			    copy->srcZ },
		.dstPos = { copy->dstXInBytes / (to_array ? element : 1), copy->dstY, copy->dstZ },
		.extent = { copy->WidthInBytes / element, copy->Height, copy->Depth },
		.kind = kind_of(copy->dstMemoryType, copy->srcMemoryType),
	};

	if (from_array)
		parms.srcArray = copy->srcArray;
	else
		parms.srcPtr = (struct cudaPitchedPtr){ (void *)copy->srcDevice, copy->srcPitch,
							copy->srcPitch, copy->srcHeight };
	if (to_array)
		parms.dstArray = copy->dstArray;
	else
		parms.dstPtr = (struct cudaPitchedPtr){ (void *)copy->dstDevice, copy->dstPitch,
							copy->dstPitch, copy->dstHeight };
	return parms;
}

static bool is_empty(const CUDA_MEMCPY3D *copy)
{
	return copy->WidthInBytes == 0 || copy->Height == 0 || copy->Depth == 0;
}

static cudaError_t copy_now(CUDA_MEMCPY3D copy)
{
	return is_empty(&copy) ? cudaSuccess : told(driver.cuMemcpy3D(&copy));
}

static cudaError_t copy_on(CUDA_MEMCPY3D copy, CUstream stream)
{
	return is_empty(&copy) ? cudaSuccess : told(driver.cuMemcpy3DAsync(&copy, stream));
}

RUNTIME_CALL(cudaMemcpy3D, const struct cudaMemcpy3DParms *parms)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = in_context() ?: copy_of_parms(parms, &copy);

	return error ?: copy_now(copy);
}

STREAM_CALL(cudaMemcpy3DAsync, (const struct cudaMemcpy3DParms *parms, CUstream stream),
	    (parms, stream))
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = in_context() ?: copy_of_parms(parms, &copy);

	return error ?: copy_on(copy, stream);
}

/* Linear memory: an address, a pitch. */
static struct side linear(const void *ptr, size_t pitch, bool is_host, enum cudaMemcpyKind kind)
{
	return (struct side){ .ptr = { .ptr = (void *)ptr, .pitch = pitch },
			      .type = type_of(NULL, is_host, kind) };
}

/* An array from a byte of a row on. */
static struct side part_of(CUarray array, size_t x_bytes, size_t y)
{
	size_t element = element_bytes(array);

	return (struct side){ .array = array,
			      .pos = { .x = element ? x_bytes / element : 0, .y = y },
			      .type = CU_MEMORYTYPE_ARRAY };
}

/* The width of a copy with an array on one side, given in bytes. */
static size_t elements_in(CUarray array, size_t width_bytes)
{
	size_t element = element_bytes(array);

	return element ? width_bytes / element : 0;
}

static cudaError_t check_pitches(size_t dst_pitch, size_t src_pitch, size_t width,
				 enum cudaMemcpyKind kind)
{
	if (!kind_is_valid(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	if (width > dst_pitch || width > src_pitch)
		return failed(cudaErrorInvalidPitchValue);
	return in_context();
}

RUNTIME_CALL(cudaMemcpy2D, void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	     size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;

	return check_pitches(dst_pitch, src_pitch, width, kind)
		       ?: copy_of(linear(dst, dst_pitch, destination_is_host(kind), kind),
				  linear(src, src_pitch, source_is_host(kind), kind),
				  width, height, 1, &copy)
		       ?: copy_now(copy);
}

STREAM_CALL(cudaMemcpy2DAsync,
	    (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
	     size_t height, enum cudaMemcpyKind kind, CUstream stream),
	    (dst, dst_pitch, src, src_pitch, width, height, kind, stream))
{
	CUDA_MEMCPY3D copy;

	return check_pitches(dst_pitch, src_pitch, width, kind)
		       ?: copy_of(linear(dst, dst_pitch, destination_is_host(kind), kind),
				  linear(src, src_pitch, source_is_host(kind), kind), width,
				  height, 1, &copy)
		       ?: copy_on(copy, stream);
}

STREAM_CALL(cudaMemcpy2DToArrayAsync,
	    (CUarray dst, size_t x_bytes, size_t y, const void *src, size_t src_pitch, size_t width,
	     size_t height, enum cudaMemcpyKind kind, CUstream stream),
	    (dst, x_bytes, y, src, src_pitch, width, height, kind, stream))
{
	CUDA_MEMCPY3D copy;

	return check_pitches(width, src_pitch, width, kind)
		       ?: copy_of(part_of(dst, x_bytes, y),
				  linear(src, src_pitch, source_is_host(kind), kind),
				  elements_in(dst, width), height, 1, &copy)
		       ?: copy_on(copy, stream);
}

RUNTIME_CALL(cudaMemcpy2DToArray, CUarray dst, size_t x_bytes, size_t y, const void *src,
	     size_t src_pitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;

	return check_pitches(width, src_pitch, width, kind)
		       ?: copy_of(part_of(dst, x_bytes, y),
				  linear(src, src_pitch, source_is_host(kind), kind),
				  elements_in(dst, width), height, 1, &copy)
		       ?: copy_now(copy);
}

STREAM_CALL(cudaMemcpy2DFromArrayAsync,
	    (void *dst, size_t dst_pitch, CUarray src, size_t x_bytes, size_t y, size_t width,
	     size_t height, enum cudaMemcpyKind kind, CUstream stream),
	    (dst, dst_pitch, src, x_bytes, y, width, height, kind, stream))
{
	CUDA_MEMCPY3D copy;

	return check_pitches(dst_pitch, width, width, kind)
		       ?: copy_of(linear(dst, dst_pitch, destination_is_host(kind), kind),
				  part_of(src, x_bytes, y), elements_in(src, width), height,
				  1, &copy)
		       ?: copy_on(copy, stream);
}

RUNTIME_CALL(cudaMemcpy2DFromArray, void *dst, size_t dst_pitch, CUarray src, size_t x_bytes,
	     size_t y, size_t width, size_t height, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;

	return check_pitches(dst_pitch, width, width, kind)
		       ?: copy_of(linear(dst, dst_pitch, destination_is_host(kind), kind),
				  part_of(src, x_bytes, y), elements_in(src, width),
				  height, 1, &copy)
		       ?: copy_now(copy);
}

/* Bytes of a row of an array; 0 if it is not one. */
static size_t row_bytes(CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;

	if (driver.cuArray3DGetDescriptor(&descriptor, array))
		return 0;
	return descriptor.Width * element_bytes(array);
}

/*
 * The linear forms go on in the next row where one ends: a first part up to the end of the
 * row, whole rows, and the rest. @to says which way; each part is a copy of its own.
 */
static cudaError_t copy_rows(CUarray array, size_t x_bytes, size_t y, void *memory,
			     size_t size_bytes, enum cudaMemcpyKind kind, bool to, CUstream stream)
{
	size_t row = row_bytes(array);
	cudaError_t error = in_context();

	if (!error && (row == 0 || x_bytes >= row))
		return failed(cudaErrorInvalidValue);
	while (!error && size_bytes > 0) {
		size_t rows = x_bytes == 0 && size_bytes >= row ? size_bytes / row : 1;
		size_t width = rows > 1 || size_bytes > row - x_bytes ? row - x_bytes : size_bytes;

		error = to ? run_cudaMemcpy2DToArrayAsync(array, x_bytes, y, memory, width, width,
							  rows, kind, stream)
			   : run_cudaMemcpy2DFromArrayAsync(memory, width, array, x_bytes, y, width,
							    rows, kind, stream);
		memory = (char *)memory + width * rows;
		size_bytes -= width * rows;
		x_bytes = 0;
		y += rows;
	}
	return error;
}

STREAM_CALL(cudaMemcpyToArrayAsync,
	    (CUarray dst, size_t x_bytes, size_t y, const void *src, size_t size_bytes,
	     enum cudaMemcpyKind kind, CUstream stream),
	    (dst, x_bytes, y, src, size_bytes, kind, stream))
{
	return copy_rows(dst, x_bytes, y, (void *)src, size_bytes, kind, /* to= */ true, stream);
}

STREAM_CALL(cudaMemcpyFromArrayAsync,
	    (void *dst, CUarray src, size_t x_bytes, size_t y, size_t size_bytes,
	     enum cudaMemcpyKind kind, CUstream stream),
	    (dst, src, x_bytes, y, size_bytes, kind, stream))
{
	return copy_rows(src, x_bytes, y, dst, size_bytes, kind, /* to= */ false, stream);
}

static cudaError_t finish_legacy(cudaError_t error)
{
	return error ?: told(driver.cuStreamSynchronize(CU_STREAM_LEGACY));
}

RUNTIME_CALL(cudaMemcpyToArray, CUarray dst, size_t x_bytes, size_t y, const void *src,
	     size_t size_bytes, enum cudaMemcpyKind kind)
{
	return finish_legacy(run_cudaMemcpyToArrayAsync(dst, x_bytes, y, src, size_bytes, kind,
							CU_STREAM_LEGACY));
}

RUNTIME_CALL(cudaMemcpyFromArray, void *dst, CUarray src, size_t x_bytes, size_t y,
	     size_t size_bytes, enum cudaMemcpyKind kind)
{
	return finish_legacy(run_cudaMemcpyFromArrayAsync(dst, src, x_bytes, y, size_bytes, kind,
							  CU_STREAM_LEGACY));
}

static cudaError_t finish_own(cudaError_t error)
{
	return error ?: told(driver.cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

static cudaError_t copy_between(CUarray dst, size_t dst_x_bytes, size_t dst_y, CUarray src,
				size_t src_x_bytes, size_t src_y, size_t width, size_t height,
				CUstream stream)
{
	CUDA_MEMCPY3D copy;

	return in_context()
		       ?: copy_of(part_of(dst, dst_x_bytes, dst_y),
				  part_of(src, src_x_bytes, src_y), elements_in(src, width), height,
				  1, &copy)
		       ?: copy_on(copy, stream);
}

RUNTIME_CALL(cudaMemcpy2DArrayToArray, CUarray dst, size_t dst_x_bytes, size_t dst_y, CUarray src,
	     size_t src_x_bytes, size_t src_y, size_t width, size_t height,
	     _unused_ enum cudaMemcpyKind kind)
{
	return finish_legacy(copy_between(dst, dst_x_bytes, dst_y, src, src_x_bytes, src_y, width,
					  height, CU_STREAM_LEGACY));
}

RUNTIME_CALL(cudaMemcpy2DArrayToArray_ptds, CUarray dst, size_t dst_x_bytes, size_t dst_y,
	     CUarray src, size_t src_x_bytes, size_t src_y, size_t width, size_t height,
	     _unused_ enum cudaMemcpyKind kind)
{
	return finish_own(copy_between(dst, dst_x_bytes, dst_y, src, src_x_bytes, src_y, width,
				       height, CU_STREAM_PER_THREAD));
}

/* The linear form between arrays: a part ends where a row of either does. */
static cudaError_t copy_rows_between(CUarray dst, size_t dst_x_bytes, size_t dst_y, CUarray src,
				     size_t src_x_bytes, size_t src_y, size_t size_bytes,
				     CUstream stream)
{
	cudaError_t error = in_context();
	size_t dst_row, src_row;

	if (error)
		return error;
	dst_row = row_bytes(dst);
	src_row = row_bytes(src);
	if (dst_x_bytes >= dst_row || src_x_bytes >= src_row)
		return failed(cudaErrorInvalidValue);
	while (!error && size_bytes > 0) {
		size_t width = dst_row - dst_x_bytes;

		if (width > src_row - src_x_bytes)
			width = src_row - src_x_bytes;
		if (width > size_bytes)
			width = size_bytes;
		error = copy_between(dst, dst_x_bytes, dst_y, src, src_x_bytes, src_y, width, 1,
				     stream);
		size_bytes -= width;
		dst_x_bytes += width;
		dst_y += dst_x_bytes / dst_row;
		dst_x_bytes %= dst_row;
		src_x_bytes += width;
		src_y += src_x_bytes / src_row;
		src_x_bytes %= src_row;
	}
	return error;
}

RUNTIME_CALL(cudaMemcpyArrayToArray, CUarray dst, size_t dst_x_bytes, size_t dst_y, CUarray src,
	     size_t src_x_bytes, size_t src_y, size_t size_bytes, _unused_ enum cudaMemcpyKind kind)
{
	return finish_legacy(copy_rows_between(dst, dst_x_bytes, dst_y, src, src_x_bytes, src_y,
					       size_bytes, CU_STREAM_LEGACY));
}

RUNTIME_CALL(cudaMemcpyArrayToArray_ptds, CUarray dst, size_t dst_x_bytes, size_t dst_y,
	     CUarray src, size_t src_x_bytes, size_t src_y, size_t size_bytes,
	     _unused_ enum cudaMemcpyKind kind)
{
	return finish_own(copy_rows_between(dst, dst_x_bytes, dst_y, src, src_x_bytes, src_y,
					    size_bytes, CU_STREAM_PER_THREAD));
}

cudaError_t variable_part(const void *symbol, size_t size_bytes, size_t offset, CUdeviceptr *ret)
{
	cudaError_t error;
	size_t room, end;

	error = in_context() ?: symbol_variable(symbol, ret, &room);
	if (error)
		return error;
	if (__builtin_add_overflow(offset, size_bytes, &end) || end > room)
		return failed(cudaErrorInvalidValue);
	*ret += offset;
	return cudaSuccess;
}

RUNTIME_CALL(cudaMemcpyToSymbol, const void *symbol, const void *src, size_t size_bytes,
	     size_t offset, enum cudaMemcpyKind kind)
{
	CUdeviceptr dst;

	if (destination_is_host(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	return variable_part(symbol, size_bytes, offset, &dst)
		       ?: impl_cudaMemcpy((void *)dst, src, size_bytes, kind);
}

RUNTIME_CALL(cudaMemcpyFromSymbol, void *dst, const void *symbol, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind)
{
	CUdeviceptr src;

	if (source_is_host(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	return variable_part(symbol, size_bytes, offset, &src)
		       ?: impl_cudaMemcpy(dst, (void *)src, size_bytes, kind);
}

STREAM_CALL(cudaMemcpyToSymbolAsync,
	    (const void *symbol, const void *src, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind, CUstream stream),
	    (symbol, src, size_bytes, offset, kind, stream))
{
	CUdeviceptr dst;

	if (destination_is_host(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	return variable_part(symbol, size_bytes, offset, &dst)
		       ?: run_cudaMemcpyAsync((void *)dst, src, size_bytes, kind, stream);
}

STREAM_CALL(cudaMemcpyFromSymbolAsync,
	    (void *dst, const void *symbol, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind, CUstream stream),
	    (dst, symbol, size_bytes, offset, kind, stream))
{
	CUdeviceptr src;

	if (source_is_host(kind))
		return failed(cudaErrorInvalidMemcpyDirection);
	return variable_part(symbol, size_bytes, offset, &src)
		       ?: run_cudaMemcpyAsync(dst, (void *)src, size_bytes, kind, stream);
}

RUNTIME_CALL(cudaMemset, void *ptr, int value, size_t size_bytes)
{
	cudaError_t error = in_context();

	if (error || size_bytes == 0)
		return error;
	return told(driver.cuMemsetD8((CUdeviceptr)ptr, (unsigned char)value, size_bytes));
}

STREAM_CALL(cudaMemsetAsync, (void *ptr, int value, size_t size_bytes, CUstream stream),
	    (ptr, value, size_bytes, stream))
{
	cudaError_t error = in_context();

	if (error || size_bytes == 0)
		return error;
	return told(
		driver.cuMemsetD8Async((CUdeviceptr)ptr, (unsigned char)value, size_bytes, stream));
}

RUNTIME_CALL(cudaMemset2D, void *ptr, size_t pitch, int value, size_t width, size_t height)
{
	return in_context()
		       ?: told(driver.cuMemsetD2D8((CUdeviceptr)ptr, pitch, (unsigned char)value,
						   width, height));
}

STREAM_CALL(cudaMemset2DAsync,
	    (void *ptr, size_t pitch, int value, size_t width, size_t height, CUstream stream),
	    (ptr, pitch, value, width, height, stream))
{
	return in_context()
		       ?: told(driver.cuMemsetD2D8Async((CUdeviceptr)ptr, pitch,
							(unsigned char)value, width, height,
							stream));
}

/* Slices lie ysize rows apart; a set of fewer rows leaves the rest of each slice alone. */
STREAM_CALL(cudaMemset3DAsync,
	    (struct cudaPitchedPtr ptr, int value, struct cudaExtent extent, CUstream stream),
	    (ptr, value, extent, stream))
{
	cudaError_t error = cudaSuccess;

	for (size_t z = 0; z < extent.depth && !error; z++)
		error = run_cudaMemset2DAsync((char *)ptr.ptr + z * ptr.pitch * ptr.ysize,
					      ptr.pitch, value, extent.width, extent.height,
					      stream);
	return error;
}

RUNTIME_CALL(cudaMemset3D, struct cudaPitchedPtr ptr, int value, struct cudaExtent extent)
{
	return finish_legacy(run_cudaMemset3DAsync(ptr, value, extent, CU_STREAM_LEGACY));
}
