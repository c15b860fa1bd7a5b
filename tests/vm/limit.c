// SPDX-License-Identifier: Apache-2.0
/*
 * limit: says how much memory the device has and how much of it can be had, and from then on when that changes; and
 * the same by NVML, with what it knows of this process.
 */
#include "../programs/program.h"

#include "nvml/nvml_abi.h"

#include <dlfcn.h>
#include <unistd.h>

#define PIECE	 (512UL << 20)
#define N_PIECES 64

static size_t total_now(void)
{
	size_t free_bytes, total;

	CHECK(cuMemGetInfo(&free_bytes, &total));
	return total;
}

/* Allocates until it is refused, and gives all of it back. */
static size_t allocate_all(void)
{
	CUdeviceptr pieces[N_PIECES];
	size_t n = 0, i;
	CUresult r;

	while ((r = n < N_PIECES ? cuMemAlloc(&pieces[n], PIECE) : CUDA_SUCCESS) == CUDA_SUCCESS &&
	       n < N_PIECES)
		n++;
	EXPECT(r == CUDA_ERROR_OUT_OF_MEMORY);
	for (i = 0; i < n; i++)
		CHECK(cuMemFree(pieces[i]));
	return n;
}

/* NVML(name, types of arguments): a call of the guest's library. */
#define NVML(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))dlsym(nvml, #name))

static void say_nvml(void *nvml)
{
	nvmlProcessInfo_v2_t processes[8];
	unsigned n = 8;
	nvmlDevice_t device;
	nvmlMemory_t memory;

	EXPECT(NVML(nvmlDeviceGetHandleByIndex_v2, unsigned, nvmlDevice_t *)(0, &device) == 0);
	EXPECT(NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device, &memory) == 0);
	EXPECT(NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *,
		    nvmlProcessInfo_v2_t *)(device, &n, processes) == 0);
	EXPECT(n == 1 && processes[0].pid == (unsigned)getpid() && processes[0].usedGpuMemory > 0);
	printf("NVML: total %llu, one process\n", (unsigned long long)memory.total);
}

static void *nvml_open(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	EXPECT(nvml && NVML(nvmlInit_v2, void)() == 0);
	return nvml;
}

int main(void)
{
	size_t total = 0, now;
	void *nvml;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cuInit(0));
	context_on(0);
	nvml = nvml_open();
	for (;;) {
		now = total_now();
		if (now != total) {
			printf("total %zu, %zu pieces\n", now, allocate_all());
			say_nvml(nvml);
		}
		total = now;
		usleep(200000);
	}
}
