// SPDX-License-Identifier: Apache-2.0
/*
 * limit: says how much memory the device has and how much of it can be had, and from then on when that changes.
 */
#include "../programs/program.h"

#include <unistd.h>

#define PIECE	 (512UL << 20)
#define N_PIECES 64

static size_t total_now(void)
{
	size_t free_bytes, total;

	CHECK(cuMemGetInfo(&free_bytes, &total));
	return total;
}

/* Allocates until it is refused, and gives all of it back. */
static size_t allocate_all(void)
{
	CUdeviceptr pieces[N_PIECES];
	size_t n = 0, i;
	CUresult r;

	while ((r = n < N_PIECES ? cuMemAlloc(&pieces[n], PIECE) : CUDA_SUCCESS) == CUDA_SUCCESS &&
	       n < N_PIECES)
		n++;
	EXPECT(r == CUDA_ERROR_OUT_OF_MEMORY);
	for (i = 0; i < n; i++)
		CHECK(cuMemFree(pieces[i]));
	return n;
}

int main(void)
{
	size_t total = 0, now;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cuInit(0));
	context_on(0);
	for (;;) {
		now = total_now();
		if (now != total)
			printf("total %zu, %zu pieces\n", now, allocate_all());
		total = now;
		usleep(200000);
	}
}
