/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a word that the host moves, for a short while, before sleeping. */
#ifndef FORWARD_GUEST_LANE_WAIT_H
#define FORWARD_GUEST_LANE_WAIT_H

#include "forward/transport.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A worker that is at work answers a short call within the first looks. Those between which nothing is are for a machine
 * that is emulated, where a pause costs more than the answer: with it the emulator turns to the next processor.
 */
#define LANE_QUICK_LOOKS 256
#define LANE_FIRST_SPINS 64
#define LANE_SPINS	 2000
#define LANE_MAX_YIELDS	 2

static inline bool lane_reached(const __u64 *word, uint64_t value)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) >= value;
}

static inline bool lane_look(const __u64 *word, uint64_t value)
{
	int i;

	for (i = 0; i < LANE_QUICK_LOOKS; i++)
		if (lane_reached(word, value))
			return true;
	return false;
}

/* Return: has it come? */
static inline bool lane_spin(const __u64 *word, uint64_t value, int spins)
{
	int i;

	for (i = 0; i < spins; i++) {
		if (lane_reached(word, value))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/*
 * Leaves the CPU to the host's thread where that is, or may be, on the same: looking would keep it from answering. More
 * than twice would be for others' good.
 *
 * @woken:	it has just been rung for, and nobody knows yet where it wakes
 */
static inline bool lane_yield(struct lane *lane, const __u64 *word, uint64_t value, bool woken)
{
	int i;

	for (i = 0; i < LANE_MAX_YIELDS && !lane_reached(word, value); i++) {
		if (!woken &&
		    (int)__atomic_load_n(&lane->host.cpu, __ATOMIC_RELAXED) != sched_getcpu() + 1)
			return false;
		__atomic_store_n(&lane->guest.waits, LANE_YIELDS, __ATOMIC_RELAXED);
		sched_yield();
	}
	__atomic_store_n(&lane->guest.waits, 0, __ATOMIC_RELAXED);
	return lane_reached(word, value);
}

#endif
