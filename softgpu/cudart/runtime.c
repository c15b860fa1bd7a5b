// SPDX-License-Identifier: Apache-2.0
/* The driver, the thread's device and its context, the thread's last error. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/cudart/runtime.h"

#define MAX_DEVICES 64

struct driver_calls driver;

static struct {
	const char *name;
	int version;
	void **slot;
} const wanted[] = {
#define DRIVER(name, version, ...)	       { #name, version, (void **)&driver.name },
#define DRIVER_FORM(field, name, version, ...) { #name, version, (void **)&driver.field },
#include "softgpu/cudart/driver.def"
#undef DRIVER
#undef DRIVER_FORM
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t start_error;
static int n_devices;

/* Primary contexts of this process; the lock guards the retaining, not the reading. */
static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(CUcontext) primaries[MAX_DEVICES];

static _Thread_local int thread_device;
static _Thread_local cudaError_t last_error;

static CUresult driver_too_old(void)
{
	return (CUresult)cudaErrorCallRequiresNewerDriver;
}

static void start(void)
{
	CUresult (*get_proc)(const char *, void **, int, cuuint64_t, void *);
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult r;

	get_proc = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	if (!get_proc) {
		start_error = cudaErrorInsufficientDriver;
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (get_proc(wanted[i].name, wanted[i].slot, wanted[i].version, 0, NULL) ||
		    !*wanted[i].slot)
			*wanted[i].slot = driver_too_old;
	}

	r = driver.cuInit(0);
	if (!r)
		r = driver.cuDeviceGetCount(&n_devices);
	if (!r && n_devices == 0)
		r = CUDA_ERROR_NO_DEVICE;
	if (n_devices > MAX_DEVICES)
		n_devices = MAX_DEVICES;
	start_error = (cudaError_t)r;
}

cudaError_t failed(cudaError_t error)
{
	/* Not ready is an answer, not an error: it is never the last one. */
	if (error != cudaErrorNotReady)
		last_error = error;
	return error;
}

cudaError_t runtime_ready(void)
{
	pthread_once(&once, start);
	return start_error ? failed(start_error) : cudaSuccess;
}

int runtime_device(void)
{
	return thread_device;
}

int runtime_n_devices(void)
{
	return n_devices;
}

cudaError_t primary_context(int device, CUcontext *ret)
{
	CUcontext context;
	CUresult r = CUDA_SUCCESS;

	if (device < 0 || device >= n_devices)
		return failed(cudaErrorInvalidDevice);

	context = atomic_load(&primaries[device]);
	if (!context) {
		pthread_mutex_lock(&primary_lock);
		context = atomic_load(&primaries[device]);
		if (!context)
			r = driver.cuDevicePrimaryCtxRetain(&context, device);
		if (!r)
			atomic_store(&primaries[device], context);
		pthread_mutex_unlock(&primary_lock);
	}
	if (r)
		return told(r);
	*ret = context;
	return cudaSuccess;
}

static bool is_retained(CUcontext context)
{
	for (int i = 0; i < n_devices; i++)
		if (atomic_load_explicit(&primaries[i], memory_order_relaxed) == context)
			return true;
	return false;
}

static cudaError_t enter_device(int device)
{
	CUcontext context;
	cudaError_t error = primary_context(device, &context);

	return error ?: told(driver.cuCtxSetCurrent(context));
}

cudaError_t in_context(void)
{
	CUcontext current = NULL;
	CUdevice device;
	int active = 0;
	unsigned flags;

	if (runtime_ready())
		return start_error;
	driver.cuCtxGetCurrent(&current);
	if (!current)
		return enter_device(thread_device);
	if (is_retained(current))
		return cudaSuccess;

	/* The program's own, or a primary one that another thread has reset: enter that anew. */
	if (!driver.cuCtxGetDevice(&device) &&
	    !driver.cuDevicePrimaryCtxGetState(device, &flags, &active) && !active)
		return enter_device(thread_device);
	return cudaSuccess;
}

RUNTIME_CALL(cudaSetDevice, int device)
{
	if (runtime_ready())
		return start_error;
	if (device < 0 || device >= n_devices)
		return failed(cudaErrorInvalidDevice);
	thread_device = device;
	return enter_device(device);
}

