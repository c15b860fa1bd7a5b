// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that wait: who they are, and ending the wait of one by hand. The holder does it.
 */
#include "priv.h"

int engine_each_held(const struct engine *engine, engine_slot_fn fn, void *userdata)
{
	blocks_each(engine->state, AUDIT_TABLE_SLOTS, i) {
		const struct audit_slot *slot = slot_at(engine, i);
		int r;

		if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) != AUDIT_SLOT_HELD)
			continue;
		r = fn(slot, userdata);
		if (r)
			return r;
	}
	return 0;
}

static struct audit_slot *slot_by_ticket(const struct engine *engine, uint64_t ticket)
{
	blocks_each(engine->state, AUDIT_TABLE_SLOTS, i)
		if (slot_at(engine, i)->state == AUDIT_SLOT_HELD &&
		    slot_at(engine, i)->ticket == ticket)
			return slot_at(engine, i);
	return NULL;
}

/* The holder looks over what it holds every few milliseconds, and finds these. */
int engine_release(struct engine *engine, uint64_t ticket)
{
	struct audit_slot *slot = slot_by_ticket(engine, ticket);

	if (!slot)
		return ENGINE_E_GONE;
	__atomic_store_n(&slot->reason, AUDIT_REASON_NONE, __ATOMIC_RELEASE);
	return 0;
}

int engine_refuse(struct engine *engine, uint64_t ticket)
{
	struct audit_slot *slot = slot_by_ticket(engine, ticket);

	if (!slot)
		return ENGINE_E_GONE;
	/* Its time is over: it is let go and answered when it meets the probe. */
	__atomic_store_n(&slot->deadline_ns, 1, __ATOMIC_RELEASE);
	return 0;
}
