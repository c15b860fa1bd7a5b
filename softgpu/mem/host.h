/* SPDX-License-Identifier: Apache-2.0 */
/* The RAM of the host, as this process may have it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/**
 * host_memory_left() - how many bytes more may be had
 *
 * The least of what the host has and what the process's cgroups allow, without a part that is to
 * be left alone.
 */
uint64_t host_memory_left(void);

/** host_memory_is_mapped() - is there anything at all of these bytes? */
bool host_memory_is_mapped(uint64_t addr, uint64_t size);

/** host_memory_own() - how many bytes of this process are in RAM */
uint64_t host_memory_own(void);
