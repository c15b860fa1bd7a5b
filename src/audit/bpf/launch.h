/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Launches of tenants whose compute is limited: run, or held to the tenant's next slice.
 *
 * Probed are single processes, and only while their tenant needs it; the number of the process' record of
 * launches travels in the cookie. A launch is charged what its kind is expected to take: user space learns
 * that, see tenant/share.h. Nobody is killed here: a thread that cannot be held runs.
 */
#ifndef AUDIT_BPF_LAUNCH_H
#define AUDIT_BPF_LAUNCH_H

#include "object.h"

#define LAUNCH_PROBES  8
#define LAUNCH_TOLD_NS 10000000000ULL
#define HASH_FACTOR    0x9e3779b97f4a7c15ULL

#define WORK(i)		      (&state.works[(i) & (AUDIT_WORKS - 1)])
#define KERNEL(work, i)	      (&(work)->kernels[(i) & (AUDIT_KERNELS - 1)])
#define SHARE(tenant, device) (&state.shares[ledger_index(tenant, device)])

/* What t->scratch holds during a launch. */
enum launch_scratch {
	LAUNCH_WORK, /* number of the process' record */
	LAUNCH_KEY,  /* kind of launch */
	LAUNCH_COST, /* device time that it is expected to take */
	LAUNCH_GRID, /* three words of 32 bits */
};

static noinline __u64 launch_blocks(struct thread *t, const struct row *row)
{
	__u32 *grid = (__u32 *)&t->scratch[LAUNCH_GRID];

	switch (row->action) {
	case ROW_LAUNCH_KERNEL:
		return (__u64)(__u32)ARGUMENT(t, 1) * (__u32)ARGUMENT(t, 2) * (__u32)ARGUMENT(t, 3);
	case ROW_LAUNCH_CONFIG:
		if (bpf_copy_from_user(grid, 3 * sizeof(*grid), (void *)ARGUMENT(t, row->b)))
			return 0;
		return (__u64)grid[0] * grid[1] * grid[2];
	case ROW_LAUNCH_GRID:
		return (__u64)(__u32)ARGUMENT(t, 1) * (__u32)ARGUMENT(t, 2);
	default:
		return 0;
	}
}

/* The same function with the same number of blocks on the same device is taken to last as long. */
static noinline int launch_identify(struct thread *t)
{
	const struct row *row = ROW_AT(t->row);
	__u64 key = ARGUMENT(t, row->a) * HASH_FACTOR;

	key = (key ^ launch_blocks(t, row)) * HASH_FACTOR;
	t->scratch[LAUNCH_KEY] = (key ^ t->call_device) | 1;
	return 0;
}

/* --- before the first launch ------------------------------------------------------------------------ */

/* Without one of these calls a process has nothing to launch, or nowhere to. */
static inlined int row_precedes_launches(const struct row *row)
{
	return row->action == ROW_CONTEXT_CREATE || row->action == ROW_PRIMARY_RETAIN ||
	       row->action == ROW_SETTLE;
}

static noinline int process_is_paced(const struct audit_process *p)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < p->chain.n && READ_ONCE(TENANT(p->chain.tenants[i])->paced))
			return 1;
	return 0;
}

static noinline int process_has_context(const struct audit_process *p)
{
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (READ_ONCE(p->n_contexts[i]))
			return 1;
	return 0;
}

/* The call goes on; a slot in which it waited for this is of no further use. */
static noinline int launch_gate_open(struct thread *t)
{
	int own = t->slot ? slot_own(t) : -1;

	if (own >= 0 && SLOT(own)->reason == AUDIT_REASON_PROBES)
		slot_drop(t);
	return CALL_RUN;
}

/* Nobody comes to probe it. It is let be until somebody does. */
static noinline int launch_gate_give_up(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);

	WRITE_ONCE(p->probed, my_generation);
	t->size = 0;
	event_send(AUDIT_EVENT_UNPACED, t, p->chain.tenants[0], AUDIT_REASON_PROBES, 0);
	return launch_gate_open(t);
}

/** launch_gate_wait() - the process is to be held until its launches are probed. Return: enum verdict */
alone int launch_gate_wait(struct thread *t)
{
	struct audit_process *p;
	struct audit_slot *slot;
	int own;

	if (!t)
		return CALL_RUN;
	p = PROCESS(t->process);
	t->reason = AUDIT_REASON_PROBES;
	t->refused_by = p->chain.tenants[0];
	if (ROW_AT(t->row)->action != ROW_SETTLE && !process_has_context(p))
		p->whole = 1;
	own = slot_own(t);
	if (own < 0)
		own = slot_claim(t);
	if (own < 0)
		return launch_gate_give_up(t);
	slot = SLOT(own);
	if (!slot->deadline_ns)
		slot->deadline_ns = slot->begin_ns + READ_ONCE(control.failure_wait_ns);
	if (bpf_ktime_get_ns() >= slot->deadline_ns)
		return launch_gate_give_up(t);
	slot_fill(slot, t, AUDIT_ASK_HOLD);
	return CALL_WAIT;
}

/**
 * launch_gate() - hold a process at its first context until its launches are probed
 *
 * What it queued before could not be held any more, and it could queue seconds of work. A child of a fork
 * makes a context of its own, as the driver's do not outlive a fork, so it comes by here, too.
 *
 * Return: whether the call may go on.
 */
