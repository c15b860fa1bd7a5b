// SPDX-License-Identifier: Apache-2.0
// Devices, their properties and limits, per thread; peers; occupancy and attributes; reset.
#include <cstring>
#include <thread>
#include "check.h"

__global__ void fill(int *x, int value)
{
	x[threadIdx.x] = value;
}

int main()
{
	cudaFuncAttributes attributes;
	cudaPointerAttributes pointer;
	cudaDeviceProp prop;
	int n = 0, device = -1, sms = 0, blocks = 0, version = 0, can = 0, *x;
	size_t free_bytes, total_bytes;

	CHECK(cudaGetDeviceCount(&n));
	EXPECT(n == 2);
	CHECK(cudaGetDeviceProperties(&prop, 1));
	CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 1));
	EXPECT(prop.multiProcessorCount == sms && prop.warpSize == 32 && strlen(prop.name) > 0);
	CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
	EXPECT(prop.totalGlobalMem == total_bytes && free_bytes < total_bytes);
	CHECK(cudaRuntimeGetVersion(&version));
	EXPECT(version / 1000 == CUDART_VERSION / 1000);

	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&x, 64 * sizeof(int)));
	CHECK(cudaPointerGetAttributes(&pointer, x));
	EXPECT(pointer.type == cudaMemoryTypeDevice && pointer.device == 1);
	std::thread([] {
		int mine = -1;

		CHECK(cudaGetDevice(&mine));
		EXPECT(mine == 0);
	}).join();
	CHECK(cudaGetDevice(&device));
	EXPECT(device == 1);
	fill<<<1, 64>>>(x, 7);
	EXPECT(to_host(x, 64)[63] == 7);

	CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
	CHECK(cudaFuncGetAttributes(&attributes, fill));
	EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, fill, 64, 0));
	EXPECT(blocks >= 1);
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaSetDevice(2));
	EXPECT_ERROR(cudaErrorMemoryAllocation, cudaMalloc(&x, total_bytes + 1));

	CHECK(cudaDeviceReset());
	CHECK(cudaMalloc(&x, 64 * sizeof(int)));
	fill<<<1, 64>>>(x, 8);
	EXPECT(to_host(x, 64)[1] == 8);
	printf("devices right\n");
	return 0;
}
