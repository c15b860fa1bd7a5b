/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs and batches have to know of copies and sets, beside their work classes (stream.h). */
#pragma once

#include "softgpu/cuda/stream/stream.h"
#include "src/cuda/cuda_abi.h"

/**
 * copy_check() - can this be copied, as things are now?
 *
 * CUDA_ERROR_INVALID_VALUE for impossible extents and pitches, and memory that is not there;
 * CUDA_ERROR_OUT_OF_MEMORY if the host cannot back what would be written.
 */
CUresult copy_check(const CUDA_MEMCPY3D *copy);

/** set_check() - the same for a set */
CUresult set_check(const CUDA_MEMSET_NODE_PARAMS *set);

/** copy_line() - cuMemcpyAsync(): @bytes from anywhere to anywhere */
CUresult copy_line(CUstream stream, enum stream_default dflt, CUdeviceptr dst, CUdeviceptr src,
		   size_t bytes);

/** copy_volume() - cuMemcpy3DAsync() */
CUresult copy_volume(CUstream stream, enum stream_default dflt, const CUDA_MEMCPY3D *copy);
