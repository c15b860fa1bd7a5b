// SPDX-License-Identifier: Apache-2.0
// printf of the device, every conversion, in the order of the threads of a warp.
#include "check.h"

__global__ void say(const char *word)
{
	printf("%d %5.2f %s %c %x %lld %%\n", (int)threadIdx.x, threadIdx.x * 1.5, word, 'a' + threadIdx.x,
	       255 + threadIdx.x, 1234567890123LL);
}

#define EVERY_KIND                                                                                 \
	"[%i|%5d|%-5d|%+d|%05d|%.3d|% d] [%u|%o|%#o|%x|%X|%#x] [%ld|%lu|%lld|%llx|%hd|%hhd] "          \
	"[%f|%.0f|%10.3f|%-10.1f|%e|%.2E|%g|%G|%a] [%c|%3c] [%*d|%-*d|%*d|%.*f] [%s|%.2s|%6s|%-6s]\n",                     \
		-5, 42, 42, 42, 42, 42, 42, 4000000000u, 8u, 8u, 255u, 255u, 255u, -1L, 7UL, -1234567890123LL, \
		0x123456789abcLL, -3, 5, 1.5, 2.5, 3.14159, 2.25, 12345.678, 0.00012, 1e-7, 1e20, 1.0, 'x', 'y', \
		7, 42, 5, 42, -6, 42, 2, 3.14159

__global__ void say_every_kind(const char *word)
{
	printf(EVERY_KIND, word, word, word, word);
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
	say_every_kind<<<1, 1>>>(word);
	CHECK(cudaDeviceSynchronize());
	// The same by the host's printf.
	printf(EVERY_KIND, word, word, word, word);
	return 0;
}
