// SPDX-License-Identifier: Apache-2.0
/* Launches: <<<>>> and its configuration stack, extended and cooperative ones, attributes. */
#include <limits.h>
#include <string.h>

#include "softgpu/cudart/runtime.h"

#define MAX_NESTED 32

struct configuration {
	struct dim3 grid, block;
	size_t shared_bytes;
	CUstream stream;
};

/* f<<<a, b>>>(g()) where g() launches too: configurations nest. */
static _Thread_local struct configuration configurations[MAX_NESTED];
static _Thread_local unsigned n_configurations;

unsigned impl___cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes,
					  CUstream stream);
unsigned impl___cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes,
					  CUstream stream)
{
	if (n_configurations == MAX_NESTED)
		return failed(cudaErrorInvalidConfiguration);
	configurations[n_configurations++] = (struct configuration){
		.grid = grid, .block = block, .shared_bytes = shared_bytes, .stream = stream
	};
	return 0;
}

RUNTIME_CALL(__cudaPopCallConfiguration, struct dim3 *grid, struct dim3 *block,
	     size_t *shared_bytes, CUstream *stream)
{
	struct configuration *top;

	if (n_configurations == 0)
		return failed(cudaErrorMissingConfiguration);
	top = &configurations[--n_configurations];
	*grid = top->grid;
	*block = top->block;
	*shared_bytes = top->shared_bytes;
	*stream = top->stream;
	return cudaSuccess;
}

/* The driver counts 32 bits; what needs more is more than any device has, too. */
static unsigned shared_size(size_t shared_bytes)
{
	return shared_bytes > UINT_MAX ? UINT_MAX : (unsigned)shared_bytes;
}

/* The driver says invalid value where the runtime names the configuration. */
static cudaError_t told_launch(CUresult result)
{
	if (result == CUDA_ERROR_INVALID_VALUE)
		return failed(cudaErrorInvalidConfiguration);
	if (result == CUDA_ERROR_INVALID_HANDLE)
		return failed(cudaErrorInvalidResourceHandle);
	return told(result);
}

STREAM_CALL(cudaLaunchKernel,
	    (const void *function, struct dim3 grid, struct dim3 block, void **args,
	     size_t shared_bytes, CUstream stream),
	    (function, grid, block, args, shared_bytes, stream))
{
	CUfunction kernel;
	cudaError_t error = in_context() ?: symbol_kernel(function, &kernel);

	return error
		       ?: told_launch(driver.cuLaunchKernel(
				  kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
				  shared_size(shared_bytes), stream, args, NULL));
}

