// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/heap.h"
#include "softgpu/mem/test.h"

#include <string.h>

#define N_UNITS 4096

static void test_split_and_merge(void)
{
	struct heap heap = {};
	struct heap_chunk *a, *b, *c, *rest;

	CHECK(heap_add(&heap, 100, 30) == 0);
	CHECK(heap_alloc(&heap, 10, &a) == 0 && a->start == 100 && a->n == 10);
	CHECK(heap_alloc(&heap, 10, &b) == 0 && b->start == 110);
	CHECK(heap_alloc(&heap, 11, &c) == HEAP_E_FULL);
	CHECK(heap_alloc(&heap, 10, &c) == 0 && c->start == 120);

	rest = heap_free(&heap, a);
	CHECK(rest->n == 10 && !heap_chunk_is_region(rest));
	rest = heap_free(&heap, c);
	CHECK(rest->n == 10 && !heap_chunk_is_region(rest));
	rest = heap_free(&heap, b);
	CHECK(rest->start == 100 && rest->n == 30 && heap_chunk_is_region(rest));

	heap_remove(&heap, rest);
	CHECK(heap_alloc(&heap, 1, &a) == HEAP_E_FULL);
	heap_done(&heap);
}

static void test_regions_do_not_merge(void)
{
	struct heap heap = {};
	struct heap_chunk *a, *b;

	CHECK(heap_add(&heap, 0, 16) == 0);
	CHECK(heap_add(&heap, 16, 16) == 0);
	CHECK(heap_alloc(&heap, 17, &a) == HEAP_E_FULL);
	CHECK(heap_alloc(&heap, 16, &a) == 0);
	CHECK(heap_alloc(&heap, 16, &b) == 0);
	CHECK(heap_chunk_is_region(heap_free(&heap, a)));
	CHECK(heap_chunk_is_region(heap_free(&heap, b)));
	heap_done(&heap);
}

static void test_whole_region_of_any_size(void)
{
	for (uint64_t n = 1; n < 3000; n += 7) {
		struct heap heap = {};
		struct heap_chunk *a;

		CHECK(heap_add(&heap, 0, n) == 0);
		CHECK(heap_alloc(&heap, n, &a) == 0);
		CHECK(heap_chunk_is_region(heap_free(&heap, a)));
		heap_done(&heap);
	}
}

/* Against a model: an owner for each unit. */
static void test_random(void)
{
	struct heap heap = {};
	struct heap_chunk *chunks[200] = {};
	static bool used[N_UNITS];
	unsigned n_full = 0;

	srandom(1);
	CHECK(heap_add(&heap, 0, N_UNITS) == 0);
	for (int i = 0; i < 200000; i++) {
		struct heap_chunk **at = &chunks[random() % 200];

		if (*at) {
			memset(&used[(*at)->start], 0, (*at)->n);
			heap_free(&heap, *at);
			*at = NULL;
			continue;
		}
		if (heap_alloc(&heap, 1 + random() % 60, at)) {
			n_full++;
			continue;
		}
		CHECK((*at)->start + (*at)->n <= N_UNITS);
		CHECK(!memchr(&used[(*at)->start], 1, (*at)->n));
		memset(&used[(*at)->start], 1, (*at)->n);
	}

	/* 100 live ones of 30 on average are 3,000 of 4,096. */
	CHECK(n_full < 1000);
	for (int i = 0; i < 200; i++)
		if (chunks[i])
			heap_free(&heap, chunks[i]);
	CHECK(heap_alloc(&heap, N_UNITS, &chunks[0]) == 0);
	heap_free(&heap, chunks[0]);
	heap_done(&heap);
}

static const struct test_case cases[] = {
	{ "heap: chunks split and merge", test_split_and_merge },
	{ "heap: regions stay apart", test_regions_do_not_merge },
	{ "heap: a region can be taken whole", test_whole_region_of_any_size },
	{ "heap: 200,000 random steps agree with a model", test_random },
};

TEST_MAIN(cases)
