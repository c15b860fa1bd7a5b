/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to ever more device memory until the host has no more for it, which is an answer and not a
 * signal; what is there is whole, and the device works on: grow PTX-FILE LEAST_MB
 */
#include "program.h"

enum { BLOCK_BYTES = 16 << 20, BLOCKS_MAX = 256, N = 1000 };

static int blocks_fill(CUdeviceptr blocks[])
{
	CUresult r;

	for (int i = 0; i < BLOCKS_MAX; i++) {
		CHECK(cuMemAlloc(&blocks[i], BLOCK_BYTES));
		r = cuMemsetD8(blocks[i], (unsigned char)i, BLOCK_BYTES);
		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			return i;
		CHECK(r);
	}
	return BLOCKS_MAX;
}

static void block_is_whole(CUdeviceptr block, int number)
{
	unsigned char byte[2];

	CHECK(cuMemcpyDtoH(&byte[0], block, 1));
	CHECK(cuMemcpyDtoH(&byte[1], block + BLOCK_BYTES - 1, 1));
	EXPECT(byte[0] == number && byte[1] == number);
}

static void scale_works(const char *ptx_path, CUdeviceptr x)
{
	float host[N], by = 2;
	int n = N;

	for (int i = 0; i < N; i++)
		host[i] = (float)i;
	CHECK(cuMemcpyHtoD(x, host, sizeof(host)));
	CHECK(cuLaunchKernel(function_of(module_of(ptx_path), "scale"), (N + 127) / 128, 1, 1, 128,
			     1, 1, 0, NULL, (void *[]){ &x, &by, &n }, NULL));
	CHECK(cuMemcpyDtoH(host, x, sizeof(host)));
	for (int i = 0; i < N; i++)
		EXPECT(host[i] == 2 * (float)i);
}

int main(int argc, char **argv)
{
	CUdeviceptr blocks[BLOCKS_MAX];
	int n_blocks;

	CHECK(cuInit(0));
	context_on(0);
	n_blocks = blocks_fill(blocks);
	EXPECT(n_blocks < BLOCKS_MAX && n_blocks * (BLOCK_BYTES >> 20) >= atoi(argv[2]));
	for (int i = 0; i < n_blocks; i++)
		block_is_whole(blocks[i], i);
	/* What did not get memory gives back what it has, and a kernel has room. */
	CHECK(cuMemFree(blocks[n_blocks]));
	scale_works(argv[1], blocks[0]);
	printf("%d blocks whole\n", n_blocks);
	return 0;
}
