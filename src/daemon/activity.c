/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When tenants were last at work on a device.
 *
 * Two witnesses: the utilisation that the device samples per process, in which a
 * process with less than one per cent of a period does not show, and the books, in
 * which each change of a process' memory does.
 */
#include "daemon/overuse.h"

static void mark(struct daemon *d, const struct ledger_chain *chain, unsigned device,
		 uint64_t time_us)
{
	struct tenant *t;
	uint32_t i;

	for (i = 0; i < chain->n && i < LEDGER_DEPTH; i++) {
		t = tenants_by_number(&d->tenants, chain->tenants[i]);
		if (t)
			t->last_active_us[device] = MAX(t->last_active_us[device], time_us);
	}
}

/* What was allocated and freed again between two looks was so where the process has a context. */
static void mark_changed(struct daemon *d, const struct charged *now, const struct charged *before)
{
	uint64_t time_us = daemon_now_us();
	bool found = false;
	unsigned i;

	for (i = 0; i < LEDGER_DEVICES; i++) {
		if (now->use[i] == (before ? before->use[i] : 0))
			continue;
		mark(d, &now->chain, i, time_us);
		found = true;
	}
	for (i = 0; i < LEDGER_DEVICES && !found; i++) {
		if (now->n_contexts[i])
			mark(d, &now->chain, i, time_us);
	}
}

void daemon_activity_look(struct daemon *d)
{
	const struct charged *now, *before;
	size_t i, at = 0;

	for (i = 0; i < d->charged.n; i++) {
		now = &d->charged.items[i];
		before = charged_next(&d->charged_before, now->pid, &at);
		if (before && before->serial != now->serial)
			before = NULL;
		if (!before || before->moved != now->moved ||
		    memcmp(before->use, now->use, sizeof(now->use)) != 0)
			mark_changed(d, now, before);
	}
}

void daemon_activity_samples(struct daemon *d, unsigned device, const struct gpu_activity *samples,
			     size_t n)
{
	const struct charged *charged;
	size_t i;

	for (i = 0; i < n; i++) {
		overuse_saw_work(d->overuse, samples[i].pid, device, samples[i].percent);
		charged = samples[i].percent > 0 ? charged_find(&d->charged, samples[i].pid) : NULL;
		if (charged)
			mark(d, &charged->chain, device, samples[i].time_us);
	}
}
