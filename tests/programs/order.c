/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that take turns on one stream: each waits for nothing but its turn, so the order of what they
 * send is theirs alone: order PTX-FILE. Every other step doubles, the rest add one; a step out of order
 * gives another number.
 */
#include <pthread.h>
#include "program.h"

enum { N = 64, N_THREADS = 5, ROUNDS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int turn;

static CUfunction add, scale;
static CUcontext context;
static CUstream stream;
static CUdeviceptr x, ones;

static void step(int i)
{
	float half = 0.5f;
	int n = N;

	if (i % 2)
		CHECK(cuLaunchKernel(add, 1, 1, 1, N, 1, 1, 0, stream,
				     (void *[]){ &x, &ones, &x, &n }, NULL));
	else
		CHECK(cuLaunchKernel(scale, 1, 1, 1, N, 1, 1, 0, stream,
				     (void *[]){ &x, &half, &n }, NULL));
}

static void *work(void *arg)
{
	int id = (int)(size_t)arg;

	CHECK(cuCtxSetCurrent(context));
	for (int round = 0; round < ROUNDS; round++) {
		pthread_mutex_lock(&lock);
		while (turn % N_THREADS != id)
			pthread_cond_wait(&moved, &lock);
		step(turn++);
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[N_THREADS];
	float host[N], expected = 0;
	CUmodule module;

	CHECK(cuInit(0));
	context = context_on(0);
	module = module_of(argv[1]);
	add = function_of(module, "vector_add");
	scale = function_of(module, "scale");
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	x = device_zeros(sizeof(host));
	for (int i = 0; i < N; i++)
		host[i] = 1;
	ones = device_copy(host, sizeof(host));
	for (size_t i = 0; i < N_THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemcpyDtoH(host, x, sizeof(host)));
	for (int i = 0; i < N_THREADS * ROUNDS; i++)
		expected = i % 2 ? expected + 1 : expected / 2;
	for (int i = 0; i < N; i++)
		EXPECT(host[i] == expected);
	printf("%d steps in order\n", N_THREADS * ROUNDS);
	return 0;
}
