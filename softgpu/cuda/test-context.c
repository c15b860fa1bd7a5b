// SPDX-License-Identifier: Apache-2.0
/*
 * Contexts, against a state and an engine that only count, so that each of their answers can be
 * made to fail. Two devices.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/cuda/context.h"
#include "softgpu/engine/engine.h"
#include "softgpu/state/state.h"
#include "softgpu/util/check.h"

CUresult impl_cuInit(unsigned flags);
CUresult impl_cuDeviceGetCount(int *count);
CUresult impl_cuDeviceGet(CUdevice *device, int ordinal);
CUresult impl_cuCtxCreate(CUcontext *pctx, unsigned flags, CUdevice dev);
CUresult impl_cuCtxCreate_v2(CUcontext *pctx, unsigned flags, CUdevice dev);
CUresult impl_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int n, unsigned flags,
			     CUdevice dev);
CUresult impl_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *params, unsigned flags,
			     CUdevice dev);
CUresult impl_cuCtxDestroy_v2(CUcontext ctx);
CUresult impl_cuCtxAttach(CUcontext *pctx, unsigned flags);
CUresult impl_cuCtxDetach(CUcontext ctx);
CUresult impl_cuCtxPushCurrent_v2(CUcontext ctx);
CUresult impl_cuCtxPopCurrent_v2(CUcontext *pctx);
CUresult impl_cuCtxSetCurrent(CUcontext ctx);
CUresult impl_cuCtxGetCurrent(CUcontext *pctx);
CUresult impl_cuCtxGetDevice(CUdevice *device);
CUresult impl_cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx);
CUresult impl_cuCtxGetId(CUcontext ctx, unsigned long long *id);
CUresult impl_cuCtxGetApiVersion(CUcontext ctx, unsigned *version);
CUresult impl_cuCtxGetFlags(unsigned *flags);
CUresult impl_cuCtxSynchronize(void);
CUresult impl_cuCtxGetLimit(size_t *value, CUlimit limit);
CUresult impl_cuCtxSetLimit(CUlimit limit, size_t value);
CUresult impl_cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult impl_cuCtxDisablePeerAccess(CUcontext peer);
CUresult impl_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev);
CUresult impl_cuDevicePrimaryCtxRelease_v2(CUdevice dev);
CUresult impl_cuDevicePrimaryCtxReset_v2(CUdevice dev);
CUresult impl_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags);
CUresult impl_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags);
CUresult impl_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active);

#define CONTEXT_BYTES (300ull << 20)

/* What the state and the engine hold for this process. */
static _Atomic int64_t charged_bytes;
static _Atomic int n_clients, n_contexts, n_aborts, n_drained;
static int fail_open, fail_charge, fail_client, fail_part;
static CUresult fail_synchronize;
static uint32_t last_xid;
static char order[64]; /* of the parts' hooks, which several threads may be in at once */
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;

int state_open(_unused_ const struct softgpu_config *config, _unused_ unsigned flags,
	       struct state **ret)
{
	static int a_state;

	if (fail_open)
		return fail_open;
	*ret = (struct state *)&a_state;
	return 0;
}

void state_close(_unused_ struct state *state)
{
}

int state_attach(_unused_ struct state *state)
{
	return 0;
}

unsigned state_n_devices(_unused_ const struct state *state)
{
	return 2;
}

void state_device(_unused_ const struct state *state, unsigned dev,
		  struct softgpu_device_config *ret)
{
	*ret = driver.config.devices[dev];
}

int state_charge(_unused_ struct state *state, _unused_ unsigned dev, uint64_t bytes)
{
	if (fail_charge)
		return fail_charge;
	atomic_fetch_add(&charged_bytes, (int64_t)bytes);
	return 0;
}

void state_uncharge(_unused_ struct state *state, _unused_ unsigned dev, uint64_t bytes)
{
	atomic_fetch_sub(&charged_bytes, (int64_t)bytes);
}

void state_context_add(_unused_ struct state *state, _unused_ unsigned dev, int n)
{
	atomic_fetch_add(&n_contexts, n);
}

