// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries: code that belongs to no context, and its kernels.
 *
 * Loading parses the code once. A context gets a module of it when a kernel or variable is first
 * asked for there. What can be told of a kernel without a context (its name, its attributes) comes
 * from a template: an image of its own whose variables lie in host memory that nothing runs on.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/code/module.h"

struct kernel {
	CUkernel handle;
	struct library *library;
	const struct exec_kernel *template;
	struct function_settings settings;
};

/* The module of a library in a context. */
struct library_module {
	struct library_module *next;
	uint64_t ctx_id;
	CUmodule handle;
};

struct library {
	CUlibrary handle;
	struct code *code;
	struct exec_image *template;
	struct kernel *kernels;
	size_t n_kernels;
	pthread_mutex_t lock;
	struct library_module *modules; /* under the lock */
};

static void library_free(struct library *library)
{
	struct library_module *module;

	while ((module = library->modules)) {
		library->modules = module->next;
		/* The context may have ended before. */
		module_unload(module->handle);
		free(module);
	}
	for (size_t i = 0; i < library->n_kernels; i++)
		handle_remove(HANDLE_KERNEL, library->kernels[i].handle);
	free(library->kernels);
	exec_image_free(library->template);
	code_free(library->code);
	pthread_mutex_destroy(&library->lock);
	free(library);
}

