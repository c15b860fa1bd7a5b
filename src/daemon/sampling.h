/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample: the devices that are due are asked, and what their processes have is added up
 * for the tenants that hold something.
 */
#ifndef DAEMON_SAMPLING_H
#define DAEMON_SAMPLING_H

#include "daemon/overuse.h"

/**
 * struct sampled_tenant - a tenant that holds something, or did when its incident began
 * @policy:	its place among those that have a request, or SAMPLED_NO_REQUEST
 * @busy:	per cent of the time that its processes were at work, in sum
 */
struct sampled_tenant {
	const struct tenant *tenant;
	size_t policy;
	uint64_t bytes[LEDGER_DEVICES];
	double busy[LEDGER_DEVICES];
};

#define SAMPLED_NO_REQUEST SIZE_MAX

/**
 * struct sampling - a sample
 * @sample:	what the policy is asked
 * @policy:	its tenants
 * @tenants:	all that hold something, by their ids
 */
struct sampling {
	struct policy_sample sample;
	struct policy_device devices[LEDGER_DEVICES];
	struct policy_tenant *policy;
	struct sampled_tenant *tenants;
	size_t n_tenants;
};

/**
 * sampling_take() - ask and add up
 * @ret:	released with sampling_done()
 *
 * Return: 0, or -ENOMEM.
 */
int sampling_take(struct overuse *o, uint64_t now_ms, struct sampling *ret);

struct sampled_tenant *sampling_find(const struct sampling *s, uint32_t tenant);

void sampling_done(struct sampling *s);

#endif
