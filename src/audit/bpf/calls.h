/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each kind of call does to the books: at its entry, and at its return.
 *
 * An entry finds out how much the call asks for and of which device; the return records what came of
 * it. Anything else that a return needs from the entry is in the thread's record.
 */
#ifndef AUDIT_BPF_CALLS_H
#define AUDIT_BPF_CALLS_H

#include "pool.h"

#define LOCATION_DEVICE	      1
#define NODE_ALLOCATION	      10
#define NODE_PARAMETERS	      16  /* where the parameters of a node begin in the general form */
#define ALLOCATION_NODE_BYTES 104 /* where the size stands in those of an allocation node */

static inlined __u64 argument(struct thread *t, const struct row *row, __u32 i)
{
	__u64 value = ARGUMENT(t, i);

	return row->flags & ROW_NARROW ? (__u32)value : value;
}

static inlined __u32 width_of(const struct row *row)
{
	return row->flags & ROW_NARROW ? 4 : 8;
}

/* --- entry --------------------------------------------------------------------------------------- */

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
	t->candidates = 0;
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

/* --- return -------------------------------------------------------------------------------------- */

static inlined int leave_pitch(struct thread *t, const struct row *row)
{
	__u64 exact = user_read(ARGUMENT(t, row->a), width_of(row)) * argument(t, row, row->c);

	if (exact > t->reserved)
		charge_force(t->process, t->call_device, exact - t->reserved);
	else
		charge_undo(t->process, t->call_device, t->reserved - exact);
	t->reserved = exact;
	return 0;
}

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
		return settle_await(t);
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

static noinline int leave_allocated(struct thread *t, const struct row *row)
{
	/* Of the old form addresses are narrow, handles are not. */
	__u64 handle = user_read(ARGUMENT(t, row->b),
				 row->action <= ROW_ALLOCATE_PITCH ? width_of(row) : 8);

	if (t->candidates)
		place_found(t);
	switch (row->action) {
	case ROW_ALLOCATE_PITCH:
		leave_pitch(t, row);
		return object_new_in_context(t, OBJECT_MEMORY, handle);
	case ROW_ALLOCATE_ASYNC:
	case ROW_ALLOCATE_FROM_POOL:
		return pool_allocated(t, handle);
	case ROW_PHYSICAL_CREATE:
		return object_new(t, OBJECT_PHYSICAL, handle, t->reserved) != 0;
	case ROW_CONTEXT_CREATE:
		context_begins(t, handle);
		return context_put(t, handle, /* push= */ 1);
	case ROW_PRIMARY_RETAIN:
		return primary_retained(t, handle, ARGUMENT(t, row->a));
	case ROW_GREEN_CREATE:
		return context_begins(t, handle);
	case ROW_GRAPH_INSTANTIATE:
		return graph_instantiated(t, handle);
	case ROW_ALLOCATE:
		return object_new_in_context(t, OBJECT_MEMORY, handle);
	default:
		return object_new_in_context(t, OBJECT_ARRAY, handle);
	}
}

alone int leave_allocation(struct thread *t, __u32 code)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	if (code) {
		allocation_undo(t);
		return charge_undo_call(t);
	}
	leave_allocated(t, row);
	/* What a context costs is overhead by now; what is left was reserved for one that was there before. */
	if (row->action >= ROW_CONTEXT_CREATE && row->action <= ROW_GREEN_CREATE)
		return charge_undo(t->process, t->call_device, t->reserved);
	return charge_arrived(t->process, t->call_device, t->reserved + t->credit);
}

/* Take t->object off its context. Return: 0 if that has ended or was reset since, and has given it up. */
static noinline int object_leaves_context(struct thread *t)
{
	struct object *context;
	__u64 size = t->object.size;

	if (!t->object.context)
		return 1;
	context = object_find(t, OBJECT_CONTEXT, t->object.context);
	if (!context || context->epoch != t->object.epoch)
		return 0;
	if (t->object.counts & OBJECT_IS_PENDING)
		bytes_take(&context->parent, size);
	return bytes_take(t->object.parent ? &context->used : &context->size, size) == size;
}

