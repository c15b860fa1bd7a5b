/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users whom nobody has seen yet.
 *
 * Who is a member of a group the daemon finds out, in its own time; a user's first call would run without the
 * limits of his group meanwhile. Where groups have limits, a thread whose process has no record of this user yet
 * and whose user is no tenant has the daemon asked, and waits for its word: first here, for what a daemon takes. Where
 * there is none, a kernel before Linux 6.13 may not let one come as long as a thread is in here: it waits for
 * that when a program is put beside this one. So a call that allocates is given to the holder then, which lets
 * it go now and then to ask again. When the failure wait is over it is decided as one that nobody can hold
 * (hold_failed()), by what tenant 0 says for that. A call that allocates nothing goes on.
 *
 * In a user namespace the user is who made it, as for the chain (who.h): his ids there are without number, and
 * none of them is anybody's member.
 */
#ifndef AUDIT_BPF_USER_H
#define AUDIT_BPF_USER_H

#include "hold.h"

#define USER_ROUNDS   (1 << 23)
#define USER_ASKS     (1 << 20)
#define USER_AGAIN_NS 100000000ULL
#define USER_LOST_NS  10000000ULL /* an ask that was lost is sent again so soon */
#define USER_WAIT_NS                                                                               \
	1000000000ULL /* before the holder is to have it; one that allocates nothing waits no longer */
#define USER_LOOK_NS 10000000ULL /* and when it comes back to ask again */

/* What t->scratch holds meanwhile. */
enum user_scratch {
	USER_WHO,
	USER_DEADLINE,
	USER_AGAIN,    /* when he is asked for again */
	USER_ASKED_AT, /* where the last ask ends in the ring of events, 0 if it was lost */
	USER_KNOWN,    /* enum audit_met */
};

static noinline __u32 user_of_thread(void)
{
	__u32 maker = namespace_maker();

	return maker ? maker : (__u32)bpf_get_current_uid_gid();
}

/* How well a user is known: enum audit_met. Who is a tenant himself need not be met. */
static noinline __u32 user_known(__u32 who)
{
	__u32 *known = bpf_map_lookup_elem(&met, &who);

	if (bpf_map_lookup_elem(&users, &who))
		return AUDIT_MET;
	return known ? *known : AUDIT_MET_NOBODY;
}

static noinline int user_wait_is_over(struct thread *t)
{
	t->scratch[USER_KNOWN] = user_known(t->scratch[USER_WHO]);
	return t->scratch[USER_KNOWN] == AUDIT_MET ||
	       bpf_ktime_get_ns() > t->scratch[USER_DEADLINE] || task_is_dying();
}

static long user_round(__u32 i, struct thread **thread)
{
	struct thread *t = *thread;
	char byte;

	if (user_wait_is_over(t) || bpf_ktime_get_ns() > t->scratch[USER_AGAIN])
		return 1;
	if (i % YIELD_EVERY == 0)
		bpf_copy_from_user_task(&byte, 1, (void *)t->sp, bpf_get_current_task_btf(), 0);
	return 0;
}

/* One that no daemon has taken out of the ring is there for the next; more would only fill it. */
static noinline int user_ask(struct thread *t)
{
	if (bpf_ringbuf_query(&events, BPF_RB_CONS_POS) < t->scratch[USER_ASKED_AT])
		return 0;
	t->scratch[USER_ASKED_AT] =
		event_send(AUDIT_EVENT_STRANGER, t, WHOLE_DEVICE, AUDIT_REASON_NONE, 0)
			? 0
			: bpf_ringbuf_query(&events, BPF_RB_PROD_POS);
	return 0;
}

static long user_asks(_unused_ __u32 i, struct thread **thread)
{
	struct thread *t = *thread;

	user_ask(t);
	t->scratch[USER_AGAIN] =
		bpf_ktime_get_ns() + (t->scratch[USER_ASKED_AT] ? USER_AGAIN_NS : USER_LOST_NS);
	bpf_loop(USER_ROUNDS, user_round, thread, 0);
	return user_wait_is_over(t);
}

