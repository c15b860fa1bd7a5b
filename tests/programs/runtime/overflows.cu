// SPDX-License-Identifier: Apache-2.0
// What does not fit: overflows printf|flood|heap|stack. More is printed than the buffer holds: it is emptied
// early and no line is lost; a launch that prints more than any buffer holds may lose lines, none in parts, and
// the next one prints; the heap's malloc() answers with NULL; a recursion without an end is a fault that stays,
// until a reset leads back.
#include "check.h"

enum { BUFFER = 4 << 10, N_LINES = 2048 };

__global__ void print()
{
	printf("line %d of many\n", (int)(blockIdx.x * blockDim.x + threadIdx.x));
}

__global__ void take(int *n_refused)
{
	if (!malloc(1 << 20))
		atomicAdd(n_refused, 1);
}

// Not a tail call, and each call's array lies on the stack.
__device__ __noinline__ int deep(int n, volatile int *stop)
{
	volatile int mine[64];

	mine[n % 64] = n;
	if (*stop)
		return mine[n % 64];
	return deep(n + 1, stop) + mine[n % 64];
}

__global__ void recurse(int *stop, int *out)
{
	*out = deep(0, stop);
}

static void printing()
{
	CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, BUFFER));
	print<<<N_LINES / 256, 256>>>();
	CHECK(cudaDeviceSynchronize());
}

// 4 MiB, in lines of 64 bytes.
__global__ void print_much()
{
	printf("%63d\n", (int)(blockIdx.x * blockDim.x + threadIdx.x));
}

static void flood()
{
	print_much<<<256, 256>>>();
	CHECK(cudaDeviceSynchronize());
	print<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
}

static void heap()
{
	int *refused = to_device(std::vector<int>(1, 0)), n;

	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20));
	take<<<1, 32>>>(refused);
	n = to_host(refused, 1)[0];
	EXPECT(n >= 24 && n < 32);
}

static void stack()
{
	int *stop = to_device(std::vector<int>(1, 0)), *out = to_device(std::vector<int>(1, 0));
	cudaError_t error;

	recurse<<<1, 1>>>(stop, out);
	error = cudaDeviceSynchronize();
	EXPECT(error == cudaErrorHardwareStackError && cudaDeviceSynchronize() == error);
	CHECK(cudaDeviceReset());

	stop = to_device(std::vector<int>(1, 1));
	out = to_device(std::vector<int>(1, 7));
	recurse<<<1, 1>>>(stop, out);
	EXPECT(to_host(out, 1)[0] == 0);
}

int main(int argc, char **argv)
{
	switch (argc == 2 ? argv[1][0] : 0) {
	case 'p':
		printing();
		break;
	case 'f':
		flood();
		break;
	case 'h':
		heap();
		break;
	case 's':
		stack();
		break;
	default:
		return 2;
	}
	printf("overflow right\n");
	return 0;
}
