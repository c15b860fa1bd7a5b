/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Charges of a process: its chain of tenants, the device as a whole, and the process' own count.
 *
 * The process' own count is what ends a charge: whoever takes bytes off it (a free, the end of the
 * process) takes the same off the tenants, so nothing is taken off twice.
 *
 * What a call asks for is in use from its entry on, and in the device some time before it returns; what a call
 * frees leaves the device some time before it returns, and is in use until then. So the bytes of a call are
 * `pending` as long as it is under way, and `moved` when it ends, in such an order that whoever reads `pending`
 * first and `moved` afterwards finds them in one of both at least.
 */
#ifndef AUDIT_BPF_CHARGE_H
#define AUDIT_BPF_CHARGE_H

#include "who.h"

#define USE(p, device)	   (&(p)->use[(device) & (LEDGER_DEVICES - 1)])
#define PENDING(p, device) (&(p)->pending[(device) & (LEDGER_DEVICES - 1)])

/** bytes_take() - take up to @bytes off a counter. Return: how many were there */
alone __u64 bytes_take(__u64 *counter, __u64 bytes)
{
	if (!counter)
		return 0;
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 now = READ_ONCE(*counter);
		__u64 taken = bytes < now ? bytes : now;

		if (__sync_val_compare_and_swap(counter, now, now - taken) == now)
			return taken;
	}
	return 0;
}

/* Whether a tenant of the chain has a request (memory.low) on the device: then the device must have room. */
static noinline int charge_has_request(struct ledger_chain *chain, __u32 device)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < chain->n && books[ledger_index(chain->tenants[i], device)].low)
			return 1;
	return 0;
}

/*
 * Whether the device as a whole must have room for what the process takes: not for somebody with limits
 * alone as the driver sees to that itself, unless part of the device is never handed out.
 */
static noinline int charge_is_bounded(struct ledger_chain *chain, __u32 device)
{
	__u64 max = READ_ONCE(books[ledger_index(WHOLE_DEVICE, device)].max);

	return max < READ_ONCE(DEVICE(device)->total) || charge_has_request(chain, device);
}

static noinline int charge_device(struct thread *t, struct audit_process *p, __u32 device,
				  __u64 bytes)
{
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, device)];
	int r;

	if (!charge_is_bounded(&p->chain, device)) {
		ledger_charge(whole, bytes);
		return 0;
	}
	r = ledger_reserve(whole, bytes);
	if (r) {
		t->refused_by = WHOLE_DEVICE;
		ledger_chain_uncharge(books, &p->chain, device, bytes);
	}
	return r;
}

static noinline int charge_reserve_now(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);
	__u32 at = 0;
	int r;

	r = ledger_chain_reserve(books, &p->chain, t->call_device, t->reserved, &at);
	if (r) {
		t->refused_by = p->chain.tenants[at & (LEDGER_DEPTH - 1)];
		return r;
	}
	r = charge_device(t, p, t->call_device, t->reserved);
	if (r)
		return r;
	__sync_fetch_and_add(PENDING(p, t->call_device), t->reserved);
	__sync_fetch_and_add(USE(p, t->call_device), t->reserved);
	return 0;
}

static noinline int charge_off(struct audit_process *p, __u32 device, __u64 bytes)
{
	ledger_chain_uncharge(books, &p->chain, device, bytes);
	ledger_uncharge(&books[ledger_index(WHOLE_DEVICE, device)], bytes);
	wake_freed();
	return 0;
}

static inlined int charge_drop_now(struct audit_process *p, __u32 device, __u64 bytes)
{
	bytes = bytes_take(USE(p, device), bytes);
	if (bytes)
		charge_off(p, device, bytes);
	__sync_fetch_and_add(&p->moved, bytes);
	return 0;
}

static inlined int charge_undo_now(struct audit_process *p, __u32 device, __u64 bytes)
{
	charge_drop_now(p, device, bytes);
	bytes_take(PENDING(p, device), bytes);
	return 0;
}

/* On each device that it may be, or on none. */
static inlined int charge_reserve_candidates(struct thread *t)
{
	int r = 0;

	/* Unrolled, here and in place.h: clang turns such loops so that Linux 6.1 takes them for endless. */
#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		if (r || !(t->candidates & 1U << i))
			continue;
		t->call_device = i;
		r = charge_reserve_now(t);
	}
	if (!r)
		return 0;
#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (i < t->call_device && t->candidates & 1U << i)
			charge_undo_now(PROCESS(t->process), i, t->reserved);
	return r;
}

/*
 * Where the limits of the devices differ, as for a tenant that may use one of them alone, what the process
 * itself says decides. When the call returns it is found out whether that was true. On a busy machine user
 * space may not have come to read it yet: that is no reason to refuse.
 */
