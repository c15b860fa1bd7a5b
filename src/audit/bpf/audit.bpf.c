// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs: entry and return of the audited calls, and the life and death of processes.
 *
 * A call that the driver makes inside another is not counted again: it is deeper on the same stack, and
 * the outer call's return address is still the kernel's. A call that never returned, because a handler
 * jumped out of it, is given back when the thread makes its next.
 */
#include "calls.h"
#include "launch.h"
#include "order.h"
#include "user.h"

#define THREAD_PAUSES 1024 /* some milliseconds */

char LICENSE[] SEC("license") = "GPL";

static noinline struct thread *thread_get(void)
{
	if (no_thread_records)
		return 0;
	return bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0,
				    BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static long thread_pause(_unused_ __u32 i, __u64 *sp)
{
	char byte;

	bpf_copy_from_user_task(&byte, 1, (void *)*sp, bpf_get_current_task_btf(), 0);
	return 0;
}

/* The kernel has no memory for a record of the thread, or somebody else is just having one made: once more. */
static noinline struct thread *thread_get_later(__u64 sp)
{
	bpf_loop(THREAD_PAUSES, thread_pause, &sp, 0);
	return thread_get();
}

static long linger(_unused_ __u32 i, _unused_ void *unused)
{
	return 0;
}

/*
 * While one generation takes over from another both are called at each hit of a probe, the newer first as
 * the kernel puts new programs before old ones. Should the take-over come in between, the newer has let
 * the hit pass already; it has left word of that, and the older one acts once more.
 */
static noinline int is_our_turn(struct thread *t, __u64 sp)
{
	__u32 now = READ_ONCE(control.generation);
	int passed_by_now = t->passed == now && t->passed_sp == sp;

	t->passed = 0;
	if (now < my_generation) {
		t->passed = my_generation;
		t->passed_sp = sp;
		bpf_loop(linger_rounds, linger, NULL, 0);
		return 0;
	}
	return now == my_generation || passed_by_now;
}

/* The record of the process of the call that the thread is in, if it is still the same process. */
static noinline int thread_process_lives(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);

	return READ_ONCE(p->serial) == t->serial && audit_process_tgid(p) != 0;
}

static noinline int call_abandoned(struct thread *t)
{
	t->active = 0;
	return thread_process_lives(t) ? call_abandon(t) : 0;
}

/* Where the kernel lets a call return to while a return probe is on it: the start of the page it keeps. */
static noinline __u64 return_page(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/*
 * Whether the call that the thread is in, as far as we know, goes on around one that begins at @sp.
 *
 * The kernel keeps a list of the returns that it waits for, but a call that a handler has jumped out of stays
 * on it as long as the thread is deeper on its stack; only the word where its return address was tells that
 * it is over. A tenant may write the kernel's address there again, and so have a call of his taken for one of
 * the driver's. He gains no more than who enters the driver behind the probe: it is what the second gate,
 * and the device's own numbers, are for.
 */
static noinline int call_is_around(struct thread *t, __u64 sp)
{
	return sp < t->sp && thread_process_lives(t) && user_read(t->sp, 8) == return_page();
}

static noinline int thread_note_call(struct thread *t, struct audit_regs *ctx, __u64 cookie)
{
	t->row = ROW_OF_COOKIE(cookie);
	t->ret_delta = RET_OF_COOKIE(cookie);
	t->sp = ctx->sp;
	t->arguments[0] = ctx->di;
	t->arguments[1] = ctx->si;
	t->arguments[2] = ctx->dx;
	t->arguments[3] = ctx->cx;
	t->arguments[4] = ctx->r8;
	t->arguments[5] = ctx->r9;
	return 0;
}

/* More processes than there are records: not one of them allocates uncounted unless its tenant may. */
static noinline int call_without_record(struct audit_regs *ctx, struct thread *t)
{
	if (ROW_AT(t->row)->action > ROW_GRAPH_INSTANTIATE)
		return 0;
	t->reason = AUDIT_REASON_NONE;
	t->call_device = t->size = 0;
	if (hold_failed(t, t->chain.tenants[0]) == CALL_ANSWER)
		answer_here(ctx, t->ret_delta);
	return 0;
}

/* By itself, as older verifiers lose the bound of a number that is used again later. */
alone int row_asks_for_memory(__u32 row)
{
	return ROW_AT(row)->action <= ROW_GRAPH_INSTANTIATE;
}

/* Who has a record was met before he got it, as long as he has not become another user. */
static noinline int process_is_met(int at)
{
	return at >= 0 && PROCESS(at)->user == (__u32)bpf_get_current_uid_gid();
}

/* And the daemon has nobody to ask. */
static noinline int user_may_be_stranger(struct thread *t)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return READ_ONCE(control.ask_users) && tgid != READ_ONCE(control.daemon) &&
	       !process_is_met(process_find_own(t, tgid));
}

