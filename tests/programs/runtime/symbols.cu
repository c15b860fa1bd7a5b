// SPDX-License-Identifier: Apache-2.0
// Variables of the device: global, constant, managed; their addresses, sizes and copies.
#include "check.h"

__device__ int table[100];
__constant__ float factor[4];
__managed__ int shared_by_both = 40;
__device__ int counter;

__global__ void use(int *out)
{
	int i = threadIdx.x;

	out[i] = table[i] * (int)factor[i % 4];
	atomicAdd(&counter, 1);
	if (i == 0)
		shared_by_both += 2;
}

__global__ void count()
{
	atomicAdd(&counter, 1);
}

int main()
{
	std::vector<int> host(100);
	const float factors[4] = { 1, 2, 3, 4 };
	int *out = to_device(std::vector<int>(100)), counted = 0;
	size_t bytes;
	void *address;

	for (int i = 0; i < 100; i++)
		host[i] = i;
	EXPECT(shared_by_both == 40);
	CHECK(cudaMemcpyToSymbol(table, host.data(), 400));
	CHECK(cudaMemcpyToSymbol(factor, factors, sizeof(factors)));
	use<<<1, 100>>>(out);
	std::vector<int> result = to_host(out, 100);
	for (int i = 0; i < 100; i++)
		EXPECT(result[i] == i * (i % 4 + 1));
	EXPECT(shared_by_both == 42);

	count<<<3, 64>>>();
	CHECK(cudaMemcpyFromSymbol(&counted, counter, sizeof(counted)));
	EXPECT(counted == 100 + 192);
	CHECK(cudaGetSymbolSize(&bytes, table));
	EXPECT(bytes == 400);
	CHECK(cudaGetSymbolAddress(&address, table));
	CHECK(cudaMemset(address, 0, 400));
	CHECK(cudaMemcpyFromSymbol(host.data(), table, 40, 200));
	EXPECT(host[0] == 0 && host[9] == 0 && host[10] == 10);

	int not_a_symbol;
	EXPECT_ERROR(cudaErrorInvalidSymbol, cudaMemcpyToSymbol(&not_a_symbol, &counted, 4));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, host.data(), 400, 4));
	printf("symbols right\n");
	return 0;
}
