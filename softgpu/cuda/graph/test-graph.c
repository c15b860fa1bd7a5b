// SPDX-License-Identifier: Apache-2.0
/* Graphs: nodes by hand and by capture, launching, updating, memory nodes, what is refused. */
#include <pthread.h>

#include "softgpu/cuda/test-driver.h"

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry add(.param .u64 to, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d;\n"
	"	ld.param.u64 %d, [to]; ld.param.u32 %r1, [value];\n"
	"	ld.global.u32 %r2, [%d]; add.u32 %r2, %r2, %r1; st.global.u32 [%d], %r2;\n"
	"	ret;\n"
	"}\n"
	".visible .entry double(.param .u64 to)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d;\n"
	"	ld.param.u64 %d, [to];\n"
	"	ld.global.u32 %r2, [%d]; add.u32 %r2, %r2, %r2; st.global.u32 [%d], %r2;\n"
	"	ret;\n"
	"}\n";

static CUcontext ctx;
static CUfunction add, twice;
static CUdeviceptr word;
static CUstream stream, other;

static unsigned int word_value(void)
{
	unsigned int value = 0;

	NEED(cuMemcpyDtoH_v2(&value, word, sizeof(value)));
	return value;
}

static unsigned int launched(CUgraphExec exec)
{
	NEED(cuMemsetD32_v2(word, 0, 1));
	NEED(cuGraphLaunch(exec, stream));
	NEED(cuStreamSynchronize(stream));
	return word_value();
}

static CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = function,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params,
	};
}

/* add(value) -> double -> memset of nothing: by hand. */
static CUgraph make_graph(unsigned int value, CUgraphNode *ret_add, CUgraphNode *ret_twice)
{
	void *params[] = { &word, &value };
	CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(add, params);
	CUgraph graph;

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddKernelNode_v2(ret_add, graph, NULL, 0, &kernel));
	kernel.func = twice;
	NEED(cuGraphAddKernelNode_v2(ret_twice, graph, ret_add, 1, &kernel));
	return graph;
}

