// SPDX-License-Identifier: Apache-2.0
/*
 * Occupancy: how many blocks of a kernel fit a multiprocessor at once.
 *
 * Four things run out: places for blocks, for threads (in warps), shared memory and registers.
 * Worked for a kernel of 32 registers and 256 threads without shared memory on a multiprocessor
 * with 32 places, 2,048 threads and 65,536 registers: 32, 8 and 65,536 / (32 * 256) = 8, so 8.
 */
#include "softgpu/cuda/code/module.h"

#define WARP_THREADS 32

/* Registers are given to warps in lots of this many. */
#define REGISTER_LOT 256

static size_t lots(size_t n, size_t lot)
{
	return (n + lot - 1) / lot * lot;
}

static void least(unsigned int *most, size_t have, size_t need)
{
	if (need > 0 && have / need < *most)
		*most = have / need;
}

unsigned int occupancy_blocks(const struct function *function, unsigned int n_threads,
			      size_t dynamic_shared)
{
	const struct device *device = function->module->ctx->device;
	const struct exec_kernel *kernel = function->kernel;
	size_t n_warps = lots(n_threads, WARP_THREADS) / WARP_THREADS;
	unsigned int most;

	if (n_threads == 0 || n_threads > kernel->max_threads)
		return 0;
	most = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
	least(&most, device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
	      n_warps * WARP_THREADS);
	least(&most,
	      device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
	      kernel->shared_bytes + dynamic_shared +
		      device_attribute(device,
				       CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
	least(&most, device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
	      n_warps * lots(kernel->n_regs * WARP_THREADS, REGISTER_LOT));
	return most;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *ret, CUfunction handle,
     int n_threads, size_t dynamic_shared, unsigned int flags)
{
	struct function *function;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || n_threads <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = occupancy_blocks(function, n_threads, dynamic_shared);
	return CUDA_SUCCESS;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *ret, CUfunction handle, int n_threads,
     size_t dynamic_shared)
{
	return impl_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		ret, handle, n_threads, dynamic_shared, CU_OCCUPANCY_DEFAULT);
}

CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, int *ret_grid, int *ret_block, CUfunction handle,
     CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit, unsigned int flags)
{
	unsigned int n_threads, n_blocks, best = 0, best_threads = 0;
	struct function *function;
	size_t shared;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_grid || !ret_block || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;

	n_threads = function->kernel->max_threads;
	if (limit > 0 && (unsigned int)limit < n_threads)
		n_threads = limit;
	while (n_threads > 0) {
		shared = shared_of ? shared_of(n_threads) : dynamic_shared;
		n_blocks = occupancy_blocks(function, n_threads, shared);
		if (n_blocks * n_threads > best * best_threads) {
			best = n_blocks;
			best_threads = n_threads;
		}
		n_threads = (n_threads - 1) / WARP_THREADS * WARP_THREADS;
	}

	*ret_grid = best * device_attribute(function->module->ctx->device,
					    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	*ret_block = best_threads;
	return CUDA_SUCCESS;
}

CALL(cuOccupancyMaxPotentialBlockSize, int *ret_grid, int *ret_block, CUfunction handle,
     CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit)
{
	return impl_cuOccupancyMaxPotentialBlockSizeWithFlags(ret_grid, ret_block, handle,
							      shared_of, dynamic_shared, limit,
							      CU_OCCUPANCY_DEFAULT);
}

CALL(cuOccupancyAvailableDynamicSMemPerBlock, size_t *ret, CUfunction handle, int n_blocks,
     int n_threads)
{
	const struct device *device;
	struct function *function;
	size_t each, taken;
	CUresult r = function_find(handle, NULL, &function);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || n_blocks <= 0 || n_threads <= 0 ||
	    occupancy_blocks(function, n_threads, 0) < (unsigned int)n_blocks)
		return CUDA_ERROR_INVALID_VALUE;

	device = function->module->ctx->device;
	each = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) /
	       n_blocks;
	taken = function->kernel->shared_bytes +
		device_attribute(device, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
	*ret = each > taken ? each - taken : 0;
	return CUDA_SUCCESS;
}
