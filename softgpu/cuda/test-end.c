// SPDX-License-Identifier: Apache-2.0
/*
 * The end of contexts and processes whose kernels do not end: nobody waits for ever. The time
 * that they are waited for is set to almost nothing.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "softgpu/cuda/test-driver.h"

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry softgpu_timed(.param .u64 ns) { ret; }\n"
			  ".visible .entry endless(.param .u64 at)\n"
			  "{\n"
			  "	.reg .b64 %d; ld.param.u64 %d, [at]; st.global.u32 [%d], 1;\n"
			  "	again: bra again;\n"
			  "}\n";

static CUdevice device;
static volatile unsigned int *begun; /* pinned memory */
static _Atomic int n_called;

static void count(_unused_ void *arg)
{
	n_called++;
}

/* Until the kernel has begun: what is only queued is another case. */
static void launch_endless(CUstream stream)
{
	CUdeviceptr at;
	void *params[] = { &at };
	CUmodule module;

	NEED(cuMemHostAlloc((void **)&begun, sizeof(*begun), 0));
	*begun = 0;
	at = (CUdeviceptr)(uintptr_t)begun;
	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuLaunchKernel(test_function(module, "endless"), 1, 1, 1, 32, 1, 1, 0, stream, params,
			    NULL));
	while (!*begun)
		usleep(100);
}

/* An hour of device time, and work of every kind behind it. */
static void launch_hour(CUstream stream)
{
	uint64_t ns = 3600000000000;
	void *params[] = { &ns };
	CUdeviceptr at;
	CUmodule module;
	CUevent event;

	NEED(cuModuleLoadData(&module, ptx));
	NEED(cuMemAllocAsync(&at, 1 << 20, stream));
	NEED(cuLaunchKernel(test_function(module, "softgpu_timed"), 1, 1, 1, 1, 1, 1, 0, stream,
			    params, NULL));
	NEED(cuEventCreate(&event, 0));
	NEED(cuEventRecord(event, stream));
	NEED(cuMemsetD32Async(at, 1, 1 << 18, stream));
	NEED(cuMemFreeAsync(at, stream));
	NEED(cuStreamWaitEvent(NULL, event, 0));
}

/* In a process of its own: work that takes longer than the wait, but no piece of it does. */
static int child_much(void)
{
	uint64_t ns = 12000000;
	void *params[] = { &ns };
	CUcontext ctx;
	CUmodule module;

	NEED(cuInit(0));
	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuModuleLoadData(&module, ptx));
	for (int i = 0; i < 300; i++) {
		NEED(cuLaunchKernel(test_function(module, "softgpu_timed"), 1, 1, 1, 1, 1, 1, 0,
				    NULL, params, NULL));
		NEED(cuLaunchHostFunc(NULL, count, NULL));
	}
	NEED(cuCtxDestroy_v2(ctx));
	return n_called != 300;
}

/* A thread that waits for a context. */
struct waiter {
	CUcontext ctx;
	_Atomic pid_t tid;
	_Atomic int n_calls;
	CUresult result;
};

static void *synchronize(void *arg)
{
	struct waiter *mine = arg;

	mine->tid = gettid();
	NEED(cuCtxSetCurrent(mine->ctx));
	mine->n_calls++;
	mine->result = cuCtxSynchronize();
	return NULL;
}

static void test_destroy(void)
{
	struct waiter waiter = { 0 };
	pthread_t thread;
	CUcontext ctx;
	CUstream stream;

	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuStreamCreate(&stream, 0));
	launch_endless(stream);
	waiter.ctx = ctx;
	if (pthread_create(&thread, NULL, synchronize, &waiter))
		exit(1);
	/* A program must not end a context that another thread is only about to enter. */
	test_wait_until_asleep(&waiter.tid, &waiter.n_calls);
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "a context with an endless kernel ends");
	pthread_join(thread, NULL);
	check(waiter.result != CUDA_SUCCESS, "and whoever waits in it is told");

	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuStreamCreate(&stream, 0));
	launch_hour(stream);
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "so does one with work for an hour");
}

