/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel with its arguments, checked and ready to run: what every way of launching makes first,
 * a stream queues and a graph keeps.
 */
#pragma once

#include "softgpu/cuda/code/module.h"

/* Arguments up to this many bytes need no memory of their own. */
#define KERNEL_PARAM_SPACE 256

/**
 * struct kernel_work - parameters of work_kernel
 * @function:	with a reference to its module, once it has been copied
 * @handle:	as the program gave it
 * @priority:	what a graph's node keeps; of this launch alone if @has_priority
 * @params:	function->kernel->param_bytes long: @space, or allocated
 */
struct kernel_work {
	struct function *function;
	CUfunction handle;
	unsigned int grid[3], block[3];
	unsigned int shared_bytes;
	bool cooperative, has_priority;
	int priority;
	unsigned char *params;
	_Alignas(16) unsigned char space[KERNEL_PARAM_SPACE];
};

/**
 * struct kernel_args - a launch as the program asks for it
 * @params:	pointers to the arguments, or NULL
 * @extra:	arguments as one buffer, or NULL
 */
struct kernel_args {
	CUfunction handle;
	unsigned int grid[3], block[3];
	unsigned int shared_bytes;
	bool cooperative, has_priority;
	int priority;
	void **params, **extra;
};

/**
 * kernel_work_init() - check a launch and gather its arguments
 * @ctx:	where it shall run; NULL for the current context
 *
 * kernel_work_done() releases what it takes.
 */
CUresult kernel_work_init(struct kernel_work *work, struct context *ctx,
			  const struct kernel_args *args);
void kernel_work_done(struct kernel_work *work);
