/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of what a process owns, and the sizes that arguments tell.
 *
 * A record is found by the process' serial number, the kind and the handle. One that cannot be stored
 * changes no verdict: its bytes stay charged until its context or the process itself ends.
 */
#ifndef AUDIT_BPF_OBJECT_H
#define AUDIT_BPF_OBJECT_H

#include "hold.h"

#define COUNT_REFERENCE 1ULL
#define COUNT_MAPPING	(1ULL << 32)

#define OBJECT_IS_PENDING (1ULL << 62) /* in counts: the device may not have it yet */

static noinline struct object *object_find(struct thread *t, __u32 kind, __u64 handle)
{
	struct object_key key = { .handle = handle, .serial = t->serial, .kind = kind };

	return bpf_map_lookup_elem(&objects, &key);
}

alone int object_room(__u32 nearest, __u32 outermost)
{
	return room_object(&state, nearest, outermost);
}

alone int object_gone(__u32 nearest, __u32 outermost)
{
	room_object_gone(&state, nearest, outermost);
	return 0;
}

static inlined __u32 outermost_of(const struct ledger_chain *chain)
{
	return chain->tenants[(chain->n - 1) & (LEDGER_DEPTH - 1)];
}

/*
 * Store t->fresh as a record and count it against the tenants around the process. It is whole from the first
 * moment on: a record that does not say whose it is yet is one of a dead process to who reaps. One that
 * stands there already is of something that ended unseen: it makes room, and is counted once. Linux 6.1
 * does not see that @t, an argument, lies in a map, and wants to be shown.
 */
static noinline struct object *object_insert(struct thread *t, __u32 kind, __u64 handle)
{
	struct object_key key = { .handle = handle, .serial = t->serial, .kind = kind };
	struct ledger_chain *chain = &PROCESS(t->process)->chain;
	struct object *o = bpf_map_lookup_elem(&objects, &key);
	struct thread *own;

	t->fresh.nearest = o ? o->nearest : chain->tenants[0];
	t->fresh.outermost = o ? o->outermost : outermost_of(chain);
	t->fresh.process = t->process;
	if (o) {
		*o = t->fresh;
		return o;
	}
	if (!object_room(t->fresh.nearest, t->fresh.outermost))
		return 0;
	own = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!own || bpf_map_update_elem(&objects, &key, &own->fresh, BPF_ANY)) {
		object_gone(t->fresh.nearest, t->fresh.outermost);
		return 0;
	}
	return bpf_map_lookup_elem(&objects, &key);
}

/** object_new() - record @size bytes of t->call_device under a handle; NULL if there is no room for it */
static noinline struct object *object_new(struct thread *t, __u32 kind, __u64 handle, __u64 size)
{
	struct object *o;

	__builtin_memset(&t->fresh, 0, sizeof(t->fresh));
	t->fresh.counts = COUNT_REFERENCE;
	t->fresh.device = t->call_device;
	t->fresh.size = size;
	o = object_insert(t, kind, handle);
	if (!o)
		event_send(AUDIT_EVENT_UNRECORDED, t, PROCESS(t->process)->chain.tenants[0],
			   AUDIT_REASON_NONE, 0);
	return o;
}

static noinline int object_remove(struct thread *t, __u32 kind, __u64 handle)
{
	struct object_key key = { .handle = handle, .serial = t->serial, .kind = kind };

	if (bpf_map_delete_elem(&objects, &key))
		return 0;
	object_gone(t->object.nearest, t->object.outermost);
	return 1;
}

/**
 * object_take() - move a record into t->object, so that a new one under the same handle stays apart
 *
 * Frees take the record at entry, before the driver can hand the address to another thread, and put
 * it back if the driver refuses. Return: whether there was one.
 */
alone int object_take(struct thread *t, __u32 kind, __u64 handle)
{
	struct object *o;

	if (!t)
		return 0;
	o = object_find(t, kind, handle);
	if (!o)
		return 0;
	t->object = *o;
	t->object_handle = handle;
	t->object_kind = kind;
	return object_remove(t, kind, handle);
}

/** object_put_back() - undo object_take() */
alone int object_put_back(struct thread *t)
{
	if (!t)
		return 0;
	t->fresh = t->object;
	return object_insert(t, t->object_kind, t->object_handle) != 0;
}

static inlined __u64 current_context(const struct thread *t)
{
	__u32 n = t->n_contexts;

	return n && n <= AUDIT_CONTEXT_DEPTH ? t->contexts[(n - 1) & (AUDIT_CONTEXT_DEPTH - 1)] : 0;
}

/* The record of the thread's current context. */
static noinline struct object *context_of(struct thread *t)
{
	__u64 context = current_context(t);

	return context ? object_find(t, OBJECT_CONTEXT, context) : 0;
}

