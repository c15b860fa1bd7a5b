/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative groups, atomics of the C++ library, asynchronous copies. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cuda_pipeline.h>

namespace cg = cooperative_groups;

__global__ void groups(int *p, float *q)
{
	auto block = cg::this_thread_block();
	auto tile = cg::tiled_partition<16>(block);
	auto together = cg::coalesced_threads();
	int sum = cg::reduce(tile, p[block.thread_rank()], cg::plus<int>());
	float most = cg::reduce(tile, q[0], cg::greater<float>());

	if (together.thread_rank() == 0)
		p[0] = sum;
	cg::this_grid().sync();
	q[1] = most + cg::inclusive_scan(tile, q[2]);
	p[1] = cg::labeled_partition(together, sum & 3).size();
	p[2] = cg::reduce(cg::binary_partition(tile, sum & 1), sum, cg::bit_xor<int>());
}

__global__ void atomics(cuda::atomic<int, cuda::thread_scope_device> *a, cuda::atomic<float> *f,
			cuda::atomic<unsigned long long, cuda::thread_scope_system> *b)
{
	int expected = 3;

	a->fetch_add(1, cuda::memory_order_relaxed);
	b->fetch_max(5, cuda::memory_order_acq_rel);
	a->compare_exchange_strong(expected, 4);
	a->store(5, cuda::memory_order_release);
	b->store(a->load(cuda::memory_order_acquire));
	f->fetch_add(1.f);
	a->wait(5);
	a->notify_all();
	cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_block);
}

__global__ void waits(cuda::counting_semaphore<cuda::thread_scope_device> *s,
		      cuda::latch<cuda::thread_scope_device> *l)
{
	s->acquire();
	s->release();
	l->arrive_and_wait();
}

__global__ void copies(const int4 *from, int4 *to)
{
	__shared__ int4 tile[64];

	__pipeline_memcpy_async(&tile[threadIdx.x], &from[threadIdx.x], sizeof(int4));
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncthreads();
	to[threadIdx.x] = tile[63 - threadIdx.x];
}
