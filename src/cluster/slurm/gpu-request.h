/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job asks for by the options that Cotenant adds to sbatch, srun and salloc.
 *
 *	--gpu-mem=4096			4096 MiB of one device
 *	--gpu-mem=4G:max=6G		4 GiB, and never more than 6
 *	--gpu-compute=30		at most 30 % of the device's time
 *	--gpu-policy=suspend-evict	what is done when it holds more than it asked for
 *
 * Numbers without a unit are MiB, as elsewhere in Slurm.
 */
#ifndef SLURM_GPU_REQUEST_H
#define SLURM_GPU_REQUEST_H

#include "base/base.h"
#include "tenant/ladder.h"

#include <stdbool.h>

#define GPU_REQUEST_REASON 200
#define MIB		   (1ULL << 20)

/**
 * struct gpu_request - all of it; begins as zeros
 * @low_mib:		what is booked and guaranteed; 0 where nothing was asked for
 * @max_bytes:		what is never exceeded; 0 for no such limit
 * @compute_permille:	of the device's time; 0 for no limit
 */
struct gpu_request {
	uint64_t low_mib;
	uint64_t max_bytes;
	uint32_t compute_permille;
	bool has_policy;
	struct ladder policy;
};

/**
 * gpu_request_memory() - read the value of --gpu-mem
 * @reason:	filled in on -EINVAL
 *
 * A request is rounded up to a whole MiB.
 *
 * Return: 0; -EINVAL, and then @request is untouched.
 */
int gpu_request_memory(const char *text, struct gpu_request *request,
		       char reason[GPU_REQUEST_REASON]);

/**
 * gpu_request_compute() - read the value of --gpu-compute
 */
int gpu_request_compute(const char *text, struct gpu_request *request,
			char reason[GPU_REQUEST_REASON]);

/**
 * gpu_request_policy() - read the value of --gpu-policy
 */
int gpu_request_policy(const char *text, struct gpu_request *request,
		       char reason[GPU_REQUEST_REASON]);

/* --- what of it Slurm has no place for --- */

#define COMPUTE_NOTE_SIZE 32

/**
 * gpu_request_note_compute() - "cotenant-compute:300", for the administrator's comment of a job
 */
void gpu_request_note_compute(uint32_t permille, char ret[COMPUTE_NOTE_SIZE]);

/**
 * gpu_request_noted_compute() - read that
 * @note:	NULL for none
 *
 * Return: the part of the device's time, 0 where there is no such note.
 */
uint32_t gpu_request_noted_compute(const char *note);

#endif