/* What t->object stands for is given up: its pool keeps it, or it is gone. */
static noinline int object_given_up(struct thread *t)
{
	if (!object_leaves_context(t))
		return 0;
	t->call_device = t->object.device;
	t->pool = t->object.parent;
	if (t->pool)
		credit_give(t, t->object.size);
	else
		charge_drop(t->process, t->call_device, t->object.size);
	if (t->object.counts & OBJECT_IS_PENDING)
		bytes_take(PENDING(PROCESS(t->process), t->call_device), t->object.size);
	return 0;
}

/* t->object was taken at entry. */
alone int leave_free(struct thread *t, __u32 code)
{
	const struct row *row;

	if (!t)
		return 0;
	if (code) {
		object_put_back(t);
		return free_over(t);
	}
	row = ROW_AT(t->row);
	t->stream = row->action == ROW_FREE_ASYNC ? stream_of(ARGUMENT(t, row->b), row->flags)
						  : STREAM_ANY;
	object_given_up(t);
	return free_over(t);
}

/* One reference or mapping less; the memory goes with the last of both. */
static noinline int physical_put(struct thread *t, __u64 handle, __u64 count)
{
	struct object *o = object_find(t, OBJECT_PHYSICAL, handle);

	if (!o || __sync_fetch_and_sub(&o->counts, count) != count)
		return 0;
	if (!object_take(t, OBJECT_PHYSICAL, handle))
		return 0;
	return charge_drop(t->process, t->object.device, t->object.size);
}

static noinline int physical_mapped(struct thread *t, const struct row *row)
{
	struct object *o = object_find(t, OBJECT_PHYSICAL, ARGUMENT(t, row->c));

	if (!o)
		return 0;
	__sync_fetch_and_add(&o->counts, COUNT_MAPPING);
	o = object_new(t, OBJECT_MAPPING, ARGUMENT(t, row->a), ARGUMENT(t, row->b));
	if (o)
		o->parent = ARGUMENT(t, row->c);
	return 0;
}

/* The mapping at the front of the range in t->scratch[0..1]. */
static long unmap_round(_unused_ __u32 i, struct thread **thread)
{
	struct thread *t = *thread;

	if (t->scratch[0] >= t->scratch[1] || !object_take(t, OBJECT_MAPPING, t->scratch[0]))
		return 1;
	if (t->object.size == 0)
		return 1;
	t->scratch[0] += t->object.size;
	physical_put(t, t->object.parent, COUNT_MAPPING);
	return 0;
}

/* A range may cover many mappings. */
static inlined int physical_unmapped(struct thread *t, const struct row *row)
{
	t->scratch[0] = ARGUMENT(t, row->a);
	t->scratch[1] = t->scratch[0] + ARGUMENT(t, row->b);
	bpf_loop(1 << 16, unmap_round, &t, 0);
	return 0;
}

alone int leave_physical(struct thread *t)
{
	const struct row *row;
	struct object *o;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_PHYSICAL_RELEASE:
		return physical_put(t, ARGUMENT(t, row->a), COUNT_REFERENCE);
	case ROW_PHYSICAL_RETAIN:
		o = object_find(t, OBJECT_PHYSICAL, user_read(ARGUMENT(t, row->a), 8));
		if (o)
			__sync_fetch_and_add(&o->counts, COUNT_REFERENCE);
		return 0;
	case ROW_PHYSICAL_MAP:
		return physical_mapped(t, row);
	default:
		return physical_unmapped(t, row);
	}
}

/* The ordinal of a device that is an argument, or that a location (type, number) names. */
static noinline __u32 ordinal_argument(const struct row *row, __u64 value)
{
	return row->flags & ROW_LOCATION ? user_read(value + 4, 4) : value;
}

