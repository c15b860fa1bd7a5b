// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that have ended, and whose memory others may have.
 *
 * What a process has exported lives on in whoever has opened it, and only the device tells who that is and
 * how much of it he has. So the process stays charged until the devices were asked long enough after its end:
 * by then who has it is charged, and the sum was never less than what there is. What such a process had is
 * also all that others can have inherited meanwhile; what they have beyond it they got elsewhere.
 */
#include "base/clock.h"
#include "priv.h"

/*
 * In this time a driver lists who has what a process had. Nobody is charged for what he has lost longer than
 * 100 ms.
 */
#define LINGERS_NS 60000000ULL
/* Drivers may list the process itself a while longer. Not for ever: its id may be another's by then. */
#define LISTED_NS 10000000000ULL
/* Devices hand out no less. */
#define DEVICE_BLOCK (2ULL << 20)

static bool lingers(const struct audit_process *p)
{
	return (uint32_t)__atomic_load_n(&p->owner, __ATOMIC_ACQUIRE) == AUDIT_PROCESS_LINGERS;
}

bool engine_is_lingering(const struct engine *engine)
{
	return __atomic_load_n(&engine->state->control.n_lingering, __ATOMIC_ACQUIRE) != 0;
}

void engine_asks_devices(struct engine *engine)
{
	engine->asked_ns = clock_now_ns(CLOCK_MONOTONIC);
	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		struct audit_process *p = process_at(engine, i);

		if (p->listed)
			p->listed = 0;
		/* What grows from now on asks for another round. */
		if (p->grows)
			__atomic_store_n(&p->grows, 0, __ATOMIC_SEQ_CST);
	}
}

bool engine_lists(struct engine *engine, pid_t pid)
{
	uint64_t owner = (uint64_t)pid << 32 | AUDIT_PROCESS_LINGERS;
	bool any = false;

	if (!engine_is_lingering(engine))
		return false;
	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		struct audit_process *p = process_at(engine, i);

		if (__atomic_load_n(&p->owner, __ATOMIC_ACQUIRE) != owner ||
		    engine->asked_ns > p->ended_ns + LISTED_NS)
			continue;
		p->listed = 1;
		any = true;
	}
	return any;
}

/*
 * The device may have given away what a process has before the program hears of its end, as the kernel takes down
 * its memory first.
 */
static bool has_left(const struct audit_process *p)
{
	return lingers(p) ||
	       (p->exports && audit_process_tgid(p) && process_is_exiting(audit_process_tgid(p)));
}

/* Up to @bytes of what a process had. Return: how many there were that nobody else has inherited. */
static uint64_t inherit_from(struct audit_process *p, unsigned device, uint64_t bytes)
{
	uint64_t had = p->use[device] + p->idle[device] + p->overhead[device];
	uint64_t taken = MIN(bytes, had - MIN(had, p->claimed[device]));

	p->claimed[device] += taken;
	return taken;
}

static uint64_t inherit(struct engine *engine, const struct audit_process *heir, unsigned device,
			uint64_t bytes)
{
	uint64_t left = bytes;

	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		struct audit_process *p = process_at(engine, i);

		if (left && p != heir && has_left(p))
			left -= inherit_from(p, device, left);
	}
	return bytes - left;
}

void lingering_inherit(struct engine *engine, struct audit_process *p, unsigned device,
		       uint64_t overhead_before)
{
	uint64_t overhead = p->overhead[device], inherited = p->inherited[device];

	if (overhead >= overhead_before + DEVICE_BLOCK)
		inherited += inherit(engine, p, device, overhead - overhead_before);
	p->inherited[device] = MIN(inherited, overhead);
}

void lingering_end(struct engine *engine)
{
	if (!engine_is_lingering(engine))
		return;
	blocks_each(engine->state, AUDIT_TABLE_PROCESSES, i) {
		const struct audit_process *p = process_at(engine, i);
		const struct audit_order let_go = { .kind = AUDIT_ORDER_LET_GO,
						    .serial = p->serial,
						    .process = i };

		if (lingers(p) && engine->asked_ns >= p->ended_ns + LINGERS_NS && !p->listed)
			engine_order(engine, &let_go);
	}
}
