// SPDX-License-Identifier: Apache-2.0
/* Linear memory: what is charged, what is refused, and many steps in one and several threads. */
#include <pthread.h>

#include "softgpu/cuda/memory/test-memory.h"

CUresult cuMemGetInfo(unsigned *free_bytes, unsigned *total);
CUresult cuMemAlloc(CUdeviceptr_v1 *ret, unsigned bytes);
CUresult cuMemFree(CUdeviceptr_v1 dptr);
CUresult cuMemAllocPitch_v2(CUdeviceptr *ret, size_t *pitch, size_t w, size_t h, unsigned element);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr dptr);
CUresult cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *p);
CUresult cuMemcpyHtoD(CUdeviceptr_v1 dst, const void *src, unsigned bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t n);

static CUcontext ctx;

static void test_accounting(void)
{
	CUdeviceptr small[3], large;
	unsigned low;
	size_t total;

	CHECK(test_used() == 0);
	OK(cuMemGetInfo_v2(NULL, &total));
	CHECK(total == GIB);
	OK(cuMemGetInfo(&low, NULL));
	OK(cuMemAlloc_v2(&small[0], 1));
	OK(cuMemAlloc_v2(&small[1], 1000));
	OK(cuMemAlloc_v2(&small[2], MIB));
	CHECK(test_used() == BLOCK);
	OK(cuMemAlloc_v2(&large, 3 * MIB));
	CHECK(test_used() == 3 * BLOCK);
	OK(cuMemFree_v2(large));
	for (int i = 0; i < 3; i++)
		OK(cuMemFree_v2(small[i]));
	CHECK(test_used() == 0);
}

