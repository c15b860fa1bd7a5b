// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/space.h"
#include "softgpu/mem/test.h"

#include <errno.h>

#define AT (1ULL << 40)

static void test_whole_blocks(void)
{
	struct space_range range = { .addr = AT, .size = 3 * SPACE_BLOCK_SIZE - 10 };

	CHECK(!space_ok(AT, 1, false));
	CHECK(space_add(&range, AT, 3 * SPACE_BLOCK_SIZE, SPACE_READ_WRITE, SPACE_EVERYONE) == 0);
	CHECK(space_ok(AT, 8, true) && space_ok(AT, 3 * SPACE_BLOCK_SIZE, true));
	CHECK(!space_ok(AT, 3 * SPACE_BLOCK_SIZE + 1, false) && !space_ok(AT - 1, 2, false));
	CHECK(space_find(AT) == &range && space_find(AT + range.size - 1) == &range);
	CHECK(!space_find(AT + range.size) && !space_find(AT - 1));

	space_protect(AT + SPACE_BLOCK_SIZE, SPACE_BLOCK_SIZE, SPACE_READ, SPACE_EVERYONE);
	CHECK(space_ok(AT, 3 * SPACE_BLOCK_SIZE, false) &&
	      !space_ok(AT, 3 * SPACE_BLOCK_SIZE, true));

	space_remove(AT, 3 * SPACE_BLOCK_SIZE);
	CHECK(!space_ok(AT, 1, false) && !space_find(AT));
}

static void test_wild_addresses(void)
{
	CHECK(!space_ok(0, 8, false) && !space_ok(UINT64_MAX, 1, false));
	CHECK(!space_ok(UINT64_MAX - 3, 8, true) && !space_ok(1ULL << SPACE_BITS, 4, false));
	CHECK(!space_ok(8, UINT64_MAX, false) && !space_ok((1ULL << SPACE_BITS) - 4, 8, false));
	CHECK(!space_find(0) && !space_find(UINT64_MAX) && !space_find(1ULL << SPACE_BITS));
	CHECK(space_ok(0, 0, true));
}

static void test_slots(void)
{
	struct space_range a = { .addr = AT, .size = 100 };
	struct space_range b = { .addr = AT + 512 * 1000, .size = 512 * 100 };
	struct space_slots *slots = NULL;

	CHECK(space_slots_add(AT, SPACE_READ_WRITE, SPACE_EVERYONE, &slots) == 0);
	space_slot_set(slots, &a);
	space_slot_set(slots, &b);
	CHECK(space_find(AT + 99) == &a && !space_find(AT + 100));
	CHECK(!space_find(b.addr - 1) && space_find(b.addr) == &b &&
	      space_find(b.addr + 51199) == &b);
	CHECK(!space_find(b.addr + 51200) && !space_find(AT + SPACE_BLOCK_SIZE - 1));

	space_slot_clear(slots, &a);
	CHECK(!space_find(AT + 99) && space_find(b.addr) == &b);
	space_slot_clear(slots, &b);
	space_slots_remove(slots);
	CHECK(!space_find(b.addr) && !space_ok(AT, 1, false));
	free(slots);
}

static void test_registered(void)
{
	struct space_range a = { .addr = AT + 4096, .size = 4096 };
	struct space_range b = { .addr = AT + 8192, .size = 3 * SPACE_BLOCK_SIZE };
	struct space_range c = { .addr = AT + 5000, .size = 10000 };

	CHECK(space_register(&a) == 0 && space_register(&b) == 0);
	CHECK(space_register(&c) == -EEXIST);

	CHECK(space_find(AT + 4096) == &a && space_find(AT + 8192) == &b && !space_find(AT));
	CHECK(!space_ok(AT + 4095, 2, false) && space_ok(AT + 4096, 1, true));
	CHECK(space_ok(a.addr, a.size + b.size, true) &&
	      !space_ok(a.addr, a.size + b.size + 1, true));
	CHECK(space_blocks[(AT >> SPACE_BLOCK_SHIFT) + 1] == SPACE_READ_WRITE);

	space_unregister(&b);
	CHECK(space_ok(a.addr, a.size, true) && !space_ok(b.addr, 1, false));
	CHECK(!space_ok(AT + SPACE_BLOCK_SIZE, 1, false));
	space_unregister(&a);
	CHECK(!space_ok(a.addr, 1, false) && !space_find(a.addr));
}

static const struct test_case cases[] = {
	{ "space: whole blocks, to the block for kernels, to the byte for calls",
	  test_whole_blocks },
	{ "space: addresses that nobody can have are refused", test_wild_addresses },
	{ "space: ranges that share a block are found by any of their bytes", test_slots },
	{ "space: registered memory is known to the byte", test_registered },
};

TEST_MAIN(cases)