static void test_primary(void)
{
	CUcontext ctx;

	NEED(cuDevicePrimaryCtxRetain(&ctx, device));
	NEED(cuCtxSetCurrent(ctx));
	launch_endless(NULL);
	expect(CUDA_SUCCESS, cuDevicePrimaryCtxReset_v2(device),
	       "a primary context with an endless kernel is reset");
	NEED(cuDevicePrimaryCtxRetain(&ctx, device));
	launch_endless(NULL);
	NEED(cuDevicePrimaryCtxRelease_v2(device));
	expect(CUDA_SUCCESS, cuDevicePrimaryCtxRelease_v2(device), "and released");
	NEED(cuCtxSetCurrent(NULL));
}

static CUresult seen_refusal;

static void destroys(void *ctx)
{
	seen_refusal = cuCtxDestroy_v2(ctx);
}

static void test_callback(void)
{
	CUcontext ctx;

	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuLaunchHostFunc(NULL, destroys, ctx));
	NEED(cuCtxSynchronize());
	check(seen_refusal == CUDA_ERROR_NOT_PERMITTED,
	      "a function of the program cannot end the context that waits for it");
	NEED(cuCtxDestroy_v2(ctx));
}

static _Atomic bool function_begun, function_ended;

/* Ten times as long as a context that ends waits for a kernel. */
static void takes_long(_unused_ void *arg)
{
	function_begun = true;
	usleep(100000);
	function_ended = true;
}

/* The program's own code cannot be cut short, and what it uses may go with the context. */
static void test_function_ends(void)
{
	CUcontext ctx;

	NEED(cuCtxCreate_v2(&ctx, 0, device));
	NEED(cuLaunchHostFunc(NULL, takes_long, NULL));
	while (!function_begun)
		usleep(100);
	NEED(cuCtxDestroy_v2(ctx));
	check(function_ended, "a context does not end under a function of the program");
}

/* In another one: leaves a kernel running and exits, or waits to be interrupted. */
static int child(bool exits)
{
	CUcontext ctx;

	NEED(cuInit(0));
	NEED(cuCtxCreate_v2(&ctx, 0, device));
	launch_endless(NULL);
	if (exits)
		return 0;
	printf("ready\n");
	fflush(stdout);
	cuCtxSynchronize();
	return 1;
}

static pid_t child_start(const char *what, int *ret_out)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		/* A shell's job in the background ignores it, and so does what it starts. */
		signal(SIGINT, SIG_DFL);
		dup2(ends[1], STDOUT_FILENO);
		execl("/proc/self/exe", "test-end", what, NULL);
		_exit(9);
	}
	close(ends[1]);
	*ret_out = ends[0];
	return pid;
}

static void test_process(void)
{
	int status, out;
	pid_t pid;
	char c;

	pid = child_start("exits", &out);
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	      "a process with an endless kernel exits");
	close(out);

	/* Long enough for a machine that stops for a moment. */
	setenv("SOFTGPU_END_WAIT", "3s", 1);
	pid = child_start("much", &out);
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	      "work that ends is waited for, however much there is");
	close(out);

	pid = child_start("waits", &out);
	check(read(out, &c, 1) == 1, "another one waits for its kernel");
	kill(pid, SIGINT);
	waitpid(pid, &status, 0);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "and can be interrupted");
	close(out);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "much") == 0)
		return child_much();
	if (argc > 1)
		return child(strcmp(argv[1], "exits") == 0);
	setenv("SOFTGPU_END_WAIT", "10ms", 1);
	NEED(cuCtxDestroy_v2(test_begin()));
	NEED(cuDeviceGet(&device, 0));
	test_destroy();
	test_primary();
	test_callback();
	test_function_ends();
	test_process();
	test_end();
	return n_failed > 0;
}
