/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the calls on memory share. They are linked with libcuda and see what any
 * program sees: a device of 1 GiB, of which a context takes 32 MiB, and another one.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/mem/test.h"
#include "softgpu/util/test-dir.h"
#include "src/cuda/cuda_abi.h"

#define KIB   (1ULL << 10)
#define MIB   (1ULL << 20)
#define GIB   (1ULL << 30)
#define BLOCK (2 * MIB)

#define OK(call)      CHECK((call) == CUDA_SUCCESS)
#define INVALID(call) CHECK((call) == CUDA_ERROR_INVALID_VALUE)

CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxSynchronize(void);
CUresult cuStreamCreate(CUstream *ret, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *ret, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr dptr);

/* A folder of its own for the devices' state; nothing of it is left behind. */
static char test_dir[] = "/tmp/softgpu-test-XXXXXX";

static void test_clean(void)
{
	CHECK(test_dir_remove(test_dir) == 0);
}

static inline void test_environment(void)
{
	CHECK(mkdtemp(test_dir));
	atexit(test_clean);
	unsetenv("SOFTGPU_CONFIG");
	setenv("SOFTGPU_DIR", test_dir, 1);
	setenv("SOFTGPU_DEVICES", "2", 1);
	setenv("SOFTGPU_MEMORY", "1G", 1);
	setenv("SOFTGPU_CONTEXT", "32M", 1);
}

/* Makes the primary context of device 0 current. */
static inline CUcontext test_context(void)
{
	CUcontext ctx;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline size_t test_free_bytes(void)
{
	size_t free_bytes;

	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	return free_bytes;
}

/* What the device is charged beside its contexts. */
static inline size_t test_used(void)
{
	size_t free_bytes, total;

	OK(cuMemGetInfo_v2(&free_bytes, &total));
	return total - free_bytes - 32 * MIB;
}
