// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/test.h"
#include "softgpu/mem/view.h"
#include "softgpu/mem/vram.h"

#include <string.h>
#include <sys/mman.h>

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static uint64_t charged, charge_max = UINT64_MAX;

static int take(_unused_ void *arg, uint64_t bytes)
{
	if (bytes > charge_max - charged)
		return 1;

	charged += bytes;
	return 0;
}

static void give(_unused_ void *arg, uint64_t bytes)
{
	CHECK(bytes <= charged);
	charged -= bytes;
}

static const struct share_charge charge = { take, give, NULL };

static struct vram *make(enum vram_kind kind, uint64_t size)
{
	struct vram *vram;

	charge_max = UINT64_MAX;
	CHECK(vram_new(kind, "test", size, SPACE_EVERYONE, &charge, &vram) == 0);
	return vram;
}

static void test_blocks(void)
{
	struct vram *vram = make(VRAM_DEVICE, 320 * GIB);
	struct vram_range small[3], large;

	CHECK(vram_alloc(vram, 1, SPACE_READ_WRITE, &small[0]) == 0 && charged == 2 * MIB);
	CHECK(vram_alloc(vram, 512 * 1024, SPACE_READ_WRITE, &small[1]) == 0);
	CHECK(vram_alloc(vram, MIB, SPACE_READ_WRITE, &small[2]) == 0 && charged == 2 * MIB);
	CHECK(vram_alloc(vram, 2 * MIB + 1, SPACE_READ_WRITE, &large) == 0 && charged == 6 * MIB);
	CHECK(large.space.addr % (2 * MIB) == 0 && small[1].space.addr % 512 == 0);

	memset((void *)large.space.addr, 7, large.space.size);
	CHECK(space_find(small[1].space.addr + 512 * 1024 - 1) == &small[1].space);
	CHECK(space_find(large.space.addr + 2 * MIB) == &large.space);
	CHECK(!space_find(large.space.addr + 2 * MIB + 1));

	vram_release(&large);
	CHECK(charged == 2 * MIB && !space_find(large.space.addr));
	for (int i = 0; i < 3; i++)
		vram_release(&small[i]);
	CHECK(charged == 0 && !space_ok(small[0].space.addr, 1, false));
	vram_free(vram);
}

static void test_full(void)
{
	struct vram *vram = make(VRAM_DEVICE, 320 * GIB);
	struct vram_range a, b;

	charge_max = 4 * MIB;
	CHECK(vram_alloc(vram, 5 * MIB, SPACE_READ_WRITE, &a) == VRAM_E_FULL);
	CHECK(vram_alloc(vram, UINT64_MAX, SPACE_READ_WRITE, &a) == VRAM_E_FULL);
	CHECK(vram_alloc(vram, 4 * MIB, SPACE_READ_WRITE, &a) == 0);
	CHECK(vram_alloc(vram, 1, SPACE_READ_WRITE, &b) == VRAM_E_FULL);
	CHECK(charged == 4 * MIB);
	vram_release(&a);
	CHECK(vram_alloc(vram, 1, SPACE_READ_WRITE, &b) == 0);
	vram_release(&b);
	CHECK(charged == 0);
	vram_free(vram);
}

static void test_sparse(void)
{
	struct vram *vram = make(VRAM_DEVICE, 320 * GIB);
	struct vram_range range;
	volatile char *bytes;

	CHECK(vram_alloc(vram, 80 * GIB, SPACE_READ_WRITE, &range) == 0 && charged == 80 * GIB);
	bytes = (volatile char *)range.space.addr;
	bytes[0] = 1;
	bytes[80 * GIB - 1] = 2;
	CHECK(bytes[0] == 1 && bytes[40 * GIB] == 0 && bytes[80 * GIB - 1] == 2);
	vram_release(&range);

	/* More than may linger was freed, so its pages are gone. */
	CHECK(vram_alloc(vram, 80 * GIB, SPACE_READ_WRITE, &range) == 0);
	CHECK(*(volatile char *)range.space.addr == 0);
	vram_release(&range);
	vram_free(vram);
}

static void test_stale_pages_go(void)
{
	struct vram *vram = make(VRAM_DEVICE, 4 * GIB);
	struct vram_range range[32];
	unsigned char there[512];
	unsigned n_there = 0;

	for (int i = 0; i < 32; i++) {
		CHECK(vram_alloc(vram, 2 * MIB, SPACE_READ_WRITE, &range[i]) == 0);
		memset((void *)range[i].space.addr, 1, 2 * MIB);
	}
	for (int i = 0; i < 32; i++)
		vram_release(&range[i]);
	for (int i = 0; i < 32; i++) {
		CHECK(mincore((void *)range[i].space.addr, 2 * MIB, there) == 0);
		n_there += there[0] & 1;
	}
	CHECK(n_there <= 16);
	vram_free(vram);
}

static void test_backing_only(void)
{
	struct vram *vram = make(VRAM_DEVICE, 4 * GIB);
	struct vram_range range;

	CHECK(vram_alloc(vram, 2 * MIB, SPACE_NONE, &range) == 0 && charged == 2 * MIB);
	CHECK(!space_find(range.space.addr) && !space_ok(range.space.addr, 1, false));
	CHECK(vram_file(vram) >= 0 && vram_offset(&range) % (2 * MIB) == 0);
	vram_release(&range);
	CHECK(charged == 0);
	vram_free(vram);
}

