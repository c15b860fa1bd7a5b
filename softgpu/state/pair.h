/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two words in shared memory that change together.
 *
 * The first only ever grows, so it tells one state of the pair from every other: reading
 * it, the second and it again, unchanged, gives two words that belonged together.
 */
#ifndef SOFTGPU_STATE_PAIR_H
#define SOFTGPU_STATE_PAIR_H

#include <stdbool.h>
#include <stdint.h>

struct pair {
	uint64_t a;
	uint64_t b;
} __attribute__((aligned(16)));

static inline struct pair pair_load(const struct pair *pair)
{
	struct pair now;

	do {
		now.a = __atomic_load_n(&pair->a, __ATOMIC_SEQ_CST);
		now.b = __atomic_load_n(&pair->b, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&pair->a, __ATOMIC_SEQ_CST) != now.a);
	return now;
}

/* Replaces @old by @to; false if the pair is not @old any more. */
static inline bool pair_replace(struct pair *pair, struct pair old, struct pair to)
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*pair), "+a"(old.a), "+d"(old.b)
			 : "b"(to.a), "c"(to.b)
			 : "memory");
	return done;
}

#endif
