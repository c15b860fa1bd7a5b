/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that run at the same time add to one number by atomic operations and none is lost: of two
 * streams, of two contexts, of two processes: atomics PTX-FILE
 */
#include <sys/wait.h>
#include <unistd.h>
#include "program.h"

enum { N = 1 << 14, BLOCK = 128, ROUNDS = 20 };

/* Who adds: a context's kernel, its input and its stream. */
struct adder {
	CUcontext context;
	CUfunction reduce;
	CUdeviceptr ones;
	CUstream stream;
};

/* Of the current context. */
static struct adder adder_new(const char *ptx_path)
{
	struct adder adder;

	CHECK(cuCtxGetCurrent(&adder.context));
	adder.reduce = function_of(module_of(ptx_path), "reduce");
	CHECK(cuMemAlloc(&adder.ones, N * sizeof(int)));
	CHECK(cuMemsetD32(adder.ones, 1, N));
	CHECK(cuStreamCreate(&adder.stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSynchronize());
	return adder;
}

/* N more; returns before it is done. */
static void adder_add(const struct adder *adder, CUdeviceptr total)
{
	int n = N;

	CHECK(cuCtxSetCurrent(adder->context));
	CHECK(cuLaunchKernel(adder->reduce, N / BLOCK, 1, 1, BLOCK, 1, 1, 0, adder->stream,
			     (void *[]){ (void *)&adder->ones, &total, &n }, NULL));
}

static void adder_wait(const struct adder *adder)
{
	CHECK(cuCtxSetCurrent(adder->context));
	CHECK(cuStreamSynchronize(adder->stream));
}

static void both_add(const struct adder *a, const struct adder *b, CUdeviceptr total)
{
	for (int round = 0; round < ROUNDS; round++) {
		adder_add(a, total);
		adder_add(b, total);
	}
	adder_wait(a);
	adder_wait(b);
}

static void two_streams(const char *ptx_path)
{
	struct adder a = adder_new(ptx_path), b = a;
	CUdeviceptr total = device_zeros(sizeof(int));
	int sum;

	CHECK(cuStreamCreate(&b.stream, CU_STREAM_NON_BLOCKING));
	both_add(&a, &b, total);
	CHECK(cuMemcpyDtoH(&sum, total, sizeof(sum)));
	EXPECT(sum == 2 * ROUNDS * N);
}

static struct adder adder_of_new_context(const char *ptx_path)
{
	CUcontext context;

	CHECK(cuCtxCreate(&context, NULL, 0, 0));
	return adder_new(ptx_path);
}

/* What two contexts of a process share is memory of the host. */
static void two_contexts(const char *ptx_path)
{
	struct adder a = adder_of_new_context(ptx_path), b = adder_of_new_context(ptx_path);
	int *sum;

	CHECK(cuMemHostAlloc((void **)&sum, sizeof(*sum),
			     CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	*sum = 0;
	both_add(&a, &b, (CUdeviceptr)(size_t)sum);
	EXPECT(*sum == 2 * ROUNDS * N);
	CHECK(cuMemFreeHost(sum));
	CHECK(cuCtxDestroy(a.context));
	CHECK(cuCtxDestroy(b.context));
}

static void add_alone(const struct adder *adder, CUdeviceptr total)
{
	for (int round = 0; round < ROUNDS; round++)
		adder_add(adder, total);
	adder_wait(adder);
}

static int child(const char *ptx_path, int from, int to)
{
	CUipcMemHandle handle;
	struct adder adder;
	CUdeviceptr total;

	CHECK(cuInit(0));
	context_on(0);
	adder = adder_new(ptx_path);
	EXPECT(read(from, &handle, sizeof(handle)) == sizeof(handle));
	CHECK(cuIpcOpenMemHandle(&total, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	EXPECT(write(to, "", 1) == 1);
	add_alone(&adder, total);
	CHECK(cuIpcCloseMemHandle(total));
	return 0;
}

/* The child has all it needs before either begins. */
static void two_processes(const char *ptx_path, pid_t pid, int from, int to)
{
	struct adder adder = adder_new(ptx_path);
	CUdeviceptr total = device_zeros(sizeof(int));
	CUipcMemHandle handle;
	int sum, status;
	char ready;

	CHECK(cuIpcGetMemHandle(&handle, total));
	EXPECT(write(to, &handle, sizeof(handle)) == sizeof(handle));
	EXPECT(read(from, &ready, 1) == 1);
	add_alone(&adder, total);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(cuMemcpyDtoH(&sum, total, sizeof(sum)));
	EXPECT(sum == 2 * ROUNDS * N);
}

int main(int argc, char **argv)
{
	int to_child[2], to_parent[2];
	pid_t pid;

	/* Before cuInit(): a context does not survive a fork. */
	EXPECT(pipe(to_child) == 0 && pipe(to_parent) == 0);
	pid = fork();
	if (pid == 0) {
		/* Whoever dies is not waited for. */
		close(to_child[1]);
		return child(argv[1], to_child[0], to_parent[1]);
	}
	close(to_parent[1]);

	CHECK(cuInit(0));
	context_on(0);
	two_processes(argv[1], pid, to_parent[0], to_child[1]);
	two_streams(argv[1]);
	two_contexts(argv[1]);
	printf("no addition is lost\n");
	return 0;
}