/* Small allocations that different devices see do not meet in a block. */
static void test_groups(void)
{
	struct vram *vram = make(VRAM_DEVICE, 4 * GIB);
	struct vram_range common, own[2];
	struct vram_group *group;
	struct space_view *view;
	const uint8_t *seen;

	CHECK(space_view_new(/* device= */ 1, &view) == 0);
	seen = space_view_blocks(view);
	CHECK(vram_group_new(vram, SPACE_DEVICE(0), &group) == 0 && charged == 0);
	CHECK(vram_alloc(vram, 1, SPACE_READ_WRITE, &common) == 0 && charged == 2 * MIB);
	CHECK(vram_alloc_in(group, 1, SPACE_READ_WRITE, &own[0]) == 0 && charged == 4 * MIB);
	CHECK(vram_alloc_in(group, 1, SPACE_READ_WRITE, &own[1]) == 0 && charged == 4 * MIB);
	CHECK(space_ok_in(seen, common.space.addr, 1, true));
	CHECK(!space_ok_in(seen, own[0].space.addr, 1, true));

	vram_group_show(group, SPACE_DEVICE(1));
	CHECK(space_ok_in(seen, own[1].space.addr, 1, true));
	vram_group_show(group, SPACE_DEVICE(0));
	CHECK(!space_ok_in(seen, own[1].space.addr, 1, true));
	CHECK(space_ok_in(seen, common.space.addr, 1, true));

	/* What is in it outlives it. */
	vram_release(&own[0]);
	vram_group_free(group);
	CHECK(charged == 4 * MIB && space_find(own[1].space.addr) == &own[1].space);
	vram_release(&own[1]);
	vram_release(&common);
	CHECK(charged == 0);
	space_view_free(view);
	vram_free(vram);
}

static void test_other_kinds(void)
{
	struct vram *host = make(VRAM_HOST, 64 * GIB), *low = make(VRAM_LOW, 256 * MIB);
	struct vram_range range;

	CHECK(vram_alloc(host, 3 * MIB, SPACE_READ_WRITE, &range) == 0 && charged == 0);
	memset((void *)range.space.addr, 1, range.space.size);
	vram_release(&range);

	CHECK(vram_alloc(low, 3 * MIB, SPACE_READ_WRITE, &range) == 0 && charged == 4 * MIB);
	CHECK(range.space.addr + range.span <= UINT32_MAX);
	CHECK(vram_file(low) >= 0);
	vram_release(&range);
	CHECK(charged == 0);
	vram_free(host);
	vram_free(low);
}

#define N_RANGES 300

static uint64_t random_size(void)
{
	switch (random() % 4) {
	case 0:
		return 1 + random() % 4096;
	case 1:
		return 1 + random() % MIB;
	case 2:
		return 1 + random() % (8 * MIB);
	default:
		return 512 * (1 + random() % 64);
	}
}

/* Each allocation is filled with its number; whoever overlaps finds out when it is freed. */
static void check_fill(const struct vram_range *range, unsigned char fill)
{
	const unsigned char *bytes = (const unsigned char *)range->space.addr;

	CHECK(bytes[0] == fill && bytes[range->space.size - 1] == fill);
	CHECK(bytes[range->space.size / 2] == fill);
	CHECK(space_find(range->space.addr + range->space.size / 2) == &range->space);
}

static void test_random(void)
{
	struct vram *vram = make(VRAM_DEVICE, 64 * GIB);
	static struct vram_range ranges[N_RANGES];
	static bool live[N_RANGES];
	uint64_t large = 0;

	srandom(2);
	for (int step = 0; step < 20000; step++) {
		unsigned i = random() % N_RANGES;
		struct vram_range *range = &ranges[i];

		if (live[i]) {
			check_fill(range, i);
			large -= range->block ? 0 : range->span;
			vram_release(range);
			live[i] = false;
		} else {
			CHECK(vram_alloc(vram, random_size(), SPACE_READ_WRITE, range) == 0);
			live[i] = true;
			large += range->block ? 0 : range->span;
			((char *)range->space.addr)[0] = i;
			((char *)range->space.addr)[range->space.size / 2] = i;
			((char *)range->space.addr)[range->space.size - 1] = i;
		}
		CHECK(charged >= large && charged - large < 200 * MIB && charged % (2 * MIB) == 0);
	}
	for (int i = 0; i < N_RANGES; i++)
		if (live[i])
			vram_release(&ranges[i]);
	CHECK(charged == 0);
	vram_free(vram);
}

static const struct test_case cases[] = {
	{ "vram: small allocations share a block, large ones have their own", test_blocks },
	{ "vram: what cannot be charged is refused and leaves nothing", test_full },
	{ "vram: 80 GiB that nobody touches cost nothing", test_sparse },
	{ "vram: few freed blocks keep their pages", test_stale_pages_go },
	{ "vram: backing alone is nobody's address", test_backing_only },
	{ "vram: groups do not share blocks", test_groups },
	{ "vram: host memory is not charged, low memory is low", test_other_kinds },
	{ "vram: 20,000 random steps agree with a model", test_random },
};

TEST_MAIN(cases)
