/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Shares of a device's time: the arithmetic. No I/O, no clock, no globals; the first half compiles
 * into the BPF programs too.
 *
 * A launch is charged the device time that it is expected to take. A tenant with a rate of 30 per cent
 * that launches 3 ms of work may launch again when 10 ms have gone by:
 *
 *	due  --------+----------+------> time
 *	        launch 3 ms   may launch again
 *
 * so all that is kept of a tenant on a device is the moment at which it is due. What it did not use
 * is credit for SHARE_BURST_NS at most. It may launch SHARE_LEAD_NS before that moment: a thread that is let
 * go some milliseconds late then finds its device still at work, and a device that is given out to the last
 * per cent loses nothing.
 *
 * What a launch takes is known only afterwards and roughly: a driver tells, several times a second, in
 * what per cent of a period a process was at work. Two bounds make the best of that. At the end of a period,
 * all that was measured was launched before its end; and if the process' queue ran empty in the period,
 * all that was launched before its begin is measured:
 *
 *	launched up to the begin  <=  measured up to the end  <=  launched up to the end
 *
 * Where what was charged breaks a bound it is corrected, the tenant's due moment along with it. So an
 * error of the expected costs shifts a share for less than a period and does not add up.
 */
#ifndef TENANT_SHARE_H
#define TENANT_SHARE_H

#include <linux/types.h>

#define SHARE_BURST_NS 60000000ULL
#define SHARE_LEAD_NS  40000000ULL
#define SHARE_ONE      65536U /* `stretch` of the whole device */
#define SHARE_LOOSE                                                                                \
	2.0 /* rate of who may have the whole device, but not queue more than is bounded */
#define SHARE_FIRST_NS 50000000ULL /* what the first launch of a process is taken to cost */

#define SHARE_INLINE static inline __attribute__((always_inline, unused))

/**
 * struct share - a tenant on a device
 * @due_ns:		when it may launch again, on the monotonic clock (both)
 * @usage_ns:		device time that it was measured to use (user space)
 * @throttled_ns:	how long its threads were held, in sum (programs)
 * @n_throttled:	how often (programs)
 * @told_ns:		when it was last told that it is held (programs)
 * @stretch:		SHARE_ONE / rate, 0 for no limit (user space)
 * @max_permille:	compute.max, 0 for none (user space)
 * @weight:		compute.weight, 0 for the default (user space)
 */
struct share {
	__u64 due_ns;
	__u64 usage_ns;
	__u64 throttled_ns;
	__u64 n_throttled;
	__u64 told_ns;
	__u32 stretch;
	__u32 max_permille;
	__u32 weight;
	__u32 unused;
};

SHARE_INLINE int share_is_due(const struct share *s, __u64 now)
{
	return !*(volatile const __u32 *)&s->stretch ||
	       *(volatile const __u64 *)&s->due_ns <= now + SHARE_LEAD_NS;
}

/** share_take() - charge a launch of @cost_ns */
SHARE_INLINE void share_take(struct share *s, __u64 now, __u64 cost_ns)
{
	__u64 stretch = *(volatile __u32 *)&s->stretch;
	__u64 due = *(volatile __u64 *)&s->due_ns;

	if (!stretch)
		return;
	/* Of several who try, one succeeds, and that is enough. */
	if (due + SHARE_BURST_NS < now)
		__sync_val_compare_and_swap(&s->due_ns, due, now - SHARE_BURST_NS);
	__sync_fetch_and_add(&s->due_ns, cost_ns * stretch / SHARE_ONE);
}

/* A kind that is new is taken to last twice as long with each launch, so often at most. */
#define SHARE_DOUBLINGS 16

/**
 * share_expect() - what the next launch of a kind is charged
 * @cost_ns:	what one was learned to take, 0 for a kind of which nothing is known yet
 * @guess_ns:	what one of such a kind is likely to take
 * @n_launches:	so far
 *
 * Between two samples a thread can launch thousands of kernels. If each of a new kind were charged what
 * others took, and they last a thousand times as long, seconds of work would be queued that nobody can take
 * back. So each is charged twice what the one before was: a few cost little, and many are held until a
 * sample has told what they take.
 */
SHARE_INLINE __u64 share_expect(__u64 cost_ns, __u64 guess_ns, __u64 n_launches)
{
	if (cost_ns)
		return cost_ns;
	guess_ns <<= n_launches < SHARE_DOUBLINGS ? n_launches : SHARE_DOUBLINGS;
	return guess_ns < SHARE_FIRST_NS ? guess_ns : SHARE_FIRST_NS;
}

#ifndef __bpf__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** share_expect_all() - what @n launches of a new kind were charged, in sum */
double share_expect_all(uint64_t guess_ns, uint64_t n);

/** share_guess() - what a new kind is likely to take, when @n launches of others took @ns in sum */
uint64_t share_guess(uint64_t guess_ns, double ns, double n);

/** share_stretch() - of a rate; at least 1 permille, at most SHARE_LOOSE */
uint32_t share_stretch(double rate);

/** share_correct() - it has used @ns more than was charged; less, where negative */
void share_correct(struct share *s, uint64_t now, double ns);

/** share_hold() - no launch before @until */
void share_hold(struct share *s, uint64_t until);

/** share_set_rate() - from now on, with what it owes at the old one. @stretch: 0 for no limit */
void share_set_rate(struct share *s, uint64_t now, uint32_t stretch);

#define SHARE_MARKS 32

/**
 * struct share_meter - what a process was charged on a device, against what was measured
 * @marks:	what was charged in all, at some moments
 * @raw_ns:	the same by the programs' count, which knows the costs of then
 * @charged:	and at the costs of today
 * @begun_at:	up to where it has been compared: up to the begin of the last period
 * @ended_at:	and up to its end
 * @unmeasured:	of what was charged up to @ended_at, what has not been measured yet
 */
