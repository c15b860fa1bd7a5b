/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/placement.h"

#include <inttypes.h>

uint64_t placement_bookable_mib(uint64_t memory_mib)
{
	uint64_t share = memory_mib / PLACEMENT_WHOLE_PERMILLE * PLACEMENT_RESERVE_PERMILLE +
			 memory_mib % PLACEMENT_WHOLE_PERMILLE * PLACEMENT_RESERVE_PERMILLE /
				 PLACEMENT_WHOLE_PERMILLE;
	uint64_t reserve = share > PLACEMENT_RESERVE_MIB ? share : PLACEMENT_RESERVE_MIB;

	return memory_mib > reserve ? memory_mib - reserve : 0;
}

/* What is free of @all; a device can be booked over, by somebody who asked nobody. */
static uint64_t left(uint64_t all, uint64_t booked)
{
	return all > booked ? all - booked : 0;
}

static uint64_t left_mib(const struct placement_device *device)
{
	return left(device->bookable_mib, device->booked_mib);
}

static uint64_t left_permille(const struct placement_device *device)
{
	return left(PLACEMENT_WHOLE_PERMILLE, device->booked_permille);
}

enum placement_verdict placement_check(const struct placement_device *device,
				       const struct placement_request *request)
{
	if (!device->usable)
		return PLACEMENT_UNUSABLE;
	if (device->node == request->avoid_node)
		return PLACEMENT_AVOIDED;
	if (request->memory_mib > device->bookable_mib ||
	    request->compute_permille > PLACEMENT_WHOLE_PERMILLE)
		return PLACEMENT_TOO_LARGE;
	if (request->memory_mib > left_mib(device))
		return PLACEMENT_NO_MEMORY;
	if (request->compute_permille > left_permille(device))
		return PLACEMENT_NO_COMPUTE;
	return PLACEMENT_FITS;
}

/*
 * How much is left of a device with the request on it: the square of the distance to the corner
 * where both are used up, in parts of a thousand. So a device that would be left with plenty of one
 * and nothing of the other counts as emptier than one that is used up evenly.
 */
static uint64_t emptiness(const struct placement_device *device,
			  const struct placement_request *request)
{
	uint64_t mib = (left_mib(device) - request->memory_mib) * PLACEMENT_WHOLE_PERMILLE /
		       device->bookable_mib;
	uint64_t permille = left_permille(device) - request->compute_permille;

	return mib * mib + permille * permille;
}

/* Smaller is better. */
struct rank {
	uint64_t n_on_node;
	uint64_t emptiness;
};

static struct rank rank_of(const struct placement_device *device,
			   const struct placement_request *request)
{
	struct rank rank = { 0, emptiness(device, request) };

	if (request->order != PLACEMENT_BINPACK)
		rank.emptiness = UINT64_MAX - rank.emptiness;
	if (request->order == PLACEMENT_SPREAD_NODES && request->n_on_node)
		rank.n_on_node = request->n_on_node[device->node];
	return rank;
}

static bool is_better(struct rank a, struct rank b)
{
	if (a.n_on_node != b.n_on_node)
		return a.n_on_node < b.n_on_node;
	return a.emptiness < b.emptiness;
}

int placement_find(const struct placement_device *devices, size_t n_devices,
		   const struct placement_request *request, size_t *ret)
{
	struct rank best = { UINT64_MAX, UINT64_MAX };
	bool found = false;

	for (size_t i = 0; i < n_devices; i++) {
		struct rank rank;

		if (placement_check(&devices[i], request) != PLACEMENT_FITS)
			continue;
		rank = rank_of(&devices[i], request);
		if (found && !is_better(rank, best))
			continue;
		found = true;
		best = rank;
		*ret = i;
	}
	return found ? 0 : PLACEMENT_E_NO_ROOM;
}

void placement_book(struct placement_device *device, uint64_t memory_mib, uint32_t compute_permille)
{
	device->booked_mib += MIN(memory_mib, UINT64_MAX - device->booked_mib);
	device->booked_permille += compute_permille;
}

int placement_explain(const struct placement_device *device,
		      const struct placement_request *request, char *text, size_t size)
{
	switch (placement_check(device, request)) {
	case PLACEMENT_FITS:
		return snprintf(text, size, "has room");
	case PLACEMENT_UNUSABLE:
		return snprintf(text, size, "its node does not report, or is out of use");
	case PLACEMENT_AVOIDED:
		return snprintf(text, size, "the instance was moved away from this node");
	case PLACEMENT_TOO_LARGE:
		return snprintf(text, size,
				"too small: %" PRIu64 " MiB can be booked of it, %" PRIu64
				" MiB and %u.%u %% are asked for",
				device->bookable_mib, request->memory_mib,
				request->compute_permille / 10, request->compute_permille % 10);
	case PLACEMENT_NO_MEMORY:
		return snprintf(text, size, "%" PRIu64 " MiB are free, %" PRIu64 " are asked for",
				left_mib(device), request->memory_mib);
	case PLACEMENT_NO_COMPUTE:
		break;
	}
	return snprintf(text, size, "%u.%u %% of its time is free, %u.%u %% is asked for",
			(unsigned)left_permille(device) / 10, (unsigned)left_permille(device) % 10,
			request->compute_permille / 10, request->compute_permille % 10);
}
