/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Room in the tables that all tenants share, so that none of them keeps another out.
 *
 * What is entered counts against every tenant around its process. A tenant may have as much as is left for
 * all others, and one inside another as much as is left of what that one may have; so when n tenants take
 * what they can, each has a part in n + 1 and as much is free for whoever comes next. A cap beside that
 * keeps the tables sparse where one tenant alone is at work.
 *
 *	16,384 slots; alice floods by two of her jobs: 4,096 are hers, her cap. Her first job has 2,048 of
 *	them, her second 1,024, and another of hers would have 512. Bob has all he may have.
 *
 * Who is admitted at the same time on several CPUs may pass the limit by as many; the free part takes that.
 */
#ifndef AUDIT_ROOM_H
#define AUDIT_ROOM_H

#include "audit.h"

#define AUDIT_TENANT_PROCESSES 4096
#define AUDIT_TENANT_SLOTS     4096
#define AUDIT_TENANT_WORKS     512
#define AUDIT_TENANT_LIBRARIES 64
#define AUDIT_TENANT_OBJECTS   (1 << 17)

/*
 * Records of allocations come and go with each call, so what all tenants have together is counted by
 * chunks: the first of each tenant is its own, and half of the table is divided as above.
 */
#define AUDIT_CHUNK  1024
#define AUDIT_CHUNKS (AUDIT_OBJECTS / 2 / AUDIT_CHUNK)

#define ROOM_FN static inline __attribute__((always_inline, unused))

ROOM_FN __u32 room_of_table(__u32 table)
{
	return table == AUDIT_TABLE_PROCESSES ? AUDIT_PROCESSES : AUDIT_SLOTS;
}

ROOM_FN __u32 room_of_tenant(__u32 table)
{
	return table == AUDIT_TABLE_PROCESSES ? AUDIT_TENANT_PROCESSES : AUDIT_TENANT_SLOTS;
}

ROOM_FN __u32 room_read(const __u32 *counter)
{
	return *(volatile const __u32 *)counter;
}

/* What is left of @room when @taken are taken of it. */
ROOM_FN __u32 room_left(__u32 room, __u32 taken)
{
	return taken < room ? room - taken : 0;
}

/** room_inside() - what is left inside a tenant that has @taken, and may have @cap, where @left are left around it */
ROOM_FN __u32 room_inside(__u32 left, __u32 cap, __u32 taken)
{
	return room_left(left < cap ? left : cap, taken);
}

/** room_count() - an entry of a table counts against these tenants, or (@by: -1) does no longer */
ROOM_FN void room_count(struct audit_state *state, const struct ledger_chain *chain, __u32 table,
			__s32 by)
{
	for (__u32 i = 0; i < LEDGER_DEPTH; i++)
		if (i < chain->n)
			__sync_fetch_and_add(
				&state->tenants[chain->tenants[i] & (LEDGER_TENANTS - 1)]
					 .taken[table],
				by);
	__sync_fetch_and_add(&state->control.taken[table], by);
}

/** room_is_left() - whether a process of these tenants may enter something in a table */
ROOM_FN int room_is_left(const struct audit_state *state, const struct ledger_chain *chain,
			 __u32 table)
{
	__u32 left = room_left(room_of_table(table), room_read(&state->control.taken[table]));

	/* From the outermost inwards. */
	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		__u32 at = LEDGER_DEPTH - 1 - i, tenant = chain->tenants[at] & (LEDGER_TENANTS - 1);

		if (at < chain->n)
			left = room_inside(left, room_of_tenant(table),
					   room_read(&state->tenants[tenant].taken[table]));
	}
	return left != 0;
}

/**
 * audit_slot_end() - give up a slot, if it is still in @was
 *
 * Return: whether it was. Of several who try, one succeeds.
 */
ROOM_FN int audit_slot_end(struct audit_state *state, __u32 at, __u32 was)
{
	struct audit_slot *slot = &state->slots[at & (AUDIT_SLOTS - 1)];

	if (__sync_val_compare_and_swap(&slot->state, was, AUDIT_SLOT_CLAIMED) != was)
		return 0;
	slot->tid = 0;
	room_count(state, &slot->counted, AUDIT_TABLE_SLOTS, -1);
	*(volatile __u32 *)&slot->state = AUDIT_SLOT_FREE;
	return 1;
}

/* Allocations of one tenant beyond its first chunk are in chunks of all: one more when it enters one. */
ROOM_FN int room_enters_chunk(__u32 n_before)
{
	return n_before && n_before % AUDIT_CHUNK == 0;
}

/** room_object_gone() - the record of an allocation is removed */
ROOM_FN void room_object_gone(struct audit_state *state, __u32 nearest, __u32 outermost)
{
	struct audit_tenant *outer = &state->tenants[outermost & (LEDGER_TENANTS - 1)];

	if (nearest != outermost)
		__sync_fetch_and_sub(&state->tenants[nearest & (LEDGER_TENANTS - 1)].n_objects, 1);
	if (room_enters_chunk(__sync_fetch_and_sub(&outer->n_objects, 1) - 1))
		__sync_fetch_and_sub(&state->control.n_chunks, 1);
}

/** room_object() - the record of an allocation is to be made. Return: whether it may be; then it counts */
ROOM_FN int room_object(struct audit_state *state, __u32 nearest, __u32 outermost)
{
	struct audit_tenant *inner = &state->tenants[nearest & (LEDGER_TENANTS - 1)];
	struct audit_tenant *outer = &state->tenants[outermost & (LEDGER_TENANTS - 1)];
	__u32 n = __sync_fetch_and_add(&outer->n_objects, 1), chunks = 0;
	int fits = n < AUDIT_TENANT_OBJECTS;

	if (room_enters_chunk(n))
		chunks = __sync_fetch_and_add(&state->control.n_chunks, 1);
	if (chunks)
		fits = fits && n / AUDIT_CHUNK <= room_left(AUDIT_CHUNKS, chunks);
	if (nearest != outermost) {
		__u32 inside = __sync_fetch_and_add(&inner->n_objects, 1);

		fits = fits && inside < room_left(AUDIT_TENANT_OBJECTS, n);
	}
	if (!fits)
		room_object_gone(state, nearest, outermost);
	return fits;
}

#endif