static inlined int charge_reserve_hinted(struct thread *t)
{
	__u32 hint = PROCESS(t->process)->hint_of[t->ordinal & (LEDGER_DEVICES - 1)];

	if (!READ_ONCE(PROCESS(t->process)->hinted))
		return LEDGER_E_BUSY;
	if (hint >= LEDGER_DEVICES || !(t->candidates & 1U << hint))
		return LEDGER_E_OVER;
	t->candidates = 1U << hint;
	t->call_device = hint;
	return charge_reserve_now(t);
}

static inlined int charge_reserve_somewhere(struct thread *t)
{
	int r = charge_reserve_candidates(t);

	return r == LEDGER_E_OVER || r == LEDGER_E_NEVER ? charge_reserve_hinted(t) : r;
}

/**
 * charge_reserve() - reserve t->reserved bytes of t->call_device, or of all of t->candidates
 *
 * Return: as ledger_reserve(); t->call_device is the device that refuses.
 */
alone int charge_reserve(struct thread *t)
{
	int r;

	if (!t || !t->reserved)
		return 0;
	if (!charging_begin(t->process))
		return LEDGER_E_BUSY;
	r = t->candidates ? charge_reserve_somewhere(t) : charge_reserve_now(t);
	charging_end(t->process);
	return r;
}

/** charge_force() - charge what a call takes, or has taken, over any limit */
alone int charge_force(__u32 process, __u32 device, __u64 bytes)
{
	struct audit_process *p = PROCESS(process);
	int begun = charging_begin(process);

	ledger_chain_charge(books, &p->chain, device, bytes);
	ledger_charge(&books[ledger_index(WHOLE_DEVICE, device)], bytes);
	__sync_fetch_and_add(PENDING(p, device), bytes);
	__sync_fetch_and_add(USE(p, device), bytes);
	if (begun)
		charging_end(process);
	return 0;
}

/** charge_arrived() - the device has, or has not lost, what was pending for a call */
static noinline int charge_arrived(__u32 process, __u32 device, __u64 bytes)
{
	__sync_fetch_and_add(&PROCESS(process)->moved, bytes);
	bytes_take(PENDING(PROCESS(process), device), bytes);
	return 0;
}

/** charge_drop() - memory that was charged to a process is gone; at worst it stays charged until the process ends */
alone int charge_drop(__u32 process, __u32 device, __u64 bytes)
{
	struct audit_process *p = PROCESS(process);

	if (!charging_begin(process))
		return 0;
	charge_drop_now(p, device, bytes);
	charging_end(process);
	return 0;
}

/** charge_undo() - bytes that were reserved for a call are not taken */
alone int charge_undo(__u32 process, __u32 device, __u64 bytes)
{
	struct audit_process *p = PROCESS(process);

	if (!bytes || !charging_begin(process))
		return 0;
	charge_undo_now(p, device, bytes);
	charging_end(process);
	return 0;
}

/** charge_undo_call() - the call has taken nothing of what was reserved for it */
alone int charge_undo_call(struct thread *t)
{
	if (!t)
		return 0;
	if (!t->candidates)
		return charge_undo(t->process, t->call_device, t->reserved);
#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (t->candidates & 1U << i)
			charge_undo(t->process, i, t->reserved);
	return 0;
}

/** charge_force_call() - the call takes what it asks for, on whichever device seems likeliest */
static noinline int charge_force_call(struct thread *t)
{
	charge_force(t->process, t->call_device, t->reserved);
	if (t->candidates)
		t->candidates = 1U << (t->call_device & (LEDGER_DEVICES - 1));
	return 0;
}

/** charge_to_overhead() - bytes that a call has reserved are the driver's own use from now on */
alone int charge_to_overhead(__u32 process, __u32 device, __u64 bytes)
{
	struct audit_process *p = PROCESS(process);

	if (!charging_begin(process))
		return 0;
	bytes = bytes_take(USE(p, device), bytes);
	__sync_fetch_and_add(&p->overhead[device & (LEDGER_DEVICES - 1)], bytes);
	__sync_fetch_and_add(&p->moved, bytes);
	bytes_take(PENDING(p, device), bytes);
	charging_end(process);
	return 0;
}

/* What the process has given back is charged on: for how much of it, the device knows. */
static noinline int charge_may_shrink(struct audit_process *p)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < p->chain.n && !READ_ONCE(TENANT(p->chain.tenants[i])->may_shrink))
			WRITE_ONCE(TENANT(p->chain.tenants[i])->may_shrink, 1);
	if (!READ_ONCE(TENANT(WHOLE_DEVICE)->may_shrink))
		WRITE_ONCE(TENANT(WHOLE_DEVICE)->may_shrink, 1);
	return 0;
}

