/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of the last ten minutes, in memory.
 *
 * 500 processes that change all the time make 300,000 samples in ten minutes. So each is written as what is
 * different from the one before it, some nine bytes, into blocks that begin anew and go as a whole:
 *
 *	time	later by so many ms		a varint
 *	pid	another one by so much		a varint, the sign in its lowest bit
 *	tenant	likewise
 *	device	and how often the bytes can be divided by four, in the upper half
 *	percent
 *	bytes	divided by four so often	a varint
 */
#ifndef DAEMON_USE_SAMPLES_H
#define DAEMON_USE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct use_sample - what a process had at a moment
 * @time_ms:	by the monotonic clock
 * @tenant:	the nearest, by its id; 0 for none
 * @device:	below 16
 * @percent:	of the time in which it was at work
 */
struct use_sample {
	uint64_t bytes;
	uint64_t time_ms;
	pid_t pid;
	uint32_t tenant;
	uint8_t device;
	uint8_t percent;
};

/** struct use_samples - begins as zeros */
struct use_samples {
	struct use_block *oldest;
	struct use_block *newest;
	size_t n_blocks;
};

/* What all of them take at the most; then the oldest go before their time. */
#define USE_SAMPLES_BYTES (3U << 20)

/**
 * use_samples_add() - keep one that is not older than those before
 */
void use_samples_add(struct use_samples *samples, const struct use_sample *sample);

typedef void (*use_sample_fn)(const struct use_sample *sample, void *userdata);

/**
 * use_samples_each() - visit those of the ten minutes before @now_ms, the oldest first
 */
void use_samples_each(const struct use_samples *samples, uint64_t now_ms, use_sample_fn fn,
		      void *userdata);

void use_samples_done(struct use_samples *samples);

#endif
