/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline of stream-ordered memory over two streams joined by events: pipeline PTX-FILE
 * Each round allocates, copies in, adds, scales on the other stream, copies out and frees,
 * and the device's use is back at its start when the pool is trimmed.
 */
#include "program.h"

enum { N = 4096, ROUNDS = 20 };

int main(int argc, char **argv)
{
	static float in[ROUNDS][N], out[ROUNDS][N];
	size_t before, after, total, bytes = sizeof(in[0]);
	CUstream first, second;
	CUevent added, scaled, start, end;
	CUfunction add, scale;
	CUmemoryPool pool;
	CUmodule module;
	float by = 3, ms;
	int n = N;

	CHECK(cuInit(0));
	context_on(0);
	module = module_of(argv[1]);
	add = function_of(module, "vector_add");
	scale = function_of(module, "scale");
	CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&added, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&scaled, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&start, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	CHECK(cuMemGetInfo(&before, &total));
	CHECK(cuEventRecord(start, first));

	for (int round = 0; round < ROUNDS; round++) {
		CUdeviceptr x, sum;

		for (int i = 0; i < N; i++)
			in[round][i] = (float)(noise(i + round) % 1000);
		CHECK(cuMemAllocAsync(&x, bytes, first));
		CHECK(cuMemAllocAsync(&sum, bytes, first));
		CHECK(cuMemcpyHtoDAsync(x, in[round], bytes, first));
		CHECK(cuLaunchKernel(add, N / 128, 1, 1, 128, 1, 1, 0, first,
				     (void *[]){ &x, &x, &sum, &n }, NULL));
		CHECK(cuEventRecord(added, first));
		CHECK(cuStreamWaitEvent(second, added, 0));
		CHECK(cuLaunchKernel(scale, N / 128, 1, 1, 128, 1, 1, 0, second,
				     (void *[]){ &sum, &by, &n }, NULL));
		CHECK(cuMemcpyDtoHAsync(out[round], sum, bytes, second));
		CHECK(cuEventRecord(scaled, second));
		CHECK(cuStreamWaitEvent(first, scaled, 0));
		CHECK(cuMemFreeAsync(x, first));
		CHECK(cuMemFreeAsync(sum, first));
	}
	CHECK(cuEventRecord(end, first));
	CHECK(cuStreamSynchronize(first));
	CHECK(cuEventElapsedTime(&ms, start, end));
	EXPECT(ms > 0);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < N; i++)
			EXPECT(out[round][i] == 6 * in[round][i]);

	CHECK(cuDeviceGetDefaultMemPool(&pool, 0));
	CHECK(cuMemPoolTrimTo(pool, 0));
	CHECK(cuMemGetInfo(&after, &total));
	EXPECT(after == before);
	printf("%d rounds right\n", ROUNDS);
	return 0;
}
