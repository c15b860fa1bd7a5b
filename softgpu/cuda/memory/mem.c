// SPDX-License-Identifier: Apache-2.0
/*
 * Linear device memory: cuMemAlloc() and what belongs to it.
 *
 * The calls without suffix are of the time when addresses had 32 bits. They take from a part of
 * the device that lies below 4 GiB in this process and are otherwise as the current ones.
 */
#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/memory/pool.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/state/state.h"

/* Rows of a pitched allocation begin at multiples of this. */
#define PITCH_ALIGN 512ULL

/* What cuMemFree() takes. */
#define FREEABLE                                                                                   \
	(1U << MEMORY_DEVICE | 1U << MEMORY_MANAGED | 1U << MEMORY_POOL | 1U << MEMORY_POOL_IMPORT)

CALL(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
{
	struct state_memory memory;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;

	state_memory(driver.state, ctx->device->index, &memory);
	if (free_bytes)
		*free_bytes = memory.free_bytes;
	if (total_bytes)
		*total_bytes = memory.total_bytes;
	return CUDA_SUCCESS;
}

static unsigned to_32_bits(size_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : bytes;
}

CALL(cuMemGetInfo, unsigned *free_bytes, unsigned *total_bytes)
{
	size_t device_free, total;
	CUresult r;

	r = impl_cuMemGetInfo_v2(&device_free, &total);
	if (r != CUDA_SUCCESS)
		return r;

	if (free_bytes)
		*free_bytes = to_32_bits(device_free);
	if (total_bytes)
		*total_bytes = to_32_bits(total);
	return CUDA_SUCCESS;
}

/* An allocation from the device's memory, or from the part of it that 32 bits can name. */
static CUresult device_alloc(struct vram *(*vram_of)(struct device *), size_t bytes,
			     CUdeviceptr *ret)
{
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = memory_begin(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;

	r = memory_new(MEMORY_DEVICE, vram_of(ctx->device), ctx, ctx->device, bytes, &memory);
	if (r == CUDA_SUCCESS)
		*ret = memory_addr(memory);
	return r;
}

CALL(cuMemAlloc_v2, CUdeviceptr *dptr, size_t bytes)
{
	return device_alloc(memory_vram, bytes, dptr);
}

CALL(cuMemAlloc, CUdeviceptr_v1 *dptr, unsigned bytes)
{
	CUdeviceptr at;
	CUresult r = device_alloc(memory_vram_low, bytes, dptr ? &at : NULL);

	if (r == CUDA_SUCCESS)
		*dptr = at;
	return r;
}

/* The pitch of rows and the size of all of them. */
static CUresult pitch_sizes(size_t width, size_t height, unsigned element, size_t *ret_pitch,
			    size_t *ret_bytes)
{
	size_t pitch;

	if (width == 0 || height == 0 || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_add_overflow(width, PITCH_ALIGN - 1, &pitch))
		return CUDA_ERROR_OUT_OF_MEMORY;

	pitch &= ~(PITCH_ALIGN - 1);
	if (__builtin_mul_overflow(pitch, height, ret_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;

	*ret_pitch = pitch;
	return CUDA_SUCCESS;
}

static CUresult pitch_alloc(struct vram *(*vram_of)(struct device *), size_t width, size_t height,
			    unsigned element, CUdeviceptr *ret, size_t *ret_pitch)
{
	size_t bytes;
	struct context *ctx;
	CUresult r;

	r = memory_begin(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !ret_pitch)
		return CUDA_ERROR_INVALID_VALUE;

	r = pitch_sizes(width, height, element, ret_pitch, &bytes);
	return r != CUDA_SUCCESS ? r : device_alloc(vram_of, bytes, ret);
}

CALL(cuMemAllocPitch_v2, CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
     unsigned element)
{
	size_t row;
	CUresult r = pitch_alloc(memory_vram, width, height, element, dptr, pitch ? &row : NULL);

	if (r == CUDA_SUCCESS)
		*pitch = row;
	return r;
}

CALL(cuMemAllocPitch, CUdeviceptr_v1 *dptr, unsigned *pitch, unsigned width, unsigned height,
     unsigned element)
{
	CUdeviceptr at;
	size_t row;
	CUresult r = pitch_alloc(memory_vram_low, width, height, element, dptr ? &at : NULL,
				 pitch ? &row : NULL);

	if (r != CUDA_SUCCESS)
		return r;
	*dptr = at;
	*pitch = row;
	return CUDA_SUCCESS;
}

CALL(cuMemFree_v2, CUdeviceptr dptr)
{
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = memory_begin(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!dptr)
		return CUDA_SUCCESS;

	memory = memory_claim(dptr, FREEABLE);
	if (!memory && graph_memory_exists(dptr)) {
		r = context_synchronize(ctx);
		return graph_memory_free(dptr) ? r : CUDA_ERROR_INVALID_VALUE;
	}
	if (!memory)
		return CUDA_ERROR_INVALID_VALUE;

	if (memory->ctx) {
		r = memory_release(memory);
	} else {
		/* A pool's, of no context: what may still use it is in this one. */
		r = context_synchronize(ctx);
		memory->end(memory);
	}
	pools_settle();
	return r;
}

CALL(cuMemFree, CUdeviceptr_v1 dptr)
{
	return impl_cuMemFree_v2(dptr);
}

CALL(cuMemGetAddressRange_v2, CUdeviceptr *base, size_t *size, CUdeviceptr dptr)
{
	struct memory *memory;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find(dptr);
	if (memory && !memory->is_freed) {
		if (base)
			*base = memory_addr(memory);
		if (size)
			*size = memory_size(memory);
	} else {
		r = CUDA_ERROR_NOT_FOUND;
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemGetAddressRange, CUdeviceptr_v1 *base, unsigned *size, CUdeviceptr_v1 dptr)
{
	CUdeviceptr at;
	size_t bytes;
	CUresult r;

	r = impl_cuMemGetAddressRange_v2(&at, &bytes, dptr);
	if (r != CUDA_SUCCESS)
		return r;

	if (base)
		*base = at;
	if (size)
		*size = to_32_bits(bytes);
	return CUDA_SUCCESS;
}
