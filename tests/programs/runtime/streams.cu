// SPDX-License-Identifier: Apache-2.0
// Streams, events, callbacks, host functions, stream-ordered memory.
#include "check.h"

__global__ void add(int *x, int by)
{
	x[blockIdx.x * blockDim.x + threadIdx.x] += by;
}

static void count(void *data)
{
	++*(int *)data;
}

static void called_back(cudaStream_t, cudaError_t status, void *data)
{
	if (status == cudaSuccess)
		++*(int *)data;
}

int main()
{
	cudaStream_t first, second;
	cudaEvent_t start, end, between;
	int n_called = 0, low, high, *x;
	float ms = -1;

	CHECK(cudaDeviceGetStreamPriorityRange(&low, &high));
	EXPECT(low >= high);
	CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, high));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&end));
	CHECK(cudaEventCreateWithFlags(&between, cudaEventDisableTiming));

	CHECK(cudaEventRecord(start, first));
	CHECK(cudaMallocAsync(&x, 256 * sizeof(int), first));
	CHECK(cudaMemsetAsync(x, 0, 256 * sizeof(int), first));
	for (int i = 0; i < 10; i++) {
		add<<<2, 128, 0, first>>>(x, 1);
		CHECK(cudaEventRecord(between, first));
		CHECK(cudaStreamWaitEvent(second, between, 0));
		add<<<2, 128, 0, second>>>(x, 100);
		CHECK(cudaEventRecord(between, second));
		CHECK(cudaStreamWaitEvent(first, between, 0));
	}
	CHECK(cudaLaunchHostFunc(first, count, &n_called));
	CHECK(cudaStreamAddCallback(first, called_back, &n_called, 0));
	CHECK(cudaEventRecord(end, first));
	CHECK(cudaEventSynchronize(end));
	CHECK(cudaStreamQuery(first));
	EXPECT(n_called == 2);
	for (int v : to_host(x, 256))
		EXPECT(v == 1010);
	CHECK(cudaEventElapsedTime(&ms, start, end));
	EXPECT(ms >= 0);
	EXPECT_ERROR(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, between));
	CHECK(cudaFreeAsync(x, first));
	CHECK(cudaStreamSynchronize(first));
	CHECK(cudaEventDestroy(start));
	CHECK(cudaStreamDestroy(first));
	CHECK(cudaStreamDestroy(second));
	printf("streams right\n");
	return 0;
}
