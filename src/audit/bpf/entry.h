/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entry of a call: how much it asks for and of which device, and whether it may have that.
 *
 * What else its return needs from here is in the thread's record.
 */
#ifndef AUDIT_BPF_ENTRY_H
#define AUDIT_BPF_ENTRY_H

#include "pool.h"

#define LOCATION_DEVICE 1

static inlined __u64 argument(struct thread *t, const struct row *row, __u32 i)
{
	__u64 value = ARGUMENT(t, i);

	return row->flags & ROW_NARROW ? (__u32)value : value;
}

static inlined __u32 width_of(const struct row *row)
{
	return row->flags & ROW_NARROW ? 4 : 8;
}

static noinline int enter_physical(struct thread *t, const struct row *row)
{
	__u32 *location = (__u32 *)t->scratch;

	t->scratch[0] = 0;
	bpf_copy_from_user(t->scratch, 8, (void *)(ARGUMENT(t, row->c) + 8));
	if (location[0] != LOCATION_DEVICE)
		return 0;
	t->call_device = process_device_of(t->process, location[1]);
	t->size = t->reserved = ARGUMENT(t, row->a);
	return 0;
}

/* The first context on a device costs memory that no argument tells: what others were seen to cost, until settled. */
static noinline int enter_context(struct thread *t, const struct row *row)
{
	__u32 ordinal = ARGUMENT(t, row->a), device;

	if (place_is_open(t, ordinal) && !object_find(t, OBJECT_CONTEXT, ordinal))
		place_enter(t, ordinal);
	device = process_device_of(t->process, ordinal);
	t->call_device = device;
	if (t->candidates)
		return 0;
	if (READ_ONCE(PROCESS(t->process)->n_contexts[device & (LEDGER_DEVICES - 1)]) == 0)
		t->size = t->reserved = context_cost(t->process, device);
	return 0;
}

static noinline int enter_array(struct thread *t, const struct row *row)
{
	__u32 levels = row->action == ROW_ARRAY_MIPMAPPED ? ARGUMENT(t, row->c) : 1;

	array_read(t, ARGUMENT(t, row->a), row->action != ROW_ARRAY_2D, row->flags & ROW_NARROW);
	t->size = t->reserved = array_bytes(t, levels);
	return 0;
}

/* How much an allocating call asks for, and of which device. */
alone int enter_sizes(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	t->size = t->reserved = t->pool = t->credit = 0;
	t->candidates = t->grows = 0;
	switch (row->action) {
	case ROW_ALLOCATE:
		t->size = t->reserved = argument(t, row, row->a);
		break;
	case ROW_ALLOCATE_PITCH:
		t->size = t->reserved = argument(t, row, row->c - 1) * argument(t, row, row->c);
		break;
	case ROW_ALLOCATE_ASYNC:
		t->size = ARGUMENT(t, row->a);
		pool_enter(t, pool_current(t), stream_of(ARGUMENT(t, row->c), row->flags));
		break;
	case ROW_ALLOCATE_FROM_POOL:
		t->size = ARGUMENT(t, row->a);
		pool_enter(t, ARGUMENT(t, row->c - 1), stream_of(ARGUMENT(t, row->c), row->flags));
		break;
	case ROW_PHYSICAL_CREATE:
		enter_physical(t, row);
		break;
	case ROW_CONTEXT_CREATE:
	case ROW_PRIMARY_RETAIN:
	case ROW_GREEN_CREATE:
		enter_context(t, row);
		break;
	case ROW_GRAPH_INSTANTIATE:
		graph_enter(t, ARGUMENT(t, row->a));
		break;
	default:
		enter_array(t, row);
	}
	return 0;
}

/* What an entry did beside reserving is undone: the call does not run, or has failed. */
alone int allocation_undo(struct thread *t)
{
	if (!t)
		return 0;
	if (t->credit)
		credit_undo(t);
	return place_leave(t);
}

static noinline int enter_free(struct thread *t, const struct row *row)
{
	__u32 kind = row->action == ROW_FREE_ARRAY ? OBJECT_ARRAY : OBJECT_MEMORY;

	if (!object_take(t, kind, argument(t, row, row->a)))
		return 0;
	__sync_fetch_and_add(PENDING(PROCESS(t->process), t->object.device), t->object.size);
	return 1;
}

/* The free has ended, whichever way. */
static noinline int free_over(struct thread *t)
{
	bytes_take(PENDING(PROCESS(t->process), t->object.device), t->object.size);
	return 0;
}

static noinline int enter_allocation(struct thread *t)
{
	int verdict;

	enter_sizes(t);
	verdict = admit(t);
	if (verdict != CALL_RUN)
		allocation_undo(t);
	return verdict;
}

/* The call runs though it does not fit: it counts all the same. */
static noinline int enter_forced(struct thread *t)
{
	enter_sizes(t);
	charge_force_call(t);
	return CALL_RUN;
}

/* Answer in the program. The way leads over a `ret` of the same code; the stack is not touched. */
static inlined void answer_here(struct audit_regs *ctx, __s32 ret_delta)
{
	if (!can_write_context)
		return;
	ctx->ax = CODE_OUT_OF_MEMORY;
	ctx->ip = ctx->ip + ret_delta;
}

/* From before anybody can have opened it. The return of the call is of no interest. */
static inlined int process_exports(__u32 process)
{
	WRITE_ONCE(PROCESS(process)->exports, 1);
	return 0;
}

/** call_enter() - a call of an audited process begins. Return: whether its return is of interest */
static inlined int call_enter(struct audit_regs *ctx, struct thread *t)
{
	const struct row *row = ROW_AT(t->row);
	int verdict = CALL_RUN;

	t->call_device = device_of_thread(t);
	if (row->action <= ROW_GRAPH_INSTANTIATE)
		verdict = enter_allocation(t);
	else if (row->action <= ROW_FREE_ARRAY)
		return enter_free(t, row);
	else if (row->action == ROW_EXPORT)
		return process_exports(t->process);
	else if (row->flags & ROW_GIVES)
		__sync_fetch_and_add(&PROCESS(t->process)->n_giving, 1);
	if (verdict == CALL_WAIT)
		verdict = slot_hand_over(ctx, t);
	if (verdict == CALL_FORCED)
		verdict = enter_forced(t);
	if (verdict == CALL_ANSWER)
		answer_here(ctx, t->ret_delta);
	return verdict == CALL_RUN;
}

#endif