/*
 * A process of a user whom nobody has met is charged to nobody before the daemon has said whose he is. Return:
 * whether the call goes on by what is known of it. One that the holder cannot have either is over here.
 */
static inlined int user_goes_on(struct audit_regs *ctx, struct thread *t)
{
	int verdict;

	if (!user_may_be_stranger(t))
		return 1;
	verdict = user_admit(t, row_asks_for_memory(t->row));
	if (verdict == CALL_RUN)
		return 1;
	if (verdict == CALL_WAIT)
		verdict = slot_hand_over(ctx, t);
	if (verdict == CALL_ANSWER)
		answer_here(ctx, t->ret_delta);
	return 0;
}

/*
 * Without a record of the thread nothing can be counted, held or answered by the holder. Both generations
 * of the programs may come by here, and say the same.
 */
static noinline int call_without_thread(struct audit_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct ledger_chain chain = {};
	__u32 failure;

	if (!row_asks_for_memory(ROW_OF_COOKIE(cookie)) || !chain_find(&chain))
		return 0;
	failure = TENANT(chain.tenants[0])->on_failure;
	if (failure == AUDIT_FAILURE_ALLOW)
		return event_send_plain(AUDIT_EVENT_FAILED_ALLOW, chain.tenants[0],
					ROW_OF_COOKIE(cookie));
	if (failure == AUDIT_FAILURE_DENY && can_write_context && RET_OF_COOKIE(cookie)) {
		answer_here(ctx, RET_OF_COOKIE(cookie));
		return event_send_plain(AUDIT_EVENT_FAILED_DENY, chain.tenants[0],
					ROW_OF_COOKIE(cookie));
	}
	event_send_plain(AUDIT_EVENT_FAILED_KILL, chain.tenants[0], ROW_OF_COOKIE(cookie));
	bpf_send_signal(SIGKILL);
	return 0;
}

SEC("uprobe.s")
int on_call(struct audit_regs *ctx)
{
	struct thread *t;
	int at;

	t = thread_get();
	if (!t)
		t = thread_get_later(ctx->sp);
	if (!t) {
		call_without_thread(ctx);
		return 0;
	}
	if (!is_our_turn(t, ctx->sp))
		return 0;
	if (t->active) {
		if (call_is_around(t, ctx->sp))
			return 0;
		call_abandoned(t);
	}
	t->asked = 0;
	thread_note_call(t, ctx, bpf_get_attach_cookie(ctx));
	if (!user_goes_on(ctx, t))
		return 0;
	at = process_get(t, ctx->sp);
	if (at == -2)
		call_without_record(ctx, t);
	if (at < 0)
		return 0;
	t->process = at;
	t->serial = PROCESS(at)->serial;
	if (!launch_gate(ctx, t))
		return 0;
	t->active = call_enter(ctx, t);
	return 0;
}

/* Attached to single processes, see launch.h. The cookie holds the row and the process' record of launches. */
SEC("uprobe.s")
int on_launch(struct audit_regs *ctx)
{
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct thread *t;
	int at;

	t = thread_get();
	if (!t || !is_our_turn(t, ctx->sp))
		return 0;
	if (t->active) {
		if (call_is_around(t, ctx->sp))
			return 0;
		call_abandoned(t);
	}
	t->asked = 0;
	at = process_get(t, ctx->sp);
	if (at < 0)
		return 0;
	t->process = at;
	t->serial = PROCESS(at)->serial;
	/* The process has called exec: these probes are of what it was before. */
	if (WORK(LAUNCH_WORK_OF_COOKIE(cookie))->serial != t->serial)
		return 0;
	thread_note_call(t, ctx, ROW_OF_COOKIE(cookie));
	t->scratch[LAUNCH_WORK] = LAUNCH_WORK_OF_COOKIE(cookie);
	launch_enter(ctx, t);
	return 0;
}

/* A call that was to be answered has run: count what it got, and say so. */
static noinline int call_ran(struct thread *t)
{
	t->asked = 0;
	event_send(AUDIT_EVENT_RAN, t, PROCESS(t->process)->chain.tenants[0], AUDIT_REASON_NONE, 0);
	return charge_force_call(t);
}