/* @o ends with the current context, whose record is @context if it has one. */
static noinline int object_belongs(struct thread *t, struct object *o, struct object *context)
{
	if (!context)
		return 0;
	/* In this order: whoever reaps meanwhile must not find it older than its context. */
	WRITE_ONCE(o->epoch, context->epoch);
	WRITE_ONCE(o->context, current_context(t));
	return 0;
}

/* The device takes the memory of @o when it is used first, and nobody tells. */
static noinline int object_is_pending(struct thread *t, struct object *o)
{
	struct object *context = context_of(t);

	o->counts |= OBJECT_IS_PENDING;
	__sync_fetch_and_add(PENDING(PROCESS(t->process), o->device), o->size);
	if (context)
		__sync_fetch_and_add(&context->parent, o->size);
	return 0;
}

/** object_new_in_context() - record t->reserved bytes that go with the current context */
alone int object_new_in_context(struct thread *t, __u32 kind, __u64 handle)
{
	struct object *context, *o;

	if (!t)
		return 0;
	context = context_of(t);
	if (context)
		__sync_fetch_and_add(&context->size, t->reserved);
	o = object_new(t, kind, handle, t->reserved);
	if (!o)
		return 0;
	object_belongs(t, o, context);
	return ROW_AT(t->row)->flags & ROW_PENDING ? object_is_pending(t, o) : 0;
}

alone __u64 process_left(__u32 process, __u32 device)
{
	return ledger_chain_left(books, &PROCESS(process)->chain, device);
}

/** context_cost() - what to reserve for the process' first context on a device */
alone __u64 context_cost(__u32 process, __u32 device)
{
	__u64 cost = READ_ONCE(DEVICE(device)->context_bytes), left;

	if (cost != AUDIT_CONTEXT_UNKNOWN)
		return cost;
	left = ledger_chain_left(books, &PROCESS(process)->chain, device);
	if (left > AUDIT_CONTEXT_GUESS)
		return AUDIT_CONTEXT_GUESS;
	return left ? left : 1;
}

/* The strictest device of those that the process is on, for a thread whose context nobody has seen. */
alone int device_strictest(__u32 process)
{
	__u64 least = LEDGER_NO_LIMIT;
	__u32 n = READ_ONCE(control.n_devices), seen_on = READ_ONCE(PROCESS(process)->seen_on);
	__u32 device = 0;

	for (__u32 i = 0; i < LEDGER_DEVICES; i++) {
		__u64 left;

		if (i >= n)
			break;
		if (seen_on && !(seen_on & 1U << i))
			continue;
		left = process_left(process, i);
		if (left < least) {
			least = left;
			device = i;
		}
	}
	return device;
}

/** device_of_thread() - the device that the thread's current context is on */
static noinline __u32 device_of_thread(struct thread *t)
{
	if (READ_ONCE(control.n_devices) <= 1)
		return 0;
	if (t->n_contexts && t->device != AUDIT_NO_DEVICE)
		return t->device;
	return device_strictest(t->process);
}

static noinline int context_look_up_device(struct thread *t)
{
	struct object *o = object_find(t, OBJECT_CONTEXT, current_context(t));

	t->device = o ? o->device : AUDIT_NO_DEVICE;
	return 0;
}

static noinline __u64 user_read(__u64 address, __u32 width)
{
	__u64 value = 0;

	if (width == 4)
		bpf_copy_from_user(&value, 4, (void *)address);
	else
		bpf_copy_from_user(&value, 8, (void *)address);
	return value;
}

static noinline __u64 element_bytes(__u32 format, __u32 channels)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return channels;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2ULL * channels;
	default:
		return 4ULL * channels;
	}
}

alone __u64 level_bytes(__u64 width, __u64 height, __u64 depth, __u64 element)
{
	return (width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) * element;
}

/*
 * Width, height and depth of an array to t->scratch[0..2], bytes of an element to [4]. In the descriptor
 * they stand in this order, the depth only if it is three-dimensional, each 8 bytes wide or 4 in the old
 * form; format and channels follow.
 */
static noinline int array_read(struct thread *t, __u64 descriptor, int is_3d, int is_narrow)
{
	__u32 width = is_narrow ? 4 : 8;
	__u64 format = descriptor + (is_3d ? 3 : 2) * width;

	t->scratch[0] = user_read(descriptor, width);
	t->scratch[1] = user_read(descriptor + width, width);
	t->scratch[2] = is_3d ? user_read(descriptor + 2 * width, width) : 1;
	t->scratch[4] = element_bytes(user_read(format, 4), user_read(format + 4, 4));
	return 0;
}

/** array_bytes() - size of the array that t->scratch describes, with @levels of mipmap */
static noinline __u64 array_bytes(struct thread *t, __u32 levels)
{
	__u64 width = t->scratch[0], height = t->scratch[1], depth = t->scratch[2];
	__u64 bytes = 0;

	for (__u32 i = 0; i < 32; i++) {
		if (i >= levels)
			break;
		bytes += level_bytes(width, height, depth, t->scratch[4]);
		width /= 2;
		height /= 2;
		depth /= 2;
	}
	return bytes;
}

#endif
