/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/node-lease.h"

#define MOST_GRACE_MS 5000

void node_lease_renew(struct node_lease *lease, uint64_t asked_ms, uint64_t timeout_ms,
		      uint64_t now_ms)
{
	if (asked_ms > now_ms || (lease->is_known && asked_ms < lease->asked_ms))
		return;
	*lease = (struct node_lease){ asked_ms, timeout_ms, true };
}

enum node_lease_order node_lease_look(const struct node_lease *lease, uint64_t now_ms,
				      uint64_t *ret_wait_ms)
{
	uint64_t term_ms = lease->timeout_ms / 3;
	uint64_t kill_ms = term_ms + MIN(lease->timeout_ms / 12, (uint64_t)MOST_GRACE_MS);
	uint64_t since_ms = now_ms - MIN(lease->asked_ms, now_ms);

	*ret_wait_ms = UINT64_MAX;
	if (!lease->is_known || !lease->timeout_ms)
		return NODE_LEASE_GO_ON;
	if (since_ms >= kill_ms)
		return NODE_LEASE_KILL;
	*ret_wait_ms = (since_ms >= term_ms ? kill_ms : term_ms) - since_ms;
	return since_ms >= term_ms ? NODE_LEASE_TERM : NODE_LEASE_GO_ON;
}
