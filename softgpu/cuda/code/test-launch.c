// SPDX-License-Identifier: Apache-2.0
/* Code from text to results: modules, libraries, the linker, launches of every kind. */
#include "softgpu/cuda/test-driver.h"

#define N 1000

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 scale = 3;\n"
	".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
	"{\n"
	"	.reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<12>; .reg .f32 %f<4>;\n"
	"	ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];\n"
	"	ld.param.u32 %r1, [n];\n"
	"	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
	"	mad.lo.s32 %r5, %r2, %r3, %r4;\n"
	"	setp.ge.s32 %p, %r5, %r1; @%p bra done;\n"
	"	cvta.to.global.u64 %d4, %d1; cvta.to.global.u64 %d5, %d2;\n"
	"	cvta.to.global.u64 %d6, %d3; mul.wide.s32 %d7, %r5, 4;\n"
	"	add.s64 %d8, %d4, %d7; add.s64 %d9, %d5, %d7; add.s64 %d10, %d6, %d7;\n"
	"	ld.global.f32 %f1, [%d8]; ld.global.f32 %f2, [%d9]; add.f32 %f3, %f1, %f2;\n"
	"	st.global.f32 [%d10], %f3;\n"
	"done:\n"
	"	ret;\n"
	"}\n"
	".visible .entry scaled(.param .u64 to, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 %r<4>; .reg .b64 %d<3>;\n"
	"	ld.param.u64 %d1, [to]; ld.param.u32 %r1, [value];\n"
	"	ld.global.u32 %r2, [scale]; mul.lo.u32 %r3, %r1, %r2;\n"
	"	st.global.u32 [%d1], %r3;\n"
	"	ret;\n"
	"}\n"
	".visible .entry nothing() { ret; }\n"
	".visible .entry few() .maxntid 64, 1, 1 { ret; }\n";

