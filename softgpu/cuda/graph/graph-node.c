// SPDX-License-Identifier: Apache-2.0
/*
 * The kinds of nodes: for each, how it takes, keeps and copies its parameters and what work they
 * are when it runs.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/memory/copy.h"
#include "softgpu/cuda/stream/event.h"
#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/graph/graph.h"
#include "softgpu/cuda/code/launch.h"
#include "softgpu/cuda/stream/work.h"

/*
 * The arguments of a kernel node: what its kernelParams points to. The pointers come first, the
 * values behind them.
 */
struct kernel_block {
	size_t n_params, n_bytes;
	void *params[];
};

static struct kernel_block *block_of(const CUgraphNodeParams *params)
{
	return (struct kernel_block *)((char *)params->kernel.kernelParams -
				       offsetof(struct kernel_block, params));
}

static struct kernel_block *block_new(size_t n_params, size_t n_bytes)
{
	struct kernel_block *block;

	block = malloc(sizeof(*block) + n_params * sizeof(void *) + n_bytes);
	if (block) {
		block->n_params = n_params;
		block->n_bytes = n_bytes;
	}
	return block;
}

static unsigned char *block_values(struct kernel_block *block)
{
	return (unsigned char *)(block->params + block->n_params);
}

static struct kernel_args kernel_args_of(const CUgraphNodeParams *params)
{
	const CUDA_KERNEL_NODE_PARAMS *kernel = &params->kernel;

	return (struct kernel_args){
		.handle = kernel->func ? kernel->func : (CUfunction)kernel->kern,
		.grid = { kernel->gridDimX, kernel->gridDimY, kernel->gridDimZ },
		.block = { kernel->blockDimX, kernel->blockDimY, kernel->blockDimZ },
		.shared_bytes = kernel->sharedMemBytes,
		.params = kernel->kernelParams,
		.extra = kernel->extra,
	};
}

static CUresult kernel_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	struct kernel_args args = kernel_args_of(from);
	const struct exec_kernel *kernel;
	struct kernel_block *block;
	struct kernel_work work;
	CUresult r;

	r = kernel_work_init(&work, NULL, &args);
	if (r != CUDA_SUCCESS)
		return r;
	kernel = work.function->kernel;
	block = block_new(kernel->n_params, kernel->param_bytes);
	if (!block) {
		kernel_work_done(&work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	memcpy(block_values(block), work.params, kernel->param_bytes);
	for (size_t i = 0; i < kernel->n_params; i++)
		block->params[i] = block_values(block) + kernel->params[i].offset;
	*to = *from;
	to->kernel.kernelParams = block->params;
	to->kernel.extra = NULL;
	kernel_work_done(&work);
	return CUDA_SUCCESS;
}

static CUresult kernel_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from)
{
	struct kernel_block *source = block_of(from);
	struct kernel_block *block = block_new(source->n_params, source->n_bytes);

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(block_values(block), block_values(source), source->n_bytes);
	for (size_t i = 0; i < source->n_params; i++)
		block->params[i] = block_values(block) +
				   ((unsigned char *)source->params[i] - block_values(source));
	to->kernel.kernelParams = block->params;
	return CUDA_SUCCESS;
}

static void kernel_release(CUgraphNodeParams *params)
{
	free(block_of(params));
}

static CUresult kernel_to_work(const struct graph_node *node, const CUgraphNodeParams *params,
			       void *work)
{
	struct kernel_args args = kernel_args_of(params);

	if (node->attributes) {
		args.cooperative = node->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative;
		args.priority = node->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority;
	}
	return kernel_work_init(work, NULL, &args);
}

static void kernel_from_work(const void *from, CUgraphNodeParams *params,
			     struct node_scratch *scratch)
{
	const struct kernel_work *work = from;

	scratch->extra_size = work->function->kernel->param_bytes;
	scratch->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	scratch->extra[1] = work->params;
	scratch->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	scratch->extra[3] = &scratch->extra_size;
	scratch->extra[4] = CU_LAUNCH_PARAM_END;
	params->kernel = (CUDA_KERNEL_NODE_PARAMS_v3){
		.func = work->handle,
		.gridDimX = work->grid[0],
		.gridDimY = work->grid[1],
		.gridDimZ = work->grid[2],
		.blockDimX = work->block[0],
		.blockDimY = work->block[1],
		.blockDimZ = work->block[2],
		.sharedMemBytes = work->shared_bytes,
		.extra = scratch->extra,
		.ctx = work->function->module->ctx->handle,
	};
}

