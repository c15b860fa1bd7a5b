// SPDX-License-Identifier: Apache-2.0
// What a tenant with a limit sees: limited BYTES. The device is as large as the limit, and no kind of memory
// goes beyond it; what is refused disturbs nothing.
#include "check.h"

enum { N = 1 << 20 };

__global__ void fill(int *x)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	x[i] = i;
}

static void expect_refused(size_t bytes)
{
	cudaPitchedPtr volume;
	size_t pitch;
	void *ptr;

	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&ptr, bytes));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMallocManaged(&ptr, bytes));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMallocAsync(&ptr, bytes, 0));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMallocPitch(&ptr, &pitch, bytes >> 10, 1 << 10));
	EXPECT_ERROR(cudaErrorMemoryAllocation,
		     cudaMalloc3D(&volume, make_cudaExtent(bytes >> 20, 1 << 10, 1 << 10)));
}

int main(int argc, char **argv)
{
	size_t limit = argc == 2 ? strtoull(argv[1], nullptr, 0) : 0, free_before, free_after, total;
	cudaDeviceProp properties;
	void *half;
	int *x;

	CHECK(cudaMemGetInfo(&free_before, &total));
	EXPECT(total == limit && free_before < limit);
	CHECK(cudaGetDeviceProperties(&properties, 0));
	EXPECT(properties.totalGlobalMem == limit);

	expect_refused(limit);
	CHECK(cudaMalloc(&half, limit / 2));
	CHECK(cudaMemGetInfo(&free_after, &total));
	EXPECT(total == limit && free_before - free_after == limit / 2);
	expect_refused(limit / 2);

	CHECK(cudaMalloc(&x, N * sizeof(*x)));
	fill<<<N / 256, 256>>>(x);
	EXPECT(to_host(x, N)[N - 1] == N - 1);
	CHECK(cudaFree(half));
	CHECK(cudaMalloc(&half, limit / 2));
	printf("limits right\n");
	return 0;
}
