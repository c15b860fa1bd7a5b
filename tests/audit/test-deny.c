// SPDX-License-Identifier: Apache-2.0
/*
 * on-failure=deny: a call that is to be held and that nobody can hold, as its process is being traced
 * already, is answered by the program itself. Where the program cannot do that, it is as with kill.
 */
#include "harness.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

static volatile int *traced;

static int ask(_unused_ void *userdata)
{
	unsigned long address;

	while (!*traced)
		usleep(1000);
	if (CUDA("cuMemAlloc_v2", &address, 100 * MIB))
		return 2;
	if (CUDA("cuMemAlloc_v2", &address, 200 * MIB) != OUT_OF_MEMORY)
		return 1;
	/* Nothing else has changed: what fits is allowed, and what does not is answered. */
	return CUDA("cuMemAlloc_v2", &address, 60 * MIB);
}

static int result_of(struct bench *b, enum audit_failure on_failure)
{
	pid_t pid;
	int code;

	CHECK(engine_tenant_waits(b->engine, b->tenant, 60000 * MILLISECOND, 0, on_failure) == 0);
	*traced = 0;
	pid = tenant_fork(b, ask, NULL);
	CHECK(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0);
	*traced = 1;
	code = tenant_wait(b, pid);
	bench_pump(b, 1);
	return code;
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;
	bool answers;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 250 * MIB, 60000 * MILLISECOND);
	fake_open(&b, argv[1]);
	/* That nobody can hold it is known when the time is over. */
	bench_failure_wait(&b, 500 * MILLISECOND);
	traced = shared_memory(sizeof(*traced));
	answers = engine_rung_now(b.engine) == ENGINE_RUNG_REGISTERS;
	CHECK(result_of(&b, AUDIT_FAILURE_KILL) == 128 + SIGKILL);
	CHECK(b.n_events[AUDIT_EVENT_FAILED_KILL] == 1);
	CHECK(result_of(&b, AUDIT_FAILURE_DENY) == (answers ? 0 : 128 + SIGKILL));
	CHECK(b.n_events[answers ? AUDIT_EVENT_FAILED_DENY : AUDIT_EVENT_FAILED_KILL] ==
	      (answers ? 1 : 2));
	CHECK(bench_current(&b) == 0);
	printf("ok 'deny: a call that nobody can hold is %s'\n",
	       answers ? "answered" : "its process' end here");
	bench_close(&b);
	return 0;
}
