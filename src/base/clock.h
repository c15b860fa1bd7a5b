/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a clock of the kernel says, as one number.
 *
 * CLOCK_MONOTONIC for how long something takes, CLOCK_BOOTTIME where it goes on while the machine sleeps,
 * CLOCK_REALTIME for what people are told.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/** clock_now_ns() - nanoseconds since what the clock begins with */
static inline uint64_t clock_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/** clock_now_us() - the same in microseconds */
static inline uint64_t clock_now_us(clockid_t clock)
{
	return clock_now_ns(clock) / 1000;
}

/** clock_now_ms() - the same in milliseconds */
static inline uint64_t clock_now_ms(clockid_t clock)
{
	return clock_now_ns(clock) / 1000000;
}

#endif
