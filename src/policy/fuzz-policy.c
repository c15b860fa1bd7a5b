/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any history: nobody within its request is acted on, what is suspended comes to an end,
 * and no more are ended within the window than may be.
 */
#include "policy/policy.h"

#include "base/str.h"

#include <assert.h>

#define N_TENANTS 4
#define N_DEVICES 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct history {
	uint64_t suspended_ms[N_TENANTS];
	uint64_t ended_ms[N_DEVICES][4];
	bool ended[N_TENANTS];
};

static bool is_within(const struct policy_tenant *t)
{
	unsigned i;

	for (i = 0; i < N_DEVICES; i++) {
		if (!t->use[i].known || t->use[i].used_bytes > t->use[i].request_bytes)
			return false;
	}
	return true;
}

static void check_ended(struct history *h, const struct policy_action *a, uint64_t now_ms)
{
	uint64_t *times = h->ended_ms[a->device];

	if (h->ended[a->id - 1])
		return;
	h->ended[a->id - 1] = true;
	assert(times[0] == 0 || now_ms - times[0] >= policy_defaults.window_ms);
	memmove(times, times + 1, 2 * sizeof(*times));
	times[2] = now_ms;
}

static void check_action(struct history *h, const struct policy_action *a,
			 const struct policy_tenant *t, uint64_t now_ms)
{
	assert(a->kind < N_POLICY_KINDS && a->reason < N_POLICY_REASONS && a->device < N_DEVICES);
	if (a->kind == POLICY_RESUME || a->kind == POLICY_CLEAR) {
		h->suspended_ms[a->id - 1] = 0;
		h->ended[a->id - 1] = false;
		return;
	}
	assert(!is_within(t));
	if (a->kind == POLICY_SUSPEND) {
		assert(!h->suspended_ms[a->id - 1]);
		h->suspended_ms[a->id - 1] = now_ms;
		h->ended[a->id - 1] = false;
	}
	if (a->kind == POLICY_EVICT || a->kind == POLICY_KILL) {
		h->suspended_ms[a->id - 1] = 0;
		check_ended(h, a, now_ms);
	}
}

static void read_tenant(struct policy_tenant *t, uint32_t id, const uint8_t *p)
{
	unsigned i;

	t->id = id;
	t->priority = p[0] % 3;
	t->ladder.from = p[1] % N_LADDER_STEPS;
	t->ladder.to = MAX(t->ladder.from, (enum ladder_step)(p[1] / 16 % N_LADDER_STEPS));
	t->grace_ms = p[0] & 4 ? 0 : 2000;
	for (i = 0; i < N_DEVICES; i++) {
		t->use[i].known = !(p[0] >> (6 + i) & 1);
		t->use[i].request_bytes = 1ULL << (p[2] % 64);
		t->use[i].used_bytes = p[3 + i] == 255 ? UINT64_MAX : (uint64_t)p[3 + i] << 28;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t record = 4 + N_TENANTS * 5;
	struct policy_tenant tenants[N_TENANTS] = {};
	struct policy_device devices[N_DEVICES];
	struct policy_actions actions = {};
	struct policy_state state = {};
	struct policy_sample sample = { 1, devices, N_DEVICES, tenants, N_TENANTS };
	struct history history = {};
	unsigned i;
	size_t j;

	for (; size >= record; data += record, size -= record) {
		sample.now_ms += data[0] * 64ULL;
		for (i = 0; i < N_DEVICES; i++)
			devices[i] =
				(struct policy_device){ data[1] >> i & 1, 80ULL << 30,
							(uint64_t)data[2] << 28,
							data[1] & 4 ? (uint64_t)data[3] << 28 : 0 };
		for (i = 0; i < N_TENANTS; i++)
			read_tenant(&tenants[i], i + 1, data + 4 + i * 5);
		assert(policy_decide(&policy_defaults, &state, &sample, &actions) == 0);
		for (j = 0; j < actions.n; j++)
			check_action(&history, &actions.items[j], &tenants[actions.items[j].id - 1],
				     sample.now_ms);
		for (i = 0; i < N_TENANTS; i++)
			assert(!history.suspended_ms[i] ||
			       sample.now_ms - history.suspended_ms[i] <
				       policy_defaults.suspend_deadline_ms);
	}
	policy_state_done(&state);
	policy_actions_done(&actions);
	return 0;
}
