/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The right to give orders: a lock for those on one machine, a lease in the services' file for those on
 * several that share it.
 *
 * The lock goes at once to who waits when its holder dies. Where the storage is such that locks do not
 * reach the other machine, or outlive it, the lease decides.
 */
#ifndef CLUSTER_HOLD_H
#define CLUSTER_HOLD_H

#include "cluster/controller/store.h"

/**
 * struct hold - one's own right
 * @lock_fd:	of the file beside the services'
 * @has_complained:	what does not work is in the log, since it worked last
 * @lock:	how that is told apart from a lock on another machine: what of a holder's name it begins
 */
struct hold {
	struct lease lease;
	int lock_fd;
	bool has_complained;
	char lock[LEASE_HOLDER / 2];
};

/**
 * hold_lock() - take the lock, or wait for it
 * @is_over:	becomes other than 0 when a signal says that it is not wanted any more
 *
 * Return: 0 with the lock or without it as @is_over says, or a fault that was logged.
 */
int hold_lock(struct hold *hold, const char *path, uint64_t length_ms, const volatile int *is_over);

/**
 * hold_renew() - renew the lease, or try to take it
 *
 * Return: 1 where it was just taken, 0 where it is held as before, -EAGAIN where another one has it,
 * or a fault that was logged.
 */
int hold_renew(struct hold *hold, struct store *store);

/**
 * hold_may_act() - may an order be given now?
 */
bool hold_may_act(const struct hold *hold);

void hold_done(struct hold *hold);

#endif
