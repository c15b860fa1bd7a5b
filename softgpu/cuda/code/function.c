// SPDX-License-Identifier: Apache-2.0
/* Functions and kernels of libraries: their attributes, parameters, names. */
#include "softgpu/cuda/code/module.h"

/* Shared memory that a block gets without asking for more, dynamic and static together. */
#define SHARED_DEFAULT_BYTES 49152

CUresult function_find(CUfunction handle, struct context *ctx, struct function **ret)
{
	struct function *function;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	function = handle_get(HANDLE_FUNCTION, handle);
	if (function) {
		*ret = function;
		return CUDA_SUCCESS;
	}
	if (!handle_get(HANDLE_KERNEL, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ctx) {
		r = context_current(&ctx);
		if (r != CUDA_SUCCESS)
			return r;
	}
	return kernel_function((CUkernel)handle, ctx, ret);
}

static int max_dynamic_shared(const struct exec_kernel *kernel,
			      const struct function_settings *settings)
{
	if (settings->max_dynamic_shared >= 0)
		return settings->max_dynamic_shared;
	return kernel->shared_bytes < SHARED_DEFAULT_BYTES
		       ? SHARED_DEFAULT_BYTES - (int)kernel->shared_bytes
		       : 0;
}

CUresult function_attribute(const struct exec_kernel *kernel,
			    const struct function_settings *settings, const struct device *device,
			    CUfunction_attribute attribute, int *ret)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*ret = kernel->max_threads;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*ret = kernel->shared_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*ret = kernel->const_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*ret = kernel->local_bytes;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*ret = kernel->n_regs;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*ret = kernel->ptx_version;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*ret = device->config.compute_major * 10 + device->config.compute_minor;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*ret = 0;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*ret = max_dynamic_shared(kernel, settings);
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*ret = settings->carveout;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*ret = settings->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*ret = settings->cluster_nonportable;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		*ret = settings->cluster_scheduling;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult function_set_attribute(const struct exec_kernel *kernel,
				struct function_settings *settings, const struct device *device,
				CUfunction_attribute attribute, int value)
{
	int most;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		most = device_attribute(device,
					CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
		       (int)kernel->shared_bytes;
		if (value < 0 || value > most)
			return CUDA_ERROR_INVALID_VALUE;
		settings->max_dynamic_shared = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < CU_SHAREDMEM_CARVEOUT_DEFAULT ||
		    value > CU_SHAREDMEM_CARVEOUT_MAX_SHARED)
			return CUDA_ERROR_INVALID_VALUE;
		settings->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		if (value < 0)
			return CUDA_ERROR_INVALID_VALUE;
		settings->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		settings->cluster_nonportable = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		settings->cluster_scheduling = value;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult function_param(const struct exec_kernel *kernel, size_t index, size_t *ret_offset,
			size_t *ret_size)
{
	if (!ret_offset || index >= kernel->n_params)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_offset = kernel->params[index].offset;
	if (ret_size)
		*ret_size = kernel->params[index].size;
	return CUDA_SUCCESS;
}

CALL(cuFuncGetAttribute, int *ret, CUfunction_attribute attribute, CUfunction handle)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	return function_attribute(function->kernel, function->settings,
				  function->module->ctx->device, attribute, ret);
}

CALL(cuFuncSetAttribute, CUfunction handle, CUfunction_attribute attribute, int value)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	return function_set_attribute(function->kernel, function->settings,
				      function->module->ctx->device, attribute, value);
}

/* Caches and banks are not modelled; what is asked for is checked and holds. */
CALL(cuFuncSetCacheConfig, CUfunction handle, CUfunc_cache config)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	return (unsigned int)config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS
								  : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuFuncSetSharedMemConfig, CUfunction handle, CUsharedconfig config)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	return (unsigned int)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuFuncGetModule, CUmodule *ret, CUfunction handle)
{
	struct function *function;

	return TELL(function_find(handle, NULL, &function), ret, function->module->handle);
}

CALL(cuFuncGetName, const char **ret, CUfunction handle)
{
	struct function *function;

	return TELL(function_find(handle, NULL, &function), ret, function->kernel->name);
}

CALL(cuFuncGetParamInfo, CUfunction handle, size_t index, size_t *ret_offset, size_t *ret_size)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	return function_param(function->kernel, index, ret_offset, ret_size);
}

CALL(cuFuncIsLoaded, CUfunctionLoadingState *ret, CUfunction handle)
{
	struct function *function;

	return TELL(function_find(handle, NULL, &function), ret, CU_FUNCTION_LOADING_STATE_LOADED);
}

CALL(cuFuncLoad, CUfunction handle)
{
	struct function *function;

	return function_find(handle, NULL, &function);
}
