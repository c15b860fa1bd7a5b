// SPDX-License-Identifier: Apache-2.0
/*
 * A tenant that floods: hundreds of threads held, thousands of refusals and records. Another tenant's
 * verdicts, events and holds are as if it were alone.
 */
#include "harness.h"

#include <sys/wait.h>

#define FLOOD_THREADS  300
#define FLOOD_REFUSALS 3000
#define FLOOD_RECORDS  2000

static uint32_t quiet; /* the other tenant */
static uint64_t quiet_events[AUDIT_EVENT_KINDS];
static volatile int *flooding;

static void on_event(const struct audit_event *event, _unused_ const char *text,
		     _unused_ void *userdata)
{
	if (event->tenant == quiet)
		quiet_events[event->kind]++;
}

static void *ask_much(void *arg)
{
	unsigned long address;

	CUDA("cuMemAlloc_v2", &address, 900 * MIB);
	return arg;
}

static int flood(_unused_ void *userdata)
{
	pthread_attr_t small_stack;
	pthread_t thread;
	unsigned long address;

	pthread_attr_init(&small_stack);
	pthread_attr_setstacksize(&small_stack, 65536);
	if (CUDA("cuMemAlloc_v2", &address, 600 * MIB))
		return 1;
	for (int i = 0; i < FLOOD_RECORDS; i++)
		if (CUDA("cuMemAlloc_v2", &address, 1))
			return 2;
	for (int i = 0; i < FLOOD_THREADS; i++)
		if (pthread_create(&thread, &small_stack, ask_much, NULL))
			return 3;
	for (int i = 0; i < FLOOD_REFUSALS; i++) {
		if (CUDA("cuMemAlloc_v2", &address, 2000 * MIB) != OUT_OF_MEMORY)
			return 4;
		*flooding = i;
	}
	pause();
	return 0;
}

static int behave(_unused_ void *userdata)
{
	unsigned long address[2];

	for (int i = 0; i < 50; i++) {
		if (CUDA("cuMemAlloc_v2", &address[0], 60 * MIB))
			return 1;
		if (CUDA("cuMemAlloc_v2", &address[1], 60 * MIB) != OUT_OF_MEMORY)
			return 2;
		if (CUDA("cuMemFree_v2", address[0]))
			return 3;
	}
	return 0;
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;
	struct audit_tenant loud_state;
	struct ledger ledger;
	uint32_t loud;
	pid_t flooder;
	int status = 0;

	bench_open(&b, ENGINE_RUNG_AUTO, 8192 * MIB);
	bench_limit(&b, 1000 * MIB, 60000 * MILLISECOND);
	fake_open(&b, argv[1]);
	engine_on_event(b.engine, on_event, NULL);
	flooding = shared_memory(sizeof(int));
	loud = b.tenant;
	flooder = tenant_fork(&b, flood, NULL);
	for (int i = 0; i < 10000 && *flooding < 100; i++)
		bench_pump(&b, 1);
	CHECK(*flooding >= 100, "%d, exit %d %x", *flooding, waitpid(flooder, &status, WNOHANG),
	      status);

	CHECK(engine_tenant_new(b.engine, "quiet", &b.tenant) == 0);
	quiet = b.tenant;
	bench_limit(&b, 100 * MIB, 0);
	CHECK(tenant_wait(&b, tenant_fork(&b, behave, NULL)) == 0);
	bench_pump(&b, 50);
	CHECK(engine_book(b.engine, quiet, 0, &ledger) == 0);
	CHECK(ledger.n_refused == 50 && ledger.current == 0 && ledger.peak == 60 * MIB);
	CHECK(quiet_events[AUDIT_EVENT_REFUSED] == 50, "%lu", quiet_events[AUDIT_EVENT_REFUSED]);
	printf("ok 'caps: a flood changes no verdict of another tenant, and loses none of its events'\n");

	for (int i = 0; i < 20000 && *flooding < FLOOD_REFUSALS - 1; i++)
		bench_pump(&b, 1);
	CHECK(*flooding == FLOOD_REFUSALS - 1);
	CHECK(engine_tenant(b.engine, loud, &loud_state) == 0);
	CHECK(loud_state.taken[AUDIT_TABLE_SLOTS] == FLOOD_THREADS &&
		      loud_state.n_objects == FLOOD_RECORDS + 1,
	      "%u slots, %u records", loud_state.taken[AUDIT_TABLE_SLOTS], loud_state.n_objects);
	kill(flooder, SIGKILL);
	waitpid(flooder, NULL, 0);
	bench_pump(&b, 50);
	CHECK(engine_reap(b.engine) == 0);
	CHECK(engine_tenant(b.engine, loud, &loud_state) == 0);
	CHECK(loud_state.taken[AUDIT_TABLE_SLOTS] == 0 && loud_state.n_objects == 0 &&
		      loud_state.taken[AUDIT_TABLE_PROCESSES] == 0,
	      "%u slots, %u records, %u processes", loud_state.taken[AUDIT_TABLE_SLOTS],
	      loud_state.n_objects, loud_state.taken[AUDIT_TABLE_PROCESSES]);
	printf("ok 'caps: nothing is left of a tenant that was killed with %d threads held'\n",
	       FLOOD_THREADS);
	bench_close(&b);
	return 0;
}
