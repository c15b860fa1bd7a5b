// SPDX-License-Identifier: Apache-2.0
/*
 * What launches are expected to take, learned per kind: a function with a number of blocks.
 *
 * The programs count launches and read costs; what follows from the counts and a sample is share_learn()'s
 * to say.
 */
#include "launch.h"

/* The next new kind is likely to be as those before, with some caution. */
static void guess_change(struct audit_work *work, unsigned device, double charged, double n)
{
	double guess = n > 0 ? 2 * charged / n : (double)work->guess_ns[device];

	work->guess_ns[device] = MIN(guess, (double)SHARE_FIRST_NS);
}

/* The kinds that were launched on a device since costs were last learned, with what is known of them. */
static size_t kinds_collect(struct engine *engine, struct probed *p, unsigned device, bool quiet,
			    struct share_kind **ret)
{
	const struct audit_work *work = work_at(engine, p->work);
	size_t n = 0;

	for (size_t i = 0; i < AUDIT_KERNELS; i++) {
		const struct audit_kernel *k = &work->kernels[i];
		uint64_t n_launches = quiet ? p->n_quiet[i] : k->n_launches;

		if (!k->key || k->device != device || n_launches <= p->kinds[i].n_before)
			continue;
		p->kinds[i].n_launches = n_launches;
		p->kinds[i].cost_ns = k->cost_ns ? k->cost_ns : work->guess_ns[device];
		ret[n++] = &p->kinds[i];
	}
	return n;
}

double costs_learn(struct engine *engine, struct probed *p, unsigned device,
		   const struct share_sample *sample, bool quiet)
{
	struct audit_work *work = work_at(engine, p->work);
	struct share_kind *kinds[AUDIT_KERNELS];
	size_t n = kinds_collect(engine, p, device, quiet, kinds);
	uint64_t n_before[AUDIT_KERNELS];
	double charged = 0, n_all = 0, factor;

	for (size_t i = 0; i < n; i++)
		n_before[i] = kinds[i]->n_before;
	factor = share_learn(&p->learners[device], kinds, n, sample,
			     share_meter_in_flight(&p->meters[device]));
	for (size_t i = 0; i < n; i++) {
		double launches = kinds[i]->n_before - n_before[i];

		/* Not enough to learn from yet. */
		if (launches <= 0)
			continue;
		work->kernels[kinds[i] - p->kinds].cost_ns = kinds[i]->cost_ns;
		charged += launches * kinds[i]->cost_ns;
		n_all += launches;
	}
	guess_change(work, device, charged, n_all);
	return factor;
}

void costs_skip(struct engine *engine, struct probed *p, unsigned device)
{
	p->learners[device] = (struct share_learner){};
	for (size_t i = 0; i < AUDIT_KERNELS; i++)
		if (work_at(engine, p->work)->kernels[i].device == device)
			p->kinds[i].n_before = work_at(engine, p->work)->kernels[i].n_launches;
}