static void test_nodes(void)
{
	CUgraphNode first, second, nodes[4], from[4], to[4], copy;
	unsigned int value = 9;
	void *params[] = { &word, &value };
	CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(add, params), got;
	CUgraph graph = make_graph(5, &first, &second), clone;
	CUgraphExecUpdateResultInfo info;
	CUgraphNodeType type;
	CUgraphExec exec;
	size_t n;

	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(launched(exec) == 10, "two kernels in order");
	check(launched(exec) == 10, "and once more");

	NEED(cuGraphExecKernelNodeSetParams_v2(exec, first, &kernel));
	check(launched(exec) == 18, "other arguments in the executable graph");
	NEED(cuGraphKernelNodeGetParams_v2(first, &got));
	check(*(unsigned int *)got.kernelParams[1] == 5, "the graph keeps its own");
	NEED(cuGraphNodeSetEnabled(exec, second, 0));
	check(launched(exec) == 9, "a node that is switched off");
	NEED(cuGraphNodeSetEnabled(exec, second, 1));
	NEED(cuGraphExecUpdate_v2(exec, graph, &info));
	check(launched(exec) == 10, "an update from the graph");

	n = 4;
	NEED(cuGraphGetNodes(graph, nodes, &n));
	check(n == 2 && nodes[0] == first && nodes[1] == second, "the nodes");
	n = 4;
	NEED(cuGraphGetEdges_v2(graph, from, to, NULL, &n));
	check(n == 1 && from[0] == first && to[0] == second, "the edges");
	NEED(cuGraphClone(&clone, graph));
	NEED(cuGraphNodeFindInClone(&copy, second, clone));
	NEED(cuGraphNodeGetType(copy, &type));
	check(copy != second && type == CU_GRAPH_NODE_TYPE_KERNEL, "a node's clone");

	NEED(cuGraphAddEmptyNode(&nodes[0], clone, NULL, 0));
	expect(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, clone, &info),
	       "an update from a graph of another shape");
	check(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "says so");
	expect(CUDA_SUCCESS, cuGraphAddDependencies_v2(clone, &copy, &nodes[0], NULL, 1),
	       "an edge");
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuGraphAddDependencies_v2(clone, &copy, &nodes[0], NULL, 1), "the same edge again");
	NEED(cuGraphNodeFindInClone(&nodes[1], first, clone));
	NEED(cuGraphAddDependencies_v2(clone, &nodes[0], &nodes[1], NULL, 1));
	n = (size_t)exec;
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags((CUgraphExec *)&n, clone, 0),
	       "a cycle");

	NEED(cuGraphDestroy(clone));
	NEED(cuGraphDestroy(graph));
	check(launched(exec) == 10, "an executable graph outlives its graph");
	NEED(cuGraphExecDestroy(exec));
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphExecDestroy(exec), "destroying it twice");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream), "launching it then");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphDestroy(graph), "destroying a graph twice");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetType(first, &type), "a node of it");
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void test_kinds(void)
{
	int n_called = 0, n_destroyed = 0;
	CUDA_HOST_NODE_PARAMS host = { count, &n_called };
	CUDA_MEMSET_NODE_PARAMS set = { word, 0, 7, 4, 1, 1 };
	CUgraphNode first, second, child, at_end;
	CUgraph graph, inner = make_graph(1, &first, &second);
	CUuserObject object;
	CUgraphExec exec;
	char path[128];
	CUevent event;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddMemsetNode(&first, graph, NULL, 0, &set, ctx));
	NEED(cuGraphAddChildGraphNode(&child, graph, &first, 1, inner));
	NEED(cuGraphAddHostNode(&second, graph, &child, 1, &host));
	NEED(cuGraphAddEventRecordNode(&at_end, graph, &second, 1, event));
	NEED(cuUserObjectCreate(&object, &n_destroyed, count, 1,
				CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuGraphRetainUserObject(graph, object, 2, CU_GRAPH_USER_OBJECT_MOVE),
	       "moving more references than there are");
	NEED(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	expect(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1),
	       "releasing one that the graph has");
	snprintf(path, sizeof(path), "%s/graph.dot", test_dir);
	expect(CUDA_SUCCESS, cuGraphDebugDotPrint(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE),
	       "a picture of it");

	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(cuGraphDestroy(inner));
	NEED(cuGraphDestroy(graph));
	check(launched(exec) == 16, "memset, child graph");
	check(n_called == 1, "host function");
	expect(CUDA_SUCCESS, cuEventQuery(event), "event");
	check(n_destroyed == 0, "the executable graph keeps the program's object");
	NEED(cuGraphExecDestroy(exec));
	check(n_destroyed == 1, "which goes with it");
	NEED(cuEventDestroy_v2(event));
}

static uint64_t graph_memory(CUgraphMem_attribute attribute)
{
	cuuint64_t value = 0;

	NEED(cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return value;
}

/* An allocation, what uses it, its freeing. */
static void test_memory_rules(CUgraph graph, const CUgraphNode *nodes, CUdeviceptr addr)
{
	CUgraphNode node;
	CUgraph clone;

	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, &nodes[2], 1, addr),
	       "freeing memory twice in a graph");
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(nodes[1]),
	       "a graph with memory loses no node");
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphRemoveDependencies(graph, nodes, nodes + 1, 1),
	       "and no edge");
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, graph), "and has no clone");
}

