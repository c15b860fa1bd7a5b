/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's form of the runtime's copies, for calls that do not copy at once. */
#pragma once

#include "softgpu/cudart/runtime.h"

/** copy_of_parms() - the driver's form of a copy; else the thread's last error */
cudaError_t copy_of_parms(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *ret);

/** parms_of_copy() - what copy_of_parms() was given */
struct cudaMemcpy3DParms parms_of_copy(const CUDA_MEMCPY3D *copy);

/** variable_part() - where a part of a registered variable is; an error if it is not inside */
cudaError_t variable_part(const void *symbol, size_t size_bytes, size_t offset, CUdeviceptr *ret);
