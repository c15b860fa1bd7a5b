/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads on two devices, each with buffers and a stream of its own: threads PTX-FILE
 */
#include <pthread.h>
#include "program.h"

enum { N = 3000, N_THREADS = 8, ROUNDS = 10 };

static const char *ptx_path;

static void *work(void *arg)
{
	unsigned int id = (unsigned int)(size_t)arg;
	float x[N], expected = 1, by;
	CUdeviceptr ptr;
	CUstream stream;
	CUmodule module;
	int n = N;

	context_on(id % 2);
	module = module_of(ptx_path);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < N; i++)
		x[i] = 1;
	ptr = device_copy(x, sizeof(x));
	for (int round = 0; round < ROUNDS; round++) {
		by = (float)(1 + (id + round) % 3);
		expected *= by;
		CHECK(cuLaunchKernel(function_of(module, "scale"), (N + 63) / 64, 1, 1, 64, 1, 1, 0,
				     stream, (void *[]){ &ptr, &by, &n }, NULL));
	}
	CHECK(cuMemcpyDtoHAsync(x, ptr, sizeof(x), stream));
	CHECK(cuStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == expected);
	CHECK(cuMemFree(ptr));
	CHECK(cuStreamDestroy(stream));
	CHECK(cuModuleUnload(module));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];

	ptx_path = argv[1];
	CHECK(cuInit(0));
	for (size_t i = 0; i < N_THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d threads right\n", N_THREADS);
	return 0;
}
