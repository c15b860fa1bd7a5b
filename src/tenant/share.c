/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/share.h"

#include <math.h>

#include "base/base.h"

/* Samples are whole per cents: less than half of one reads as nothing. */
#define RESOLUTION 0.005

/* What was launched is known every 25 ms, so up to this part of a period's work is put into another. */
#define EDGE 0.075

/* Costs change by so much at a time, no more: one strange sample must not stop or free a tenant. */
#define FACTOR_MAX 64.0

/* Periods are put together until there are so many launches in them, or they are so long. */
#define LAUNCHES_FEW	4
#define TOGETHER_NS_MAX 1500000000ULL
#define DOUBT_NEW	0.5

#define COST_NS_MIN 500.0
#define COST_NS_MAX 1e9
#define PART	    0.1	 /* of a period's work: who has less is not to blame for a surprise */
#define DOUBT_JOINT 0.3	 /* of what follows from what others take */
#define DOUBT_MIN   0.03 /* costs depend on data, too: no kind is ever known better */
#define SURPRISE    3.0	 /* in standard deviations */

/* The sum of rates is a little above one: what a tenant cannot use at once would be lost to all. */
#define ALMOST_ALL 1.005

double share_expect_all(uint64_t guess_ns, uint64_t n)
{
	double all = 0;
	uint64_t i;

	for (i = 0; i < n && i < SHARE_DOUBLINGS; i++)
		all += (double)share_expect(/* cost_ns= */ 0, guess_ns, i);
	return all + (double)(n - i) * (double)share_expect(/* cost_ns= */ 0, guess_ns, i);
}

/* It is likely to be as those before, with some caution. */
uint64_t share_guess(uint64_t guess_ns, double ns, double n)
{
	double guess = n > 0 ? 2 * ns / n : (double)guess_ns;

	return (uint64_t)MIN(guess, (double)SHARE_FIRST_NS);
}

uint32_t share_stretch(double rate)
{
	rate = MAX(MIN(rate, SHARE_LOOSE), 0.001);
	return (uint32_t)(SHARE_ONE / rate);
}

