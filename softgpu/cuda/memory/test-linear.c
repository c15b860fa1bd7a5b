// SPDX-License-Identifier: Apache-2.0
/* Linear and pinned memory, copies, sets, and what pointers tell. */
#include <pthread.h>

#include "softgpu/cuda/memory/test-memory.h"

CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total);
CUresult cuMemAlloc(CUdeviceptr_v1 *ret, unsigned bytes);
CUresult cuMemFree(CUdeviceptr_v1 dptr);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t w, size_t h, unsigned element);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr dptr);
CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *p);
CUresult cuMemHostGetFlags(unsigned *flags, void *p);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *ret, void *p, unsigned flags);
CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *p);
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyHtoD(CUdeviceptr_v1 dst, const void *src, unsigned bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
		      size_t bytes);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *indices, size_t n_attributes,
			       CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t n);
CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned value, size_t w, size_t h);
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream);
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);

static CUcontext ctx;

static void test_accounting(void)
{
	CUdeviceptr small[3], large;
	unsigned low;
	size_t total;

	CHECK(test_used() == 0);
	OK(cuMemGetInfo_v2(NULL, &total));
	CHECK(total == GIB);
	OK(cuMemGetInfo(&low, NULL));
	OK(cuMemAlloc_v2(&small[0], 1));
	OK(cuMemAlloc_v2(&small[1], 1000));
	OK(cuMemAlloc_v2(&small[2], MIB));
	CHECK(test_used() == BLOCK);
	OK(cuMemAlloc_v2(&large, 3 * MIB));
	CHECK(test_used() == 3 * BLOCK);
	OK(cuMemFree_v2(large));
	for (int i = 0; i < 3; i++)
		OK(cuMemFree_v2(small[i]));
	CHECK(test_used() == 0);
}