static CUresult memcpy_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	*to = *from;
	return copy_check(&from->memcpy.copyParams);
}

static CUresult memcpy_to_work(_unused_ const struct graph_node *node,
			       const CUgraphNodeParams *params, void *work)
{
	*(CUDA_MEMCPY3D *)work = params->memcpy.copyParams;
	return CUDA_SUCCESS;
}

static void memcpy_from_work(const void *work, CUgraphNodeParams *params,
			     _unused_ struct node_scratch *scratch)
{
	params->memcpy.copyParams = *(const CUDA_MEMCPY3D *)work;
}

/* The newer shape of the parameters is the older one and a context behind it. */
_Static_assert(offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx) == sizeof(CUDA_MEMSET_NODE_PARAMS),
	       "memset");

static CUresult memset_to_work(_unused_ const struct graph_node *node,
			       const CUgraphNodeParams *params, void *work)
{
	memcpy(work, &params->memset, sizeof(CUDA_MEMSET_NODE_PARAMS));
	return CUDA_SUCCESS;
}

static void memset_from_work(const void *work, CUgraphNodeParams *params,
			     _unused_ struct node_scratch *scratch)
{
	memcpy(&params->memset, work, sizeof(CUDA_MEMSET_NODE_PARAMS));
}

static CUresult memset_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	CUDA_MEMSET_NODE_PARAMS set;

	memcpy(&set, &from->memset, sizeof(set));
	*to = *from;
	return set_check(&set);
}

static CUresult host_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	*to = *from;
	return from->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult host_to_work(_unused_ const struct graph_node *node,
			     const CUgraphNodeParams *params, void *work)
{
	*(CUDA_HOST_NODE_PARAMS *)work = params->host;
	return CUDA_SUCCESS;
}

static void host_from_work(const void *work, CUgraphNodeParams *params,
			   _unused_ struct node_scratch *scratch)
{
	params->host = *(const CUDA_HOST_NODE_PARAMS *)work;
}

static CUresult child_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from)
{
	struct graph *graph, *clone;
	CUresult r = graph_find(from->graph.graph, &graph);

	if (r == CUDA_SUCCESS)
		r = graph_clone(graph, &clone);
	if (r == CUDA_SUCCESS)
		to->graph.graph = clone->handle;
	return r;
}

static CUresult child_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	struct graph *graph;
	CUresult r = graph_find(from->graph.graph, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	*to = *from;
	if (from->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return child_copy(to, from);
	return graph->parent ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void child_release(CUgraphNodeParams *params)
{
	graph_free(handle_get(HANDLE_GRAPH, params->graph.graph));
}

static CUresult empty_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	*to = *from;
	return CUDA_SUCCESS;
}

/* Both kinds of event nodes have the event at the same place. */
static CUresult event_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	struct event *event;

	*to = *from;
	return event_find(from->eventRecord.event, &event);
}

static CUresult batch_copy(CUgraphNodeParams *to, const CUgraphNodeParams *from)
{
	return work_batch_mem_op.copy(&to->memOp, &from->memOp);
}

static CUresult batch_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	if (!batch_mem_op_is_valid(&from->memOp))
		return CUDA_ERROR_INVALID_VALUE;
	*to = *from;
	return batch_copy(to, from);
}

static void batch_release(CUgraphNodeParams *params)
{
	work_batch_mem_op.release(&params->memOp);
}

static CUresult batch_to_work(_unused_ const struct graph_node *node,
			      const CUgraphNodeParams *params, void *work)
{
	*(CUDA_BATCH_MEM_OP_NODE_PARAMS *)work = params->memOp;
	return work_batch_mem_op.copy(work, &params->memOp);
}

static void batch_from_work(const void *work, CUgraphNodeParams *params,
			    _unused_ struct node_scratch *scratch)
{
	params->memOp = *(const CUDA_BATCH_MEM_OP_NODE_PARAMS *)work;
}

static CUresult alloc_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	CUresult r = graph_memory_new(&from->alloc);

	*to = *from;
	to->alloc.accessDescs = NULL;
	to->alloc.accessDescCount = 0;
	return r;
}

/* Two graphs cannot own one address. */
static CUresult memory_copy(_unused_ CUgraphNodeParams *to, _unused_ const CUgraphNodeParams *from)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void alloc_release(CUgraphNodeParams *params)
{
	graph_memory_drop(params->alloc.dptr);
}

