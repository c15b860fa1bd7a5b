/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an image to code that runs: what cuModuleLoad*, cuLibraryLoad* and cuLink* have in common.
 * The options of the just-in-time compiler, of which only the logs and the time mean anything
 * here, and the parsed code.
 */
#pragma once

#include "softgpu/cuda/core.h"
#include "softgpu/exec/exec.h"
#include "softgpu/fatbin/fatbin.h"
#include "softgpu/ptx/ptx.h"

/**
 * struct jit - the options of one compilation
 * @error:	log of what is wrong: the program's, or @own
 * @own:	where the program wants no log; for standard error under SOFTGPU_LOG=1
 * @info:	log of what was done; nothing is ever said in it
 */
struct jit {
	struct ptx_log error, info;
	char own[1024];
	size_t n_said; /* of the error log, on standard error */
	uint64_t start_ns;
	void **error_size, **info_size, **wall_time; /* where to tell them, or NULL */
};

/** jit_begin() - CUDA_ERROR_INVALID_VALUE if an option is none */
CUresult jit_begin(struct jit *jit, unsigned int n_options, const CUjit_option *options,
		   void **values);

/** jit_end() - tell the program the lengths of the logs and the time it took */
void jit_end(struct jit *jit);

/** jit_begin_plain() - for calls without options */
void jit_begin_plain(struct jit *jit);

/* Code without a place: parsed modules that are linked each time that a context gets them. */
struct code {
	struct ptx_module **modules;
	size_t n_modules;
};

/** code_new() - parse all PTX of an image; what is wrong goes to @jit's log */
CUresult code_new(const struct fatbin_image *image, struct jit *jit, struct code **ret);
void code_free(struct code *code);

/** code_read() - find the PTX of an image for a device and parse it */
CUresult code_read(const void *image, const struct fatbin_reach *reach, struct device *device,
		   struct jit *jit, struct code **ret);

/** code_variable() - a variable of the code by name, NULL if there is none */
const struct ptx_var *code_variable(const struct code *code, const char *name);

/** code_place() - link the code and place its variables */
CUresult code_place(const struct code *code, const struct exec_place *place, struct jit *jit,
		    struct exec_image **ret);

/** code_place_nowhere() - the same with variables in host memory: to look at, not to run */
CUresult code_place_nowhere(const struct code *code, struct jit *jit, struct exec_image **ret);

/** image_read() - find the PTX of an image; errors as the driver has them */
CUresult image_read(const void *image, const struct fatbin_reach *reach, struct device *device,
		    struct jit *jit, struct fatbin_image **ret);

/** image_file_read() - a whole file; the caller frees it */
CUresult image_file_read(const char *path, struct fatbin_span *ret);