struct share_meter {
	struct {
		uint64_t time_ns;
		double charged;
	} marks[SHARE_MARKS];
	unsigned n_marks;
	uint64_t raw_ns;
	double charged;
	double begun_at;
	double ended_at;
	double unmeasured;
};

/** share_meter_begin() - compare from here on, when nothing is in flight or as good as nothing */
void share_meter_begin(struct share_meter *m, uint64_t now, uint64_t charged_ns);

/** share_meter_in_flight() - what was charged and is not measured yet, as far as one can tell */
double share_meter_in_flight(const struct share_meter *m);

/** share_meter_mark() - note what has been charged in all up to now; several times a period */
void share_meter_mark(struct share_meter *m, uint64_t now, uint64_t charged_ns);

/**
 * struct share_sample - what was measured of one process in one period
 * @drained:	its queue ran empty within it, as far as one can tell: the device had time left
 * @late:	it was told so late that launches which are counted by now may be of the next
 * @turns:	which part it had of the turns that were its own, 1 where it took them all or others' too
 */
struct share_sample {
	uint64_t begin_ns;
	uint64_t end_ns;
	uint64_t busy_ns;
	double turns;
	bool drained;
	bool late;
};

/**
 * share_meter_start() - compare from the end of this period on
 *
 * What was launched before the process was probed is measured but was not charged: so the first period
 * has to begin behind that, and its queue run empty.
 */
void share_meter_start(struct share_meter *m, const struct share_sample *sample);

/**
 * share_meter_sample() - compare; periods in order, after a mark at or behind their end
 *
 * Return: for share_correct() of all that were charged.
 */
double share_meter_sample(struct share_meter *m, const struct share_sample *sample);

/** share_meter_scale() - what is in flight takes @factor times what it was charged. Return: likewise */
double share_meter_scale(struct share_meter *m, double factor);

#define SHARE_COUNTS 4 /* a sample is not told so much later that none of them is before its end */

/**
 * struct share_kind - launches of one kind
 * @cost_ns:	what one is expected to take
 * @doubt:	how far that may be off, in parts of it; SHARE_UNSURE for a kind that is new
 * @n_launches:	up to the end of the period that is looked at, as far as one can tell
 * @n_before:	up to where they have been learned from
 * @n_at:	at the moments of the learner
 * @n_now:	of which one knows by now
 * @n_joint:	of lately, together with others
 */
struct share_kind {
	double cost_ns;
	double doubt;
	uint64_t n_launches;
	uint64_t n_before;
	uint64_t n_at[SHARE_COUNTS];
	uint64_t n_now;
	double n_joint;
};
#define SHARE_UNSURE	1.0
#define SHARE_KINDS_MAX 128

/**
 * struct share_learner - what a process was measured to take on a device since costs were last learned
 *
 * Long kernels are launched in one period and run in others, and a busy machine tells late of a period.
 * Periods are put together until there is something to compare with.
 *
 * @proven_ns:	what the meter found to be missing since then, whatever was in flight
 * @joint_ns:	what all kinds' n_joint took
 * @counted_ns:	when launches were counted, several times a period
 */
struct share_learner {
	uint64_t begin_ns;
	uint64_t busy_ns;
	unsigned n_periods;
	double proven_ns;
	double joint_ns;
	uint64_t counted_ns[SHARE_COUNTS];
	unsigned n_counts;
};

/** share_learner_count() - launches are counted. Return: of kind.n_at, the place to put them */
unsigned share_learner_count(struct share_learner *l, uint64_t now);

/** share_learner_counted() - the place with what was launched up to @time, or the oldest there is */
unsigned share_learner_counted(const struct share_learner *l, uint64_t time);

/** share_learner_skip() - what was measured up to now is not to be learned from */
void share_learner_skip(struct share_learner *l);

/**
 * share_learn() - take in a period and change what launches are expected to take
 *
 * The driver measures a process, not a kernel. What was measured beside what was expected is put down to
 * the kinds by how far each may have been off, the rest to what is launched in one period and runs in the
 * next:
 *
 *	known well	1000 launches of 20 us, off by 3 %: by 0.6 ms
 *	new		  10 launches taken to be 5 ms, off by 100 %: by 50 ms
 *
 * so a new kernel in a known mix is learned without disturbing the others (a Kalman filter that keeps no
 * correlations).
 *
 * Kinds that are launched in turns cannot be told apart, only what they take together. When one of them shows
 * alone that it was mistaken, the others are, by as much in the other direction.
 *
 * @kinds:	those of one process on one device that were launched since, or together with others lately
 * @queued_ns:	what may be in flight where the queue did not run empty
 * @proven_ns:	what share_meter_sample() returned for this period
 *
 * Return: how much more what was launched in this period is expected to take than it was charged.
 */
double share_learn(struct share_learner *l, struct share_kind *const *kinds, size_t n,
		   const struct share_sample *sample, double queued_ns, double proven_ns);

/**
 * struct share_claim - a tenant that was at work lately
 * @weight:	of compute.weight
 * @max:	of compute.max, 1 for the whole device
 * @used:	part of the device that it had
 * @waits:	it wants more than it had: its threads were held
 * @ret_rate:	what it gets
 */
struct share_claim {
	double weight;
	double max;
	double used;
	bool waits;
	double ret_rate;
};

/**
 * share_divide() - divide a device, or a tenant's part of one, by weight among those who are at work
 * @whole:	the part, 1 for all of a device
 *
 * Who uses less than its part leaves the rest to the others, and has its part back as soon as it asks.
 */
void share_divide(struct share_claim *claims, size_t n, double whole);

#endif
#endif
