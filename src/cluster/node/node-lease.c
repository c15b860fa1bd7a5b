/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/node-lease.h"

#define MOST_GRACE_MS 5000

void node_lease_renew(struct node_lease *lease, uint64_t asked_ms, uint64_t timeout_ms,
		      uint64_t now_ms)
{
	if (asked_ms > now_ms || (lease->is_known && asked_ms < lease->asked_ms))
		return;
	*lease = (struct node_lease){ asked_ms, timeout_ms, /* resumed_ms= */ 0, true };
}

/*
 * Who is killed again and again goes on with the first of those times: else SIGTERM were put off for ever.
 * But one that is older than all that could have come of it says that nobody was there for long.
 */
void node_lease_resume(struct node_lease *lease, const struct node_lease *before, uint64_t now_ms)
{
	*lease = *before;
	lease->is_known = before->is_known && before->asked_ms <= now_ms;
	if (lease->resumed_ms < lease->asked_ms || lease->resumed_ms > now_ms ||
	    now_ms - lease->resumed_ms >= lease->timeout_ms / 2)
		lease->resumed_ms = now_ms;
}

/* From when on it counts. */
static uint64_t begin_of(const struct node_lease *lease)
{
	uint64_t asking_ms = lease->timeout_ms / 6;

	return MAX(lease->asked_ms, lease->resumed_ms - MIN(lease->resumed_ms, asking_ms));
}

enum node_lease_order node_lease_look(const struct node_lease *lease, uint64_t now_ms,
				      uint64_t *ret_wait_ms)
{
	uint64_t term_ms = lease->timeout_ms / 3;
	uint64_t kill_ms = term_ms + MIN(lease->timeout_ms / 12, (uint64_t)MOST_GRACE_MS);
	uint64_t since_ms = now_ms - MIN(begin_of(lease), now_ms);

	*ret_wait_ms = UINT64_MAX;
	if (!lease->is_known || !lease->timeout_ms)
		return NODE_LEASE_GO_ON;
	if (since_ms >= kill_ms)
		return NODE_LEASE_KILL;
	*ret_wait_ms = (since_ms >= term_ms ? kill_ms : term_ms) - since_ms;
	return since_ms >= term_ms ? NODE_LEASE_TERM : NODE_LEASE_GO_ON;
}

bool node_lease_note_term(struct node_lease *lease)
{
	if (lease->resumed_ms)
		return false;
	lease->resumed_ms = lease->asked_ms;
	return lease->resumed_ms != 0;
}
