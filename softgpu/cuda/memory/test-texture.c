// SPDX-License-Identifier: Apache-2.0
/* Texture and surface objects: what is taken, what is refused, what a kernel reads. */
#include "softgpu/cuda/memory/test-memory.h"

CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc);
CUresult cuArrayDestroy(CUarray array);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *desc,
				unsigned n_levels);
CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray array, unsigned level);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array);
CUresult cuMemcpyHtoA_v2(CUarray dst, size_t x, const void *src, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuTexObjectCreate(CUtexObject *ret, const CUDA_RESOURCE_DESC *resource,
			   const CUDA_TEXTURE_DESC *sampling, const CUDA_RESOURCE_VIEW_DESC *view);
CUresult cuTexObjectDestroy(CUtexObject texture);
CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUtexObject texture);
CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *ret, CUtexObject texture);
CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject texture);
CUresult cuSurfObjectCreate(CUsurfObject *ret, const CUDA_RESOURCE_DESC *resource);
CUresult cuSurfObjectDestroy(CUsurfObject surface);
CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUsurfObject surface);
CUresult cuModuleLoadData(CUmodule *ret, const void *image);
CUresult cuModuleGetFunction(CUfunction *ret, CUmodule module, const char *name);
CUresult cuModuleUnload(CUmodule module);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params,
			void **extra);

/* Reads the first eight elements of a texture, and of a surface where there is one. */
static const char text[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry k(.param .u64 out, .param .u64 tex, .param .u64 surf)\n{\n"
	".reg .b64 %x<6>; .reg .b32 %r<6>; .reg .f32 %f<6>; .reg .pred %p;\n"
	"ld.param.u64 %x0, [out]; ld.param.u64 %x1, [tex]; ld.param.u64 %x2, [surf];\n"
	"mov.u32 %r0, %tid.x; mad.wide.u32 %x0, %r0, 4, %x0;\n"
	"tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%x1, {%r0}]; st.global.f32 [%x0], %f0;\n"
	"setp.eq.u64 %p, %x2, 0; @%p ret;\n"
	"shl.b32 %r1, %r0, 2; suld.b.1d.b32.trap {%r2}, [%x2, {%r1}]; add.u32 %r2, %r2, 1;\n"
	"sust.b.1d.b32.trap [%x2, {%r1}], {%r2}; ret;\n}\n";

static CUresult read_eight(CUtexObject tex, CUsurfObject surf, float out[8])
{
	CUdeviceptr memory;
	void *params[] = { &memory, &tex, &surf };
	CUfunction function;
	CUmodule module;
	CUresult r;

	OK(cuMemAlloc_v2(&memory, 32));
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetFunction(&function, module, "k"));
	OK(cuLaunchKernel(function, 1, 1, 1, 8, 1, 1, 0, NULL, params, NULL));
	r = cuMemcpyDtoH_v2(out, memory, 32);
	if (r == CUDA_SUCCESS) {
		OK(cuModuleUnload(module));
		OK(cuMemFree_v2(memory));
	}
	return r;
}

static CUarray make_line(unsigned flags, const float *values, size_t n)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { n, 0, 0, CU_AD_FORMAT_FLOAT, 1, flags };
	CUarray array;

	OK(cuArray3DCreate_v2(&array, &desc));
	OK(cuMemcpyHtoA_v2(array, 0, values, n * sizeof(float)));
	return array;
}

static const float numbers[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };
static const CUDA_TEXTURE_DESC plain;

static void test_line(void)
{
	CUDA_RESOURCE_DESC desc = { .resType = CU_RESOURCE_TYPE_ARRAY }, back;
	CUDA_RESOURCE_VIEW_DESC view;
	CUDA_TEXTURE_DESC sampling;
	CUtexObject tex;
	CUarray array = make_line(0, numbers, 8);
	float out[8];

	desc.res.array.hArray = array;
	OK(cuTexObjectCreate(&tex, &desc, &plain, NULL));
	OK(read_eight(tex, 0, out));
	CHECK(memcmp(out, numbers, sizeof(out)) == 0);
	OK(cuTexObjectGetResourceDesc(&back, tex));
	CHECK(back.resType == CU_RESOURCE_TYPE_ARRAY && back.res.array.hArray == array);
	OK(cuTexObjectGetTextureDesc(&sampling, tex));
	CHECK(memcmp(&sampling, &plain, sizeof(plain)) == 0);
	INVALID(cuTexObjectGetResourceViewDesc(&view, tex));
	OK(cuTexObjectDestroy(tex));
	INVALID(cuTexObjectDestroy(tex));
	INVALID(cuTexObjectGetTextureDesc(&sampling, tex));
	OK(cuArrayDestroy(array));
	CHECK(cuTexObjectCreate(&tex, &desc, &plain, NULL) == CUDA_ERROR_INVALID_HANDLE);
}

static void test_surface(void)
{
	CUDA_RESOURCE_DESC desc = { .resType = CU_RESOURCE_TYPE_ARRAY }, back;
	CUarray array = make_line(CUDA_ARRAY3D_SURFACE_LDST, numbers, 8),
		other = make_line(0, numbers, 8);
	CUsurfObject surf;
	CUtexObject tex;
	float out[8];

	desc.res.array.hArray = other;
	INVALID(cuSurfObjectCreate(&surf, &desc));
	desc.res.array.hArray = array;
	OK(cuSurfObjectCreate(&surf, &desc));
	OK(cuSurfObjectGetResourceDesc(&back, surf));
	CHECK(back.res.array.hArray == array);
	OK(cuTexObjectCreate(&tex, &desc, &plain, NULL));
	OK(read_eight(tex, surf, out));
	OK(read_eight(tex, 0, out));
	for (int i = 0; i < 8; i++) {
		uint32_t before, after;

		memcpy(&before, &numbers[i], 4);
		memcpy(&after, &out[i], 4);
		CHECK(after == before + 1);
	}
	OK(cuTexObjectDestroy(tex));
	OK(cuSurfObjectDestroy(surf));
	INVALID(cuSurfObjectDestroy(surf));
	OK(cuArrayDestroy(array));
	OK(cuArrayDestroy(other));
}

