// SPDX-License-Identifier: Apache-2.0
/* What a context is like: flags, limits, preferences. */
#include "softgpu/cuda/context.h"

/* A context that has failed still tells what it is. */
CALL(cuCtxGetDevice, CUdevice *device)
{
	struct context *ctx;

	return TELL(context_current_any(&ctx), device, ctx->device->ordinal);
}

CALL(cuCtxGetDevice_v2, CUdevice *device, CUcontext handle)
{
	struct context *ctx;

	return TELL(context_or_current(handle, &ctx), device, ctx->device->ordinal);
}

CALL(cuCtxGetId, CUcontext handle, unsigned long long *ctxId)
{
	struct context *ctx;
	CUresult r = context_or_current(handle, &ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_error(ctx) == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!ctxId)
		return CUDA_ERROR_INVALID_VALUE;
	*ctxId = ctx->id;
	return CUDA_SUCCESS;
}

CALL(cuCtxGetApiVersion, CUcontext handle, unsigned *version)
{
	struct context *ctx;

	return TELL(context_or_current(handle, &ctx), version, ctx->api_version);
}

CALL(cuCtxGetFlags, unsigned *flags)
{
	struct context *ctx;

	return TELL(context_current(&ctx), flags, atomic_load(&ctx->flags));
}

CALL(cuCtxSetFlags, unsigned flags)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r == CUDA_SUCCESS)
		r = context_flags_check(flags);
	if (r == CUDA_SUCCESS)
		atomic_store(&ctx->flags, flags);
	return r;
}

/* 0 for a limit that devices of this capability have; an error for one they do not, or no limit. */
static CUresult limit_check(const struct context *ctx, CUlimit limit)
{
	if ((int)limit < 0 || limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	switch (limit) {
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
		/* Kernels of 9.0 and newer cannot wait for those they launch. */
		return ctx->device->config.compute_major >= 9 ? CUDA_ERROR_UNSUPPORTED_LIMIT
							      : CUDA_SUCCESS;
	case CU_LIMIT_SHMEM_SIZE:
	case CU_LIMIT_CIG_ENABLED:
	case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	default:
		return CUDA_SUCCESS;
	}
}

CALL(cuCtxGetLimit, size_t *pvalue, CUlimit limit)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r == CUDA_SUCCESS)
		r = limit_check(ctx, limit);
	if (r != CUDA_SUCCESS)
		return r;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	*pvalue = atomic_load(&ctx->limits[limit]);
	return CUDA_SUCCESS;
}

/* What becomes of a wish: sizes are rounded up, or cut to what the device has. */
static uint64_t limit_round(CUlimit limit, uint64_t value)
{
	switch (limit) {
	case CU_LIMIT_STACK_SIZE:
		return (value + 15) / 16 * 16;
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		return value < 128 ? value : 128;
	case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
		/* No part of the cache can be set aside. */
		return 0;
	default:
		return value;
	}
}

CALL(cuCtxSetLimit, CUlimit limit, size_t value)
{
	const uint64_t stack_max = 512 << 10;
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r == CUDA_SUCCESS)
		r = limit_check(ctx, limit);
	if (r != CUDA_SUCCESS)
		return r;
	if (limit == CU_LIMIT_STACK_SIZE && value > stack_max)
		return CUDA_ERROR_INVALID_VALUE;
	if (limit == CU_LIMIT_MALLOC_HEAP_SIZE && atomic_load(&ctx->heap_stands))
		return CUDA_ERROR_INVALID_VALUE;
	/* Heaps and buffers live on the device. */
	if (value > ctx->device->config.memory_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	atomic_store(&ctx->limits[limit], limit_round(limit, value));
	return CUDA_SUCCESS;
}

CALL(cuCtxGetCacheConfig, CUfunc_cache *pconfig)
{
	struct context *ctx;

	return TELL(context_current(&ctx), pconfig, atomic_load(&ctx->cache_config));
}

CALL(cuCtxSetCacheConfig, CUfunc_cache config)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&ctx->cache_config, config);
	return CUDA_SUCCESS;
}

CALL(cuCtxGetSharedMemConfig, CUsharedconfig *pConfig)
{
	struct context *ctx;

	return TELL(context_current(&ctx), pConfig, atomic_load(&ctx->shared_config));
}

/* Accepted and without effect, as on every device that can still be bought. */
CALL(cuCtxSetSharedMemConfig, CUsharedconfig config)
{
	CUresult r = context_need();

	if (r != CUDA_SUCCESS)
		return r;
	return config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
								  : CUDA_SUCCESS;
}

CALL(cuCtxResetPersistingL2Cache, void)
{

	return context_need();
}

CALL(cuCtxGetExecAffinity, CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!pExecAffinity || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	pExecAffinity->type = type;
	pExecAffinity->param.smCount.val = ctx->device->config.n_sms;
	return CUDA_SUCCESS;
}
