/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stream-ordered pools and graphs: memory that the driver keeps after it was freed.
 *
 * What is freed into a pool stays on the device until the driver gives it back, some time at or after a
 * synchronisation and as far as the pool's release threshold lets it; after a trim, as far as no stream
 * is still at work on it. No call tells how much that was, so all of it stays charged, as `idle`, until
 * the device itself has less (order.h); an allocation that would be refused for it has the device asked
 * first (hold.h).
 *
 * An allocation may take what was freed in the same pool and in the same stream before, or by a call that
 * waits for the streams: that is its credit. Where that lies in pieces, none of which is known to be large
 * enough, the pool may grow all the same, and the devices are asked at once (pool_may_grow()). What another stream has freed the driver gives only if that
 * stream has come so far, so it is no credit. The graphs of a device share a pool of their own, which an
 * executable graph takes from when it is made and gives to when it is destroyed.
 */
#ifndef AUDIT_BPF_POOL_H
#define AUDIT_BPF_POOL_H

#include "place.h"

/* Not handles that any driver gives. */
#define POOL_DEFAULT_OF(device) (1ULL + (device))
#define POOL_GRAPHS_OF(device)	(0x101ULL + (device))

#define POOL_IS_ALIAS	  (1ULL << 63) /* in counts: a name of the device's default pool */
#define STREAM_ANY	  (~0ULL)
#define STREAM_OF_THREAD  (1ULL << 63)
#define STREAM_LEGACY	  1
#define STREAM_PER_THREAD 2
#define CREDIT_MULTIPLIER 0x9e3779b97f4a7c15ULL

#define EPOCH(t, device) READ_ONCE(PROCESS((t)->process)->epoch[(device) & (LEDGER_DEVICES - 1)])

/* A stream by one name: the default stream has two, and every thread may have one of its own. */
alone __u64 stream_of(__u64 handle, __u32 flags)
{
	if (handle == STREAM_PER_THREAD || (!handle && flags & ROW_PER_THREAD))
		return STREAM_OF_THREAD | (__u32)bpf_get_current_pid_tgid();
	return handle == STREAM_LEGACY ? 0 : handle;
}

static noinline struct object *credit_find(struct thread *t, __u64 stream)
{
	return object_find(t, OBJECT_CREDIT, t->pool * CREDIT_MULTIPLIER + stream);
}

/* So many bytes were given back together. What is known of the pieces is a guess, and needs no care. */
static noinline int credit_piece_given(struct object *credit, __u64 bytes)
{
	if (bytes > credit->used) {
		credit->used = bytes;
		credit->counts = 1;
	} else if (bytes == credit->used) {
		credit->counts++;
	}
	return 0;
}

/* The call asks for t->size bytes, and uses this credit for them. */
static noinline int credit_piece_taken(struct thread *t, struct object *credit)
{
	if (t->size > credit->used)
		t->grows = 1;
	else if (t->size == credit->used && --credit->counts == 0)
		credit->used = 0;
	return 0;
}

/* Take up to @bytes that were freed in the pool and this stream. */
static inlined __u64 credit_take(struct thread *t, __u64 stream, __u64 bytes)
{
	struct object *credit = bytes ? credit_find(t, stream) : 0;

	if (!credit || !READ_ONCE(credit->size))
		return 0;
	credit_piece_taken(t, credit);
	return charge_from_idle(t->process, t->call_device, bytes_take(&credit->size, bytes),
				credit->epoch);
}

/** credit_give() - @bytes of t->call_device in use went back to the pool, in order of t->stream */
alone int credit_give(struct thread *t, __u64 bytes)
{
	struct object *credit;
	__u32 epoch;

	if (!t || !bytes)
		return 0;
	bytes = charge_to_idle(t->process, t->call_device, bytes);
	epoch = EPOCH(t, t->call_device);
	credit = credit_find(t, t->stream);
	if (!credit)
		credit = object_new(t, OBJECT_CREDIT, t->pool * CREDIT_MULTIPLIER + t->stream, 0);
	if (!credit)
		return 0;
	if (READ_ONCE(credit->epoch) != epoch) {
		WRITE_ONCE(credit->size, 0);
		WRITE_ONCE(credit->epoch, epoch);
		credit->used = 0;
	}
	credit_piece_given(credit, bytes);
	__sync_fetch_and_add(&credit->size, bytes);
	return 0;
}

