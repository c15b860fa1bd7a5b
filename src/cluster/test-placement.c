/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/placement.h"

#include "base/check.h"

#include <string.h>

#define DEVICE(on, booked_memory, booked_compute)                                                  \
	{                                                                                          \
		.node = (on), .usable = true, .bookable_mib = 39732,                               \
		.booked_mib = (booked_memory), .booked_permille = (booked_compute)                 \
	}

/* 40 GiB each, of which 39,732 MiB can be booked. */
static const struct placement_device devices[] = {
	DEVICE(0, 0, 0),
	DEVICE(0, 20000, 500),
	DEVICE(1, 30000, 100),
	DEVICE(1, 10000, 300),
};

static struct placement_request request(uint64_t memory_mib, uint32_t compute_permille,
					enum placement_order order)
{
	return (struct placement_request){ memory_mib, compute_permille, order, PLACEMENT_NO_NODE,
					   NULL };
}

static size_t found(const struct placement_request *r)
{
	size_t device = 99;

	placement_find(devices, ARRAY_SIZE(devices), r, &device);
	return device;
}

static void test_order(void)
{
	const uint32_t n_on_node[] = { 2, 1 };
	struct placement_request r = request(8000, 200, PLACEMENT_BINPACK);

	check(found(&r) == 1, "binpack: the device that is used up most evenly");
	r = request(8000, 600, PLACEMENT_BINPACK);
	check(found(&r) == 2, "binpack: one without compute for it does not count");
	r = request(8000, 200, PLACEMENT_SPREAD);
	check(found(&r) == 0, "spread: the device that is left with most");
	r = request(8000, 200, PLACEMENT_SPREAD_NODES);
	r.n_on_node = n_on_node;
	check(found(&r) == 3, "spread-nodes: the node with fewest, there the device with most");
	r.avoid_node = 1;
	check(found(&r) == 0, "a node is avoided");
}

static bool says(struct placement_device device, const struct placement_request *r,
		 enum placement_verdict verdict, const char *words)
{
	char text[200];

	placement_explain(&device, r, text, sizeof(text));
	return placement_check(&device, r) == verdict && strcmp(text, words) == 0;
}

static void test_refusals(void)
{
	struct placement_device unusable = devices[0];
	struct placement_request r = request(20000, 600, PLACEMENT_BINPACK);

	unusable.usable = false;
	check(says(devices[0], &r, PLACEMENT_FITS, "has room"), "has room");
	check(says(unusable, &r, PLACEMENT_UNUSABLE, "its node does not report, or is out of use"),
	      "unusable");
	check(says(devices[2], &r, PLACEMENT_NO_MEMORY, "9732 MiB are free, 20000 are asked for"),
	      "no memory");
	r.memory_mib = 1000;
	check(says(devices[1], &r, PLACEMENT_NO_COMPUTE,
		   "50.0 % of its time is free, 60.0 % is asked for"),
	      "no compute");
	r.avoid_node = 0;
	check(says(devices[0], &r, PLACEMENT_AVOIDED, "the instance was moved away from this node"),
	      "avoided");
	r = request(39733, 0, PLACEMENT_BINPACK);
	check(says(devices[0], &r, PLACEMENT_TOO_LARGE,
		   "too small: 39732 MiB can be booked of it, 39733 MiB and 0.0 % are asked for"),
	      "too large for the device as such");
	check(found(&r) == 99, "nowhere");
}

static void test_edges(void)
{
	struct placement_device device = DEVICE(0, UINT64_MAX - 1, 0);
	struct placement_request r = request(0, 0, PLACEMENT_SPREAD);

	check(placement_bookable_mib(512) == 0 && placement_bookable_mib(0) == 0,
	      "nothing but reserve");
	check(placement_bookable_mib(40960) == 39732 && placement_bookable_mib(1000) == 488,
	      "3 %%, at least 512 MiB");
	check(placement_bookable_mib(UINT64_MAX) > UINT64_MAX / 100 * 96, "no overflow");
	check(placement_check(&device, &r) == PLACEMENT_FITS, "booked over: nothing still fits");
	r.memory_mib = 1;
	check(placement_check(&device, &r) == PLACEMENT_NO_MEMORY, "and one MiB does not");
	placement_book(&device, UINT64_MAX, 10);
	check(device.booked_mib == UINT64_MAX, "what is booked does not wrap");
	r.memory_mib = UINT64_MAX;
	r.compute_permille = UINT32_MAX;
	check(placement_check(&devices[0], &r) == PLACEMENT_TOO_LARGE, "beyond any device");
}

int main(void)
{
	test_order();
	test_refusals();
	test_edges();
	return check_result();
}
