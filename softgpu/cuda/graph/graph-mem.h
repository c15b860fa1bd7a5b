/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate: what graph-node.c and graph-exec.c need of it. */
#pragma once

#include "softgpu/cuda/core.h"

struct stream;
struct work_class;

/* Parameters of work_graph_alloc and work_graph_free. */
struct graph_memory_work {
	CUdeviceptr dptr;
};

extern const struct work_class work_graph_alloc, work_graph_free;

/** graph_memory_new() - give a memory node its address; fills in @params->dptr */
CUresult graph_memory_new(CUDA_MEM_ALLOC_NODE_PARAMS *params);

/** graph_memory_drop() - the node is gone: the address is free once the memory is */
void graph_memory_drop(CUdeviceptr dptr);

/** graph_memory_covers() - are all of these bytes a memory node's? */
bool graph_memory_covers(uint64_t addr, uint64_t bytes);

/** graph_memory_exists() - is this the address of a memory node? */
bool graph_memory_exists(CUdeviceptr dptr);

/** graph_memory_claim() - for an executable graph; false: another one has it still */
bool graph_memory_claim(CUdeviceptr dptr);
void graph_memory_unclaim(CUdeviceptr dptr);

/**
 * graph_memory_back() - have the memory there for a launch that will allocate it
 * @may_be_in_use:	the launch before may not have freed it yet, or need not have
 *
 * CUDA_ERROR_INVALID_VALUE if it is allocated and may not be, CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult graph_memory_back(CUdeviceptr dptr, bool may_be_in_use);

/** graph_memory_take() - it is allocated, once all that the launch needs is there */
CUresult graph_memory_take(CUdeviceptr dptr);

/** graph_memory_free() - cuMemFree; false if it is none, or not allocated */
bool graph_memory_free(CUdeviceptr dptr);

/** graph_memory_free_async() - cuMemFreeAsync */
CUresult graph_memory_free_async(CUdeviceptr dptr, struct stream *stream);
