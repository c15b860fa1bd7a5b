// SPDX-License-Identifier: Apache-2.0
/*
 * The life of contexts. The calls are in context-calls.c, primary.c and current.c.
 *
 * What other parts of the driver keep in a context they begin and end themselves: they
 * enter hooks with CONTEXT_PART() and are called in order here. The memory of a struct
 * context is never given back to the system, only used again: a thread that still holds
 * one finds it inactive, at worst.
 */
#include <stdlib.h>

#include "softgpu/cuda/context.h"
#include "softgpu/cuda/driver.h"
#include "softgpu/cuda/rm.h"
#include "softgpu/engine/engine.h"
#include "softgpu/state/state.h"

pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

#define CONTEXT_N_PARTS_MAX 16

/* The linker's list of parts, and the same in order. Under context_lock. */
extern const struct context_part *const __start_context_parts[]
	__attribute__((weak, visibility("hidden")));
extern const struct context_part *const __stop_context_parts[]
	__attribute__((weak, visibility("hidden")));
static const struct context_part *parts[CONTEXT_N_PARTS_MAX];
static size_t n_parts;

static struct context *unused; /* linked through `next`; under context_lock */

static void sort_parts(void)
{
	const struct context_part *const *part;
	size_t i;

	if (n_parts)
		return;
	for (part = __start_context_parts; part < __stop_context_parts; part++) {
		for (i = n_parts; i > 0 && parts[i - 1]->order > (*part)->order; i--)
			parts[i] = parts[i - 1];
		parts[i] = *part;
		n_parts++;
	}
}

