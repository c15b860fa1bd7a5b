/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Which parts of a shared table are in use, so that nobody looks at all 16,384 records to find the few.
 *
 * A table is cut into blocks of 64 records, and a bit in the control record stands for each. Whoever has
 * claimed a record sets the bit of its block; user space takes it away when the whole block is free. Both
 * write first and read afterwards, with a barrier between, so one of them sees the other:
 *
 *	claim:   record claimed | bit set?       -> if not, set it
 *	tidy:    bit taken away | records free?  -> if not, set it again
 *
 * So that few blocks are in use a new record is sought among twice as many as are taken: then two looks
 * find one, and 500 processes are in 16 blocks instead of in all 256.
 */
#ifndef AUDIT_BLOCKS_H
#define AUDIT_BLOCKS_H

#include "audit.h"

#define BLOCKS_FN static inline __attribute__((always_inline, unused))

_Static_assert(AUDIT_PROCESSES == AUDIT_SLOTS, "both tables have as many blocks");

BLOCKS_FN __u64 *block_word(struct audit_state *state, __u32 table, __u32 at)
{
	return &state->control.blocks[table][at / AUDIT_BLOCK / 64 % (AUDIT_BLOCKS / 64)];
}

BLOCKS_FN __u64 block_bit(__u32 at)
{
	return 1ULL << at / AUDIT_BLOCK % 64;
}

/** block_is_used() - whether the block of a record may have some that are in use */
BLOCKS_FN int block_is_used(struct audit_state *state, __u32 table, __u32 at)
{
	return (*(volatile __u64 *)block_word(state, table, at) & block_bit(at)) != 0;
}

/** block_use() - a record was claimed, by a step that is a barrier */
BLOCKS_FN void block_use(struct audit_state *state, __u32 table, __u32 at)
{
	if (!block_is_used(state, table, at))
		__sync_fetch_and_or(block_word(state, table, at), block_bit(at));
}

/** blocks_start() - where to look for a free record first; @random is spread over as far as they reach */
BLOCKS_FN __u32 blocks_start(const struct audit_state *state, __u32 table, __u32 random)
{
	__u32 reach = 2 * *(volatile const __u32 *)&state->control.taken[table] | (AUDIT_BLOCK - 1);

	/* Up to the next power of two. */
	reach |= reach >> 1;
	reach |= reach >> 2;
	reach |= reach >> 4;
	reach |= reach >> 8;
	return random & (reach | reach >> 16);
}

/** blocks_next() - the first record from @at on that may be in use; AUDIT_BLOCK * AUDIT_BLOCKS behind the last */
BLOCKS_FN __u32 blocks_next(struct audit_state *state, __u32 table, __u32 at)
{
	while (at < AUDIT_BLOCK * AUDIT_BLOCKS && !block_is_used(state, table, at))
		at = (at | (AUDIT_BLOCK - 1)) + 1;
	return at;
}

/** blocks_each() - visit the records of a table that may be in use */
#define blocks_each(state, table, at)                                                              \
	for (__u32 at = blocks_next(state, table, 0); at < AUDIT_BLOCK * AUDIT_BLOCKS;             \
	     at = blocks_next(state, table, at + 1))

#ifndef __bpf__
/** block_tidy() - look no more at a block, if none of its records is in use. Return: whether that is so */
int block_tidy(struct audit_state *state, enum audit_table table, __u32 first);
#endif

#endif
