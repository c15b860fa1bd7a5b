/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time between events, which is the device's and not the CPU's: clock [KERNEL_NS]
 * What is measured waits in its stream until all of it is there, so that the device goes from one to the
 * next. With KERNEL_NS that is what each kernel lasts, else what the model says for its instructions.
 */
#include <semaphore.h>
#include "program.h"

/* 3 * n + 2 instructions a thread. */
static const char loop_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			       ".visible .entry loop(.param .u32 n)\n{\n"
			       ".reg .u32 %i;\n.reg .pred %p;\n"
			       "ld.param.u32 %i, [n];\n"
			       "again: sub.u32 %i, %i, 1;\n"
			       "setp.ne.u32 %p, %i, 0;\n"
			       "@%p bra again;\n"
			       "ret;\n}\n";

enum { N = 400, THREADS = 512, SMS = 108, CLOCK_MHZ = 1410 };

static CUfunction loop;
static CUstream stream;
static sem_t all_there;

static void wait_for_all(void *arg)
{
	sem_wait(arg);
}

/* How long a grid of n_blocks takes. */
static double ns_of(unsigned int n_blocks)
{
	CUevent begin, end;
	float ms;
	int n = N;

	CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
	CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	CHECK(cuLaunchHostFunc(stream, wait_for_all, &all_there));
	CHECK(cuEventRecord(begin, stream));
	CHECK(cuLaunchKernel(loop, n_blocks, 1, 1, THREADS, 1, 1, 0, stream, (void *[]){ &n },
			     NULL));
	CHECK(cuEventRecord(end, stream));
	sem_post(&all_there);
	CHECK(cuEventSynchronize(end));
	CHECK(cuEventElapsedTime(&ms, begin, end));
	CHECK(cuEventDestroy(begin));
	CHECK(cuEventDestroy(end));
	return (double)ms * 1e6;
}

static void is_about(const char *what, double ns, double expected_ns)
{
	printf("%s: %.0f ns, expected %.0f\n", what, ns, expected_ns);
	EXPECT(ns >= 0.9 * expected_ns && ns <= 1.5 * expected_ns);
}

int main(int argc, char **argv)
{
	/* 16 warps keep an SM's four schedulers busy: each warp has an instruction every four cycles. */
	double model_ns = (3.0 * N + 2) * 4 * 1e3 / CLOCK_MHZ;
	double given_ns = argc > 1 ? strtod(argv[1], NULL) : 0;
	CUmodule module;

	CHECK(cuInit(0));
	context_on(0);
	CHECK(cuModuleLoadData(&module, loop_ptx));
	loop = function_of(module, "loop");
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	EXPECT(sem_init(&all_there, 0, 0) == 0);
	ns_of(1); /* the first launch compiles */
	is_about("one block", ns_of(1), given_ns ? given_ns : model_ns);
	is_about("a block on each SM", ns_of(SMS), given_ns ? given_ns : model_ns);
	is_about("1000 blocks", ns_of(1000), given_ns ? given_ns : model_ns * 1000 / SMS);
	printf("times right\n");
	return 0;
}
