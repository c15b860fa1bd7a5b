// SPDX-License-Identifier: Apache-2.0
// A kernel that never ends, and says when it has begun.
#include "check.h"

__global__ void endless(volatile int *begun)
{
	*begun = 1;
	while (*begun)
		;
}

int main()
{
	volatile int *begun;

	CHECK(cudaMallocHost(&begun, sizeof(*begun)));
	*begun = 0;
	endless<<<1, 32>>>((int *)begun);
	CHECK(cudaGetLastError());
	while (!*begun)
		;
	printf("begun\n");
	fflush(stdout);
	CHECK(cudaDeviceSynchronize());
	return 0;
}