static CUresult alloc_to_work(_unused_ const struct graph_node *node,
			      const CUgraphNodeParams *params, void *work)
{
	((struct graph_memory_work *)work)->dptr = params->alloc.dptr;
	return CUDA_SUCCESS;
}

static CUresult free_take(CUgraphNodeParams *to, CUgraphNodeParams *from)
{
	*to = *from;
	return graph_memory_exists(from->free.dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_to_work(_unused_ const struct graph_node *node,
			     const CUgraphNodeParams *params, void *work)
{
	((struct graph_memory_work *)work)->dptr = params->free.dptr;
	return CUDA_SUCCESS;
}

static const struct node_class node_classes[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = {
		.name = "KERNEL",
		.work = &work_kernel,
		.take = kernel_take,
		.copy = kernel_copy,
		.release = kernel_release,
		.to_work = kernel_to_work,
		.from_work = kernel_from_work,
		.can_disable = true,
	},
	[CU_GRAPH_NODE_TYPE_MEMCPY] = {
		.name = "MEMCPY",
		.work = &work_memcpy,
		.take = memcpy_take,
		.to_work = memcpy_to_work,
		.from_work = memcpy_from_work,
		.can_disable = true,
	},
	[CU_GRAPH_NODE_TYPE_MEMSET] = {
		.name = "MEMSET",
		.work = &work_memset,
		.take = memset_take,
		.to_work = memset_to_work,
		.from_work = memset_from_work,
		.can_disable = true,
	},
	[CU_GRAPH_NODE_TYPE_HOST] = {
		.name = "HOST",
		.work = &work_host,
		.take = host_take,
		.to_work = host_to_work,
		.from_work = host_from_work,
	},
	[CU_GRAPH_NODE_TYPE_GRAPH] = {
		.name = "GRAPH",
		.take = child_take,
		.copy = child_copy,
		.release = child_release,
	},
	[CU_GRAPH_NODE_TYPE_EMPTY] = {
		.name = "EMPTY",
		.take = empty_take,
	},
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = {
		.name = "EVENT_WAIT",
		.take = event_take,
	},
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = {
		.name = "EVENT_RECORD",
		.take = event_take,
	},
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = {
		.name = "MEM_ALLOC",
		.work = &work_graph_alloc,
		.take = alloc_take,
		.copy = memory_copy,
		.release = alloc_release,
		.to_work = alloc_to_work,
	},
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = {
		.name = "MEM_FREE",
		.work = &work_graph_free,
		.take = free_take,
		.copy = memory_copy,
		.to_work = free_to_work,
	},
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = {
		.name = "BATCH_MEM_OP",
		.work = &work_batch_mem_op,
		.take = batch_take,
		.copy = batch_copy,
		.release = batch_release,
		.to_work = batch_to_work,
		.from_work = batch_from_work,
	},
};

const struct node_class *node_class_find(CUgraphNodeType type)
{
	if ((unsigned int)type >= sizeof(node_classes) / sizeof(node_classes[0]) ||
	    !node_classes[type].take)
		return NULL;
	return &node_classes[type];
}

static CUresult keep_attributes(struct graph_node *node, const struct kernel_work *work)
{
	if (!work->cooperative && !work->priority)
		return CUDA_SUCCESS;
	node->attributes = calloc(NODE_ATTRIBUTES_N, sizeof(*node->attributes));
	if (!node->attributes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->attributes[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative = work->cooperative;
	node->attributes[CU_LAUNCH_ATTRIBUTE_PRIORITY].priority = work->priority;
	return CUDA_SUCCESS;
}

CUresult node_new_of_work(struct graph *graph, const CUgraphNode *after,
			  const CUgraphEdgeData *data, size_t n_after, int type, const void *work,
			  struct graph_node **ret)
{
	const struct node_class *class = node_class_find((CUgraphNodeType)type);
	CUgraphNodeParams params = { .type = (CUgraphNodeType)type };
	struct node_scratch scratch;
	struct graph_node *node;
	CUresult r;

	if (!class || !class->from_work)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	class->from_work(work, &params, &scratch);
	r = node_new(graph, after, data, n_after, &params, &node);
	if (r == CUDA_SUCCESS && params.type == CU_GRAPH_NODE_TYPE_KERNEL) {
		r = keep_attributes(node, work);
		if (r != CUDA_SUCCESS)
			node_free(node);
	}
	if (r == CUDA_SUCCESS)
		*ret = node;
	return r;
}
