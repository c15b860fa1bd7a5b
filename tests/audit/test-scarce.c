// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel has no memory for, and who is dead: neither lets a tenant's call run that nobody counts.
 */
#include "harness.h"

#include <sys/wait.h>

#include "audit/priv.h"

static int allocate(_unused_ void *userdata)
{
	unsigned long address = 0;

	if (CUDA("cuMemFree_v2", address))
		return 1;
	return CUDA("cuMemAlloc_v2", &address, MIB) ? 2 : 0;
}

static void case_failure(struct bench *b, enum audit_failure failure, int code,
			 enum audit_event_kind event)
{
	uint64_t before = b->n_events[event];

	CHECK(engine_tenant_waits(b->engine, b->tenant, 0, 0, failure) == 0);
	CHECK(tenant_wait(b, tenant_fork(b, allocate, NULL)) == code);
	CHECK(WAIT_UNTIL(b, b->n_events[event] == before + 1), "%lu", b->n_events[event] - before);
}

static void case_nobodys(_unused_ struct bench *b)
{
	int status;
	pid_t pid = bench_fork();

	if (pid == 0)
		_exit(allocate(NULL));
	waitpid(pid, &status, 0);
	CHECK(status == 0, "%x", status);
}

/* The id of a daemon that has died may be that of a tenant's process next. */
static void case_daemon(struct bench *b)
{
	struct audit_control *control = &b->engine->state->control;
	pid_t pid = bench_fork();

	if (pid == 0)
		_exit(pause());
	control->daemon = pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(control->daemon == 0, "%u", control->daemon);
	control->daemon = getpid();
	printf("ok 'scarce: a daemon is nobody\'s as long as it lives'\n");
}

static int stay(_unused_ void *userdata)
{
	return pause();
}

/* As where the kernel had no memory for the entry of a child. */
static void case_unfollowed(struct bench *b)
{
	pid_t pid = tenant_fork(b, stay, NULL), self = getpid();
	uint32_t tenant;

	CHECK(engine_bind(b->engine, b->tenant, ENGINE_BIND_TREE, self) == 0);
	CHECK(engine_unbind(b->engine, ENGINE_BIND_TREE, pid) == 0);
	CHECK(engine_tree_of(b->engine, pid, &tenant) == ENGINE_E_GONE);
	b->engine->state->control.n_unfollowed++;
	CHECK(WAIT_UNTIL(b, engine_tree_of(b->engine, pid, &tenant) == 0) && tenant == b->tenant);
	CHECK(engine_unbind(b->engine, ENGINE_BIND_TREE, self) == 0);
	kill(pid, SIGKILL);
	tenant_wait(b, pid);
	printf("ok 'scarce: a child that could not be entered is found'\n");
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 100 * MIB, 0);
	fake_open(&b, argv[1]);
	case_daemon(&b);
	case_unfollowed(&b);
	bench_leave(&b);
	b.no_thread_records = true;
	bench_return(&b);
	case_failure(&b, AUDIT_FAILURE_KILL, 128 + SIGKILL, AUDIT_EVENT_FAILED_KILL);
	case_failure(&b, AUDIT_FAILURE_ALLOW, 0, AUDIT_EVENT_FAILED_ALLOW);
	case_nobodys(&b);
	printf("ok 'scarce: without a record of the thread a call goes by on-failure'\n");
	bench_close(&b);
	return 0;
}
