/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/use-samples.h"

#include "base/base.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MS	    600000
#define BLOCK_BYTES 16384
#define BLOCKS_MAX  (USE_SAMPLES_BYTES / sizeof(struct use_block))
#define VARINT_MAX  10
#define SAMPLE_MAX  (4 * VARINT_MAX + 2)
#define FOURS_MAX   15

/**
 * struct use_block - some of them, one after the other
 * @last:	the latest; before the first, one of zeros
 */
struct use_block {
	struct use_block *next;
	struct use_sample last;
	size_t n;
	uint8_t bytes[BLOCK_BYTES - sizeof(void *) - sizeof(struct use_sample) - sizeof(size_t)];
};

/* --- numbers --- */

/* Seven bits to a byte, the lowest first; the eighth says that more follow. */
static uint8_t *varint_put(uint8_t *at, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		*at++ = 0x80 | (number & 0x7f);
	*at++ = number;
	return at;
}

static const uint8_t *varint_get(const uint8_t *at, uint64_t *ret)
{
	unsigned shift = 0;

	*ret = 0;
	do {
		*ret |= (uint64_t)(*at & 0x7f) << shift;
		shift += 7;
	} while (*at++ & 0x80);
	return at;
}

/* From one number to another: small in either direction. */
static uint64_t step(uint32_t from, uint32_t to)
{
	return to >= from ? (uint64_t)(to - from) << 1 : (uint64_t)(from - to) << 1 | 1;
}

static uint32_t stepped(uint32_t from, uint64_t by)
{
	return by & 1 ? from - (by >> 1) : from + (by >> 1);
}

static unsigned fours_in(uint64_t bytes)
{
	return bytes ? MIN(__builtin_ctzll(bytes) / 2, FOURS_MAX) : 0;
}

/* --- samples --- */

static uint8_t *sample_put(uint8_t *at, const struct use_sample *before,
			   const struct use_sample *sample)
{
	unsigned fours = fours_in(sample->bytes);

	at = varint_put(at, sample->time_ms - before->time_ms);
	at = varint_put(at, step(before->pid, sample->pid));
	at = varint_put(at, step(before->tenant, sample->tenant));
	*at++ = fours << 4 | (sample->device & 0xf);
	*at++ = sample->percent;
	return varint_put(at, sample->bytes >> 2 * fours);
}

/* @sample: the one before, and then this one */
static const uint8_t *sample_get(const uint8_t *at, struct use_sample *sample)
{
	uint64_t number;
	unsigned fours;

	at = varint_get(at, &number);
	sample->time_ms += number;
	at = varint_get(at, &number);
	sample->pid = stepped(sample->pid, number);
	at = varint_get(at, &number);
	sample->tenant = stepped(sample->tenant, number);
	fours = *at >> 4;
	sample->device = *at++ & 0xf;
	sample->percent = *at++;
	at = varint_get(at, &number);
	sample->bytes = number << 2 * fours;
	return at;
}

/* --- blocks --- */

static void drop_oldest(struct use_samples *samples)
{
	struct use_block *block = samples->oldest;

	samples->oldest = block->next;
	if (!samples->oldest)
		samples->newest = NULL;
	samples->n_blocks--;
	free(block);
}

static void block_begin(struct use_samples *samples)
{
	struct use_block *block;

	if (samples->n_blocks == BLOCKS_MAX)
		drop_oldest(samples);
	block = malloc(sizeof(*block));
	if (!block)
		return;
	block->next = NULL;
	block->last = (struct use_sample){};
	block->n = 0;
	if (samples->newest)
		samples->newest->next = block;
	else
		samples->oldest = block;
	samples->newest = block;
	samples->n_blocks++;
}

static bool has_room(const struct use_block *block)
{
	return block && block->n + SAMPLE_MAX <= sizeof(block->bytes);
}

void use_samples_add(struct use_samples *samples, const struct use_sample *sample)
{
	struct use_block *block;

	while (samples->oldest && samples->oldest->last.time_ms + KEEP_MS < sample->time_ms)
		drop_oldest(samples);
	if (!has_room(samples->newest))
		block_begin(samples);
	block = samples->newest;
	/* Without memory there is nothing to be done but to go on without this one. */
	if (!has_room(block))
		return;
	block->n = sample_put(block->bytes + block->n, &block->last, sample) - block->bytes;
	block->last = *sample;
}

static void block_each(const struct use_block *block, uint64_t now_ms, use_sample_fn fn,
		       void *userdata)
{
	struct use_sample sample = {};
	const uint8_t *at = block->bytes;

	while (at < block->bytes + block->n) {
		at = sample_get(at, &sample);
		if (sample.time_ms + KEEP_MS >= now_ms)
			fn(&sample, userdata);
	}
}

void use_samples_each(const struct use_samples *samples, uint64_t now_ms, use_sample_fn fn,
		      void *userdata)
{
	const struct use_block *block;

	for (block = samples->oldest; block; block = block->next)
		block_each(block, now_ms, fn, userdata);
}

void use_samples_done(struct use_samples *samples)
{
	while (samples->oldest)
		drop_oldest(samples);
}
