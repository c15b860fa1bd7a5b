/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of the books that user space orders.
 *
 * Each touches several counters, and whoever orders it may be killed at any moment. Here it is seen
 * through, and it keeps to the same rules as the calls that change the same counters meanwhile.
 */
#ifndef AUDIT_BPF_ORDER_H
#define AUDIT_BPF_ORDER_H

#include "charge.h"

#define ORDER (&state.order)

/* As in ../engine.h. */
#define ORDER_GONE    1
#define ORDER_FULL    2
#define ORDER_CHANGED 3

static noinline int order_adopt(void)
{
	int at = process_find(ORDER->tgid);

	if (at >= 0)
		return process_move(at, &ORDER->chain, ORDER->cgroup) ? 0 : ORDER_CHANGED;
	if (ORDER->chain.n == 0)
		return 0;
	return process_claim(ORDER->tgid, &ORDER->chain, ORDER->cgroup) < 0 ? ORDER_FULL : 0;
}

/* Charge what the device says beyond what the calls of the process explain. */
static noinline int order_overhead(__u32 at)
{
	struct audit_process *p = PROCESS(at);
	__u32 device = ORDER->device & (LEDGER_DEVICES - 1);
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, device)];
	__u64 explained = READ_ONCE(p->use[device]);
	__u64 wanted = ORDER->bytes > explained ? ORDER->bytes - explained : 0;
	__u64 was = __sync_lock_test_and_set(&p->overhead[device], wanted);

	if (wanted > was) {
		ledger_chain_charge(books, &p->chain, device, wanted - was);
		ledger_charge(whole, wanted - was);
	} else {
		ledger_chain_uncharge(books, &p->chain, device, was - wanted);
		ledger_uncharge(whole, was - wanted);
	}
	return 0;
}

static inlined void order_see(struct audit_process *p)
{
	__u32 bit = 1U << (ORDER->device & (LEDGER_DEVICES - 1));

	if (ORDER->bytes)
		p->seen_on |= bit;
	else
		p->seen_on &= ~bit;
}

static noinline int order_settle(void)
{
	int at = process_find(ORDER->tgid);
	int r = ORDER_CHANGED;

	if (at < 0)
		return ORDER_GONE;
	if (!charging_begin(at))
		return ORDER_CHANGED;
	order_see(PROCESS(at));
	if (READ_ONCE(PROCESS(at)->n_changes) == ORDER->n_changes)
		r = order_overhead(at);
	charging_end(at);
	return r;
}

/* What nobody owns is remembered as the `low` of the whole device, which has no other use for it. */
static noinline int order_unowned(void)
{
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, ORDER->device)];
	__u64 was = __sync_lock_test_and_set(&whole->low, ORDER->bytes);

	if (ORDER->bytes > was)
		ledger_charge(whole, ORDER->bytes - was);
	else
		ledger_uncharge(whole, was - ORDER->bytes);
	return 0;
}

static noinline int order_end(void)
{
	int at = process_find(ORDER->tgid);

	return at >= 0 && process_end(at, ORDER->tgid) ? 0 : ORDER_GONE;
}

static long object_reap(void *map, struct object_key *key, struct object *o, void *unused)
{
	__u32 tenant = o->tenant;

	if (READ_ONCE(PROCESS(o->process)->serial) != key->serial &&
	    bpf_map_delete_elem(&objects, key) == 0)
		__sync_fetch_and_sub(&TENANT(tenant)->n_objects, 1);
	return 0;
}

static noinline int order_carry_out(void)
{
	switch (ORDER->kind) {
	case AUDIT_ORDER_ADOPT:
		return order_adopt();
	case AUDIT_ORDER_SETTLE:
		return order_settle();
	case AUDIT_ORDER_UNOWNED:
		return order_unowned();
	case AUDIT_ORDER_END:
		return order_end();
	default:
		bpf_for_each_map_elem(&objects, object_reap, NULL, 0);
		return 0;
	}
}

#endif
