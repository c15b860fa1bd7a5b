// SPDX-License-Identifier: Apache-2.0
/* The arithmetic of the books: nested tenants, undo, and many threads at once. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ledger.h"

#define OUTER 1
#define INNER 2

static struct ledger books[LEDGER_TENANTS * LEDGER_DEVICES];
static const struct ledger_chain nested = { .n = 2, .tenants = { INNER, OUTER } };

static struct ledger *book(unsigned tenant)
{
	return &books[ledger_index(tenant, 0)];
}

static void set_up(__u64 inner_max, __u64 outer_max)
{
	memset(books, 0, sizeof(books));
	book(INNER)->max = inner_max;
	book(OUTER)->max = outer_max;
}

static void case_reserve(void)
{
	struct {
		const char *name;
		__u64 inner_max, outer_max, inner_used, outer_used, bytes;
		int answer;
		__u32 index;
	} cases[] = {
		{ "fits both", 100, 200, 0, 0, 100, 0, 0 },
		{ "fits to the byte", 100, 100, 60, 60, 40, 0, 0 },
		{ "inner level refuses", 100, 200, 60, 60, 41, LEDGER_E_OVER, 0 },
		{ "outer level refuses", 100, 200, 0, 150, 60, LEDGER_E_OVER, 1 },
		{ "could never fit inside", 100, 200, 0, 0, 101, LEDGER_E_NEVER, 0 },
		{ "could never fit outside", 300, 200, 250, 0, 201, LEDGER_E_NEVER, 1 },
		{ "never beats over", 300, 200, 300, 0, 201, LEDGER_E_NEVER, 1 },
		{ "limit lowered below the use", 50, 200, 80, 80, 1, LEDGER_E_OVER, 0 },
		{ "nothing fits always", 50, 200, 50, 50, 0, 0, 0 },
		{ "size of all ones does not wrap", LEDGER_NO_LIMIT, 200, 5, 5, LEDGER_NO_LIMIT,
		  LEDGER_E_NEVER, 1 },
		{ "no limit does not wrap", LEDGER_NO_LIMIT, LEDGER_NO_LIMIT, 5, 5, LEDGER_NO_LIMIT,
		  LEDGER_E_OVER, 0 },
		{ "limit of zero", 0, 200, 0, 0, 1, LEDGER_E_NEVER, 0 },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		__u32 index = 0;
		int r;

		set_up(cases[i].inner_max, cases[i].outer_max);
		book(INNER)->current = cases[i].inner_used;
		book(OUTER)->current = cases[i].outer_used;
		r = ledger_chain_reserve(books, &nested, 0, cases[i].bytes, &index);
		assert(r == cases[i].answer);
		assert(r == 0 || index == cases[i].index);
		assert(book(INNER)->current == cases[i].inner_used + (r ? 0 : cases[i].bytes));
		assert(book(OUTER)->current == cases[i].outer_used + (r ? 0 : cases[i].bytes));
		printf("ok 'ledger_chain_reserve: %s'\n", cases[i].name);
	}
}

static void case_uncharge(void)
{
	set_up(100, 100);
	ledger_chain_charge(books, &nested, 0, 150);
	assert(book(INNER)->current == 150 && book(INNER)->peak == 150);
	printf("ok 'ledger_chain_charge: memory that exists counts beyond the limit'\n");

	ledger_chain_uncharge(books, &nested, 0, 150);
	assert(book(INNER)->current == 0 && book(OUTER)->current == 0 && book(INNER)->peak == 150);
	printf("ok 'ledger_chain_uncharge: back to zero, the peak stays'\n");

	assert(ledger_uncharge(book(INNER), 1) == 0 && book(INNER)->current == 0);
	printf("ok 'ledger_uncharge: never below zero'\n");
}

static void case_left(void)
{
	set_up(100, 200);
	assert(ledger_chain_left(books, &nested, 0) == 100);
	book(OUTER)->current = 170;
	assert(ledger_chain_left(books, &nested, 0) == 30);
	book(OUTER)->current = 250;
	assert(ledger_chain_left(books, &nested, 0) == 0);
	printf("ok 'ledger_chain_left: the tightest decides'\n");
}

#define THREADS 8
#define ROUNDS	20000
#define LIMIT	(THREADS / 2)

static int over_seen;

static void *reserve_and_return(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		__u32 index;

		if (ledger_chain_reserve(books, &nested, 0, 1, &index))
			continue;
		if (*(volatile __u64 *)&book(OUTER)->current > LIMIT)
			__sync_fetch_and_add(&over_seen, 1);
		ledger_chain_uncharge(books, &nested, 0, 1);
	}
	return arg;
}

static void case_threads(void)
{
	pthread_t threads[THREADS];

	set_up(LEDGER_NO_LIMIT, LIMIT);
	for (int i = 0; i < THREADS; i++)
		assert(pthread_create(&threads[i], NULL, reserve_and_return, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert(over_seen == 0);
	assert(book(INNER)->current == 0 && book(OUTER)->current == 0);
	assert(book(OUTER)->peak <= LIMIT);
	printf("ok 'ledger_chain_reserve: eight threads never pass the limit together'\n");
}

int main(void)
{
	case_reserve();
	case_uncharge();
	case_left();
	case_threads();
	return 0;
}