/** charge_to_idle() - bytes in use were given back, and the device may keep them. Return: how many were */
alone __u64 charge_to_idle(__u32 process, __u32 device, __u64 bytes)
{
	struct audit_process *p = PROCESS(process);

	if (!charging_begin(process))
		return 0;
	bytes = bytes_take(USE(p, device), bytes);
	__sync_fetch_and_add(&p->idle[device & (LEDGER_DEVICES - 1)], bytes);
	__sync_fetch_and_add(&p->moved, bytes);
	charge_may_shrink(p);
	charging_end(process);
	return bytes;
}

/**
 * charge_from_idle() - bytes that were given back are used again by a call
 * @epoch:	when they were given back; if some of that was gone since, they count no longer
 *
 * Return: how many; they need not be reserved, as they are charged.
 */
alone __u64 charge_from_idle(__u32 process, __u32 device, __u64 bytes, __u32 epoch)
{
	struct audit_process *p = PROCESS(process);

	if (!charging_begin(process))
		return 0;
	if (READ_ONCE(p->epoch[device & (LEDGER_DEVICES - 1)]) == epoch)
		bytes = bytes_take(&p->idle[device & (LEDGER_DEVICES - 1)], bytes);
	else
		bytes = 0;
	__sync_fetch_and_add(PENDING(p, device), bytes);
	__sync_fetch_and_add(USE(p, device), bytes);
	charging_end(process);
	return bytes;
}

/**
 * charge_leave() - take off what a process was charged that ends
 *
 * Its tenants are rid of it at once; to the device it is nobody's until a daemon hears that the device has it
 * back (order_unowned()), or others would be let run for what is not there yet.
 */
alone int charge_leave(__u32 process, __u32 device, __u64 bytes)
{
	struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, device)];

	ledger_chain_uncharge(books, &PROCESS(process)->chain, device, bytes);
	if (READ_ONCE(control.daemon)) {
		/* In this order: whoever replaces what nobody owns finds it in one of both at least. */
		__sync_fetch_and_add(&control.ended[device & (LEDGER_DEVICES - 1)], bytes);
		__sync_fetch_and_add(&whole->low, bytes);
		WRITE_ONCE(TENANT(WHOLE_DEVICE)->may_shrink, 1);
	} else {
		ledger_uncharge(whole, bytes);
	}
	wake_freed();
	return 0;
}

static noinline int charge_drop_all(__u32 process)
{
	struct audit_process *p = PROCESS(process);

	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		__u64 bytes = __sync_lock_test_and_set(&p->use[i], 0) +
			      __sync_lock_test_and_set(&p->idle[i], 0) +
			      __sync_lock_test_and_set(&p->overhead[i], 0);

		if (bytes)
			charge_leave(process, i, bytes);
	}
	return 0;
}

/* Off with all that a record stands for; then it is free, or about to be. */
static inlined int process_clear(__u32 process)
{
	charge_drop_all(process);
	room_count(&state, &PROCESS(process)->chain, AUDIT_TABLE_PROCESSES, -1);
	PROCESS(process)->serial = 0;
	__sync_fetch_and_add(&control.n_stale, 1);
	return 0;
}

/*
 * What a process has handed out may live on in others, and which of them has how much of it only the device
 * tells. Until it is heard the tenants of the process are charged, or they could fill the gap in between. A
 * daemon has to be there to hear it.
 */
static noinline int process_lingers(const struct audit_process *p)
{
	return READ_ONCE(p->exports) && READ_ONCE(control.daemon);
}

/**
 * process_end() - take everything off that a process was charged, and forget it
 *
 * One that has handed out memory lingers, without its number, until AUDIT_ORDER_LET_GO.
 *
 * Return: whether it was done. A process that is just being moved stays, and the engine ends it later.
 */
alone int process_end(__u32 at, __u32 tgid)
{
	struct audit_process *p = PROCESS(at);
	__u64 live = (__u64)tgid << 32 | AUDIT_PROCESS_LIVE;
	__u32 lingers = process_lingers(p);
	__u64 to = (__u64)tgid << 32 | (lingers ? AUDIT_PROCESS_LINGERS : AUDIT_PROCESS_CLAIMED);

	if (!moving_begin(at))
		return 0;
	p->ended_ns = bpf_ktime_get_ns();
	if (__sync_val_compare_and_swap(&p->owner, live, to) != live) {
		moving_end(at);
		return 0;
	}
	if (lingers)
		__sync_fetch_and_add(&control.n_lingering, 1);
	else
		process_clear(at);
	bpf_map_delete_elem(&numbers, &tgid);
	moving_end(at);
	if (!lingers)
		WRITE_ONCE(p->owner, AUDIT_PROCESS_FREE);
	return 1;
}

#endif
