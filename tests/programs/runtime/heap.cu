// SPDX-License-Identifier: Apache-2.0
// malloc() and new in kernels: a heap as large as the limit says, charged to the device, empty at its end.
#include <unistd.h>

#include "check.h"

struct node {
	int value;
	node *next;
};

// Each thread builds a list; another kernel adds it up and gives it back.
__global__ void build(node **lists, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	node *list = nullptr;

	for (int k = 0; k < n; k++) {
		node *one = new node;

		one->value = i + k;
		one->next = list;
		list = one;
	}
	lists[i] = list;
}

__global__ void add_up(node **lists, int *sums)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;

	for (node *one = lists[i], *next; one; one = next) {
		next = one->next;
		sum += one->value;
		delete one;
	}
	sums[i] = sum;
}

// How many pieces there are, until malloc() finds none; then all go back.
__global__ void fill(char **pieces, int most, size_t size, int *count)
{
	int n = 0;

	while (n < most && (pieces[n] = static_cast<char *>(malloc(size)))) {
		pieces[n][size - 1] = 1;
		n++;
	}
	*count = n;
	for (int i = 0; i < n; i++)
		free(pieces[i]);
	free(nullptr);
}

int main()
{
	const size_t heap = 4 << 20;
	size_t before, after, total, limit;

	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, heap));
	CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
	EXPECT(limit >= heap);
	CHECK(cudaMemGetInfo(&before, &total));
	node **lists = to_device(std::vector<node *>(256));
	int *sums = to_device(std::vector<int>(256)), *count = to_device(std::vector<int>(1));
	char **pieces = to_device(std::vector<char *>(10000));

	build<<<4, 64>>>(lists, 10);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemGetInfo(&after, &total));
	// A tenant's own numbers have what no argument tells when the books are settled.
	for (int i = 0; i < 6000 && before - after < heap; i++) {
		usleep(10000);
		CHECK(cudaMemGetInfo(&after, &total));
	}
	EXPECT(before - after >= heap);
	add_up<<<4, 64>>>(lists, sums);
	std::vector<int> got = to_host(sums, 256);
	for (int i = 0; i < 256; i++)
		EXPECT(got[i] == 10 * i + 45);
	for (int again = 0; again < 3; again++) {
		fill<<<1, 1>>>(pieces, 10000, 1024, count);
		// The first piece need not lie at the heap's start, and then one less fits.
		int n = to_host(count, 1)[0];
		EXPECT(n == int(limit / 1024) || n == int(limit / 1024) - 1);
	}
	fill<<<1, 1>>>(pieces, 2, limit + 1, count);
	EXPECT(to_host(count, 1)[0] == 0);
	EXPECT(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * heap) == cudaErrorInvalidValue);
	printf("heap right\n");
	return 0;
}
