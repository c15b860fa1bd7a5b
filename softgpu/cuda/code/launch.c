// SPDX-License-Identifier: Apache-2.0
/* Launches: checks, arguments, and the calls since CUDA 4. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/stream/event.h"
#include "softgpu/cuda/code/launch.h"
#include "softgpu/cuda/stream/work.h"

#define GRID_X_MAX  INT32_MAX
#define GRID_YZ_MAX 65535

static bool grid_is_valid(const unsigned int grid[3])
{
	return grid[0] > 0 && grid[0] <= GRID_X_MAX && grid[1] > 0 && grid[1] <= GRID_YZ_MAX &&
	       grid[2] > 0 && grid[2] <= GRID_YZ_MAX;
}

static bool block_is_valid(const unsigned int block[3])
{
	/* Each is checked first, so that the product cannot wrap. */
	return block[0] > 0 && block[0] <= 1024 && block[1] > 0 && block[1] <= 1024 &&
	       block[2] > 0 && block[2] <= 64 && block[0] * block[1] * block[2] <= 1024;
}

static CUresult check_block(const struct exec_kernel *kernel, const unsigned int block[3])
{
	if (!block_is_valid(block))
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->required[0] > 0 && memcmp(kernel->required, block, sizeof(kernel->required)))
		return CUDA_ERROR_INVALID_VALUE;
	if (block[0] * block[1] * block[2] > kernel->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_SUCCESS;
}

/* All blocks of a cooperative launch have to be on the device at once. */
static CUresult check_cooperative(const struct function *function, const struct kernel_args *args)
{
	uint64_t n_blocks = (uint64_t)args->grid[0] * args->grid[1] * args->grid[2];
	uint64_t most;

	most = occupancy_blocks(function, args->block[0] * args->block[1] * args->block[2],
				args->shared_bytes);
	most *= function->module->ctx->device->config.n_sms;
	return n_blocks <= most ? CUDA_SUCCESS : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

static CUresult check_launch(const struct function *function, const struct kernel_args *args)
{
	const struct device *device = function->module->ctx->device;
	int most_shared;
	CUresult r;

	if (!grid_is_valid(args->grid))
		return CUDA_ERROR_INVALID_VALUE;
	r = check_block(function->kernel, args->block);
	if (r == CUDA_SUCCESS)
		r = function_attribute(function->kernel, function->settings, device,
				       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				       &most_shared);
	if (r != CUDA_SUCCESS)
		return r;
	if (args->shared_bytes > (unsigned int)most_shared)
		return CUDA_ERROR_INVALID_VALUE;
	return args->cooperative ? check_cooperative(function, args) : CUDA_SUCCESS;
}

/* Arguments in one buffer: {key, value, key, value, ..., END}. */
static CUresult gather_extra(unsigned char *to, size_t n, void **extra)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (n > 0 && (!buffer || size < n))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, buffer ? buffer : "", n);
	return CUDA_SUCCESS;
}

