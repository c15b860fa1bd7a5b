/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in two and three dimensions. */
#ifndef FORWARD_GUEST_COPY3D_H
#define FORWARD_GUEST_COPY3D_H

#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

/**
 * copy3d_adopt() - a copy that the host does later: host memory in it is shared for good
 *
 * Return: CUDA_SUCCESS with *ret complete but for where.
 */
CUresult copy3d_adopt(const CUDA_MEMCPY3D *copy, struct wire_copy *ret);

#endif
