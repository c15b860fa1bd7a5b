// SPDX-License-Identifier: Apache-2.0
/*
 * One engine takes over from another while threads call: each call is counted by exactly one of them, also
 * those that are at a probe in that very moment.
 */
#include "harness.h"

#include <sys/wait.h>

#include "audit/room.h"

#define UPGRADES 5
#define REAPS	 5 /* after each: the records of the dead are dropped, not those just being made */
#define LINGER	 200000 /* rounds, most of a millisecond: longer than anything else in a hit */
#define THREADS	 3
#define PIECE	 4096
#define KEPT_MAX (AUDIT_TENANT_OBJECTS / 2) /* each has a record, whose bytes go when it is freed */

static struct {
	volatile int stop, stopped;
	unsigned long allocated, freed;
} * shared;

static unsigned long n_kept(void)
{
	return __atomic_load_n(&shared->allocated, __ATOMIC_RELAXED) -
	       __atomic_load_n(&shared->freed, __ATOMIC_RELAXED);
}

/* Most are freed again, so that returns of both are seen, and on a fast machine all when enough are kept. */
static void *allocate(void *arg)
{
	while (!shared->stop) {
		unsigned long address = 0;

		CHECK(CUDA("cuMemAlloc_v2", &address, PIECE) == 0);
		__atomic_add_fetch(&shared->allocated, 1, __ATOMIC_RELAXED);
		if (address / 0x1000 % 8 || n_kept() > KEPT_MAX) {
			CHECK(CUDA("cuMemFree_v2", address) == 0);
			__atomic_add_fetch(&shared->freed, 1, __ATOMIC_RELAXED);
		}
	}
	return arg;
}

static int tenant(_unused_ void *userdata)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, allocate, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	shared->stopped = 1;
	while (shared->stop == 1)
		usleep(1000);
	return 0;
}

int main(_unused_ int argc, char **argv)
{
	unsigned long expected;
	struct bench b;
	pid_t pid;

	bench_open(&b, ENGINE_RUNG_AUTO, 1ULL << 40);
	bench_limit(&b, 1ULL << 39, 0);
	fake_open(&b, argv[1]);
	shared = shared_memory(sizeof(*shared));
	pid = tenant_fork(&b, tenant, NULL);
	for (int i = 0; i < UPGRADES; i++) {
		bench_leave(&b);
		bench_return_slowly(&b, LINGER);
		bench_pump(&b, 2);
		for (int j = 0; j < REAPS; j++)
			CHECK(engine_reap(b.engine) == 0);
	}
	shared->stop = 1;
	CHECK(WAIT_UNTIL(&b, shared->stopped));
	expected = n_kept() * PIECE;
	CHECK(bench_current(&b) == expected, "%lu bytes are charged of %lu, after %lu calls",
	      bench_current(&b), expected, shared->allocated + shared->freed);
	printf("ok 'upgrade: %d times, %lu calls, each counted once'\n", UPGRADES,
	       shared->allocated + shared->freed);
	shared->stop = 2;
	CHECK(tenant_wait(&b, pid) == 0);
	CHECK(bench_current(&b) == 0);
	bench_close(&b);
	return 0;
}
