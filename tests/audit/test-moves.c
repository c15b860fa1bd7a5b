// SPDX-License-Identifier: Apache-2.0
/*
 * A process changes tenants again and again while its threads allocate and free: what it has is charged
 * to one of them at every moment, and at its end to nobody.
 */
#include "harness.h"

#include <sys/wait.h>

#define MOVES	20000
#define THREADS 3
#define KEPT	(8 * MIB)

static volatile int *stop, *stopped;

static void *allocate_and_free(void *arg)
{
	while (!*stop) {
		unsigned long address = 0;

		CHECK(CUDA("cuMemAlloc_v2", &address, MIB) == 0);
		CHECK(CUDA("cuMemFree_v2", address) == 0);
	}
	return arg;
}

static int tenant(_unused_ void *userdata)
{
	pthread_t threads[THREADS];
	unsigned long address;

	CHECK(CUDA("cuMemAlloc_v2", &address, KEPT) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate_and_free, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	*stopped = 1;
	while (*stop == 1)
		usleep(1000);
	return 0;
}

static uint64_t charged(struct bench *b, uint32_t tenant)
{
	struct ledger ledger;

	CHECK(engine_book(b->engine, tenant, 0, &ledger) == 0);
	return ledger.current;
}

/* Some of the moves are found by a call of the process, the others are done for it. */
static void move(struct bench *b, uint32_t to, pid_t pid, int i)
{
	CHECK(engine_bind(b->engine, to, ENGINE_BIND_UID, getuid()) == 0);
	if (i % 4)
		CHECK(engine_adopt(b->engine, pid) == 0);
	else
		usleep(20);
	if (i % 256 == 0)
		bench_pump(b, 0);
}

int main(_unused_ int argc, char **argv)
{
	uint32_t tenants[2];
	struct bench b;
	pid_t pid;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 1000 * MIB, 0);
	fake_open(&b, argv[1]);
	tenants[0] = b.tenant;
	CHECK(engine_tenant_new(b.engine, "other", &tenants[1]) == 0);
	stop = shared_memory(2 * sizeof(*stop));
	stopped = stop + 1;
	pid = tenant_fork(&b, tenant, NULL);
	CHECK(engine_bind(b.engine, b.tenant, ENGINE_BIND_UID, getuid()) == 0);
	CHECK(engine_unbind(b.engine, ENGINE_BIND_TREE, pid) == 0);
	for (int i = 0; i < MOVES; i++)
		move(&b, tenants[i % 2], pid, i);
	*stop = 1;
	CHECK(WAIT_UNTIL(&b, *stopped));
	CHECK(engine_adopt(b.engine, pid) == 0);
	CHECK(charged(&b, tenants[0]) == 0, "%lu bytes stayed behind", charged(&b, tenants[0]));
	CHECK(charged(&b, tenants[1]) == KEPT, "%lu bytes came along", charged(&b, tenants[1]));
	*stop = 2;
	CHECK(tenant_wait(&b, pid) == 0);
	bench_unowned(&b, 0, 0);
	CHECK(charged(&b, tenants[1]) == 0 && charged(&b, 0) == 0);
	printf("ok 'moves: %d times to another tenant while %d threads allocate'\n", MOVES,
	       THREADS);
	bench_close(&b);
	return 0;
}