static const char ptx_caller[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				 ".extern .func (.param .b32 r) twice(.param .b32 v);\n"
				 ".visible .entry call(.param .u64 to)\n"
				 "{\n"
				 "	.reg .b32 %r<3>; .reg .b64 %d<2>;\n"
				 "	ld.param.u64 %d1, [to]; mov.u32 %r1, 21;\n"
				 "	{ .param .b32 v; .param .b32 r; st.param.b32 [v], %r1;\n"
				 "	call.uni (r), twice, (v); ld.param.b32 %r2, [r]; }\n"
				 "	st.global.u32 [%d1], %r2;\n"
				 "	ret;\n"
				 "}\n";

static const char ptx_callee[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .func (.param .b32 r) twice(.param .b32 v)\n"
	"{\n"
	"	.reg .b32 %r<2>;\n"
	"	ld.param.b32 %r1, [v]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1;\n"
	"	ret;\n"
	"}\n";

/* Each thread asks for 100 bytes at a multiple of a number, and gives them back in the second kernel. */
static const char ptx_heap[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".extern .func (.param .b64 r) __nv_aligned_device_malloc(.param .b64 s, .param .b64 a);\n"
	".extern .func free(.param .b64 p);\n"
	".visible .entry ask(.param .u64 to, .param .u64 align)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d<6>;\n"
	"	ld.param.u64 %d1, [to]; ld.param.u64 %d2, [align]; mov.u32 %r1, %tid.x;\n"
	"	{ .param .b64 s; .param .b64 a; .param .b64 r; st.param.b64 [s], 100;\n"
	"	st.param.b64 [a], %d2; call.uni (r), __nv_aligned_device_malloc, (s, a);\n"
	"	ld.param.b64 %d3, [r]; }\n"
	"	mad.wide.u32 %d4, %r1, 8, %d1; st.global.u64 [%d4], %d3;\n"
	"	ret;\n"
	"}\n"
	".visible .entry give(.param .u64 from)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d<6>;\n"
	"	ld.param.u64 %d1, [from]; mov.u32 %r1, %tid.x;\n"
	"	mad.wide.u32 %d2, %r1, 8, %d1; ld.global.u64 %d3, [%d2];\n"
	"	{ .param .b64 p; st.param.b64 [p], %d3; call.uni free, (p); }\n"
	"	ret;\n"
	"}\n";

static CUmodule module;
static CUdeviceptr word;

static unsigned int word_value(void)
{
	unsigned int value = 0;

	NEED(cuMemcpyDtoH_v2(&value, word, sizeof(value)));
	return value;
}

static void test_add(void)
{
	CUfunction add = test_function(module, "add");
	static float a[N], b[N], c[N];
	CUdeviceptr da, db, dc;
	int n = N, n_wrong = 0;
	void *params[] = { &da, &db, &dc, &n };

	NEED(cuMemAlloc_v2(&da, sizeof(a)));
	NEED(cuMemAlloc_v2(&db, sizeof(b)));
	NEED(cuMemAlloc_v2(&dc, sizeof(c)));
	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 2 * i;
	}
	NEED(cuMemcpyHtoD_v2(da, a, sizeof(a)));
	NEED(cuMemcpyHtoD_v2(db, b, sizeof(b)));
	expect(CUDA_SUCCESS, cuLaunchKernel(add, 8, 1, 1, 128, 1, 1, 0, NULL, params, NULL),
	       "launch");
	NEED(cuMemcpyDtoH_v2(c, dc, sizeof(c)));
	for (int i = 0; i < N; i++)
		n_wrong += c[i] != 3.0f * i;
	check(n_wrong == 0, "vectors added");
	NEED(cuMemFree_v2(da));
	NEED(cuMemFree_v2(db));
	NEED(cuMemFree_v2(dc));
}

static void test_arguments(void)
{
	CUfunction scaled = test_function(module, "scaled");
	struct {
		CUdeviceptr to;
		unsigned int value;
	} buffer = { word, 7 };
	size_t size = 12, offset, bytes;
	unsigned int value = 5;
	void *params[] = { &word, &value };
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };

	NEED(cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check(word_value() == 15, "arguments by pointers, and a global with a value");
	NEED(cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	check(word_value() == 21, "arguments in one buffer");
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra), "both");
	size = 4;
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), "buffer too small");
	expect(CUDA_ERROR_INVALID_VALUE,
	       cuLaunchKernel(scaled, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "no arguments");

	NEED(cuFuncGetParamInfo(scaled, 1, &offset, &bytes));
	check(offset == 8 && bytes == 4, "where a parameter is");
	expect(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(scaled, 2, &offset, &bytes),
	       "no such parameter");

	NEED(cuFuncSetBlockShape(scaled, 1, 1, 1));
	NEED(cuParamSetSize(scaled, 12));
	NEED(cuParamSetv(scaled, 0, &word, sizeof(word)));
	NEED(cuParamSeti(scaled, 8, 9));
	NEED(cuLaunchGrid(scaled, 1, 1));
	check(word_value() == 27, "the launch of old");
}

