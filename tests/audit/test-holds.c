// SPDX-License-Identifier: Apache-2.0
/*
 * Held calls: signals take effect at once, calls come free in the order in which they came, time runs out,
 * and waiting costs no CPU.
 */
#include "harness.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "audit/priv.h"

#define WAIT_NS (10 * PATIENCE_NS) /* longer than anything here is waited for */
#define SIGNALS 60
#define ROUNDS	300
#define PIECES	500

/* What a tenant tells the test. */
struct told {
	volatile unsigned long asked;	/* bytes it asks for now */
	volatile unsigned long handled; /* signals that its handler took */
	volatile long code;
	volatile int done;
};

static struct told *told;
static struct told *self; /* in a tenant */

static void on_signal(_unused_ int signal)
{
	self->handled++;
}

/* Ask for told->asked bytes, and tell what came of it. */
static int ask(void *userdata)
{
	struct told *me = userdata;
	unsigned long address = 0;

	self = me;
	signal(SIGUSR1, on_signal);
	me->code = CUDA("cuMemAlloc_v2", &address, me->asked);
	me->done = 1;
	/* Keep it, until told to end. */
	while (me->done == 1)
		usleep(1000);
	return me->code;
}

static int count_held(_unused_ const struct audit_slot *slot, void *userdata)
{
	(*(int *)userdata)++;
	return 0;
}

static int n_held(struct bench *b)
{
	int n = 0;

	engine_each_held(b->engine, count_held, &n);
	return n;
}

static bool wait_until_held(struct bench *b, int n)
{
	return WAIT_UNTIL(b, n_held(b) == n);
}

static bool wait_until(struct bench *b, volatile int *what)
{
	return WAIT_UNTIL(b, *what);
}

static pid_t start(struct bench *b, struct told *who, unsigned long bytes)
{
	memset(who, 0, sizeof(*who));
	who->asked = bytes;
	return tenant_fork(b, ask, who);
}

static int finish(struct bench *b, struct told *who, pid_t pid)
{
	who->done = 2;
	return tenant_wait(b, pid);
}

static char state_of(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d %*s %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

static unsigned long cpu_ticks(pid_t pid)
{
	unsigned long user = 0, kernel = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	CHECK(f && fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			  &kernel) == 2);
	fclose(f);
	return user + kernel;
}

static void case_order(struct bench *b)
{
	pid_t first = start(b, &told[0], 600 * MIB), large, small;
	unsigned long before;

	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	large = start(b, &told[1], 800 * MIB);
	CHECK(wait_until_held(b, 1));
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_INSUFFICIENT] == 1));
	/* What it took to get there is not waiting. */
	CHECK(WAIT_UNTIL(b, state_of(large) == 't'), "state %c", state_of(large));
	before = cpu_ticks(large);
	bench_pump(b, 200);
	CHECK(cpu_ticks(large) <= before + 1, "waiting costs CPU: %lu ticks",
	      cpu_ticks(large) - before);
	small = start(b, &told[2], 300 * MIB);
	CHECK(wait_until_held(b, 2), "a small ask went before a large one that waits");
	/* A signal lets it go, and it comes back before its turn. */
	kill(small, SIGUSR1);
	CHECK(WAIT_UNTIL(b, told[2].handled));
	CHECK(wait_until_held(b, 2), "it went before, as a signal came for it");
	CHECK(finish(b, &told[0], first) == 0);
	/* Both do not fit at once, so who is let in first is seen whoever runs first then. */
	CHECK(wait_until(b, &told[1].done) && told[1].code == 0 && !told[2].done);
	CHECK(finish(b, &told[1], large) == 0);
	CHECK(wait_until(b, &told[2].done) && told[2].code == 0);
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_ADMITTED] == 2));
	CHECK(finish(b, &told[2], small) == 0);
	CHECK(bench_current(b) == 0);
	printf("ok 'holds: first come, first served; a small ask does not starve a large one'\n");
}

