/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device is short of memory, and by how much. */
#ifndef POLICY_PRESSURE_H
#define POLICY_PRESSURE_H

#include "policy/policy.h"

/**
 * struct pressure - of one device
 * @missing_bytes:	what should become free
 */
struct pressure {
	bool on;
	enum policy_reason reason;
	uint64_t missing_bytes;
};

/**
 * pressure_remember() - take in how much is free now
 */
void pressure_remember(struct policy_memory *memory, uint64_t now_ms, uint64_t free_bytes);

/**
 * pressure_of() - after pressure_remember() of the same sample
 */
struct pressure pressure_of(const struct policy_numbers *numbers,
			    const struct policy_memory *memory, const struct policy_device *device);

#endif