static void test_refusals(void)
{
	CUdeviceptr p = 0;
	size_t pitch;

	INVALID(cuMemAlloc_v2(&p, 0));
	INVALID(cuMemAlloc_v2(NULL, 16));
	CHECK(cuMemAlloc_v2(&p, GIB) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAlloc_v2(&p, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX - 3, 4, 4) == CUDA_ERROR_OUT_OF_MEMORY);
	INVALID(cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
	CHECK(p == 0 && test_used() == 0);

	OK(cuMemFree_v2(0));
	INVALID(cuMemFree_v2(1));
	INVALID(cuMemFree_v2(UINT64_MAX));
	INVALID(cuMemFree_v2((CUdeviceptr)&p));
	OK(cuMemAlloc_v2(&p, 4096));
	INVALID(cuMemFree_v2(p + 512));
	INVALID(cuMemFreeHost((void *)p));
	OK(cuMemFree_v2(p));
	INVALID(cuMemFree_v2(p));
	OK(cuCtxSetCurrent(NULL));
	CHECK(cuMemAlloc_v2(&p, 16) == CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(ctx));
}

static void test_full(void)
{
	CUdeviceptr p[8];
	size_t rest;
	int n;

	for (n = 0; cuMemAlloc_v2(&p[n], 200 * MIB) == CUDA_SUCCESS; n++)
		;
	CHECK(n == 4);
	rest = test_free_bytes();
	OK(cuMemAlloc_v2(&p[n++], rest));
	CHECK(test_free_bytes() == 0);
	CHECK(cuMemAlloc_v2(&p[n], 1) == CUDA_ERROR_OUT_OF_MEMORY);
	while (n > 0)
		OK(cuMemFree_v2(p[--n]));
	CHECK(test_used() == 0);
}

static void test_ranges(void)
{
	CUdeviceptr p, base;
	size_t size, pitch;

	OK(cuMemAllocPitch_v2(&p, &pitch, 1000, 3000, 4));
	CHECK(pitch == 1024);
	OK(cuMemGetAddressRange_v2(&base, &size, p + 12345));
	CHECK(base == p && size == 1024 * 3000);
	OK(cuMemGetAddressRange_v2(NULL, NULL, p));
	CHECK(cuMemGetAddressRange_v2(&base, &size, p + size) == CUDA_ERROR_NOT_FOUND);
	OK(cuMemFree_v2(p));
	CHECK(cuMemGetAddressRange_v2(&base, &size, p) == CUDA_ERROR_NOT_FOUND);
}

static void test_old_calls(void)
{
	CUdeviceptr_v1 p;
	int value = 77, back = 0;

	OK(cuMemAlloc(&p, 1 << 20));
	OK(cuMemcpyHtoD(p, &value, sizeof(value)));
	OK(cuMemcpyDtoH_v2(&back, p, sizeof(back)));
	CHECK(back == 77);
	OK(cuMemFree(p));
	INVALID(cuMemFree(p));
}

static void test_context_end(void)
{
	CUdeviceptr p, q, other;
	CUcontext second;
	void *host;

	OK(cuMemAlloc_v2(&other, 100));
	OK(cuCtxCreate_v2(&second, 0, 0));
	OK(cuMemAlloc_v2(&p, 10 * MIB));
	OK(cuMemAlloc_v2(&q, 100));
	OK(cuMemHostAlloc(&host, 100, 0));
	OK(cuCtxDestroy_v2(second));
	OK(cuCtxSetCurrent(ctx));
	CHECK(test_used() == BLOCK);
	INVALID(cuMemFree_v2(p));
	INVALID(cuMemFree_v2(q));
	INVALID(cuMemFreeHost(host));
	OK(cuMemFree_v2(other));

	OK(cuMemAlloc_v2(&p, 10 * MIB));
	OK(cuDevicePrimaryCtxReset_v2(0));
	ctx = test_context();
	INVALID(cuMemFree_v2(p));
	CHECK(test_used() == 0);
}

#define N_LIVE 400

/* Every allocation holds its number; the model says what must be there. */
static void test_stress(void)
{
	static CUdeviceptr live[N_LIVE];
	static unsigned sizes[N_LIVE];
	unsigned value;

	srandom(3);
	for (int step = 0; step < 20000; step++) {
		unsigned i = random() % N_LIVE;

		if (live[i]) {
			OK(cuMemcpyDtoH_v2(&value, live[i] + sizes[i] - 4, 4));
			CHECK(value == i);
			OK(cuMemFree_v2(live[i]));
			live[i] = 0;
			continue;
		}
		sizes[i] = 4 + random() % (random() % 4 ? 8192 : 3 * MIB);
		sizes[i] &= ~3U;
		OK(cuMemAlloc_v2(&live[i], sizes[i]));
		OK(cuMemsetD32_v2(live[i], i, sizes[i] / 4 > 100 ? 100 : sizes[i] / 4));
		OK(cuMemsetD32_v2(live[i] + sizes[i] - 4, i, 1));
	}
	for (int i = 0; i < N_LIVE; i++)
		if (live[i])
			OK(cuMemFree_v2(live[i]));
	CHECK(test_used() == 0);
}

/* One of several at the same time; none may see another's bytes. */
static void *thread_main(void *arg)
{
	unsigned value, seed = (uintptr_t)arg;
	CUdeviceptr p[16] = {};

	OK(cuCtxSetCurrent(ctx));
	for (int step = 0; step < 3000; step++) {
		unsigned i = rand_r(&seed) % 16;

		if (p[i]) {
			OK(cuMemcpyDtoH_v2(&value, p[i], 4));
			CHECK(value == (uintptr_t)arg * 16 + i);
			OK(cuMemFree_v2(p[i]));
			p[i] = 0;
			continue;
		}
		OK(cuMemAlloc_v2(&p[i], 4 + rand_r(&seed) % (rand_r(&seed) % 8 ? 4096 : 3 * MIB)));
		OK(cuMemsetD32_v2(p[i], (uintptr_t)arg * 16 + i, 1));
	}
	for (int i = 0; i < 16; i++)
		OK(cuMemFree_v2(p[i]));
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, (void *)i) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(test_used() == 0);
}

static const struct test_case cases[] = {
	{ "memory: blocks are charged, and small allocations share them", test_accounting },
	{ "memory: impossible requests and foreign pointers are refused", test_refusals },
	{ "memory: a full device says 2 and nothing else", test_full },
	{ "memory: the range of an address", test_ranges },
	{ "memory: the calls for 32-bit addresses", test_old_calls },
	{ "memory: a context that ends takes its memory along", test_context_end },
	{ "memory: 20,000 random steps agree with a model", test_stress },
	{ "memory: four threads at once", test_threads },
};

int main(void)
{
	test_environment();
	ctx = test_context();
	return test_run(cases, sizeof(cases) / sizeof(cases[0]));
}
