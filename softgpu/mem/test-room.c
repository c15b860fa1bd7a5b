// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/room.h"
#include "softgpu/mem/test.h"

#include <string.h>
#include <sys/mman.h>

#define MIB (1ULL << 20)

static void test_small(void)
{
	/* Not even looked at. */
	CHECK(room_for(0, MIB));
}

static void test_more_than_any_host(void)
{
	CHECK(!room_for(1ULL << 46, 1ULL << 45));
}

static void test_what_is_there(void)
{
	void *at = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	memset(at, 1, 32 * MIB);
	CHECK(room_for((uint64_t)at, 32 * MIB));
	CHECK(room_for((uint64_t)at + 100, 32 * MIB - 200));
	munmap(at, 32 * MIB);
}

static const struct test_case cases[] = {
	{ "room: small sizes are not asked about", test_small },
	{ "room: more than any host has is refused", test_more_than_any_host },
	{ "room: what has pages needs none", test_what_is_there },
};

TEST_MAIN(cases)
