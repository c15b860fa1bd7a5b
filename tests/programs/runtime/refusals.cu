// SPDX-License-Identifier: Apache-2.0
// Wrong handles of every kind, launches beyond the limits, functions and variables that nobody registered:
// each call answers with the documented error, and a launch right after it is as good as before.
#include "check.h"

enum { N = 64 };

__device__ int variable;
static int of_the_host;

__global__ void count(int *x)
{
	atomicAdd(&x[threadIdx.x], 1);
}

// Only its address is looked at.
static void not_a_kernel(int *x)
{
	*x = 0;
}

static int *counts;
static int n_refusals;

// What follows a refusal: the kernel that counts its launches.
static void nothing_is_disturbed()
{
	n_refusals++;
	CHECK(cudaGetLastError());
	count<<<1, N>>>(counts);
	CHECK(cudaGetLastError());
	for (int n : to_host(counts, N))
		EXPECT(n == n_refusals);
}

#define REFUSED(error, call)                                                                       \
	do {                                                                                       \
		EXPECT_ERROR(error, call);                                                         \
		nothing_is_disturbed();                                                            \
	} while (0)

// Never a handle: an address of the host's, and a small number.
static const std::vector<void *> strange = { &of_the_host, (void *)0x1230 };

template <typename T> static std::vector<T> wrong(T of_old, void *of_another_kind)
{
	std::vector<T> handles = { of_old, (T)of_another_kind };

	for (void *handle : strange)
		handles.push_back((T)handle);
	return handles;
}

static void nothing_to_do(void *)
{
}

static void callback(cudaStream_t, cudaError_t, void *)
{
}

static void streams()
{
	cudaStream_t old;
	cudaEvent_t event;
	cudaGraph_t graph;
	unsigned flags;
	int priority, *x;

	CHECK(cudaEventCreate(&event));
	CHECK(cudaStreamCreate(&old));
	CHECK(cudaStreamDestroy(old));
	CHECK(cudaMalloc(&x, N));
	for (cudaStream_t stream : wrong(old, event)) {
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamQuery(stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(stream, &flags));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamGetPriority(stream, &priority));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream, event, 0));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventRecord(event, stream));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaStreamAddCallback(stream, callback, nullptr, 0));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaLaunchHostFunc(stream, nothing_to_do, nullptr));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaMemcpyAsync(x, &of_the_host, 4, cudaMemcpyHostToDevice, stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaMemsetAsync(x, 0, 4, stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaMallocAsync(&x, 4, stream));
		REFUSED(cudaErrorInvalidResourceHandle, cudaFreeAsync(x, stream));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamEndCapture(stream, &graph));
		count<<<1, N, 0, stream>>>(counts);
		REFUSED(cudaErrorInvalidResourceHandle, cudaPeekAtLastError());
	}
	REFUSED(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
	CHECK(cudaFree(x));
	CHECK(cudaEventDestroy(event));
}

static void events()
{
	cudaEvent_t old, good;
	cudaStream_t stream;
	float ms;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaEventCreate(&good));
	CHECK(cudaEventRecord(good));
	CHECK(cudaEventCreate(&old));
	CHECK(cudaEventDestroy(old));
	for (cudaEvent_t event : wrong(old, stream)) {
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventRecord(event));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventQuery(event));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventSynchronize(event));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event, good));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, good, event));
		REFUSED(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(stream, event, 0));
		REFUSED(cudaErrorInvalidResourceHandle, cudaEventDestroy(event));
	}
	REFUSED(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
	REFUSED(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr));
	CHECK(cudaEventDestroy(good));
	CHECK(cudaStreamDestroy(stream));
}

// Addresses: freed, of the host's, in the middle of an allocation, beyond its end.
static void memory()
{
	char *old, *good, host[N];
	cudaMemPool_t pool = (cudaMemPool_t)&of_the_host;

	CHECK(cudaMalloc(&good, N));
	CHECK(cudaMalloc(&old, 4 << 20));
	CHECK(cudaFree(old));
	for (char *at : { old, (char *)&of_the_host, good + 4 }) {
		REFUSED(cudaErrorInvalidValue, cudaFree(at));
		REFUSED(cudaErrorInvalidValue, cudaFreeAsync(at, 0));
		REFUSED(cudaErrorInvalidValue, cudaFreeHost(at));
		REFUSED(cudaErrorInvalidValue, cudaIpcCloseMemHandle(at));
		REFUSED(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(at));
	}
	for (char *at : { old, (char *)&of_the_host }) {
		REFUSED(cudaErrorInvalidValue, cudaMemset(at, 0, 4));
		REFUSED(cudaErrorInvalidValue, cudaMemcpy(at, host, 4, cudaMemcpyHostToDevice));
		REFUSED(cudaErrorInvalidValue, cudaMemcpy(host, at, 4, cudaMemcpyDeviceToHost));
	}
	REFUSED(cudaErrorInvalidValue, cudaMemset(good, 0, 1 << 30));
	REFUSED(cudaErrorInvalidValue, cudaMemcpy(good, good, 1 << 30, cudaMemcpyDeviceToDevice));
	REFUSED(cudaErrorInvalidValue, cudaMemcpy(good, nullptr, N, cudaMemcpyHostToDevice));
	REFUSED(cudaErrorInvalidMemcpyDirection, cudaMemcpy(good, host, N, (cudaMemcpyKind)9));
	REFUSED(cudaErrorInvalidPitchValue,
		cudaMemcpy2D(good, 4, host, 8, 8, 2, cudaMemcpyHostToDevice));
	REFUSED(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, N));
	REFUSED(cudaErrorMemoryAllocation, cudaMalloc(&old, (size_t)1 << 60));
	REFUSED(cudaErrorInvalidValue, cudaHostGetDevicePointer((void **)&old, host, 0));
	REFUSED(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&old, N, pool, 0));
	REFUSED(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
	REFUSED(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaFree(good));
}

