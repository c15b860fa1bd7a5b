/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls that may not run now: answered here where the kernel lets a program write registers, else handed
 * to the holder process.
 *
 *	program				holder
 *	claim a slot, fill it in
 *	WAITING, wake ----------------> seize and interrupt the thread
 *	wait, yielding			STOPPING
 *	return <-----------------------'
 *	(stopped on the way to user space)
 *					answer: set the result, continue at a `ret`, FREE
 *					hold: registers as at entry, HELD ... TURN, let go
 *	meets the probe again
 *
 * A thread that is let go for a signal before its turn (RELEASED) is held again when it has taken it: what
 * it asks for may fit, and those before it in the queue would wait behind it.
 *
 * The wait yields in bpf_copy_from_user_task(), the only thing a program may call that gives up the CPU;
 * without it a kernel without preemption never runs the holder on this CPU. One bpf_loop() ends after some
 * eight million rounds, less than a second, so there are two, one inside the other.
 */
#ifndef AUDIT_BPF_HOLD_H
#define AUDIT_BPF_HOLD_H

#include "charge.h"

#define HOLD_ROUNDS	 (1 << 20)
#define SETTLE_ROUNDS	 (1 << 23)
#define HOLDER_SILENT_NS 5000000000ULL /* it says every 100 ms that it is there, if it runs */
#define WRITE_WAIT_NS	 1000000000ULL
#define LAUNCH_WAIT_NS	 1000000000ULL /* a launch waits for the holder no longer */
#define SETTLE_WAIT_NS                                                                             \
	1000000000ULL /* and a call that may fit after all for the daemon no longer */
#define CODE_OUT_OF_MEMORY 2

/* What is to be done with a call. */
enum verdict {
	CALL_IGNORE, /* it does not run, or its return is of no interest */
	CALL_RUN,    /* what it asks for is reserved */
	CALL_ANSWER, /* the program answers it */
	CALL_WAIT,   /* the holder is to hold or answer it */
	CALL_FORCED, /* it runs although it does not fit */
};

struct hold_wait {
	__u64 deadline;
	__u64 sp;
	__u32 slot;
	__u32 over; /* 1 the holder has taken over, 2 nobody has in time, 3 the thread is being killed */
};

static noinline int task_is_dying(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, pending.signal.sig[0]) >> (SIGKILL - 1) & 1;
}

static inlined int hold_look(struct hold_wait *w)
{
	struct audit_slot *slot = SLOT(w->slot);

	if (READ_ONCE(slot->state) != AUDIT_SLOT_WAITING)
		w->over = 1;
	else if (bpf_ktime_get_ns() > w->deadline)
		w->over = 2;
	return w->over != 0;
}

static long hold_round(__u32 i, struct hold_wait *w)
{
	char byte;

	if (hold_look(w))
		return 1;
	if (i % YIELD_EVERY)
		return 0;
	if (task_is_dying()) {
		w->over = 3;
		return 1;
	}
	bpf_copy_from_user_task(&byte, 1, (void *)w->sp, bpf_get_current_task_btf(), 0);
	return 0;
}

static long hold_rounds(_unused_ __u32 i, struct hold_wait *w)
{
	bpf_loop(HOLD_ROUNDS, hold_round, w, 0);
	return w->over != 0;
}

alone int slot_wait(__u32 slot, __u64 wait_ns, __u64 sp)
{
	struct hold_wait w = { .slot = slot, .sp = sp };

	w.deadline = bpf_ktime_get_ns() + wait_ns;
	bpf_loop(HOLD_ROUNDS, hold_rounds, &w, 0);
	return w.over;
}

alone int holder_is_there(void)
{
	__u64 seen = READ_ONCE(control.heartbeat_ns);

	return READ_ONCE(control.holder) && bpf_ktime_get_ns() < seen + HOLDER_SILENT_NS;
}

/** slot_free() - give up a slot, if it is still in @was */
alone int slot_free(__u32 at, __u32 was)
{
	return audit_slot_end(&state, at, was);
}

static noinline int slot_drop(struct thread *t)
{
	struct audit_slot *slot = SLOT(t->slot - 1);

	if (t->slot && slot->tid == (__u32)bpf_get_current_pid_tgid())
		slot_free(t->slot - 1, READ_ONCE(slot->state));
	t->slot = 0;
	return 0;
}

