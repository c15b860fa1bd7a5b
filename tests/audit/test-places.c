// SPDX-License-Identifier: Apache-2.0
/*
 * Trap 13: a process that never asks for a UUID means its devices by numbers, and only the devices know
 * which they are. What is charged where, in each order, while it is found out and when it is not; and a
 * process that says of itself what is not true.
 */
#include "harness.h"

#include <bpf/bpf.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#define LIMIT	 (1000 * MIB)
#define CONTEXT	 (50 * MIB)
#define NONE	 AUDIT_NO_DEVICE
#define NEVER_NS (3000 * MILLISECOND)
#define TIMES	 5
#define CROWD	 12

static struct bench b;

static uint64_t current_on(unsigned device)
{
	struct ledger ledger;

	CHECK(engine_book(b.engine, b.tenant, device, &ledger) == 0);
	return ledger.current;
}

#define EXPECT(first, second)                                                                      \
	CHECK(current_on(0) == (first) && current_on(1) == (second),                               \
	      "%lu and %lu bytes are charged", current_on(0), current_on(1))

static long context_on(unsigned long ordinal)
{
	unsigned long context, address;
	long code = CUDA("cuCtxCreate_v2", &context, 0, ordinal);

	return code ? code : CUDA("cuMemAlloc_v2", &address, 10 * MIB);
}

static void expect_both(void)
{
	EXPECT(CONTEXT, CONTEXT);
	fakes->inside = NULL;
}

static int on_the_other(void)
{
	fakes->inside = expect_both;
	CHECK(context_on(0) == 0 && !fakes->inside);
	EXPECT(0, CONTEXT + 10 * MIB);
	CHECK(context_on(1) == 0);
	EXPECT(CONTEXT + 10 * MIB, CONTEXT + 10 * MIB);
	return 0;
}

static int in_order(void)
{
	CHECK(context_on(0) == 0);
	EXPECT(CONTEXT + 10 * MIB, 0);
	return 0;
}

static void *use(void *arg)
{
	unsigned long context, address, ordinal = (unsigned long)arg;

	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, ordinal) == 0);
	CHECK(CUDA("cuCtxSetCurrent", context) == 0);
	CHECK(CUDA("cuMemAlloc_v2", &address, (ordinal + 1) * 10 * MIB) == 0);
	return arg;
}

