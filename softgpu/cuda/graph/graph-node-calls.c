// SPDX-License-Identifier: Apache-2.0
/*
 * The calls that add nodes and read and set their parameters. The newest ones take a
 * CUgraphNodeParams for every kind; the older ones have one call and one structure for each kind,
 * whose bytes are the beginning of the newest one's, and are made from a table at the end.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/graph.h"
#include "softgpu/cuda/code/launch.h"

static CUresult node_add(CUgraphNode *ret, CUgraph handle, const CUgraphNode *after,
			 const CUgraphEdgeData *data, size_t n_after, CUgraphNodeParams *params)
{
	struct graph_node *node;
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = node_new(graph, after, data, n_after, params, &node);
	if (r == CUDA_SUCCESS)
		*ret = node->handle;
	return r;
}

static CUresult node_set_params(CUgraphNode handle, CUgraphNodeParams *params)
{
	struct graph_node *node;
	CUresult r = node_find(handle, &node);

	return r != CUDA_SUCCESS ? r : node_set(node, params);
}

/* A node of a kind, for the calls of that kind. */
static CUresult node_of_type(CUgraphNode handle, CUgraphNodeType type, struct graph_node **ret)
{
	CUresult r = node_find(handle, ret);

	if (r == CUDA_SUCCESS && (*ret)->type != type)
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

CALL(cuGraphAddNode_v2, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
     const CUgraphEdgeData *data, size_t n_after, CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return node_add(ret, graph, after, data, n_after, params);
}

CALL(cuGraphAddNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after,
     CUgraphNodeParams *params)
{
	return impl_cuGraphAddNode_v2(ret, graph, after, NULL, n_after, params);
}

CALL(cuGraphNodeSetParams, CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? node_set_params(node, params) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	return params ? graph_exec_set(exec, node, params) : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphAddEmptyNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	return node_add(ret, graph, after, NULL, n_after, &params);
}

CALL(cuGraphAddChildGraphNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
     size_t n_after, CUgraph child)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = child };

	return node_add(ret, graph, after, NULL, n_after, &params);
}

CALL(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *ret)
{
	struct graph_node *node;

	return TELL(node_of_type(handle, CU_GRAPH_NODE_TYPE_GRAPH, &node), ret,
		    node->params.graph.graph);
}

CALL(cuGraphExecChildGraphNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = child };

	return graph_exec_set(exec, node, &params);
}

CALL(cuGraphAddMemAllocNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
     size_t n_after, CUDA_MEM_ALLOC_NODE_PARAMS *alloc)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUresult r;

	if (!alloc)
		return CUDA_ERROR_INVALID_VALUE;
	params.alloc = *alloc;
	r = node_add(ret, graph, after, NULL, n_after, &params);
	if (r == CUDA_SUCCESS)
		alloc->dptr = params.alloc.dptr;
	return r;
}

CALL(cuGraphMemAllocNodeGetParams, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *ret)
{
	struct graph_node *node;

	return TELL(node_of_type(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &node), ret,
		    node->params.alloc);
}

CALL(cuGraphAddMemFreeNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
     size_t n_after, CUdeviceptr dptr)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free.dptr = dptr };

	return node_add(ret, graph, after, NULL, n_after, &params);
}

CALL(cuGraphMemFreeNodeGetParams, CUgraphNode handle, CUdeviceptr *ret)
{
	struct graph_node *node;

	return TELL(node_of_type(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, &node), ret,
		    node->params.free.dptr);
}

/**
 * struct node_kind - what the older calls of a kind take, as a part of CUgraphNodeParams
 * @ctx_offset:	of the context that they take besides, 0 if they take none
 */
struct node_kind {
	CUgraphNodeType type;
	size_t offset, n_bytes;
	size_t ctx_offset;
};

static CUresult kind_get(const struct node_kind *kind, CUgraphNode handle, void *ret)
{
	struct graph_node *node;
	CUresult r = node_of_type(handle, kind->type, &node);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(ret, (const char *)&node->params + kind->offset, kind->n_bytes);
	return CUDA_SUCCESS;
}

static CUresult kind_fill(const struct node_kind *kind, const void *given, CUcontext ctx,
			  CUgraphNodeParams *ret)
{
	*ret = (CUgraphNodeParams){ .type = kind->type };
	if (!given)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy((char *)ret + kind->offset, given, kind->n_bytes);
	if (kind->ctx_offset)
		memcpy((char *)ret + kind->ctx_offset, &ctx, sizeof(ctx));
	return CUDA_SUCCESS;
}

static CUresult kind_set(const struct node_kind *kind, CUgraphNode node, const void *given)
{
	CUgraphNodeParams params;
	CUresult r = kind_fill(kind, given, /* ctx= */ NULL, &params);

	return r != CUDA_SUCCESS ? r : node_set_params(node, &params);
}

