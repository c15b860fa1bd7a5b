/* SPDX-License-Identifier: Apache-2.0 */
/* CUB's algorithms of a block. */
#include <cub/cub.cuh>

template <int threads, class T> __global__ void block(const T *in, T *out)
{
	typedef cub::BlockLoad<T, threads, 4, cub::BLOCK_LOAD_TRANSPOSE> load;
	typedef cub::BlockRadixSort<T, threads, 4> sort;
	typedef cub::BlockScan<T, threads> scan;
	typedef cub::BlockReduce<T, threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS> reduce;
	__shared__ union {
		typename load::TempStorage load;
		typename sort::TempStorage sort;
		typename scan::TempStorage scan;
		typename reduce::TempStorage reduce;
	} space;
	T items[4], sum;

	load(space.load).Load(in, items);
	__syncthreads();
	sort(space.sort).Sort(items);
	__syncthreads();
	scan(space.scan).InclusiveSum(items, items);
	__syncthreads();
	sum = reduce(space.reduce).Sum(items);
	cub::BlockStore<T, threads, 4, cub::BLOCK_STORE_VECTORIZE>().Store(out, items);
	if (threadIdx.x == 0)
		out[0] = sum;
}

template __global__ void block<128, int>(const int *, int *);
template __global__ void block<64, double>(const double *, double *);
