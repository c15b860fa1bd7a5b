// SPDX-License-Identifier: Apache-2.0
/*
 * Tenants that flood, each table to its cap: records of allocations, of processes, of threads that wait.
 * Another tenant's verdicts, holds and events are as if it were alone, and a tenant beside the flooder's
 * inside the same one still has its part.
 */
#include "harness.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "audit/priv.h"
#include "audit/room.h"

#define ALICE	     54321 /* a user that nobody is */
#define SPARE	     64
#define LEFT_OUT     4
#define CHILD_STACK  16384
#define THREAD_STACK 65536
#define REFUSALS     1000
#define FOR_ALL	     250 /* every so many signals one is for the process: all its threads are let go */

/* What the flooders tell. */
struct flood {
	volatile int n_done;
	volatile int n_killed;
	volatile int n_handled; /* signals that had an effect */
	volatile int stage;
};

static struct flood *flood;
static uint32_t quiet;
static uint64_t quiet_events[AUDIT_EVENT_KINDS], all_events[AUDIT_EVENT_KINDS];
static long (*allocate)(unsigned long *address, unsigned long bytes);
static long (*make_context)(unsigned long *context, unsigned long flags, unsigned long device);

static void on_event(const struct audit_event *event, _unused_ const char *text,
		     _unused_ void *userdata)
{
	all_events[event->kind]++;
	if (event->tenant == quiet)
		quiet_events[event->kind]++;
}

static void pump_until(struct bench *b, volatile int *what, int n)
{
	CHECK(WAIT_UNTIL(b, *what >= n), "%d of %d", *what, n);
}

static struct audit_tenant state_of(struct bench *b, uint32_t tenant)
{
	struct audit_tenant state;

	CHECK(engine_tenant(b->engine, tenant, &state) == 0);
	return state;
}

/* --- who floods -------------------------------------------------------------------------------------- */

static void stay(void)
{
	for (;;)
		syscall(SYS_pause);
}

static int flood_objects(_unused_ void *userdata)
{
	unsigned long address;

	for (int i = 0; i < AUDIT_TENANT_OBJECTS + SPARE; i++)
		if (allocate(&address, 1))
			return 1;
	flood->n_done = AUDIT_TENANT_OBJECTS + SPARE;
	stay();
	return 0;
}

/* Runs in the memory of its parent, and on its thread's data: nothing of libc here. */
static int ask_and_stay(_unused_ void *userdata)
{
	unsigned long address;

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	allocate(&address, 1);
	flood->n_done++;
	stay();
	return 0;
}

/* The same for a context, whose making waits until its process' launches are probed. */
static int make_context_and_stay(_unused_ void *userdata)
{
	unsigned long context;

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	make_context(&context, 0, 0);
	__atomic_add_fetch(&flood->n_done, 1, __ATOMIC_SEQ_CST);
	stay();
	return 0;
}

