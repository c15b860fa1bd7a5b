/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: the layouts of their parameters. */
#ifndef FORWARD_GUEST_LAUNCH_H
#define FORWARD_GUEST_LAUNCH_H

#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

/**
 * struct layout - how a kernel's parameters are packed
 * @known:	what the host told; CUDA_ERROR_NOT_SUPPORTED where its driver does not tell
 */
struct layout {
	CUresult known;
	uint32_t size;
	uint32_t n;
	struct wire_parameter parameters[];
};

/** layout_get() - of a function or kernel; asked once. Return: NULL where it is no such handle. */
const struct layout *layout_get(uint64_t handle);

/**
 * layout_pack() - write a kernel's parameters one behind another
 * @to:		room for layout->size bytes
 * @parameters, @extra: as a launch has them
 */
CUresult layout_pack(const struct layout *layout, void *const *parameters, void *const *extra,
		     void *to);

#endif
