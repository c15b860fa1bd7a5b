// SPDX-License-Identifier: Apache-2.0
/*
 * What a node's parameters name is the driver's on this side and the guest's on the other: functions, arrays, host
 * functions, host memory. Values of a kernel travel packed, as with a launch.
 */
#include "forward/host/graph-node.h"

#include "base/base.h"
#include "forward/host/callback.h"
#include "forward/host/driver.h"
#include "forward/host/graph.h"
#include "forward/host/handle.h"
#include "forward/host/launch.h"
#include "forward/host/memory.h"

#include <string.h>

/* More than any capture's streams have joined. */
#define MAX_AFTER 4096

/**
 * struct node - whose parameters are set
 * @exec:	0: of the graph itself
 */
struct node {
	uint64_t exec;
	uint64_t object;
};

static bool node_take(struct reader *reader, struct node *ret)
{
	ret->exec = reader_handle(reader, HANDLE_GRAPH_EXEC);
	ret->object = reader_handle(reader, HANDLE_GRAPH_NODE);
	return !reader->failed;
}

/* The parameters, and of executable graphs' copies and fills a context. */
static CUresult node_set(unsigned call, const struct node *node, const void *params,
			 uint64_t context)
{
	const uint64_t of_graph[CALL_N_ARGUMENTS_MAX] = { node->object, POINTER(params) };
	const uint64_t of_exec[CALL_N_ARGUMENTS_MAX] = { node->exec, node->object, POINTER(params),
							 context };

	return driver_call(call, calls[call].arguments[0] == ARG_GRAPH_EXEC ? of_exec : of_graph);
}

CUresult graph_set_kernel(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_KERNEL_NODE_PARAMS params;
	struct node node;
	void *extra[5];
	size_t size;
	CUresult r;

	if (!node_take(&reader, &node))
		return CUDA_ERROR_INVALID_VALUE;
	r = graph_kernel_take(&reader, &params, extra, &size);
	return r == CUDA_SUCCESS ? node_set(command->call, &node, &params, 0) : r;
}

CUresult graph_set_copy(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_MEMCPY3D copy;
	uint64_t context;
	struct node node;

	if (!node_take(&reader, &node) || !graph_copy_take(&reader, &copy, &context))
		return CUDA_ERROR_INVALID_VALUE;
	return node_set(command->call, &node, &copy, context);
}

CUresult graph_set_host(struct command *command)
{
	struct reader reader = command_reader(command);
	CUDA_HOST_NODE_PARAMS params;
	struct node node;
	CUresult r;

	if (!node_take(&reader, &node) || !graph_host_take(&reader, &params))
		return CUDA_ERROR_INVALID_VALUE;
	r = node_set(command->call, &node, &params, 0);
	/* The node keeps the function, and copies of the graph may have the one of before. */
	if (r != CUDA_SUCCESS)
		free(params.userData);
	return r;
}

/* A node has its values behind pointers, or packed as it was given them. */
static CUresult values_pack(uint64_t name, const CUDA_KERNEL_NODE_PARAMS *params, void *to,
			    size_t size)
{
	void *const *extra;

	if (params->kernelParams)
		return launch_pack(name, params->kernelParams, to, size);
	for (extra = params->extra; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			memcpy(to, extra[1], size);
	return CUDA_SUCCESS;
}

CUresult graph_get_kernel(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t node = reader_handle(&reader, HANDLE_GRAPH_NODE), name;
	struct wire_kernel_node *told = reply_bytes(command, sizeof(*told));
	CUDA_KERNEL_NODE_PARAMS params = { 0 };
	uint32_t size = 0;
	void *values;
	CUresult r;

	if (reader.failed || !node || !told)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuGraphKernelNodeGetParams_v2, node, POINTER(&params));
	if (r != CUDA_SUCCESS)
		return r;
	told->launch = (struct wire_launch){
		.function = handle_put(HANDLE_FUNCTION, POINTER(params.func)),
		.grid = { params.gridDimX, params.gridDimY, params.gridDimZ },
		.block = { params.blockDimX, params.blockDimY, params.blockDimZ },
		.shared_size = params.sharedMemBytes,
	};
	told->kernel = handle_put(HANDLE_KERNEL, POINTER(params.kern));
	told->context = handle_put(HANDLE_CONTEXT, POINTER(params.ctx));
	name = told->launch.function ? told->launch.function : told->kernel;
	r = launch_size(name, &size);
	if (r != CUDA_SUCCESS)
		return r;
	values = reply_bytes(command, size);
	if (!values)
		return CUDA_ERROR_NOT_SUPPORTED;
	told->launch.parameters_size = size;
	return values_pack(name, &params, values, size);
}

