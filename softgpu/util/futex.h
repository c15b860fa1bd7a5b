/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word of memory to change, in one process or between several. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/**
 * futex_wait() - sleep while @word is @value
 * @timeout:	how long at most; NULL for ever
 *
 * Returns early now and then; callers look at the word again. Works in shared memory too.
 */
static inline void futex_wait(const _Atomic uint32_t *word, uint32_t value,
			      const struct timespec *timeout)
{
	syscall(SYS_futex, word, FUTEX_WAIT, value, timeout, NULL, 0);
}

static inline void futex_wake_all(const _Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
