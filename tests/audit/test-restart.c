// SPDX-License-Identifier: Apache-2.0
/*
 * The engine's process is killed with threads held and under load, and a new one takes over: every held
 * call is decided afresh, none has run unaudited, the books are right and nobody is left held.
 *
 *	test-restart LIBRARY [TIMES]
 *
 * Every second one is killed at any instant of its first tenth of a second, others once they hold all.
 */
#include "harness.h"

#include <sys/wait.h>

#include "audit/priv.h"

#define HELD	 16
#define LOADS	 2
#define WAIT_NS	 (600000 * MILLISECOND)
#define RESTARTS 4
#define EARLY_US 100000

/* As WAIT_UNTIL(), where another process has the engine. */
#define IS_IN_TIME(condition)                                                                      \
	({                                                                                         \
		uint64_t until_ = clock_ns() + PATIENCE_NS;                                        \
		bool is_true_;                                                                     \
                                                                                                   \
		while (!(is_true_ = (condition)) && clock_ns() < until_)                           \
			usleep(1000);                                                              \
		is_true_;                                                                          \
	})

struct shared {
	char state_dir[64];
	volatile int ready;   /* generation of the engine that is open now */
	volatile int command; /* 1: raise the limit, 2: end */
	volatile int held;
	uint64_t current;
	volatile int answered;
	volatile int refused;
	volatile int stop;
	volatile unsigned long ran_over;
};

static struct shared *shared;

static int count_held(_unused_ const struct audit_slot *slot, void *userdata)
{
	(*(int *)userdata)++;
	return 0;
}

static uint64_t current_bytes(struct engine *engine, uint32_t tenant)
{
	struct ledger ledger = {};

	engine_book(engine, tenant, 0, &ledger);
	return ledger.current;
}

static void on_event(const struct audit_event *event, _unused_ const char *text,
		     _unused_ void *userdata)
{
	if (event->kind == AUDIT_EVENT_FAILED_KILL || event->kind == AUDIT_EVENT_RAN)
		fprintf(stderr, "event %u for thread %u of %u\n", event->kind, event->tid,
			event->tgid);
}

/* The life of one daemon. It is killed, not asked. */
static int daemon_main(int generation)
{
	struct engine_options options = { .state_dir = shared->state_dir,
					  .failure_wait_ns = PATIENCE_NS };
	struct engine_limits more = { .max_bytes = 4096 * MIB };
	struct engine *engine;
	uint32_t tenant;
	int held;
	int r;

	while ((r = engine_open(&options, &engine)) == -EBUSY)
		usleep(10000);
	if (r || engine_tenant_find(engine, "tenant", &tenant)) {
		fprintf(stderr, "generation %d does not open: %s\n", generation, strerror(-r));
		return 1;
	}
	engine_on_event(engine, on_event, NULL);
	shared->ready = generation;
	for (;;) {
		engine_dispatch(engine);
		if (shared->command == 1)
			engine_tenant_limit(engine, tenant, 0, &more);
		held = 0;
		engine_each_held(engine, count_held, &held);
		shared->held = held;
		shared->current = current_bytes(engine, tenant);
		usleep(2000);
	}
}

static pid_t daemon_start(int generation)
{
	pid_t pid = bench_fork();

	if (pid == 0)
		_exit(daemon_main(generation));
	bench_child = pid;
	CHECK(IS_IN_TIME(shared->ready == generation), "the new engine does not come up");
	return pid;
}

static void daemon_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	bench_child = 0;
}

static void *ask(void *arg)
{
	unsigned long address = 0;

	if (CUDA("cuMemAlloc_v2", &address, 100 * MIB)) {
		__atomic_add_fetch(&shared->refused, 1, __ATOMIC_SEQ_CST);
	} else {
		__atomic_add_fetch(&shared->answered, 1, __ATOMIC_SEQ_CST);
		if (shared->command == 0)
			__atomic_add_fetch(&shared->ran_over, 1, __ATOMIC_SEQ_CST);
	}
	return arg;
}