/* Of t->size bytes from the pool t->pool, t->reserved becomes what it may have to grow by. */
alone int credit_use(struct thread *t)
{
	if (!t)
		return 0;
	t->credit = credit_take(t, t->stream, t->size);
	if (t->stream != STREAM_ANY)
		t->credit += credit_take(t, STREAM_ANY, t->size - t->credit);
	t->reserved = t->size - t->credit;
	return 0;
}

/** credit_undo() - the call does not run, or the driver has refused it */
static inlined int credit_undo(struct thread *t)
{
	credit_give(t, t->credit);
	bytes_take(PENDING(PROCESS(t->process), t->call_device), t->credit);
	t->credit = 0;
	return 0;
}

/** pool_may_grow() - have the devices asked by how much; a round of the daemon is enough for all until then */
static noinline int pool_may_grow(struct thread *t)
{
	if (__sync_lock_test_and_set(&PROCESS(t->process)->grows, 1))
		return 0;
	return event_send(AUDIT_EVENT_SETTLE, t, PROCESS(t->process)->chain.tenants[0],
			  AUDIT_REASON_NONE, 0);
}

/*
 * The pool under a handle, and its device in t->call_device; one that was never seen is taken for the
 * device's default pool.
 */
static noinline __u64 pool_find(struct thread *t, __u64 handle)
{
	struct object *pool = handle ? object_find(t, OBJECT_POOL, handle) : 0;

	if (pool)
		t->call_device = pool->device;
	return pool && !(pool->counts & POOL_IS_ALIAS) ? handle : POOL_DEFAULT_OF(t->call_device);
}

alone __u64 pool_current(struct thread *t)
{
	struct object *o;

	if (!t)
		return 0;
	o = object_find(t, OBJECT_CURRENT_POOL, t->call_device);
	return o ? o->parent : 0;
}

/** pool_enter() - a call wants t->size bytes of a pool */
alone int pool_enter(struct thread *t, __u64 handle, __u64 stream)
{
	if (!t)
		return 0;
	t->pool = 0;
	t->stream = stream;
	/* While a stream is captured nothing is allocated: the call becomes a node of a graph. */
	if (object_find(t, OBJECT_CAPTURE, stream))
		return 0;
	t->pool = pool_find(t, handle);
	return credit_use(t);
}

/* Record under the current context what was taken of a pool: it may outlive the context. */
static noinline struct object *pool_record(struct thread *t, __u32 kind, __u64 handle)
{
	struct object *context = context_of(t), *o;

	if (context)
		__sync_fetch_and_add(&context->used, t->size);
	o = object_new(t, kind, handle, t->size);
	if (!o)
		return 0;
	o->parent = t->pool;
	object_belongs(t, o, context);
	return o;
}

alone int pool_allocated(struct thread *t, __u64 address)
{
	struct object *o;

	if (!t)
		return 0;
	if (t->pool)
		return pool_record(t, OBJECT_MEMORY, address) != 0;
	o = object_find(t, OBJECT_CAPTURE, t->stream);
	if (o)
		__sync_fetch_and_add(&o->size, t->size);
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

/* --- graphs -------------------------------------------------------------------------------------- */

/* @graph has @bytes more in its allocation nodes. */
static noinline int graph_grow(struct thread *t, __u64 graph, __u64 bytes)
{
	struct object *o = bytes ? object_find(t, OBJECT_GRAPH, graph) : 0;

	if (o)
		__sync_fetch_and_add(&o->size, bytes);
	else if (bytes)
		object_new(t, OBJECT_GRAPH, graph, bytes);
	return 0;
}

/* @graph is new: what was under that handle before is gone. */
static noinline int graph_begins(struct thread *t, __u64 graph, __u64 bytes)
{
	object_take(t, OBJECT_GRAPH, graph);
	return graph_grow(t, graph, bytes);
}

static noinline __u64 graph_bytes(struct thread *t, __u64 graph)
{
	struct object *o = object_find(t, OBJECT_GRAPH, graph);

	return o ? o->size : 0;
}

/* An executable graph takes what graphs have given back first. */
alone int graph_enter(struct thread *t, __u64 graph)
{
	if (!t)
		return 0;
	t->size = graph_bytes(t, graph);
	t->pool = POOL_GRAPHS_OF(t->call_device);
	t->stream = STREAM_ANY;
	return credit_use(t);
}

/* The device has its memory from the first launch on. */
static noinline int graph_instantiated(struct thread *t, __u64 exec)
{
	struct object *o;

	if (!t->size)
		return 0;
	o = pool_record(t, OBJECT_EXEC, exec);
	return o ? object_is_pending(t, o) : 0;
}

#endif
