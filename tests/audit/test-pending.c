// SPDX-License-Identifier: Apache-2.0
/*
 * Books that are settled while a call is under way: what it moves is in the books from its entry on and in the
 * device some time later, or still in the books when the device has let go of it. Whatever the device says
 * meanwhile, and however often, a context's cost is not taken for explained by that; and when the call has
 * ended, whichever way, nothing of it is pending any more.
 *
 * A case has two sides, which wait for each other: a tenant, whose driver stands still within a call, and
 * whoever has the engine. The tenant has a context of 50 MiB.
 */
#include "harness.h"

#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LIMIT	      (1000 * MIB)
#define CONTEXT_BYTES (50 * MIB)
#define ROUNDS	      4
#define TAKEN_OFF     (20 * MIB) /* of what the context has cost */
#define HELD_NS	      (10 * PATIENCE_NS)
#define LAST_STEP     9

static struct bench b;

static struct {
	volatile int arrived; /* where the tenant stands */
	volatile int going;   /* how far it may go */
	volatile pid_t pid;
} * steps;

/* --- the tenant --------------------------------------------------------------------------------------- */

static void stand(int step)
{
	steps->arrived = step;
	while (steps->going < step)
		usleep(100);
}

static void stand_inside(void)
{
	fakes->inside = NULL;
	stand(1);
}

static jmp_buf out;

static void jump_out(void)
{
	stand_inside();
	longjmp(out, 1);
}

static unsigned long context_make(void)
{
	unsigned long context;

	CHECK(CUDA("cuCtxCreate_v2", &context, 0, 0) == 0);
	return context;
}

static unsigned long allocate(const char *name, unsigned long bytes)
{
	unsigned long address = 0;

	CHECK(CUDA(name, &address, bytes) == 0);
	return address;
}

static void tenant_allocates(void)
{
	context_make();
	fakes->inside = stand_inside;
	allocate("cuMemAlloc_v2", 100 * MIB);
}

static void tenant_allocates_managed(void)
{
	unsigned long address;

	context_make();
	fakes->inside = stand_inside;
	address = allocate("cuMemAllocManaged", 100 * MIB);
	stand(2);
	CHECK(CUDA("cuMemFree_v2", address) == 0);
}

static void tenant_is_refused(void)
{
	unsigned long address;

	context_make();
	fakes->inside = stand_inside;
	fakes->code = OUT_OF_MEMORY;
	CHECK(CUDA("cuMemAlloc_v2", &address, 100 * MIB) == OUT_OF_MEMORY);
	/* And this one is answered before the driver is asked. */
	CHECK(CUDA("cuMemAlloc_v2", &address, 2 * LIMIT) == OUT_OF_MEMORY);
}

static void tenant_makes_a_context(void)
{
	fakes->inside = stand_inside;
	context_make();
}

static void *retain(_unused_ void *userdata)
{
	unsigned long context;

	CHECK(CUDA("cuDevicePrimaryCtxRetain", &context, 0) == 0);
	return NULL;
}

static void in_a_thread(void *(*fn)(void *))
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, fn, NULL) == 0);
	pthread_join(thread, NULL);
}

static void retain_inside(void)
{
	fakes->inside = NULL;
	in_a_thread(retain);
	stand(1);
}

/* Of two threads that make it the second one comes first. */
static void tenant_makes_a_context_twice(void)
{
	fakes->handle = 0x4242;
	fakes->inside = retain_inside;
	retain(NULL);
}

static void tenant_frees(void)
{
	unsigned long address;

	context_make();
	address = allocate("cuMemAlloc_v2", 100 * MIB);
	fakes->inside = stand_inside;
	CHECK(CUDA("cuMemFree_v2", address) == 0);
}

static void tenant_may_not_free(void)
{
	unsigned long address;

	context_make();
	address = allocate("cuMemAlloc_v2", 100 * MIB);
	fakes->inside = stand_inside;
	fakes->code = 1;
	CHECK(CUDA("cuMemFree_v2", address) == 1);
}

static void tenant_releases(void)
{
	static const unsigned on_device[8] = { /* type */ 1, 0,
					       /* location: a device, number 0 */ 1, 0 };
	unsigned long handle;

	context_make();
	CHECK(CUDA("cuMemCreate", &handle, 100 * MIB, on_device) == 0);
	fakes->inside = stand_inside;
	CHECK(CUDA("cuMemRelease", handle) == 0);
}

static void tenant_ends_a_context(void)
{
	unsigned long context;

	context_make();
	context = context_make();
	allocate("cuMemAlloc_v2", 100 * MIB);
	fakes->inside = stand_inside;
	CHECK(CUDA("cuCtxDestroy_v2", context) == 0);
}

