// SPDX-License-Identifier: Apache-2.0
/* Modules: loading code into the current context, finding functions and variables in it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/cuda/code/module.h"
#include "softgpu/cuda/code/printed.h"

/* Variables of an image lie in the memory of its context's device and cost what they cost. */
static int place_alloc(void *arg, uint64_t size, _unused_ uint64_t align, uint64_t *ret_addr)
{
	CUdeviceptr addr;

	/* Allocations are aligned to 256 bytes, more than PTX can ask for. */
	if (memory_internal_new(arg, size, &addr) != CUDA_SUCCESS)
		return -ENOMEM;
	*ret_addr = addr;
	return 0;
}

static void place_free(_unused_ void *arg, uint64_t addr)
{
	memory_internal_free(addr);
}

static void module_free(struct module *module)
{
	for (size_t i = 0; i < module->n_functions; i++)
		free(module->functions[i].legacy.params);
	free(module->functions);
	exec_image_free(module->image);
	free(module);
}

void module_ref(struct module *module)
{
	atomic_fetch_add_explicit(&module->n_references, 1, memory_order_relaxed);
}

void module_unref(struct module *module)
{
	if (atomic_fetch_sub_explicit(&module->n_references, 1, memory_order_acq_rel) == 1)
		module_free(module);
}

static CUresult module_add_functions(struct module *module)
{
	const struct exec_kernel *kernel;
	size_t n = 0;

	while (exec_kernel_at(module->image, n))
		n++;
	module->functions = calloc(n + 1, sizeof(*module->functions));
	if (!module->functions)
		return CUDA_ERROR_OUT_OF_MEMORY;

	while ((kernel = exec_kernel_at(module->image, module->n_functions))) {
		struct function *function = &module->functions[module->n_functions];

		*function = (struct function){
			.module = module,
			.kernel = kernel,
			.settings = &function->own_settings,
			.own_settings = FUNCTION_SETTINGS_DEFAULT,
		};
		function->handle = handle_new(CUfunction, HANDLE_FUNCTION, function);
		if (!function->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
		module->n_functions++;
	}
	return CUDA_SUCCESS;
}

static void module_remove_handles(struct module *module)
{
	handle_remove(HANDLE_MODULE, module->handle);
	for (size_t i = 0; i < module->n_functions; i++)
		handle_remove(HANDLE_FUNCTION, module->functions[i].handle);
}

static void module_enter(struct module *module)
{
	struct module_set *set = module->ctx->modules;

	pthread_mutex_lock(&set->lock);
	module->next = set->first;
	module->at = &set->first;
	if (module->next)
		module->next->at = &module->next;
	set->first = module;
	pthread_mutex_unlock(&set->lock);
}

/*
 * The heap of kernels' malloc(), as large as the context's limit says when the first module that
 * calls it comes; from then on it is there.
 */
static CUresult heap_begin(struct context *ctx)
{
	struct module_set *set = ctx->modules;
	uint64_t size = ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] ?: 1;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&set->lock);
	if (!set->heap) {
		r = memory_internal_new(ctx, size, &set->heap_addr);
		if (r == CUDA_SUCCESS)
			set->heap = exec_heap_new(set->heap_addr, size);
		if (r == CUDA_SUCCESS && !set->heap)
			memory_internal_free(set->heap_addr);
		if (!set->heap)
			r = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
		atomic_store(&ctx->heap_stands, set->heap != NULL);
	}
	pthread_mutex_unlock(&set->lock);
	return r;
}

static void heap_end(struct module_set *set)
{
	if (!set->heap)
		return;
	exec_heap_free(set->heap);
	memory_internal_free(set->heap_addr);
}

CUresult module_new(struct context *ctx, const struct code *code, struct jit *jit,
		    struct module **ret)
{
	struct exec_place place = { place_alloc, place_free, ctx };
	struct module *module;
	CUresult r;

	module = calloc(1, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	module->ctx = ctx;
	module->n_references = 1;

	r = code_place(code, &place, jit, &module->image);
	if (r == CUDA_SUCCESS)
		r = module_add_functions(module);
	if (r == CUDA_SUCCESS && exec_image_uses_heap(module->image))
		r = heap_begin(ctx);
	if (r == CUDA_SUCCESS) {
		module->handle = handle_new(CUmodule, HANDLE_MODULE, module);
		if (!module->handle)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		module_remove_handles(module);
		module_free(module);
		return r;
	}

	module_enter(module);
	*ret = module;
	return CUDA_SUCCESS;
}

CUresult module_unload(CUmodule handle)
{
	struct module *module = handle_remove(HANDLE_MODULE, handle);
	struct module_set *set;

	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	module_remove_handles(module);
	set = module->ctx->modules;
	pthread_mutex_lock(&set->lock);
	*module->at = module->next;
	if (module->next)
		module->next->at = module->at;
	pthread_mutex_unlock(&set->lock);
	module_unref(module);
	return CUDA_SUCCESS;
}

CUresult module_find(CUmodule handle, struct module **ret)
{
	return FIND(handle_get(HANDLE_MODULE, handle), CUDA_ERROR_INVALID_HANDLE, ret);
}

struct function *module_function(struct module *module, const char *name)
{
	const struct exec_kernel *kernel = exec_kernel_find(module->image, name);

