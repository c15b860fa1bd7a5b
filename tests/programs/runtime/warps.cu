// SPDX-License-Identifier: Apache-2.0
// What the threads of a warp and of a block tell each other: shuffles, votes, matches, reductions, atomics of
// every kind and width, barriers that count.
#include <cooperative_groups.h>
#include <cstdint>
#include "check.h"

namespace groups = cooperative_groups;

enum { WARP = 32, BLOCK = 256, BLOCKS = 4, ALL = 0xffffffff };

// Each thread adds up what its own calculation says the others must have told it.
__global__ void told(int *wrong)
{
	int lane = threadIdx.x % WARP, n = 0, parity;
	groups::thread_block_tile<8> tile = groups::tiled_partition<8>(groups::this_thread_block());

	n += __shfl_sync(ALL, lane * 3, 5) != 15;
	n += __shfl_up_sync(ALL, lane, 4) != (lane < 4 ? lane : lane - 4);
	n += __shfl_down_sync(ALL, lane, 4, 16) != (lane % 16 < 12 ? lane + 4 : lane);
	n += __shfl_xor_sync(ALL, (double)lane, 9) != (double)(lane ^ 9);
	n += __ballot_sync(ALL, lane % 3 == 0) != 0x49249249;
	n += __any_sync(ALL, lane == 31) == 0 || __all_sync(ALL, lane < 31) != 0;
	n += __match_any_sync(ALL, lane / 8) != 0xffu << lane / 8 * 8;
	n += __match_all_sync(ALL, 7, &parity) != (unsigned)ALL || !parity;
	n += tile.shfl(lane, 2) != lane / 8 * 8 + 2 || tile.ballot(lane & 1) != 0xaa;
	if (lane % 2)
		n += __activemask() != 0xaaaaaaaa || __shfl_sync(0xaaaaaaaa, lane, 31) != 31;
	n += __syncthreads_count(threadIdx.x < 100) != 100;
	n += __syncthreads_and(threadIdx.x < 100) != 0 || __syncthreads_or(threadIdx.x == 9) == 0;
	atomicAdd(wrong, n);
}

struct cells {
	int sum, largest, smallest, wrapped_up, wrapped_down;
	unsigned all, any, odd, in_block;
	unsigned long long wide, wide_largest, swaps;
	float real;
	double precise;
	unsigned cell_of_cas;
};

__global__ void atomics(cells *c)
{
	__shared__ unsigned of_block;
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned seen = 0, before;

	if (threadIdx.x == 0)
		of_block = 0;
	__syncthreads();
	atomicAdd(&c->sum, i);
	atomicMax(&c->largest, i);
	atomicMin(&c->smallest, -i);
	atomicInc((unsigned *)&c->wrapped_up, 99);
	atomicDec((unsigned *)&c->wrapped_down, 99);
	atomicAnd(&c->all, ~(1u << i % 31));
	atomicOr(&c->any, 1u << i % 31);
	atomicXor(&c->odd, (unsigned)i);
	atomicAdd_block(&of_block, 1);
	atomicAdd_system(&c->wide, 1ull << 32);
	atomicMax(&c->wide_largest, (unsigned long long)i << 33);
	atomicAdd(&c->real, 0.5f);
	atomicAdd(&c->precise, 0.25);
	atomicExch(&c->swaps, ~0ull);
	do {
		before = seen;
		seen = atomicCAS(&c->cell_of_cas, before, before + 3);
	} while (seen != before);
	__syncthreads();
	if (threadIdx.x == 0)
		atomicAdd(&c->in_block, of_block);
}

static void atomics_are_right()
{
	const int n = BLOCK * BLOCKS;
	cells *on_device = to_device(std::vector<cells>(1, cells{ .all = ~0u })), c;
	unsigned odd = 0;

	for (int i = 0; i < n; i++)
		odd ^= (unsigned)i;
	atomics<<<BLOCKS, BLOCK>>>(on_device);
	c = to_host(on_device, 1)[0];
	EXPECT(c.sum == n * (n - 1) / 2 && c.largest == n - 1 && c.smallest == 1 - n);
	EXPECT(c.wrapped_up == n % 100 && c.wrapped_down == (100 - n % 100) % 100);
	EXPECT(c.all == 1u << 31 && c.any == ~(1u << 31) && c.odd == odd);
	EXPECT(c.in_block == (unsigned)n && c.wide == (unsigned long long)n << 32);
	EXPECT(c.wide_largest == (unsigned long long)(n - 1) << 33 && c.swaps == ~0ull);
	EXPECT(c.real == n * 0.5f && c.precise == n * 0.25 && c.cell_of_cas == 3u * n);
}

int main()
{
	int *wrong = to_device(std::vector<int>(1, 0));

	told<<<BLOCKS, BLOCK>>>(wrong);
	EXPECT(to_host(wrong, 1)[0] == 0);
	atomics_are_right();
	printf("warps right\n");
	return 0;
}
