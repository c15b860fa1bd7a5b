/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The judge of a simulated node: it knows the rules of docs/policy.md, sees each sample and
 * what the policy did, and counts what should not be.
 *
 * It is written from the rules, not from the policy's code: it keeps the last samples of
 * each tenant and asks of them anew each time.
 */
#ifndef POLICY_JUDGE_H
#define POLICY_JUDGE_H

#include "policy/policy.h"

#define JUDGE_TENANTS 6
#define JUDGE_DEVICES 2
#define JUDGE_HISTORY 5

/* What the judge remembers of a tenant; zeroed when another one takes its place. */
struct judged {
	/* +1 above the tolerance, -1 within the request, 0 between; the latest first */
	int marks[JUDGE_DEVICES][JUDGE_HISTORY];
	bool open;
	bool suspended;
	bool ended;
	bool held;
	uint64_t suspended_ms;
	uint64_t ended_ms;
	uint64_t quiet_ms; /* since when the grace counts */
};

struct judge {
	struct judged tenants[JUDGE_TENANTS];
	uint64_t free_bytes[JUDGE_DEVICES][3];
	uint64_t free_ms[JUDGE_DEVICES][3];
	unsigned n_free[JUDGE_DEVICES];
	uint64_t ended_ms[JUDGE_DEVICES][64];
	unsigned n_ended[JUDGE_DEVICES];
	uint64_t last_ms;
	unsigned long n_incidents;
	unsigned long n_actions[N_POLICY_KINDS];
	unsigned long n_wrong;
};

/**
 * judge_sample() - look at a sample and at what was done
 *
 * Tenants stand in the sample by their place; @gone tells which place is of a new one.
 */
void judge_sample(struct judge *judge, const struct policy_sample *sample,
		  const struct policy_actions *actions, const bool gone[JUDGE_TENANTS]);

#endif
