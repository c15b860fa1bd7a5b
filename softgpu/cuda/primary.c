// SPDX-License-Identifier: Apache-2.0
/*
 * Primary contexts: one for each device and process, shared by all who retain it.
 *
 * Its handle is the same from cuInit() to the end of the process. It is active from the first
 * Retain to the last Release, or to a Reset, which ends it for all and keeps the references; the
 * next Retain then makes it active anew.
 */
#include "softgpu/cuda/context.h"
#include "softgpu/cuda/driver.h"

#define API_VERSION 3020

struct context *context_primary_new(struct device *device)
{
	struct context *ctx;

	pthread_mutex_lock(&context_lock);
	ctx = context_alloc(device);
	if (ctx) {
		ctx->is_primary = true;
		ctx->api_version = API_VERSION;
	}
	pthread_mutex_unlock(&context_lock);
	return ctx;
}

static bool is_active(const struct context *ctx)
{
	return context_error(ctx) != CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CALL(cuDevicePrimaryCtxRetain, CUcontext *pctx, CUdevice dev)
{
	struct context *ctx;
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	ctx = device->primary;
	pthread_mutex_lock(&context_lock);
	if (!is_active(ctx))
		r = context_begin(ctx, atomic_load(&ctx->flags));
	if (r == CUDA_SUCCESS) {
		ctx->n_references++;
		*pctx = ctx->handle;
	}
	pthread_mutex_unlock(&context_lock);
	return r;
}

/* Somebody may retain it again while it is drained. */
static void end(struct context *ctx, bool only_unreferenced)
{
	context_drain(ctx);
	pthread_mutex_lock(&context_lock);
	if (is_active(ctx) && !(only_unreferenced && ctx->n_references))
		context_end(ctx);
	pthread_mutex_unlock(&context_lock);
}

CALL(cuDevicePrimaryCtxRelease_v2, CUdevice dev)
{
	struct context *ctx;
	struct device *device;
	bool is_last;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	ctx = device->primary;
	pthread_mutex_lock(&context_lock);
	is_last = ctx->n_references == 1;
	if (ctx->n_references)
		ctx->n_references--;
	else
		r = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&context_lock);
	if (is_last)
		end(ctx, /* only_unreferenced= */ true);
	return r;
}

CALL(cuDevicePrimaryCtxRelease, CUdevice dev)
{
	return impl_cuDevicePrimaryCtxRelease_v2(dev);
}

CALL(cuDevicePrimaryCtxReset_v2, CUdevice dev)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (context_in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	end(device->primary, /* only_unreferenced= */ false);
	return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxReset, CUdevice dev)
{
	return impl_cuDevicePrimaryCtxReset_v2(dev);
}

static CUresult set_flags(CUdevice dev, unsigned flags, bool while_active)
{
	struct context *ctx;
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r == CUDA_SUCCESS)
		r = context_flags_check(flags);
	if (r != CUDA_SUCCESS)
		return r;
	ctx = device->primary;
	pthread_mutex_lock(&context_lock);
	if (is_active(ctx) && !while_active)
		r = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	else
		atomic_store(&ctx->flags, flags);
	pthread_mutex_unlock(&context_lock);
	return r;
}

CALL(cuDevicePrimaryCtxSetFlags, CUdevice dev, unsigned flags)
{
	return set_flags(dev, flags, /* while_active= */ false);
}

CALL(cuDevicePrimaryCtxSetFlags_v2, CUdevice dev, unsigned flags)
{
	return set_flags(dev, flags, /* while_active= */ true);
}

CALL(cuDevicePrimaryCtxGetState, CUdevice dev, unsigned *flags, int *active)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load(&device->primary->flags);
	*active = is_active(device->primary);
	return CUDA_SUCCESS;
}
