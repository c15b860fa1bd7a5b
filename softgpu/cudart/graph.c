// SPDX-License-Identifier: Apache-2.0
/* Graphs: the runtime's forms of node parameters turned into the driver's. */
#include "softgpu/cudart/runtime.h"

typedef const CUgraphNode *nodes;

RUNTIME_CALL(cudaGraphCreate, CUgraph *graph, unsigned flags)
{
	return in_context() ?: told(driver.cuGraphCreate(graph, flags));
}

RUNTIME_CALL(cudaGraphDestroy, CUgraph graph)
{
	return in_context() ?: told(driver.cuGraphDestroy(graph));
}

RUNTIME_CALL(cudaGraphClone, CUgraph *clone, CUgraph graph)
{
	return in_context() ?: told(driver.cuGraphClone(clone, graph));
}

static cudaError_t kernel_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *ret)
{
	CUfunction kernel;
	cudaError_t error;

	if (!p)
		return failed(cudaErrorInvalidValue);
	error = symbol_kernel(p->func, &kernel)
			?: told(driver.cuKernelGetFunction(&kernel, (CUkernel)kernel));
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

RUNTIME_CALL(cudaGraphAddKernelNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after,
	     const struct cudaKernelNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS params;

	return in_context() ?: kernel_params(p, &params) ?:
		       told(driver.cuGraphAddKernelNode(node, graph, after, n_after, &params));
}

RUNTIME_CALL(cudaGraphKernelNodeSetParams, CUgraphNode node, const struct cudaKernelNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS params;

	return in_context() ?: kernel_params(p, &params) ?:
		       told(driver.cuGraphKernelNodeSetParams(node, &params));
}

RUNTIME_CALL(cudaGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
	     const struct cudaKernelNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS params;

	return in_context() ?: kernel_params(p, &params) ?:
		       told(driver.cuGraphExecKernelNodeSetParams(exec, node, &params));
}

RUNTIME_CALL(cudaGraphAddMemcpyNode1D, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, void *dst, const void *src, size_t size_bytes,
	     enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = (CUdeviceptr)src,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)dst,
		.WidthInBytes = size_bytes,
		.Height = 1,
		.Depth = 1,
	};
	CUcontext context = NULL;
	cudaError_t error = in_context() ?: told(driver.cuCtxGetCurrent(&context));

	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST;
		copy.srcHost = src;
	}
	if (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost) {
		copy.dstMemoryType = CU_MEMORYTYPE_HOST;
		copy.dstHost = dst;
	}
	return error
		       ?: told(driver.cuGraphAddMemcpyNode(node, graph, after, n_after, &copy,
							   context));
}

RUNTIME_CALL(cudaGraphAddMemsetNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after,
	     const struct cudaMemsetParams *p)
{
	CUDA_MEMSET_NODE_PARAMS params;
	CUcontext context = NULL;
	cudaError_t error = in_context() ?: told(driver.cuCtxGetCurrent(&context));

	if (!p)
		return failed(cudaErrorInvalidValue);
	params = (CUDA_MEMSET_NODE_PARAMS){ .dst = (CUdeviceptr)p->dst,
					    .pitch = p->pitch,
					    .value = p->value,
					    .elementSize = p->elementSize,
					    .width = p->width,
					    .height = p->height };
	return error
		       ?: told(driver.cuGraphAddMemsetNode(node, graph, after, n_after, &params,
							   context));
}

RUNTIME_CALL(cudaGraphAddHostNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after,
	     const struct cudaHostNodeParams *p)
{
	CUDA_HOST_NODE_PARAMS params;

	if (!p)
		return failed(cudaErrorInvalidValue);
	params = (CUDA_HOST_NODE_PARAMS){ .fn = p->fn, .userData = p->userData };
	return in_context()
		       ?: told(driver.cuGraphAddHostNode(node, graph, after, n_after, &params));
}

RUNTIME_CALL(cudaGraphAddEmptyNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after)
{
	return in_context() ?: told(driver.cuGraphAddEmptyNode(node, graph, after, n_after));
}

RUNTIME_CALL(cudaGraphAddChildGraphNode, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, CUgraph child)
{
	return in_context()
		       ?: told(driver.cuGraphAddChildGraphNode(node, graph, after, n_after, child));
}

RUNTIME_CALL(cudaGraphAddEventRecordNode, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, CUevent event)
{
	return in_context()
		       ?: told(driver.cuGraphAddEventRecordNode(node, graph, after, n_after,
								event));
}

RUNTIME_CALL(cudaGraphAddEventWaitNode, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, CUevent event)
{
	return in_context()
		       ?: told(driver.cuGraphAddEventWaitNode(node, graph, after, n_after, event));
}

RUNTIME_CALL(cudaGraphAddMemAllocNode, CUgraphNode *node, CUgraph graph, nodes after,
	     size_t n_after, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	/* cudaMemAllocNodeParams is laid out as the driver's. */
	return in_context()
		       ?: told(driver.cuGraphAddMemAllocNode(node, graph, after, n_after, params));
}

RUNTIME_CALL(cudaGraphAddMemFreeNode, CUgraphNode *node, CUgraph graph, nodes after, size_t n_after,
	     void *ptr)
{
	return in_context()
		       ?: told(driver.cuGraphAddMemFreeNode(node, graph, after, n_after,
							    (CUdeviceptr)ptr));
}

RUNTIME_CALL(cudaGraphAddDependencies, CUgraph graph, nodes from, nodes to, size_t n)
{
	return in_context() ?: told(driver.cuGraphAddDependencies(graph, from, to, n));
}

RUNTIME_CALL(cudaGraphGetNodes, CUgraph graph, CUgraphNode *found, size_t *n)
{
	return in_context() ?: told(driver.cuGraphGetNodes(graph, found, n));
}

RUNTIME_CALL(cudaGraphGetRootNodes, CUgraph graph, CUgraphNode *found, size_t *n)
{
	return in_context() ?: told(driver.cuGraphGetRootNodes(graph, found, n));
}

RUNTIME_CALL(cudaGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return in_context() ?: told(driver.cuGraphGetEdges(graph, from, to, n));
}

RUNTIME_CALL(cudaGraphNodeGetType, CUgraphNode node, CUgraphNodeType *type)
{
	return in_context() ?: told(driver.cuGraphNodeGetType(node, type));
}

RUNTIME_CALL(cudaGraphDestroyNode, CUgraphNode node)
{
	return in_context() ?: told(driver.cuGraphDestroyNode(node));
}

RUNTIME_CALL(cudaGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph,
	     unsigned long long flags)
{
	return in_context() ?: told(driver.cuGraphInstantiateWithFlags(exec, graph, flags));
}

/* 12 and newer pass flags where 11 passed (CUgraphNode *error_node, char *log, size_t). */
RUNTIME_CALL(cudaGraphInstantiate, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return impl_cudaGraphInstantiateWithFlags(exec, graph, flags);
}

RUNTIME_CALL(cudaGraphInstantiate_11, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
	     char *log, size_t log_bytes)
{
	return impl_cudaGraphInstantiateWithFlags(exec, graph, /* flags= */ 0);
}

RUNTIME_CALL(cudaGraphExecDestroy, CUgraphExec exec)
{
	return in_context() ?: told(driver.cuGraphExecDestroy(exec));
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

RUNTIME_CALL(cudaGraphDebugDotPrint, CUgraph graph, const char *path, unsigned flags)
{
	return in_context() ?: told(driver.cuGraphDebugDotPrint(graph, path, flags));
}