CUresult context_flags_check(unsigned flags)
{
	unsigned waiting = flags & CU_CTX_SCHED_MASK;

	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	/* One way to wait, not two. */
	if (waiting & (waiting - 1))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

struct context *context_alloc(struct device *device)
{
	struct context *ctx = unused;

	if (ctx) {
		unused = ctx->next;
	} else {
		ctx = calloc(1, sizeof(*ctx));
		if (!ctx)
			return NULL;
		pthread_mutex_init(&ctx->lock, NULL);
	}
	ctx->device = device;
	ctx->next = NULL;
	ctx->is_primary = false;
	ctx->n_references = 0;
	atomic_store(&ctx->error, CUDA_ERROR_CONTEXT_IS_DESTROYED);
	ctx->handle = handle_new(CUcontext, HANDLE_CONTEXT, ctx);
	if (ctx->handle)
		return ctx;
	context_free(ctx);
	return NULL;
}

void context_free(struct context *ctx)
{
	ctx->next = unused;
	unused = ctx;
}

/* What a context has before the program changes it. */
static void set_defaults(struct context *ctx, unsigned flags)
{
	static const uint64_t limits[CONTEXT_N_LIMITS] = {
		[CU_LIMIT_STACK_SIZE] = 1024,
		[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
		[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
		[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
		[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
		[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
	};
	static _Atomic uint64_t n_ids;
	int i;

	ctx->id = atomic_fetch_add(&n_ids, 1) + 1;
	atomic_store(&ctx->flags, flags);
	atomic_store(&ctx->peers, 0);
	atomic_store(&ctx->cache_config, CU_FUNC_CACHE_PREFER_NONE);
	atomic_store(&ctx->shared_config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
	for (i = 0; i < CONTEXT_N_LIMITS; i++)
		atomic_store(&ctx->limits[i], limits[i]);
}

static void end_parts(struct context *ctx, size_t n)
{
	while (n-- > 0)
		if (parts[n]->end)
			parts[n]->end(ctx);
}

static CUresult begin_parts(struct context *ctx)
{
	CUresult r;
	size_t i;

	for (i = 0; i < n_parts; i++) {
		r = parts[i]->begin ? parts[i]->begin(ctx) : CUDA_SUCCESS;
		if (r != CUDA_SUCCESS) {
			end_parts(ctx, i);
			return r;
		}
	}
	return CUDA_SUCCESS;
}

static void give_back_device(struct context *ctx)
{
	unsigned index = ctx->device->index;

	engine_client_free(ctx->client);
	ctx->client = NULL;
	state_uncharge(driver.state, index, ctx->charged_bytes);
	ctx->charged_bytes = 0;
}

static CUresult take_device(struct context *ctx)
{
	unsigned index = ctx->device->index;
	uint64_t bytes = ctx->device->config.context_bytes;
	int r;

	if (rm_charge(index, bytes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ctx->charged_bytes = bytes;
	r = engine_client_new(driver.state, index, &ctx->client);
	if (r == 0)
		return CUDA_SUCCESS;
	ctx->client = NULL;
	give_back_device(ctx);
	return r == STATE_E_BUSY ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult context_begin(struct context *ctx, unsigned flags)
{
	CUresult r;

	sort_parts();
	set_defaults(ctx, flags);
	r = take_device(ctx);
	if (r != CUDA_SUCCESS)
		return r;
	r = begin_parts(ctx);
	if (r != CUDA_SUCCESS) {
		give_back_device(ctx);
		return r;
	}
	state_context_add(driver.state, ctx->device->index, 1);
	atomic_store_explicit(&ctx->error, CUDA_SUCCESS, memory_order_release);
	return CUDA_SUCCESS;
}

void context_drain(struct context *ctx)
{
	size_t i;

	if (context_error(ctx) != CUDA_SUCCESS)
		return;
	for (i = 0; i < n_parts; i++)
		if (parts[i]->drain)
			parts[i]->drain(ctx, driver.config.end_wait_ns);
}

void context_end(struct context *ctx)
{
	engine_client_abort(ctx->client);
	atomic_store_explicit(&ctx->error, CUDA_ERROR_CONTEXT_IS_DESTROYED, memory_order_release);
	end_parts(ctx, n_parts);
	give_back_device(ctx);
	state_context_add(driver.state, ctx->device->index, -1);
}

CUresult context_find(CUcontext handle, struct context **ret)
{
	return FIND(handle_get(HANDLE_CONTEXT, handle), CUDA_ERROR_INVALID_CONTEXT, ret);
}

CUresult context_or_current(CUcontext handle, struct context **ret)
{
	return handle ? context_find(handle, ret) : context_current_any(ret);
}

/* The number under which NVML tells of a kernel's fault; 0 for errors that are none. */
static uint32_t fault_xid(CUresult error)
{
	switch (error) {
	case CUDA_ERROR_ILLEGAL_ADDRESS:
		return 31; /* page fault */
	case CUDA_ERROR_ASSERT:
	case CUDA_ERROR_LAUNCH_FAILED:
		return 43; /* stopped processing */
	case CUDA_ERROR_HARDWARE_STACK_ERROR:
	case CUDA_ERROR_MISALIGNED_ADDRESS:
	case CUDA_ERROR_INVALID_PC:
		return 13; /* exception of the SMs */
	default:
		return 0;
	}
}

void context_fail(struct context *ctx, CUresult error)
{
	CUresult none = CUDA_SUCCESS;

	if (!atomic_compare_exchange_strong(&ctx->error, &none, error))
		return;
	driver_log("context %llu of device %d has failed: error %d", (unsigned long long)ctx->id,
		   ctx->device->ordinal, error);
	if (fault_xid(error))
		state_fault_add(driver.state, ctx->device->index, fault_xid(error));
}

CUresult context_synchronize(struct context *ctx)
{
	CUresult r = context_error(ctx), first = CUDA_SUCCESS;
	size_t i;

	if (r != CUDA_SUCCESS)
		return r;
	for (i = 0; i < n_parts; i++) {
		r = parts[i]->synchronize ? parts[i]->synchronize(ctx) : CUDA_SUCCESS;
		if (first == CUDA_SUCCESS)
			first = r;
	}
	r = context_error(ctx);
	return r != CUDA_SUCCESS ? r : first;
}
