// SPDX-License-Identifier: Apache-2.0
/*
 * The rest of the public names. Definitions in other files win over these weak ones.
 *
 * Programs look names up one by one and give up when one is missing, but go on when it
 * answers that it is not supported.
 */
#include "softgpu/nvml/nvml.h"

/* Arguments do not matter: the caller's convention leaves them to the caller. */
static nvmlReturn_t unsupported(void)
{
	nvmlReturn_t r = nvml_check();

	return r == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : r;
}

#define NVML(name)                                                                                 \
	__attribute__((weak, visibility("default"), alias("unsupported"))) nvmlReturn_t name(void);
#include "src/nvml/nvml.def"
