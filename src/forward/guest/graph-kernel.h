/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in graphs: how a node's parameters travel. */
#ifndef FORWARD_GUEST_GRAPH_KERNEL_H
#define FORWARD_GUEST_GRAPH_KERNEL_H

#include "forward/guest/launch.h"
#include "forward/guest/writer.h"

/**
 * struct kernel - a kernel that a node launches
 * @params:	its parameters, grid and the rest
 */
struct kernel {
	const CUDA_KERNEL_NODE_PARAMS *params;
	uint64_t function;
	const struct layout *layout;
};

/** kernel_of() - what a program's parameters say. Return: CUDA_SUCCESS, CUDA_ERROR_INVALID_HANDLE or the host's. */
CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, struct kernel *ret);

/** kernel_size() - bytes of it in a record */
size_t kernel_size(const struct kernel *kernel);

/** kernel_write() - into a record with room for it */
CUresult kernel_write(struct writer *w, const struct kernel *kernel);

/** kernel_params() - what calls of before CUDA 12 take, as the later ones do */
CUDA_KERNEL_NODE_PARAMS kernel_params(const CUDA_KERNEL_NODE_PARAMS_v1 *params);

#endif
