/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: code in a context, and its functions. Libraries load modules too, one in each context
 * that asks for a kernel of theirs, so both kinds of kernel handle lead to a function.
 */
#pragma once

#include "softgpu/cuda/code/jit.h"

struct library;

/* What a program can set of a function. */
struct function_settings {
	_Atomic int max_dynamic_shared; /* -1: what is left of 48 KiB */
	_Atomic int carveout;
	_Atomic int cluster[3];
	_Atomic int cluster_nonportable, cluster_scheduling;
};

#define FUNCTION_SETTINGS_DEFAULT                                                                  \
	{                                                                                          \
		.max_dynamic_shared = -1, .carveout = -1                                           \
	}

/* The launch state of calls older than cuLaunchKernel(). */
struct function_legacy {
	unsigned int block[3];
	unsigned int shared_bytes;
	unsigned int param_bytes;
	unsigned char *params;
};

/**
 * struct function - a kernel in a context
 * @settings:	its own, or those that the kernel of a library has in all contexts
 */
struct function {
	CUfunction handle;
	struct module *module;
	const struct exec_kernel *kernel;
	struct function_settings *settings, own_settings;
	struct function_legacy legacy;
};

/**
 * struct module - code in a context
 * @n_references:	the program's, and one for each queued launch: an unloaded module lives on
 *			until the launches that were queued before are done
 * @functions:		all kernels, in the order of the text
 */
struct module {
	CUmodule handle;
	struct context *ctx;
	struct module *next, **at; /* in the context's list */
	_Atomic unsigned int n_references;
	struct exec_image *image;
	struct function *functions;
	size_t n_functions;
};

/** module_new() - place code in a context */
CUresult module_new(struct context *ctx, const struct code *code, struct jit *jit,
		    struct module **ret);

/** module_unload() - end its handle and those of its functions */
CUresult module_unload(CUmodule handle);

void module_ref(struct module *module);
void module_unref(struct module *module);

CUresult module_find(CUmodule handle, struct module **ret);
struct function *module_function(struct module *module, const char *name);

/**
 * function_find() - the function that a handle means
 * @handle:	a CUfunction, or a CUkernel cast to one
 * @ctx:	where a CUkernel shall run; NULL for the current context
 */
CUresult function_find(CUfunction handle, struct context *ctx, struct function **ret);

/* What attributes of both kinds of handle rest on. */
CUresult function_attribute(const struct exec_kernel *kernel,
			    const struct function_settings *settings, const struct device *device,
			    CUfunction_attribute attribute, int *ret);
CUresult function_set_attribute(const struct exec_kernel *kernel,
				struct function_settings *settings, const struct device *device,
				CUfunction_attribute attribute, int value);
CUresult function_param(const struct exec_kernel *kernel, size_t index, size_t *ret_offset,
			size_t *ret_size);

/** kernel_function() - the function of a library's kernel in a context; loads it if need be */
CUresult kernel_function(CUkernel handle, struct context *ctx, struct function **ret);

/** occupancy_blocks() - how many blocks of a function fit a multiprocessor at once */
unsigned int occupancy_blocks(const struct function *function, unsigned int n_threads,
			      size_t dynamic_shared);

struct module_set {
	pthread_mutex_t lock; /* guards the list and the heap's making */
	struct module *first;
	struct exec_heap *heap; /* of malloc() in kernels: once a module has come that calls it */
	CUdeviceptr heap_addr;
};
