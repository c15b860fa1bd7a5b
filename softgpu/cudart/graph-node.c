// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes of graphs and their parameters: the runtime's forms turned into the driver's and back.
 *
 * Kernels are host functions to the runtime, copies have positions in elements, and memsets
 * do not name their context; all other parameters are laid out as the driver's.
 */
#include <string.h>

#include "softgpu/cudart/copy.h"

typedef const CUgraphNode *nodes;

static cudaError_t kernel_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *ret)
{
	CUfunction kernel;
	cudaError_t error;

	error = symbol_function(p->func, &kernel);
	if (error)
		return error;
	*ret = (CUDA_KERNEL_NODE_PARAMS){
		.func = kernel,
		.gridDimX = p->gridDim.x,
		.gridDimY = p->gridDim.y,
		.gridDimZ = p->gridDim.z,
		.blockDimX = p->blockDim.x,
		.blockDimY = p->blockDim.y,
		.blockDimZ = p->blockDim.z,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return cudaSuccess;
}

static cudaError_t kernel_given(const CUDA_KERNEL_NODE_PARAMS *p, struct cudaKernelNodeParams *ret)
{
	*ret = (struct cudaKernelNodeParams){
		.func = (void *)symbol_of_function(p->func),
		.gridDim = { p->gridDimX, p->gridDimY, p->gridDimZ },
		.blockDim = { p->blockDimX, p->blockDimY, p->blockDimZ },
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return cudaSuccess;
}

static cudaError_t copy_given(const CUDA_MEMCPY3D *p, struct cudaMemcpy3DParms *ret)
{
	*ret = parms_of_copy(p);
	return cudaSuccess;
}

static cudaError_t memset_params(const struct cudaMemsetParams *p, CUDA_MEMSET_NODE_PARAMS *ret)
{
	*ret = (CUDA_MEMSET_NODE_PARAMS){ .dst = (CUdeviceptr)p->dst,
					  .pitch = p->pitch,
					  .value = p->value,
					  .elementSize = p->elementSize,
					  .width = p->width,
					  .height = p->height };
	return cudaSuccess;
}

static cudaError_t memset_given(const CUDA_MEMSET_NODE_PARAMS *p, struct cudaMemsetParams *ret)
{
	*ret = (struct cudaMemsetParams){ .dst = (void *)p->dst,
					  .pitch = p->pitch,
					  .value = p->value,
					  .elementSize = p->elementSize,
					  .width = p->width,
					  .height = p->height };
	return cudaSuccess;
}

static cudaError_t host_params(const struct cudaHostNodeParams *p, CUDA_HOST_NODE_PARAMS *ret)
{
	*ret = (CUDA_HOST_NODE_PARAMS){ .fn = p->fn, .userData = p->userData };
	return cudaSuccess;
}

static cudaError_t host_given(const CUDA_HOST_NODE_PARAMS *p, struct cudaHostNodeParams *ret)
{
	*ret = (struct cudaHostNodeParams){ .fn = p->fn, .userData = p->userData };
	return cudaSuccess;
}

static cudaError_t enter(CUcontext *ret)
{
	return in_context() ?: told(driver.cuCtxGetCurrent(ret));
}

/*
 * The four calls of a kind of nodes. The last argument is context for kinds whose nodes are
 * added, and set in an executable graph, with one.
 */
#define NODE_CALLS(kind, given_type, params_type, convert, convert_back, ...)                       \
	RUNTIME_CALL(cudaGraphAdd##kind##Node, CUgraphNode *node, CUgraph graph, nodes after,       \
		     size_t n_after, const given_type *given)                                       \
	{                                                                                           \
		params_type params;                                                                 \
		CUcontext context;                                                                  \
		cudaError_t error;                                                                  \
                                                                                                    \
		if (!given)                                                                         \
			return failed(cudaErrorInvalidValue);                                       \
		error = enter(&context) ?: convert(given, &params);                                 \
		return error                                                                        \
			       ?: told(driver.cuGraphAdd##kind##Node(node, graph, after, n_after,   \
								     &params, ##__VA_ARGS__));      \
	}                                                                                           \
	RUNTIME_CALL(cudaGraph##kind##NodeGetParams, CUgraphNode node, given_type *ret)             \
	{                                                                                           \
		params_type params;                                                                 \
                                                                                                    \
		if (!ret)                                                                           \
			return failed(cudaErrorInvalidValue);                                       \
		return in_context() ?: told(driver.cuGraph##kind##NodeGetParams(node, &params))   \
				    ?: convert_back(&params, ret); \
	}                                                                                           \
	RUNTIME_CALL(cudaGraph##kind##NodeSetParams, CUgraphNode node, const given_type *given)     \
	{                                                                                           \
		params_type params;                                                                 \
                                                                                                    \
		if (!given)                                                                         \
			return failed(cudaErrorInvalidValue);                                       \
		return in_context() ?: convert(given, &params)                                    \
				    ?: told(driver.cuGraph##kind##NodeSetParams(node, &params)); \
	}                                                                                           \
	RUNTIME_CALL(cudaGraphExec##kind##NodeSetParams, CUgraphExec exec, CUgraphNode node,        \
		     const given_type *given)                                                       \
	{                                                                                           \
		params_type params;                                                                 \
		CUcontext context;                                                                  \
		cudaError_t error;                                                                  \
                                                                                                    \
		if (!given)                                                                         \
			return failed(cudaErrorInvalidValue);                                       \
		error = enter(&context) ?: convert(given, &params);                                 \
		return error                                                                        \
			       ?: told(driver.cuGraphExec##kind##NodeSetParams(                     \
					  exec, node, &params, ##__VA_ARGS__));                     \
	}

NODE_CALLS(Kernel, struct cudaKernelNodeParams, CUDA_KERNEL_NODE_PARAMS, kernel_params,
	   kernel_given)
NODE_CALLS(Memcpy, struct cudaMemcpy3DParms, CUDA_MEMCPY3D, copy_of_parms, copy_given, context)
NODE_CALLS(Memset, struct cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS, memset_params, memset_given,
	   context)
NODE_CALLS(Host, struct cudaHostNodeParams, CUDA_HOST_NODE_PARAMS, host_params, host_given)

/* The shorter forms of copies are the long one with a row of bytes. */
static struct cudaMemcpy3DParms row_of(const void *dst, const void *src, size_t size_bytes,
				       enum cudaMemcpyKind kind)
{
	return (struct cudaMemcpy3DParms){ .dstPtr = { .ptr = (void *)dst, .pitch = size_bytes },
					   .srcPtr = { .ptr = (void *)src, .pitch = size_bytes },
					   .extent = { size_bytes, 1, 1 },
					   .kind = kind };
}

static cudaError_t row_to_symbol(const void *symbol, const void *src, size_t size_bytes,
				 size_t offset, enum cudaMemcpyKind kind,
				 struct cudaMemcpy3DParms *ret)
{
	CUdeviceptr dst;
	cudaError_t error = variable_part(symbol, size_bytes, offset, &dst);

	if (!error)
		*ret = row_of((void *)dst, src, size_bytes, kind);
	return error;
}

static cudaError_t row_from_symbol(void *dst, const void *symbol, size_t size_bytes, size_t offset,
				   enum cudaMemcpyKind kind, struct cudaMemcpy3DParms *ret)
{
	CUdeviceptr src;
	cudaError_t error = variable_part(symbol, size_bytes, offset, &src);

	if (!error)
		*ret = row_of(dst, (void *)src, size_bytes, kind);
	return error;
}

RUNTIME_CALL(cudaGraphAddMemcpyNode1D, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, void *dst, const void *src, size_t size_bytes,
	     enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms = row_of(dst, src, size_bytes, kind);

	return impl_cudaGraphAddMemcpyNode(node, graph, after, n_after, &parms);
}

RUNTIME_CALL(cudaGraphMemcpyNodeSetParams1D, CUgraphNode node, void *dst, const void *src,
	     size_t size_bytes, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms = row_of(dst, src, size_bytes, kind);

	return impl_cudaGraphMemcpyNodeSetParams(node, &parms);
}

RUNTIME_CALL(cudaGraphExecMemcpyNodeSetParams1D, CUgraphExec exec, CUgraphNode node, void *dst,
	     const void *src, size_t size_bytes, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms = row_of(dst, src, size_bytes, kind);

	return impl_cudaGraphExecMemcpyNodeSetParams(exec, node, &parms);
}

RUNTIME_CALL(cudaGraphAddMemcpyNodeToSymbol, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, const void *symbol, const void *src, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_to_symbol(symbol, src, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphAddMemcpyNode(node, graph, after, n_after, &parms);
}

RUNTIME_CALL(cudaGraphMemcpyNodeSetParamsToSymbol, CUgraphNode node, const void *symbol,
	     const void *src, size_t size_bytes, size_t offset, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_to_symbol(symbol, src, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphMemcpyNodeSetParams(node, &parms);
}

RUNTIME_CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol, CUgraphExec exec, CUgraphNode node,
	     const void *symbol, const void *src, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_to_symbol(symbol, src, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphExecMemcpyNodeSetParams(exec, node, &parms);
}

RUNTIME_CALL(cudaGraphAddMemcpyNodeFromSymbol, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, void *dst, const void *symbol, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_from_symbol(dst, symbol, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphAddMemcpyNode(node, graph, after, n_after, &parms);
}

RUNTIME_CALL(cudaGraphMemcpyNodeSetParamsFromSymbol, CUgraphNode node, void *dst,
	     const void *symbol, size_t size_bytes, size_t offset, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_from_symbol(dst, symbol, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphMemcpyNodeSetParams(node, &parms);
}

RUNTIME_CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol, CUgraphExec exec, CUgraphNode node,
	     void *dst, const void *symbol, size_t size_bytes, size_t offset,
	     enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms parms;

	return row_from_symbol(dst, symbol, size_bytes, offset, kind, &parms)
		       ?: impl_cudaGraphExecMemcpyNodeSetParams(exec, node, &parms);
}

/* A node of whatever kind: only kernels, copies and memsets differ from the driver's. */
static cudaError_t node_params(const struct cudaGraphNodeParams *given, CUgraphNodeParams *ret)
{
	CUDA_MEMSET_NODE_PARAMS set;
	CUcontext context;
	cudaError_t error;

	if (!given)
		return failed(cudaErrorInvalidValue);
	error = enter(&context);
	if (error)
		return error;

	_Static_assert(sizeof(*given) == sizeof(*ret), "as the driver's");
	memcpy(ret, given, sizeof(*ret));
	switch (given->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return kernel_params(&given->kernel, &ret->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		ret->memcpy = (CUDA_MEMCPY_NODE_PARAMS){ .copyCtx = context };
		return copy_of_parms(&given->memcpy.copyParams, &ret->memcpy.copyParams);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memset_params(&given->memset, &set);
		memcpy(&ret->memset, &set, sizeof(set));
		ret->memset.ctx = context;
		return cudaSuccess;
	default:
		return cudaSuccess;
	}
}

RUNTIME_CALL(cudaGraphAddNode_v2, CUgraphNode *node, CUgraph graph, nodes after,
	     const CUgraphEdgeData *edges, size_t n_after, struct cudaGraphNodeParams *given)
{
	CUgraphNodeParams params;
	cudaError_t error = node_params(given, &params);

	if (!error && edges)
		error = told(driver.cuGraphAddNode_v2(node, graph, after, edges, n_after, &params));
	else if (!error)
		error = told(driver.cuGraphAddNode(node, graph, after, n_after, &params));
	if (!error && given->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		given->alloc.dptr = params.alloc.dptr;
	return error;
}

RUNTIME_CALL(cudaGraphAddNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after,
	     struct cudaGraphNodeParams *given)
{
	return impl_cudaGraphAddNode_v2(node, graph, after, NULL, n_after, given);
}

RUNTIME_CALL(cudaGraphNodeSetParams, CUgraphNode node, struct cudaGraphNodeParams *given)
{
	CUgraphNodeParams params;

	return node_params(given, &params) ?: told(driver.cuGraphNodeSetParams(node, &params));
}

RUNTIME_CALL(cudaGraphExecNodeSetParams, CUgraphExec exec, CUgraphNode node,
	     struct cudaGraphNodeParams *given)
{
	CUgraphNodeParams params;

	return node_params(given, &params)
		       ?: told(driver.cuGraphExecNodeSetParams(exec, node, &params));
}

PASSED_ON(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
	  (CUgraphNode * node, CUgraph graph, nodes after, size_t n_after),
	  (node, graph, after, n_after))

PASSED_ON(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode,
	  (CUgraphNode * node, CUgraph graph, nodes after, size_t n_after, CUgraph child),
	  (node, graph, after, n_after, child))
PASSED_ON(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph,
	  (CUgraphNode node, CUgraph *graph), (node, graph))
PASSED_ON(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,
	  (CUgraphExec exec, CUgraphNode node, CUgraph child), (exec, node, child))

#define EVENT_NODE_CALLS(kind)                                                                     \
	PASSED_ON(cudaGraphAddEvent##kind##Node, cuGraphAddEvent##kind##Node,                      \
		  (CUgraphNode * node, CUgraph graph, nodes after, size_t n_after, CUevent event), \
		  (node, graph, after, n_after, event))                                            \
	PASSED_ON(cudaGraphEvent##kind##NodeGetEvent, cuGraphEvent##kind##NodeGetEvent,            \
		  (CUgraphNode node, CUevent * event), (node, event))                              \
	PASSED_ON(cudaGraphEvent##kind##NodeSetEvent, cuGraphEvent##kind##NodeSetEvent,            \
		  (CUgraphNode node, CUevent event), (node, event))                                \
	PASSED_ON(cudaGraphExecEvent##kind##NodeSetEvent, cuGraphExecEvent##kind##NodeSetEvent,    \
		  (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))

EVENT_NODE_CALLS(Record)
EVENT_NODE_CALLS(Wait)

PASSED_ON(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode,
	  (CUgraphNode * node, CUgraph graph, nodes after, size_t n_after,
	   CUDA_MEM_ALLOC_NODE_PARAMS *params),
	  (node, graph, after, n_after, params))
PASSED_ON(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams,
	  (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params), (node, params))
PASSED_ON(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode,
	  (CUgraphNode * node, CUgraph graph, nodes after, size_t n_after, void *ptr),
	  (node, graph, after, n_after, (CUdeviceptr)ptr))
PASSED_ON(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams,
	  (CUgraphNode node, void *ret_ptr), (node, ret_ptr))

PASSED_ON(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes,
	  (CUgraphNode to, CUgraphNode from), (to, from))
PASSED_ON(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute,
	  (CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue *value),
	  (node, id, value))
PASSED_ON(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute,
	  (CUgraphNode node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value),
	  (node, id, value))

PASSED_ON(cudaGraphNodeGetType, cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type),
	  (node, type))
PASSED_ON(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled,
	  (CUgraphExec exec, CUgraphNode node, unsigned *enabled), (exec, node, enabled))
PASSED_ON(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled,
	  (CUgraphExec exec, CUgraphNode node, unsigned enabled), (exec, node, enabled))
PASSED_ON(cudaGraphNodeFindInClone, cuGraphNodeFindInClone,
	  (CUgraphNode * node, CUgraphNode original, CUgraph clone), (node, original, clone))
PASSED_ON(cudaGraphDestroyNode, cuGraphDestroyNode, (CUgraphNode node), (node))
