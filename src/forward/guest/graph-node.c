// SPDX-License-Identifier: Apache-2.0
/*
 * Parameters that nodes of graphs get later, and the calls that take a node of any kind, which are those of its kind.
 *
 * Of edges with data only those are made here that are like edges without.
 */
#include "forward/guest/writer.h"

#include "base/base.h"
#include "forward/guest/callback.h"
#include "forward/guest/copy3d.h"
#include "forward/guest/graph.h"
#include "forward/guest/log.h"

/* For both, of a graph's node there is no executable graph. */
static CUresult set_copy(enum call_id id, CUgraphExec exec, CUgraphNode node,
			 const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct wire_copy copy;
	struct writer w;
	CUresult r = session_check();

	if (r == CUDA_SUCCESS && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = copy3d_adopt(params, &copy);
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, id, 2 * sizeof(uint64_t) + sizeof(copy));
	if (r != CUDA_SUCCESS)
		return r;
	copy.where = POINTER(context);
	write_word(&w, POINTER(exec));
	write_word(&w, POINTER(node));
	write_bytes(&w, &copy, sizeof(copy));
	return call_ask(w.lane, NULL, NULL);
}

CALL(cuGraphMemcpyNodeSetParams, CUgraphNode node, const CUDA_MEMCPY3D *params)
{
	return set_copy(CALL_ID_cuGraphMemcpyNodeSetParams, NULL, node, params, NULL);
}

CALL(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode node,
     const CUDA_MEMCPY3D *params, CUcontext context)
{
	return set_copy(CALL_ID_cuGraphExecMemcpyNodeSetParams, exec, node, params, context);
}

static CUresult set_host(enum call_id id, CUgraphExec exec, CUgraphNode node,
			 const CUDA_HOST_NODE_PARAMS *params)
{
	struct writer w;
	CUresult r = session_check();

	if (r == CUDA_SUCCESS && (!params || !params->fn))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = callback_prepare();
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, id, 4 * sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(exec));
	write_word(&w, POINTER(node));
	write_word(&w, POINTER(params->fn));
	write_word(&w, POINTER(params->userData));
	return call_ask(w.lane, NULL, NULL);
}

CALL(cuGraphHostNodeSetParams, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
	return set_host(CALL_ID_cuGraphHostNodeSetParams, NULL, node, params);
}

CALL(cuGraphExecHostNodeSetParams, CUgraphExec exec, CUgraphNode node,
     const CUDA_HOST_NODE_PARAMS *params)
{
	return set_host(CALL_ID_cuGraphExecHostNodeSetParams, exec, node, params);
}

/* Nodes of any kind */

