/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stream-ordered pools and graphs: memory that the driver keeps after it was freed.
 *
 * A pool is charged what it has grown to. What is freed stays charged up to the pool's release
 * threshold, and goes with a trim or with the pool. A graph's allocation nodes are charged when it is
 * instantiated; what an executable graph gives back stays idle on the device until the next one takes it
 * or the device's graph memory is trimmed.
 */
#ifndef AUDIT_BPF_POOL_H
#define AUDIT_BPF_POOL_H

#include "place.h"

#define POOL_DEFAULT_OF(device)	 (1ULL + (device)) /* not a handle any driver gives */
#define POOL_IS_ALIAS		 (1ULL << 63) /* in counts: a name of the device's default pool */
#define POOL_ATTRIBUTE_THRESHOLD 4

/* The pool under a handle; one that was never seen is taken for the device's default pool. */
static noinline struct object *pool_find(struct thread *t, __u64 handle)
{
	struct object *pool = handle ? object_find(t, OBJECT_POOL, handle) : 0;

	t->pool = handle;
	if (pool && !(pool->counts & POOL_IS_ALIAS))
		return pool;
	if (pool)
		t->call_device = pool->device;
	t->pool = POOL_DEFAULT_OF(t->call_device);
	pool = object_find(t, OBJECT_POOL, t->pool);
	return pool ? pool : object_new(t, OBJECT_POOL, t->pool, 0);
}

static noinline __u64 pool_current(struct thread *t)
{
	struct object *o = object_find(t, OBJECT_CURRENT_POOL, t->call_device);

	return o ? o->parent : 0;
}

/* Make the pool hold @used bytes. Return: how much it has to grow for that. */
static noinline __u64 pool_grow(struct object *pool, __u64 used)
{
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 size = READ_ONCE(pool->size);

		if (used <= size)
			return 0;
		if (__sync_val_compare_and_swap(&pool->size, size, used) == size)
			return used - size;
	}
	return 0;
}

/* Let the pool keep at most @keep bytes beyond what is in use. Return: how much it gives back. */
static noinline __u64 pool_shrink(struct object *pool, __u64 keep)
{
	for (int i = 0; i < LEDGER_TRIES; i++) {
		__u64 size = READ_ONCE(pool->size);
		__u64 used = READ_ONCE(pool->used);
		__u64 to = used > keep ? used : keep;

		if (size <= to)
			return 0;
		if (__sync_val_compare_and_swap(&pool->size, size, to) == size)
			return size - to;
	}
	return 0;
}

/* A call wants t->size bytes of a pool; t->reserved becomes what the pool must grow by. */
alone int pool_enter(struct thread *t, __u64 handle, __u64 stream)
{
	struct object *pool;

	if (!t)
		return 0;
	/* While a stream is captured nothing is allocated: the call becomes a node of a graph. */
	if (object_find(t, OBJECT_CAPTURE, stream)) {
		t->pool = 0;
		return 0;
	}
	pool = pool_find(t, handle);
	if (!pool) {
		t->reserved = t->size;
		return 0;
	}
	t->reserved = pool_grow(pool, __sync_fetch_and_add(&pool->used, t->size) + t->size);
	return 0;
}

/* The call does not run, or the driver has refused it. */
static noinline int pool_undo(struct thread *t)
{
	struct object *pool = t->pool ? object_find(t, OBJECT_POOL, t->pool) : 0;

	if (!pool)
		return 0;
	__sync_fetch_and_sub(&pool->used, t->size);
	__sync_fetch_and_sub(&pool->size, t->reserved);
	return 0;
}

alone int pool_allocated(struct thread *t, __u64 address, __u64 stream)
{
	struct object *o;

	if (!t)
		return 0;
	if (!t->pool) {
		o = object_find(t, OBJECT_CAPTURE, stream);
		if (o)
			__sync_fetch_and_add(&o->size, t->size);
		return 0;
	}
	o = object_new(t, OBJECT_MEMORY, address, t->size);
	if (o)
		o->parent = t->pool;
	return 0;
}

/* t->object was freed into its pool. */
alone int pool_freed(struct thread *t)
{
	struct object *pool;

	if (!t)
		return 0;
	pool = object_find(t, OBJECT_POOL, t->object.parent);
	if (!pool)
		return charge_drop(t->process, t->object.device, t->object.size);
	bytes_take(&pool->used, t->object.size);
	return charge_drop(t->process, pool->device, pool_shrink(pool, pool->parent));
}

static noinline int pool_trim(struct thread *t, __u64 handle, __u64 keep)
{
	struct object *pool = pool_find(t, handle);

	return pool ? charge_drop(t->process, pool->device, pool_shrink(pool, keep)) : 0;
}

static noinline int pool_set_threshold(struct thread *t, __u64 handle, __u64 value)
{
	struct object *pool = pool_find(t, handle);

	if (pool)
		pool->parent = value;
	return 0;
}

static noinline int pool_learn_default(struct thread *t, __u64 handle, __u32 ordinal)
{
	struct object *o;

	t->call_device = process_device_of(t->process, ordinal);
	if (object_find(t, OBJECT_POOL, handle))
		return 0;
	o = object_new(t, OBJECT_POOL, handle, 0);
	if (o)
		o->counts = POOL_IS_ALIAS;
	return 0;
}

static noinline int pool_set_current(struct thread *t, __u64 handle, __u32 ordinal)
{
	struct object *o;

	t->call_device = process_device_of(t->process, ordinal);
	o = object_find(t, OBJECT_CURRENT_POOL, t->call_device);
	if (!o)
		o = object_new(t, OBJECT_CURRENT_POOL, t->call_device, 0);
	if (o)
		o->parent = handle;
	return 0;
}

/* @graph has @bytes more in its allocation nodes. */
static noinline int graph_grow(struct thread *t, __u64 graph, __u64 bytes)
{
	struct object *o = object_find(t, OBJECT_GRAPH, graph);

	if (o)
		__sync_fetch_and_add(&o->size, bytes);
	else if (bytes)
		object_new(t, OBJECT_GRAPH, graph, bytes);
	return 0;
}

static noinline __u64 graph_bytes(struct thread *t, __u64 graph)
{
	struct object *o = object_find(t, OBJECT_GRAPH, graph);

	return o ? o->size : 0;
}

#define GRAPH_IDLE(t, device) (&PROCESS((t)->process)->graph_idle[(device) & (LEDGER_DEVICES - 1)])

/* An executable graph takes idle graph memory first; t->reserved becomes the rest. */
static noinline int graph_enter(struct thread *t, __u64 graph)
{
	t->size = graph_bytes(t, graph);
	t->reserved = t->size - bytes_take(GRAPH_IDLE(t, t->call_device), t->size);
	return 0;
}

static noinline int graph_undo(struct thread *t)
{
	__sync_fetch_and_add(GRAPH_IDLE(t, t->call_device), t->size - t->reserved);
	return 0;
}

#endif
