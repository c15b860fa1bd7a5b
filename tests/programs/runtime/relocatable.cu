// SPDX-License-Identifier: Apache-2.0
// Device code of two files that use each other's functions and variables; compiled with -rdc.
#include "check.h"

extern __device__ int twice(int x);
extern __constant__ int offset;
extern __managed__ int n_threads;
void set_offset(int to);

__global__ void compute(int *x)
{
	x[threadIdx.x] = twice(threadIdx.x) + offset;
	atomicAdd(&n_threads, 1);
}

static int compute_last()
{
	int *x = to_device(std::vector<int>(32, 0));

	compute<<<1, 32>>>(x);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	return to_host(x, 32)[31];
}

int main()
{
	n_threads = 5;
	set_offset(100);
	EXPECT(compute_last() == 162);
	EXPECT(n_threads == 37);

	// A reset takes the variables with it; kernels are found anew.
	CHECK(cudaDeviceReset());
	EXPECT(compute_last() == 62);
	set_offset(7);
	EXPECT(compute_last() == 69);
	printf("relocatable code right\n");
	return 0;
}
