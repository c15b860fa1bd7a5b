/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's linker: two pieces of PTX that use each other become one image, which is loaded and run; a piece that
 * is wrong is told in the log. And a list of writes and waits in one call.
 */
#include "program.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static char callee[] = HEAD ".visible .global .u32 step = 5;\n"
			    ".visible .func (.param .b32 out) twice(.param .b32 in)\n"
			    "{\n"
			    "	.reg .b32 %r<3>;\n"
			    "	ld.param.b32 %r1, [in];\n"
			    "	add.s32 %r2, %r1, %r1;\n"
			    "	st.param.b32 [out], %r2;\n"
			    "	ret;\n"
			    "}\n";

static char caller[] = HEAD ".extern .global .u32 step;\n"
			    ".extern .func (.param .b32 out) twice(.param .b32 in);\n"
			    ".visible .entry compute(.param .u64 x)\n"
			    "{\n"
			    "	.reg .b32 %r<4>;\n"
			    "	.reg .b64 %d<3>;\n"
			    "	.param .b32 in, out;\n"
			    "	ld.param.u64 %d1, [x];\n"
			    "	ld.global.u32 %r1, [step];\n"
			    "	st.param.b32 [in], %r1;\n"
			    "	call.uni (out), twice, (in);\n"
			    "	ld.param.b32 %r2, [out];\n"
			    "	st.global.u32 [%d1], %r2;\n"
			    "	ret;\n"
			    "}\n";

static char wrong[] = HEAD "this is no PTX\n";

static void link_and_run(void)
{
	CUlinkState link;
	CUmodule module;
	CUfunction compute;
	CUdeviceptr x;
	void *image, *args[] = { &x };
	size_t size;
	unsigned got = 0;

	CHECK(cuLinkCreate(0, NULL, NULL, &link));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, caller, sizeof(caller), "caller", 0, NULL,
			    NULL));
	CHECK(cuLinkAddData(link, CU_JIT_INPUT_PTX, callee, sizeof(callee), "callee", 0, NULL,
			    NULL));
	CHECK(cuLinkComplete(link, &image, &size));
	EXPECT(size > 0);
	CHECK(cuModuleLoadData(&module, image));
	CHECK(cuLinkDestroy(link));
	EXPECT(cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);

	CHECK(cuModuleGetFunction(&compute, module, "compute"));
	CHECK(cuMemAlloc(&x, 8));
	CHECK(cuLaunchKernel(compute, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	CHECK(cuMemcpyDtoH(&got, x, sizeof(got)));
	EXPECT(got == 10);
	CHECK(cuMemFree(x));
	CHECK(cuModuleUnload(module));
}

static void what_is_wrong_is_told(void)
{
	char log[512] = "";
	CUjit_option names[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log) };
	CUlinkState link;

	CHECK(cuLinkCreate(2, names, values, &link));
	EXPECT(cuLinkAddData(link, CU_JIT_INPUT_PTX, wrong, sizeof(wrong), "wrong", 0, NULL,
			     NULL) == CUDA_ERROR_INVALID_PTX);
	EXPECT(log[0] != '\0' && strlen(log) < sizeof(log));
	EXPECT(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/there/is/no/such.ptx", 0, NULL, NULL) ==
	       CUDA_ERROR_FILE_NOT_FOUND);
	CHECK(cuLinkDestroy(link));
}

static void lists_of_operations(void)
{
	CUstreamBatchMemOpParams ops[2];
	unsigned got = 0;
	CUdeviceptr x;

	CHECK(cuMemAlloc(&x, 8));
	memset(ops, 0, sizeof(ops));
	ops[0].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = x;
	ops[0].writeValue.value = 7;
	ops[1].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = x;
	ops[1].waitValue.value = 7;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	CHECK(cuStreamBatchMemOp(NULL, 2, ops, 0));
	CHECK(cuMemcpyDtoH(&got, x, sizeof(got)));
	EXPECT(got == 7);
	CHECK(cuMemFree(x));
}

int main(void)
{
	CHECK(cuInit(0));
	context_on(0);
	link_and_run();
	what_is_wrong_is_told();
	lists_of_operations();
	printf("linked code right\n");
	return 0;
}