void share_correct(struct share *s, uint64_t now, double ns)
{
	uint64_t least = now > SHARE_BURST_NS ? now - SHARE_BURST_NS : 0;
	int64_t shift = (int64_t)(ns * s->stretch / SHARE_ONE);
	__u64 due = __atomic_load_n(&s->due_ns, __ATOMIC_RELAXED), to;

	do {
		to = MAX(due, least);
		to = shift < 0 && to - least < (uint64_t)-shift ? least : to + (uint64_t)shift;
	} while (!__atomic_compare_exchange_n(&s->due_ns, &due, to, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

void share_hold(struct share *s, uint64_t until)
{
	__u64 due = __atomic_load_n(&s->due_ns, __ATOMIC_RELAXED);

	while (due < until && !__atomic_compare_exchange_n(&s->due_ns, &due, until, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
}

void share_set_rate(struct share *s, uint64_t now, uint32_t stretch)
{
	__u64 due = __atomic_load_n(&s->due_ns, __ATOMIC_RELAXED);
	uint64_t owed = due > now ? due - now : 0;

	if (s->stretch && stretch && owed)
		__atomic_fetch_add(&s->due_ns, owed * stretch / s->stretch - owed,
				   __ATOMIC_RELAXED);
	if (!s->stretch)
		__atomic_store_n(&s->due_ns, now, __ATOMIC_RELAXED);
	__atomic_store_n(&s->stretch, stretch, __ATOMIC_RELAXED);
}

void share_meter_mark(struct share_meter *m, uint64_t now, uint64_t charged_ns)
{
	unsigned at = m->n_marks++ % SHARE_MARKS;

	m->charged += charged_ns - m->raw_ns;
	m->raw_ns = charged_ns;
	m->marks[at].time_ns = now;
	m->marks[at].charged = m->charged;
}

void share_meter_begin(struct share_meter *m, uint64_t now, uint64_t charged_ns)
{
	share_meter_mark(m, now, charged_ns);
	m->begun_at = m->ended_at = m->charged;
	m->unmeasured = 0;
}

double share_meter_in_flight(const struct share_meter *m)
{
	return m->unmeasured + m->charged - m->ended_at;
}

/* Charged up to a moment: at least this much, and at most that much. */
static void charged_at(const struct share_meter *m, uint64_t time, double *ret_least,
		       double *ret_most)
{
	unsigned n = MIN(m->n_marks, (unsigned)SHARE_MARKS);

	*ret_least = 0;
	*ret_most = m->charged;
	for (unsigned i = 1; i <= n; i++) {
		unsigned at = (m->n_marks - i) % SHARE_MARKS;

		if (m->marks[at].time_ns <= time) {
			*ret_least = m->marks[at].charged;
			return;
		}
		*ret_most = m->marks[at].charged;
	}
}

void share_meter_start(struct share_meter *m, const struct share_sample *sample)
{
	double unused;

	charged_at(m, sample->begin_ns, &m->begun_at, &unused);
	charged_at(m, sample->end_ns, &unused, &m->ended_at);
	m->unmeasured = m->ended_at - m->begun_at;
}

double share_meter_sample(struct share_meter *m, const struct share_sample *sample)
{
	double begun, ended, unused, bounded, correction;

	charged_at(m, sample->begin_ns, &begun, &unused);
	charged_at(m, sample->end_ns, &unused, &ended);
	begun = MAX(begun, m->begun_at);
	ended = MAX(ended, m->ended_at);
	m->unmeasured += ended - m->ended_at - sample->busy_ns;
	m->begun_at = begun;
	m->ended_at = ended;

	bounded = MAX(m->unmeasured, 0.0);
	if (sample->drained)
		bounded = MIN(bounded, ended - begun);
	correction = bounded - m->unmeasured;
	m->unmeasured = bounded;
	return correction;
}

double share_meter_scale(struct share_meter *m, double factor)
{
	double correction = share_meter_in_flight(m) * (factor - 1), from = m->begun_at;

	/* Charges that a later period will be compared with. */
	for (unsigned i = 0; i < SHARE_MARKS; i++)
		if (m->marks[i].charged > from)
			m->marks[i].charged = from + (m->marks[i].charged - from) * factor;
	m->ended_at = from + (m->ended_at - from) * factor;
	m->charged = from + (m->charged - from) * factor;
	m->unmeasured *= factor;
	return correction;
}

unsigned share_learner_count(struct share_learner *l, uint64_t now)
{
	unsigned at = l->n_counts++ % SHARE_COUNTS;

	l->counted_ns[at] = now;
	return at;
}

unsigned share_learner_counted(const struct share_learner *l, uint64_t time)
{
	unsigned n = MIN(l->n_counts, (unsigned)SHARE_COUNTS), at = 0;

	for (unsigned i = 1; i <= n; i++) {
		at = (l->n_counts - i) % SHARE_COUNTS;
		if (l->counted_ns[at] <= time)
			break;
	}
	return at;
}

void share_learner_skip(struct share_learner *l)
{
	l->begin_ns = l->busy_ns = 0;
	l->n_periods = 0;
	l->proven_ns = 0;
}

/**
 * struct period - what a process was expected to take in one
 * @expected:	all of it
 * @largest:	a single launch
 * @kinds_off:	by how much it may be off because costs are, squared
 * @other_off:	because of what runs in another period than it was launched in, squared
 */
struct period {
	double expected;
	double largest;
	double kinds_off;
	double other_off;
};

static double fresh(const struct share_kind *k)
{
	return (double)(k->n_launches - k->n_before);
}

static double kind_off(const struct share_kind *k)
{
	double off = fresh(k) * k->cost_ns * k->doubt;

	return off * off;
}

static struct period period_of(struct share_kind *const *kinds, size_t n,
			       const struct share_sample *sample, double queued_ns)
{
	double unseen = RESOLUTION * (double)(sample->end_ns - sample->begin_ns);
	double edge = EDGE * (double)sample->busy_ns, at_end = 0;
	struct period p = {};

	for (size_t i = 0; i < n; i++) {
		p.expected += fresh(kinds[i]) * kinds[i]->cost_ns;
		p.kinds_off += kind_off(kinds[i]);
		if (fresh(kinds[i]) > 0)
			p.largest = MAX(p.largest, kinds[i]->cost_ns);
		/* New ones that were launched just then may be measured or not. */
		if (kinds[i]->doubt > DOUBT_NEW && kinds[i]->n_now > kinds[i]->n_launches)
			at_end += (double)(kinds[i]->n_now - kinds[i]->n_launches) *
				  kinds[i]->cost_ns;
	}
	p.other_off = unseen * unseen + edge * edge + p.largest * p.largest / 4 + at_end * at_end;
	if (!sample->drained)
		p.other_off += queued_ns * queued_ns;
	return p;
}

/*
 * A queue that ran empty within a period may be long again at its end. Of a process that had something to do most
 * of the time this is as likely as that costs are less than expected, but for what the meter has proven: all
 * that was launched before the period has run.
 */
static double missing_of(const struct share_learner *l, const struct share_sample *whole,
			 struct period *p)
{
	double missing = (double)whole->busy_ns - p->expected;
	double proven = MIN(l->proven_ns, 0.0), queued;

	if (!whole->drained || missing >= proven)
		return missing;
	queued = (proven - missing) * whole->turns;
	p->other_off += queued * queued / 16;
	return missing + queued;
}

/* What comes as a surprise shows that costs are doubtful, however well they were known. */
static bool doubts_raise(struct share_kind *const *kinds, size_t n, struct period *p,
			 double missing)
{
	double more = (missing * missing - p->other_off) / p->kinds_off;

	if (missing * missing < SURPRISE * SURPRISE * (p->kinds_off + p->other_off))
		return false;
	p->kinds_off = 0;
	for (size_t i = 0; i < n; i++) {
		if (fresh(kinds[i]) > 0)
			kinds[i]->doubt = MIN(kinds[i]->doubt * sqrt(more), SHARE_UNSURE);
		p->kinds_off += kind_off(kinds[i]);
	}
	return true;
}

/* What is left of how far it may be off is more in parts of a cost that is less. */
static void kind_learn(struct share_kind *k, const struct period *p, double missing)
{
	double part = kind_off(k) / (p->kinds_off + p->other_off);
	double cost = k->cost_ns + missing * part / fresh(k);
	double off = k->cost_ns * k->doubt * sqrt(1 - part);

	cost = MIN(MAX(cost, k->cost_ns / FACTOR_MAX), k->cost_ns * FACTOR_MAX);
	k->cost_ns = MAX(cost, COST_NS_MIN);
	k->doubt = MIN(MAX(off / k->cost_ns, DOUBT_MIN), SHARE_UNSURE);
}

static bool takes_part(const struct share_kind *k, const struct period *p)
{
	return fresh(k) * k->cost_ns > PART * p->expected;
}

/* Kinds that took no part in a surprise were mistaken along with those that did. */
static void others_learn(const struct share_learner *l, struct share_kind *const *kinds, size_t n,
			 const bool *part)
{
	double missing = l->joint_ns, others = 0, factor;

	for (size_t i = 0; i < n; i++) {
		missing -= kinds[i]->n_joint * kinds[i]->cost_ns;
		others += part[i] ? 0 : kinds[i]->n_joint * kinds[i]->cost_ns;
	}
	if (others <= 0)
		return;
	factor = MAX((others + missing) / others, 0.0);
	for (size_t i = 0; i < n; i++) {
		struct share_kind *k = kinds[i];

		if (part[i] || k->n_joint <= 0)
			continue;
		k->cost_ns = MIN(MAX(k->cost_ns * factor, COST_NS_MIN), COST_NS_MAX);
		k->doubt = MAX(k->doubt, DOUBT_JOINT);
	}
}

/* What was launched together, the latest most of all. */
static void joint_note(struct share_learner *l, struct share_kind *const *kinds, size_t n)
{
	size_t n_fresh = 0;

	for (size_t i = 0; i < n; i++)
		n_fresh += fresh(kinds[i]) > 0;
	if (n_fresh < 2)
		return;
	l->joint_ns /= 2;
	for (size_t i = 0; i < n; i++) {
		kinds[i]->n_joint = kinds[i]->n_joint / 2 + fresh(kinds[i]);
		l->joint_ns += fresh(kinds[i]) * kinds[i]->cost_ns;
	}
}

/*
 * Whether there is enough to learn from. Of a kind that is new anything is, but that it takes less than
 * expected: what was launched in a single period may not have run yet.
 */
static bool is_enough(const struct share_learner *l, struct share_kind *const *kinds, size_t n,
		      const struct share_sample *whole, double missing)
{
	bool is_long = whole->end_ns > l->begin_ns + TOGETHER_NS_MAX;
	double launches = 0, doubt = 0;

	for (size_t i = 0; i < n; i++) {
		launches += fresh(kinds[i]);
		if (fresh(kinds[i]) > 0)
			doubt = MAX(doubt, kinds[i]->doubt);
	}
	if (launches <= 0 || is_long)
		return launches > 0;
	if (whole->late)
		return false;
	if (doubt > DOUBT_NEW)
		return missing >= 0 || l->n_periods > 1;
	return launches >= LAUNCHES_FEW;
}

double share_learn(struct share_learner *l, struct share_kind *const *kinds, size_t n,
		   const struct share_sample *sample, double queued_ns, double proven_ns)
{
	struct share_sample whole = { .begin_ns = l->begin_ns ? l->begin_ns : sample->begin_ns,
				      .end_ns = sample->end_ns,
				      .busy_ns = l->busy_ns + sample->busy_ns,
				      .drained = sample->drained,
				      .late = sample->late,
				      .turns = sample->turns };
	struct period p = period_of(kinds, n, &whole, queued_ns);
	bool part[SHARE_KINDS_MAX], surprise;
	double missing, after = 0;

	l->begin_ns = whole.begin_ns;
	l->busy_ns = whole.busy_ns;
	l->n_periods += p.expected > 0;
	l->proven_ns += proven_ns;
	missing = missing_of(l, &whole, &p);
	if (p.kinds_off <= 0 || !is_enough(l, kinds, n, &whole, missing))
		return 1;
	share_learner_skip(l);
	for (size_t i = 0; i < n; i++)
		part[i] = takes_part(kinds[i], &p);
	surprise = doubts_raise(kinds, n, &p, missing);
	for (size_t i = 0; i < n; i++) {
		if (fresh(kinds[i]) > 0)
			kind_learn(kinds[i], &p, missing);
		after += fresh(kinds[i]) * kinds[i]->cost_ns;
	}
	if (surprise)
		others_learn(l, kinds, n, part);
	joint_note(l, kinds, n);
	for (size_t i = 0; i < n; i++)
		kinds[i]->n_before = kinds[i]->n_launches;
	return after / p.expected;
}

/* A tenant that does not wait leaves what it does not use, with some room to grow into. */
static double claim_demand(const struct share_claim *c)
{
	return c->waits ? c->max : MIN(c->used * 1.1 + 0.01, c->max);
}

void share_divide(struct share_claim *claims, size_t n, double whole)
{
	double left = whole * ALMOST_ALL, weights = 0, all;
	bool again = true;

	for (size_t i = 0; i < n; i++) {
		claims[i].ret_rate = 0;
		weights += claims[i].weight;
	}
	all = weights;
	/* Give those what they want who want less than their part, until nobody is left who does.
	 */
	while (again) {
		again = false;
		for (size_t i = 0; i < n; i++) {
			struct share_claim *c = &claims[i];
			double demand = claim_demand(c);

			if (c->ret_rate > 0 || demand > left * c->weight / weights)
				continue;
			/* Its part is there at once when it wants more. */
			c->ret_rate = MIN(MAX(demand, whole * c->weight / all), c->max);
			left -= demand;
			weights -= c->weight;
			again = true;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (claims[i].ret_rate <= 0)
			claims[i].ret_rate = left * claims[i].weight / weights;
}
