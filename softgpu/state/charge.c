// SPDX-License-Identifier: Apache-2.0
/*
 * Device memory: check and reserve in one step.
 *
 * A charge is entered in the file's pair `charge` (number, slot, bytes) by one exchange
 * that fails if any other charge was entered since the sum was taken. So between the sum
 * and the entry memory can only have been given back, and the total is never exceeded.
 * Adding the entry to the slot's own sum is done by whoever comes next, at the latest the
 * one who wants to enter another charge; the number in the slot tells whether it has been
 * done:
 *
 *	charge {41, slot 3, 2 MiB}	slot 3 used {37, 6 MiB}		entered
 *	charge {41, slot 3, 2 MiB}	slot 3 used {41, 8 MiB}		complete
 *	charge {42, slot 0, 4 MiB}	slot 0 used {40, 0}		the next
 *
 * A process that dies or stops anywhere in it leaves nothing to repair.
 */
#include "softgpu/state/internal.h"

static struct state_slot *charge_slot(struct state_file *file, struct pair charge)
{
	return &file->slots[(charge.b >> STATE_BYTES_BITS) % STATE_SLOTS_MAX];
}

struct pair charge_complete(struct state_file *file)
{
	struct pair charge = pair_load(&file->charge), old, to;
	struct state_slot *slot = charge_slot(file, charge);

	for (;;) {
		old = pair_load(&slot->used);
		if (old.a >= charge.a)
			return charge;
		to.a = charge.a;
		to.b = old.b + (charge.b & ((1ull << STATE_BYTES_BITS) - 1));
		if (pair_replace(&slot->used, old, to))
			return charge;
	}
}

void slot_empty(struct state_slot *slot)
{
	struct pair old, to;

	do {
		old = pair_load(&slot->used);
		to = (struct pair){ .a = old.a, .b = 0 };
	} while (old.b != 0 && !pair_replace(&slot->used, old, to));
}

uint64_t file_used(const struct state_file *file)
{
	uint32_t n = state_bounded(&file->n_slots, STATE_SLOTS_MAX);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (slot_is_live(&file->slots[i]))
			sum += __atomic_load_n(&file->slots[i].used.b, __ATOMIC_SEQ_CST);
	}
	return sum;
}

static bool fits(struct state_file *file, struct state_slot *own, uint64_t bytes)
{
	uint64_t total = file_properties(file)->device.memory_bytes, used = file_used(file);

	return used <= total && bytes <= total - used && limits_allow(file, own, bytes);
}

/* @is_there: the device has the memory already, so nothing can refuse it */
static int charge_enter(struct state *state, unsigned dev, uint64_t bytes, bool is_there)
{
	struct state_file *file = state->files[dev];
	struct state_slot *own = state->slots[dev];
	struct pair charge, to;

	if (state_is_forked(state))
		return STATE_E_FORKED;
	if (bytes >> STATE_BYTES_BITS)
		return STATE_E_FULL;
	if (atomic_load(&file->n_limits))
		cgroups_refresh(own);
	for (;;) {
		charge = charge_complete(file);
		if (!is_there && !fits(file, own, bytes)) {
			if (__atomic_load_n(&file->charge.a, __ATOMIC_SEQ_CST) == charge.a)
				return STATE_E_FULL;
			continue; /* the sum may be of two moments */
		}
		to.a = charge.a + 1;
		to.b = (uint64_t)(own - file->slots) << STATE_BYTES_BITS | bytes;
		if (pair_replace(&file->charge, charge, to))
			break;
	}
	charge_complete(file);
	return 0;
}

int state_charge(struct state *state, unsigned dev, uint64_t bytes)
{
	return charge_enter(state, dev, bytes, /* is_there= */ false);
}

int state_inherit(struct state *state, unsigned dev, uint64_t bytes)
{
	return charge_enter(state, dev, bytes, /* is_there= */ true);
}

void state_uncharge(struct state *state, unsigned dev, uint64_t bytes)
{
	struct state_slot *own = state->slots[dev];
	struct pair old, to;

	if (state_is_forked(state))
		return;
	do {
		old = pair_load(&own->used);
		to.a = old.a;
		to.b = bytes < old.b ? old.b - bytes : 0;
	} while (!pair_replace(&own->used, old, to));
}