static void test_refusals(void)
{
	CUdeviceptr p = 0;
	size_t pitch;

	INVALID(cuMemAlloc_v2(&p, 0));
	INVALID(cuMemAlloc_v2(NULL, 16));
	CHECK(cuMemAlloc_v2(&p, GIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc_v2(&p, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX - 3, 4, 4) == CUDA_ERROR_OUT_OF_MEMORY);
	INVALID(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
	CHECK(p == 0 && test_used() == 0);

	OK(cuMemFree_v2(0));
	INVALID(cuMemFree_v2(1));
	INVALID(cuMemFree_v2(UINT64_MAX));
	INVALID(cuMemFree_v2((CUdeviceptr)&p));
	OK(cuMemAlloc_v2(&p, 4096));
	INVALID(cuMemFree_v2(p + 512));
	INVALID(cuMemFreeHost((void *)p));
	OK(cuMemFree_v2(p));
	INVALID(cuMemFree_v2(p));
	OK(cuCtxSetCurrent(NULL));
	CHECK(cuMemAlloc_v2(&p, 16) == CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(ctx));
}

static void test_full(void)
{
	CUdeviceptr p[8];
	size_t rest;
	int n;

	for (n = 0; cuMemAlloc_v2(&p[n], 200 * MIB) == CUDA_SUCCESS; n++)
		;
	CHECK(n == 4);
	rest = test_free_bytes();
	OK(cuMemAlloc_v2(&p[n++], rest));
	CHECK(test_free_bytes() == 0);
	CHECK(cuMemAlloc_v2(&p[n], 1) == CUDA_ERROR_OUT_OF_MEMORY);
	while (n > 0)
		OK(cuMemFree_v2(p[--n]));
	CHECK(test_used() == 0);
}

static void test_ranges(void)
{
	CUdeviceptr p, base;
	size_t size, pitch;

	OK(cuMemAllocPitch_v2(&p, &pitch, 1000, 3000, 4));
	CHECK(pitch == 1024);
	OK(cuMemGetAddressRange_v2(&base, &size, p + 12345));
	CHECK(base == p && size == 1024 * 3000);
	OK(cuMemGetAddressRange_v2(NULL, NULL, p));
	CHECK(cuMemGetAddressRange_v2(&base, &size, p + size) == CUDA_ERROR_NOT_FOUND);
	OK(cuMemFree_v2(p));
	CHECK(cuMemGetAddressRange_v2(&base, &size, p) == CUDA_ERROR_NOT_FOUND);
}

static void test_old_calls(void)
{
	CUdeviceptr_v1 p;
	int value = 77, back = 0;

	OK(cuMemAlloc(&p, 1 << 20));
	OK(cuMemcpyHtoD(p, &value, sizeof(value)));
	OK(cuMemcpyDtoH_v2(&back, p, sizeof(back)));
	CHECK(back == 77);
	OK(cuMemFree(p));
	INVALID(cuMemFree(p));
}

static void test_context_end(void)
{
	CUdeviceptr p, q, other;
	CUcontext second;
	void *host;

	OK(cuMemAlloc_v2(&other, 100));
	OK(cuCtxCreate_v2(&second, 0, 0));
	OK(cuMemAlloc_v2(&p, 10 * MIB));
	OK(cuMemAlloc_v2(&q, 100));
	OK(cuMemHostAlloc(&host, 100, 0));
	OK(cuCtxDestroy_v2(second));
	OK(cuCtxSetCurrent(ctx));
	CHECK(test_used() == BLOCK);
	INVALID(cuMemFree_v2(p));
	INVALID(cuMemFree_v2(q));
	INVALID(cuMemFreeHost(host));
	OK(cuMemFree_v2(other));

	OK(cuMemAlloc_v2(&p, 10 * MIB));
	OK(cuDevicePrimaryCtxReset_v2(0));
	ctx = test_context();
	INVALID(cuMemFree_v2(p));
	CHECK(test_used() == 0);
}

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

static void test_copies(void)
{
	unsigned char from[1000], to[1000] = {};
	CUdeviceptr p, q;
	CUstream stream;

	for (int i = 0; i < 1000; i++)
		from[i] = i * 7;
	OK(cuMemAlloc_v2(&p, 1000));
	OK(cuMemAlloc_v2(&q, 1000));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemcpyHtoD_v2(p, from, 1000));
	OK(cuMemcpyDtoD_v2(q + 10, p, 990));
	OK(cuMemcpyDtoH_v2(to, q + 10, 990));
	CHECK(memcmp(to, from, 990) == 0);

	memset(to, 0, sizeof(to));
	OK(cuMemcpyHtoDAsync_v2(p, from, 1000, stream));
	OK(cuMemcpyDtoDAsync_v2_ptsz(q, p, 1000, stream));
	OK(cuMemcpyDtoHAsync_v2(to, q, 1000, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(memcmp(to, from, 1000) == 0);

	memset(to, 0, sizeof(to));
	OK(cuMemcpy((CUdeviceptr)to, q, 1000));
	OK(cuMemcpy(q, (CUdeviceptr)to, 1000));
	CHECK(memcmp(to, from, 1000) == 0);

	OK(cuMemcpyHtoD_v2(p, NULL, 0));
	INVALID(cuMemcpyHtoD_v2(p, NULL, 1));
	INVALID(cuMemcpyHtoD_v2(p, from, 1001));
	INVALID(cuMemcpyHtoD_v2(p + 999, from, 2));
	INVALID(cuMemcpyHtoD_v2((CUdeviceptr)to, from, 10));
	INVALID(cuMemcpyDtoH_v2(to, 0, 10));
	INVALID(cuMemcpyDtoH_v2(to, p, SIZE_MAX));
	CHECK(cuMemcpyHtoDAsync_v2(p, from, 10, (CUstream)0x1234) == CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree_v2(q));
	INVALID(cuMemcpyDtoH_v2(to, q, 10));
	/* An address that nothing is mapped at is not taken for the program's. */
	INVALID(cuMemcpy((CUdeviceptr)to, 4096, 10));
	INVALID(cuMemcpy(4096, (CUdeviceptr)to, 10));
	INVALID(cuMemcpy((CUdeviceptr)to, q, 10));
	OK(cuStreamDestroy_v2(stream));
	OK(cuMemFree_v2(p));
}

static void test_peer(void)
{
	CUcontext other;
	CUdeviceptr p, q;
	int value = 5, back = 0;

	OK(cuMemAlloc_v2(&p, 4));
	OK(cuCtxCreate_v2(&other, 0, 1));
	OK(cuMemAlloc_v2(&q, 4));
	OK(cuMemcpyHtoD_v2(p, &value, 4));
	OK(cuMemcpyPeer(q, other, p, ctx, 4));
	OK(cuMemcpyDtoH_v2(&back, q, 4));
	CHECK(back == 5);
	CHECK(cuMemcpyPeer(q, (CUcontext)0x123456, p, ctx, 4) == CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxDestroy_v2(other));
	OK(cuCtxSetCurrent(ctx));
	OK(cuMemFree_v2(p));
}

static void test_planes(void)
{
	unsigned char from[20][30], to[20][30] = {};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 30,
		.srcXInBytes = 3,
		.srcY = 2,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstXInBytes = 5,
		.dstY = 1,
		.WidthInBytes = 10,
		.Height = 8,
	};
	CUdeviceptr p;
	size_t pitch;

	for (int y = 0; y < 20; y++)
		for (int x = 0; x < 30; x++)
			from[y][x] = y * 30 + x;
	OK(cuMemAllocPitch_v2(&p, &pitch, 30, 20, 4));
	copy.dstDevice = p;
	copy.dstPitch = pitch;
	OK(cuMemcpy2D_v2(&copy));

	copy = (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = p,
		.srcPitch = pitch,
		.srcXInBytes = 5,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 30,
		.WidthInBytes = 10,
		.Height = 8,
	};
	OK(cuMemcpy2D_v2(&copy));
	for (int y = 0; y < 8; y++)
		CHECK(memcmp(to[y], &from[y + 2][3], 10) == 0 && to[y][10] == 0);

	copy.dstPitch = 9;
	INVALID(cuMemcpy2D_v2(&copy));
	copy.dstPitch = 30;
	copy.Height = SIZE_MAX;
	INVALID(cuMemcpy2D_v2(&copy));
	copy.Height = 21;
	INVALID(cuMemcpy2D_v2(&copy));
	INVALID(cuMemcpy2D_v2(NULL));
	OK(cuMemFree_v2(p));
}

static void test_volumes(void)
{
	static unsigned short from[4][5][6], to[4][5][6];
	unsigned short *elements = (unsigned short *)from;
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 12,
		.srcHeight = 5,
		.srcZ = 1,
		.srcXInBytes = 2,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstPitch = 8,
		.dstHeight = 4,
		.WidthInBytes = 8,
		.Height = 4,
		.Depth = 3,
	};
	CUdeviceptr p;

	for (int i = 0; i < 120; i++)
		elements[i] = i;
	OK(cuMemAlloc_v2(&p, 8 * 4 * 3));
	copy.dstDevice = p;
	OK(cuMemcpy3D_v2(&copy));
	copy.srcHost = NULL;
	INVALID(cuMemcpy3D_v2(&copy));
	copy.srcMemoryType = 9;
	INVALID(cuMemcpy3D_v2(&copy));

	copy = (CUDA_MEMCPY3D){
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = 8,
		.srcHeight = 4,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 12,
		.dstHeight = 5,
		.WidthInBytes = 8,
		.Height = 4,
		.Depth = 3,
	};
	OK(cuMemcpy3D_v2(&copy));
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 4; y++)
			CHECK(memcmp(to[z][y], &from[z + 1][y][1], 8) == 0);
	copy.Depth = 4;
	INVALID(cuMemcpy3D_v2(&copy));
	OK(cuMemFree_v2(p));
}

