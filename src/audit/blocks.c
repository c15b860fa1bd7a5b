// SPDX-License-Identifier: Apache-2.0
#include "blocks.h"

#include <stdbool.h>

static bool record_is_free(const struct audit_state *state, enum audit_table table, __u32 at)
{
	if (table == AUDIT_TABLE_PROCESSES)
		return !__atomic_load_n(&state->processes[at].owner, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&state->slots[at].state, __ATOMIC_SEQ_CST) == AUDIT_SLOT_FREE;
}

static bool block_is_free(const struct audit_state *state, enum audit_table table, __u32 first)
{
	for (__u32 at = first; at < first + AUDIT_BLOCK; at++)
		if (!record_is_free(state, table, at))
			return false;
	return true;
}

int block_tidy(struct audit_state *state, enum audit_table table, __u32 first)
{
	__u64 *word = block_word(state, table, first);

	if (!block_is_free(state, table, first))
		return 0;
	__atomic_fetch_and(word, ~block_bit(first), __ATOMIC_SEQ_CST);
	if (block_is_free(state, table, first))
		return 1;
	__atomic_fetch_or(word, block_bit(first), __ATOMIC_SEQ_CST);
	return 0;
}