/*
 * The slot in which this thread waited before it was let go, if it still has one. A thread that runs is
 * not held, whatever its slot says: the holder that wrote that is dead.
 */
static noinline int slot_own(struct thread *t)
{
	struct audit_slot *slot;

	if (!t->slot)
		return -1;
	slot = SLOT(t->slot - 1);
	if (slot->tid != (__u32)bpf_get_current_pid_tgid()) {
		t->slot = 0;
		return -1;
	}
	/* Left by a call that never came back here: a handler jumped out of it. */
	if (slot->row != t->row || slot->regs.sp != t->sp) {
		slot_drop(t);
		return -1;
	}
	if (READ_ONCE(slot->state) != AUDIT_SLOT_TURN)
		WRITE_ONCE(slot->state, AUDIT_SLOT_RELEASED);
	return t->slot - 1;
}

struct slot_claim {
	__u32 at;
	__u32 done;
};

static long slot_try(_unused_ __u32 i, struct slot_claim *claim)
{
	claim->at = (claim->at + 1) & (AUDIT_SLOTS - 1);
	claim->done = __sync_val_compare_and_swap(&SLOT(claim->at)->state, AUDIT_SLOT_FREE,
						  AUDIT_SLOT_CLAIMED) == AUDIT_SLOT_FREE;
	return claim->done;
}

/** slot_claim() - a slot for the current thread, its number + 1 in t->slot. Return: its number, or -1 */
alone int slot_claim(struct thread *t)
{
	__u32 random = READ_ONCE(control.next_ticket) * WHO_SPREAD;
	struct slot_claim claim = { .at = blocks_start(&state, AUDIT_TABLE_SLOTS, random) };
	struct audit_slot *slot;

	if (!t)
		return -1;
	slot_drop(t);
	/* Who is not known has no record to say whose room it is. */
	if (t->reason != AUDIT_REASON_USER)
		t->chain = PROCESS(t->process)->chain;
	if (!room_is_left(&state, &t->chain, AUDIT_TABLE_SLOTS))
		return -1;
	bpf_loop(AUDIT_SLOTS, slot_try, &claim, 0);
	if (!claim.done)
		return -1;
	slot = SLOT(claim.at);
	block_use(&state, AUDIT_TABLE_SLOTS, claim.at);
	slot->counted = t->chain;
	room_count(&state, &slot->counted, AUDIT_TABLE_SLOTS, 1);
	slot->process = t->process;
	slot->tid = (__u32)bpf_get_current_pid_tgid();
	slot->tgid = bpf_get_current_pid_tgid() >> 32;
	slot->failed = 0;
	slot->ticket = __sync_fetch_and_add(&control.next_ticket, 1) + 1;
	slot->begin_ns = bpf_ktime_get_ns();
	slot->deadline_ns = 0;
	t->slot = claim.at + 1;
	return claim.at;
}

/* Enter what the call asks for; place in the queue and deadline of an earlier round stay. */
static noinline int slot_fill(struct audit_slot *slot, struct thread *t, __u32 ask)
{
	slot->ask = ask;
	slot->reason = t->reason;
	slot->tenant = t->refused_by;
	slot->device = t->call_device;
	slot->row = t->row;
	slot->size = t->reserved;
	slot->answer = CODE_OUT_OF_MEMORY;
	slot->ret_delta = t->ret_delta;
	slot->chain = t->reason == AUDIT_REASON_USER ? t->chain : PROCESS(t->process)->chain;
	return 0;
}