static void test_memory(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		},
		.bytesize = 1 << 20,
	};
	size_t before, after, total;
	CUDA_MEMSET_NODE_PARAMS set;
	CUgraphNode nodes[3];
	CUgraphExec exec, second;
	CUgraph graph;
	unsigned int value = 0;

	NEED(cuMemGetInfo_v2(&before, &total));
	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &alloc));
	set = (CUDA_MEMSET_NODE_PARAMS){ alloc.dptr, 0, 3, 4, 256, 1 };
	NEED(cuGraphAddMemsetNode(&nodes[1], graph, &nodes[0], 1, &set, ctx));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(cuMemGetInfo_v2(&after, &total));
	check(before == after, "memory of a graph costs nothing before it is launched");

	NEED(cuGraphLaunch(exec, stream));
	NEED(cuStreamSynchronize(stream));
	NEED(cuMemcpyDtoH_v2(&value, alloc.dptr, 4));
	check(value == 3, "memory that a graph has allocated outlives the launch");
	NEED(cuMemGetInfo_v2(&after, &total));
	check(before - after == 2 << 20, "and is charged");
	check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 2 << 20, "it is used");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(exec, stream),
	       "it cannot be allocated twice");
	NEED(cuMemFreeAsync(alloc.dptr, stream));
	NEED(cuStreamSynchronize(stream));
	check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0, "freed by the program");
	expect(CUDA_SUCCESS, cuGraphLaunch(exec, stream), "then the graph can be launched again");
	NEED(cuStreamSynchronize(stream));
	expect(CUDA_SUCCESS, cuMemFree_v2(alloc.dptr), "the other way to free it");
	expect(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(alloc.dptr), "not twice");
	check(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 2 << 20,
	      "it is reserved still");
	NEED(cuDeviceGraphMemTrim(0));
	check(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0, "until it is trimmed");
	NEED(cuMemGetInfo_v2(&after, &total));
	check(before == after, "and the device has it back");
	NEED(cuGraphExecDestroy(exec));

	NEED(cuGraphAddMemFreeNode(&nodes[2], graph, &nodes[1], 1, alloc.dptr));
	test_memory_rules(graph, nodes, alloc.dptr);
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&second, graph, 0),
	       "a second executable graph with the same memory");
	for (int i = 0; i < 3; i++)
		NEED(cuGraphLaunch(exec, stream));
	NEED(cuStreamSynchronize(stream));
	check(graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) == 0, "freed by the graph itself");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
	check(graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) == 0, "gone with the graph");
}

/* A copy can get other places in an executable graph, of the same kinds. */
static void test_copies(void)
{
	unsigned int values[2] = { 5, 6 };
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = &values[0],
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = word,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1,
	};
	CUgraphExecUpdateResultInfo info;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, ctx));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(launched(exec) == 5, "a copy");
	copy.srcHost = &values[1];
	NEED(cuGraphExecMemcpyNodeSetParams(exec, node, &copy, ctx));
	check(launched(exec) == 6, "from elsewhere");
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = word;
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(exec, node, &copy, ctx),
	       "but not from memory of another kind");
	NEED(cuGraphMemcpyNodeSetParams(node, &copy));
	expect(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(exec, graph, &info),
	       "nor by an update");
	check(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, "which says so");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
}

static void launch_add(unsigned int value, CUstream in)
{
	void *params[] = { &word, &value };

	NEED(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, in, params, NULL));
}

static void test_capture(void)
{
	CUstreamCaptureStatus status;
	CUevent fork_point, join_point;
	CUdeviceptr inside;
	CUgraphExec exec;
	CUgraph graph;
	size_t n = 0;

	NEED(cuEventCreate(&fork_point, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&join_point, CU_EVENT_DISABLE_TIMING));
	NEED(cuMemsetD32_v2(word, 100, 1));
	NEED(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	NEED(cuStreamIsCapturing(stream, &status));
	check(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "a stream that captures");
	NEED(cuMemsetD32Async(word, 1, 1, stream));
	launch_add(2, stream);
	NEED(cuEventRecord(fork_point, stream));
	NEED(cuStreamWaitEvent(other, fork_point, 0));
	launch_add(4, other);
	NEED(cuEventRecord(join_point, other));
	NEED(cuMemAllocAsync(&inside, 4096, stream));
	NEED(cuMemFreeAsync(inside, stream));
	NEED(cuStreamWaitEvent(stream, join_point, 0));
	launch_add(8, stream);
	NEED(cuStreamEndCapture(stream, &graph));
	check(word_value() == 100, "nothing of a capture runs");
	NEED(cuGraphGetNodes(graph, NULL, &n));
	check(n == 6, "each piece of work is a node");
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(launched(exec) == 15, "the graph does what was captured, of both streams");
	NEED(cuStreamIsCapturing(other, &status));
	check(status == CU_STREAM_CAPTURE_STATUS_NONE, "the stream that joined is free again");
	expect(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork_point),
	       "an event that was recorded in a capture");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
	NEED(cuEventDestroy_v2(fork_point));
	NEED(cuEventDestroy_v2(join_point));
}

