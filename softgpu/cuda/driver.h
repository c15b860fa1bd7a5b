/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that bring the driver up; the other parts need core.h alone. */
#pragma once

#include "softgpu/cuda/core.h"

/** driver_configured() - read the configuration, once; false if it cannot be used */
bool driver_configured(void);

/** driver_cuda_version() - what cuDriverGetVersion() tells; works before cuInit() */
int driver_cuda_version(void);

/** context_primary_new() - make a device's primary context, not active yet; NULL: no memory */
struct context *context_primary_new(struct device *device);