static CUresult gather_params(unsigned char *to, const struct exec_kernel *kernel, void **params)
{
	for (size_t i = 0; i < kernel->n_params; i++) {
		if (!params || !params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(to + kernel->params[i].offset, params[i], kernel->params[i].size);
	}
	return CUDA_SUCCESS;
}

static CUresult gather(struct kernel_work *work, const struct kernel_args *args)
{
	const struct exec_kernel *kernel = work->function->kernel;

	if (args->params && args->extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (kernel->param_bytes > sizeof(work->space)) {
		work->params = malloc(kernel->param_bytes);
		if (!work->params)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return args->extra ? gather_extra(work->params, kernel->param_bytes, args->extra)
			   : gather_params(work->params, kernel, args->params);
}

CUresult kernel_work_init(struct kernel_work *work, struct context *ctx,
			  const struct kernel_args *args)
{
	struct function *function;
	CUresult r = function_find(args->handle, ctx, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (ctx && function->module->ctx != ctx)
		return CUDA_ERROR_INVALID_HANDLE;
	r = check_launch(function, args);
	if (r != CUDA_SUCCESS)
		return r;

	work->function = function;
	work->handle = args->handle;
	memcpy(work->grid, args->grid, sizeof(work->grid));
	memcpy(work->block, args->block, sizeof(work->block));
	work->shared_bytes = args->shared_bytes;
	work->cooperative = args->cooperative;
	work->has_priority = args->has_priority;
	work->priority = args->priority;
	work->params = work->space;
	r = gather(work, args);
	if (r != CUDA_SUCCESS && work->params != work->space)
		free(work->params);
	else if (r == CUDA_SUCCESS)
		module_ref(function->module);
	return r;
}

void kernel_work_done(struct kernel_work *work)
{
	work_kernel.release(work);
}

static CUresult launch_in(struct stream *stream, const struct kernel_args *args)
{
	struct kernel_work work;
	CUresult r = kernel_work_init(&work, stream_context(stream), args);

	if (r != CUDA_SUCCESS)
		return r;
	if (!work.has_priority)
		work.priority = stream_priority(stream);
	r = stream_submit(stream, &work_kernel, &work);
	kernel_work_done(&work);
	return r;
}

static CUresult launch(CUstream handle, enum stream_default dflt, const struct kernel_args *args)
{
	struct stream *stream;
	CUresult r = stream_find(handle, dflt, &stream);

	return r != CUDA_SUCCESS ? r : launch_in(stream, args);
}

CALL_TWINS(cuLaunchKernel, _ptsz,
	   (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	    unsigned int block_x, unsigned int block_y, unsigned int block_z,
	    unsigned int shared_bytes, CUstream stream, void **params, void **extra),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
	    params, extra))
{
	struct kernel_args args = {
		.handle = function,
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_bytes = shared_bytes,
		.params = params,
		.extra = extra,
	};

	return launch(stream, dflt, &args);
}

CALL_TWINS(cuLaunchCooperativeKernel, _ptsz,
	   (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	    unsigned int block_x, unsigned int block_y, unsigned int block_z,
	    unsigned int shared_bytes, CUstream stream, void **params),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
	    params))
{
	struct kernel_args args = {
		.handle = function,
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_bytes = shared_bytes,
		.cooperative = true,
		.params = params,
	};

	return launch(stream, dflt, &args);
}

/* What the attributes of a launch ask for. */
struct launch_wishes {
	bool cooperative, has_priority;
	int priority;
	CUevent after; /* to record once the kernel is there or done: here that is the same */
};

static CUresult read_attribute(const CUlaunchAttribute *attribute, struct launch_wishes *wishes)
{
	switch (attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		wishes->cooperative = attribute->value.cooperative;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		wishes->has_priority = true;
		wishes->priority = attribute->value.priority;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		/* Blocks of a cluster reach into each other's shared memory; these do not. */
		if (attribute->value.clusterDim.x > 1 || attribute->value.clusterDim.y > 1 ||
		    attribute->value.clusterDim.z > 1)
			return CUDA_ERROR_NOT_SUPPORTED;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		wishes->after = attribute->value.programmaticEvent.event;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		wishes->after = attribute->value.launchCompletionEvent.event;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
		return attribute->value.deviceUpdatableKernelNode.deviceUpdatable
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_SUCCESS;
	default:
		/* The others are hints. */
		return (unsigned int)attribute->id <=
				       CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult read_attributes(const CUlaunchConfig *config, struct launch_wishes *wishes)
{
	CUresult r = CUDA_SUCCESS;

	if (config->numAttrs > 0 && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs && r == CUDA_SUCCESS; i++)
		r = read_attribute(&config->attrs[i], wishes);
	return r;
}

CALL_TWINS(cuLaunchKernelEx, _ptsz,
	   (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
	   (config, function, params, extra))
{
	struct launch_wishes wishes = { 0 };
	struct kernel_args args;
	CUresult r;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_attributes(config, &wishes);
	if (r != CUDA_SUCCESS)
		return r;
	args = (struct kernel_args){
		.handle = function,
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_bytes = config->sharedMemBytes,
		.cooperative = wishes.cooperative,
		.has_priority = wishes.has_priority,
		.priority = wishes.priority,
		.params = params,
		.extra = extra,
	};
	r = launch(config->hStream, dflt, &args);
	if (r == CUDA_SUCCESS && wishes.after)
		r = event_record(wishes.after, config->hStream, dflt);
	return r;
}

static bool multi_device_is_valid(const CUDA_LAUNCH_PARAMS *launches, unsigned int n,
				  unsigned int flags)
{
	return launches && n > 0 && n <= driver.n_devices &&
	       !(flags & ~(unsigned int)(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |
					 CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC));
}

/* Each launch in its stream. Grids that wait for those of other devices are not supported. */
CALL(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *launches, unsigned int n,
     unsigned int flags)
{
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!multi_device_is_valid(launches, n, flags))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < n && r == CUDA_SUCCESS; i++) {
		const CUDA_LAUNCH_PARAMS *one = &launches[i];

		r = impl_cuLaunchCooperativeKernel(one->function, one->gridDimX, one->gridDimY,
						   one->gridDimZ, one->blockDimX, one->blockDimY,
						   one->blockDimZ, one->sharedMemBytes,
						   one->hStream, one->kernelParams);
	}
	return r;
}
