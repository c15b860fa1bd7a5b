// SPDX-License-Identifier: Apache-2.0
/*
 * Launches of a tenant with compute.max: probed before the first, in its processes alone, whatever
 * processes, threads, forks, tenants and restarts there are.
 *
 * Nobody measures the fake device, so each launch stays charged what an unknown one costs, and how many
 * may run within a time can be counted. Whether a process is probed shows in its own code.
 *
 * With an argument behind the library's path it does what differs between kernels.
 */
#include "harness.h"

#include <sys/wait.h>

#define SHARE	    0.3
#define RUN_MS	    700
#define PROCESSES   3
#define RESTARTS    3
#define THREADS	    4
#define USER	    61003
#define BREAKPOINT  0xcc
#define ENTRY_BYTES 8
#define FREE_RUN    100000
#define KEPT_MS	    1000 /* probes are there for longer than that after their need */

struct shared {
	volatile uint64_t begin_ns;
	volatile uint64_t end_ns;
	volatile unsigned long launches;
	volatile int unprobed; /* processes that could have launched before they were probed */
	volatile int probed;   /* what a process says that looks at itself all the time */
	volatile int go;
	volatile int stop;
};

static struct shared *shared;
static struct bench b;

static bool is_probed(void)
{
	const volatile unsigned char *entry = fake_fn("cuLaunchKernel");

	for (int i = 0; i < ENTRY_BYTES; i++)
		if (entry[i] == BREAKPOINT)
			return true;
	return false;
}

static void limit(uint32_t tenant, unsigned device, uint32_t permille)
{
	const struct engine_compute compute = { .max_permille = permille, .weight = 100 };

	CHECK(engine_tenant_compute(b.engine, tenant, device, &compute) == 0);
}

static void pump(unsigned milliseconds)
{
	uint64_t end = clock_ns() + milliseconds * MILLISECOND;

	do {
		bench_pump(&b, 10);
		engine_compute_tick(b.engine);
	} while (clock_ns() < end);
}

/* As WAIT_UNTIL(), with what a daemon does for shares. */
#define IS_IN_TIME(condition)                                                                      \
	({                                                                                         \
		uint64_t until_ = clock_ns() + PATIENCE_NS;                                        \
		bool is_true_;                                                                     \
                                                                                                   \
		while (!(is_true_ = (condition)) && clock_ns() < until_)                           \
			pump(1);                                                                   \
		is_true_;                                                                          \
	})

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		pump(1);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* --- what tenants do ----------------------------------------------------------------------------------- */

static void context_make(int device)
{
	unsigned long context;

	if (CUDA("cuCtxCreate_v2", &context, 0, device))
		_exit(10);
	if (!is_probed())
		__atomic_add_fetch(&shared->unprobed, 1, __ATOMIC_SEQ_CST);
}

/* Of threads that run side by side the last one to write need not be the last one to have looked at the clock. */
static void end_is_not_before(uint64_t now)
{
	uint64_t end = shared->end_ns;

	while (end < now && !__atomic_compare_exchange_n(&shared->end_ns, &end, now, false,
							 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		continue;
}

static void *launch_on(void *arg)
{
	uint64_t end = clock_ns() + RUN_MS * MILLISECOND;

	do {
		if (CUDA("cuLaunchKernel", 0x1000, 1, 1, 1, 32, 1))
			_exit(11);
		__atomic_add_fetch(&shared->launches, 1, __ATOMIC_SEQ_CST);
		end_is_not_before(clock_ns());
	} while (clock_ns() < end);
	return arg;
}

static int launch(_unused_ void *userdata)
{
	context_make(0);
	launch_on(NULL);
	return 0;
}

static int launch_in_threads(_unused_ void *userdata)
{
	pthread_t threads[THREADS];

	context_make(0);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, launch_on, NULL))
			return 12;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* The parent has no context of its own before, as CUDA wants it. */
static int launch_in_child(_unused_ void *userdata)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(launch(NULL));
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 13;
}

/* And here the parent has one, and launches on as well. */
static int launch_beside_child(_unused_ void *userdata)
{
	pid_t child;
	int status;

	context_make(0);
	child = fork();
	if (child == 0)
		_exit(launch(NULL));
	launch_on(NULL);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 13;
}

static int launch_as_user(_unused_ void *userdata)
{
	if (!become(USER))
		return 14;
	return launch(NULL);
}

/* --- the cases ----------------------------------------------------------------------------------------- */

static void begin(void)
{
	shared->launches = 0;
	shared->unprobed = 0;
	shared->go = shared->stop = 0;
	shared->begin_ns = shared->end_ns = clock_ns();
}

