/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/pressure.h"

#include <string.h>

void pressure_remember(struct policy_memory *memory, uint64_t now_ms, uint64_t free_bytes)
{
	if (memory->n_free == POLICY_N_FREE) {
		memmove(memory->free_bytes, memory->free_bytes + 1,
			sizeof(memory->free_bytes) - sizeof(memory->free_bytes[0]));
		memmove(memory->time_ms, memory->time_ms + 1,
			sizeof(memory->time_ms) - sizeof(memory->time_ms[0]));
		memory->n_free--;
	}
	memory->free_bytes[memory->n_free] = free_bytes;
	memory->time_ms[memory->n_free++] = now_ms;
}

/*
 * What will be missing within the foresight if it goes on like this. One fall is a
 * single allocation and tells nothing of the next: only memory that shrinks from sample
 * to sample counts.
 */
static uint64_t soon_missing(const struct policy_numbers *numbers, const struct policy_memory *m)
{
	unsigned __int128 fall;
	uint64_t took_ms;
	unsigned i;

	if (m->n_free < POLICY_N_FREE)
		return 0;
	for (i = 1; i < POLICY_N_FREE; i++) {
		if (m->free_bytes[i] >= m->free_bytes[i - 1])
			return 0;
	}
	took_ms = m->time_ms[POLICY_N_FREE - 1] - m->time_ms[0];
	if (took_ms == 0)
		return 0;
	fall = m->free_bytes[0] - m->free_bytes[POLICY_N_FREE - 1];
	fall = fall * numbers->foresight_ms / took_ms;
	if (fall <= m->free_bytes[POLICY_N_FREE - 1])
		return 0;
	return MIN(fall - m->free_bytes[POLICY_N_FREE - 1], (unsigned __int128)UINT64_MAX);
}

static void at_least(struct pressure *p, uint64_t missing, enum policy_reason reason)
{
	if (missing <= p->missing_bytes)
		return;
	p->on = true;
	p->missing_bytes = missing;
	p->reason = reason;
}

struct pressure pressure_of(const struct policy_numbers *numbers,
			    const struct policy_memory *memory, const struct policy_device *device)
{
	uint64_t part = (unsigned __int128)device->total_bytes * numbers->pressure_permille / 1000;
	uint64_t least = MAX(part, numbers->pressure_bytes), free_bytes = device->free_bytes;
	struct pressure p = {};

	if (!device->known)
		return p;
	if (device->wanted_bytes > free_bytes)
		at_least(&p, device->wanted_bytes - free_bytes, POLICY_WANTED);
	if (free_bytes < least)
		at_least(&p, least - free_bytes, POLICY_PRESSURE);
	at_least(&p, soon_missing(numbers, memory), POLICY_FORESIGHT);
	return p;
}