static void test_batch(void)
{
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	int from[2] = { 3, 4 }, to[2] = {};
	CUdeviceptr p, dsts[2], srcs[2] = { (CUdeviceptr)&from[0], (CUdeviceptr)&from[1] };
	size_t sizes[2] = { 4, 4 }, index = 0;
	CUstream stream;

	OK(cuMemAlloc_v2(&p, 8));
	OK(cuStreamCreate(&stream, 0));
	dsts[0] = p + 4;
	dsts[1] = p;
	OK(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &index, 1, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH_v2(to, p, 8));
	CHECK(to[0] == 4 && to[1] == 3);
	INVALID(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 2, &attributes, &index, 1, NULL));
	INVALID(cuMemcpyBatchAsync_v2(dsts, srcs, sizes, 0, &attributes, &index, 1, stream));
	OK(cuStreamDestroy_v2(stream));
	OK(cuMemFree_v2(p));
}

static void test_sets(void)
{
	unsigned words[64], *large;
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, 256));
	OK(cuMemsetD32_v2(p, 0x01020304, 64));
	OK(cuMemsetD16_v2(p + 2, 0xffff, 1));
	OK(cuMemsetD8_v2(p + 5, 0, 1));
	OK(cuMemsetD2D32_v2(p + 16, 16, 7, 2, 3));
	OK(cuMemcpyDtoH_v2(words, p, 256));
	CHECK(words[0] == 0xffff0304 && words[1] == 0x01020004);
	CHECK(words[4] == 7 && words[5] == 7 && words[6] == 0x01020304 && words[12] == 7);
	OK(cuMemsetD8_v2(0, 1, 0));
	INVALID(cuMemsetD32_v2(p + 1, 0, 1));
	INVALID(cuMemsetD32_v2(p, 0, 65));
	INVALID(cuMemsetD32_v2(p, 0, SIZE_MAX / 2));
	INVALID(cuMemsetD2D32_v2(p, 4, 7, 2, 3));
	INVALID(cuMemsetD8_v2((CUdeviceptr)words, 1, 4));
	OK(cuMemFree_v2(p));

	/* Clearing gives pages back, and to the byte. */
	OK(cuMemAlloc_v2(&p, 16 * MIB));
	OK(cuMemsetD8Async(p, 0x55, 16 * MIB, NULL));
	OK(cuMemsetD8_v2(p + 100, 0, 16 * MIB - 200));
	OK(cuCtxSynchronize());
	large = malloc(16 * MIB);
	CHECK(large);
	OK(cuMemcpyDtoH_v2(large, p, 16 * MIB));
	CHECK(large[24] == 0x55555555 && large[25] == 0 && large[4 * MIB - 26] == 0 &&
	      large[4 * MIB - 25] == 0x55555555);
	for (size_t i = 25; i < 4 * MIB - 25; i++)
		CHECK(large[i] == 0);
	free(large);
	OK(cuMemFree_v2(p));
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