static noinline int launch_gate(struct audit_regs *ctx, struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);

	if (!row_precedes_launches(ROW_AT(t->row)))
		return 1;
	if (READ_ONCE(p->probed) == my_generation || !process_is_paced(p)) {
		launch_gate_open(t);
		return 1;
	}
	if (launch_gate_wait(t) == CALL_RUN)
		return 1;
	if (slot_hand_over(ctx, t) != CALL_FORCED)
		return 0;
	launch_gate_give_up(t);
	return 1;
}

/* --- launches --------------------------------------------------------------------------------------- */

/* Its place in the table of the process; a full neighbourhood shares one. */
static noinline int launch_find(struct audit_work *work, __u64 key, __u32 device)
{
	__u32 hash = key >> 32;

	for (__u32 i = 0; i < LAUNCH_PROBES; i++) {
		struct audit_kernel *k = KERNEL(work, hash + i);
		__u64 was = READ_ONCE(k->key);

		if (!was)
			was = __sync_val_compare_and_swap(&k->key, 0, key);
		if (!was)
			k->device = device;
		if (!was || was == key)
			return hash + i;
	}
	return hash;
}

/** launch_cost() - what the call is expected to take, into t->scratch */
alone int launch_cost(struct thread *t)
{
	struct audit_work *work;
	struct audit_kernel *k;

	if (!t)
		return 0;
	work = WORK(t->scratch[LAUNCH_WORK]);
	launch_identify(t);
	k = KERNEL(work, launch_find(work, t->scratch[LAUNCH_KEY], t->call_device));
	t->scratch[LAUNCH_COST] =
		share_expect(READ_ONCE(k->cost_ns),
			     READ_ONCE(work->guess_ns[t->call_device & (LEDGER_DEVICES - 1)]),
			     READ_ONCE(k->n_launches));
	t->scratch[LAUNCH_KEY] = k - work->kernels;
	return 0;
}

/* Whether all tenants around the process may launch; else t->refused_by is the one that may not. */
alone int launch_is_due(struct thread *t)
{
	__u64 now = bpf_ktime_get_ns();
	struct ledger_chain *chain;

	if (!t)
		return 1;
	chain = &PROCESS(t->process)->chain;
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		__u32 tenant = chain->tenants[i];

		if (i >= chain->n)
			break;
		if (share_is_due(SHARE(tenant, t->call_device), now))
			continue;
		t->refused_by = tenant;
		return 0;
	}
	return 1;
}

alone int launch_charge(struct thread *t)
{
	__u64 now = bpf_ktime_get_ns();
	struct ledger_chain *chain;
	struct audit_work *work;
	__u64 cost;

	if (!t)
		return 0;
	chain = &PROCESS(t->process)->chain;
	work = WORK(t->scratch[LAUNCH_WORK]);
	cost = t->scratch[LAUNCH_COST];
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		if (i >= chain->n)
			break;
		share_take(SHARE(chain->tenants[i], t->call_device), now, cost);
	}
	__sync_fetch_and_add(&KERNEL(work, t->scratch[LAUNCH_KEY])->n_launches, 1);
	__sync_fetch_and_add(&work->charged_ns[t->call_device & (LEDGER_DEVICES - 1)], cost);
	return 0;
}

/* A thread that was held goes on. */
static noinline int launch_resumed(struct thread *t, int own)
{
	struct audit_slot *slot = SLOT(own);
	struct share *s = SHARE(slot->tenant, slot->device);

	__sync_fetch_and_add(&s->throttled_ns, bpf_ktime_get_ns() - slot->begin_ns);
	return slot_drop(t);
}

static noinline int launch_tell(struct thread *t, struct share *s)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 told = READ_ONCE(s->told_ns);

	__sync_fetch_and_add(&s->n_throttled, 1);
	if (now < told + LAUNCH_TOLD_NS ||
	    __sync_val_compare_and_swap(&s->told_ns, told, now) != told)
		return 0;
	return event_send(AUDIT_EVENT_THROTTLED, t, t->refused_by, AUDIT_REASON_COMPUTE, 0);
}

/** launch_hold() - claim and fill in a slot. Return: enum verdict */
alone int launch_hold(struct thread *t, int own)
{
	if (!t || !holder_is_there())
		return CALL_RUN;
	t->reason = AUDIT_REASON_COMPUTE;
	if (own < 0) {
		own = slot_claim(t);
		if (own < 0)
			return CALL_RUN;
		launch_tell(t, SHARE(t->refused_by, t->call_device));
	}
	slot_fill(SLOT(own), t, AUDIT_ASK_HOLD);
	return CALL_WAIT;
}

/** launch_enter() - a thread is at the entry of a launch */
static noinline int launch_enter(struct audit_regs *ctx, struct thread *t)
{
	int own;

	t->size = t->reserved = 0;
	t->call_device = device_of_thread(t);
	launch_cost(t);
	own = slot_own(t);
	if (!launch_is_due(t) && launch_hold(t, own) == CALL_WAIT &&
	    slot_hand_over(ctx, t) != CALL_FORCED)
		return 0;
	if (own >= 0)
		launch_resumed(t, own);
	return launch_charge(t);
}

#endif