static void test_memory(void)
{
	CUDA_RESOURCE_DESC desc = { .resType = CU_RESOURCE_TYPE_LINEAR };
	CUDA_TEXTURE_DESC sampling = plain;
	CUdeviceptr memory;
	CUtexObject tex;
	float out[8];

	OK(cuMemAlloc_v2(&memory, 4096));
	OK(cuMemcpyHtoD_v2(memory, numbers, sizeof(numbers)));
	desc.res.linear.devPtr = memory;
	desc.res.linear.format = CU_AD_FORMAT_FLOAT;
	desc.res.linear.numChannels = 1;
	desc.res.linear.sizeInBytes = 20;
	OK(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	OK(read_eight(tex, 0, out));
	CHECK(memcmp(out, numbers, 20) == 0 && out[5] == 0 && out[7] == 0);
	OK(cuTexObjectDestroy(tex));

	desc.res.linear.numChannels = 3;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	desc.res.linear.numChannels = 1;
	desc.res.linear.devPtr = memory + 4;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	desc.res.linear.devPtr = memory;
	desc.res.linear.sizeInBytes = GIB;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	desc.res.linear.sizeInBytes = 0;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	desc.res.linear.sizeInBytes = 32;
	desc.res.linear.format = CU_AD_FORMAT_NV12;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	desc.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
	sampling.filterMode = CU_TR_FILTER_MODE_LINEAR;
	sampling.flags = CU_TRSF_READ_AS_INTEGER;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	sampling.flags = 0x1000;
	INVALID(cuTexObjectCreate(&tex, &desc, &sampling, NULL));
	INVALID(cuTexObjectCreate(NULL, &desc, &plain, NULL));
	INVALID(cuTexObjectCreate(&tex, NULL, &plain, NULL));
	INVALID(cuTexObjectCreate(&tex, &desc, NULL, NULL));
	desc.resType = CU_RESOURCE_TYPE_PITCH2D;
	desc.res.pitch2D.width = 4;
	desc.res.pitch2D.height = 2;
	desc.res.pitch2D.pitchInBytes = 48;
	INVALID(cuTexObjectCreate(&tex, &desc, &plain, NULL));
	desc.res.pitch2D.pitchInBytes = 64;
	OK(cuTexObjectCreate(&tex, &desc, &plain, NULL));
	OK(cuTexObjectDestroy(tex));
	OK(cuMemFree_v2(memory));
}

static void test_view(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 8, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0 };
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY };
	CUDA_RESOURCE_VIEW_DESC view = {
		.format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
		.width = 4,
		.firstMipmapLevel = 1,
		.lastMipmapLevel = 2,
	}, back;
	CUmipmappedArray mipmap;
	CUtexObject tex;
	CUarray level;
	float out[8];

	OK(cuMipmappedArrayCreate(&mipmap, &desc, 3));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	OK(cuMemcpyHtoA_v2(level, 0, numbers, 16));
	resource.res.mipmap.hMipmappedArray = mipmap;
	OK(cuTexObjectCreate(&tex, &resource, &plain, &view));
	OK(read_eight(tex, 0, out));
	/* Behind its end a texture goes on with its last element. */
	CHECK(memcmp(out, numbers, 16) == 0 && out[7] == numbers[3]);
	OK(cuTexObjectGetResourceViewDesc(&back, tex));
	CHECK(back.firstMipmapLevel == 1);
	OK(cuTexObjectDestroy(tex));
	view.lastMipmapLevel = 3;
	INVALID(cuTexObjectCreate(&tex, &resource, &plain, &view));
	view.lastMipmapLevel = 2;
	view.format = CU_RES_VIEW_FORMAT_UINT_2X32;
	INVALID(cuTexObjectCreate(&tex, &resource, &plain, &view));
	view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
	CHECK(cuTexObjectCreate(&tex, &resource, &plain, &view) == CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMipmappedArrayDestroy(mipmap));
}

/* With its context an object ends; a kernel that is given what is none fails. */
static void test_ends(void)
{
	CUDA_RESOURCE_DESC desc = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUtexObject tex;
	CUcontext ctx;
	float out[8];

	OK(cuCtxCreate_v2(&ctx, 0, 0));
	desc.res.array.hArray = make_line(0, numbers, 8);
	OK(cuTexObjectCreate(&tex, &desc, &plain, NULL));
	OK(cuCtxDestroy_v2(ctx));
	OK(cuCtxCreate_v2(&ctx, 0, 0));
	INVALID(cuTexObjectDestroy(tex));
	CHECK(read_eight(tex, 0, out) == CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(cuCtxDestroy_v2(ctx) == CUDA_SUCCESS);
	test_context();
}

static const struct test_case cases[] = {
	{ "texture: of an array", test_line },
	{ "texture: a surface is written", test_surface },
	{ "texture: of memory, and what is refused", test_memory },
	{ "texture: a view of levels", test_view },
	{ "texture: goes with its context", test_ends },
};

int main(void)
{
	test_environment();
	test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
