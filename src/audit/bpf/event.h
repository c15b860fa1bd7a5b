/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words to user space: events for the daemon, wakes for the holder process.
 *
 * Neither decides anything. The holder finds a slot whose wake was lost when it next looks over the
 * slots, and a tenant's events beyond its cap are counted, not sent, so that a flood does not push out
 * another tenant's.
 */
#ifndef AUDIT_BPF_EVENT_H
#define AUDIT_BPF_EVENT_H

#include "state.h"

#define EVENT_WINDOW_NS	 100000000ULL
#define EVENT_WINDOW_CAP 256

static inlined int event_within_cap(struct audit_tenant *tenant, __u64 now)
{
	__u64 window = now / EVENT_WINDOW_NS;

	if (tenant->events_window != window) {
		tenant->events_window = window;
		tenant->events_sent = 0;
	}
	return __sync_fetch_and_add(&tenant->events_sent, 1) < EVENT_WINDOW_CAP;
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
	e->left = ledger_left(&books[ledger_index(tenant, t->call_device)]);
	e->wait_ns = wait_ns;
	e->ticket = t->slot ? SLOT(t->slot - 1)->ticket : 0;
	bpf_ringbuf_submit(e, 0);
	return 0;
lost:
	__sync_fetch_and_add(&TENANT(tenant)->events_lost, 1);
	return 1;
}

alone int wake_send(__u32 kind, __u32 index, __u32 tgid, __u32 tid)
{
	struct audit_wake *w = bpf_ringbuf_reserve(&wakes, sizeof(*w), 0);

	if (!w) {
		__sync_fetch_and_add(&control.wakes_lost, 1);
		return 1;
	}
	w->kind = kind;
	w->index = index;
	w->tgid = tgid;
	w->tid = tid;
	bpf_ringbuf_submit(w, BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
