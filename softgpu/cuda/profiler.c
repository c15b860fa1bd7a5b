// SPDX-License-Identifier: Apache-2.0
/*
 * Start and stop of profiling: hints to a profiler that is attached. None ever is, and then the
 * calls have nothing to do.
 */
#include "softgpu/cuda/core.h"

CALL(cuProfilerStart, void)
{

	return context_need();
}

CALL(cuProfilerStop, void)
{

	return context_need();
}