/* Sixteen threads wait for memory. */
static int tenant_held(_unused_ void *userdata)
{
	pthread_t threads[HELD];
	unsigned long address;

	if (CUDA("cuMemAlloc_v2", &address, 60 * MIB))
		return 1;
	for (int i = 0; i < HELD; i++)
		pthread_create(&threads[i], NULL, ask, NULL);
	for (int i = 0; i < HELD; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Allocates and frees all the time, within the limit. */
static int tenant_load(_unused_ void *userdata)
{
	while (!shared->stop) {
		unsigned long address = 0;

		if (CUDA("cuMemAlloc_v2", &address, 4 * MIB) == 0)
			CUDA("cuMemFree_v2", address);
	}
	return 0;
}

static bool wait_for_held(int n)
{
	return IS_IN_TIME(shared->held == n);
}

/* It outlives the daemon, and whoever reads what that says would wait for it. */
static void check_holder_says_nothing(struct bench *b)
{
	const struct audit_control *control = &b->engine->state->control;
	char path[64], file[64];

	CHECK(WAIT_UNTIL(b, control->holder));
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%u/fd/%d", control->holder, fd);
		n = readlink(path, file, sizeof(file) - 1);
		file[n > 0 ? n : 0] = '\0';
		CHECK(strcmp(file, "/dev/null") == 0, "%s is %s", path, file);
	}
	printf("ok 'restart: the holder keeps nothing open of what the daemon writes to'\n");
}

/* One life of a daemon: it comes up, and is killed while others work and wait. */
static void restart(int generation)
{
	pid_t daemon = daemon_start(generation);

	if (generation % 2)
		CHECK(wait_for_held(HELD), "generation %d: %d are held, %d came free, %d answered",
		      generation, shared->held, shared->answered, shared->refused);
	else
		usleep(random() % EARLY_US);
	CHECK(shared->answered == 0);
	daemon_kill(daemon);
	usleep(random() % (2 * EARLY_US));
	CHECK(shared->answered == 0 && shared->refused == 0 && shared->ran_over == 0,
	      "generation %d: %d came free, %d answered", generation, shared->answered,
	      shared->refused);
}

static void end_well(pid_t pid)
{
	int code;

	waitpid(pid, &code, 0);
	CHECK(WIFEXITED(code) && WEXITSTATUS(code) == 0, "a tenant was harmed: %x", code);
}

int main(int argc, char **argv)
{
	int restarts = argc > 2 ? atoi(argv[2]) : RESTARTS;
	pid_t daemon, held, loads[LOADS];
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 8192 * MIB);
	bench_limit(&b, 150 * MIB, WAIT_NS);
	fake_open(&b, argv[1]);
	check_holder_says_nothing(&b);
	shared = shared_memory(sizeof(*shared));
	snprintf(shared->state_dir, sizeof(shared->state_dir), "%s", b.state_dir);
	held = tenant_fork(&b, tenant_held, NULL);
	CHECK(engine_tenant_new(b.engine, "working", &b.tenant) == 0);
	for (int i = 0; i < LOADS; i++)
		loads[i] = tenant_fork(&b, tenant_load, NULL);
	bench_leave(&b);

	for (int i = 1; i <= restarts; i++)
		restart(i);
	daemon = daemon_start(restarts + 1);
	CHECK(wait_for_held(HELD));
	shared->command = 1;
	CHECK(IS_IN_TIME(shared->answered == HELD) && shared->ran_over == 0, "%d came free",
	      shared->answered);
	shared->stop = 1;
	end_well(held);
	for (int i = 0; i < LOADS; i++)
		end_well(loads[i]);
	CHECK(IS_IN_TIME(shared->current == 0), "%lu bytes are left", shared->current);
	CHECK(wait_for_held(0), "%d are still held", shared->held);
	daemon_kill(daemon);
	bench_return(&b);
	bench_close(&b);
	printf("ok 'restart: %d times killed with %d threads held and others working: all decided afresh'\n",
	       restarts, HELD);
	return 0;
}
