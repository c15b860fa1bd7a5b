// SPDX-License-Identifier: Apache-2.0
#include "forward/host/graph.h"

#include "base/base.h"
#include "forward/host/callback.h"
#include "forward/host/copy.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/launch.h"
#include "forward/host/memory.h"

#define MAX_DEPENDENCIES 4096

/**
 * struct node - what every node that is added has
 */
struct node {
	uint64_t graph;
	uint64_t n;
	uint64_t dependencies[MAX_DEPENDENCIES];
};

static bool node_take(struct reader *reader, struct node *ret)
{
	uint64_t i;

	ret->graph = reader_handle(reader, HANDLE_GRAPH);
	ret->n = reader_word(reader);
	if (ret->n > MAX_DEPENDENCIES)
		return false;
	for (i = 0; i < ret->n; i++)
		ret->dependencies[i] = reader_handle(reader, HANDLE_GRAPH_NODE);
	return !reader->failed && ret->graph;
}

static CUresult node_answer(struct command *command, CUresult result, CUgraphNode node)
{
	uint64_t *name = result == CUDA_SUCCESS ? reply_bytes(command, sizeof(*name)) : NULL;

	if (name)
		*name = handle_put(HANDLE_GRAPH_NODE, POINTER(node));
	return result;
}

CUresult graph_kernel_take(struct reader *reader, CUDA_KERNEL_NODE_PARAMS *ret, void **extra,
			   size_t *size)
{
	struct launch_taken launch;
	CUresult r = launch_take(reader, &launch);

	if (r != CUDA_SUCCESS)
		return r;
	*size = launch.head->parameters_size;
	extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	extra[1] = (void *)launch.parameters;
	extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	extra[3] = size;
	extra[4] = CU_LAUNCH_PARAM_END;
	*ret = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = launch.head->grid[0],
		.gridDimY = launch.head->grid[1],
		.gridDimZ = launch.head->grid[2],
		.blockDimX = launch.head->block[0],
		.blockDimY = launch.head->block[1],
		.blockDimZ = launch.head->block[2],
		.sharedMemBytes = launch.head->shared_size,
		.extra = *size ? extra : NULL,
	};
	if (launch.head->function >> 56 == HANDLE_KERNEL)
		ret->kern = (CUkernel)launch.function;
	else
		ret->func = (CUfunction)launch.function;
	return CUDA_SUCCESS;
}

CUresult graph_add_kernel(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_KERNEL_NODE_PARAMS params;
	CUgraphNode added = NULL;
	struct node node;
	void *extra[5];
	size_t size;
	CUresult r;

	if (!node_take(&reader, &node))
		return CUDA_ERROR_INVALID_VALUE;
	r = graph_kernel_take(&reader, &params, extra, &size);
	if (r != CUDA_SUCCESS)
		return r;
	r = DRIVER(cuGraphAddKernelNode_v2, POINTER(&added), node.graph, POINTER(node.dependencies),
		   node.n, POINTER(&params));
	return node_answer(command, r, added);
}

bool graph_copy_take(struct reader *reader, CUDA_MEMCPY3D *ret, uint64_t *ret_context)
{
	const struct wire_copy *from = reader_bytes(reader, sizeof(*from));

	return from && copy_take(from, ret) &&
	       handle_get(HANDLE_CONTEXT, from->where, ret_context) == 0;
}

CUresult graph_add_copy(struct command *command)
{
	struct reader reader = command_reader(command);
	CUgraphNode added = NULL;
	CUDA_MEMCPY3D copy;
	struct node node;
	uint64_t context;
	CUresult r;

	if (!node_take(&reader, &node) || !graph_copy_take(&reader, &copy, &context))
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuGraphAddMemcpyNode, POINTER(&added), node.graph, POINTER(node.dependencies),
		   node.n, POINTER(&copy), context);
	return node_answer(command, r, added);
}

bool graph_fill_ok(const CUDA_MEMSET_NODE_PARAMS *params)
{
	unsigned __int128 reach;

	if (params->elementSize > 4 || params->width == 0 || params->height == 0)
		return params->elementSize <= 4;
	reach = (unsigned __int128)params->pitch * (params->height - 1) +
		(unsigned __int128)params->width * params->elementSize;
	return reach <= UINT64_MAX && range_ok(params->dst, (uint64_t)reach);
}

CUresult graph_add_fill(struct command *command)
{
	struct reader reader = command_reader(command);
	const CUDA_MEMSET_NODE_PARAMS *params;
	CUgraphNode added = NULL;
	struct node node;
	uint64_t context;
	CUresult r;

	if (!node_take(&reader, &node))
		return CUDA_ERROR_INVALID_VALUE;
	context = reader_handle(&reader, HANDLE_CONTEXT);
	params = reader_bytes(&reader, sizeof(*params));
	if (!params || !graph_fill_ok(params))
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuGraphAddMemsetNode, POINTER(&added), node.graph, POINTER(node.dependencies),
		   node.n, POINTER(params), context);
	return node_answer(command, r, added);
}

CUresult graph_add_alloc(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .accessDescs = NULL };
	const CUmemPoolProps *props;
	CUgraphNode added = NULL;
	uint64_t *address;
	struct node node;
	CUresult r;

	if (!node_take(&reader, &node))
		return CUDA_ERROR_INVALID_VALUE;
	props = reader_bytes(&reader, sizeof(*props));
	params.bytesize = reader_word(&reader);
	if (reader.failed)
		return CUDA_ERROR_INVALID_VALUE;
	params.poolProps = *props;
	params.poolProps.win32SecurityAttributes = NULL;
	r = DRIVER(cuGraphAddMemAllocNode, POINTER(&added), node.graph, POINTER(node.dependencies),
		   node.n, POINTER(&params));
	if (r != CUDA_SUCCESS)
		return r;
	range_add(params.dptr, params.bytesize);
	r = node_answer(command, r, added);
	address = reply_bytes(command, sizeof(*address));
	if (address)
		*address = params.dptr;
	return r;
}

bool graph_host_take(struct reader *reader, CUDA_HOST_NODE_PARAMS *ret)
{
	uint64_t function = reader_word(reader);

	*ret = (CUDA_HOST_NODE_PARAMS){
		.fn = callback_run,
		.userData = callback_new(function, reader_word(reader)),
	};
	if (!reader->failed && ret->userData)
		return true;
	free(ret->userData);
	return false;
}

CUresult graph_add_host(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_HOST_NODE_PARAMS params;
	CUgraphNode added = NULL;
	struct node node;
	CUresult r;

	if (!node_take(&reader, &node) || !graph_host_take(&reader, &params))
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuGraphAddHostNode, POINTER(&added), node.graph, POINTER(node.dependencies),
		   node.n, POINTER(&params));
	/* The node keeps the function for as long as there are copies of the graph. */
	if (r != CUDA_SUCCESS)
		free(params.userData);
	return node_answer(command, r, added);
}

CUresult graph_update(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t exec = reader_handle(&reader, HANDLE_GRAPH_EXEC);
	uint64_t graph = reader_handle(&reader, HANDLE_GRAPH);
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR }, *answer;
	CUresult r;

	if (reader.failed)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuGraphExecUpdate_v2, exec, graph, POINTER(&info));
	answer = reply_bytes(command, sizeof(*answer));
	if (answer) {
		answer->result = info.result;
		answer->errorNode =
			(CUgraphNode)handle_put(HANDLE_GRAPH_NODE, POINTER(info.errorNode));
		answer->errorFromNode =
			(CUgraphNode)handle_put(HANDLE_GRAPH_NODE, POINTER(info.errorFromNode));
	}
	return r;
}
