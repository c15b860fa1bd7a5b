// SPDX-License-Identifier: Apache-2.0
/*
 * Whom a launch wakes. The calls by which the driver wakes a thread come through this file, which
 * counts them: a count is the same on a busy machine, a time is not.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "softgpu/cuda/test-driver.h"

#define N_PAIRS 5000

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			  ".visible .entry nothing() { ret; }\n";

static _Atomic unsigned n_wakes;

/* In place of the one of libc, for the driver too. */
int pthread_cond_signal(pthread_cond_t *cond)
{
	static int (*real)(pthread_cond_t *);
	void *found;

	if (!real) {
		found = dlsym(RTLD_NEXT, "pthread_cond_signal");
		memcpy(&real, &found, sizeof(real));
	}
	n_wakes++;
	return real(cond);
}

static void launch(CUfunction nothing)
{
	NEED(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/*
 * Threads from here on run when this one pauses: one CPU has all, and who is woken does not take it
 * from who wakes. So no thread of the driver is quicker than the program, on any machine.
 */
static void be_first(void)
{
	struct sched_param param = { 0 };
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		exit(1);
	/* Who may not is of the idle class, which is as good. */
	(void)sched_setscheduler(0, SCHED_BATCH, &param);
}

/* The stream's thread is woken by the first launch, and again after the program has paused. */
static void test_by_turns(CUfunction nothing)
{
	n_wakes = 0;
	for (int i = 0; i < N_PAIRS; i++) {
		launch(nothing);
		NEED(cuCtxSynchronize());
	}
	printf("# %u wakes\n", n_wakes);
	check(n_wakes < N_PAIRS / 2, "who launches and waits by turns wakes nobody");
}

/* What nobody waits for is done, too: a program that only asks sees the end. */
static void test_nobody_waits(CUfunction nothing)
{
	CUresult r;

	for (int i = 0; i < 100; i++) {
		launch(nothing);
		NEED(cuCtxSynchronize());
		launch(nothing);
		while ((r = cuStreamQuery(NULL)) == CUDA_ERROR_NOT_READY)
			;
		NEED(r);
	}
	check(true, "a launch that nobody waits for comes to its end");
}

/* A function of the program is left to the stream's thread, which may have rested. */
static void count(void *arg)
{
	++*(int *)arg;
}

static void test_function_after(CUfunction nothing)
{
	int n = 0;

	for (int i = 0; i < 100; i++) {
		launch(nothing);
		NEED(cuCtxSynchronize());
		NEED(cuLaunchHostFunc(NULL, count, &n));
		NEED(cuCtxSynchronize());
	}
	check(n == 100, "nor is a function left undone");
}

int main(void)
{
	CUfunction nothing;
	CUmodule module;
	CUcontext ctx;

	be_first();
	ctx = test_begin();
	NEED(cuModuleLoadData(&module, ptx));
	nothing = test_function(module, "nothing");
	test_by_turns(nothing);
	test_nobody_waits(nothing);
	test_function_after(nothing);
	NEED(cuCtxDestroy_v2(ctx));
	test_end();
	return n_failed > 0;
}
