/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares, against a small model of a device: kernels in queues, turns of 2 ms, samples in whole per cents
 * every sixth of a second, threads that are let go a few milliseconds late.
 *
 * Nothing here takes real time or chance, so the figures are the same each time.
 */
#include "tenant/share.h"

#include "base/base.h"
#include "base/check.h"

#define MS	    1000000ULL
#define STEP_NS	    20000ULL /* of the model's clock */
#define TURN_NS	    (2 * MS)
#define SAMPLE_NS   (500 * MS / 3)
#define TICK_NS	    (25 * MS) /* how often user space looks */
#define RELEASE_NS  (5 * MS)  /* held threads are looked at so often */
#define END_NS	    (9000 * MS)
#define WINDOW_STEP (100 * MS)
#define WINDOWS	    128
#define QUEUE	    1024 /* launches that the driver takes before it blocks */
#define TENANTS	    4
#define CHANGE_NS   (3000 * MS)

struct tenant {
	double max; /* compute.max */
	double weight;
	uint64_t kernel_ns;
	bool synchronous;
	uint64_t idle_from_ns; /* it does nothing between these */
	uint64_t idle_to_ns;

	uint64_t short_ns; /* of every other kernel, if any; for a second in three of all */

	uint64_t
		changed_ns; /* what kernels take after CHANGE_NS, by their arguments, if it is not @kernel_ns */
	uint64_t
		phase_ns; /* and how long, until they take @kernel_ns again, and so on; 0 for ever */

	uint64_t begin_ns; /* nothing is launched before */

	struct share share;
	struct share_meter meter;
	struct share_learner learner;
	struct share_kind kinds[2];
	uint64_t costs_ns[2]; /* as the programs have them: 0 as long as nothing is known */
	uint64_t guess_ns;
	size_t n_launches;
	uint64_t charged_ns;
	uint64_t ahead_ns;  /* queued */
	uint64_t busy_ns;   /* in the running period */
	uint64_t served_ns; /* in all */
	uint64_t resume_ns; /* the thread sleeps or is held until then */
	uint64_t window_at[WINDOWS];
	bool held;
};

struct model {
	struct tenant tenants[TENANTS];
	size_t n;
	size_t turn;
	uint64_t turn_end_ns;
};

static void serve(struct model *m, uint64_t now)
{
	for (size_t i = 0; i <= m->n; i++) {
		struct tenant *t = &m->tenants[m->turn];

		if (t->ahead_ns > 0 && now < m->turn_end_ns) {
			t->ahead_ns -= STEP_NS;
			t->busy_ns += STEP_NS;
			t->served_ns += STEP_NS;
			return;
		}
		m->turn = (m->turn + 1) % m->n;
		m->turn_end_ns = now + TURN_NS;
	}
}

static bool may_launch(const struct tenant *t, uint64_t now)
{
	if (now < t->begin_ns || now < t->resume_ns ||
	    (now >= t->idle_from_ns && now < t->idle_to_ns))
		return false;
	return t->synchronous ? t->ahead_ns == 0 : t->ahead_ns < QUEUE * t->kernel_ns;
}

static size_t kind_of_next(const struct tenant *t, uint64_t now)
{
	return t->short_ns && (t->n_launches % 2 || now / (1000 * MS) % 3 == 0);
}

static uint64_t kernel_takes(const struct tenant *t, uint64_t now)
{
	bool changed = t->changed_ns && now >= CHANGE_NS;

	if (changed && t->phase_ns)
		changed = (now - CHANGE_NS) / t->phase_ns % 2 == 0;
	return changed ? t->changed_ns : t->kernel_ns;
}

static void launch(struct tenant *t, uint64_t now)
{
	/* Two launches a step: about what a thread does without the device. */
	for (int i = 0; i < 2 && may_launch(t, now); i++) {
		if (!share_is_due(&t->share, now)) {
			t->held = true;
			t->resume_ns = (now / RELEASE_NS + 1) * RELEASE_NS;
			return;
		}
		size_t kind = kind_of_next(t, now);
		struct share_kind *k = &t->kinds[kind];
		uint64_t cost = share_expect(t->costs_ns[kind], t->guess_ns, k->n_now);

		share_take(&t->share, now, cost);
		t->charged_ns += cost;
		t->ahead_ns += k == t->kinds ? kernel_takes(t, now) : t->short_ns;
		t->n_launches++;
		k->n_now++;
	}
}

static void divide(struct model *m, uint64_t now)
{
	struct share_claim claims[TENANTS];

	for (size_t i = 0; i < m->n; i++)
		claims[i] = (struct share_claim){ m->tenants[i].weight, m->tenants[i].max,
						  (double)m->tenants[i].busy_ns / SAMPLE_NS,
						  m->tenants[i].held, 0 };
	share_divide(claims, m->n, /* whole= */ 1);
	for (size_t i = 0; i < m->n; i++) {
		share_set_rate(&m->tenants[i].share, now, share_stretch(claims[i].ret_rate));
		m->tenants[i].held = false;
	}
}

