// SPDX-License-Identifier: Apache-2.0
/*
 * Launches as before CUDA 4: block shape, shared memory and arguments are state of the function,
 * set one after another, and a launch uses what is set.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/code/launch.h"
#include "softgpu/cuda/stream/work.h"

/* As much as a kernel could take then. */
#define PARAM_BYTES_MAX 4096

static CUresult legacy_find(CUfunction handle, struct function **ret)
{
	struct context *ctx;
	CUresult r = context_current(&ctx);

	return r != CUDA_SUCCESS ? r : function_find(handle, ctx, ret);
}

CALL(cuFuncSetBlockShape, CUfunction handle, int x, int y, int z)
{
	struct function *function;
	CUresult r = legacy_find(handle, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	function->legacy.block[0] = x;
	function->legacy.block[1] = y;
	function->legacy.block[2] = z;
	return CUDA_SUCCESS;
}

CALL(cuFuncSetSharedSize, CUfunction handle, unsigned int n_bytes)
{
	struct function *function;
	CUresult r = legacy_find(handle, &function);

	if (r == CUDA_SUCCESS)
		function->legacy.shared_bytes = n_bytes;
	return r;
}

CALL(cuParamSetSize, CUfunction handle, unsigned int n_bytes)
{
	struct function *function;
	CUresult r = legacy_find(handle, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (n_bytes > PARAM_BYTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	function->legacy.param_bytes = n_bytes;
	return CUDA_SUCCESS;
}

CALL(cuParamSetv, CUfunction handle, int offset, void *value, unsigned int n_bytes)
{
	struct function_legacy *legacy;
	struct function *function;
	CUresult r = legacy_find(handle, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (!value || offset < 0 || offset > PARAM_BYTES_MAX ||
	    n_bytes > (unsigned int)(PARAM_BYTES_MAX - offset))
		return CUDA_ERROR_INVALID_VALUE;
	legacy = &function->legacy;
	if (!legacy->params)
		legacy->params = calloc(1, PARAM_BYTES_MAX);
	if (!legacy->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(legacy->params + offset, value, n_bytes);
	return CUDA_SUCCESS;
}

CALL(cuParamSeti, CUfunction handle, int offset, unsigned int value)
{
	return impl_cuParamSetv(handle, offset, &value, sizeof(value));
}

CALL(cuParamSetf, CUfunction handle, int offset, float value)
{
	return impl_cuParamSetv(handle, offset, &value, sizeof(value));
}

static CUresult legacy_launch(CUfunction handle, int width, int height, CUstream stream)
{
	struct kernel_args args = { .handle = handle, .grid = { width, height, 1 } };
	struct kernel_work work;
	struct function *function;
	size_t size;
	CUresult r = legacy_find(handle, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	size = function->legacy.param_bytes;
	memcpy(args.block, function->legacy.block, sizeof(args.block));
	args.shared_bytes = function->legacy.shared_bytes;
	args.extra = (void *[]){ CU_LAUNCH_PARAM_BUFFER_POINTER, function->legacy.params,
				 CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };

	r = kernel_work_init(&work, function->module->ctx, &args);
	if (r != CUDA_SUCCESS)
		return r;
	r = stream_enqueue(stream, STREAM_DEFAULT_LEGACY, &work_kernel, &work);
	kernel_work_done(&work);
	return r;
}

CALL(cuLaunch, CUfunction handle)
{
	return legacy_launch(handle, 1, 1, NULL);
}

CALL(cuLaunchGrid, CUfunction handle, int width, int height)
{
	return legacy_launch(handle, width, height, NULL);
}

CALL(cuLaunchGridAsync, CUfunction handle, int width, int height, CUstream stream)
{
	return legacy_launch(handle, width, height, stream);
}