void state_fault_add(_unused_ struct state *state, _unused_ unsigned dev, uint32_t xid)
{
	last_xid = xid;
}

int engine_client_new(_unused_ struct state *state, _unused_ unsigned dev,
		      struct engine_client **ret)
{
	static int a_client;

	if (fail_client)
		return fail_client;
	atomic_fetch_add(&n_clients, 1);
	*ret = (struct engine_client *)&a_client;
	return 0;
}

void engine_client_free(struct engine_client *client)
{
	if (client)
		atomic_fetch_sub(&n_clients, 1);
}

void engine_client_abort(_unused_ struct engine_client *client)
{
	atomic_fetch_add(&n_aborts, 1);
}

static void note(char c)
{
	size_t n;

	pthread_mutex_lock(&order_lock);
	n = strlen(order);
	if (n + 1 < sizeof(order))
		order[n] = c;
	pthread_mutex_unlock(&order_lock);
}

static CUresult late_begin(_unused_ struct context *ctx)
{
	note('L');
	return fail_part ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static void late_end(_unused_ struct context *ctx)
{
	note('l');
}

static CUresult late_synchronize(_unused_ struct context *ctx)
{
	return fail_synchronize;
}

static void late_drain(_unused_ struct context *ctx, _unused_ uint64_t most_ns)
{
	n_drained++;
}

static CUresult early_begin(_unused_ struct context *ctx)
{
	note('E');
	return CUDA_SUCCESS;
}

static void early_end(_unused_ struct context *ctx)
{
	note('e');
}

CONTEXT_PART(late, .order = 2, .begin = late_begin, .synchronize = late_synchronize,
	     .drain = late_drain, .end = late_end);
CONTEXT_PART(early, .order = 1, .begin = early_begin, .end = early_end);

static bool nothing_is_held(void)
{
	return charged_bytes == 0 && n_clients == 0 && n_contexts == 0;
}

static bool holds(int n)
{
	return charged_bytes == n * (int64_t)CONTEXT_BYTES && n_clients == n && n_contexts == n;
}

static void test_before_init(void)
{
	int n = 7;

	check(impl_cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && n == 7 &&
		      impl_cuCtxSetCurrent(NULL) == CUDA_ERROR_NOT_INITIALIZED &&
		      impl_cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED,
	      "nothing works before cuInit");
	check(impl_cuInit(1) == CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
	fail_open = STATE_E_FOREIGN;
	check(impl_cuInit(0) == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "cuInit: a foreign file");
	fail_open = -ENOSPC;
	check(impl_cuInit(0) == CUDA_ERROR_OPERATING_SYSTEM, "cuInit: no room for the state");
	fail_open = 0;
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	check(impl_cuInit(0) == CUDA_ERROR_NO_DEVICE, "cuInit: no visible device");
	unsetenv("CUDA_VISIBLE_DEVICES");
	check(impl_cuInit(0) == CUDA_SUCCESS, "cuInit after failures");
	check(impl_cuInit(0) == CUDA_SUCCESS, "cuInit again");
	check(impl_cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 2, "two devices");
	check(impl_cuDeviceGet(&n, 2) == CUDA_ERROR_INVALID_DEVICE &&
		      impl_cuDeviceGet(&n, -1) == CUDA_ERROR_INVALID_DEVICE,
	      "there is no third");
}

static void test_create(void)
{
	CUcontext a = NULL, b = NULL, current = NULL;
	CUexecAffinityParam affinity = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT };
	unsigned long long id_a = 0, id_b = 0;
	unsigned version = 0, flags = 0;
	CUdevice device = 7;

	check(impl_cuCtxGetCurrent(&current) == CUDA_SUCCESS && !current &&
		      impl_cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT,
	      "no context at first");
	check(impl_cuCtxCreate_v2(&a, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "flags that contradict");
	check(impl_cuCtxCreate_v2(&a, 0x100, 0) == CUDA_ERROR_INVALID_VALUE,
	      "flags that do not exist");
	check(impl_cuCtxCreate_v2(&a, 0, 2) == CUDA_ERROR_INVALID_DEVICE,
	      "a device that does not exist");
	check(nothing_is_held(), "nothing is held after refusals");

	check(impl_cuCtxCreate_v2(&a, CU_CTX_SCHED_BLOCKING_SYNC, 1) == CUDA_SUCCESS, "create");
	check(holds(1), "costs 300 MiB");
	check(impl_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == a, "is current");
	check(impl_cuCtxGetDevice(&device) == CUDA_SUCCESS && device == 1, "on its device");
	check(impl_cuCtxGetFlags(&flags) == CUDA_SUCCESS && flags == CU_CTX_SCHED_BLOCKING_SYNC,
	      "with its flags");
	check(impl_cuCtxCreate(&b, 0, 0) == CUDA_SUCCESS &&
		      impl_cuCtxGetApiVersion(b, &version) == CUDA_SUCCESS && version == 3010 &&
		      impl_cuCtxGetApiVersion(a, &version) == CUDA_SUCCESS && version == 3020,
	      "the first form makes an older one");
	check(impl_cuCtxGetId(a, &id_a) == CUDA_SUCCESS &&
		      impl_cuCtxGetId(NULL, &id_b) == CUDA_SUCCESS && id_a && id_b && id_a != id_b,
	      "each has an id");
	check(impl_cuCtxGetDevice_v2(&device, a) == CUDA_SUCCESS && device == 1,
	      "the device of one that is not current");
	check(holds(2), "two hold twice as much");
	check(impl_cuCtxDestroy_v2(b) == CUDA_SUCCESS &&
		      impl_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == a,
	      "destroying the current one uncovers the other");
	check(impl_cuCtxDestroy_v2(b) == CUDA_ERROR_INVALID_CONTEXT &&
		      impl_cuCtxSetCurrent(b) == CUDA_ERROR_INVALID_CONTEXT &&
		      impl_cuCtxGetId(b, &id_b) == CUDA_ERROR_INVALID_CONTEXT,
	      "a destroyed one is none");
	check(impl_cuCtxDestroy_v2((CUcontext)&a) == CUDA_ERROR_INVALID_CONTEXT,
	      "an address is none");
	check(impl_cuCtxDestroy_v2(a) == CUDA_SUCCESS && nothing_is_held(),
	      "nothing is held after the last");

	check(impl_cuCtxCreate_v3(&a, &affinity, 1, 0, 0) == CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
	      "a share of the multiprocessors cannot be had");
	check(impl_cuCtxCreate_v3(&a, NULL, 0, 0, 0) == CUDA_SUCCESS &&
		      impl_cuCtxDestroy_v2(a) == CUDA_SUCCESS,
	      "the third form without share");
	check(impl_cuCtxCreate_v4(&a, NULL, 0, 0) == CUDA_SUCCESS &&
		      impl_cuCtxDestroy_v2(a) == CUDA_SUCCESS && nothing_is_held(),
	      "the fourth form");
}

static void test_failures(void)
{
	CUcontext ctx = NULL;

	fail_charge = STATE_E_FULL;
	check(impl_cuCtxCreate_v2(&ctx, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY && nothing_is_held(),
	      "no memory on the device");
	fail_charge = 0;
	fail_client = STATE_E_BUSY;
	check(impl_cuCtxCreate_v2(&ctx, 0, 0) == CUDA_ERROR_DEVICE_UNAVAILABLE && nothing_is_held(),
	      "no place on the device");
	fail_client = 0;
	memset(order, 0, sizeof(order));
	fail_part = 1;
	check(impl_cuCtxCreate_v2(&ctx, 0, 0) == CUDA_ERROR_OUT_OF_MEMORY && nothing_is_held(),
	      "a part that cannot begin");
	fail_part = 0;
	check(!strcmp(order, "ELe"), "only those that had begun end");
	check(impl_cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT && !ctx,
	      "nothing is current after failures");
	memset(order, 0, sizeof(order));
	impl_cuCtxCreate_v2(&ctx, 0, 0);
	impl_cuCtxDestroy_v2(ctx);
	check(!strcmp(order, "ELle"), "parts begin in order and end in the other");
}

static void test_stack(void)
{
	CUcontext a, b, top;
	int i, n_good = 0;

	impl_cuCtxCreate_v2(&a, 0, 0);
	impl_cuCtxCreate_v2(&b, 0, 0);
	check(impl_cuCtxPopCurrent_v2(&top) == CUDA_SUCCESS && top == b, "pop gives the top");
	check(impl_cuCtxPopCurrent_v2(NULL) == CUDA_SUCCESS, "pop without a place for it");
	check(impl_cuCtxPopCurrent_v2(&top) == CUDA_ERROR_INVALID_CONTEXT, "nothing is left");
	check(impl_cuCtxPushCurrent_v2(NULL) == CUDA_ERROR_INVALID_CONTEXT,
	      "NULL cannot be pushed");
	for (i = 0; i < 1000; i++)
		impl_cuCtxPushCurrent_v2(i & 1 ? a : b);
	for (i = 999; i >= 0; i--)
		n_good += impl_cuCtxPopCurrent_v2(&top) == CUDA_SUCCESS && top == (i & 1 ? a : b);
	check(n_good == 1000 && impl_cuCtxGetCurrent(&top) == CUDA_SUCCESS && !top,
	      "a thousand deep");
	check(impl_cuCtxSetCurrent(a) == CUDA_SUCCESS &&
		      impl_cuCtxGetCurrent(&top) == CUDA_SUCCESS && top == a,
	      "set on an empty stack");
	impl_cuCtxPushCurrent_v2(a);
	check(impl_cuCtxSetCurrent(b) == CUDA_SUCCESS &&
		      impl_cuCtxPopCurrent_v2(&top) == CUDA_SUCCESS && top == b &&
		      impl_cuCtxGetCurrent(&top) == CUDA_SUCCESS && top == a,
	      "set replaces the top");
	check(impl_cuCtxSetCurrent(NULL) == CUDA_SUCCESS &&
		      impl_cuCtxGetCurrent(&top) == CUDA_SUCCESS && !top,
	      "set to NULL takes it away");
	impl_cuCtxDestroy_v2(a);
	impl_cuCtxDestroy_v2(b);
}

static void test_attach(void)
{
	CUcontext ctx, again = NULL;

	impl_cuCtxCreate_v2(&ctx, 0, 0);
	check(impl_cuCtxAttach(&again, 0) == CUDA_SUCCESS && again == ctx, "attach");
	check(impl_cuCtxDetach(ctx) == CUDA_SUCCESS && holds(1), "the first detach leaves it");
	check(impl_cuCtxDetach(ctx) == CUDA_SUCCESS && nothing_is_held(), "the second ends it");
}

static void test_primary(void)
{
	CUcontext first = NULL, second = NULL;
	unsigned flags = 7;
	int active = 7;

	check(impl_cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS && !flags &&
		      !active && nothing_is_held(),
	      "not active at first");
	check(impl_cuDevicePrimaryCtxRelease_v2(0) == CUDA_ERROR_INVALID_CONTEXT,
	      "release without retain");
	check(impl_cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD) == CUDA_SUCCESS,
	      "flags before it is active");
	fail_charge = STATE_E_FULL;
	check(impl_cuDevicePrimaryCtxRetain(&first, 0) == CUDA_ERROR_OUT_OF_MEMORY &&
		      nothing_is_held(),
	      "retain without memory");
	fail_charge = 0;
	check(impl_cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS &&
		      impl_cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS && first == second,
	      "retain twice");
	check(holds(1), "is one context");
	check(impl_cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT, "does not make it current");
	check(impl_cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS &&
		      flags == CU_CTX_SCHED_YIELD && active,
	      "active with its flags");
	check(impl_cuDevicePrimaryCtxSetFlags(0, 0) == CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE &&
		      impl_cuDevicePrimaryCtxSetFlags_v2(0, 0) == CUDA_SUCCESS,
	      "flags while active: only the second form");
	check(impl_cuCtxDestroy_v2(first) == CUDA_ERROR_INVALID_CONTEXT, "it cannot be destroyed");
	impl_cuCtxSetCurrent(first);
	check(impl_cuCtxSynchronize() == CUDA_SUCCESS, "works");
	check(impl_cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS &&
		      impl_cuCtxSynchronize() == CUDA_SUCCESS,
	      "after the first release too");
	check(impl_cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS && nothing_is_held() &&
		      impl_cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED,
	      "reset ends it");
	check(impl_cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS && second == first &&
		      holds(1) && impl_cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && holds(1),
	      "and keeps the reference");
	check(impl_cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS && nothing_is_held(),
	      "the last release ends it");
	check(impl_cuCtxSetCurrent(first) == CUDA_SUCCESS &&
		      impl_cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS &&
		      impl_cuCtxSynchronize() == CUDA_SUCCESS,
	      "set before retain, as the runtime does");
	impl_cuDevicePrimaryCtxRelease_v2(0);
	impl_cuCtxSetCurrent(NULL);
}

static void test_sticky_error(void)
{
	struct context *failed;
	CUcontext a, b;
	CUdevice device;
	unsigned flags;

	impl_cuCtxCreate_v2(&b, 0, 0);
	impl_cuCtxCreate_v2(&a, 0, 0);
	context_current(&failed);
	context_fail(failed, CUDA_ERROR_ILLEGAL_ADDRESS);
	context_fail(failed, CUDA_ERROR_ASSERT);
	check(impl_cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS &&
		      impl_cuCtxGetFlags(&flags) == CUDA_ERROR_ILLEGAL_ADDRESS,
	      "the first fault stays");
	check(last_xid == 31, "monitors are told of a page fault");
	check(impl_cuCtxGetDevice(&device) == CUDA_SUCCESS, "it still tells its device");
	impl_cuCtxSetCurrent(b);
	check(impl_cuCtxSynchronize() == CUDA_SUCCESS, "another context works");
	n_aborts = n_drained = 0;
	check(impl_cuCtxDestroy_v2(a) == CUDA_SUCCESS && n_aborts == 1 && n_drained == 0 &&
		      holds(1),
	      "a failed one can be destroyed, and nobody waits for it");
	fail_synchronize = CUDA_ERROR_LAUNCH_FAILED;
	check(impl_cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED,
	      "an error while waiting is told");
	fail_synchronize = CUDA_SUCCESS;
	impl_cuCtxDestroy_v2(b);
	check(n_drained == 1 && n_aborts == 2, "a good one is waited for first");
	check(nothing_is_held(), "nothing is held");
}

static void test_limits(void)
{
	CUcontext ctx;
	size_t value = 0;

	impl_cuCtxCreate_v2(&ctx, 0, 0);
	check(impl_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS && value == 1024 &&
		      impl_cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS &&
		      value == 8 << 20,
	      "defaults");
	check(impl_cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 12345) == CUDA_SUCCESS &&
		      impl_cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE) == CUDA_SUCCESS &&
		      value == 12345,
	      "set and get");
	check(impl_cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1025) == CUDA_SUCCESS &&
		      impl_cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS &&
		      value == 1040,
	      "a stack is rounded up");
	check(impl_cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX) == CUDA_ERROR_OUT_OF_MEMORY,
	      "a heap beyond the device");
	check(impl_cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED) == CUDA_ERROR_UNSUPPORTED_LIMIT,
	      "a limit that devices lack");
	check(impl_cuCtxGetLimit(&value, CU_LIMIT_MAX) == CUDA_ERROR_INVALID_VALUE &&
		      impl_cuCtxGetLimit(&value, -1) == CUDA_ERROR_INVALID_VALUE,
	      "no limit at all");
	impl_cuCtxDestroy_v2(ctx);
}