/* As the engine does it. */
static double learn(struct tenant *t, const struct share_sample *s, double proven)
{
	struct share_kind *kinds[ARRAY_SIZE(t->kinds)];
	double ns = 0, launches = 0, factor;
	uint64_t before[ARRAY_SIZE(t->kinds)];
	unsigned at = share_learner_counted(&t->learner, s->end_ns);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(t->kinds); i++) {
		struct share_kind *k = &t->kinds[i];

		if (k->n_now == k->n_before && k->n_joint <= 0)
			continue;
		k->n_launches = MAX(k->n_at[at], k->n_before);
		k->cost_ns = t->costs_ns[i]
				     ? (double)t->costs_ns[i]
				     : share_expect_all(t->guess_ns, k->n_now) / (double)k->n_now;
		before[n] = k->n_before;
		kinds[n++] = k;
	}
	factor = share_learn(&t->learner, kinds, n, s, share_meter_in_flight(&t->meter), proven);
	for (size_t i = 0; i < n; i++) {
		double learned = (double)(kinds[i]->n_before - before[i]);

		if (learned <= 0 && !t->costs_ns[kinds[i] - t->kinds])
			continue;
		t->costs_ns[kinds[i] - t->kinds] = (uint64_t)kinds[i]->cost_ns;
		ns += learned * kinds[i]->cost_ns;
		launches += learned;
	}
	t->guess_ns = share_guess(t->guess_ns, ns, launches);
	return factor;
}

static void sample(struct model *m, uint64_t end)
{
	uint64_t busy = 0, n_busy = 0;

	for (size_t i = 0; i < m->n; i++) {
		busy += m->tenants[i].busy_ns;
		n_busy += m->tenants[i].busy_ns > 0;
	}
	if (m->n > 1)
		divide(m, end);
	for (size_t i = 0; i < m->n; i++) {
		struct tenant *t = &m->tenants[i];
		uint64_t percent = (t->busy_ns * 100 + SAMPLE_NS / 2) / SAMPLE_NS;
		struct share_sample s = {
			.begin_ns = end - SAMPLE_NS,
			.end_ns = end,
			.busy_ns = percent * SAMPLE_NS / 100,
			.drained = busy < SAMPLE_NS * 95 / 100 || percent * n_busy < 80,
			.turns = MIN((double)(percent * n_busy) / 100, 1.0),
		};
		double correction = share_meter_sample(&t->meter, &s);

		correction += share_meter_scale(&t->meter, learn(t, &s, correction));
		share_correct(&t->share, end, correction);
		t->busy_ns = 0;
	}
}

static void mark(struct tenant *t, uint64_t now)
{
	unsigned at = share_learner_count(&t->learner, now);

	share_meter_mark(&t->meter, now, t->charged_ns);
	for (size_t i = 0; i < ARRAY_SIZE(t->kinds); i++)
		t->kinds[i].n_at[at] = t->kinds[i].n_now;
}

static void run(struct model *m)
{
	uint64_t n_samples = 0;

	for (size_t i = 0; i < m->n; i++) {
		m->tenants[i].kinds[0] = m->tenants[i].kinds[1] =
			(struct share_kind){ .doubt = SHARE_UNSURE };
		m->tenants[i].guess_ns = SHARE_FIRST_NS;
		share_set_rate(&m->tenants[i].share, 0, share_stretch(m->tenants[i].max));
	}
	for (uint64_t now = 0; now < END_NS; now += STEP_NS) {
		for (size_t i = 0; i < m->n; i++) {
			launch(&m->tenants[i], now);
			if (now % WINDOW_STEP == 0)
				m->tenants[i].window_at[now / WINDOW_STEP] =
					m->tenants[i].served_ns;
			if (now % TICK_NS == 0)
				mark(&m->tenants[i], now);
		}
		serve(m, now);
		if (now % TICK_NS == 0 && now / SAMPLE_NS > n_samples)
			sample(m, ++n_samples * SAMPLE_NS);
	}
}

/* Least and greatest share in any window after it has been at work for a while. */
static void shares(const struct tenant *t, uint64_t settled_ns, double *ret_least, double *ret_most)
{
	uint64_t width = MAX(2000 * MS, 20 * t->kernel_ns) / WINDOW_STEP;

	*ret_least = 1;
	*ret_most = 0;
	for (size_t i = (t->begin_ns + settled_ns) / WINDOW_STEP; i + width < END_NS / WINDOW_STEP;
	     i++) {
		double share =
			(double)(t->window_at[i + width] - t->window_at[i]) / (width * WINDOW_STEP);

		*ret_least = MIN(*ret_least, share);
		*ret_most = MAX(*ret_most, share);
	}
}