/** hold_failed() - nobody could hold or answer the call of a thread of this tenant */
alone int hold_failed(struct thread *t, __u32 tenant)
{
	if (!t)
		return CALL_IGNORE;
	if (t->reason == AUDIT_REASON_COMPUTE || t->reason == AUDIT_REASON_PROBES)
		return CALL_FORCED;
	if (TENANT(tenant)->on_failure == AUDIT_FAILURE_ALLOW) {
		event_send(AUDIT_EVENT_FAILED_ALLOW, t, tenant, AUDIT_REASON_NONE, 0);
		return CALL_FORCED;
	}
	if (TENANT(tenant)->on_failure == AUDIT_FAILURE_DENY && can_write_context && t->ret_delta) {
		event_send(AUDIT_EVENT_FAILED_DENY, t, tenant, AUDIT_REASON_NONE, 0);
		return CALL_ANSWER;
	}
	event_send(AUDIT_EVENT_FAILED_KILL, t, tenant, AUDIT_REASON_NONE, 0);
	bpf_send_signal(SIGKILL);
	return CALL_IGNORE;
}

/* Wait until the holder has the thread's slot, which is filled in. */
alone int slot_await_holder(struct thread *t)
{
	struct audit_slot *slot;
	__u32 at, tenant;
	int over;

	if (!t)
		return CALL_IGNORE;
	at = t->slot - 1;
	slot = SLOT(at);
	slot->return_address = 0;
	bpf_copy_from_user(&slot->return_address, sizeof(slot->return_address), (void *)t->sp);
	t->asked = slot->ask == AUDIT_ASK_ANSWER;
	WRITE_ONCE(slot->state, AUDIT_SLOT_WAITING);
	wake_send(AUDIT_WAKE_SLOT, at);
	over = slot_wait(at,
			 t->reason == AUDIT_REASON_COMPUTE ? LAUNCH_WAIT_NS
							   : READ_ONCE(control.failure_wait_ns),
			 t->sp);
	/* Before it is free: then it may be another's. */
	tenant = slot->chain.tenants[0];
	/* The holder may come just when the wait is over: then the slot is its own. */
	if (over == 1 || !slot_free(at, AUDIT_SLOT_WAITING))
		return CALL_IGNORE;
	t->slot = 0;
	t->asked = 0;
	return over == 3 ? CALL_IGNORE : hold_failed(t, tenant);
}

/** slot_hand_over() - give the thread's slot to the holder and wait until it has it */
static noinline int slot_hand_over(struct audit_regs *ctx, struct thread *t)
{
	bpf_probe_read_kernel(&SLOT(t->slot - 1)->regs, sizeof(struct audit_regs), ctx);
	return slot_await_holder(t);
}

/* Whom a refusal is about: where the device is full, that is who asks. */
static inlined __u32 tenant_concerned(struct thread *t)
{
	return t->refused_by == WHOLE_DEVICE ? PROCESS(t->process)->chain.tenants[0]
					     : t->refused_by;
}

static noinline __u64 hold_wait_of(struct thread *t)
{
	__u64 wait_max = TENANT(tenant_concerned(t))->wait_max_ns;
	__u64 wait_low = TENANT(PROCESS(t->process)->chain.tenants[0])->wait_low_ns;

	if (t->reason == AUDIT_REASON_MAX)
		return wait_max;
	if (t->reason == AUDIT_REASON_DEVICE)
		return charge_has_request(&PROCESS(t->process)->chain, t->call_device) ? wait_low
										       : wait_max;
	return wait_max > wait_low ? wait_max : wait_low;
}

static inlined __u64 deadline_of(__u64 begin, __u64 wait_ns)
{
	return wait_ns > ~begin ? ~0ULL : begin + wait_ns;
}

static noinline int refused(struct thread *t, __u64 waited_ns)
{
	__u32 tenant = tenant_concerned(t);

	__sync_fetch_and_add(&books[ledger_index(tenant, t->call_device)].n_refused, 1);
	return event_send(AUDIT_EVENT_REFUSED, t, tenant, t->reason, waited_ns);
}

static noinline int hold_begins(struct audit_slot *slot, struct thread *t, __u64 wait_ns)
{
	__u32 tenant = tenant_concerned(t);

	slot->deadline_ns = deadline_of(slot->begin_ns, wait_ns);
	if (t->reason == AUDIT_REASON_NONE)
		return 0;
	__sync_fetch_and_add(&books[ledger_index(tenant, t->call_device)].n_held, 1);
	return event_send(AUDIT_EVENT_INSUFFICIENT, t, tenant, t->reason, wait_ns);
}