static void test_peers(void)
{
	CUcontext a, b, c;
	struct context *ctx;

	impl_cuCtxCreate_v2(&b, 0, 1);
	impl_cuCtxCreate_v2(&c, 0, 0);
	impl_cuCtxCreate_v2(&a, 0, 0);
	context_current(&ctx);
	check(context_reaches(ctx, &driver.devices[0]) && !context_reaches(ctx, &driver.devices[1]),
	      "no access at first");
	check(impl_cuCtxEnablePeerAccess(b, 0) == CUDA_SUCCESS &&
		      context_reaches(ctx, &driver.devices[1]),
	      "enable");
	check(impl_cuCtxEnablePeerAccess(b, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
	      "enable twice");
	check(impl_cuCtxEnablePeerAccess(b, 1) == CUDA_ERROR_INVALID_VALUE, "enable with flags");
	check(impl_cuCtxEnablePeerAccess(a, 0) == CUDA_ERROR_INVALID_CONTEXT, "enable to itself");
	check(impl_cuCtxEnablePeerAccess(c, 0) == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
	      "enable on the same device");
	check(impl_cuCtxDisablePeerAccess(b) == CUDA_SUCCESS &&
		      !context_reaches(ctx, &driver.devices[1]),
	      "disable");
	check(impl_cuCtxDisablePeerAccess(b) == CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
	      "disable twice");
	impl_cuCtxDestroy_v2(a);
	impl_cuCtxDestroy_v2(b);
	impl_cuCtxDestroy_v2(c);
}

static void *destroy_elsewhere(void *ctx)
{
	return (void *)(uintptr_t)impl_cuCtxDestroy_v2(ctx);
}

static void *churn(_unused_ void *arg)
{
	CUcontext a, b;
	intptr_t n_bad = 0;
	int i;

	for (i = 0; i < 2000; i++) {
		n_bad += impl_cuCtxCreate_v2(&a, 0, 0) != CUDA_SUCCESS;
		n_bad += impl_cuDevicePrimaryCtxRetain(&b, 1) != CUDA_SUCCESS;
		n_bad += impl_cuCtxPushCurrent_v2(b) != CUDA_SUCCESS;
		n_bad += impl_cuCtxPopCurrent_v2(NULL) != CUDA_SUCCESS;
		n_bad += impl_cuDevicePrimaryCtxRelease_v2(1) != CUDA_SUCCESS;
		n_bad += impl_cuCtxDestroy_v2(a) != CUDA_SUCCESS;
	}
	return (void *)n_bad;
}

static void test_threads(void)
{
	pthread_t threads[4];
	CUcontext ctx, current;
	intptr_t n_bad = 0;
	void *result;
	int i;

	impl_cuCtxCreate_v2(&ctx, 0, 0);
	pthread_create(&threads[0], NULL, destroy_elsewhere, ctx);
	pthread_join(threads[0], &result);
	check(!result && impl_cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED,
	      "destroyed by another thread, calls here tell");
	check(impl_cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == ctx &&
		      impl_cuCtxSetCurrent(NULL) == CUDA_SUCCESS,
	      "it is still current");
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, churn, NULL);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		n_bad += (intptr_t)result;
	}
	check(n_bad == 0, "four threads, 8,000 contexts: every call worked");
	check(nothing_is_held(), "and nothing is held");
}

static void test_fork(void)
{
	CUcontext ctx;
	int status = 0, n;
	pid_t child;

	impl_cuCtxCreate_v2(&ctx, 0, 0);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		n = impl_cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED &&
		    impl_cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED &&
		    impl_cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
		_exit(n ? 0 : 1);
	}
	waitpid(child, &status, 0);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "nothing works in a forked child");
	check(impl_cuCtxSynchronize() == CUDA_SUCCESS, "the parent's context does");
	impl_cuCtxDestroy_v2(ctx);
}

int main(void)
{
	test_before_init();
	test_create();
	test_failures();
	test_stack();
	test_attach();
	test_primary();
	test_sticky_error();
	test_limits();
	test_peers();
	test_threads();
	test_fork();
	return n_failed != 0;
}