/* From 13 on the compiler resolves the kernel first. */
STREAM_CALL(__cudaLaunchKernel,
	    (const void *kernel, struct dim3 grid, struct dim3 block, void **args,
	     size_t shared_bytes, CUstream stream),
	    (kernel, grid, block, args, shared_bytes, stream))
{
	return run_cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

STREAM_CALL(cudaLaunchCooperativeKernel,
	    (const void *function, struct dim3 grid, struct dim3 block, void **args,
	     size_t shared_bytes, CUstream stream),
	    (function, grid, block, args, shared_bytes, stream))
{
	CUfunction kernel;
	cudaError_t error = in_context() ?: symbol_kernel(function, &kernel);

	return error
		       ?: told_launch(driver.cuLaunchCooperativeKernel(
				  kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
				  shared_size(shared_bytes), stream, args));
}

static cudaError_t launch_extended(const struct cudaLaunchConfig *config, CUstream stream,
				   const void *function, void **args)
{
	CUlaunchConfig wanted;
	CUfunction kernel;
	cudaError_t error;

	error = in_context() ?: symbol_kernel(function, &kernel);
	if (error)
		return error;
	wanted = (CUlaunchConfig){
		.gridDimX = config->gridDim.x,
		.gridDimY = config->gridDim.y,
		.gridDimZ = config->gridDim.z,
		.blockDimX = config->blockDim.x,
		.blockDimY = config->blockDim.y,
		.blockDimZ = config->blockDim.z,
		.sharedMemBytes = shared_size(config->dynamicSmemBytes),
		.hStream = stream,
		.attrs = config->attrs,
		.numAttrs = config->numAttrs,
	};
	return told_launch(driver.cuLaunchKernelEx(&wanted, kernel, args, NULL));
}

RUNTIME_CALL(cudaLaunchKernelExC, const struct cudaLaunchConfig *config, const void *function,
	     void **args)
{
	if (!config)
		return failed(cudaErrorInvalidConfiguration);
	return launch_extended(config, config->stream, function, args);
}

RUNTIME_CALL(cudaLaunchKernelExC_ptsz, const struct cudaLaunchConfig *config, const void *function,
	     void **args)
{
	if (!config)
		return failed(cudaErrorInvalidConfiguration);
	return launch_extended(config, stream_of_thread(config->stream), function, args);
}

STREAM_CALL(cudaLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
	    (stream, function, data))
{
	return in_context() ?: told(driver.cuLaunchHostFunc(stream, function, data));
}

RUNTIME_CALL(cudaFuncGetAttributes, struct cudaFuncAttributes *attributes, const void *symbol)
{
	const struct {
		CUfunction_attribute attribute;
		int *value;
	} ints[] = {
		{ CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &attributes->maxThreadsPerBlock },
		{ CU_FUNC_ATTRIBUTE_NUM_REGS, &attributes->numRegs },
		{ CU_FUNC_ATTRIBUTE_PTX_VERSION, &attributes->ptxVersion },
		{ CU_FUNC_ATTRIBUTE_BINARY_VERSION, &attributes->binaryVersion },
		{ CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &attributes->cacheModeCA },
		{ CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		  &attributes->maxDynamicSharedSizeBytes },
		{ CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		  &attributes->preferredShmemCarveout },
	};
	int shared = 0, constant = 0, local = 0;
	CUfunction function;
	cudaError_t error;
	CUresult r;

	if (!attributes)
		return failed(cudaErrorInvalidValue);
	error = symbol_function(symbol, &function);
	if (error)
		return error;

	memset(attributes, 0, sizeof(*attributes));
	r = driver.cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
	if (!r)
		r = driver.cuFuncGetAttribute(&constant, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
					      function);
	if (!r)
		r = driver.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, function);
	for (size_t i = 0; !r && i < sizeof(ints) / sizeof(ints[0]); i++)
		r = driver.cuFuncGetAttribute(ints[i].value, ints[i].attribute, function);
	attributes->sharedSizeBytes = shared;
	attributes->constSizeBytes = constant;
	attributes->localSizeBytes = local;
	return told(r);
}

RUNTIME_CALL(cudaFuncSetAttribute, const void *symbol, int attribute, int value)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	/* cudaFuncAttribute has the driver's values: 8 dynamic shared size, 9 carveout, ... */
	return error ?: told(driver.cuFuncSetAttribute(function, attribute, value));
}

RUNTIME_CALL(cudaFuncSetCacheConfig, const void *symbol, int config)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	return error ?: told(driver.cuFuncSetCacheConfig(function, config));
}

RUNTIME_CALL(cudaFuncSetSharedMemConfig, const void *symbol, _unused_ int config)
{
	CUfunction function;

	/* Banks are of one width on every device since 5.0. */
	return symbol_function(symbol, &function);
}

RUNTIME_CALL(cudaFuncGetName, const char **name, const void *symbol)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	return error ?: told(driver.cuFuncGetName(name, function));
}

RUNTIME_CALL(cudaFuncGetParamInfo, const void *symbol, size_t index, size_t *offset, size_t *size)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	return error ?: told(driver.cuFuncGetParamInfo(function, index, offset, size));
}

RUNTIME_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *n_blocks,
	     const void *symbol, int block_size, size_t shared_bytes, unsigned flags)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	return error
		       ?: told(driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
				  n_blocks, function, block_size, shared_bytes, flags));
}

RUNTIME_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int *n_blocks, const void *symbol,
	     int block_size, size_t shared_bytes)
{
	return impl_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		n_blocks, symbol, block_size, shared_bytes, /* flags= */ 0);
}

RUNTIME_CALL(cudaOccupancyAvailableDynamicSMemPerBlock, size_t *shared_bytes, const void *symbol,
	     int n_blocks, int block_size)
{
	CUfunction function;
	cudaError_t error = symbol_function(symbol, &function);

	return error
		       ?: told(driver.cuOccupancyAvailableDynamicSMemPerBlock(
				  shared_bytes, function, n_blocks, block_size));
}
