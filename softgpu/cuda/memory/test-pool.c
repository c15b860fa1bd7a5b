// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered memory and pools, within one process and between two. */
#include "softgpu/cuda/test-process.h"

CUresult cuMemAllocAsync(CUdeviceptr *ret, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *ret, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ret, size_t bytes, CUmemoryPool pool,
				 CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream);
CUresult cuMemPoolCreate(CUmemoryPool *ret, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *ret);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemPoolGetAccess(CUmemAccess_flags *ret, CUmemoryPool pool, CUmemLocation *location);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *ret, CUdevice device);
CUresult cuDeviceGetMemPool(CUmemoryPool *ret, CUdevice device);
CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool);
CUresult cuMemPoolExportToShareableHandle(void *ret, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *ret, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *ret, CUdeviceptr dptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *ret, CUmemoryPool pool, CUmemPoolPtrExportData *data);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);

CUresult cuEventCreate(CUevent *ret, unsigned int flags);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventSynchronize(CUevent event);
CUresult cuMemCreate(CUmemGenericAllocationHandle *ret, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);

static const CUmemPoolProps shareable = {
	.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t value;

	OK(cuMemPoolGetAttribute(pool, which, &value));
	return value;
}

static void threshold(CUmemoryPool pool, cuuint64_t bytes)
{
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static void test_nothing_stays(void)
{
	CUmemoryPool pool;
	CUdeviceptr p;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	for (int i = 0; i < 100; i++) {
		OK(cuMemAllocAsync(&p, 8 * MIB, NULL));
		CHECK(test_used() == 8 * MIB);
		OK(cuMemsetD8_v2(p, i, 8 * MIB));
		OK(cuMemFreeAsync(p, NULL));
		OK(cuStreamSynchronize(NULL));
		CHECK(test_used() == 0);
	}
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 8 * MIB);
}

static void test_threshold(void)
{
	CUmemoryPool pool;
	CUdeviceptr p, q;
	cuuint64_t zero = 0, one = 1;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	threshold(pool, UINT64_MAX);
	OK(cuMemAllocAsync(&p, 8 * MIB, NULL));
	OK(cuMemAllocAsync(&q, 16 * MIB, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemFreeAsync(q, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 24 * MIB);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 24 * MIB);

	/* What is kept is used again. */
	OK(cuMemAllocAsync(&p, 15 * MIB, NULL));
	CHECK(p == q && test_used() == 24 * MIB);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));

	OK(cuMemPoolTrimTo(pool, 10 * MIB));
	CHECK(test_used() == 8 * MIB);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(test_used() == 0);
	threshold(pool, 0);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) >= 24 * MIB);
	INVALID(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &one));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 0);
	INVALID(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero));
	INVALID(cuMemPoolSetAttribute(pool, 77, &zero));
}

/* Up to the next time that the program waits, whatever it waits for. */
static void test_release_at_synchronise(void)
{
	CUmemoryPool pool;
	CUstream stream;
	CUevent event;
	CUdeviceptr p;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, stream));
	for (int by = 0; by < 4; by++) {
		OK(cuMemAllocAsync(&p, 8 * MIB, stream));
		OK(cuMemFreeAsync(p, stream));
		while (attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) > 0)
			usleep(100);
		CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 8 * MIB);
		if (by == 0)
			OK(cuStreamSynchronize(NULL));
		else if (by == 1)
			OK(cuEventSynchronize(event));
		else if (by == 2)
			OK(cuCtxSynchronize());
		else
			threshold(pool, 0);
		if (by == 3) {
			CHECK(test_used() == 8 * MIB);
			OK(cuCtxSynchronize());
		}
		CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0);
		CHECK(test_used() == 0);
	}
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(stream));
}

/* Memory that a pool keeps makes room for allocations of every kind. */
static void test_kept_is_reclaimed(void)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle handle;
	CUmemoryPool pool;
	CUdeviceptr p;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	threshold(pool, UINT64_MAX);
	for (int by = 0; by < 3; by++) {
		OK(cuMemAllocAsync(&p, 600 * MIB, NULL));
		OK(cuMemFreeAsync(p, NULL));
		OK(cuStreamSynchronize(NULL));
		CHECK(test_used() == 600 * MIB);
		prop.requestedHandleTypes = by == 2 ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
		if (by == 0) {
			OK(cuMemAlloc_v2(&p, 800 * MIB));
			OK(cuMemFree_v2(p));
		} else {
			OK(cuMemCreate(&handle, 800 * MIB, &prop, 0));
			OK(cuMemRelease(handle));
		}
		CHECK(test_used() == 0);
	}
	threshold(pool, 0);
}

