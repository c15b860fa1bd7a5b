// SPDX-License-Identifier: Apache-2.0
// Memory of another device: only with leave, which is given and taken once; copies need none.
#include "check.h"

__global__ void add_up(const int *theirs, int *sum)
{
	atomicAdd(sum, theirs[threadIdx.x]);
}

static void leave_is_given_once()
{
	int can = 0;

	CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
	EXPECT(can);
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 0));
	EXPECT(!can);
	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	EXPECT_ERROR(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0));
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(2, 0));
}

static int *on_other_device()
{
	std::vector<int> numbers(64);
	int *theirs;

	for (int i = 0; i < 64; i++)
		numbers[i] = i;
	CHECK(cudaSetDevice(1));
	theirs = to_device(numbers);
	CHECK(cudaSetDevice(0));
	return theirs;
}

static void copies_need_no_leave(int *theirs)
{
	int *here;

	CHECK(cudaMalloc(&here, 64 * sizeof(int)));
	CHECK(cudaMemcpyPeer(here, 0, theirs, 1, 64 * sizeof(int)));
	EXPECT(to_host(here, 64)[63] == 63);
	CHECK(cudaMemset(here, 0, 64 * sizeof(int)));
	CHECK(cudaMemcpyPeerAsync(theirs, 1, here, 0, 32 * sizeof(int)));
	CHECK(cudaMemcpy(here, theirs, 64 * sizeof(int), cudaMemcpyDefault));
	EXPECT(to_host(here, 64)[31] == 0 && to_host(here, 64)[32] == 32);
	CHECK(cudaFree(here));
}

int main()
{
	int *theirs, *sum;

	leave_is_given_once();
	theirs = on_other_device();
	sum = to_device(std::vector<int>(1, 0));
	add_up<<<1, 64>>>(theirs, sum);
	EXPECT(to_host(sum, 1)[0] == 63 * 32);

	CHECK(cudaDeviceDisablePeerAccess(1));
	EXPECT_ERROR(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	copies_need_no_leave(theirs);
	add_up<<<1, 64>>>(theirs, sum);
	EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	printf("peers right\n");
	return 0;
}
