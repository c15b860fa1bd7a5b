/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts, when their calls return: what they cost, which are current in a thread, and of which device.
 */
#ifndef AUDIT_BPF_CONTEXT_H
#define AUDIT_BPF_CONTEXT_H

#include "entry.h"

/* The thread's stack of contexts: @context on top, in place of the last one or above it. */
static noinline int context_put(struct thread *t, __u64 context, int push)
{
	__u32 n = t->n_contexts;

	if (push || n == 0)
		n = n < AUDIT_CONTEXT_DEPTH ? n + 1 : AUDIT_CONTEXT_DEPTH;
	t->contexts[(n - 1) & (AUDIT_CONTEXT_DEPTH - 1)] = context;
	t->n_contexts = n;
	return context_look_up_device(t);
}

static noinline int context_popped(struct thread *t)
{
	if (t->n_contexts)
		t->n_contexts--;
	return context_look_up_device(t);
}

/* Memory has come or gone by an amount that only the device knows. */
alone int settle_later(struct thread *t)
{
	if (!t)
		return 0;
	charge_may_shrink(PROCESS(t->process));
	return event_send(AUDIT_EVENT_SETTLE, t, PROCESS(t->process)->chain.tenants[0],
			  AUDIT_REASON_NONE, 0);
}

/*
 * What a context was taken to cost is overhead from now on: the device soon tells how much it really is,
 * and the books are settled by that, also when the context ends.
 */
static inlined int context_cost_is_overhead(struct thread *t)
{
	__u64 cost = t->reserved;

	charge_to_overhead(t->process, t->call_device, cost);
	t->reserved = 0;
	/* A guess stands no longer than it must: a program looks next how much memory it has. */
	if (cost && READ_ONCE(DEVICE(t->call_device)->context_bytes) == AUDIT_CONTEXT_UNKNOWN) {
		charge_may_shrink(PROCESS(t->process));
		if (wait_begin()) {
			settle_await(t);
			wait_end();
			return 0;
		}
	}
	return settle_later(t);
}

static noinline int context_begins(struct thread *t, __u64 context)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, context);

	if (o) {
		__sync_fetch_and_add(&o->counts, COUNT_REFERENCE);
		return 0;
	}
	object_new(t, OBJECT_CONTEXT, context, 0);
	__sync_fetch_and_add(
		&PROCESS(t->process)->n_contexts[t->call_device & (LEDGER_DEVICES - 1)], 1);
	return context_cost_is_overhead(t);
}

/*
 * All that a context has goes with it: its memory at once; what it took of pools, also for graphs, its code
 * and what else it cost when the device says so, as pools may outlive it.
 */
static inlined int context_gives_up(struct thread *t, struct object *context)
{
	charge_drop(t->process, context->device, __sync_lock_test_and_set(&context->size, 0));
	charge_to_idle(t->process, context->device, __sync_lock_test_and_set(&context->used, 0));
	bytes_take(PENDING(PROCESS(t->process), context->device),
		   __sync_lock_test_and_set(&context->parent, 0));
	__sync_fetch_and_add(&control.n_stale, 1);
	return settle_later(t);
}

static noinline int context_ends(struct thread *t, __u64 context)
{
	if (!object_take(t, OBJECT_CONTEXT, context))
		return 0;
	__sync_fetch_and_sub(
		&PROCESS(t->process)->n_contexts[t->object.device & (LEDGER_DEVICES - 1)], 1);
	return context_gives_up(t, &t->object);
}

/* A reference less; a context ends with its last. */
static noinline int context_put_down(struct thread *t, __u64 context)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, context);

	if (o && (__u32)__sync_fetch_and_sub(&o->counts, COUNT_REFERENCE) == 1)
		return context_ends(t, context);
	return 0;
}

static noinline int context_attached(struct thread *t, __u64 context)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, context);

	if (o)
		__sync_fetch_and_add(&o->counts, COUNT_REFERENCE);
	return 0;
}

