// SPDX-License-Identifier: Apache-2.0
// printf of the device, every conversion, in the order of the threads of a warp.
#include "check.h"

__global__ void say(const char *word)
{
	printf("%d %5.2f %s %c %x %lld %%\n", (int)threadIdx.x, threadIdx.x * 1.5, word, 'a' + threadIdx.x,
	       255 + threadIdx.x, 1234567890123LL);
}

int main()
{
	char *word;

	CHECK(cudaMallocManaged(&word, 8));
	word[0] = 'h';
	word[1] = 'i';
	word[2] = 0;
	say<<<1, 3>>>(word);
	CHECK(cudaDeviceSynchronize());
	return 0;
}