static void test_refusals(void)
{
	CUfunction nothing = test_function(module, "nothing"), few = test_function(module, "few");
	static const struct {
		unsigned int grid[3], block[3], shared;
		CUresult want;
		const char *what;
	} cases[] = {
		{ { 1, 1, 1 }, { 1, 1, 1 }, 0, CUDA_SUCCESS, "one thread" },
		{ { 0, 1, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE, "empty grid" },
		{ { 1, 65536, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE, "grid too high" },
		{ { 1, 1, 1 }, { 1, 0, 1 }, 0, CUDA_ERROR_INVALID_VALUE, "empty block" },
		{ { 1, 1, 1 }, { 1025, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE, "block too wide" },
		{ { 1, 1, 1 }, { 64, 32, 1 }, 0, CUDA_ERROR_INVALID_VALUE, "block too large" },
		{ { 1, 1, 1 }, { 1, 1, 65 }, 0, CUDA_ERROR_INVALID_VALUE, "block too deep" },
		{ { 1, 1, 1 }, { 1, 1, 1 }, 49152, CUDA_SUCCESS, "48 KiB of shared memory" },
		{ { 1, 1, 1 }, { 1, 1, 1 }, 49153, CUDA_ERROR_INVALID_VALUE, "more of it" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect(cases[i].want,
		       cuLaunchKernel(nothing, cases[i].grid[0], cases[i].grid[1], cases[i].grid[2],
				      cases[i].block[0], cases[i].block[1], cases[i].block[2],
				      cases[i].shared, NULL, NULL, NULL),
		       cases[i].what);
	NEED(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
	expect(CUDA_SUCCESS, cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 65536, NULL, NULL, NULL),
	       "more of it, asked for");
	expect(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
	       cuLaunchKernel(few, 1, 1, 1, 65, 1, 1, 0, NULL, NULL, NULL),
	       "more threads than the kernel allows");
	expect(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
	       cuLaunchCooperativeKernel(nothing, 1000000, 1, 1, 32, 1, 1, 0, NULL, NULL),
	       "more blocks than fit at once");
	NEED(cuCtxSynchronize());
}

static void test_attributes(void)
{
	CUfunction add = test_function(module, "add");
	int value, n_bad = 0;

	for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++)
		n_bad += cuFuncGetAttribute(&value, i, add) != CUDA_SUCCESS;
	check(n_bad == 0, "every attribute is answered");
	expect(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, add),
	       "and no other");
	NEED(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, add));
	check(value == 75, "the PTX version is the target's");
	NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, add, 1024, 0));
	check(value == 2, "two blocks of 1,024 threads share a multiprocessor");
}

static void test_library(void)
{
	CUdeviceptr to = word;
	unsigned int value = 4;
	void *params[] = { &to, &value };
	CUfunction function;
	CUlibrary library;
	const char *name;
	CUkernel kernel;

	NEED(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	NEED(cuLibraryGetKernel(&kernel, library, "scaled"));
	expect(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "none"),
	       "no such kernel");
	NEED(cuKernelGetName(&name, kernel));
	check(strcmp(name, "scaled") == 0, "a kernel's name");
	NEED(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	check(word_value() == 12, "a library's kernel is launched by its own handle");
	NEED(cuKernelGetFunction(&function, kernel));
	NEED(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	NEED(cuLibraryUnload(library));
	expect(CUDA_ERROR_INVALID_HANDLE,
	       cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
	       "a kernel of an unloaded library");
	expect(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library), "unloading twice");
}

static void test_link(void)
{
	CUdeviceptr to = word;
	void *params[] = { &to }, *image;
	CUlinkState link;
	char path[128];
	CUmodule linked;
	size_t size;
	FILE *f;

	NEED(cuLinkCreate_v2(0, NULL, NULL, &link));
	NEED(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)ptx_caller, sizeof(ptx_caller), "a",
			      0, NULL, NULL));
	check(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS, "a function that is missing");
	NEED(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)ptx_callee, sizeof(ptx_callee), "b",
			      0, NULL, NULL));
	NEED(cuLinkComplete(link, &image, &size));

	snprintf(path, sizeof(path), "%s/image", test_dir);
	f = fopen(path, "w");
	fwrite(image, 1, size, f);
	fclose(f);
	NEED(cuLinkDestroy(link));
	NEED(cuModuleLoad(&linked, path));
	NEED(cuLaunchKernel(test_function(linked, "call"), 1, 1, 1, 1, 1, 1, 0, NULL, params,
			    NULL));
	check(word_value() == 42, "a linked image, from a file");
	NEED(cuModuleUnload(linked));
}