static void arrays()
{
	cudaChannelFormatDesc channel = cudaCreateChannelDesc<int>(), odd = { 32, 16, 0, 0 };
	cudaExtent extent = make_cudaExtent(8, 8, 0);
	cudaMipmappedArray_t mipmapped;
	cudaResourceDesc resource = {};
	cudaTextureDesc sampling = {};
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	cudaArray_t old, level;
	int host[N];

	CHECK(cudaMallocArray(&old, &channel, 8, 8));
	CHECK(cudaMallocMipmappedArray(&mipmapped, &channel, make_cudaExtent(8, 8, 0), 2));
	CHECK(cudaFreeArray(old));
	for (cudaArray_t array : wrong(old, mipmapped)) {
		REFUSED(cudaErrorInvalidValue, cudaFreeArray(array));
		REFUSED(cudaErrorInvalidValue, cudaArrayGetInfo(nullptr, &extent, nullptr, array));
		REFUSED(cudaErrorInvalidValue, cudaGetChannelDesc(&channel, array));
		REFUSED(cudaErrorInvalidValue,
			cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 8, cudaMemcpyHostToDevice));
		REFUSED(cudaErrorInvalidValue, cudaMemcpy2DFromArray(host, 32, array, 0, 0, 32, 8,
								     cudaMemcpyDeviceToHost));
		REFUSED(cudaErrorInvalidValue,
			cudaMemcpyToArray(array, 0, 0, host, 32, cudaMemcpyHostToDevice));
		REFUSED(cudaErrorInvalidValue,
			cudaMemcpyFromArray(host, array, 0, 0, 32, cudaMemcpyDeviceToHost));
		REFUSED(cudaErrorInvalidValue,
			cudaMemcpy2DArrayToArray(array, 0, 0, array, 0, 0, 32, 8));
		resource.resType = cudaResourceTypeArray;
		resource.res.array.array = array;
		REFUSED(cudaErrorInvalidValue,
			cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
		REFUSED(cudaErrorInvalidValue, cudaCreateSurfaceObject(&surface, &resource));
		cudaMemcpy3DParms parms = {};
		parms.srcArray = array;
		parms.dstPtr = make_cudaPitchedPtr(host, 32, 8, 8);
		parms.extent = make_cudaExtent(8, 8, 1);
		parms.kind = cudaMemcpyDeviceToHost;
		REFUSED(cudaErrorInvalidValue, cudaMemcpy3D(&parms));
	}
	REFUSED(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&old, &odd, 8, 8));
	CHECK(cudaFreeMipmappedArray(mipmapped));
	for (cudaMipmappedArray_t array : wrong(mipmapped, nullptr)) {
		if (array)
			REFUSED(cudaErrorInvalidValue, cudaFreeMipmappedArray(array));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaGetMipmappedArrayLevel(&level, array, 0));
	}
	for (unsigned long long object : { 0ull, 0x1230ull, (unsigned long long)&of_the_host }) {
		if (object)
			REFUSED(cudaErrorInvalidValue, cudaDestroyTextureObject(object));
		if (object)
			REFUSED(cudaErrorInvalidValue, cudaDestroySurfaceObject(object));
		REFUSED(cudaErrorInvalidValue, cudaGetTextureObjectResourceDesc(&resource, object));
		REFUSED(cudaErrorInvalidValue, cudaGetSurfaceObjectResourceDesc(&resource, object));
	}
}

