// SPDX-License-Identifier: Apache-2.0
#include "softgpu/mem/room.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "softgpu/mem/host.h"
#include "softgpu/util/moment.h"

/* So much is touched before anybody asks: the answer costs some 20 us. */
#define UNASKED_MAX (8ULL << 20)

#define LOOK_NS	  2000000 /* room_left() looks this often */
#define GROWN_MIN (1ULL << 20)

#define PAGE_SIZE 4096ULL

static _Atomic uint64_t limit = UINT64_MAX;
static _Atomic uint64_t unasked; /* bytes of room_for() since the last look */

void room_limit(uint64_t bytes)
{
	atomic_store(&limit, bytes ? bytes : UINT64_MAX);
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What may still be touched. */
static uint64_t available(void)
{
	uint64_t left = host_memory_left(), bound = atomic_load(&limit);

	if (bound == UINT64_MAX)
		return left;
	bound = minus(bound, host_memory_own());
	return bound < left ? bound : left;
}

/* How much of a stretch has pages already. */
static uint64_t resident(uint64_t addr, uint64_t size)
{
	unsigned char there[4096];
	uint64_t end = addr + size, n, n_there = 0;

	for (addr &= ~(PAGE_SIZE - 1); addr < end; addr += n * PAGE_SIZE) {
		n = (end - addr + PAGE_SIZE - 1) / PAGE_SIZE;
		if (n > sizeof(there))
			n = sizeof(there);
		if (mincore((void *)addr, n * PAGE_SIZE, there) < 0)
			return 0;
		for (uint64_t i = 0; i < n; i++)
			n_there += there[i] & 1;
	}

	return n_there * PAGE_SIZE;
}

bool room_for(uint64_t addr, uint64_t size)
{
	uint64_t left;

	if (size < UNASKED_MAX &&
	    atomic_fetch_add_explicit(&unasked, size, memory_order_relaxed) < UNASKED_MAX)
		return true;

	atomic_store_explicit(&unasked, 0, memory_order_relaxed);
	left = available();
	return size <= left || minus(size, resident(addr, size)) <= left;
}

/* Only who grows is refused anything, also when others have filled the host. */
static bool look(void)
{
	static _Atomic uint64_t used_before;
	uint64_t used = host_memory_own(), before = atomic_load(&used_before);

	if (before > 0 && used > before && used - before < GROWN_MIN)
		return true;
	if (before > 0 && used > before && available() == 0)
		return false;
	atomic_store(&used_before, used);
	return true;
}

bool room_left(void)
{
	static _Atomic uint64_t looked_ns;
	uint64_t now_ns = moment_now_ns(CLOCK_MONOTONIC), before;

	before = atomic_load_explicit(&looked_ns, memory_order_relaxed);
	if (now_ns - before < LOOK_NS)
		return true;
	atomic_store_explicit(&looked_ns, now_ns, memory_order_relaxed);
	return look();
}
