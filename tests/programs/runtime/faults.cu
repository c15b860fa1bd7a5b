// SPDX-License-Identifier: Apache-2.0
// A fault of a kernel is an error that stays until the device is reset: faults assert|address
#include <cstring>
#undef NDEBUG
#include <cassert>
#include "check.h"

__global__ void check_small(int v)
{
	assert(v < 10);
}

__global__ void write(int *at)
{
	*at = 1;
}

int main(int argc, char **argv)
{
	bool asserts = argc > 1 && strcmp(argv[1], "assert") == 0;
	cudaError_t expected = asserts ? cudaErrorAssert : cudaErrorIllegalAddress;
	int *x;

	check_small<<<1, 32>>>(3);
	CHECK(cudaDeviceSynchronize());
	if (asserts)
		check_small<<<1, 32>>>(30);
	else
		write<<<1, 1>>>((int *)0x1000);
	EXPECT(cudaDeviceSynchronize() == expected);
	EXPECT(cudaMalloc(&x, 4) == expected);
	EXPECT(cudaPeekAtLastError() == expected);
	EXPECT(cudaGetLastError() == expected);
	EXPECT(cudaDeviceSynchronize() == expected);

	CHECK(cudaDeviceReset());
	cudaGetLastError();
	check_small<<<1, 32>>>(3);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	printf("fault stays\n");
	return 0;
}
