/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/share.h"

#include "base/base.h"

/* Learned costs rest on about the last three seconds: a period is a sixth of one. */
#define FADE 0.95

/* Samples are whole per cents: less than half of one reads as nothing. */
#define RESOLUTION 0.005

/*
 * Within their bounds costs go to the middle by so much each time, and at first faster; less while a queue
 * may grow or shrink.
 */
#define PULL	    0.2
#define PULL_FIRST  3.0 /* parts of the way at the n-th time: 3 / (n + 3) */
#define PULL_QUEUED 0.05

/* Costs change by so much at a time, no more: one strange sample must not stop or free a tenant. */
#define FACTOR_MAX 64.0

/* The sum of rates is a little above one: what a tenant cannot use at once would be lost to all. */
#define ALMOST_ALL 1.005

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

/* Charges that a later period will be compared with change with the costs. */
static void charges_scale(struct share_meter *m, double factor)
{
	double from = m->begun_at;

	for (unsigned i = 0; i < SHARE_MARKS; i++)
		if (m->marks[i].charged > from)
			m->marks[i].charged = from + (m->marks[i].charged - from) * factor;
	m->ended_at = from + (m->ended_at - from) * factor;
	m->charged = from + (m->charged - from) * factor;
	m->begun *= factor;
	m->ended *= factor;
	m->unmeasured *= factor;
}

static double pull_of(struct share_meter *m, const struct share_sample *sample)
{
	return sample->drained ? MAX(PULL, PULL_FIRST / (m->n_learned++ + PULL_FIRST)) : PULL_QUEUED;
}

/* By what the costs must change for the sums to keep their bounds. */
static double costs_learn(struct share_meter *m, const struct share_sample *sample)
{
	double unseen = RESOLUTION * (double)(sample->end_ns - sample->begin_ns);
	double factor = 1;

	if (m->measured > m->ended && m->ended > 0)
		factor = m->measured / m->ended;
	else if (sample->drained && m->begun > m->measured + unseen)
		factor = (m->measured + unseen) / m->begun;
	else if (m->measured > unseen)
		factor = 1 + pull_of(m, sample) * (2 * m->measured / (m->begun + m->ended) - 1);
	return MIN(MAX(factor, 1 / FACTOR_MAX), FACTOR_MAX);
}

struct share_finding share_meter_sample(struct share_meter *m, const struct share_sample *sample)
{
	struct share_finding f = { .factor = 1 };
	double begun, ended, unused, bounded;

	charged_at(m, sample->begin_ns, &begun, &unused);
	charged_at(m, sample->end_ns, &unused, &ended);
	begun = MAX(begun, m->begun_at);
	ended = MAX(ended, m->ended_at);
	m->measured = m->measured * FADE + sample->busy_ns;
	m->begun = m->begun * FADE + (begun - m->begun_at);
	m->ended = m->ended * FADE + (ended - m->ended_at);
	if (ended > m->ended_at || begun > m->begun_at)
		f.factor = costs_learn(m, sample);
	m->unmeasured += ended - m->ended_at - sample->busy_ns;
	m->begun_at = begun;
	m->ended_at = ended;

	bounded = MAX(m->unmeasured, 0.0);
	if (sample->drained)
		bounded = MIN(bounded, ended - begun);
	f.correction_ns = bounded - m->unmeasured;
	m->unmeasured = bounded;
	/* What is in flight costs the same as what has been measured. */
	f.correction_ns += share_meter_in_flight(m) * (f.factor - 1);
	charges_scale(m, f.factor);
	return f;
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
