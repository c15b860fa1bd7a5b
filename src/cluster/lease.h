/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who of several controllers acts: the one that holds the lease, which is a row that all of them see.
 *
 *	look at the row --> mine: renew  \
 *	                    dead: take    >--> write it, if it is still as it was --> held from the look on
 *	                    else: wait   /
 *
 * Clocks are not compared: the holder counts up in the row, and who waits takes it when he has seen no
 * change for the lease's length on his own clock. The holder acts for that length from the moment at
 * which it looked, before it wrote; who waits has seen what it wrote later than that. So no two ever
 * act at once, however long either is stopped between any two steps; an order that was on its way when
 * the lease ended is waited for by whoever takes it, as after a death.
 */
#ifndef CLUSTER_LEASE_H
#define CLUSTER_LEASE_H

#include "base/base.h"

#include <stdbool.h>

#define LEASE_HOLDER 160

/**
 * struct lease_row - what all see
 * @holder:	"" for nobody
 * @n_renewed:	counts up, whoever holds it
 */
struct lease_row {
	char holder[LEASE_HOLDER];
	uint64_t n_renewed;
};

/**
 * struct lease - one's own part of it
 * @self:	how one is called in the row
 * @seen:	the row as it was seen or written last
 * @seen_ms:	when it was first seen so
 * @looked_ms:	when one looked before one wrote it, where it is held
 */
struct lease {
	char self[LEASE_HOLDER];
	uint64_t length_ms;
	struct lease_row seen;
	uint64_t seen_ms;
	uint64_t looked_ms;
	bool is_held;
};

/**
 * lease_look() - may the row be written?
 * @looked_ms:	from before it was read
 * @ret:	what to write, if the row is as it was
 */
bool lease_look(struct lease *lease, const struct lease_row *row, uint64_t looked_ms,
		struct lease_row *ret);

/**
 * lease_wrote() - it was written, as lease_look() has said
 */
void lease_wrote(struct lease *lease, const struct lease_row *row, uint64_t looked_ms);

/**
 * lease_may_act() - may an order be given now?
 */
bool lease_may_act(const struct lease *lease, uint64_t now_ms);

#endif