static noinline int pool_created(struct thread *t, const struct row *row)
{
	__u64 handle = user_read(ARGUMENT(t, row->a), 8);

	/* Where it lives: type and number, eight bytes into the properties. */
	t->scratch[0] = user_read(ARGUMENT(t, row->b) + 8, 8);
	if ((__u32)t->scratch[0] == LOCATION_DEVICE)
		t->call_device = process_device_of(t->process, t->scratch[0] >> 32);
	return object_new(t, OBJECT_POOL, handle, 0) != 0;
}

/* What it keeps goes now, what is in use when it is freed. */
static noinline int pool_destroyed(struct thread *t, const struct row *row)
{
	object_take(t, OBJECT_POOL, ARGUMENT(t, row->a));
	return settle_later(t);
}

alone int leave_pool(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_POOL_CREATE:
		return pool_created(t, row);
	case ROW_POOL_DESTROY:
		return pool_destroyed(t, row);
	case ROW_POOL_DEFAULT:
		return pool_learn_default(t, user_read(ARGUMENT(t, row->a), 8),
					  ordinal_argument(row, ARGUMENT(t, row->b)));
	default:
		return pool_set_current(t, ARGUMENT(t, row->b),
					ordinal_argument(row, ARGUMENT(t, row->a)));
	}
}

static noinline int graph_node_added(struct thread *t, const struct row *row)
{
	__u64 parameters = ARGUMENT(t, row->c);

	if (row->action == ROW_GRAPH_ADD_NODE) {
		if ((__u32)user_read(parameters, 4) != NODE_ALLOCATION)
			return 0;
		parameters += NODE_PARAMETERS;
	}
	return graph_grow(t, ARGUMENT(t, row->a), user_read(parameters + ALLOCATION_NODE_BYTES, 8));
}

static inlined int graph_exec_destroyed(struct thread *t, __u64 exec)
{
	t->stream = STREAM_ANY;
	return object_take(t, OBJECT_EXEC, exec) ? object_given_up(t) : 0;
}

static noinline int capture_begins(struct thread *t, const struct row *row, __u64 graph)
{
	struct object *o =
		object_new(t, OBJECT_CAPTURE, stream_of(ARGUMENT(t, row->a), row->flags), 0);

	if (o)
		o->parent = graph;
	return 0;
}

/* A capture makes a new graph, unless it was begun to go on with one. */
static noinline int capture_ended(struct thread *t, const struct row *row)
{
	if (!object_take(t, OBJECT_CAPTURE, stream_of(ARGUMENT(t, row->a), row->flags)))
		return 0;
	t->size = t->object.size;
	if (t->object.parent)
		return graph_grow(t, t->object.parent, t->size);
	return graph_begins(t, user_read(ARGUMENT(t, row->b), 8), t->size);
}

alone int leave_graph(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_GRAPH_ADD_ALLOCATION:
	case ROW_GRAPH_ADD_NODE:
		return graph_node_added(t, row);
	case ROW_GRAPH_ADD_CHILD:
		return graph_grow(t, ARGUMENT(t, row->a), graph_bytes(t, ARGUMENT(t, row->c)));
	case ROW_GRAPH_CLONE:
		return graph_begins(t, user_read(ARGUMENT(t, row->b), 8),
				    graph_bytes(t, ARGUMENT(t, row->a)));
	case ROW_GRAPH_DESTROY:
		return object_take(t, OBJECT_GRAPH, ARGUMENT(t, row->a));
	case ROW_GRAPH_EXEC_DESTROY:
		return graph_exec_destroyed(t, ARGUMENT(t, row->a));
	case ROW_CAPTURE_BEGIN:
		return capture_begins(t, row, 0);
	case ROW_CAPTURE_TO_GRAPH:
		return capture_begins(t, row, ARGUMENT(t, row->b));
	default:
		return capture_ended(t, row);
	}
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

