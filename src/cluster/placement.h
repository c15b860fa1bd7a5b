/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an instance goes: one device of the cluster with room for both its memory and its
 * compute. A pure function of the devices' books and the request.
 *
 *	compute |#####+-----------+	a device, and what is booked of it (#); of those with
 *	        |#####|  request  |	room for the request, `binpack` takes the one that is
 *	        |#####+-----------+	left with least in both directions, `spread` the one
 *	        +------------ memory	that is left with most
 */
#ifndef CLUSTER_PLACEMENT_H
#define CLUSTER_PLACEMENT_H

#include "base/base.h"

#include <stdbool.h>

#define PLACEMENT_WHOLE_PERMILLE 1000
#define PLACEMENT_NO_NODE	 UINT32_MAX
#define PLACEMENT_E_NO_ROOM	 1

/* Of a device's memory that is never booked: what contexts and the driver itself take. */
#define PLACEMENT_RESERVE_PERMILLE 30
#define PLACEMENT_RESERVE_MIB	   512

enum placement_order {
	PLACEMENT_BINPACK,
	PLACEMENT_SPREAD,
	PLACEMENT_SPREAD_NODES, /* the node with fewest of the service; there, as PLACEMENT_SPREAD */
};

/**
 * struct placement_device - a device and what is booked of it
 * @node:	number of its node
 * @usable:	its node reports and nobody has taken it out of use
 * @bookable_mib:	what can be booked of it in all, see placement_bookable_mib()
 */
struct placement_device {
	uint32_t node;
	bool usable;
	uint64_t bookable_mib;
	uint64_t booked_mib;
	uint64_t booked_permille;
};

/**
 * struct placement_request - what an instance asks for
 * @compute_permille:	of the device's time; 0 where it only takes what is left over
 * @avoid_node:		PLACEMENT_NO_NODE, or where it must not go
 * @n_on_node:		instances of its service on each node, for PLACEMENT_SPREAD_NODES
 */
struct placement_request {
	uint64_t memory_mib;
	uint32_t compute_permille;
	enum placement_order order;
	uint32_t avoid_node;
	const uint32_t *n_on_node;
};

enum placement_verdict {
	PLACEMENT_FITS,
	PLACEMENT_UNUSABLE,
	PLACEMENT_AVOIDED,
	PLACEMENT_TOO_LARGE, /* for the device even if it were empty */
	PLACEMENT_NO_MEMORY,
	PLACEMENT_NO_COMPUTE,
};

/** placement_bookable_mib() - what can be booked of a device with so much memory */
uint64_t placement_bookable_mib(uint64_t memory_mib);

/** placement_check() - does the device have room for the request, and if not, why */
enum placement_verdict placement_check(const struct placement_device *device,
				       const struct placement_request *request);

/**
 * placement_find() - the best device for a request
 * @ret:	its number; of devices that are alike, the first
 *
 * Return: 0, or PLACEMENT_E_NO_ROOM.
 */
int placement_find(const struct placement_device *devices, size_t n_devices,
		   const struct placement_request *request, size_t *ret);

/** placement_book() - take room; the caller has checked, or says what is so anyway */
void placement_book(struct placement_device *device, uint64_t memory_mib,
		    uint32_t compute_permille);

/**
 * placement_explain() - a verdict in words: "2048 MiB are free, 4096 are asked for"
 *
 * Return: as snprintf().
 */
int placement_explain(const struct placement_device *device,
		      const struct placement_request *request, char *text, size_t size);

#endif
