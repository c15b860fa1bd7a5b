// SPDX-License-Identifier: Apache-2.0
/*
 * What calls of the driver cost: bench-driver
 *
 * Prints a table of medians over ROUNDS batches of calls, each batch long enough to time.
 * `bench/run` runs it bare and as a tenant and puts both side by side. With the argument
 * "memory" it does the calls of memory alone, with "start" it only starts.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/cuda/cuda_abi.h"

#define ROUNDS	   15
#define N_LIVE_MAX 100000
#define N_ALLOC	   1000
#define LIVE_BYTES 4096

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing()\n{\n\tret;\n}\n";

static CUresult (*init)(unsigned);
static CUresult (*retain)(CUcontext *, CUdevice);
static CUresult (*set_current)(CUcontext);
static CUresult (*mem_alloc)(CUdeviceptr *, size_t);
static CUresult (*mem_free)(CUdeviceptr);
static CUresult (*mem_info)(size_t *, size_t *);
static CUresult (*load)(CUmodule *, const void *);
static CUresult (*get_function)(CUfunction *, CUmodule, const char *);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			  unsigned, CUstream, void **, void **);
static CUresult (*synchronize)(void);
static CUresult (*stream_query)(CUstream);

static CUcontext context;
static CUfunction nothing;

static const struct {
	const char *name;
	void *slot;
} calls[] = {
	{ "cuInit", &init },
	{ "cuDevicePrimaryCtxRetain", &retain },
	{ "cuCtxSetCurrent", &set_current },
	{ "cuMemAlloc_v2", &mem_alloc },
	{ "cuMemFree_v2", &mem_free },
	{ "cuMemGetInfo_v2", &mem_info },
	{ "cuModuleLoadData", &load },
	{ "cuModuleGetFunction", &get_function },
	{ "cuLaunchKernel", &launch },
	{ "cuCtxSynchronize", &synchronize },
	{ "cuStreamQuery", &stream_query },
};

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s answered %d\n", what, result);
	exit(1);
}

static void *library_open(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void driver_open(void)
{
	void *library = library_open("libcuda.so.1");

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *found = dlsym(library, calls[i].name);

		must(!found, calls[i].name);
		memcpy(calls[i].slot, &found, sizeof(found));
	}
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void alloc_and_free(void)
{
	CUdeviceptr ptr;

	must(mem_alloc(&ptr, LIVE_BYTES), "cuMemAlloc");
	must(mem_free(ptr), "cuMemFree");
}

static CUdeviceptr taken[N_ALLOC];
static size_t n_taken;

static void alloc_only(void)
{
	must(mem_alloc(&taken[n_taken++], LIVE_BYTES), "cuMemAlloc");
}

static void free_taken(void)
{
	while (n_taken)
		must(mem_free(taken[--n_taken]), "cuMemFree");
}

static void make_current(void)
{
	must(set_current(context), "cuCtxSetCurrent");
}

static void ask_memory(void)
{
	size_t free_bytes, total_bytes;

	must(mem_info(&free_bytes, &total_bytes), "cuMemGetInfo");
}

/* A call that Cotenant does not know. */
static void ask_stream(void)
{
	must(stream_query(NULL), "cuStreamQuery");
}

static void launch_nothing(void)
{
	must(launch(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

static void launch_and_wait(void)
{
	launch_nothing();
	must(synchronize(), "cuCtxSynchronize");
}

static void *nvml_device;
static int (*nvml_memory_info)(void *, void *);

static void ask_nvml(void)
{
	uint64_t memory[3];

	must(nvml_memory_info(nvml_device, memory), "nvmlDeviceGetMemoryInfo");
}

static void nvml_open(void)
{
	void *library = library_open("libnvidia-ml.so.1");
	int (*nvml_init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
	int (*by_index)(unsigned, void **) =
		(int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");

	nvml_memory_info = (int (*)(void *, void *))dlsym(library, "nvmlDeviceGetMemoryInfo");
	must(!nvml_init || !by_index || !nvml_memory_info, "libnvidia-ml.so.1");
	must(nvml_init(), "nvmlInit");
	must(by_index(0, &nvml_device), "nvmlDeviceGetHandleByIndex");
}

/* Prints the median of a call's time over ROUNDS batches; @after ends each batch, untimed. */
static void row(const char *what, void (*call)(void), int n, void (*after)(void))
{
	double us[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double start = now_us();

		for (int k = 0; k < n; k++)
			call();
		us[i] = (now_us() - start) / n;
		if (after)
			after();
	}
	qsort(us, ROUNDS, sizeof(us[0]), ascending);
	printf("%-44s %9.3f %9.3f\n", what, us[ROUNDS / 2], us[0]);
}

static void wait_for_all(void)
{
	must(synchronize(), "cuCtxSynchronize");
}

static void with_live(size_t n)
{
	static CUdeviceptr live[N_LIVE_MAX];
	char what[64];

	for (size_t i = 0; i < n; i++)
		must(mem_alloc(&live[i], LIVE_BYTES), "cuMemAlloc");
	snprintf(what, sizeof(what), "cuMemAlloc + cuMemFree, %zu live", n);
	row(what, alloc_and_free, 2000, NULL);
	for (size_t i = 0; i < n; i++)
		must(mem_free(live[i]), "cuMemFree");
}

static void memory_rows(void)
{
	static const size_t live[] = { 0, 1000, 10000, N_LIVE_MAX };

	row("cuMemAlloc, alone", alloc_only, N_ALLOC, free_taken);
	for (size_t i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		with_live(live[i]);
}

static void other_rows(void)
{
	row("cuCtxSetCurrent", make_current, 20000, NULL);
	row("cuMemGetInfo", ask_memory, 1000, NULL);
	row("cuLaunchKernel, empty, the call", launch_nothing, 500, wait_for_all);
	row("cuLaunchKernel, empty, and its end", launch_and_wait, 500, NULL);
	row("cuStreamQuery, not audited", ask_stream, 20000, NULL);
	nvml_open();
	row("nvmlDeviceGetMemoryInfo", ask_nvml, 1000, NULL);
}

/* What a program that starts does first. */
static void start_up(void)
{
	CUdeviceptr ptr;

	must(mem_alloc(&ptr, 8 << 20), "cuMemAlloc");
	must(mem_free(ptr), "cuMemFree");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "all";
	double start = now_us();
	CUmodule module;

	driver_open();
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	printf("%-44s %9s %9s\n", "us a call", "median", "least");
	printf("%-44s %9.3f\n", "cuInit + primary context, once", now_us() - start);
	make_current();
	if (strcmp(what, "start") == 0) {
		start_up();
		return 0;
	}
	must(load(&module, ptx), "cuModuleLoadData");
	must(get_function(&nothing, module, "nothing"), "cuModuleGetFunction");
	memory_rows();
	if (strcmp(what, "memory") != 0)
		other_rows();
	return 0;
}