static CUresult refuse(const char *call, const char *what)
{
	guest_log("%s: %s are not forwarded", call, what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The older form is the newer one's beginning. */
static CUDA_MEMSET_NODE_PARAMS fill_of(const CUDA_MEMSET_NODE_PARAMS_v2 *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	memcpy(&fill, params, sizeof(fill));
	return fill;
}

static CUresult add_child(CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
			  const CUDA_CHILD_GRAPH_NODE_PARAMS *params)
{
	if (params->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
		return refuse("cuGraphAddNode", "graphs that are given away");
	return CALL_WORDS(CALL_ID_cuGraphAddChildGraphNode, POINTER(ret), POINTER(graph),
			  POINTER(after), n, POINTER(params->graph));
}

CALL(cuGraphAddNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after, size_t n,
     CUgraphNodeParams *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphAddKernelNode_v2(ret, graph, after, n, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphAddMemcpyNode(ret, graph, after, n, &params->memcpy.copyParams,
					    params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fill = fill_of(&params->memset);
		return cuGraphAddMemsetNode(ret, graph, after, n, &fill, params->memset.ctx);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphAddHostNode(ret, graph, after, n, &params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_child(ret, graph, after, n, &params->graph);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CALL_WORDS(CALL_ID_cuGraphAddEmptyNode, POINTER(ret), POINTER(graph),
				  POINTER(after), n);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return CALL_WORDS(CALL_ID_cuGraphAddEventWaitNode, POINTER(ret), POINTER(graph),
				  POINTER(after), n, POINTER(params->eventWait.event));
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return CALL_WORDS(CALL_ID_cuGraphAddEventRecordNode, POINTER(ret), POINTER(graph),
				  POINTER(after), n, POINTER(params->eventRecord.event));
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return cuGraphAddMemAllocNode(ret, graph, after, n, &params->alloc);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return CALL_WORDS(CALL_ID_cuGraphAddMemFreeNode, POINTER(ret), POINTER(graph),
				  POINTER(after), n, params->free.dptr);
	default:
		return refuse("cuGraphAddNode", "nodes of this kind");
	}
}

static bool edges_are_plain(const CUgraphEdgeData *edges, size_t n)
{
	static const CUgraphEdgeData plain;
	size_t i;

	for (i = 0; edges && i < n; i++)
		if (memcmp(&edges[i], &plain, sizeof(plain)) != 0)
			return false;
	return true;
}

CALL(cuGraphAddNode_v2, CUgraphNode *ret, CUgraph graph, const CUgraphNode *after,
     const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params)
{
	if (!edges_are_plain(edges, n))
		return refuse("cuGraphAddNode", "edges with data");
	return cuGraphAddNode(ret, graph, after, n, params);
}

CALL(cuGraphNodeSetParams, CUgraphNode node, CUgraphNodeParams *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphKernelNodeSetParams_v2(node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphMemcpyNodeSetParams(node, &params->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fill = fill_of(&params->memset);
		return CALL_WORDS(CALL_ID_cuGraphMemsetNodeSetParams, POINTER(node),
				  POINTER(&fill));
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphHostNodeSetParams(node, &params->host);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return CALL_WORDS(CALL_ID_cuGraphEventWaitNodeSetEvent, POINTER(node),
				  POINTER(params->eventWait.event));
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return CALL_WORDS(CALL_ID_cuGraphEventRecordNodeSetEvent, POINTER(node),
				  POINTER(params->eventRecord.event));
	default:
		return refuse("cuGraphNodeSetParams", "nodes of this kind");
	}
}

CALL(cuGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return cuGraphExecKernelNodeSetParams_v2(exec, node, &params->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuGraphExecMemcpyNodeSetParams(exec, node, &params->memcpy.copyParams,
						      params->memcpy.copyCtx);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		fill = fill_of(&params->memset);
		return CALL_WORDS(CALL_ID_cuGraphExecMemsetNodeSetParams, POINTER(exec),
				  POINTER(node), POINTER(&fill), POINTER(params->memset.ctx));
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuGraphExecHostNodeSetParams(exec, node, &params->host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return CALL_WORDS(CALL_ID_cuGraphExecChildGraphNodeSetParams, POINTER(exec),
				  POINTER(node), POINTER(params->graph.graph));
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return CALL_WORDS(CALL_ID_cuGraphExecEventWaitNodeSetEvent, POINTER(exec),
				  POINTER(node), POINTER(params->eventWait.event));
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return CALL_WORDS(CALL_ID_cuGraphExecEventRecordNodeSetEvent, POINTER(exec),
				  POINTER(node), POINTER(params->eventRecord.event));
	default:
		return refuse("cuGraphExecNodeSetParams", "nodes of this kind");
	}
}

/* Edges: the older calls tell all there is to tell, or that it would be lost. */

/* As many as there was room for. */
static CUresult plain_edges(CUresult result, CUgraphEdgeData *edges, size_t room, const size_t *n)
{
	if (result == CUDA_SUCCESS && edges && n)
		memset(edges, 0, MIN(*n, room) * sizeof(edges[0]));
	return result;
}

CALL(cuGraphGetEdges_v2, CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
     size_t *n)
{
	size_t room = n ? *n : 0;

	return plain_edges(CALL_WORDS(CALL_ID_cuGraphGetEdges, POINTER(graph), POINTER(from),
				      POINTER(to), POINTER(n)),
			   edges, room, n);
}

CALL(cuGraphNodeGetDependencies_v2, CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *edges,
     size_t *n)
{
	size_t room = n ? *n : 0;

	return plain_edges(CALL_WORDS(CALL_ID_cuGraphNodeGetDependencies, POINTER(node),
				      POINTER(ret), POINTER(n)),
			   edges, room, n);
}

CALL(cuGraphNodeGetDependentNodes_v2, CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *edges,
     size_t *n)
{
	size_t room = n ? *n : 0;

	return plain_edges(CALL_WORDS(CALL_ID_cuGraphNodeGetDependentNodes, POINTER(node),
				      POINTER(ret), POINTER(n)),
			   edges, room, n);
}
