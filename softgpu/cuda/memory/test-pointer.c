// SPDX-License-Identifier: Apache-2.0
/* Pinned and registered host memory, and what pointers tell. */
#include "softgpu/cuda/memory/test-memory.h"

CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *p);
CUresult cuMemHostGetFlags(unsigned *flags, void *p);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *p, unsigned flags);
CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);

static CUcontext ctx;

static void test_pinned(void)
{
	CUdeviceptr dptr;
	unsigned flags;
	char *host;

	OK(cuMemHostAlloc((void **)&host, 5 * MIB, CU_MEMHOSTALLOC_PORTABLE));
	CHECK(test_used() == 0);
	memset(host, 1, 5 * MIB);
	OK(cuMemHostGetFlags(&flags, host + 100));
	CHECK(flags == (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostGetDevicePointer_v2(&dptr, host + 7, 0));
	CHECK(dptr == (CUdeviceptr)(host + 7));
	INVALID(cuMemHostGetDevicePointer_v2(&dptr, &dptr, 0));
	INVALID(cuMemFreeHost(host + 512));
	INVALID(cuMemFree_v2((CUdeviceptr)host));
	OK(cuMemFreeHost(host));
	INVALID(cuMemFreeHost(host));
	OK(cuMemFreeHost(NULL));
	INVALID(cuMemHostAlloc((void **)&host, 0, 0));
	INVALID(cuMemHostAlloc((void **)&host, 16, 0x100));
	CHECK(cuMemHostAlloc((void **)&host, 1ULL << 50, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

static void test_registered(void)
{
	char *host = malloc(100000);
	CUdeviceptr dptr;
	unsigned type;

	CHECK(host);
	OK(cuMemHostRegister_v2(host, 100000, 0));
	CHECK(cuMemHostRegister_v2(host, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK(cuMemHostRegister_v2(host + 99999, 1, 0) ==
	      CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostGetDevicePointer_v2(&dptr, host, 0));
	OK(cuMemsetD8_v2(dptr, 9, 100000));
	CHECK(host[0] == 9 && host[99999] == 9);
	INVALID(cuMemsetD8_v2(dptr, 9, 100001));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, dptr + 5));
	CHECK(type == CU_MEMORYTYPE_HOST);
	CHECK(cuMemHostUnregister(host + 1) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	OK(cuMemHostUnregister(host));
	CHECK(cuMemHostUnregister(host) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	INVALID(cuMemHostRegister_v2(NULL, 10, 0));
	INVALID(cuMemHostRegister_v2(host, 0, 0));
	INVALID(cuMemHostRegister_v2((void *)4096, 4096, 0));
	free(host);
}

static void test_pointers(void)
{
	CUpointer_attribute which[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_CONTEXT,	   CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
	};
	unsigned type = 7, managed, sync = 1;
	int ordinal = 7;
	CUcontext owner = ctx;
	CUdeviceptr p, start;
	void *dptr = &p, *hptr = &p, *data[] = { &type, &ordinal, &owner, &dptr, &hptr };
	unsigned long long id, id2;
	size_t size;

	OK(cuMemAlloc_v2(&p, 5000));
	OK(cuPointerGetAttributes(5, which, data, p + 10));
	CHECK(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && owner == ctx);
	CHECK((CUdeviceptr)dptr == p + 10 && !hptr);
	OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 10));
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 10));
	CHECK(start == p && size == 5000);
	INVALID(cuPointerGetAttribute(&hptr, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
	OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	CHECK(!managed);
	OK(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	OK(cuMemFree_v2(p));
	INVALID(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	OK(cuMemAlloc_v2(&p, 5000));
	OK(cuPointerGetAttribute(&id2, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	CHECK(id2 != id);
	INVALID(cuPointerGetAttribute(&id, 99, p));
	OK(cuMemFree_v2(p));

	/* A foreign pointer: no error, and nothing known. */
	OK(cuPointerGetAttributes(5, which, data, (CUdeviceptr)&type));
	CHECK(type == 0 && ordinal == -2 && !owner && !dptr && !hptr);
	INVALID(cuPointerGetAttributes(0, which, data, p));
}

static const struct test_case cases[] = {
	{ "memory: pinned host memory", test_pinned },
	{ "memory: registered host memory", test_registered },
	{ "pointer: attributes of known and foreign addresses", test_pointers },
};

int main(void)
{
	test_environment();
	ctx = test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