/* Return: the signal that a process ends by, 0 for one that exits or does not end. */
static int ended_by(struct bench *b, pid_t pid)
{
	int status = 0;

	return WAIT_UNTIL(b, waitpid(pid, &status, WNOHANG) == pid) && WIFSIGNALED(status)
		       ? WTERMSIG(status)
		       : 0;
}

/* One process has 600 MiB, another wants 500 and is held. */
static pid_t hold_one(struct bench *b, pid_t *ret_owner)
{
	pid_t held;

	*ret_owner = start(b, &told[1], 600 * MIB);
	CHECK(wait_until(b, &told[1].done) && told[1].code == 0);
	held = start(b, &told[0], 500 * MIB);
	CHECK(wait_until_held(b, 1));
	return held;
}

/* Gives back piece by piece when told to, which wakes the holder each time. */
static int give_back(void *userdata)
{
	struct told *me = userdata;
	unsigned long address, pieces[PIECES];

	me->code = CUDA("cuMemAlloc_v2", &address, me->asked);
	for (int i = 0; i < PIECES && !me->code; i++)
		me->code = CUDA("cuMemAlloc_v2", &pieces[i], 1024);
	me->done = 1;
	while (me->done == 1)
		usleep(1000);
	for (int i = 0; i < PIECES; i++)
		CUDA("cuMemFree_v2", pieces[i]);
	while (me->done == 2)
		usleep(1000);
	return me->code;
}

/* Whoever looks at any instant, as a call that begins does, sees that another waits. */
static void case_count(struct bench *b)
{
	const volatile __u64 *n_queued = &book(b->engine, b->tenant, 0)->n_queued;
	const volatile __u64 *round = &b->engine->state->control.heartbeat_ns;
	unsigned long rounds = 0, zeros = 0, most = 0;
	pid_t owner, held;
	uint64_t last = 0;

	memset(&told[1], 0, sizeof(told[1]));
	told[1].asked = 600 * MIB;
	owner = tenant_fork(b, give_back, &told[1]);
	CHECK(wait_until(b, &told[1].done) && told[1].code == 0);
	held = start(b, &told[0], 500 * MIB);
	CHECK(wait_until_held(b, 1));
	n_queued = &book(b->engine, b->tenant, 0)->n_queued;
	CHECK(WAIT_UNTIL(b, *n_queued == 1));
	n_queued = &book(b->engine, b->tenant, 0)->n_queued;
	told[1].done = 2;
	while (rounds < ROUNDS) {
		uint64_t n = *n_queued, now = *round;

		zeros += n == 0;
		most = MAX(most, n);
		rounds += now != last;
		last = now;
	}
	CHECK(zeros == 0 && most == 1, "%lu times 0, %lu at most", zeros, most);
	told[1].done = 3;
	CHECK(tenant_wait(b, owner) == 0);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[0], held) == 0);
	printf("ok 'holds: who waits is counted at each instant of %d rounds of the holder'\n",
	       ROUNDS);
}

/* Two wait: one that is frozen, and then, as the memory that they wait for is freed, another of @size, which gets it. */
static pid_t pass_frozen(struct bench *b, uint64_t size, pid_t *ret_other)
{
	pid_t owner, frozen = hold_one(b, &owner);

	cgroup_set("cgroup.procs", frozen);
	cgroup_set("cgroup.freeze", 1);
	*ret_other = start(b, &told[2], size);
	CHECK(wait_until_held(b, 2));
	CHECK(finish(b, &told[1], owner) == 0);
	CHECK(wait_until(b, &told[2].done) && told[2].code == 0, "it waits for one that is frozen");
	CHECK(!told[0].done);
	cgroup_set("cgroup.freeze", 0);
	return frozen;
}

