/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Over-use: who holds more than its request, and what is done about it.
 *
 * A pure function: samples, requests, devices, ladders and the time go in, actions
 * with their reasons come out. No clock, no I/O, no globals; whoever calls carries the
 * actions out and keeps the state between two calls.
 *
 *	use  |            ______________	  over: @n_over samples in a row above
 *	     |  _________/		\	request + tolerance. Clear: @n_clear in a
 *	request - - - - - - - - - - - - -\ - -	row at or below the request.
 *	     +--------------------------------> time
 *		      warn  ...grace...  suspend  ...deadline...  evict
 *
 * While a device is short of memory there is no grace: those who are over are taken,
 * the largest excess first, then the lowest priority, until what they hold covers what
 * is missing. Nobody who is within his request is ever acted on, and a tenant that is
 * suspended is let go as soon as a sample shows it within.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "tenant/ladder.h"
#include "tenant/ledger.h"

#include <stdbool.h>

#define POLICY_FOR_EVER	  UINT64_MAX
#define POLICY_NO_REQUEST UINT64_MAX

/**
 * struct policy_numbers - what counts as over-use and as pressure, and how long things take
 * @n_over:			samples in a row above the request and its tolerance
 * @n_clear:			samples in a row within the request, to end it
 * @tolerance_permille:		of the request
 * @tolerance_bytes:		at least
 * @pressure_permille:		of the device; free memory below it is pressure
 * @pressure_bytes:		at least
 * @foresight_ms:		memory that runs out within this, as it shrinks now, is pressure
 * @evict_after_ms:		from a suspend to the next step, under pressure
 * @suspend_deadline_ms:	from a suspend to the next step, or to the resume
 * @kill_after_ms:		from an eviction to the kill, where the ladder has both
 * @gap_ms:			samples further apart than this are not "in a row"
 * @n_evictions:		tenants of a device that are ended within @window_ms, at most
 */
struct policy_numbers {
	unsigned n_over;
	unsigned n_clear;
	unsigned tolerance_permille;
	uint64_t tolerance_bytes;
	unsigned pressure_permille;
	uint64_t pressure_bytes;
	uint64_t foresight_ms;
	uint64_t evict_after_ms;
	uint64_t suspend_deadline_ms;
	uint64_t kill_after_ms;
	uint64_t gap_ms;
	unsigned n_evictions;
	uint64_t window_ms;
};

/* At most as many evictions as are remembered. */
#define POLICY_MAX_EVICTIONS 16

extern const struct policy_numbers policy_defaults;

/**
 * struct policy_device - a device as it is now
 * @known:		it was asked and has answered; nothing is decided on one that was not
 * @wanted_bytes:	what has to be free so that the allocations can run that wait and are
 *			within their tenants' requests; 0 where none waits
 */
struct policy_device {
	bool known;
	uint64_t total_bytes;
	uint64_t free_bytes;
	uint64_t wanted_bytes;
};

/**
 * struct policy_use - what a tenant holds of a device, and what it asked for
 * @known:		what it holds could be found out
 * @request_bytes:	POLICY_NO_REQUEST where it has none: nothing there is over-use
 */
struct policy_use {
	bool known;
	uint64_t request_bytes;
	uint64_t used_bytes;
};

/**
 * struct policy_tenant - a tenant in this sample
 * @id:		the same in each sample; not 0
 * @grace_ms:	from the warning to the next step where nobody lacks memory
 */
struct policy_tenant {
	uint32_t id;
	uint32_t priority;
	struct ladder ladder;
	uint64_t grace_ms;
	struct policy_use use[LEDGER_DEVICES];
};

/**
 * struct policy_sample - all that is known at one moment
 * @now_ms:	a clock that does not jump; one that goes backwards is taken to stand
 */
struct policy_sample {
	uint64_t now_ms;
	const struct policy_device *devices;
	unsigned n_devices;
	const struct policy_tenant *tenants;
	size_t n_tenants;
};

enum policy_kind {
	POLICY_WARN, /* it holds more than its request: an incident begins */
	POLICY_SUSPEND,
	POLICY_EVICT,
	POLICY_KILL,
	POLICY_RESUME, /* it goes on; the incident may go on as well */
	POLICY_HELD,   /* the next step is not taken: too many were ended lately */
	POLICY_CLEAR,  /* the incident is over */
	N_POLICY_KINDS,
};

enum policy_reason {
#define POLICY_REASON(id, name, words) POLICY_##id,
#include "policy/reasons.def"
#undef POLICY_REASON
	N_POLICY_REASONS,
};

/**
 * struct policy_action - what is to be done, and why
 * @device:	where the excess is largest
 * @open_ms:	when its incident began
 */
struct policy_action {
	enum policy_kind kind;
	enum policy_reason reason;
	uint32_t id;
	unsigned device;
	uint64_t request_bytes;
	uint64_t used_bytes;
	uint64_t free_bytes;
	uint64_t missing_bytes;
	uint64_t open_ms;
};

struct policy_actions {
	struct policy_action *items;
	size_t n;
	size_t cap;
};

void policy_actions_done(struct policy_actions *actions);

/* Samples of a device that its growth is told from. */
#define POLICY_N_FREE 3

/**
 * struct policy_memory - what is remembered of a device
 * @free_bytes:		of the latest samples, the oldest first
 * @evicted_ms:		when the latest were ended there
 * @is_tense:		it is under pressure, or somebody is on the way to being over: samples
 *			should come more often
 */
struct policy_memory {
	uint64_t free_bytes[POLICY_N_FREE];
	uint64_t time_ms[POLICY_N_FREE];
	unsigned n_free;
	uint64_t evicted_ms[POLICY_MAX_EVICTIONS];
	unsigned n_evicted;
	bool is_tense;
};

struct policy_case;

/**
 * struct policy_state - what is remembered from one sample to the next; begins as zeros
 */
struct policy_state {
	struct policy_case *cases;
	size_t n_cases;
	struct policy_memory devices[LEDGER_DEVICES];
	uint64_t now_ms;
	bool begun;
};

/**
 * policy_decide() - take in a sample
 * @ret:	emptied, then filled in with what is to be done now, in this order
 *
 * Return: 0, or -ENOMEM; the sample then counts as not taken.
 */
int policy_decide(const struct policy_numbers *numbers, struct policy_state *state,
		  const struct policy_sample *sample, struct policy_actions *ret);

/**
 * policy_kind_name(), policy_reason_name() - the words that incidents have for them
 */
const char *policy_kind_name(enum policy_kind kind);
const char *policy_reason_name(enum policy_reason reason);

void policy_state_done(struct policy_state *state);

#endif