	for (size_t i = 0; kernel && i < module->n_functions; i++)
		if (module->functions[i].kernel == kernel)
			return &module->functions[i];
	return NULL;
}

static CUresult modules_begin(struct context *ctx)
{
	struct module_set *set = calloc(1, sizeof(*set));

	if (!set)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&set->lock, NULL);
	ctx->modules = set;
	atomic_store(&ctx->heap_stands, false);
	return CUDA_SUCCESS;
}

static void modules_end(struct context *ctx)
{
	struct module_set *set = ctx->modules;

	while (set->first)
		module_unload(set->first->handle);
	heap_end(set);
	pthread_mutex_destroy(&set->lock);
	free(set);
	ctx->modules = NULL;
}

CONTEXT_PART(modules, .order = 20, .begin = modules_begin, .end = modules_end);

static CUresult module_load(CUmodule *ret, const void *image, const struct fatbin_reach *reach,
			    struct jit *jit)
{
	struct module *module;
	struct context *ctx;
	struct code *code;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !image)
		return CUDA_ERROR_INVALID_VALUE;
	r = code_read(image, reach, ctx->device, jit, &code);
	if (r != CUDA_SUCCESS)
		return r;
	r = module_new(ctx, code, jit, &module);
	code_free(code);
	if (r != CUDA_SUCCESS)
		return r;
	*ret = module->handle;
	return CUDA_SUCCESS;
}

CALL(cuModuleLoadDataEx, CUmodule *ret, const void *image, unsigned int n_options,
     CUjit_option *options, void **values)
{
	struct jit jit;
	CUresult r;

	r = jit_begin(&jit, n_options, options, values);
	if (r != CUDA_SUCCESS)
		return r;
	r = module_load(ret, image, &fatbin_reach_process, &jit);
	jit_end(&jit);
	return r;
}

CALL(cuModuleLoadData, CUmodule *ret, const void *image)
{
	return impl_cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

CALL(cuModuleLoadFatBinary, CUmodule *ret, const void *image)
{
	return impl_cuModuleLoadDataEx(ret, image, 0, NULL, NULL);
}

CALL(cuModuleLoad, CUmodule *ret, const char *path)
{
	struct fatbin_reach reach;
	struct fatbin_span file;
	struct jit jit;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_file_read(path, &file);
	if (r != CUDA_SUCCESS)
		return r;
	reach = fatbin_reach_span(&file);
	jit_begin_plain(&jit);
	r = module_load(ret, file.addr, &reach, &jit);
	jit_end(&jit);
	free((void *)file.addr);
	return r;
}

CALL(cuModuleUnload, CUmodule handle)
{
	struct module *module;
	CUresult r = module_find(handle, &module);

	if (r != CUDA_SUCCESS)
		return r;
	r = context_error(module->ctx);
	printed_flush(module->ctx);
	module_unload(handle);
	return r;
}

CALL(cuModuleGetLoadingMode, CUmoduleLoadingMode *ret)
{
	const char *mode = getenv("CUDA_MODULE_LOADING");

	return TELL(driver_check(), ret,
		    mode && strcmp(mode, "EAGER") == 0 ? CU_MODULE_EAGER_LOADING
						       : CU_MODULE_LAZY_LOADING);
}

CALL(cuModuleGetFunction, CUfunction *ret, CUmodule handle, const char *name)
{
	struct function *function;
	struct module *module;
	CUresult r = module_find(handle, &module);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	function = module_function(module, name);
	if (!function)
		return CUDA_ERROR_NOT_FOUND;
	*ret = function->handle;
	return CUDA_SUCCESS;
}

CALL(cuModuleGetFunctionCount, unsigned int *ret, CUmodule handle)
{
	struct module *module;

	return TELL(module_find(handle, &module), ret, module->n_functions);
}

CALL(cuModuleEnumerateFunctions, CUfunction *functions, unsigned int n, CUmodule handle)
{
	struct module *module;
	CUresult r = module_find(handle, &module);

	if (r != CUDA_SUCCESS)
		return r;
	if (!functions && n > 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && i < module->n_functions; i++)
		functions[i] = module->functions[i].handle;
	return CUDA_SUCCESS;
}

CALL(cuModuleGetGlobal_v2, CUdeviceptr *ret_addr, size_t *ret_size, CUmodule handle,
     const char *name)
{
	struct module *module;
	uint64_t addr, size;
	CUresult r = module_find(handle, &module);

	if (r != CUDA_SUCCESS)
		return r;
	if (!name || (!ret_addr && !ret_size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!exec_global_find(module->image, name, &addr, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (ret_addr)
		*ret_addr = addr;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

/* The call of CUDA 3.1, which knows addresses of 32 bits. */
CALL(cuModuleGetGlobal, CUdeviceptr_v1 *ret_addr, unsigned int *ret_size, CUmodule handle,
     const char *name)
{
	CUdeviceptr addr;
	size_t size;
	CUresult r = impl_cuModuleGetGlobal_v2(&addr, &size, handle, name);

	if (r != CUDA_SUCCESS)
		return r;
	if (ret_addr && addr != (CUdeviceptr_v1)addr)
		return CUDA_ERROR_INVALID_VALUE;
	if (ret_addr)
		*ret_addr = addr;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}