/* Who is frozen is let go, and does not run: others do not wait for that, and it has what it asks for after all. */
static void case_frozen(struct bench *b)
{
	pid_t frozen, other;

	cgroup_make();
	frozen = pass_frozen(b, 300 * MIB, &other);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[2], other) == 0 && finish(b, &told[0], frozen) == 0);
	printf("ok 'holds: one that is frozen keeps nobody waiting, and is given what it asks for afterwards'\n");

	/* The same where it does not fit any more when it runs again. */
	frozen = pass_frozen(b, 700 * MIB, &other);
	CHECK(wait_until_held(b, 1) && !told[0].done);
	CHECK(finish(b, &told[2], other) == 0);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[0], frozen) == 0);
	printf("ok 'holds: or waits on, where it does not fit any more'\n");
}

static void case_sigterm(struct bench *b)
{
	pid_t owner, held = hold_one(b, &owner);
	uint64_t begin = clock_ns(), took;

	kill(held, SIGTERM);
	CHECK(ended_by(b, held) == SIGTERM);
	took = clock_ns() - begin;
	CHECK(wait_until_held(b, 0));
	CHECK(finish(b, &told[1], owner) == 0);
	printf("ok 'holds: SIGTERM ends a held process (%lu us)'\n", took / 1000);
}

static void case_handler_and_stop(struct bench *b)
{
	pid_t owner, held = hold_one(b, &owner);
	uint64_t begin = clock_ns(), took;

	kill(held, SIGUSR1);
	CHECK(WAIT_UNTIL(b, told[0].handled));
	took = clock_ns() - begin;
	CHECK(told[0].handled == 1 && !told[0].done);
	CHECK(wait_until_held(b, 1), "the call goes on waiting after the handler");
	printf("ok 'holds: a handler runs during a hold (%lu us), and the call waits on'\n",
	       took / 1000);

	kill(held, SIGSTOP);
	begin = clock_ns();
	CHECK(WAIT_UNTIL(b, state_of(held) == 'T'), "state %c", state_of(held));
	took = clock_ns() - begin;
	kill(held, SIGCONT);
	CHECK(wait_until_held(b, 1), "state %c", state_of(held));
	CHECK(finish(b, &told[1], owner) == 0);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[0], held) == 0);
	printf("ok 'holds: SIGSTOP stops a held process (%lu us), SIGCONT brings it back'\n",
	       took / 1000);
}

static void case_refuse(struct bench *b)
{
	pid_t owner, held = hold_one(b, &owner);
	uint64_t begin, before;

	bench_limit(b, 1000 * MIB, 300 * MILLISECOND);
	CHECK(finish(b, &told[1], owner) == 0);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[0], held) == 0);

	/* Its wait may be over before anybody could look at it; the event stays. */
	owner = start(b, &told[1], 600 * MIB);
	CHECK(wait_until(b, &told[1].done) && told[1].code == 0);
	/* What the cases before have raised is told by now. */
	bench_pump(b, 0);
	before = b->n_events[AUDIT_EVENT_INSUFFICIENT];
	begin = clock_ns();
	held = start(b, &told[0], 500 * MIB);
	CHECK(wait_until(b, &told[0].done) && told[0].code == OUT_OF_MEMORY);
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_INSUFFICIENT] == before + 1));
	CHECK(finish(b, &told[0], held) == OUT_OF_MEMORY && finish(b, &told[1], owner) == 0);
	CHECK(clock_ns() - begin > 300 * MILLISECOND);
	bench_limit(b, 1000 * MIB, WAIT_NS);
	printf("ok 'holds: an ask that waited in vain is answered out-of-memory'\n");

	held = start(b, &told[0], 1001 * MIB);
	CHECK(wait_until(b, &told[0].done) && told[0].code == OUT_OF_MEMORY);
	CHECK(finish(b, &told[0], held) == OUT_OF_MEMORY);
	printf("ok 'holds: an ask that could never fit is answered at once'\n");
}

