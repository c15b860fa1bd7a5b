// SPDX-License-Identifier: Apache-2.0
/*
 * The engine is removed while threads are held and others are being stopped: who was held goes on into
 * his call, who is being answered is answered, and nobody dies of it.
 */
#include "harness.h"

#include <sys/wait.h>

#define ROUNDS	 5
#define HELD	 8
#define ANSWERED 2

static volatile int *progress; /* threads whose call has ended */

static void *ask(void *arg)
{
	unsigned long address;

	CHECK(CUDA("cuMemAlloc_v2", &address, 100 * MIB) == 0);
	__atomic_add_fetch(progress, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* What could never fit is answered at once. */
static void *ask_too_much(void *arg)
{
	unsigned long address;
	long code = OUT_OF_MEMORY;

	while (code == OUT_OF_MEMORY)
		code = CUDA("cuMemAlloc_v2", &address, 900 * MIB);
	CHECK(code == 0, "%ld", code);
	return arg;
}

static int tenant(_unused_ void *userdata)
{
	pthread_t threads[HELD + ANSWERED];
	unsigned long address;

	CHECK(CUDA("cuMemAlloc_v2", &address, 60 * MIB) == 0);
	for (int i = 0; i < HELD + ANSWERED; i++)
		pthread_create(&threads[i], NULL, i < HELD ? ask : ask_too_much, NULL);
	for (int i = 0; i < HELD + ANSWERED; i++)
		pthread_join(threads[i], NULL);
	return *progress == HELD ? 0 : 1;
}

static int count_held(const struct audit_slot *slot, void *userdata)
{
	*(int *)userdata += slot->ask == AUDIT_ASK_HOLD;
	return 0;
}

static int n_held(struct bench *b)
{
	int n = 0;

	engine_each_held(b->engine, count_held, &n);
	return n;
}

static void round_of(const char *library)
{
	struct bench b;
	int code;
	pid_t pid;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 150 * MIB, 10 * PATIENCE_NS);
	fake_open(&b, library);
	*progress = 0;
	pid = tenant_fork(&b, tenant, NULL);
	CHECK(WAIT_UNTIL(&b, n_held(&b) == HELD) && *progress == 0, "%d are held", n_held(&b));
	bench_close(&b);
	waitpid(pid, &code, 0);
	if (code) {
		fprintf(stderr, "the tenant ended with status %x, %d calls had ended\n", code,
			*progress);
		exit(1);
	}
}

int main(_unused_ int argc, char **argv)
{
	progress = shared_memory(sizeof(*progress));
	for (int i = 0; i < ROUNDS; i++)
		round_of(argv[1]);
	printf("ok 'removal: %d times with %d threads held and %d being answered: all went on'\n",
	       ROUNDS, HELD, ANSWERED);
	return 0;
}