static CUresult library_add_kernels(struct library *library)
{
	const struct exec_kernel *template;
	size_t n = 0;

	while (exec_kernel_at(library->template, n))
		n++;
	library->kernels = calloc(n + 1, sizeof(*library->kernels));
	if (!library->kernels)
		return CUDA_ERROR_OUT_OF_MEMORY;

	while ((template = exec_kernel_at(library->template, library->n_kernels))) {
		struct kernel *kernel = &library->kernels[library->n_kernels];

		*kernel = (struct kernel){
			.library = library,
			.template = template,
			.settings = FUNCTION_SETTINGS_DEFAULT,
		};
		kernel->handle = handle_new(CUkernel, HANDLE_KERNEL, kernel);
		if (!kernel->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
		library->n_kernels++;
	}
	return CUDA_SUCCESS;
}

/* Takes over @code. */
static CUresult library_new(struct code *code, struct jit *jit, struct library **ret)
{
	struct library *library;
	CUresult r;

	library = calloc(1, sizeof(*library));
	if (!library) {
		code_free(code);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	library->code = code;
	pthread_mutex_init(&library->lock, NULL);

	r = code_place_nowhere(code, jit, &library->template);
	if (r == CUDA_SUCCESS)
		r = library_add_kernels(library);
	if (r == CUDA_SUCCESS) {
		library->handle = handle_new(CUlibrary, HANDLE_LIBRARY, library);
		if (!library->handle)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		library_free(library);
		return r;
	}
	*ret = library;
	return CUDA_SUCCESS;
}

static CUresult library_find(CUlibrary handle, struct library **ret)
{
	return FIND(handle_get(HANDLE_LIBRARY, handle), CUDA_ERROR_INVALID_HANDLE, ret);
}

static CUresult kernel_find(CUkernel handle, struct kernel **ret)
{
	return FIND(handle_get(HANDLE_KERNEL, handle), CUDA_ERROR_INVALID_HANDLE, ret);
}

/* Loads the library into a context. Under its lock. */
static CUresult library_load(struct library *library, struct context *ctx, struct module **ret)
{
	struct library_module *entry;
	struct module *module;
	struct jit jit;
	CUresult r;

	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	jit_begin_plain(&jit);
	r = module_new(ctx, library->code, &jit, &module);
	jit_end(&jit);
	if (r != CUDA_SUCCESS) {
		free(entry);
		return r;
	}

	/* The same code gives the same kernels in the same order. */
	for (size_t i = 0; i < module->n_functions; i++)
		module->functions[i].settings = &library->kernels[i].settings;
	*entry = (struct library_module){ library->modules, ctx->id, module->handle };
	library->modules = entry;
	*ret = module;
	return CUDA_SUCCESS;
}

static CUresult library_module(struct library *library, struct context *ctx, struct module **ret)
{
	struct module *module = NULL;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&library->lock);
	for (struct library_module *entry = library->modules; entry; entry = entry->next) {
		if (entry->ctx_id == ctx->id)
			module = handle_get(HANDLE_MODULE, entry->handle);
		if (module)
			break;
	}
	if (!module)
		r = library_load(library, ctx, &module);
	pthread_mutex_unlock(&library->lock);
	if (r == CUDA_SUCCESS)
		*ret = module;
	return r;
}

CUresult kernel_function(CUkernel handle, struct context *ctx, struct function **ret)
{
	struct module *module;
	struct kernel *kernel;
	CUresult r = kernel_find(handle, &kernel);

	if (r != CUDA_SUCCESS)
		return r;
	r = library_module(kernel->library, ctx, &module);
	if (r != CUDA_SUCCESS)
		return r;
	*ret = &module->functions[kernel - kernel->library->kernels];
	return CUDA_SUCCESS;
}

/* An image is chosen for the device of the current context, or the first device without one. */
static CUresult library_read(const void *image, const struct fatbin_reach *reach, struct jit *jit,
			     CUlibrary *ret)
{
	struct library *library;
	struct device *device;
	struct context *ctx;
	struct code *code;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (context_current(&ctx) == CUDA_SUCCESS)
		device = ctx->device;
	else if (device_find(0, &device) != CUDA_SUCCESS)
		return CUDA_ERROR_NO_DEVICE;

	r = code_read(image, reach, device, jit, &code);
	if (r == CUDA_SUCCESS)
		r = library_new(code, jit, &library);
	if (r == CUDA_SUCCESS)
		*ret = library->handle;
	return r;
}

/* Options of libraries: checked, and of no further meaning. */
static bool library_options_are_valid(const CUlibraryOption *options, unsigned int n)
{
	if (n > 0 && !options)
		return false;
	for (unsigned int i = 0; i < n; i++)
		if ((unsigned int)options[i] >= CU_LIBRARY_NUM_OPTIONS)
			return false;
	return true;
}

CALL(cuLibraryLoadData, CUlibrary *ret, const void *image, CUjit_option *jit_options,
     void **jit_values, unsigned int n_jit_options, CUlibraryOption *options,
     _unused_ void **values, unsigned int n_options)
{
	struct jit jit;
	CUresult r;

	if (!ret || !image || !library_options_are_valid(options, n_options))
		return CUDA_ERROR_INVALID_VALUE;
	r = jit_begin(&jit, n_jit_options, jit_options, jit_values);
	if (r != CUDA_SUCCESS)
		return r;
	r = library_read(image, &fatbin_reach_process, &jit, ret);
	jit_end(&jit);
	return r;
}

CALL(cuLibraryLoadFromFile, CUlibrary *ret, const char *path, CUjit_option *jit_options,
     void **jit_values, unsigned int n_jit_options, CUlibraryOption *options,
     _unused_ void **values, unsigned int n_options)
{
	struct fatbin_reach reach;
	struct fatbin_span file;
	struct jit jit;
	CUresult r;

	if (!ret || !path || !library_options_are_valid(options, n_options))
		return CUDA_ERROR_INVALID_VALUE;
	r = jit_begin(&jit, n_jit_options, jit_options, jit_values);
	if (r == CUDA_SUCCESS)
		r = image_file_read(path, &file);
	if (r != CUDA_SUCCESS)
		return r;
	reach = fatbin_reach_span(&file);
	r = library_read(file.addr, &reach, &jit, ret);
	free((void *)file.addr);
	jit_end(&jit);
	return r;
}

CALL(cuLibraryUnload, CUlibrary handle)
{
	struct library *library;
	CUresult r =
		FIND(handle_remove(HANDLE_LIBRARY, handle), CUDA_ERROR_INVALID_HANDLE, &library);

	if (r == CUDA_SUCCESS)
		library_free(library);
	return r;
}

CALL(cuLibraryGetKernel, CUkernel *ret, CUlibrary handle, const char *name)
{
	const struct exec_kernel *template;
	struct library *library;
	CUresult r = library_find(handle, &library);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	template = exec_kernel_find(library->template, name);
	for (size_t i = 0; template && i < library->n_kernels; i++) {
		if (library->kernels[i].template == template) {
			*ret = library->kernels[i].handle;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_NOT_FOUND;
}

CALL(cuLibraryGetKernelCount, unsigned int *ret, CUlibrary handle)
{
	struct library *library;

	return TELL(library_find(handle, &library), ret, library->n_kernels);
}

CALL(cuLibraryEnumerateKernels, CUkernel *kernels, unsigned int n, CUlibrary handle)
{
	struct library *library;
	CUresult r = library_find(handle, &library);

	if (r != CUDA_SUCCESS)
		return r;
	if (!kernels && n > 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && i < library->n_kernels; i++)
		kernels[i] = library->kernels[i].handle;
	return CUDA_SUCCESS;
}

/* The library's module in the current context. */
static CUresult library_here(CUlibrary handle, struct library **ret, struct module **ret_module)
{
	struct context *ctx;
	CUresult r;

	r = library_find(handle, ret);
	if (r == CUDA_SUCCESS)
		r = context_current(&ctx);
	if (r == CUDA_SUCCESS)
		r = library_module(*ret, ctx, ret_module);
	return r;
}

CALL(cuLibraryGetModule, CUmodule *ret, CUlibrary handle)
{
	struct library *library;
	struct module *module;

	return TELL(library_here(handle, &library, &module), ret, module->handle);
}

static CUresult library_variable(CUlibrary handle, const char *name, bool managed,
				 CUdeviceptr *ret_addr, size_t *ret_size)
{
	const struct ptx_var *var;
	struct library *library;
	struct module *module;
	uint64_t addr, size;
	CUresult r = library_here(handle, &library, &module);

	if (r != CUDA_SUCCESS)
		return r;
	if (!name || (!ret_addr && !ret_size))
		return CUDA_ERROR_INVALID_VALUE;
	var = code_variable(library->code, name);
	if (!var || (managed && !var->managed) ||
	    !exec_global_find(module->image, name, &addr, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (ret_addr)
		*ret_addr = addr;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

CALL(cuLibraryGetGlobal, CUdeviceptr *ret_addr, size_t *ret_size, CUlibrary handle,
     const char *name)
{
	return library_variable(handle, name, /* managed= */ false, ret_addr, ret_size);
}

CALL(cuLibraryGetManaged, CUdeviceptr *ret_addr, size_t *ret_size, CUlibrary handle,
     const char *name)
{
	return library_variable(handle, name, /* managed= */ true, ret_addr, ret_size);
}

CALL(cuKernelGetFunction, CUfunction *ret, CUkernel handle)
{
	struct function *function;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = kernel_function(handle, ctx, &function);
	if (r == CUDA_SUCCESS)
		*ret = function->handle;
	return r;
}

CALL(cuKernelGetLibrary, CUlibrary *ret, CUkernel handle)
{
	struct kernel *kernel;

	return TELL(kernel_find(handle, &kernel), ret, kernel->library->handle);
}

CALL(cuKernelGetName, const char **ret, CUkernel handle)
{
	struct kernel *kernel;

	return TELL(kernel_find(handle, &kernel), ret, kernel->template->name);
}

CALL(cuKernelGetParamInfo, CUkernel handle, size_t index, size_t *ret_offset, size_t *ret_size)
{
	struct kernel *kernel;
	CUresult r = kernel_find(handle, &kernel);

	return r != CUDA_SUCCESS ? r
				 : function_param(kernel->template, index, ret_offset, ret_size);
}

static CUresult kernel_on_device(CUkernel handle, CUdevice ordinal, struct kernel **ret,
				 struct device **ret_device)
{
	CUresult r = kernel_find(handle, ret);

	return r != CUDA_SUCCESS ? r : device_find(ordinal, ret_device);
}

CALL(cuKernelGetAttribute, int *ret, CUfunction_attribute attribute, CUkernel handle,
     CUdevice ordinal)
{
	struct device *device;
	struct kernel *kernel;
	CUresult r = kernel_on_device(handle, ordinal, &kernel, &device);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	return function_attribute(kernel->template, &kernel->settings, device, attribute, ret);
}

CALL(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel handle,
     CUdevice ordinal)
{
	struct device *device;
	struct kernel *kernel;
	CUresult r = kernel_on_device(handle, ordinal, &kernel, &device);

	if (r != CUDA_SUCCESS)
		return r;
	return function_set_attribute(kernel->template, &kernel->settings, device, attribute,
				      value);
}

CALL(cuKernelSetCacheConfig, CUkernel handle, CUfunc_cache config, CUdevice ordinal)
{
	struct device *device;
	struct kernel *kernel;
	CUresult r = kernel_on_device(handle, ordinal, &kernel, &device);

	if (r != CUDA_SUCCESS)
		return r;
	return (unsigned int)config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS
								  : CUDA_ERROR_INVALID_VALUE;
}