static int flood_launchers(_unused_ void *userdata)
{
	const int n = AUDIT_TENANT_WORKS + LEFT_OUT;
	char *stacks = mmap(NULL, n * CHILD_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	setpgid(0, 0);
	for (int i = 0; i < n; i++)
		if (clone(make_context_and_stay, stacks + (i + 1) * CHILD_STACK, CLONE_VM | SIGCHLD,
			  NULL) < 0)
			return 1;
	stay();
	return 0;
}

/* Processes that share their memory, so that thousands are cheap. One beyond the cap is killed at its call. */
static int flood_processes(_unused_ void *userdata)
{
	char *stacks =
		mmap(NULL, (AUDIT_TENANT_PROCESSES + 1) * CHILD_STACK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int status, n = 0;

	setpgid(0, 0);
	for (pid_t pid; n <= AUDIT_TENANT_PROCESSES && !flood->n_killed; n++) {
		pid = clone(ask_and_stay, stacks + (n + 1) * CHILD_STACK, CLONE_VM | SIGCHLD, NULL);
		if (pid < 0)
			return 1;
		while (flood->n_done == n && !flood->n_killed) {
			if (waitpid(pid, &status, WNOHANG) == pid)
				flood->n_killed =
					WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			sched_yield();
		}
	}
	flood->stage = 1;
	stay();
	return 0;
}

static void on_signal(_unused_ int signal)
{
	__atomic_add_fetch(&flood->n_handled, 1, __ATOMIC_SEQ_CST);
}

static void *ask_much(void *arg)
{
	unsigned long address;

	allocate(&address, 900 * MIB);
	return arg;
}

/* So many threads that are held, and a storm of signals for them, one and all. @userdata: how many */
static int flood_slots(void *userdata)
{
	static pthread_t threads[AUDIT_TENANT_SLOTS];
	int n = (int)(long)userdata;
	pthread_attr_t attr;
	unsigned long address;

	if (!become(ALICE))
		return 1;
	/* What could be answered at once, were it not for those 600 MiB. */
	if (allocate(&address, 600 * MIB))
		return 2;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < n; i++)
		if (pthread_create(&threads[i], &attr, ask_much, NULL))
			return 3;
	flood->n_done = 1;
	while (flood->stage == 0)
		usleep(1000);
	for (int i = 0; i < REFUSALS; i++) {
		pthread_kill(threads[i], SIGUSR1);
		if (i % FOR_ALL == 0)
			kill(getpid(), SIGUSR1);
		if (allocate(&address, 2000 * MIB) != OUT_OF_MEMORY)
			return 4;
	}
	flood->n_done = 2;
	stay();
	return 0;
}

/* One thread more that is to be held. */
static int ask_as_alice(_unused_ void *userdata)
{
	if (!become(ALICE))
		return 1;
	ask_much(NULL);
	return 0;
}

/* --- who does not ------------------------------------------------------------------------------------ */

static int behave(_unused_ void *userdata)
{
	unsigned long address[2];

	for (int i = 0; i < 20; i++) {
		if (CUDA("cuMemAlloc_v2", &address[0], 60 * MIB))
			return 1;
		if (CUDA("cuMemAlloc_v2", &address[1], 60 * MIB) != OUT_OF_MEMORY)
			return 2;
		if (CUDA("cuMemFree_v2", address[0]))
			return 3;
	}
	return 0;
}

static int behave_in_child(_unused_ void *userdata)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(behave(NULL));
	waitpid(pid, &status, 0);
	return status ? 100 : behave(NULL);
}

static bool is_window_over(struct bench *b)
{
	return clock_ns() / AUDIT_EVENT_WINDOW_NS > state_of(b, quiet).events_window;
}

/*
 * A new process of the quiet tenant, and a child of it: allowed, refused, and told of, as ever. That is a
 * third of what a tenant may be told of in a window, and the next begins in another.
 */
static void quiet_is_unchanged(struct bench *b)
{
	uint32_t loud = b->tenant;
	uint64_t refused = quiet_events[AUDIT_EVENT_REFUSED];
	struct ledger ledger;
	int code;

	CHECK(WAIT_UNTIL(b, is_window_over(b)));
	b->tenant = quiet;
	code = tenant_wait(b, tenant_fork(b, behave_in_child, NULL));
	CHECK(code == 0, "%d", code);
	CHECK(state_of(b, quiet).events_lost == 0);
	CHECK(WAIT_UNTIL(b, quiet_events[AUDIT_EVENT_REFUSED] == refused + 40), "%lu",
	      quiet_events[AUDIT_EVENT_REFUSED] - refused);
	CHECK(engine_book(b->engine, quiet, 0, &ledger) == 0);
	CHECK(ledger.current == 0 && ledger.peak == 60 * MIB);
	b->tenant = loud;
}

static uint32_t new_tenant(struct bench *b, const char *name, uint64_t max_bytes, uint64_t wait_ns)
{
	CHECK(engine_tenant_new(b->engine, name, &b->tenant) == 0);
	bench_limit(b, max_bytes, wait_ns);
	return b->tenant;
}

static bool has_nothing(struct bench *b)
{
	struct audit_tenant state = state_of(b, b->tenant);

	return !state.taken[AUDIT_TABLE_PROCESSES] && !state.taken[AUDIT_TABLE_SLOTS] &&
	       bench_current(b) == 0;
}

