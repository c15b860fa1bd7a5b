/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a word that the host moves, for a short while, before sleeping. */
#ifndef FORWARD_GUEST_LANE_WAIT_H
#define FORWARD_GUEST_LANE_WAIT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#define LANE_SPINS 2000

static inline bool lane_reached(const __u64 *word, uint64_t value)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= value;
}

/* Return: has it come? */
static inline bool lane_spin(const __u64 *word, uint64_t value)
{
	int i;

	for (i = 0; i < LANE_SPINS; i++) {
		if (lane_reached(word, value))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

#endif