/* Host memory has one address, in whichever of two fields the program looks for it. */
static CUdeviceptr host_name(CUmemorytype type, const void *host, CUdeviceptr device)
{
	return type == CU_MEMORYTYPE_HOST ? grant_address(host) : device;
}

static CUarray array_name(CUmemorytype type, CUarray array)
{
	return type == CU_MEMORYTYPE_ARRAY ? (CUarray)handle_put(HANDLE_ARRAY, POINTER(array))
					   : NULL;
}

CUresult graph_get_copy(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	CUDA_MEMCPY3D *copy = (CUDA_MEMCPY3D *)words[1];
	CUresult r = copy ? driver_call(id, words) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	copy->srcDevice = host_name(copy->srcMemoryType, copy->srcHost, copy->srcDevice);
	copy->dstDevice = host_name(copy->dstMemoryType, copy->dstHost, copy->dstDevice);
	copy->srcHost = (const void *)copy->srcDevice;
	copy->dstHost = (void *)copy->dstDevice;
	copy->srcArray = array_name(copy->srcMemoryType, copy->srcArray);
	copy->dstArray = array_name(copy->dstMemoryType, copy->dstArray);
	copy->reserved0 = copy->reserved1 = NULL;
	return CUDA_SUCCESS;
}

CUresult graph_get_host(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	CUDA_HOST_NODE_PARAMS *params = (CUDA_HOST_NODE_PARAMS *)words[1];
	CUresult r = params ? driver_call(id, words) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	if (params->fn != callback_run)
		return CUDA_ERROR_NOT_SUPPORTED;
	callback_tell(params->userData, params);
	return CUDA_SUCCESS;
}

/* Nodes are made without a list of who has access, so there is none to tell. */
CUresult graph_get_alloc(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	CUDA_MEM_ALLOC_NODE_PARAMS *params = (CUDA_MEM_ALLOC_NODE_PARAMS *)words[1];
	CUresult r = params ? driver_call(id, words) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	params->poolProps.win32SecurityAttributes = NULL;
	params->accessDescs = NULL;
	params->accessDescCount = 0;
	return CUDA_SUCCESS;
}

CUresult graph_set_fill(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const uint64_t at = words[calls[id].arguments[0] == ARG_GRAPH_EXEC ? 2 : 1];
	const CUDA_MEMSET_NODE_PARAMS *params = (const CUDA_MEMSET_NODE_PARAMS *)at;

	if (!params || !graph_fill_ok(params))
		return CUDA_ERROR_INVALID_VALUE;
	return driver_call(id, words);
}

/* Events among the attributes would be addresses. Of their numbers the driver looks at the lower half. */
CUresult graph_kernel_attribute(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	uint32_t attribute = (uint32_t)words[1];

	if (!words[2])
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
	    attribute == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
		return CUDA_ERROR_NOT_SUPPORTED;
	return driver_call(id, words);
}

CUresult graph_capture_info(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t stream = reader_handle(&reader, HANDLE_STREAM), *names;
	struct wire_capture *told = reply_bytes(command, sizeof(*told));
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	const CUgraphNode *after = NULL;
	CUgraph graph = NULL;
	cuuint64_t id = 0;
	size_t i, n = 0;
	CUresult r;

	if (reader.failed || !told)
		return CUDA_ERROR_INVALID_HANDLE;
	r = driver_call(command->call, (const uint64_t[CALL_N_ARGUMENTS_MAX]){
					       stream, POINTER(&status), POINTER(&id),
					       POINTER(&graph), POINTER(&after), POINTER(&n) });
	if (r != CUDA_SUCCESS)
		return r;
	told->status = status;
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	names = n <= MAX_AFTER ? reply_bytes(command, n * sizeof(*names)) : NULL;
	if (!names)
		return CUDA_ERROR_NOT_SUPPORTED;
	told->id = id;
	told->graph = handle_put(HANDLE_GRAPH, POINTER(graph));
	told->n = n;
	for (i = 0; i < n; i++)
		names[i] = handle_put(HANDLE_GRAPH_NODE, POINTER(after[i]));
	return CUDA_SUCCESS;
}
