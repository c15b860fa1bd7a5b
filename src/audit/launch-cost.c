// SPDX-License-Identifier: Apache-2.0
/*
 * What launches are expected to take, learned per kind: a function with a number of blocks.
 *
 * The programs count launches and read costs; what follows from the counts and a sample is share_learn()'s
 * to say.
 */
#include "launch.h"

_Static_assert(AUDIT_KERNELS <= SHARE_KINDS_MAX,
	       "share_learn() has room for all kinds of a process");

/* What one of the kind was charged, on average where that is not yet the same for each. */
static double cost_of(const struct audit_kernel *k, uint64_t guess_ns, uint64_t n_launches)
{
	return k->cost_ns ? (double)k->cost_ns
			  : share_expect_all(guess_ns, n_launches) / (double)n_launches;
}

void costs_count(struct engine *engine, struct probed *p, unsigned device, uint64_t now)
{
	const struct audit_work *work = work_at(engine, p->work);
	unsigned at = share_learner_count(&p->learners[device], now);

	for (size_t i = 0; i < AUDIT_KERNELS; i++)
		if (work->kernels[i].device == device)
			p->kinds[i].n_at[at] = work->kernels[i].n_launches;
}

/*
 * The kinds that were launched on a device since costs were last learned, with what is known of them. A sample
 * is told some time after its end, so what counts is what had been launched by then.
 */
static size_t kinds_collect(struct engine *engine, struct probed *p, unsigned device,
			    uint64_t end_ns, bool quiet, struct share_kind **ret)
{
	const struct audit_work *work = work_at(engine, p->work);
	unsigned at = share_learner_counted(&p->learners[device], end_ns);
	size_t n = 0;

	for (size_t i = 0; i < AUDIT_KERNELS; i++) {
		const struct audit_kernel *k = &work->kernels[i];
		uint64_t n_launches = quiet ? p->n_quiet[i] : p->kinds[i].n_at[at];

		if (!k->key || k->device != device ||
		    (k->n_launches <= p->kinds[i].n_before && p->kinds[i].n_joint <= 0))
			continue;
		p->kinds[i].n_now = k->n_launches;
		p->kinds[i].n_launches = MAX(n_launches, p->kinds[i].n_before);
		p->kinds[i].cost_ns = cost_of(k, work->guess_ns[device], k->n_launches);
		ret[n++] = &p->kinds[i];
	}
	return n;
}

double costs_learn(struct engine *engine, struct probed *p, unsigned device,
		   const struct share_sample *sample, double proven_ns, bool quiet)
{
	struct audit_work *work = work_at(engine, p->work);
	struct share_kind *kinds[AUDIT_KERNELS];
	size_t n = kinds_collect(engine, p, device, sample->end_ns, quiet, kinds);
	uint64_t n_before[AUDIT_KERNELS];
	double charged = 0, n_all = 0, factor;

	for (size_t i = 0; i < n; i++)
		n_before[i] = kinds[i]->n_before;
	factor = share_learn(&p->learners[device], kinds, n, sample,
			     share_meter_in_flight(&p->meters[device]), proven_ns);
	for (size_t i = 0; i < n; i++) {
		struct audit_kernel *k = &work->kernels[kinds[i] - p->kinds];
		double launches = kinds[i]->n_before - n_before[i];

		/* Of a new one there was not enough to learn from yet. */
		if (launches <= 0 && !k->cost_ns)
			continue;
		k->cost_ns = kinds[i]->cost_ns;
		charged += launches * kinds[i]->cost_ns;
		n_all += launches;
	}
	work->guess_ns[device] = share_guess(work->guess_ns[device], charged, n_all);
	return factor;
}

void costs_skip(struct engine *engine, struct probed *p, unsigned device)
{
	share_learner_skip(&p->learners[device]);
	for (size_t i = 0; i < AUDIT_KERNELS; i++)
		if (work_at(engine, p->work)->kernels[i].device == device)
			p->kinds[i].n_before = work_at(engine, p->work)->kernels[i].n_launches;
}
