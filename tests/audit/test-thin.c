// SPDX-License-Identifier: Apache-2.0
/* The thinnest whole path: allocate, be refused, free, end. */
#include "harness.h"

static int tenant(_unused_ void *userdata)
{
	unsigned long first = 0, second = 0xabcd;

	if (CUDA("cuMemAlloc_v2", &first, 600 * MIB) != 0)
		return 1;
	if (CUDA("cuMemAlloc_v2", &second, 600 * MIB) != OUT_OF_MEMORY)
		return 2;
	if (second != 0xabcd || fakes->executions[ROW_OF_cuMemAlloc_v2] != 1)
		return 3;
	if (CUDA("cuMemFree_v2", first) != 0)
		return 4;
	if (CUDA("cuMemAlloc_v2", &second, 1000 * MIB) != 0)
		return 5;
	return 0;
}

int main(_unused_ int argc, char **argv)
{
	enum engine_rung rung =
		strcmp(argv[2], "registers") ? ENGINE_RUNG_SUPERVISED : ENGINE_RUNG_REGISTERS;
	struct bench b;
	struct ledger ledger;
	int code;

	bench_open(&b, rung, 4096 * MIB);
	bench_limit(&b, 1000 * MIB, 0);
	fake_open(&b, argv[1]);
	code = tenant_wait(&b, tenant_fork(&b, tenant, NULL));
	CHECK(code == 0, "the tenant says %d", code);
	CHECK(WAIT_UNTIL(&b, b.n_events[AUDIT_EVENT_EXIT] == 1));
	CHECK(engine_book(b.engine, b.tenant, 0, &ledger) == 0);
	CHECK(ledger.current == 0, "%llu bytes are left", ledger.current);
	CHECK(ledger.peak == 1000 * MIB && ledger.n_refused == 1);
	CHECK(b.n_events[AUDIT_EVENT_REFUSED] == 1);
	bench_close(&b);
	printf("ok 'thin: allocate, refuse, free, end (%s)'\n", argv[2]);
	return 0;
}