static void graphs()
{
	cudaGraph_t old, good, clone;
	cudaGraphExec_t exec;
	cudaGraphNode_t node, from_old;
	cudaKernelNodeParams kernel = {};
	void *args[] = { &counts };
	size_t n;

	CHECK(cudaGraphCreate(&good, 0));
	CHECK(cudaGraphAddEmptyNode(&node, good, nullptr, 0));
	CHECK(cudaGraphInstantiate(&exec, good, 0));
	CHECK(cudaGraphCreate(&old, 0));
	CHECK(cudaGraphAddEmptyNode(&from_old, old, nullptr, 0));
	CHECK(cudaGraphDestroy(old));
	for (cudaGraph_t graph : wrong(old, exec)) {
		REFUSED(cudaErrorInvalidValue, cudaGraphDestroy(graph));
		REFUSED(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
		REFUSED(cudaErrorInvalidValue, cudaGraphClone(&clone, graph));
		REFUSED(cudaErrorInvalidValue, cudaGraphGetNodes(graph, nullptr, &n));
		REFUSED(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
		REFUSED(cudaErrorInvalidValue,
			cudaGraphAddChildGraphNode(&node, good, nullptr, 0, graph));
	}
	for (cudaGraphNode_t wrong_node : wrong(from_old, good)) {
		cudaGraphNodeType type;

		REFUSED(cudaErrorInvalidValue, cudaGraphDestroyNode(wrong_node));
		REFUSED(cudaErrorInvalidValue, cudaGraphNodeGetType(wrong_node, &type));
		REFUSED(cudaErrorInvalidValue, cudaGraphKernelNodeGetParams(wrong_node, &kernel));
		REFUSED(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, good, &wrong_node, 1));
	}
	kernel.func = (void *)not_a_kernel;
	kernel.gridDim = kernel.blockDim = dim3(1);
	kernel.kernelParams = args;
	REFUSED(cudaErrorInvalidDeviceFunction,
		cudaGraphAddKernelNode(&node, good, nullptr, 0, &kernel));
	kernel.func = (void *)count;
	kernel.blockDim = dim3(2048);
	REFUSED(cudaErrorInvalidValue, cudaGraphAddKernelNode(&node, good, nullptr, 0, &kernel));
	CHECK(cudaGraphInstantiate(&exec, good, 0));
	CHECK(cudaGraphExecDestroy(exec));
	for (cudaGraphExec_t wrong_exec : wrong(exec, good)) {
		REFUSED(cudaErrorInvalidValue, cudaGraphLaunch(wrong_exec, 0));
		REFUSED(cudaErrorInvalidValue, cudaGraphUpload(wrong_exec, 0));
		REFUSED(cudaErrorInvalidValue, cudaGraphExecDestroy(wrong_exec));
	}
	CHECK(cudaGraphDestroy(good));
}

static void libraries()
{
	cudaUserObject_t object = (cudaUserObject_t)&of_the_host;
	cudaIpcMemHandle_t memory = {};
	cudaKernel_t kernel;
	size_t size_bytes;
	unsigned n;
	void *at;

	for (cudaLibrary_t library : wrong((cudaLibrary_t) nullptr, counts)) {
		REFUSED(cudaErrorInvalidValue, cudaLibraryUnload(library));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaLibraryGetKernel(&kernel, library, "count"));
		REFUSED(cudaErrorInvalidResourceHandle, cudaLibraryGetKernelCount(&n, library));
		REFUSED(cudaErrorInvalidResourceHandle,
			cudaLibraryGetGlobal(&at, &size_bytes, library, "variable"));
	}
	REFUSED(cudaErrorInvalidValue, cudaUserObjectRetain(object, 1));
	REFUSED(cudaErrorInvalidValue, cudaUserObjectRelease(object, 1));
	REFUSED(cudaErrorInvalidValue,
		cudaIpcOpenMemHandle(&at, memory, cudaIpcMemLazyEnablePeerAccess));
}