/* The context of a green one is on its device, and ends with it. */
static noinline int green_context_begins(struct thread *t, __u64 green, __u64 context)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, green);

	if (!o)
		return 0;
	t->call_device = o->device;
	o->context = context;
	t->reserved = 0;
	return context_begins(t, context);
}

static noinline int green_ends(struct thread *t, __u64 green)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, green);

	if (!o)
		return 0;
	if (o->context)
		context_ends(t, o->context);
	return context_ends(t, green);
}

/* Primary contexts are found by their device: the context is remembered under the ordinal, too. */
static noinline int primary_retained(struct thread *t, __u64 context, __u64 ordinal)
{
	struct object *o;

	context_begins(t, context);
	o = object_find(t, OBJECT_CONTEXT, ordinal);
	if (!o)
		o = object_new(t, OBJECT_CONTEXT, ordinal, 0);
	if (o)
		o->parent = context;
	return 0;
}

static noinline __u64 primary_context(struct thread *t, __u64 ordinal)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, ordinal);

	return o ? o->parent : 0;
}

/* Reset ends all that was allocated; the references stay. */
static noinline int primary_reset(struct thread *t, __u64 context)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, context);

	if (!o)
		return 0;
	__sync_fetch_and_add(&o->epoch, 1);
	return context_gives_up(t, o);
}

static noinline int context_learn_device(struct thread *t, __u64 address)
{
	if (!t->n_contexts || t->device == AUDIT_NO_DEVICE)
		t->device = process_device_of(t->process, user_read(address, 4));
	if (!t->n_contexts)
		t->n_contexts = 1;
	return 0;
}

static noinline int context_learn(struct thread *t, __u64 context)
{
	return context == current_context(t) ? 0 : context_put(t, context, /* push= */ 0);
}

alone int leave_context(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_PRIMARY_RELEASE:
		return context_put_down(t, primary_context(t, ARGUMENT(t, row->a)));
	case ROW_PRIMARY_RESET:
		return primary_reset(t, primary_context(t, ARGUMENT(t, row->a)));
	case ROW_CONTEXT_DESTROY:
		if (current_context(t) == ARGUMENT(t, row->a))
			context_popped(t);
		return context_ends(t, ARGUMENT(t, row->a));
	case ROW_CONTEXT_ATTACH:
		return context_attached(t, user_read(ARGUMENT(t, row->a), 8));
	case ROW_CONTEXT_DETACH:
		return context_put_down(t, ARGUMENT(t, row->a));
	case ROW_GREEN_CONTEXT:
		return green_context_begins(t, ARGUMENT(t, row->a),
					    user_read(ARGUMENT(t, row->b), 8));
	case ROW_GREEN_DESTROY:
		return green_ends(t, ARGUMENT(t, row->a));
	case ROW_CONTEXT_SET:
		return context_put(t, ARGUMENT(t, row->a), /* push= */ 0);
	case ROW_CONTEXT_PUSH:
		return context_put(t, ARGUMENT(t, row->a), /* push= */ 1);
	case ROW_CONTEXT_POP:
		return context_popped(t);
	case ROW_CONTEXT_LEARN:
		return context_learn(t, user_read(ARGUMENT(t, row->a), 8));
	default:
		return context_learn_device(t, ARGUMENT(t, row->a));
	}
}

/* Which of the devices has the UUID in t->scratch[0..1]? */
static noinline int device_by_uuid(struct thread *t)
{
	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		const __u64 *uuid = (const __u64 *)devices[i].uuid;

		if (devices[i].in_use && uuid[0] == t->scratch[0] && uuid[1] == t->scratch[1])
			return i;
	}
	return AUDIT_NO_DEVICE;
}

alone int leave_uuid(struct thread *t)
{
	const struct row *row;
	__u32 ordinal;
	int device;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	ordinal = ARGUMENT(t, row->b);
	bpf_copy_from_user(t->scratch, 16, (void *)ARGUMENT(t, row->a));
	device = device_by_uuid(t);
	if (ordinal < LEDGER_DEVICES && device != AUDIT_NO_DEVICE)
		PROCESS(t->process)->device_of[ordinal & (LEDGER_DEVICES - 1)] = device;
	return 0;
}

#endif
