// SPDX-License-Identifier: Apache-2.0
/*
 * An ordinary CUDA program for the demonstration: saxpy [OPTION...]
 *
 * It computes y = a * x + y on the device again and again, and compares with what it knows
 * must come out. It neither knows of Cotenant nor links with it.
 *
 *	--memory MB	how much device memory it takes for its vectors (64)
 *	--more MB	then asks for that much more, and says what the driver answered
 *	--seconds N	how long it computes (1)
 *	--launches	says how many kernels it launched, instead of comparing
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/cuda/cuda_abi.h"

#define N_CHECKED   4096
#define BLOCK	    256
#define N_IN_FLIGHT 8

static const char ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	".visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .f32 %f<5>;\n"
	"	.reg .b32 %r<5>;\n"
	"	.reg .b64 %d<6>;\n"
	"	mov.u32 %r1, %ctaid.x;\n"
	"	mov.u32 %r2, %ntid.x;\n"
	"	mov.u32 %r3, %tid.x;\n"
	"	mad.lo.s32 %r1, %r1, %r2, %r3;\n"
	"	ld.param.u32 %r4, [n];\n"
	"	setp.ge.u32 %p, %r1, %r4;\n"
	"	@%p ret;\n"
	"	ld.param.f32 %f1, [a];\n"
	"	ld.param.u64 %d1, [x];\n"
	"	ld.param.u64 %d2, [y];\n"
	"	mul.wide.u32 %d3, %r1, 4;\n"
	"	add.s64 %d4, %d1, %d3;\n"
	"	add.s64 %d5, %d2, %d3;\n"
	"	ld.global.f32 %f2, [%d4];\n"
	"	ld.global.f32 %f3, [%d5];\n"
	"	fma.rn.f32 %f4, %f1, %f2, %f3;\n"
	"	st.global.f32 [%d5], %f4;\n"
	"	ret;\n"
	"}\n";

/* The driver's calls, looked up as a program that does not link with it does. */
static CUresult (*init)(unsigned);
static CUresult (*retain)(CUcontext *, CUdevice);
static CUresult (*set_current)(CUcontext);
static CUresult (*mem_alloc)(CUdeviceptr *, size_t);
static CUresult (*mem_free)(CUdeviceptr);
static CUresult (*to_device)(CUdeviceptr, const void *, size_t);
static CUresult (*to_host)(void *, CUdeviceptr, size_t);
static CUresult (*load)(CUmodule *, const void *);
static CUresult (*get_function)(CUfunction *, CUmodule, const char *);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			  unsigned, CUstream, void **, void **);
static CUresult (*synchronize)(void);
static CUresult (*error_name)(CUresult, const char **);

static const struct {
	const char *name;
	void *slot;
} calls[] = {
	{ "cuInit", &init },
	{ "cuDevicePrimaryCtxRetain", &retain },
	{ "cuCtxSetCurrent", &set_current },
	{ "cuMemAlloc_v2", &mem_alloc },
	{ "cuMemFree_v2", &mem_free },
	{ "cuMemcpyHtoD_v2", &to_device },
	{ "cuMemcpyDtoH_v2", &to_host },
	{ "cuModuleLoadData", &load },
	{ "cuModuleGetFunction", &get_function },
	{ "cuLaunchKernel", &launch },
	{ "cuCtxSynchronize", &synchronize },
	{ "cuGetErrorName", &error_name },
};

struct options {
	size_t memory_mb, more_mb;
	double seconds;
	bool counts_launches;
};

static const char *name_of(CUresult result)
{
	const char *name = "?";

	error_name(result, &name);
	return name;
}

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %s\n", what, name_of(result));
	exit(1);
}

static void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *found = library ? dlsym(library, calls[i].name) : NULL;

		if (!found) {
			printf("there is no CUDA driver: %s\n", dlerror());
			exit(1);
		}
		memcpy(calls[i].slot, &found, sizeof(found));
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static CUfunction function_load(void)
{
	CUcontext context;
	CUfunction function;
	CUmodule module;

	driver_open();
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(set_current(context), "cuCtxSetCurrent");
	must(load(&module, ptx), "cuModuleLoadData");
	must(get_function(&function, module, "saxpy"), "cuModuleGetFunction");
	return function;
}

static void ask_for_more(size_t size_mb)
{
	CUdeviceptr ptr;
	double start = now();
	CUresult result = mem_alloc(&ptr, size_mb << 20);

	printf("%zu MiB more: %s after %.1f s\n", size_mb, name_of(result), now() - start);
	fflush(stdout);
	if (result == CUDA_SUCCESS)
		must(mem_free(ptr), "cuMemFree");
}

/* y was 1 and x is the index: after n rounds y is 1 + n * a * x, exact for small numbers. */
static void compare(CUdeviceptr y, unsigned n_rounds)
{
	static float found[N_CHECKED];

	must(to_host(found, y, sizeof(found)), "cuMemcpyDtoH");
	for (unsigned i = 0; i < N_CHECKED; i++) {
		if (found[i] != 1 + (float)n_rounds * (float)(i % 16)) {
			printf("WRONG: y[%u] is %g after %u rounds\n", i, found[i], n_rounds);
			exit(1);
		}
	}
	printf("%u rounds, every result right\n", n_rounds);
}

static void compute(CUfunction function, const struct options *options)
{
	static float x[N_CHECKED], y[N_CHECKED];
	CUdeviceptr dx, dy;
	float a = 1;
	unsigned n = N_CHECKED, rounds = 0;
	double start;

	for (unsigned i = 0; i < N_CHECKED; i++) {
		x[i] = (float)(i % 16);
		y[i] = 1;
	}
	must(mem_alloc(&dx, options->memory_mb << 19), "cuMemAlloc");
	must(mem_alloc(&dy, options->memory_mb << 19), "cuMemAlloc");
	must(to_device(dx, x, sizeof(x)), "cuMemcpyHtoD");
	must(to_device(dy, y, sizeof(y)), "cuMemcpyHtoD");
	if (options->more_mb)
		ask_for_more(options->more_mb);

	start = now();
	while (now() - start < options->seconds && rounds < 1000000) {
		must(launch(function, N_CHECKED / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL,
			    (void *[]){ &a, &dx, &dy, &n }, NULL),
		     "cuLaunchKernel");
		rounds++;
		/* Who counts launches keeps some in flight, so that the device never waits for it.
		 */
		if (!options->counts_launches || rounds % N_IN_FLIGHT == 0)
			must(synchronize(), "cuCtxSynchronize");
	}
	must(synchronize(), "cuCtxSynchronize");
	if (options->counts_launches)
		printf("%u\n", rounds);
	else
		compare(dy, rounds);
	must(mem_free(dx), "cuMemFree");
	must(mem_free(dy), "cuMemFree");
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "memory", required_argument, NULL, 'm' },
		{ "more", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 's' },
		{ "launches", no_argument, NULL, 'l' },
		{ 0 },
	};
	struct options options = { .memory_mb = 64, .seconds = 1 };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case 'm':
			options.memory_mb = strtoul(optarg, NULL, 0);
			break;
		case 'o':
			options.more_mb = strtoul(optarg, NULL, 0);
			break;
		case 's':
			options.seconds = strtod(optarg, NULL);
			break;
		case 'l':
			options.counts_launches = true;
			break;
		default:
			return 2;
		}
	}
	compute(function_load(), &options);
	return 0;
}
