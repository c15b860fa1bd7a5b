/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about one kind of node that the calls about any kind are made of. */
#ifndef FORWARD_GUEST_GRAPH_H
#define FORWARD_GUEST_GRAPH_H

#include "src/cuda/cuda_abi.h"

CUresult cuGraphAddKernelNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
				 size_t n, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphAddMemcpyNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
			      size_t n, const CUDA_MEMCPY3D *params, CUcontext context);
CUresult cuGraphAddMemsetNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
			      size_t n, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context);
CUresult cuGraphAddMemAllocNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
				size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *params);
CUresult cuGraphAddHostNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
			    size_t n, const CUDA_HOST_NODE_PARAMS *params);
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params);
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *params);

#endif
