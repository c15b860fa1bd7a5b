// SPDX-License-Identifier: Apache-2.0
/*
 * Is a file one of ours, and whole?
 *
 * What never changes carries a sum, so a single wrong byte is seen. The rest is changed by
 * every process while we look, so only that is checked which holds at every moment, also where
 * a process was killed in the middle of a change: bounds, who may be named where, and what can
 * only be behind something else. Of such a pair what is behind is read first.
 */
#include "softgpu/state/internal.h"

#include <stddef.h>
#include <string.h>

/* Device time is never further ahead of the clock than a turn is long. */
#define AHEAD_MAX 3600000000000ull

#define CLIENT_MASK 0xfffff /* of the last turn: 20 bits */

/* FNV-1a: each step is one to one, so a changed byte always shows. */
static uint64_t bytes_sum(const void *bytes, size_t n)
{
	const uint8_t *byte = bytes;
	uint64_t sum = 14695981039346656037ull;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ byte[i]) * 1099511628211ull;
	return sum;
}

uint64_t header_sum(const struct state_file *file)
{
	return bytes_sum(file, offsetof(struct state_file, sum));
}

uint64_t properties_sum(const struct state_properties *properties)
{
	return bytes_sum(properties, offsetof(struct state_properties, sum));
}

static bool header_good(const struct state_file *file, unsigned index)
{
	return memcmp(file->magic, STATE_MAGIC, sizeof(file->magic)) == 0 &&
	       file->version == STATE_VERSION && file->index == index &&
	       file->size_bytes == state_file_bytes() && file->sum == header_sum(file);
}

static bool properties_good(const struct state_properties *properties)
{
	return properties->sum == properties_sum(properties) && properties->n_devices >= 1 &&
	       properties->n_devices <= SOFTGPU_DEVICES_MAX &&
	       properties->device.memory_bytes > 0 && properties->device.n_sms > 0 &&
	       properties->device.clock_mhz > 0 && properties->slice_ns >= 1000 &&
	       properties->slice_ns <= 1000000000 && properties->sample_period_ns >= 1000000 &&
	       properties->sample_period_ns <= 1000000000 &&
	       memchr(properties->device.name, '\0', sizeof(properties->device.name));
}

/* Another process may be making the other half hold just now. */
static bool configuration_good(const struct state_file *file)
{
	const struct state_properties *properties;
	uint32_t n;
	bool good;

	do {
		n = atomic_load(&file->n_properties);
		properties = &file->properties[n & 1];
		good = properties->generation == n && properties_good(properties);
	} while (atomic_load(&file->n_properties) != n);
	return good;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool slots_good(const struct state_file *file)
{
	uint64_t last_charge = 0, birth;
	const struct state_slot *slot;
	int32_t n_contexts;
	struct pair charge;

	for (uint64_t i = 0; i < STATE_SLOTS_MAX; i++) {
		slot = &file->slots[i];
		birth = atomic_load(&slot->birth);
		n_contexts = atomic_load(&slot->n_contexts);
		if (__atomic_load_n(&slot->used.b, __ATOMIC_SEQ_CST) >> STATE_BYTES_BITS ||
		    (birth && birth % STATE_SLOTS_MAX != i) || n_contexts < 0 ||
		    n_contexts > STATE_CLIENTS_MAX)
			return false;
		last_charge = later(last_charge, __atomic_load_n(&slot->used.a, __ATOMIC_SEQ_CST));
	}
	charge.a = __atomic_load_n(&file->charge.a, __ATOMIC_SEQ_CST);
	charge.b = __atomic_load_n(&file->charge.b, __ATOMIC_SEQ_CST);
	return last_charge <= charge.a && charge.b >> STATE_BYTES_BITS < STATE_SLOTS_MAX;
}

static bool clients_good(const struct state_file *file)
{
	uint64_t last_served = 0, busy = atomic_load(&file->busy_ns), end, turn, horizon;
	const struct state_client *client;

	for (uint32_t i = 0; i < STATE_CLIENTS_MAX; i++) {
		client = &file->clients[i];
		if (atomic_load(&client->keeps_turn) > 1)
			return false;
		last_served =
			later(last_served, __atomic_load_n(&client->served.a, __ATOMIC_SEQ_CST));
	}
	end = __atomic_load_n(&file->turn.a, __ATOMIC_SEQ_CST);
	turn = __atomic_load_n(&file->turn.b, __ATOMIC_SEQ_CST);
	horizon = clock_now() + AHEAD_MAX;
	return last_served <= end && end <= horizon && busy <= horizon &&
	       (turn & CLIENT_MASK) < STATE_CLIENTS_MAX;
}

static bool limits_good(const struct state_file *file)
{
	for (uint32_t i = 0; i < STATE_LIMITS_MAX; i++)
		if (file->limits[i].path[STATE_PATH_MAX - 1])
			return false;
	return true;
}

bool file_is_ours(const struct state_file *file, unsigned index)
{
	return header_good(file, index) && configuration_good(file);
}

bool file_is_whole(const struct state_file *file)
{
	return atomic_load(&file->n_slots) <= STATE_SLOTS_MAX &&
	       atomic_load(&file->n_clients) <= STATE_CLIENTS_MAX &&
	       atomic_load(&file->n_limits) <= STATE_LIMITS_MAX && slots_good(file) &&
	       clients_good(file) && limits_good(file);
}