/* What the pool has kept may be gone by now. */
static void tenant_uses_its_pool(void)
{
	unsigned long address;

	context_make();
	address = allocate("cuMemAllocAsync", 100 * MIB);
	CHECK(CUDA("cuMemFreeAsync", address, 0) == 0);
	fakes->inside = stand_inside;
	allocate("cuMemAllocAsync", 100 * MIB);
}

static void tenant_jumps(const char *name, unsigned long first, unsigned long second)
{
	fakes->inside = jump_out;
	if (setjmp(out) == 0)
		CUDA(name, first, second);
	allocate("cuMemAlloc_v2", MIB);
}

static void tenant_jumps_out_of_an_allocation(void)
{
	unsigned long address;

	context_make();
	tenant_jumps("cuMemAlloc_v2", (unsigned long)&address, 99 * MIB);
}

static void tenant_jumps_out_of_a_free(void)
{
	context_make();
	tenant_jumps("cuMemFree_v2", allocate("cuMemAlloc_v2", 99 * MIB), 0);
}

static void tenant_jumps_out_of_a_release(void)
{
	context_make();
	allocate("cuMemAlloc_v2", 99 * MIB);
	tenant_jumps("cuMemRelease", 0x1234, 0);
}

static void *allocate_late(_unused_ void *userdata)
{
	allocate("cuMemAlloc_v2", 100 * MIB);
	return NULL;
}

static void end_inside(void)
{
	stand_inside();
	syscall(SYS_exit, 0);
}

static void tenant_loses_a_thread(void)
{
	context_make();
	fakes->inside = end_inside;
	in_a_thread(allocate_late);
}

/* A thread is held at its entry until the other has freed. */
static void tenant_is_held(void)
{
	unsigned long address;
	pthread_t thread;

	context_make();
	address = allocate("cuMemAlloc_v2", 900 * MIB);
	CHECK(pthread_create(&thread, NULL, allocate_late, NULL) == 0);
	stand(1);
	CHECK(CUDA("cuMemFree_v2", address) == 0);
	pthread_join(thread, NULL);
}

static void tenant_never_pauses(void)
{
	context_make();
	allocate("cuMemAlloc_v2", 10 * MIB);
	stand(1);
	for (int i = 0; i < 3; i++)
		CHECK(CUDA("cuMemFree_v2", allocate("cuMemAlloc_v2", MIB)) == 0);
}

/* --- whoever has the engine --------------------------------------------------------------------------- */

/**
 * struct pending_case - a tenant and what it is charged
 * @during:	while its call is under way
 * @after:	when that has ended
 * @watch:	what is looked at while the tenant stands at its first step, NULL for check_stays()
 */
struct pending_case {
	const char *name;
	void (*tenant)(void);
	uint64_t during, after;
	void (*watch)(const struct pending_case *c);
};

static int find(const struct audit_process *p, void *userdata)
{
	if (audit_process_tgid(p) != (uint32_t)steps->pid)
		return 0;
	*(struct audit_process *)userdata = *p;
	return 1;
}

static struct audit_process record(void)
{
	struct audit_process p = {};

	CHECK(engine_each_process(b.engine, find, &p) == 1);
	return p;
}

static void wait_for(int step)
{
	while (steps->arrived < step) {
		CHECK(waitpid(steps->pid, NULL, WNOHANG) == 0, "it ended before step %d", step);
		bench_pump(&b, 1);
	}
}

static void let_go(int step)
{
	steps->going = step;
}

static int settle(uint64_t device_bytes)
{
	return engine_settle(b.engine, steps->pid, 0, device_bytes, record().moved);
}

#define EXPECT(bytes)                                                                              \
	CHECK(bench_current(&b) == (bytes), "%llu MiB are charged", bench_current(&b) / MIB)

/* The device has what the call moves, or has it not; no round of settling takes anything off. */
static void check_stays(uint64_t bytes)
{
	for (int i = 0; i < ROUNDS; i++) {
		settle(CONTEXT_BYTES);
		EXPECT(bytes);
		settle(bytes);
		EXPECT(bytes);
	}
}

static void watch_upgrade(const struct pending_case *c)
{
	bench_leave(&b);
	bench_return(&b);
	check_stays(c->during);
}

/* When the call has returned the device may have it or not for as long as it lives. */
static void watch_managed(const struct pending_case *c)
{
	check_stays(c->during);
	let_go(1);
	wait_for(2);
	CHECK(record().pending[0] == 100 * MIB);
	check_stays(c->during);
	let_go(2);
}

static int count_held(_unused_ const struct audit_slot *slot, _unused_ void *userdata)
{
	return 1;
}

static void watch_held(_unused_ const struct pending_case *c)
{
	CHECK(WAIT_UNTIL(&b, engine_each_held(b.engine, count_held, NULL)));
	CHECK(record().pending[0] == 0, "who is held has nothing reserved");
}