static CUresult kind_add(const struct node_kind *kind, CUgraphNode *ret, CUgraph graph,
			 const CUgraphNode *after, size_t n_after, const void *given, CUcontext ctx)
{
	CUgraphNodeParams params;
	CUresult r = kind_fill(kind, given, ctx, &params);

	return r != CUDA_SUCCESS ? r : node_add(ret, graph, after, NULL, n_after, &params);
}

static CUresult kind_exec_set(const struct node_kind *kind, CUgraphExec exec, CUgraphNode node,
			      const void *given, CUcontext ctx)
{
	CUgraphNodeParams params;
	CUresult r = kind_fill(kind, given, ctx, &params);

	return r != CUDA_SUCCESS ? r : graph_exec_set(exec, node, &params);
}

#define NODE_PART(structure, member)                                                               \
	.offset = offsetof(CUgraphNodeParams, member), .n_bytes = sizeof(structure)

static const struct node_kind kernel_kind = {
	CU_GRAPH_NODE_TYPE_KERNEL,
	NODE_PART(CUDA_KERNEL_NODE_PARAMS_v1, kernel),
};
static const struct node_kind kernel_v2_kind = {
	CU_GRAPH_NODE_TYPE_KERNEL,
	NODE_PART(CUDA_KERNEL_NODE_PARAMS_v2, kernel),
};
static const struct node_kind copy_kind = {
	CU_GRAPH_NODE_TYPE_MEMCPY,
	NODE_PART(CUDA_MEMCPY3D, memcpy.copyParams),
	.ctx_offset = offsetof(CUgraphNodeParams, memcpy.copyCtx),
};
static const struct node_kind set_kind = {
	CU_GRAPH_NODE_TYPE_MEMSET,
	NODE_PART(CUDA_MEMSET_NODE_PARAMS, memset),
	.ctx_offset = offsetof(CUgraphNodeParams, memset.ctx),
};
static const struct node_kind host_kind = {
	CU_GRAPH_NODE_TYPE_HOST,
	NODE_PART(CUDA_HOST_NODE_PARAMS, host),
};
static const struct node_kind mem_op_kind = {
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
	NODE_PART(CUDA_BATCH_MEM_OP_NODE_PARAMS, memOp),
};
static const struct node_kind event_record_kind = {
	CU_GRAPH_NODE_TYPE_EVENT_RECORD,
	NODE_PART(CUevent, eventRecord.event),
};
static const struct node_kind event_wait_kind = {
	CU_GRAPH_NODE_TYPE_WAIT_EVENT,
	NODE_PART(CUevent, eventWait.event),
};

/* Reading and setting, in a graph. */
#define NODE_GET_SET(get, set, kind, structure)                                                    \
	CALL(get, CUgraphNode node, structure *ret)                                                \
	{                                                                                          \
		return kind_get(kind, node, ret);                                                  \
	}                                                                                          \
	CALL(set, CUgraphNode node, const structure *given)                                        \
	{                                                                                          \
		return kind_set(kind, node, given);                                                \
	}

/* Adding, and setting in an executable graph: without and with a context as last argument. */
#define NODE_ADD(add, exec_set, kind, structure)                                                   \
	CALL(add, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after,       \
	     const structure *given)                                                               \
	{                                                                                          \
		return kind_add(kind, ret, graph, after, n_after, given, /* ctx= */ NULL);         \
	}                                                                                          \
	CALL(exec_set, CUgraphExec exec, CUgraphNode node, const structure *given)                 \
	{                                                                                          \
		return kind_exec_set(kind, exec, node, given, /* ctx= */ NULL);                    \
	}

#define NODE_ADD_CTX(add, exec_set, kind, structure)                                               \
	CALL(add, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after,       \
	     const structure *given, CUcontext ctx)                                                \
	{                                                                                          \
		return kind_add(kind, ret, graph, after, n_after, given, ctx);                     \
	}                                                                                          \
	CALL(exec_set, CUgraphExec exec, CUgraphNode node, const structure *given, CUcontext ctx)  \
	{                                                                                          \
		return kind_exec_set(kind, exec, node, given, ctx);                                \
	}

NODE_GET_SET(cuGraphKernelNodeGetParams, cuGraphKernelNodeSetParams, &kernel_kind,
	     CUDA_KERNEL_NODE_PARAMS_v1)
NODE_ADD(cuGraphAddKernelNode, cuGraphExecKernelNodeSetParams, &kernel_kind,
	 CUDA_KERNEL_NODE_PARAMS_v1)

NODE_GET_SET(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeSetParams_v2, &kernel_v2_kind,
	     CUDA_KERNEL_NODE_PARAMS_v2)