/* @n_threads: of several that find the share free at once, each may launch one */
static void check_bound(const char *name, unsigned n_threads)
{
	double seconds = (shared->end_ns - shared->begin_ns) / 1e9;
	double most = SHARE * (seconds + (SHARE_BURST_NS + SHARE_LEAD_NS) / 1e9) /
			      (SHARE_FIRST_NS / 1e9) +
		      n_threads;

	printf("%s: %lu launches in %.1f s\n", name, shared->launches, seconds);
	CHECK(shared->launches >= 1 && shared->launches <= most, "%s: at most %.1f", name, most);
	CHECK(!shared->unprobed, "%s: %d processes could have launched unseen", name,
	      shared->unprobed);
}

static void test_case(const char *name, int (*fn)(void *), unsigned n_processes, unsigned n_threads)
{
	pid_t pids[PROCESSES];

	begin();
	for (unsigned i = 0; i < n_processes; i++)
		pids[i] = tenant_fork(&b, fn, NULL);
	for (unsigned i = 0; i < n_processes; i++)
		CHECK(wait_for(pids[i]) == 0, "%s", name);
	check_bound(name, n_threads);
}

/* Two tenants without a limit of their own within one that has it: a user's. */
static void test_nested(void)
{
	const uint32_t tenant = b.tenant;
	uint32_t user, inner;
	pid_t pids[2];

	CHECK(engine_tenant_new(b.engine, "user", &user) == 0);
	CHECK(engine_tenant_new(b.engine, "inner", &inner) == 0);
	CHECK(engine_bind(b.engine, user, ENGINE_BIND_UID, USER) == 0);
	limit(user, 0, SHARE * 1000);
	limit(tenant, 0, 1000);
	begin();
	pids[0] = tenant_fork(&b, launch_as_user, NULL);
	b.tenant = inner;
	pids[1] = tenant_fork(&b, launch_as_user, NULL);
	b.tenant = tenant;
	CHECK(wait_for(pids[0]) == 0 && wait_for(pids[1]) == 0);
	check_bound("two tenants of one user", 2);
	CHECK(engine_tenant_remove(b.engine, user) == 0 &&
	      engine_tenant_remove(b.engine, inner) == 0);
	limit(tenant, 0, SHARE * 1000);
}

static int launch_freely(_unused_ void *userdata)
{
	unsigned long context;

	if (CUDA("cuCtxCreate_v2", &context, 0, 0))
		return 10;
	for (int i = 0; i < FREE_RUN; i++) {
		if (CUDA("cuLaunchKernel", 0x1000, 1, 1, 1, 32, 1))
			return 11;
		if (is_probed())
			return 15;
	}
	return 0;
}

static int look(_unused_ void *userdata)
{
	context_make(0);
	while (!shared->stop) {
		shared->probed = is_probed();
		sleep_ms(10);
	}
	return 0;
}

/* A tenant with memory limits alone, which shares the library with one that is held to a share. */
static void test_neighbour(void)
{
	const uint32_t tenant = b.tenant;
	uint32_t neighbour;
	pid_t limited, free;

	CHECK(engine_tenant_new(b.engine, "neighbour", &neighbour) == 0);
	begin();
	shared->probed = 0;
	limited = tenant_fork(&b, look, NULL);
	CHECK(IS_IN_TIME(shared->probed));
	b.tenant = neighbour;
	free = tenant_fork(&b, launch_freely, NULL);
	b.tenant = tenant;
	CHECK(wait_for(free) == 0, "a neighbour without a share is probed");
	CHECK(shared->probed);
	shared->stop = 1;
	CHECK(wait_for(limited) == 0);
	printf("a neighbour without a share: %d launches, no probe\n", FREE_RUN);
}

static int launch_on_second_device(_unused_ void *userdata)
{
	context_make(1);
	for (int i = 0; i < 1000; i++)
		if (CUDA("cuLaunchKernel", 0x1000, 1, 1, 1, 32, 1))
			return 11;
	return 0;
}

/* The share is of one device; on another the same process is not held. */
static void test_devices(void)
{
	const struct audit_device device = { .total = 1024 * MIB };
	struct share share;

	CHECK(engine_device_set(b.engine, 1, &device, /* reserve= */ 0) == 0);
	begin();
	CHECK(wait_for(tenant_fork(&b, launch_on_second_device, NULL)) == 0);
	CHECK(engine_compute_stat(b.engine, b.tenant, 1, &share) == 0);
	CHECK(share.n_throttled == 0 && !shared->unprobed);
	limit(b.tenant, 1, SHARE * 1000);
	limit(b.tenant, 0, 1000);
	CHECK(wait_for(tenant_fork(&b, launch, NULL)) == 0);
	CHECK(engine_compute_stat(b.engine, b.tenant, 1, &share) == 0);
	CHECK(share.n_throttled == 0);
	limit(b.tenant, 0, SHARE * 1000);
	limit(b.tenant, 1, 1000);
	printf("a share of one device holds nobody on another\n");
}

