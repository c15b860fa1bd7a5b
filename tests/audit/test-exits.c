// SPDX-License-Identifier: Apache-2.0
/*
 * However a tenant ends, its charge is gone soon (how soon is printed; on a quiet machine it is within 100 ms):
 * killed at random instants in the middle of calls, held or not; threads that end while the process lives; exec.
 */
#include "harness.h"

#include <sys/wait.h>

#include "audit/priv.h"

#define KILLS 60

static void *allocate_forever(void *arg)
{
	for (;;) {
		unsigned long address = 0;

		if (CUDA("cuMemAlloc_v2", &address, MIB) == 0 && address % 3 == 0)
			CUDA("cuMemFree_v2", address);
	}
	return arg;
}

static int tenant(_unused_ void *userdata)
{
	pthread_t thread;

	pthread_create(&thread, NULL, allocate_forever, NULL);
	allocate_forever(NULL);
	return 0;
}

static uint64_t whole_device(struct bench *b)
{
	struct ledger ledger;

	CHECK(engine_book(b->engine, 0, 0, &ledger) == 0);
	return ledger.current;
}

/*
 * Time until the books are empty after a death. The device has it back, as a daemon hears and tells; and where
 * somebody was at the books just then, the engine sees to it.
 */
static uint64_t empty_after(struct bench *b)
{
	uint64_t begin = clock_ns();

	while ((bench_current(b) || whole_device(b)) && clock_ns() - begin < PATIENCE_NS) {
		usleep(100);
		bench_pump(b, 0);
		bench_unowned(b, 0, 0);
	}
	return clock_ns() - begin;
}

/* The records of what the dead had are dropped, too, or they would fill up their tenant's room for them. */
static bool records_go(struct bench *b)
{
	struct audit_tenant tenant = {};

	return WAIT_UNTIL(b, engine_tenant(b->engine, b->tenant, &tenant) == 0 &&
				     tenant.n_objects == 0);
}

static void case_kills(struct bench *b, uint64_t wait_ns, const char *how)
{
	unsigned n_charged = 0, n_at_once = 0;
	uint64_t worst = 0;

	bench_limit(b, 64 * MIB, wait_ns);
	srandom(1);
	for (int i = 0; i < KILLS; i++) {
		pid_t pid = tenant_fork(b, tenant, NULL);
		bool charged;
		uint64_t took;

		usleep(random() % 20000);
		charged = bench_current(b) > 0;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		n_charged += charged;
		n_at_once += charged && bench_current(b) == 0;
		took = empty_after(b);
		CHECK(took < PATIENCE_NS, "%lu us after the death %llu bytes are left", took / 1000,
		      (unsigned long long)bench_current(b));
		worst = took > worst ? took : worst;
	}
	/* The kernel's program does it, and the engine only what that could not. */
	CHECK(2 * n_at_once >= n_charged, "%u of %u", n_at_once, n_charged);
	CHECK(records_go(b), "records of the dead are left");
	printf("ok 'exits: %d tenants killed at random instants, %s: books empty within %lu us'\n",
	       KILLS, how, worst / 1000);
}

static int run_exec(void *userdata)
{
	volatile int *go = userdata;
	unsigned long address;

	if (CUDA("cuMemAlloc_v2", &address, 32 * MIB))
		return 1;
	while (!*go)
		usleep(1000);
	execl("/bin/sleep", "sleep", "3600", NULL);
	return 2;
}

static void case_exec(struct bench *b)
{
	volatile int *go = shared_memory(sizeof(int));
	pid_t pid = tenant_fork(b, run_exec, (void *)go);

	CHECK(WAIT_UNTIL(b, bench_current(b) == 32 * MIB));
	*go = 1;
	CHECK(empty_after(b) < PATIENCE_NS, "the process lives on with other code and has nothing");
	CHECK(waitpid(pid, NULL, WNOHANG) == 0, "it has ended");
	kill(pid, SIGKILL);
	tenant_wait(b, pid);
	printf("ok 'exits: exec clears what the process had'\n");
}

static int allocate_and_stay(void *userdata)
{
	volatile int *done = userdata;
	unsigned long address;

	if (CUDA("cuMemAlloc_v2", &address, 32 * MIB))
		return 1;
	*done = 1;
	return pause();
}

