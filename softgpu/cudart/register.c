// SPDX-License-Identifier: Apache-2.0
/*
 * What the compiler registers before main(): fat binaries, and in each its kernels and
 * variables, known by the address of the host function or variable.
 *
 * A fat binary is loaded when the first of its kernels or variables is needed, as a library
 * of the driver, which serves every context. Registering only notes; it neither calls the
 * driver nor allocates device memory, so a program that never uses a device pays nothing.
 * The hard one is a managed variable: the host reads a pointer to it, which must be set
 * before; code that may do so calls __cudaInitModule() first.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/cudart/runtime.h"

#define N_BUCKETS 1024

struct fatbin {
	const void *wrapper;
	CUlibrary library; /* NULL until loaded */
	CUresult refused;  /* what was said of code that can never run where it was first wanted */
	struct symbol *managed; /* linked by next_managed */
	bool managed_ready;
};

struct symbol {
	struct symbol *next, *next_managed;
	struct fatbin *fatbin;
	const void *host;
	const char *device_name;
	void **managed_pointer; /* the host's pointer to a managed variable */
	CUkernel kernel;	/* NULL until asked for */
	bool is_kernel;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *buckets[N_BUCKETS]; /* guarded by lock */

static struct symbol **bucket_of(const void *host)
{
	return &buckets[((uintptr_t)host >> 4) % N_BUCKETS];
}

static struct symbol *symbol_find(const void *host, bool is_kernel)
{
	struct symbol *symbol = *bucket_of(host);

	while (symbol && (symbol->host != host || symbol->is_kernel != is_kernel))
		symbol = symbol->next;
	return symbol;
}

static struct symbol *symbol_add(void **handle, const void *host, const char *device_name,
				 bool is_kernel)
{
	struct symbol **bucket = bucket_of(host), *symbol = calloc(1, sizeof(*symbol));

	if (!symbol)
		return NULL;
	symbol->fatbin = (struct fatbin *)handle;
	symbol->host = host;
	symbol->device_name = device_name;
	symbol->is_kernel = is_kernel;
	pthread_mutex_lock(&lock);
	symbol->next = *bucket;
	*bucket = symbol;
	pthread_mutex_unlock(&lock);
	return symbol;
}

/* These lie in the code itself; what else may fail, memory say, may do better another time. */
static bool is_refusal(CUresult result)
{
	return result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
	       result == CUDA_ERROR_INVALID_IMAGE;
}

/*
 * Called with the lock held. Code that was refused is not read again: a program that ignores
 * its errors would pay for that, and be told of it, at each of its launches.
 */
static CUresult fatbin_load(struct fatbin *fatbin)
{
	CUresult r;

	if (fatbin->library || fatbin->refused)
		return fatbin->refused;
	r = driver.cuLibraryLoadData(&fatbin->library, fatbin->wrapper, NULL, NULL, 0, NULL, NULL,
				     0);
	if (is_refusal(r))
		fatbin->refused = r;
	return r;
}

/* What nobody registered, and what is not in its image, is no function of the device. */
static cudaError_t told_function(CUresult result)
{
	if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_NOT_FOUND)
		return failed(cudaErrorInvalidDeviceFunction);
	return told(result);
}

cudaError_t symbol_kernel(const void *host_function, CUfunction *ret)
{
	struct symbol *symbol;
	CUresult r = CUDA_SUCCESS;
	int n_threads;

	pthread_mutex_lock(&lock);
	symbol = symbol_find(host_function, /* is_kernel= */ true);
	if (symbol && !symbol->kernel) {
		r = fatbin_load(symbol->fatbin);
		if (!r)
			r = driver.cuLibraryGetKernel(&symbol->kernel, symbol->fatbin->library,
						      symbol->device_name);
	}
	pthread_mutex_unlock(&lock);

	/* Not registered: a handle of the driver, which knows whether it is one. */
	if (!symbol)
		r = driver.cuFuncGetAttribute(&n_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
					      (CUfunction)host_function);
	if (r)
		return told_function(r);
	*ret = symbol ? (CUfunction)symbol->kernel : (CUfunction)host_function;
	return cudaSuccess;
}

cudaError_t symbol_function(const void *host_function, CUfunction *ret)
{
	CUfunction kernel;
	cudaError_t error = in_context() ?: symbol_kernel(host_function, &kernel);

	return error ?: told_function(driver.cuKernelGetFunction(ret, (CUkernel)kernel));
}

const void *symbol_of_function(CUfunction function)
{
	const void *found = function;
	CUfunction of_kernel;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < N_BUCKETS; i++)
		for (struct symbol *symbol = buckets[i]; symbol; symbol = symbol->next)
			if (symbol->kernel &&
			    !driver.cuKernelGetFunction(&of_kernel, symbol->kernel) &&
			    of_kernel == function)
				found = symbol->host;
	pthread_mutex_unlock(&lock);
	return found;
}

cudaError_t symbol_variable(const void *host_variable, CUdeviceptr *ret, size_t *ret_size_bytes)
{
	struct symbol *symbol;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	pthread_mutex_lock(&lock);
	symbol = symbol_find(host_variable, /* is_kernel= */ false);
	if (symbol) {
		r = fatbin_load(symbol->fatbin);
		if (!r && symbol->managed_pointer)
			r = driver.cuLibraryGetManaged(ret, ret_size_bytes, symbol->fatbin->library,
						       symbol->device_name);
		else if (!r)
			r = driver.cuLibraryGetGlobal(ret, ret_size_bytes, symbol->fatbin->library,
						      symbol->device_name);
	}
	pthread_mutex_unlock(&lock);
	return r == CUDA_ERROR_NOT_FOUND ? failed(cudaErrorInvalidSymbol) : told(r);
}

