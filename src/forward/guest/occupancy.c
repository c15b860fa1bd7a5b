// SPDX-License-Identifier: Apache-2.0
/* The block size of most threads at once: the program's own function says how much shared memory one needs. */
#include "forward/guest/call.h"

static CUresult attribute_of(CUfunction function, CUfunction_attribute attribute, int *ret)
{
	return CALL_WORDS(CALL_ID_cuFuncGetAttribute, POINTER(ret), attribute, POINTER(function));
}

static CUresult device_value(CUdevice_attribute attribute, int *ret)
{
	CUdevice device;
	CUresult r = CALL_WORDS(CALL_ID_cuCtxGetDevice, POINTER(&device));

	return r == CUDA_SUCCESS
		       ? CALL_WORDS(CALL_ID_cuDeviceGetAttribute, POINTER(ret), attribute, device)
		       : r;
}

struct best {
	int threads, blocks, size;
};

static CUresult try_size(CUfunction function, int size, size_t shared, unsigned flags,
			 struct best *best)
{
	int blocks = 0;
	CUresult r;

	r = CALL_WORDS(CALL_ID_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
		       POINTER(&blocks), POINTER(function), size, shared, flags);
	if (r == CUDA_SUCCESS && blocks * size > best->threads)
		*best = (struct best){ blocks * size, blocks, size };
	return r;
}

CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, int *ret_grid, int *ret_block, CUfunction function,
     CUoccupancyB2DSize shared_of, size_t shared, int limit, unsigned flags)
{
	struct best best = { 0 };
	int most, size, warp, n_multiprocessors;
	CUresult r;

	if (!ret_grid || !ret_block || !function)
		return session_check() == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : session_check();
	r = attribute_of(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most);
	if (r == CUDA_SUCCESS)
		r = device_value(CU_DEVICE_ATTRIBUTE_WARP_SIZE, &warp);
	if (r == CUDA_SUCCESS)
		r = device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &n_multiprocessors);
	if (r != CUDA_SUCCESS)
		return r;
	if (limit > 0 && limit < most)
		most = limit;
	/* From the largest down; of equal ones the largest stays. */
	for (size = (most + warp - 1) / warp * warp; size > 0 && r == CUDA_SUCCESS; size -= warp) {
		int threads = size < most ? size : most;

		r = try_size(function, threads, shared_of ? shared_of(threads) : shared, flags,
			     &best);
	}
	*ret_grid = best.blocks * n_multiprocessors;
	*ret_block = best.size;
	return r;
}

CALL(cuOccupancyMaxPotentialBlockSize, int *ret_grid, int *ret_block, CUfunction function,
     CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(ret_grid, ret_block, function, shared_of,
							 shared, limit, CU_OCCUPANCY_DEFAULT);
}