static void check_alone(double max, uint64_t kernel_ns, bool synchronous)
{
	struct model m = { .n = 1,
			   .tenants = { { .max = max,
					  .weight = 1,
					  .kernel_ns = kernel_ns,
					  .synchronous = synchronous } } };
	double least, most;

	run(&m);
	shares(&m.tenants[0], 1000 * MS, &least, &most);
	check(least > max - 0.03 && most < max + 0.03,
	      "share: %g%% alone, %s kernels of %g ms: %.1f to %.1f", max * 100,
	      synchronous ? "synchronous" : "asynchronous", kernel_ns / 1e6, least * 100,
	      most * 100);
}

/* Short kernels alone, long ones among them after the first second, and so on: the long ones are new then. */
static void check_mixed(bool synchronous)
{
	struct model m = { .n = 1,
			   .tenants = { { .max = 0.3,
					  .weight = 1,
					  .kernel_ns = 5 * MS,
					  .short_ns = 20000,
					  .synchronous = synchronous } } };
	double least, most;

	run(&m);
	shares(&m.tenants[0], 1000 * MS, &least, &most);
	check(least > 0.26 && most < 0.33,
	      "share: 30%% alone, kernels of 5 ms and 20 us mixed%s: %.1f to %.1f, "
	      "learned as %.2f ms and %.1f us",
	      synchronous ? ", synchronous" : "", least * 100, most * 100,
	      m.tenants[0].kinds[0].cost_ns / 1e6, m.tenants[0].kinds[1].cost_ns / 1e3);
}

/*
 * The least and the greatest share of each when it begins at any moment between two samples. It is not to
 * matter; @settled_ns: how long each has been at work by then.
 */
static void check_begins(const char *name, const struct model *model, const double *wanted,
			 const double *tolerance, uint64_t settled_ns)
{
	double least[TENANTS] = { 1, 1, 1, 1 }, most[TENANTS] = {};

	for (uint64_t begin = 0; begin < 2 * SAMPLE_NS; begin += 23 * MS) {
		struct model m = *model;

		for (size_t i = 0; i < m.n; i++)
			m.tenants[i].begin_ns = begin + 53 * i * MS;
		run(&m);
		for (size_t i = 0; i < m.n; i++) {
			double low, high;

			shares(&m.tenants[i], settled_ns, &low, &high);
			least[i] = MIN(least[i], low);
			most[i] = MAX(most[i], high);
		}
	}
	for (size_t i = 0; i < model->n; i++)
		check(least[i] > wanted[i] - tolerance[i] && most[i] < wanted[i] + tolerance[i],
		      "share: %s%s, begun at any moment: %zu has %.1f to %.1f, wanted %.1f", name,
		      model->tenants[0].synchronous ? ", synchronous" : "", i, least[i] * 100,
		      most[i] * 100, wanted[i] * 100);
}

static void check_begins_all(bool synchronous)
{
	struct tenant t = {
		.max = 1, .weight = 1, .kernel_ns = 1 * MS, .synchronous = synchronous
	};
	struct model one = { .n = 1, .tenants = { t } };
	struct model both = { .n = 2, .tenants = { t, t } };
	struct model weights = { .n = 3, .tenants = { t, t, t } };

	one.tenants[0].max = both.tenants[0].max = 0.3;
	both.tenants[1].max = 0.7;
	weights.tenants[0].weight = 4;
	weights.tenants[1].weight = 2;
	check_begins("30% alone", &one, (const double[]){ 0.3 }, (const double[]){ 0.03 },
		     1000 * MS);
	one.tenants[0].kernel_ns = 20000;
	check_begins("30% alone, short kernels", &one, (const double[]){ 0.3 },
		     (const double[]){ 0.03 }, 1000 * MS);
	check_begins("30 and 70 per cent", &both, (const double[]){ 0.3, 0.7 },
		     (const double[]){ 0.03, 0.03 }, 2000 * MS);
	check_begins("weights 4:2:1", &weights, (const double[]){ 4 / 7.0, 2 / 7.0, 1 / 7.0 },
		     (const double[]){ 0.04, 0.03, 0.015 }, 2000 * MS);
}

static void check_many(const char *name, struct model *m, const double *wanted, double tolerance)
{
	run(m);
	for (size_t i = 0; i < m->n; i++) {
		double least, most;

		shares(&m->tenants[i], 1000 * MS, &least, &most);
		check(least > wanted[i] - tolerance * wanted[i] &&
			      most < wanted[i] + tolerance * wanted[i],
		      "share: %s: %zu has %.1f to %.1f, wanted %.1f", name, i, least * 100,
		      most * 100, wanted[i] * 100);
	}
}

