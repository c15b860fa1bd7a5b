// SPDX-License-Identifier: Apache-2.0
/* Making and ending contexts, in all the forms that the calls have had. */
#include "softgpu/cuda/context.h"

/* What cuCtxGetApiVersion() tells of contexts made by the first form, and by all later ones. */
#define API_VERSION_FIRST 3010
#define API_VERSION	  3020

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, unsigned api_version)
{
	struct context *ctx;
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	r = context_flags_check(flags);
	if (r != CUDA_SUCCESS || !pctx)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&context_lock);
	ctx = context_alloc(device);
	r = ctx ? context_begin(ctx, flags) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS) {
		ctx->api_version = api_version;
		ctx->n_references = 1;
		r = current_push(ctx->handle);
		if (r != CUDA_SUCCESS)
			context_end(ctx);
	}
	if (r == CUDA_SUCCESS) {
		*pctx = ctx->handle;
	} else if (ctx) {
		handle_remove(HANDLE_CONTEXT, ctx->handle);
		context_free(ctx);
	}
	pthread_mutex_unlock(&context_lock);
	return r;
}

CALL(cuCtxCreate, CUcontext *pctx, unsigned flags, CUdevice dev)
{
	return create(pctx, flags, dev, API_VERSION_FIRST);
}

CALL(cuCtxCreate_v2, CUcontext *pctx, unsigned flags, CUdevice dev)
{
	return create(pctx, flags, dev, API_VERSION);
}

/* A part of the multiprocessors only clients of MPS can have. */
CALL(cuCtxCreate_v3, CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
     unsigned flags, CUdevice dev)
{
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (numParams < 0 || (numParams > 0 && !paramsArray))
		return CUDA_ERROR_INVALID_VALUE;
	if (numParams > 0)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return create(pctx, flags, dev, API_VERSION);
}

CALL(cuCtxCreate_v4, CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned flags,
     CUdevice dev)
{
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ctxCreateParams)
		return create(pctx, flags, dev, API_VERSION);
	if (ctxCreateParams->cigParams)
		return ctxCreateParams->numExecAffinityParams ? CUDA_ERROR_INVALID_VALUE
							      : CUDA_ERROR_NOT_SUPPORTED;
	return impl_cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
				   ctxCreateParams->numExecAffinityParams, flags, dev);
}

/* The handle has gone first, so that no other thread begins anything in it. */
static void destroy(struct context *ctx)
{
	if (context_current_handle == ctx->handle)
		current_pop();
	context_drain(ctx);
	pthread_mutex_lock(&context_lock);
	context_end(ctx);
	context_free(ctx);
	pthread_mutex_unlock(&context_lock);
}

CALL(cuCtxDestroy_v2, CUcontext handle)
{
	struct context *ctx;
	CUresult r = context_find(handle, &ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	/* Of two threads that destroy it, one gets it. */
	if (ctx->is_primary || !handle_remove(HANDLE_CONTEXT, handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	destroy(ctx);
	return CUDA_SUCCESS;
}

CALL(cuCtxDestroy, CUcontext handle)
{
	return impl_cuCtxDestroy_v2(handle);
}

/* The counting that came before primary contexts: Attach takes a reference, Detach gives it back.
 */
CALL(cuCtxAttach, CUcontext *pctx, unsigned flags)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	ctx->n_references++;
	pthread_mutex_unlock(&context_lock);
	*pctx = ctx->handle;
	return CUDA_SUCCESS;
}

CALL(cuCtxDetach, CUcontext handle)
{
	struct context *ctx;
	bool is_last;
	CUresult r = context_find(handle, &ctx);

	if (r != CUDA_SUCCESS)
		return r;
	if (ctx->is_primary || handle != context_current_handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&context_lock);
	is_last = --ctx->n_references == 0;
	pthread_mutex_unlock(&context_lock);
	return is_last ? impl_cuCtxDestroy_v2(handle) : CUDA_SUCCESS;
}

CALL(cuCtxSynchronize, void)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	return r == CUDA_SUCCESS ? context_synchronize(ctx) : r;
}

CALL(cuCtxSynchronize_v2, CUcontext handle)
{
	struct context *ctx;
	CUresult r = context_or_current(handle, &ctx);

	return r == CUDA_SUCCESS ? context_synchronize(ctx) : r;
}
