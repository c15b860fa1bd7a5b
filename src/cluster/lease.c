/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/lease.h"

#include "base/str.h"

static bool is_same(const struct lease_row *a, const struct lease_row *b)
{
	return a->n_renewed == b->n_renewed && str_eq(a->holder, b->holder);
}

static void see(struct lease *lease, const struct lease_row *row, uint64_t now_ms)
{
	lease->seen = *row;
	lease->seen_ms = now_ms;
}

bool lease_look(struct lease *lease, const struct lease_row *row, uint64_t looked_ms,
		struct lease_row *ret)
{
	bool is_new = !is_same(row, &lease->seen);

	/* Somebody else has taken it, or took and lost it while nobody looked here. */
	if (is_new) {
		lease->is_held = false;
		see(lease, row, looked_ms);
	}
	if (!lease->is_held && *row->holder && looked_ms - lease->seen_ms < lease->length_ms)
		return false;
	str_copy(ret->holder, sizeof(ret->holder), lease->self);
	ret->n_renewed = row->n_renewed + 1;
	return true;
}

void lease_wrote(struct lease *lease, const struct lease_row *row, uint64_t looked_ms)
{
	see(lease, row, looked_ms);
	lease->looked_ms = looked_ms;
	lease->is_held = true;
}

bool lease_may_act(const struct lease *lease, uint64_t now_ms)
{
	return lease->is_held && now_ms - lease->looked_ms < lease->length_ms;
}
