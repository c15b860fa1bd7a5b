/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of the books that user space orders.
 *
 * Each touches several counters, and whoever orders it may be killed at any moment. Here it is seen
 * through, and it keeps to the same rules as the calls that change the same counters meanwhile.
 */
#ifndef AUDIT_BPF_ORDER_H
#define AUDIT_BPF_ORDER_H

#include "object.h"

#define ORDER (&state.order)

/* As in ../engine.h. */
#define ORDER_GONE    1
#define ORDER_FULL    2
#define ORDER_CHANGED 3

static noinline int order_adopt(void)
{
	int at = process_find(ORDER->tgid);

	if (at >= 0)
		return process_move(at, &ORDER->chain, ORDER->cgroup, ORDER->user) ? 0
										   : ORDER_CHANGED;
	if (ORDER->chain.n == 0)
		return 0;
	return process_claim(ORDER->tgid, &ORDER->chain, ORDER->cgroup, ORDER->user) < 0
		       ? ORDER_FULL
		       : 0;
}

static inlined __u64 beyond(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

static inlined __u64 plus(__u64 a, __u64 b)
{
	return b > ~a ? ~0ULL : a + b;
}

/*
 * How much of what is in use the device had for certain when it was asked: nothing that is pending, or was
 * when it was asked. In this order, see charge.h.
 */
static noinline int order_doubt(const struct audit_process *p, __u32 device)
{
	__u64 pending = READ_ONCE(p->pending[device]);
	__u32 n_giving = READ_ONCE(p->n_giving);

	ORDER->moved = READ_ONCE(p->moved) - ORDER->moved;
	ORDER->firm = n_giving ? 0 : beyond(p->use[device], plus(pending, ORDER->moved));
	return n_giving || ORDER->moved ? ORDER_CHANGED : 0;
}

/*
 * What is charged beyond what the device has, even if none of the pending memory is there yet: that much of
 * the idle memory is gone. Whose it was nobody knows, so none of it is anybody's credit any more. Return: how
 * much it was.
 */
static noinline __u64 order_idle(struct audit_process *p, __u32 device)
{
	__u64 gone = beyond(ORDER->firm + p->idle[device] + p->overhead[device], ORDER->bytes);

	if (gone > p->idle[device])
		gone = p->idle[device];
	if (gone) {
		p->idle[device] -= gone;
		p->epoch[device]++;
		__sync_fetch_and_add(&control.n_stale, 1);
	}
	return gone;
}

/*
 * What no call explains is overhead. Where memory is pending the device's number does not tell how much that
 * is, only that it lies between all of the pending memory being there and none; then it stays what it was
 * as far as it can, so that memory which comes later is charged already. What has moved since the device was
 * asked may have been there as well as not.
 */
static noinline __u64 order_overhead(const struct audit_process *p, __u32 device)
{
	__u64 least = beyond(ORDER->bytes, plus(p->use[device] + p->idle[device], ORDER->moved));
	__u64 most = beyond(ORDER->bytes, ORDER->firm + p->idle[device]);

	if (p->overhead[device] > most)
		return most;
	return p->overhead[device] < least ? least : p->overhead[device];
}

static noinline int order_balance(struct audit_process *p, __u32 device)
{
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, device)];
	__u64 was = p->overhead[device], gone = order_idle(p, device);
	__u64 now = order_overhead(p, device);

	p->overhead[device] = now;
	if (now > was + gone) {
		ledger_chain_charge(books, &p->chain, device, now - was - gone);
		ledger_charge(whole, now - was - gone);
	} else if (now < was + gone) {
		ledger_chain_uncharge(books, &p->chain, device, was + gone - now);
		ledger_uncharge(whole, was + gone - now);
		wake_freed();
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
	__u32 device = ORDER->device & (LEDGER_DEVICES - 1);
	int at = process_find(ORDER->tgid), r;

	if (at < 0)
		return ORDER_GONE;
	/* Nothing of the charge may change meanwhile: idle memory that is taken back into use, above all. */
	if (!moving_begin(at))
		return ORDER_CHANGED;
	order_see(PROCESS(at));
	r = order_doubt(PROCESS(at), device);
	order_balance(PROCESS(at), device);
	moving_end(at);
	return r;
}

/*
 * What nobody owns is remembered as the `low` of the whole device, which has no other use for it. To that belongs
 * what processes had that have ended since the device was asked: then it was theirs.
 */
static noinline int order_unowned(void)
{
	__u32 device = ORDER->device & (LEDGER_DEVICES - 1);
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, device)];
	__u64 bytes = plus(ORDER->bytes, READ_ONCE(control.ended[device]) - ORDER->moved);
	__u64 was = __sync_lock_test_and_set(&whole->low, bytes);

	if (bytes >= was) {
		ledger_charge(whole, bytes - was);
	} else {
		ledger_uncharge(whole, was - bytes);
		wake_freed();
	}
	return 0;
}

static noinline int order_end(void)
{
	int at = process_find(ORDER->tgid);

	if (at < 0 || READ_ONCE(PROCESS(at)->serial) != ORDER->serial)
		return ORDER_GONE;
	return process_end(at, ORDER->tgid) ? 0 : ORDER_CHANGED;
}

/* Nobody else has to do with its record any more. */
static noinline int order_let_go(void)
{
	struct audit_process *p = PROCESS(ORDER->process);

	if ((__u32)READ_ONCE(p->owner) != AUDIT_PROCESS_LINGERS || p->serial != ORDER->serial)
		return ORDER_GONE;
	/* Whoever has ended it has not quite let go. */
	if (READ_ONCE(p->charging))
		return ORDER_CHANGED;
	process_clear(ORDER->process);
	__sync_fetch_and_sub(&control.n_lingering, 1);
	WRITE_ONCE(p->owner, AUDIT_PROCESS_FREE);
	return 0;
}

/* Whether what a record tells of went with its context. */
static noinline int object_went_along(const struct object_key *key, const struct object *o)
{
	struct object_key of_context = { .handle = o->context,
					 .serial = key->serial,
					 .kind = OBJECT_CONTEXT };
	const struct object *context;

	if (!o->context || key->kind == OBJECT_CONTEXT)
		return 0;
	context = bpf_map_lookup_elem(&objects, &of_context);
	return !context || context->epoch != o->epoch;
}

static noinline int object_is_stale(const struct object_key *key, const struct object *o)
{
	const struct audit_process *p = PROCESS(o->process);

	if (READ_ONCE(p->serial) != key->serial)
		return 1;
	if (key->kind == OBJECT_CREDIT)
		return !o->size || o->epoch != p->epoch[o->device & (LEDGER_DEVICES - 1)];
	return object_went_along(key, o);
}

static long object_reap(_unused_ void *map, struct object_key *key, struct object *o,
			_unused_ void *unused)
{
	__u32 nearest = o->nearest, outermost = o->outermost;

	if (object_is_stale(key, o) && bpf_map_delete_elem(&objects, key) == 0)
		object_gone(nearest, outermost);
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
	case AUDIT_ORDER_LET_GO:
		return order_let_go();
	default:
		bpf_for_each_map_elem(&objects, object_reap, NULL, 0);
		return 0;
	}
}

#endif
