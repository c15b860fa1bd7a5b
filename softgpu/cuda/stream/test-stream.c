// SPDX-License-Identifier: Apache-2.0
/*
 * Order in and between streams, events, and functions of the program.
 *
 * A wait for a word of memory that the test writes later holds a stream exactly as long as the
 * test wants, so what runs before what is seen without looking at clocks.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "softgpu/cuda/test-driver.h"
#include "softgpu/util/moment.h"

#define FIRST_NS     500000000
#define FIRST_NS_MAX 8000000000

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .entry softgpu_timed(.param .u64 ns) { ret; }\n"
	".visible .entry put(.param .u64 to, .param .u32 value)\n"
	"{\n"
	"	.reg .b32 %r; .reg .b64 %d;\n"
	"	ld.param.u64 %d, [to]; ld.param.u32 %r, [value]; st.global.u32 [%d], %r;\n"
	"	ret;\n"
	"}\n";

static CUmodule module;
static CUfunction put, timed;
static volatile unsigned int *gate, *word; /* pinned memory: host and device address are one */

static CUdeviceptr addr_of(volatile unsigned int *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static void launch_put(unsigned int value, CUstream stream)
{
	CUdeviceptr to = addr_of(word);
	void *params[] = { &to, &value };

	NEED(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void launch_timed(uint64_t ns, CUstream stream)
{
	void *params[] = { &ns };

	NEED(cuLaunchKernel(timed, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void gate_close(CUstream stream)
{
	*gate = 0;
	NEED(cuStreamWaitValue32_v2(stream, addr_of(gate), 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void gate_open(void)
{
	__atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

static void test_order(CUstream a, CUstream b, CUstream free_one)
{
	gate_close(a);
	launch_put(1, a);
	expect(CUDA_ERROR_NOT_READY, cuStreamQuery(a), "a stream that waits is not ready");
	expect(CUDA_SUCCESS, cuStreamQuery(b), "another one is");
	expect(CUDA_ERROR_NOT_READY, cuStreamQuery(NULL), "the legacy stream waits for it");

	launch_put(2, free_one);
	NEED(cuStreamSynchronize(free_one));
	check(*word == 2, "a non-blocking stream does not wait");

	launch_put(3, NULL);
	launch_put(4, b);
	expect(CUDA_ERROR_NOT_READY, cuStreamQuery(b),
	       "a blocking stream waits for the legacy stream");
	check(*word == 2, "nothing has run yet");
	gate_open();
	NEED(cuStreamSynchronize(b));
	check(*word == 4, "then all run in their order");
	expect(CUDA_SUCCESS, cuStreamQuery(NULL), "and the legacy stream is ready");
}

static void test_events(CUstream a, CUstream b)
{
	CUevent event, timed_begin, timed_end, plain;
	float ms = 0;

	NEED(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	expect(CUDA_SUCCESS, cuEventQuery(event), "an event that was never recorded is reached");
	gate_close(a);
	launch_put(5, a);
	NEED(cuEventRecord(event, a));
	NEED(cuStreamWaitEvent(b, event, 0));
	launch_put(6, b);
	expect(CUDA_ERROR_NOT_READY, cuEventQuery(event), "an event behind a wait is not reached");
	expect(CUDA_ERROR_NOT_READY, cuStreamQuery(b), "who waits for it neither");
	gate_open();
	NEED(cuEventSynchronize(event));
	NEED(cuStreamSynchronize(b));
	check(*word == 6, "an event orders two streams");

	NEED(cuEventCreate(&timed_begin, 0));
	NEED(cuEventCreate(&timed_end, 0));
	NEED(cuEventCreate(&plain, 0));
	gate_close(a);
	NEED(cuEventRecord(timed_begin, a));
	launch_timed(3000000, a);
	launch_timed(4000000, a);
	NEED(cuEventRecord(timed_end, a));
	expect(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&ms, timed_begin, timed_end),
	       "no time before the end");
	gate_open();
	NEED(cuEventSynchronize(timed_end));
	NEED(cuEventElapsedTime(&ms, timed_begin, timed_end));
	check(ms >= 6.999f, "the time between events is the kernels'");
	expect(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, timed_begin, plain),
	       "no time of an event that was not recorded");
	expect(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, timed_begin, event),
	       "nor of one without times");
	NEED(cuEventDestroy_v2(event));
	expect(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event), "destroying an event twice");
	expect(CUDA_ERROR_INVALID_HANDLE, cuEventRecord(event, a), "recording a destroyed event");
}

/* Both events are reached. */
static float ms_between(CUevent from, CUevent to)
{
	float ms = 0;

	NEED(cuEventElapsedTime(&ms, from, to));
	return ms;
}

/*
 * While one kernel has the device for a time, one of each of two streams waits for it. Return: by how much the
 * less urgent one was later; 0 if something took so long that the two did not wait at once, perhaps.
 */
static float low_is_later(CUstream first, CUstream low, CUstream high, uint64_t ns)
{
	CUevent first_end, low_end, high_end;
	uint64_t begin = moment_now_ns(CLOCK_MONOTONIC);
	float ms = 0;

	NEED(cuEventCreate(&first_end, 0));
	NEED(cuEventCreate(&low_end, 0));
	NEED(cuEventCreate(&high_end, 0));
	NEED(cuEventRecord(low_end, first));
	launch_timed(ns, first);
	NEED(cuEventRecord(first_end, first));
	while (cuEventQuery(low_end) == CUDA_ERROR_NOT_READY)
		usleep(1000);
	usleep(20000); /* it has the device by then */
	launch_timed(1000000, low);
	NEED(cuEventRecord(low_end, low));
	usleep(20000); /* and this one waits for it */
	launch_timed(1000000, high);
	NEED(cuEventRecord(high_end, high));
	NEED(cuCtxSynchronize());
	if (moment_now_ns(CLOCK_MONOTONIC) - begin < ns + ns / 4 &&
	    ms_between(first_end, low_end) > 0)
		ms = ms_between(high_end, low_end);
	NEED(cuEventDestroy_v2(first_end));
	NEED(cuEventDestroy_v2(low_end));
	NEED(cuEventDestroy_v2(high_end));
	return ms;
}

static void test_priorities(void)
{
	CUstream first, low, high, odd;
	int least, greatest, priority;
	float ms = 0;

	NEED(cuCtxGetStreamPriorityRange(&least, &greatest));
	check(least == 0 && greatest < 0, "there are priorities");
	NEED(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	NEED(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, least));
	NEED(cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, greatest));
	NEED(cuStreamCreateWithPriority(&odd, 0, -77));
	NEED(cuStreamGetPriority(odd, &priority));
	check(priority == greatest, "one beyond the range becomes the nearest");
	for (uint64_t ns = FIRST_NS; ms == 0 && ns <= FIRST_NS_MAX; ns *= 2)
		ms = low_is_later(first, low, high, ns);
	check(ms > 0, "a more urgent kernel overtakes one that waits");
	NEED(cuStreamDestroy_v2(first));
	NEED(cuStreamDestroy_v2(low));
	NEED(cuStreamDestroy_v2(high));
	NEED(cuStreamDestroy_v2(odd));
}

static CUresult seen_status, seen_refusal;
static int n_called;

static void host_function(void *arg)
{
	seen_refusal = cuStreamSynchronize(arg);
	n_called++;
}

static void callback(_unused_ CUstream stream, CUresult status, _unused_ void *arg)
{
	seen_status = status;
	n_called++;
}

static void test_functions(CUstream a)
{
	NEED(cuLaunchHostFunc(a, host_function, a));
	NEED(cuStreamAddCallback(a, callback, NULL, 0));
	NEED(cuStreamSynchronize(a));
	check(n_called == 2, "functions of the program are called");
	check(seen_refusal == CUDA_ERROR_NOT_PERMITTED, "they may not call the driver");
	check(seen_status == CUDA_SUCCESS, "a callback is told the status");
	expect(CUDA_ERROR_INVALID_VALUE, cuLaunchHostFunc(a, NULL, NULL), "no function");
}

static void test_memory_operations(CUstream a)
{
	CUstreamBatchMemOpParams ops[2] = {
		{ .waitValue = { CU_STREAM_MEM_OP_WAIT_VALUE_32, addr_of(word), { 6 }, 0, 0 } },
		{ .writeValue = { CU_STREAM_MEM_OP_WRITE_VALUE_32, addr_of(word), { 8 }, 0, 0 } },
	};

	*word = 7;
	NEED(cuStreamBatchMemOp_v2(a, 2, ops, 0));
	NEED(cuStreamSynchronize(a));
	check(*word == 8, "a batch waits and writes");
	NEED(cuStreamWriteValue32_v2(a, addr_of(word), 9, 0));
	NEED(cuStreamSynchronize(a));
	check(*word == 9, "a single write");
	expect(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(a, addr_of(word) + 1, 9, 0),
	       "an address that is not aligned");
	expect(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(a, 4096, 9, 0),
	       "an address that is nobody's");
	ops[0].operation = 77;
	expect(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(a, 2, ops, 0), "no such operation");
}

/* A thread of its own has a stream of its own, which does not wait for the main thread's. */
static void *other_thread(void *arg)
{
	static CUresult r;

	cuCtxSetCurrent(arg);
	r = cuStreamSynchronize_ptsz(NULL);
	return &r;
}

static void test_per_thread(CUcontext ctx, CUstream a)
{
	unsigned long long legacy, mine;
	pthread_t thread;
	void *result;

	gate_close(a);
	NEED(pthread_create(&thread, NULL, other_thread, ctx) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS);
	pthread_join(thread, &result);
	check(*(CUresult *)result == CUDA_SUCCESS, "a thread's stream is its own");
	gate_open();
	NEED(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
	NEED(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
	check(legacy != mine, "the special handles are two streams");
	NEED(cuStreamSynchronize(a));
}

static void test_handles(CUcontext ctx, CUstream a)
{
	CUstream gone = a;
	unsigned int flags;
	CUcontext of;

	NEED(cuStreamGetCtx(a, &of));
	check(of == ctx, "a stream's context");
	NEED(cuStreamGetFlags(a, &flags));
	check(flags == CU_STREAM_DEFAULT, "a stream's flags");
	expect(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&gone, 77), "flags that are none");

	/* Work that is queued when the stream or its module goes is still done. */
	gate_close(a);
	launch_put(10, a);
	NEED(cuModuleUnload(module));
	NEED(cuStreamDestroy_v2(a));
	expect(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(a), "a destroyed stream");
	expect(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy_v2(a), "destroying it twice");
	gate_open();
	NEED(cuCtxSynchronize());
	check(*word == 10, "what was queued in it is done, from a module that is unloaded");
	expect(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize((CUstream)0x1234), "no stream");
}

/* More than a stream takes before who submits has to wait. */
#define MORE_THAN_FIT 4096

/* A thread that submits until its call waits, and what that call answered. */
struct submitter {
	CUcontext ctx;
	CUstream stream;
	_Atomic pid_t tid;
	_Atomic int n_submitted;
	CUresult last;
};

static void *submit_until_told(void *arg)
{
	struct submitter *mine = arg;
	CUdeviceptr to = addr_of(word + 64);

	NEED(cuCtxSetCurrent(mine->ctx));
	mine->tid = gettid();
	while (mine->last == CUDA_SUCCESS && mine->n_submitted < MORE_THAN_FIT) {
		mine->last = cuMemsetD32Async(to, 1, 1, mine->stream);
		mine->n_submitted++;
	}
	return NULL;
}

/* A call that waits for room in a stream which another thread destroys finds none afterwards. */
static void test_destroyed_in_use(CUcontext ctx)
{
	struct submitter submitter = { .ctx = ctx };
	pthread_t thread;
	int n;

	NEED(cuStreamCreate(&submitter.stream, CU_STREAM_NON_BLOCKING));
	gate_close(submitter.stream);
	if (pthread_create(&thread, NULL, submit_until_told, &submitter))
		exit(1);
	n = test_wait_until_asleep(&submitter.tid, &submitter.n_submitted);
	NEED(cuStreamDestroy_v2(submitter.stream));
	gate_open();
	pthread_join(thread, NULL);
	check(submitter.last == CUDA_ERROR_INVALID_HANDLE && submitter.n_submitted == n + 1,
	      "a call that waits for room in a stream learns that it was destroyed");
}

static void test_ipc(CUstream a)
{
	CUipcEventHandle handle;
	int to_child[2], from_child[2], status;
	CUevent event, plain;
	char byte;
	pid_t pid;

	NEED(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	NEED(cuEventCreate(&plain, 0));
	expect(CUDA_ERROR_INVALID_VALUE, cuEventCreate(&plain, CU_EVENT_INTERPROCESS),
	       "a shared event has no times");
	expect(CUDA_ERROR_INVALID_HANDLE, cuIpcGetEventHandle(&handle, plain),
	       "an event that is not shared");
	NEED(cuIpcGetEventHandle(&handle, event));
	gate_close(a);
	NEED(cuEventRecord(event, a));
	if (pipe(to_child) < 0 || pipe(from_child) < 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		dup2(to_child[0], 0);
		dup2(from_child[1], 1);
		close(to_child[1]);
		close(from_child[0]);
		execl("/proc/self/exe", "test-stream", "child", NULL);
		_exit(9);
	}
	close(to_child[0]);
	close(from_child[1]);
	if (write(to_child[1], &handle, sizeof(handle)) != sizeof(handle))
		exit(1);
	check(read(from_child[0], &byte, 1) == 1 && byte == 'n',
	      "not reached, seen from elsewhere");
	gate_open();
	check(read(from_child[0], &byte, 1) == 1 && byte == 'y', "reached, seen from elsewhere");
	waitpid(pid, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the other process is content");
}

/* A process that dies, unreaped, with an event recorded that it will never reach. */
static void test_ipc_death(_unused_ CUstream a)
{
	CUipcEventHandle handle;
	int to_child[2], from_child[2];
	CUevent event;
	char byte;
	pid_t pid;

	NEED(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	NEED(cuIpcGetEventHandle(&handle, event));
	if (pipe(to_child) < 0 || pipe(from_child) < 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		dup2(to_child[0], 0);
		dup2(from_child[1], 1);
		execl("/proc/self/exe", "test-stream", "die", NULL);
		_exit(9);
	}
	close(from_child[1]);
	if (write(to_child[1], &handle, sizeof(handle)) != sizeof(handle) ||
	    read(from_child[0], &byte, 1) != 1)
		exit(1);
	expect(CUDA_ERROR_NOT_READY, cuEventQuery(event), "recorded by another process");
	kill(pid, SIGKILL);
	expect(CUDA_SUCCESS, cuEventSynchronize(event), "which dies: nobody waits for ever");
	waitpid(pid, NULL, 0);
}

/* The other process of test_ipc_death(). */
static int child_that_dies(void)
{
	CUipcEventHandle handle;
	CUdevice device;
	CUstream stream;
	CUevent event;
	CUcontext ctx;
	void *pinned;

	/* At the latest with the test. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(0, &handle, sizeof(handle)) != sizeof(handle) || cuInit(0) ||
	    cuDeviceGet(&device, 0) || cuCtxCreate_v2(&ctx, 0, device) ||
	    cuIpcOpenEventHandle(&event, handle) || cuMemHostAlloc(&pinned, 4096, 0) ||
	    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
		return 1;
	gate = pinned;
	gate_close(stream);
	if (cuEventRecord(event, stream) || write(1, "r", 1) != 1)
		return 1;
	pause();
	return 0;
}

/* The other process of test_ipc(): standard output is the pipe. */
static int child(void)
{
	CUipcEventHandle handle;
	CUdevice device;
	CUevent event;
	CUcontext ctx;

	if (read(0, &handle, sizeof(handle)) != sizeof(handle) || cuInit(0) ||
	    cuDeviceGet(&device, 0) || cuCtxCreate_v2(&ctx, 0, device) ||
	    cuIpcOpenEventHandle(&event, handle))
		return 1;
	if (write(1, cuEventQuery(event) == CUDA_ERROR_NOT_READY ? "n" : "?", 1) != 1)
		return 1;
	if (write(1, cuEventSynchronize(event) == CUDA_SUCCESS ? "y" : "?", 1) != 1)
		return 1;
	return cuCtxDestroy_v2(ctx) != CUDA_SUCCESS;
}

int main(int argc, char **argv)
{
	CUstream a, b, free_one;
	CUcontext ctx;
	void *pinned;

	if (argc > 1)
		return strcmp(argv[1], "die") == 0 ? child_that_dies() : child();
	ctx = test_begin();
	NEED(cuModuleLoadData(&module, ptx));
	put = test_function(module, "put");
	timed = test_function(module, "softgpu_timed");
	NEED(cuMemHostAlloc(&pinned, 4096, 0));
	gate = pinned;
	word = gate + 16;
	NEED(cuStreamCreate(&a, CU_STREAM_DEFAULT));
	NEED(cuStreamCreate(&b, CU_STREAM_DEFAULT));
	NEED(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));

	test_order(a, b, free_one);
	test_events(a, b);
	test_priorities();
	test_functions(a);
	test_memory_operations(a);
	test_per_thread(ctx, a);
	test_destroyed_in_use(ctx);
	test_ipc(a);
	test_ipc_death(a);
	test_handles(ctx, a);
	expect(CUDA_SUCCESS, cuCtxDestroy_v2(ctx), "the context ends");
	test_end();
	return n_failed > 0;
}
