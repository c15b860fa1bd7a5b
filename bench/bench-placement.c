// SPDX-License-Identifier: Apache-2.0
/* What it costs to decide where an instance goes, on clusters of three sizes that are half full. */
#include "cluster/placement.h"

#include <stdlib.h>
#include <time.h>

#define DECISIONS     1000
#define DEVICES	      10000
#define NODE_DEVICES  8
#define DEVICE_MIB    81920 /* that can be booked */
#define PARTS	      16
#define REQUEST_PARTS 4

static struct placement_device devices[DEVICES];
static uint32_t n_on_node[DEVICES / NODE_DEVICES];

static void fill(size_t n_devices)
{
	srandom(1);
	for (size_t i = 0; i < n_devices; i++)
		devices[i] = (struct placement_device){
			i / NODE_DEVICES,
			true,
			DEVICE_MIB,
			random() % PARTS * (DEVICE_MIB / PARTS),
			random() % PARTS * (PLACEMENT_WHOLE_PERMILLE / PARTS),
		};
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* Each is booked, so that the next finds the cluster as it is then. Return: microseconds each. */
static double decide(size_t n_devices, enum placement_order order, size_t *ret_placed)
{
	double begin = now_us();

	fill(n_devices);
	*ret_placed = 0;
	for (int i = 0; i < DECISIONS; i++) {
		const struct placement_request request = {
			random() % REQUEST_PARTS * (DEVICE_MIB / PARTS),
			random() % REQUEST_PARTS * (PLACEMENT_WHOLE_PERMILLE / PARTS),
			order,
			PLACEMENT_NO_NODE,
			n_on_node,
		};
		size_t device;

		if (placement_find(devices, n_devices, &request, &device))
			continue;
		placement_book(&devices[device], request.memory_mib, request.compute_permille);
		(*ret_placed)++;
	}
	return (now_us() - begin) / DECISIONS;
}

int main(void)
{
	static const size_t sizes[] = { 100, 1000, DEVICES };
	static const char *const orders[] = { "binpack", "spread", "spread-nodes" };

	printf("%-14s %10s %16s %10s\n", "order", "devices", "us a decision", "placed");
	for (size_t order = 0; order < ARRAY_SIZE(orders); order++) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			size_t n_placed;
			double us = decide(sizes[i], order, &n_placed);

			printf("%-14s %10zu %16.1f %10zu\n", orders[order], sizes[i], us, n_placed);
		}
	}
	puts("Goal: at most 1000 us with 10000 devices.");
	return 0;
}
