// SPDX-License-Identifier: Apache-2.0
/* Virtual memory, within one process and between two. */
#include "softgpu/cuda/test-process.h"

CUresult cuMemGetAllocationGranularity(size_t *ret, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option);
CUresult cuMemAddressReserve(CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr addr, size_t size);
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr addr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr addr, size_t size);
CUresult cuMemSetAccess(CUdeviceptr addr, size_t size, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(unsigned long long *ret, const CUmemLocation *location, CUdeviceptr addr);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *ret, void *addr);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *ret,
						CUmemGenericAllocationHandle handle);
CUresult cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *ret, void *shared,
					CUmemAllocationHandleType type);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t n);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);

static const CUmemAllocationProp plain = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAllocationProp shareable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};
static const CUmemAccessDesc read_write = {
	{ CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static unsigned word_at(CUdeviceptr p)
{
	unsigned word;

	OK(cuMemcpyDtoH_v2(&word, p, sizeof(word)));
	return word;
}

/* A buffer that grows in place, as allocators use it. */
static void test_growth(void)
{
	CUmemGenericAllocationHandle handles[3];
	CUdeviceptr p;

	OK(cuMemAddressReserve(&p, 64 * BLOCK, 0, 0, 0));
	CHECK(test_used() == 0);
	for (int i = 0; i < 3; i++) {
		OK(cuMemCreate(&handles[i], BLOCK, &plain, 0));
		OK(cuMemMap(p + i * BLOCK, BLOCK, 0, handles[i], 0));
		OK(cuMemSetAccess(p + i * BLOCK, BLOCK, &read_write, 1));
		OK(cuMemsetD32_v2(p, i + 1, (i + 1) * BLOCK / 4));
	}
	CHECK(test_used() == 3 * BLOCK && word_at(p) == 3 && word_at(p + 3 * BLOCK - 4) == 3);
	INVALID(cuMemsetD32_v2(p, 0, 3 * BLOCK / 4 + 1));
	INVALID(cuMemAddressFree(p, 64 * BLOCK));
	OK(cuMemUnmap(p, 3 * BLOCK));
	for (int i = 0; i < 3; i++)
		OK(cuMemRelease(handles[i]));
	CHECK(test_used() == 0);
	INVALID(cuMemsetD32_v2(p, 0, 1));
	OK(cuMemAddressFree(p, 64 * BLOCK));
	INVALID(cuMemAddressFree(p, 64 * BLOCK));
}

static void test_lifetime(void)
{
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr p;

	OK(cuMemAddressReserve(&p, 2 * BLOCK, BLOCK, 0, 0));
	OK(cuMemCreate(&handle, BLOCK, &plain, 0));
	OK(cuMemMap(p, BLOCK, 0, handle, 0));
	OK(cuMemMap(p + BLOCK, BLOCK, 0, handle, 0));
	OK(cuMemSetAccess(p, 2 * BLOCK, &read_write, 1));
	OK(cuMemRelease(handle));
	INVALID(cuMemRelease(handle));
	CHECK(test_used() == BLOCK);

	/* Both mappings are the same memory. */
	OK(cuMemsetD32_v2(p, 7, BLOCK / 4));
	CHECK(word_at(p + BLOCK) == 7);
	OK(cuMemRetainAllocationHandle(&again, (void *)(p + BLOCK + 100)));
	CHECK(again == handle);
	OK(cuMemUnmap(p, 2 * BLOCK));
	CHECK(test_used() == BLOCK);
	OK(cuMemRelease(again));
	CHECK(test_used() == 0);
	INVALID(cuMemRetainAllocationHandle(&again, (void *)p));
	OK(cuMemAddressFree(p, 2 * BLOCK));
}

static void test_access(void)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
				 CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUmemGenericAllocationHandle handle;
	unsigned long long flags;
	CUdeviceptr p;

	OK(cuMemAddressReserve(&p, BLOCK, 0, 0, 0));
	INVALID(cuMemSetAccess(p, BLOCK, &desc, 1));
	OK(cuMemCreate(&handle, BLOCK, &plain, 0));
	OK(cuMemMap(p, BLOCK, 0, handle, 0));
	INVALID(cuMemsetD32_v2(p, 1, 1));
	OK(cuMemSetAccess(p, BLOCK, &desc, 1));
	OK(cuMemGetAccess(&flags, &desc.location, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(cuMemGetAccess(&flags, &read_write.location, p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	desc.flags = 2;
	INVALID(cuMemSetAccess(p, BLOCK, &desc, 1));
	OK(cuMemUnmap(p, BLOCK));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(p, BLOCK));
}

static void test_refusals(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = plain;
	CUdeviceptr p, q;
	size_t granularity;
	int fd;

	OK(cuMemGetAllocationGranularity(&granularity, &plain, 0));
	CHECK(granularity == BLOCK);
	INVALID(cuMemGetAllocationGranularity(&granularity, NULL, 0));
	INVALID(cuMemCreate(&handle, BLOCK + 1, &plain, 0));
	INVALID(cuMemCreate(&handle, 0, &plain, 0));
	CHECK(cuMemCreate(&handle, GIB, &plain, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemCreate(&handle, GIB, &shareable, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemCreate(&handle, 1ULL << 62, &plain, 0) == CUDA_ERROR_OUT_OF_MEMORY);
	prop.location.id = 9;
	CHECK(cuMemCreate(&handle, BLOCK, &prop, 0) == CUDA_ERROR_INVALID_DEVICE);
	INVALID(cuMemAddressReserve(&p, 100, 0, 0, 0));
	INVALID(cuMemAddressReserve(&p, BLOCK, 3 * BLOCK, 0, 0));
	CHECK(cuMemAddressReserve(&p, 1ULL << 60, 0, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY);

	OK(cuMemAddressReserve(&p, 4 * BLOCK, 64 * MIB, 0, 0));
	CHECK(p % (64 * MIB) == 0);
	OK(cuMemCreate(&handle, 2 * BLOCK, &plain, 0));
	INVALID(cuMemMap(p, 3 * BLOCK, 0, handle, 0));
	INVALID(cuMemMap(p, 2 * BLOCK, BLOCK, handle, 0));
	INVALID(cuMemMap(p + 4096, BLOCK, 0, handle, 0));
	INVALID(cuMemMap(p + 3 * BLOCK, 2 * BLOCK, 0, handle, 0));
	INVALID(cuMemMap(p, BLOCK, 0, handle + 1, 0));
	INVALID(cuMemMap(BLOCK, BLOCK, 0, handle, 0));
	OK(cuMemMap(p, 2 * BLOCK, 0, handle, 0));
	INVALID(cuMemMap(p + BLOCK, BLOCK, 0, handle, 0));
	INVALID(cuMemUnmap(p, BLOCK));
	INVALID(cuMemUnmap(p + BLOCK, BLOCK));
	INVALID(cuMemFree_v2(p));
	INVALID(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					     0));
	OK(cuMemUnmap(p, 2 * BLOCK));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(p, 4 * BLOCK));

	/* A place that was free is given if it is asked for. */
	OK(cuMemAddressReserve(&q, 4 * BLOCK, 0, p, 0));
	CHECK(q == p);
	OK(cuMemAddressFree(q, 4 * BLOCK));
	INVALID(cuMemImportFromShareableHandle(&handle, (void *)0,
					       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CHECK(test_used() == 0);
}

static CUdeviceptr map_shared(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr p;

	OK(cuMemAddressReserve(&p, 2 * BLOCK, 0, 0, 0));
	OK(cuMemMap(p, 2 * BLOCK, 0, handle, 0));
	OK(cuMemSetAccess(p, 2 * BLOCK, &read_write, 1));
	return p;
}

static void importer(int socket)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUdeviceptr p;
	char byte;
	int fd;

	fd = test_receive(socket, &byte, 1);
	test_context();
	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	OK(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	CHECK(prop.location.id == 0 && prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
	p = map_shared(handle);
	CHECK(word_at(p + BLOCK) == 11);
	OK(cuMemsetD32_v2(p, 12, BLOCK / 2));
	test_signal(socket);
	test_wait(socket);
	CHECK(word_at(p) == 12);
	OK(cuMemUnmap(p, 2 * BLOCK));
	OK(cuMemRelease(handle));
	test_signal(socket);
	test_wait(socket);
}

static void exporter(int socket)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr p;
	int fd;

	test_context();
	OK(cuMemCreate(&handle, 2 * BLOCK, &shareable, 0));
	p = map_shared(handle);
	OK(cuMemsetD32_v2(p, 11, BLOCK / 2));
	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	test_send(socket, "", 1, fd);
	close(fd);
	test_wait(socket);
	CHECK(word_at(p) == 12);
	OK(cuMemUnmap(p, 2 * BLOCK));
	OK(cuMemRelease(handle));
	CHECK(test_used() == 32 * MIB + 2 * BLOCK);
	test_signal(socket);
	test_wait(socket);
	test_wait_used(32 * MIB);
	test_signal(socket);
}

static void test_two_processes(void)
{
	test_roles(exporter, importer);
}

static const struct test_case pristine_cases[] = {
	{ "vmm: memory shared by descriptor lives until both let go", test_two_processes },
};

static const struct test_case cases[] = {
	{ "vmm: a buffer grows in place", test_growth },
	{ "vmm: memory lives by handles and mappings", test_lifetime },
	{ "vmm: access is by device", test_access },
	{ "vmm: impossible requests are refused", test_refusals },
};

int main(void)
{
	test_environment();
	test_run(pristine_cases, sizeof(pristine_cases) / sizeof(pristine_cases[0]));
	test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
