// SPDX-License-Identifier: Apache-2.0
/* Arrays and mipmapped arrays. */
#include "softgpu/cuda/memory/test-memory.h"

CUresult cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *desc);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret, CUarray array);
CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array);
CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array,
				      CUdevice device);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc,
				unsigned n_levels);
CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray array, unsigned level);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t x, const void *src, size_t bytes);
CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t x, size_t bytes);
CUresult cuMemcpyAtoA_v2(CUarray dst, size_t dst_x, CUarray src, size_t src_x, size_t bytes);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy);
CUresult cuMemcpy3DBatchAsync(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *ret_failed,
			      unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags,
				 CUstream stream);

#define INVALID_HANDLE(call) CHECK((call) == CUDA_ERROR_INVALID_HANDLE)

static CUDA_ARRAY_DESCRIPTOR floats(size_t width, size_t height)
{
	return (CUDA_ARRAY_DESCRIPTOR){ width, height, CU_AD_FORMAT_FLOAT, 1 };
}

static void test_lines(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = floats(100, 0);
	float from[100], to[100] = {};
	CUarray a, b;

	for (int i = 0; i < 100; i++)
		from[i] = i;
	OK(cuArrayCreate_v2(&a, &desc));
	OK(cuArrayCreate_v2(&b, &desc));
	CHECK(test_used() == BLOCK);
	OK(cuMemcpyHtoA_v2(a, 0, from, 400));
	OK(cuMemcpyAtoA_v2(b, 40, a, 0, 360));
	OK(cuMemcpyAtoH_v2(to, b, 40, 360));
	CHECK(memcmp(from, to, 360) == 0);
	INVALID(cuMemcpyAtoH_v2(to, b, 40, 361));
	OK(cuArrayDestroy(a));
	INVALID_HANDLE(cuArrayDestroy(a));
	INVALID_HANDLE(cuMemcpyAtoH_v2(to, a, 0, 4));
	OK(cuArrayDestroy(b));
	CHECK(test_used() == 0);
}

static void test_planes(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = floats(33, 17), back;
	float from[17][33], to[17][33] = {};
	CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 33 * 4,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.WidthInBytes = 33 * 4,
		.Height = 17,
	};
	CUarray array;

	for (int y = 0; y < 17; y++)
		for (int x = 0; x < 33; x++)
			from[y][x] = y * 100 + x;
	OK(cuArrayCreate_v2(&array, &desc));
	OK(cuArrayGetDescriptor_v2(&back, array));
	CHECK(back.Width == 33 && back.Height == 17 && back.Format == CU_AD_FORMAT_FLOAT &&
	      back.NumChannels == 1);
	copy.dstArray = array;
	OK(cuMemcpy2D_v2(&copy));
	copy.Height = 18;
	INVALID(cuMemcpy2D_v2(&copy));

	copy = (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcY = 5,
		.srcXInBytes = 8,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 33 * 4,
		.WidthInBytes = 40,
		.Height = 3,
	};
	OK(cuMemcpy2D_v2(&copy));
	for (int y = 0; y < 3; y++)
		CHECK(memcmp(to[y], &from[y + 5][2], 40) == 0);
	OK(cuArrayDestroy(array));
}

static void test_batch(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 4, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0 };
	float from[2][2][2] = { { { 1, 2 }, { 3, 4 } }, { { 5, 6 }, { 7, 8 } } }, to[2][2][2] = {};
	CUDA_MEMCPY3D_BATCH_OP ops[2] = {
		{
			.src = { .type = CU_MEMCPY_OPERAND_TYPE_POINTER },
			.dst = { .type = CU_MEMCPY_OPERAND_TYPE_ARRAY },
			.extent = { 2, 2, 2 },
			.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
		},
	};
	CUstream stream;
	CUarray array;
	size_t failed;

	OK(cuStreamCreate(&stream, 0));
	OK(cuArray3DCreate_v2(&array, &desc));
	ops[0].src.op.ptr.ptr = (CUdeviceptr)from;
	ops[0].dst.op.array.array = array;
	ops[0].dst.op.array.offset = (CUoffset3D){ 1, 2, 0 };
	ops[1] = ops[0];
	ops[1].src = ops[0].dst;
	ops[1].dst = ops[0].src;
	ops[1].dst.op.ptr.ptr = (CUdeviceptr)to;
	OK(cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(memcmp(from, to, sizeof(from)) == 0);

	ops[1].src.op.array.offset.x = 3;
	INVALID(cuMemcpy3DBatchAsync(2, ops, &failed, 0, stream));
	CHECK(failed == 1);
	INVALID(cuMemcpy3DBatchAsync_v2(2, ops, 0, NULL));
	OK(cuArrayDestroy(array));
	OK(cuStreamDestroy_v2(stream));
}