static void test_bad_code(void)
{
	static const char unknown[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				      ".visible .entry k() { frobnicate.u32; ret; }\n";
	CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	char log[512] = "";
	void *values[] = { log, (void *)sizeof(log) };
	CUmodule bad;

	expect(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&bad, unknown, 2, options, values),
	       "an unknown instruction");
	check(strstr(log, "frobnicate") && (size_t)values[1] == strlen(log),
	      "its name is in the log");
	expect(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&bad, "\001\002\003"), "no code at all");
	expect(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoadData(&bad, "\177ELF"), "machine code");
	expect(CUDA_ERROR_INVALID_VALUE, cuModuleLoadData(&bad, NULL), "no image");
	expect(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&bad, "/nonexistent"), "no file");
}

static void test_handles(void)
{
	CUfunction function = test_function(module, "nothing");
	CUdeviceptr addr;
	size_t bytes;

	NEED(cuModuleGetGlobal_v2(&addr, &bytes, module, "scale"));
	check(bytes == 4, "a variable and its size");
	expect(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&addr, &bytes, module, "none"),
	       "no such variable");
	expect(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "none"),
	       "no such function");
	expect(CUDA_ERROR_INVALID_HANDLE,
	       cuLaunchKernel((CUfunction)0x1234, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	       "no function");
	NEED(cuModuleUnload(module));
	expect(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module), "unloading twice");
	expect(CUDA_ERROR_INVALID_HANDLE,
	       cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	       "a function of an unloaded module");
}

#define N_PIECES 32

static bool pieces_are_right(const CUdeviceptr *pieces, size_t align)
{
	for (int i = 0; i < N_PIECES; i++) {
		if (!pieces[i] || pieces[i] % align)
			return false;
		for (int k = 0; k < i; k++) {
			if (pieces[i] < pieces[k] + 100 && pieces[k] < pieces[i] + 100)
				return false;
		}
	}
	return true;
}

static void ask_and_give(CUmodule heap, CUdeviceptr memory, size_t align, CUdeviceptr *pieces)
{
	void *params[] = { &memory, &align };

	NEED(cuLaunchKernel(test_function(heap, "ask"), 1, 1, 1, N_PIECES, 1, 1, 0, NULL, params,
			    NULL));
	NEED(cuMemcpyDtoH_v2(pieces, memory, N_PIECES * sizeof(*pieces)));
	NEED(cuLaunchKernel(test_function(heap, "give"), 1, 1, 1, N_PIECES, 1, 1, 0, NULL, params,
			    NULL));
	NEED(cuCtxSynchronize());
}

static void test_heap(void)
{
	CUdeviceptr memory, pieces[N_PIECES];
	CUmodule heap;
	size_t size;

	NEED(cuMemAlloc_v2(&memory, sizeof(pieces)));
	expect(CUDA_SUCCESS, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20),
	       "a heap's size before a module has it");
	NEED(cuModuleLoadData(&heap, ptx_heap));
	expect(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 2 << 20),
	       "and afterwards");
	NEED(cuCtxGetLimit(&size, CU_LIMIT_MALLOC_HEAP_SIZE));
	check(size == 1 << 20, "it stays as it was");
	for (size_t align = 1; align <= 4096; align *= 4) {
		ask_and_give(heap, memory, align, pieces);
		check(pieces_are_right(pieces, align), "pieces of the heap at multiples");
	}
	ask_and_give(heap, memory, 3, pieces);
	check(!pieces[0] && !pieces[N_PIECES - 1], "3 is no alignment");
	NEED(cuModuleUnload(heap));
	NEED(cuMemFree_v2(memory));
}

int main(void)
{
	CUcontext ctx = test_begin();

	NEED(cuMemAlloc_v2(&word, 4));
	NEED(cuModuleLoadData(&module, ptx));
	test_add();
	test_arguments();
	test_refusals();
	test_attributes();
	test_library();
	test_link();
	test_bad_code();
	test_heap();
	test_handles();
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "the context ends");
	test_end();
	return n_failed > 0;
}
