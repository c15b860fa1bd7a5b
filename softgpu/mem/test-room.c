// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/room.h"
#include "softgpu/mem/test.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static void test_many_small(void)
{
	uint64_t asked = 0;

	room_limit(1);
	while (room_for(1ULL << 46, MIB) && asked < 1ULL << 46)
		asked += MIB;
	/* Each is small, but together they are more than may go unasked. */
	CHECK(asked < 16 * MIB);
	room_limit(0);
}

static void wait_for_a_look(void)
{
	usleep(3000);
}

/* Under a bound that this process itself has come to. */
static void test_growing(void)
{
	size_t size = 64 * MIB;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(at != MAP_FAILED);
	CHECK(room_left());
	room_limit(32 * MIB);
	wait_for_a_look();
	CHECK(room_left());
	CHECK(!room_for((uint64_t)at, size));
	memset(at, 1, size);
	wait_for_a_look();
	CHECK(!room_left());
	room_limit(0);
	wait_for_a_look();
	CHECK(room_left());
	munmap(at, size);
}

static const struct test_case cases[] = {
	{ "room: small sizes are not asked about", test_small },
	{ "room: more than any host has is refused", test_more_than_any_host },
	{ "room: many small sizes are asked about in the end", test_many_small },
	{ "room: who grows beyond a bound is told while it runs", test_growing },
	{ "room: what has pages needs none", test_what_is_there },
};

TEST_MAIN(cases)