static void test_descriptors(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 8, 8, 8, CU_AD_FORMAT_HALF, 4, 0 }, back;
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUarray array;

	OK(cuArray3DCreate_v2(&array, &desc));
	OK(cuArray3DGetDescriptor_v2(&back, array));
	CHECK(back.Width == 8 && back.Height == 8 && back.Depth == 8 && back.Flags == 0 &&
	      back.Format == CU_AD_FORMAT_HALF && back.NumChannels == 4);
	OK(cuArrayGetMemoryRequirements(&need, array, 0));
	CHECK(need.size == BLOCK && need.alignment == BLOCK);
	OK(cuArrayDestroy(array));

	desc.NumChannels = 3;
	INVALID(cuArray3DCreate_v2(&array, &desc));
	desc.NumChannels = 1;
	desc.Width = 0;
	INVALID(cuArray3DCreate_v2(&array, &desc));
	desc.Width = SIZE_MAX;
	INVALID(cuArray3DCreate_v2(&array, &desc));
	desc.Width = 8;
	desc.Format = 5;
	INVALID(cuArray3DCreate_v2(&array, &desc));
	desc.Format = CU_AD_FORMAT_HALF;
	desc.Flags = CUDA_ARRAY3D_CUBEMAP;
	INVALID(cuArray3DCreate_v2(&array, &desc));
	desc.Depth = 6;
	OK(cuArray3DCreate_v2(&array, &desc));
	OK(cuArrayDestroy(array));
	desc.Flags = 0;
	desc.Width = desc.Height = desc.Depth = 16384;
	CHECK(cuArray3DCreate_v2(&array, &desc) == CUDA_ERROR_OUT_OF_MEMORY);
	INVALID(cuArray3DCreate_v2(NULL, &desc));
	INVALID(cuArray3DCreate_v2(&array, NULL));
	INVALID_HANDLE(cuArrayGetDescriptor_v2(&(CUDA_ARRAY_DESCRIPTOR){}, (CUarray)0x77));
	CHECK(test_used() == 0);
}

static void test_mipmaps(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 64, 16, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0 }, level;
	unsigned char from[32] = { 1, 2, 3 }, to[32] = {};
	CUmipmappedArray mipmap;
	CUarray arrays[7];

	OK(cuMipmappedArrayCreate(&mipmap, &desc, 100));
	for (unsigned i = 0; i < 7; i++) {
		OK(cuMipmappedArrayGetLevel(&arrays[i], mipmap, i));
		OK(cuArray3DGetDescriptor_v2(&level, arrays[i]));
		CHECK(level.Width == 64U >> i && level.Height == (i < 5 ? 16U >> i : 1U));
	}
	INVALID(cuMipmappedArrayGetLevel(&arrays[0], mipmap, 7));
	OK(cuMemcpyHtoA_v2(arrays[1], 0, from, 32));
	OK(cuMemcpyHtoA_v2(arrays[0], 0, to, 32));
	OK(cuMemcpyAtoH_v2(to, arrays[1], 0, 32));
	CHECK(memcmp(from, to, 32) == 0);
	INVALID_HANDLE(cuArrayDestroy(arrays[0]));
	OK(cuMipmappedArrayDestroy(mipmap));
	INVALID_HANDLE(cuMipmappedArrayDestroy(mipmap));
	INVALID_HANDLE(cuMemcpyHtoA_v2(arrays[1], 0, from, 32));
	CHECK(test_used() == 0);
}

static void test_context_end(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = floats(1024, 1024);
	CUarray array;

	OK(cuArrayCreate_v2(&array, &desc));
	CHECK(test_used() == 4 * MIB);
	OK(cuDevicePrimaryCtxReset_v2(0));
	test_context();
	CHECK(test_used() == 0);
	INVALID_HANDLE(cuArrayDestroy(array));
}

static const struct test_case cases[] = {
	{ "array: lines", test_lines },
	{ "array: planes", test_planes },
	{ "array: volumes in batches", test_batch },
	{ "array: descriptors, good and bad", test_descriptors },
	{ "array: levels of a mipmapped one", test_mipmaps },
	{ "array: goes with its context", test_context_end },
};

int main(void)
{
	test_environment();
	test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