static void end_flood(struct bench *b, pid_t pid, bool group)
{
	struct audit_tenant state;

	kill(group ? -pid : pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(WAIT_UNTIL(b, has_nothing(b)));
	CHECK(engine_reap(b->engine) == 0);
	state = state_of(b, b->tenant);
	CHECK(state.taken[AUDIT_TABLE_SLOTS] == 0 && state.n_objects == 0 &&
		      state.taken[AUDIT_TABLE_PROCESSES] == 0,
	      "%u slots, %u records, %u processes", state.taken[AUDIT_TABLE_SLOTS], state.n_objects,
	      state.taken[AUDIT_TABLE_PROCESSES]);
	memset(flood, 0, sizeof(*flood));
}

/* --- the cases --------------------------------------------------------------------------------------- */

static void case_objects(struct bench *b)
{
	pid_t pid;

	new_tenant(b, "objects", 1000 * MIB, 0);
	pid = tenant_fork(b, flood_objects, NULL);
	pump_until(b, &flood->n_done, AUDIT_TENANT_OBJECTS + SPARE);
	CHECK(state_of(b, b->tenant).n_objects == AUDIT_TENANT_OBJECTS, "%u",
	      state_of(b, b->tenant).n_objects);
	CHECK(WAIT_UNTIL(b, all_events[AUDIT_EVENT_UNRECORDED] > 0));
	/* What has no record stays charged. */
	CHECK(bench_current(b) == AUDIT_TENANT_OBJECTS + SPARE);
	quiet_is_unchanged(b);
	end_flood(b, pid, /* group= */ false);
	CHECK(b->engine->state->control.n_chunks == 0, "%u", b->engine->state->control.n_chunks);
	printf("ok 'caps: %d records of allocations of one tenant'\n", AUDIT_TENANT_OBJECTS);
}

static void case_processes(struct bench *b)
{
	pid_t pid;

	new_tenant(b, "processes", 1000 * MIB, 0);
	pid = tenant_fork(b, flood_processes, NULL);
	pump_until(b, &flood->stage, 1);
	CHECK(flood->n_done == AUDIT_TENANT_PROCESSES && flood->n_killed == 1, "%d, %d killed",
	      flood->n_done, flood->n_killed);
	CHECK(state_of(b, b->tenant).taken[AUDIT_TABLE_PROCESSES] == AUDIT_TENANT_PROCESSES);
	quiet_is_unchanged(b);
	end_flood(b, pid, /* group= */ true);
	printf("ok 'caps: %d processes of one tenant, the next is refused a record'\n",
	       AUDIT_TENANT_PROCESSES);
}

static void wait_for_slots(struct bench *b, uint32_t tenant, uint32_t n)
{
	CHECK(WAIT_UNTIL(b, state_of(b, tenant).taken[AUDIT_TABLE_SLOTS] >= n));
	CHECK(state_of(b, tenant).taken[AUDIT_TABLE_SLOTS] == n, "%u of %u",
	      state_of(b, tenant).taken[AUDIT_TABLE_SLOTS], n);
}

/*
 * Two jobs of alice. The first takes half of what she may have, and is refused more; the second still
 * has room.
 */
static void case_slots(struct bench *b)
{
	const uint32_t half = AUDIT_TENANT_SLOTS / 2;
	uint32_t alice = new_tenant(b, "alice", LEDGER_NO_LIMIT, 0), first, second;
	pid_t flooder, other;

	CHECK(engine_bind(b->engine, alice, ENGINE_BIND_UID, ALICE) == 0);
	second = new_tenant(b, "second", 100 * MIB, 10 * PATIENCE_NS);
	first = new_tenant(b, "first", 1000 * MIB, 10 * PATIENCE_NS);
	flooder = tenant_fork(b, flood_slots, (void *)(long)half);
	pump_until(b, &flood->n_done, 1);
	wait_for_slots(b, first, half);
	/* Her own number comes a moment later, and until then she has room for one more. */
	wait_for_slots(b, alice, half);
	CHECK(tenant_wait(b, tenant_fork(b, ask_as_alice, NULL)) == 128 + SIGKILL);
	quiet_is_unchanged(b);
	printf("ok 'caps: %u threads of one job are held, and no more'\n", half);

	b->tenant = second;
	bench_limit(b, 1000 * MIB, 10 * PATIENCE_NS);
	other = tenant_fork(b, ask_as_alice, NULL);
	CHECK(tenant_wait(b, other) == 0, "it fits");
	bench_limit(b, 100 * MIB, 0);
	CHECK(tenant_wait(b, tenant_fork(b, ask_as_alice, NULL)) == 0,
	      "it is answered, and nobody is killed");
	printf("ok 'caps: another job of the same user is held and answered as ever'\n");

	/* The cap is reached, so there is no slot for its refusals until some of the threads end. */
	b->tenant = first;
	end_flood(b, flooder, /* group= */ false);
	flooder = tenant_fork(b, flood_slots, (void *)(long)(half - SPARE));
	pump_until(b, &flood->n_done, 1);
	wait_for_slots(b, first, half - SPARE);
	flood->stage = 1;
	for (int i = 0; i < 5; i++)
		quiet_is_unchanged(b);
	pump_until(b, &flood->n_done, 2);
	/* Each was for a thread that was held, and had taken none before. */
	pump_until(b, &flood->n_handled, REFUSALS);
	CHECK(b->engine->state->control.wakes_lost == 0, "%lu",
	      (unsigned long)b->engine->state->control.wakes_lost);
	end_flood(b, flooder, /* group= */ false);
	printf("ok 'caps: a storm of %d signals and refusals with %u threads held loses no wake'\n",
	       REFUSALS, half - SPARE);
}

static int one_context(_unused_ void *userdata)
{
	unsigned long context;

	return make_context(&context, 0, 0);
}

static bool are_contexts_made(struct bench *b, int n)
{
	engine_compute_tick(b->engine);
	return flood->n_done >= n;
}

static void wait_for_contexts(struct bench *b, int n)
{
	CHECK(WAIT_UNTIL(b, are_contexts_made(b, n)));
	CHECK(flood->n_done == n, "%d of %d", flood->n_done, n);
}

/* Those beyond the cap are let be, and that is told. */
static void case_launchers(struct bench *b)
{
	const struct engine_compute half = { .max_permille = 500, .weight = 100 };
	uint64_t let_be = all_events[AUDIT_EVENT_UNPACED];
	uint32_t loud = new_tenant(b, "launchers", LEDGER_NO_LIMIT, 0);
	pid_t pid;

	CHECK(engine_tenant_compute(b->engine, loud, 0, &half) == 0);
	CHECK(engine_tenant_compute(b->engine, quiet, 0, &half) == 0);
	pid = tenant_fork(b, flood_launchers, NULL);
	wait_for_contexts(b, AUDIT_TENANT_WORKS + LEFT_OUT);
	CHECK(WAIT_UNTIL(b, all_events[AUDIT_EVENT_UNPACED] == let_be + LEFT_OUT), "%lu",
	      all_events[AUDIT_EVENT_UNPACED] - let_be);
	b->tenant = quiet;
	CHECK(tenant_wait(b, tenant_fork(b, one_context, NULL)) == 0);
	CHECK(quiet_events[AUDIT_EVENT_UNPACED] == 0);
	b->tenant = loud;
	end_flood(b, pid, /* group= */ true);
	printf("ok 'caps: launches of %d processes of one tenant are probed, and another is not left out'\n",
	       AUDIT_TENANT_WORKS);
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 8192 * MIB);
	fake_open(&b, argv[1]);
	allocate = fake_fn("cuMemAlloc_v2");
	make_context = fake_fn("cuCtxCreate_v2");
	engine_on_event(b.engine, on_event, NULL);
	flood = shared_memory(sizeof(*flood));
	quiet = new_tenant(&b, "quiet", 100 * MIB, 0);
	case_objects(&b);
	case_processes(&b);
	case_slots(&b);
	case_launchers(&b);
	bench_close(&b);
	return 0;
}
