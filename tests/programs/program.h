/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of this folder share: they are plain driver-API programs, compiled
 * against NVIDIA's cuda.h, that take a PTX file as their argument, compare what the device
 * computed with the CPU's own result, print one line and exit with 0.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		CUresult check_result = (call);                                                    \
		const char *check_name = "?";                                                      \
                                                                                                   \
		if (check_result != CUDA_SUCCESS) {                                                \
			cuGetErrorName(check_result, &check_name);                                 \
			fprintf(stderr, "%s:%d: %s: %s (%d)\n", __FILE__, __LINE__, #call,         \
				check_name, (int)check_result);                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define EXPECT(what)                                                                               \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Numbers that look random and are the same everywhere. */
static inline unsigned int noise(unsigned int i)
{
	i = (i ^ 61) ^ (i >> 16);
	i *= 9;
	i ^= i >> 4;
	i *= 0x27d4eb2d;
	return i ^ (i >> 15);
}

static inline CUcontext context_on(int ordinal)
{
	CUdevice device;
	CUcontext context;

	CHECK(cuDeviceGet(&device, ordinal));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	return context;
}

static inline CUdeviceptr device_copy(const void *data, size_t size_bytes)
{
	CUdeviceptr ptr;

	CHECK(cuMemAlloc(&ptr, size_bytes));
	CHECK(cuMemcpyHtoD(ptr, data, size_bytes));
	return ptr;
}

static inline CUdeviceptr device_zeros(size_t size_bytes)
{
	CUdeviceptr ptr;

	CHECK(cuMemAlloc(&ptr, size_bytes));
	CHECK(cuMemsetD8(ptr, 0, size_bytes));
	return ptr;
}

static inline CUmodule module_of(const char *ptx_path)
{
	CUmodule module;

	CHECK(cuModuleLoad(&module, ptx_path));
	return module;
}

static inline CUfunction function_of(CUmodule module, const char *name)
{
	CUfunction function;

	CHECK(cuModuleGetFunction(&function, module, name));
	return function;
}

#endif
