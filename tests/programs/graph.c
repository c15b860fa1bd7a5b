/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph with memory nodes, built by hand and by capture: graph PTX-FILE
 *
 *	alloc -> copy in -> add -> copy out -> free
 */
#include "program.h"

enum { N = 1000 };

static float in[N], out[N];
static CUfunction add;
static int n = N;

static void check(float factor)
{
	for (int i = 0; i < N; i++)
		EXPECT(out[i] == factor * in[i]);
	memset(out, 0, sizeof(out));
}

static void by_hand(CUcontext context, CUdeviceptr sum)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } },
		.bytesize = sizeof(in),
	};
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = in,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .WidthInBytes = sizeof(in),
			       .Height = 1,
			       .Depth = 1 };
	CUDA_KERNEL_NODE_PARAMS kernel = { .func = add,
					   .gridDimX = 8,
					   .gridDimY = 1,
					   .gridDimZ = 1,
					   .blockDimX = 128,
					   .blockDimY = 1,
					   .blockDimZ = 1 };
	CUgraphNode alloc_node, copy_node, kernel_node, out_node, free_node;
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemAllocNode(&alloc_node, graph, NULL, 0, &alloc));
	copy.dstDevice = alloc.dptr;
	CHECK(cuGraphAddMemcpyNode(&copy_node, graph, &alloc_node, 1, &copy, context));
	kernel.kernelParams = (void *[]){ &alloc.dptr, &alloc.dptr, &sum, &n };
	CHECK(cuGraphAddKernelNode(&kernel_node, graph, &copy_node, 1, &kernel));
	CHECK(cuGraphAddMemFreeNode(&free_node, graph, &kernel_node, 1, alloc.dptr));
	copy = (CUDA_MEMCPY3D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				.srcDevice = sum,
				.dstMemoryType = CU_MEMORYTYPE_HOST,
				.dstHost = out,
				.WidthInBytes = sizeof(out),
				.Height = 1,
				.Depth = 1 };
	CHECK(cuGraphAddMemcpyNode(&out_node, graph, &kernel_node, 1, &copy, context));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		CHECK(cuGraphLaunch(exec, NULL));
		CHECK(cuStreamSynchronize(NULL));
		check(2);
	}
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
}

static void by_capture(CUdeviceptr sum)
{
	CUgraphExec exec;
	CUdeviceptr x;
	CUstream stream;
	CUgraph graph;
	size_t n_nodes;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuMemAllocAsync(&x, sizeof(in), stream));
	CHECK(cuMemcpyHtoDAsync(x, in, sizeof(in), stream));
	CHECK(cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, stream, (void *[]){ &x, &x, &sum, &n },
			     NULL));
	CHECK(cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, stream, (void *[]){ &x, &sum, &sum, &n },
			     NULL));
	CHECK(cuMemcpyDtoHAsync(out, sum, sizeof(out), stream));
	CHECK(cuMemFreeAsync(x, stream));
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphGetNodes(graph, NULL, &n_nodes));
	EXPECT(n_nodes == 6);
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 5; i++) {
		CHECK(cuGraphLaunch(exec, stream));
		CHECK(cuStreamSynchronize(stream));
		check(3);
	}
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuStreamDestroy(stream));
}

int main(int argc, char **argv)
{
	size_t before, after, total;
	CUcontext context;
	CUdeviceptr sum;

	CHECK(cuInit(0));
	context = context_on(0);
	add = function_of(module_of(argv[1]), "vector_add");
	for (int i = 0; i < N; i++)
		in[i] = (float)(noise(i) % 1000);
	sum = device_zeros(sizeof(out));
	CHECK(cuMemGetInfo(&before, &total));
	by_hand(context, sum);
	by_capture(sum);
	CHECK(cuDeviceGraphMemTrim(0));
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(after == before);
	printf("graphs right\n");
	return 0;
}