/* --- what a process is told ---------------------------------------------------------------------- */

/* The smallest memory.max around the process, LEDGER_NO_LIMIT if it has none. */
static noinline __u64 info_total(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);
	__u64 total = LEDGER_NO_LIMIT;

	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		__u64 max;

		if (i >= p->chain.n)
			break;
		max = READ_ONCE(books[ledger_index(p->chain.tenants[i], t->call_device)].max);
		if (max < total)
			total = max;
	}
	return total;
}

static inlined __u64 lesser(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Bytes that the device would still give to the process, where the driver says @driver_free. */
static noinline __u64 info_device_left(struct thread *t, __u64 driver_free)
{
	const struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, t->call_device)];
	__u64 total = READ_ONCE(DEVICE(t->call_device)->total), max = READ_ONCE(whole->max);
	__u64 reserve = max < total ? total - max : 0;

	if (!charge_is_bounded(&PROCESS(t->process)->chain, t->call_device))
		return driver_free;
	return lesser(driver_free > reserve ? driver_free - reserve : 0, ledger_left(whole));
}

/* Total and free bytes to show, where the driver says *free: free in t->scratch[6], total in [7]. */
static noinline int info_values(struct thread *t, __u64 driver_free)
{
	__u64 left = ledger_chain_left(books, &PROCESS(t->process)->chain, t->call_device);

	t->scratch[7] = info_total(t);
	t->scratch[6] = lesser(left, info_device_left(t, driver_free));
	for (int i = 0; i < 2 * AUDIT_WRITES; i++)
		t->scratch[i] = 0;
	return t->scratch[7] != LEDGER_NO_LIMIT;
}

static inlined void info_write(struct thread *t, __u32 i, __u64 address, __u64 value)
{
	t->scratch[i] = address;
	t->scratch[AUDIT_WRITES + i] = value;
}

static inlined __u64 narrowed(const struct row *row, __u64 value)
{
	return row->flags & ROW_NARROW && value > 0xffffffff ? 0xffffffff : value;
}

static noinline int info_memory(struct thread *t, const struct row *row)
{
	__u64 free_at = ARGUMENT(t, row->a), total_at = ARGUMENT(t, row->b);
	__u64 driver_free = free_at ? user_read(free_at, width_of(row)) : LEDGER_NO_LIMIT;

	if (!info_values(t, driver_free))
		return 0;
	info_write(t, 0, free_at, narrowed(row, t->scratch[6]));
	info_write(t, 1, total_at, narrowed(row, t->scratch[7]));
	return write_results(t, width_of(row));
}

static noinline int info_device_total(struct thread *t, const struct row *row)
{
	t->call_device = process_device_of(t->process, ARGUMENT(t, row->b));
	if (!info_values(t, LEDGER_NO_LIMIT))
		return 0;
	info_write(t, 0, ARGUMENT(t, row->a), narrowed(row, t->scratch[7]));
	return write_results(t, width_of(row));
}

/* Total, free and used of an NVML structure, whose fields stand at these places. */
static noinline int info_nvml(struct thread *t, const struct row *row)
{
	__u32 free_at = row->action == ROW_NVML_MEMORY ? 8 : 24;
	__u32 used_at = row->action == ROW_NVML_MEMORY ? 16 : 32;
	struct object *o = object_find(t, OBJECT_NVML, ARGUMENT(t, row->a));
	__u64 at = ARGUMENT(t, row->b);

	if (!o && READ_ONCE(control.n_devices) > 1)
		return 0;
	t->call_device = o ? o->device : 0;
	if (!at || !info_values(t, user_read(at + free_at, 8)))
		return 0;
	info_write(t, 0, row->action == ROW_NVML_MEMORY ? at : at + 8, t->scratch[7]);
	info_write(t, 1, at + free_at, t->scratch[6]);
	info_write(t, 2, at + used_at,
		   t->scratch[7] > t->scratch[6] ? t->scratch[7] - t->scratch[6] : 0);
	return write_results(t, 8);
}

