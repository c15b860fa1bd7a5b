// SPDX-License-Identifier: Apache-2.0
/*
 * Faults of kernels: each becomes the error of its context, stays, and is nobody else's business,
 * neither another context's nor another process's.
 */
#include <sys/wait.h>

#include "softgpu/cuda/test-driver.h"

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n,\n"
	"			    .param .b64 s);\n"
	".global .align 1 .b8 text[2] = {120, 0};\n"
	".visible .entry wild()\n"
	"{\n"
	"	.reg .b64 %d; mov.u64 %d, 4096; st.global.u32 [%d], 1; ret;\n"
	"}\n"
	".visible .entry misaligned(.param .u64 at)\n"
	"{\n"
	"	.reg .b64 %d; ld.param.u64 %d, [at]; st.global.u32 [%d+1], 1; ret;\n"
	"}\n"
	".visible .entry trapped() { trap; ret; }\n"
	".visible .entry asserted()\n"
	"{\n"
	"	.reg .b64 %d;\n"
	"	mov.u64 %d, text; cvta.global.u64 %d, %d;\n"
	"	{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
	"	st.param.b64 [m], %d; st.param.b64 [f], %d; st.param.b32 [l], 7;\n"
	"	st.param.b64 [n], %d; st.param.b64 [s], 1;\n"
	"	call.uni __assertfail, (m, f, l, n, s); }\n"
	"	ret;\n"
	"}\n"
	".visible .entry pages(.param .u64 at)\n"
	"{\n"
	"	.reg .b32 %r<3>; .reg .b64 %d<3>;\n"
	"	ld.param.u64 %d1, [at]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;\n"
	"	mad.lo.u32 %r1, %r1, 256, %r2; mul.wide.u32 %d2, %r1, 4096;\n"
	"	add.u64 %d1, %d1, %d2; st.global.u32 [%d1], 1; ret;\n"
	"}\n"
	".visible .entry fine(.param .u64 at)\n"
	"{\n"
	"	.reg .b64 %d; ld.param.u64 %d, [at]; st.global.u32 [%d], 77; ret;\n"
	"}\n";

static CUdevice device;

static CUresult run(CUmodule module, const char *name, CUdeviceptr at)
{
	void *params[] = { &at };
	CUresult r;

	r = cuLaunchKernel(test_function(module, name), 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	return r != CUDA_SUCCESS ? r : cuCtxSynchronize();
}

static void test_fault(const char *name, CUresult want, bool after_a_launch)
{
	CUdeviceptr at, more;
	CUcontext ctx;
	CUmodule module;
	CUstream stream;

	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuMemAlloc_v2(&at, 4));
	NEED(cuStreamCreate(&stream, 0));
	if (after_a_launch)
		NEED(run(module, "fine", at));
	expect(want, run(module, name, at), name);
	expect(want, cuCtxSynchronize(), "it stays at synchronisation");
	expect(want, cuMemAlloc_v2(&more, 4), "at an allocation");
	expect(want, cuStreamSynchronize(stream), "in another stream");
	expect(want, cuStreamQuery(NULL), "and at a query");
	NEED(cuCtxDestroy_v2(ctx));
}

/* Another context of the process, and one of another process, while one has failed. */
static void test_others(void)
{
	CUcontext bad, good;
	CUmodule module;
	unsigned int value = 0;
	CUdeviceptr at;
	int status;
	pid_t pid;

	NEED(cuCtxCreate_v2(&bad, 0, device));
	NEED(cuModuleLoadData(&module, ptx));
	expect(CUDA_ERROR_ILLEGAL_ADDRESS, run(module, "wild", 0), "one context fails");

	NEED(cuCtxCreate_v2(&good, 0, device));
	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuMemAlloc_v2(&at, 4));
	expect(CUDA_SUCCESS, run(module, "fine", at), "another one works");
	NEED(cuMemcpyDtoH_v2(&value, at, sizeof(value)));
	check(value == 77, "with its results");

	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test-fault", "child", NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "another process notices nothing");
	NEED(cuCtxDestroy_v2(good));
	NEED(cuCtxDestroy_v2(bad));
	NEED(cuCtxCreate_v2(&good, 0, device));
	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuMemAlloc_v2(&at, 4));
	expect(CUDA_SUCCESS, run(module, "fine", at), "a new context works in the same process");
	NEED(cuCtxDestroy_v2(good));
}

/* More than the process may have of the host, a page at a time; twice. */
static int child_large(void)
{
	const uint64_t bytes = 8ull << 30;
	unsigned int blocks = bytes / 4096 / 256;
	CUdeviceptr at;
	CUcontext ctx;
	CUmodule module;
	void *params[] = { &at };

	if (cuInit(0) || cuDeviceGet(&device, 0))
		return 1;
	for (int i = 0; i < 2; i++) {
		if (cuCtxCreate_v2(&ctx, 0, device) || cuModuleLoadData(&module, ptx) ||
		    cuMemAlloc_v2(&at, bytes))
			return 2;
		if (cuMemsetD32_v2(at, 1, bytes / 4) != CUDA_ERROR_OUT_OF_MEMORY)
			return 3;
		if (run(module, "fine", at))
			return 4;
		if (cuLaunchKernel(test_function(module, "pages"), blocks, 1, 1, 256, 1, 1, 0, NULL,
				   params, NULL) ||
		    cuCtxSynchronize() != CUDA_ERROR_LAUNCH_FAILED)
			return 5;
		if (cuCtxDestroy_v2(ctx))
			return 6;
	}
	return 0;
}

static void test_host_memory(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		setenv("SOFTGPU_HOST_MEMORY", "300M", 1);
		execl("/proc/self/exe", "test-fault", "child", "large", NULL);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		printf("# child: %x\n", status);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	      "a kernel that writes more than the host has fails, and no more");
}

static int child(void)
{
	CUmodule module;
	CUdeviceptr at;
	CUcontext ctx;

	if (cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate_v2(&ctx, 0, device) ||
	    cuModuleLoadData(&module, ptx) || cuMemAlloc_v2(&at, 4))
		return 1;
	return run(module, "fine", at) != CUDA_SUCCESS;
}

int main(int argc, _unused_ char **argv)
{
	CUcontext ctx;

	if (argc > 1)
		return argc > 2 ? child_large() : child();
	ctx = test_begin();
	NEED(cuDeviceGet(&device, 0));
	test_fault("wild", CUDA_ERROR_ILLEGAL_ADDRESS, false);
	test_fault("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, true);
	test_fault("trapped", CUDA_ERROR_LAUNCH_FAILED, true);
	test_fault("asserted", CUDA_ERROR_ASSERT, false);
	test_others();
	test_host_memory();
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "the context ends");
	test_end();
	return n_failed > 0;
}
