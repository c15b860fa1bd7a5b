/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs whose parameters are structures, as they are added. */
#ifndef FORWARD_HOST_GRAPH_H
#define FORWARD_HOST_GRAPH_H

#include "forward/host/command.h"

CUresult graph_add_kernel(struct command *command);
CUresult graph_add_copy(struct command *command);
CUresult graph_add_fill(struct command *command);
CUresult graph_add_alloc(struct command *command);
CUresult graph_add_host(struct command *command);
CUresult graph_update(struct command *command);

/**
 * graph_kernel_take() - the kernel of a node
 * @extra:	room for 5 pointers, which the parameters refer to, and to @size
 */
CUresult graph_kernel_take(struct reader *reader, CUDA_KERNEL_NODE_PARAMS *ret, void **extra,
			   size_t *size);

/** graph_copy_take() - the copy of a node, and its context; false where it cannot be read, or is none of this session */
bool graph_copy_take(struct reader *reader, CUDA_MEMCPY3D *ret, uint64_t *ret_context);

/**
 * graph_host_take() - the guest's function of a host node
 *
 * The node keeps what is behind ret->userData; where none is made of it, that is to be freed. Return: whether it
 * could be read.
 */
bool graph_host_take(struct reader *reader, CUDA_HOST_NODE_PARAMS *ret);

/** graph_fill_ok() - is what a fill reaches the session's memory? */
bool graph_fill_ok(const CUDA_MEMSET_NODE_PARAMS *params);

#endif
