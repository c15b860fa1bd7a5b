/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words to user space: events for the daemon, wakes for the holder process.
 *
 * Neither decides anything. A tenant's events beyond its cap are counted, not sent, so that a flood does
 * not push out another tenant's; when many flood at once, and the ring fills up, the cap is lower. Of
 * wakes there is room for all that there can be, as none is sent for what the holder is told already; a
 * holder that does not read finds the slots when it looks over them.
 */
#ifndef AUDIT_BPF_EVENT_H
#define AUDIT_BPF_EVENT_H

#include "state.h"

#define EVENT_WINDOW_CAP 256
#define EVENT_WINDOW_LOW 16 /* the cap while the ring is half full */

static inlined int event_within_cap(struct audit_tenant *tenant, __u64 now)
{
	__u32 cap = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < AUDIT_EVENTS_SIZE / 2
			    ? EVENT_WINDOW_CAP
			    : EVENT_WINDOW_LOW;
	__u64 window = now / AUDIT_EVENT_WINDOW_NS;

	if (tenant->events_window != window) {
		tenant->events_window = window;
		tenant->events_sent = 0;
	}
	return __sync_fetch_and_add(&tenant->events_sent, 1) < cap;
}

/**
 * event_send() - tell the daemon about the call that a thread is in
 * @kind:	enum audit_event_kind
 * @t:		the thread, for the size, device and row
 * @tenant:	whom it is about
 */
alone int event_send(__u32 kind, struct thread *t, __u32 tenant, __u32 reason, __u64 wait_ns)
{
	__u64 now = bpf_ktime_get_ns();
	struct audit_event *e;

	if (!t)
		return 0;
	if (!event_within_cap(TENANT(tenant), now))
		goto lost;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e)
		goto lost;
	e->kind = kind;
	e->tgid = bpf_get_current_pid_tgid() >> 32;
	e->tid = (__u32)bpf_get_current_pid_tgid();
	e->tenant = tenant;
	e->device = t->call_device;
	e->row = t->row;
	e->reason = reason;
	e->code = 0;
	e->time_ns = now;
	e->size = t->size;
	e->left = ledger_left(&books[ledger_index(
		reason == AUDIT_REASON_DEVICE ? WHOLE_DEVICE : tenant, t->call_device)]);
	e->wait_ns = wait_ns;
	e->ticket = t->slot ? SLOT(t->slot - 1)->ticket : 0;
	bpf_ringbuf_submit(e, 0);
	return 0;
lost:
	__sync_fetch_and_add(&TENANT(tenant)->events_lost, 1);
	return 1;
}

/**
 * event_send_plain() - tell the daemon of a process, or of a call that no record of a thread tells of
 *
 * Return: whether it was told.
 */
alone int event_send_plain(__u32 kind, __u32 tenant, __u32 row)
{
	__u64 now = bpf_ktime_get_ns();
	struct audit_event *e;

	e = event_within_cap(TENANT(tenant), now) ? bpf_ringbuf_reserve(&events, sizeof(*e), 0) : 0;
	if (!e) {
		__sync_fetch_and_add(&TENANT(tenant)->events_lost, 1);
		return 0;
	}
	__builtin_memset(e, 0, sizeof(*e));
	e->kind = kind;
	e->tgid = bpf_get_current_pid_tgid() >> 32;
	e->tid = (__u32)bpf_get_current_pid_tgid();
	e->tenant = tenant;
	e->row = row;
	e->time_ns = now;
	bpf_ringbuf_submit(e, 0);
	return 1;
}

alone int wake_send(__u32 kind, __u32 index)
{
	struct audit_wake *w = bpf_ringbuf_reserve(&wakes, sizeof(*w), 0);

	if (!w) {
		__sync_fetch_and_add(&control.wakes_lost, 1);
		return 1;
	}
	w->kind = kind;
	w->index = index;
	w->cpu = bpf_get_smp_processor_id();
	bpf_ringbuf_submit(w, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/** wake_freed() - memory was freed; the holder looks who may have it, if anybody waits */
static inlined void wake_freed(void)
{
	if (READ_ONCE(control.taken[AUDIT_TABLE_SLOTS]) && !READ_ONCE(control.freed) &&
	    !__sync_lock_test_and_set(&control.freed, 1) && wake_send(AUDIT_WAKE_FREED, 0))
		WRITE_ONCE(control.freed, 0);
}

/** wake_signal() - a signal came for a thread of a process, or (AUDIT_SIGNALLED_ANY) for all of them */
static inlined void wake_signal(__u32 process, __u32 tid)
{
	__u32 *signalled = &PROCESS(process)->signalled;
	__u32 was = __sync_val_compare_and_swap(signalled, AUDIT_SIGNALLED_NONE, tid);

	if (was && was != tid)
		was = __sync_lock_test_and_set(signalled, AUDIT_SIGNALLED_ANY);
	if (was == AUDIT_SIGNALLED_NONE && wake_send(AUDIT_WAKE_SIGNAL, process))
		WRITE_ONCE(*signalled, AUDIT_SIGNALLED_NONE);
}

#endif