/* Somebody is just changing its charge, and is kept from going on, when the process ends. */
static void case_busy(struct bench *b)
{
	volatile int *done = shared_memory(sizeof(int));
	pid_t pid = tenant_fork(b, allocate_and_stay, (void *)done);
	struct audit_process *process;
	uint32_t number;

	CHECK(WAIT_UNTIL(b, *done));
	process = process_find(b->engine, pid);
	CHECK(process);
	number = process - b->engine->state->processes;
	__sync_fetch_and_add(&process->charging, 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	bench_pump(b, 20);
	CHECK(bench_current(b) == 32 * MIB);
	__sync_fetch_and_sub(&process_at(b->engine, number)->charging, 1);
	CHECK(WAIT_UNTIL(b, bench_current(b) == 0));
	printf("ok 'exits: a process that ends while its charge is being changed'\n");
}

/* Nobody has asked for its exit code yet, and it is taken for one that lives. */
static void case_adopt_dead(struct bench *b)
{
	struct audit_tenant tenant;
	siginfo_t info;
	pid_t pid = tenant_fork(b, allocate_and_stay, shared_memory(sizeof(int)));

	kill(pid, SIGKILL);
	CHECK(waitid(P_PID, pid, &info, WEXITED | WNOWAIT) == 0);
	CHECK(engine_bind(b->engine, b->tenant, ENGINE_BIND_TREE, pid) == 0);
	CHECK(engine_adopt(b->engine, pid) == 0);
	CHECK(engine_tenant(b->engine, b->tenant, &tenant) == 0);
	CHECK(tenant.taken[AUDIT_TABLE_PROCESSES] == 0, "%u", tenant.taken[AUDIT_TABLE_PROCESSES]);
	CHECK(engine_unbind(b->engine, ENGINE_BIND_TREE, pid) == 0);
	waitpid(pid, NULL, 0);
	printf("ok 'exits: a process that is adopted after its end is charged nothing'\n");
}

static int export_and_stay(void *userdata)
{
	volatile int *done = userdata;
	unsigned long address, handle[8];

	if (CUDA("cuMemAlloc_v2", &address, 32 * MIB) || CUDA("cuIpcGetMemHandle", handle, address))
		return 1;
	*done = 1;
	return pause();
}

static int inherited(const struct audit_process *p, void *userdata)
{
	uint64_t *ret = userdata;

	*ret += p->inherited[0];
	return 0;
}

/* The books are settled once: who keeps has so much of the device, and it may list who made. */
static void settle_round(struct bench *b, pid_t keeper, uint64_t keeps, pid_t listed)
{
	uint64_t since = engine_settling(b->engine), moved;

	engine_asks_devices(b->engine);
	moved = process_find(b->engine, keeper)->moved;
	if (listed)
		CHECK(engine_lists(b->engine, listed) && !engine_lists(b->engine, getpid()));
	CHECK(engine_settle(b->engine, keeper, 0, keeps, moved) == 0);
	engine_settled(b->engine, since);
}

/*
 * One that has handed out memory is charged until the devices were asked who has it now. Who has 40 MiB that
 * no call explains has 32 of them from it, and got the others elsewhere.
 */
static void case_exports(struct bench *b)
{
	volatile int *made = shared_memory(sizeof(int)), *kept = shared_memory(sizeof(int));
	uint64_t bytes = 0, most = 0;
	pid_t keeper, maker;

	CHECK(empty_after(b) < PATIENCE_NS);
	keeper = tenant_fork(b, allocate_and_stay, (void *)kept);
	maker = tenant_fork(b, export_and_stay, (void *)made);
	CHECK(WAIT_UNTIL(b, *made && *kept));
	CHECK(!engine_is_lingering(b->engine) && bench_current(b) == 64 * MIB);
	engine_asks_devices(b->engine);
	kill(maker, SIGKILL);
	waitpid(maker, NULL, 0);
	CHECK(WAIT_UNTIL(b, engine_is_lingering(b->engine)));
	/* It has ended since the devices were asked. */
	engine_settled(b->engine, engine_settling(b->engine));
	CHECK(engine_reap(b->engine) == 0);
	CHECK(bench_current(b) == 64 * MIB && whole_device(b) == 64 * MIB);
	/* A driver may list it a while longer. */
	usleep(100000);
	settle_round(b, keeper, 32 * MIB, maker);
	CHECK(bench_current(b) == 64 * MIB);
	/* Who keeps it is charged, and only then is it off the maker's tenants. */
	while (engine_is_lingering(b->engine)) {
		CHECK(bench_current(b) >= 64 * MIB);
		settle_round(b, keeper, 72 * MIB, 0);
		most = MAX(most, bench_current(b));
	}
	CHECK(bench_current(b) == 72 * MIB && most <= 104 * MIB, "%llu",
	      (unsigned long long)bench_current(b));
	engine_each_process(b->engine, inherited, &bytes);
	CHECK(bytes == 32 * MIB, "%lu", bytes);
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	CHECK(empty_after(b) < PATIENCE_NS);
	printf("ok 'exits: what others may have is charged until it is known who has it'\n");
}

static void *allocate_once(void *arg)
{
	unsigned long address;

	CUDA("cuMemAlloc_v2", &address, MIB);
	return arg;
}

static int threads_end(_unused_ void *userdata)
{
	pthread_t thread;
	unsigned long address;

	for (int i = 0; i < 8; i++) {
		pthread_create(&thread, NULL, allocate_once, NULL);
		pthread_join(thread, NULL);
	}
	/* What the threads allocated is the process'. */
	return CUDA("cuMemAlloc_v2", &address, 57 * MIB) == OUT_OF_MEMORY &&
			       CUDA("cuMemAlloc_v2", &address, 56 * MIB) == 0
		       ? 0
		       : 1;
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	fake_open(&b, argv[1]);
	case_kills(&b, 0, "while refused");
	case_kills(&b, 60000 * MILLISECOND, "while held");
	case_exec(&b);
	case_busy(&b);
	case_adopt_dead(&b);
	bench_limit(&b, 1024 * MIB, 0);
	case_exports(&b);
	bench_limit(&b, 64 * MIB, 0);
	CHECK(tenant_wait(&b, tenant_fork(&b, threads_end, NULL)) == 0);
	CHECK(empty_after(&b) < PATIENCE_NS);
	printf("ok 'exits: a thread's end takes nothing off its process'\n");
	bench_close(&b);
	return 0;
}
