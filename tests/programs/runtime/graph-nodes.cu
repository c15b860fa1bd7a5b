// SPDX-License-Identifier: Apache-2.0
// Parameters of graphs' nodes are read back and set; edges, clones, user objects, capture.
#include "check.h"

// Edges have data, which these calls take under their plain names since 13.
#if CUDART_VERSION < 13000
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo	    cudaStreamGetCaptureInfo_v3
#define cudaStreamUpdateCaptureDependencies cudaStreamUpdateCaptureDependencies_v2
#define cudaGraphNodeGetDependencies	    cudaGraphNodeGetDependencies_v2
#define cudaGraphAddNode		    cudaGraphAddNode_v2
#endif

__device__ int bias = 3;

__global__ void add(int *x, int by)
{
	x[threadIdx.x] += by + bias;
}

static void count(void *n)
{
	++*(int *)n;
}

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	return exec;
}

static void launch(cudaGraphExec_t exec)
{
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaDeviceSynchronize());
}

static void kernels_and_symbols(int *x)
{
	int by = 10, ten = 10, twenty = 20, out = 0;
	void *args[] = { &x, &by };
	cudaKernelNodeParams given = {}, read = {};
	cudaGraphNode_t set_bias, kernel, get_bias;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	given.func = (void *)add;
	given.gridDim = dim3(1);
	given.blockDim = dim3(32);
	given.kernelParams = args;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&set_bias, graph, nullptr, 0, bias, &ten, sizeof(ten), 0,
					     cudaMemcpyHostToDevice));
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &set_bias, 1, &given));
	CHECK(cudaGraphAddMemcpyNodeFromSymbol(&get_bias, graph, &kernel, 1, &out, bias, sizeof(out),
					       0, cudaMemcpyDeviceToHost));
	EXPECT_ERROR(cudaErrorInvalidValue,
		     cudaGraphMemcpyNodeSetParamsToSymbol(set_bias, bias, &ten, 2 * sizeof(ten), 0,
							  cudaMemcpyHostToDevice));

	CHECK(cudaGraphKernelNodeGetParams(kernel, &read));
	EXPECT(read.func == given.func && read.blockDim.x == 32 && read.gridDim.z == 1);
	EXPECT(*(int *)read.kernelParams[1] == 10);
	read.blockDim = dim3(16);
	CHECK(cudaGraphKernelNodeSetParams(kernel, &read));

	exec = instantiate(graph);
	launch(exec);
	EXPECT(to_host(x, 32)[15] == 20 && to_host(x, 32)[16] == 0 && out == 10);

	CHECK(cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, set_bias, bias, &twenty, sizeof(twenty),
						       0, cudaMemcpyHostToDevice));
	CHECK(cudaGraphNodeSetEnabled(exec, kernel, 0));
	launch(exec);
	EXPECT(to_host(x, 32)[0] == 20 && out == 20);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void sets_copies_and_hosts(int *x)
{
	int n_calls = 0, other = 0;
	std::vector<int> from(32, 5);
	cudaMemsetParams set = {}, read_set = {};
	cudaMemcpy3DParms copy = {}, read_copy = {};
	cudaHostNodeParams host = { count, &n_calls }, read_host = {};
	cudaGraphNode_t nodes[3], dependencies[4];
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	size_t n = 4;

	set.dst = x;
	set.value = 7;
	set.elementSize = 4;
	set.width = 32;
	set.height = 1;
	copy.srcPtr = make_cudaPitchedPtr(from.data(), 64, 64, 1);
	copy.dstPtr = make_cudaPitchedPtr(x, 64, 64, 1);
	copy.extent = make_cudaExtent(64, 1, 1);
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &set));
	CHECK(cudaGraphAddMemcpyNode(&nodes[1], graph, &nodes[0], 1, &copy));
	CHECK(cudaGraphAddHostNode(&nodes[2], graph, &nodes[1], 1, &host));

	CHECK(cudaGraphMemsetNodeGetParams(nodes[0], &read_set));
	EXPECT(read_set.dst == x && read_set.value == 7 && read_set.width == 32);
	CHECK(cudaGraphMemcpyNodeGetParams(nodes[1], &read_copy));
	EXPECT(read_copy.srcPtr.ptr == from.data() && read_copy.dstPtr.ptr == x);
	EXPECT(read_copy.extent.width == 64 && read_copy.kind == cudaMemcpyHostToDevice);
	CHECK(cudaGraphHostNodeGetParams(nodes[2], &read_host));
	EXPECT(read_host.fn == count && read_host.userData == &n_calls);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaGraphHostNodeGetParams(nodes[0], &read_host));
	CHECK(cudaGraphNodeGetDependencies(nodes[2], dependencies, nullptr, &n));
	EXPECT(n == 1 && dependencies[0] == nodes[1]);

	exec = instantiate(graph);
	launch(exec);
	EXPECT(to_host(x, 32)[15] == 5 && to_host(x, 32)[16] == 7 && n_calls == 1);
	set.value = 9;
	host.userData = &other;
	CHECK(cudaGraphExecMemsetNodeSetParams(exec, nodes[0], &set));
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[1], x, from.data(), 4,
						 cudaMemcpyHostToDevice));
	CHECK(cudaGraphExecHostNodeSetParams(exec, nodes[2], &host));
	launch(exec);
	EXPECT(to_host(x, 32)[0] == 5 && to_host(x, 32)[1] == 9 && n_calls == 1 && other == 1);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void nodes_of_any_kind(int *x)
{
	int by = 1;
	void *args[] = { &x, &by };
	cudaGraphNodeParams params = {};
	cudaGraphNode_t set, kernel;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaGraphCreate(&graph, 0));
	params.type = cudaGraphNodeTypeMemset;
	params.memset.dst = x;
	params.memset.value = 100;
	params.memset.elementSize = 4;
	params.memset.width = 32;
	params.memset.height = 1;
	CHECK(cudaGraphAddNode(&set, graph, nullptr, nullptr, 0, &params));
	params = {};
	params.type = cudaGraphNodeTypeKernel;
	params.kernel.func = (void *)add;
	params.kernel.gridDim = dim3(1);
	params.kernel.blockDim = dim3(32);
	params.kernel.kernelParams = args;
	CHECK(cudaGraphAddNode(&kernel, graph, &set, nullptr, 1, &params));
	exec = instantiate(graph);
	launch(exec);
	EXPECT(to_host(x, 32)[31] == 121);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void capture_and_objects(int *x)
{
	int n_destroyed = 0;
	cudaStreamCaptureStatus status;
	cudaUserObject_t object;
	cudaStream_t stream;
	cudaGraph_t graph, seen;
	const cudaGraphNode_t *after;
	unsigned long long id;
	size_t n;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add<<<1, 32, 0, stream>>>(x, 1);
	CHECK(cudaStreamGetCaptureInfo(stream, &status, &id, &seen, &after, nullptr, &n));
	EXPECT(status == cudaStreamCaptureStatusActive && n == 1);
	CHECK(cudaUserObjectCreate(&object, &n_destroyed, count, 1, cudaUserObjectNoDestructorSync));
	CHECK(cudaGraphRetainUserObject(seen, object, 1, cudaGraphUserObjectMove));
	CHECK(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
						  cudaStreamSetCaptureDependencies));
	CHECK(cudaStreamEndCapture(stream, &graph));
	EXPECT(graph == seen && n_destroyed == 0);
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaDeviceSynchronize());
	EXPECT(n_destroyed == 1);
}

int main()
{
	int *x = to_device(std::vector<int>(32, 0));

	kernels_and_symbols(x);
	sets_copies_and_hosts(x);
	nodes_of_any_kind(x);
	capture_and_objects(x);
	printf("graph nodes right\n");
	return 0;
}
