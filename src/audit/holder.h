/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the holder process share: holder.c (its life, and the threads that it stops),
 * holder-queue.c (whose turn it is).
 */
#ifndef AUDIT_HOLDER_H
#define AUDIT_HOLDER_H

#include "priv.h"

#define BUCKETS AUDIT_SLOTS

struct holder {
	struct audit_state *state;
	struct ring_buffer *wakes;
	int signal_fd;
	pid_t parent;
	char pin[PATH_MAX + 16];    /* gone when the engine was removed */
	uint32_t held[AUDIT_SLOTS]; /* slots that wait or were just let go, oldest ticket first */
	size_t n_held;
	uint32_t stopping[AUDIT_SLOTS]; /* slots whose threads are on their way to a stop */
	size_t n_stopping;
	int came_on;		 /* the CPU of the last thread that came */
	uint32_t came_tid;	 /* which it was, */
	uint64_t alone_since_ns; /* and since when none but that */
	uint32_t bucket
		[BUCKETS]; /* slots by their threads' ids: number + 1 of the first, then @next */
	uint32_t next[AUDIT_SLOTS];
	uint32_t filed_under[AUDIT_SLOTS];   /* thread id, 0 while in no bucket */
	uint32_t signalled[AUDIT_PROCESSES]; /* processes that signals came for */
	size_t n_signalled;
	uint64_t tickets[AUDIT_SLOTS];	 /* whose the next two are */
	uint64_t let_go_ns[AUDIT_SLOTS]; /* when a slot was released */
	uint8_t is_decided[AUDIT_SLOTS]; /* it was to be decided, and no signal came since */
	uint8_t let_go[AUDIT_SLOTS];	 /* a signal came before the thread had stopped */
	uint8_t is_ahead[LEDGER_TENANTS *
			 LEDGER_DEVICES];		  /* ledgers that an older call waits for */
	uint32_t queued[LEDGER_TENANTS * LEDGER_DEVICES]; /* ledgers whose n_queued is not 0 */
	size_t n_queued;
	uint8_t is_queued[LEDGER_TENANTS * LEDGER_DEVICES];
	uint32_t n_waiting[LEDGER_TENANTS *
			   LEDGER_DEVICES]; /* their calls, while they are counted */
	uint64_t wakes_lost;
	uint64_t dismissed_ns; /* since when everybody is to be let go, 0 while not */
};

static inline uint32_t slot_state(const struct audit_slot *slot)
{
	return __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
}

static inline bool slot_change(struct audit_slot *slot, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&slot->state, &from, to, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_ACQUIRE);
}

/** queue_inherit() - those who were in the queue of the holder before are so still */
void queue_inherit(struct holder *h);
/** queue_add() - a thread is held: behind those that are older */
void queue_add(struct holder *h, uint32_t at);
/** queue_remove() - another call has the slot: the place of the one before is not this one's */
void queue_remove(struct holder *h, uint32_t at);
/** queue_tidy() - drop what has left the queue: it was decided, or its thread was killed */
void queue_tidy(struct holder *h);
/**
 * queue_run() - release, oldest first, what fits now
 *
 * One per tenant and round: what it takes is known only when it has been decided, so those behind it wait for
 * the next round.
 */
void queue_run(struct holder *h);
/** slot_release() - let a held thread go for a signal, or whatever else it is to see; @signal: that it is to take */
void slot_release(struct holder *h, uint32_t at, int signal);

#endif
