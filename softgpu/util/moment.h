/* SPDX-License-Identifier: Apache-2.0 */
/* Moments: this one, and those to come, for whoever waits until one at most. */
#pragma once

#include <stdint.h>
#include <time.h>

/** moment_now_ns() - this one, since what the clock begins with */
static inline uint64_t moment_now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/** moment_in() - @ns from now, by CLOCK_MONOTONIC */
static inline struct timespec moment_in(uint64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ns += (uint64_t)ts.tv_nsec;
	ts.tv_sec += (time_t)(ns / 1000000000);
	ts.tv_nsec = (long)(ns % 1000000000);
	return ts;
}
