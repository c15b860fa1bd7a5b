// SPDX-License-Identifier: Apache-2.0
/* Contexts: the newer forms of their making, which are the older one where they wish for nothing more. */
#include "forward/guest/call.h"

static CUresult create(CUcontext *ret, unsigned flags, CUdevice device)
{
	return CALL_WORDS(CALL_ID_cuCtxCreate_v2, POINTER(ret), flags, device);
}

CALL(cuCtxCreate_v3, CUcontext *ret, _unused_ CUexecAffinityParam *params, int n, unsigned flags,
     CUdevice device)
{
	return n ? CUDA_ERROR_NOT_SUPPORTED : create(ret, flags, device);
}

CALL(cuCtxCreate_v4, CUcontext *ret, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CUDA_ERROR_NOT_SUPPORTED;
	return create(ret, flags, device);
}
