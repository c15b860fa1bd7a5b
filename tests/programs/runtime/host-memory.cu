// SPDX-License-Identifier: Apache-2.0
// Pinned, mapped, registered and managed memory, written by both sides.
#include "check.h"

__global__ void twice(int *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= 2;
}

int main()
{
	const int n = 5000;
	int *pinned, *mapped, *managed, *device;
	std::vector<int> registered(n, 3);
	unsigned flags;

	CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
	CHECK(cudaHostAlloc(&mapped, n * sizeof(int), cudaHostAllocMapped));
	CHECK(cudaMallocManaged(&managed, n * sizeof(int)));
	for (int i = 0; i < n; i++)
		pinned[i] = mapped[i] = managed[i] = i;
	CHECK(cudaHostGetDevicePointer(&device, mapped, 0));
	twice<<<(n + 127) / 128, 128>>>(device, n);
	twice<<<(n + 127) / 128, 128>>>(managed, n);
	CHECK(cudaHostRegister(registered.data(), n * sizeof(int), cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer(&device, registered.data(), 0));
	twice<<<(n + 127) / 128, 128>>>(device, n);
#if CUDART_VERSION >= 13000
	cudaMemLocation where = {};
	where.type = cudaMemLocationTypeDevice;
	CHECK(cudaMemPrefetchAsync(managed, n * sizeof(int), where, 0, 0));
#else
	CHECK(cudaMemPrefetchAsync(managed, n * sizeof(int), 0, 0));
#endif
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < n; i++)
		EXPECT(pinned[i] == i && mapped[i] == 2 * i && managed[i] == 2 * i && registered[i] == 6);
	CHECK(cudaHostGetFlags(&flags, pinned));
	CHECK(cudaHostUnregister(registered.data()));
	EXPECT(cudaHostUnregister(registered.data()) != cudaSuccess);
	cudaGetLastError();
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeHost(mapped));
	CHECK(cudaFree(managed));
	printf("host memory right\n");
	return 0;
}
