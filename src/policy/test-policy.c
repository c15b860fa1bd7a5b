/* SPDX-License-Identifier: Apache-2.0 */
/* One rule of the policy a case: a few tenants on a device, a sample a second unless told
 * otherwise. */
#include "policy/policy.h"

#include "base/check.h"
#include "base/str.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

#define LADDER(first, last) ((struct ladder){ LADDER_##first, LADDER_##last })

/* A node with one device of 80 GiB and the tenants of a case. */
struct node {
	struct policy_numbers numbers;
	struct policy_state state;
	struct policy_actions actions;
	struct policy_device device;
	struct policy_tenant tenants[8];
	size_t n_tenants;
	uint64_t now_ms;
	uint64_t step_ms;
};

static void node_init(struct node *n)
{
	memset(n, 0, sizeof(*n));
	n->numbers = policy_defaults;
	n->device = (struct policy_device){ true, 80 * GIB, 40 * GIB, 0 };
	n->now_ms = 1000000;
	n->step_ms = 1000;
}

static struct policy_tenant *add(struct node *n, struct ladder ladder, uint64_t request,
				 uint64_t used)
{
	struct policy_tenant *t = &n->tenants[n->n_tenants++];

	*t = (struct policy_tenant){
		.id = n->n_tenants, .priority = 100, .ladder = ladder, .grace_ms = 60000
	};
	t->use[0] = (struct policy_use){ true, request, used };
	return t;
}

static void sample(struct node *n)
{
	struct policy_sample s = { n->now_ms, &n->device, 1, n->tenants, n->n_tenants };

	n->now_ms += n->step_ms;
	policy_decide(&n->numbers, &n->state, &s, &n->actions);
}

/* The actions of a sample in words: "warn 1, kill 1". */
static const char *next(struct node *n)
{
	static char text[400];
	size_t i, len = 0;

	sample(n);
	text[0] = '\0';
	for (i = 0; i < n->actions.n; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%s %u", i ? ", " : "",
				policy_kind_name(n->actions.items[i].kind), n->actions.items[i].id);
	return text;
}

static bool quiet(struct node *n, unsigned samples)
{
	while (samples--) {
		sample(n);
		if (n->actions.n > 0)
			return false;
	}
	return true;
}

static bool last_reason(const struct node *n, enum policy_reason reason)
{
	return n->actions.n > 0 && n->actions.items[n->actions.n - 1].reason == reason;
}

static void node_done(struct node *n)
{
	policy_state_done(&n->state);
	policy_actions_done(&n->actions);
}

static void test_over(void)
{
	struct policy_tenant *t;
	struct node n;

	node_init(&n);
	t = add(&n, LADDER(WARN, WARN), 4 * GIB, 4 * GIB + 256 * MIB);
	check(quiet(&n, 10), "over: the tolerance is at least 256 MiB");
	t->use[0].used_bytes++;
	check(quiet(&n, 2) && str_eq(next(&n), "warn 1"), "over: the third sample in a row");
	check(n.actions.items[0].used_bytes == 4 * GIB + 256 * MIB + 1 &&
		      n.actions.items[0].request_bytes == 4 * GIB,
	      "over: the numbers are told");
	check(quiet(&n, 200), "over: a warning is all that is asked for");
	t->use[0].used_bytes = 4 * GIB;
	check(quiet(&n, 4) && str_eq(next(&n), "clear 1"), "over: cleared by five in a row within");
	t->use[0] = (struct policy_use){ true, 40 * GIB, 41 * GIB };
	check(quiet(&n, 10), "over: of a large request 3 in a hundred are tolerated");
	t->use[0].used_bytes = 42 * GIB;
	check(quiet(&n, 2), "over: two samples");
	t->use[0].used_bytes = 41 * GIB;
	check(quiet(&n, 1), "over: one below the tolerance breaks the row");
	t->use[0].used_bytes = 42 * GIB;
	check(quiet(&n, 2) && str_eq(next(&n), "warn 1"), "over: and it begins anew");
	node_done(&n);
}