static void test_kept_makes_room(void)
{
	CUmemoryPool pool;
	CUdeviceptr p, q;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	threshold(pool, UINT64_MAX);
	OK(cuMemAllocAsync(&p, 600 * MIB, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuMemAllocAsync(&q, 800 * MIB, NULL));
	CHECK(cuMemAllocAsync(&p, 800 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(q, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemPoolTrimTo(pool, 0));
	threshold(pool, 0);
	CHECK(test_used() == 0);
}

static void test_refusals(void)
{
	CUdeviceptr p, linear;

	INVALID(cuMemAllocAsync(&p, 0, NULL));
	INVALID(cuMemAllocAsync(NULL, 10, NULL));
	CHECK(cuMemAllocAsync(&p, SIZE_MAX, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAllocAsync(&p, 10, (CUstream)0x99) == CUDA_ERROR_INVALID_HANDLE);
	INVALID(cuMemFreeAsync((CUdeviceptr)&p, NULL));
	OK(cuMemAlloc_v2(&linear, 10));
	INVALID(cuMemFreeAsync(linear, NULL));
	OK(cuMemFree_v2(linear));
	OK(cuMemAllocAsync_ptsz(&p, 10, NULL));
	OK(cuMemFreeAsync_ptsz(p, NULL));
	INVALID(cuMemFreeAsync_ptsz(p, NULL));
	OK(cuMemAllocAsync(&p, 10, NULL));
	OK(cuMemFree_v2(p));
	INVALID(cuMemFreeAsync(p, NULL));
	OK(cuCtxSynchronize());
	CHECK(test_used() == 0);
}

static void test_own_pool(void)
{
	CUmemPoolProps props = shareable;
	CUmemoryPool pool, dflt, now;
	CUdeviceptr p, q;
	int reuse = 0;

	props.maxSize = 16 * MIB;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuDeviceGetDefaultMemPool(&dflt, 0));
	OK(cuDeviceSetMemPool(0, pool));
	OK(cuDeviceGetMemPool(&now, 0));
	CHECK(now == pool && now != dflt);
	OK(cuMemAllocAsync(&p, 4 * MIB, NULL));
	OK(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(now == pool);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 4 * MIB);
	CHECK(cuMemAllocFromPoolAsync(&q, 13 * MIB, pool, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
	reuse = 1;
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
	CHECK(reuse == 0);

	/* It lives on until its memory is freed. */
	OK(cuMemPoolDestroy(pool));
	INVALID(cuMemPoolDestroy(pool));
	INVALID(cuMemPoolTrimTo(pool, 0));
	OK(cuDeviceGetMemPool(&now, 0));
	CHECK(now == dflt);
	CHECK(test_used() == 4 * MIB);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(test_used() == 0);

	INVALID(cuMemPoolDestroy(dflt));
	INVALID(cuDeviceSetMemPool(1, dflt));
	props.location.id = 7;
	CHECK(cuMemPoolCreate(&pool, &props) == CUDA_ERROR_INVALID_DEVICE);
	props.allocType = 0;
	INVALID(cuMemPoolCreate(&pool, &props));
}

static void test_access(void)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
				 CU_MEM_ACCESS_FLAGS_PROT_READ };
	CUmemAccess_flags flags;
	CUmemoryPool pool;

	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemPoolSetAccess(pool, &desc, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	desc.location.id = 0;
	INVALID(cuMemPoolSetAccess(pool, &desc, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &desc.location));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static void importer(int socket)
{
	CUmemPoolPtrExportData data;
	unsigned char byte;
	CUmemoryPool pool;
	CUdeviceptr p;
	int fd;

	fd = test_receive(socket, &data, sizeof(data));
	test_context();
	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	close(fd);
	INVALID(cuMemAllocFromPoolAsync(&p, 10, pool, NULL));
	OK(cuMemPoolImportPointer(&p, pool, &data));
	OK(cuMemcpyDtoH_v2(&byte, p + 99, 1));
	CHECK(byte == 0x5a);
	OK(cuMemsetD8_v2(p, 0xa5, 100));
	test_signal(socket);

	/* Freed by the exporter, and still there. */
	test_wait(socket);
	OK(cuMemcpyDtoH_v2(&byte, p, 1));
	CHECK(byte == 0xa5);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	INVALID(cuMemcpyDtoH_v2(&byte, p, 1));
	INVALID(cuMemPoolImportPointer(&p, pool, &data));
	OK(cuMemPoolDestroy(pool));
	test_signal(socket);
	test_wait(socket);
}

static void exporter(int socket)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool, dflt;
	unsigned char byte;
	CUdeviceptr p;
	int fd;

	test_context();
	OK(cuMemPoolCreate(&pool, &shareable));
	threshold(pool, UINT64_MAX);
	OK(cuMemAllocFromPoolAsync(&p, 100, pool, NULL));
	OK(cuMemsetD8_v2(p, 0x5a, 100));
	OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0));
	OK(cuDeviceGetDefaultMemPool(&dflt, 0));
	INVALID(cuMemPoolExportToShareableHandle(&fd, dflt,
						 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&data, p));
	test_send(socket, &data, sizeof(data), fd);
	close(fd);

	test_wait(socket);
	OK(cuMemcpyDtoH_v2(&byte, p, 1));
	CHECK(byte == 0xa5);
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	test_signal(socket);
	test_wait(socket);
	/* The importer's context is all that is left. */
	test_wait_used(32 * MIB);
	OK(cuMemPoolDestroy(pool));
	test_signal(socket);
}

static void test_two_processes(void)
{
	test_roles(exporter, importer);
}

static const struct test_case pristine_cases[] = {
	{ "pool: memory of it in another process", test_two_processes },
};

static const struct test_case cases[] = {
	{ "pool: with no threshold nothing stays behind", test_nothing_stays },
	{ "pool: keeps memory up to its threshold and uses it again", test_threshold },
	{ "pool: gives back what is beyond it when the program waits",
	  test_release_at_synchronise },
	{ "pool: what is kept makes room for other allocations", test_kept_is_reclaimed },
	{ "pool: what is kept or waits to be freed makes room", test_kept_makes_room },
	{ "pool: impossible requests are refused", test_refusals },
	{ "pool: one of the program's own, its limit and its end", test_own_pool },
	{ "pool: access of other devices", test_access },
};

int main(void)
{
	test_environment();
	test_run(pristine_cases, sizeof(pristine_cases) / sizeof(pristine_cases[0]));
	test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