#define N_LIVE 400

/* Every allocation holds its number; the model says what must be there. */
static void test_stress(void)
{
	static CUdeviceptr live[N_LIVE];
	static unsigned sizes[N_LIVE];
	unsigned value;

	srandom(3);
	for (int step = 0; step < 20000; step++) {
		unsigned i = random() % N_LIVE;

		if (live[i]) {
			OK(cuMemcpyDtoH_v2(&value, live[i] + sizes[i] - 4, 4));
			CHECK(value == i);
			OK(cuMemFree_v2(live[i]));
			live[i] = 0;
			continue;
		}
		sizes[i] = 4 + random() % (random() % 4 ? 8192 : 3 * MIB);
		sizes[i] &= ~3U;
		OK(cuMemAlloc_v2(&live[i], sizes[i]));
		OK(cuMemsetD32_v2(live[i], i, sizes[i] / 4 > 100 ? 100 : sizes[i] / 4));
		OK(cuMemsetD32_v2(live[i] + sizes[i] - 4, i, 1));
	}
	for (int i = 0; i < N_LIVE; i++)
		if (live[i])
			OK(cuMemFree_v2(live[i]));
	CHECK(test_used() == 0);
}

/* One of several at the same time; none may see another's bytes. */
static void *thread_main(void *arg)
{
	unsigned value, seed = (uintptr_t)arg;
	CUdeviceptr p[16] = {};

	OK(cuCtxSetCurrent(ctx));
	for (int step = 0; step < 3000; step++) {
		unsigned i = rand_r(&seed) % 16;

		if (p[i]) {
			OK(cuMemcpyDtoH_v2(&value, p[i], 4));
			CHECK(value == (uintptr_t)arg * 16 + i);
			OK(cuMemFree_v2(p[i]));
			p[i] = 0;
			continue;
		}
		OK(cuMemAlloc_v2(&p[i], 4 + rand_r(&seed) % (rand_r(&seed) % 8 ? 4096 : 3 * MIB)));
		OK(cuMemsetD32_v2(p[i], (uintptr_t)arg * 16 + i, 1));
	}
	for (int i = 0; i < 16; i++)
		OK(cuMemFree_v2(p[i]));
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(test_used() == 0);
}

static const struct test_case cases[] = {
	{ "memory: blocks are charged, and small allocations share them", test_accounting },
	{ "memory: impossible requests and foreign pointers are refused", test_refusals },
	{ "memory: a full device says 2 and nothing else", test_full },
	{ "memory: the range of an address", test_ranges },
	{ "memory: the calls for 32-bit addresses", test_old_calls },
	{ "memory: a context that ends takes its memory along", test_context_end },
	{ "memory: pinned host memory", test_pinned },
	{ "memory: registered host memory", test_registered },
	{ "copy: lines", test_copies },
	{ "copy: between devices", test_peer },
	{ "copy: planes", test_planes },
	{ "copy: volumes", test_volumes },
	{ "copy: batches", test_batch },
	{ "set: all sizes, lines and planes", test_sets },
	{ "pointer: attributes of known and foreign addresses", test_pointers },
	{ "memory: 20,000 random steps agree with a model", test_stress },
	{ "memory: four threads at once", test_threads },
};

int main(void)
{
	test_environment();
	ctx = test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