/* Have the daemon say whose member the thread's user is. Return: whether it has said so in @wait_ns. */
alone int user_await(struct thread *t, __u64 wait_ns)
{
	if (!t)
		return 0;
	t->size = t->scratch[USER_WHO] = user_of_thread();
	t->call_device = 0;
	t->scratch[USER_DEADLINE] = bpf_ktime_get_ns() + wait_ns;
	t->scratch[USER_ASKED_AT] = 0;
	bpf_loop(USER_ASKS, user_asks, &t, 0);
	return t->scratch[USER_KNOWN] == AUDIT_MET;
}

static noinline int user_note(__u32 who, __u32 known)
{
	return bpf_map_update_elem(&met, &who, &known, BPF_ANY);
}

/* It is decided without the daemon, which is told of him again (t->size). */
static noinline int user_is_late(struct thread *t)
{
	int verdict;

	slot_drop(t);
	user_note(t->size, AUDIT_MET_AWAITED);
	t->reason = AUDIT_REASON_USER;
	verdict = hold_failed(t, WHOLE_DEVICE);
	return verdict == CALL_FORCED ? CALL_RUN : verdict;
}

/* Give the thread to the holder, or wait on where there is none. */
static inlined int user_hold(struct thread *t, int own)
{
	struct audit_slot *slot;

	t->reason = AUDIT_REASON_USER;
	t->refused_by = WHOLE_DEVICE;
	t->reserved = 0;
	if (own < 0) {
		t->chain.n = 1;
		t->chain.tenants[0] = WHOLE_DEVICE;
		own = holder_is_there() ? slot_claim(t) : -1;
		if (own < 0)
			return user_await(t, READ_ONCE(control.failure_wait_ns)) ? CALL_RUN
										 : user_is_late(t);
		SLOT(own)->begin_ns -= USER_WAIT_NS;
	}
	slot = SLOT(own);
	slot->deadline_ns = bpf_ktime_get_ns() + USER_AGAIN_NS;
	slot_fill(slot, t, AUDIT_ASK_HOLD);
	return CALL_WAIT;
}

/* A call that allocates, and that the daemon has not decided on in the time that it mostly takes. */
static inlined int user_wait_on(struct thread *t, int own)
{
	__u64 wait = READ_ONCE(control.failure_wait_ns);

	if (task_is_dying())
		return CALL_IGNORE;
	if (own < 0 ? wait <= USER_WAIT_NS : bpf_ktime_get_ns() >= SLOT(own)->begin_ns + wait)
		return user_is_late(t);
	return user_hold(t, own);
}

static noinline __u64 user_first_wait(int own, int asks_for_memory)
{
	__u64 wait = READ_ONCE(control.failure_wait_ns);

	if (own >= 0)
		return USER_LOOK_NS;
	return asks_for_memory && wait < USER_WAIT_NS ? wait : USER_WAIT_NS;
}

/* How well he has to be known for a call to go on: nobody waits in vain again where that changes nothing. */
static noinline __u32 user_wanted(int asks_for_memory)
{
	if (!asks_for_memory)
		return AUDIT_MET_ASKED;
	return TENANT(WHOLE_DEVICE)->on_failure == AUDIT_FAILURE_ALLOW ? AUDIT_MET_AWAITED
								       : AUDIT_MET;
}

/**
 * user_admit() - a call of a process that has no record
 *
 * Return: enum verdict; CALL_WAIT: the holder is to have the thread.
 */
alone int user_admit(struct thread *t, int asks_for_memory)
{
	int own;

	if (!t)
		return CALL_RUN;
	if (user_known(user_of_thread()) >= user_wanted(asks_for_memory)) {
		slot_drop(t);
		return CALL_RUN;
	}
	own = t->slot ? slot_own(t) : -1;
	if (user_await(t, user_first_wait(own, asks_for_memory))) {
		slot_drop(t);
		return CALL_RUN;
	}
	if (asks_for_memory)
		return user_wait_on(t, own);
	user_note(t->size, AUDIT_MET_ASKED);
	return CALL_RUN;
}

#endif
