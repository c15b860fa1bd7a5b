// SPDX-License-Identifier: Apache-2.0
/*
 * hold: has memory of the device's and of its own shared with it, and goes on copying between the two, until it
 * is killed or the device is lost; then it says which result that was and how long the call took.
 */
#include "../programs/program.h"

#include <time.h>
#include <unistd.h>

#define SIZE (4UL << 20)

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static CUresult copy(CUdeviceptr device, unsigned char *host, unsigned round)
{
	CUresult r;

	memset(host, (int)round, SIZE / 2);
	r = cuMemcpyHtoD(device, host, SIZE / 2);
	if (r == CUDA_SUCCESS)
		r = cuMemcpyDtoH(host + SIZE / 2, device, SIZE / 2);
	if (r == CUDA_SUCCESS)
		EXPECT(memcmp(host, host + SIZE / 2, SIZE / 2) == 0);
	return r;
}

int main(void)
{
	size_t free_bytes, total;
	unsigned char *host;
	const char *name = "?";
	CUdeviceptr device;
	unsigned round = 0;
	CUresult r;
	double start;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cuInit(0));
	context_on(0);
	CHECK(cuMemHostAlloc((void **)&host, SIZE, 0));
	CHECK(cuMemAlloc(&device, SIZE));
	CHECK(cuMemGetInfo(&free_bytes, &total));
	printf("ready: %zu of %zu bytes free\n", free_bytes, total);
	do {
		start = now_s();
		r = copy(device, host, round);
		if (++round % 16 == 0 && r == CUDA_SUCCESS)
			printf("round %u\n", round);
		if (r == CUDA_SUCCESS)
			usleep(100000);
	} while (r == CUDA_SUCCESS);
	cuGetErrorName(r, &name);
	printf("lost: %s after %.0f ms\n", name, 1000 * (now_s() - start));
	return 3;
}
