/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory, when its calls return: what was allocated, freed, made, mapped and unmapped.
 */
#ifndef AUDIT_BPF_MEMORY_H
#define AUDIT_BPF_MEMORY_H

#include "context.h"

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
	if (t->grows)
		pool_may_grow(t);
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

#endif