static noinline int nvml_device_by_index(__u32 index)
{
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (devices[i].in_use && devices[i].nvml_index == index)
			return i;
	return AUDIT_NO_DEVICE;
}

static noinline int device_is_called(const struct audit_device *device, __u64 name)
{
	for (__u32 i = 0; i < AUDIT_DEVICE_NAMES; i++)
		if (device->names[i] == name)
			return device->in_use;
	return 0;
}

/* By UUID, place on the bus or serial number, as the text at @address says. */
alone int nvml_device_by_name(struct thread *t, __u64 address)
{
	__u64 name;

	if (!t)
		return AUDIT_NO_DEVICE;
	t->scratch[0] = 0;
	bpf_probe_read_user_str(t->scratch, AUDIT_DEVICE_NAME_SIZE, (void *)address);
	name = audit_name_hash((const char *)t->scratch);
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (device_is_called(&devices[i], name))
			return i;
	return AUDIT_NO_DEVICE;
}

static noinline int nvml_handle(struct thread *t, const struct row *row)
{
	__u64 what = ARGUMENT(t, row->a), handle = ARGUMENT(t, row->b);
	__u32 device = row->action == ROW_NVML_HANDLE ? nvml_device_by_index(what)
						      : nvml_device_by_name(t, what);

	if (device == AUDIT_NO_DEVICE)
		return 0;
	if (row->action != ROW_NVML_NAME)
		handle = user_read(handle, 8);
	t->call_device = device;
	return object_new(t, OBJECT_NVML, handle, 0) != 0;
}

alone int leave_info(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_INFO_MEMORY:
		return info_memory(t, row);
	case ROW_INFO_TOTAL:
		return info_device_total(t, row);
	case ROW_NVML_HANDLE:
	case ROW_NVML_HANDLE_BY_NAME:
	case ROW_NVML_NAME:
		return nvml_handle(t, row);
	default:
		return info_nvml(t, row);
	}
}

static inlined int giving_over(struct thread *t, const struct row *row)
{
	if (row->flags & ROW_GIVES)
		__sync_fetch_and_sub(&PROCESS(t->process)->n_giving, 1);
	return 0;
}

/* What a call with such an entry has done when it returns with a code. */
static inlined int call_leave_row(struct thread *t, const struct row *row, __u32 code)
{
	if (row->action <= ROW_GRAPH_INSTANTIATE)
		return leave_allocation(t, code);
	if (row->action <= ROW_FREE_ARRAY)
		return leave_free(t, code);
	if (code)
		return 0;
	if (row->action <= ROW_PHYSICAL_UNMAP)
		return leave_physical(t);
	if (row->action <= ROW_POOL_SET)
		return leave_pool(t);
	if (row->action <= ROW_CAPTURE_END)
		return leave_graph(t);
	if (row->action <= ROW_CONTEXT_LEARN_DEVICE)
		return leave_context(t);
	if (row->action == ROW_DEVICE_UUID)
		return leave_uuid(t);
	if (row->action == ROW_SETTLE)
		return settle_later(t);
	return leave_info(t);
}

/** call_leave() - a call whose entry was of interest returns with a code */
static inlined int call_leave(struct thread *t, __u32 code)
{
	const struct row *row = ROW_AT(t->row);

	call_leave_row(t, row, code);
	return giving_over(t, row);
}

/** call_abandon() - a call whose entry was of interest does not return */
static noinline int call_abandon(struct thread *t)
{
	const struct row *row = ROW_AT(t->row);

	if (row->action > ROW_FREE_ARRAY)
		return giving_over(t, row);
	if (row->action > ROW_GRAPH_INSTANTIATE) {
		object_put_back(t);
		return free_over(t);
	}
	allocation_undo(t);
	return charge_undo_call(t);
}

#endif
