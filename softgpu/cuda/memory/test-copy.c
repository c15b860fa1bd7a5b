// SPDX-License-Identifier: Apache-2.0
/* Copies and sets of linear memory. */
#include "softgpu/cuda/memory/test-memory.h"

CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t w, size_t h, unsigned element);
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
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

static CUcontext ctx;

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

static const struct test_case cases[] = {
	{ "copy: lines", test_copies },	 { "copy: between devices", test_peer },
	{ "copy: planes", test_planes }, { "copy: volumes", test_volumes },
	{ "copy: batches", test_batch }, { "set: all sizes, lines and planes", test_sets },
};

int main(void)
{
	test_environment();
	ctx = test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
