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

static void test_resumed(void)
{
	const struct node_lease heard = { .asked_ms = 1000,
					  .timeout_ms = TIMEOUT,
					  .is_known = true };
	struct node_lease lease;

	node_lease_resume(&lease, &heard, 2000);
	is(&lease, 2000, NODE_LEASE_GO_ON, 3000, "one that was started anew goes on with it");
	is(&lease, 5000, NODE_LEASE_TERM, 1000, "to its end");
	node_lease_resume(&lease, &heard, 3600000);
	is(&lease, 3600000, NODE_LEASE_GO_ON, 2000,
	   "if nobody was there for long, Slurm is asked first");
	is(&lease, 3602000, NODE_LEASE_TERM, 1000, "for a sixth of its time");
	is(&lease, 3603000, NODE_LEASE_KILL, FOREVER, "and no longer");
	node_lease_resume(&lease, &lease, 3601000);
	is(&lease, 3602000, NODE_LEASE_TERM, 1000,
	   "who is started anew again does not ask for longer");
	node_lease_resume(&lease, &lease, 7200000);
	is(&lease, 7200000, NODE_LEASE_GO_ON, 2000, "unless nobody was there for long again");
	node_lease_renew(&lease, 7200500, TIMEOUT, 7200600);
	is(&lease, 7200600, NODE_LEASE_GO_ON, 3900, "and one that is heard goes on");
	node_lease_resume(&lease, &heard, 999);
	is(&lease, FOREVER, NODE_LEASE_GO_ON, FOREVER, "what is of the future is not known");
}

static void test_resumed_after_term(void)
{
	struct node_lease lease = { .asked_ms = 1000, .timeout_ms = TIMEOUT, .is_known = true };

	check(node_lease_note_term(&lease) && !node_lease_note_term(&lease),
	      "lease: that SIGTERM was sent is noted once");
	node_lease_resume(&lease, &lease, 5900);
	is(&lease, 5900, NODE_LEASE_TERM, 100, "who is started after SIGTERM asks nobody first");
}

/*
 * After the last answer whoever holds the lease is killed again and again, and for @away_ms in all there is
 * nobody.
 *
 * Return: when SIGKILL was ordered.
 */
static uint64_t kill_again_and_again(uint64_t timeout_ms, uint64_t away_ms)
{
	struct node_lease lease = { .asked_ms = 1000, .timeout_ms = timeout_ms, .is_known = true };
	uint64_t now_ms = lease.asked_ms, left_ms = away_ms, n, wait_ms;
	enum node_lease_order order;

	for (;;) {
		for (n = check_random_below(timeout_ms / 4); n > 0; n--, now_ms++) {
			order = node_lease_look(&lease, now_ms, &wait_ms);
			if (order == NODE_LEASE_KILL)
				return now_ms;
			if (order == NODE_LEASE_TERM)
				node_lease_note_term(&lease);
		}
		n = check_random_below(left_ms);
		left_ms -= n;
		now_ms += n;
		node_lease_resume(&lease, &lease, now_ms);
	}
}

static void test_killed(void)
{
	uint64_t late = 0, latest = 0, end, i;

	for (i = 0; i < 3000; i++) {
		end = kill_again_and_again(TIMEOUT, /* away_ms= */ TIMEOUT / 12);
		late += end >= 1000 + 2 * TIMEOUT / 3;
		latest = MAX(latest, end);
	}
	check(late == 0 && latest > 1000 + TIMEOUT / 3,
	      "lease: whenever who holds it is killed, all has ended in time: after %llu ms",
	      (unsigned long long)latest - 1000);
}

int main(void)
{
	test_contact();
	test_answers();
	test_clock();
	test_order();
	test_resumed();
	test_resumed_after_term();
	test_killed();
	return check_result();
}
