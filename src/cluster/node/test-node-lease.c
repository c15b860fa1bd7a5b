/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/node-lease.h"

#include "base/check.h"

#define TIMEOUT 12000
#define FOREVER UINT64_MAX

static void is(const struct node_lease *lease, uint64_t now_ms, enum node_lease_order order,
	       uint64_t wait_ms, const char *what)
{
	uint64_t wait = 0;
	enum node_lease_order said = node_lease_look(lease, now_ms, &wait);

	check(said == order && wait == wait_ms, "lease: %s (%d, wait %llu)", what, said,
	      (unsigned long long)wait);
}

static void test_contact(void)
{
	struct node_lease lease = {};

	is(&lease, 900000, NODE_LEASE_GO_ON, FOREVER, "who has never heard of Slurm ends nothing");
	node_lease_renew(&lease, 1000, TIMEOUT, 2500);
	is(&lease, 2500, NODE_LEASE_GO_ON, 2500,
	   "it counts from the question, not from the answer");
	is(&lease, 4999, NODE_LEASE_GO_ON, 1, "until a third of Slurm's time is over");
	is(&lease, 5000, NODE_LEASE_TERM, 1000, "then what may be started elsewhere is to end");
	is(&lease, 5999, NODE_LEASE_TERM, 1, "within a grace");
	is(&lease, 6000, NODE_LEASE_KILL, FOREVER, "and is then ended");
	node_lease_renew(&lease, 6500, TIMEOUT, 6600);
	is(&lease, 6600, NODE_LEASE_GO_ON, 3900, "one that is heard again goes on");
}

static void test_answers(void)
{
	struct node_lease lease = {};

	node_lease_renew(&lease, 3000, TIMEOUT, 3100);
	node_lease_renew(&lease, 1000, TIMEOUT, 3200);
	is(&lease, 7000, NODE_LEASE_TERM, 1000, "an older answer that comes late changes nothing");
	node_lease_renew(&lease, 90000, TIMEOUT, 7000);
	is(&lease, 7000, NODE_LEASE_TERM, 1000, "nor does one to a question of the future");
	node_lease_renew(&lease, 7000, 0, 7000);
	is(&lease, 900000, NODE_LEASE_GO_ON, FOREVER,
	   "a Slurm that gives up no node restarts nothing");
	node_lease_renew(&lease, 900000, 300000, 900000);
	is(&lease, 1000000, NODE_LEASE_TERM, 5000, "no grace is longer than five seconds");
}

static void test_clock(void)
{
	struct node_lease lease = {};

	node_lease_renew(&lease, 10000, TIMEOUT, 10000);
	is(&lease, 3610000, NODE_LEASE_KILL, FOREVER, "who has slept for an hour ends it at once");
	is(&lease, 9000, NODE_LEASE_GO_ON, 4000,
	   "a clock that goes back lengthens nothing beyond its own jump");
	is(&lease, FOREVER, NODE_LEASE_KILL, FOREVER, "nor does one at its end overflow");
}

/* Slurm hears the node every third of its timeout, until a cut that may come at any moment. */
static void test_order(void)
{
	uint64_t cut, heard, asked, now, wait, n = 0;
	struct node_lease lease;

	for (cut = 0; cut < TIMEOUT; cut += 7) {
		lease = (struct node_lease){};
		heard = cut - cut % (TIMEOUT / 3);
		for (asked = 0; asked <= cut; asked += 250)
			node_lease_renew(&lease, asked, TIMEOUT, asked);
		for (now = cut; node_lease_look(&lease, now, &wait) != NODE_LEASE_KILL; now++)
			;
		n += now < heard + TIMEOUT && now >= heard;
	}
	check(n == (TIMEOUT + 6) / 7,
	      "lease: wherever the cut falls, all has ended before Slurm gives up the node");
}

int main(void)
{
	test_contact();
	test_answers();
	test_clock();
	test_order();
	return check_result();
}
