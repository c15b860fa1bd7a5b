// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory from the default pool and from one of the program's own.
#include "check.h"

__global__ void fill(int *x, int value)
{
	x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

int main()
{
	cudaMemPoolProps props = {};
	cudaMemPool_t pool, default_pool;
	cudaStream_t stream;
	unsigned long long keep = ~0ull, reserved = 0, used = 0;
	int *x, *y;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaDeviceGetDefaultMemPool(&default_pool, 0));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = 0;
	CHECK(cudaMemPoolCreate(&pool, &props));
	CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
	CHECK(cudaMallocFromPoolAsync(&x, 1 << 20, pool, stream));
	fill<<<4, 256, 0, stream>>>(x, 11);
	CHECK(cudaMallocAsync(&y, 4096, stream));
	fill<<<4, 256, 0, stream>>>(y, 12);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(to_host(x, 1024)[1023] == 11 && to_host(y, 1024)[0] == 12);
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	EXPECT(used >= 1 << 20);
	CHECK(cudaFreeAsync(x, stream));
	CHECK(cudaFreeAsync(y, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	EXPECT(used == 0 && reserved >= 1 << 20);
	CHECK(cudaMemPoolTrimTo(pool, 0));
	CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	EXPECT(reserved == 0);
	CHECK(cudaMemPoolDestroy(pool));
	printf("pools right\n");
	return 0;
}
