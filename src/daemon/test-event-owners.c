/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/str.h"
#include "daemon/event-owners.h"

static void keep(struct event_owners *owners, uid_t uid, const char *tenant, int n)
{
	event_owners_keep(owners, event_owners_get(owners, uid, tenant), n);
}

static void test_who(void)
{
	struct event_owners owners = {};

	keep(&owners, 1000, "a", 1);
	keep(&owners, 1000, "b", 1);
	check(owners.n == 1, "a user's tenants are one owner");
	keep(&owners, 0, "a", 1);
	keep(&owners, (uid_t)-1, "a", 1);
	check(owners.n == 2,
	      "a tenant that is no user's is one, whether root's process or nobody's");
	keep(&owners, 0, NULL, 1);
	check(owners.n == 3 && owners.n_kept == 5, "what is about nobody is the third");
	event_owners_keep(&owners, event_owners_get(&owners, 0, "a"), -2);
	event_owners_drop_empty(&owners);
	check(owners.n == 2 && event_owners_get(&owners, 1000, NULL)->n_kept == 2,
	      "who has none any more is forgotten, the others are not");
	event_owners_done(&owners);
}

static void test_level(void)
{
	struct event_owners owners = {};

	check(event_owners_level(&owners, 100) == 0, "level: of nobody");
	keep(&owners, 1, NULL, 10);
	keep(&owners, 2, NULL, 20);
	check(event_owners_level(&owners, 100) >= 20, "level: all fit");
	keep(&owners, 3, NULL, 200);
	check(event_owners_level(&owners, 100) == 70,
	      "level: who has little leaves it to the others");
	keep(&owners, 4, NULL, 200);
	check(event_owners_level(&owners, 100) == 35, "level: the many share it");
	check(event_owners_level(&owners, 3) == 0, "level: less than one each");
	event_owners_done(&owners);
}

static void test_rate(void)
{
	struct event_owners owners = {};
	struct event_owner *owner = event_owners_get(&owners, 1000, NULL);
	uint64_t n = 0;
	int i, taken = 0;

	for (i = 0; i < EVENTS_A_SECOND + 50; i++)
		taken += event_owners_take(&owners, owner, 7);
	check(taken == EVENTS_A_SECOND && owners.n_left_out == 50, "rate: so many in a second");
	check(event_owners_take(&owners, event_owners_get(&owners, 1001, NULL), 7),
	      "rate: another's are not concerned");
	check(!event_owners_next_left_out(&owners, 7, &n),
	      "rate: it is told when the second is over");
	owner = event_owners_get(&owners, 1000, NULL);
	check(event_owners_next_left_out(&owners, 8, &n) == owner && n == 50 &&
		      owners.n_left_out == 0 && !event_owners_next_left_out(&owners, 8, &n),
	      "rate: once, with the number");
	check(event_owners_take(&owners, owner, 8), "rate: the next second begins anew");
	event_owners_done(&owners);
}

int main(void)
{
	test_who();
	test_level();
	test_rate();
	return check_result();
}
