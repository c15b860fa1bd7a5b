/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each kind of call does to the books when it returns, or does not.
 */
#ifndef AUDIT_BPF_CALLS_H
#define AUDIT_BPF_CALLS_H

#include "graph.h"
#include "info.h"

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
