// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes whose parameters are more than the table can say, and forms of calls that are the newer ones with
 * less.
 *
 * A node runs long after the call that makes it. Kernel parameters are packed now, as the driver would copy
 * them now; host memory that a node copies is shared with the host for good, so that it is read and
 * written when the node runs.
 */
#include "forward/guest/call.h"

#include "base/base.h"
#include "forward/guest/callback.h"
#include "forward/guest/copy3d.h"
#include "forward/guest/graph-kernel.h"
#include "forward/guest/graph.h"
#include "forward/guest/memory.h"

#include <string.h>

/* Every node begins with its graph and what it depends on. */
#define NODE_SIZE(n)	 ((2 + (n)) * sizeof(uint64_t))
#define MAX_DEPENDENCIES 4096

static void write_node(struct writer *w, CUgraph graph, const CUgraphNode *dependencies, size_t n)
{
	write_word(w, POINTER(graph));
	write_word(w, n);
	write_bytes(w, dependencies, n * sizeof(dependencies[0]));
}

static CUresult node_check(const CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
			   size_t n, const void *params)
{
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	return ret && graph && params && n <= MAX_DEPENDENCIES && (dependencies || n == 0)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* Sends a node; its name is the first word of the answer. */
static CUresult node_ask(struct writer *w, CUgraphNode *ret)
{
	const uint8_t *data;
	size_t size;
	CUresult r = lane_ask(w->lane, &data, &size);

	if (r == CUDA_SUCCESS && size >= sizeof(*ret))
		memcpy(ret, data, sizeof(*ret));
	return lane_error(w->lane, r);
}

CALL(cuGraphAddKernelNode_v2, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
     size_t n, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct kernel kernel;
	struct writer w;
	CUresult r;

	r = node_check(ret, graph, dependencies, n, params);
	if (r == CUDA_SUCCESS)
		r = kernel_of(params, &kernel);
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuGraphAddKernelNode_v2,
				 NODE_SIZE(n) + kernel_size(&kernel));
	if (r != CUDA_SUCCESS)
		return r;
	write_node(&w, graph, dependencies, n);
	r = kernel_write(&w, &kernel);
	return r == CUDA_SUCCESS ? node_ask(&w, ret) : r;
}

CALL(cuGraphAddKernelNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
     size_t n, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS more;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	more = kernel_params(params);
	return cuGraphAddKernelNode_v2(ret, graph, dependencies, n, &more);
}

/* Copies and fills */

CALL(cuGraphAddMemcpyNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
     size_t n, const CUDA_MEMCPY3D *params, CUcontext context)
{
	struct wire_copy copy;
	struct writer w;
	CUresult r;

	r = node_check(ret, graph, dependencies, n, params);
	if (r == CUDA_SUCCESS)
		r = copy3d_adopt(params, &copy);
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuGraphAddMemcpyNode, NODE_SIZE(n) + sizeof(copy));
	if (r != CUDA_SUCCESS)
		return r;
	copy.where = POINTER(context);
	write_node(&w, graph, dependencies, n);
	write_bytes(&w, &copy, sizeof(copy));
	return node_ask(&w, ret);
}

CALL(cuGraphAddMemsetNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
     size_t n, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	struct writer w;
	CUresult r;

	r = node_check(ret, graph, dependencies, n, params);
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuGraphAddMemsetNode,
				 NODE_SIZE(n) + sizeof(uint64_t) + sizeof(*params));
	if (r != CUDA_SUCCESS)
		return r;
	write_node(&w, graph, dependencies, n);
	write_word(&w, POINTER(context));
	write_bytes(&w, params, sizeof(*params));
	return node_ask(&w, ret);
}

/* Memory that the graph allocates: one device may have it, and its own access. */
CALL(cuGraphAddMemAllocNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies,
     size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	const uint8_t *data;
	struct writer w;
	size_t size;
	CUresult r;

	r = node_check(ret, graph, dependencies, n, params);
	if (r == CUDA_SUCCESS && params->accessDescCount)
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuGraphAddMemAllocNode,
				 NODE_SIZE(n) + sizeof(params->poolProps) + sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_node(&w, graph, dependencies, n);
	write_bytes(&w, &params->poolProps, sizeof(params->poolProps));
	write_word(&w, params->bytesize);
	r = lane_ask(w.lane, &data, &size);
	if (r == CUDA_SUCCESS && size >= sizeof(*ret) + sizeof(params->dptr)) {
		memcpy(ret, data, sizeof(*ret));
		memcpy(&params->dptr, data + sizeof(*ret), sizeof(params->dptr));
	}
	return lane_error(w.lane, r);
}

CALL(cuGraphAddHostNode, CUgraphNode *ret, CUgraph graph, const CUgraphNode *dependencies, size_t n,
     const CUDA_HOST_NODE_PARAMS *params)
{
	struct writer w;
	CUresult r;

	r = node_check(ret, graph, dependencies, n, params);
	if (r == CUDA_SUCCESS && !params->fn)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = callback_prepare();
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuGraphAddHostNode,
				 NODE_SIZE(n) + 2 * sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_node(&w, graph, dependencies, n);
	write_word(&w, POINTER(params->fn));
	write_word(&w, POINTER(params->userData));
	return node_ask(&w, ret);
}

/* Older forms */

CALL(cuGraphInstantiate_v2, CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log,
     size_t log_size)
{
	if (error_node)
		*error_node = NULL;
	if (log && log_size)
		*log = '\0';
	return CALL_WORDS(CALL_ID_cuGraphInstantiateWithFlags, POINTER(ret), POINTER(graph), 0);
}

CALL(cuGraphInstantiate, CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log,
     size_t log_size)
{
	return cuGraphInstantiate_v2(ret, graph, error_node, log, log_size);
}

CALL_TWINS(cuGraphInstantiateWithParams, _ptsz,
	   (CUgraphExec * ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	   (ret, graph, params))
{
	static const enum call_id uploads[] = { CALL_ID_cuGraphUpload, CALL_ID_cuGraphUpload_ptsz };
	CUresult r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	r = CALL_WORDS(CALL_ID_cuGraphInstantiateWithFlags, POINTER(ret), POINTER(graph),
		       params->flags & ~(uint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
	params->result_out =
		r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
	if (r == CUDA_SUCCESS && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		r = CALL_WORDS(uploads[id != CALL_ID_cuGraphInstantiateWithParams], POINTER(*ret),
			       POINTER(params->hUploadStream));
	return r;
}

/* What was wrong comes with the error. */
CALL(cuGraphExecUpdate_v2, CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *ret)
{
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r;

	r = writer_begin(&w, CALL_ID_cuGraphExecUpdate_v2, 2 * sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(exec));
	write_word(&w, POINTER(graph));
	r = lane_ask(w.lane, &data, &size);
	if (data && size >= sizeof(info))
		memcpy(&info, data, sizeof(info));
	if (ret)
		*ret = info;
	return lane_error(w.lane, r);
}

CALL(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
     CUgraphExecUpdateResult *ret)
{
	CUgraphExecUpdateResultInfo info;
	CUresult r = cuGraphExecUpdate_v2(exec, graph, &info);

	if (error_node)
		*error_node = info.errorNode;
	if (ret)
		*ret = info.result;
	return r;
}