SEC("uretprobe.s")
int on_call_return(struct audit_regs *ctx)
{
	struct thread *t;

	t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!t || !is_our_turn(t, ctx->sp) || ctx->sp != t->sp + sizeof(__u64))
		return 0;
	if (t->asked && (__u32)ctx->ax == 0)
		call_ran(t);
	else if (!t->active)
		return 0;
	t->active = 0;
	if (thread_process_lives(t))
		call_leave(t, (__u32)ctx->ax);
	return 0;
}

/*
 * --- processes -----------------------------------------------------------------------------------
 *
 * What follows may be done twice over, by the programs of two generations, and is then done once. So there
 * is no asking whose turn it is, and no end or fork that both leave to the other.
 */

/* What a process had is gone. Where somebody is just changing its charge the engine sees to it. */
static noinline int process_gone(__u32 at, __u32 tgid)
{
	__u32 tenant = PROCESS(at)->chain.tenants[0];

	WRITE_ONCE(PROCESS(at)->ended, 1);
	if (!process_end(at, tgid))
		__sync_fetch_and_add(&control.n_unended, 1);
	return event_send_plain(AUDIT_EVENT_EXIT, tenant, 0);
}

/* Their ids may be a tenant's process' next. */
static noinline int official_gone(__u32 tgid)
{
	__sync_val_compare_and_swap(&control.daemon, tgid, 0);
	__sync_val_compare_and_swap(&control.holder, tgid, 0);
	return 0;
}

static inlined int thread_end(void)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);

	if (!t)
		return 0;
	if (t->active)
		call_abandoned(t);
	return slot_drop(t);
}

SEC("raw_tp/sched_process_exit")
int on_exit(_unused_ void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	int at;

	thread_end();
	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	official_gone(tgid);
	bpf_map_delete_elem(&trees, &tgid);
	at = process_find(tgid);
	if (at >= 0)
		process_gone(at, tgid);
	return 0;
}

/* The process stays, its memory and contexts do not. */
SEC("raw_tp/sched_process_exec")
int on_exec(_unused_ void *ctx)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct thread *t;
	int at;

	t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (t) {
		t->active = 0;
		t->n_contexts = 0;
	}
	at = process_find(tgid);
	if (at >= 0)
		process_gone(at, tgid);
	return 0;
}

/* Arguments: parent, child. What a process of a tree starts belongs to the tree. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *child = (void *)ctx->args[1];
	__u32 parent_tgid = bpf_get_current_pid_tgid() >> 32;
	__u32 child_tgid = BPF_CORE_READ(child, tgid);
	__u32 *tenant;

	if (parent_tgid == child_tgid)
		return 0;
	tenant = bpf_map_lookup_elem(&trees, &parent_tgid);
	if (tenant && bpf_map_update_elem(&trees, &child_tgid, tenant, BPF_ANY))
		__sync_fetch_and_add(&control.n_unfollowed, 1);
	return 0;
}

/* Arguments: cgroup, path, task. It may be a tenant's now; the watch looks at what it maps. */
SEC("raw_tp/cgroup_attach_task")
int on_cgroup_attach(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[2];
	__u32 n = __sync_fetch_and_add(&control.n_arrivals, 1);

	WRITE_ONCE(control.arrivals[n & (AUDIT_ARRIVALS - 1)],
		   (__u64)(n + 1) << 32 | (__u32)BPF_CORE_READ(task, tgid));
	return 0;
}

/*
 * Arguments: signal, info, task, group, result. A held thread is stopped by the holder and does not see
 * its signals; the holder lets it go, and it meets the probe again when it has taken them.
 */
SEC("raw_tp/signal_generate")
int on_signal(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[2];
	int at;

	if (!READ_ONCE(control.taken[AUDIT_TABLE_SLOTS]) ||
	    (__u32)ctx->args[4] != SEND_SIGNAL_DELIVERED)
		return 0;
	at = process_find(BPF_CORE_READ(task, tgid));
	if (at >= 0)
		wake_signal(at, ctx->args[3] ? AUDIT_SIGNALLED_ANY : BPF_CORE_READ(task, pid));
	return 0;
}

/* --- what user space orders ---------------------------------------------------------------------- */

SEC("syscall")
int on_order(_unused_ void *ctx)
{
	ORDER->result = order_carry_out();
	return 0;
}