void **impl___cudaRegisterFatBinary(void *wrapper);
void **impl___cudaRegisterFatBinary(void *wrapper)
{
	struct fatbin *fatbin = calloc(1, sizeof(*fatbin));

	if (fatbin)
		fatbin->wrapper = wrapper;
	return (void **)fatbin;
}

void impl___cudaRegisterFatBinaryEnd(void **handle);
void impl___cudaRegisterFatBinaryEnd(_unused_ void **handle)
{
}

static void fatbin_forget(struct fatbin *fatbin)
{
	for (size_t i = 0; i < N_BUCKETS; i++) {
		for (struct symbol **at = &buckets[i]; *at;) {
			struct symbol *symbol = *at;

			if (symbol->fatbin != fatbin) {
				at = &symbol->next;
				continue;
			}
			*at = symbol->next;
			free(symbol);
		}
	}
}

void impl___cudaUnregisterFatBinary(void **handle);
void impl___cudaUnregisterFatBinary(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;

	if (!fatbin)
		return;
	pthread_mutex_lock(&lock);
	fatbin_forget(fatbin);
	pthread_mutex_unlock(&lock);
	if (fatbin->library)
		driver.cuLibraryUnload(fatbin->library);
	free(fatbin);
}

void impl___cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
				 const char *device_name, int thread_limit, void *tid, void *bid,
				 void *block, void *grid, int *warp_size);
void impl___cudaRegisterFunction(void **handle, const char *host_function,
				 _unused_ char *device_function, const char *device_name,
				 _unused_ int thread_limit, _unused_ void *tid, _unused_ void *bid,
				 _unused_ void *block, _unused_ void *grid, _unused_ int *warp_size)
{
	symbol_add(handle, host_function, device_name, /* is_kernel= */ true);
}

void impl___cudaRegisterVar(void **handle, char *host_variable, char *device_address,
			    const char *device_name, int is_extern, size_t size_bytes,
			    int is_constant, int is_global);
void impl___cudaRegisterVar(void **handle, char *host_variable, _unused_ char *device_address,
			    const char *device_name, _unused_ int is_extern,
			    _unused_ size_t size_bytes, _unused_ int is_constant,
			    _unused_ int is_global)
{
	symbol_add(handle, host_variable, device_name, /* is_kernel= */ false);
}

void impl___cudaRegisterManagedVar(void **handle, void **host_pointer, char *device_address,
				   const char *device_name, int is_extern, size_t size_bytes,
				   int is_constant, int is_global);
void impl___cudaRegisterManagedVar(void **handle, void **host_pointer,
				   _unused_ char *device_address, const char *device_name,
				   _unused_ int is_extern, _unused_ size_t size_bytes,
				   _unused_ int is_constant, _unused_ int is_global)
{
	struct symbol *symbol =
		symbol_add(handle, host_pointer, device_name, /* is_kernel= */ false);

	if (!symbol)
		return;
	symbol->managed_pointer = host_pointer;
	symbol->next_managed = symbol->fatbin->managed;
	symbol->fatbin->managed = symbol;
}

char impl___cudaInitModule(void **handle);
char impl___cudaInitModule(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;
	CUdeviceptr address;
	size_t size_bytes;

	if (fatbin->managed_ready || in_context())
		return fatbin->managed_ready;
	for (struct symbol *symbol = fatbin->managed; symbol; symbol = symbol->next_managed) {
		if (symbol_variable(symbol->host, &address, &size_bytes))
			return 0;
		*symbol->managed_pointer = (void *)address;
	}
	fatbin->managed_ready = true;
	return 1;
}

RUNTIME_CALL(cudaGetSymbolAddress, void **ret, const void *symbol)
{
	CUdeviceptr address;
	size_t size_bytes;
	cudaError_t error;

	if (!ret)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: symbol_variable(symbol, &address, &size_bytes);
	if (!error)
		*ret = (void *)address;
	return error;
}

RUNTIME_CALL(cudaGetSymbolSize, size_t *ret, const void *symbol)
{
	CUdeviceptr address;
	size_t size_bytes;
	cudaError_t error;

	if (!ret)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: symbol_variable(symbol, &address, &size_bytes);
	if (!error)
		*ret = size_bytes;
	return error;
}

RUNTIME_CALL(cudaGetFuncBySymbol, CUfunction *ret, const void *symbol)
{
	return ret ? symbol_function(symbol, ret) : failed(cudaErrorInvalidValue);
}

RUNTIME_CALL(cudaGetKernel, CUfunction *ret, const void *symbol)
{
	if (!ret)
		return failed(cudaErrorInvalidValue);
	return in_context() ?: symbol_kernel(symbol, ret);
}

/*
 * The compiler's code asks once for each kernel, ignores an error, and launches what it got
 * ever after. So this promises only: the host function is looked up by each launch, which
 * then says why there is no kernel, and finds it anew after a reset of the device.
 */
RUNTIME_CALL(__cudaGetKernel, CUfunction *ret, const void *symbol)
{
	*ret = (CUfunction)symbol;
	return cudaSuccess;
}