static void test_restart(void)
{
	pid_t pid;

	begin();
	pid = tenant_fork(&b, launch, NULL);
	CHECK(IS_IN_TIME(shared->launches));
	for (unsigned i = 0; i < RESTARTS; i++) {
		bench_leave(&b);
		sleep_ms(50);
		bench_return(&b);
		pump(50);
	}
	CHECK(wait_for(pid) == 0);
	check_bound("restarts meanwhile", 1);
}

static int launch_when_told(_unused_ void *userdata)
{
	while (!shared->go)
		sleep_ms(1);
	return launch(NULL);
}

/* A context made while there is no daemon waits for one. */
static void test_absence(void)
{
	pid_t pid;

	begin();
	pid = tenant_fork(&b, launch_when_told, NULL);
	bench_leave(&b);
	shared->go = 1;
	/* Whatever time passes: it waits longer. */
	sleep_ms(300);
	CHECK(shared->launches == 0);
	shared->begin_ns = clock_ns();
	bench_return(&b);
	CHECK(wait_for(pid) == 0);
	check_bound("a context made while there was no daemon", 1);
	CHECK(b.n_events[AUDIT_EVENT_UNPACED] == 0);
}

static int context_when_told(_unused_ void *userdata)
{
	while (!shared->go)
		sleep_ms(1);
	context_make(0);
	shared->end_ns = clock_ns();
	return 0;
}

/* But not for ever. */
static void test_long_absence(void)
{
	pid_t pid;
	int status;

	begin();
	pid = tenant_fork(&b, context_when_told, NULL);
	bench_failure_wait(&b, 1000 * MILLISECOND);
	bench_leave(&b);
	shared->begin_ns = clock_ns();
	shared->go = 1;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(shared->end_ns - shared->begin_ns >= b.engine_wait_ns);
	b.engine_wait_ns = PATIENCE_NS;
	bench_return(&b);
	CHECK(WAIT_UNTIL(&b, b.n_events[AUDIT_EVENT_UNPACED] == 1));
	CHECK(shared->unprobed == 1);
	printf("without a daemon a context waits for failure-wait, and that is told\n");
}

static void wait_probed(int wanted)
{
	CHECK(IS_IN_TIME(shared->probed == wanted));
}

/* A limit that was taken away holds until shares are divided the next time. */
static bool has_no_rate(unsigned device)
{
	struct share share;

	CHECK(engine_compute_stat(b.engine, b.tenant, device, &share) == 0);
	return share.stretch == 0;
}

/* A limit that is set, and taken away, while the process runs. */
static void test_keep(void)
{
	uint64_t lifted;
	pid_t pid;

	limit(b.tenant, 0, 1000);
	CHECK(IS_IN_TIME(has_no_rate(0) && has_no_rate(1)));
	begin();
	shared->probed = 0;
	pid = tenant_fork(&b, look, NULL);
	pump(300);
	CHECK(!shared->probed);
	limit(b.tenant, 0, SHARE * 1000);
	wait_probed(1);
	lifted = clock_ns();
	limit(b.tenant, 0, 1000);
	wait_probed(0);
	CHECK(clock_ns() - lifted > KEPT_MS * MILLISECOND);
	shared->stop = 1;
	CHECK(wait_for(pid) == 0);
	printf("probes come with a limit and stay for a while after it\n");
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	shared = shared_memory(sizeof(*shared));
	bench_open(&b, ENGINE_RUNG_AUTO, 1024 * MIB);
	fake_open(&b, argv[1]);
	limit(b.tenant, 0, SHARE * 1000);

	test_case("one process", launch, 1, 1);
	test_case("four threads", launch_in_threads, 1, THREADS);
	test_case("a child of a fork", launch_in_child, 1, 1);
	test_neighbour();
	if (argc == 2) {
		test_restart();
		test_case("three processes", launch, PROCESSES, PROCESSES);
		test_case("a process and its child", launch_beside_child, 1, 2);
		test_nested();
		test_absence();
		test_long_absence();
		test_devices();
		test_keep();
	}
	bench_close(&b);
	return 0;
}
