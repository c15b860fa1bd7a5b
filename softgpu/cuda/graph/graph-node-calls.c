// SPDX-License-Identifier: Apache-2.0
/*
 * The calls that add nodes and read and set their parameters. The newest ones take a
 * CUgraphNodeParams for every kind; the older ones have one call and one structure for each kind,
 * whose bytes are the beginning of the newest one's, and are made from a table at the end.
 */
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

/* Reading and setting, in a graph: what every kind of the older calls has. */
#define NODE_PARAMS_GET_SET(get, set, kind, type_, member)                                         \
	CALL(get, CUgraphNode handle, kind *ret)                                                   \
	{                                                                                          \
		struct graph_node *node;                                                           \
		CUresult r = node_of_type(handle, type_, &node);                                   \
                                                                                                   \
		if (r != CUDA_SUCCESS)                                                             \
			return r;                                                                  \
		if (!ret)                                                                          \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(ret, &node->params.member, sizeof(*ret));                                   \
		return CUDA_SUCCESS;                                                               \
	}                                                                                          \
	CALL(set, CUgraphNode node, const kind *given)                                             \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_ };                                      \
                                                                                                   \
		if (!given)                                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(&params.member, given, sizeof(*given));                                     \
		return node_set_params(node, &params);                                             \
	}

/* Adding, and setting in an executable graph: without and with a context as last argument. */
#define NODE_PARAMS_ADD(add, exec_set, kind, type_, member)                                        \
	CALL(add, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after,       \
	     const kind *given)                                                                    \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_ };                                      \
                                                                                                   \
		if (!given)                                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(&params.member, given, sizeof(*given));                                     \
		return node_add(ret, graph, after, NULL, n_after, &params);                        \
	}                                                                                          \
	CALL(exec_set, CUgraphExec exec, CUgraphNode node, const kind *given)                      \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_ };                                      \
                                                                                                   \
		if (!given)                                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(&params.member, given, sizeof(*given));                                     \
		return graph_exec_set(exec, node, &params);                                        \
	}

#define NODE_PARAMS_ADD_CTX(add, exec_set, kind, type_, member, ctx_member)                        \
	CALL(add, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n_after,       \
	     const kind *given, CUcontext ctx)                                                     \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_ };                                      \
                                                                                                   \
		if (!given)                                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(&params.member, given, sizeof(*given));                                     \
		params.ctx_member = ctx;                                                           \
		return node_add(ret, graph, after, NULL, n_after, &params);                        \
	}                                                                                          \
	CALL(exec_set, CUgraphExec exec, CUgraphNode node, const kind *given, CUcontext ctx)       \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_ };                                      \
                                                                                                   \
		if (!given)                                                                        \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		memcpy(&params.member, given, sizeof(*given));                                     \
		params.ctx_member = ctx;                                                           \
		return graph_exec_set(exec, node, &params);                                        \
	}

NODE_PARAMS_GET_SET(cuGraphKernelNodeGetParams, cuGraphKernelNodeSetParams,
		    CUDA_KERNEL_NODE_PARAMS_v1, CU_GRAPH_NODE_TYPE_KERNEL, kernel)
NODE_PARAMS_ADD(cuGraphAddKernelNode, cuGraphExecKernelNodeSetParams, CUDA_KERNEL_NODE_PARAMS_v1,
		CU_GRAPH_NODE_TYPE_KERNEL, kernel)

NODE_PARAMS_GET_SET(cuGraphKernelNodeGetParams_v2, cuGraphKernelNodeSetParams_v2,
		    CUDA_KERNEL_NODE_PARAMS_v2, CU_GRAPH_NODE_TYPE_KERNEL, kernel)
NODE_PARAMS_ADD(cuGraphAddKernelNode_v2, cuGraphExecKernelNodeSetParams_v2,
		CUDA_KERNEL_NODE_PARAMS_v2, CU_GRAPH_NODE_TYPE_KERNEL, kernel)

NODE_PARAMS_GET_SET(cuGraphMemcpyNodeGetParams, cuGraphMemcpyNodeSetParams, CUDA_MEMCPY3D,
		    CU_GRAPH_NODE_TYPE_MEMCPY, memcpy.copyParams)
NODE_PARAMS_ADD_CTX(cuGraphAddMemcpyNode, cuGraphExecMemcpyNodeSetParams, CUDA_MEMCPY3D,
		    CU_GRAPH_NODE_TYPE_MEMCPY, memcpy.copyParams, memcpy.copyCtx)

NODE_PARAMS_GET_SET(cuGraphMemsetNodeGetParams, cuGraphMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS,
		    CU_GRAPH_NODE_TYPE_MEMSET, memset)
NODE_PARAMS_ADD_CTX(cuGraphAddMemsetNode, cuGraphExecMemsetNodeSetParams, CUDA_MEMSET_NODE_PARAMS,
		    CU_GRAPH_NODE_TYPE_MEMSET, memset, memset.ctx)

NODE_PARAMS_GET_SET(cuGraphHostNodeGetParams, cuGraphHostNodeSetParams, CUDA_HOST_NODE_PARAMS,
		    CU_GRAPH_NODE_TYPE_HOST, host)
NODE_PARAMS_ADD(cuGraphAddHostNode, cuGraphExecHostNodeSetParams, CUDA_HOST_NODE_PARAMS,
		CU_GRAPH_NODE_TYPE_HOST, host)

NODE_PARAMS_GET_SET(cuGraphBatchMemOpNodeGetParams, cuGraphBatchMemOpNodeSetParams,
		    CUDA_BATCH_MEM_OP_NODE_PARAMS, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, memOp)
NODE_PARAMS_ADD(cuGraphAddBatchMemOpNode, cuGraphExecBatchMemOpNodeSetParams,
		CUDA_BATCH_MEM_OP_NODE_PARAMS, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, memOp)

/* Events are arguments by themselves. */
#define NODE_EVENT(kind, type_, member)                                                            \
	CALL(cuGraphAdd##kind##Node, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,    \
	     size_t n_after, CUevent event)                                                        \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_, .member.event = event };               \
                                                                                                   \
		return node_add(ret, graph, after, NULL, n_after, &params);                        \
	}                                                                                          \
	CALL(cuGraph##kind##NodeGetEvent, CUgraphNode handle, CUevent *ret)                        \
	{                                                                                          \
		struct graph_node *node;                                                           \
		CUresult r = node_of_type(handle, type_, &node);                                   \
                                                                                                   \
		if (r != CUDA_SUCCESS)                                                             \
			return r;                                                                  \
		if (!ret)                                                                          \
			return CUDA_ERROR_INVALID_VALUE;                                           \
		*ret = node->params.member.event;                                                  \
		return CUDA_SUCCESS;                                                               \
	}                                                                                          \
	CALL(cuGraph##kind##NodeSetEvent, CUgraphNode node, CUevent event)                         \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_, .member.event = event };               \
                                                                                                   \
		return node_set_params(node, &params);                                             \
	}                                                                                          \
	CALL(cuGraphExec##kind##NodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event)   \
	{                                                                                          \
		CUgraphNodeParams params = { .type = type_, .member.event = event };               \
                                                                                                   \
		return graph_exec_set(exec, node, &params);                                        \
	}

NODE_EVENT(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD, eventRecord)
NODE_EVENT(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT, eventWait)

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
