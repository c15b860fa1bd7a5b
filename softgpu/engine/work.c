// SPDX-License-Identifier: Apache-2.0
#include "softgpu/engine/engine.h"

#define WARP_THREADS	    32
#define WARPS_PER_CYCLE	    4 /* of an SM: one per scheduler */
#define WARP_ISSUE_CYCLES   4 /* a warp's next instruction waits for its last */
#define RESIDENT_WARPS_MAX  64
#define RESIDENT_BLOCKS_MAX 32

/* Warps that an SM has to choose from while the grid lasts. */
static uint64_t resident_warps(uint64_t blocks_per_sm, uint64_t warps_per_block)
{
	uint64_t blocks = blocks_per_sm < RESIDENT_BLOCKS_MAX ? blocks_per_sm : RESIDENT_BLOCKS_MAX;
	uint64_t warps = blocks * warps_per_block;

	return warps < RESIDENT_WARPS_MAX ? warps : RESIDENT_WARPS_MAX;
}

uint64_t engine_work_ns(const struct softgpu_device_config *device, uint64_t n_instructions,
			uint64_t n_blocks, uint32_t n_threads)
{
	uint64_t n_sms = n_blocks < device->n_sms ? n_blocks : device->n_sms;
	uint64_t warps_per_block = (n_threads + WARP_THREADS - 1) / WARP_THREADS;
	double lanes, per_cycle;
	uint64_t warps;

	if (n_instructions == 0 || n_blocks == 0 || n_threads == 0)
		return 0;
	warps = resident_warps((n_blocks + n_sms - 1) / n_sms, warps_per_block);
	/* 16 warps and more keep the four schedulers busy. */
	per_cycle = (double)warps / WARP_ISSUE_CYCLES;
	if (per_cycle > WARPS_PER_CYCLE)
		per_cycle = WARPS_PER_CYCLE;
	lanes = n_threads < WARP_THREADS ? n_threads : WARP_THREADS;
	return (uint64_t)((double)n_instructions * 1e3 /
			  (per_cycle * lanes * (double)n_sms * device->clock_mhz)) +
	       1;
}