static void capture_begin(void)
{
	NEED(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static void capture_ends(CUresult want, const char *what)
{
	CUgraph graph = NULL;

	expect(want, cuStreamEndCapture(stream, &graph), what);
	if (graph)
		NEED(cuGraphDestroy(graph));
}

static void *end_elsewhere(_unused_ void *arg)
{
	static CUresult r;
	CUgraph graph;

	cuCtxSetCurrent(ctx);
	r = cuStreamEndCapture(stream, &graph);
	return &r;
}

static void test_invalid_captures(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUevent event, outside;
	CUdeviceptr addr;
	pthread_t thread;
	void *result;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
	NEED(cuEventRecord(outside, other));
	capture_ends(CUDA_ERROR_ILLEGAL_STATE, "ending without a capture");
	expect(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	       cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
	       "the legacy stream cannot capture");

	capture_begin();
	expect(CUDA_ERROR_ILLEGAL_STATE,
	       cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "beginning twice");
	expect(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream),
	       "waiting for a stream that captures");
	expect(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuMemsetD32Async(word, 0, 1, stream),
	       "makes the capture invalid");
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "as its end tells");

	capture_begin();
	expect(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemsetD32Async(word, 0, 1, NULL),
	       "the legacy stream would depend on it");
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "and that ends it");

	capture_begin();
	expect(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&addr, 4096), "an unsafe call");
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "ends a capture");

	capture_begin();
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	check(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "the thread's mode before");
	NEED(cuMemAlloc_v2(&addr, 4096));
	NEED(cuThreadExchangeStreamCaptureMode(&mode));
	capture_ends(CUDA_SUCCESS, "but not from a thread that is relaxed");
	NEED(cuMemFree_v2(addr));

	capture_begin();
	expect(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, outside, 0),
	       "waiting for what is not captured");
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "ends a capture, too");

	capture_begin();
	NEED(cuEventRecord(event, stream));
	NEED(cuStreamWaitEvent(other, event, 0));
	launch_add(1, other);
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "a stream that was not joined");
	expect(CUDA_SUCCESS, cuStreamSynchronize(other), "and is free again");

	capture_begin();
	pthread_create(&thread, NULL, end_elsewhere, NULL);
	pthread_join(thread, &result);
	check(*(CUresult *)result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
	      "another thread cannot end it");
	capture_ends(CUDA_SUCCESS, "its own can");
	NEED(cuEventDestroy_v2(event));
	NEED(cuEventDestroy_v2(outside));
}

/* add(1) -> double, with the double switched off -> child: add(3) -> host function */
static CUgraphExec make_exec(int *n_called)
{
	CUDA_HOST_NODE_PARAMS host = { count, n_called };
	CUgraphNode first, second, child, last;
	CUgraph graph = make_graph(1, &first, &second), inner;
	unsigned int value = 3;
	void *params[] = { &word, &value };
	CUDA_KERNEL_NODE_PARAMS kernel = kernel_params(add, params);
	CUgraphExec exec;

	NEED(cuGraphCreate(&inner, 0));
	NEED(cuGraphAddKernelNode_v2(&last, inner, NULL, 0, &kernel));
	NEED(cuGraphAddChildGraphNode(&child, graph, &second, 1, inner));
	NEED(cuGraphAddHostNode(&last, graph, &child, 1, &host));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(cuGraphNodeSetEnabled(exec, second, 0));
	NEED(cuGraphDestroy(inner));
	NEED(cuGraphDestroy(graph));
	return exec;
}

static void test_captured_launch(void)
{
	CUgraph graph;
	CUgraphNode nodes[4];
	CUgraphNodeType type;
	CUgraphExec inner, exec;
	CUdeviceptr addr;
	size_t n = 4;
	int n_called = 0;

	inner = make_exec(&n_called);
	capture_begin();
	launch_add(10, stream);
	expect(CUDA_SUCCESS, cuGraphLaunch(inner, stream), "launching a graph into a capture");
	launch_add(100, stream);
	NEED(cuStreamEndCapture(stream, &graph));
	NEED(cuGraphExecDestroy(inner));
	NEED(cuGraphGetNodes(graph, nodes, &n));
	check(n == 3, "makes one node");
	NEED(cuGraphNodeGetType(nodes[1], &type));
	check(type == CU_GRAPH_NODE_TYPE_GRAPH, "a child graph");
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	check(launched(exec) == 114 && n_called == 1,
	      "that does what the executable graph would have done");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));

	capture_begin();
	NEED(cuMemAllocAsync(&addr, 4096, stream));
	NEED(cuMemFreeAsync(addr, stream));
	NEED(cuStreamEndCapture(stream, &graph));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	capture_begin();
	expect(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuGraphLaunch(exec, stream),
	       "but memory nodes cannot be twice");
	capture_ends(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "which ends the capture");
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
}

