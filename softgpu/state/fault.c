// SPDX-License-Identifier: Apache-2.0
/*
 * Failed kernels, for monitors. Only the last one of a device is told; of several at once,
 * how many there were.
 */
#include "softgpu/state/internal.h"

#include "softgpu/util/futex.h"

#define XID_SHIFT 32

/* The low half of the count, on which a little-endian machine can wait. */
static const _Atomic uint32_t *fault_word(const struct state_file *file)
{
	return (const _Atomic uint32_t *)&file->fault.a;
}

void state_fault_add(struct state *state, unsigned dev, uint32_t xid)
{
	struct state_file *file = state->files[dev];
	uint64_t slot = (uint64_t)(state->slots[dev] - file->slots);
	struct pair old, to;

	if (state_is_forked(state))
		return;
	do {
		old = pair_load(&file->fault);
		to.a = old.a + 1;
		to.b = (uint64_t)xid << XID_SHIFT | slot;
	} while (!pair_replace(&file->fault, old, to));
	futex_wake_all(fault_word(file));
}

uint64_t state_fault_last(const struct state *state, unsigned dev, uint32_t *ret_xid)
{
	struct pair fault = pair_load(&state->files[dev]->fault);

	if (fault.a > 0 && ret_xid)
		*ret_xid = (uint32_t)(fault.b >> XID_SHIFT);
	return fault.a;
}

void state_fault_wait(const struct state *state, unsigned dev, uint64_t n, uint64_t ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	futex_wait(fault_word(state->files[dev]), (uint32_t)n, &ts);
}
