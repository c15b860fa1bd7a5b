// SPDX-License-Identifier: Apache-2.0
/*
 * Requests (memory.low): beyond it a tenant borrows what the device has idle; within it a tenant whose
 * device is full of others' borrowing waits until they give back.
 */
#include "harness.h"

#include <sys/wait.h>

#define TOTAL (1000 * MIB)
#define LOOKS 100

struct told {
	volatile unsigned long asked;
	volatile long code;
	volatile int done;
};

static int ask(void *userdata)
{
	struct told *me = userdata;
	unsigned long address;

	me->code = CUDA("cuMemAlloc_v2", &address, me->asked);
	me->done = 1;
	while (me->done == 1)
		usleep(1000);
	return 0;
}

static pid_t start(struct bench *b, uint32_t tenant, struct told *who, unsigned long bytes)
{
	memset(who, 0, sizeof(*who));
	who->asked = bytes;
	b->tenant = tenant;
	return tenant_fork(b, ask, who);
}

static bool is_done_in_the_end(struct bench *b, struct told *who)
{
	return WAIT_UNTIL(b, who->done);
}

/* Looks for a while: what may not be is not there however long that takes. */
static bool is_done(struct bench *b, struct told *who)
{
	for (unsigned i = 0; i < LOOKS && !who->done; i++)
		bench_pump(b, 1);
	return who->done;
}

/* Who waits for memory of the device, as far as those know who come later. */
static bool is_device_awaited(struct bench *b)
{
	struct ledger device;

	CHECK(engine_book(b->engine, 0, 0, &device) == 0);
	return device.n_queued;
}

static void finish(struct bench *b, struct told *who, pid_t pid)
{
	who->done = 2;
	CHECK(tenant_wait(b, pid) == 0);
}

static uint32_t tenant_with_low(struct bench *b, const char *name, uint64_t low, uint64_t wait_ns)
{
	struct engine_limits limits = { .max_bytes = LEDGER_NO_LIMIT, .low_bytes = low };
	uint32_t tenant;

	CHECK(engine_tenant_new(b->engine, name, &tenant) == 0);
	CHECK(engine_tenant_limit(b->engine, tenant, 0, &limits) == 0);
	CHECK(engine_tenant_waits(b->engine, tenant, 0, wait_ns, AUDIT_FAILURE_KILL) == 0);
	return tenant;
}

int main(_unused_ int argc, char **argv)
{
	uint32_t borrower, owner;
	uint64_t ended;
	struct told *told;
	struct bench b;
	pid_t first, second, third;

	bench_open(&b, ENGINE_RUNG_AUTO, TOTAL);
	fake_open(&b, argv[1]);
	told = shared_memory(3 * sizeof(*told));
	borrower = tenant_with_low(&b, "borrower", 200 * MIB, 300 * MILLISECOND);
	owner = tenant_with_low(&b, "owner", 600 * MIB, 10 * PATIENCE_NS);

	first = start(&b, borrower, &told[0], 800 * MIB);
	CHECK(is_done_in_the_end(&b, &told[0]) && told[0].code == 0);
	printf("ok 'low: beyond its request a tenant borrows what is idle'\n");

	second = start(&b, borrower, &told[1], 300 * MIB);
	CHECK(is_done_in_the_end(&b, &told[1]) && told[1].code == OUT_OF_MEMORY);
	finish(&b, &told[1], second);
	printf("ok 'low: what the device has not is waited for, then answered'\n");

	second = start(&b, owner, &told[1], 500 * MIB);
	CHECK(WAIT_UNTIL(&b, is_device_awaited(&b)));
	CHECK(!is_done(&b, &told[1]), "the device is full, and %ld came back", told[1].code);
	/* When a call has waited long enough it is given what there is, whoever waits: this one waits on. */
	CHECK(engine_tenant_waits(b.engine, borrower, 0, 10 * PATIENCE_NS, AUDIT_FAILURE_KILL) ==
	      0);
	third = start(&b, borrower, &told[2], 100 * MIB);
	CHECK(!is_done(&b, &told[2]), "it passed who waits already");
	ended = engine_device_ended(b.engine, 0);
	finish(&b, &told[0], first);
	CHECK(!is_done(&b, &told[1]), "the device has not said that it has it back");
	CHECK(engine_device_unowned(b.engine, 0, 0, ended) == 0);
	CHECK(!is_done(&b, &told[1]), "it was asked before");
	bench_unowned(&b, 0, 800 * MIB);
	CHECK(!is_done(&b, &told[1]), "it says that the dead still has it");
	bench_unowned(&b, 0, 0);
	CHECK(is_done_in_the_end(&b, &told[1]) && told[1].code == 0);
	CHECK(is_done_in_the_end(&b, &told[2]) && told[2].code == 0);
	finish(&b, &told[1], second);
	finish(&b, &told[2], third);
	printf("ok 'low: within its request a tenant waits until others give back, in turn'\n");
	bench_close(&b);
	return 0;
}
