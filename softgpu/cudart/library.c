// SPDX-License-Identifier: Apache-2.0
/* Libraries loaded by hand, and the driver's own entry points. */
#include <dlfcn.h>

#include "softgpu/cudart/runtime.h"

RUNTIME_CALL(cudaLibraryLoadData, CUlibrary *library, const void *code, CUjit_option *jit_options,
	     void **jit_values, unsigned n_jit, CUlibraryOption *options, void **values, unsigned n)
{
	return in_context()
		       ?: told(driver.cuLibraryLoadData(library, code, jit_options, jit_values,
							n_jit, options, values, n));
}

RUNTIME_CALL(cudaLibraryLoadFromFile, CUlibrary *library, const char *path,
	     CUjit_option *jit_options, void **jit_values, unsigned n_jit, CUlibraryOption *options,
	     void **values, unsigned n)
{
	return in_context()
		       ?: told(driver.cuLibraryLoadFromFile(library, path, jit_options, jit_values,
							    n_jit, options, values, n));
}

PASSED_ON_AS(told_value, cudaLibraryUnload, cuLibraryUnload, (CUlibrary library), (library))

RUNTIME_CALL(cudaLibraryGetKernel, CUkernel *kernel, CUlibrary library, const char *name)
{
	return in_context() ?: told(driver.cuLibraryGetKernel(kernel, library, name));
}

RUNTIME_CALL(cudaLibraryGetKernelCount, unsigned *n, CUlibrary library)
{
	return in_context() ?: told(driver.cuLibraryGetKernelCount(n, library));
}

RUNTIME_CALL(cudaLibraryEnumerateKernels, CUkernel *kernels, unsigned n, CUlibrary library)
{
	return in_context() ?: told(driver.cuLibraryEnumerateKernels(kernels, n, library));
}

RUNTIME_CALL(cudaLibraryGetGlobal, void **ptr, size_t *size_bytes, CUlibrary library,
	     const char *name)
{
	return in_context()
		       ?: told(driver.cuLibraryGetGlobal((CUdeviceptr *)ptr, size_bytes, library,
							 name));
}

RUNTIME_CALL(cudaLibraryGetManaged, void **ptr, size_t *size_bytes, CUlibrary library,
	     const char *name)
{
	return in_context()
		       ?: told(driver.cuLibraryGetManaged((CUdeviceptr *)ptr, size_bytes, library,
							  name));
}

RUNTIME_CALL(cudaKernelSetAttributeForDevice, CUkernel kernel, CUfunction_attribute attribute,
	     int value, int device)
{
	return in_context() ?: told(driver.cuKernelSetAttribute(attribute, value, kernel, device));
}

/**
 * cudaGetDriverEntryPointByVersion() - an entry point of the driver
 * @result:	may be NULL; 0 found, 1 there is none, 2 it came with a newer version
 */
RUNTIME_CALL(cudaGetDriverEntryPointByVersion, const char *name, void **entry, unsigned version,
	     unsigned long long flags, int *result)
{
	CUresult (*get_proc)(const char *, void **, int, cuuint64_t, int *);
	void *library;
	cudaError_t error = runtime_ready();

	if (error)
		return error;
	if (!name || !entry)
		return failed(cudaErrorInvalidValue);
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	get_proc = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	if (!get_proc)
		return failed(cudaErrorInsufficientDriver);
	error = (cudaError_t)get_proc(name, entry, (int)version, flags, result);
	/* A name that is not there is told by @result, or by a NULL entry. */
	return error == cudaErrorSymbolNotFound && result ? cudaSuccess : told((CUresult)error);
}

/* Without a wish (flags 0) it is the forms for which a NULL stream is the thread's own. */
RUNTIME_CALL(cudaGetDriverEntryPointByVersion_ptsz, const char *name, void **entry,
	     unsigned version, unsigned long long flags, int *result)
{
	return impl_cudaGetDriverEntryPointByVersion(
		name, entry, version, flags ?: CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
		result);
}