/* Two allocations of which the second does not fit. */
static void test_launch_without_memory(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		},
		.bytesize = 2 << 20,
	};
	size_t device_free, total;
	CUgraphNode first, second;
	CUdeviceptr most;
	CUgraphExec exec;
	CUgraph graph;

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphAddMemAllocNode(&first, graph, NULL, 0, &alloc));
	NEED(cuGraphAddMemAllocNode(&second, graph, &first, 1, &alloc));
	NEED(cuGraphInstantiateWithFlags(&exec, graph, 0));
	NEED(cuMemGetInfo_v2(&device_free, &total));
	NEED(cuMemAlloc_v2(&most, device_free - (2 << 20)));
	expect(CUDA_ERROR_OUT_OF_MEMORY, cuGraphLaunch(exec, stream),
	       "a launch whose memory does not fit");
	NEED(cuMemFree_v2(most));
	expect(CUDA_SUCCESS, cuGraphLaunch(exec, stream), "can be made when it does");
	NEED(cuStreamSynchronize(stream));
	NEED(cuGraphExecDestroy(exec));
	NEED(cuGraphDestroy(graph));
}

static void test_refusals(void)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphNodeParams own = {
		.type = CU_GRAPH_NODE_TYPE_GRAPH,
		.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
	};
	CUDA_KERNEL_NODE_PARAMS kernel = kernel_params((CUfunction)0x1234, NULL);
	CUDA_HOST_NODE_PARAMS host = { 0 };
	CUgraph graph, second;
	CUgraphNode node, foreign, twice_same[2];

	NEED(cuGraphCreate(&graph, 0));
	NEED(cuGraphCreate(&second, 0));
	NEED(cuGraphAddEmptyNode(&foreign, second, NULL, 0));
	own.graph.graph = second;
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&node, second, NULL, NULL, 0, &own),
	       "a graph inside itself");
	expect(CUDA_SUCCESS, cuGraphAddChildGraphNode(&node, second, NULL, 0, second),
	       "though a copy of it can be there");
	own.graph.graph = graph;
	twice_same[0] = twice_same[1] = node;
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuGraphAddNode_v2(&node, second, twice_same, NULL, 2, &own),
	       "a child that cannot be added");
	expect(CUDA_SUCCESS, cuGraphAddEmptyNode(&node, graph, NULL, 0), "is the program's still");
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params),
	       "a conditional node");
	params.type = 99;
	expect(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params),
	       "a node of no kind");
	expect(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &kernel),
	       "no function");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddHostNode(&node, graph, NULL, 0, &host),
	       "no host function");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, graph, &foreign, 1),
	       "a node of another graph to come after");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(&node, (CUgraph)0x1234, NULL, 0),
	       "no graph");
	expect(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&node, graph, NULL, 0, word),
	       "memory that is no graph's");
	NEED(cuGraphDestroy(graph));
	NEED(cuGraphDestroy(second));
}

int main(void)
{
	CUmodule module;

	ctx = test_begin();
	NEED(cuModuleLoadData(&module, ptx));
	add = test_function(module, "add");
	twice = test_function(module, "double");
	NEED(cuMemAlloc_v2(&word, 4096));
	NEED(cuStreamCreate(&stream, 0));
	NEED(cuStreamCreate(&other, 0));
	test_nodes();
	test_kinds();
	test_memory();
	test_copies();
	test_capture();
	test_invalid_captures();
	test_captured_launch();
	test_launch_without_memory();
	test_refusals();
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "the context ends");
	test_end();
	return n_failed > 0;
}
