// SPDX-License-Identifier: Apache-2.0
/* What differs with the version of the library; compiled for each with RUNTIME_VERSION. */
#include "softgpu/cudart/runtime.h"

RUNTIME_CALL(cudaRuntimeGetVersion, int *version)
{
	if (!version)
		return failed(cudaErrorInvalidValue);
	*version = RUNTIME_VERSION;
	return cudaSuccess;
}

cudaError_t impl_cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version,
						  unsigned long long flags, int *result);
cudaError_t impl_cudaGetDriverEntryPointByVersion_ptsz(const char *name, void **entry,
						       unsigned version, unsigned long long flags,
						       int *result);

RUNTIME_CALL(cudaGetDriverEntryPoint, const char *name, void **entry, unsigned long long flags,
	     int *result)
{
	return impl_cudaGetDriverEntryPointByVersion(name, entry, RUNTIME_VERSION, flags, result);
}

RUNTIME_CALL(cudaGetDriverEntryPoint_ptsz, const char *name, void **entry, unsigned long long flags,
	     int *result)
{
	return impl_cudaGetDriverEntryPointByVersion_ptsz(name, entry, RUNTIME_VERSION, flags,
							  result);
}