static void test_no_request(void)
{
	struct node n;

	node_init(&n);
	n.device.free_bytes = 0;
	add(&n, LADDER(KILL, KILL), POLICY_NO_REQUEST, 70 * GIB);
	add(&n, LADDER(KILL, KILL), 4 * GIB, 4 * GIB);
	check(quiet(&n, 100), "nobody: without a request, or within it, on a full device");
	add(&n, LADDER(KILL, KILL), GIB, 9 * GIB)->use[0].known = false;
	check(quiet(&n, 100), "nobody: whose use is not known");
	n.tenants[2].use[0].known = true;
	n.device.known = false;
	check(quiet(&n, 100), "nobody: on a device that cannot be asked");
	node_done(&n);
}

static void test_grace(void)
{
	struct policy_tenant *t;
	struct node n;

	node_init(&n);
	t = add(&n, LADDER(SUSPEND, KILL), GIB, 3 * GIB);
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1") && quiet(&n, 59) && str_eq(next(&n), "suspend 1"),
	      "grace: suspended 60 s after the warning");
	check(last_reason(&n, POLICY_GRACE), "grace: is the reason");
	check(quiet(&n, 29) && str_eq(next(&n), "evict 1") && last_reason(&n, POLICY_DEADLINE),
	      "grace: evicted at the deadline of the suspend");
	check(quiet(&n, 9) && str_eq(next(&n), "kill 1") && last_reason(&n, POLICY_STILL_THERE),
	      "grace: killed when the eviction did not end it");
	check(quiet(&n, 9) && str_eq(next(&n), "kill 1"), "grace: and again while it is there");
	n.n_tenants = 0;
	check(str_eq(next(&n), "clear 1") && last_reason(&n, POLICY_GONE),
	      "grace: gone in the end");
	n.n_tenants = 1;
	t->grace_ms = POLICY_FOR_EVER;
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1") && quiet(&n, 5000), "grace: for ever");
	node_done(&n);
}

static void test_suspend(void)
{
	struct policy_tenant *t;
	struct node n;

	node_init(&n);
	t = add(&n, LADDER(SUSPEND, SUSPEND), GIB, 3 * GIB);
	t->grace_ms = 0;
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1, suspend 1"), "suspend: at once without a grace");
	check(quiet(&n, 29) && str_eq(next(&n), "resume 1") && last_reason(&n, POLICY_DEADLINE),
	      "suspend: let go at its deadline where the ladder ends");
	check(quiet(&n, 2) && str_eq(next(&n), "suspend 1"),
	      "suspend: again once it was seen over-using again");
	t->use[0].request_bytes = 3 * GIB;
	check(str_eq(next(&n), "resume 1") && last_reason(&n, POLICY_WITHIN),
	      "suspend: let go as soon as its request is raised");
	check(quiet(&n, 3) && str_eq(next(&n), "clear 1"), "suspend: and cleared");
	t->use[0].request_bytes = GIB;
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1, suspend 1"), "suspend: a new incident");
	n.device.known = false;
	check(quiet(&n, 29) && str_eq(next(&n), "resume 1"),
	      "suspend: the deadline holds though the device cannot be asked");
	n.device.known = true;
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "suspend 1"), "suspend: it can be asked again");
	t->ladder = LADDER(WARN, WARN);
	check(str_eq(next(&n), "resume 1") && last_reason(&n, POLICY_CHANGED),
	      "suspend: let go when its policy no longer has one");
	node_done(&n);
}

static void test_pressure(void)
{
	struct node n;

	node_init(&n);
	n.step_ms = 200;
	n.device.free_bytes = 4 * GIB;
	add(&n, LADDER(WARN, EVICT), 10 * GIB, 12 * GIB);
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1") && quiet(&n, 20),
	      "pressure: a twentieth of 80 GiB is enough");
	n.device.free_bytes--;
	check(str_eq(next(&n), "suspend 1") && last_reason(&n, POLICY_PRESSURE),
	      "pressure: suspended at once, without a grace");
	check(quiet(&n, 24) && str_eq(next(&n), "evict 1"), "pressure: evicted 5 s later");
	node_done(&n);
}

