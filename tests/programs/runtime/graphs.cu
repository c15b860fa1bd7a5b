// SPDX-License-Identifier: Apache-2.0
// Graphs by hand and by capture, updated and launched again.
#include "check.h"

__global__ void add(int *x, int by)
{
	x[threadIdx.x] += by;
}

int main()
{
	int *x = to_device(std::vector<int>(64, 0)), by = 5;
	void *args[] = { &x, &by };
	cudaGraphNode_t set, kernel;
	cudaGraph_t graph, captured;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	size_t n = 0;

	cudaMemsetParams set_params = {};
	set_params.dst = x;
	set_params.value = 1;
	set_params.elementSize = 4;
	set_params.width = 64;
	set_params.height = 1;
	cudaKernelNodeParams kernel_params = {};
	kernel_params.func = (void *)add;
	kernel_params.gridDim = dim3(1);
	kernel_params.blockDim = dim3(64);
	kernel_params.kernelParams = args;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &set_params));
	CHECK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &kernel_params));
	CHECK(cudaGraphGetNodes(graph, nullptr, &n));
	EXPECT(n == 2);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(to_host(x, 64)[63] == 6);
	by = 70;
	CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &kernel_params));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(to_host(x, 64)[0] == 71);
	CHECK(cudaGraphExecDestroy(exec));

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	add<<<1, 64, 0, stream>>>(x, 1);
	add<<<1, 64, 0, stream>>>(x, 2);
	CHECK(cudaStreamEndCapture(stream, &captured));
	EXPECT(to_host(x, 64)[0] == 71);
	CHECK(cudaGraphInstantiate(&exec, captured, 0));
	for (int i = 0; i < 4; i++)
		CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(to_host(x, 64)[0] == 71 + 4 * 3);
	printf("graphs right\n");
	return 0;
}
