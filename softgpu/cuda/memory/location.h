/* SPDX-License-Identifier: Apache-2.0 */
/* What calls on pools, virtual and managed memory have to check alike. */
#pragma once

#include <stdbool.h>

#include "src/cuda/cuda_abi.h"

static inline bool location_is_host(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static inline bool access_flags_are_valid(CUmemAccess_flags flags)
{
	return flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
	       flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

/**
 * struct access - which devices may do what, a bit for each
 *
 * Whoever may write may read.
 */
struct access {
	uint64_t readers, writers;
};

static inline void access_set(struct access *access, uint64_t bit, CUmemAccess_flags flags)
{
	access->readers &= ~bit;
	access->writers &= ~bit;
	if (flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
		access->readers |= bit;
	if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		access->writers |= bit;
}

static inline CUmemAccess_flags access_get(const struct access *access, uint64_t bit)
{
	if (access->writers & bit)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return access->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
				     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}
