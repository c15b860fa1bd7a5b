// SPDX-License-Identifier: Apache-2.0
/*
 * Host memory that devices reach: allocated by the driver, or the program's own, registered.
 *
 * Device addresses are host addresses, so there is nothing to translate: a host pointer is its own
 * device pointer, on every device and in every context.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/stream/stream.h"
#include "softgpu/mem/room.h"

#define HOST_ALLOC_FLAGS                                                                           \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                                        \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                              \
	 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

CALL(cuMemHostAlloc, void **pp, size_t bytes, unsigned flags)
{
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!pp || bytes == 0 || flags & ~HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;

	r = stream_capture_check(ctx);
	if (r != CUDA_SUCCESS)
		return r;

	r = memory_new(MEMORY_HOST, memory_vram_host(), ctx, ctx->device, bytes, &memory);
	if (r != CUDA_SUCCESS)
		return r;

	/* Pinned memory is there at once, on hardware; here at least it could be. */
	if (!room_for(memory_addr(memory), bytes)) {
		memory_free(memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	memory->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
	*pp = (void *)memory_addr(memory);
	return CUDA_SUCCESS;
}

CALL(cuMemAllocHost_v2, void **pp, size_t bytes)
{
	return impl_cuMemHostAlloc(pp, bytes, /* flags= */ 0);
}

CALL(cuMemAllocHost, void **pp, unsigned bytes)
{
	return impl_cuMemHostAlloc(pp, bytes, /* flags= */ 0);
}

/* Ends memory of one kind that begins at @p; @missing is the error if there is none. */
static CUresult host_end(void *p, enum memory_kind kind, CUresult missing)
{
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = memory_begin(&ctx);
	if (r != CUDA_SUCCESS || !p)
		return r;

	memory = memory_claim((uint64_t)p, 1U << kind);
	return memory ? memory_release(memory) : missing;
}

CALL(cuMemFreeHost, void *p)
{
	return host_end(p, MEMORY_HOST, CUDA_ERROR_INVALID_VALUE);
}

static bool is_host_kind(const struct memory *memory)
{
	return memory && !memory->is_freed &&
	       (memory_kind(memory) == MEMORY_HOST || memory_kind(memory) == MEMORY_REGISTERED);
}

/* The flags of host memory that @p lies in. */
static CUresult host_flags(void *p, unsigned *ret)
{
	struct memory *memory;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find((uint64_t)p);
	if (is_host_kind(memory))
		*ret = memory->flags;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemHostGetFlags, unsigned *ret, void *p)
{
	unsigned flags;

	return TELL(host_flags(p, &flags), ret, flags);
}

CALL(cuMemHostGetDevicePointer_v2, CUdeviceptr *dptr, void *p, unsigned flags)
{
	unsigned have;
	CUresult r = host_flags(p, &have);

	if (r == CUDA_SUCCESS && flags)
		return CUDA_ERROR_INVALID_VALUE;
	return TELL(r, dptr, (CUdeviceptr)p);
}

CALL(cuMemHostGetDevicePointer, CUdeviceptr_v1 *dptr, void *p, unsigned flags)
{
	CUdeviceptr at;
	CUresult r = impl_cuMemHostGetDevicePointer_v2(&at, p, flags);

	if (r == CUDA_SUCCESS && at > UINT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return TELL(r, dptr, at);
}

/* Is there anything at these addresses? Asks the kernel about each page, 1 GiB at a time. */
static bool is_mapped(uint64_t addr, uint64_t bytes)
{
	static const uint64_t step = 1ULL << 30;
	uint64_t page = sysconf(_SC_PAGESIZE), end = addr + bytes, n;
	unsigned char *there;
	bool mapped = true;

	there = malloc(step / page);
	if (!there)
		return false;

	for (addr &= ~(page - 1); addr < end && mapped; addr += n) {
		n = end - addr < step ? end - addr : step;
		mapped = mincore((void *)addr, n, there) == 0;
	}
	free(there);

	return mapped;
}

static void registration_end(struct memory *memory)
{
	pthread_mutex_lock(&memory_lock);
	memory_leave(memory);
	space_unregister(&memory->range.space);
	pthread_mutex_unlock(&memory_lock);
	free(memory);
}

static CUresult registration_enter(struct memory *memory, struct context *ctx)
{
	uint64_t last = memory_addr(memory) + memory_size(memory) - 1;
	int r;

	if (memory_find(memory_addr(memory)) || memory_find(last))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;

	r = space_register(&memory->range.space);
	if (r < 0)
		return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
				    : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;

	memory_enter(memory, MEMORY_REGISTERED, ctx, ctx->device);
	return CUDA_SUCCESS;
}

CALL(cuMemHostRegister_v2, void *p, size_t bytes, unsigned flags)
{
	uint64_t addr = (uint64_t)p, end;
	struct memory *memory;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!p || bytes == 0 || flags & ~HOST_REGISTER_FLAGS ||
	    __builtin_add_overflow(addr, bytes, &end) || end > 1ULL << SPACE_BITS ||
	    !is_mapped(addr, bytes))
		return CUDA_ERROR_INVALID_VALUE;

	r = stream_capture_check(ctx);
	if (r != CUDA_SUCCESS)
		return r;

	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;

	memory->range.space.addr = addr;
	memory->range.space.size = bytes;
	memory->flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP;
	memory->end = registration_end;
	pthread_mutex_lock(&memory_lock);
	r = registration_enter(memory, ctx);
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS)
		free(memory);

	return r;
}

CALL(cuMemHostRegister, void *p, size_t bytes, unsigned flags)
{
	return impl_cuMemHostRegister_v2(p, bytes, flags);
}

CALL(cuMemHostUnregister, void *p)
{
	return host_end(p, MEMORY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