/* While the heaviest does nothing, the others have its time. */
static void check_idle(void)
{
	struct model m = { .n = 3,
			   .tenants = { { .max = 1, .weight = 1, .kernel_ns = 200000 },
					{ .max = 1, .weight = 2, .kernel_ns = 200000 },
					{ .max = 1,
					  .weight = 4,
					  .kernel_ns = 5 * MS,
					  .idle_from_ns = 3000 * MS,
					  .idle_to_ns = 6000 * MS } } };
	const size_t from = 4000 * MS / WINDOW_STEP, to = 6000 * MS / WINDOW_STEP;
	double share[2];

	run(&m);
	for (size_t i = 0; i < 2; i++)
		share[i] = (double)(m.tenants[i].window_at[to] - m.tenants[i].window_at[from]) /
			   (2000 * MS);
	check(share[0] > 0.29 && share[0] < 0.37 && share[1] > 0.62 && share[1] < 0.71,
	      "share: with the heaviest idle the others have %.1f and %.1f", share[0] * 100,
	      share[1] * 100);
}

/*
 * Kernels that begin to take another time when their arguments change, for good or in turns. What is queued then
 * cannot be held any more; it is paid for, and within two seconds the share is what it was.
 */
static void check_changed(uint64_t from_ns, uint64_t to_ns, uint64_t phase_ns, bool synchronous)
{
	const size_t last = END_NS / WINDOW_STEP - 1,
		     settled = (CHANGE_NS + 2000 * MS) / WINDOW_STEP;
	struct model m = { .n = 1,
			   .tenants = { { .max = 0.3,
					  .weight = 1,
					  .kernel_ns = from_ns,
					  .changed_ns = to_ns,
					  .phase_ns = phase_ns,
					  .synchronous = synchronous } } };
	const struct tenant *t = m.tenants;
	double all, then;

	run(&m);
	all = (double)t->window_at[last] / (last * WINDOW_STEP);
	then = (double)(t->window_at[last] - t->window_at[settled]) /
	       ((last - settled) * WINDOW_STEP);
	check(all > 0.24 && all < 0.305 && (phase_ns || (then > 0.27 && then < 0.33)),
	      "share: 30%% alone, %s kernels of %g ms that take %g ms%s: %.1f in all, %.1f in the end, "
	      "learned as %.2f ms",
	      synchronous ? "synchronous" : "asynchronous", from_ns / 1e6, to_ns / 1e6,
	      phase_ns ? " now and then" : " later", all * 100, then * 100,
	      t->kinds[0].cost_ns / 1e6);
	if (!phase_ns)
		check(t->kinds[0].cost_ns > 0.95 * to_ns && t->kinds[0].cost_ns < 1.05 * to_ns,
		      "share: and what they take is learned");
}

int main(void)
{
	const uint64_t kernels[] = { 20000, 200000, 1 * MS, 5 * MS, 20 * MS, 99 * MS };
	struct model both = { .n = 2,
			      .tenants = { { .max = 0.3, .weight = 1, .kernel_ns = 200000 },
					   { .max = 0.7, .weight = 1, .kernel_ns = 5 * MS } } };
	struct model weights = { .n = 3,
				 .tenants = { { .max = 1, .weight = 1, .kernel_ns = 200000 },
					      { .max = 1, .weight = 2, .kernel_ns = 200000 },
					      { .max = 1, .weight = 4, .kernel_ns = 5 * MS } } };

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
		check_alone(0.3, kernels[i], /* synchronous= */ false);
		check_alone(0.3, kernels[i], /* synchronous= */ true);
	}
	check_mixed(/* synchronous= */ false);
	check_mixed(/* synchronous= */ true);
	check_alone(0.7, 5 * MS, /* synchronous= */ false);
	check_alone(0.05, 200000, /* synchronous= */ false);
	check_many("30 and 70 per cent", &both, (const double[]){ 0.3, 0.7 }, 0.07);
	check_many("weights 1:2:4", &weights, (const double[]){ 1 / 7.0, 2 / 7.0, 4 / 7.0 }, 0.06);
	check_idle();
	check_begins_all(/* synchronous= */ false);
	check_begins_all(/* synchronous= */ true);
	for (int sync = 0; sync < 2; sync++) {
		check_changed(200000, 5 * MS, /* phase_ns= */ 0, sync);
		check_changed(5 * MS, 20000, /* phase_ns= */ 0, sync);
		check_changed(200000, 5 * MS, 1000 * MS, sync);
		check_changed(20000, 5 * MS, 200 * MS, sync);
	}
	return check_result();
}
