/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose events there are: what keeps one who raises many from pushing out those of others.
 *
 * An event is its user's, or, where that is root or nobody, its tenant's; so a user with
 * many tenants has one part all the same. Two things are bounded: how many of an owner are
 * taken in a second, and, when there are too many in all, how many are kept: those of the
 * owners who have most go first, as if water were let out of glasses down to one level.
 */
#ifndef DAEMON_EVENT_OWNERS_H
#define DAEMON_EVENT_OWNERS_H

#include "base/base.h"

#include <stdbool.h>
#include <sys/types.h>

#define EVENT_OWNER_NAME 64

/* Of one owner in a second. */
#define EVENTS_A_SECOND 1000

/**
 * struct event_owner - one of them
 * @uid:	the user; 0 where it is a tenant
 * @tenant:	its name; "" for a user, and for what is about nobody
 * @n_kept:	how many of its events there are
 * @second:	of the last event
 * @n_in_second:	how many came in it
 * @n_left_out:	how many of these were beyond the bound
 */
struct event_owner {
	uid_t uid;
	char tenant[EVENT_OWNER_NAME];
	uint64_t n_kept;
	uint64_t second;
	uint64_t n_in_second;
	uint64_t n_left_out;
};

/**
 * struct event_owners - all who have an event
 * @n_kept:	in sum
 * @n_left_out:	in sum, not told yet
 */
struct event_owners {
	struct event_owner *items;
	size_t n;
	size_t cap;
	uint64_t n_kept;
	uint64_t n_left_out;
};

/**
 * event_owners_get() - whose an event is; a new owner is added
 * @uid:	root and (uid_t)-1 stand for nobody
 * @tenant:	may be NULL
 *
 * Return: valid until the next call; NULL where there is no memory.
 */
struct event_owner *event_owners_get(struct event_owners *owners, uid_t uid, const char *tenant);

/**
 * event_owners_keep() - so many more of an owner are kept, or fewer
 */
void event_owners_keep(struct event_owners *owners, struct event_owner *owner, int64_t n);

/**
 * event_owners_take() - may one more event of an owner be taken now? It is counted if not.
 */
bool event_owners_take(struct event_owners *owners, struct event_owner *owner, uint64_t second);

/**
 * event_owners_is_over() - would one more event of an owner be too many now? It is counted if so.
 */
bool event_owners_is_over(struct event_owners *owners, struct event_owner *owner, uint64_t second);

/**
 * event_owners_level() - how many each may have at most so that all have @total together
 */
uint64_t event_owners_level(const struct event_owners *owners, uint64_t total);

/**
 * event_owners_next_left_out() - an owner of whom events were left out in a second that is over
 *
 * Return: NULL if there is none; else *ret_n were, and are forgotten here.
 */
const struct event_owner *event_owners_next_left_out(struct event_owners *owners, uint64_t second,
						     uint64_t *ret_n);

/**
 * event_owners_drop_empty() - forget those who have no event any more
 */
void event_owners_drop_empty(struct event_owners *owners);

void event_owners_done(struct event_owners *owners);

#endif
