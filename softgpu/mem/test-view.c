// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/test.h"
#include "softgpu/mem/view.h"

#define AT (1ULL << 40)

static struct space_view *zero, *one;

static uint64_t block_at(unsigned i)
{
	return AT + i * SPACE_BLOCK_SIZE;
}

static bool sees(const struct space_view *view, unsigned block, bool write)
{
	return space_ok_in(space_view_blocks(view), block_at(block), 8, write);
}

/* Blocks: everyone's, device 0's, device 1's. */
static void test_owners(void)
{
	space_protect(block_at(0), SPACE_BLOCK_SIZE, SPACE_READ_WRITE, SPACE_EVERYONE);
	space_protect(block_at(1), SPACE_BLOCK_SIZE, SPACE_READ_WRITE, SPACE_DEVICE(0));
	/* One view from before, one from after. */
	CHECK(space_view_new(0, &zero) == 0);
	space_protect(block_at(2), SPACE_BLOCK_SIZE, SPACE_READ, SPACE_DEVICE(1));
	CHECK(space_view_new(1, &one) == 0);
	CHECK(sees(zero, 0, true) && sees(one, 0, true) && sees(NULL, 0, true));
	CHECK(sees(zero, 1, true) && !sees(one, 1, false) && sees(NULL, 1, true));
	CHECK(!sees(zero, 2, false) && sees(one, 2, false) && sees(NULL, 2, false));
	CHECK(!sees(one, 2, true));
}

static void test_reach(void)
{
	space_view_reach(zero, 1ULL << 1);
	CHECK(sees(zero, 1, true) && sees(zero, 2, false) && !sees(zero, 2, true));
	space_view_reach(zero, 0);
	CHECK(sees(zero, 1, true) && !sees(zero, 2, false));
}

static void test_named(void)
{
	uint8_t whose = space_named(/* readers= */ 3, /* writers= */ 2);

	CHECK(whose == space_named(3, 2) && whose != space_named(3, 1));
	space_protect(block_at(3), SPACE_BLOCK_SIZE, SPACE_READ_WRITE, whose);
	CHECK(sees(zero, 3, false) && !sees(zero, 3, true) && sees(one, 3, true));
	space_view_reach(zero, 1ULL << 1);
	CHECK(!sees(zero, 3, true));
	space_protect(block_at(3), SPACE_BLOCK_SIZE, SPACE_NONE, SPACE_EVERYONE);
	CHECK(!sees(zero, 3, false) && !sees(one, 3, false) && !sees(NULL, 3, false));
}

static void test_registered(void)
{
	struct space_range range = { .addr = block_at(5) + 4096, .size = 4096 };

	CHECK(space_register(&range) == 0);
	CHECK(space_ok_in(space_view_blocks(one), range.addr, range.size, true));
	CHECK(!space_ok_in(space_view_blocks(one), range.addr, range.size + 1, true));
	space_unregister(&range);
	CHECK(!space_ok_in(space_view_blocks(one), range.addr, 1, false));
}

static void test_free(void)
{
	space_view_free(zero);
	space_view_free(NULL);
	space_protect(block_at(1), SPACE_BLOCK_SIZE, SPACE_NONE, SPACE_EVERYONE);
	CHECK(!sees(one, 1, false));
	space_view_free(one);
}

static const struct test_case cases[] = {
	{ "view: a device's memory is seen by its kernels", test_owners },
	{ "view: and by those that reach it", test_reach },
	{ "view: devices that are named one by one", test_named },
	{ "view: registered memory is seen to the byte", test_registered },
	{ "view: one that ends leaves the others", test_free },
};

TEST_MAIN(cases)
