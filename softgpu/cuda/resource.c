// SPDX-License-Identifier: Apache-2.0
/*
 * What a device or a context can be divided into. Contexts with a part of the multiprocessors
 * (green contexts) cannot be made; the calls tell what there would be to divide.
 */
#include <string.h>

#include "softgpu/cuda/context.h"

static CUresult tell(const struct device *device, CUdevResource *ret, CUdevResourceType type)
{
	unsigned major = device->config.compute_major;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memset(ret, 0, sizeof(*ret));
	ret->type = CU_DEV_RESOURCE_TYPE_SM;
	ret->sm.smCount = device->config.n_sms;
	/* 2 of 7.x, 4 of 8.x, 8 from 9.0 on, in steps of 2, 2 and 8. */
	ret->sm.minSmPartitionSize = major >= 9 ? 8 : major == 8 ? 4 : 2;
	ret->sm.smCoscheduledAlignment = major >= 9 ? 8 : 2;
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetDevResource, CUdevice dev, CUdevResource *resource, CUdevResourceType type)
{
	struct device *device;
	CUresult r = device_find(dev, &device);

	return r == CUDA_SUCCESS ? tell(device, resource, type) : r;
}

CALL(cuCtxGetDevResource, CUcontext handle, CUdevResource *resource, CUdevResourceType type)
{
	struct context *ctx;
	CUresult r = context_or_current(handle, &ctx);

	if (r == CUDA_SUCCESS)
		r = context_error(ctx);
	return r == CUDA_SUCCESS ? tell(ctx->device, resource, type) : r;
}
