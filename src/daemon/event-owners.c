/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/event-owners.h"

#include "base/array.h"
#include "base/str.h"

#include <string.h>

/* Sorted by user, then by tenant. */
static int compare(const struct event_owner *owner, uid_t uid, const char *tenant)
{
	if (owner->uid != uid)
		return owner->uid < uid ? -1 : 1;
	return strcmp(owner->tenant, tenant);
}

/* Where an owner stands, or would stand. */
static size_t place_of(const struct event_owners *owners, uid_t uid, const char *tenant)
{
	size_t low = 0, high = owners->n, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (compare(&owners->items[mid], uid, tenant) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct event_owner *insert(struct event_owners *owners, size_t at)
{
	void *items = array_room(owners->items, owners->n, &owners->cap, sizeof(*owners->items));

	if (!items)
		return NULL;
	owners->items = items;
	memmove(&owners->items[at + 1], &owners->items[at],
		(owners->n - at) * sizeof(*owners->items));
	owners->n++;
	memset(&owners->items[at], 0, sizeof(*owners->items));
	return &owners->items[at];
}

struct event_owner *event_owners_get(struct event_owners *owners, uid_t uid, const char *tenant)
{
	bool is_user = uid != 0 && uid != (uid_t)-1;
	char name[EVENT_OWNER_NAME] = "";
	struct event_owner *owner;
	size_t at;

	if (!is_user && tenant)
		str_copy(name, sizeof(name), tenant);
	uid = is_user ? uid : 0;
	at = place_of(owners, uid, name);
	if (at < owners->n && compare(&owners->items[at], uid, name) == 0)
		return &owners->items[at];
	owner = insert(owners, at);
	if (!owner)
		return NULL;
	owner->uid = uid;
	memcpy(owner->tenant, name, sizeof(name));
	return owner;
}

void event_owners_keep(struct event_owners *owners, struct event_owner *owner, int64_t n)
{
	owner->n_kept += n;
	owners->n_kept += n;
}

bool event_owners_is_over(struct event_owners *owners, struct event_owner *owner, uint64_t second)
{
	/* What was left out of an earlier second is told before another begins. */
	if (owner->second != second && owner->n_left_out == 0) {
		owner->second = second;
		owner->n_in_second = 0;
	}
	if (owner->second == second && owner->n_in_second < EVENTS_A_SECOND)
		return false;
	owner->n_left_out++;
	owners->n_left_out++;
	return true;
}

bool event_owners_take(struct event_owners *owners, struct event_owner *owner, uint64_t second)
{
	if (event_owners_is_over(owners, owner, second))
		return false;
	owner->n_in_second++;
	return true;
}

/*
 * 100 in all of 10, 20 and 200: each may have 100 / 3 = 33, but two need less than that and
 * leave 100 - 30 = 70 to the third. So the level rises until nobody new is below it.
 */
uint64_t event_owners_level(const struct event_owners *owners, uint64_t total)
{
	uint64_t level = 0, before, below;
	size_t i, n_above;

	do {
		before = level;
		below = 0;
		n_above = 0;
		for (i = 0; i < owners->n; i++) {
			if (owners->items[i].n_kept > before)
				n_above++;
			else
				below += owners->items[i].n_kept;
		}
		if (n_above == 0)
			return before;
		level = below < total ? (total - below) / n_above : 0;
	} while (level > before);
	return MAX(level, before);
}

const struct event_owner *event_owners_next_left_out(struct event_owners *owners, uint64_t second,
						     uint64_t *ret_n)
{
	struct event_owner *owner;
	size_t i;

	for (i = 0; i < owners->n && owners->n_left_out > 0; i++) {
		owner = &owners->items[i];
		if (owner->n_left_out == 0 || owner->second == second)
			continue;
		*ret_n = owner->n_left_out;
		owners->n_left_out -= owner->n_left_out;
		owner->n_left_out = 0;
		return owner;
	}
	return NULL;
}

void event_owners_drop_empty(struct event_owners *owners)
{
	size_t i, n = 0;

	for (i = 0; i < owners->n; i++) {
		if (owners->items[i].n_kept > 0 || owners->items[i].n_left_out > 0)
			owners->items[n++] = owners->items[i];
	}
	owners->n = n;
}

void event_owners_done(struct event_owners *owners)
{
	free(owners->items);
	memset(owners, 0, sizeof(*owners));
}
