// SPDX-License-Identifier: Apache-2.0
/*
 * What launches are expected to take, learned per kind: a function with a number of blocks.
 *
 * A driver measures a process, not a kernel. When what a process launched took longer than expected, the
 * kinds of which least is known are to blame most, each by how often it was launched:
 *
 *	known well	1000 launches of 20 us, off by 10 % at most: by 2 ms
 *	new		  10 launches taken to be 5 ms, off by 100 %: by 50 ms
 *
 * so a new kernel in a known mix is learned without disturbing the others.
 */
#include "launch.h"

#define COST_NS_MIN 500
#define DOUBT_MIN   0.1 /* costs depend on data, too: no kind is ever known better */
#define DOUBT_FADE  0.5 /* of a doubt that was looked into */

static uint64_t cost_of(const struct audit_work *work, size_t i, unsigned device)
{
	return work->kernels[i].cost_ns ? work->kernels[i].cost_ns : work->guess_ns[device];
}

/* Launches of a kind since costs last changed. */
static double launches_of(const struct engine *engine, const struct probed *p, size_t i, unsigned device)
{
	const struct audit_kernel *k = &engine->state->works[p->work].kernels[i];

	return k->key && k->device == device ? k->n_launches - p->kinds[i].n_before : 0;
}

/* By how much all launches of a kind together may be off. */
static double blame_of(const struct engine *engine, const struct probed *p, size_t i, unsigned device)
{
	double off = launches_of(engine, p, i, device) * p->kinds[i].doubt *
		     cost_of(&engine->state->works[p->work], i, device);

	return off * off;
}

/* The next new kind is likely to be as those before, with some caution. */
static void guess_change(struct audit_work *work, unsigned device, double charged, double n)
{
	double guess = 2 * charged / n;

	work->guess_ns[device] = MIN(MAX(guess, (double)COST_NS_MIN), (double)SHARE_FIRST_NS);
}

void costs_change(struct engine *engine, struct probed *p, unsigned device, double factor)
{
	struct audit_work *work = &engine->state->works[p->work];
	double blame = 0, missing = 0, charged = 0, n_all = 0;

	for (size_t i = 0; i < AUDIT_KERNELS; i++) {
		missing += (factor - 1) * launches_of(engine, p, i, device) * cost_of(work, i, device);
		blame += blame_of(engine, p, i, device);
	}
	if (blame <= 0)
		return;
	for (size_t i = 0; i < AUDIT_KERNELS; i++) {
		double n = launches_of(engine, p, i, device);
		double part = blame_of(engine, p, i, device) / blame, cost;

		if (n <= 0)
			continue;
		cost = cost_of(work, i, device) + missing * part / n;
		work->kernels[i].cost_ns = MAX(cost, (double)COST_NS_MIN);
		p->kinds[i].doubt = MAX(p->kinds[i].doubt * (1 - DOUBT_FADE * part), DOUBT_MIN);
		p->kinds[i].n_before = work->kernels[i].n_launches;
		charged += n * work->kernels[i].cost_ns;
		n_all += n;
	}
	guess_change(work, device, charged, n_all);
}