static void functions()
{
	cudaFuncAttributes attributes;
	cudaFunction_t function;
	cudaKernel_t kernel;
	void *args[] = { &counts };
	const void *known = (const void *)count;
	int n;

	for (const void *f :
	     { (const void *)not_a_kernel, (const void *)&variable, (const void *)&of_the_host,
	       (const void *)0x1230, (const void *)nullptr }) {
		REFUSED(cudaErrorInvalidDeviceFunction,
			cudaLaunchKernel(f, dim3(1), dim3(1), args, 0, 0));
		REFUSED(cudaErrorInvalidDeviceFunction,
			cudaLaunchCooperativeKernel(f, dim3(1), dim3(1), args, 0, 0));
		cudaLaunchConfig_t config = {};
		config.gridDim = config.blockDim = dim3(1);
		REFUSED(cudaErrorInvalidDeviceFunction, cudaLaunchKernelExC(&config, f, args));
		REFUSED(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, f));
		REFUSED(cudaErrorInvalidDeviceFunction,
			cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 4));
		REFUSED(cudaErrorInvalidDeviceFunction,
			cudaFuncSetCacheConfig(f, cudaFuncCachePreferNone));
		REFUSED(cudaErrorInvalidDeviceFunction,
			cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 0));
		REFUSED(cudaErrorInvalidDeviceFunction, cudaGetFuncBySymbol(&function, f));
		REFUSED(cudaErrorInvalidDeviceFunction, cudaGetKernel(&kernel, f));
	}
	REFUSED(cudaErrorInvalidValue, cudaFuncSetAttribute(known, (cudaFuncAttribute)99, 0));
	REFUSED(cudaErrorInvalidValue,
		cudaFuncSetAttribute(known, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
	REFUSED(cudaErrorInvalidValue, cudaFuncGetAttributes(nullptr, known));
}

static void symbols()
{
	int *at, n = 0;
	size_t size_bytes;

	for (const void *symbol :
	     { (const void *)&of_the_host, (const void *)count, (const void *)0x1230,
	       (const void *)nullptr, (const void *)((char *)&variable + 1) }) {
		REFUSED(cudaErrorInvalidSymbol, cudaGetSymbolAddress((void **)&at, symbol));
		REFUSED(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size_bytes, symbol));
		REFUSED(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(symbol, &n, sizeof(n)));
		REFUSED(cudaErrorInvalidSymbol, cudaMemcpyFromSymbol(&n, symbol, sizeof(n)));
		REFUSED(cudaErrorInvalidSymbol, cudaMemcpyToSymbolAsync(symbol, &n, sizeof(n)));
		REFUSED(cudaErrorInvalidSymbol, cudaMemcpyFromSymbolAsync(&n, symbol, sizeof(n)));
	}
	REFUSED(cudaErrorInvalidValue, cudaMemcpyToSymbol(variable, &n, sizeof(n), 4));
	REFUSED(cudaErrorInvalidValue, cudaMemcpyFromSymbol(&n, variable, 8));
	REFUSED(cudaErrorInvalidValue, cudaMemcpyToSymbol(variable, &n, 4, (size_t)-4));
	REFUSED(cudaErrorInvalidMemcpyDirection,
		cudaMemcpyToSymbol(variable, &n, sizeof(n), 0, cudaMemcpyDeviceToHost));
}

static void launch(dim3 grid, dim3 block, size_t shared_bytes)
{
	count<<<grid, block, shared_bytes>>>(counts);
}

static void launches()
{
	void *args[] = { &counts };
	cudaDeviceProp p;
	int n_blocks;

	CHECK(cudaGetDeviceProperties(&p, 0));
	const dim3 grids[] = { dim3(0),
			       dim3(1, 0),
			       dim3(1, 1, 0),
			       dim3((unsigned)p.maxGridSize[0] + 1),
			       dim3(1, p.maxGridSize[1] + 1),
			       dim3(1, 1, p.maxGridSize[2] + 1) };
	const dim3 blocks[] = { dim3(0),
				dim3(1, 0),
				dim3(1, 1, 0),
				dim3(p.maxThreadsPerBlock + 1),
				dim3(1, p.maxThreadsDim[1] + 1),
				dim3(1, 1, p.maxThreadsDim[2] + 1),
				dim3(32, 33),
				dim3(1u << 31, 2),
				dim3(1u << 16, 1u << 16) };

	for (dim3 grid : grids) {
		launch(grid, 1, 0);
		REFUSED(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
		REFUSED(cudaErrorInvalidConfiguration,
			cudaLaunchCooperativeKernel((const void *)count, grid, dim3(1), args, 0,
						    0));
	}
	for (dim3 block : blocks) {
		launch(1, block, 0);
		REFUSED(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
		REFUSED(cudaErrorInvalidConfiguration,
			cudaLaunchCooperativeKernel((const void *)count, dim3(1), block, args, 0,
						    0));
	}
	// The last ones are small where only 32 bits are looked at.
	for (size_t shared_bytes : { p.sharedMemPerBlock + 1, (size_t)1 << 31, (size_t)1 << 32,
				     ((size_t)1 << 32) + 16 }) {
		launch(1, 1, shared_bytes);
		REFUSED(cudaErrorInvalidConfiguration, cudaPeekAtLastError());
	}
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n_blocks, count, 32, 0));
	REFUSED(cudaErrorCooperativeLaunchTooLarge,
		cudaLaunchCooperativeKernel((const void *)count,
					    dim3(n_blocks * p.multiProcessorCount + 1), dim3(32),
					    args, 0, 0));
	REFUSED(cudaErrorInvalidConfiguration,
		cudaLaunchKernel((const void *)count, dim3(1), dim3(N), nullptr, 0, 0));
}

int main()
{
	counts = to_device(std::vector<int>(N, 0));
	streams();
	events();
	memory();
	arrays();
	graphs();
	libraries();
	functions();
	symbols();
	launches();
	printf("%d refusals right\n", n_refusals);
	return 0;
}
