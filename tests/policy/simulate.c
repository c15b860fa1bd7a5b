/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate [SEED [INCIDENTS]]: a node of two devices and six tenants, whose use goes up and
 * down at random; what the policy does to them has its effect. The judge looks on.
 */
#include "judge.h"

#include "base/check.h"

#include <string.h>

#define MIB   (1ULL << 20)
#define GIB   (1ULL << 30)
#define TOTAL (48 * GIB)

/* What a tenant is up to on a device, for some samples. */
enum mood { WITHIN, BETWEEN, SPIKE, BEYOND, GROWING, N_MOODS };

struct life {
	enum mood mood;
	unsigned n_left; /* samples until the mood changes */
	bool suspended;
	bool dying;
	unsigned dies_in;
};

struct world {
	uint64_t random;
	struct policy_device devices[JUDGE_DEVICES];
	struct policy_tenant tenants[JUDGE_TENANTS];
	struct life lives[JUDGE_TENANTS];
	uint32_t last_id;
	uint64_t now_ms;
	uint64_t step_ms;
};

/* xorshift: the same history for the same seed everywhere. */
static uint64_t rnd(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 11) % below;
}

static void be_born(struct world *w, size_t i)
{
	static const uint64_t graces[] = { 0, 2000, 10000, 60000, POLICY_FOR_EVER };
	struct policy_tenant *t = &w->tenants[i];
	unsigned device;

	memset(t, 0, sizeof(*t));
	memset(&w->lives[i], 0, sizeof(w->lives[i]));
	t->id = ++w->last_id;
	t->priority = rnd(w, 3);
	t->ladder.from = rnd(w, N_LADDER_STEPS);
	t->ladder.to = t->ladder.from + rnd(w, N_LADDER_STEPS - t->ladder.from);
	t->grace_ms = graces[rnd(w, 5)];
	for (device = 0; device < JUDGE_DEVICES; device++) {
		t->use[device].known = true;
		t->use[device].request_bytes =
			rnd(w, 4) ? (1 + rnd(w, 16)) * GIB : POLICY_NO_REQUEST;
	}
}

static uint64_t use_in(struct world *w, enum mood mood, const struct policy_use *use)
{
	uint64_t request = use->request_bytes;

	if (request == POLICY_NO_REQUEST)
		return rnd(w, 4 * GIB);
	switch (mood) {
	case WITHIN:
		return rnd(w, request + 1);
	case BETWEEN:
		return request + rnd(w, 256 * MIB);
	case SPIKE:
	case BEYOND:
		return request + request / 16 + GIB / 2 + rnd(w, 4 * GIB);
	default:
		return use->used_bytes + rnd(w, GIB / 2);
	}
}

static void live(struct world *w, size_t i)
{
	struct life *l = &w->lives[i];
	struct policy_use *use;
	unsigned device;

	if (l->suspended)
		return;
	if (l->n_left == 0) {
		l->mood = rnd(w, N_MOODS);
		l->n_left = l->mood == SPIKE ? 1 + rnd(w, 2) : 1 + rnd(w, 60);
		for (device = 0; device < JUDGE_DEVICES; device++) {
			use = &w->tenants[i].use[device];
			use->used_bytes = use_in(w, l->mood, use);
		}
	}
	l->n_left--;
	for (device = 0; device < JUDGE_DEVICES && l->mood == GROWING; device++) {
		use = &w->tenants[i].use[device];
		use->used_bytes = use_in(w, l->mood, use);
	}
}

static void look(struct world *w)
{
	uint64_t used;
	unsigned device;
	size_t i;

	for (device = 0; device < JUDGE_DEVICES; device++) {
		used = 0;
		for (i = 0; i < JUDGE_TENANTS; i++)
			used += w->tenants[i].use[device].used_bytes;
		w->devices[device] =
			(struct policy_device){ .known = rnd(w, 50) != 0,
						.total_bytes = TOTAL,
						.free_bytes = used < TOTAL ? TOTAL - used : 0 };
		if (rnd(w, 20) == 0)
			w->devices[device].wanted_bytes = rnd(w, 16 * GIB);
	}
}

static void carry_out(struct world *w, const struct policy_actions *actions)
{
	struct life *l;
	size_t i, j;

	for (i = 0; i < actions->n; i++) {
		for (j = 0; j < JUDGE_TENANTS && w->tenants[j].id != actions->items[i].id; j++)
			;
		if (j == JUDGE_TENANTS)
			continue;
		l = &w->lives[j];
		switch (actions->items[i].kind) {
		case POLICY_SUSPEND:
			l->suspended = true;
			break;
		case POLICY_RESUME:
			l->suspended = false;
			break;
		case POLICY_EVICT:
		case POLICY_KILL:
			l->suspended = false;
			l->dying = true;
			/* Some are not that easily ended. */
			l->dies_in = rnd(w, 10) ? rnd(w, 8) : 100;
			break;
		default:
			break;
		}
	}
}

static void bury(struct world *w, bool gone[JUDGE_TENANTS])
{
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++) {
		gone[i] = (w->lives[i].dying && w->lives[i].dies_in-- == 0) || rnd(w, 3000) == 0;
		if (gone[i])
			be_born(w, i);
	}
}

int main(int argc, char **argv)
{
	unsigned long wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
	struct world w = { .random = argc > 1 ? strtoull(argv[1], NULL, 10) : 4711,
			   .now_ms = 100000,
			   .step_ms = 1000 };
	struct policy_actions actions = {};
	struct policy_state state = {};
	struct judge judge = { .last_ms = 100000 };
	bool gone[JUDGE_TENANTS];
	unsigned long n = 0;
	size_t i;

	for (i = 0; i < JUDGE_TENANTS; i++)
		be_born(&w, i);
	while (judge.n_incidents < wanted && judge.n_wrong == 0) {
		struct policy_sample sample;

		if (rnd(&w, 500) == 0)
			w.step_ms = rnd(&w, 2) ? 200 : 1000;
		w.now_ms += rnd(&w, 2000) ? w.step_ms : 20000;
		bury(&w, gone);
		for (i = 0; i < JUDGE_TENANTS; i++)
			live(&w, i);
		look(&w);
		sample = (struct policy_sample){ w.now_ms, w.devices, JUDGE_DEVICES, w.tenants,
						 JUDGE_TENANTS };
		if (policy_decide(&policy_defaults, &state, &sample, &actions) < 0)
			return 1;
		judge_sample(&judge, &sample, &actions, gone);
		carry_out(&w, &actions);
		n++;
	}
	printf("%lu samples:", n);
	for (i = 0; i < N_POLICY_KINDS; i++)
		printf(" %s %lu", policy_kind_name(i), judge.n_actions[i]);
	printf("\n");
	check(judge.n_wrong == 0, "%lu incidents, each acted on as the policy says",
	      judge.n_incidents);
	policy_state_done(&state);
	policy_actions_done(&actions);
	return check_result();
}
