/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which device a process means by a number.
 *
 * The driver numbers devices as the process' environment says, which nobody else can know for sure. Who
 * has asked for a UUID has learnt it, and so have we. Else the first context on such a number is reserved
 * on every device that it may be, and when it has been made the thread waits until the devices themselves
 * have told, through user space, on which of them the process is now. No allocation comes before that, as
 * none comes without a context. One such number of a process is dealt with at a time.
 */
#ifndef AUDIT_BPF_PLACE_H
#define AUDIT_BPF_PLACE_H

#include "object.h"
#include "wait.h"

#define PLACE_ROUNDS	     (1 << 23)
#define PLACE_HINT_NS	     500000000ULL
#define PLACE_FOUND_NS	     1000000000ULL
#define PLACE_OF(p, ordinal) READ_ONCE((p)->device_of[(ordinal) & (LEDGER_DEVICES - 1)])

enum place_wait_for {
	PLACE_TURN, /* no other number of the process is being dealt with */
	PLACE_HINT,
	PLACE_FOUND,
};

/* What t->scratch holds meanwhile. */
enum place_scratch {
	PLACE_WAIT_FOR,
	PLACE_DEADLINE,
	PLACE_OVER,
};

static inlined int place_is_known(__u32 process, __u32 ordinal)
{
	return PLACE_OF(PROCESS(process), ordinal) != AUDIT_NO_DEVICE;
}

static inlined int place_has_come(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);

	switch (t->scratch[PLACE_WAIT_FOR]) {
	case PLACE_TURN:
		return place_is_known(t->process, t->ordinal) ||
		       __sync_val_compare_and_swap(&p->placing, 0, t->ordinal + 1) == 0;
	case PLACE_HINT:
		return READ_ONCE(p->hinted);
	default:
		return place_is_known(t->process, t->ordinal);
	}
}

static long place_round(__u32 i, struct thread **thread)
{
	struct thread *t = *thread;
	char byte;

	t->scratch[PLACE_OVER] = place_has_come(t);
	if (t->scratch[PLACE_OVER] || bpf_ktime_get_ns() >= t->scratch[PLACE_DEADLINE] ||
	    task_is_dying())
		return 1;
	if (i % YIELD_EVERY == 0)
		bpf_copy_from_user_task(&byte, 1, (void *)t->sp, bpf_get_current_task_btf(), 0);
	return 0;
}

/* Return: whether it has come in time; where too many wait already, whether it is there. */
alone int place_await(struct thread *t, __u32 wait_for, __u64 wait_ns)
{
	if (!t)
		return 0;
	t->scratch[PLACE_WAIT_FOR] = wait_for;
	if (place_has_come(t))
		return 1;
	if (!wait_begin())
		return 0;
	t->scratch[PLACE_DEADLINE] = bpf_ktime_get_ns() + wait_ns;
	bpf_loop(PLACE_ROUNDS, place_round, &t, 0);
	wait_end();
	return t->scratch[PLACE_OVER];
}

/** place_is_open() - whether nobody knows which device a number stands for */
static noinline int place_is_open(struct thread *t, __u32 ordinal)
{
	__u32 n = READ_ONCE(control.n_devices);

	return n > 1 && ordinal < n && !place_is_known(t->process, ordinal);
}

/* The devices that none of the process' other numbers stands for, and what a context on any of them costs. */
static noinline int place_find_candidates(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);
	__u32 n = READ_ONCE(control.n_devices);
	/* Numbers that no device has: were they told apart by `n`, clang 18 would not unroll the loop. */
	__u32 known = n < LEDGER_DEVICES ? ~0U << n : 0;
	__u64 cost;

#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (PLACE_OF(p, i) < LEDGER_DEVICES)
			known |= 1U << PLACE_OF(p, i);
	t->candidates = 0;
#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		if (known & 1U << i)
			continue;
		t->candidates |= 1U << i;
		cost = context_cost(t->process, i);
		if (cost > t->reserved)
			t->reserved = cost;
	}
	t->size = t->reserved;
	return 0;
}

/** place_enter() - a context is asked for on a number that may be any device */
alone int place_enter(struct thread *t, __u32 ordinal)
{
	if (!t)
		return 0;
	t->ordinal = ordinal;
	place_await(t, PLACE_HINT, PLACE_HINT_NS);
	if (place_await(t, PLACE_TURN, PLACE_FOUND_NS) && !place_is_known(t->process, ordinal))
		place_find_candidates(t);
	return 0;
}

/** place_leave() - what place_enter() has begun comes to nothing */
static noinline int place_leave(struct thread *t)
{
	if (t->candidates)
		__sync_val_compare_and_swap(&PROCESS(t->process)->placing, t->ordinal + 1, 0);
	return 0;
}

/* Whether a tenant of the process has more of a device than it may. */
static noinline int place_is_beyond(struct thread *t, __u32 device)
{
	struct ledger_chain *chain = &PROCESS(t->process)->chain;

	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		struct ledger *l = &books[ledger_index(chain->tenants[i], device)];

		if (i < chain->n && READ_ONCE(l->current) > READ_ONCE(l->max))
			return 1;
	}
	return 0;
}

/* What the process had said of itself was not true. */
static noinline int place_elsewhere(struct thread *t, __u32 device)
{
	__u32 tenant = PROCESS(t->process)->chain.tenants[0];

	charge_force(t->process, device, t->reserved);
	if (!place_is_beyond(t, device) || TENANT(tenant)->on_failure == AUDIT_FAILURE_ALLOW)
		return 0;
	t->call_device = device;
	event_send(AUDIT_EVENT_ELSEWHERE, t, tenant, AUDIT_REASON_NONE, 0);
	bpf_send_signal(SIGKILL);
	return 0;
}

/* What was reserved on the candidates but @device is theirs no longer, or is left to be settled. */
static inlined int place_give_up_others(struct thread *t, __u32 device, int to_overhead)
{
#pragma unroll
	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		if (i == device || !(t->candidates & 1U << i))
			continue;
		if (to_overhead)
			charge_to_overhead(t->process, i, t->reserved);
		else
			charge_undo(t->process, i, t->reserved);
	}
	return 0;
}

/**
 * place_found() - the context was made: wait until the devices have told where, into t->call_device
 *
 * If they do not, it stays reserved on all candidates until the books are settled, and the likeliest is
 * taken for what the process allocates.
 */
alone int place_found(struct thread *t)
{
	__u32 device, known;

	if (!t)
		return 0;
	event_send(AUDIT_EVENT_PLACE, t, PROCESS(t->process)->chain.tenants[0], AUDIT_REASON_NONE,
		   0);
	known = place_await(t, PLACE_FOUND, PLACE_FOUND_NS);
	device = process_device_of(t->process, t->ordinal);
	place_give_up_others(t, device, /* to_overhead= */ !known);
	if (!known)
		event_send(AUDIT_EVENT_DEVICE_UNKNOWN, t, PROCESS(t->process)->chain.tenants[0],
			   AUDIT_REASON_NONE, 0);
	else if (!(t->candidates & 1U << (device & (LEDGER_DEVICES - 1))))
		place_elsewhere(t, device);
	t->call_device = device;
	t->candidates = 0;
	return 0;
}

#endif
