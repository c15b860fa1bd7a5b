// SPDX-License-Identifier: Apache-2.0
/* Managed memory: where it counts, advice, and what a range tells. */
#include "softgpu/cuda/memory/test-memory.h"

CUresult cuMemAllocManaged(CUdeviceptr *ret, size_t bytes, unsigned flags);
CUresult cuMemPrefetchAsync(CUdeviceptr addr, size_t bytes, CUdevice device, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr addr, size_t bytes, CUmemLocation to, unsigned flags,
			       CUstream stream);
CUresult cuMemAdvise(CUdeviceptr addr, size_t bytes, CUmem_advise advice, CUdevice device);
CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
				CUdeviceptr addr, size_t bytes);
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr addr, size_t bytes, unsigned flags);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);

static void test_residence(void)
{
	unsigned char *bytes;
	CUdeviceptr p;
	unsigned managed;
	void *host;

	OK(cuMemAllocManaged(&p, 10 * BLOCK, CU_MEM_ATTACH_GLOBAL));
	bytes = (unsigned char *)p;
	bytes[5] = 1;
	OK(cuMemsetD8_v2(p, 2, 10));
	CHECK(bytes[5] == 2 && test_used() == 0);
	OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 7));
	CHECK(managed && host == (void *)(p + 7));

	OK(cuMemPrefetchAsync(p, 3 * BLOCK, 0, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 3 * BLOCK);
	OK(cuMemPrefetchAsync(p + BLOCK, BLOCK, CU_DEVICE_CPU, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 2 * BLOCK && bytes[5] == 2);
	OK(cuMemPrefetchAsync(p, 10 * BLOCK, 1, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 0);
	OK(cuMemPrefetchAsync(p, 10 * BLOCK, 0, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 10 * BLOCK);
	OK(cuMemFree_v2(p));
	CHECK(test_used() == 0);
}

static void test_oversubscription(void)
{
	CUdeviceptr p;

	OK(cuMemAllocManaged(&p, 4 * GIB, CU_MEM_ATTACH_HOST));
	OK(cuMemPrefetchAsync(p, 4 * GIB, 0, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_free_bytes() == 0);
	OK(cuMemFree_v2(p));
	CHECK(test_used() == 0);
}

static void test_advice(void)
{
	CUdeviceptr p;
	int value, accessors[3];

	OK(cuMemAllocManaged(&p, 10000, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 10000));
	CHECK(value == CU_DEVICE_INVALID);
	OK(cuMemAdvise(p, 10000, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	OK(cuMemAdvise(p, 10000, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU));
	OK(cuMemAdvise(p, 10000, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
	OK(cuMemAdvise(p, 10000, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_DEVICE_CPU));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 10));
	CHECK(value == 1);
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, p, 10));
	CHECK(value == CU_DEVICE_CPU);
	OK(cuMemRangeGetAttribute(accessors, 12, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, 10));
	CHECK(accessors[0] == 1 && accessors[1] == CU_DEVICE_CPU &&
	      accessors[2] == CU_DEVICE_INVALID);
	OK(cuMemAdvise(p, 10000, CU_MEM_ADVISE_UNSET_ACCESSED_BY, 1));
	OK(cuMemPrefetchAsync_v2(p, 10, (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, 1 }, 0,
				 NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, p, 10));
	CHECK(value == 1);
	OK(cuStreamAttachMemAsync(NULL, p, 0, CU_MEM_ATTACH_GLOBAL));
	INVALID(cuStreamAttachMemAsync(NULL, p + 1, 0, CU_MEM_ATTACH_GLOBAL));
	INVALID(cuMemRangeGetAttribute(&value, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 10));
	INVALID(cuMemRangeGetAttribute(&value, 4, 77, p, 10));
	INVALID(cuMemAdvise(p, 10001, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
	INVALID(cuMemAdvise(p, 10, 9, 0));
	CHECK(cuMemAdvise(p, 10, CU_MEM_ADVISE_SET_ACCESSED_BY, 55) == CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemFree_v2(p));
}

static void test_refusals(void)
{
	CUdeviceptr p, device;

	INVALID(cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
	INVALID(cuMemAllocManaged(&p, 10, 0));
	INVALID(cuMemAllocManaged(&p, 10, CU_MEM_ATTACH_SINGLE));
	INVALID(cuMemAllocManaged(NULL, 10, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemAllocManaged(&p, SIZE_MAX, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&device, 10));
	INVALID(cuMemPrefetchAsync(device, 10, 0, NULL));
	OK(cuMemFree_v2(device));
	OK(cuMemAllocManaged(&p, 10, CU_MEM_ATTACH_GLOBAL));
	INVALID(cuMemPrefetchAsync(p, 11, 0, NULL));
	INVALID(cuMemPrefetchAsync(p, 0, 0, NULL));
	CHECK(cuMemPrefetchAsync(p, 10, 44, NULL) == CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemFree_v2(p));
	INVALID(cuMemFree_v2(p));
}

static const struct test_case cases[] = {
	{ "managed: counts where a prefetch has put it", test_residence },
	{ "managed: more than the device has", test_oversubscription },
	{ "managed: advice is kept", test_advice },
	{ "managed: impossible requests are refused", test_refusals },
};

int main(void)
{
	test_environment();
	test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