static void case_limit_raised(struct bench *b)
{
	pid_t owner, held = hold_one(b, &owner);

	bench_limit(b, 1200 * MIB, WAIT_NS);
	CHECK(wait_until(b, &told[0].done) && told[0].code == 0);
	CHECK(finish(b, &told[0], held) == 0 && finish(b, &told[1], owner) == 0);
	bench_limit(b, 1000 * MIB, WAIT_NS);
	printf("ok 'holds: a raised limit lets a held call go'\n");
}

/* For the process or for its thread, at any instant of the way into a hold: the signal finds the thread. */
static void case_signal_any_time(struct bench *b)
{
	pid_t owner = start(b, &told[1], 600 * MIB);

	CHECK(wait_until(b, &told[1].done) && told[1].code == 0);
	for (int i = 0; i < SIGNALS; i++) {
		pid_t pid = start(b, &told[0], 500 * MIB);
		int signal;

		usleep(random() % 4000);
		CHECK((i % 2 ? kill(pid, SIGTERM) : tgkill(pid, pid, SIGTERM)) == 0);
		signal = ended_by(b, pid);
		CHECK(signal == SIGTERM, "%d: %d", i, signal);
	}
	CHECK(finish(b, &told[1], owner) == 0);
	printf("ok 'holds: %d signals at any instant of the way into a hold'\n", SIGNALS);
}

/* --- for bench/run ------------------------------------------------------------------------------------- */

static bool has_ended(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == pid;
}

static bool has_handled(_unused_ pid_t pid)
{
	return told[0].handled != 0;
}

static bool has_stopped(pid_t pid)
{
	return state_of(pid) == 'T';
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* From the signal to what it does, in a thread that is held. */
static uint64_t signal_takes(struct bench *b, int signal, bool (*is_seen)(pid_t))
{
	pid_t pid = start(b, &told[0], 500 * MIB);
	uint64_t begin, took;
	bool ended;

	CHECK(wait_until_held(b, 1));
	begin = clock_ns();
	kill(pid, signal);
	do {
		ended = is_seen(pid);
		took = clock_ns() - begin;
	} while (!ended && took < 5000 * MILLISECOND && usleep(100) == 0);
	CHECK(ended);
	if (signal != SIGTERM) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	CHECK(wait_until_held(b, 0));
	return took;
}

static void measure_signals(struct bench *b, unsigned n)
{
	const struct {
		const char *name;
		int signal;
		bool (*is_seen)(pid_t);
	} rows[] = {
		{ "SIGTERM ends the process", SIGTERM, has_ended },
		{ "a handler runs", SIGUSR1, has_handled },
		{ "SIGSTOP stops the process", SIGSTOP, has_stopped },
	};
	uint64_t *took = calloc(n, sizeof(*took));

	start(b, &told[1], 600 * MIB);
	CHECK(took && wait_until(b, &told[1].done) && told[1].code == 0);
	printf("%-40s %10s %10s %10s\n", "us after a signal to a held call", "median", "p99",
	       "most");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned j = 0; j < n; j++)
			took[j] = signal_takes(b, rows[i].signal, rows[i].is_seen) / 1000;
		qsort(took, n, sizeof(*took), compare);
		printf("%-40s %10lu %10lu %10lu\n", rows[i].name, took[n / 2], took[n * 99 / 100],
		       took[n - 1]);
	}
	free(took);
}

int main(int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 1000 * MIB, WAIT_NS);
	fake_open(&b, argv[1]);
	told = shared_memory(sizeof(*told) * 4);
	if (argc > 2) {
		measure_signals(&b, atoi(argv[2]));
		bench_close(&b);
		return 0;
	}
	case_order(&b);
	case_sigterm(&b);
	case_handler_and_stop(&b);
	case_refuse(&b);
	case_limit_raised(&b);
	case_signal_any_time(&b);
	case_count(&b);
	case_frozen(&b);
	CHECK(bench_current(&b) == 0 && b.n_events[AUDIT_EVENT_RAN] == 0);
	bench_close(&b);
	return 0;
}
