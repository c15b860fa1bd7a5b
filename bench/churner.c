// SPDX-License-Identifier: Apache-2.0
/*
 * A tenant under way, to be killed at any instant: churner MIB
 *
 * Two threads allocate up to MIB at once and free again, without end, in whole blocks of the device. An
 * answer other than success and out of memory ends it with 1. SIGTERM ends it in good order.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/cuda_abi.h"

#define SLOTS	    8
#define BLOCK_BYTES (2ULL << 20)

static CUresult (*mem_alloc)(CUdeviceptr *, size_t);
static CUresult (*mem_free)(CUdeviceptr);
static CUresult (*set_current)(CUcontext);
static CUcontext context;
static unsigned blocks_max;
static atomic_bool ended;

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s answered %d\n", what, result);
	exit(1);
}

static void *find(void *library, const char *name)
{
	void *found = library ? dlsym(library, name) : NULL;

	must(found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND, name);
	return found;
}

static void context_make(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*init)(unsigned) = find(library, "cuInit");
	CUresult (*retain)(CUcontext *, CUdevice) = find(library, "cuDevicePrimaryCtxRetain");

	mem_alloc = find(library, "cuMemAlloc_v2");
	mem_free = find(library, "cuMemFree_v2");
	set_current = find(library, "cuCtxSetCurrent");
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
}

/* Frees what is in a slot, or fills it; a slot that cannot be filled stays empty. */
static void turn_over(CUdeviceptr *slot, unsigned *seed)
{
	CUresult result;

	if (*slot) {
		must(mem_free(*slot), "cuMemFree");
		*slot = 0;
		return;
	}
	result = mem_alloc(slot, (1 + rand_r(seed) % blocks_max) * BLOCK_BYTES);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		*slot = 0;
	else
		must(result, "cuMemAlloc");
}

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;
	CUdeviceptr slots[SLOTS] = { 0 };

	must(set_current(context), "cuCtxSetCurrent");
	while (!ended)
		turn_over(&slots[rand_r(&seed) % SLOTS], &seed);
	return NULL;
}

static void on_end(_unused_ int number)
{
	ended = true;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2 || (blocks_max = strtoul(argv[1], NULL, 0) / 2) == 0)
		return 2;
	signal(SIGTERM, on_end);
	context_make();
	printf("churning\n");
	fflush(stdout);
	pthread_create(&thread, NULL, churn, (void *)1);
	churn((void *)2);
	pthread_join(thread, NULL);
	return 0;
}
