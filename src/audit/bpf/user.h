/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Users whom nobody has seen yet.
 *
 * Who is a member of a group the daemon finds out, in its own time; a user's first call would run without the
 * limits of his group meanwhile. Where groups have limits, a thread of a user who is no tenant yet has the
 * daemon asked, once, and waits for its word.
 */
#ifndef AUDIT_BPF_USER_H
#define AUDIT_BPF_USER_H

#include "hold.h"

#define USER_ROUNDS  (1 << 23)
#define USER_WAIT_NS 1000000000ULL

/* What t->scratch holds meanwhile. */
enum user_scratch {
	USER_DEADLINE,
	USER_OVER,
};

static noinline int user_is_met(void)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();

	return bpf_map_lookup_elem(&users, &uid) || bpf_map_lookup_elem(&met, &uid);
}

static long user_round(__u32 i, struct thread **thread)
{
	struct thread *t = *thread;
	char byte;

	t->scratch[USER_OVER] = user_is_met();
	if (t->scratch[USER_OVER] || bpf_ktime_get_ns() > t->scratch[USER_DEADLINE] ||
	    task_is_dying())
		return 1;
	if (i % YIELD_EVERY == 0)
		bpf_copy_from_user_task(&byte, 1, (void *)t->sp, bpf_get_current_task_btf(), 0);
	return 0;
}

/** user_await() - have the daemon say whose member the thread's user is. Return: whether it was asked and has said so */
alone int user_await(struct thread *t)
{
	__u32 uid = (__u32)bpf_get_current_uid_gid();

	if (!t || !READ_ONCE(control.ask_users) || user_is_met())
		return 0;
	t->size = uid;
	t->call_device = 0;
	t->scratch[USER_DEADLINE] = bpf_ktime_get_ns() + USER_WAIT_NS;
	event_send(AUDIT_EVENT_STRANGER, t, WHOLE_DEVICE, AUDIT_REASON_NONE, 0);
	bpf_loop(USER_ROUNDS, user_round, &t, 0);
	/* No daemon: his calls do not wait again and again. The next one forgets whom it has not met itself. */
	if (!t->scratch[USER_OVER])
		bpf_map_update_elem(&met, &uid, &uid, BPF_ANY);
	return t->scratch[USER_OVER];
}

#endif
