/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits as they are given: what stands in files and in `cotenant set`, and what
 * comes of it for one device.
 *
 * A setting is for every device or for one. Sizes can be a part of the device
 * ("50%"), so they become bytes only when the device is known.
 */
#ifndef TENANT_LIMIT_H
#define TENANT_LIMIT_H

#include "base/quantity.h"
#include "tenant/ladder.h"

/* "MIG-" or "GPU-" and 36 characters, older MIG names are longer. */
#define DEVICE_UUID_SIZE 80

/* What holds without a setting. */
#define LIMIT_DEFAULT_WEIGHT	  100
#define LIMIT_DEFAULT_WAIT_LOW_MS 30000
#define LIMIT_DEFAULT_GRACE_MS	  60000
#define LIMIT_DEFAULT_PRIORITY	  100

enum limit_id {
#define LIMIT(id, name, kind, scope, metavar, help) LIMIT_##id,
#include "tenant/limits.def"
#undef LIMIT
	N_LIMITS,
};

enum limit_kind {
	LIMIT_SIZE,
	LIMIT_DURATION,
	LIMIT_WEIGHT,
	LIMIT_SHARE,
	LIMIT_CHOICE,
	LIMIT_LADDER
};
enum limit_scope { LIMIT_PER_DEVICE, LIMIT_PER_TENANT };
enum limit_on_failure { ON_FAILURE_KILL, ON_FAILURE_ALLOW, ON_FAILURE_DENY };

struct limit_info {
	const char *name;
	enum limit_kind kind;
	enum limit_scope scope;
	const char *metavar;
	const char *help;
};

extern const struct limit_info limit_infos[N_LIMITS];

/**
 * struct limit_value - one value
 * @number:	bytes, milliseconds, weight, thousandths, enum limit_on_failure, a ladder's two
 *		steps; QUANTITY_MAX is "max"
 * @is_part:	a size in thousandths of the device's memory
 */
struct limit_value {
	uint64_t number;
	bool is_part;
};

/**
 * struct limit_setting - one line of a tenant
 * @device:	UUID, or "" for every device
 */
struct limit_setting {
	enum limit_id id;
	char device[DEVICE_UUID_SIZE];
	struct limit_value value;
};

/**
 * struct limits - the settings of one tenant
 * @gpus:	the devices it may use; on all others memory.max is 0. None named: all.
 */
struct limits {
	struct limit_setting *settings;
	size_t n_settings;
	char (*gpus)[DEVICE_UUID_SIZE];
	size_t n_gpus;
};

/**
 * struct device_limits - what holds on one device
 * @has_request:		memory.low was set: what is beyond it is over-use
 * @memory_low:			bytes
 * @memory_max:			bytes, or QUANTITY_MAX
 * @wait_max_ms:		hold at memory.max; QUANTITY_MAX: for ever
 * @wait_low_ms:		hold beyond memory.low
 * @ladder:			what is done about over-use
 * @grace_ms:			how long after the warning; QUANTITY_MAX: for ever
 * @priority:			1 to 10000
 * @compute_weight:		1 to 10000
 * @compute_max_permille:	0 to 1000; 1000 is no limit
 */
struct device_limits {
	bool has_request;
	uint64_t memory_low;
	uint64_t memory_max;
	uint64_t wait_max_ms;
	uint64_t wait_low_ms;
	struct ladder ladder;
	uint64_t grace_ms;
	uint32_t priority;
	uint32_t compute_weight;
	uint32_t compute_max_permille;
	enum limit_on_failure on_failure;
};

/* Room for an explanation of what is wrong with a text. */
#define LIMIT_REASON_SIZE 200

/**
 * limit_value_parse() - read a value as people write it
 * @reason:	filled in on failure: a whole sentence without a full stop
 *
 * Return: 0, or -EINVAL.
 */
int limit_value_parse(enum limit_id id, const char *text, struct limit_value *ret,
		      char reason[LIMIT_REASON_SIZE]);

/**
 * limit_value_print() - the value as limit_value_parse() reads it
 */
const char *limit_value_print(enum limit_id id, const struct limit_value *value,
			      char buf[QUANTITY_TEXT]);

/**
 * limit_key_parse() - "memory.max" or "memory.max@GPU-..."
 */
int limit_key_parse(const char *key, enum limit_id *ret_id, char ret_device[DEVICE_UUID_SIZE],
		    char reason[LIMIT_REASON_SIZE]);

/**
 * limit_key_print() - the key of a setting; the caller frees it
 */
char *limit_key_print(const struct limit_setting *setting);

/**
 * device_uuid_ok() - does this look like a device's name that stays: GPU-... or MIG-...?
 */
bool device_uuid_ok(const char *uuid);

/**
 * limits_set() - add a setting or replace the one with the same key
 *
 * Return: 0, or -ENOMEM.
 */
int limits_set(struct limits *limits, const struct limit_setting *setting);

/**
 * limits_unset() - drop a setting; nothing happens if there is none
 */
void limits_unset(struct limits *limits, enum limit_id id, const char *device);

/**
 * limits_find() - the setting that holds on a device: its own, else that for every device
 * @device:	UUID, or "" to ask only for the general one
 */
const struct limit_setting *limits_find(const struct limits *limits, enum limit_id id,
					const char *device);

/**
 * limits_set_gpus() - the devices a tenant may use: UUIDs separated by blanks or commas
 *
 * Return: 0, -EINVAL with @reason, -ENOMEM.
 */
int limits_set_gpus(struct limits *limits, const char *text, char reason[LIMIT_REASON_SIZE]);

/**
 * limits_may_use() - is this one of the tenant's devices?
 */
bool limits_may_use(const struct limits *limits, const char *device);

/**
 * limits_check() - do the settings make sense together?
 *
 * Return: 0, or -EINVAL with @reason.
 */
int limits_check(const struct limits *limits, char reason[LIMIT_REASON_SIZE]);

/**
 * limits_resolve() - what holds on one device
 * @total_bytes:	the device's memory, for parts of it
 */
void limits_resolve(const struct limits *limits, const char *device, uint64_t total_bytes,
		    struct device_limits *ret);

/**
 * limits_copy() - a copy with memory of its own
 *
 * Return: 0, or -ENOMEM.
 */
int limits_copy(const struct limits *from, struct limits *ret);

void limits_done(struct limits *limits);

#endif