/* The call has waited long enough, or there is nothing to wait for. */
static noinline int hold_is_over(struct audit_slot *slot, struct thread *t, __u64 wait_ns)
{
	if (t->reason == AUDIT_REASON_NONE)
		return 0;
	return !wait_ns || bpf_ktime_get_ns() >= slot->deadline_ns;
}

/**
 * hold_or_answer() - the call may not run now, for t->reason
 * @own:	slot in which it has waited before, or -1
 * @never:	it could not run however long it waited
 */
alone int hold_or_answer(struct thread *t, int own, int never)
{
	struct audit_slot *slot;
	__u64 wait_ns;
	int over;

	if (!t)
		return CALL_IGNORE;
	wait_ns = never ? 0 : hold_wait_of(t);
	if (own < 0 && can_write_context && t->ret_delta &&
	    ((!wait_ns && t->reason != AUDIT_REASON_NONE) || !holder_is_there())) {
		event_send(AUDIT_EVENT_INSUFFICIENT, t, tenant_concerned(t), t->reason, 0);
		refused(t, 0);
		return CALL_ANSWER;
	}
	if (own < 0)
		own = slot_claim(t);
	if (own < 0)
		return hold_failed(t, PROCESS(t->process)->chain.tenants[0]);
	slot = SLOT(own);
	if (!slot->deadline_ns)
		hold_begins(slot, t, wait_ns);
	over = hold_is_over(slot, t, wait_ns);
	if (over)
		refused(t, bpf_ktime_get_ns() - slot->begin_ns);
	slot_fill(slot, t, over ? AUDIT_ASK_ANSWER : AUDIT_ASK_HOLD);
	return CALL_WAIT;
}

/* Whether others wait already for memory that this call would take before them; what never fits takes none. */
static noinline int queue_is_ahead(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);
	__u32 at;

	if (!READ_ONCE(control.taken[AUDIT_TABLE_SLOTS]) || !t->reserved)
		return 0;
	if (ledger_chain_fits(books, &p->chain, t->call_device, t->reserved, &at) == LEDGER_E_NEVER)
		return 0;
	t->reason = AUDIT_REASON_QUEUE;
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		if (i >= p->chain.n)
			break;
		t->refused_by = p->chain.tenants[i];
		if (READ_ONCE(books[ledger_index(t->refused_by, t->call_device)].n_queued))
			return holder_is_there() && hold_wait_of(t);
	}
	t->refused_by = WHOLE_DEVICE;
	return READ_ONCE(books[ledger_index(WHOLE_DEVICE, t->call_device)].n_queued) &&
	       charge_is_bounded(&p->chain, t->call_device) && holder_is_there() && hold_wait_of(t);
}

static noinline int admitted(struct thread *t, int own)
{
	struct audit_slot *slot = SLOT(own);
	__u64 waited = bpf_ktime_get_ns() - slot->begin_ns;

	if (slot->reason != AUDIT_REASON_NONE)
		event_send(AUDIT_EVENT_ADMITTED, t, slot->counted.tenants[0], slot->reason, waited);
	slot_free(own, AUDIT_SLOT_RELEASED);
	t->slot = 0;
	return CALL_RUN;
}

/* What t->scratch holds meanwhile. */
enum settle_scratch {
	SETTLE_WANTED,
	SETTLE_DEADLINE,
	SETTLE_OVER,
};

static long settle_round(__u32 i, struct thread **thread)
{
	struct thread *t = *thread;
	char byte;

	t->scratch[SETTLE_OVER] = READ_ONCE(control.settled) >= t->scratch[SETTLE_WANTED];
	if (t->scratch[SETTLE_OVER] || bpf_ktime_get_ns() > t->scratch[SETTLE_DEADLINE] ||
	    task_is_dying())
		return 1;
	if (i % YIELD_EVERY == 0)
		bpf_copy_from_user_task(&byte, 1, (void *)t->sp, bpf_get_current_task_btf(), 0);
	return 0;
}

