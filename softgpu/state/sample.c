// SPDX-License-Identifier: Apache-2.0
/*
 * Busy time per sample period: rings of buckets, each with the number of its period.
 */
#include "softgpu/state/internal.h"
#include "softgpu/util/moment.h"

#define BUSY_BITS 32
#define BUSY_MASK ((1ull << BUSY_BITS) - 1)

uint64_t clock_now(void)
{
	return moment_now_ns(CLOCK_MONOTONIC);
}

static void bucket_add(state_bucket *bucket, uint64_t period, uint64_t ns)
{
	uint64_t old = atomic_load(bucket), to;

	do {
		if (old >> BUSY_BITS > period)
			return; /* so late that the ring has gone round */
		to = old >> BUSY_BITS == period ? old & BUSY_MASK : 0;
		to = period << BUSY_BITS | ((to + ns) & BUSY_MASK);
	} while (!atomic_compare_exchange_weak(bucket, &old, to));
}

void samples_add(state_bucket *ring, unsigned n, uint64_t period_ns, uint64_t begin_ns,
		 uint64_t end_ns)
{
	uint64_t first = begin_ns / period_ns, last = (end_ns - 1) / period_ns, from, to;

	if (end_ns <= begin_ns)
		return;
	if (last - first >= n)
		first = last - n + 1;
	for (uint64_t period = first; period <= last; period++) {
		from = period * period_ns;
		to = from + period_ns;
		from = from > begin_ns ? from : begin_ns;
		to = to < end_ns ? to : end_ns;
		bucket_add(&ring[period % n], period & BUSY_MASK, to - from);
	}
}

static uint64_t sample_busy(const state_bucket *ring, unsigned n, uint64_t period)
{
	uint64_t now = atomic_load(&ring[period % n]);

	return now >> BUSY_BITS == (period & BUSY_MASK) ? now & BUSY_MASK : 0;
}

static unsigned percent_of(uint64_t busy_ns, uint64_t period_ns)
{
	uint64_t percent = (busy_ns * 100 + period_ns / 2) / period_ns;

	return percent < 100 ? (unsigned)percent : 100;
}

static uint64_t period_end_us(const struct state_file *file, uint64_t period, uint64_t period_ns)
{
	return ((period + 1) * period_ns + file->wall_offset_ns) / 1000;
}

size_t state_samples(struct state *state, unsigned dev, struct state_sample *ret, size_t n_max)
{
	const struct state_file *file = state->files[dev];
	uint64_t period_ns = file_period_ns(file);
	uint64_t over = clock_now() / period_ns, period; /* number of the running period */
	size_t n = n_max < STATE_SAMPLES_DEVICE - 1 ? n_max : STATE_SAMPLES_DEVICE - 1;

	n = n < over ? n : over;
	for (size_t i = 0; i < n; i++) {
		period = over - n + i;
		ret[i].end_us = period_end_us(file, period, period_ns);
		ret[i].percent = percent_of(
			sample_busy(file->samples, STATE_SAMPLES_DEVICE, period), period_ns);
	}
	return n;
}

uint64_t state_sample_period_ns(const struct state *state, unsigned dev)
{
	return file_period_ns(state->files[dev]);
}

void slot_sample(const struct state_file *file, const struct state_slot *slot,
		 struct state_process *ret)
{
	uint64_t period_ns = file_period_ns(file);
	uint64_t period = clock_now() / period_ns - 1;

	ret->percent =
		percent_of(sample_busy(slot->samples, STATE_SAMPLES_PROCESS, period), period_ns);
	ret->sample_us = period_end_us(file, period, period_ns);
}

uint64_t state_busy_ns(struct state *state, unsigned dev)
{
	return atomic_load(&state->files[dev]->busy_ns);
}