static void test_foresight(void)
{
	struct node n;

	node_init(&n);
	add(&n, LADDER(KILL, KILL), 10 * GIB, 20 * GIB);
	sample(&n);
	sample(&n);
	n.device.free_bytes = 20 * GIB;
	check(str_eq(next(&n), "warn 1") && quiet(&n, 3), "foresight: one fall tells nothing");
	n.device.free_bytes = 16 * GIB;
	sample(&n);
	n.device.free_bytes = 12 * GIB;
	check(str_eq(next(&n), "kill 1") && last_reason(&n, POLICY_FORESIGHT),
	      "foresight: 4 GiB a second and 12 GiB left");
	node_done(&n);
}

static void test_victims(void)
{
	struct node n;
	size_t i;

	node_init(&n);
	n.device.wanted_bytes = 45 * GIB;
	add(&n, LADDER(KILL, KILL), 10 * GIB, 14 * GIB);
	add(&n, LADDER(KILL, KILL), GIB, 5 * GIB)->priority = 10;
	add(&n, LADDER(WARN, WARN), GIB, 30 * GIB);
	add(&n, LADDER(SUSPEND, SUSPEND), GIB, 6 * GIB);
	add(&n, LADDER(KILL, KILL), 20 * GIB, 20 * GIB);
	sample(&n);
	sample(&n);
	check(str_eq(next(&n), "warn 1, warn 2, warn 3, warn 4, kill 2, suspend 4"),
	      "victims: the largest excess, then the lowest priority, as many as it takes");
	for (i = 0; i < n.actions.n; i++)
		check(n.actions.items[i].id != 5, "victims: never who is within its request");
	node_done(&n);
}

static void test_budget(void)
{
	struct node n;
	unsigned i;

	node_init(&n);
	n.device.free_bytes = 0;
	for (i = 0; i < 5; i++)
		add(&n, LADDER(KILL, KILL), GIB, 2 * GIB);
	n.tenants[4].use[0].used_bytes = 3 * GIB;
	sample(&n);
	sample(&n);
	sample(&n);
	check(n.actions.n == 5 + 2, "budget: 4 GiB are missing, two cover them");
	n.tenants[4].use[0].used_bytes = n.tenants[0].use[0].used_bytes = 0;
	check(str_eq(next(&n), "kill 2, held 3") && last_reason(&n, POLICY_BUDGET),
	      "budget: the fourth is held, with the reason");
	n.tenants[1].use[0].used_bytes = 0;
	for (i = 0; i < 6; i++)
		sample(&n);
	check(quiet(&n, 592), "budget: and told once");
	check(str_eq(next(&n), "kill 3, kill 4"), "budget: until the first are long ago");
	node_done(&n);
}

static void test_clock(void)
{
	struct node n;

	node_init(&n);
	add(&n, LADDER(KILL, KILL), GIB, 3 * GIB)->grace_ms = 20000;
	sample(&n);
	sample(&n);
	n.now_ms += 3600000;
	check(quiet(&n, 2) && str_eq(next(&n), "warn 1"),
	      "clock: samples with a gap between are not in a row");
	n.now_ms -= 1800000;
	check(quiet(&n, 100), "clock: one that went back stands still");
	n.now_ms += 3600000;
	check(quiet(&n, 2) && str_eq(next(&n), "kill 1"),
	      "clock: after a gap it is seen over-using first");
	node_done(&n);
}

int main(void)
{
	test_over();
	test_no_request();
	test_grace();
	test_suspend();
	test_pressure();
	test_foresight();
	test_victims();
	test_budget();
	test_clock();
	return check_result();
}
