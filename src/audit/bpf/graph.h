/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pools and graphs, when their calls return: which there are, and what they will take.
 */
#ifndef AUDIT_BPF_GRAPH_H
#define AUDIT_BPF_GRAPH_H

#include "memory.h"

#define NODE_ALLOCATION	      10
#define NODE_PARAMETERS	      16  /* where the parameters of a node begin in the general form */
#define ALLOCATION_NODE_BYTES 104 /* where the size stands in those of an allocation node */

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

#endif
