// SPDX-License-Identifier: Apache-2.0
// <<<>>>, cudaLaunchKernel, extended and cooperative launches, and launches that are refused.
#include <cooperative_groups.h>
#include "check.h"

__global__ void add(int *x, int by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] += by;
}

// Every block adds to the sum; after the grid has met, block 0 checks that all did.
__global__ void meet(int *sum, int *seen)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();

	if (threadIdx.x == 0)
		atomicAdd(sum, 1);
	grid.sync();
	if (grid.thread_rank() == 0)
		*seen = *sum;
}

int main()
{
	const int n = 1000;
	int *x = to_device(std::vector<int>(n, 5)), by = 3, count = n;
	void *args[] = { &x, &by, &count };

	add<<<4, 256>>>(x, 1, n);
	CHECK(cudaGetLastError());
	CHECK(cudaLaunchKernel((const void *)add, dim3(4), dim3(256), args, 0, 0));

	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(4);
	config.blockDim = dim3(256);
	CHECK(cudaLaunchKernelEx(&config, add, x, 10, n));
	for (int v : to_host(x, n))
		EXPECT(v == 19);

	int *sums = to_device(std::vector<int>(2, 0)), *seen = sums + 1;
	void *meet_args[] = { &sums, &seen };
	CHECK(cudaLaunchCooperativeKernel((const void *)meet, dim3(6), dim3(64), meet_args, 0, 0));
	EXPECT(to_host(sums, 2)[1] == 6);

	add<<<1, 2000>>>(x, 1, n);
	EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
	EXPECT(cudaGetLastError() == cudaSuccess);
	EXPECT_ERROR(cudaErrorInvalidDeviceFunction,
		     cudaLaunchKernel(nullptr, dim3(1), dim3(1), args, 0, 0));
	CHECK(cudaDeviceSynchronize());
	printf("launches right\n");
	return 0;
}