static int two_at_once(void)
{
	pthread_t threads[2];

	for (unsigned long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, use, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT(CONTEXT + 20 * MIB, CONTEXT + 10 * MIB);
	return 0;
}

static int driver_refuses(void)
{
	fakes->code = 1;
	CHECK(context_on(0) == 1);
	EXPECT(0, 0);
	fakes->code = 0;
	return on_the_other();
}

static int refused(void)
{
	CHECK(context_on(0) == OUT_OF_MEMORY);
	CHECK(fakes->executions[ROW_OF_cuCtxCreate_v2] == 0);
	EXPECT(0, 0);
	return 0;
}

static int on_the_one_it_may(void)
{
	CHECK(context_on(0) == 0);
	EXPECT(0, CONTEXT + 10 * MIB);
	return 0;
}

/* Two of these contexts do not fit: the second process is refused before it has one. */
static int second_does_not_fit(void)
{
	int status;
	pid_t pid;

	CHECK(context_on(0) == 0);
	pid = fork();
	if (pid == 0)
		_exit(context_on(0));
	CHECK(waitpid(pid, &status, 0) == pid && status == OUT_OF_MEMORY << 8);
	EXPECT(0, CONTEXT + 10 * MIB);
	return 0;
}

static int nobody_tells(void)
{
	CHECK(context_on(0) == 0);
	EXPECT(CONTEXT + 10 * MIB, CONTEXT);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
	uint8_t order[2];
	uint8_t hint;
	uint64_t max[2];
	int code;
	unsigned late_ms;
} cases[] = {
	{ "in the driver's order", in_order, { 0, 1 }, NONE, { LIMIT, LIMIT }, 0, 0 },
	{ "in the other order, reserved on both meanwhile",
	  on_the_other,
	  { 1, 0 },
	  NONE,
	  { LIMIT, LIMIT },
	  0,
	  0 },
	{ "two numbers at once", two_at_once, { 1, 0 }, NONE, { LIMIT, LIMIT }, 0, 0 },
	{ "a context that the driver refuses",
	  driver_refuses,
	  { 1, 0 },
	  NONE,
	  { LIMIT, LIMIT },
	  0,
	  0 },
	{ "it may use one device, and says that it does",
	  on_the_one_it_may,
	  { 1, 0 },
	  1,
	  { 0, LIMIT },
	  0,
	  0 },
	{ "it may use one device, and is heard late",
	  on_the_one_it_may,
	  { 1, 0 },
	  1,
	  { 0, LIMIT },
	  0,
	  1500 },
	{ "it may use one device, and is never heard",
	  refused,
	  { 1, 0 },
	  1,
	  { 0, LIMIT },
	  0,
	  HINT_NEVER },
	{ "it may use one device, and says another", refused, { 1, 0 }, 0, { 0, LIMIT }, 0, 0 },
	{ "it may use one device, and says nothing", refused, { 1, 0 }, NONE, { 0, LIMIT }, 0, 0 },
	{ "what it says is not true",
	  on_the_one_it_may,
	  { 0, 1 },
	  1,
	  { 0, LIMIT },
	  128 + SIGKILL,
	  0 },
	{ "a second context does not fit",
	  second_does_not_fit,
	  { 1, 0 },
	  NONE,
	  { 80 * MIB, 80 * MIB },
	  0,
	  0 },
	{ "the devices do not tell", nobody_tells, { NONE, NONE }, NONE, { LIMIT, LIMIT }, 0, 0 },
};

static int run_case(void *userdata)
{
	return cases[*(size_t *)userdata].run();
}

static void set_up(size_t i)
{
	memcpy(b.order, cases[i].order, sizeof(cases[i].order));
	b.hints[0] = cases[i].hint;
	b.hint_late_ms = cases[i].late_ms;
	/* Who is never heard waits as long; everybody else is not to wait in vain. */
	bench_failure_wait(&b, cases[i].late_ms == HINT_NEVER ? NEVER_NS : PATIENCE_NS);
	for (unsigned device = 0; device < 2; device++) {
		struct audit_device d = { .total = 4096 * MIB, .context_bytes = CONTEXT };
		struct engine_limits limits = { .max_bytes = cases[i].max[device] };

		CHECK(engine_device_set(b.engine, device, &d, 0) == 0);
		CHECK(engine_tenant_limit(b.engine, b.tenant, device, &limits) == 0);
	}
}

/*
 * A context waits a second for the devices to tell where it is. Where that was not enough for us to run, which
 * the engine tells, the case has been another one.
 */
static int run_in_time(size_t i)
{
	bool tells = cases[i].order[0] != NONE;

	for (int times = 0; times < TIMES; times++) {
		uint64_t unknown = b.n_events[AUDIT_EVENT_DEVICE_UNKNOWN];
		int code;

		set_up(i);
		code = tenant_wait(&b, tenant_fork(&b, run_case, &i));
		bench_pump(&b, 1);
		if (tells == (b.n_events[AUDIT_EVENT_DEVICE_UNKNOWN] == unknown))
			return code;
	}
	CHECK(false, "trap 13 %s: never in time", cases[i].name);
	return -1;
}

/* Threads that wait inside the program. */
static uint32_t n_waiting(void)
{
	char path[PATH_MAX];
	uint32_t zero = 0, n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/maps/n_waiting", b.state_dir);
	fd = bpf_obj_get(path);
	CHECK(fd >= 0 && bpf_map_lookup_elem(fd, &zero, &n) == 0);
	close(fd);
	return n;
}

static int one_of_many(_unused_ void *userdata)
{
	return context_on(0);
}

/*
 * More than may wait at once, where there are few CPUs: they do not wait for what the devices tell, all get what
 * they ask for, and nobody is taken for waiting afterwards.
 */
static void crowd(void)
{
	uint64_t unknown = b.n_events[AUDIT_EVENT_DEVICE_UNKNOWN];
	pid_t pids[CROWD];

	b.order[0] = b.order[1] = NONE;
	for (int i = 0; i < CROWD; i++)
		pids[i] = tenant_fork(&b, one_of_many, NULL);
	for (int i = 0; i < CROWD; i++)
		CHECK(tenant_wait(&b, pids[i]) == 0);
	CHECK(WAIT_UNTIL(&b, b.n_events[AUDIT_EVENT_DEVICE_UNKNOWN] == unknown + CROWD));
	CHECK(n_waiting() == 0);
	printf("ok 'trap 13 a crowd starts together'\n");
}

/* Until it is killed. */
static int again_and_again(_unused_ void *userdata)
{
	for (;;)
		context_on(0);
	return 0;
}

static void killed_while_it_waits(void)
{
	pid_t pid = tenant_fork(&b, again_and_again, NULL);

	CHECK(WAIT_UNTIL(&b, n_waiting() == 1));
	CHECK(kill(pid, SIGKILL) == 0 && tenant_wait(&b, pid) == 128 + SIGKILL);
	CHECK(WAIT_UNTIL(&b, n_waiting() == 0));
	printf("ok 'trap 13 who is killed waits no longer'\n");
}

int main(_unused_ int argc, char **argv)
{
	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	fake_open(&b, argv[1]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int code = run_in_time(i);

		CHECK(code == cases[i].code, "trap 13 %s: %d", cases[i].name, code);
		CHECK(current_on(0) == 0 && current_on(1) == 0, "trap 13 %s", cases[i].name);
		printf("ok 'trap 13 %s'\n", cases[i].name);
	}
	CHECK(WAIT_UNTIL(&b, b.n_events[AUDIT_EVENT_ELSEWHERE] == 1));
	set_up(0);
	crowd();
	killed_while_it_waits();
	bench_close(&b);
	return 0;
}
