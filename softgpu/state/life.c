// SPDX-License-Identifier: Apache-2.0
/*
 * How a process gets its slots.
 *
 * A slot whose owner is dead is taken by one exchange of its futex word. What the dead one
 * left in it is emptied before, so that it never counts as the new one's, and once more
 * after: between the two, another process may have taken the slot and died.
 */
#include "softgpu/state/internal.h"

#include <unistd.h>

static struct robust_list *slot_node(const struct state *state, struct state_slot *slot)
{
	return (struct robust_list *)((uint8_t *)slot + offsetof(struct state_slot, life) -
				      state->region_bytes / 2);
}

/* Takes a dead slot; false if somebody else was faster. */
static bool slot_take(struct state *state, struct keeper *keeper, struct state_file *file,
		      struct state_slot *slot, uint32_t tid)
{
	uint32_t life = atomic_load(&slot->life);
	uint64_t birth = atomic_load(&slot->birth);
	struct pair left;

	charge_complete(file);
	left = pair_load(&slot->used);
	/* What was read before this is the dead one's, and is not what anybody later has. */
	if (!life_is_dead(life) || atomic_load(&slot->life) != life)
		return false;
	if (left.b != 0)
		pair_replace(&slot->used, left, (struct pair){ .a = left.a });
	atomic_compare_exchange_strong(&slot->birth, &birth, 0);
	if (!keeper_take(keeper, slot_node(state, slot), &slot->life, life, tid))
		return false;
	atomic_store(&slot->birth, 0);
	charge_complete(file);
	slot_empty(slot);
	return true;
}

static int slot_claim(struct state *state, struct keeper *keeper, unsigned dev, uint32_t tid)
{
	struct state_file *file = state->files[dev];

	for (uint32_t i = 0; i < STATE_SLOTS_MAX; i++) {
		if (slot_is_live(&file->slots[i]))
			continue;
		/* First, so that nobody who sums up the slots can miss this one. */
		state_raise(&file->n_slots, i + 1);
		if (!slot_take(state, keeper, file, &file->slots[i], tid))
			continue;
		state->slots[dev] = &file->slots[i];
		return 0;
	}
	return STATE_E_BUSY;
}

static int slots_claim(struct state *state, struct keeper *keeper, uint32_t tid)
{
	int r = 0;

	for (unsigned i = 0; i < state->n_devices && r == 0; i++)
		r = slot_claim(state, keeper, i, tid);
	return r;
}

static void slot_fill(struct state *state, unsigned dev)
{
	struct state_file *file = state->files[dev];
	struct state_slot *slot = state->slots[dev];
	uint64_t index = (uint64_t)(slot - file->slots);

	atomic_store(&slot->local_pid, (uint32_t)getpid());
	atomic_store(&slot->pid_namespace, state->pid_namespace);
	atomic_store(&slot->host_pid, 0);
	atomic_store(&slot->busy_past_ns, 0);
	atomic_store(&slot->n_contexts, 0);
	for (unsigned i = 0; i < STATE_SAMPLES_PROCESS; i++)
		atomic_store(&slot->samples[i], 0);
	cgroups_refresh(slot);
	/* 54 bits of nanoseconds come round after 208 days: only equality matters. */
	atomic_store(&slot->birth, clock_now() * STATE_SLOTS_MAX + index);
	pids_enter(state, dev, slot);
}

static int attach_locked(struct state *state)
{
	struct keeper *keeper;
	int r;

	if (atomic_load(&state->attached))
		return 0;
	r = keeper_start((long)(state->region_bytes / 2), slots_claim, state, &keeper);
	if (r)
		return r;
	state->keeper = keeper;
	for (unsigned i = 0; i < state->n_devices; i++)
		slot_fill(state, i);
	atomic_store(&state->attached, true);
	return 0;
}

int state_attach(struct state *state)
{
	int r;

	if (state_is_forked(state))
		return STATE_E_FORKED;
	pthread_mutex_lock(&state->lock);
	r = attach_locked(state);
	pthread_mutex_unlock(&state->lock);
	return r;
}