RUNTIME_CALL(cudaInitDevice, int device, unsigned device_flags, unsigned flags)
{
	CUcontext context;

	if (runtime_ready())
		return start_error;
	if (flags & 1) /* cudaInitDeviceFlagsAreValid */
		driver.cuDevicePrimaryCtxSetFlags(device, device_flags);
	return primary_context(device, &context);
}

RUNTIME_CALL(cudaGetDevice, int *device)
{
	CUdevice current;

	if (!device)
		return failed(cudaErrorInvalidValue);
	if (runtime_ready())
		return start_error;
	*device = driver.cuCtxGetDevice(&current) ? thread_device : current;
	return cudaSuccess;
}

RUNTIME_CALL(cudaGetDeviceCount, int *count)
{
	if (!count)
		return failed(cudaErrorInvalidValue);
	*count = 0;
	if (runtime_ready())
		return start_error;
	*count = n_devices;
	return cudaSuccess;
}

RUNTIME_CALL(cudaSetValidDevices, const int *devices, int n)
{
	if (runtime_ready())
		return start_error;
	return n > 0 && devices ? impl_cudaSetDevice(devices[0]) : cudaSuccess;
}

RUNTIME_CALL(cudaDeviceReset, void)
{
	int device = thread_device;

	if (runtime_ready())
		return start_error;
	pthread_mutex_lock(&primary_lock);
	atomic_store(&primaries[device], NULL);
	pthread_mutex_unlock(&primary_lock);
	driver.cuCtxSetCurrent(NULL);
	return told(driver.cuDevicePrimaryCtxReset(device));
}

RUNTIME_CALL(cudaThreadExit, void)
{
	return impl_cudaDeviceReset();
}

RUNTIME_CALL(cudaDeviceSynchronize, void)
{
	return in_context() ?: told(driver.cuCtxSynchronize());
}

RUNTIME_CALL(cudaThreadSynchronize, void)
{
	return impl_cudaDeviceSynchronize();
}

RUNTIME_CALL(cudaSetDeviceFlags, unsigned flags)
{
	/* cudaDeviceMapHost is always on and no flag of the context. */
	return runtime_ready()
		       ?: told(driver.cuDevicePrimaryCtxSetFlags(thread_device, flags & ~8u));
}

RUNTIME_CALL(cudaGetDeviceFlags, unsigned *flags)
{
	int active;

	if (!flags)
		return failed(cudaErrorInvalidValue);
	if (runtime_ready())
		return start_error;
	if (driver.cuDevicePrimaryCtxGetState(thread_device, flags, &active))
		*flags = 0;
	*flags |= 8; /* cudaDeviceMapHost */
	return cudaSuccess;
}

RUNTIME_CALL(cudaGetLastError, void)
{
	cudaError_t error = last_error;

	last_error = cudaSuccess;
	return error;
}

RUNTIME_CALL(cudaPeekAtLastError, void)
{
	return last_error;
}

static const struct {
	cudaError_t value;
	const char *name;
} errors[] = {
#define ERROR(name, value) { name, #name },
#include "softgpu/cudart/errors.def"
#undef ERROR
};

const char *impl_cudaGetErrorName(cudaError_t error);
const char *impl_cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].value == error)
			return errors[i].name;
	return "unrecognized error code";
}

const char *impl_cudaGetErrorString(cudaError_t error);
const char *impl_cudaGetErrorString(cudaError_t error)
{
	const char *text;

	if (error == cudaErrorInsufficientDriver)
		return "there is no CUDA driver, or it is older than this runtime";
	if (!runtime_ready() && !driver.cuGetErrorString((CUresult)error, &text))
		return text;
	return impl_cudaGetErrorName(error);
}

RUNTIME_CALL(cudaDriverGetVersion, int *version)
{
	if (!version)
		return failed(cudaErrorInvalidValue);
	*version = 0;
	/* No driver is version 0, not an error. */
	return runtime_ready() ? cudaSuccess : told(driver.cuDriverGetVersion(version));
}

/* What exports.py makes of a call that nothing implements comes here with its name. */
struct missing_call {
	_Atomic char said;
	char name[];
};

cudaError_t runtime_missing(struct missing_call *call);
cudaError_t runtime_missing(struct missing_call *call)
{
	const char *log = getenv("SOFTGPU_LOG");

	if (log && *log && *log != '0' && !atomic_exchange(&call->said, 1))
		fprintf(stderr, "softgpu: %s is not implemented\n", call->name);
	return failed(cudaErrorNotSupported);
}
