/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: how their parameters are packed, and their launches. */
#ifndef FORWARD_HOST_LAUNCH_H
#define FORWARD_HOST_LAUNCH_H

#include "forward/host/command.h"

/**
 * struct launch_taken - a launch of the guest, looked through
 * @function, @stream: objects
 */
struct launch_taken {
	const struct wire_launch *head;
	const void *parameters;
	uint64_t function;
	uint64_t stream;
};

/** launch_take() - its head and parameters; what is wrong with them is the result */
CUresult launch_take(struct reader *reader, struct launch_taken *ret);

CUresult launch_kernel(struct command *command);

/** launch_parameters() - WIRE_PARAMETERS: the layout, CUDA_ERROR_NOT_SUPPORTED where nothing tells it */
CUresult launch_parameters(struct command *command);

/** launch_size() - bytes of the packed parameters of the function, or kernel, of a name */
CUresult launch_size(uint64_t name, uint32_t *ret);

/** launch_pack() - write the values that parameters point at as a launch has them, into @size bytes */
CUresult launch_pack(uint64_t name, void *const *parameters, void *to, size_t size);

#endif
