// SPDX-License-Identifier: Apache-2.0
// Compiled for one architecture without PTX: its kernels have no image for this device, and
// the calls that need none go on.
#include "check.h"

__device__ int variable;

__global__ void nothing()
{
}

int main()
{
	cudaFuncAttributes attributes;
	int *x, one = 1;

	nothing<<<1, 1>>>();
	EXPECT(cudaGetLastError() == cudaErrorNoKernelImageForDevice);
	EXPECT(cudaGetLastError() == cudaSuccess);
	EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaFuncGetAttributes(&attributes, nothing));
	EXPECT_ERROR(cudaErrorNoKernelImageForDevice, cudaMemcpyToSymbol(variable, &one, sizeof(one)));
	CHECK(cudaMalloc(&x, 4));
	CHECK(cudaMemset(x, 0, 4));
	CHECK(cudaDeviceSynchronize());
	printf("no image is right\n");
	return 0;
}
