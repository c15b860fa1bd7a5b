// SPDX-License-Identifier: Apache-2.0
/* Graphs, their edges, and what is made of them; their nodes are in graph-node.c. */
#include "softgpu/cudart/runtime.h"

typedef const CUgraphNode *nodes;

PASSED_ON(cudaGraphCreate, cuGraphCreate, (CUgraph * graph, unsigned flags), (graph, flags))
PASSED_ON(cudaGraphDestroy, cuGraphDestroy, (CUgraph graph), (graph))
PASSED_ON(cudaGraphClone, cuGraphClone, (CUgraph * clone, CUgraph graph), (clone, graph))
PASSED_ON(cudaGraphGetNodes, cuGraphGetNodes, (CUgraph graph, CUgraphNode *found, size_t *n),
	  (graph, found, n))
PASSED_ON(cudaGraphGetRootNodes, cuGraphGetRootNodes,
	  (CUgraph graph, CUgraphNode *found, size_t *n), (graph, found, n))
PASSED_ON(cudaGraphDebugDotPrint, cuGraphDebugDotPrint,
	  (CUgraph graph, const char *path, unsigned flags), (graph, path, flags))

/* Edges: before 13 without their data. */
PASSED_ON(cudaGraphAddDependencies, cuGraphAddDependencies,
	  (CUgraph graph, nodes from, nodes to, size_t n), (graph, from, to, n))
PASSED_ON(cudaGraphAddDependencies_v2, cuGraphAddDependencies_v2,
	  (CUgraph graph, nodes from, nodes to, const CUgraphEdgeData *data, size_t n),
	  (graph, from, to, data, n))
PASSED_ON(cudaGraphRemoveDependencies, cuGraphRemoveDependencies,
	  (CUgraph graph, nodes from, nodes to, size_t n), (graph, from, to, n))
PASSED_ON(cudaGraphRemoveDependencies_v2, cuGraphRemoveDependencies_v2,
	  (CUgraph graph, nodes from, nodes to, const CUgraphEdgeData *data, size_t n),
	  (graph, from, to, data, n))
PASSED_ON(cudaGraphGetEdges, cuGraphGetEdges,
	  (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n), (graph, from, to, n))
PASSED_ON(cudaGraphGetEdges_v2, cuGraphGetEdges_v2,
	  (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
	  (graph, from, to, data, n))
PASSED_ON(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies,
	  (CUgraphNode node, CUgraphNode *found, size_t *n), (node, found, n))
PASSED_ON(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies_v2,
	  (CUgraphNode node, CUgraphNode *found, CUgraphEdgeData *data, size_t *n),
	  (node, found, data, n))
PASSED_ON(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes,
	  (CUgraphNode node, CUgraphNode *found, size_t *n), (node, found, n))
PASSED_ON(cudaGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes_v2,
	  (CUgraphNode node, CUgraphNode *found, CUgraphEdgeData *data, size_t *n),
	  (node, found, data, n))

PASSED_ON(cudaUserObjectCreate, cuUserObjectCreate,
	  (CUuserObject * object, void *thing, CUhostFn destroy, unsigned n, unsigned flags),
	  (object, thing, destroy, n, flags))
PASSED_ON(cudaUserObjectRetain, cuUserObjectRetain, (CUuserObject object, unsigned n), (object, n))
PASSED_ON(cudaUserObjectRelease, cuUserObjectRelease, (CUuserObject object, unsigned n),
	  (object, n))
PASSED_ON(cudaGraphRetainUserObject, cuGraphRetainUserObject,
	  (CUgraph graph, CUuserObject object, unsigned n, unsigned flags),
	  (graph, object, n, flags))
PASSED_ON(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
	  (CUgraph graph, CUuserObject object, unsigned n), (graph, object, n))

PASSED_ON(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
	  (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))
PASSED_ON(cudaGraphExecGetFlags, cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *flags),
	  (exec, flags))
PASSED_ON(cudaGraphExecDestroy, cuGraphExecDestroy, (CUgraphExec exec), (exec))

/* cudaGraphInstantiateParams is laid out as the driver's. */
RUNTIME_CALL(cudaGraphInstantiateWithParams, CUgraphExec *exec, CUgraph graph,
	     CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return in_context() ?: told(driver.cuGraphInstantiateWithParams(exec, graph, params));
}

RUNTIME_CALL(cudaGraphInstantiateWithParams_ptsz, CUgraphExec *exec, CUgraph graph,
	     CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS mine;
	cudaError_t error;

	if (!params)
		return failed(cudaErrorInvalidValue);
	mine = *params;
	mine.hUploadStream = stream_of_thread(mine.hUploadStream);
	error = impl_cudaGraphInstantiateWithParams(exec, graph, &mine);
	params->hErrNode_out = mine.hErrNode_out;
	params->result_out = mine.result_out;
	return error;
}

/* 12 and newer pass flags where 11 passed (CUgraphNode *error_node, char *log, size_t). */
RUNTIME_CALL(cudaGraphInstantiate, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return impl_cudaGraphInstantiateWithFlags(exec, graph, flags);
}

RUNTIME_CALL(cudaGraphInstantiate_11, CUgraphExec *exec, CUgraph graph,
	     _unused_ CUgraphNode *error_node, _unused_ char *log, _unused_ size_t log_bytes)
{
	return impl_cudaGraphInstantiateWithFlags(exec, graph, /* flags= */ 0);
}

RUNTIME_CALL(cudaGraphExecUpdate, CUgraphExec exec, CUgraph graph,
	     CUgraphExecUpdateResultInfo *info)
{
	return in_context() ?: told(driver.cuGraphExecUpdate(exec, graph, info));
}

RUNTIME_CALL(cudaGraphExecUpdate_11, CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
	     CUgraphExecUpdateResult *result)
{
	CUgraphExecUpdateResultInfo info = { 0 };
	cudaError_t error = in_context() ?: told(driver.cuGraphExecUpdate(exec, graph, &info));

	if (error_node)
		*error_node = info.errorNode;
	if (result)
		*result = info.result;
	return error;
}

STREAM_CALL(cudaGraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
{
	return in_context() ?: told(driver.cuGraphLaunch(exec, stream));
}

STREAM_CALL(cudaGraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream))
{
	return in_context() ?: told(driver.cuGraphUpload(exec, stream));
}
