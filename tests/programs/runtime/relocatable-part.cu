// SPDX-License-Identifier: Apache-2.0
// What relocatable.cu uses of another file.
#include "check.h"

__constant__ int offset;
__managed__ int n_threads;

__device__ int twice(int x)
{
	return 2 * x;
}

void set_offset(int to)
{
	CHECK(cudaMemcpyToSymbol(offset, &to, sizeof(to)));
}