/* Calls come between the two looks all the time: the charge is off by what they have moved, 6 MiB. */
static void watch_busy(_unused_ const struct pending_case *c)
{
	uint64_t moved = record().moved;

	let_go(1);
	wait_for(LAST_STEP);
	CHECK(engine_settle(b.engine, steps->pid, 0, 80 * MIB, moved) == ENGINE_E_CHANGED);
	EXPECT(74 * MIB);
	CHECK(engine_settle(b.engine, steps->pid, 0, 40 * MIB, moved) == ENGINE_E_CHANGED);
	EXPECT(46 * MIB);
	CHECK(settle(60 * MIB) == 0);
}

static const struct pending_case cases[] = {
	{ "an allocation", tenant_allocates, 150 * MIB, 150 * MIB, NULL },
	{ "one that the driver refuses", tenant_is_refused, 150 * MIB, 50 * MIB, NULL },
	{ "managed memory", tenant_allocates_managed, 150 * MIB, 50 * MIB, watch_managed },
	{ "a context", tenant_makes_a_context, 50 * MIB, 50 * MIB, NULL },
	{ "a context by two threads", tenant_makes_a_context_twice, 100 * MIB, 50 * MIB, NULL },
	{ "memory that a pool keeps", tenant_uses_its_pool, 150 * MIB, 150 * MIB, NULL },
	{ "a free", tenant_frees, 150 * MIB, 50 * MIB, NULL },
	{ "a free that the driver refuses", tenant_may_not_free, 150 * MIB, 150 * MIB, NULL },
	{ "a release of physical memory", tenant_releases, 150 * MIB, 50 * MIB, NULL },
	{ "the end of a context", tenant_ends_a_context, 150 * MIB, 50 * MIB, NULL },
	{ "an allocation that is jumped out of", tenant_jumps_out_of_an_allocation, 149 * MIB,
	  51 * MIB, NULL },
	{ "a free that is jumped out of", tenant_jumps_out_of_a_free, 149 * MIB, 150 * MIB, NULL },
	{ "a release that is jumped out of", tenant_jumps_out_of_a_release, 149 * MIB, 150 * MIB,
	  NULL },
	{ "an allocation whose thread ends", tenant_loses_a_thread, 150 * MIB, 50 * MIB, NULL },
	{ "an allocation, and another engine takes over", tenant_allocates, 150 * MIB, 150 * MIB,
	  watch_upgrade },
	{ "an allocation that is held", tenant_is_held, 950 * MIB, 150 * MIB, watch_held },
	{ "one call after the other", tenant_never_pauses, 60 * MIB, 60 * MIB, watch_busy },
};

static int run_tenant(void *userdata)
{
	const struct pending_case *c = userdata;

	c->tenant();
	stand(LAST_STEP);
	return 0;
}

static void begin(const struct pending_case *c)
{
	steps->arrived = steps->going = 0;
	steps->pid = tenant_fork(&b, run_tenant, (void *)c);
	wait_for(1);
	EXPECT(c->during);
}

/* Who waits for a thread goes on a moment before the kernel has told of its end. */
static void wait_until_nothing_is_pending(const struct pending_case *c)
{
	struct audit_process p;

	CHECK(WAIT_UNTIL(&b, (p = record(), p.pending[0] == 0 && p.n_giving == 0)),
	      "%s: %llu bytes, %u calls are left", c->name, p.pending[0], p.n_giving);
}

static void run_case(const struct pending_case *c)
{
	begin(c);
	if (c->watch)
		c->watch(c);
	else
		check_stays(c->during);
	let_go(LAST_STEP - 1);
	wait_for(LAST_STEP);
	wait_until_nothing_is_pending(c);
	EXPECT(c->after);
	/* Nothing is in doubt: less is believed at once. */
	CHECK(settle(c->after - TAKEN_OFF) == 0);
	EXPECT(c->after - TAKEN_OFF);
	let_go(LAST_STEP);
	CHECK(tenant_wait(&b, steps->pid) == 0);
	EXPECT(0UL);
	printf("ok 'pending: %s'\n", c->name);
}

static void run_killed(void)
{
	begin(&cases[0]);
	kill(steps->pid, SIGKILL);
	CHECK(tenant_wait(&b, steps->pid) == 128 + SIGKILL);
	EXPECT(0UL);
	printf("ok 'pending: an allocation whose process is killed'\n");
}

int main(_unused_ int argc, char **argv)
{
	struct audit_device device = { .total = 4096 * MIB, .context_bytes = CONTEXT_BYTES };

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, LIMIT, HELD_NS);
	CHECK(engine_device_set(b.engine, 0, &device, 0) == 0);
	fake_open(&b, argv[1]);
	steps = shared_memory(sizeof(*steps));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(&cases[i]);
	run_killed();
	bench_close(&b);
	return 0;
}