NODE_ADD(cuGraphAddKernelNode_v2, cuGraphExecKernelNodeSetParams_v2, &kernel_v2_kind,
	 CUDA_KERNEL_NODE_PARAMS_v2)

NODE_GET_SET(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeSetParams, &copy_kind, CUDA_MEMCPY3D)
NODE_ADD_CTX(cuGraphAddMemcpyNode, cuGraphExecMemcpyNodeSetParams, &copy_kind, CUDA_MEMCPY3D)

NODE_GET_SET(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeSetParams, &set_kind,
	     CUDA_MEMSET_NODE_PARAMS)
NODE_ADD_CTX(cuGraphAddMemsetNode, cuGraphExecMemsetNodeSetParams, &set_kind,
	     CUDA_MEMSET_NODE_PARAMS)

NODE_GET_SET(cuGraphHostNodeGetParams, cuGraphHostNodeSetParams, &host_kind, CUDA_HOST_NODE_PARAMS)
NODE_ADD(cuGraphAddHostNode, cuGraphExecHostNodeSetParams, &host_kind, CUDA_HOST_NODE_PARAMS)

NODE_GET_SET(cuGraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeSetParams, &mem_op_kind,
	     CUDA_BATCH_MEM_OP_NODE_PARAMS)
NODE_ADD(cuGraphAddBatchMemOpNode, cuGraphExecBatchMemOpNodeSetParams, &mem_op_kind,
	 CUDA_BATCH_MEM_OP_NODE_PARAMS)

/* Events are arguments by themselves. */
#define NODE_EVENT(name, kind)                                                                     \
	CALL(cuGraphAdd##name##Node, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,    \
	     size_t n_after, CUevent event)                                                        \
	{                                                                                          \
		return kind_add(kind, ret, graph, after, n_after, &event, /* ctx= */ NULL);        \
	}                                                                                          \
	CALL(cuGraph##name##NodeGetEvent, CUgraphNode node, CUevent *ret)                          \
	{                                                                                          \
		return kind_get(kind, node, ret);                                                  \
	}                                                                                          \
	CALL(cuGraph##name##NodeSetEvent, CUgraphNode node, CUevent event)                         \
	{                                                                                          \
		return kind_set(kind, node, &event);                                               \
	}                                                                                          \
	CALL(cuGraphExec##name##NodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event)   \
	{                                                                                          \
		return kind_exec_set(kind, exec, node, &event, /* ctx= */ NULL);                   \
	}

NODE_EVENT(EventRecord, &event_record_kind)
NODE_EVENT(EventWait, &event_wait_kind)

static bool attribute_is_valid(CUkernelNodeAttrID id)
{
	return id > CU_LAUNCH_ATTRIBUTE_IGNORE && (unsigned int)id < NODE_ATTRIBUTES_N;
}

CALL(cuGraphKernelNodeSetAttribute, CUgraphNode handle, CUkernelNodeAttrID id,
     const CUkernelNodeAttrValue *value)
{
	struct graph_node *node;
	CUresult r = node_of_type(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);

	if (r != CUDA_SUCCESS)
		return r;
	if (!value || !attribute_is_valid(id))
		return CUDA_ERROR_INVALID_VALUE;
	if (!node->attributes)
		node->attributes = calloc(NODE_ATTRIBUTES_N, sizeof(*node->attributes));
	if (!node->attributes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->attributes[id] = *value;
	return CUDA_SUCCESS;
}

CALL(cuGraphKernelNodeGetAttribute, CUgraphNode handle, CUkernelNodeAttrID id,
     CUkernelNodeAttrValue *ret)
{
	struct graph_node *node;
	CUresult r = node_of_type(handle, CU_GRAPH_NODE_TYPE_KERNEL, &node);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !attribute_is_valid(id))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = node->attributes ? node->attributes[id] : (CUkernelNodeAttrValue){ 0 };
	return CUDA_SUCCESS;
}

CALL(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from)
{
	struct graph_node *source, *target;
	CUkernelNodeAttrValue *copy = NULL;
	size_t n_bytes = NODE_ATTRIBUTES_N * sizeof(*copy);
	CUresult r;

	r = node_of_type(to, CU_GRAPH_NODE_TYPE_KERNEL, &target);
	if (r == CUDA_SUCCESS)
		r = node_of_type(from, CU_GRAPH_NODE_TYPE_KERNEL, &source);
	if (r != CUDA_SUCCESS || source == target)
		return r;
	if (source->attributes) {
		copy = malloc(n_bytes);
		if (!copy)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(copy, source->attributes, n_bytes);
	}
	free(target->attributes);
	target->attributes = copy;
	return CUDA_SUCCESS;
}