/** settle_await() - have the books settled by what the devices say now. Return: whether they were, in time */
alone int settle_await(struct thread *t)
{
	if (!t)
		return 0;
	t->scratch[SETTLE_WANTED] = __sync_fetch_and_add(&control.settle_wanted, 1) + 1;
	t->scratch[SETTLE_DEADLINE] = bpf_ktime_get_ns() + SETTLE_WAIT_NS;
	event_send(AUDIT_EVENT_SETTLE, t, PROCESS(t->process)->chain.tenants[0], AUDIT_REASON_NONE,
		   0);
	bpf_loop(SETTLE_ROUNDS, settle_round, &t, 0);
	return t->scratch[SETTLE_OVER];
}

/* What was given back may be gone from the device by now, and only the device can tell. */
static inlined int reserve_after_settling(struct thread *t)
{
	if (!READ_ONCE(TENANT(t->refused_by)->may_shrink) || !settle_await(t))
		return LEDGER_E_OVER;
	return charge_reserve(t);
}

/* Whether the holder has let the thread go to be decided. */
static noinline int slot_has_turn(int own)
{
	return __sync_lock_test_and_set(&SLOT(own)->state, AUDIT_SLOT_RELEASED) == AUDIT_SLOT_TURN;
}

static noinline int hold_goes_on(struct thread *t, int own)
{
	t->reason = SLOT(own)->reason;
	t->refused_by = SLOT(own)->tenant;
	return hold_or_answer(t, own, /* never= */ 0);
}

/* Whether the call has waited long enough for user space to tell which device it means. */
static noinline int nobody_hints(struct thread *t, int own)
{
	return t->candidates && own >= 0 &&
	       bpf_ktime_get_ns() - SLOT(own)->begin_ns > READ_ONCE(control.failure_wait_ns);
}

/** admit() - decide on a call that asks for t->reserved bytes of t->call_device. Return: enum verdict */
alone int admit(struct thread *t)
{
	int own, r;

	if (!t)
		return CALL_IGNORE;
	own = slot_own(t);
	if (own < 0 && queue_is_ahead(t))
		return hold_or_answer(t, own, /* never= */ 0);
	if (own >= 0 && !slot_has_turn(own) && holder_is_there())
		return hold_goes_on(t, own);
	r = charge_reserve(t);
	if (r == LEDGER_E_OVER && own < 0)
		r = reserve_after_settling(t);
	if (r == 0)
		return own >= 0 ? admitted(t, own) : CALL_RUN;
	if (r == LEDGER_E_BUSY && nobody_hints(t, own))
		r = LEDGER_E_OVER;
	if (r == LEDGER_E_BUSY)
		t->reason = AUDIT_REASON_NONE;
	else
		t->reason = t->refused_by == WHOLE_DEVICE ? AUDIT_REASON_DEVICE : AUDIT_REASON_MAX;
	return hold_or_answer(t, own, r == LEDGER_E_NEVER);
}

/*
 * A holder that does not come is no reason to keep the thread: the process then reads the device's own
 * numbers.
 */
static inlined int write_by_holder(struct thread *t, __u32 width)
{
	struct audit_slot *slot;
	int at;

	if (!holder_is_there())
		return 0;
	at = slot_claim(t);
	if (at < 0)
		return 0;
	slot = SLOT(at);
	slot->ask = AUDIT_ASK_WRITE;
	slot->width = width;
	for (int i = 0; i < AUDIT_WRITES; i++) {
		slot->addresses[i] = t->scratch[i];
		slot->values[i] = t->scratch[AUDIT_WRITES + i];
	}
	WRITE_ONCE(slot->state, AUDIT_SLOT_WAITING);
	wake_send(AUDIT_WAKE_SLOT, at);
	slot_wait(at, WRITE_WAIT_NS, t->sp);
	slot_free(at, AUDIT_SLOT_WAITING);
	t->slot = 0;
	return 0;
}

/**
 * write_results() - write over what a call has returned
 *
 * t->scratch holds AUDIT_WRITES addresses, 0 for none, and then as many values.
 */
alone int write_results(struct thread *t, __u32 width)
{
	if (!t)
		return 0;
	if (!can_write_user)
		return write_by_holder(t, width);
	for (int i = 0; i < AUDIT_WRITES; i++)
		if (t->scratch[i])
			bpf_probe_write_user((void *)t->scratch[i], &t->scratch[AUDIT_WRITES + i],
					     width == 4 ? 4 : 8);
	return 0;
}

#endif
