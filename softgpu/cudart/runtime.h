/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call of the runtime library builds on.
 *
 * The runtime is a thin layer over the driver: it knows which device each thread
 * means, makes that device's primary context current, finds the kernels and variables
 * that the compiler registered, and keeps each thread's last error. Everything else is
 * the driver's. A call is written
 *
 *	RUNTIME_CALL(cudaFree, void *ptr)
 *	{
 *		return in_context() ?: told(driver.cuMemFree((CUdeviceptr)ptr));
 *	}
 *
 * and becomes the hidden function impl_cudaFree; the exported entries are made from
 * runtime.def. The driver is reached through cuGetProcAddress() alone (driver.def).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/cudart/types.h"

#define RUNTIME_CALL(name, ...)                                                                    \
	cudaError_t impl_##name(__VA_ARGS__);                                                      \
	cudaError_t impl_##name(__VA_ARGS__)

/*
 * A call on a stream and its twin for programs whose NULL stream is the thread's own;
 * @params has a parameter named stream, @args passes all of them on.
 */
#define STREAM_CALL(name, params, args) TWIN_CALL(name, name##_ptsz, params, args)
#define TWIN_CALL(name, twin, params, args)                                                        \
	static cudaError_t run_##name params;                                                      \
	cudaError_t impl_##name params;                                                            \
	cudaError_t impl_##twin params;                                                            \
	cudaError_t impl_##name params                                                             \
	{                                                                                          \
		return run_##name args;                                                            \
	}                                                                                          \
	cudaError_t impl_##twin params                                                             \
	{                                                                                          \
		stream = stream_of_thread(stream);                                                 \
		return run_##name args;                                                            \
	}                                                                                          \
	static cudaError_t run_##name params

/* A call that is one of the driver's in the thread's context; @tell makes its answer the runtime's. */
#define PASSED_ON_AS(tell, name, driver_name, params, args)                                        \
	cudaError_t impl_##name params;                                                            \
	cudaError_t impl_##name params                                                             \
	{                                                                                          \
		return in_context() ?: tell(driver.driver_name args);                              \
	}
#define PASSED_ON(name, driver_name, params, args)                                                 \
	PASSED_ON_AS(told, name, driver_name, params, args)

/* The driver's per-thread stream where a caller compiled for it says NULL. */
static inline CUstream stream_of_thread(CUstream stream)
{
	return stream ?: CU_STREAM_PER_THREAD;
}

extern struct driver_calls {
#define DRIVER(name, version, ...)	       CUresult (*name)(__VA_ARGS__);
#define DRIVER_FORM(field, name, version, ...) CUresult (*field)(__VA_ARGS__);
#include "softgpu/cudart/driver.def"
#undef DRIVER
#undef DRIVER_FORM
} driver;

/**
 * runtime_ready() - load and initialise the driver, once
 *
 * Return: cudaSuccess; cudaErrorInsufficientDriver where there is no libcuda.so.1, or what
 * cuInit() said. The failure is the thread's last error.
 */
cudaError_t runtime_ready(void);

/**
 * in_context() - make sure that the thread has a current context
 *
 * One that the program made current through the driver is kept; otherwise the primary
 * context of the thread's device is retained (once per process) and made current.
 *
 * Return: cudaSuccess, else the thread's last error.
 */
cudaError_t in_context(void);

/** runtime_device() - the calling thread's device */
int runtime_device(void);

/** runtime_n_devices() - devices there are; 0 before runtime_ready() */
int runtime_n_devices(void);

/** failed() - remember an error as the thread's last one; also returns it */
cudaError_t failed(cudaError_t error);

/** told() - the driver's answer as the runtime's; most codes have the same value */
static inline cudaError_t told(CUresult result)
{
	return __builtin_expect(result == CUDA_SUCCESS, 1) ? cudaSuccess
							   : failed((cudaError_t)result);
}

/**
 * told_value() - the same for a call that documents no invalid handle
 *
 * The driver knows that it was one; these calls say that it is an invalid value.
 */
static inline cudaError_t told_value(CUresult result)
{
	return told(result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result);
}

/** primary_context() - the context of a device, retained; for peer copies */
cudaError_t primary_context(int device, CUcontext *ret);

/**
 * symbol_kernel() - the kernel that the compiler registered for a host function
 *
 * A kernel or function handle of the driver is handed back as it is: later runtimes pass
 * one where earlier ones pass the host function.
 *
 * Return: cudaSuccess, cudaErrorInvalidDeviceFunction, or why its module did not load.
 */
cudaError_t symbol_kernel(const void *host_function, CUfunction *ret);

/** symbol_function() - the same in the current context, as the calls that look at it want it */
cudaError_t symbol_function(const void *host_function, CUfunction *ret);

/**
 * symbol_of_function() - what the program calls a function of the driver
 *
 * Return: the host function of the registered kernel, or the function as it came.
 */
const void *symbol_of_function(CUfunction function);

/** symbol_variable() - where a registered variable is in the current context, and its size */
cudaError_t symbol_variable(const void *host_variable, CUdeviceptr *ret, size_t *ret_size_bytes);

/** element_bytes() - bytes of one element of an array; 0 if the array is not one */
size_t element_bytes(CUarray array);

/**
 * descriptor_of() - an array of such elements, as the driver wants it described
 *
 * Return: cudaSuccess, or cudaErrorInvalidChannelDescriptor.
 */
cudaError_t descriptor_of(const struct cudaChannelFormatDesc *channel, struct cudaExtent extent,
			  unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *ret);

/** channel_of() - the same the other way round; of kind None if the runtime has no such format */
struct cudaChannelFormatDesc channel_of(CUarray_format format, unsigned n_channels);
