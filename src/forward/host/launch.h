/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: how their parameters are packed, and their launches. */
#ifndef FORWARD_HOST_LAUNCH_H
#define FORWARD_HOST_LAUNCH_H

#include "forward/host/command.h"

CUresult launch_kernel(struct command *command);

/** launch_parameters() - WIRE_PARAMETERS: the layout, CUDA_ERROR_NOT_SUPPORTED where nothing tells it */
CUresult launch_parameters(struct command *command);

#endif
