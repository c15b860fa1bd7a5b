// SPDX-License-Identifier: Apache-2.0
// Libraries loaded while the program runs, their kernels and variables on every device, and the driver's
// own entry points.
#include <cstring>
#include <cuda.h>
#include "check.h"

static const char text[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 step = 3;
.visible .entry advance(.param .u64 x)
{
	.reg .b32 %r<4>;
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [x];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d2, %r1, 4;
	add.s64 %d1, %d1, %d2;
	ld.global.u32 %r2, [%d1];
	ld.global.u32 %r3, [step];
	add.s32 %r2, %r2, %r3;
	st.global.u32 [%d1], %r2;
	ret;
}
.visible .entry nothing()
{
	ret;
}
)";

__global__ void linked(int *x)
{
	x[threadIdx.x] *= 2;
}

// A kernel of a library is one handle for all devices, and is loaded on each by its first launch there.
static void on_device(int device, cudaLibrary_t library, cudaKernel_t advance)
{
	std::vector<int> ones(32, 1);
	int *x, step = device + 10, was = 0;
	size_t size_bytes;
	void *variable, *args[] = { &x };

	CHECK(cudaSetDevice(device));
	x = to_device(ones);
	CHECK(cudaLaunchKernel((void *)advance, dim3(1), dim3(32), args, 0, 0));
	EXPECT(to_host(x, 32)[31] == 4);

	CHECK(cudaLibraryGetGlobal(&variable, &size_bytes, library, "step"));
	EXPECT(size_bytes == sizeof(step));
	CHECK(cudaMemcpy(&was, variable, sizeof(was), cudaMemcpyDeviceToHost));
	EXPECT(was == 3);
	CHECK(cudaMemcpy(variable, &step, sizeof(step), cudaMemcpyHostToDevice));
	CHECK(cudaLaunchKernel((void *)advance, dim3(1), dim3(32), args, 0, 0));
	EXPECT(to_host(x, 32)[0] == 4 + step);
	CHECK(cudaFree(x));
}

static void libraries()
{
	cudaLibrary_t library;
	cudaKernel_t advance, all[2];
	unsigned n = 0;
	size_t size_bytes;
	void *variable;

	CHECK(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
	CHECK(cudaLibraryGetKernelCount(&n, library));
	EXPECT(n == 2);
	CHECK(cudaLibraryEnumerateKernels(all, n, library));
	CHECK(cudaLibraryGetKernel(&advance, library, "advance"));
	EXPECT(advance == all[0] || advance == all[1]);
	for (int device : { 0, 1 })
		on_device(device, library, advance);
	EXPECT_ERROR(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&advance, library, "absent"));
	EXPECT_ERROR(cudaErrorSymbolNotFound, cudaLibraryGetGlobal(&variable, &size_bytes, library, "absent"));
	CHECK(cudaLibraryUnload(library));

	EXPECT_ERROR(cudaErrorInvalidPtx,
		     cudaLibraryLoadData(&library, ".version 7.0\n.target sm_75\nno PTX", nullptr, nullptr, 0,
					 nullptr, nullptr, 0));
	EXPECT_ERROR(cudaErrorFileNotFound, cudaLibraryLoadFromFile(&library, "/there/is/no/such.ptx", nullptr,
								    nullptr, 0, nullptr, nullptr, 0));
}

// Kernels of the program itself have such handles, too; the driver takes them.
static void handles_of_linked_kernels()
{
	cudaFunction_t function;
	cudaKernel_t kernel;
	int *x = to_device(std::vector<int>(32, 21)), limit = 0;
	void *args[] = { &x };

	CHECK(cudaGetFuncBySymbol(&function, (const void *)linked));
	EXPECT(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr) == CUDA_SUCCESS);
	EXPECT(to_host(x, 32)[31] == 42);
	CHECK(cudaGetKernel(&kernel, (const void *)linked));
	EXPECT(cuKernelGetAttribute(&limit, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0) == CUDA_SUCCESS);
	EXPECT(limit == 1024);
	CHECK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10, 0));
}

static void entry_points()
{
	cudaDriverEntryPointQueryResult found;
	CUresult (*get_count)(int *);
	void *entry;
	int n = 0;

	CHECK(cudaGetDriverEntryPointByVersion("cuDeviceGetCount", &entry, 12000, cudaEnableDefault, &found));
	EXPECT(found == cudaDriverEntryPointSuccess);
	memcpy(&get_count, &entry, sizeof(entry));
	EXPECT(get_count(&n) == CUDA_SUCCESS && n == 2);
	CHECK(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &entry, 12000, cudaEnableDefault, &found));
	EXPECT(found == cudaDriverEntryPointSymbolNotFound && !entry);
	EXPECT_ERROR(cudaErrorInvalidValue,
		     cudaGetDriverEntryPointByVersion(nullptr, &entry, 12000, cudaEnableDefault, &found));
}

int main()
{
	libraries();
	CHECK(cudaSetDevice(0));
	handles_of_linked_kernels();
	entry_points();
	printf("libraries right\n");
	return 0;
}
