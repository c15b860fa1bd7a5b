// SPDX-License-Identifier: Apache-2.0
/* Compiled once for each library, with -DVARIANT_... by the build. */
#include "src/cuda/calls.h"
#include "softgpu/cuda/variant.h"

#ifndef VARIANT_DRIVERS
#define VARIANT_DRIVERS	     DRIVERS_ALL
#define VARIANT_CUDA_VERSION 0
#endif

const struct variant variant = {
	.drivers = VARIANT_DRIVERS,
	.cuda_version = VARIANT_CUDA_VERSION,
};
